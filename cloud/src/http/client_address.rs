//! The address a request comes from, for slowing down who guesses. Never decides who somebody is.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use aide::OperationInput;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;

/// The peer of the connection; nothing for a request that came over none, as in tests.
pub struct ClientAddress(pub Option<IpAddr>);

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip())))
    }
}

impl OperationInput for ClientAddress {}
