//! The authorization server of a supplier, in the test's process, for what a good one never does:
//! every answer is the test's to choose. What a good one does is tried with a certified provider.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::StreamExt;
use reqwest::Url;
use serde_json::{Value, json};

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub form: BTreeMap<String, String>,
    pub body: Bytes,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// As it should.
    Whole,
    /// The connection ends within it.
    Breaks,
    /// It goes on and on.
    Never,
    /// As before, a byte at a time.
    Drips,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct SupplierAnswer {
    pub status: u16,
    pub media_type: &'static str,
    pub body: String,
    pub after: Duration,
    pub end: End,
}

impl SupplierAnswer {
    pub fn json(status: u16, body: Value) -> Self {
        Self {
            status,
            media_type: "application/json",
            body: body.to_string(),
            after: Duration::ZERO,
            end: End::Whole,
        }
    }

    pub fn html(status: u16) -> Self {
        let body = "<!doctype html><p>We are sorry".to_owned();
        Self {
            status,
            media_type: "text/html",
            body,
            after: Duration::ZERO,
            end: End::Whole,
        }
    }

    /// Longer than anybody waits.
    pub fn never() -> Self {
        Self {
            after: Duration::from_secs(60),
            ..Self::html(200)
        }
    }

    /// What was asked is done, and nobody hears of it.
    pub fn lost() -> Self {
        Self {
            end: End::Breaks,
            ..Self::html(200)
        }
    }

    /// Elsewhere.
    pub fn redirect() -> Self {
        Self::html(302)
    }

    pub fn endless(end: End) -> Self {
        Self {
            end,
            ..Self::json(200, json!({}))
        }
    }
}

#[derive(Clone)]
pub struct Supplier {
    pub url: String,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    url: String,
    asked: Vec<Asked>,
    /// By path, until there is another.
    said: HashMap<&'static str, SupplierAnswer>,
    /// To all other requests that a good one does not know.
    otherwise: Option<SupplierAnswer>,
    /// By path, before those.
    in_turn: HashMap<&'static str, Vec<SupplierAnswer>>,
    /// Tokens that were issued.
    issued: usize,
}

impl Supplier {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Shared {
            url: url.clone(),
            asked: Vec::new(),
            said: HashMap::new(),
            otherwise: None,
            in_turn: HashMap::new(),
            issued: 0,
        };
        let shared = Arc::new(Mutex::new(shared));
        let app = Router::new().fallback(answer).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, shared }
    }

    /// The configuration of a tenant with this server.
    pub fn config(&self) -> Value {
        json!({
            "issuer": self.url, "authorize_url": format!("{}/authorize?theme=dark", self.url),
            "token_url": format!("{}/token", self.url), "revoke_url": format!("{}/revoke", self.url),
            "userinfo_url": format!("{}/me", self.url), "client_id": "hubs & more",
            "client_secret": "a secret of the client: 1", "scope": "openid devices",
            "consent_text": "We may see your lamps.", "registration_shared_secret": "a secret of both sides",
            "return_urls": ["https://app.example.com/linked?from=hub", "com.example.app:/linked"],
        })
    }

    /// From now on, requests to this path are answered so.
    pub fn say(&self, path: &'static str, said: SupplierAnswer) {
        self.lock().said.insert(path, said);
    }

    /// From now on, requests to paths that a good one does not have are answered so.
    pub fn say_otherwise(&self, said: SupplierAnswer) {
        self.lock().otherwise = Some(said);
    }

    /// The next request to this path is answered so.
    pub fn say_once(&self, path: &'static str, said: SupplierAnswer) {
        self.lock().in_turn.entry(path).or_default().push(said);
    }

    /// As a good one does, from now on.
    pub fn behave(&self) {
        let mut shared = self.lock();
        shared.said.clear();
        shared.in_turn.clear();
        shared.otherwise = None;
    }

    /// Takes what came to a path.
    pub fn take(&self, path: &str) -> Vec<Asked> {
        let mut shared = self.lock();
        let (taken, left) = std::mem::take(&mut shared.asked)
            .into_iter()
            .partition(|asked| asked.path == path);
        shared.asked = left;
        taken
    }

    /// Takes all that came.
    pub fn take_all(&self) -> Vec<Asked> {
        std::mem::take(&mut self.lock().asked)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("the supplier")
    }
}

