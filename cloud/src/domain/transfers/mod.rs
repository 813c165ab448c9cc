//! Ownership of a tenant on its way to a person or to a unit (another tenant). A request is settled once, under the lock of the tenant it is about; who has no
//! part in one never learns that it exists.

pub mod http;
mod store;

use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::app::App;
use crate::authn::user::{User, keys_are_nobody};
use crate::authz::permission::{OWN, Role};
use crate::authz::{Actor, Scope, require};
use crate::db::{Conn, Tx};
use crate::domain::audit::{self, Audit};
use crate::domain::tenants::{self, Locked};
use crate::error::{Error, Result};

/// A request that nobody settles ends by itself after this long.
const LIFETIME_SECS: i64 = 7 * 24 * 3600;
const MESSAGE_MAX_CHARS: usize = 1000;
/// Lists show the newest of more than this.
const MAX_LISTED: i64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    Pending,
    Accepted,
    Rejected,
    /// By whoever asked, by an OWNER, or because the tenant was deleted.
    Cancelled,
    /// Nobody answered within seven days.
    Expired,
}

impl Status {
    const ALL: [Self; 5] = [Self::Pending, Self::Accepted, Self::Rejected, Self::Cancelled, Self::Expired];

    const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Accepted => "ACCEPTED",
            Self::Rejected => "REJECTED",
            Self::Cancelled => "CANCELLED",
            Self::Expired => "EXPIRED",
        }
    }
}

/// As the database holds it.
impl TryFrom<String> for Status {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::ALL.into_iter().find(|status| status.name() == name).ok_or_else(|| format!("unknown status {name}"))
    }
}

/// Whom a tenant is offered to.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    Persona(PersonaUuid),
    Unit(TenantUuid),
}

/// A request as it is stored, with what people want to know of its tenant.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Transfer {
    pub request_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    pub tenant_name: String,
    pub requested_by_user_uuid: UserUuid,
    pub requested_by_persona_uuid: PersonaUuid,
    /// None of an account that no issuer vouches an address for.
    pub requested_by_email: Option<String>,
    pub target_persona_uuid: Option<PersonaUuid>,
    pub target_user_uuid: Option<UserUuid>,
    pub target_tenant_uuid: Option<TenantUuid>,
    pub message: Option<String>,
    #[sqlx(try_from = "String")]
    pub status: Status,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub settled_at: Option<Timestamp>,
}

impl Transfer {
    /// What has run out is no longer pending, whether or not anybody has noted it.
    fn is_pending(&self, now: Timestamp) -> bool {
        self.status == Status::Pending && self.expires_at > now
    }
}

/// What can be done to a pending request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    Accept,
    Reject,
    Cancel,
}

impl Move {
    const fn leads_to(self) -> Status {
        match self {
            Self::Accept => Status::Accepted,
            Self::Reject => Status::Rejected,
            Self::Cancel => Status::Cancelled,
        }
    }

    const fn action(self) -> &'static str {
        match self {
            Self::Accept => "transfer.accept",
            Self::Reject => "transfer.reject",
            Self::Cancel => "transfer.cancel",
        }
    }
}

/// Offers the tenant to somebody. An OWNER may have one offer open at a time, whoever made it.
pub async fn initiate(app: &App, scope: &Scope, target: Target, message: Option<&str>) -> Result<Transfer> {
    let Actor::User { user_uuid, persona_uuid } = *scope.actor() else { return Err(keys_are_nobody()) };
    let now = app.clock.now();
    let Locked { mut tx, role, .. } = tenants::locked(app, scope).await?;
    require(role, OWN)?;
    let target_user_uuid = match target {
        Target::Persona(persona_uuid) => Some(tenants::user_of_persona(&mut tx, scope, persona_uuid).await?),
        Target::Unit(unit) => {
            require_others(&mut tx, scope, unit, user_uuid).await?;
            None
        }
    };
    if target_user_uuid == Some(user_uuid) {
        return Err(Error::conflict("TRANSFER_TO_SELF", "you are an OWNER of this tenant; name somebody else"));
    }
    if let Some(pending) = store::pending(&mut tx, scope).await? {
        if pending.is_pending(now) {
            let message = "a transfer of this tenant is pending; have it answered, or cancel it, first";
            return Err(Error::conflict("TRANSFER_PENDING", message));
        }
        let expiry = expire(&mut tx, &pending, now).await?;
        audit::insert(&mut tx, expiry).await?;
    }
    let request_uuid = Uuid::now_v7();
    let new = store::NewTransfer {
        request_uuid,
        requested_by_user_uuid: user_uuid,
        requested_by_persona_uuid: persona_uuid,
        target,
        target_user_uuid,
        message,
        created_at: now,
        expires_at: now.plus_secs(LIFETIME_SECS),
    };
    store::insert(&mut tx, scope, new).await?;
    let transfer = store::find(&mut tx, request_uuid).await?.ok_or_else(not_found)?;
    let after = json!({
        "status": Status::Pending,
        "targetPersonaUuid": transfer.target_persona_uuid,
        "targetTenantUuid": transfer.target_tenant_uuid,
    });
    tx.commit(Audit::new(scope, "transfer.request", request_uuid, now).changed(None, Some(after))).await?;
    Ok(transfer)
}

