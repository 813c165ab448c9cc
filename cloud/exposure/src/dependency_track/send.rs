//! Sending lists and releases, one after the other, for as long as the server takes them.

use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_base::sealing::stored::DEPENDENCY_TRACK_API_KEY;
use hub_core::Core;
use hub_core::tasks::Done;
use hub_identity::authz::Scope;
use hub_outgoing::{Outgoing, OutgoingRequest};
use hub_protocol::{TenantUuid, Timestamp};
use serde_json::{Value, json};

use super::release_store::WaitingRelease;
use super::store::{self, Target};
use super::{bom, release_store};
use crate::release_documents::{self, Bom, StoredBom};
use crate::software::{self, ListKey, Packed};

/// What hubs newly run is noticed after this time.
const EVERY_SECS: i64 = 60;
/// The time after which a run goes on as another one.
const RUN_TIME: Duration = Duration::from_secs(30);
/// The limit of one upload.
const WITHIN: Duration = Duration::from_secs(30);
const MAX_RESPONSE_BYTES: usize = 16 * 1024;
/// A server that fails is tried again after this time, then after twice as long, and so on.
const FIRST_DELAY_SECS: i64 = 60;
const LONGEST_DELAY_SECS: i64 = 6 * 3600;
const PATH: &str = "/api/v1/bom";
const ACTOR: &str = "dependency-track";
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Releases that a server gets of a tenant.
const MAX_RELEASES: i64 = 2000;

/// What is to be sent.
enum Item {
    List(Vec<u8>),
    Release(WaitingRelease),
}

/// The same as it is stored.
enum Stored {
    List { sha256: Vec<u8>, packed: Packed },
    Release(StoredBom),
}

/// What came of an upload.
enum Outcome {
    Sent,
    /// The server refuses this document; others it may take.
    Refused(String),
    /// The server cannot be reached, or takes nothing.
    Failed(String),
}

/// The schemes of URLs that a tenant may give.
pub fn schemes(outgoing: &Outgoing) -> &'static [&'static str] {
    match outgoing.allows_private() {
        true => &["https", "http"],
        false => &["https"],
    }
}

/// Performs the task of a tenant that has a server.
pub async fn perform(core: &Core, payload: &Value) -> Result<Done> {
    let tenant_uuid = payload
        .get("tenantUuid")
        .and_then(Value::as_str)
        .and_then(|uuid| uuid.parse().ok());
    let tenant_uuid: TenantUuid =
        tenant_uuid.ok_or_else(|| Error::internal("the task names no tenant"))?;
    let ends_at = Instant::now() + RUN_TIME;
    let later = |core: &Core| Done::RunAt(core.clock.now().plus_secs(EVERY_SECS));
    // What came of uploads is noted once there is room for it.
    if core.storage.is_full() {
        return Ok(later(core));
    }
    forget_gone(core, tenant_uuid).await?;
    loop {
        let mut conn = core.db.read().await?;
        let Some(target) = store::target(&mut conn, tenant_uuid).await? else {
            return Ok(Done::Finished);
        };
        let now = core.clock.now();
        if let Some(retry_at) = target.retry_at
            && retry_at > now
        {
            return Ok(Done::RunAt(retry_at));
        }
        let Some(item) = waiting(&mut conn, tenant_uuid).await? else {
            return Ok(later(core));
        };
        if Instant::now() >= ends_at || core.shutdown.is_cancelled() {
            return Ok(Done::RunAt(now));
        }
        let stored = stored(&mut conn, tenant_uuid, &item).await?;
        drop(conn);
        let Some(stored) = stored else {
            return Ok(later(core));
        };
        let outcome = upload(core, tenant_uuid, &target, stored).await?;
        settle(core, tenant_uuid, &item, &target, outcome).await?;
    }
}

