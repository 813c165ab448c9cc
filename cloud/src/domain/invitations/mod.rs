//! Invitations: an e-mail, a role, and a token that was mailed. Whoever shows the token and has the e-mail comes in, once. Only the token's hash is
//! stored, and nothing but the mail ever holds the token.

pub mod http;
mod store;

use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::app::App;
use crate::authn::user::User;
use crate::authz::permission::{MANAGE, Role};
use crate::authz::{Scope, require};
use crate::db::{Conn, Tx};
use crate::domain::accounts;
use crate::domain::audit::Audit;
use crate::domain::tenants::{self, Locked, MemberRow, Membership};
use crate::error::{Error, Result};
use crate::mail::{self, Letter, Part};
use crate::{sealing, tasks};
use store::{Invitation, NewInvitation, Offer};

const LIFETIME_SECS: i64 = 7 * 24 * 3600;
/// Invitations of a tenant that are PENDING at once.
const MAX_PENDING: i64 = 200;
/// Of those that are PENDING or EXPIRED, the newest this many are listed: all that are PENDING, since none of them is older than one that is EXPIRED.
const MAX_LISTED: i64 = 500;
const MAX_CANDIDATES: i64 = 100;

const TENANT_DELETED: &str = "is to a tenant that is deleted";

/// Where an invitation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// It can be accepted.
    Pending,
    Accepted,
    Revoked,
    Expired,
}

/// Invites whoever reads the mail of this address.
pub async fn invite(app: &App, scope: &Scope, user: &User, email: &str, role: Role) -> Result<Invitation> {
    let email = accounts::checked_email(email)?;
    mail::require(app)?;
    accounts::count_invitation(app, user.user_uuid, &email).await?;
    let now = app.clock.now();
    let Locked { mut tx, name, role: invited_by } = tenants::locked(app, scope).await?;
    require(invited_by, MANAGE)?;
    tenants::leave_owners_alone(invited_by, &[role])?;
    if tenants::has_member(&mut tx, scope, &email).await? {
        return Err(already_member());
    }
    if let Some(open) = store::open(&mut tx, scope, &email).await? {
        if open.status(now) == Status::Pending {
            let id = open.invitation_id;
            let message =
                format!("this e-mail is invited already, by invitation {id}; resend that one, or revoke it first");
            return Err(Error::conflict("ALREADY_INVITED", message));
        }
        store::revoke(&mut tx, scope, open.invitation_id, now).await?;
    }
    require_room(&mut tx, scope, now).await?;
    let offer = Offer { tenant_name: &name, email: &email, role };
    let sent = send(app, &mut tx, user, &offer, now).await?;
    let new = NewInvitation { email: &email, role, invited_by_user_uuid: user.user_uuid, sent, now };
    let invitation = store::insert(&mut tx, scope, new).await?;
    let audit = Audit::new(scope, "invitation.create", invitation.invitation_id, now);
    tx.commit(audit.changed(None, Some(json!({"email": email, "role": role})))).await?;
    tasks::wake(app);
    Ok(invitation)
}

/// Lets the person behind a persona in at once, who must not be a member yet.
pub async fn let_in(app: &App, scope: &Scope, persona_uuid: PersonaUuid, role: Role) -> Result<MemberRow> {
    let now = app.clock.now();
    let Locked { mut tx, role: let_in_by, .. } = tenants::locked(app, scope).await?;
    require(let_in_by, MANAGE)?;
    tenants::leave_owners_alone(let_in_by, &[role])?;
    let user_uuid = tenants::user_of_persona(&mut tx, scope, persona_uuid).await?;
    if tenants::membership(&mut tx, user_uuid, scope.tenant_uuid()).await?.is_some() {
        return Err(already_member());
    }
    let (_, persona_uuid) = tenants::give_role(&mut tx, scope, user_uuid, role, now).await?;
    let member = tenants::member(&mut tx, scope, persona_uuid).await?;
    let audit = Audit::new(scope, "member.grant", persona_uuid, now);
    tx.commit(audit.changed(None, Some(json!({"role": role})))).await?;
    Ok(member)
}

fn already_member() -> Error {
    Error::conflict("ALREADY_MEMBER", "this person is a member already; change their role instead")
}

