//! Client of the issuer, for people who log in with a browser: builds the login URL and exchanges a
//! code for tokens.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::discovery::{self, Discovery};

pub struct Issuer {
    http: reqwest::Client,
    name: String,
    discovery: Arc<Discovery>,
}

/// What a login requests from the issuer.
pub struct LoginRequest<'a> {
    pub client_id: &'a str,
    /// A public client has none.
    pub client_secret: Option<&'a SecretString>,
    pub audience: &'a str,
    pub scope: &'a str,
}

/// A response of the token endpoint (RFC 6749, 5.1).
#[derive(Deserialize)]
pub struct Tokens {
    pub access_token: String,
    token_type: String,
    pub id_token: Option<String>,
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
        Url::parse(self.audience)
            .is_ok_and(|url| url.fragment().is_none())
            .then_some(self.audience)
    }
}

impl Issuer {
    /// The issuer whose discovery document is known.
    pub fn known(http: reqwest::Client, name: &str, discovery: Arc<Discovery>) -> Self {
        Self {
            http,
            name: name.to_owned(),
            discovery,
        }
    }

    /// Whether its redirects carry `iss` (RFC 9207).
    pub fn sends_iss(&self) -> bool {
        self.discovery
            .authorization_response_iss_parameter_supported
    }

    /// The URL of the login page.
    pub fn login_url(
        &self,
        login: &LoginRequest<'_>,
        redirect_uri: &str,
        state: &str,
        nonce: &str,
        verifier: &str,
    ) -> Result<Url, String> {
        let methods = self.discovery.code_challenge_methods_supported.as_deref();
        if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
            let reason =
                "does not support PKCE with S256, which protects the code; use an issuer that does";
            return Err(format!("{} {reason}", self.name));
        }
        let mut url = self.endpoint(
            "authorization_endpoint",
            self.discovery.authorization_endpoint.as_deref(),
        )?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let mut query = url.query_pairs_mut();
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", login.client_id),
            ("redirect_uri", redirect_uri),
            ("scope", login.scope),
            ("state", state),
            ("nonce", nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            // For issuers that do not support resource indicators.
            ("audience", login.audience),
        ]);
        if let Some(resource) = login.resource() {
            query.append_pair("resource", resource);
        }
        // Required for a refresh token (OpenID Connect Core, 11).
        if login
            .scope
            .split(' ')
            .any(|scope| scope == "offline_access")
        {
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
        self.tokens(&form, login)
            .await
            .map_err(|reason| format!("{} issued no tokens: {reason}", self.name))
    }

    async fn tokens(
        &self,
        form: &[(&str, &str)],
        login: &LoginRequest<'_>,
    ) -> Result<Tokens, String> {
        let response = self
            .token_request(form, login)?
            .send()
            .await
            .map_err(|error| discovery::cause(&error))?;
        let status = response.status();
        let body = discovery::body(response).await?;
        if !status.is_success() {
            let refusal = serde_json::from_slice::<Refusal>(&body);
            return Err(refusal.map_or_else(
                |_| format!("the response was {status}"),
                |refusal| refusal.message(),
            ));
        }
        let tokens: Tokens = serde_json::from_slice(&body)
            .map_err(|error| format!("its response is not valid: {error}"))?;
        match tokens.token_type.eq_ignore_ascii_case("bearer") {
            true => Ok(tokens),
            false => Err(format!(
                "its tokens have the type `{}` instead of Bearer",
                printable(&tokens.token_type)
            )),
        }
    }

    fn token_request(
        &self,
        form: &[(&str, &str)],
        login: &LoginRequest<'_>,
    ) -> Result<RequestBuilder, String> {
        let url = self.endpoint("token_endpoint", self.discovery.token_endpoint.as_deref())?;
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        if let Some(resource) = login.resource() {
            body.append_pair("resource", resource);
        }
        let mut request = self.http.post(url).header("accept", "application/json");
        match login.client_secret.map(ExposeSecret::expose_secret) {
            // Each part is encoded as in a form (RFC 6749, 2.3.1).
            Some(secret) if self.accepts_basic() => {
                request =
                    request.basic_auth(form_encoded(login.client_id), Some(form_encoded(secret)));
            }
            Some(secret) => {
                body.append_pair("client_id", login.client_id)
                    .append_pair("client_secret", secret);
            }
            None => {
                body.append_pair("client_id", login.client_id);
            }
        }
        Ok(request
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.finish()))
    }

    /// Whether a client sends its secret in a header, as it does unless the issuer says otherwise.
    fn accepts_basic(&self) -> bool {
        let methods = self
            .discovery
            .token_endpoint_auth_methods_supported
            .as_deref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"))
    }

    fn endpoint(&self, member: &str, url: Option<&str>) -> Result<Url, String> {
        let url =
            url.ok_or_else(|| format!("the discovery document of {} has no {member}", self.name))?;
        discovery::endpoint(&self.name, url)
            .map_err(|reason| format!("{}: {member}: {reason}", self.name))
    }
}

fn form_encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
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

/// Removes control characters: text of the issuer must not control a terminal or a log.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
