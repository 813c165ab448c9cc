//! MQTT over WebSocket (MQTT 3.1.1, 6): the bytes of the protocol in binary messages, however they
//! are cut.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::{Sink, Stream};
use hub_outgoing::OutgoingStream;
use reqwest::Url;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::attempt::Failure;

/// What a broker answers is short.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;
const PROTOCOL: &str = "mqtt";

/// The connection to a broker.
#[derive(Debug)]
pub enum Transport {
    Raw(OutgoingStream),
    Web(Box<WebSocket>),
}

#[derive(Debug)]
pub struct WebSocket {
    messages: WebSocketStream<OutgoingStream>,
    /// What is read of a message, and not by the reader.
    unread: Bytes,
}

impl WebSocket {
    pub async fn begin(stream: OutgoingStream, url: &Url) -> Result<Self, Failure> {
        let cannot = |error: Error| match error {
            Error::Http(response) => Failure::receiver(format!(
                "the broker does not answer as a WebSocket ({}); check the path of `url`",
                response.status().as_u16()
            )),
            _ => Failure::receiver("the broker does not answer as a WebSocket"),
        };
        let mut request = url.as_str().into_client_request().map_err(cannot)?;
        request
            .headers_mut()
            .insert("sec-websocket-protocol", HeaderValue::from_static(PROTOCOL));
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let begun = tokio_tungstenite::client_async_with_config(request, stream, Some(config));
        let (messages, _) = begun.await.map_err(cannot)?;
        Ok(Self {
            messages,
            unread: Bytes::new(),
        })
    }
}

fn broken(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => io::ErrorKind::UnexpectedEof.into(),
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

impl AsyncRead for WebSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.unread.is_empty() {
            match ready!(Pin::new(&mut this.messages).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => this.unread = bytes,
                // The library answers pings.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Text(_))) => {
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(broken(error))),
            }
        }
        let count = this.unread.len().min(buffer.remaining());
        buffer.put_slice(this.unread.get(..count).unwrap_or_default());
        this.unread.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WebSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut messages = Pin::new(&mut self.get_mut().messages);
        ready!(messages.as_mut().poll_ready(cx)).map_err(broken)?;
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        messages.start_send(message).map_err(broken)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let messages = Pin::new(&mut self.get_mut().messages);
        messages.poll_flush(cx).map_err(broken)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let messages = Pin::new(&mut self.get_mut().messages);
        messages.poll_close(cx).map_err(broken)
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Raw(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Web(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Raw(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Web(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Raw(stream) => Pin::new(stream).poll_flush(cx),
            Self::Web(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Raw(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Web(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
