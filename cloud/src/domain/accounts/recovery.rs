//! Setting another password: by whoever knows the current one, or by whoever reads the account's mail. Either ends the logins there were, since
//! somebody else may hold them. Whether an e-mail has an account is never told: the look-up is background work, and the answer is given before it.

use std::net::IpAddr;

use hub_protocol::{Timestamp, UserUuid};
use serde_json::{Value, json};
use uuid::Uuid;

use super::throttle::{self, Subject};
use super::{new_token, store};
use crate::app::App;
use crate::authn::invalid_token;
use crate::authn::user::{Session, User};
use crate::db::Db;
use crate::domain::audit::Audit;
use crate::error::{Error, Result};
use crate::mail::{self, Letter, Part};
use crate::tasks::{self, Done, NewTask};

/// The kind of work that looks for the account and mails the token.
pub const FORGOT: &str = "password.forgot";

const RESET_LIFETIME_SECS: i64 = 3600;
/// Tokens of one account in force at once: more mails than that are not sent.
const MAX_RESETS: i64 = 3;

/// Sets another password for a person who knows the current one. Of their logins only this one stays.
pub async fn change_password(
    app: &App,
    user: &User,
    address: Option<IpAddr>,
    current_password: String,
    new_password: String,
) -> Result<()> {
    let (credentials, subjects) = {
        let mut conn = app.db.read().await?;
        let credentials = store::credentials(&mut conn, user.user_uuid).await?.ok_or_else(invalid_token)?;
        if !credentials.has_password() {
            let message = format!("this account has no password here; {} is where it logs in", credentials.issuer);
            return Err(Error::conflict("NO_PASSWORD", message));
        }
        let account = Subject::account(&credentials.email);
        let subjects: Vec<Subject> = [Some(account), address.map(Subject::address)].into_iter().flatten().collect();
        throttle::check(&mut conn, &subjects, app.clock.now()).await?;
        (credentials, subjects)
    };
    // Counted as a login is: a stolen access token is no way to guess faster.
    let turn = app.passwords.turn().await?;
    throttle::count(&app.db, &subjects, app.clock.now()).await?;
    if !turn.verify(current_password, Some(credentials.password_hash.clone())).await? {
        return Err(wrong_password());
    }
    let password_hash = app.passwords.turn().await?.hash(new_password).await?;
    let now = app.clock.now();
    let this_login = match user.session {
        Session::Login(login_uuid) => Some(login_uuid),
        Session::External => None,
    };
    let mut tx = app.db.begin().await?;
    // Somebody who changed it at the same moment was first, and ended this login.
    if !store::lock_password(&mut tx, user.user_uuid, &credentials.password_hash).await? {
        return Err(wrong_password());
    }
    store::set_password(&mut tx, user.user_uuid, &password_hash).await?;
    store::delete_resets(&mut tx, user.user_uuid).await?;
    let ended = store::revoke_logins(&mut tx, user.user_uuid, this_login, now).await?;
    if let [account, address @ ..] = subjects.as_slice() {
        throttle::forgive(&mut tx, account, address.first()).await?;
    }
    let audit = Audit::by_user(user, "password.change", user.user_uuid, now).with(json!({"endedLogins": ended}));
    tx.commit(audit).await?;
    app.permissions.settle().await;
    Ok(())
}

fn wrong_password() -> Error {
    Error::forbidden("WRONG_PASSWORD", "the current password is wrong")
}

/// Has a token mailed that sets a new password, if there is such an account.
pub async fn forgot_password(app: &App, address: Option<IpAddr>, email: &str) -> Result<()> {
    super::require_builtin_login(app)?;
    let email = super::checked_email(email)?;
    mail::require(app)?;
    let now = app.clock.now();
    let subjects = [Some(Subject::resets(&email)), address.map(Subject::address)];
    throttle::count(&app.db, &subjects.into_iter().flatten().collect::<Vec<_>>(), now).await?;
    let mut tx = app.db.begin().await?;
    let task = NewTask { kind: FORGOT, payload: json!({"email": email}), due_at: now, dedup_key: None };
    tasks::enqueue(&mut tx, task, now).await?;
    tx.commit_unaudited("whether anything comes of it is seen later").await?;
    tasks::wake(app);
    Ok(())
}