/// 404 for a unit that is not there, 409 for one in which nobody but the caller could accept.
async fn require_others(conn: &mut Conn, scope: &Scope, unit: TenantUuid, user_uuid: UserUuid) -> Result<()> {
    if unit == scope.tenant_uuid() {
        return Err(Error::conflict("TRANSFER_TO_SELF", "this is the tenant itself; name another one"));
    }
    match tenants::has_others(conn, unit, user_uuid).await? {
        Some(true) => Ok(()),
        Some(false) => {
            let message = "you are the only member of that tenant, and so nobody could accept; name somebody else";
            Err(Error::conflict("TRANSFER_TO_SELF", message))
        }
        None => Err(Error::not_found("tenant")),
    }
}

fn not_found() -> Error {
    Error::not_found("transfer request")
}

/// Notes that a pending request has run out; answers the entry that says so.
async fn expire(tx: &mut Tx, transfer: &Transfer, now: Timestamp) -> Result<Audit> {
    store::settle(tx, transfer.request_uuid, Status::Expired, transfer.expires_at, None).await?;
    let scope = Scope::system("TRANSFERS", transfer.tenant_uuid);
    Ok(Audit::new(&scope, "transfer.expire", transfer.request_uuid, now))
}

/// Pending requests that the caller may answer: aimed at them, or at a tenant they are a member of. Newest first.
pub async fn incoming(conn: &mut Conn, user_uuid: UserUuid, now: Timestamp) -> Result<Vec<Transfer>> {
    store::incoming(conn, user_uuid, now, MAX_LISTED).await
}

/// Pending requests that the caller may cancel: their own, and those of tenants they are an OWNER of. Newest first.
pub async fn outgoing(conn: &mut Conn, user_uuid: UserUuid, now: Timestamp) -> Result<Vec<Transfer>> {
    store::outgoing(conn, user_uuid, now, MAX_LISTED).await
}

/// What somebody has to do with a request.
#[derive(Clone, Copy, Debug)]
struct Part {
    asked: bool,
    owns: bool,
    receives: bool,
}

impl Part {
    /// 403 for those who see the request, and may not do this to it.
    fn may(self, step: Move) -> Result<()> {
        let message = match (step, self) {
            (Move::Cancel, Self { asked: true, .. } | Self { owns: true, .. }) => return Ok(()),
            (Move::Cancel, _) => "only whoever asked for the transfer, or an OWNER of the tenant, may cancel it",
            // Also where they are a member of the unit that is to receive.
            (_, Self { asked: true, .. }) => {
                "you asked for this transfer: others accept or reject it; you may cancel it"
            }
            (_, Self { receives: true, .. }) => return Ok(()),
            _ => "only those whom the tenant is offered to may accept or reject it; you may cancel it",
        };
        Err(Error::forbidden("PERMISSION_DENIED", message))
    }
}

/// The request and the caller's part in it; 404 when they have none.
async fn find(conn: &mut Conn, user: &User, request_uuid: Uuid) -> Result<(Transfer, Part)> {
    let transfer = store::find(conn, request_uuid).await?.ok_or_else(not_found)?;
    let in_tenant = tenants::membership(conn, user.user_uuid, transfer.tenant_uuid).await?;
    let receives = match transfer.target_tenant_uuid {
        Some(unit) => tenants::membership(conn, user.user_uuid, unit).await?.is_some(),
        None => transfer.target_user_uuid == Some(user.user_uuid),
    };
    let part = Part {
        asked: transfer.requested_by_user_uuid == user.user_uuid,
        owns: in_tenant.is_some_and(|member| member.role == Role::Owner),
        receives,
    };
    match part {
        Part { asked: false, owns: false, receives: false } => Err(not_found()),
        _ => Ok((transfer, part)),
    }
}

