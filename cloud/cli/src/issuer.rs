//! The OpenID Connect issuer: its login page, and the tokens of a session there. The crate `oauth2`
//! builds and parses the messages; `openidconnect` is not used, as it brings a second set of
//! cryptography (RustCrypto's RSA and elliptic curves). The ID token is not used: the access token
//! goes to the service, which verifies it, and PKCE binds the code to this login (RFC 9700, 2.1.1).

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_client::{Error, cause, is_loopback, now};
use hub_protocol::Timestamp;
use oauth2::basic::{BasicClient, BasicErrorResponse, BasicTokenResponse, BasicTokenType};
use oauth2::{
    AuthUrl, AuthorizationCode, ClientId, CsrfToken, HttpRequest, HttpResponse, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, RefreshToken, RequestTokenError, Scope, TokenResponse, TokenUrl,
};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::text::printable;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_RESPONSE_BYTES: usize = 256 << 10;
/// Lifetime of a token for which neither the token nor the issuer states an expiry.
const DEFAULT_LIFETIME_SECS: i64 = 5 * 60;
/// A token that expires sooner is refreshed before it is used or printed.
const MIN_VALIDITY_SECS: i64 = 60;

/// What a login requests from the issuer.
pub struct LoginRequest {
    pub client_id: String,
    pub audience: String,
    pub scope: String,
}

/// The members of the discovery document (OpenID Connect Discovery 1.0, 3) that are used.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

pub struct Issuer {
    name: String,
    authorization_endpoint: Url,
    token_endpoint: Url,
    /// Whether its redirects carry `iss` (RFC 9207).
    pub sends_iss: bool,
}

/// The page at which the user logs in, and the secrets that its redirect and its code belong to.
pub struct LoginPage {
    pub url: Url,
    pub state: CsrfToken,
    verifier: PkceCodeVerifier,
    redirect_uri: RedirectUrl,
}

/// The tokens of a login, with all that a refresh needs.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerSession {
    issuer: String,
    client_id: String,
    audience: String,
    token_endpoint: String,
    pub access_token: String,
    refresh_token: Option<String>,
    expires_at: Timestamp,
}