/// The work behind [`forgot_password`].
pub async fn perform_forgot(app: &App, payload: &Value) -> Result<Done> {
    let email = payload["email"].as_str().ok_or_else(|| Error::internal("the work names no e-mail"))?;
    let account = store::account(&mut app.db.read().await?, email).await?;
    let Some(account) = account else { return Ok(Done::Finished) };
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    store::lock_user(&mut tx, account.user_uuid).await?;
    if store::count_resets(&mut tx, account.user_uuid, now).await? >= MAX_RESETS {
        return Ok(Done::Finished);
    }
    let token = new_token();
    let expires_at = now.plus_secs(RESET_LIFETIME_SECS);
    store::insert_reset(&mut tx, &crate::sealing::hash(&token), account.user_uuid, now, expires_at).await?;
    mail::queue(app, &mut tx, email, letter(app, email, &token, expires_at), expires_at, now).await?;
    tx.commit(Audit::by_system("PASSWORD_RESET", "password.forgot", account.user_uuid, now)).await?;
    tasks::wake(app);
    Ok(Done::Finished)
}

fn letter(app: &App, email: &str, token: &str, expires_at: Timestamp) -> Letter {
    let expires_at = mail::spoken(expires_at);
    let body = json!({"token": token, "newPassword": "..."});
    let note = "If it was not you who asked, do nothing: your password stays as it is, and the token ends by itself.";
    let parts = vec![
        Part::Text(format!(
            "A new password was asked for, for the account {email}. This token sets one, once, until {expires_at}:"
        )),
        Part::Code(token.to_owned()),
        Part::Text("Give it to your console together with the new password, or send both yourself:".to_owned()),
        mail::request(app, "/auth/password/reset", None, &body),
        Part::Note(note.to_owned()),
    ];
    Letter { subject: "Set a new password".to_owned(), parts }
}

/// Sets a new password for whoever was mailed the token. All logins end, and the account's failed attempts are forgiven.
pub async fn reset_password(app: &App, token: &str, new_password: String) -> Result<()> {
    super::require_builtin_login(app)?;
    let hash = crate::sealing::hash(token);
    // A token that is none costs no password hash.
    let user_uuid = store::user_of_reset(&mut app.db.read().await?, &hash, app.clock.now()).await?;
    let user_uuid = user_uuid.ok_or_else(invalid_reset)?;
    let password_hash = app.passwords.turn().await?.hash(new_password).await?;
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    // Of two that use one token at once, the second waits here and then finds it gone.
    store::lock_user(&mut tx, user_uuid).await?;
    let user_uuid: UserUuid = store::user_of_reset(&mut tx, &hash, now).await?.ok_or_else(invalid_reset)?;
    let credentials = store::credentials(&mut tx, user_uuid).await?.ok_or_else(invalid_reset)?;
    store::set_password(&mut tx, user_uuid, &password_hash).await?;
    store::delete_resets(&mut tx, user_uuid).await?;
    let ended = store::revoke_logins(&mut tx, user_uuid, None::<Uuid>, now).await?;
    throttle::forgive(&mut tx, &Subject::account(&credentials.email), None).await?;
    let audit = Audit::by_person(user_uuid, credentials.default_persona_uuid, "password.reset", user_uuid, now);
    tx.commit(audit.with(json!({"endedLogins": ended}))).await?;
    app.permissions.settle().await;
    Ok(())
}

fn invalid_reset() -> Error {
    let message = "the token sets no password, or no longer: one works once, for an hour; ask for another at /auth/password/forgot";
    Error::bad_request("INVALID_RESET_TOKEN", message)
}

/// Deletes tokens that have expired, `limit` rows at most.
pub async fn forget_resets(db: &Db, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = store::delete_expired_resets(&mut tx, now, limit).await?;
    tx.commit_unaudited("they had ended by themselves").await?;
    Ok(deleted)
}
