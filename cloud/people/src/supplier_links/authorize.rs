//! How a link begins: the user is sent to the supplier's authorization server with a state that is
//! theirs, and a PKCE challenge whose verifier never leaves the service.

use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_base::sealing::stored::SUPPLIER_LINK_VERIFIER;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authn::user::User;
use hub_protocol::TenantUuid;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::store::{self, Attempt};
use super::{
    MAX_LINKS, MAX_LINKS_TO_ONE, SupplierLinks, at_fault, is_allowed, no_config, too_many,
};
use crate::supplier_oauth::{self, Config, schemes};
use crate::{accounts, tenants};

pub const CALLBACK_PATH: &str = "/auth/supplier-link/callback";
/// The page that holds a completion for an app without a page of its own.
pub const PENDING_PATH: &str = "/auth/supplier-link/pending";
/// The time that a user has at the supplier.
const VALID_SECS: i64 = 600;
/// Authorizations that one user may have begun; the oldest ones are dropped.
const MAX_ATTEMPTS: i64 = 10;

/// The server of an authorization. Its code is only sent there, also if the configuration changes
/// meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub issuer: Option<String>,
    /// Whether the server sends its issuer identifier with the code (RFC 9207).
    pub sends_iss: bool,
    pub token_url: String,
    pub client_id: String,
    pub scope: String,
    pub redirect_uri: String,
    pub return_url: Option<String>,
}

impl Target {
    /// Whether the server that the user was sent to is still the supplier's.
    pub fn is_still(&self, config: &Config) -> bool {
        self.issuer == config.issuer
            && self.token_url == config.token_url
            && self.client_id == config.client_id
    }
}

/// An authorization that has begun.
pub struct Begun {
    pub authorize_url: String,
    pub state: String,
}

pub async fn begin(
    links: &SupplierLinks,
    user: &User,
    tenant_uuid: TenantUuid,
    return_url: Option<String>,
) -> Result<Begun> {
    let core = &links.0.core;
    // A user begins one at a time: the supplier's server may be asked about itself.
    let _turn = core.turns.supplier_links.take(user.user_uuid.0).await?;
    let mut conn = core.db.read().await?;
    let config = supplier_oauth::config(&mut conn, tenant_uuid)
        .await?
        .ok_or_else(no_config)?;
    if return_url
        .as_ref()
        .is_some_and(|url| !is_allowed(&config.return_urls, url))
    {
        return Err(Error::field(
            "returnUrl",
            "must be one of the supplier's return URLs",
        ));
    }
    let (all, to_one) = store::count(&mut conn, user.user_uuid, tenant_uuid).await?;
    if all >= MAX_LINKS || to_one >= MAX_LINKS_TO_ONE {
        return Err(too_many());
    }
    drop(conn);
    let redirect_uri = redirect_uri(core)?;
    let metadata = links
        .0
        .documents
        .of(core, config.issuer.as_deref())
        .await
        .map_err(at_fault)?;
    let (state, verifier) = (secret(), secret());
    let authorize_url = authorize_url(core, &config, &redirect_uri, &state, &verifier)?;
    let target = Target {
        sends_iss: metadata.authorization_response_iss_parameter_supported,
        issuer: config.issuer,
        token_url: config.token_url,
        client_id: config.client_id,
        scope: config.scope,
        redirect_uri,
        return_url,
    };
    let now = core.clock.now();
    let attempt_uuid = Uuid::now_v7();
    let attempt = Attempt {
        attempt_uuid,
        tenant_uuid,
        user_uuid: user.user_uuid,
        persona_uuid: user.persona_uuid,
        sealed_verifier: core.sealer.seal(
            SUPPLIER_LINK_VERIFIER,
            &attempt_uuid.to_string(),
            verifier.as_bytes(),
        ),
        target: serde_json::to_string(&target).map_err(Error::internal)?,
        sealed_code: None,
        expires_at: now.plus_secs(VALID_SECS),
    };
    let mut tx = core.db.begin().await?;
    if !tenants::lock_shared(&mut tx, tenant_uuid).await? {
        return Err(no_config());
    }
    accounts::lock_user(&mut tx, user.user_uuid).await?;
    store::forget_attempts_of(&mut tx, user.user_uuid, MAX_ATTEMPTS - 1).await?;
    store::insert_attempt(&mut tx, sealing::hash(&state), &attempt, now).await?;
    let audit =
        Audit::new(user, "supplier_link.authorize", attempt_uuid, now).in_tenant(tenant_uuid);
    tx.commit(audit).await?;
    Ok(Begun {
        authorize_url,
        state,
    })
}

/// A secret of 256 random bits.
pub fn secret() -> String {
    URL_SAFE_NO_PAD.encode(sealing::random::<32>())
}

/// The URL to which the supplier returns the user.
fn redirect_uri(core: &Core) -> Result<String> {
    core.config
        .own_url()
        .map(|base| format!("{base}{CALLBACK_PATH}"))
        .ok_or_else(|| {
            let message = "links to suppliers need the address of this service; set public-url";
            Error::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "PUBLIC_URL_NOT_CONFIGURED",
                message,
            )
            .with_retry_after(60)
        })
}

fn authorize_url(
    core: &Core,
    config: &Config,
    redirect_uri: &str,
    state: &str,
    verifier: &str,
) -> Result<String> {
    let checked = core
        .outgoing
        .check_url(&config.authorize_url, schemes(core));
    // The settings may allow less than when the URL was stored.
    let mut url: Url = checked.map_err(|reason| {
        at_fault(super::oauth::Fault::Failed(format!(
            "`authorize_url` {reason}"
        )))
    })?;
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let mut query = url.query_pairs_mut();
    query.extend_pairs([
        ("response_type", "code"),
        ("client_id", &config.client_id),
        ("redirect_uri", redirect_uri),
        ("scope", &config.scope),
        ("state", state),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ]);
    // Required for a refresh token (OpenID Connect Core, section 11).
    if config
        .scope
        .split(' ')
        .any(|scope| scope == "offline_access")
    {
        query.append_pair("prompt", "consent");
    }
    drop(query);
    Ok(url.into())
}
