//! Removes what an archived bundle brought to hubs: one hub in each transaction, so that nobody
//! waits for a fleet. A run may end anywhere; the next one continues with the hubs that are left.

use std::time::{Duration, Instant};

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::tasks::{self, Done, NewTask};
use hub_fleet::hubs::{self, Changes};
use hub_fleet::jobs;
use hub_identity::authz::Scope;
use hub_pipelines as pipelines;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::hubs as store;

/// The lane of this work.
pub const LANE: &str = "bundles";
/// The kind of its tasks.
pub const WITHDRAW: &str = "supplier_bundle.withdraw";
/// Hubs that are read at once.
const HUBS: i64 = 50;
/// The time after which another bundle is withdrawn.
const RUN_TIME: Duration = Duration::from_secs(20);
/// The delay until the next attempt for hubs that had too many jobs.
const BUSY_SECS: i64 = 600;
/// The time that a hub has to remove an app.
const JOBS_SECS: i64 = 30 * 24 * 3600;
const ACTOR: &str = "SUPPLIER_BUNDLES";

pub async fn enqueue(
    core: &Core,
    tx: &mut Tx,
    scope: &Scope,
    bundle_uuid: Uuid,
    now: Timestamp,
) -> Result<()> {
    let task = NewTask {
        lane: LANE,
        kind: WITHDRAW,
        payload: json!({"tenantUuid": scope.tenant_uuid(), "bundleUuid": bundle_uuid}),
        due_at: now,
        dedup_key: Some(format!("{WITHDRAW} {bundle_uuid}")),
    };
    tasks::enqueue(core, tx, task, now).await
}

/// Removes it from some hubs.
pub async fn perform(core: &Core, changes: &Changes, payload: &Value) -> Result<Done> {
    fn member<T: std::str::FromStr>(payload: &Value, name: &str) -> Result<T> {
        let found = payload
            .get(name)
            .and_then(|value| value.as_str()?.parse().ok());
        found.ok_or_else(|| Error::internal(format!("the task has no {name}")))
    }
    let tenant_uuid: TenantUuid = member(payload, "tenantUuid")?;
    let bundle_uuid: Uuid = member(payload, "bundleUuid")?;
    let scope = Scope::system(ACTOR, tenant_uuid);
    let ends_at = Instant::now() + RUN_TIME;
    let (mut after, mut left) = (HubUuid(Uuid::nil()), 0);
    while Instant::now() < ends_at && !core.shutdown.is_cancelled() {
        let hubs = store::some_with(&mut core.db.read().await?, bundle_uuid, after, HUBS).await?;
        let Some(last) = hubs.last() else {
            let now = core.clock.now();
            return Ok(if left == 0 {
                Done::Finished
            } else {
                Done::RunAt(now.plus_secs(BUSY_SECS))
            });
        };
        after = *last;
        for hub_uuid in hubs {
            left += usize::from(!withdraw(core, changes, &scope, hub_uuid, bundle_uuid).await?);
        }
    }
    Ok(Done::RunAt(core.clock.now()))
}

/// Returns false if the hub has too many jobs for it now.
async fn withdraw(
    core: &Core,
    changes: &Changes,
    scope: &Scope,
    hub_uuid: HubUuid,
    bundle_uuid: Uuid,
) -> Result<bool> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let Some(hub) = hubs::find_and_lock(&mut tx, hub_uuid).await? else {
        // The hub was released, and has no part of the bundle any more.
        store::forget(&mut tx, hub_uuid, bundle_uuid).await?;
        tx.commit_unaudited("what a released hub had").await?;
        return Ok(true);
    };
    let own = store::own_apps(&mut tx, hub_uuid, bundle_uuid).await?;
    let apps = jobs::still_last(&mut tx, hub_uuid, &own).await?;
    let detail = "superseded: the bundle that brought the app was archived";
    // A blocked hub gets no jobs; its parts are removed by hand when it is claimed again.
    let removed = match hub.blocked_at {
        Some(_) => Vec::new(),
        None => {
            let deadline_at = now.plus_secs(JOBS_SECS);
            match jobs::remove_all(&mut tx, changes, &hub, &apps, detail, deadline_at, now).await {
                Ok(removed) => removed,
                Err(error) if error.status().is_client_error() => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    };
    let pipelines = pipelines::bound::unbind(&mut tx, hub_uuid, bundle_uuid).await?;
    store::forget(&mut tx, hub_uuid, bundle_uuid).await?;
    let jobs: Vec<Value> = removed
        .iter()
        .map(|(app_uuid, job)| json!({"appUuid": app_uuid, "hubJobUuid": job}))
        .collect();
    let detail = json!({"bundleUuid": bundle_uuid, "jobs": jobs, "pipelines": pipelines});
    tx.commit(Audit::new(scope, WITHDRAW, hub_uuid, now).with(detail))
        .await?;
    Ok(true)
}