/// The first token of a link, as the test knows it.
pub fn access_token(number: usize) -> String {
    format!("the-access-token-{number:04}")
}

/// An ID token, which nobody verifies the signature of.
pub fn id_token(claims: &Value) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

impl Shared {
    fn good(&mut self, path: &str, form: &BTreeMap<String, String>) -> SupplierAnswer {
        match path {
            "/.well-known/oauth-authorization-server" => {
                let known = json!({"issuer": self.url, "authorization_response_iss_parameter_supported": true});
                SupplierAnswer::json(200, known)
            }
            "/token" => {
                self.issued += 1;
                let number = self.issued;
                let is_known = form
                    .get("grant_type")
                    .is_some_and(|grant| match grant.as_str() {
                        "authorization_code" => form
                            .get("code")
                            .is_some_and(|code| code.starts_with("code")),
                        _ => form.contains_key("refresh_token"),
                    });
                match is_known {
                    true => SupplierAnswer::json(
                        200,
                        json!({"access_token": access_token(number), "token_type": "bearer", "expires_in": 3600,
                            "refresh_token": format!("the-refresh-token-{number:04}")}),
                    ),
                    false => SupplierAnswer::json(400, json!({"error": "invalid_grant"})),
                }
            }
            "/me" => SupplierAnswer::json(200, json!({"sub": "ada"})),
            "/revoke" => SupplierAnswer::json(200, json!({})),
            _ => self
                .otherwise
                .clone()
                .unwrap_or_else(|| SupplierAnswer::html(404)),
        }
    }
}

async fn answer(
    State(shared): State<Arc<Mutex<Shared>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let form = reqwest::Url::parse(&format!("http://form/?{}", String::from_utf8_lossy(&body)))
        .expect("a form");
    let form: BTreeMap<String, String> = form.query_pairs().into_owned().collect();
    let (path, query) = (
        uri.path().to_owned(),
        uri.query().unwrap_or_default().to_owned(),
    );
    let said = {
        let mut shared = shared.lock().expect("the supplier");
        let good = shared.good(&path, &form);
        shared.asked.push(Asked {
            method,
            path: path.clone(),
            query,
            headers,
            form,
            body,
        });
        let next = shared
            .in_turn
            .get_mut(path.as_str())
            .filter(|said| !said.is_empty())
            .map(|said| said.remove(0));
        next.or_else(|| shared.said.get(path.as_str()).cloned())
            .unwrap_or(good)
    };
    tokio::time::sleep(said.after).await;
    let status = StatusCode::from_u16(said.status).expect("a status");
    let location = (header::LOCATION, "https://elsewhere.example.com/");
    let headers = [(header::CONTENT_TYPE, said.media_type), location];
    let drop = || Ok::<_, std::io::Error>(Bytes::from_static(b" "));
    let body = match said.end {
        End::Whole => Body::from(said.body),
        End::Breaks => {
            let parts = [
                Ok(Bytes::from_static(b"{")),
                Err(std::io::Error::other("it breaks")),
            ];
            Body::from_stream(futures_util::stream::iter(parts))
        }
        End::Never => {
            let part = Bytes::from(vec![b' '; 64 * 1024]);
            Body::from_stream(futures_util::stream::repeat_with(move || {
                Ok::<_, std::io::Error>(part.clone())
            }))
        }
        End::Drips => {
            Body::from_stream(futures_util::stream::repeat_with(drop).then(async |drop| {
                tokio::time::sleep(Duration::from_millis(100)).await;
                drop
            }))
        }
    };
    (status, headers, body).into_response()
}

/// The body that completes a link: the members of the address that a browser was sent back to.
pub fn completion(location: &str) -> Value {
    let base = Url::parse("http://service").expect("a URL");
    let url = base.join(location).expect("a URL");
    let members: HashMap<String, String> = url.query_pairs().into_owned().collect();
    assert_eq!(members["status"], "pending", "{location}");
    json!({"state": members["state"], "completion": members["completion"]})
}
