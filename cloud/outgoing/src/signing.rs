//! Signatures by which a receiver knows that a message is from this service and unchanged.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_base::sealing::random;
use secrecy::{ExposeSecret, SecretString};

const PREFIX: &str = "whsec_";
const SECRET_BYTES: usize = 32;

/// `whsec_` and the base64 of 32 random bytes.
pub fn new_signing_secret() -> SecretString {
    format!("{PREFIX}{}", STANDARD.encode(random::<SECRET_BYTES>())).into()
}

/// The key bytes of a secret: the decoded base64 after `whsec_`; of any other text its bytes.
pub fn key_of(secret: &SecretString) -> Vec<u8> {
    let text = secret.expose_secret();
    let decoded = text
        .strip_prefix(PREFIX)
        .and_then(|encoded| STANDARD.decode(encoded).ok());
    decoded.unwrap_or_else(|| text.as_bytes().to_vec())
}

/// The value of `webhook-signature`: HMAC-SHA256 over id, time in seconds and body, joined by dots.
pub fn standard_webhook(
    secret: &SecretString,
    id: &str,
    timestamp_secs: i64,
    body: &[u8],
) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key_of(secret));
    let mut signing = hmac::Context::with_key(&key);
    signing.update(format!("{id}.{timestamp_secs}.").as_bytes());
    signing.update(body);
    format!("v1,{}", STANDARD.encode(signing.sign()))
}

/// The value of `X-Service-Signature`: HMAC-SHA256 over the body alone.
pub fn service_signature(secret: &[u8], body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    format!("sha256={}", hex::encode(hmac::sign(&key, body)))
}

/// Whether a header is the `X-Service-Signature` of the body. The comparison takes constant time.
pub fn is_service_signature(secret: &[u8], body: &[u8], header: &str) -> bool {
    let Some(signature) = header
        .trim()
        .strip_prefix("sha256=")
        .and_then(|digits| hex::decode(digits).ok())
    else {
        return false;
    };
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, secret), body, &signature).is_ok()
}

/// Whether one of the signatures in a `webhook-signature` header, separated by spaces, is that of
/// id, time and body. The comparison takes constant time.
pub fn is_standard_webhook(
    secret: &SecretString,
    id: &str,
    timestamp_secs: i64,
    body: &[u8],
    header: &str,
) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key_of(secret));
    let signed = [format!("{id}.{timestamp_secs}.").as_bytes(), body].concat();
    header
        .split(' ')
        .filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok())
        .any(|signature| hmac::verify(&key, &signed, &signature).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard's own libraries.
    #[test]
    fn signature_is_the_one_of_the_standard() {
        let secret = SecretString::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let body = br#"{"test": 2432232314}"#;
        let signature =
            standard_webhook(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let is_signed =
            |secs, body: &[u8], header: &str| is_standard_webhook(&secret, id, secs, body, header);
        assert!(is_signed(1_614_265_330, body, &signature));
        assert!(is_signed(
            1_614_265_330,
            body,
            &format!("v1a,x v1,AA== {signature}")
        ));
        assert!(!is_signed(1_614_265_331, body, &signature));
        assert!(!is_signed(1_614_265_330, b"{}", &signature));
        assert!(!is_signed(1_614_265_330, body, ""));
        assert!(!is_signed(
            1_614_265_330,
            body,
            &signature.replace("v1,", "v2,")
        ));
    }

    #[test]
    fn secrets_are_long_and_differ() {
        let secrets = [new_signing_secret(), new_signing_secret()];
        for secret in &secrets {
            assert_eq!(key_of(secret).len(), SECRET_BYTES);
            assert!(secret.expose_secret().starts_with(PREFIX));
        }
        assert_ne!(secrets[0].expose_secret(), secrets[1].expose_secret());
    }

    #[test]
    fn service_signature_is_hex_of_the_body() {
        // RFC 4231, test case 2.
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let (secret, body) = (b"Jefe", b"what do ya want for nothing?");
        assert_eq!(service_signature(secret, body), expected);
        assert!(is_service_signature(secret, body, expected));
        assert!(is_service_signature(
            secret,
            body,
            &expected.replace("5bdc", "5BDC")
        ));
        for wrong in [
            "",
            "sha256=",
            "sha256=5bdc",
            &expected.replace("sha256=", "sha1="),
            &expected.replace('5', "6"),
        ] {
            assert!(!is_service_signature(secret, body, wrong), "{wrong}");
        }
        assert!(!is_service_signature(b"jefe", body, expected));
    }
}
