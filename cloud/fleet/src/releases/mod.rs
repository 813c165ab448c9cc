//! What can be installed on hubs: a tenant's apps and their releases, and the platform's releases
//! of the agent and its installers. A release is a manifest, an offline signature of it, and a
//! file. A release without the signature of a trusted key is refused, and a release is offered to
//! nobody before its file is stored and matches the manifest. The service itself cannot sign.

mod agent_releases;
mod app_releases;
mod apps;
pub mod contents;
mod downloads;
pub mod files;
pub mod http;
mod installer;
mod store;
mod trusted_keys;
mod urls;

use std::collections::{HashMap, HashSet};

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_identity::authz::Scope;
use hub_protocol::release::{ReleaseManifest, architectures};
use hub_protocol::{AppUuid, ReleaseUuid, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use agent_releases::{DEFAULT_CHANNEL, checked_word, offer, unknown};
use contents::Arrived;
pub use http::protocol::tagged;
use store::shared::{self, Table};
pub use trusted_keys::{keys_in, usable_keys};

/// State of the release handlers.
#[derive(Clone)]
pub struct Releases {
    pub core: Core,
    pub files: files::Files,
}

/// Whether the file of a release is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "ReleaseStatus")]
pub enum Status {
    /// The file has not been uploaded; the release is not offered.
    AwaitingFile,
    /// Its file is stored.
    Ready,
}

text_enum!(Status { AwaitingFile = "AWAITING_FILE", Ready = "READY" });

/// The purpose of a platform release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "ReleaseCategory")]
pub enum Category {
    /// The program that hubs update themselves to.
    HubAgent,
    /// The script that turns a machine into a hub.
    Installer,
    /// An image of a whole system.
    HubOs,
}

text_enum!(Category { HubAgent = "HUB_AGENT", Installer = "INSTALLER", HubOs = "HUB_OS" });

/// The fields of an app release that a job needs.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct AppReleaseSummary {
    pub release_uuid: ReleaseUuid,
    pub app_uuid: AppUuid,
    pub version: String,
    /// The architecture as in `uname -m`, or `any`.
    pub architecture: String,
}

/// The fields of an agent release that a job needs.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct AgentReleaseSummary {
    pub release_uuid: ReleaseUuid,
    pub version: String,
    /// The architecture as in `uname -m`, or `any`.
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

/// The given apps that belong to the tenant.
pub async fn own_apps(
    conn: &mut Conn,
    scope: &Scope,
    apps: &[AppUuid],
) -> Result<HashSet<AppUuid>> {
    if apps.is_empty() {
        return Ok(HashSet::new());
    }
    store::apps::own(conn, scope, apps)
        .await
        .map(HashSet::from_iter)
}

/// The given releases of the tenant's apps that are READY.
pub async fn app_releases_for_jobs(
    conn: &mut Conn,
    scope: &Scope,
    releases: &[ReleaseUuid],
) -> Result<Vec<AppReleaseSummary>> {
    match releases.is_empty() {
        true => Ok(Vec::new()),
        false => store::app_releases::summaries(conn, scope, releases).await,
    }
}

/// The newest READY release of each of these apps of the tenant in a channel: of those built for
/// one of the architectures, or of all. A version without a suffix is in every channel; others are
/// in the one that begins their suffix, as 1.4.0-beta.2 is in `beta`. An app without such a release
/// is absent.
pub async fn newest_app_releases(
    conn: &mut Conn,
    scope: &Scope,
    apps: &[AppUuid],
    channel: &str,
    architectures: Option<&[&str]>,
) -> Result<Vec<AppReleaseSummary>> {
    match apps.is_empty() {
        true => Ok(Vec::new()),
        false => store::app_releases::newest(conn, scope, apps, channel, architectures).await,
    }
}

/// The releases of the tenant's apps that hubs run and whose support ends between two days: the
/// release, the name of its app, its version and the day.
pub async fn support_ending(
    conn: &mut Conn,
    scope: &Scope,
    from: &str,
    to: &str,
    limit: i64,
) -> Result<Vec<(ReleaseUuid, String, String, String)>> {
    store::app_releases::support_ending(conn, scope, from, to, limit).await
}

