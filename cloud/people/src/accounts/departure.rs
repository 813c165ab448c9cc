//! The part of an account's deletion that concerns logging in: that it is the person who wants it,
//! and that nobody gets in afterwards. `hub_composed::account_deletion` deletes all the rest.

use std::net::IpAddr;

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_identity::authn::user::User;
use hub_identity::authn::{invalid_token, oidc};
use hub_protocol::{Timestamp, UserUuid};
use uuid::Uuid;

use super::password::Purpose;
use super::recovery::wrong_password;
use super::throttle::{self, Subject};
use super::{Accounts, store};

/// Evidence that the request concerns the person's own account.
pub struct Proof {
    password_hash: String,
}

/// An account without e-mail and logins.
pub struct Ended {
    /// The e-mail; empty without one.
    pub email: String,
    /// The subject at another issuer.
    pub subject: Option<String>,
}

/// An account with a password is deleted with that password; one of another issuer by its name, so
/// that no request deletes it by mistake.
pub async fn prove(
    accounts: &Accounts,
    user: &User,
    address: Option<IpAddr>,
    password: Option<String>,
    named: Option<UserUuid>,
) -> Result<Proof> {
    let mut conn = accounts.core.db.read().await?;
    let credentials = store::credentials(&mut conn, user.user_uuid)
        .await?
        .ok_or_else(invalid_token)?;
    let password_hash = credentials.password_hash.clone();
    if !credentials.has_password() {
        return match named == Some(user.user_uuid) {
            true => Ok(Proof { password_hash }),
            false => Err(Error::field(
                "userUuid",
                "must be the uuid of your account, to confirm its deletion",
            )),
        };
    }
    let Some(password) = password else {
        return Err(Error::field(
            "currentPassword",
            "is required, to confirm the deletion of the account",
        ));
    };
    let own = [Subject::changes(user.user_uuid)];
    let shared: Vec<Subject> = address.map(Subject::address).into_iter().collect();
    let subjects: Vec<Subject> = own.iter().chain(&shared).cloned().collect();
    throttle::check(&mut conn, &subjects, accounts.core.clock.now()).await?;
    drop(conn);
    let place = accounts
        .passwords
        .place(Purpose::Change, &user.user_uuid.to_string())?;
    throttle::count(&accounts.core.db, &subjects, accounts.core.clock.now()).await?;
    if !place
        .turn()
        .await?
        .verify(password, Some(password_hash.clone()))
        .await?
    {
        return Err(wrong_password());
    }
    let mut tx = accounts.core.db.begin().await?;
    throttle::record_success(&mut tx, &own, &shared).await?;
    tx.commit_unaudited("counts attempts, changes nothing")
        .await?;
    Ok(Proof { password_hash })
}

/// Ends all logins and empties the account, when the transaction has been committed.
pub async fn end(
    accounts: &Accounts,
    tx: &mut Tx,
    user_uuid: UserUuid,
    proof: &Proof,
    deletion_uuid: Uuid,
    now: Timestamp,
) -> Result<Ended> {
    let leaving = store::lock_leaving(tx, user_uuid, &proof.password_hash)
        .await?
        .ok_or_else(wrong_password)?;
    if leaving.is_platform_admin {
        let message = "this account is a platform administrator; have that role removed first \
                       (hub-cloud admin revoke)";
        return Err(Error::conflict("PLATFORM_ADMIN", message));
    }
    throttle::forget_account(tx, user_uuid, &leaving.email).await?;
    store::delete_logins(tx, user_uuid).await?;
    store::empty_account(tx, user_uuid, deletion_uuid, now).await?;
    accounts.authn.permissions.wait_out_lease_after(tx);
    let is_external = !leaving.issuer.is_empty();
    if is_external {
        oidc::remember_deleted(tx, &leaving.issuer, &leaving.subject, now).await?;
    }
    Ok(Ended {
        email: leaving.email,
        subject: is_external.then_some(leaving.subject),
    })
}

/// Deletes what was left of an account that has ended.
pub async fn forget(tx: &mut Tx, user_uuid: UserUuid) -> Result<()> {
    // A request that was under way may have counted something.
    throttle::forget_account(tx, user_uuid, "").await?;
    store::delete_logins(tx, user_uuid).await?;
    store::delete_account(tx, user_uuid).await
}
