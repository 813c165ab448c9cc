//! The public keys of an external issuer, from its JSON Web Key Set (RFC 7517), each with the
//! algorithms it may be used with. The header of a token selects one of these keys and never
//! supplies its own. Entries that are not public signature keys are ignored.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A limit that no issuer reaches.
const MAX_KEYS: usize = 100;
const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

#[derive(Debug, Default)]
pub struct KeySet {
    keys: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Jwk {
    kid: String,
    algorithms: Vec<Algorithm>,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa { n: String, e: String },
    Ec { x: String, y: String },
    Ed { x: String },
}

#[derive(Debug)]
struct Key {
    jwk: Jwk,
    decoding: DecodingKey,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

/// The members of a key that are used. Private members are not read.
#[derive(Deserialize)]
struct Members {
    kid: Option<String>,
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    pub fn parse(body: &[u8]) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(body)
            .map_err(|error| format!("this is not a JSON Web Key Set: {error}"))?;
        if document.keys.len() > MAX_KEYS {
            return Err(format!(
                "it contains {} keys, more than {MAX_KEYS}",
                document.keys.len()
            ));
        }
        let keys: Vec<Key> = document.keys.into_iter().filter_map(key).collect();
        if keys.is_empty() {
            return Err(
                "it contains no signature key with a `kid` (RSA, P-256, P-384 or Ed25519)"
                    .to_owned(),
            );
        }
        Ok(Self { keys })
    }

    pub fn has(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.jwk.kid == kid)
    }

    /// Whether this set contains every key of `other` with the same algorithms.
    pub fn covers(&self, other: &Self) -> bool {
        other
            .keys
            .iter()
            .all(|key| self.keys.iter().any(|own| own.jwk == key.jwk))
    }

    /// Verifies a token's signature and returns its claims, which are not checked.
    pub fn verify(&self, header: &Header, token: &str) -> Option<Map<String, Value>> {
        let kid = header.kid.as_deref()?;
        let key = self
            .keys
            .iter()
            .find(|key| key.jwk.kid == kid && key.jwk.algorithms.contains(&header.alg))?;
        let mut validation = Validation::new(header.alg);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        jsonwebtoken::decode(token, &key.decoding, &validation)
            .ok()
            .map(|token| token.claims)
    }
}