/// Accepts, rejects or cancels. Of any number who try at once, one does, and the others are told that it is done.
pub async fn settle(app: &App, user: &User, request_uuid: Uuid, step: Move) -> Result<Transfer> {
    // Looked at first without the lock: who has no part in it holds nobody up.
    let (transfer, _) = find(&mut app.db.read().await?, user, request_uuid).await?;
    let scope = Scope::of_person(user, transfer.tenant_uuid);
    let (mut tx, _) = tenants::lock(app, &scope).await?.ok_or_else(not_found)?;
    let (transfer, part) = find(&mut tx, user, request_uuid).await?;
    part.may(step)?;
    let now = app.clock.now();
    if transfer.status == Status::Pending && !transfer.is_pending(now) {
        let expiry = expire(&mut tx, &transfer, now).await?;
        tx.commit(expiry).await?;
        return Err(settled(Status::Expired));
    }
    let status = step.leads_to();
    if transfer.status != Status::Pending
        || !store::settle(&mut tx, request_uuid, status, now, Some(user.user_uuid)).await?
    {
        return Err(settled(transfer.status));
    }
    let audit = Audit::new(&scope, step.action(), request_uuid, now);
    if step == Move::Accept {
        let (before, after) = hand_over(&mut tx, &scope, &transfer, user.user_uuid, now).await?;
        tx.commit(audit.changed(Some(before), Some(after))).await?;
        app.permissions.settle().await;
    } else {
        tx.commit(audit.changed(Some(json!({"status": Status::Pending})), Some(json!({"status": status})))).await?;
    }
    Ok(Transfer { status, settled_at: Some(now), ..transfer })
}

/// Makes whoever accepts an OWNER and whoever asked an ADMIN; answers what was before and what is now.
async fn hand_over(
    tx: &mut Tx,
    scope: &Scope,
    transfer: &Transfer,
    to: UserUuid,
    now: Timestamp,
) -> Result<(serde_json::Value, serde_json::Value)> {
    let from = transfer.requested_by_user_uuid;
    let giver = tenants::membership(tx, from, transfer.tenant_uuid).await?;
    if giver.is_none_or(|giver| giver.role != Role::Owner) {
        let message = "whoever asked for this transfer is no OWNER of the tenant any more; an OWNER has to ask anew";
        return Err(Error::conflict("REQUESTER_NOT_OWNER", message));
    }
    let (receiver, receiver_persona) = tenants::give_role(tx, scope, to, Role::Owner, now).await?;
    let (_, giver_persona) = tenants::give_role(tx, scope, from, Role::Admin, now).await?;
    let state = |status: Status, from: Role, to: Option<Role>| {
        let from = json!({"personaUuid": giver_persona, "role": from});
        json!({"status": status, "from": from, "to": {"personaUuid": receiver_persona, "role": to}})
    };
    let before = state(Status::Pending, Role::Owner, receiver.map(|receiver| receiver.role));
    Ok((before, state(Status::Accepted, Role::Admin, Some(Role::Owner))))
}

fn settled(status: Status) -> Error {
    let (code, message) = match status {
        Status::Accepted => ("TRANSFER_ACCEPTED", "this transfer is ACCEPTED already"),
        Status::Rejected => ("TRANSFER_REJECTED", "this transfer is REJECTED already; an OWNER may ask anew"),
        Status::Expired => ("TRANSFER_EXPIRED", "this transfer is EXPIRED; an OWNER may ask anew"),
        Status::Pending | Status::Cancelled => {
            ("TRANSFER_CANCELLED", "this transfer is CANCELLED already; an OWNER may ask anew")
        }
    };
    Error::conflict(code, message)
}

/// Cancels what is pending of a tenant that goes; answers how many that are. What is aimed at it is its owner's to cancel.
pub async fn cancel_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    store::cancel_all(tx, scope, now).await
}
