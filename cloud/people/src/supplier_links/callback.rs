//! How a link is made, in two steps. The supplier's server sends a browser back with a code: nobody
//! knows whose browser that is, so the code is only stored, and the browser gets a completion. The
//! person who began brings it, signed in, and only then is the code redeemed (RFC 6749, section
//! 10.12; RFC 9700, section 4.7.1): nobody can be made to link their account to somebody else.
//! The completion is used up first, so that nothing is done twice. The link, its tokens, its event
//! and its audit entry are committed together at the end: a process that is killed before leaves no
//! link.

use axum::http::StatusCode;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_base::sealing::stored::{SUPPLIER_LINK_CODE, SUPPLIER_LINK_VERIFIER};
use hub_core::Core;
use hub_core::audit::{Actor, Audit, Author};
use hub_core::outbox::{self, Event, EventType, Link};
use hub_identity::authn::oidc::redirect::Parameters;
use hub_identity::authn::user::User;
use hub_protocol::{PersonaUuid, TenantUuid, UserUuid};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use uuid::Uuid;

use super::authorize::{Target, secret};
use super::oauth::{self, Fault, TokenAuth, Tokens};
use super::store::{self, Attempt, NewLink};
use super::{
    MAX_LINKS, MAX_LINKS_TO_ONE, SupplierLinks, at_fault, detached, is_allowed, opened, sealed,
    too_many, unlink,
};
use crate::supplier_oauth::{self, OauthClient};
use crate::{accounts, tenants};

const MAX_STATE_BYTES: usize = 256;
const MAX_CODE_BYTES: usize = 8 * 1024;
/// The time that a person has to complete a link after the supplier's answer.
const COMPLETION_SECS: i64 = 120;

/// The answer of a supplier's server to an authorization.
pub struct Answered {
    /// The state of the authorization.
    pub state: String,
    /// The URL to which the browser is returned.
    pub return_url: Option<String>,
    pub outcome: Outcome,
}

pub enum Outcome {
    /// The person who began has to bring this completion.
    Pending(String),
    /// The user, or the server, refused.
    Refused,
    Failed(Error),
}

/// Stores the answer to the authorization that the state belongs to. The error concerns an unknown
/// state.
pub async fn answer(links: &SupplierLinks, parameters: Parameters) -> Result<Answered> {
    let core = &links.0.core;
    let state = parameters.state.clone().unwrap_or_default();
    if state.is_empty() {
        return Err(Error::field("state", "is required"));
    }
    if state.len() > MAX_STATE_BYTES {
        return Err(unknown_state());
    }
    let (state_hash, now) = (sealing::hash(&state), core.clock.now());
    let mut conn = core.db.read().await?;
    let attempt = store::unanswered(&mut conn, state_hash.clone(), now)
        .await?
        .ok_or_else(unknown_state)?;
    let target: Target = serde_json::from_str(&attempt.target).map_err(Error::internal)?;
    let client = supplier_oauth::client(core, &mut conn, attempt.tenant_uuid).await?;
    drop(conn);
    // A return URL that the supplier has removed is not used.
    let return_url = target.return_url.clone().filter(|url| {
        client
            .as_ref()
            .is_some_and(|client| is_allowed(&client.config.return_urls, url))
    });
    let mut tx = core.db.begin().await?;
    let (is_known, outcome) = match still(&target, client).and_then(|_| code(&target, parameters)) {
        Ok(Some(code)) => {
            let completion = secret();
            let row = attempt.attempt_uuid.to_string();
            let sealed_code = core.sealer.seal(SUPPLIER_LINK_CODE, &row, code.as_bytes());
            let (hash, until) = (sealing::hash(&completion), now.plus_secs(COMPLETION_SECS));
            (
                store::keep_answer(&mut tx, state_hash, hash, sealed_code, until).await?,
                Outcome::Pending(completion),
            )
        }
        Ok(None) => (
            store::forget_attempt(&mut tx, state_hash).await?,
            Outcome::Refused,
        ),
        Err(error) => (
            store::forget_attempt(&mut tx, state_hash).await?,
            Outcome::Failed(error),
        ),
    };
    tx.commit_unaudited("a state that is used up").await?;
    match is_known {
        true => Ok(Answered {
            state,
            return_url,
            outcome,
        }),
        false => Err(unknown_state()),
    }
}

