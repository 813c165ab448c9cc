//! Reads and discards what a client is still sending after its request was answered. Few clients
//! look for a response before they have sent their whole body, and closing the connection on the
//! rest of the body would lose the response. The rest is read within limits.

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

/// A request body that is returned when its reader is dropped.
struct BorrowedBody {
    body: Option<BodyDataStream>,
    return_to: Option<oneshot::Sender<BodyDataStream>>,
}

impl Stream for BorrowedBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.body {
            Some(body) => body.poll_next_unpin(context),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for BorrowedBody {
    fn drop(&mut self) {
        if let (Some(body), Some(return_to)) = (self.body.take(), self.return_to.take()) {
            // A dropped request has no receiver.
            let _ = return_to.send(body);
        }
    }
}

/// Receives the rest of a borrowed body.
pub struct Remainder(oneshot::Receiver<BodyDataStream>);

/// Lets the request's handler borrow the body. Returns no [`Remainder`] for a request without a
/// body.
pub fn borrow_body(request: Request) -> (Request, Option<Remainder>) {
    // A client that expects `100 Continue` sees the response before it sends the body.
    if request.body().is_end_stream() || request.headers().contains_key(header::EXPECT) {
        return (request, None);
    }
    let (return_to, returned) = oneshot::channel();
    let borrow = |body: Body| {
        Body::from_stream(BorrowedBody {
            body: Some(body.into_data_stream()),
            return_to: Some(return_to),
        })
    };
    (request.map(borrow), Some(Remainder(returned)))
}

impl Remainder {
    /// Discards the unread rest of the body. Call it once the response is known.
    pub async fn discard(mut self) {
        if let Ok(rest) = self.0.try_recv() {
            let _ = tokio::time::timeout(MAX_TIME, discard(rest)).await;
        }
    }
}

async fn discard(mut rest: BodyDataStream) {
    let mut bytes = 0;
    while let Some(Ok(data)) = rest.next().await {
        bytes += data.len();
        if bytes > MAX_BYTES {
            return;
        }
    }
}
