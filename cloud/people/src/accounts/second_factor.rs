//! The second factor of the built-in login: codes of an authenticator app (TOTP, RFC 6238, with the
//! parameters that every app knows: SHA-1, 6 digits, 30 seconds), and recovery codes for whoever
//! has lost it. Each code is good once. The secret is sealed, and recovery codes are kept as
//! hashes. Guesses are counted by account: a right password does not clear that count.

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_base::sealing::stored::SECOND_FACTOR_SECRET;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authn::invalid_token;
use hub_identity::authn::user::User;
use hub_protocol::{Timestamp, UserUuid};
use totp_rs::{Builder, Secret, Totp};

use super::store::{self, SecondFactor};
use super::throttle::{self, Subject};
use super::{Accounts, no_password};

/// The name that authenticator apps show.
const ISSUER: &str = "Hub management";
const SECRET_BYTES: usize = 20;
const RECOVERY_CODES: usize = 10;
const INVALID_OTP: &str = "OTP_INVALID";
const INVALID_OTP_MESSAGE: &str =
    "`otp` is wrong, or was used; wait for the next code, and check the clock of the device";
/// 80 random bits: a hash is enough to store them.
const RECOVERY_CODE_BYTES: usize = 10;

/// The data that an authenticator app is set up with.
pub struct Enrolment {
    pub secret: String,
    pub otpauth_url: String,
}

/// Begins to set up a second factor. It counts once a code of it was shown.
pub async fn enrol(accounts: &Accounts, user: &User) -> Result<Enrolment> {
    let core = &accounts.core;
    let mut conn = core.db.read().await?;
    let credentials = store::credentials(&mut conn, user.user_uuid)
        .await?
        .ok_or_else(invalid_token)?;
    drop(conn);
    if !credentials.has_password() {
        return Err(no_password(&credentials.issuer));
    }
    let secret = sealing::random::<SECRET_BYTES>();
    let totp = totp(&secret, &credentials.email);
    let row = user.user_uuid.to_string();
    let sealed_secret = core.sealer.seal(SECOND_FACTOR_SECRET, &row, &secret);
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    if !store::begin_second_factor(&mut tx, user.user_uuid, sealed_secret, now).await? {
        let message =
            "this account has a second factor; remove it first (DELETE /auth/second-factor)";
        return Err(Error::conflict("SECOND_FACTOR_SET", message));
    }
    tx.commit(Audit::new(user, "second_factor.begin", user.user_uuid, now))
        .await?;
    Ok(Enrolment {
        secret: totp.secret().to_base32(),
        otpauth_url: totp.to_url().map_err(Error::internal)?,
    })
}

fn totp(secret: &[u8], account: &str) -> Totp {
    // The colon separates the issuer from the account.
    let account = account.replace(':', "");
    Builder::new()
        .with_secret(Secret::new(secret.into()))
        .with_issuer(Some(ISSUER))
        .with_account_name(account)
        .build_noncompliant()
}

/// Puts the second factor into force, and returns the recovery codes.
pub async fn confirm(accounts: &Accounts, user: &User, otp: &str) -> Result<Vec<String>> {
    let (core, now) = (&accounts.core, accounts.core.clock.now());
    let factor = store::second_factor(&mut core.db.read().await?, user.user_uuid).await?;
    let factor = factor
        .filter(|factor| factor.confirmed_at.is_none())
        .ok_or_else(|| {
            let message =
                "no second factor waits to be confirmed; begin with POST /auth/second-factor";
            Error::conflict("NO_ENROLMENT", message)
        })?;
    let subjects = [Subject::otps(user.user_uuid)];
    throttle::count(&core.db, &subjects, now).await?;
    let mut tx = core.db.begin().await?;
    if !is_used(core, &mut tx, &factor, otp, now).await? {
        return Err(Error::forbidden(INVALID_OTP, INVALID_OTP_MESSAGE));
    }
    let codes: Vec<String> = (0..RECOVERY_CODES).map(|_| new_recovery_code()).collect();
    let hashes = codes.iter().map(|code| recovery_hash(code)).collect();
    store::confirm_second_factor(&mut tx, user.user_uuid, hashes, now).await?;
    throttle::record_success(&mut tx, &subjects, &[]).await?;
    accounts.authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(Audit::new(
        user,
        "second_factor.confirm",
        user.user_uuid,
        now,
    ))
    .await?;
    Ok(codes)
}

