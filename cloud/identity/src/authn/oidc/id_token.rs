//! Validation of the ID token that completes a login (OpenID Connect Core, 3.1.3.7). No request is
//! authorized by an ID token.

use hub_protocol::Timestamp;
use serde_json::{Map, Value};

use super::claims::{LEEWAY_SECS, names_audience, seconds};

/// Checks that the claims, whose signature was verified, are the issuer's, for this client, and
/// belong to the login with this `nonce`. Returns the subject.
pub fn check(
    claims: &Map<String, Value>,
    issuer: &str,
    client_id: &str,
    nonce: &str,
    now: Timestamp,
) -> Result<String, String> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let time = |name: &str| claims.get(name).and_then(seconds);
    let now = now.as_secs();
    // Two clocks are involved, this computer's and the issuer's, so both limits have a leeway.
    let wrong = match () {
        () if text("iss") != Some(issuer) => "its `iss` is not the issuer",
        () if !claims
            .get("aud")
            .is_some_and(|aud| names_audience(aud, client_id)) =>
        {
            "its `aud` is not this client"
        }
        () if text("azp").is_some_and(|azp| azp != client_id) => "its `azp` is not this client",
        () if time("exp").is_none_or(|exp| exp <= now - LEEWAY_SECS) => {
            "it has expired; check this machine's clock"
        }
        () if time("iat").is_none_or(|iat| iat > now + LEEWAY_SECS) => {
            "it was issued in the future; check this machine's clock"
        }
        () if text("nonce") != Some(nonce) => "its `nonce` does not match this login",
        () => {
            return text("sub")
                .map(str::to_owned)
                .ok_or_else(|| "it has no `sub`".to_owned());
        }
    };
    Err(wrong.to_owned())
}