async fn require_room(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<()> {
    match store::count_pending(tx, scope, now).await? {
        ..MAX_PENDING => Ok(()),
        _ => {
            let message =
                format!("a tenant may have {MAX_PENDING} pending invitations; revoke some that nobody answers");
            Err(Error::conflict("TOO_MANY_INVITATIONS", message))
        }
    }
}

/// A token on its way.
pub struct Sent {
    pub token_hash: Vec<u8>,
    pub mail_uuid: Uuid,
    pub expires_at: Timestamp,
}

async fn send(app: &App, tx: &mut Tx, user: &User, offer: &Offer<'_>, now: Timestamp) -> Result<Sent> {
    let token = accounts::new_token();
    let expires_at = now.plus_secs(LIFETIME_SECS);
    let sender = accounts::email_of(tx, user.user_uuid).await?;
    let letter = letter(app, sender.as_deref(), offer, &token, expires_at);
    let mail_uuid = mail::queue(app, tx, offer.email, letter, expires_at, now).await?;
    Ok(Sent { token_hash: sealing::hash(&token), mail_uuid, expires_at })
}

fn letter(app: &App, sender: Option<&str>, offer: &Offer<'_>, token: &str, expires_at: Timestamp) -> Letter {
    let Offer { tenant_name, email, role } = offer;
    let sender = sender.unwrap_or("Somebody who runs it");
    let (role, expires_at) = (role.name(), mail::spoken(expires_at));
    let mut parts = vec![
        Part::Text(format!("{sender} invites you to {tenant_name}, as {role}.")),
        Part::Text(format!(
            "Log in with this e-mail, {email}, or register with it first. Then give this token to your console; it works once, until {expires_at}:"
        )),
        Part::Code(token.to_owned()),
        Part::Text("Or send it yourself, with the access token of your login:".to_owned()),
        mail::request(app, "/invitations/accept", Some("ACCESS_TOKEN"), &json!({"token": token})),
    ];
    if let Some(url) = &app.config.public_url {
        parts.push(Part::Text("The invitation as the service knows it:".to_owned()));
        parts.push(Part::Link(format!("{url}/public/invitations/{token}")));
    }
    let note = "If you do not know the sender, do nothing: without the token nobody comes in, and it ends by itself.";
    parts.push(Part::Note(note.to_owned()));
    Letter { subject: format!("Invitation to {tenant_name}"), parts }
}

/// Sends the invitation again, with another token and for another seven days. The token before it is no longer any.
pub async fn resend(app: &App, scope: &Scope, user: &User, invitation_id: i64) -> Result<Invitation> {
    let email = find(&mut app.db.read().await?, scope, invitation_id).await?.email;
    mail::require(app)?;
    accounts::count_invitation(app, user.user_uuid, &email).await?;
    let now = app.clock.now();
    let Locked { mut tx, name, role: resent_by } = tenants::locked(app, scope).await?;
    require(resent_by, MANAGE)?;
    let invitation = find(&mut tx, scope, invitation_id).await?;
    tenants::leave_owners_alone(resent_by, &[invitation.role])?;
    match invitation.status(now) {
        Status::Pending => {}
        Status::Expired => require_room(&mut tx, scope, now).await?,
        Status::Accepted => return Err(settled("was accepted; there is nothing left to send")),
        Status::Revoked => return Err(settled("was revoked; invite anew instead")),
    }
    mail::withdraw(&mut tx, invitation.mail_uuid).await?;
    let offer = Offer { tenant_name: &name, email: &invitation.email, role: invitation.role };
    let sent = send(app, &mut tx, user, &offer, now).await?;
    let expires_at = sent.expires_at;
    store::renew(&mut tx, scope, invitation_id, sent, now).await?;
    tx.commit(Audit::new(scope, "invitation.resend", invitation_id, now)).await?;
    tasks::wake(app);
    Ok(Invitation { sent_at: now, expires_at, ..invitation })
}

fn settled(how: &str) -> Error {
    Error::conflict("INVITATION_SETTLED", format!("the invitation {how}"))
}

async fn find(conn: &mut Conn, scope: &Scope, invitation_id: i64) -> Result<Invitation> {
    store::find(conn, scope, invitation_id).await?.ok_or_else(|| Error::not_found("invitation"))
}

/// Takes an invitation back. One that is revoked already stays so.
pub async fn revoke(app: &App, scope: &Scope, invitation_id: i64) -> Result<()> {
    let now = app.clock.now();
    let Locked { mut tx, role, .. } = tenants::locked(app, scope).await?;
    require(role, MANAGE)?;
    let invitation = find(&mut tx, scope, invitation_id).await?;
    match invitation.status(now) {
        Status::Pending | Status::Expired => {}
        Status::Accepted => return Err(settled("was accepted; remove the member instead")),
        Status::Revoked => return Ok(()),
    }
    store::revoke(&mut tx, scope, invitation_id, now).await?;
    mail::withdraw(&mut tx, invitation.mail_uuid).await?;
    tx.commit(Audit::new(scope, "invitation.revoke", invitation_id, now)).await
}

/// Takes back what is open for somebody who is let in another way.
pub async fn withdraw(tx: &mut Tx, scope: &Scope, user_uuid: UserUuid, now: Timestamp) -> Result<()> {
    let Some(email) = accounts::email_of(tx, user_uuid).await? else { return Ok(()) };
    let Some(open) = store::open(tx, scope, &email).await? else { return Ok(()) };
    store::revoke(tx, scope, open.invitation_id, now).await?;
    mail::withdraw(tx, open.mail_uuid).await
}

/// Takes back all that is open, of a tenant that ends; answers how much that is.
pub async fn withdraw_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    let mails = store::revoke_all(tx, scope, now).await?;
    for mail_uuid in &mails {
        mail::withdraw(tx, *mail_uuid).await?;
    }
    Ok(mails.len() as u64)
}

