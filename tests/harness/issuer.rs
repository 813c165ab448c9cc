//! Issuers of people's tokens: a certified OpenID Connect provider as a process, and one of the
//! test's own, whose every word the test chooses.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair,
};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_core::config::Settings;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Url;
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::{Call, Client};
use crate::process::Process;

pub const AUDIENCE: &str = "https://hubs.example.com";
pub const CLIENT_ID: &str = "hub-cloud-cli";
const WEB_CLIENT_SECRET: &str = "a secret of service and issuer: 2";
const SUPPLIER_CLIENT_SECRET: &str = "a secret of supplier and service: 1";

/// The settings of a service that accepts the issuer's tokens.
pub fn settings(issuer: &str) -> Settings {
    Settings {
        oidc_issuer: Some(issuer.to_owned()),
        oidc_audience: Some(AUDIENCE.to_owned()),
        oidc_client_id: Some(CLIENT_ID.to_owned()),
        oidc_administrator_claim: Some("roles=PLATFORM_ADMIN".to_owned()),
        ..Settings::default()
    }
}

/// The settings of a service at which people sign in with a browser.
pub fn browser_settings(issuer: &str) -> Settings {
    Settings {
        oidc_client_id: Some("hub-cloud".to_owned()),
        oidc_administrator_claim: Some("roles=PLATFORM_ADMIN".to_owned()),
        oidc_client_secret: Some(WEB_CLIENT_SECRET.to_owned()),
        public_url: Some(AUDIENCE.to_owned()),
        ..settings(issuer)
    }
}

/// `tests/system/oidc`: the certified provider.
pub struct Provider {
    process: Process,
    pub url: String,
}

impl Provider {
    /// None where it is not installed.
    pub async fn start() -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/oidc");
        let node = std::process::Command::new("node")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        if !node.is_ok_and(|status| status.success())
            || !folder.join("node_modules/oidc-provider").exists()
        {
            crate::skip(
                "logging in at a certified provider",
                "node and `npm ci` in tests/system/oidc",
            );
            return None;
        }
        let mut provider = Self {
            process: Self::spawn(&crate::ports::lasting().to_string()),
            url: String::new(),
        };
        provider.url = provider.process.url().await;
        Some(provider)
    }

    fn spawn(port: &str) -> Process {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("system/oidc/provider.mjs");
        let mut command = tokio::process::Command::new("node");
        // It ends when its input does.
        command.arg(script).arg(port).stdin(Stdio::piped());
        Process::spawn("the provider", command)
    }

    pub async fn kill(&mut self) {
        self.process.kill().await;
    }

    /// Signs with a new key; the old ones are gone.
    pub async fn rotate(&self, alg: &str) {
        Client::new(&self.url)
            .post(&format!("/test/rotate?alg={alg}"))
            .call()
            .await
            .expect(200);
    }

    /// How often its keys were asked for.
    pub async fn fetches(&self) -> u64 {
        let reply = Client::new(&self.url)
            .get("/test/fetches")
            .call()
            .await
            .expect(200);
        reply.json()["fetches"].as_u64().expect("a number")
    }

    /// How often tokens were asked for.
    pub async fn exchanges(&self) -> u64 {
        let reply = Client::new(&self.url)
            .get("/test/exchanges")
            .call()
            .await
            .expect(200);
        reply.json()["exchanges"].as_u64().expect("a number")
    }

    /// From now on its answers to clients leave so much later.
    pub async fn hold(&self, time: Duration) {
        let path = format!("/test/hold?millis={}", time.as_millis());
        Client::new(&self.url).post(&path).call().await.expect(200);
    }

    /// The configuration of a tenant whose authorization server it is.
    pub fn supplier_config(&self) -> Value {
        json!({
            "issuer": self.url, "authorize_url": format!("{}/auth", self.url),
            "token_url": format!("{}/token", self.url), "client_id": "hubs",
            "client_secret": SUPPLIER_CLIENT_SECRET, "scope": "openid offline_access",
            "return_urls": ["https://app.example.com/linked"],
        })
    }

    /// Whether a token is in force, as the provider says to its client.
    pub async fn is_active(&self, token: &str) -> bool {
        let client = Client::new(&self.url).http;
        let secret = SUPPLIER_CLIENT_SECRET.replace(' ', "+").replace(':', "%3A");
        let asked = client
            .post(format!("{}/token/introspection", self.url))
            .basic_auth("hubs", Some(secret));
        let asked = asked
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("token={token}"));
        let reply: Value =
            serde_json::from_str(&asked.call().await.expect(200).body).expect("JSON");
        reply["active"].as_bool().expect("an answer")
    }
}

/// A browser at the provider, with its cookies.
pub struct Browser {
    http: reqwest::Client,
    cookies: BTreeMap<String, String>,
}

