//! Reprocessing: stored BLE events are read again with today's catalog and keys. A dry run says
//! what would change. A run is a row that background work carries out, for one tenant one after the
//! other; what of it is done is stored with what it changes. It never activates or registers a
//! device, and never changes what a hub sent. A device that gets another bind key commits a task
//! (`KEY_WAS_SET`), from which a run for that device follows.

mod batch;
mod dry_run;
pub mod http;
mod store;
mod worker;

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::tasks::{self, Done, NewTask};
use hub_identity::authz::Scope;
use hub_protocol::{TenantUuid, Timestamp, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::ble::{ReprocessedEvent, Selection};
use crate::device_instances::KeyWasSet;
use crate::recognition::Unread;
use crate::{device_catalog, device_instances};
pub use worker::perform;

/// The lane of this work.
pub const LANE: &str = "reprocess";
/// The kind of task that carries out the runs of a tenant.
pub const RUN: &str = "ble.reprocess";

/// The cause of reprocessing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "ReprocessCause")]
pub enum Cause {
    /// A request of an operator.
    Operator,
    /// A device has got a new bind key: what is stored of it and could not be decoded is read.
    BindKey,
    /// There was no time for the scripts of events when they came: what failed then is read.
    ScriptTime,
}

text_enum!(Cause {
    Operator = "OPERATOR",
    BindKey = "BIND_KEY",
    ScriptTime = "SCRIPT_TIME",
});

/// The events to read.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub from_id: i64,
    /// The end of the range, exclusive.
    pub to_id: i64,
    /// Events that are, or were, of this model.
    pub device_uuid: Option<Uuid>,
    /// Events that are, or were, of this device.
    pub device_instance_id: Option<i64>,
}

impl Range {
    /// Whether the range has the event.
    fn has(&self, event: &ReprocessedEvent) -> bool {
        let before = event.change.as_ref().map(|change| &change.before);
        let is_of_model = |model| {
            event.device_uuid == Some(model) || before.and_then(|it| it.device_uuid) == Some(model)
        };
        let is_of_device = |id| {
            event.device_instance_id == Some(id)
                || before.and_then(|it| it.device_instance_id) == Some(id)
        };
        self.device_uuid.is_none_or(is_of_model) && self.device_instance_id.is_none_or(is_of_device)
    }
}

/// The counts so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub events: i64,
    pub changed: i64,
    pub newly_decoded: i64,
    pub no_longer_decoded: i64,
}

impl Counts {
    fn add(&mut self, event: &ReprocessedEvent) {
        use hub_ingest::ProcessingStatus::Decoded;
        self.events += 1;
        let Some(change) = &event.change else { return };
        self.changed += 1;
        let (was_decoded, is_decoded) = (
            change.before.status == Decoded,
            change.after.status == Decoded,
        );
        self.newly_decoded += i64::from(is_decoded && !was_decoded);
        self.no_longer_decoded += i64::from(was_decoded && !is_decoded);
    }
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "ReprocessState")]
enum State {
    /// The run waits.
    Queued,
    /// The run is in progress.
    Running,
    /// The run is complete.
    Succeeded,
    /// The run was given up.
    Failed,
}

/// A run.
#[derive(Clone, Debug)]
struct Run {
    task_uuid: Uuid,
    tenant_uuid: TenantUuid,
    cause: Cause,
    range: Range,
    /// Events with lower ids are done.
    next_id: i64,
    counts: Counts,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    error: Option<String>,
}

impl Run {
    fn new(tenant_uuid: TenantUuid, cause: Cause, range: Range, now: Timestamp) -> Self {
        Self {
            task_uuid: Uuid::now_v7(),
            tenant_uuid,
            cause,
            range,
            next_id: range.from_id,
            counts: Counts::default(),
            created_at: now,
            started_at: None,
            finished_at: None,
            error: None,
        }
    }

    const fn state(&self) -> State {
        match (self.started_at, self.finished_at, &self.error) {
            (_, Some(_), None) => State::Succeeded,
            (_, Some(_), Some(_)) => State::Failed,
            (Some(_), None, _) => State::Running,
            (None, None, _) => State::Queued,
        }
    }

    const fn selection(&self) -> Selection {
        match (self.cause, self.range.device_instance_id) {
            (Cause::BindKey, Some(device_instance_id)) => {
                Selection::UndecodedOf(device_instance_id)
            }
            (Cause::ScriptTime, _) => Selection::Failed,
            (Cause::Operator | Cause::BindKey, _) => Selection::All,
        }
    }

