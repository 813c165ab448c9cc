//! Checks the claims of an access token of an external issuer after its signature was verified, and
//! rejects other kinds of token. An ID token, a refresh token or a token bound to a key proves
//! something else to another party, even if its audience matches.

use hub_core::config::OidcConfig;
use hub_protocol::Timestamp;
use jsonwebtoken::Header;
use serde_json::{Map, Value};

use super::users::{self, Vouched};

/// Tolerated difference between the issuer's clock and this one. It does not prolong the life of a
/// token.
pub const LEEWAY_SECS: i64 = 60;
/// The limit of OpenID Connect Core, section 2.
const MAX_SUBJECT_BYTES: usize = 255;
/// Claims that may contain a name, in order of preference.
const NAMES: [&str; 3] = ["name", "preferred_username", "nickname"];
/// Claims of an ID token that bind it to one login at one client. Some issuers give access tokens
/// no type of their own; then these claims tell the two apart.
const ID_TOKEN_CLAIMS: [&str; 3] = ["nonce", "at_hash", "c_hash"];

/// What the service uses of a valid token.
#[derive(Debug)]
pub struct Claims {
    pub subject: String,
    pub expires_at: i64,
    /// None if the issuer does not say.
    pub issued_at: Option<i64>,
    pub is_platform_admin: bool,
    pub vouched: Vouched,
}

/// Whether the header is that of an access token. The `alg` and `kid` are checked where the key is
/// chosen. A key in the header itself (`jwk`, `jku`, `x5u`, `x5c`) is never used.
pub fn is_access_token(header: &Header) -> bool {
    // A critical header parameter must be understood (RFC 7515, 4.1.11), and none is supported.
    header.crit.is_none()
        && header
            .typ
            .as_deref()
            .is_none_or(|typ| is_type(typ, "jwt") || is_type(typ, "at+jwt"))
}

/// A media type; the prefix `application/` is optional (RFC 7515, 4.1.9).
fn is_type(typ: &str, expected: &str) -> bool {
    let typ = typ.to_ascii_lowercase();
    typ.strip_prefix("application/").unwrap_or(&typ) == expected
}

/// Checks the claims and returns the identity if the token is valid now.
pub fn check(
    header: &Header,
    claims: &Map<String, Value>,
    config: &OidcConfig,
    now: Timestamp,
) -> Option<Claims> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(config.issuer.as_str())
        || !names_audience(claims.get("aud")?, &config.audience)
    {
        return None;
    }
    let now = now.as_secs();
    let issued_at = claims.get("iat").and_then(seconds);
    let expires_at = seconds(claims.get("exp")?)?;
    if expires_at <= now {
        return None;
    }
    for name in ["nbf", "iat"] {
        if let Some(time) = claims.get(name)
            && seconds(time)? > now + LEEWAY_SECS
        {
            return None;
        }
    }
    if !has_access_token_claims(header, claims) {
        return None;
    }
    let subject = text("sub").filter(|subject| {
        !subject.trim().is_empty()
            && subject.len() <= MAX_SUBJECT_BYTES
            && !subject.chars().any(char::is_control)
    })?;
    // An issuer may know addresses that nobody has verified.
    let email = match claims.get("email_verified") {
        Some(Value::Bool(true)) => text("email").and_then(users::vouched_email),
        _ => None,
    };
    let nickname = NAMES
        .iter()
        .find_map(|name| text(name).and_then(users::vouched_nickname));
    let is_platform_admin = config
        .administrator
        .as_ref()
        .is_some_and(|claim| has_role(claims, &claim.path, &claim.value));
    Some(Claims {
        subject: subject.to_owned(),
        expires_at,
        issued_at,
        is_platform_admin,
        vouched: Vouched { email, nickname },
    })
}