/// Parses a signature key; `None` if it is of another kind or for another use.
fn key(value: Value) -> Option<Key> {
    let members: Members = serde_json::from_value(value).ok()?;
    let is_for_signatures = members.usage.as_deref().is_none_or(|usage| usage == "sig")
        && members
            .key_ops
            .as_ref()
            .is_none_or(|uses| uses.iter().any(|usage| usage == "verify"));
    if !is_for_signatures {
        return None;
    }
    let bytes = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
    let is_point = |size: usize| {
        [&members.x, &members.y]
            .iter()
            .all(|part| bytes(part).is_some_and(|part| part.len() == size))
    };
    let possible: &[Algorithm] = match (members.kty.as_str(), members.crv.as_deref()) {
        ("RSA", _) if bytes(&members.n).is_some() && bytes(&members.e).is_some() => RSA,
        ("EC", Some("P-256")) if is_point(32) => &[Algorithm::ES256],
        ("EC", Some("P-384")) if is_point(48) => &[Algorithm::ES384],
        ("OKP", Some("Ed25519")) if bytes(&members.x).is_some_and(|x| x.len() == 32) => {
            &[Algorithm::EdDSA]
        }
        _ => return None,
    };
    // A key that names an algorithm is used with that one alone.
    let algorithms: Vec<Algorithm> = match members.alg.as_deref() {
        Some(alg) => possible
            .iter()
            .copied()
            .filter(|algorithm| alg.parse().ok() == Some(*algorithm))
            .collect(),
        None => possible.to_vec(),
    };
    if algorithms.is_empty() {
        return None;
    }
    let (decoding, material) = match (
        members.kty.as_str(),
        members.n,
        members.e,
        members.x,
        members.y,
    ) {
        ("RSA", Some(n), Some(e), ..) => (
            DecodingKey::from_rsa_components(&n, &e),
            Material::Rsa { n, e },
        ),
        ("EC", _, _, Some(x), Some(y)) => (
            DecodingKey::from_ec_components(&x, &y),
            Material::Ec { x, y },
        ),
        ("OKP", _, _, Some(x), _) => (DecodingKey::from_ed_components(&x), Material::Ed { x }),
        _ => return None,
    };
    Some(Key {
        jwk: Jwk {
            kid: members.kid?,
            algorithms,
            material,
        },
        decoding: decoding.ok()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(keys: Value) -> Result<KeySet, String> {
        KeySet::parse(json!({"keys": keys}).to_string().as_bytes())
    }

    /// The algorithms that a key may be used with, by its members.
    #[test]
    fn algorithms_follow_from_the_key() {
        let text = |bytes: usize| URL_SAFE_NO_PAD.encode(vec![1; bytes]);
        let rsa = |more: Value| {
            let mut key = json!({"kty": "RSA", "kid": "a", "n": text(256), "e": "AQAB"});
            key.as_object_mut()
                .expect("an object")
                .extend(more.as_object().expect("an object").clone());
            key
        };
        let ec = |crv: &str, size: usize| json!({"kty": "EC", "kid": "a", "crv": crv, "x": text(size), "y": text(size)});
        for (key, expected) in [
            (rsa(json!({})), RSA),
            (
                rsa(json!({"alg": "PS256", "use": "sig"})),
                &[Algorithm::PS256],
            ),
            (rsa(json!({"key_ops": ["verify"]})), RSA),
            (ec("P-256", 32), &[Algorithm::ES256]),
            (ec("P-384", 48), &[Algorithm::ES384]),
            (
                json!({"kty": "OKP", "kid": "a", "crv": "Ed25519", "x": text(32)}),
                &[Algorithm::EdDSA],
            ),
        ] {
            let keys = set(json!([key])).unwrap_or_else(|error| panic!("{key}: {error}"));
            assert_eq!(keys.keys[0].jwk.algorithms, expected, "{key}");
        }
        for key in [
            rsa(json!({"use": "enc"})),
            rsa(json!({"key_ops": ["encrypt"]})),
            rsa(json!({"alg": "HS256"})),
            rsa(json!({"alg": "ES256"})),
            rsa(json!({"alg": "RSA-OAEP"})),
            rsa(json!({"alg": "none"})),
            rsa(json!({"kid": null})),
            rsa(json!({"n": 7})),
            rsa(json!({"kty": "oct", "k": text(32)})),
            json!({"kty": "oct", "kid": "a", "k": text(32), "alg": "HS256"}),
            ec("P-256", 48),
            ec("P-256", 31),
            ec("P-521", 66),
            ec("secp256k1", 32),
            json!({"kty": "OKP", "kid": "a", "crv": "X25519", "x": text(32)}),
            json!("key"),
        ] {
            set(json!([key])).expect_err(&key.to_string());
        }
    }

    #[test]
    fn set_is_bounded_and_skips_unusable_keys() {
        let key = |kid: usize| json!({"kty": "OKP", "kid": kid.to_string(), "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode([1; 32])});
        let keys = set(json!([null, 3, {"kty": "oct"}, key(1)])).expect("one key");
        assert!(keys.has("1") && !keys.has("2"));
        let both = set(json!([key(1), key(2)])).expect("two keys");
        assert!(both.covers(&keys) && !keys.covers(&both));
        set(json!((0..=MAX_KEYS).map(key).collect::<Vec<_>>())).expect_err("too many");
        for body in ["", "[]", "{}", "{\"keys\": 1}", "\u{0}"] {
            KeySet::parse(body.as_bytes()).expect_err(body);
        }
    }
}
