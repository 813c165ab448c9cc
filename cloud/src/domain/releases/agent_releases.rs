//! The platform's releases: the agent, its installers, whole systems. They belong to no tenant, and every tenant may see those that are READY.

use hub_protocol::ReleaseUuid;
use hub_protocol::hub::DesiredAgent;
use hub_protocol::release::{ReleaseKind, ReleaseOffer};
use serde_json::{Value, json};

use super::store::agent_releases::{self as store, AgentReleaseRow};
use super::urls::{self, FileName, SignedUrl};
use super::{Category, Signed, Status, agent_release_of_version, checked_numbers, newest_agent_release};
use super::{require_new, trusted_keys};
use crate::app::App;
use crate::authn::hub::Hub;
use crate::authn::user::User;
use crate::db::{Conn, Tx};
use crate::domain::audit::Audit;
use crate::domain::{hubs, policies};
use crate::error::{Error, Result};
use crate::http::check::Check;

/// What hubs follow that are told nothing else.
pub const DEFAULT_CHANNEL: &str = "stable";
/// The name that manifests of the agent have, and nothing else.
const AGENT_NAME: &str = "hub-agent";

/// The text, if it is what a channel or an architecture may be called.
pub fn checked_word(field: &str, text: String) -> Result<String> {
    let mut check = Check::new();
    check.word(field, &text);
    check.done().map(|()| text)
}

/// A release about to be taken in.
pub struct NewRelease {
    pub category: Category,
    pub channel: String,
    pub active: bool,
    pub signed: Signed,
}

/// Takes a release in, whose file is to follow; answers where to, unless it is here already.
pub async fn create(app: &App, admin: &User, new: NewRelease) -> Result<(AgentReleaseRow, Option<SignedUrl>)> {
    let NewRelease { category, channel, active, signed } = new;
    let channel = checked_word("channel", channel)?;
    let manifest = trusted_keys::verified(app, ReleaseKind::Agent, &signed.manifest, &signed.signature).await?;
    if (manifest.name == AGENT_NAME) != (category == Category::HubAgent) {
        let message = format!("must be {AGENT_NAME} where the category is HUB_AGENT, and nowhere else");
        return Err(Error::field("manifest.name", message));
    }
    let (size_bytes, counter) = checked_numbers(&manifest)?;
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    store::lock(&mut tx).await?;
    let alike = store::alike(&mut tx, &manifest, counter).await?;
    let highest = store::highest_counter(&mut tx, &manifest.name, &manifest.architecture).await?;
    if let Some(release_uuid) = require_new(&manifest, &signed, &alike, highest)? {
        let before = store::lock_one(&mut tx, release_uuid).await?.ok_or_else(unknown)?;
        return repeat(app, admin, tx, before, (category, channel, active)).await;
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
    };
    row.asset_id = store::insert(&mut tx, &row).await?;
    let audit = Audit::by_user(admin, "agent_release.create", row.release_uuid, now);
    tx.commit(audit.changed(None, Some(state(&row)))).await?;
    let upload = urls::upload_url(app, &file_name(&row));
    Ok((row, Some(upload)))
}

/// Answers a release that is sent again. While its file is awaited, what is said with it counts anew; what is READY is changed in another way.
async fn repeat(
    app: &App,
    admin: &User,
    mut tx: Tx,
    before: AgentReleaseRow,
    (category, channel, active): (Category, String, bool),
) -> Result<(AgentReleaseRow, Option<SignedUrl>)> {
    let is_other = (before.category, &before.channel, before.active) != (category, &channel, active);
    if before.status == Status::Ready {
        return match is_other {
            false => Ok((before, None)),
            true => {
                let message = format!(
                    "the release {} is here already, in another category or channel or not active as this says; PATCH it",
                    before.release_uuid
                );
                Err(Error::conflict("RELEASE_EXISTS", message))
            }
        };
    }
    let now = app.clock.now();
    let row = AgentReleaseRow { category, channel, active, created_at: now, ..before.clone() };
    store::renew(&mut tx, &row).await?;
    match is_other {
        false => tx.commit_unaudited("asks for another URL to upload to").await?,
        true => {
            let audit = Audit::by_user(admin, "agent_release.update", row.release_uuid, now);
            tx.commit(audit.changed(Some(state(&before)), Some(state(&row)))).await?;
        }
    }
    let upload = urls::upload_url(app, &file_name(&row));
    Ok((row, Some(upload)))
}

