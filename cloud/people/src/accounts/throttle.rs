//! Throttles password guessing, registrations and requests for mail. A login attempt is counted as
//! a failure before the password is checked, and the count is undone on success: this way
//! concurrent attempts count too, on every replica, and no burst passes.
//!
//! Guesses are counted per account and address together, so that a stranger throttles only
//! themselves. Two further counts bound who has many: one per address, for guesses at many
//! accounts, and one per account, for guesses from many addresses. Neither concerns somebody who
//! logged in to the account from the same network before: nobody elsewhere can lock them out.
//!
//! E-mails are hashed, whether or not they have an account: users type passwords into the wrong
//! field, and the table must not hold them.

use std::net::IpAddr;

use hub_base::db::{Conn, Db};
use hub_base::error::{Error, Result};
use hub_protocol::{Timestamp, UserUuid};

use super::store;

/// Failures that cause no delay, of one address at one account.
const FREE_PER_PAIR: i64 = 5;
/// The same of a network that the account logged in from before: beyond [`FREE_PER_PAIR`], only
/// wrong passwords are refused. A right one is accepted until there are this many.
const FREE_PER_KNOWN_PAIR: i64 = 100;
/// Failures from all addresses that the account never logged in from.
const FREE_PER_ACCOUNT: i64 = 100;
/// The free failures of an address, which many users may share.
const FREE_PER_ADDRESS: i64 = 50;
/// The free wrong claim codes of an account, and wrong codes of its second factor.
const FREE_CODES: i64 = 10;
/// The free new accounts of an address.
const FREE_REGISTRATIONS: i64 = 50;
/// Mails of one kind to one e-mail.
const FREE_PER_MAIL: i64 = 10;
/// A whole team may be invited at once.
const FREE_PER_INVITER: i64 = 200;
/// The delay starts at one second and doubles with each failure, up to this.
const MAX_DELAY_SECS: i64 = 300;
/// The longest delay of an account as a whole, so that its person gets a turn during an attack.
const MAX_ACCOUNT_DELAY_SECS: i64 = 30;
/// The longest delay of a network that the account logged in from before.
const MAX_KNOWN_DELAY_SECS: i64 = 10;
/// The counter restarts after this time without a failure.
pub const RESET_AFTER_SECS: i64 = 3600;

const TOO_MANY_FAILURES: &str = "too many failed attempts; wait before the next one";
const TOO_MANY_REGISTRATIONS: &str =
    "too many accounts were created from this address; wait before the next one";
const TOO_MANY_MAILS: &str = "too many mails were requested; wait before the next request";

/// The subject that failures are counted against.
#[derive(Clone, Debug)]
pub struct Subject {
    key: String,
    free: i64,
    max_delay_secs: i64,
    /// The error message for a throttled client.
    reason: &'static str,
}

fn hashed(email: &str) -> String {
    hex::encode(hub_base::sealing::hash(email))
}

/// The network of one customer: an IPv4 address, or an IPv6 /64.
pub fn network_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

impl Subject {
    fn failures(key: String, free: i64, max_delay_secs: i64) -> Self {
        Self {
            key,
            free,
            max_delay_secs,
            reason: TOO_MANY_FAILURES,
        }
    }

    /// Guesses at one account from one network.
    fn pair(email: &str, network: &str) -> Self {
        Self::failures(
            format!("pair:{}:{network}", hashed(email)),
            FREE_PER_PAIR,
            MAX_DELAY_SECS,
        )
    }

    /// Guesses at one account.
    fn account(email: &str) -> Self {
        Self::failures(
            format!("account:{}", hashed(email)),
            FREE_PER_ACCOUNT,
            MAX_ACCOUNT_DELAY_SECS,
        )
    }

    /// Guesses from one network.
    pub fn address(address: IpAddr) -> Self {
        Self::failures(
            format!("address:{}", network_of(address)),
            FREE_PER_ADDRESS,
            MAX_DELAY_SECS,
        )
    }

    /// Guesses at the current password by somebody who is logged in.
    pub fn changes(user_uuid: UserUuid) -> Self {
        Self::failures(
            format!("changes:{user_uuid}"),
            FREE_PER_PAIR,
            MAX_DELAY_SECS,
        )
    }

    /// Guesses at the second factor of one account.
    pub fn otps(user_uuid: UserUuid) -> Self {
        Self::failures(format!("otps:{user_uuid}"), FREE_CODES, MAX_DELAY_SECS)
    }

    /// Guesses at claim codes by one account.
    pub fn codes(user_uuid: UserUuid) -> Self {
        Self::failures(format!("codes:{user_uuid}"), FREE_CODES, MAX_DELAY_SECS)
    }

    /// Guesses at claim codes from one network.
    pub fn codes_from(address: IpAddr) -> Self {
        Self::failures(
            format!("codes:{}", network_of(address)),
            FREE_PER_ADDRESS,
            MAX_DELAY_SECS,
        )
    }

