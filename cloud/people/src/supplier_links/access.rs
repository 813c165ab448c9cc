//! The supplier's token of a link. It is refreshed before it expires, by one of all that ask for
//! it: in a process they wait for the same refresh, and among replicas the row of the link has a
//! lease. A lease ends by itself, so that a process that is killed delays the next refresh and no
//! more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hub_base::error::{Error, Result};
use hub_base::sealing::stored::{SUPPLIER_ACCESS_TOKEN, SUPPLIER_REFRESH_TOKEN};
use hub_core::audit::{Audit, Author};
use hub_identity::authz::UserScope;
use hub_protocol::{TenantUuid, Timestamp};
use secrecy::SecretString;
use tokio::sync::watch;
use uuid::Uuid;

use super::oauth::{self, Fault, Tokens};
use super::store::{self, LinkRow, LinkStatus};
use super::{SupplierLinks, at_fault, not_found, opened, sealed, unlink};
use crate::supplier_oauth::{self, OauthClient};

/// The lease of a refresh, longer than the two calls that it can take.
const LEASE_SECS: i64 = 30;
/// The longest wait for the refresh of another replica.
const PATIENCE: Duration = Duration::from_secs(25);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The pause after a failed refresh.
const RETRY_SECS: i64 = 5;
/// The pauses between attempts to store new tokens, which a short outage of the database must not
/// lose.
const STORE_PAUSES_MILLIS: [u64; 5] = [0, 100, 500, 1_500, 4_000];

const TIMED_OUT: &str = "TIMED_OUT";
const FAILED: &str = "FAILED";

/// The access token for an app.
pub struct AccessToken {
    pub access_token: SecretString,
    pub expires_at: Option<Timestamp>,
}

/// The end of a refresh, for all that waited for it.
#[derive(Clone, Debug)]
enum Ended {
    Link(Box<LinkRow>),
    NotFound,
    /// The supplier has ended the link.
    Over,
    Fault(Fault),
    Unavailable,
    Internal,
}

impl Ended {
    fn into_result(self) -> Result<LinkRow> {
        Err(match self {
            Self::Link(link) => return Ok(*link),
            Self::NotFound => not_found(),
            Self::Over => {
                let message = "the supplier has ended this link, or its token has expired; link the account again";
                Error::conflict("SUPPLIER_LINK_EXPIRED", message)
            }
            Self::Fault(fault) => at_fault(fault),
            Self::Unavailable => Error::unavailable(
                "DATABASE_UNAVAILABLE",
                "the database is not available; try again shortly",
            ),
            Self::Internal => {
                Error::internal("the refresh of a supplier's token failed; the log has the cause")
            }
        })
    }
}

/// The refreshes that run in this process, by link. Cheap to clone.
#[derive(Clone, Default)]
pub struct InFlight(Arc<Mutex<HashMap<i64, watch::Receiver<Option<Ended>>>>>);

/// The place of a refresh, given up when it ends in whichever way.
struct InFlightPlace(InFlight, i64);

impl Drop for InFlightPlace {
    fn drop(&mut self) {
        self.0
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.1);
    }
}

impl LinkRow {
    fn is_due(&self, now: Timestamp) -> bool {
        self.refresh_at.is_some_and(|at| at <= now)
    }

    /// The link while its token can be used, else the reason.
    fn or(self, now: Timestamp, reason: Ended) -> Ended {
        match self.expires_at.is_none_or(|at| at > now) {
            true => Ended::Link(Box::new(self)),
            false => reason,
        }
    }
}

/// The token of the user's link, refreshed first where it is about to expire.
pub async fn access_token(
    links: &SupplierLinks,
    scope: &UserScope,
    id: i64,
) -> Result<AccessToken> {
    let core = &links.0.core;
    let seen = store::get(&mut core.db.read().await?, scope, id)
        .await?
        .ok_or_else(not_found)?;
    let author = Author {
        tenant_uuid: Some(seen.tenant_uuid),
        ..Author::from(scope)
    };
    let token = in_force(links, seen).await?;
    links
        .0
        .reads
        .note(Audit::new(
            author,
            "supplier_link.read_token",
            id,
            core.clock.now(),
        ))
        .await?;
    Ok(token)
}

