//! Transfers of a tenant's ownership to a person or to a unit (another tenant). A request is
//! resolved once, under the lock of its tenant. Users who are not involved in a request never learn
//! that it exists.

pub mod http;
mod store;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::audit::Actor;
use hub_core::audit::{self, Audit};
use hub_identity::authn::Authn;
use hub_identity::authn::user::{User, person_required};
use hub_identity::authz::permission::{OWN, Role};
use hub_identity::authz::{Scope, require};
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid, text_enum};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::invitations;
use crate::tenants::{self, Locked};
pub use store::{cancel_all, forget_person};

/// A request expires after this long.
const LIFETIME_SECS: i64 = 7 * 24 * 3600;
const MESSAGE_MAX_CHARS: usize = 1000;
/// Lists show the newest this many.
const MAX_LISTED: i64 = 1000;

/// The status of a transfer request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "TransferRequestStatus")]
pub enum Status {
    /// The request awaits a response.
    Pending,
    /// The tenant has another owner.
    Accepted,
    /// The request was rejected.
    Rejected,
    /// The requester or an OWNER cancelled it, or the tenant was deleted.
    Cancelled,
    /// The request had no response within seven days.
    Expired,
}

text_enum!(Status {
    Pending = "PENDING",
    Accepted = "ACCEPTED",
    Rejected = "REJECTED",
    Cancelled = "CANCELLED",
    Expired = "EXPIRED",
});

/// The person or unit that a tenant is offered to.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    Persona(PersonaUuid),
    Unit(TenantUuid),
}

/// A stored request, with the name of its tenant and the e-mail of its requester.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Transfer {
    pub request_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    pub tenant_name: String,
    pub requested_by_user_uuid: UserUuid,
    pub requested_by_persona_uuid: PersonaUuid,
    /// The requester's e-mail; None if it is hidden from the reader, or the identity provider has
    /// none.
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
    /// An expired request is not pending, whether or not the expiry was recorded.
    fn is_pending(&self, now: Timestamp) -> bool {
        self.status == Status::Pending && self.expires_at > now
    }
}

/// A step that resolves a pending request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Accept,
    Reject,
    Cancel,
}