/// Whether the token is an access token. `at+jwt` (RFC 9068) says so; without it, the claims must
/// not be those of another kind of token.
fn has_access_token_claims(header: &Header, claims: &Map<String, Value>) -> bool {
    // Bound to a key that the sender would have to prove (RFC 8705, RFC 9449), so not a bearer
    // token.
    if claims.contains_key("cnf") {
        return false;
    }
    if header
        .typ
        .as_deref()
        .is_some_and(|typ| is_type(typ, "at+jwt"))
    {
        return true;
    }
    // Keycloak and Cognito mark their token types in these claims.
    let is_marked = |name: &str, access: &str| match claims.get(name) {
        None => true,
        Some(value) => value
            .as_str()
            .is_some_and(|value| value.eq_ignore_ascii_case(access)),
    };
    !ID_TOKEN_CLAIMS
        .iter()
        .any(|name| claims.contains_key(*name))
        && is_marked("typ", "Bearer")
        && is_marked("token_use", "access")
}

pub fn names_audience(aud: &Value, audience: &str) -> bool {
    match aud {
        Value::String(name) => name == audience,
        Value::Array(names) => names.iter().any(|name| name.as_str() == Some(audience)),
        _ => false,
    }
}

/// A `NumericDate` (RFC 7519), which may have a fraction.
pub fn seconds(value: &Value) -> Option<i64> {
    let whole = value.as_i64();
    #[allow(
        clippy::cast_possible_truncation,
        reason = "in the range of whole seconds"
    )]
    let fraction = || {
        value
            .as_f64()
            .filter(|secs| (0.0..1e15).contains(secs))
            .map(|secs| secs as i64)
    };
    whole.or_else(fraction)
}

