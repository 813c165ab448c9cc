//! What the command line does with accounts. Access to the database and its keys is the
//! authorization, so no endpoint calls these.

use std::net::IpAddr;

use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_protocol::{Timestamp, UserUuid};
use serde_json::json;
use uuid::Uuid;

use super::password::Purpose;
use super::store::{self, Account, Administrator};
use super::{Accounts, Registration, checked_email, fields, insert, new_account, throttle};

/// The caller that hashing is counted for, in this process of its own.
const CALLER: &str = "command line";
/// Administrators that are listed.
const MAX_LISTED: i64 = 1000;

/// The outcome of [`create_admin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCreated {
    New,
    /// The account existed, with this password, and is now an administrator.
    Promoted,
    /// The account was already an administrator, with this password.
    Already,
}

/// The outcome of [`revoke_admin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminRevoked {
    /// Whether the account was an administrator and no longer is.
    pub is_demoted: bool,
    pub ended_logins: u64,
    /// Administrators that are left.
    pub administrators: usize,
}

fn audit(action: &'static str, target: impl ToString, now: Timestamp) -> Audit {
    Audit::by_system("COMMAND_LINE", action, target, now)
}

fn require_passwords(accounts: &Accounts) -> Result<()> {
    match accounts.core.config.builtin_login {
        true => Ok(()),
        false => {
            let message = "builtin-login is false, so nobody can log in with a password; assign the role PLATFORM_ADMIN at the issuer";
            Err(Error::forbidden("BUILTIN_LOGIN_OFF", message))
        }
    }
}

async fn find(accounts: &Accounts, email: &str) -> Result<Account> {
    let account = store::account(&mut accounts.core.db.read().await?, email).await?;
    account.ok_or_else(|| Error::not_found("account with this e-mail and a password"))
}

/// Reports every invalid field of an e-mail and a new password at once.
pub fn check_new_password(email: &str, password: &str) -> Result<()> {
    Registration::checked(fields::email(email), Ok(password.to_owned()), Ok(None)).map(drop)
}

/// Removes the second factor of a person who has lost it, and ends all logins. Returns the number
/// of ended logins; None if the account has no second factor.
pub async fn remove_second_factor(accounts: &Accounts, email: &str) -> Result<Option<u64>> {
    let user_uuid = find(accounts, &checked_email(email)?).await?.user_uuid;
    let now = accounts.core.clock.now();
    let mut tx = accounts.core.db.begin().await?;
    store::lock_user(&mut tx, user_uuid).await?;
    if store::second_factor(&mut tx, user_uuid).await?.is_none() {
        return Ok(None);
    }
    store::delete_second_factor(&mut tx, user_uuid).await?;
    let ended_logins = store::revoke_logins(&mut tx, user_uuid, None::<Uuid>, now).await?;
    accounts.authn.permissions.wait_out_lease_after(&mut tx);
    let audit = audit("second_factor.remove", user_uuid, now);
    tx.commit(audit.with(json!({"endedLogins": ended_logins})))
        .await?;
    Ok(Some(ended_logins))
}

/// Creates a platform administrator. An existing account must have the same password, because
/// somebody else may have registered the address in advance.
pub async fn create_admin(
    accounts: &Accounts,
    email: &str,
    password: String,
) -> Result<AdminCreated> {
    require_passwords(accounts)?;
    let Registration {
        email, password, ..
    } = Registration::checked(fields::email(email), Ok(password), Ok(None))?;
    let now = accounts.core.clock.now();
    let existing = store::account(&mut accounts.core.db.read().await?, &email).await?;
    let permit = accounts.passwords.permit(Purpose::Known, CALLER).await?;
    let Some(account) = existing else {
        let account = new_account(permit.hash(password).await?, true);
        let mut tx = accounts.core.db.begin().await?;
        insert(&mut tx, &account, &email, None, now).await?;
        tx.commit(audit("user.create_admin", account.user_uuid, now))
            .await?;
        return Ok(AdminCreated::New);
    };
    // Administrators are no exception: a caller with another password wants to set it, and must not
    // believe that it was set.
    if !permit.verify(password, Some(account.password_hash)).await? {
        let message = "the account with this e-mail has another password; nothing was changed: use its password, another e-mail, \
                       or `hub-cloud admin reset-password` first";
        return Err(Error::conflict("OTHER_PASSWORD", message));
    }
    if account.is_platform_admin {
        return Ok(AdminCreated::Already);
    }
    let mut tx = accounts.core.db.begin().await?;
    store::set_admin(&mut tx, account.user_uuid, true).await?;
    tx.commit(audit("user.promote", account.user_uuid, now))
        .await?;
    Ok(AdminCreated::Promoted)
}

