//! What a claim adds to its hub: the bundle that the code names, else all published bundles with
//! `autoApply`. It is all done in the transaction of the claim, by a number of statements that does
//! not grow with the bundles. What cannot be done refuses the claim.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures_util::future::BoxFuture;
use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_fleet::hubs::{self, AtClaim, Changes, Claiming};
use hub_fleet::jobs;
use hub_fleet::releases::{self, AppReleaseSummary};
use hub_identity::authz::Scope;
use hub_pipelines as pipelines;
use hub_protocol::release::architectures;
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::parts::AppPart;
use super::store::{self, BundleRow};
use super::{MAX_AUTO_APPLIED, Status};

/// The time that a hub has to install the apps of a bundle.
const JOBS_SECS: i64 = 30 * 24 * 3600;
/// The channel of an app for which the bundle names neither release nor channel.
pub const DEFAULT_CHANNEL: &str = "stable";

/// Applies bundles to hubs that are claimed.
pub struct Expansion {
    pub changes: Changes,
}

/// An app that a bundle brought to a hub.
pub struct Installed {
    pub bundle_uuid: Uuid,
    pub app_uuid: AppUuid,
    pub release_uuid: ReleaseUuid,
    pub version: String,
    pub hub_job_uuid: HubJobUuid,
}

/// The parts to apply to a hub.
struct Plan {
    bundles: Vec<Uuid>,
    /// The bundle that brings the app.
    bringers: HashMap<AppUuid, Uuid>,
    releases: Vec<AppReleaseSummary>,
}

impl AtClaim for Expansion {
    fn check<'a>(
        &'a self,
        conn: &'a mut Conn,
        claiming: &'a Claiming,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { plan(conn, &scope_of(claiming), claiming).await.map(drop) })
    }

    fn add<'a>(
        &'a self,
        tx: &'a mut Tx,
        hub_uuid: HubUuid,
        claiming: &'a Claiming,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Value>> {
        Box::pin(async move {
            let scope = scope_of(claiming);
            let Some(plan) = plan(tx, &scope, claiming).await? else {
                return Ok(json!([]));
            };
            apply(tx, &self.changes, &scope, hub_uuid, plan, now).await
        })
    }
}

/// The claim is the hub's, which has no uuid before.
fn scope_of(claiming: &Claiming) -> Scope {
    Scope::system("CLAIM", claiming.tenant_uuid)
}

fn refused(code: &'static str, message: String) -> Error {
    Error::conflict(code, message)
}

/// The parts to apply; None without a bundle.
async fn plan(conn: &mut Conn, scope: &Scope, claiming: &Claiming) -> Result<Option<Plan>> {
    let bundles = match claiming.bundle_uuid {
        Some(bundle_uuid) => vec![named(conn, scope, bundle_uuid).await?],
        None => store::auto_applied(conn, scope, MAX_AUTO_APPLIED).await?,
    };
    if bundles.is_empty() {
        return Ok(None);
    }
    let uuids: Vec<Uuid> = bundles.iter().map(|bundle| bundle.bundle_uuid).collect();
    let mut apps = store::parts::apps(conn, &uuids).await?;
    // An app is brought by one bundle: the last one that has it.
    let rank = |app: &AppPart| uuids.iter().position(|uuid| *uuid == app.bundle_uuid);
    apps.sort_by_key(rank);
    let apps: BTreeMap<AppUuid, AppPart> =
        apps.into_iter().map(|app| (app.app_uuid, app)).collect();
    let machine = claiming.architecture.as_deref();
    let releases = releases_of(conn, scope, &apps, Some(&architectures(machine))).await?;
    let found: HashMap<AppUuid, &AppReleaseSummary> =
        releases.iter().map(|one| (one.app_uuid, one)).collect();
    for app in apps.values() {
        let bundle = bundles
            .iter()
            .find(|bundle| bundle.bundle_uuid == app.bundle_uuid);
        let bundle = bundle.map_or("", |bundle| &bundle.name);
        let on = machine.unwrap_or("a hub of unknown architecture");
        let Some(release) = found.get(&app.app_uuid) else {
            let channel = app.channel.as_deref().unwrap_or(DEFAULT_CHANNEL);
            let message = format!(
                "the bundle {bundle} brings the app {}, of which there is no release in the channel {channel} for {on}",
                app.name
            );
            return Err(refused("BUNDLE_NOT_INSTALLABLE", message));
        };
        // A hub without a known architecture decides by itself.
        if machine.is_some() && !architectures(machine).contains(&release.architecture.as_str()) {
            let message = format!(
                "the bundle {bundle} brings version {} of the app {}, which is built for {} and not for {on}",
                release.version, app.name, release.architecture
            );
            return Err(refused("BUNDLE_NOT_INSTALLABLE", message));
        }
    }
    let bringers = apps
        .values()
        .map(|app| (app.app_uuid, app.bundle_uuid))
        .collect();
    Ok(Some(Plan {
        bundles: uuids,
        bringers,
        releases,
    }))
}

