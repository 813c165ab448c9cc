//! The client on real sockets: a name server and receivers of the test's own.

mod corpus;
mod name_server;
mod names;
mod proxies;
mod receivers;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use hub_base::metrics::Metrics;

use super::{CallError, Outgoing, OutgoingRequest, OutgoingResponse, OwnTls};
use crate::OutgoingConfig;

const SCHEMES: [&str; 2] = ["http", "https"];

fn outgoing(
    allow_private_targets: bool,
    resolver: Option<SocketAddr>,
    ca: Option<PathBuf>,
) -> Outgoing {
    let config = OutgoingConfig {
        allow_private_targets: allow_private_targets.into(),
        resolver,
        ca,
        proxy: None,
    };
    Outgoing::new(&config, Metrics::new()).expect("a client")
}

async fn get_within(
    outgoing: &Outgoing,
    url: &str,
    within: Duration,
) -> Result<OutgoingResponse, CallError> {
    call(outgoing, url, within, None).await
}

async fn get_with(
    outgoing: &Outgoing,
    url: &str,
    tls: Option<Arc<OwnTls>>,
) -> Result<OutgoingResponse, CallError> {
    call(outgoing, url, Duration::from_secs(30), tls).await
}

async fn call(
    outgoing: &Outgoing,
    url: &str,
    within: Duration,
    tls: Option<Arc<OwnTls>>,
) -> Result<OutgoingResponse, CallError> {
    let url = reqwest::Url::parse(url).expect(url);
    let (headers, body) = (HeaderMap::new(), Bytes::new());
    outgoing
        .send(OutgoingRequest {
            method: Method::GET,
            url,
            headers,
            body,
            within,
            max_response_bytes: 1024,
            tls,
        })
        .await
}

async fn get(outgoing: &Outgoing, url: &str) -> Result<OutgoingResponse, CallError> {
    get_within(outgoing, url, Duration::from_secs(30)).await
}