/// The platform administrators with a local password, by e-mail; at most a thousand. Administrators
/// by an external issuer are not known here.
pub async fn list_admins(accounts: &Accounts) -> Result<Vec<Administrator>> {
    let now = accounts.core.clock.now();
    store::administrators(&mut accounts.core.db.read().await?, now, MAX_LISTED).await
}

/// Ends all logins of an account, and takes the role of platform administrator from it unless
/// `keeps_role`. Both are in effect on every replica when this returns.
pub async fn revoke_admin(
    accounts: &Accounts,
    email: &str,
    keeps_role: bool,
) -> Result<AdminRevoked> {
    let user_uuid = find(accounts, &checked_email(email)?).await?.user_uuid;
    let now = accounts.core.clock.now();
    let mut tx = accounts.core.db.begin().await?;
    // The lock makes a login in progress wait, and then read the new role.
    let is_admin = store::lock_account(&mut tx, user_uuid)
        .await?
        .is_some_and(|account| account.is_platform_admin);
    let is_demoted = is_admin && !keeps_role;
    if is_demoted {
        store::set_admin(&mut tx, user_uuid, false).await?;
    }
    let ended_logins = store::revoke_logins(&mut tx, user_uuid, None::<Uuid>, now).await?;
    let administrators = store::administrators(&mut tx, now, MAX_LISTED).await?.len();
    let action = if is_demoted {
        "user.demote"
    } else {
        "user.end_logins"
    };
    accounts.authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(audit(action, user_uuid, now).with(json!({"endedLogins": ended_logins})))
        .await?;
    Ok(AdminRevoked {
        is_demoted,
        ended_logins,
        administrators,
    })
}

/// The subject whose counters [`unlock`] clears.
#[derive(Clone, Copy, Debug)]
pub enum Locked<'a> {
    Email(&'a str),
    Address(IpAddr),
}

/// Clears the counters that throttle logins and mails of an e-mail, or logins and registrations
/// from an address. Returns how many there were.
pub async fn unlock(accounts: &Accounts, locked: Locked<'_>) -> Result<u64> {
    let now = accounts.core.clock.now();
    let (cleared, entry, tx) = match locked {
        Locked::Email(email) => {
            let email = checked_email(email)?;
            let user_uuid = find(accounts, &email).await?.user_uuid;
            let mut tx = accounts.core.db.begin().await?;
            (
                throttle::unlock_account(&mut tx, &email).await?,
                audit("user.unlock", user_uuid, now),
                tx,
            )
        }
        Locked::Address(address) => {
            let mut tx = accounts.core.db.begin().await?;
            let entry = audit("address.unlock", throttle::network_of(address), now);
            (throttle::unlock_address(&mut tx, address).await?, entry, tx)
        }
    };
    tx.commit(entry.with(json!({"clearedCounters": cleared})))
        .await?;
    Ok(cleared)
}

/// Sets the password of an account. All its logins end, its counters are cleared, and its known
/// networks are forgotten. Returns the number of ended logins.
pub async fn set_password(accounts: &Accounts, email: &str, password: String) -> Result<u64> {
    require_passwords(accounts)?;
    let Registration {
        email, password, ..
    } = Registration::checked(fields::email(email), Ok(password), Ok(None))?;
    let user_uuid: UserUuid = find(accounts, &email).await?.user_uuid;
    let password_hash = accounts
        .passwords
        .permit(Purpose::Known, CALLER)
        .await?
        .hash(password)
        .await?;
    let now = accounts.core.clock.now();
    let mut tx = accounts.core.db.begin().await?;
    store::lock_user(&mut tx, user_uuid).await?;
    store::set_password(&mut tx, user_uuid, &password_hash).await?;
    store::delete_resets(&mut tx, user_uuid).await?;
    store::forget_addresses(&mut tx, user_uuid).await?;
    let ended_logins = store::revoke_logins(&mut tx, user_uuid, None::<Uuid>, now).await?;
    throttle::unlock_account(&mut tx, &email).await?;
    accounts.authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(audit("password.reset", user_uuid, now).with(json!({"endedLogins": ended_logins})))
        .await?;
    Ok(ended_logins)
}
