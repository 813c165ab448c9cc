//! The platform's releases: the agent, its installers, system images. They belong to no tenant, and
//! every tenant sees those that are READY.

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_core::http::check::{Check, changed_text};
use hub_identity::authn::user::User;
use hub_protocol::ReleaseUuid;
use hub_protocol::release::{ReleaseKind, ReleaseOffer};
use serde_json::{Value, json};

use super::store::agent_releases::{self as store, AgentReleaseRow};
use super::store::shared::{self, Series};
use super::urls::{self, FileName, SignedUrl};
use super::{
    Arrived, Category, Releases, Signed, Status, checked_numbers, require_new, trusted_keys,
};

/// The channel of hubs that have no other one.
pub const DEFAULT_CHANNEL: &str = "stable";
/// The name reserved for manifests of the agent.
const AGENT_NAME: &str = "hub-agent";

/// The text, if it is a valid name of a channel or an architecture.
pub fn checked_word(field: &str, text: String) -> Result<String> {
    let mut check = Check::new();
    check.word(field, &text);
    check.done().map(|()| text)
}

/// The parameters of a new release.
pub struct NewRelease {
    pub category: Category,
    pub channel: String,
    pub active: bool,
    /// The last day of support; empty text, and None where nothing is said of it.
    pub supported_until: Option<String>,
    pub signed: Signed,
}

/// Creates a release whose file is uploaded next. Returns the upload URL, unless the file is
/// present.
pub async fn create(
    releases: &Releases,
    admin: &User,
    new: NewRelease,
) -> Result<(AgentReleaseRow, Option<SignedUrl>)> {
    let NewRelease {
        category,
        channel,
        active,
        supported_until,
        signed,
    } = new;
    let channel = checked_word("channel", channel)?;
    let manifest = trusted_keys::verified(
        releases,
        ReleaseKind::Agent,
        &signed.manifest,
        &signed.signature,
    )
    .await?;
    if (manifest.name == AGENT_NAME) != (category == Category::HubAgent) {
        let message = format!("must be {AGENT_NAME} for the category HUB_AGENT, and only for it");
        return Err(Error::field("manifest.name", message));
    }
    let (size_bytes, counter) = checked_numbers(&manifest)?;
    let now = releases.core.clock.now();
    let mut tx = releases.core.db.begin().await?;
    store::lock(&mut tx).await?;
    let series = Series::Agent(&manifest.name);
    let similar = shared::similar(&mut tx, series, &manifest, counter).await?;
    let highest = shared::highest_counter(&mut tx, series, &manifest.architecture).await?;
    if let Some(release_uuid) = require_new(&manifest, &signed, &similar, highest)? {
        let before = store::lock_one(&mut tx, release_uuid)
            .await?
            .ok_or_else(unknown)?;
        let row = AgentReleaseRow {
            category,
            channel,
            active,
            supported_until: changed_text(&before.supported_until, supported_until),
            created_at: now,
            ..before.clone()
        };
        return repeat(releases, admin, tx, before, row).await;
    }
    let mut row = AgentReleaseRow {
        asset_id: 0,
        release_uuid: ReleaseUuid::new(),
        category,
        channel,
        name: manifest.name,
        version: manifest.version,
        architecture: manifest.architecture,
        counter,
        size_bytes,
        sha256: manifest.sha256,
        downgrade: manifest.downgrade,
        manifest: signed.manifest,
        signature: signed.signature,
        status: Status::AwaitingFile,
        active,
        created_at: now,
        ready_at: None,
        supported_until: changed_text(&None, supported_until),
        arrived: Arrived::default(),
    };
    row.asset_id = store::insert(&mut tx, &row).await?;
    let audit = Audit::new(admin, "agent_release.create", row.release_uuid, now);
    tx.commit(audit.changed(None, Some(state(&row)))).await?;
    let upload = urls::upload_url(releases, &file_name(&row));
    Ok((row, Some(upload)))
}