/// Roles are a list of strings or one string. Some issuers name the claim by a URL, whose dots are
/// no path separators.
fn has_role(claims: &Map<String, Value>, path: &[String], role: &str) -> bool {
    let found = claims.get(&path.join(".")).or_else(|| {
        let (first, rest) = path.split_first()?;
        rest.iter()
            .try_fold(claims.get(first)?, |value, name| value.get(name))
    });
    match found {
        Some(Value::String(name)) => name == role,
        Some(Value::Array(names)) => names.iter().any(|name| name.as_str() == Some(role)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use hub_core::config::AdministratorClaim;
    use jsonwebtoken::Algorithm;
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn checked(typ: Option<&str>, changes: Value) -> Option<Claims> {
        let config = OidcConfig {
            issuer: "https://login.example.com".to_owned(),
            audience: "https://hubs.example.com".to_owned(),
            client_id: None,
            client_secret: None,
            administrator: Some(AdministratorClaim {
                path: vec!["realm_access".to_owned(), "roles".to_owned()],
                value: "PLATFORM_ADMIN".to_owned(),
            }),
        };
        let mut claims = json!({"iss": config.issuer, "aud": config.audience, "sub": "ada", "exp": NOW + 60, "iat": NOW});
        for (name, value) in changes.as_object().expect("an object") {
            match value {
                Value::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        let mut header = Header::new(Algorithm::ES256);
        header.typ = typ.map(str::to_owned);
        let is_access_token = is_access_token(&header);
        check(
            &header,
            claims.as_object()?,
            &config,
            Timestamp::from_micros(NOW * 1_000_000),
        )
        .filter(|_| is_access_token)
    }

    #[test]
    fn valid_claims_are_accepted() {
        for changes in [
            json!({}),
            json!({"aud": ["other", "https://hubs.example.com"]}),
            json!({"exp": 1_800_000_060.5}),
            json!({"nbf": NOW + 60, "iat": NOW + 60}),
            json!({"iat": null}),
            json!({"typ": "Bearer", "token_use": "access"}),
            json!({"sub": "x".repeat(255)}),
        ] {
            for typ in [
                None,
                Some("JWT"),
                Some("jwt"),
                Some("at+jwt"),
                Some("application/at+jwt"),
            ] {
                assert!(checked(typ, changes.clone()).is_some(), "{typ:?} {changes}");
            }
        }
        assert!(
            checked(Some("at+jwt"), json!({"nonce": "n"})).is_some(),
            "its type is explicit"
        );
    }

    #[test]
    fn invalid_claims_are_rejected() {
        for changes in [
            json!({"iss": null}),
            json!({"iss": "https://login.example.com/"}),
            json!({"iss": ["https://login.example.com"]}),
            json!({"aud": null}),
            json!({"aud": []}),
            json!({"aud": "https://hubs.example.com/"}),
            json!({"aud": {"https://hubs.example.com": true}}),
            json!({"exp": null}),
            json!({"exp": NOW}),
            json!({"exp": NOW - 1}),
            json!({"exp": "1900000000"}),
            json!({"exp": 1e300}),
            json!({"nbf": NOW + 61}),
            json!({"nbf": "now"}),
            json!({"iat": NOW + 61}),
            json!({"sub": null}),
            json!({"sub": 7}),
            json!({"sub": ""}),
            json!({"sub": " "}),
            json!({"sub": "a\u{0}b"}),
            json!({"sub": "x".repeat(256)}),
            json!({"nonce": "n"}),
            json!({"at_hash": "h"}),
            json!({"c_hash": "h"}),
            json!({"typ": "ID"}),
            json!({"typ": 7}),
            json!({"token_use": "id"}),
            json!({"cnf": {"jkt": "thumbprint"}}),
        ] {
            assert!(checked(Some("JWT"), changes.clone()).is_none(), "{changes}");
            assert!(checked(None, changes.clone()).is_none(), "{changes}");
        }
        for typ in ["id_token", "logout+jwt", "secevent+jwt", "dpop+jwt", ""] {
            assert!(checked(Some(typ), json!({})).is_none(), "{typ}");
        }
    }

    #[test]
    fn email_must_be_verified_and_names_are_cleaned() {
        let vouched = |changes: Value| {
            let Vouched { email, nickname } = checked(None, changes).expect("a good token").vouched;
            (email, nickname)
        };
        let text = |text: &str| Some(text.to_owned());
        for (changes, expected) in [
            (
                json!({"email": "Ada@Example.com", "email_verified": true}),
                (text("ada@example.com"), None),
            ),
            (
                json!({"email": "ada@example.com", "email_verified": false}),
                (None, None),
            ),
            (
                json!({"email": "ada@example.com", "email_verified": "true"}),
                (None, None),
            ),
            (json!({"email": "ada@example.com"}), (None, None)),
            (
                json!({"email": "ada", "email_verified": true}),
                (None, None),
            ),
            (
                json!({"email": 7, "email_verified": true, "name": 7}),
                (None, None),
            ),
            (
                json!({"name": " Ada\u{0}\n Lovelace ", "nickname": "al"}),
                (None, text("Ada Lovelace")),
            ),
            (
                json!({"name": "\u{7}", "preferred_username": "ada"}),
                (None, text("ada")),
            ),
            (
                json!({"name": "é".repeat(100)}),
                (None, Some("é".repeat(80))),
            ),
        ] {
            assert_eq!(vouched(changes.clone()), expected, "{changes}");
        }
    }

    #[test]
    fn a_role_is_found_at_its_path() {
        for (changes, expected) in [
            (
                json!({"realm_access": {"roles": ["user", "PLATFORM_ADMIN"]}}),
                true,
            ),
            (json!({"realm_access": {"roles": "PLATFORM_ADMIN"}}), true),
            (json!({"realm_access.roles": ["PLATFORM_ADMIN"]}), true),
            (
                json!({"realm_access": {"roles": "NO PLATFORM_ADMIN"}}),
                false,
            ),
            (
                json!({"realm_access": {"roles": ["platform_admin", 7, null]}}),
                false,
            ),
            (
                json!({"realm_access": {"roles": {"PLATFORM_ADMIN": true}}}),
                false,
            ),
            (json!({"realm_access": ["PLATFORM_ADMIN"]}), false),
            (json!({"roles": ["PLATFORM_ADMIN"]}), false),
            (json!({}), false),
        ] {
            assert_eq!(
                checked(None, changes.clone())
                    .expect("a good token")
                    .is_platform_admin,
                expected,
                "{changes}"
            );
        }
    }
}
