//! Logging in at an OpenID Connect issuer: authorization code with PKCE on a loopback port (RFC
//! 8252). The access token goes to the service, which verifies it. The ID token is not used.

use std::net::IpAddr;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_client::Error;
use hub_protocol::Timestamp;
use reqwest::Url;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::callback::Callback;
use crate::connect::now;
use crate::failure::Failure;
use crate::terminal::{note, printable};

/// Time for the person to log in at the page of the issuer.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER_BYTES: usize = 256 << 10;
/// The validity of a token whose issuer does not state one.
const DEFAULT_LIFETIME_SECS: i64 = 5 * 60;
const MIN_VALIDITY_SECS: i64 = 30;

/// The tokens of an issuer, and where to get the next.
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

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    code_challenge_methods_supported: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<i64>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    error_description: Option<String>,
}

pub async fn log_in(
    issuer: &str,
    client_id: &str,
    audience: &str,
) -> Result<IssuerSession, Failure> {
    let failed = |reason: String| Failure::failed(format!("{}: {reason}", printable(issuer)));
    let document = address(&format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    ))?;
    let found: Discovery = answer(client(&document)?.get(document))
        .await
        .map_err(failed)?;
    if found.issuer != issuer {
        let named = printable(&found.issuer);
        return Err(Failure::configuration(format!(
            "the issuer calls itself {named}; give exactly that as --issuer"
        )));
    }
    let methods = found.code_challenge_methods_supported.as_deref();
    if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
        return Err(failed(
            "does not support PKCE with S256, which protects the login".to_owned(),
        ));
    }
    let callback = Callback::listen().await?;
    let (verifier, state, redirect_uri) = (secret(), secret(), callback.redirect_uri());
    let mut page = address(&found.authorization_endpoint)?;
    page.query_pairs_mut().extend_pairs([
        ("response_type", "code"),
        ("client_id", client_id),
        ("redirect_uri", &redirect_uri),
        ("scope", "openid profile email offline_access"),
        ("prompt", "consent"),
        ("state", &state),
        (
            "code_challenge",
            &URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())),
        ),
        ("code_challenge_method", "S256"),
        ("audience", audience),
        ("resource", audience),
    ]);
    note(&format!(
        "To log in, open this page in a browser on this machine:\n\n  {page}\n"
    ));
    open_browser(page.as_str());
    let code = tokio::time::timeout(LOGIN_TIMEOUT, callback.code(&state, issuer)).await;
    let code =
        code.map_err(|_| Failure::failed("no login within five minutes; run `hub login` again"))??;
    let session = IssuerSession {
        issuer: issuer.to_owned(),
        client_id: client_id.to_owned(),
        audience: audience.to_owned(),
        token_endpoint: found.token_endpoint,
        access_token: String::new(),
        refresh_token: None,
        expires_at: now(),
    };
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect_uri),
        ("code_verifier", &verifier),
    ];
    session.exchanged(&form, now()).await.map_err(failed)
}

impl IssuerSession {
    pub fn is_usable(&self, now: Timestamp, refused: Option<&str>) -> bool {
        self.expires_at > now.plus_secs(MIN_VALIDITY_SECS)
            && refused != Some(self.access_token.as_str())
    }

    /// The session with the next tokens.
    pub async fn refresh(&self, now: Timestamp) -> Result<Self, Error> {
        let ended = |reason: &str| {
            Error::NoSession(format!(
                "the session at {} has ended: {reason}",
                self.issuer
            ))
        };
        let token = self
            .refresh_token
            .as_deref()
            .ok_or_else(|| ended("it has no refresh token"))?;
        let form = [("grant_type", "refresh_token"), ("refresh_token", token)];
        self.exchanged(&form, now)
            .await
            .map_err(|reason| ended(&reason))
    }

    async fn exchanged(&self, form: &[(&str, &str)], now: Timestamp) -> Result<Self, String> {
        let from = [
            ("client_id", self.client_id.as_str()),
            ("resource", self.audience.as_str()),
        ];
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .extend_pairs(from)
            .finish();
        let url = address(&self.token_endpoint).map_err(|failure| failure.message)?;
        let request = client(&url).map_err(|failure| failure.message)?.post(url);
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        let tokens: Tokens = answer(request).await?;
        let lifetime = tokens
            .expires_in
            .unwrap_or(DEFAULT_LIFETIME_SECS)
            .clamp(0, 366 * 86_400);
        Ok(Self {
            access_token: tokens.access_token,
            refresh_token: tokens.refresh_token.or_else(|| self.refresh_token.clone()),
            expires_at: now.plus_secs(lifetime),
            ..self.clone()
        })
    }
}

/// A URL of an issuer: HTTPS, or on this machine.
fn address(text: &str) -> Result<Url, Failure> {
    let wrong = || {
        Failure::configuration(format!(
            "`{}` is no https:// URL of an issuer",
            printable(text)
        ))
    };
    let url = Url::parse(text).map_err(|_| wrong())?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        _ => Err(wrong()),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

/// A client for this URL. What goes to this machine does not pass through another one.
fn client(url: &Url) -> Result<reqwest::Client, Failure> {
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(ANSWER_TIMEOUT);
    let http = if is_loopback(url) {
        http.no_proxy()
    } else {
        http
    };
    http.build()
        .map_err(|error| Failure::failed(format!("no HTTPS here: {error}")))
}

async fn answer<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, String> {
    let request = request.header("accept", "application/json");
    let mut response = request
        .send()
        .await
        .map_err(|error| printable(&error.without_url().to_string()))?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| printable(&error.without_url().to_string()))?
    {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER_BYTES {
            return Err("answers too much".to_owned());
        }
    }
    if status.is_success() {
        return serde_json::from_slice(&body)
            .map_err(|error| format!("its answer is not understood: {error}"));
    }
    let refusal = serde_json::from_slice::<Refusal>(&body);
    Err(refusal.map_or_else(
        |_| format!("answers with status {status}"),
        |Refusal {
             error,
             error_description,
         }| printable(&error_description.unwrap_or(error)),
    ))
}

/// 244 random bits, in characters that a URL and a verifier may have.
fn secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// Opens the browser if there is one. The address was shown, so a failure does not matter.
fn open_browser(url: &str) {
    let mut command = std::process::Command::new("xdg-open");
    let _ = command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}