fn unknown_state() -> Error {
    let message = "nobody waits for this answer: it was used before, or took too long; begin again";
    Error::bad_request("INVALID_STATE", message)
}

/// The client of the supplier, while its server is the one that the user was sent to.
fn still(target: &Target, client: Option<OauthClient>) -> Result<OauthClient> {
    client
        .filter(|client| target.is_still(&client.config))
        .ok_or_else(|| {
            Error::bad_request(
                "SUPPLIER_CHANGED",
                "the supplier has changed its authorization server meanwhile; begin again",
            )
        })
}

/// The code of the answer; None if the user, or the server, refused.
fn code(target: &Target, parameters: Parameters) -> Result<Option<String>> {
    // The answer of another server could bring a code of its own (RFC 9207).
    let is_of_issuer = match &target.issuer {
        Some(issuer) => parameters.is_from(issuer, target.sends_iss),
        None => parameters.iss.is_some() || !target.sends_iss,
    };
    if !is_of_issuer {
        let message =
            "another authorization server answered than the one that was asked; begin again";
        return Err(Error::bad_request("OTHER_ISSUER", message));
    }
    if parameters.error.is_some() {
        return Ok(None);
    }
    parameters
        .code
        .filter(|code| !code.is_empty() && code.len() <= MAX_CODE_BYTES)
        .map(Some)
        .ok_or_else(|| Error::field("code", "is required, and has at most 8 KiB"))
}

/// Redeems the code of an answered authorization for the person who began it, and returns the id
/// of the link. Anybody else voids the authorization.
pub async fn complete(
    links: &SupplierLinks,
    user: &User,
    state: &str,
    completion: &str,
) -> Result<i64> {
    let core = &links.0.core;
    let (state, completion) = (sealing::hash(state), sealing::hash(completion));
    let now = core.clock.now();
    let mut conn = core.db.read().await?;
    if !store::is_answered(&mut conn, state.clone(), completion.clone()).await? {
        return Err(unknown_state());
    }
    drop(conn);
    let mut tx = core.db.begin().await?;
    let attempt = store::take_answered(&mut tx, state, completion)
        .await?
        .ok_or_else(unknown_state)?;
    if attempt.user_uuid != user.user_uuid {
        let audit = Audit::new(user, "supplier_link.refuse", attempt.attempt_uuid, now)
            .in_tenant(attempt.tenant_uuid)
            .with(json!({"begunBy": attempt.user_uuid}));
        tx.commit(audit).await?;
        return Err(Error::new(
            StatusCode::FORBIDDEN,
            "NOT_BEGUN_BY_YOU",
            "somebody else began this link, and it is void now; to link your own account, begin in your app",
        ));
    }
    tx.commit_unaudited("a completion that is used up").await?;
    if attempt.expires_at <= now {
        return Err(unknown_state());
    }
    // A caller that leaves does not stop it halfway.
    let links = links.clone();
    let completing = async move { redeem(&links, attempt).await };
    detached(core, completing).await.map_err(Error::internal)?
}

async fn redeem(links: &SupplierLinks, attempt: Attempt) -> Result<i64> {
    let core = &links.0.core;
    let target: Target = serde_json::from_str(&attempt.target).map_err(Error::internal)?;
    let client =
        supplier_oauth::client(core, &mut core.db.read().await?, attempt.tenant_uuid).await?;
    let client = still(&target, client)?;
    let metadata = links
        .0
        .documents
        .of(core, target.issuer.as_deref())
        .await
        .map_err(at_fault)?;
    let auth = TokenAuth::of(&client, &metadata);
    let (code, verifier) = proofs(core, &attempt)?;
    let code = code.expose_secret();
    let redeemed = oauth::redeem(core, &client, auth, code, &target.redirect_uri, &verifier).await;
    let tokens = redeemed.map_err(code_error)?;
    let stored = match oauth::user_sub(core, &client, &metadata, &tokens).await {
        Ok(user_sub) => store_link(links, &attempt, &target, auth, &tokens, user_sub).await,
        Err(fault) => Err(at_fault(fault)),
    };
    if stored.is_err() {
        // These tokens are not stored.
        unlink::revoke_tokens(links, &client, auth, &tokens).await;
    }
    stored
}

