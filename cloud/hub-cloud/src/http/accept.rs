//! Options of accepted connections.

use std::future::{Ready, ready};
use std::time::Duration;

use axum::Extension;
use axum::middleware::AddExtension;
use axum_server::accept::Accept;
use hub_core::http::connection::{Connection, Endable};
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tower::Layer;

/// Sent data must be acknowledged within this time, or the connection is closed. This ends streams
/// whose client stopped reading, for example.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(30);

/// Sets options of a connection: small responses are sent without delay, and a connection whose
/// peer is gone or stuck is closed. Lets each request end its connection.
#[derive(Clone, Copy)]
pub struct Tuned;

impl<S> Accept<TcpStream, S> for Tuned {
    type Stream = Endable;
    type Service = AddExtension<S, Connection>;
    type Future = Ready<std::io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        ready(tune(&stream).map(|()| {
            let (stream, connection) = Endable::new(stream);
            (stream, Extension(connection).layer(service))
        }))
    }
}

fn tune(stream: &TcpStream) -> std::io::Result<()> {
    let unacknowledged_ms = u32::try_from(UNACKNOWLEDGED_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    stream.set_nodelay(true)?;
    sockopt::set_tcp_user_timeout(stream, unacknowledged_ms)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    Ok(())
}
