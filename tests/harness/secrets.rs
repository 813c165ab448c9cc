//! Every password, token, key and code that a test sends or is given, so that it can be looked for
//! where it must not be. A service on SQLite is searched when its test ends, whatever the test was
//! about.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use reqwest::header::AUTHORIZATION;
use reqwest::{Request, Url};
use serde_json::Value;

/// By the address of the service they belong to.
static SEEN: LazyLock<Mutex<HashMap<String, BTreeSet<String>>>> = LazyLock::new(Mutex::default);

/// Members whose value is a secret, wherever they stand.
const NAMES: [&str; 14] = [
    "password",
    "currentPassword",
    "newPassword",
    "accessToken",
    "refreshToken",
    "token",
    "apiKey",
    "claimCode",
    "bindKey",
    "identityResolvingKey",
    "client_secret",
    "registration_shared_secret",
    "access_token",
    "state",
];
/// Shorter ones are words that stand anywhere.
const MIN_CHARS: usize = 12;

/// Notes the secrets in a request and in what answered it.
pub fn note(request: &NotedRequest, answer: Option<&Value>) {
    let mut found = request.found.clone();
    if let Some(json) = answer {
        collect(json, &mut found);
    }
    SEEN.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(request.service.clone())
        .or_default()
        .extend(found);
}

/// The secrets of a request that is about to be sent.
pub struct NotedRequest {
    service: String,
    found: BTreeSet<String>,
}

impl NotedRequest {
    pub fn of(request: &Request) -> Self {
        let mut found = BTreeSet::new();
        let headers = request.headers();
        let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(token) =
            value(AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "))
        {
            keep(token, &mut found);
        }
        if let Some(key) = value("x-api-key") {
            keep(key, &mut found);
        }
        // What a hub uploads is stored as it came.
        let is_upload = request.url().path().starts_with("/v1/")
            && !request.url().path().starts_with("/v1/hubs/");
        if let Some(body) = request
            .body()
            .and_then(|body| body.as_bytes())
            .filter(|_| !is_upload)
            && let Ok(json) = serde_json::from_slice(body)
        {
            collect(&json, &mut found);
        }
        Self {
            service: service(request.url()),
            found,
        }
    }
}

fn service(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn collect(json: &Value, found: &mut BTreeSet<String>) {
    match json {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if NAMES.contains(&name.as_str()) => keep(text, found),
                    other => collect(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

fn keep(secret: &str, found: &mut BTreeSet<String>) {
    // A code that is masked is none any more.
    if secret.chars().count() >= MIN_CHARS && secret.len() < 4096 && !secret.contains("***") {
        found.insert(secret.to_owned());
    }
}

/// Forgets what was seen of another service that was at this URL. Ports are used again, and what
/// was a secret there may be a part of an identifier here.
pub fn forget(service: &str) {
    SEEN.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(service);
}

/// All that were seen of the service at this URL.
pub fn seen(service: &str) -> BTreeSet<String> {
    SEEN.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(service)
        .cloned()
        .unwrap_or_default()
}

/// Fails when one of the secrets is in these bytes, as it is or in hexadecimal digits.
pub fn assert_none_in(secrets: &BTreeSet<String>, what: &str, bytes: &[u8]) {
    for secret in secrets {
        for form in [secret.clone(), hex(secret)] {
            if contains(bytes, form.as_bytes()) {
                panic!(
                    "{what} holds a secret in the clear, which begins with {:.8}",
                    secret
                );
            }
        }
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(haystack, needle).is_some()
}

/// Looks through a database file and its log.
pub fn search_sqlite(service: &str, file: &Path) {
    let secrets = seen(service);
    for suffix in ["", "-wal"] {
        let path = format!("{}{suffix}", file.display());
        if let Ok(bytes) = std::fs::read(&path) {
            assert_none_in(&secrets, "the database file", &bytes);
        }
    }
}