/// The token of the link to the supplier that the user made last, to call the supplier with. It
/// stays in the service.
pub async fn token_for(
    links: &SupplierLinks,
    scope: &UserScope,
    supplier: TenantUuid,
) -> Result<SecretString> {
    let seen = store::newest(&mut links.0.core.db.read().await?, scope, supplier)
        .await?
        .ok_or_else(|| {
            let message = "this needs a link to an account at the supplier; link the account first";
            Error::conflict("SUPPLIER_LINK_REQUIRED", message)
        })?;
    in_force(links, seen).await.map(|token| token.access_token)
}

async fn in_force(links: &SupplierLinks, seen: LinkRow) -> Result<AccessToken> {
    let core = &links.0.core;
    let now = core.clock.now();
    let link = match seen.is_due(now) {
        true => refreshed(links, seen).await?,
        false => seen.or(now, Ended::Over).into_result()?,
    };
    let sealed = link.sealed_access_token.as_deref().ok_or_else(not_found)?;
    let access_token = opened(
        core,
        SUPPLIER_ACCESS_TOKEN,
        &link.link_uuid.to_string(),
        sealed,
    )?;
    Ok(AccessToken {
        access_token,
        expires_at: link.expires_at,
    })
}

/// Waits for the refresh of this process, or begins one, which continues if its caller leaves.
async fn refreshed(links: &SupplierLinks, seen: LinkRow) -> Result<LinkRow> {
    let id = seen.supplier_link_id;
    let mut waiting = {
        let mut in_flight = links
            .0
            .in_flight
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match in_flight.get(&id) {
            Some(running) => running.clone(),
            None => {
                let (sender, receiver) = watch::channel(None);
                in_flight.insert(id, receiver.clone());
                let (place, links) = (InFlightPlace(links.0.in_flight.clone(), id), links.clone());
                links.0.core.workers.clone().spawn(async move {
                    let ended = refresh(&links, seen).await.unwrap_or_else(|error| {
                        tracing::warn!(%error, "a supplier's token could not be refreshed");
                        match error.is_database_unavailable() {
                            true => Ended::Unavailable,
                            false => Ended::Internal,
                        }
                    });
                    // Later callers read the row first.
                    drop(place);
                    let _ = sender.send(Some(ended));
                });
                receiver
            }
        }
    };
    let ended = waiting
        .wait_for(Option::is_some)
        .await
        .map_err(Error::internal)?
        .clone();
    ended.unwrap_or(Ended::Internal).into_result()
}

