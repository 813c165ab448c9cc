//! Validation of the ID token that completes a login on the command line (OpenID Connect Core,
//! 3.1.3.7). The service itself accepts no ID tokens.

use hub_protocol::Timestamp;
use serde_json::Value;

use super::claims::{LEEWAY_SECS, names_audience, seconds};
use super::key_set::KeySet;

/// Checks that the token comes from the issuer, is for this client, and belongs to the login with
/// this `nonce`.
pub fn check(
    token: &str,
    key_set: &[u8],
    issuer: &str,
    client_id: &str,
    nonce: &str,
    now: Timestamp,
) -> Result<(), String> {
    let header = jsonwebtoken::decode_header(token).map_err(|_| "it is not a signed JWT")?;
    let claims =
        KeySet::parse(key_set)?.verify(&header, token).ok_or("it was not signed by any of the issuer's keys")?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let time = |name: &str| claims.get(name).and_then(seconds);
    let now = now.as_secs();
    // Two clocks are involved, this computer's and the issuer's, so both limits have a leeway.
    let wrong = match () {
        () if text("iss") != Some(issuer) => "its `iss` is not the issuer",
        () if !claims.get("aud").is_some_and(|aud| names_audience(aud, client_id)) => "its `aud` is not this client",
        () if text("azp").is_some_and(|azp| azp != client_id) => "its `azp` is not this client",
        () if time("exp").is_none_or(|exp| exp <= now - LEEWAY_SECS) => "it has expired; check this machine's clock",
        () if time("iat").is_none_or(|iat| iat > now + LEEWAY_SECS) => {
            "it was issued in the future; check this machine's clock"
        }
        () if text("nonce") != Some(nonce) => "its `nonce` does not match this login",
        () => return Ok(()),
    };
    Err(wrong.to_owned())
}
