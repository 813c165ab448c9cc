//! How a link ends. It is over here with the commit, whatever the supplier does. Its tokens are
//! then revoked at the supplier, at once and as background work until that has succeeded, and
//! deleted.

use std::time::Duration;

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_base::sealing::stored::{SUPPLIER_ACCESS_TOKEN, SUPPLIER_REFRESH_TOKEN};
use hub_core::Core;
use hub_core::audit::{Audit, Author};
use hub_core::outbox::{self, Event, EventType, Link};
use hub_core::tasks::{self, Done, NewTask, Task};
use hub_identity::authz::UserScope;
use hub_protocol::{Timestamp, UserUuid};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::oauth::{self, Fault, TokenAuth, Tokens};
use super::store::{self, LinkRow, LinkStatus};
use super::{SupplierLinks, detached, not_found, opened};
use crate::supplier_oauth::{self, OauthClient};

/// The lane of revocations. A supplier that does not respond delays nothing else.
pub const LANE: &str = "supplier_links";
/// The kind of task that revokes the tokens of one link.
pub const REVOKE: &str = "supplier_link.revoke_tokens";

/// The time limit of all calls of one revocation.
const WITHIN: Duration = Duration::from_secs(6);
/// When background work takes over.
const FIRST_DELAY_SECS: i64 = 15;
const LONGEST_DELAY_SECS: i64 = 3600;
/// The time after which the tokens are deleted, whether revoked or not.
const GIVEN_UP_SECS: i64 = 24 * 3600;

/// Ends the user's link. Returns whether its tokens are revoked at the supplier too.
pub async fn unlink(links: &SupplierLinks, scope: &UserScope, id: i64) -> Result<bool> {
    let core = &links.0.core;
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let link = store::lock(&mut tx, scope, id)
        .await?
        .ok_or_else(not_found)?;
    store::revoke(&mut tx, id, now).await?;
    let ended = Link {
        supplier_link_id: id,
        user_uuid: link.user_uuid,
        user_sub: link.user_sub.clone(),
    };
    let event = Event::supplier_link(EventType::SupplierLinkRevoked, ended);
    outbox::insert(core, &mut tx, link.tenant_uuid, &[event], now).await?;
    tasks::enqueue(
        core,
        &mut tx,
        revocation(id, now.plus_secs(FIRST_DELAY_SECS)),
        now,
    )
    .await?;
    let author = Author {
        tenant_uuid: Some(link.tenant_uuid),
        ..Author::from(scope)
    };
    let audit =
        Audit::new(author, "supplier_link.revoke", id, now).with(json!({"userSub": link.user_sub}));
    tx.commit(audit).await?;
    let (core, links) = (core.clone(), links.clone());
    let revoking = detached(&core, async move { settle(&links, id).await });
    // Background work repeats a failed revocation.
    let settled = revoking.await.map_err(Error::internal)?;
    if let Err(error) = &settled {
        tracing::info!(%error, "the tokens of a link are revoked later");
    }
    Ok(matches!(settled, Ok(Settled::Revoked)))
}

fn revocation(id: i64, due_at: Timestamp) -> NewTask {
    NewTask {
        lane: LANE,
        kind: REVOKE,
        payload: json!({"supplierLinkId": id}),
        due_at,
        dedup_key: Some(format!("{REVOKE}:{id}")),
    }
}

/// Ends all links of a user whose account is being deleted, and returns their number. Notices to
/// the suppliers, and the revocation of tokens, are background work.
pub async fn unlink_all(
    core: &Core,
    tx: &mut Tx,
    user_uuid: UserUuid,
    now: Timestamp,
) -> Result<usize> {
    let ended = store::end_all_of(tx, user_uuid, now).await?;
    for link in &ended {
        let id = link.supplier_link_id;
        let ended = Link {
            supplier_link_id: id,
            user_uuid,
            user_sub: link.user_sub.clone(),
        };
        let event = Event::supplier_link(EventType::SupplierLinkRevoked, ended);
        outbox::insert(core, tx, link.tenant_uuid, &[event], now).await?;
        tasks::enqueue(core, tx, revocation(id, now), now).await?;
    }
    Ok(ended.len())
}

