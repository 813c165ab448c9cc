//! What may be installed on hubs: a tenant's apps and their releases, and the platform's releases of the agent and what belongs to it. A release is a
//! manifest, a signature of it that was made offline, and a file. Nothing is taken in that no trusted key signed, and nothing is offered to anybody before
//! its file is in the store and is what the manifest says. The service itself can sign nothing.

mod agent_releases;
mod app_releases;
mod apps;
mod downloads;
pub mod files;
pub mod http;
mod installer;
mod store;
mod trusted_keys;
mod urls;

use hub_protocol::release::{ReleaseManifest, architectures};
use hub_protocol::{AppUuid, ReleaseUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::authz::Scope;
use crate::db::Conn;
use crate::error::{Error, Result};

pub use agent_releases::DEFAULT_CHANNEL;
pub use trusted_keys::{keys_in, usable_keys};

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

/// The READY release of the agent of this very version that a machine can run, active or not, and whether hubs may go back to it: one they may rather than one
/// they may not, then the one that fits best.
pub async fn agent_release_of_version(
    conn: &mut Conn,
    version: &str,
    machine: Option<&str>,
) -> Result<Option<(AgentReleaseSummary, bool)>> {
    let architectures = architectures(machine);
    let releases = store::agent_releases::of_version(conn, version, &architectures).await?;
    // Of equals the first is the minimum: the one of the highest counter.
    Ok(releases.into_iter().min_by_key(|(release, downgrade)| (!downgrade, place(release, &architectures))))
}

/// Releases of a channel that a machine can run that are looked at for the newest: those of the highest counters.
const MAX_CANDIDATES: i64 = 1000;

/// The active READY release of the agent with the highest version by semver.org, of those that a machine can run. Of versions of the same precedence it is the one
/// that fits best, then the one of the highest counter.
pub async fn newest_agent_release(
    conn: &mut Conn,
    channel: &str,
    machine: Option<&str>,
) -> Result<Option<AgentReleaseSummary>> {
    let architectures = architectures(machine);
    let candidates = store::agent_releases::candidates(conn, channel, &architectures, MAX_CANDIDATES).await?;
    // Of equals the last is the maximum: the highest counter comes first, so it is looked at last.
    Ok(candidates.into_iter().rev().max_by(|a, b| {
        let by_version = precedence(&a.version).cmp_precedence(&precedence(&b.version));
        by_version.then(place(b, &architectures).cmp(&place(a, &architectures)))
    }))
}

/// How well the release fits, of all that do: the lower the better.
fn place(release: &AgentReleaseSummary, architectures: &[&str]) -> Option<usize> {
    architectures.iter().position(|architecture| *architecture == release.architecture)
}

/// A version that was checked when its manifest was: one that cannot be read is below all others.
fn precedence(version: &str) -> semver::Version {
    semver::Version::parse(version).unwrap_or(semver::Version::new(0, 0, 0))
}

/// What was signed, byte for byte, and the signature.
struct Signed {
    manifest: String,
    signature: String,
}

/// A release that a new one could be confused with.
#[derive(sqlx::FromRow)]
struct Existing {
    release_uuid: ReleaseUuid,
    counter: i64,
    #[sqlx(try_from = "String")]
    status: Status,
    manifest: String,
    signature: String,
}

/// A file may be so large: 2 GiB.
const MAX_FILE_BYTES: u64 = 2 << 30;

/// The size and the counter as the database holds them; both are bounded by what a manifest may say.
fn checked_numbers(manifest: &ReleaseManifest) -> Result<(i64, i64)> {
    if manifest.size_bytes > MAX_FILE_BYTES {
        return Err(Error::field("manifest.sizeBytes", "may be 2 GiB at most"));
    }
    let number = |field: &str, value: u64| i64::try_from(value).map_err(|_| Error::field(field, "is too large"));
    Ok((number("manifest.sizeBytes", manifest.size_bytes)?, number("manifest.counter", manifest.counter)?))
}

/// Refuses a release that could be confused with another of its name, or that hubs would take for an older one. The same manifest once more, while its
/// file is awaited, is the same release: that one is answered. So is one that is READY, when the signature is the same too: an answer was lost.
fn require_new(
    manifest: &ReleaseManifest,
    signed: &Signed,
    alike: &[Existing],
    highest: i64,
) -> Result<Option<ReleaseUuid>> {
    let counter = i64::try_from(manifest.counter).unwrap_or(i64::MAX);
    let is_same = |other: &&Existing| {
        other.manifest == signed.manifest
            && (other.status == Status::AwaitingFile || other.signature == signed.signature)
    };
    if let Some(same) = alike.iter().find(is_same) {
        return Ok(Some(same.release_uuid));
    }
    if let Some(other) = alike.first() {
        let ReleaseManifest { version, architecture, .. } = manifest;
        let what = match other.counter == counter {
            true => format!("the counter {counter}"),
            false => format!("the version {version} for {architecture}"),
        };
        let message = format!("the release {} has {what} already; sign a new one", other.release_uuid);
        return Err(Error::conflict("RELEASE_EXISTS", message));
    }
    if counter <= highest && !manifest.downgrade {
        let message = format!(
            "the counter {counter} is not above {highest}, the highest so far; count on, or sign with `downgrade` if hubs are to go back"
        );
        return Err(Error::conflict("COUNTER_TOO_LOW", message));
    }
    Ok(None)
}

/// What nobody brought a file for is forgotten after this long: later than the last upload can end that was allowed to begin.
const AWAITING_SECS: i64 = 26 * 3600;
/// Files in the making are written to until they are finished: after this long without it, nobody does.
const SWEEP_AFTER: std::time::Duration = std::time::Duration::from_secs(3600);

/// Forgets releases whose file never came, up to `limit` of each kind, and what is left of cut uploads; answers how many releases those were.
pub async fn forget_abandoned(app: &App, limit: i64) -> Result<u64> {
    let before = app.clock.now().plus_secs(-AWAITING_SECS);
    app.files.sweep(SWEEP_AFTER).await?;
    let mut conn = app.db.read().await?;
    let of_apps = store::app_releases::abandoned(&mut conn, before, limit).await?;
    let of_agent = store::agent_releases::abandoned(&mut conn, before, limit).await?;
    drop(conn);
    for (release_uuid,) in of_apps.iter().chain(&of_agent) {
        let mut tx = app.db.begin().await?;
        let is_forgotten = store::app_releases::forget(&mut tx, *release_uuid, before).await?
            || store::agent_releases::forget(&mut tx, *release_uuid, before).await?;
        if is_forgotten {
            // The row is gone once the file is: cut off in between, the next round finds it again.
            app.files.delete(*release_uuid).await?;
            tx.commit_unaudited("nothing a person did").await?;
        }
    }
    Ok((of_apps.len() + of_agent.len()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_versions() {
        let is_below = |a: &str, b: &str| precedence(a).cmp_precedence(&precedence(b)).is_lt();
        assert!(
            is_below("1.9.0", "1.10.0") && is_below("1.0.0-rc.2", "1.0.0-rc.10") && is_below("1.0.0-rc.1", "1.0.0")
        );
        assert!(!is_below("1.0.0+a", "1.0.0+b") && !is_below("1.0.0+b", "1.0.0+a"), "where it was built is no order");
    }
}
