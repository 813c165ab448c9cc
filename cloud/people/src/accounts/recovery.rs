//! Password change: by a user who knows the current password, or by one who receives the account's
//! mail. Both end the existing logins, since an attacker may hold them. Responses never reveal
//! whether an e-mail has an account: a background task looks it up after the response was sent.

use std::net::IpAddr;

use hub_base::db::Db;
use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_core::mail::{self, MailContent, Part};
use hub_core::tasks::{self, Done, NewTask};
use hub_identity::authn::invalid_token;
use hub_identity::authn::user::{Session, User};
use hub_protocol::{Timestamp, UserUuid};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Accounts;
use super::new_password;
use super::password::Purpose;
use super::throttle::{self, Subject};
use super::{new_token, store};

/// The lane of password-reset tasks. It is separate because unauthenticated clients cause them.
pub const LANE: &str = "accounts";
/// The kind of task that finds the account and mails the token.
pub const FORGOT: &str = "password.forgot";

const RESET_LIFETIME_SECS: i64 = 3600;
/// Valid reset tokens of one account. No further mail is sent while there are this many.
const MAX_RESETS: i64 = 3;

/// Sets another password for a user who knows the current one. All other logins of the user end.
pub async fn change_password(
    accounts: &Accounts,
    user: &User,
    address: Option<IpAddr>,
    current_password: String,
    new_password: String,
) -> Result<()> {
    let own = [Subject::changes(user.user_uuid)];
    let shared: Vec<Subject> = address.map(Subject::address).into_iter().collect();
    let subjects: Vec<Subject> = own.iter().chain(&shared).cloned().collect();
    let (credentials, new_password) = {
        let mut conn = accounts.core.db.read().await?;
        let credentials = store::credentials(&mut conn, user.user_uuid)
            .await?
            .ok_or_else(invalid_token)?;
        if !credentials.has_password() {
            return Err(super::no_password(&credentials.issuer));
        }
        let nickname = store::profile(&mut conn, user.user_uuid).await?;
        let new_password = checked(new_password, &credentials.email, nickname)?;
        throttle::check(&mut conn, &subjects, accounts.core.clock.now()).await?;
        (credentials, new_password)
    };
    // The attempt is counted like a login: a stolen access token must not allow faster guessing.
    let caller = user.user_uuid.to_string();
    let place = accounts.passwords.place(Purpose::Change, &caller)?;
    throttle::count(&accounts.core.db, &subjects, accounts.core.clock.now()).await?;
    if !place
        .turn()
        .await?
        .verify(current_password, Some(credentials.password_hash.clone()))
        .await?
    {
        return Err(wrong_password());
    }
    let password_hash = accounts
        .passwords
        .permit(Purpose::Change, &caller)
        .await?
        .hash(new_password)
        .await?;
    let now = accounts.core.clock.now();
    let this_login = match user.session {
        Session::Login(login_uuid) => Some(login_uuid),
        Session::External => None,
    };
    let mut tx = accounts.core.db.begin().await?;
    // A concurrent password change committed first, and ended this login.
    if store::lock_password(&mut tx, user.user_uuid, &credentials.password_hash)
        .await?
        .is_none()
    {
        return Err(wrong_password());
    }
    store::set_password(&mut tx, user.user_uuid, &password_hash).await?;
    store::delete_resets(&mut tx, user.user_uuid).await?;
    let ended = store::revoke_logins(&mut tx, user.user_uuid, this_login, now).await?;
    throttle::record_success(&mut tx, &own, &shared).await?;
    // Another person who used the password may have made networks known.
    store::forget_addresses(&mut tx, user.user_uuid).await?;
    super::remember_address(&mut tx, user.user_uuid, address, now).await?;
    let audit = Audit::new(user, "password.change", user.user_uuid, now)
        .with(json!({"endedLogins": ended}));
    accounts.authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(audit).await?;
    Ok(())
}

/// A new password that is not what others guess first.
fn checked(text: String, email: &str, profile: Option<(String, Option<String>)>) -> Result<String> {
    let nickname = profile.and_then(|(_, nickname)| nickname);
    let names: Vec<&str> = [email].into_iter().chain(nickname.as_deref()).collect();
    new_password::checked("newPassword", text, &names).map_err(|error| Error::fields(vec![error]))
}

pub fn wrong_password() -> Error {
    Error::forbidden("WRONG_PASSWORD", "the current password is wrong")
}

/// Queues a mail with a password-reset token, sent only if the account exists.
pub async fn forgot_password(
    accounts: &Accounts,
    address: Option<IpAddr>,
    email: &str,
) -> Result<()> {
    super::require_builtin_login(accounts)?;
    let email = super::checked_email(email)?;
    mail::require(&accounts.core)?;
    let now = accounts.core.clock.now();
    let subjects = [Some(Subject::resets(&email)), address.map(Subject::address)];
    throttle::count(
        &accounts.core.db,
        &subjects.into_iter().flatten().collect::<Vec<_>>(),
        now,
    )
    .await?;
    let mut tx = accounts.core.db.begin().await?;
    let task = NewTask {
        lane: LANE,
        kind: FORGOT,
        payload: json!({"email": email}),
        due_at: now,
        dedup_key: None,
    };
    tasks::enqueue(&accounts.core, &mut tx, task, now).await?;
    tx.commit_unaudited("the task writes its own audit entry")
        .await?;
    Ok(())
}