/// The code of an answer, and the verifier that belongs to it.
fn proofs(core: &Core, attempt: &Attempt) -> Result<(SecretString, SecretString)> {
    let row = attempt.attempt_uuid.to_string();
    let sealed_code = attempt.sealed_code.as_deref().unwrap_or_default();
    Ok((
        opened(core, SUPPLIER_LINK_CODE, &row, sealed_code)?,
        opened(core, SUPPLIER_LINK_VERIFIER, &row, &attempt.sealed_verifier)?,
    ))
}

fn code_error(fault: Fault) -> Error {
    match fault {
        Fault::Refused(code) if code == "invalid_grant" => Error::new(
            StatusCode::BAD_REQUEST,
            "INVALID_CODE",
            "the authorization server does not accept this code; begin again",
        ),
        fault => at_fault(fault),
    }
}

/// The author of the link: the person who began.
fn author(tenant_uuid: TenantUuid, user_uuid: UserUuid, persona_uuid: PersonaUuid) -> Author {
    Author {
        tenant_uuid: Some(tenant_uuid),
        actor: Actor::User {
            user_uuid,
            persona_uuid,
        },
    }
}

async fn store_link(
    links: &SupplierLinks,
    attempt: &Attempt,
    target: &Target,
    auth: TokenAuth,
    tokens: &Tokens,
    user_sub: Option<String>,
) -> Result<i64> {
    let core = &links.0.core;
    let (tenant_uuid, user_uuid) = (attempt.tenant_uuid, attempt.user_uuid);
    let mut tx = core.db.begin().await?;
    if !tenants::lock_shared(&mut tx, tenant_uuid).await? {
        return Err(super::no_config());
    }
    // The lock makes concurrent links of one user count each other.
    accounts::lock_user(&mut tx, user_uuid).await?;
    let now = core.clock.now();
    let scope = tokens.scope.as_deref().unwrap_or(&target.scope);
    let author = author(tenant_uuid, user_uuid, attempt.persona_uuid);
    let detail = json!({"userSub": user_sub, "scope": scope});
    let known = match &user_sub {
        Some(user_sub) => store::lock_by_sub(&mut tx, tenant_uuid, user_uuid, user_sub).await?,
        None => None,
    };
    // Another authorization of the same account renews the tokens of its link.
    if let Some(known) = known {
        let sealed = sealed(core, known.link_uuid, tokens);
        store::renew(&mut tx, known.supplier_link_id, scope, auth, sealed, now).await?;
        let audit = Audit::new(author, "supplier_link.renew", known.supplier_link_id, now);
        tx.commit(audit.with(detail)).await?;
        return Ok(known.supplier_link_id);
    }
    let (all, to_one) = store::count(&mut tx, user_uuid, tenant_uuid).await?;
    if all >= MAX_LINKS || to_one >= MAX_LINKS_TO_ONE {
        return Err(too_many());
    }
    let link_uuid = Uuid::now_v7();
    let new = NewLink {
        link_uuid,
        tenant_uuid,
        user_uuid,
        user_sub: user_sub.as_deref(),
        token_auth: auth,
    };
    let supplier_link_id =
        store::insert(&mut tx, &new, scope, sealed(core, link_uuid, tokens), now).await?;
    let event = Event::supplier_link(
        EventType::SupplierLinkCreated,
        Link {
            supplier_link_id,
            user_uuid,
            user_sub,
        },
    );
    outbox::insert(core, &mut tx, tenant_uuid, &[event], now).await?;
    tx.commit(Audit::new(author, "supplier_link.create", supplier_link_id, now).with(detail))
        .await?;
    Ok(supplier_link_id)
}
