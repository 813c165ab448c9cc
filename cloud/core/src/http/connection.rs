//! A connection that the service can end while a response is being sent. A response that ends
//! closes nothing as long as its peer does not read: what was sent before still waits for the peer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use aide::OperationInput;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use futures_util::task::AtomicWaker;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The connection of a request; cheap to clone. Its methods have no effect for a request without
/// one.
#[derive(Clone, Debug, Default)]
pub struct Connection(Arc<State>);

#[derive(Debug, Default)]
struct State {
    has_ended: AtomicBool,
    /// The task that serves the connection.
    waker: AtomicWaker,
}

impl Connection {
    /// Resets the connection: what its peer has not read yet is discarded, as are the other
    /// requests on it.
    pub fn end(&self) {
        self.0.has_ended.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Acquire)
    }
}

impl<S: Sync> FromRequestParts<S> for Connection {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

impl OperationInput for Connection {}

/// An accepted socket that fails once its [`Connection`] was ended.
#[derive(Debug)]
pub struct Endable {
    stream: TcpStream,
    connection: Connection,
}

impl Endable {
    pub fn new(stream: TcpStream) -> (Self, Connection) {
        let connection = Connection::default();
        (
            Self {
                stream,
                connection: connection.clone(),
            },
            connection,
        )
    }

    /// Passes on what the socket answered, unless the connection was ended meanwhile.
    fn unless_ended<T>(
        &self,
        cx: &Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_pending() {
            // Registered before the flag is read, so that an end in between is not missed.
            self.connection.0.waker.register(cx.waker());
        }
        if !self.connection.has_ended() {
            return polled;
        }
        // The socket is closed with a reset instead of waiting for the peer to read.
        let _ = sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
        Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
    }
}

impl AsyncRead for Endable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.unless_ended(cx, polled)
    }
}

impl AsyncWrite for Endable {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.unless_ended(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.unless_ended(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.unless_ended(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.unless_ended(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_connection_ends_although_its_peer_does_not_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let address = listener.local_addr().expect("an address");
        let mut peer = TcpStream::connect(address).await.expect("a connection");
        let (mut endable, connection) =
            Endable::new(listener.accept().await.expect("a connection").0);
        let writing = tokio::spawn(async move {
            let block = vec![0; 1 << 20];
            loop {
                if let Err(error) = endable.write_all(&block).await {
                    return error;
                }
            }
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!writing.is_finished(), "the peer does not read");
        connection.end();
        assert_eq!(
            writing.await.expect("an error").kind(),
            io::ErrorKind::ConnectionAborted
        );
        let mut block = vec![0; 1 << 20];
        let end = loop {
            match peer.read(&mut block).await {
                Ok(0) => panic!("the peer must not take this for the regular end"),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
    }
}
