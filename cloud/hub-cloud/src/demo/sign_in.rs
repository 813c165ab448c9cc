//! The link with which the demo begins: `/demo/CODE` signs a browser of this machine in to the
//! console, once. Only the demo adds this path to the service's own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_base::error::Error;
use hub_base::sealing;
use serde_json::json;

use super::demo_dir::Account;
use super::sample::http_client;

/// How long the link works.
const VALID: Duration = Duration::from_secs(600);
const CONSOLE: &str = "/console?signedIn=yes";
/// The console says in a sentence what these mean.
const LINK_USED: &str = "/console?signInError=SIGN_IN_LINK_USED";
const LINK_FAILED: &str = "/console?signInError=SIGN_IN_LINK_FAILED";

/// A link that nobody has used yet. The code itself is not kept.
struct Unused {
    code_hash: Vec<u8>,
    ends_at: Instant,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct SignIn {
    unused: Arc<Mutex<Option<Unused>>>,
    account: Account,
    service_url: String,
}

impl SignIn {
    /// Makes a link for the account, and returns its URL.
    pub fn new(service_url: &str, account: Account) -> (Self, String) {
        let code = URL_SAFE_NO_PAD.encode(sealing::random::<12>());
        let unused = Unused {
            code_hash: sealing::hash(&code),
            ends_at: Instant::now() + VALID,
        };
        let sign_in = Self {
            unused: Arc::new(Mutex::new(Some(unused))),
            account,
            service_url: service_url.to_owned(),
        };
        (sign_in, format!("{service_url}/demo/{code}"))
    }

    pub fn routes(self) -> Router {
        // Programs that look at links before people do ask for the head alone.
        let link = get(open).head(async || StatusCode::NO_CONTENT);
        Router::new().route("/demo/{code}", link).with_state(self)
    }

    /// Whether the link works, which it then has done.
    fn take(&self, code: &str) -> bool {
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        let works = unused.as_ref().is_some_and(|link| {
            link.code_hash == sealing::hash(code) && Instant::now() < link.ends_at
        });
        if works {
            *unused = None;
        }
        works
    }

    /// Signs the browser in as its form does, and returns the cookie of its session.
    async fn cookie(&self, user_agent: Option<&HeaderValue>) -> Option<HeaderValue> {
        let Account { email, password } = &self.account;
        let mut request = http_client()
            .ok()?
            .post(format!("{}/auth/session", self.service_url))
            .header("sec-fetch-site", "same-origin")
            .json(&json!({"email": email, "password": password}));
        if let Some(user_agent) = user_agent {
            request = request.header(header::USER_AGENT, user_agent);
        }
        let answer = request.send().await.ok()?.error_for_status().ok()?;
        answer.headers().get(header::SET_COOKIE).cloned()
    }
}

async fn open(
    State(sign_in): State<SignIn>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Path(code): Path<String>,
    headers: HeaderMap,
) -> Response {
    if !peer.ip().to_canonical().is_loopback() {
        return Error::forbidden(
            "OTHER_MACHINE",
            "this link works on the machine of the demo alone",
        )
        .into_response();
    }
    let not_stored = [(header::CACHE_CONTROL, "no-store")];
    // A browser that fetches ahead is not a person who opens the link.
    if headers.contains_key("sec-purpose") {
        return (StatusCode::NO_CONTENT, not_stored).into_response();
    }
    if !sign_in.take(&code) {
        return (not_stored, Redirect::to(LINK_USED)).into_response();
    }
    match sign_in.cookie(headers.get(header::USER_AGENT)).await {
        Some(cookie) => (
            not_stored,
            [(header::SET_COOKIE, cookie)],
            Redirect::to(CONSOLE),
        )
            .into_response(),
        None => (not_stored, Redirect::to(LINK_FAILED)).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_works_once_and_for_a_limited_time() {
        let account = Account {
            email: "demo@example.com".to_owned(),
            password: "secret".to_owned(),
        };
        let (sign_in, link) = SignIn::new("http://127.0.0.1:1", account);
        let code = link.rsplit('/').next().expect("a code");
        assert!(!sign_in.take("another"));
        assert!(sign_in.take(code) && !sign_in.take(code));

        let ended = Unused {
            code_hash: sealing::hash(code),
            ends_at: Instant::now(),
        };
        *sign_in.unused.lock().expect("a lock") = Some(ended);
        assert!(!sign_in.take(code));
    }
}
