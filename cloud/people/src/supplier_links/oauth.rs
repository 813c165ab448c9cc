//! What is said to the authorization server of a supplier: codes and refresh tokens for tokens, the
//! id of a user, the end of tokens. The server may be slow, broken or hostile: every answer is
//! bounded and judged before it is used. No error has anything of an answer in it but the code of
//! an OAuth error.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use hub_core::Core;
use hub_outgoing::{CallError, CallErrorKind, OutgoingRequest, OutgoingResponse};
use hub_protocol::{Timestamp, text_enum};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;

use super::metadata::Metadata;
use crate::supplier_oauth::{OauthClient, schemes};

/// The time limit of a whole call.
const WITHIN: Duration = Duration::from_secs(8);
/// The time limit of a revocation: a user waits for it, and it can be repeated.
const REVOKED_WITHIN: Duration = Duration::from_secs(3);
const MAX_RESPONSE_BYTES: usize = 128 * 1024;
const MAX_TOKEN_BYTES: usize = 16 * 1024;
pub const MAX_SUB_CHARS: usize = 255;
const MAX_SCOPE_CHARS: usize = 2_000;
/// Ten years: a longer lifetime is not plausible.
const LONGEST_LIFE_SECS: i64 = 10 * 365 * 24 * 3600;
/// Tokens are refreshed this long before they expire.
const REFRESH_BEFORE_SECS: i64 = 300;
/// The assumed lifetime of tokens if the server states none.
const ASSUMED_LIFE_SECS: i64 = 3600;

/// The client's authentication at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAuth {
    Basic,
    Post,
    None,
}

text_enum!(TokenAuth { Basic = "BASIC", Post = "POST", None = "NONE" });

impl TokenAuth {
    /// The method that both the client and the server support. If the server states none, OAuth
    /// prescribes Basic.
    pub fn of(client: &OauthClient, metadata: &Metadata) -> Self {
        let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
        let has =
            |name: &str| methods.is_some_and(|methods| methods.iter().any(|method| method == name));
        match client.secret {
            None => Self::None,
            Some(_) if has("client_secret_post") && !has("client_secret_basic") => Self::Post,
            Some(_) => Self::Basic,
        }
    }
}

/// The reason for a failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server refused, with this code.
    Refused(String),
    /// The call failed, or its answer was invalid.
    Failed(String),
    /// The answer did not arrive in time. The server may have carried the call out.
    TimedOut,
}

impl Fault {
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

pub fn call_error(error: CallError) -> Fault {
    match error.kind {
        CallErrorKind::TimedOut => Fault::TimedOut,
        _ => Fault::Failed(error.message),
    }
}

/// Checked tokens of the token endpoint.
#[derive(Debug)]
pub struct Tokens {
    pub access_token: SecretString,
    pub refresh_token: Option<SecretString>,
    pub expires_at: Option<Timestamp>,
    /// When to refresh; None if that is not needed or not possible.
    pub refresh_at: Option<Timestamp>,
    pub scope: Option<String>,
    id_token: Option<String>,
}

/// RFC 6749, section 5.1.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    token_type: String,
    expires_in: Option<Value>,
    refresh_token: Option<String>,
    scope: Option<String>,
    id_token: Option<String>,
}

/// RFC 6749, section 5.2.
#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// Exchanges a code.
pub async fn redeem(
    core: &Core,
    client: &OauthClient,
    auth: TokenAuth,
    code: &str,
    redirect_uri: &str,
    verifier: &SecretString,
) -> Result<Tokens, Fault> {
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect_uri),
        ("code_verifier", verifier.expose_secret()),
    ];
    tokens(core, client, auth, &form, false).await
}