/// What was not sent: lists first.
async fn waiting(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<Item>> {
    if let Some(list_sha256) = store::waiting(conn, tenant_uuid).await? {
        return Ok(Some(Item::List(list_sha256)));
    }
    let release = release_store::waiting(conn, tenant_uuid, MAX_RELEASES).await?;
    Ok(release.map(Item::Release))
}

async fn stored(conn: &mut Conn, tenant_uuid: TenantUuid, item: &Item) -> Result<Option<Stored>> {
    Ok(match item {
        Item::List(sha256) => {
            let key = ListKey {
                tenant_uuid,
                list_sha256: sha256.clone(),
            };
            let packed = software::stored(conn, &key).await?;
            packed.map(|packed| Stored::List {
                sha256: key.list_sha256,
                packed,
            })
        }
        Item::Release(of) => {
            let scope = Scope::system(ACTOR, tenant_uuid);
            let bom = release_documents::bom_of(conn, &scope, of.app_uuid, of.release_uuid);
            bom.await?.map(Stored::Release)
        }
    })
}

async fn forget_gone(core: &Core, tenant_uuid: TenantUuid) -> Result<()> {
    let mut conn = core.db.read().await?;
    let has_gone = store::has_gone(&mut conn, tenant_uuid).await?
        || release_store::has_gone(&mut conn, tenant_uuid).await?;
    drop(conn);
    if !has_gone {
        return Ok(());
    }
    let mut tx = core.db.begin().await?;
    store::forget_gone(&mut tx, tenant_uuid).await?;
    release_store::forget_gone(&mut tx, tenant_uuid).await?;
    tx.commit_unaudited("what follows from what is stored")
        .await
}

async fn upload(
    core: &Core,
    tenant_uuid: TenantUuid,
    target: &Target,
    stored: Stored,
) -> Result<Outcome> {
    let row = tenant_uuid.to_string();
    let api_key = core
        .sealer
        .open(DEPENDENCY_TRACK_API_KEY, &row, &target.sealed_api_key)
        .map_err(Error::internal)?;
    // The settings may allow less than when the URL was stored.
    let text = format!("{}{PATH}", target.url.trim_end_matches('/'));
    let url = match core.outgoing.check_url(&text, schemes(&core.outgoing)) {
        Ok(url) => url,
        Err(reason) => return Ok(Outcome::Failed(format!("the URL {reason}"))),
    };
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    let mut api_key = HeaderValue::from_bytes(&api_key).map_err(Error::internal)?;
    api_key.set_sensitive(true);
    headers.insert(API_KEY, api_key);
    let project = target.project.clone();
    let body = tokio::task::spawn_blocking(move || body(stored, &project));
    let body = body.await.map_err(Error::internal)??;
    let request = OutgoingRequest {
        method: Method::PUT,
        url,
        headers,
        body: Bytes::from(body),
        within: WITHIN,
        max_response_bytes: MAX_RESPONSE_BYTES,
        tls: None,
    };
    Ok(match core.outgoing.send_for_status(request).await {
        Ok(answer) => outcome_of(answer.status),
        Err(error) => Outcome::Failed(error.message),
    })
}

/// The body of an upload. Lists are versions of one project, and releases of one of their own.
fn body(stored: Stored, project: &str) -> Result<String> {
    match stored {
        Stored::List { sha256, packed } => {
            let list = packed.packages()?;
            let version = bom::version_of(&list, &sha256);
            let document = bom::document(&list, project, &version).to_string();
            with_document(project, &version, document.as_bytes())
        }
        Stored::Release(stored) => {
            let (name, version) = (stored.name.clone(), release_version(&stored));
            let document = match stored.read()? {
                Bom::Declared(document) => document,
                Bom::Known(components) => bom::of_components(&components, &name, &version)
                    .to_string()
                    .into_bytes(),
            };
            with_document(&name, &version, &document)
        }
    }
}

/// The version of a release; of one for a single architecture with that as the build of the
/// version, such as `1.0.0+aarch64`: others have the same version.
fn release_version(release: &StoredBom) -> String {
    let (version, architecture) = (&release.version, &release.architecture);
    match (architecture.as_str(), version.contains('+')) {
        ("any", _) => version.clone(),
        (_, false) => format!("{version}+{architecture}"),
        (_, true) => format!("{version}.{architecture}"),
    }
}

/// A document may be long: it is encoded in its place.
fn with_document(project: &str, version: &str, document: &[u8]) -> Result<String> {
    let head = json!({"projectName": project, "projectVersion": version, "autoCreate": true});
    let head = head.to_string();
    let members = head
        .strip_suffix('}')
        .ok_or_else(|| Error::internal("the head of an upload is no object"))?;
    let mut body = format!("{members},\"bom\":\"");
    STANDARD.encode_string(document, &mut body);
    body.push_str("\"}");
    Ok(body)
}

fn outcome_of(status: u16) -> Outcome {
    match status {
        200..=299 => Outcome::Sent,
        400 | 413 | 422 => Outcome::Refused(format!(
            "the server refused a document: it answered {status}"
        )),
        401 | 403 => Outcome::Failed(format!(
            "the server answered {status}: the API key needs the permissions BOM_UPLOAD and \
             PROJECT_CREATION_UPLOAD"
        )),
        404 => Outcome::Failed(
            "the server answered 404: the URL must be that of the API server".to_owned(),
        ),
        _ => Outcome::Failed(format!("the server answered {status}")),
    }
}

async fn settle(
    core: &Core,
    tenant_uuid: TenantUuid,
    item: &Item,
    target: &Target,
    outcome: Outcome,
) -> Result<()> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    // What came of one server says nothing about another one.
    if !store::lock(&mut tx, tenant_uuid, target.updated_at).await? {
        return Ok(());
    }
    match outcome {
        Outcome::Sent => {
            note(&mut tx, tenant_uuid, item, None, now).await?;
            store::note_answer(&mut tx, tenant_uuid, now).await?;
        }
        Outcome::Refused(error) => {
            note(&mut tx, tenant_uuid, item, Some(&error), now).await?;
            store::note_error(&mut tx, tenant_uuid, &error, 0, None, now).await?;
        }
        Outcome::Failed(error) => {
            let failures = target.failures.saturating_add(1);
            let retry_at = now.plus_secs(delay_secs(failures));
            tracing::warn!(
                tenant_uuid = %tenant_uuid,
                failures,
                "cannot send what hubs run to Dependency-Track: {error}"
            );
            store::note_error(&mut tx, tenant_uuid, &error, failures, Some(retry_at), now).await?;
        }
    }
    tx.commit_unaudited("the row holds its own outcome").await
}

