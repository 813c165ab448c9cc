//! Requests to an external issuer, and its discovery document. The issuer may be slow, broken or
//! impersonated: every response is bounded in time and size, redirects are not followed, and no URL
//! it names may lead to plain HTTP on another machine.

use std::time::Duration;

use reqwest::header::CACHE_CONTROL;
use reqwest::{Response, Url, redirect};
use serde::Deserialize;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// For each request, including its body.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest body that is read.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// The members of the discovery document (OpenID Connect Discovery 1.0, 3) that are used.
#[derive(Clone, Debug, Deserialize)]
pub struct Discovery {
    issuer: String,
    pub jwks_uri: String,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub code_challenge_methods_supported: Option<Vec<String>>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

/// The body of a response, and how long it may be cached.
pub struct Fetched {
    pub body: Vec<u8>,
    pub max_age: Option<Duration>,
}

/// Builds the HTTP client for the requests to one issuer.
pub fn client(issuer: &str) -> reqwest::Result<reqwest::Client> {
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        // Requests are minutes apart. A server may close an idle connection at the moment of the
        // next request, which would then fail.
        .pool_max_idle_per_host(0)
        // After a redirect, the server might not be the one that the configuration names.
        .redirect(redirect::Policy::none());
    match Url::parse(issuer).is_ok_and(|url| is_loopback(&url)) {
        true => client.no_proxy().build(),
        false => client.build(),
    }
}

/// Whether the URL points to this machine.
pub fn is_loopback(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Checks a URL named by the issuer: it must use HTTPS, or point to this machine if the issuer is
/// on this machine too.
pub fn endpoint(issuer: &str, url: &str) -> Result<Url, String> {
    let is_local = Url::parse(issuer).is_ok_and(|issuer| is_loopback(&issuer));
    match Url::parse(url) {
        Ok(url)
            if url.scheme() == "https"
                || (url.scheme() == "http" && is_local && is_loopback(&url)) =>
        {
            Ok(url)
        }
        _ => Err(format!("it contains the URL `{url}`, which is not https")),
    }
}

/// Fetches the discovery document. Its `issuer` must equal the configured issuer exactly, since the
/// tokens are compared with that.
pub async fn discover(http: &reqwest::Client, issuer: &str) -> Result<Discovery, String> {
    let url = format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    );
    let failed = |reason: String| format!("{url}: {reason}");
    let fetched = get(http, &url).await?;
    let discovery: Discovery = serde_json::from_slice(&fetched.body).map_err(|error| {
        failed(format!(
            "this is not an OpenID Connect discovery document: {error}"
        ))
    })?;
    if discovery.issuer != issuer {
        return Err(failed(format!(
            "its issuer is `{}`, not `{issuer}`; if that is the right issuer, set oidc-issuer to it",
            discovery.issuer
        )));
    }
    Ok(discovery)
}

pub async fn get(http: &reqwest::Client, url: &str) -> Result<Fetched, String> {
    let failed = |reason: String| format!("{url}: {reason}");
    let response = http
        .get(url)
        .header("accept", "application/json")
        .send()
        .await
        .map_err(|error| failed(cause(&error)))?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(failed(format!("the response was {}", response.status())));
    }
    let cache_control = response
        .headers()
        .get(CACHE_CONTROL)
        .and_then(|value| value.to_str().ok());
    let max_age = cache_control.and_then(max_age);
    let body = body(response).await.map_err(failed)?;
    Ok(Fetched { body, max_age })
}

/// The whole body, if it is within the limit.
pub async fn body(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| cause(&error))? {
        if body.len() + chunk.len() > MAX_BODY_BYTES {
            return Err(format!(
                "the response is longer than {MAX_BODY_BYTES} bytes"
            ));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The innermost cause; the outer ones repeat the URL.
pub fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not respond in time".to_owned();
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// `max-age` of a `Cache-Control` header; zero if the header forbids caching.
fn max_age(header: &str) -> Option<Duration> {
    let mut directives = header
        .split(',')
        .map(|directive| directive.trim().to_ascii_lowercase());
    directives.find_map(|directive| match directive.as_str() {
        "no-store" | "no-cache" => Some(Duration::ZERO),
        _ => directive
            .strip_prefix("max-age=")?
            .trim_matches('"')
            .parse()
            .ok()
            .map(Duration::from_secs),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_accepted_only_for_loopback() {
        let (remote, local) = ("https://login.example.com", "http://127.0.0.1:9000");
        for (issuer, url, is_accepted) in [
            (remote, "https://keys.example.net/jwks", true),
            (remote, "http://login.example.com/jwks", false),
            (remote, "http://127.0.0.1/jwks", false),
            (remote, "file:///etc/passwd", false),
            (remote, "/jwks", false),
            (local, "http://localhost:1/jwks", true),
            (local, "http://127.0.0.1.example.com/jwks", false),
            (local, "https://login.example.com/jwks", true),
        ] {
            assert_eq!(endpoint(issuer, url).is_ok(), is_accepted, "{issuer} {url}");
        }
    }

    #[test]
    fn max_age_is_parsed() {
        for (header, secs) in [
            ("max-age=300", Some(300)),
            ("public, Max-Age=86400, must-revalidate", Some(86_400)),
            ("no-store", Some(0)),
            ("private", None),
            ("max-age=soon", None),
            ("", None),
        ] {
            assert_eq!(max_age(header), secs.map(Duration::from_secs), "{header}");
        }
    }
}