/// The bundle that a claim code names.
async fn named(conn: &mut Conn, scope: &Scope, bundle_uuid: Uuid) -> Result<BundleRow> {
    let Some(bundle) = store::get(conn, scope, bundle_uuid).await? else {
        let message =
            "the bundle of this claim code does not exist; ask for another code".to_owned();
        return Err(refused("BUNDLE_UNKNOWN", message));
    };
    match bundle.status {
        Status::Published => Ok(bundle),
        status => {
            let name = status.name();
            let message = format!(
                "the bundle {} of this claim code is {name}; ask for another code",
                bundle.name
            );
            Err(refused("BUNDLE_NOT_PUBLISHED", message))
        }
    }
}

/// The release of each app to install, as far as it has one.
async fn releases_of(
    conn: &mut Conn,
    scope: &Scope,
    apps: &BTreeMap<AppUuid, AppPart>,
    architectures: Option<&[&str]>,
) -> Result<Vec<AppReleaseSummary>> {
    let pinned: Vec<ReleaseUuid> = apps.values().filter_map(|app| app.release_uuid).collect();
    let mut found = releases::app_releases_for_jobs(conn, scope, &pinned).await?;
    let mut channels: BTreeMap<&str, Vec<AppUuid>> = BTreeMap::new();
    for app in apps.values().filter(|app| app.release_uuid.is_none()) {
        channels
            .entry(app.channel.as_deref().unwrap_or(DEFAULT_CHANNEL))
            .or_default()
            .push(app.app_uuid);
    }
    for (channel, apps) in channels {
        found.extend(
            releases::newest_app_releases(conn, scope, &apps, channel, architectures).await?,
        );
    }
    Ok(found)
}

/// 409 for a bundle with an app without any release.
pub async fn require_installable(conn: &mut Conn, scope: &Scope, bundle_uuid: Uuid) -> Result<()> {
    let apps = store::parts::apps(conn, &[bundle_uuid]).await?;
    let apps: BTreeMap<AppUuid, AppPart> =
        apps.into_iter().map(|app| (app.app_uuid, app)).collect();
    let found: HashSet<AppUuid> = releases_of(conn, scope, &apps, None)
        .await?
        .into_iter()
        .map(|release| release.app_uuid)
        .collect();
    match apps.values().find(|app| !found.contains(&app.app_uuid)) {
        Some(app) => {
            let channel = app.channel.as_deref().unwrap_or(DEFAULT_CHANNEL);
            let message = format!(
                "the app {} has no READY release in the channel {channel}; upload one, or name another channel",
                app.name
            );
            Err(refused("BUNDLE_NOT_INSTALLABLE", message))
        }
        None => Ok(()),
    }
}

async fn apply(
    tx: &mut Tx,
    changes: &Changes,
    scope: &Scope,
    hub_uuid: HubUuid,
    plan: Plan,
    now: Timestamp,
) -> Result<Value> {
    let hub = hubs::lock(tx, scope, hub_uuid).await?;
    store::hubs::apply(tx, scope, hub_uuid, &plan.bundles, now).await?;
    let deadline_at = now.plus_secs(JOBS_SECS);
    let detail = "superseded by a bundle that the hub was claimed with";
    let created =
        jobs::install_all(tx, changes, &hub, &plan.releases, detail, deadline_at, now).await?;
    let created: HashMap<AppUuid, HubJobUuid> = created.into_iter().collect();
    let installed = |release: AppReleaseSummary| {
        let hub_job_uuid = *created.get(&release.app_uuid)?;
        let bundle_uuid = *plan.bringers.get(&release.app_uuid)?;
        let AppReleaseSummary {
            release_uuid,
            app_uuid,
            version,
            ..
        } = release;
        Some(Installed {
            bundle_uuid,
            app_uuid,
            release_uuid,
            version,
            hub_job_uuid,
        })
    };
    let installed: Vec<Installed> = plan.releases.into_iter().filter_map(installed).collect();
    store::hubs::add_apps(tx, hub_uuid, &installed).await?;
    let wanted = store::parts::pipelines(tx, &plan.bundles).await?;
    let bound = pipelines::bound::bind(tx, scope, hub_uuid, &wanted).await?;
    let pipelines: BTreeSet<Uuid> = bound
        .into_iter()
        .map(|(_, pipeline_uuid)| pipeline_uuid)
        .collect();
    let jobs: Vec<Value> = installed
        .iter()
        .map(|app| json!({"appUuid": app.app_uuid, "releaseUuid": app.release_uuid, "hubJobUuid": app.hub_job_uuid}))
        .collect();
    Ok(json!({"bundleUuids": plan.bundles, "jobs": jobs, "pipelineUuids": pipelines}))
}
