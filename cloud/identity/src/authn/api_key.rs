//! API keys: `hmk_<id, 8 characters>_<secret, 32 characters>`. A key is looked up by its id, and
//! only the hash of its secret is stored. [`super::key_shares`] counts requests against a key's
//! limit per minute.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::request::Parts;
use futures_util::future::BoxFuture;
use hub_base::error::{Error, Result};
use hub_base::sealing;

use super::grants::KeyScopes;
use super::principal::PREFIX;
use super::{Authn, key_shares};

pub use super::principal::{ApiKey, prefix_of};

const HEADER: &str = "x-api-key";
const ID_CHARS: usize = 8;
const SECRET_CHARS: usize = 32;

/// A new key that has not been returned yet.
pub struct NewKey {
    /// The public part, without `hmk_`.
    pub id: String,
    /// The whole key. It is returned once and never again.
    pub raw: String,
    pub secret_hash: Vec<u8>,
}

pub fn generate() -> NewKey {
    let (id, secret) = (random_word(ID_CHARS), random_word(SECRET_CHARS));
    NewKey {
        raw: format!("{}_{secret}", prefix_of(&id)),
        secret_hash: sealing::hash(&secret),
        id,
    }
}

/// Letters and digits, all equally likely.
fn random_word(chars: usize) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut word = String::with_capacity(chars);
    while word.len() < chars {
        // Six bits have 64 values. The two values without a character are drawn again.
        let drawn =
            sealing::random::<64>().map(|byte| ALPHABET.get(usize::from(byte & 63)).copied());
        word.extend(
            drawn
                .into_iter()
                .flatten()
                .map(char::from)
                .take(chars - word.len()),
        );
    }
    word
}

/// Whether the request carries a key, on a path where a key takes precedence over a user token.
pub fn is_present(parts: &Parts) -> bool {
    parts.headers.contains_key(HEADER) && parts.uri.path().starts_with("/tenant/")
}

/// Returns the key of the request's header and counts one request against its limit. Every fault of
/// a key gives the same error, so that guessing reveals nothing.
pub fn authenticate<'a>(authn: &'a Authn, parts: &'a Parts) -> BoxFuture<'a, Result<Arc<ApiKey>>> {
    Box::pin(async move {
        let mut values = parts.headers.get_all(HEADER).iter();
        // If there are several keys, a proxy in front may have checked a different one.
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(invalid());
        };
        let (id, secret) = value.to_str().ok().and_then(split).ok_or_else(invalid)?;
        let facts = authn
            .permissions
            .api_key(&authn.core.db, id)
            .await?
            .ok_or_else(invalid)?;
        verify_slices_are_equal(&facts.secret_hash, &sealing::hash(secret))
            .map_err(|_| invalid())?;
        if facts.key.has_expired(authn.core.clock.now()) {
            return Err(invalid());
        }
        key_shares::charge(&authn.core, &authn.key_shares, &facts.key).await?;
        Ok(facts.key)
    })
}

/// The current scopes of a key that was accepted earlier; `None` if the key is no longer active.
pub async fn current_scopes(authn: &Authn, key: &ApiKey) -> Result<Option<KeyScopes>> {
    let id = key
        .key_prefix
        .strip_prefix(PREFIX)
        .unwrap_or(&key.key_prefix);
    let facts = authn.permissions.api_key(&authn.core.db, id).await?;
    let current = facts
        .map(|facts| facts.key)
        .filter(|current| !current.has_expired(authn.core.clock.now()));
    Ok(current.map(|current| current.scopes.clone()))
}

/// The id and the secret, if the text has the form of a key.
fn split(key: &str) -> Option<(&str, &str)> {
    let (id, secret) = key.trim().strip_prefix(PREFIX)?.split_once('_')?;
    let is_word = |word: &str, chars: usize| {
        word.len() == chars && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    (is_word(id, ID_CHARS) && is_word(secret, SECRET_CHARS)).then_some((id, secret))
}

fn invalid() -> Error {
    Error::unauthorized(
        "INVALID_API_KEY",
        "the API key is not valid, has expired or was deactivated; create a new one",
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn malformed_keys_are_rejected() {
        let (id, secret) = ("a".repeat(8), "B".repeat(32));
        assert_eq!(
            split(&format!("hmk_{id}_{secret}")),
            Some((id.as_str(), secret.as_str()))
        );
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
    fn generated_key_is_parsed_back() {
        let key = generate();
        let (id, secret) = split(&key.raw).expect("a key");
        assert_eq!(id, key.id);
        assert_eq!(sealing::hash(secret), key.secret_hash);
        assert_ne!(generate().raw, key.raw);
    }

    #[test]
    fn characters_are_uniformly_distributed() {
        let mut counts: BTreeMap<char, u32> = BTreeMap::new();
        random_word(62 * 2000)
            .chars()
            .for_each(|c| *counts.entry(c).or_default() += 1);
        assert_eq!(counts.len(), 62);
        // Six standard deviations: this fails once in millions of runs.
        assert!(
            counts.values().all(|count| (1730..=2270).contains(count)),
            "{counts:?}"
        );
    }
}
