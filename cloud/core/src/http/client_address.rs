//! The address of the client, used to slow down guessing and for the audit log. It never identifies
//! a caller. It is the connection's peer, unless the peer is a trusted proxy. Then it is taken from
//! `X-Forwarded-For`, read from the right up to the first address that is no trusted proxy, since
//! the client itself may have written everything left of that.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use aide::OperationInput;
use axum::extract::{ConnectInfo, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use ipnet::IpNet;

tokio::task_local! {
    static CURRENT: Option<IpAddr>;
}

/// The client of the request that this task serves; `None` outside of a request.
pub fn current() -> Option<IpAddr> {
    CURRENT.try_with(|address| *address).ok().flatten()
}

/// The address of the client of a request.
pub fn of(trusted_proxies: &[IpNet], request: &Request) -> Option<IpAddr> {
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map(|peer| peer.0.ip());
    peer.map(|peer| resolve(peer, request.headers(), trusted_proxies))
}

/// Runs the work with this client address.
pub fn with<F: Future>(address: Option<IpAddr>, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(address, work)
}

fn resolve(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut client = peer.to_canonical();
    let values = headers.get_all("x-forwarded-for");
    let text: Vec<&str> = values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    for hop in text.join(",").rsplit(',') {
        if !is_trusted(&client) {
            break;
        }
        // A trusted proxy would have written an address.
        match parse(hop.trim()) {
            Some(address) => client = address,
            None => break,
        }
    }
    client
}

/// An address, with or without a port.
fn parse(text: &str) -> Option<IpAddr> {
    let address = text
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// `None` for a request without a connection, as in tests.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress(pub Option<IpAddr>);

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(current()))
    }
}

impl OperationInput for ClientAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed() {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "fd00::/8"]
            .map(|network| network.parse().expect("a network"))
            .into();
        for (peer, forwarded, expected) in [
            ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
            ("10.0.0.1", "", "10.0.0.1"),
            ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("10.0.0.1", "1.2.3.4, 198.51.100.1", "198.51.100.1"),
            (
                "10.0.0.1",
                "1.2.3.4, 198.51.100.1, 10.0.0.2",
                "198.51.100.1",
            ),
            ("10.0.0.1", "198.51.100.1, rubbish", "10.0.0.1"),
            ("10.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
            ("::ffff:10.0.0.1", "[2001:db8::1]:80", "2001:db8::1"),
            ("fd00::1", "2001:db8::2", "2001:db8::2"),
            ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(
                "x-forwarded-for",
                forwarded.parse().expect("a header value"),
            );
            let client = resolve(peer.parse().expect("an address"), &headers, &trusted);
            assert_eq!(client.to_string(), expected, "{peer} says {forwarded}");
        }
        let mut headers = HeaderMap::new();
        headers.append(
            "x-forwarded-for",
            "1.2.3.4".parse().expect("a header value"),
        );
        headers.append(
            "x-forwarded-for",
            "198.51.100.7".parse().expect("a header value"),
        );
        let client = resolve("10.0.0.1".parse().expect("an address"), &headers, &trusted);
        assert_eq!(
            client.to_string(),
            "198.51.100.7",
            "several headers are one list"
        );
    }
}