    fn audited(&self) -> Value {
        json!({
            "from": Timestamp::from_micros(self.range.from_id),
            "to": Timestamp::from_micros(self.range.to_id),
            "deviceUuid": self.range.device_uuid,
            "deviceInstanceId": self.range.device_instance_id,
        })
    }
}

/// 404 unless the model and the device are the tenant's.
async fn require_own(core: &Core, scope: &Scope, range: &Range) -> Result<()> {
    let mut conn = core.db.read().await?;
    if let Some(device_uuid) = range.device_uuid {
        device_catalog::require_model(&mut conn, scope, device_uuid).await?;
    }
    if let Some(device_instance_id) = range.device_instance_id {
        device_instances::require(&mut conn, scope, device_instance_id).await?;
    }
    Ok(())
}

/// Begins a run. 409 if one that somebody asked for has not finished.
async fn begin(core: &Core, scope: &Scope, range: Range) -> Result<Uuid> {
    let now = core.clock.now();
    let run = Run::new(scope.tenant_uuid(), Cause::Operator, range, now);
    let mut tx = core.db.begin().await?;
    if !store::insert(&mut tx, &run).await? {
        let other = store::of_operator(&mut tx, scope).await?;
        let what = other.map_or_else(
            || "another one".to_owned(),
            |uuid| format!("the task {uuid}"),
        );
        let message =
            format!("{what} reads events of this tenant again; wait until it has finished");
        return Err(Error::conflict("REPROCESSING", message));
    }
    store::forget_old(&mut tx, scope.tenant_uuid()).await?;
    enqueue(core, &mut tx, scope.tenant_uuid(), now).await?;
    let audit = Audit::new(scope, "ble.reprocess", run.task_uuid, now);
    tx.commit(audit.changed(None, Some(run.audited()))).await?;
    Ok(run.task_uuid)
}

/// Begins a run for a device that has got a new bind key, unless one waits already. The change of
/// the key is in the audit log.
pub async fn begin_for_key(core: &Core, payload: &Value) -> Result<Done> {
    let KeyWasSet {
        tenant_uuid,
        device_instance_id,
    } = KeyWasSet::of(payload)?;
    let now = core.clock.now();
    // Ids run ahead of the clock where many events arrive at once.
    let range = Range {
        from_id: 0,
        to_id: now.plus_secs(60).as_micros(),
        device_uuid: None,
        device_instance_id: Some(device_instance_id),
    };
    let run = Run::new(tenant_uuid, Cause::BindKey, range, now);
    let mut tx = core.db.begin().await?;
    if !store::waits_for_device(&mut tx, tenant_uuid, device_instance_id).await? {
        store::insert(&mut tx, &run).await?;
        store::forget_old(&mut tx, tenant_uuid).await?;
    }
    enqueue(core, &mut tx, tenant_uuid, now).await?;
    tx.commit_unaudited("follows from the change of a key, which has an entry")
        .await?;
    Ok(Done::Finished)
}

/// Begins a run for events whose scripts had no time when they came.
pub async fn begin_for_unread(core: &Core, payload: &Value) -> Result<Done> {
    let Unread {
        tenant_uuid,
        from,
        to,
    } = Unread::of(payload)?;
    let now = core.clock.now();
    let range = Range {
        from_id: from.as_micros(),
        to_id: to.as_micros(),
        device_uuid: None,
        device_instance_id: None,
    };
    let run = Run::new(tenant_uuid, Cause::ScriptTime, range, now);
    let mut tx = core.db.begin().await?;
    store::insert(&mut tx, &run).await?;
    store::forget_old(&mut tx, tenant_uuid).await?;
    enqueue(core, &mut tx, tenant_uuid, now).await?;
    tx.commit_unaudited("what came is read").await?;
    Ok(Done::Finished)
}

/// Adds the task, of which each tenant has one for all its runs.
async fn enqueue(core: &Core, tx: &mut Tx, tenant_uuid: TenantUuid, now: Timestamp) -> Result<()> {
    let payload = serde_json::to_value(Payload { tenant_uuid }).map_err(Error::internal)?;
    let dedup_key = Some(format!("{RUN}/{tenant_uuid}"));
    let task = NewTask {
        lane: LANE,
        kind: RUN,
        payload,
        due_at: now,
        dedup_key,
    };
    tasks::enqueue(core, tx, task, now).await
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    tenant_uuid: TenantUuid,
}