/// Handles a release that is posted again: `row` is what it would become. While its file is
/// awaited, the new request applies. A READY release has to be changed with PATCH.
async fn repeat(
    releases: &Releases,
    admin: &User,
    mut tx: Tx,
    before: AgentReleaseRow,
    row: AgentReleaseRow,
) -> Result<(AgentReleaseRow, Option<SignedUrl>)> {
    let is_other = state(&before) != state(&row);
    if before.status == Status::Ready {
        return match is_other {
            false => Ok((before, None)),
            true => {
                let message = format!(
                    "the release {} exists with another category, channel, `active` or \
                     `supportedUntil`; change it with PATCH",
                    before.release_uuid
                );
                Err(Error::conflict("RELEASE_EXISTS", message))
            }
        };
    }
    let now = row.created_at;
    store::renew(&mut tx, &row).await?;
    match is_other {
        false => {
            tx.commit_unaudited("only issues another upload URL")
                .await?
        }
        true => {
            let audit = Audit::new(admin, "agent_release.update", row.release_uuid, now);
            tx.commit(audit.changed(Some(state(&before)), Some(state(&row))))
                .await?;
        }
    }
    let upload = urls::upload_url(releases, &file_name(&row));
    Ok((row, Some(upload)))
}

/// The representation in the audit log.
fn state(row: &AgentReleaseRow) -> Value {
    json!({
        "category": row.category, "channel": row.channel, "active": row.active, "name": row.name,
        "version": row.version, "architecture": row.architecture, "counter": row.counter, "sha256": row.sha256,
        "supportedUntil": row.supported_until,
    })
}

pub fn file_name(row: &AgentReleaseRow) -> FileName {
    FileName::new(row.release_uuid, &row.name, &row.version, &row.architecture)
}

async fn get(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<AgentReleaseRow> {
    store::get(conn, release_uuid).await?.ok_or_else(unknown)
}

/// Like `get`, for callers who see only READY releases.
pub async fn get_ready(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<AgentReleaseRow> {
    let row = get(conn, release_uuid).await?;
    if row.status == Status::Ready {
        Ok(row)
    } else {
        Err(unknown())
    }
}

pub fn unknown() -> Error {
    Error::not_found("release")
}

/// Activates or deactivates a release, moves it to another channel, or sets the last day of its
/// support, which empty text removes. Absent fields keep their value.
pub async fn update(
    releases: &Releases,
    admin: &User,
    release_uuid: ReleaseUuid,
    active: Option<bool>,
    channel: Option<String>,
    supported_until: Option<String>,
) -> Result<AgentReleaseRow> {
    let channel = channel
        .map(|channel| checked_word("channel", channel))
        .transpose()?;
    let now = releases.core.clock.now();
    let mut tx = releases.core.db.begin().await?;
    let before = store::lock_one(&mut tx, release_uuid)
        .await?
        .ok_or_else(unknown)?;
    let mut after = before.clone();
    after.active = active.unwrap_or(after.active);
    after.channel = channel.unwrap_or(after.channel);
    after.supported_until = changed_text(&before.supported_until, supported_until);
    let changeable = |row: &AgentReleaseRow| {
        json!({"active": row.active, "channel": row.channel,
            "supportedUntil": row.supported_until})
    };
    let states = (changeable(&before), changeable(&after));
    if states.0 == states.1 {
        return Ok(after);
    }
    let day = after.supported_until.as_deref();
    store::update(&mut tx, release_uuid, after.active, &after.channel, day).await?;
    let audit = Audit::new(admin, "agent_release.update", release_uuid, now);
    tx.commit(audit.changed(Some(states.0), Some(states.1)))
        .await?;
    Ok(after)
}

/// The agent release as it is offered to hubs.
pub async fn offer(releases: &Releases, release_uuid: ReleaseUuid) -> Result<ReleaseOffer> {
    let mut conn = releases.core.db.read().await?;
    let row = get_ready(&mut conn, release_uuid).await?;
    drop(conn);
    if row.category != Category::HubAgent {
        return Err(unknown());
    }
    let download = urls::download_url(releases, release_uuid, &file_name(&row)).await?;
    Ok(ReleaseOffer {
        release_uuid,
        app_uuid: None,
        version: row.version,
        manifest: row.manifest,
        signature: row.signature,
        download_url: download.url,
        download_url_expires_at: download.expires_at,
    })
}
