//! How a link is made: the supplier's server sends the user back with a code. The state is used up
//! first, so that nothing is done twice. The link, its tokens, its event and its audit entry are
//! committed together at the end: a process that is killed before leaves no link.

use axum::http::StatusCode;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_base::sealing::stored::SUPPLIER_LINK_VERIFIER;
use hub_core::audit::{Actor, Audit, Author};
use hub_core::outbox::{self, Event, EventType, Link};
use hub_identity::authn::oidc::redirect::Parameters;
use hub_protocol::{PersonaUuid, TenantUuid, UserUuid};
use serde_json::json;
use uuid::Uuid;

use super::authorize::Target;
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

/// The outcome of an authorization.
pub struct Finished {
    /// The URL to which the user is returned.
    pub return_url: Option<String>,
    pub outcome: Outcome,
}

pub enum Outcome {
    Linked,
    /// The user, or the server, refused.
    Refused,
    Failed(Error),
}

/// Completes the authorization that the state belongs to. The error concerns an unknown state.
pub async fn finish(links: &SupplierLinks, parameters: Parameters) -> Result<Finished> {
    let core = links.0.core.clone();
    let state = parameters.state.as_deref().unwrap_or_default();
    if state.is_empty() {
        return Err(Error::field("state", "is required"));
    }
    if state.len() > MAX_STATE_BYTES {
        return Err(unknown_state());
    }
    let state_hash = sealing::hash(state);
    // An unknown state does not begin a transaction.
    if !store::has_attempt(&mut core.db.read().await?, state_hash.clone()).await? {
        return Err(unknown_state());
    }
    let mut tx = core.db.begin().await?;
    let attempt = store::take_attempt(&mut tx, state_hash)
        .await?
        .ok_or_else(unknown_state)?;
    tx.commit_unaudited("a state that is used up").await?;
    if attempt.expires_at <= core.clock.now() {
        return Err(unknown_state());
    }
    // A browser that leaves does not stop it halfway.
    let links = links.clone();
    let completing = async move { complete(&links, attempt, parameters).await };
    detached(&core, completing).await.map_err(Error::internal)?
}

fn unknown_state() -> Error {
    let message = "nobody waits for this answer: it was used before, or took longer than ten minutes; begin again";
    Error::bad_request("INVALID_STATE", message)
}

async fn complete(
    links: &SupplierLinks,
    attempt: Attempt,
    parameters: Parameters,
) -> Result<Finished> {
    let core = &links.0.core;
    let target: Target = serde_json::from_str(&attempt.target).map_err(Error::internal)?;
    let client =
        supplier_oauth::client(core, &mut core.db.read().await?, attempt.tenant_uuid).await?;
    // A return URL that the supplier has removed is not used.
    let return_url = target.return_url.clone().filter(|url| {
        client
            .as_ref()
            .is_some_and(|client| is_allowed(&client.config.return_urls, url))
    });
    let outcome = match client.filter(|client| target.is_still(&client.config)) {
        Some(client) => link(links, &attempt, &target, &client, parameters).await,
        None => Err(Error::bad_request(
            "SUPPLIER_CHANGED",
            "the supplier has changed its authorization server meanwhile; begin again",
        )),
    };
    Ok(Finished {
        return_url,
        outcome: outcome.unwrap_or_else(Outcome::Failed),
    })
}

async fn link(
    links: &SupplierLinks,
    attempt: &Attempt,
    target: &Target,
    client: &OauthClient,
    parameters: Parameters,
) -> Result<Outcome> {
    let core = &links.0.core;
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
        return Ok(Outcome::Refused);
    }
    let code = parameters
        .code
        .filter(|code| !code.is_empty() && code.len() <= MAX_CODE_BYTES);
    let code = code.ok_or_else(|| Error::field("code", "is required, and has at most 8 KiB"))?;
    let metadata = links
        .0
        .documents
        .of(core, target.issuer.as_deref())
        .await
        .map_err(at_fault)?;
    let auth = TokenAuth::of(client, &metadata);
    let row = attempt.attempt_uuid.to_string();
    let verifier = opened(core, SUPPLIER_LINK_VERIFIER, &row, &attempt.sealed_verifier)?;
    let redeemed = oauth::redeem(core, client, auth, &code, &target.redirect_uri, &verifier).await;
    let tokens = redeemed.map_err(code_error)?;
    let stored = match oauth::user_sub(core, client, &metadata, &tokens).await {
        Ok(user_sub) => store_link(links, attempt, target, auth, &tokens, user_sub).await,
        Err(fault) => Err(at_fault(fault)),
    };
    if let Err(error) = stored {
        // These tokens are not stored.
        unlink::revoke_tokens(links, client, auth, &tokens).await;
        return Err(error);
    }
    Ok(Outcome::Linked)
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

/// The author of the link, though the returned browser has no credential.
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
) -> Result<()> {
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
        return tx
            .commit(
                Audit::new(author, "supplier_link.renew", known.supplier_link_id, now).with(detail),
            )
            .await;
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
        .await
}