impl Step {
    const fn resulting_status(self) -> Status {
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

/// Offers the tenant to a person or unit. A tenant has at most one pending offer, whichever OWNER
/// created it.
pub async fn initiate(
    authn: &Authn,
    scope: &Scope,
    target: Target,
    message: Option<&str>,
) -> Result<Transfer> {
    let Actor::User {
        user_uuid,
        persona_uuid,
    } = *scope.actor()
    else {
        return Err(person_required());
    };
    let now = authn.core.clock.now();
    let Locked { mut tx, role, .. } = tenants::locked(&authn.core, scope).await?;
    require(role, OWN)?;
    let target_user_uuid = match target {
        Target::Persona(persona_uuid) => {
            Some(tenants::user_of_persona(&mut tx, scope, persona_uuid).await?)
        }
        Target::Unit(unit) => {
            require_others(&mut tx, scope, unit, user_uuid).await?;
            None
        }
    };
    if target_user_uuid == Some(user_uuid) {
        return Err(Error::conflict(
            "TRANSFER_TO_SELF",
            "you cannot transfer a tenant to yourself; name somebody else",
        ));
    }
    if let Some(pending) = store::pending(&mut tx, user_uuid, scope).await? {
        if pending.is_pending(now) {
            let message =
                "a transfer of this tenant is pending; wait for its answer, or cancel it first";
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
    let transfer = store::find(&mut tx, user_uuid, request_uuid)
        .await?
        .ok_or_else(not_found)?;
    let after = json!({
        "status": Status::Pending,
        "targetPersonaUuid": transfer.target_persona_uuid,
        "targetTenantUuid": transfer.target_tenant_uuid,
    });
    tx.commit(Audit::new(scope, "transfer.request", request_uuid, now).changed(None, Some(after)))
        .await?;
    Ok(transfer)
}

/// Fails with 404 for an unknown unit, and with 409 for one in which only the caller could accept.
async fn require_others(
    conn: &mut Conn,
    scope: &Scope,
    unit: TenantUuid,
    user_uuid: UserUuid,
) -> Result<()> {
    if unit == scope.tenant_uuid() {
        return Err(Error::conflict(
            "TRANSFER_TO_SELF",
            "a tenant cannot be transferred to itself; name another one",
        ));
    }
    match tenants::has_others(conn, unit, user_uuid).await? {
        Some(true) => Ok(()),
        Some(false) => {
            let message = "you are the only member of that tenant, so nobody could accept; name somebody else";
            Err(Error::conflict("TRANSFER_TO_SELF", message))
        }
        None => Err(Error::not_found("tenant")),
    }
}

fn not_found() -> Error {
    Error::not_found("transfer request")
}

/// Records that a pending request has expired. Returns the audit entry.
async fn expire(tx: &mut Tx, transfer: &Transfer, now: Timestamp) -> Result<Audit> {
    store::resolve(
        tx,
        transfer.request_uuid,
        Status::Expired,
        transfer.expires_at,
        None,
    )
    .await?;
    let scope = Scope::system("TRANSFERS", transfer.tenant_uuid);
    Ok(Audit::new(
        &scope,
        "transfer.expire",
        transfer.request_uuid,
        now,
    ))
}

/// Pending requests that the caller may answer: directed to them, or to a tenant they are a member
/// of. Newest first.
pub async fn incoming(
    conn: &mut Conn,
    user_uuid: UserUuid,
    now: Timestamp,
) -> Result<Vec<Transfer>> {
    store::incoming(conn, user_uuid, now, MAX_LISTED).await
}

/// Pending requests that the caller may cancel: their own, and those of tenants they own. Newest
/// first.
pub async fn outgoing(
    conn: &mut Conn,
    user_uuid: UserUuid,
    now: Timestamp,
) -> Result<Vec<Transfer>> {
    store::outgoing(conn, user_uuid, now, MAX_LISTED).await
}

/// A user's involvement in a request.
#[derive(Clone, Copy, Debug)]
struct Involvement {
    is_requester: bool,
    is_owner: bool,
    is_recipient: bool,
}

impl Involvement {
    /// Fails with 403 for users who may see the request, but not take this step.
    fn require(self, step: Step) -> Result<()> {
        let message = match (step, self) {
            (
                Step::Cancel,
                Self {
                    is_requester: true, ..
                }
                | Self { is_owner: true, .. },
            ) => return Ok(()),
            (Step::Cancel, _) => {
                "only the requester or an OWNER of the tenant may cancel the transfer"
            }
            // Applies even if they are a member of the receiving unit.
            (
                _,
                Self {
                    is_requester: true, ..
                },
            ) => {
                "you requested this transfer: only others may accept or reject it; you may cancel it"
            }
            (
                _,
                Self {
                    is_recipient: true, ..
                },
            ) => return Ok(()),
            _ => "only the recipient may accept or reject the transfer; you may cancel it",
        };
        Err(Error::forbidden("PERMISSION_DENIED", message))
    }
}

/// The request and the caller's involvement in it; 404 if the caller is not involved.
async fn find(conn: &mut Conn, user: &User, request_uuid: Uuid) -> Result<(Transfer, Involvement)> {
    let transfer = store::find(conn, user.user_uuid, request_uuid)
        .await?
        .ok_or_else(not_found)?;
    let in_tenant = tenants::membership(conn, user.user_uuid, transfer.tenant_uuid).await?;
    let is_recipient = match transfer.target_tenant_uuid {
        Some(unit) => tenants::membership(conn, user.user_uuid, unit)
            .await?
            .is_some(),
        None => transfer.target_user_uuid == Some(user.user_uuid),
    };
    let involvement = Involvement {
        is_requester: transfer.requested_by_user_uuid == user.user_uuid,
        is_owner: in_tenant.is_some_and(|member| member.role == Role::Owner),
        is_recipient,
    };
    match involvement {
        Involvement {
            is_requester: false,
            is_owner: false,
            is_recipient: false,
        } => Err(not_found()),
        _ => Ok((transfer, involvement)),
    }
}

/// Accepts, rejects or cancels a request. Of concurrent calls one succeeds; the others get the
/// resulting status as an error.
pub async fn resolve(
    authn: &Authn,
    user: &User,
    request_uuid: Uuid,
    step: Step,
) -> Result<Transfer> {
    // First read without the lock, so that an uninvolved caller does not block anybody.
    let (transfer, _) = find(&mut authn.core.db.read().await?, user, request_uuid).await?;
    let scope = Scope::of_person(user, transfer.tenant_uuid);
    let (mut tx, _) = tenants::lock(&authn.core, &scope)
        .await?
        .ok_or_else(not_found)?;
    let (transfer, involvement) = find(&mut tx, user, request_uuid).await?;
    involvement.require(step)?;
    let now = authn.core.clock.now();
    if transfer.status == Status::Pending && !transfer.is_pending(now) {
        let expiry = expire(&mut tx, &transfer, now).await?;
        tx.commit(expiry).await?;
        return Err(already_resolved(Status::Expired));
    }
    let status = step.resulting_status();
    if transfer.status != Status::Pending
        || !store::resolve(&mut tx, request_uuid, status, now, Some(user.user_uuid)).await?
    {
        return Err(already_resolved(transfer.status));
    }
    let audit = Audit::new(&scope, step.action(), request_uuid, now);
    if step == Step::Accept {
        let (before, after) =
            transfer_ownership(&mut tx, &scope, &transfer, user.user_uuid, now).await?;
        authn.permissions.wait_out_lease_after(&mut tx);
        tx.commit(audit.changed(Some(before), Some(after))).await?;
    } else {
        tx.commit(audit.changed(
            Some(json!({"status": Status::Pending})),
            Some(json!({"status": status})),
        ))
        .await?;
    }
    Ok(Transfer {
        status,
        settled_at: Some(now),
        ..transfer
    })
}

/// Makes the accepting user an OWNER and the requester an ADMIN. Returns the states before and
/// after, for the audit log.
async fn transfer_ownership(
    tx: &mut Tx,
    scope: &Scope,
    transfer: &Transfer,
    to: UserUuid,
    now: Timestamp,
) -> Result<(serde_json::Value, serde_json::Value)> {
    let from = transfer.requested_by_user_uuid;
    let requester = tenants::membership(tx, from, transfer.tenant_uuid).await?;
    if requester.is_none_or(|requester| requester.role != Role::Owner) {
        let message = "the requester is no longer an OWNER of the tenant; an OWNER has to request a new transfer";
        return Err(Error::conflict("REQUESTER_NOT_OWNER", message));
    }
    let (recipient, recipient_persona) =
        invitations::admit(tx, scope, to, Role::Owner, now).await?;
    let (_, requester_persona) = invitations::admit(tx, scope, from, Role::Admin, now).await?;
    let state = |status: Status, from: Role, to: Option<Role>| {
        let from = json!({"personaUuid": requester_persona, "role": from});
        json!({"status": status, "from": from, "to": {"personaUuid": recipient_persona, "role": to}})
    };
    let before = state(
        Status::Pending,
        Role::Owner,
        recipient.map(|recipient| recipient.role),
    );
    Ok((
        before,
        state(Status::Accepted, Role::Admin, Some(Role::Owner)),
    ))
}

fn already_resolved(status: Status) -> Error {
    let (code, message) = match status {
        Status::Accepted => ("TRANSFER_ACCEPTED", "this transfer is already ACCEPTED"),
        Status::Rejected => (
            "TRANSFER_REJECTED",
            "this transfer is already REJECTED; an OWNER may request a new one",
        ),
        Status::Expired => (
            "TRANSFER_EXPIRED",
            "this transfer is EXPIRED; an OWNER may request a new one",
        ),
        Status::Pending | Status::Cancelled => (
            "TRANSFER_CANCELLED",
            "this transfer is already CANCELLED; an OWNER may request a new one",
        ),
    };
    Error::conflict(code, message)
}