/// Refreshes the tokens, unless somebody else has since they were seen.
async fn refresh(links: &SupplierLinks, seen: LinkRow) -> Result<Ended> {
    let core = &links.0.core;
    let gives_up_at = Instant::now() + PATIENCE;
    loop {
        let link = store::find(&mut core.db.read().await?, seen.supplier_link_id).await?;
        let Some(link) = link.filter(|link| link.status == LinkStatus::Active) else {
            return Ok(Ended::NotFound);
        };
        let now = core.clock.now();
        // The tokens of a refresh that others waited for are good enough for all of them, however
        // short they live.
        if link.version != seen.version || !link.is_due(now) {
            return Ok(link.or(now, Ended::Over));
        }
        let Some(refresh_token) = link.sealed_refresh_token.as_deref() else {
            return Ok(link.or(now, Ended::Over));
        };
        let refresh_token = opened(
            core,
            SUPPLIER_REFRESH_TOKEN,
            &link.link_uuid.to_string(),
            refresh_token,
        )?;
        if link.retry_at.is_some_and(|at| at > now) {
            let fault = last_fault(&link);
            return Ok(link.or(now, Ended::Fault(fault)));
        }
        let lease_uuid = Uuid::new_v4();
        let mut tx = core.db.begin().await?;
        let is_ours =
            store::lease(&mut tx, &link, lease_uuid, now, now.plus_secs(LEASE_SECS)).await?;
        tx.commit_unaudited("a lease").await?;
        if is_ours {
            return perform(links, link, lease_uuid, &refresh_token).await;
        }
        if Instant::now() > gives_up_at {
            return Ok(link.or(now, Ended::Fault(Fault::TimedOut)));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn last_fault(link: &LinkRow) -> Fault {
    match link.refresh_error.as_deref() {
        Some(TIMED_OUT) => Fault::TimedOut,
        _ => Fault::failed("it failed a moment ago, and is left alone for a while"),
    }
}

/// Carries out a refresh under a lease.
async fn perform(
    links: &SupplierLinks,
    link: LinkRow,
    lease_uuid: Uuid,
    refresh_token: &SecretString,
) -> Result<Ended> {
    let core = &links.0.core;
    let id = link.supplier_link_id;
    let client = supplier_oauth::client(core, &mut core.db.read().await?, link.tenant_uuid).await?;
    let outcome = match &client {
        Some(client) => oauth::refresh(core, client, link.token_auth, refresh_token).await,
        None => Err(Fault::failed(
            "the supplier has no OAuth configuration any more",
        )),
    };
    let now = core.clock.now();
    let fault = match (outcome, &client) {
        (Ok(tokens), Some(client)) => return keep(links, link, lease_uuid, client, tokens).await,
        (Ok(_), None) => return Ok(Ended::Internal),
        (Err(fault), _) => fault,
    };
    let mut tx = core.db.begin().await?;
    // The supplier has ended the refresh token. A new one needs another link by the user.
    if fault == Fault::Refused("invalid_grant".to_owned()) {
        let is_over = store::not_refreshable(&mut tx, id, lease_uuid).await?;
        if !is_over {
            return Ok(link.or(now, Ended::Over));
        }
        let audit = Audit::by_system("supplier links", "supplier_link.expire", id, now)
            .in_tenant(link.tenant_uuid);
        tx.commit(audit).await?;
        return Ok(link.or(now, Ended::Over));
    }
    let error = if fault == Fault::TimedOut {
        TIMED_OUT
    } else {
        FAILED
    };
    store::not_refreshed(&mut tx, id, lease_uuid, error, now.plus_secs(RETRY_SECS)).await?;
    tx.commit_unaudited("the row holds its own outcome").await?;
    Ok(link.or(now, Ended::Fault(fault)))
}

/// Stores the tokens of a refresh. The previous ones are invalid by now, so storing is retried.
async fn keep(
    links: &SupplierLinks,
    link: LinkRow,
    lease_uuid: Uuid,
    client: &OauthClient,
    tokens: Tokens,
) -> Result<Ended> {
    let core = &links.0.core;
    let mut stored = Ok(false);
    for pause_millis in STORE_PAUSES_MILLIS {
        tokio::time::sleep(Duration::from_millis(pause_millis)).await;
        stored = keep_once(links, &link, lease_uuid, &tokens).await;
        if stored.is_ok() {
            break;
        }
    }
    if !stored? {
        // The link ended meanwhile, or was renewed.
        unlink::revoke_tokens(links, client, link.token_auth, &tokens).await;
    }
    let kept = store::find(&mut core.db.read().await?, link.supplier_link_id).await?;
    let kept = kept.filter(|kept| kept.status == LinkStatus::Active);
    Ok(kept.map_or(Ended::NotFound, |kept| {
        kept.or(core.clock.now(), Ended::Over)
    }))
}

async fn keep_once(
    links: &SupplierLinks,
    link: &LinkRow,
    lease_uuid: Uuid,
    tokens: &Tokens,
) -> Result<bool> {
    let core = &links.0.core;
    let mut tx = core.db.begin().await?;
    let sealed = sealed(core, link.link_uuid, tokens);
    let is_stored = store::refreshed(&mut tx, link.supplier_link_id, lease_uuid, sealed).await?;
    tx.commit_unaudited("the same link with other tokens; who reads them has an entry")
        .await?;
    Ok(is_stored)
}
