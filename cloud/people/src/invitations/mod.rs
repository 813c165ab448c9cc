//! Invitations: an e-mail, a role, and a mailed token. A user who presents the token and has the
//! e-mail joins the tenant, once. Only the hash of the token is stored; the token itself exists
//! only in the mail.

pub mod http;
mod store;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::mail::{self, MailContent, Part};
use hub_identity::authn::user::User;
use hub_identity::authn::{Authn, Member};
use hub_identity::authz::permission::{MANAGE, Role};
use hub_identity::authz::{Scope, require};
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::accounts::{self, Email};
use crate::tenants::{self, Locked, MemberRow, Membership};
pub use store::forget_person;
use store::{Invitation, NewInvitation, Offer};

const LIFETIME_SECS: i64 = 7 * 24 * 3600;
/// The most pending invitations of a tenant.
const MAX_PENDING: i64 = 200;
/// The newest this many PENDING or EXPIRED invitations are listed. That includes all PENDING ones,
/// since none of them is older than an EXPIRED one.
const MAX_LISTED: i64 = 500;
const MAX_CANDIDATES: i64 = 100;

const TENANT_DELETED: &str = "belongs to a deleted tenant";

/// The status of an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "InvitationStatus")]
pub enum Status {
    /// The invitation can be accepted.
    Pending,
    /// The invitation was accepted.
    Accepted,
    /// The invitation was revoked.
    Revoked,
    /// The invitation was not accepted in time.
    Expired,
}

/// Invites the user who reads the mail of this address.
pub async fn invite(
    core: &Core,
    scope: &Scope,
    user: &User,
    email: &str,
    role: Role,
) -> Result<Invitation> {
    let email = accounts::checked_email(email)?;
    mail::require(core)?;
    accounts::count_invitation(core, user.user_uuid, &email).await?;
    let now = core.clock.now();
    let Locked {
        mut tx,
        name,
        role: invited_by,
    } = tenants::locked(core, scope).await?;
    require(invited_by, MANAGE)?;
    tenants::protect_owners(invited_by, &[role])?;
    if tenants::has_member(&mut tx, scope, &email).await? {
        return Err(already_member());
    }
    if let Some(open) = store::open(&mut tx, scope, &email).await? {
        if open.status(now) == Status::Pending {
            let id = open.invitation_id;
            let message = format!(
                "this e-mail has the pending invitation {id}; resend or revoke that one first"
            );
            return Err(Error::conflict("ALREADY_INVITED", message));
        }
        store::revoke(&mut tx, scope, open.invitation_id, now).await?;
    }
    require_room(&mut tx, scope, now).await?;
    let offer = Offer {
        tenant_name: &name,
        email: &email,
        role,
    };
    let sent = send(core, &mut tx, user, &offer, now).await?;
    let new = NewInvitation {
        email: &email,
        role,
        invited_by_user_uuid: user.user_uuid,
        sent,
        now,
    };
    let invitation = store::insert(&mut tx, scope, new).await?;
    let audit = Audit::new(scope, "invitation.create", invitation.invitation_id, now);
    tx.commit(audit.changed(None, Some(json!({"email": email, "role": role}))))
        .await?;
    Ok(invitation)
}

/// Adds the user of a persona to the tenant. The user must not be a member yet.
pub async fn add_member(
    core: &Core,
    scope: &Scope,
    persona_uuid: PersonaUuid,
    role: Role,
) -> Result<MemberRow> {
    let now = core.clock.now();
    let Locked {
        mut tx,
        role: added_by,
        ..
    } = tenants::locked(core, scope).await?;
    require(added_by, MANAGE)?;
    tenants::protect_owners(added_by, &[role])?;
    let user_uuid = tenants::user_of_persona(&mut tx, scope, persona_uuid).await?;
    if tenants::membership(&mut tx, user_uuid, scope.tenant_uuid())
        .await?
        .is_some()
    {
        return Err(already_member());
    }
    let (_, persona_uuid) = admit(&mut tx, scope, user_uuid, role, now).await?;
    let member = tenants::member(&mut tx, scope, persona_uuid).await?;
    let audit = Audit::new(scope, "member.grant", persona_uuid, now);
    tx.commit(audit.changed(None, Some(json!({"role": role}))))
        .await?;
    Ok(member)
}

