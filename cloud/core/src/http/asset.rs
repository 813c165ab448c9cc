//! Files that are part of the program: pages, and what they are made of. They are the same for all
//! clients until the program is replaced.

use std::sync::{Arc, OnceLock};

use aide::openapi::Response as ApiResponse;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::compression::{self, Accepted};
use super::describe::headers;
use super::etag::{IfNoneMatch, not_modified};

pub struct Asset {
    media_type: &'static str,
    etag: String,
    plain: Bytes,
    gzipped: OnceLock<Bytes>,
}

impl Asset {
    pub fn new(media_type: &'static str, text: impl Into<Bytes>) -> Self {
        let plain = text.into();
        let etag = format!(
            "W/\"{}\"",
            hex::encode(hub_base::sealing::hash(&String::from_utf8_lossy(&plain)))
        );
        Self {
            media_type,
            etag,
            plain,
            gzipped: OnceLock::new(),
        }
    }

    pub async fn answer(self: Arc<Self>, accepted: Accepted, known: &IfNoneMatch) -> Response {
        let mut response = match known.matches(&self.etag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false if accepted.gzip => {
                let gzipped = self.clone().gzipped().await;
                (
                    [
                        (header::CONTENT_ENCODING, "gzip"),
                        (header::VARY, "accept-encoding"),
                    ],
                    gzipped,
                )
                    .into_response()
            }
            false => self.plain.clone().into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(self.media_type),
        );
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=300"),
        );
        if let Ok(etag) = HeaderValue::from_str(&self.etag) {
            headers.insert(header::ETAG, etag);
        }
        response
    }

    /// Compressed at the first request that accepts it, so that the start does not wait for it.
    async fn gzipped(self: Arc<Self>) -> Bytes {
        if let Some(gzipped) = self.gzipped.get() {
            return gzipped.clone();
        }
        let packed = tokio::task::spawn_blocking(move || {
            let gzipped = compression::gzip(&self.plain);
            self.gzipped.get_or_init(|| gzipped).clone()
        });
        packed.await.unwrap_or_default()
    }
}

/// The description of a response with such a file.
pub fn cacheable(answer: ApiResponse) -> Vec<(Option<u16>, ApiResponse)> {
    vec![
        (
            Some(200),
            ApiResponse {
                headers: headers(&["ETag"]),
                ..answer
            },
        ),
        (Some(304), not_modified()),
    ]
}
