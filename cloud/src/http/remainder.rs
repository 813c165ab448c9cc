//! What a refused request still sends. Few clients look for an answer before they have sent all, and a connection closed on the rest of a body loses the
//! answer with it: so the rest is read and thrown away, within bounds.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody};
use axum::extract::Request;
use axum::http::header;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use tokio::sync::oneshot;

const MAX_BYTES: usize = 32 * 1024 * 1024;
const MAX_TIME: Duration = Duration::from_secs(5);

/// A body that comes back when its reader has had enough.
struct Lent {
    body: Option<BodyDataStream>,
    back: Option<oneshot::Sender<BodyDataStream>>,
}

impl Stream for Lent {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.body {
            Some(body) => body.poll_next_unpin(context),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(body), Some(back)) = (self.body.take(), self.back.take()) {
            // Nobody waits for it when the request itself is gone.
            let _ = back.send(body);
        }
    }
}

/// Where the rest of a body comes back to.
pub struct Remainder(oneshot::Receiver<BodyDataStream>);

/// Lends the request's body to whoever reads it; nothing comes back where there is no body.
pub fn lend(request: Request) -> (Request, Option<Remainder>) {
    // Who waits for `100 Continue` hears the answer before sending anything.
    if request.body().is_end_stream() || request.headers().contains_key(header::EXPECT) {
        return (request, None);
    }
    let (back, returned) = oneshot::channel();
    let lend = |body: Body| Body::from_stream(Lent { body: Some(body.into_data_stream()), back: Some(back) });
    (request.map(lend), Some(Remainder(returned)))
}

impl Remainder {
    /// Reads what nobody read, for after the answer is known.
    pub async fn pass_over(mut self) {
        if let Ok(rest) = self.0.try_recv() {
            let _ = tokio::time::timeout(MAX_TIME, pass_over(rest)).await;
        }
    }
}

async fn pass_over(mut rest: BodyDataStream) {
    let mut bytes = 0;
    while let Some(Ok(data)) = rest.next().await {
        bytes += data.len();
        if bytes > MAX_BYTES {
            return;
        }
    }
}
