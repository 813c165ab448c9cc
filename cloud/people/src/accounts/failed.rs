//! Failed logins: a line in the log, and an entry in the audit log that the owner of the account
//! and the platform see. Their number is bounded, since anybody can cause them. An e-mail without
//! an account takes the same steps, so that the time of an answer does not tell them apart, and is
//! not written down: people type passwords into the wrong field.

use hub_base::db::Tx;
use hub_base::error::Result;
use hub_core::audit::Audit;
use hub_protocol::{Timestamp, UserUuid};
use serde_json::json;
use uuid::Uuid;

use super::Accounts;
use super::origin::Origin;

pub const ACTION: &str = "user.login_failed";

/// Why a login failed.
#[derive(Clone, Copy, Debug)]
pub enum Cause {
    Password,
    Otp,
}

/// Notes a failed login in a transaction, and commits it.
pub async fn note(
    accounts: &Accounts,
    tx: Tx,
    (email, user_uuid): (&str, Option<UserUuid>),
    origin: &Origin,
    cause: Cause,
    now: Timestamp,
) -> Result<()> {
    let is_said = accounts.core.surges.failed_logins.is_single();
    let turns = &accounts.core.turns;
    let is_noted = turns.failed_logins.count(key(email), now).is_ok()
        && turns.all_failed_logins.count(Uuid::nil(), now).is_ok();
    if !is_noted {
        return tx.commit_unaudited("enough of these are noted").await;
    }
    let account = user_uuid.map(|user_uuid| user_uuid.to_string());
    let cause = match cause {
        Cause::Password => "PASSWORD",
        Cause::Otp => "OTP",
    };
    if is_said {
        tracing::info!(
            user_uuid = account.as_deref(),
            address = origin.address_text(),
            cause,
            "a login failed"
        );
    }
    let target = account.unwrap_or_else(|| "unknown".to_owned());
    let detail = json!({"cause": cause, "userAgent": origin.user_agent});
    tx.commit(Audit::by_system("login", ACTION, target, now).with(detail))
        .await
}

/// The key that failures at an e-mail are counted by.
fn key(email: &str) -> Uuid {
    let hash = hub_base::sealing::hash(email);
    let bytes = hash.get(..16).unwrap_or_default();
    Uuid::from_slice(bytes).unwrap_or_default()
}