/// Revokes the tokens of a link that has ended, as background work.
pub async fn perform(links: &SupplierLinks, task: &Task) -> Result<Done> {
    let id = task.payload.get("supplierLinkId").and_then(Value::as_i64);
    let id = id.ok_or_else(|| Error::internal("the task names no link"))?;
    match settle(links, id).await? {
        Settled::Revoked | Settled::Nothing => Ok(Done::Finished),
        Settled::Later(at) => Ok(Done::RunAt(at)),
    }
}

enum Settled {
    Revoked,
    /// No token can be revoked.
    Nothing,
    Later(Timestamp),
}

async fn settle(links: &SupplierLinks, id: i64) -> Result<Settled> {
    let core = &links.0.core;
    let mut conn = core.db.read().await?;
    let Some(link) = store::find(&mut conn, id).await? else {
        return Ok(Settled::Nothing);
    };
    if link.status != LinkStatus::Revoked || link.sealed_access_token.is_none() {
        return Ok(Settled::Nothing);
    }
    let client = supplier_oauth::client(core, &mut conn, link.tenant_uuid).await?;
    drop(conn);
    let revoked = match &client {
        Some(client) => revoke_stored(links, client, &link).await?,
        None => Ok(false),
    };
    let now = core.clock.now();
    let age_secs = now.as_secs() - link.revoked_at.unwrap_or(now).as_secs();
    if let Err(fault) = &revoked
        && age_secs < GIVEN_UP_SECS
    {
        tracing::info!(
            ?fault,
            "a supplier did not revoke tokens; they are revoked later"
        );
        let delay_secs = age_secs.clamp(FIRST_DELAY_SECS, LONGEST_DELAY_SECS);
        return Ok(Settled::Later(now.plus_secs(delay_secs)));
    }
    let mut tx = core.db.begin().await?;
    store::forget_tokens(&mut tx, id).await?;
    tx.commit_unaudited("the end of the link has its entry")
        .await?;
    Ok(if matches!(revoked, Ok(true)) {
        Settled::Revoked
    } else {
        Settled::Nothing
    })
}

/// Whether there was an address to revoke the tokens at.
async fn revoke_stored(
    links: &SupplierLinks,
    client: &OauthClient,
    link: &LinkRow,
) -> Result<Result<bool, Fault>> {
    let row = link.link_uuid.to_string();
    let open = |purpose: &str, sealed: &Option<Vec<u8>>| -> Result<Option<SecretString>> {
        sealed
            .as_ref()
            .map(|sealed| opened(&links.0.core, purpose, &row, sealed))
            .transpose()
    };
    let refresh_token = open(SUPPLIER_REFRESH_TOKEN, &link.sealed_refresh_token)?;
    let access_token = open(SUPPLIER_ACCESS_TOKEN, &link.sealed_access_token)?;
    Ok(revoke(
        links,
        client,
        link.token_auth,
        refresh_token.as_ref(),
        access_token.as_ref(),
    )
    .await)
}

/// Revokes unused tokens; failures are ignored.
pub async fn revoke_tokens(
    links: &SupplierLinks,
    client: &OauthClient,
    auth: TokenAuth,
    tokens: &Tokens,
) {
    if let Err(fault) = revoke(
        links,
        client,
        auth,
        tokens.refresh_token.as_ref(),
        Some(&tokens.access_token),
    )
    .await
    {
        tracing::info!(?fault, "tokens that nobody will use could not be revoked");
    }
}

async fn revoke(
    links: &SupplierLinks,
    client: &OauthClient,
    auth: TokenAuth,
    refresh_token: Option<&SecretString>,
    access_token: Option<&SecretString>,
) -> Result<bool, Fault> {
    let core = &links.0.core;
    let revoking = async {
        let config = &client.config;
        let stated;
        let url = match &config.revoke_url {
            Some(url) => url,
            None => {
                stated = links.0.documents.of(core, config.issuer.as_deref()).await?;
                match &stated.revocation_endpoint {
                    Some(url) => url,
                    None => return Ok(false),
                }
            }
        };
        // The refresh token is first: many servers end the tokens that came of it too.
        let tokens = [
            (refresh_token, "refresh_token"),
            (access_token, "access_token"),
        ];
        for (token, hint) in tokens {
            if let Some(token) = token {
                oauth::revoke(core, client, auth, url, token, hint).await?;
            }
        }
        Ok(true)
    };
    tokio::time::timeout(WITHIN, revoking)
        .await
        .unwrap_or(Err(Fault::TimedOut))
}
