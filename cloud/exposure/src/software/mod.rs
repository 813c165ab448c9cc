//! The software of hubs: lists of packages, which hubs that are alike share, and which hub ran what
//! when. An equal report changes nothing; one that differs ends the row before it, so that the rows
//! of a hub are the evidence of what it ran.

mod check;
pub mod components;
pub mod http;
pub mod list;
mod store;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::tasks::{self, NewTask};
use hub_fleet::{jobs, releases};
use hub_identity::authn::hub::Hub;
use hub_identity::authz::Scope;
use hub_protocol::packages::{PackageList, SoftwareReport, SoftwareReportResult};
use hub_protocol::{HubUuid, ReleaseUuid, TenantUuid, Timestamp};
use serde_json::json;

use components::Contents;
use list::StoredList;
pub use store::{
    ListKey, Running, behind, forget_all, forget_before, forget_lists, forget_release, has_before,
    of_release,
};

/// The lane of the task that matches lists with advisories.
pub const LANE: &str = "exposure";
/// The kind of that task, which is there once.
pub const MATCH: &str = "exposure.match";

/// The kind of the tasks that give tenants the components of a release of the agent.
pub const ADOPT: &str = "exposure.adopt";

/// What follows when hubs of a tenant first have a release of the agent, and when a document of it
/// arrives.
pub fn adopting(release_uuid: ReleaseUuid, due_at: Timestamp) -> NewTask {
    NewTask {
        lane: LANE,
        kind: ADOPT,
        payload: json!({"releaseUuid": release_uuid}),
        due_at,
        dedup_key: Some(format!("{ADOPT}:{release_uuid}")),
    }
}

/// What follows a change of what hubs run.
pub fn matching(due_at: Timestamp) -> NewTask {
    NewTask {
        lane: LANE,
        kind: MATCH,
        payload: json!({}),
        due_at,
        dedup_key: Some(MATCH.to_owned()),
    }
}

/// Stores what a hub says that it runs.
async fn report(core: &Core, hub: &Hub, report: SoftwareReport) -> Result<SoftwareReportResult> {
    check::check(&report)?;
    let sha256 = hex::decode(&report.packages_sha256)
        .map_err(|_| Error::field("packagesSha256", "must be hexadecimal digits"))?;
    let given = match report.package_list.clone() {
        Some(list) => Some(packed(list, &sha256).await?),
        None => None,
    };
    let mut conn = core.db.read().await?;
    let current = store::current(&mut conn, hub.tenant_uuid, hub.hub_uuid).await?;
    let is_known = given.is_some() || store::has_list(&mut conn, hub.tenant_uuid, &sha256).await?;
    drop(conn);
    if !is_known {
        return Ok(answer(true));
    }
    let running = Running::reported(&report, sha256);
    if current
        .as_ref()
        .is_some_and(|current| current.equals(&running))
    {
        return Ok(answer(false));
    }
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    hub_fleet::hubs::touch(&mut tx, hub.tenant_uuid, hub.hub_uuid, now).await?;
    if let Some(given) = given {
        store::put_list(&mut tx, hub.tenant_uuid, &given, now).await?;
    }
    if !store::lock_list(&mut tx, hub.tenant_uuid, &running.list_sha256).await? {
        return Ok(answer(true));
    }
    let current = store::current(&mut tx, hub.tenant_uuid, hub.hub_uuid).await?;
    // The clock of the service may have been set back.
    let began_at = match &current {
        Some(current) => now.max(current.began_at.plus_micros(1)),
        None => now,
    };
    store::end(&mut tx, hub.tenant_uuid, hub.hub_uuid, began_at).await?;
    store::begin(&mut tx, hub.tenant_uuid, hub.hub_uuid, &running, began_at).await?;
    note_agent(core, &mut tx, hub, &running.agent, began_at).await?;
    tasks::enqueue(core, &mut tx, matching(now), now).await?;
    tx.commit_unaudited("a hub's report about itself").await?;
    Ok(answer(false))
}

const fn answer(package_list_wanted: bool) -> SoftwareReportResult {
    SoftwareReportResult {
        package_list_wanted,
    }
}

/// Notes which release of the agent the hub has, by its version and for its machine. The tenant
/// gets its components, unless it has them.
async fn note_agent(
    core: &Core,
    tx: &mut Tx,
    hub: &Hub,
    version: &str,
    now: Timestamp,
) -> Result<()> {
    let machine = hub_fleet::hubs::architecture(tx, hub.hub_uuid).await?;
    let release = releases::agent_release_of_version(tx, version, machine.as_deref()).await?;
    let release = release.map(|(release, _)| release);
    jobs::note_agent(tx, hub, release.as_ref(), now).await?;
    let Some(release) = release else {
        return Ok(());
    };
    // A document of it may arrive at this moment: that is looked at once this has committed.
    match of_release(tx, hub.tenant_uuid, release.release_uuid).await? {
        Some(_) => Ok(()),
        None => tasks::enqueue(core, tx, adopting(release.release_uuid, now), now).await,
    }
}

/// The list as it is stored. Fails if it has another hash than the report says.
async fn packed(list: PackageList, sha256: &[u8]) -> Result<StoredList> {
    let stored = tokio::task::spawn_blocking(move || StoredList::pack(&list))
        .await
        .map_err(Error::internal)??;
    match stored.sha256 == sha256 {
        true => Ok(stored),
        false => Err(Error::field(
            "packagesSha256",
            "must be the SHA-256 of the list in its canonical form",
        )),
    }
}

/// A list as it is stored. To unpack a long one takes time: that is for a thread that may wait.
pub struct Packed(Vec<u8>);

impl Packed {
    /// The packages of a list of a hub.
    pub fn packages(&self) -> Result<PackageList> {
        list::unpack(&self.0)
    }

    /// What the list is of.
    pub fn contents(&self) -> Result<Contents> {
        components::unpack(&self.0)
    }
}

/// A list, if it is there.
pub async fn stored(conn: &mut Conn, key: &ListKey) -> Result<Option<Packed>> {
    Ok(store::packed(conn, key).await?.map(Packed))
}

/// What a hub of the tenant runs now, and its packages; None before its first report.
async fn of_hub(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
) -> Result<Option<(Running, Packed)>> {
    hub_fleet::hubs::require(conn, scope, hub_uuid).await?;
    let Some(running) = store::current(conn, scope.tenant_uuid(), hub_uuid).await? else {
        return Ok(None);
    };
    let key = ListKey {
        tenant_uuid: scope.tenant_uuid(),
        list_sha256: running.list_sha256.clone(),
    };
    let packed = stored(conn, &key).await?;
    Ok(packed.map(|packed| (running, packed)))
}

/// Stores the list of what a release consists of.
pub async fn put_of_release(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    release_uuid: ReleaseUuid,
    list: &StoredList,
    now: Timestamp,
) -> Result<()> {
    store::put_list(tx, tenant_uuid, list, now).await?;
    // It may have been there, and be deleted at this moment because nothing had it.
    if !store::lock_list(tx, tenant_uuid, &list.sha256).await? {
        store::put_list(tx, tenant_uuid, list, now).await?;
    }
    store::put_release(tx, tenant_uuid, release_uuid, &list.sha256).await
}

/// Notes with which revision of the advisories a list was matched.
pub async fn set_matched(tx: &mut Tx, key: &ListKey, revision: i64) -> Result<bool> {
    store::set_matched(tx, key, revision).await
}

/// Ends what a hub runs, which leaves its tenant. What it ran stays.
pub async fn end(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    now: Timestamp,
) -> Result<()> {
    store::end(tx, tenant_uuid, hub_uuid, now).await
}