async fn note(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    item: &Item,
    refusal: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    match item {
        Item::List(sha256) => store::note(tx, tenant_uuid, sha256, refusal, now).await,
        Item::Release(release) => release_store::note(tx, tenant_uuid, release, refusal, now).await,
    }
}

/// The delay after so many failures in a row.
fn delay_secs(failures: i64) -> i64 {
    let doubled = u32::try_from(failures.saturating_sub(1).clamp(0, 20)).unwrap_or_default();
    FIRST_DELAY_SECS
        .saturating_mul(2_i64.pow(doubled))
        .min(LONGEST_DELAY_SECS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_from_a_minute_to_six_hours() {
        let delays: Vec<i64> = [1, 2, 3, 9, 10, i64::MAX].map(delay_secs).to_vec();
        assert_eq!(delays, [60, 120, 240, 15_360, 21_600, 21_600]);
    }

    #[test]
    fn a_refused_document_is_no_failure_of_the_server() {
        assert!(matches!(outcome_of(200), Outcome::Sent));
        for status in [400, 413, 422] {
            assert!(
                matches!(outcome_of(status), Outcome::Refused(_)),
                "{status}"
            );
        }
        for status in [301, 401, 403, 404, 429, 500, 503] {
            assert!(matches!(outcome_of(status), Outcome::Failed(_)), "{status}");
        }
    }
}
