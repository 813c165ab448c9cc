//! The ID token that ends a login on the command line (OpenID Connect Core, 3.1.3.7). The service itself takes none.

use hub_protocol::Timestamp;
use serde_json::Value;

use super::claims::{LEEWAY_SECS, names_audience, seconds};
use super::key_set::KeySet;

/// Checks that the token is from the issuer, for this client, and about the login that `nonce` was made for.
pub fn check(
    token: &str,
    key_set: &[u8],
    issuer: &str,
    client_id: &str,
    nonce: &str,
    now: Timestamp,
) -> Result<(), String> {
    let header = jsonwebtoken::decode_header(token).map_err(|_| "it is no signed JWT")?;
    let claims = KeySet::parse(key_set)?.verify(&header, token).ok_or("none of the issuer's keys signed it")?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let time = |name: &str| claims.get(name).and_then(seconds);
    let now = now.as_secs();
    // Here the clocks are a laptop's and the issuer's: both ends give way.
    let wrong = match () {
        () if text("iss") != Some(issuer) => "its `iss` is another",
        () if !claims.get("aud").is_some_and(|aud| names_audience(aud, client_id)) => "its `aud` is not this client",
        () if text("azp").is_some_and(|azp| azp != client_id) => "its `azp` is not this client",
        () if time("exp").is_none_or(|exp| exp <= now - LEEWAY_SECS) => "it has expired; look at this machine's clock",
        () if time("iat").is_none_or(|iat| iat > now + LEEWAY_SECS) => {
            "it is from the future; look at this machine's clock"
        }
        () if text("nonce") != Some(nonce) => "its `nonce` is another",
        () => return Ok(()),
    };
    Err(wrong.to_owned())
}