fn already_member() -> Error {
    Error::conflict(
        "ALREADY_MEMBER",
        "this person is a member already; change their role instead",
    )
}

async fn require_room(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<()> {
    match store::count_pending(tx, scope, now).await? {
        ..MAX_PENDING => Ok(()),
        _ => {
            let message = format!(
                "a tenant may have at most {MAX_PENDING} pending invitations; revoke some first"
            );
            Err(Error::conflict("TOO_MANY_INVITATIONS", message))
        }
    }
}

/// An issued token, whose mail is queued.
pub struct Sent {
    pub token_hash: Vec<u8>,
    pub mail_uuid: Uuid,
    pub expires_at: Timestamp,
}

async fn send(
    core: &Core,
    tx: &mut Tx,
    user: &User,
    offer: &Offer<'_>,
    now: Timestamp,
) -> Result<Sent> {
    let token = accounts::new_token();
    let expires_at = now.plus_secs(LIFETIME_SECS);
    let sender = accounts::email_of(tx, user.user_uuid).await?;
    let message = invitation_mail(core, sender.as_ref(), offer, &token, expires_at);
    let mail_uuid = mail::queue(core, tx, offer.email, message, expires_at, now).await?;
    Ok(Sent {
        token_hash: sealing::hash(&token),
        mail_uuid,
        expires_at,
    })
}

/// The text is the service's own. The name of the tenant is not, and stands apart, quoted; an
/// unverified e-mail is marked as such in the mail.
fn invitation_mail(
    core: &Core,
    sender: Option<&Email>,
    offer: &Offer<'_>,
    token: &str,
    expires_at: Timestamp,
) -> MailContent {
    let Offer {
        tenant_name,
        email,
        role,
    } = offer;
    let sender = match sender {
        Some(Email {
            address,
            is_verified: true,
        }) => address.clone(),
        Some(Email {
            address,
            is_verified: false,
        }) => {
            format!(
                "A user with the unverified e-mail address {address} (it may belong to somebody else)"
            )
        }
        None => "A user".to_owned(),
    };
    let (role, expires_at) = (role.name(), mail::format_time(expires_at));
    let mut parts = vec![
        Part::Text(format!(
            "{sender} invites you to join a tenant of this service as {role}. Its name is:"
        )),
        Part::Quote((*tenant_name).to_owned()),
        Part::Text(format!(
            "Log in with this e-mail, {email}, or register with it first. Then enter this token in \
             the console; it can be used once, until {expires_at}:"
        )),
        Part::Code(token.to_owned()),
        Part::Text("Or send it to the API, with the access token of your login:".to_owned()),
        mail::request(
            core,
            "/invitations/accept",
            Some("ACCESS_TOKEN"),
            &json!({"token": token}),
        ),
    ];
    if let Some(url) = &core.config.public_url {
        parts.push(Part::Text("The details of the invitation:".to_owned()));
        parts.push(Part::Link(format!("{url}/public/invitations/{token}")));
    }
    let note = "If you did not expect this invitation, ignore this e-mail. Nobody can join without the \
         token, and it expires.";
    parts.push(Part::Note(note.to_owned()));
    MailContent {
        subject: "Invitation to a tenant".to_owned(),
        parts,
    }
}

/// Sends the invitation with a new token and for another seven days. The previous token becomes
/// invalid.
pub async fn resend(
    core: &Core,
    scope: &Scope,
    user: &User,
    invitation_id: i64,
) -> Result<Invitation> {
    let email = find(&mut core.db.read().await?, scope, invitation_id)
        .await?
        .email;
    mail::require(core)?;
    accounts::count_invitation(core, user.user_uuid, &email).await?;
    let now = core.clock.now();
    let Locked {
        mut tx,
        name,
        role: resent_by,
    } = tenants::locked(core, scope).await?;
    require(resent_by, MANAGE)?;
    let invitation = find(&mut tx, scope, invitation_id).await?;
    tenants::protect_owners(resent_by, &[invitation.role])?;
    match invitation.status(now) {
        Status::Pending => {}
        Status::Expired => require_room(&mut tx, scope, now).await?,
        Status::Accepted => return Err(already_resolved("was accepted; it cannot be sent again")),
        Status::Revoked => {
            return Err(already_resolved(
                "was revoked; create a new invitation instead",
            ));
        }
    }
    mail::withdraw(&mut tx, invitation.mail_uuid).await?;
    let offer = Offer {
        tenant_name: &name,
        email: &invitation.email,
        role: invitation.role,
    };
    let sent = send(core, &mut tx, user, &offer, now).await?;
    let expires_at = sent.expires_at;
    store::renew(&mut tx, scope, invitation_id, sent, now).await?;
    tx.commit(Audit::new(scope, "invitation.resend", invitation_id, now))
        .await?;
    Ok(Invitation {
        sent_at: now,
        expires_at,
        ..invitation
    })
}

fn already_resolved(how: &str) -> Error {
    Error::conflict("INVITATION_SETTLED", format!("the invitation {how}"))
}

async fn find(conn: &mut Conn, scope: &Scope, invitation_id: i64) -> Result<Invitation> {
    store::find(conn, scope, invitation_id)
        .await?
        .ok_or_else(|| Error::not_found("invitation"))
}

/// Revokes an invitation. Repeating it changes nothing.
pub async fn revoke(core: &Core, scope: &Scope, invitation_id: i64) -> Result<()> {
    let now = core.clock.now();
    let Locked { mut tx, role, .. } = tenants::locked(core, scope).await?;
    require(role, MANAGE)?;
    let invitation = find(&mut tx, scope, invitation_id).await?;
    match invitation.status(now) {
        Status::Pending | Status::Expired => {}
        Status::Accepted => {
            return Err(already_resolved("was accepted; remove the member instead"));
        }
        Status::Revoked => return Ok(()),
    }
    store::revoke(&mut tx, scope, invitation_id, now).await?;
    mail::withdraw(&mut tx, invitation.mail_uuid).await?;
    tx.commit(Audit::new(scope, "invitation.revoke", invitation_id, now))
        .await
}

/// Gives a user a role and revokes their open invitation: otherwise a member who is removed later
/// could rejoin with it.
pub async fn admit(
    tx: &mut Tx,
    scope: &Scope,
    user_uuid: UserUuid,
    role: Role,
    now: Timestamp,
) -> Result<(Option<Member>, PersonaUuid)> {
    let (before, persona_uuid) = tenants::grant_role(tx, scope, user_uuid, role, now).await?;
    if before.is_none() {
        revoke_open(tx, scope, user_uuid, now).await?;
    }
    Ok((before, persona_uuid))
}

/// Gives the user of a persona a role in the tenant: adds a new member, or changes a member's role.
pub async fn grant_access(
    authn: &Authn,
    scope: &Scope,
    persona_uuid: PersonaUuid,
    role: Role,
) -> Result<MemberRow> {
    let now = authn.core.clock.now();
    let Locked {
        mut tx,
        role: granted_by,
        ..
    } = tenants::locked(&authn.core, scope).await?;
    require(granted_by, MANAGE)?;
    tenants::protect_owners(granted_by, &[role])?;
    let user_uuid = tenants::user_of_persona(&mut tx, scope, persona_uuid).await?;
    if let Some(before) = tenants::membership(&mut tx, user_uuid, scope.tenant_uuid()).await? {
        tenants::protect_owners(granted_by, &[before.role])?;
    }
    let (before, persona_uuid) = admit(&mut tx, scope, user_uuid, role, now).await?;
    let member = tenants::member(&mut tx, scope, persona_uuid).await?;
    if before.as_ref().is_some_and(|before| before.role != role) {
        authn.permissions.wait_out_lease_after(&mut tx);
    }
    let audit = Audit::new(scope, "member.grant", persona_uuid, now);
    tx.commit(audit.changed(
        before.as_ref().map(tenants::role_state),
        Some(json!({"role": role})),
    ))
    .await?;
    Ok(member)
}

/// Revokes the open invitation of a user who became a member in another way.
async fn revoke_open(
    tx: &mut Tx,
    scope: &Scope,
    user_uuid: UserUuid,
    now: Timestamp,
) -> Result<()> {
    let Some(email) = accounts::email_of(tx, user_uuid).await? else {
        return Ok(());
    };
    let Some(open) = store::open(tx, scope, &email.address).await? else {
        return Ok(());
    };
    store::revoke(tx, scope, open.invitation_id, now).await?;
    mail::withdraw(tx, open.mail_uuid).await
}

/// Revokes all open invitations of a tenant that is being deleted, and returns their number.
pub async fn revoke_all_open(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    let mails = store::revoke_all(tx, scope, now).await?;
    for mail_uuid in &mails {
        mail::withdraw(tx, *mail_uuid).await?;
    }
    Ok(mails.len() as u64)
}

/// Accepts an invitation: adds the user to the tenant, and returns the tenant as the user sees it.
/// Repeating it changes nothing.
pub async fn accept(core: &Core, user: &User, token: &str) -> Result<Membership> {
    let hash = sealing::hash(token);
    let unknown = || Error::not_found("invitation");
    let found = store::find_by_token(&mut core.db.read().await?, &hash)
        .await?
        .ok_or_else(unknown)?;
    let scope = Scope::of_person(user, found.tenant_uuid);
    let now = core.clock.now();
    // A concurrent change of the invitation commits before this lock or after this transaction,
    // never in between.
    let Some((mut tx, _)) = tenants::lock(core, &scope).await? else {
        return Err(gone(TENANT_DELETED));
    };
    let invitation = store::find_by_token(&mut tx, &hash)
        .await?
        .ok_or_else(unknown)?;
    let status = invitation.status(now);
    if let Some(how) = closed_reason(status) {
        return Err(gone(how));
    }
    let own = accounts::email_of(&mut tx, user.user_uuid).await?;
    if own.is_none_or(|own| own.address != invitation.email) {
        let message = "the invitation was sent to another e-mail; log in with that e-mail";
        return Err(Error::forbidden("OTHER_EMAIL", message));
    }
    let before = tenants::tenant_of(&mut tx, &scope, user.user_uuid).await?;
    if status == Status::Accepted {
        let is_caller = invitation.accepted_by_user_uuid == Some(user.user_uuid);
        return before
            .filter(|_| is_caller)
            .ok_or_else(|| gone("was already accepted"));
    }
    let id = invitation.invitation_id;
    store::accept(&mut tx, &scope, id, user.user_uuid, now).await?;
    accounts::verify_email(&mut tx, user.user_uuid, now).await?;
    let membership = match before {
        // An invitation never changes the role of an existing member.
        Some(membership) => membership,
        None => {
            admit(&mut tx, &scope, user.user_uuid, invitation.role, now).await?;
            let membership = tenants::tenant_of(&mut tx, &scope, user.user_uuid).await?;
            membership.ok_or_else(|| Error::internal("the admitted user is not a member"))?
        }
    };
    let audit = Audit::new(&scope, "invitation.accept", id, now);
    tx.commit(audit.changed(None, Some(json!({"role": membership.role}))))
        .await?;
    Ok(membership)
}

/// The reason why an invitation can be neither accepted nor shown; None if it can.
fn closed_reason(status: Status) -> Option<&'static str> {
    match status {
        Status::Revoked => Some("was revoked"),
        Status::Expired => Some("has expired; ask for another"),
        Status::Pending | Status::Accepted => None,
    }
}

fn gone(how: &str) -> Error {
    Error::new(
        axum::http::StatusCode::GONE,
        "INVITATION_GONE",
        format!("the invitation {how}"),
    )
}
