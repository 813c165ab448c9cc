//! API keys: `hmk_<8 characters, its id>_<32 characters, its secret>`. Only the hash of the secret is stored; a key is found by its id. How a key's limit
//! of requests a minute is counted is in [`super::key_shares`].

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::request::Parts;
use hub_protocol::{TenantUuid, Timestamp};

use super::key_shares;
use crate::app::App;
use crate::authz::KeyScopes;
use crate::error::{Error, Result};
use crate::sealing;

const HEADER: &str = "x-api-key";
/// Secret scanners know our keys by it.
const PREFIX: &str = "hmk_";
const ID_CHARS: usize = 8;
const SECRET_CHARS: usize = 32;

/// A key that is in force.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub api_key_id: i64,
    pub tenant_uuid: TenantUuid,
    /// The key's public half, as people see it.
    pub key_prefix: String,
    pub name: String,
    pub scopes: KeyScopes,
    pub rate_limit_per_minute: i64,
    pub expires_at: Option<Timestamp>,
}

impl ApiKey {
    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

/// A key about to be handed out.
pub struct NewKey {
    /// Its public half, without the `hmk_`.
    pub id: String,
    /// The whole of it, to be shown once.
    pub raw: String,
    pub secret_hash: Vec<u8>,
}

/// What people see of the key with this id.
pub fn prefix_of(id: &str) -> String {
    format!("{PREFIX}{id}")
}

pub fn generate() -> NewKey {
    let (id, secret) = (random_word(ID_CHARS), random_word(SECRET_CHARS));
    NewKey { raw: format!("{}_{secret}", prefix_of(&id)), secret_hash: sealing::hash(&secret), id }
}

/// Letters and digits, each as likely as any other.
fn random_word(chars: usize) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut word = String::with_capacity(chars);
    while word.len() < chars {
        // Six bits are one of 64: two of those stand for no character and are drawn again.
        let drawn = sealing::random::<64>().map(|byte| ALPHABET.get(usize::from(byte & 63)).copied());
        word.extend(drawn.into_iter().flatten().map(char::from).take(chars - word.len()));
    }
    word
}

/// Whether the request names a key, on a path where keys go before user tokens.
pub fn is_present(parts: &Parts) -> bool {
    parts.headers.contains_key(HEADER) && parts.uri.path().starts_with("/tenant/")
}

/// The key of the request's header, charged with one request. Whatever is wrong with it is one answer: a guesser learns nothing.
pub async fn authenticate(app: &App, parts: &Parts) -> Result<Arc<ApiKey>> {
    let mut values = parts.headers.get_all(HEADER).iter();
    // Of several, whoever stands between us and the client may have looked at another one.
    let (Some(value), None) = (values.next(), values.next()) else { return Err(invalid()) };
    let (id, secret) = value.to_str().ok().and_then(split).ok_or_else(invalid)?;
    let facts = app.permissions.api_key(&app.db, id).await?.ok_or_else(invalid)?;
    verify_slices_are_equal(&facts.secret_hash, &sealing::hash(secret)).map_err(|_| invalid())?;
    if facts.key.has_expired(app.clock.now()) {
        return Err(invalid());
    }
    key_shares::charge(app, &facts.key).await?;
    Ok(facts.key)
}

/// What a key that was used is allowed by now; none when it is in force no more.
pub async fn present_scopes(app: &App, key: &ApiKey) -> Result<Option<KeyScopes>> {
    let id = key.key_prefix.strip_prefix(PREFIX).unwrap_or(&key.key_prefix);
    let facts = app.permissions.api_key(&app.db, id).await?;
    let present = facts.map(|facts| facts.key).filter(|present| !present.has_expired(app.clock.now()));
    Ok(present.map(|present| present.scopes.clone()))
}

/// Id and secret, where the text has the form of a key.
fn split(key: &str) -> Option<(&str, &str)> {
    let (id, secret) = key.trim().strip_prefix(PREFIX)?.split_once('_')?;
    let is_word =
        |word: &str, chars: usize| word.len() == chars && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_word(id, ID_CHARS) && is_word(secret, SECRET_CHARS)).then_some((id, secret))
}

fn invalid() -> Error {
    Error::unauthorized("INVALID_API_KEY", "the API key is not valid, or no longer")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
    fn a_new_key_is_read_as_what_it_is() {
        let key = generate();
        let (id, secret) = split(&key.raw).expect("a key");
        assert_eq!(id, key.id);
        assert_eq!(sealing::hash(secret), key.secret_hash);
        assert_ne!(generate().raw, key.raw);
    }

    #[test]
    fn every_character_is_as_likely() {
        let mut counts: BTreeMap<char, u32> = BTreeMap::new();
        random_word(62 * 2000).chars().for_each(|c| *counts.entry(c).or_default() += 1);
        assert_eq!(counts.len(), 62);
        // Six standard deviations: this fails once in millions of runs.
        assert!(counts.values().all(|count| (1730..=2270).contains(count)), "{counts:?}");
    }
}
