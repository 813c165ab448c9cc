//! What may be installed on hubs: a tenant's apps and their releases, and the platform's releases of the agent and what belongs to it. A release is a
//! manifest, a signature of it that was made offline, and a file. Nothing is taken in that no trusted key signed, and nothing is offered to anybody before
//! its file is in the store and is what the manifest says. The service itself can sign nothing.

mod store;

use hub_protocol::{AppUuid, ReleaseUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authz::Scope;
use crate::db::Conn;
use crate::error::Result;

/// Where a release stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Its file is still to be uploaded; it is offered to nobody.
    AwaitingFile,
    Ready,
}

impl Status {
    const fn name(self) -> &'static str {
        match self {
            Self::AwaitingFile => "AWAITING_FILE",
            Self::Ready => "READY",
        }
    }
}

/// As the database holds it.
impl TryFrom<String> for Status {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let all = [Self::AwaitingFile, Self::Ready];
        all.into_iter().find(|status| status.name() == name).ok_or_else(|| format!("unknown status {name}"))
    }
}

/// What a release of the platform is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Category {
    /// The program that hubs update themselves to.
    HubAgent,
    /// What a person runs to make a machine a hub.
    Installer,
    /// An image of a whole system.
    HubOs,
}

impl Category {
    const fn name(self) -> &'static str {
        match self {
            Self::HubAgent => "HUB_AGENT",
            Self::Installer => "INSTALLER",
            Self::HubOs => "HUB_OS",
        }
    }
}

/// As the database holds it.
impl TryFrom<String> for Category {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let all = [Self::HubAgent, Self::Installer, Self::HubOs];
        all.into_iter().find(|category| category.name() == name).ok_or_else(|| format!("unknown category {name}"))
    }
}

/// As much of an app's release as a job needs.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct AppReleaseSummary {
    pub release_uuid: ReleaseUuid,
    pub app_uuid: AppUuid,
    pub version: String,
    /// As `uname -m` names it, or `any`.
    pub architecture: String,
}

/// As much of an agent's release as a job needs.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct AgentReleaseSummary {
    pub release_uuid: ReleaseUuid,
    pub version: String,
    /// As `uname -m` names it, or `any`.
    pub architecture: String,
    pub channel: String,
}

/// A READY release of one of the tenant's apps.
pub async fn app_release_for_job(
    conn: &mut Conn,
    scope: &Scope,
    release_uuid: ReleaseUuid,
) -> Result<Option<AppReleaseSummary>> {
    store::app_releases::summary(conn, scope, release_uuid).await
}

/// Whether the tenant has the app.
pub async fn app_exists(conn: &mut Conn, scope: &Scope, app_uuid: AppUuid) -> Result<bool> {
    Ok(store::apps::get(conn, scope, app_uuid).await?.is_some())
}

/// A READY release of the agent, whether it is active or not: what was chosen by name may be chosen.
pub async fn agent_release_for_job(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<Option<AgentReleaseSummary>> {
    store::agent_releases::summary(conn, release_uuid).await
}

/// Releases of a channel and architecture that are looked at for the newest: those of the highest counters.
const MAX_CANDIDATES: i64 = 1000;

/// The active READY release of the agent with the highest version by semver.org, of those that an architecture can run. The counter decides between
/// versions of the same precedence.
pub async fn newest_agent_release(
    conn: &mut Conn,
    channel: &str,
    architecture: &str,
) -> Result<Option<AgentReleaseSummary>> {
    let candidates = store::agent_releases::candidates(conn, channel, architecture, MAX_CANDIDATES).await?;
    // Of equals the last is the maximum: the highest counter comes first, so it is looked at last.
    Ok(candidates.into_iter().rev().max_by(|a, b| precedence(&a.version).cmp_precedence(&precedence(&b.version))))
}

/// A version that was checked when its manifest was: one that cannot be read is below all others.
fn precedence(version: &str) -> semver::Version {
    semver::Version::parse(version).unwrap_or(semver::Version::new(0, 0, 0))
}