/// As the audit log shows it.
fn state(row: &AgentReleaseRow) -> Value {
    json!({
        "category": row.category, "channel": row.channel, "active": row.active, "name": row.name,
        "version": row.version, "architecture": row.architecture, "counter": row.counter, "sha256": row.sha256,
    })
}

pub fn file_name(row: &AgentReleaseRow) -> FileName {
    FileName::new(row.release_uuid, &row.name, &row.version, &row.architecture)
}

async fn get(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<AgentReleaseRow> {
    store::get(conn, release_uuid).await?.ok_or_else(unknown)
}

/// The same, for those to whom only what is READY exists.
pub async fn get_ready(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<AgentReleaseRow> {
    let row = get(conn, release_uuid).await?;
    if row.status == Status::Ready { Ok(row) } else { Err(unknown()) }
}

fn unknown() -> Error {
    Error::not_found("release")
}

/// Offers the release, or takes the offer back, or moves it to another channel; what is not given stays.
pub async fn update(
    app: &App,
    admin: &User,
    release_uuid: ReleaseUuid,
    active: Option<bool>,
    channel: Option<String>,
) -> Result<AgentReleaseRow> {
    let channel = channel.map(|channel| checked_word("channel", channel)).transpose()?;
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let before = store::lock_one(&mut tx, release_uuid).await?.ok_or_else(unknown)?;
    let mut after = before.clone();
    after.active = active.unwrap_or(after.active);
    after.channel = channel.unwrap_or(after.channel);
    if (after.active, &after.channel) == (before.active, &before.channel) {
        return Ok(after);
    }
    store::update(&mut tx, release_uuid, after.active, &after.channel).await?;
    let audit = Audit::by_user(admin, "agent_release.update", release_uuid, now);
    let offer = |row: &AgentReleaseRow| Some(json!({"active": row.active, "channel": row.channel}));
    tx.commit(audit.changed(offer(&before), offer(&after))).await?;
    Ok(after)
}

/// What a hub asks for.
#[derive(Debug, Default)]
pub struct Wanted {
    pub channel: Option<String>,
    pub architecture: Option<String>,
    /// Goes before the two others.
    pub release_uuid: Option<ReleaseUuid>,
}

/// The release a hub asked for by its uuid, or the newest there is for it.
pub async fn offer(app: &App, hub: &Hub, wanted: Wanted) -> Result<ReleaseOffer> {
    let mut conn = app.db.read().await?;
    let release_uuid = match wanted.release_uuid {
        Some(release_uuid) => release_uuid,
        None => newest_for(&mut conn, hub, wanted).await?,
    };
    let row = get_ready(&mut conn, release_uuid).await?;
    drop(conn);
    if row.category != Category::HubAgent {
        return Err(unknown());
    }
    let download = urls::download_url(app, release_uuid, &file_name(&row)).await?;
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

async fn newest_for(conn: &mut Conn, hub: &Hub, wanted: Wanted) -> Result<ReleaseUuid> {
    let asked = wanted.channel.map(|channel| checked_word("channel", channel)).transpose()?;
    let machine = match wanted.architecture {
        Some(architecture) => Some(checked_word("architecture", architecture)?),
        None => hubs::architecture(conn, hub.hub_uuid).await?,
    };
    let policy = match asked {
        Some(channel) => DesiredAgent { channel: Some(channel), ..DesiredAgent::default() },
        None => policies::desired_agent(conn, hub.hub_uuid).await?,
    };
    let release = match &policy.version {
        Some(version) => agent_release_of_version(conn, version, machine.as_deref()).await?.map(|(release, _)| release),
        None => {
            let channel = policy.channel.as_deref().unwrap_or(DEFAULT_CHANNEL);
            newest_agent_release(conn, channel, machine.as_deref()).await?
        }
    };
    Ok(release.ok_or_else(unknown)?.release_uuid)
}