/// Exchanges a refresh token. After a lost answer, the call is repeated once and at once: servers
/// that rotate refresh tokens accept the same one for a short time only.
pub async fn refresh(
    core: &Core,
    client: &OauthClient,
    auth: TokenAuth,
    refresh_token: &SecretString,
) -> Result<Tokens, Fault> {
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh_token.expose_secret()),
    ];
    match tokens(core, client, auth, &form, true).await {
        Err(Fault::TimedOut | Fault::Failed(_)) => tokens(core, client, auth, &form, true).await,
        outcome => outcome,
    }
}

async fn tokens(
    core: &Core,
    client: &OauthClient,
    auth: TokenAuth,
    form: &[(&str, &str)],
    is_refresh: bool,
) -> Result<Tokens, Fault> {
    let asked_at = core.clock.now();
    let answer = post(core, client, auth, &client.config.token_url, form, WITHIN).await?;
    if !(200..300).contains(&answer.status) {
        return Err(refusal(&answer));
    }
    if answer.is_cut {
        return Err(Fault::failed("the token response is too long"));
    }
    let response: TokenResponse = serde_json::from_slice(&answer.body)
        .map_err(|_| Fault::failed("the token response is not valid"))?;
    checked(response, asked_at, is_refresh)
}

fn checked(
    response: TokenResponse,
    asked_at: Timestamp,
    is_refresh: bool,
) -> Result<Tokens, Fault> {
    if !response.token_type.eq_ignore_ascii_case("bearer") {
        return Err(Fault::failed("the token is no bearer token"));
    }
    let refresh_token = response.refresh_token.filter(|token| !token.is_empty());
    for token in std::iter::once(&response.access_token).chain(&refresh_token) {
        let is_text = token.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        if token.trim().is_empty() || token.len() > MAX_TOKEN_BYTES || !is_text {
            return Err(Fault::failed(
                "a token is empty, too long, or no ASCII text",
            ));
        }
    }
    let lives_secs = match response.expires_in {
        None | Some(Value::Null) => None,
        Some(given) => Some(
            seconds(&given).ok_or_else(|| Fault::failed("`expires_in` is no number of seconds"))?,
        ),
    };
    let scope = response.scope.filter(|scope| !scope.trim().is_empty());
    if scope.as_ref().is_some_and(|scope| {
        scope.chars().count() > MAX_SCOPE_CHARS || scope.contains(char::is_control)
    }) {
        return Err(Fault::failed("the scope is too long, or no line of text"));
    }
    // A refresh that brings no other refresh token leaves the old one in force.
    let is_refreshable = refresh_token.is_some() || is_refresh;
    Ok(Tokens {
        access_token: response.access_token.into(),
        refresh_token: refresh_token.map(SecretString::from),
        expires_at: lives_secs.map(|secs| asked_at.plus_secs(secs)),
        refresh_at: is_refreshable.then(|| {
            asked_at.plus_secs(lives_secs.unwrap_or(ASSUMED_LIFE_SECS) - REFRESH_BEFORE_SECS)
        }),
        scope,
        id_token: response.id_token,
    })
}

/// A number; some servers send it as text.
fn seconds(value: &Value) -> Option<i64> {
    let secs = match value {
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().map(|secs| secs as i64))?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    Some(secs.clamp(0, LONGEST_LIFE_SECS))
}