impl Default for Browser {
    fn default() -> Self {
        crate::client::install_tls();
        let http = crate::client::plain_builder()
            .redirect(Policy::none())
            .timeout(Duration::from_secs(60));
        // The provider is stopped and started, and closes a connection after five idle seconds.
        let http = http.pool_max_idle_per_host(0).build().expect("a client");
        Self {
            http,
            cookies: BTreeMap::new(),
        }
    }
}

impl Browser {
    /// Fills in the provider's forms as `name`, up to an address with this path, which is not
    /// opened.
    pub async fn visit(&mut self, page: &Url, name: &str, path: &str) -> Url {
        let mut answer = self.fetch(self.http.get(page.clone())).await;
        for _ in 0..20 {
            if let Some(location) = answer.headers().get(LOCATION) {
                let location = location.to_str().expect("text");
                let next = answer.url().join(location).expect("a URL");
                if next.path() == path {
                    return next;
                }
                answer = self.fetch(self.http.get(next)).await;
                continue;
            }
            let (status, url) = (answer.status(), answer.url().clone());
            let html = answer.text().await.expect("a page");
            assert_eq!(status, StatusCode::OK, "{url}: {html}");
            let action = between(&html, "action=\"", "\"")
                .unwrap_or_else(|| panic!("{url} has no form: {html}"));
            let prompt = between(&html, "name=\"prompt\" value=\"", "\"").expect("a prompt");
            let form = format!("prompt={prompt}&login={name}&password=any");
            let submit = self.http.post(url.join(action).expect("a URL")).body(form);
            let submit = submit.header("content-type", "application/x-www-form-urlencoded");
            answer = self.fetch(submit).await;
        }
        panic!("the provider's pages have no end");
    }