    /// Registrations from one network.
    pub fn registrations(address: IpAddr) -> Self {
        Self {
            key: format!("registrations:{}", network_of(address)),
            free: FREE_REGISTRATIONS,
            max_delay_secs: MAX_DELAY_SECS,
            reason: TOO_MANY_REGISTRATIONS,
        }
    }

    fn mails(key: String, free: i64) -> Self {
        Self {
            key,
            free,
            max_delay_secs: MAX_DELAY_SECS,
            reason: TOO_MANY_MAILS,
        }
    }

    /// The limit of password-reset mails to one e-mail, so that requests cannot flood a mailbox.
    pub fn resets(email: &str) -> Self {
        Self::mails(format!("resets:{}", hashed(email)), FREE_PER_MAIL)
    }

    /// Invitations to one e-mail, from all tenants.
    pub fn invited(email: &str) -> Self {
        Self::mails(format!("invited:{}", hashed(email)), FREE_PER_MAIL)
    }

    /// Invitations by one user, in all tenants.
    pub fn inviter(user_uuid: UserUuid) -> Self {
        Self::mails(format!("inviter:{user_uuid}"), FREE_PER_INVITER)
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
        // The wait is rounded up, so that a client that waits for the given time is accepted.
        (wait_micros, reason) => Err(Error::too_many_requests(
            reason,
            wait_micros.unsigned_abs().div_ceil(1_000_000),
        )),
    }
}

fn wait(subject: &Subject, failures: Failures, now: Timestamp) -> i64 {
    let over = failures.failures - subject.free;
    let delay_secs = match over {
        ..=-1 => return 0,
        0..=10 => (1_i64 << over).min(subject.max_delay_secs),
        _ => subject.max_delay_secs,
    };
    failures.last_failed_at.plus_secs(delay_secs).as_micros() - now.as_micros()
}

/// Counts an attempt against its subjects, unless one of them is throttled.
pub async fn count(db: &Db, subjects: &[Subject], now: Timestamp) -> Result<()> {
    let mut tx = db.begin().await?;
    lock(&mut tx, subjects, now).await?;
    check(&mut tx, subjects, now).await?;
    add(&mut tx, subjects, now).await?;
    tx.commit_unaudited("counts attempts, changes nothing")
        .await
}

async fn lock(conn: &mut Conn, subjects: &[Subject], now: Timestamp) -> Result<()> {
    for subject in subjects {
        store::lock_failures(conn, &subject.key, now).await?;
    }
    Ok(())
}

async fn add(conn: &mut Conn, subjects: &[Subject], now: Timestamp) -> Result<()> {
    for subject in subjects {
        store::add_failure(conn, &subject.key, now, now.plus_secs(-RESET_AFTER_SECS)).await?;
    }
    Ok(())
}

/// Clears the counters of a success, and takes back one attempt from each of `shared`: otherwise
/// one success would clear all guesses of an address.
pub async fn record_success(conn: &mut Conn, own: &[Subject], shared: &[Subject]) -> Result<()> {
    for subject in own {
        store::clear_failures(conn, &subject.key).await?;
    }
    for subject in shared {
        store::remove_failure(conn, &subject.key).await?;
    }
    Ok(())
}

/// An attempt to log in to an account from an address.
#[derive(Clone, Debug)]
pub struct Attempt {
    pair: Subject,
    /// The counters that refuse the attempt before its password is compared.
    checked: Vec<Subject>,
    /// The subjects that are counted besides the pair.
    shared: Vec<Subject>,
    is_known: bool,
}

impl Attempt {
    /// `is_known` is true if the account logged in from this network before.
    pub fn new(email: &str, address: Option<IpAddr>, is_known: bool) -> Self {
        let pair = Subject::pair(email, &address.map(network_of).unwrap_or_default());
        let address = address.map(Subject::address);
        let (checked, shared) = match is_known {
            true => {
                let free = FREE_PER_KNOWN_PAIR;
                let bounded = Subject {
                    free,
                    max_delay_secs: MAX_KNOWN_DELAY_SECS,
                    ..pair.clone()
                };
                (vec![bounded], address.into_iter().collect())
            }
            false => {
                let shared: Vec<Subject> = address
                    .into_iter()
                    .chain([Subject::account(email)])
                    .collect();
                (
                    [pair.clone()].into_iter().chain(shared.clone()).collect(),
                    shared,
                )
            }
        };
        Self {
            pair,
            checked,
            shared,
            is_known,
        }
    }

    /// Whether the account logged in from this network before.
    pub const fn is_known(&self) -> bool {
        self.is_known
    }

    /// Refuses with 429 what [`Attempt::count`] would refuse, and writes nothing.
    pub async fn check(&self, conn: &mut Conn, now: Timestamp) -> Result<()> {
        check(conn, &self.checked, now).await
    }