/// The user's id at the supplier; None if neither the user endpoint nor an ID token provides it.
pub async fn user_sub(
    core: &Core,
    client: &OauthClient,
    metadata: &Metadata,
    tokens: &Tokens,
) -> Result<Option<String>, Fault> {
    let claimed = match &tokens.id_token {
        Some(id_token) => Some(sub_of_id_token(client, id_token)?),
        None => None,
    };
    let url = client
        .config
        .userinfo_url
        .as_deref()
        .or(metadata.userinfo_endpoint.as_deref());
    let Some(url) = url else { return Ok(claimed) };
    let url = core
        .outgoing
        .check_url(url, schemes(core))
        .map_err(|_| Fault::failed("userinfo cannot be called"))?;
    let bearer = HeaderValue::try_from(format!("Bearer {}", tokens.access_token.expose_secret()));
    let mut bearer = bearer.map_err(|_| Fault::failed("the token fits no header"))?;
    bearer.set_sensitive(true);
    let accept = HeaderValue::from_static("application/json");
    let request = OutgoingRequest {
        method: Method::GET,
        url,
        headers: HeaderMap::from_iter([(header::AUTHORIZATION, bearer), (header::ACCEPT, accept)]),
        body: Bytes::new(),
        within: WITHIN,
        max_response_bytes: MAX_RESPONSE_BYTES,
        tls: None,
    };
    let answer = core.outgoing.send(request).await.map_err(call_error)?;
    if answer.status != 200 || answer.is_cut {
        return Err(Fault::failed(format!(
            "userinfo was answered with {}",
            answer.status
        )));
    }
    let claims: Value =
        serde_json::from_slice(&answer.body).map_err(|_| Fault::failed("userinfo is no JSON"))?;
    let sub = sub_of(&claims)?;
    // The answer for one user's token could be put in the place of another's.
    match claimed.is_none_or(|claimed| claimed == sub) {
        true => Ok(Some(sub)),
        false => Err(Fault::failed(
            "userinfo is about another user than the ID token",
        )),
    }
}

/// The ID token came from the token endpoint itself, so its signature proves nothing more (OpenID
/// Connect Core, section 3.1.3.7).
fn sub_of_id_token(client: &OauthClient, id_token: &str) -> Result<String, Fault> {
    let malformed = || Fault::failed("the ID token is not valid");
    let payload = id_token.split('.').nth(1).ok_or_else(malformed)?;
    let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| malformed())?;
    let claims: Value = serde_json::from_slice(&payload).map_err(|_| malformed())?;
    let is_for_us = match claims.get("aud") {
        Some(Value::String(aud)) => *aud == client.config.client_id,
        Some(Value::Array(all)) => all.iter().any(|aud| *aud == client.config.client_id),
        _ => false,
    };
    let is_of_issuer = client
        .config
        .issuer
        .as_deref()
        .is_none_or(|issuer| claims.get("iss").is_some_and(|iss| iss == issuer));
    match is_for_us && is_of_issuer {
        true => sub_of(&claims),
        false => Err(Fault::failed(
            "the ID token is of another issuer, or for another client",
        )),
    }
}

fn sub_of(claims: &Value) -> Result<String, Fault> {
    let sub = claims
        .get("sub")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let fits = !sub.trim().is_empty()
        && sub.chars().count() <= MAX_SUB_CHARS
        && !sub.contains(char::is_control);
    match fits {
        true => Ok(sub.to_owned()),
        false => Err(Fault::failed("there is no usable `sub`")),
    }
}

/// Revokes a token at the supplier (RFC 7009). A token that is unknown to the server has ended.
pub async fn revoke(
    core: &Core,
    client: &OauthClient,
    auth: TokenAuth,
    url: &str,
    token: &SecretString,
    hint: &'static str,
) -> Result<(), Fault> {
    let form = [("token", token.expose_secret()), ("token_type_hint", hint)];
    let answer = post(core, client, auth, url, &form, REVOKED_WITHIN).await?;
    if (200..300).contains(&answer.status) {
        return Ok(());
    }
    match refusal(&answer) {
        Fault::Refused(code)
            if ["unsupported_token_type", "invalid_token", "invalid_grant"].contains(&&*code) =>
        {
            Ok(())
        }
        fault => Err(fault),
    }
}

async fn post(
    core: &Core,
    client: &OauthClient,
    auth: TokenAuth,
    url: &str,
    form: &[(&str, &str)],
    within: Duration,
) -> Result<OutgoingResponse, Fault> {
    // The settings may allow less than when the URL was stored.
    let url = core
        .outgoing
        .check_url(url, schemes(core))
        .map_err(|reason| Fault::failed(format!("the URL {reason}")))?;
    let (headers, body) = form_of(client, auth, form)?;
    let request = OutgoingRequest {
        method: Method::POST,
        url,
        headers,
        body,
        within,
        max_response_bytes: MAX_RESPONSE_BYTES,
        tls: None,
    };
    core.outgoing.send(request).await.map_err(call_error)
}