/// The releases of the platform that the tenant's hubs run and whose support ends between two days:
/// the release, its name, its version and the day.
pub async fn agent_support_ending(
    conn: &mut Conn,
    scope: &Scope,
    from: &str,
    to: &str,
    limit: i64,
) -> Result<Vec<(ReleaseUuid, String, String, String)>> {
    store::agent_releases::support_ending(conn, scope, from, to, limit).await
}

/// A release of an app as people know it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct NamedRelease {
    pub release_uuid: ReleaseUuid,
    pub app_uuid: AppUuid,
    pub app_name: String,
    pub version: String,
}

/// The names of these releases, as far as they are the tenant's.
pub async fn named(
    conn: &mut Conn,
    scope: &Scope,
    releases: &[ReleaseUuid],
) -> Result<HashMap<ReleaseUuid, NamedRelease>> {
    let mut named = HashMap::new();
    for some in releases.chunks(NAMED_AT_ONCE) {
        let rows = store::app_releases::named(conn, scope, some).await?;
        named.extend(rows.into_iter().map(|one| (one.release_uuid, one)));
    }
    Ok(named)
}

/// Whether the tenant has the app.
pub async fn app_exists(conn: &mut Conn, scope: &Scope, app_uuid: AppUuid) -> Result<bool> {
    Ok(store::apps::get(conn, scope, app_uuid).await?.is_some())
}

/// A READY release of the agent, active or not: an explicitly chosen release need not be active.
pub async fn agent_release_for_job(
    conn: &mut Conn,
    release_uuid: ReleaseUuid,
) -> Result<Option<AgentReleaseSummary>> {
    store::agent_releases::summary(conn, release_uuid).await
}

/// The READY agent release with exactly this version that a machine can run, active or not, and
/// whether it may replace a higher version. Releases that may are preferred, then those that fit
/// the machine best.
pub async fn agent_release_of_version(
    conn: &mut Conn,
    version: &str,
    machine: Option<&str>,
) -> Result<Option<(AgentReleaseSummary, bool)>> {
    let architectures = architectures(machine);
    let releases = store::agent_releases::of_version(conn, version, &architectures).await?;
    // Of equal elements `min_by_key` returns the first, which has the highest counter.
    Ok(releases.into_iter().min_by_key(|(release, downgrade)| {
        (!downgrade, architecture_rank(release, &architectures))
    }))
}

/// Releases of a channel that are considered for a machine: those with the highest counters.
const MAX_CANDIDATES: i64 = 1000;
/// Releases whose names one statement reads.
const NAMED_AT_ONCE: usize = 500;

/// The active READY agent release with the highest version (semver.org) that a machine can run. Of
/// versions with the same precedence it is the one that fits best, then the one with the highest
/// counter.
pub async fn newest_agent_release(
    conn: &mut Conn,
    channel: &str,
    machine: Option<&str>,
) -> Result<Option<AgentReleaseSummary>> {
    let architectures = architectures(machine);
    let candidates =
        store::agent_releases::candidates(conn, channel, &architectures, MAX_CANDIDATES).await?;
    // Of equal elements `max_by` returns the last. Candidates start with the highest counter, so
    // the order is reversed.
    Ok(candidates.into_iter().rev().max_by(|a, b| {
        let by_version = precedence(&a.version).cmp_precedence(&precedence(&b.version));
        by_version
            .then(architecture_rank(b, &architectures).cmp(&architecture_rank(a, &architectures)))
    }))
}

/// The position of the release's architecture in the machine's preferences: lower is better.
fn architecture_rank(release: &AgentReleaseSummary, architectures: &[&str]) -> Option<usize> {
    architectures
        .iter()
        .position(|architecture| *architecture == release.architecture)
}

/// The version was validated with its manifest. One that cannot be parsed sorts below all others.
fn precedence(version: &str) -> semver::Version {
    semver::Version::parse(version).unwrap_or(semver::Version::new(0, 0, 0))
}

/// The signed text, byte for byte, and its signature.
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

/// Maximum size of a file: 2 GiB.
const MAX_FILE_BYTES: u64 = 2 << 30;

