//! What the authorization server of a supplier says about itself (RFC 8414, and OpenID Connect
//! Discovery). It is asked for where the configuration names an issuer. Nothing in a document
//! replaces an address of the configuration.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, Method, header};
use bytes::Bytes;
use hub_core::Core;
use hub_outgoing::OutgoingRequest;
use reqwest::Url;
use serde::Deserialize;

use super::oauth::{Fault, call_error};
use crate::supplier_oauth::schemes;

const WITHIN: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 128 * 1024;
/// The lifetime of a cached document.
const KEPT_FOR: Duration = Duration::from_secs(600);
const MAX_KEPT: usize = 1_000;

/// The members that are used.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Metadata {
    #[serde(default)]
    issuer: String,
    pub userinfo_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    /// RFC 9207.
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

/// The documents that were read, by issuer. Cheap to clone.
#[derive(Clone, Default)]
pub struct Documents(Arc<Mutex<HashMap<String, Kept>>>);

/// A document, and when it was read.
type Kept = (Instant, Arc<Metadata>);

impl Documents {
    /// The document of an issuer; an empty one if it has none.
    pub async fn of(&self, core: &Core, issuer: Option<&str>) -> Result<Arc<Metadata>, Fault> {
        let Some(issuer) = issuer else {
            return Ok(Arc::default());
        };
        if let Some(kept) = self.kept(issuer) {
            return Ok(kept);
        }
        let found = Arc::new(discover(core, issuer).await?);
        let mut documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if documents.len() >= MAX_KEPT {
            documents.clear();
        }
        documents.insert(issuer.to_owned(), (Instant::now(), found.clone()));
        Ok(found)
    }

    fn kept(&self, issuer: &str) -> Option<Arc<Metadata>> {
        let documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_at, document) = documents.get(issuer)?;
        (read_at.elapsed() < KEPT_FOR).then(|| document.clone())
    }
}

async fn discover(core: &Core, issuer: &str) -> Result<Metadata, Fault> {
    let url = core
        .outgoing
        .check_url(issuer, schemes(core))
        .map_err(|_| Fault::failed("the issuer cannot be called"))?;
    let mut fault = None;
    for place in places(url) {
        match fetch(core, place, issuer).await {
            Ok(Some(found)) => return usable(found),
            Ok(None) => {}
            Err(error) => fault = Some(error),
        }
    }
    match fault {
        Some(fault) => Err(fault),
        None => Ok(Metadata::default()),
    }
}

/// Without PKCE an intercepted code could be redeemed by others.
fn usable(found: Metadata) -> Result<Metadata, Fault> {
    let methods = found.code_challenge_methods_supported.as_deref();
    match methods.is_none_or(|methods| methods.iter().any(|method| method == "S256")) {
        true => Ok(found),
        false => Err(Fault::failed(
            "the authorization server does not support PKCE with S256",
        )),
    }
}

/// The URLs of an issuer's documents: RFC 8414 puts the well-known part before the path, OpenID
/// Connect behind it.
fn places(issuer: Url) -> [Url; 2] {
    let path = issuer.path().trim_end_matches('/').to_owned();
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url.set_query(None);
        url
    };
    [
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("{path}/.well-known/openid-configuration")),
    ]
}

/// The document; None if this URL has none.
async fn fetch(core: &Core, url: Url, issuer: &str) -> Result<Option<Metadata>, Fault> {
    let request = OutgoingRequest {
        method: Method::GET,
        url,
        headers: HeaderMap::from_iter([(
            header::ACCEPT,
            HeaderValue::from_static("application/json"),
        )]),
        body: Bytes::new(),
        within: WITHIN,
        max_response_bytes: MAX_BYTES,
        tls: None,
    };
    let answer = core.outgoing.send(request).await.map_err(call_error)?;
    match answer.status {
        200 if answer.is_cut => Err(Fault::failed("the discovery document is too long")),
        200 => {
            let found: Metadata = serde_json::from_slice(&answer.body)
                .map_err(|_| Fault::failed("what is there is no discovery document"))?;
            match found.issuer == issuer {
                true => Ok(Some(found)),
                false => Err(Fault::failed("the discovery document is of another issuer")),
            }
        }
        400..=499 => Ok(None),
        status => Err(Fault::failed(format!(
            "the discovery document was answered with {status}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_where_both_standards_put_them() {
        for (issuer, expected) in [
            (
                "https://login.example.com",
                [
                    "/.well-known/oauth-authorization-server",
                    "/.well-known/openid-configuration",
                ],
            ),
            (
                "https://login.example.com/one/",
                [
                    "/.well-known/oauth-authorization-server/one",
                    "/one/.well-known/openid-configuration",
                ],
            ),
        ] {
            let found = places(Url::parse(issuer).expect("a URL")).map(|url| url.path().to_owned());
            assert_eq!(found, expected, "{issuer}");
        }
    }

    #[test]
    fn a_server_without_s256_is_refused() {
        let of = |methods: Option<Vec<&str>>| Metadata {
            code_challenge_methods_supported: methods
                .map(|methods| methods.into_iter().map(str::to_owned).collect()),
            ..Metadata::default()
        };
        assert!(usable(of(None)).is_ok());
        assert!(usable(of(Some(vec!["plain", "S256"]))).is_ok());
        assert!(usable(of(Some(vec!["plain"]))).is_err());
    }
}