impl Issuer {
    /// Fetches the discovery document. Its `issuer` must equal `name` exactly, since the service
    /// compares tokens with that.
    pub async fn discover(name: &str) -> Result<Self, Failure> {
        let failed = |reason: String| {
            Failure::failed(format!(
                "cannot fetch the discovery document of {}: {reason}",
                printable(name)
            ))
        };
        let path = "/.well-known/openid-configuration";
        let url = endpoint(name, &format!("{}{path}", name.trim_end_matches('/')))?;
        let request = oauth2::http::Request::get(url.as_str())
            .header("accept", "application/json")
            .body(Vec::new())
            .map_err(|error| failed(error.to_string()))?;
        let response = send(request)
            .await
            .map_err(|error| failed(error.to_string()))?;
        if !response.status().is_success() {
            return Err(failed(format!("the response was {}", response.status())));
        }
        let found: Discovery = serde_json::from_slice(response.body())
            .map_err(|error| failed(format!("it is not one: {error}")))?;
        if found.issuer != name {
            return Err(Failure::configuration(format!(
                "the issuer identifies itself as {}; use exactly that as --issuer",
                printable(&found.issuer)
            )));
        }
        let methods = found.code_challenge_methods_supported.as_deref();
        if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
            return Err(Failure::failed(format!(
                "{} does not support PKCE with S256, which protects the code; use an issuer that does",
                printable(name)
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            authorization_endpoint: endpoint(name, &found.authorization_endpoint)?,
            token_endpoint: endpoint(name, &found.token_endpoint)?,
            sends_iss: found.authorization_response_iss_parameter_supported,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn login_page(
        &self,
        login: &LoginRequest,
        redirect_uri: String,
    ) -> Result<LoginPage, Failure> {
        let redirect_uri = RedirectUrl::new(redirect_uri)
            .map_err(|error| Failure::failed(format!("cannot log in: {error}")))?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let client = BasicClient::new(ClientId::new(login.client_id.clone()))
            .set_auth_uri(AuthUrl::from_url(self.authorization_endpoint.clone()))
            .set_redirect_uri(redirect_uri.clone());
        let scopes: Vec<&str> = login.scope.split_whitespace().collect();
        let mut request = client
            .authorize_url(CsrfToken::new_random)
            .add_scopes(scopes.iter().map(|scope| Scope::new((*scope).to_owned())))
            .set_pkce_challenge(challenge)
            // For issuers that do not support resource indicators.
            .add_extra_param("audience", &login.audience);
        if let Some(resource) = resource(&login.audience) {
            request = request.add_extra_param("resource", resource);
        }
        // Required for a refresh token (OpenID Connect Core, 11).
        if scopes.contains(&"offline_access") {
            request = request.add_extra_param("prompt", "consent");
        }
        let (url, state) = request.url();
        Ok(LoginPage {
            url,
            state,
            verifier,
            redirect_uri,
        })
    }

    /// Exchanges the authorization code for tokens.
    pub async fn redeem(
        &self,
        login: &LoginRequest,
        page: LoginPage,
        code: String,
    ) -> Result<IssuerSession, Failure> {
        let client = BasicClient::new(ClientId::new(login.client_id.clone()))
            .set_token_uri(TokenUrl::from_url(self.token_endpoint.clone()))
            .set_redirect_uri(page.redirect_uri);
        let mut request = client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(page.verifier);
        if let Some(resource) = resource(&login.audience) {
            request = request.add_extra_param("resource", resource);
        }
        let session = IssuerSession {
            issuer: self.name.clone(),
            client_id: login.client_id.clone(),
            audience: login.audience.clone(),
            token_endpoint: self.token_endpoint.to_string(),
            access_token: String::new(),
            refresh_token: None,
            expires_at: now(),
        };
        let tokens = request.request_async(&send).await.map_err(TokenError::from);
        tokens
            .and_then(|tokens| session.with_tokens(&tokens, now()))
            .map_err(|error| {
                Failure::failed(format!(
                    "{} issued no tokens: {error}; run `hub login` again",
                    printable(&self.name)
                ))
            })
    }
}

impl IssuerSession {
    pub fn is_usable(&self, now: Timestamp, refused: Option<&str>) -> bool {
        self.expires_at > now.plus_secs(MIN_VALIDITY_SECS)
            && refused != Some(self.access_token.as_str())
    }

    pub fn can_be_refreshed(&self) -> bool {
        self.refresh_token.is_some()
    }

    /// The session with new tokens, in exchange for the refresh token.
    pub async fn refresh(&self, now: Timestamp) -> Result<Self, Error> {
        let ended = |reason: String| {
            Error::NoSession(format!(
                "the session at {} has ended: {reason}",
                self.issuer
            ))
        };
        let Some(refresh_token) = self.refresh_token.clone().map(RefreshToken::new) else {
            return Err(ended("the issuer sent no refresh token".to_owned()));
        };
        let url = endpoint(&self.issuer, &self.token_endpoint)
            .map_err(|failure| Error::Configuration(failure.message))?;
        let client = BasicClient::new(ClientId::new(self.client_id.clone()))
            .set_token_uri(TokenUrl::from_url(url));
        let mut request = client.exchange_refresh_token(&refresh_token);
        if let Some(resource) = resource(&self.audience) {
            request = request.add_extra_param("resource", resource);
        }
        let tokens = request.request_async(&send).await.map_err(TokenError::from);
        tokens
            .and_then(|tokens| self.clone().with_tokens(&tokens, now))
            .map_err(|error| match error {
                TokenError::Unreachable(_) => {
                    Error::Unreachable(format!("no response from {}: {error}", self.issuer))
                }
                TokenError::Refused(reason) => ended(reason),
            })
    }

    /// Replaces the tokens. If the issuer sends no new refresh token, the old one stays in use.
    fn with_tokens(self, tokens: &BasicTokenResponse, now: Timestamp) -> Result<Self, TokenError> {
        if *tokens.token_type() != BasicTokenType::Bearer {
            let kind = printable(tokens.token_type().as_ref());
            return Err(TokenError::Refused(format!(
                "its tokens have the type `{kind}` instead of Bearer"
            )));
        }
        let access_token = tokens.access_token().secret();
        let claims = claims(access_token).ok_or_else(|| {
            TokenError::Refused(format!(
                "the issuer sent an opaque access token, which the service cannot verify; \
                 configure `{}` at the issuer as an API (resource) with JWT access tokens",
                self.audience
            ))
        })?;
        if !includes_audience(claims.get("aud"), &self.audience) {
            let audience = claims.get("aud").unwrap_or(&Value::Null).to_string();
            return Err(TokenError::Refused(format!(
                "the issuer sent an access token for {} instead of `{}`; \
                 give the identifier of the service at the issuer as --audience",
                printable(&audience),
                self.audience
            )));
        }
        let stated = claims
            .get("exp")
            .and_then(Value::as_i64)
            .and_then(|secs| secs.checked_mul(1_000_000))
            .map(Timestamp::from_micros);
        let lifetime = tokens.expires_in().map_or(DEFAULT_LIFETIME_SECS, |time| {
            i64::try_from(time.as_secs().min(366 * 86_400)).unwrap_or(DEFAULT_LIFETIME_SECS)
        });
        let refresh_token = tokens.refresh_token().map(|token| token.secret().clone());
        Ok(Self {
            access_token: access_token.clone(),
            expires_at: stated.unwrap_or_else(|| now.plus_secs(lifetime)),
            refresh_token: refresh_token.or(self.refresh_token),
            ..self
        })
    }
}

/// Why there are no tokens.
#[derive(Debug, thiserror::Error)]
enum TokenError {
    #[error(transparent)]
    Unreachable(HttpError),
    #[error("{0}")]
    Refused(String),
}

impl From<RequestTokenError<HttpError, BasicErrorResponse>> for TokenError {
    fn from(error: RequestTokenError<HttpError, BasicErrorResponse>) -> Self {
        match error {
            RequestTokenError::Request(error) => Self::Unreachable(error),
            RequestTokenError::ServerResponse(refusal) => {
                let code = printable(refusal.error().as_ref());
                Self::Refused(match refusal.error_description() {
                    Some(description) => format!("{} ({code})", printable(description)),
                    None => code,
                })
            }
            RequestTokenError::Parse(error, _) => {
                Self::Refused(format!("its response is not valid: {error}"))
            }
            RequestTokenError::Other(reason) => Self::Refused(printable(&reason)),
        }
    }
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct HttpError(String);

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        Self(printable(&cause(&error)))
    }
}

/// Sends a request. The response is bounded in time and size, redirects are not followed, and what
/// goes to this machine does not pass through a proxy.
async fn send(request: HttpRequest) -> Result<HttpResponse, HttpError> {
    let request = reqwest::Request::try_from(request)?;
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(RESPONSE_TIMEOUT);
    let http = match is_loopback(request.url()) {
        true => http.no_proxy().build()?,
        false => http.build()?,
    };
    let mut response = http.execute(request).await?;
    let status = response.status();
    // A server that is out of order is not one that refuses the login.
    if status.is_server_error() {
        return Err(HttpError(format!("the response was {status}")));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_RESPONSE_BYTES {
            return Err(HttpError(format!(
                "the response is longer than {MAX_RESPONSE_BYTES} bytes"
            )));
        }
    }
    let mut received = HttpResponse::new(body);
    *received.status_mut() = status;
    *received.headers_mut() = std::mem::take(response.headers_mut());
    Ok(received)
}

/// A URL of the issuer: it must use HTTPS, or point to this machine if the issuer is on this
/// machine too.
fn endpoint(issuer: &str, url: &str) -> Result<Url, Failure> {
    let is_local = Url::parse(issuer).is_ok_and(|issuer| is_loopback(&issuer));
    match Url::parse(url) {
        Ok(url)
            if url.scheme() == "https"
                || (url.scheme() == "http" && is_local && is_loopback(&url)) =>
        {
            Ok(url)
        }
        _ => Err(Failure::configuration(format!(
            "`{}` is not the https:// URL of an issuer",
            printable(url)
        ))),
    }
}

/// The audience, if it is a resource indicator: a URI without fragment (RFC 8707, 2).
fn resource(audience: &str) -> Option<&str> {
    Url::parse(audience)
        .is_ok_and(|url| url.fragment().is_none())
        .then_some(audience)
}

/// The claims of a token, unverified: they serve to report a wrong setup early. The service
/// verifies the token.
fn claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (payload, rest) = (parts.nth(1)?, parts.count());
    let payload = URL_SAFE_NO_PAD.decode(payload).ok().filter(|_| rest == 1)?;
    serde_json::from_slice(&payload).ok()
}

fn includes_audience(aud: Option<&Value>, audience: &str) -> bool {
    match aud {
        Some(Value::Array(names)) => names.iter().any(|name| name == audience),
        Some(name) => name == audience,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUDIENCE: &str = "https://hubs.example.com";

    fn session() -> IssuerSession {
        IssuerSession {
            issuer: "https://login.example.com".to_owned(),
            client_id: "hub-cli".to_owned(),
            audience: AUDIENCE.to_owned(),
            token_endpoint: "https://login.example.com/token".to_owned(),
            access_token: "old".to_owned(),
            refresh_token: Some("r1".to_owned()),
            expires_at: Timestamp::from_micros(0),
        }
    }

    /// The session after a response with an access token of these claims.
    fn after(claims: &Value, token_type: &str) -> Result<IssuerSession, TokenError> {
        let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
        let response = serde_json::json!({
            "access_token": format!("e30.{payload}.c2ln"), "token_type": token_type, "expires_in": 100,
        });
        let tokens = serde_json::from_value(response).expect("a response");
        session().with_tokens(&tokens, Timestamp::from_micros(0))
    }

    #[test]
    fn a_new_token_replaces_the_old_one_and_keeps_the_refresh_token() {
        let session = after(
            &serde_json::json!({"aud": [AUDIENCE], "exp": 1_000}),
            "bearer",
        )
        .expect("a session");
        assert_eq!(session.refresh_token.as_deref(), Some("r1"));
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        assert!(session.is_usable(at(939), None) && !session.is_usable(at(940), None));
        assert!(!session.is_usable(at(0), Some(&session.access_token)));
        let session = after(&serde_json::json!({"aud": AUDIENCE}), "Bearer").expect("a session");
        assert!(session.is_usable(at(39), None) && !session.is_usable(at(40), None));
    }

    #[test]
    fn a_token_that_the_service_cannot_accept_is_refused() {
        for (claims, token_type, says) in [
            (
                serde_json::json!({"aud": "another"}),
                "bearer",
                "--audience",
            ),
            (serde_json::json!({}), "bearer", "--audience"),
            (serde_json::json!({"aud": AUDIENCE}), "mac", "Bearer"),
        ] {
            let refused = after(&claims, token_type).map(|session| session.access_token);
            let message = refused.expect_err("a refusal").to_string();
            assert!(message.contains(says), "{message}");
        }
        let opaque = serde_json::json!({"access_token": "opaque", "token_type": "bearer"});
        let tokens = serde_json::from_value(opaque).expect("a response");
        let refused = session().with_tokens(&tokens, Timestamp::from_micros(0));
        assert!(matches!(refused, Err(TokenError::Refused(reason)) if reason.contains("opaque")));
    }

    #[test]
    fn plain_http_is_accepted_only_on_this_machine() {
        let (remote, local) = ("https://login.example.com", "http://127.0.0.1:9000");
        for (issuer, url, is_accepted) in [
            (remote, "https://keys.example.net/token", true),
            (remote, "http://login.example.com/token", false),
            (remote, "http://127.0.0.1/token", false),
            (remote, "file:///etc/passwd", false),
            (remote, "/token", false),
            (local, "http://localhost:1/token", true),
            (local, "http://127.0.0.1.example.com/token", false),
            (local, "https://login.example.com/token", true),
        ] {
            assert_eq!(endpoint(issuer, url).is_ok(), is_accepted, "{issuer} {url}");
        }
    }
}