/// Lets the person in whom the token was mailed to; answers the tenant as they see it. Accepting once more changes nothing.
pub async fn accept(app: &App, user: &User, token: &str) -> Result<Membership> {
    let hash = sealing::hash(token);
    let unknown = || Error::not_found("invitation");
    let found = store::find_by_token(&mut app.db.read().await?, &hash).await?.ok_or_else(unknown)?;
    let scope = Scope::of_person(user, found.tenant_uuid);
    let now = app.clock.now();
    // What the tenant's owners do to the invitation at this moment comes before or after, never in between.
    let Some((mut tx, _)) = tenants::lock(app, &scope).await? else { return Err(gone(TENANT_DELETED)) };
    let invitation = store::find_by_token(&mut tx, &hash).await?.ok_or_else(unknown)?;
    let status = invitation.status(now);
    if let Some(how) = over(status) {
        return Err(gone(how));
    }
    if accounts::email_of(&mut tx, user.user_uuid).await?.as_deref() != Some(invitation.email.as_str()) {
        let message = "the invitation is for another e-mail than yours; log in with the e-mail it was sent to";
        return Err(Error::forbidden("OTHER_EMAIL", message));
    }
    let before = tenants::tenant_of(&mut tx, &scope, user.user_uuid).await?;
    if status == Status::Accepted {
        let is_caller = invitation.accepted_by_user_uuid == Some(user.user_uuid);
        return before.filter(|_| is_caller).ok_or_else(|| gone("was accepted already"));
    }
    let id = invitation.invitation_id;
    store::accept(&mut tx, &scope, id, user.user_uuid, now).await?;
    let membership = match before {
        // It was an offer to come in, not to be another than one is.
        Some(membership) => membership,
        None => {
            tenants::give_role(&mut tx, &scope, user.user_uuid, invitation.role, now).await?;
            let membership = tenants::tenant_of(&mut tx, &scope, user.user_uuid).await?;
            membership.ok_or_else(|| Error::internal("who was let in is no member"))?
        }
    };
    let audit = Audit::new(&scope, "invitation.accept", id, now);
    tx.commit(audit.changed(None, Some(json!({"role": membership.role})))).await?;
    Ok(membership)
}

/// Why an invitation can be neither accepted nor looked at.
fn over(status: Status) -> Option<&'static str> {
    match status {
        Status::Revoked => Some("was revoked"),
        Status::Expired => Some("has expired; ask for another"),
        Status::Pending | Status::Accepted => None,
    }
}

fn gone(how: &str) -> Error {
    Error::new(axum::http::StatusCode::GONE, "INVITATION_GONE", format!("the invitation {how}"))
}