/// A form with the client's credentials, which are in the header or in the form.
fn form_of(
    client: &OauthClient,
    auth: TokenAuth,
    form: &[(&str, &str)],
) -> Result<(HeaderMap, Bytes), Fault> {
    let id = client.config.client_id.as_str();
    let mut headers = HeaderMap::from_iter([
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        ),
        (header::ACCEPT, HeaderValue::from_static("application/json")),
    ]);
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    match (auth, &client.secret) {
        (TokenAuth::Basic | TokenAuth::None, Some(secret)) => {
            let encoded =
                |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = STANDARD.encode(format!(
                "{}:{}",
                encoded(id),
                encoded(secret.expose_secret())
            ));
            let basic = HeaderValue::try_from(format!("Basic {pair}"));
            let mut basic =
                basic.map_err(|_| Fault::failed("the client's secret fits no header"))?;
            basic.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, basic);
        }
        (TokenAuth::Post, Some(secret)) => {
            body.append_pair("client_id", id)
                .append_pair("client_secret", secret.expose_secret());
        }
        (_, None) => {
            body.append_pair("client_id", id);
        }
    }
    Ok((headers, Bytes::from(body.finish())))
}

/// An error of OAuth, or a server that fails.
fn refusal(answer: &OutgoingResponse) -> Fault {
    let status = answer.status;
    let known = |code: &str| {
        (1..=64).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    match serde_json::from_slice::<Refusal>(&answer.body) {
        Ok(Refusal { error }) if (400..500).contains(&status) && known(&error) => {
            Fault::Refused(error)
        }
        _ => Fault::failed(format!("the authorization server answered {status}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

    fn judged(response: Value) -> Result<Tokens, Fault> {
        checked(
            serde_json::from_value(response).expect("a response"),
            NOW,
            false,
        )
    }

    #[test]
    fn lives_of_tokens_are_understood() {
        for (given, lives_secs) in [
            (json!(3600), Some(3600)),
            (json!("3600"), Some(3600)),
            (json!(59.9), Some(59)),
            (json!(-5), Some(0)),
            (json!(i64::MAX), Some(LONGEST_LIFE_SECS)),
            (Value::Null, None),
        ] {
            let response = json!({"access_token": "a", "token_type": "bearer", "refresh_token": "r", "expires_in": given});
            let tokens = judged(response).expect("tokens");
            assert_eq!(
                tokens.expires_at,
                lives_secs.map(|secs| NOW.plus_secs(secs)),
                "{given}"
            );
            assert_eq!(
                tokens.refresh_at,
                Some(NOW.plus_secs(lives_secs.unwrap_or(3600) - 300)),
                "{given}"
            );
        }
        let once = judged(json!({"access_token": "a", "token_type": "Bearer", "expires_in": 60}))
            .expect("tokens");
        assert_eq!(once.refresh_at, None, "there is nothing to refresh it with");
    }

    #[test]
    fn tokens_that_cannot_be_used_are_refused() {
        let long = "a".repeat(MAX_TOKEN_BYTES + 1);
        for (member, value) in [
            ("access_token", json!("")),
            ("access_token", json!("a\nb")),
            ("access_token", json!("é")),
            ("access_token", json!(long)),
            ("refresh_token", json!(long)),
            ("token_type", json!("DPoP")),
            ("expires_in", json!("soon")),
            ("expires_in", json!({})),
            ("scope", json!("a".repeat(MAX_SCOPE_CHARS + 1))),
        ] {
            let mut response = json!({"access_token": "a", "token_type": "Bearer"});
            response[member] = value.clone();
            assert!(judged(response).is_err(), "{member}: {value}");
        }
    }
}