/// The task queued by [`forgot_password`].
pub async fn perform_forgot(accounts: &Accounts, payload: &Value) -> Result<Done> {
    let email = payload["email"]
        .as_str()
        .ok_or_else(|| Error::internal("the payload of the task has no e-mail"))?;
    let account = store::account(&mut accounts.core.db.read().await?, email).await?;
    let Some(account) = account else {
        return Ok(Done::Finished);
    };
    let now = accounts.core.clock.now();
    let mut tx = accounts.core.db.begin().await?;
    store::lock_user(&mut tx, account.user_uuid).await?;
    if store::count_resets(&mut tx, account.user_uuid, now).await? >= MAX_RESETS {
        return Ok(Done::Finished);
    }
    let token = new_token();
    let expires_at = now.plus_secs(RESET_LIFETIME_SECS);
    store::insert_reset(
        &mut tx,
        &hub_base::sealing::hash(&token),
        account.user_uuid,
        now,
        expires_at,
    )
    .await?;
    mail::queue(
        &accounts.core,
        &mut tx,
        email,
        reset_mail(accounts, email, &token, expires_at),
        expires_at,
        now,
    )
    .await?;
    tx.commit(Audit::by_system(
        "PASSWORD_RESET",
        "password.forgot",
        account.user_uuid,
        now,
    ))
    .await?;
    Ok(Done::Finished)
}

fn reset_mail(accounts: &Accounts, email: &str, token: &str, expires_at: Timestamp) -> MailContent {
    let expires_at = mail::format_time(expires_at);
    let body = json!({"token": token, "newPassword": "..."});
    let note = "If you did not request this, ignore this e-mail. Your password stays unchanged, \
                and the token expires.";
    let parts = vec![
        Part::Text(format!(
            "A password reset was requested for the account {email}. This token can be used once, \
             until {expires_at}:"
        )),
        Part::Code(token.to_owned()),
        Part::Text(
            "Enter it in the console together with the new password, or send both to the API:"
                .to_owned(),
        ),
        mail::request(&accounts.core, "/auth/password/reset", None, &body),
        Part::Note(note.to_owned()),
    ];
    MailContent {
        subject: "Set a new password".to_owned(),
        parts,
    }
}

/// Sets a new password with a mailed token. All logins end, and what was counted against the
/// account is cleared: the person may log in from this address.
pub async fn reset_password(
    accounts: &Accounts,
    address: Option<IpAddr>,
    token: &str,
    new_password: String,
) -> Result<()> {
    super::require_builtin_login(accounts)?;
    let hash = hub_base::sealing::hash(token);
    // An invalid token must not cost a password hash.
    let mut conn = accounts.core.db.read().await?;
    let user_uuid = store::user_of_reset(&mut conn, &hash, accounts.core.clock.now())
        .await?
        .ok_or_else(invalid_reset)?;
    let credentials = store::credentials(&mut conn, user_uuid)
        .await?
        .ok_or_else(invalid_reset)?;
    let profile = store::profile(&mut conn, user_uuid).await?;
    drop(conn);
    let new_password = checked(new_password, &credentials.email, profile)?;
    let permit = accounts
        .passwords
        .permit(Purpose::Change, &user_uuid.to_string())
        .await?;
    let password_hash = permit.hash(new_password).await?;
    let now = accounts.core.clock.now();
    let mut tx = accounts.core.db.begin().await?;
    // Of two concurrent uses of one token, the second waits here and then finds the token deleted.
    store::lock_user(&mut tx, user_uuid).await?;
    let user_uuid: UserUuid = store::user_of_reset(&mut tx, &hash, now)
        .await?
        .ok_or_else(invalid_reset)?;
    let credentials = store::credentials(&mut tx, user_uuid)
        .await?
        .ok_or_else(invalid_reset)?;
    store::set_password(&mut tx, user_uuid, &password_hash).await?;
    store::delete_resets(&mut tx, user_uuid).await?;
    let ended = store::revoke_logins(&mut tx, user_uuid, None::<Uuid>, now).await?;
    store::verify_email(&mut tx, user_uuid, now).await?;
    throttle::clear_account(&mut tx, &credentials.email, address).await?;
    store::forget_addresses(&mut tx, user_uuid).await?;
    super::remember_address(&mut tx, user_uuid, address, now).await?;
    let audit = Audit::by_person(
        user_uuid,
        credentials.default_persona_uuid,
        "password.reset",
        user_uuid,
        now,
    );
    accounts.authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(audit.with(json!({"endedLogins": ended}))).await?;
    Ok(())
}

fn invalid_reset() -> Error {
    let message = "the token is invalid, used or expired; request another at /auth/password/forgot";
    Error::bad_request("INVALID_RESET_TOKEN", message)
}

/// Deletes at most `limit` expired tokens.
pub async fn forget_resets(db: &Db, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = store::delete_expired_resets(&mut tx, now, limit).await?;
    tx.commit_unaudited("expired rows have no effect").await?;
    Ok(deleted)
}
