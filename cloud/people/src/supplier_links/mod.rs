//! Links of app users to the authorization servers of suppliers (OAuth 2.1): how a link is made,
//! the token that an app gets, and how a link ends. Tokens are sealed. They leave the service in
//! one place, to the user whose link it is, and with calls of the supplier on that user's behalf.
//! No transaction and no connection is open while a supplier is called.

mod access;
mod authorize;
mod callback;
pub mod http;
mod metadata;
mod oauth;
mod reads;
mod store;
mod unlink;
mod webhook;

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode};
use hub_base::db::{Conn, Db, Tx};
use hub_base::error::{Error, Result};
use hub_base::request_id;
use hub_base::sealing::stored::{SUPPLIER_ACCESS_TOKEN, SUPPLIER_REFRESH_TOKEN};
use hub_core::Core;
use hub_core::http::client_address;
use hub_identity::authn::Authn;
use hub_identity::authz::{Scope, UserScope};
use hub_protocol::{TenantUuid, Timestamp, UserUuid};
use secrecy::{ExposeSecret, SecretString};
use tokio::task::JoinHandle;
use uuid::Uuid;

use access::InFlight;
pub use access::token_for;
use metadata::Documents;
use oauth::{Fault, Tokens};
use reads::Reads;
use store::SealedTokens;
pub use store::{has_tokens, subs_of};
pub use unlink::{LANE, REVOKE, perform, unlink_all};

/// The most active links of a user, and of a user to one supplier.
const MAX_LINKS: i64 = 100;
const MAX_LINKS_TO_ONE: i64 = 20;
/// The retention of revoked links.
const REVOKED_KEPT_SECS: i64 = 90 * 24 * 3600;

/// The links, with what this process is doing about them. Cheap to clone.
#[derive(Clone)]
pub struct SupplierLinks(Arc<Inner>);

struct Inner {
    core: Core,
    authn: Authn,
    documents: Documents,
    in_flight: InFlight,
    reads: Reads,
}

impl SupplierLinks {
    pub fn new(core: Core, authn: Authn) -> Self {
        let reads = Reads::new(core.clone());
        let (documents, in_flight) = (Documents::default(), InFlight::default());
        Self(Arc::new(Inner {
            core,
            authn,
            documents,
            in_flight,
            reads,
        }))
    }
}

/// Runs work that its caller may leave, on account of the caller's request.
fn detached<T: Send + 'static>(
    core: &Core,
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let id =
        HeaderValue::try_from(request_id::current()).unwrap_or(HeaderValue::from_static("unknown"));
    core.workers.spawn(request_id::with(
        id,
        client_address::with(client_address::current(), work),
    ))
}

fn not_found() -> Error {
    Error::not_found("supplier link")
}

fn too_many() -> Error {
    let message = format!(
        "a user may have at most {MAX_LINKS} links, {MAX_LINKS_TO_ONE} of them to one supplier; delete one first"
    );
    Error::conflict("TOO_MANY_SUPPLIER_LINKS", message)
}

/// The answer where a supplier's server is at fault. Its own words stay in the log.
fn at_fault(fault: Fault) -> Error {
    match fault {
        Fault::TimedOut => Error::new(
            StatusCode::GATEWAY_TIMEOUT,
            "SUPPLIER_TIMED_OUT",
            "the supplier's server did not answer in time",
        ),
        Fault::Refused(code) => supplier_failed(format!("it refused with {code}")),
        Fault::Failed(reason) => supplier_failed(reason),
    }
}

fn supplier_failed(reason: String) -> Error {
    tracing::info!(reason, "the authorization server of a supplier failed");
    Error::new(
        StatusCode::BAD_GATEWAY,
        "SUPPLIER_FAILED",
        "the supplier's server failed; try again later",
    )
}

/// The tokens as they are stored for a link.
fn sealed(core: &Core, link_uuid: Uuid, tokens: &Tokens) -> SealedTokens {
    let row = link_uuid.to_string();
    let seal = |purpose: &str, token: &SecretString| {
        core.sealer
            .seal(purpose, &row, token.expose_secret().as_bytes())
    };
    SealedTokens {
        access_token: seal(SUPPLIER_ACCESS_TOKEN, &tokens.access_token),
        refresh_token: tokens
            .refresh_token
            .as_ref()
            .map(|token| seal(SUPPLIER_REFRESH_TOKEN, token)),
        expires_at: tokens.expires_at,
        refresh_at: tokens.refresh_at,
        scope: tokens.scope.clone(),
    }
}

fn opened(core: &Core, purpose: &str, row: &str, sealed: &[u8]) -> Result<SecretString> {
    let secret = core
        .sealer
        .open(purpose, row, sealed)
        .map_err(Error::internal)?;
    Ok(SecretString::from(
        String::from_utf8(secret).map_err(Error::internal)?,
    ))
}

/// Ends all links to a tenant that is being deleted, and returns how many. The caller writes the
/// audit entry.
pub async fn revoke_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    store::revoke_all(tx, scope.tenant_uuid(), now).await
}

/// Deletes authorizations that were not completed, links that ended long ago, and what is known of
/// messages. Returns whether there may be more.
pub async fn upkeep(db: &Db, now: Timestamp, limit: i64) -> Result<bool> {
    let mut tx = db.begin().await?;
    let expired = store::forget_expired(&mut tx, now, limit).await?;
    let revoked = store::forget_revoked(&mut tx, now.plus_secs(-REVOKED_KEPT_SECS), limit).await?;
    let heard_before = now.plus_secs(-webhook::REPEAT_SECS);
    let messages = store::forget_messages(&mut tx, heard_before, limit).await?;
    tx.commit_unaudited("nothing that anybody could still use")
        .await?;
    Ok(expired.max(revoked).max(messages) >= limit.unsigned_abs())
}

/// A return URL must equal one that the supplier has configured.
fn is_allowed(return_urls: &[String], url: &str) -> bool {
    return_urls.iter().any(|allowed| allowed == url)
}

fn no_config() -> Error {
    Error::not_found("supplier OAuth configuration")
}

/// The tenants, of the given ones, with which the user is linked.
pub async fn suppliers(
    conn: &mut Conn,
    scope: &UserScope,
    tenants: &[TenantUuid],
) -> Result<HashSet<TenantUuid>> {
    match tenants.is_empty() {
        true => Ok(HashSet::new()),
        false => store::suppliers(conn, scope, tenants)
            .await
            .map(HashSet::from_iter),
    }
}

/// Deletes the links of a user whose account is being deleted, with tokens that no supplier has
/// revoked until now.
pub async fn forget_person(tx: &mut Tx, user_uuid: UserUuid) -> Result<()> {
    store::delete_all_of(tx, user_uuid).await
}