/// Removes the second factor of a user who shows a code of it.
pub async fn remove(accounts: &Accounts, user: &User, otp: &str) -> Result<()> {
    let (core, now) = (&accounts.core, accounts.core.clock.now());
    let factor = store::second_factor(&mut core.db.read().await?, user.user_uuid)
        .await?
        .ok_or_else(|| Error::not_found("second factor"))?;
    let subjects = [Subject::otps(user.user_uuid)];
    throttle::count(&core.db, &subjects, now).await?;
    let mut tx = core.db.begin().await?;
    if !is_used(core, &mut tx, &factor, otp, now).await? {
        return Err(Error::forbidden(INVALID_OTP, INVALID_OTP_MESSAGE));
    }
    store::delete_second_factor(&mut tx, user.user_uuid).await?;
    throttle::record_success(&mut tx, &subjects, &[]).await?;
    accounts.authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(Audit::new(
        user,
        "second_factor.remove",
        user.user_uuid,
        now,
    ))
    .await
}

/// Counts a guess at a code of the account before it is judged, or refuses it with 429.
pub async fn count_guess(accounts: &Accounts, user_uuid: UserUuid, now: Timestamp) -> Result<()> {
    throttle::count(&accounts.core.db, &[Subject::otps(user_uuid)], now).await
}

/// Uses a code up to log in. False for one that is wrong, or was used.
pub async fn is_accepted(
    core: &Core,
    tx: &mut Tx,
    factor: &SecondFactor,
    otp: &str,
    now: Timestamp,
) -> Result<bool> {
    let is_accepted = is_used(core, tx, factor, otp, now).await?;
    if is_accepted {
        throttle::record_success(tx, &[Subject::otps(factor.user_uuid)], &[]).await?;
    }
    Ok(is_accepted)
}

async fn is_used(
    core: &Core,
    tx: &mut Tx,
    factor: &SecondFactor,
    otp: &str,
    now: Timestamp,
) -> Result<bool> {
    let row = factor.user_uuid.to_string();
    let secret = core
        .sealer
        .open(SECOND_FACTOR_SECRET, &row, &factor.sealed_secret)
        .map_err(Error::internal)?;
    let compact: String = otp.chars().filter(|c| !c.is_whitespace()).collect();
    let is_code = compact.len() == 6 && compact.bytes().all(|byte| byte.is_ascii_digit());
    if is_code {
        let step = totp(&secret, "").check(&compact, now.as_secs().unsigned_abs());
        return match step {
            Some(step) => store::use_step(tx, factor.user_uuid, step.cast_signed()).await,
            None => Ok(false),
        };
    }
    store::use_recovery_code(tx, factor.user_uuid, recovery_hash(otp)).await
}

/// Five groups of four hexadecimal digits.
fn new_recovery_code() -> String {
    let groups: Vec<String> = sealing::random::<RECOVERY_CODE_BYTES>()
        .chunks(2)
        .map(hex::encode)
        .collect();
    groups.join("-")
}

/// Read without regard to case, spaces and hyphens.
fn recovery_hash(code: &str) -> Vec<u8> {
    let compact: String = code
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    sealing::hash(&compact)
}

pub fn otp_required() -> Error {
    Error::unauthorized(
        "OTP_REQUIRED",
        "this account has a second factor; send `otp`, a code of the authenticator app or a recovery code",
    )
}

pub fn invalid_otp() -> Error {
    Error::unauthorized(INVALID_OTP, INVALID_OTP_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_codes_are_read_as_people_type_them() {
        let code = new_recovery_code();
        assert_eq!((code.len(), code.matches('-').count()), (24, 4), "{code}");
        let typed = code.to_uppercase().replace('-', " ");
        assert_eq!(recovery_hash(&typed), recovery_hash(&code));
        assert_ne!(recovery_hash(&new_recovery_code()), recovery_hash(&code));
    }

    /// RFC 6238, appendix B, cut to six digits.
    #[test]
    fn codes_are_those_of_the_standard() {
        let totp = totp(b"12345678901234567890", "ada@example.com");
        for (secs, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (2_000_000_000, "279037"),
        ] {
            assert_eq!(totp.check(code, secs), Some(secs / 30));
            assert_eq!(totp.check(code, secs + 30), Some(secs / 30));
            assert_eq!(totp.check(code, secs + 90), None);
        }
        let url = totp.to_url().expect("a URL");
        assert!(
            url.starts_with("otpauth://totp/Hub%20management:ada%40example.com?secret="),
            "{url}"
        );
    }
}