/// The size and the counter in the types of the database. The manifest's limits bound both.
fn checked_numbers(manifest: &ReleaseManifest) -> Result<(i64, i64)> {
    if manifest.size_bytes > MAX_FILE_BYTES {
        return Err(Error::field("manifest.sizeBytes", "must be at most 2 GiB"));
    }
    let number = |field: &str, value: u64| {
        i64::try_from(value).map_err(|_| Error::field(field, "is too large"))
    };
    Ok((
        number("manifest.sizeBytes", manifest.size_bytes)?,
        number("manifest.counter", manifest.counter)?,
    ))
}

/// Refuses a release that could be confused with another of its name, or that hubs would take for
/// an older one. The same manifest, while its file is awaited, is the same release: its uuid is
/// returned. So is a READY release if the signature is the same too, because a response may have
/// been lost.
fn require_new(
    manifest: &ReleaseManifest,
    signed: &Signed,
    similar: &[Existing],
    highest: i64,
) -> Result<Option<ReleaseUuid>> {
    let counter = i64::try_from(manifest.counter).unwrap_or(i64::MAX);
    let is_same = |other: &&Existing| {
        other.manifest == signed.manifest
            && (other.status == Status::AwaitingFile || other.signature == signed.signature)
    };
    if let Some(same) = similar.iter().find(is_same) {
        return Ok(Some(same.release_uuid));
    }
    if let Some(other) = similar.first() {
        let ReleaseManifest {
            version,
            architecture,
            ..
        } = manifest;
        let what = match other.counter == counter {
            true => format!("the counter {counter}"),
            false => format!("the version {version} for {architecture}"),
        };
        let message = format!(
            "the release {} already has {what}; sign a new one",
            other.release_uuid
        );
        return Err(Error::conflict("RELEASE_EXISTS", message));
    }
    if counter <= highest && !manifest.downgrade {
        let message = format!(
            "the counter {counter} must be above {highest}, the highest so far; increase it, or sign with `downgrade` if hubs should go back to it"
        );
        return Err(Error::conflict("COUNTER_TOO_LOW", message));
    }
    Ok(None)
}

/// A release without a file is deleted after this long: later than any permitted upload can end.
const AWAITING_SECS: i64 = 26 * 3600;
/// A partial upload is written to until it is finished. One without a write for this long is
/// abandoned.
const SWEEP_AFTER: std::time::Duration = std::time::Duration::from_secs(3600);

/// Deletes releases whose file was never uploaded, up to `limit` of each kind, and the remains of
/// interrupted uploads. Returns the number of releases.
pub async fn forget_abandoned(releases: &Releases, limit: i64) -> Result<u64> {
    let before = releases.core.clock.now().plus_secs(-AWAITING_SECS);
    releases.files.sweep(SWEEP_AFTER).await?;
    let mut conn = releases.core.db.read().await?;
    let of_apps = shared::abandoned(&mut conn, Table::AppReleases, before, limit).await?;
    let of_agent = shared::abandoned(&mut conn, Table::AgentReleases, before, limit).await?;
    drop(conn);
    for release_uuid in of_apps.iter().chain(&of_agent) {
        let mut tx = releases.core.db.begin().await?;
        let is_forgotten = shared::forget(&mut tx, Table::AppReleases, *release_uuid, before)
            .await?
            || shared::forget(&mut tx, Table::AgentReleases, *release_uuid, before).await?;
        if is_forgotten {
            // The row is deleted after the file: after an interruption the next run finds it again.
            releases.files.delete(*release_uuid).await?;
            tx.commit_unaudited("deletes what was abandoned, not what a user changed")
                .await?;
        }
    }
    Ok((of_apps.len() + of_agent.len()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_semver_precedence() {
        let is_below = |a: &str, b: &str| precedence(a).cmp_precedence(&precedence(b)).is_lt();
        assert!(
            is_below("1.9.0", "1.10.0")
                && is_below("1.0.0-rc.2", "1.0.0-rc.10")
                && is_below("1.0.0-rc.1", "1.0.0")
        );
        assert!(
            !is_below("1.0.0+a", "1.0.0+b") && !is_below("1.0.0+b", "1.0.0+a"),
            "build metadata has no precedence"
        );
    }
}
