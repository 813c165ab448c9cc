//! Client of the issuer: builds the login URL and exchanges a code or a refresh token for tokens.

use hub_protocol::Timestamp;
use reqwest::Url;
use serde::Deserialize;

use super::session::Session;
use crate::authn::oidc::discovery::{self, Discovery};
use crate::authn::oidc::id_token;

pub struct Issuer {
    http: reqwest::Client,
    name: String,
    discovery: Discovery,
}

/// What a login requests from the issuer.
pub struct LoginRequest<'a> {
    pub client_id: &'a str,
    pub audience: &'a str,
    pub scope: &'a str,
}

/// A response of the token endpoint (RFC 6749, 5.1).
#[derive(Deserialize)]
pub struct Tokens {
    pub access_token: String,
    token_type: String,
    pub expires_in: Option<i64>,
    pub refresh_token: Option<String>,
    id_token: Option<String>,
}

/// An error response of the token endpoint (RFC 6749, 5.2).
#[derive(Deserialize)]
struct Refusal {
    error: String,
    error_description: Option<String>,
}

impl LoginRequest<'_> {
    /// The audience, if it is a resource indicator: a URI without fragment (RFC 8707, 2).
    fn resource(&self) -> Option<&str> {
        Url::parse(self.audience).is_ok_and(|url| url.fragment().is_none()).then_some(self.audience)
    }
}

impl Issuer {
    pub async fn find(name: &str) -> Result<Self, String> {
        let http = discovery::client(name).map_err(|error| format!("cannot create an HTTP client: {error}"))?;
        let found = discovery::discover(&http, name).await;
        let discovery =
            found.map_err(|reason| format!("cannot fetch the discovery document of the issuer: {reason}"))?;
        Ok(Self { http, name: name.to_owned(), discovery })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its redirects carry `iss` (RFC 9207).
    pub fn sends_iss(&self) -> bool {
        self.discovery.authorization_response_iss_parameter_supported
    }

    /// The URL of the login page.
    pub fn login_url(
        &self,
        login: &LoginRequest<'_>,
        redirect_uri: &str,
        state: &str,
        nonce: &str,
        challenge: &str,
    ) -> Result<Url, String> {
        let methods = self.discovery.code_challenge_methods_supported.as_deref();
        if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
            let reason = "does not support PKCE with S256, which protects the code; use an issuer that does";
            return Err(format!("{} {reason}", self.name));
        }
        let mut url = self.endpoint("authorization_endpoint", self.discovery.authorization_endpoint.as_deref())?;
        let mut query = url.query_pairs_mut();
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", login.client_id),
            ("redirect_uri", redirect_uri),
            ("scope", login.scope),
            ("state", state),
            ("nonce", nonce),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256"),
            // For issuers that do not support resource indicators.
            ("audience", login.audience),
        ]);
        if let Some(resource) = login.resource() {
            query.append_pair("resource", resource);
        }
        // Required for a refresh token (OpenID Connect Core, 11).
        if login.scope.split(' ').any(|scope| scope == "offline_access") {
            query.append_pair("prompt", "consent");
        }
        drop(query);
        Ok(url)
    }

    /// Exchanges the authorization code for tokens.
    pub async fn redeem(
        &self,
        login: &LoginRequest<'_>,
        code: &str,
        redirect_uri: &str,
        verifier: &str,
    ) -> Result<Tokens, String> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ];
        let again = "run `hub-cloud login` again";
        self.tokens(&form, login).await.map_err(|reason| format!("{} issued no tokens: {reason}; {again}", self.name))
    }

    /// Refreshes the tokens of the session.
    pub async fn refresh(&self, session: Session, now: Timestamp) -> Result<Session, String> {
        let again = "run `hub-cloud login` again";
        let Some(refresh_token) = session.refresh_token() else {
            return Err(format!("the access token has expired and the issuer sent no refresh token; {again}"));
        };
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        let tokens = self.tokens(&form, &session.login_request()).await;
        let tokens = tokens.map_err(|reason| format!("{} issued no new token: {reason}; {again}", self.name))?;
        session.refreshed(tokens, now)
    }

    /// Checks that the ID token belongs to this login. Without the scope `openid` there is no ID
    /// token, and the code with its verifier must suffice.
    pub async fn check_id_token(
        &self,
        login: &LoginRequest<'_>,
        tokens: &Tokens,
        nonce: &str,
        now: Timestamp,
    ) -> Result<(), String> {
        let id_token = match &tokens.id_token {
            Some(id_token) => id_token,
            None if login.scope.split(' ').any(|scope| scope == "openid") => {
                return Err(format!("{} sent no ID token although the scope openid requests one", self.name));
            }
            None => return Ok(()),
        };
        let jwks_uri = discovery::endpoint(&self.name, &self.discovery.jwks_uri)?;
        let keys = discovery::get(&self.http, jwks_uri.as_str()).await?.body;
        id_token::check(id_token, &keys, &self.name, login.client_id, nonce, now)
            .map_err(|reason| format!("the ID token from {} does not belong to this login: {reason}", self.name))
    }

    async fn tokens(&self, form: &[(&str, &str)], login: &LoginRequest<'_>) -> Result<Tokens, String> {
        let url = self.endpoint("token_endpoint", self.discovery.token_endpoint.as_deref())?;
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form).append_pair("client_id", login.client_id);
        if let Some(resource) = login.resource() {
            body.append_pair("resource", resource);
        }
        let request = self.http.post(url).header("accept", "application/json");
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body.finish());
        let response = request.send().await.map_err(|error| discovery::cause(&error))?;
        let status = response.status();
        let body = discovery::body(response).await?;
        if !status.is_success() {
            let refusal = serde_json::from_slice::<Refusal>(&body);
            return Err(refusal.map_or_else(|_| format!("the response was {status}"), |refusal| refusal.message()));
        }
        let tokens: Tokens =
            serde_json::from_slice(&body).map_err(|error| format!("its response is not valid: {error}"))?;
        match tokens.token_type.eq_ignore_ascii_case("bearer") {
            true => Ok(tokens),
            false => Err(format!("its tokens have the type `{}` instead of Bearer", printable(&tokens.token_type))),
        }
    }

    fn endpoint(&self, member: &str, url: Option<&str>) -> Result<Url, String> {
        let url = url.ok_or_else(|| format!("the discovery document of {} has no {member}", self.name))?;
        discovery::endpoint(&self.name, url).map_err(|reason| format!("{}: {member}: {reason}", self.name))
    }
}

impl Refusal {
    fn message(self) -> String {
        refusal(&self.error, self.error_description.as_deref())
    }
}

/// An OAuth error as the issuer describes it.
pub fn refusal(error: &str, description: Option<&str>) -> String {
    match description {
        Some(description) => format!("{} ({})", printable(description), printable(error)),
        None => printable(error),
    }
}

/// Removes control characters: text of the issuer must not control the terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
