//! Slows guessing down, and asking for mails. Every attempt to log in is counted as failed before the password is looked at, and given back when it was right: so
//! attempts in flight count too, on every replica, and no burst slips through. Subjects are an account's e-mail (hashed, known or not) and an address.

use std::net::IpAddr;

use hub_protocol::{Timestamp, UserUuid};

use super::store;
use crate::db::{Conn, Db};
use crate::error::{Error, Result};

/// Failures without a delay.
const FREE_FOR_ACCOUNT: i64 = 5;
/// Many people may share an address.
const FREE_FOR_ADDRESS: i64 = 50;
/// Mails of a kind to one address.
const FREE_FOR_MAIL: i64 = 10;
/// A whole team is invited at once.
const FREE_FOR_INVITER: i64 = 200;
/// The delay doubles with each failure from one second up to this.
const MAX_DELAY_SECS: i64 = 300;
/// A subject without a failure for this long starts afresh.
pub const FORGET_AFTER_SECS: i64 = 3600;

const FAILED: &str = "too many failed attempts; wait before the next one";
const ASKED: &str = "too many mails were asked for; wait before the next one";

/// What failures are counted for.
#[derive(Clone, Debug)]
pub struct Subject {
    key: String,
    free: i64,
    /// What the one who has to wait is told.
    reason: &'static str,
}

impl Subject {
    /// The table never holds what was typed: people type passwords into the wrong box.
    pub fn account(email: &str) -> Self {
        Self {
            key: format!("account:{}", hex::encode(crate::sealing::hash(email))),
            free: FREE_FOR_ACCOUNT,
            reason: FAILED,
        }
    }

    /// Mails that set a new password: nobody's mailbox is filled by asking for them.
    pub fn resets(email: &str) -> Self {
        Self { key: format!("resets:{}", hex::encode(crate::sealing::hash(email))), free: FREE_FOR_MAIL, reason: ASKED }
    }

    /// Invitations to one e-mail, whichever tenant they come from.
    pub fn invited(email: &str) -> Self {
        Self {
            key: format!("invited:{}", hex::encode(crate::sealing::hash(email))),
            free: FREE_FOR_MAIL,
            reason: ASKED,
        }
    }

    /// Invitations by one person, in whichever tenant.
    pub fn inviter(user_uuid: UserUuid) -> Self {
        Self { key: format!("inviter:{user_uuid}"), free: FREE_FOR_INVITER, reason: ASKED }
    }

    /// One IPv6 customer has a whole /64.
    pub fn address(address: IpAddr) -> Self {
        let key = match address.to_canonical() {
            IpAddr::V4(address) => format!("address:{address}"),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                format!("address:{a:x}:{b:x}:{c:x}:{d:x}::/64")
            }
        };
        Self { key, free: FREE_FOR_ADDRESS, reason: FAILED }
    }
}

/// The failures of one subject.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Failures {
    pub failures: i64,
    pub last_failed_at: Timestamp,
}

/// Refuses with 429 while a subject has to wait.
pub async fn check(conn: &mut Conn, subjects: &[Subject], now: Timestamp) -> Result<()> {
    let mut longest = (0, FAILED);
    for subject in subjects {
        if let Some(failures) = store::failures(conn, &subject.key).await? {
            longest = longest.max((wait(subject, failures, now), subject.reason));
        }
    }
    match longest {
        (..=0, _) => Ok(()),
        // Rounded up: who waits as told is let in.
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

/// Counts an attempt against its subjects, unless one has to wait.
pub async fn count(db: &Db, subjects: &[Subject], now: Timestamp) -> Result<()> {
    let mut tx = db.begin().await?;
    for subject in subjects {
        store::lock_failures(&mut tx, &subject.key, now).await?;
    }
    check(&mut tx, subjects, now).await?;
    for subject in subjects {
        store::add_failure(&mut tx, &subject.key, now, now.plus_secs(-FORGET_AFTER_SECS)).await?;
    }
    tx.commit_unaudited("counts attempts, changes nothing").await
}

/// The attempt was right: the account starts afresh. The address only gets this attempt back, or one good login would excuse all its guesses.
pub async fn forgive(conn: &mut Conn, account: &Subject, address: Option<&Subject>) -> Result<()> {
    store::clear_failures(conn, &account.key).await?;
    match address {
        Some(address) => store::take_failure_back(conn, &address.key).await,
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_end() {
        let subject = Subject::account("ada@example.com");
        let now = Timestamp::from_micros(1_000_000_000);
        let waits = |failures| wait(&subject, Failures { failures, last_failed_at: now }, now) / 1_000_000;
        let seen: Vec<i64> = [0, 4, 5, 6, 7, 10, 13, 14, 15, 80, i64::MAX].map(waits).to_vec();
        assert_eq!(seen, [0, 0, 1, 2, 4, 32, 256, 300, 300, 300, 300]);
    }

    #[test]
    fn addresses_of_one_customer_are_one_subject() {
        let key = |text: &str| Subject::address(text.parse().expect("an address")).key;
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:192.0.2.7"), key("192.0.2.7"));
        assert_ne!(key("192.0.2.8"), key("192.0.2.7"));
    }
}
