//! Finished responses on their way to the client: compression, and the memory of large ones, which
//! a slow client keeps in use until it has received them.

use axum::body::{Body, HttpBody};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use hub_base::bodies::INLINE_BYTES;
use hub_base::budget::{Held, Holder};
use hub_base::error::Error;
use uuid::Uuid;

use super::client_address;
use super::compression::{Accepted, compress};
use crate::Core;

/// The account that a large response to this request is charged to. Only a member or key of the
/// tenant gets one, so the header needs no other check.
pub fn holder(headers: &HeaderMap) -> Holder {
    let tenant = headers
        .get("x-tenant-uuid")
        .and_then(|value| Uuid::try_parse(value.to_str().ok()?).ok());
    match tenant {
        Some(group) => Holder {
            group,
            member: None,
        },
        None => Holder::address(client_address::current()),
    }
}

/// The response as it is sent, or 503 if there is no memory for it.
pub async fn finish(
    core: &Core,
    holder: Holder,
    response: Response,
    accepted: Accepted,
) -> Response {
    let Some(length) = length(&response).filter(|length| *length > INLINE_BYTES) else {
        return compress(response, accepted).await;
    };
    let Ok(held) = core.bodies.answers.reserve(holder, length) else {
        let message = "too many large responses are being sent; try again shortly";
        return Error::unavailable("BUSY", message).into_response();
    };
    hold(compress(response, accepted).await, held).await
}

/// The length of a response that is complete and in memory.
fn length(response: &Response) -> Option<usize> {
    response
        .body()
        .size_hint()
        .exact()
        .and_then(|length| usize::try_from(length).ok())
}

/// Holds the memory until the response is sent or given up.
async fn hold(response: Response, mut held: Held) -> Response {
    let Some(length) = length(&response) else {
        return response;
    };
    let (parts, body) = response.into_parts();
    // The body is in memory, so this does not wait. Its compressed form is smaller than the held
    // memory.
    let bytes = axum::body::to_bytes(body, length).await.unwrap_or_default();
    held.shrink_to(bytes.len());
    Response::from_parts(parts, Body::from(held.attach(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hub_base::budget::Budget;

    #[tokio::test]
    async fn response_holds_its_memory_until_it_is_gone() {
        let budget = Budget::new(1000);
        let held = budget.reserve(Holder::address(None), 500).expect("room");
        let response = hold(Response::new(Body::from("x".repeat(300))), held).await;
        assert_eq!((length(&response), budget.used_bytes()), (Some(300), 300));
        let bytes = axum::body::to_bytes(response.into_body(), 300)
            .await
            .expect("a body");
        assert_eq!(
            (bytes.len(), budget.used_bytes()),
            (300, 300),
            "whoever sends it still has it"
        );
        drop(bytes);
        assert_eq!(budget.used_bytes(), 0);
    }
}
