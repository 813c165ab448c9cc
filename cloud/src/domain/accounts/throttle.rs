//! Throttles password guessing and requests for mail. A login attempt is counted as a failure
//! before the password is checked, and the count is undone on success: this way concurrent attempts
//! count too, on every replica, and no burst passes. Subjects are the e-mail of an account (hashed,
//! whether or not the account exists) and the client's address.

use std::net::IpAddr;

use hub_protocol::{Timestamp, UserUuid};

use super::store;
use crate::db::{Conn, Db};
use crate::error::{Error, Result};

/// Failures that cause no delay.
const FREE_PER_ACCOUNT: i64 = 5;
/// Higher than for an account: many users may share an address.
const FREE_PER_ADDRESS: i64 = 50;
/// Mails of one kind to one e-mail.
const FREE_PER_MAIL: i64 = 10;
/// A whole team may be invited at once.
const FREE_PER_INVITER: i64 = 200;
/// The delay starts at one second and doubles with each failure, up to this.
const MAX_DELAY_SECS: i64 = 300;
/// The counter restarts after this time without a failure.
pub const RESET_AFTER_SECS: i64 = 3600;

const TOO_MANY_FAILURES: &str = "too many failed attempts; wait before the next one";
const TOO_MANY_MAILS: &str = "too many mails were requested; wait before the next request";

/// What failures are counted against.
#[derive(Clone, Debug)]
pub struct Subject {
    key: String,
    free: i64,
    /// The error message for a throttled client.
    reason: &'static str,
}

impl Subject {
    /// The e-mail is hashed: users type passwords into the wrong field, and the table must not hold
    /// them.
    pub fn account(email: &str) -> Self {
        Self {
            key: format!("account:{}", hex::encode(crate::sealing::hash(email))),
            free: FREE_PER_ACCOUNT,
            reason: TOO_MANY_FAILURES,
        }
    }

    /// Password-reset mails to one e-mail, so that requests cannot flood a mailbox.
    pub fn resets(email: &str) -> Self {
        Self {
            key: format!("resets:{}", hex::encode(crate::sealing::hash(email))),
            free: FREE_PER_MAIL,
            reason: TOO_MANY_MAILS,
        }
    }

    /// Invitations to one e-mail, from all tenants.
    pub fn invited(email: &str) -> Self {
        Self {
            key: format!("invited:{}", hex::encode(crate::sealing::hash(email))),
            free: FREE_PER_MAIL,
            reason: TOO_MANY_MAILS,
        }
    }

    /// Invitations by one user, in all tenants.
    pub fn inviter(user_uuid: UserUuid) -> Self {
        Self { key: format!("inviter:{user_uuid}"), free: FREE_PER_INVITER, reason: TOO_MANY_MAILS }
    }

    /// An IPv6 address counts as its /64, which is what one customer gets.
    pub fn address(address: IpAddr) -> Self {
        let key = match address.to_canonical() {
            IpAddr::V4(address) => format!("address:{address}"),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                format!("address:{a:x}:{b:x}:{c:x}:{d:x}::/64")
            }
        };
        Self { key, free: FREE_PER_ADDRESS, reason: TOO_MANY_FAILURES }
    }
}

/// The failure counter of one subject.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Failures {
    pub failures: i64,
    pub last_failed_at: Timestamp,
}

/// Refuses with 429 while any of the subjects is throttled.
pub async fn check(conn: &mut Conn, subjects: &[Subject], now: Timestamp) -> Result<()> {
    let mut longest = (0, TOO_MANY_FAILURES);
    for subject in subjects {
        if let Some(failures) = store::failures(conn, &subject.key).await? {
            longest = longest.max((wait(subject, failures, now), subject.reason));
        }
    }
    match longest {
        (..=0, _) => Ok(()),
        // Rounded up, so that a client that waits for the given time is accepted.
        (wait_micros, reason) => Err(Error::too_many_requests(reason, wait_micros.unsigned_abs().div_ceil(1_000_000))),
    }
}

fn wait(subject: &Subject, failures: Failures, now: Timestamp) -> i64 {
    let over = failures.failures - subject.free;
    let delay_secs = match over {
        ..=-1 => return 0,
        0..=10 => (1_i64 << over).min(MAX_DELAY_SECS),
        _ => MAX_DELAY_SECS,
    };
    failures.last_failed_at.plus_secs(delay_secs).as_micros() - now.as_micros()
}

/// Counts an attempt against its subjects, unless one of them is throttled.
pub async fn count(db: &Db, subjects: &[Subject], now: Timestamp) -> Result<()> {
    let mut tx = db.begin().await?;
    for subject in subjects {
        store::lock_failures(&mut tx, &subject.key, now).await?;
    }
    check(&mut tx, subjects, now).await?;
    for subject in subjects {
        store::add_failure(&mut tx, &subject.key, now, now.plus_secs(-RESET_AFTER_SECS)).await?;
    }
    tx.commit_unaudited("counts attempts, changes nothing").await
}

/// Records a successful attempt: clears the counter of the account. The address only gets this one
/// attempt back; otherwise one successful login would clear all its guesses.
pub async fn record_success(conn: &mut Conn, account: &Subject, address: Option<&Subject>) -> Result<()> {
    store::clear_failures(conn, &account.key).await?;
    match address {
        Some(address) => store::remove_failure(conn, &address.key).await,
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum() {
        let subject = Subject::account("ada@example.com");
        let now = Timestamp::from_micros(1_000_000_000);
        let waits = |failures| wait(&subject, Failures { failures, last_failed_at: now }, now) / 1_000_000;
        let seen: Vec<i64> = [0, 4, 5, 6, 7, 10, 13, 14, 15, 80, i64::MAX].map(waits).to_vec();
        assert_eq!(seen, [0, 0, 1, 2, 4, 32, 256, 300, 300, 300, 300]);
    }

    #[test]
    fn an_ipv6_network_is_one_subject() {
        let key = |text: &str| Subject::address(text.parse().expect("an address")).key;
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:192.0.2.7"), key("192.0.2.7"));
        assert_ne!(key("192.0.2.8"), key("192.0.2.7"));
    }
}
