//! API keys: `hmk_<8 characters, its id>_<32 characters, its secret>`. Only the hash of the secret is stored; a key is found by its id. Each key has
//! a limit of requests a minute, counted across replicas.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::request::Parts;
use hub_protocol::TenantUuid;

use crate::app::App;
use crate::authz::KeyScopes;
use crate::domain::api_keys;
use crate::error::{Error, Result};

const HEADER: &str = "x-api-key";
/// Secret scanners know our keys by it.
pub const PREFIX: &str = "hmk_";
pub const ID_CHARS: usize = 8;
pub const SECRET_CHARS: usize = 32;

/// A key that is in force.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub api_key_id: i64,
    pub tenant_uuid: TenantUuid,
    pub name: String,
    pub scopes: KeyScopes,
    pub rate_limit_per_minute: i64,
}

/// Whether the request names a key, on a path where keys go before user tokens.
pub fn is_present(parts: &Parts) -> bool {
    parts.headers.contains_key(HEADER) && parts.uri.path().starts_with("/tenant/")
}

/// The key of the request's header, charged with one request. Whatever is wrong with it is one answer: a guesser learns nothing.
pub async fn authenticate(app: &App, parts: &Parts) -> Result<ApiKey> {
    let mut values = parts.headers.get_all(HEADER).iter();
    // Sent twice, it would be anybody's guess which one counts.
    let value = values.next().filter(|_| values.next().is_none());
    let key = value.and_then(|value| value.to_str().ok()).ok_or_else(invalid)?;
    let (id, secret) = split(key.trim()).ok_or_else(invalid)?;
    let facts = app.permissions.api_key(&app.db, id).await?.ok_or_else(invalid)?;
    verify_slices_are_equal(&facts.secret_hash, &crate::sealing::hash(secret)).map_err(|_| invalid())?;
    if facts.expires_at.is_some_and(|expires_at| expires_at <= app.clock.now()) {
        return Err(invalid());
    }
    charge(app, &facts.key).await?;
    Ok(facts.key)
}

/// Id and secret, where the text has the form of a key.
fn split(key: &str) -> Option<(&str, &str)> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
    let is_word =
        |word: &str, chars: usize| word.len() == chars && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_word(id, ID_CHARS) && is_word(secret, SECRET_CHARS)).then_some((id, secret))
}

fn invalid() -> Error {
    Error::unauthorized("INVALID_API_KEY", "the API key is not valid, or no longer")
}

/// What this replica may still let through of the minute's requests, key by key. The database hands out the limit in shares, each a part of what is
/// left, down to single requests: so few requests touch it, and all replicas together let through as many as the limit says.
#[derive(Debug, Default)]
pub struct Shares(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    minute: i64,
    left: HashMap<i64, i64>,
}

impl Shares {
    /// Takes one request out of the share held; none when it is used up.
    fn take(&self, api_key_id: i64, minute: i64) -> bool {
        let mut held = self.of_minute(minute);
        match held.left.get_mut(&api_key_id) {
            Some(left @ 1..) => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    fn add(&self, api_key_id: i64, minute: i64, requests: i64) {
        *self.of_minute(minute).left.entry(api_key_id).or_default() += requests;
    }

    /// A minute that is over takes its shares with it.
    fn of_minute(&self, minute: i64) -> MutexGuard<'_, Held> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.minute != minute {
            *held = Held { minute, left: HashMap::new() };
        }
        held
    }
}

/// Counts one request against the key's limit, or refuses it with 429.
async fn charge(app: &App, key: &ApiKey) -> Result<()> {
    let now = app.clock.now();
    let minute = now.as_secs().div_euclid(60);
    if app.key_shares.take(key.api_key_id, minute) {
        return Ok(());
    }
    match api_keys::take_share(&app.db, key.api_key_id, minute, now).await? {
        share @ 1.. => {
            app.key_shares.add(key.api_key_id, minute, share - 1);
            Ok(())
        }
        _ => {
            let wait_secs = (60 - now.as_secs().rem_euclid(60)).unsigned_abs();
            let limit = key.rate_limit_per_minute;
            Err(Error::too_many_requests(format!("this API key may make {limit} requests a minute"), wait_secs)
                .with_header("ratelimit-limit", limit)
                .with_header("ratelimit-remaining", 0)
                .with_header("ratelimit-reset", wait_secs))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_form() {
        let (id, secret) = ("a".repeat(8), "B".repeat(32));
        assert_eq!(split(&format!("hmk_{id}_{secret}")), Some((id.as_str(), secret.as_str())));
        for wrong in [
            "",
            "hmk_",
            "hmk__",
            &format!("hmx_{id}_{secret}"),
            &format!("hmk_{id}_{secret}x"),
            &format!("hmk_{id}{secret}"),
        ] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_ends_with_its_minute() {
        let shares = Shares::default();
        assert!(!shares.take(1, 10));
        shares.add(1, 10, 2);
        assert!(shares.take(1, 10) && shares.take(1, 10) && !shares.take(1, 10));
        shares.add(1, 10, 2);
        assert!(!shares.take(2, 10) && !shares.take(1, 11), "another key, another minute");
    }
}