    /// Counts the attempt, unless it is refused. Returns the answer for a wrong password, if that
    /// differs from the usual one: a network that the account logged in from is throttled as any
    /// other, except for the right password.
    pub async fn count(&self, db: &Db, now: Timestamp) -> Result<Option<Error>> {
        let counted: Vec<Subject> = [self.pair.clone()]
            .into_iter()
            .chain(self.shared.clone())
            .collect();
        let mut tx = db.begin().await?;
        lock(&mut tx, &counted, now).await?;
        check(&mut tx, &self.checked, now).await?;
        let slowed = match check(&mut tx, std::slice::from_ref(&self.pair), now).await {
            Err(error) if error.status() == axum::http::StatusCode::TOO_MANY_REQUESTS => {
                Some(error)
            }
            checked => {
                checked?;
                None
            }
        };
        add(&mut tx, &counted, now).await?;
        tx.commit_unaudited("counts attempts, changes nothing")
            .await?;
        Ok(slowed)
    }

    /// Records a right password: the pair restarts at 0, and the other counters are reduced by this
    /// attempt.
    pub async fn succeeded(&self, conn: &mut Conn) -> Result<()> {
        record_success(conn, std::slice::from_ref(&self.pair), &self.shared).await
    }
}

/// The account's person is known by another way than the password: clears what was counted against
/// the account, and against it together with this address.
pub async fn clear_account(conn: &mut Conn, email: &str, address: Option<IpAddr>) -> Result<()> {
    let pair = Subject::pair(email, &address.map(network_of).unwrap_or_default());
    record_success(conn, &[Subject::account(email), pair], &[]).await
}

/// Clears all counters of an e-mail, for any address. Reads all counters.
pub async fn unlock_account(conn: &mut Conn, email: &str) -> Result<u64> {
    let keys = [
        Subject::account(email).key,
        Subject::resets(email).key,
        Subject::invited(email).key,
    ];
    let mut cleared =
        store::clear_failures_like(conn, &format!("pair:{}:%", hashed(email))).await?;
    for key in keys {
        cleared += store::clear_failures(conn, &key).await?;
    }
    Ok(cleared)
}

/// Clears everything that is counted for or against an account that is being deleted.
pub async fn forget_account(conn: &mut Conn, user_uuid: UserUuid, email: &str) -> Result<()> {
    if !email.is_empty() {
        unlock_account(conn, email).await?;
    }
    for subject in [
        Subject::changes(user_uuid),
        Subject::codes(user_uuid),
        Subject::otps(user_uuid),
        Subject::inviter(user_uuid),
    ] {
        store::clear_failures(conn, &subject.key).await?;
    }
    Ok(())
}

/// Clears everything that is counted against an address.
pub async fn unlock_address(conn: &mut Conn, address: IpAddr) -> Result<u64> {
    let mut cleared =
        store::clear_failures_like(conn, &format!("pair:%:{}", network_of(address))).await?;
    for subject in [Subject::address(address), Subject::registrations(address)] {
        cleared += store::clear_failures(conn, &subject.key).await?;
    }
    Ok(cleared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum() {
        let now = Timestamp::from_micros(1_000_000_000);
        let waits = |subject: &Subject, failures| {
            wait(
                subject,
                Failures {
                    failures,
                    last_failed_at: now,
                },
                now,
            ) / 1_000_000
        };
        let pair = Subject::pair("ada@example.com", "192.0.2.7");
        let seen: Vec<i64> = [0, 4, 5, 6, 7, 10, 13, 14, 15, 80, i64::MAX]
            .map(|count| waits(&pair, count))
            .to_vec();
        assert_eq!(seen, [0, 0, 1, 2, 4, 32, 256, 300, 300, 300, 300]);
        let account = Subject::account("ada@example.com");
        let seen: Vec<i64> = [99, 100, 104, 105, i64::MAX]
            .map(|count| waits(&account, count))
            .to_vec();
        assert_eq!(
            seen,
            [0, 1, 16, 30, 30],
            "an account as a whole is held up for less"
        );
    }

    #[test]
    fn an_ipv6_network_is_one_subject() {
        let key = |text: &str| Subject::address(text.parse().expect("an address")).key;
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:192.0.2.7"), key("192.0.2.7"));
        assert_ne!(key("192.0.2.8"), key("192.0.2.7"));
    }

    #[test]
    fn failures_of_strangers_do_not_concern_a_known_network() {
        let address = "192.0.2.7".parse().ok();
        let keys = |subjects: &[Subject]| {
            subjects
                .iter()
                .map(|subject| subject.key.clone())
                .collect::<Vec<_>>()
        };
        let known = Attempt::new("ada@example.com", address, true);
        assert_eq!(keys(&known.checked), [known.pair.key.as_str()]);
        let stranger = Attempt::new("ada@example.com", address, false);
        let account = Subject::account("ada@example.com").key;
        assert_eq!(
            keys(&stranger.checked),
            [
                stranger.pair.key.as_str(),
                "address:192.0.2.7",
                account.as_str()
            ]
        );
        assert_ne!(
            known.pair.key,
            Attempt::new("ada@example.com", "192.0.2.8".parse().ok(), true)
                .pair
                .key
        );
    }
}
