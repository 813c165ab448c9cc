//! A connection to an address that was judged, for protocols other than HTTP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::failure::CallError;

/// How long one of several addresses is tried before the next.
const EACH_WITHIN: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub enum OutgoingStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl OutgoingStream {
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

pub(super) async fn open(addresses: &[IpAddr], port: u16) -> Result<TcpStream, CallError> {
    let mut failure = CallError::timed_out();
    for address in addresses {
        match tokio::time::timeout(
            EACH_WITHIN,
            TcpStream::connect(SocketAddr::new(*address, port)),
        )
        .await
        {
            Ok(Ok(stream)) => {
                // Only a hint: small messages must not wait for others.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => failure = CallError::connecting(&error),
            Err(_) => failure = CallError::timed_out(),
        }
    }
    Err(failure)
}

impl AsyncRead for OutgoingStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for OutgoingStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
