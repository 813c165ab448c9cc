//! Uploads to a server of OWASP Dependency-Track that a tenant names. Each list of packages that
//! its hubs run is sent as a CycloneDX document, as a version of one project; each release that
//! they run, and the newest of each app, as a version of the project of its app. What was sent does
//! not change, so it is sent once, until the tenant sets a server again.

mod bom;
pub mod http;
mod release_store;
mod send;
mod store;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_base::sealing::stored::DEPENDENCY_TRACK_API_KEY;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::tasks::{self, NewTask};
use hub_identity::authz::Scope;
use hub_people::tenants;
use hub_protocol::{TenantUuid, Timestamp};
use serde_json::{Value, json};

pub use send::perform;
use store::{Counts, Target};

/// The lane of the tasks that send lists. A server that does not answer holds a runner.
pub const LANE: &str = "dependency_track";
/// The kind of those tasks, of which each tenant with a server has one.
pub const SEND: &str = "exposure.dependency_track";

/// A server as it is given; checked.
struct Given {
    url: String,
    project: String,
    api_key: String,
}

/// A server, and how far it has the lists and the releases.
struct Shown {
    target: Target,
    lists: Counts,
    releases: Counts,
}

impl Shown {
    async fn read(conn: &mut Conn, tenant_uuid: TenantUuid, target: Target) -> Result<Self> {
        Ok(Self {
            target,
            lists: store::counts(conn, tenant_uuid).await?,
            releases: release_store::counts(conn, tenant_uuid).await?,
        })
    }
}

/// What keeps a server from having what hubs run.
#[derive(Debug)]
pub enum Trouble {
    /// It cannot be reached, or takes nothing.
    Fails { since: Timestamp, error: String },
    /// It refuses documents for good, one of them with this error.
    Refuses { documents: i64, error: String },
}

impl Target {
    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({"url": self.url, "project": self.project})
    }
}

fn sending(tenant_uuid: TenantUuid, due_at: Timestamp) -> NewTask {
    NewTask {
        lane: LANE,
        kind: SEND,
        payload: json!({"tenantUuid": tenant_uuid}),
        due_at,
        dedup_key: Some(format!("{SEND}:{tenant_uuid}")),
    }
}

async fn shown(core: &Core, scope: &Scope) -> Result<Option<Shown>> {
    let mut conn = core.db.read().await?;
    let Some(target) = store::target(&mut conn, scope.tenant_uuid()).await? else {
        return Ok(None);
    };
    let shown = Shown::read(&mut conn, scope.tenant_uuid(), target).await?;
    Ok(Some(shown))
}

/// The project of the tenant's server, and what is wrong with it now; None without a server.
pub async fn troubles(conn: &mut Conn, scope: &Scope) -> Result<Option<(String, Vec<Trouble>)>> {
    let Some(target) = store::target(conn, scope.tenant_uuid()).await? else {
        return Ok(None);
    };
    let (documents, refusal) = store::refusals(conn, scope.tenant_uuid()).await?;
    let fails = target.failing_since.map(|since| Trouble::Fails {
        since,
        error: target.last_error.unwrap_or_default(),
    });
    let refuses = refusal.map(|error| Trouble::Refuses { documents, error });
    let troubles = fails.into_iter().chain(refuses).collect();
    Ok(Some((target.project, troubles)))
}

/// Sets the server in place of the one before it, and has all lists sent to it.
async fn set(core: &Core, scope: &Scope, given: Given) -> Result<Shown> {
    let tenant_uuid = scope.tenant_uuid();
    let now = core.clock.now();
    // The lock makes concurrent changes wait for each other.
    let (mut tx, _) = tenants::lock(core, scope)
        .await?
        .ok_or_else(|| Error::not_found("tenant"))?;
    let before = store::target(&mut tx, tenant_uuid).await?;
    let row = tenant_uuid.to_string();
    let key = given.api_key.as_bytes();
    let target = Target {
        url: given.url,
        project: given.project,
        sealed_api_key: core.sealer.seal(DEPENDENCY_TRACK_API_KEY, &row, key),
        failures: 0,
        failing_since: None,
        retry_at: None,
        last_sent_at: None,
        last_error: None,
        last_error_at: None,
        // Sending recognises by it that the server is another one.
        updated_at: match &before {
            Some(before) => now.max(before.updated_at.plus_micros(1)),
            None => now,
        },
    };
    store::set(&mut tx, tenant_uuid, &target).await?;
    store::forget_uploads(&mut tx, tenant_uuid).await?;
    release_store::forget_all(&mut tx, tenant_uuid).await?;
    let before = before.as_ref().map(Target::state);
    let shown = Shown::read(&mut tx, tenant_uuid, target).await?;
    tasks::enqueue(core, &mut tx, sending(tenant_uuid, now), now).await?;
    let audit = Audit::new(scope, "dependency_track.set", tenant_uuid, now);
    tx.commit(audit.changed(before, Some(shown.target.state())))
        .await?;
    Ok(shown)
}

/// Nothing is sent any more. The server keeps what it has.
async fn remove(core: &Core, scope: &Scope) -> Result<()> {
    let tenant_uuid = scope.tenant_uuid();
    let now = core.clock.now();
    let (mut tx, _) = tenants::lock(core, scope)
        .await?
        .ok_or_else(|| Error::not_found("tenant"))?;
    let Some(before) = store::target(&mut tx, tenant_uuid).await? else {
        return Ok(());
    };
    forget_all(&mut tx, tenant_uuid).await?;
    let audit = Audit::new(scope, "dependency_track.remove", tenant_uuid, now);
    tx.commit(audit.changed(Some(before.state()), None)).await
}

/// Deletes the server of a tenant that is being deleted, with its key.
pub async fn forget_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    release_store::forget_all(tx, tenant_uuid).await?;
    store::forget(tx, tenant_uuid).await
}
