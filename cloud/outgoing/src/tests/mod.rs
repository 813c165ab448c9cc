//! The client on real sockets: a name server and receivers of the test's own.

mod corpus;
mod name_server;
mod names;
mod receivers;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use hub_base::metrics::Metrics;

use super::{CallError, Outgoing, OutgoingRequest, OutgoingResponse};
use crate::OutgoingConfig;

const SCHEMES: [&str; 2] = ["http", "https"];

fn outgoing(
    allow_private_targets: bool,
    resolver: Option<SocketAddr>,
    ca: Option<PathBuf>,
) -> Outgoing {
    let config = OutgoingConfig {
        allow_private_targets,
        resolver,
        ca,
    };
    Outgoing::new(&config, Metrics::new()).expect("a client")
}

async fn get_within(
    outgoing: &Outgoing,
    url: &str,
    within: Duration,
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
        })
        .await
}

async fn get(outgoing: &Outgoing, url: &str) -> Result<OutgoingResponse, CallError> {
    get_within(outgoing, url, Duration::from_secs(30)).await
}