    async fn fetch(&mut self, request: reqwest::RequestBuilder) -> reqwest::Response {
        let jar: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let response = request
            .header(COOKIE, jar.join("; "))
            .send()
            .await
            .expect("an answer");
        for cookie in response.headers().get_all(SET_COOKIE) {
            let cookie = cookie
                .to_str()
                .expect("text")
                .split(';')
                .next()
                .unwrap_or_default();
            let (name, value) = cookie.split_once('=').expect("a cookie");
            match value.is_empty() {
                true => self.cookies.remove(name),
                false => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        response
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.split_once(before)?
        .1
        .split_once(after)
        .map(|(found, _)| found)
}

/// A key that signs tokens.
#[derive(Clone)]
pub struct SigningKey {
    pub kid: String,
    pub alg: Algorithm,
    pub encoding: EncodingKey,
    /// Its public half, as in a key set.
    pub jwk: Value,
}

impl SigningKey {
    pub fn new(alg: Algorithm) -> Self {
        let ec = |algorithm: &'static EcdsaSigningAlgorithm| {
            let pair = EcdsaKeyPair::generate(algorithm).expect("a key");
            EncodingKey::from_ec_der(pair.to_pkcs8v1().expect("its document").as_ref())
        };
        let encoding = match alg {
            Algorithm::ES256 => ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
            Algorithm::ES384 => ec(&ECDSA_P384_SHA384_FIXED_SIGNING),
            Algorithm::EdDSA => {
                let pair = Ed25519KeyPair::generate().expect("a key");
                EncodingKey::from_ed_der(pair.to_pkcs8v1().expect("its document").as_ref())
            }
            _ => {
                let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
                let der: Pkcs8V1Der<'_> = pair.as_der().expect("its document");
                let text = STANDARD.encode(der.as_ref());
                let lines: Vec<&str> = text
                    .as_bytes()
                    .chunks(64)
                    .filter_map(|line| std::str::from_utf8(line).ok())
                    .collect();
                let pem = format!(
                    "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
                    lines.join("\n")
                );
                EncodingKey::from_rsa_pem(pem.as_bytes()).expect("a key")
            }
        };
        Self::of(Uuid::new_v4().simple().to_string(), alg, encoding)
    }

    pub fn of(kid: String, alg: Algorithm, encoding: EncodingKey) -> Self {
        let jwk = Jwk::from_encoding_key(&encoding, alg).expect("a public key");
        let mut jwk = serde_json::to_value(jwk).expect("JSON");
        jwk["kid"] = kid.clone().into();
        jwk["use"] = "sig".into();
        Self {
            kid,
            alg,
            encoding,
            jwk,
        }
    }

    pub fn header(&self) -> Header {
        Header {
            kid: Some(self.kid.clone()),
            ..Header::new(self.alg)
        }
    }

    pub fn sign(&self, claims: &Value) -> String {
        self.sign_with(&self.header(), claims)
    }

    pub fn sign_with(&self, header: &Header, claims: &Value) -> String {
        jsonwebtoken::encode(header, claims, &self.encoding).expect("a token")
    }
}

/// What an [`OwnIssuer`] answers.
#[derive(Clone, Debug)]
pub enum Conduct {
    Good,
    /// Every request fails.
    Broken,
    /// No request is answered.
    Silent,
    /// It calls itself something else.
    OtherName,
    /// The key URL answers with a redirect.
    Redirects,
    /// The key set is this text.
    KeySet(String),
    /// The discovery document names this as the place of the keys.
    KeysAt(String),
}

/// An issuer in this process.
#[derive(Clone)]
pub struct OwnIssuer {
    pub url: String,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    url: String,
    keys: Vec<SigningKey>,
    conduct: Conduct,
    fetches: usize,
    discoveries: usize,
    /// What the next exchange of a code is answered with.
    tokens: Value,
    /// The forms of the exchanges so far.
    exchanges: Vec<String>,
}

impl OwnIssuer {
    pub async fn start(signing_keys: &[SigningKey]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (current, conduct) = (signing_keys.to_vec(), Conduct::Good);
        let shared = Shared {
            url: url.clone(),
            keys: current,
            conduct,
            fetches: 0,
            discoveries: 0,
            tokens: Value::Null,
            exchanges: Vec::new(),
        };
        let shared = Arc::new(Mutex::new(shared));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/jwks", get(key_set))
            .route("/token", post(exchange))
            .route("/login", get(|| async { "a login page" }))
            .route(
                "/other",
                get(|State(shared): State<Arc<Mutex<Shared>>>| async move { keys(&shared) }),
            )
            .with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, shared }
    }

    pub fn settings(&self) -> Settings {
        settings(&self.url)
    }

    pub fn conduct(&self, conduct: Conduct) {
        self.shared.lock().expect("the issuer").conduct = conduct;
    }

    pub fn set_keys(&self, keys: &[SigningKey]) {
        self.shared.lock().expect("the issuer").keys = keys.to_vec();
    }

    /// How often the keys were asked for.
    pub fn fetches(&self) -> usize {
        self.shared.lock().expect("the issuer").fetches
    }

    /// How often its discovery document was asked for.
    pub fn discoveries(&self) -> usize {
        self.shared.lock().expect("the issuer").discoveries
    }

    /// What codes are exchanged for from now on; `null` refuses them.
    pub fn answer_codes_with(&self, tokens: Value) {
        self.shared.lock().expect("the issuer").tokens = tokens;
    }

    /// The forms that codes were exchanged with.
    pub fn exchanges(&self) -> Vec<String> {
        self.shared.lock().expect("the issuer").exchanges.clone()
    }

    /// Claims of an access token that is valid from `now`, in seconds.
    pub fn claims(&self, subject: &str, now: i64) -> Value {
        json!({"iss": self.url, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 600, "jti": Uuid::new_v4()})
    }
}

async fn discovery(State(shared): State<Arc<Mutex<Shared>>>) -> Response {
    let (url, conduct) = {
        let mut shared = shared.lock().expect("the issuer");
        shared.discoveries += 1;
        (shared.url.clone(), shared.conduct.clone())
    };
    let (name, keys) = match &conduct {
        Conduct::Broken => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Conduct::Silent => std::future::pending().await,
        Conduct::OtherName => (format!("{url}/"), format!("{url}/jwks")),
        Conduct::KeysAt(keys) => (url.clone(), keys.clone()),
        Conduct::Good | Conduct::Redirects | Conduct::KeySet(_) => {
            (url.clone(), format!("{url}/jwks"))
        }
    };
    let (page, token) = (format!("{url}/login"), format!("{url}/token"));
    let document = json!({"issuer": name, "jwks_uri": keys, "authorization_endpoint": page, "token_endpoint": token});
    axum::Json(document).into_response()
}

async fn exchange(State(shared): State<Arc<Mutex<Shared>>>, form: String) -> Response {
    let mut shared = shared.lock().expect("the issuer");
    shared.exchanges.push(form);
    match &shared.tokens {
        Value::Null => (
            StatusCode::BAD_REQUEST,
            axum::Json(json!({"error": "invalid_grant"})),
        )
            .into_response(),
        tokens => axum::Json(tokens).into_response(),
    }
}

async fn key_set(State(shared): State<Arc<Mutex<Shared>>>) -> Response {
    // Long enough for others to want the same.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let conduct = {
        let mut shared = shared.lock().expect("the issuer");
        shared.fetches += 1;
        shared.conduct.clone()
    };
    match conduct {
        Conduct::Redirects => (StatusCode::FOUND, [("location", "/other")]).into_response(),
        Conduct::KeySet(text) => text.into_response(),
        _ => keys(&shared),
    }
}

fn keys(shared: &Mutex<Shared>) -> Response {
    let shared = shared.lock().expect("the issuer");
    let keys: Vec<&Value> = shared.keys.iter().map(|key| &key.jwk).collect();
    (HeaderMap::new(), axum::Json(json!({"keys": keys}))).into_response()
}
