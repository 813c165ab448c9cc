//! Compression of responses. It works on finished responses, called by `middleware`, and is no
//! layer: the future of a layer contains all inner ones while a request lasts, and thousands of
//! hubs wait at a time. A response contains either secrets or text that the caller chose, and no
//! browser sends a credential on its own, so the length of a response reveals nothing to a third
//! party.

use std::convert::Infallible;
use std::io::{Read, Write};

use aide::OperationInput;
use axum::body::{Body, HttpBody};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

/// Smaller responses fit into a packet or two without compression.
const MIN_BYTES: usize = 1024;
/// Larger responses are compressed outside of the request threads.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// The encodings that the client accepts, of those that the service supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    pub gzip: bool,
    pub zstd: bool,
}

impl Accepted {
    /// Parses `Accept-Encoding` (RFC 9110, 12.5.3). Weights other than 0 are not compared: either
    /// encoding is suitable.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut accepted = Self::default();
        let values = headers
            .get_all(header::ACCEPT_ENCODING)
            .iter()
            .filter_map(|value| value.to_str().ok());
        for coding in values.flat_map(|value| value.split(',')) {
            let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
            let weight = parameters.trim().to_ascii_lowercase().replace(' ', "");
            let is_accepted = weight
                .strip_prefix("q=")
                .is_none_or(|weight| weight.parse::<f32>() != Ok(0.0));
            match name.trim().to_ascii_lowercase().as_str() {
                "gzip" | "x-gzip" => accepted.gzip = is_accepted,
                "zstd" => accepted.zstd = is_accepted,
                _ => {}
            }
        }
        accepted
    }
}

impl<S: Sync> FromRequestParts<S> for Accepted {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

impl OperationInput for Accepted {}

/// The response, compressed if that is allowed and worthwhile.
pub async fn compress(response: Response, accepted: Accepted) -> Response {
    let Some(length) = compressible_length(&response) else {
        return response;
    };
    let (mut parts, body) = response.into_parts();
    parts
        .headers
        .append(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !accepted.gzip && !accepted.zstd {
        return Response::from_parts(parts, body);
    }
    // The length is known, so the body is in memory and this does not wait.
    let Ok(plain) = axum::body::to_bytes(body, length).await else {
        return Response::from_parts(parts, Body::empty());
    };
    let pack = move || {
        if accepted.zstd {
            zstd(&plain)
        } else {
            Some(gzip(&plain))
        }
        .ok_or(plain)
    };
    let packed = match length {
        ..=MAX_INLINE_BYTES => pack(),
        _ => tokio::task::spawn_blocking(pack)
            .await
            .unwrap_or_else(|_| Err(Bytes::new())),
    };
    match packed {
        Ok(packed) => {
            let encoding = if accepted.zstd { "zstd" } else { "gzip" };
            parts
                .headers
                .insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
            parts.headers.remove(header::CONTENT_LENGTH);
            tag_encoding(&mut parts.headers, encoding);
            Response::from_parts(parts, packed.into())
        }
        Err(plain) => Response::from_parts(parts, plain.into()),
    }
}

/// The length of a response that is worth compressing: text in memory, complete, and not compressed
/// yet.
fn compressible_length(response: &Response) -> Option<usize> {
    let headers = response.headers();
    let is_whole = response.status() != StatusCode::PARTIAL_CONTENT
        && !headers.contains_key(header::CONTENT_RANGE);
    let is_plain = !headers.contains_key(header::CONTENT_ENCODING);
    let media_type = headers
        .get(header::CONTENT_TYPE)?
        .to_str()
        .ok()?
        .split(';')
        .next()?
        .trim();
    let length = response
        .body()
        .size_hint()
        .exact()
        .and_then(|length| usize::try_from(length).ok())?;
    (is_whole && is_plain && is_text(media_type) && length >= MIN_BYTES).then_some(length)
}

fn is_text(media_type: &str) -> bool {
    match media_type {
        // Events must arrive one by one.
        "text/event-stream" => false,
        "application/json" | "application/openmetrics-text" | "application/x-pem-file" => true,
        other => other.starts_with("text/") || other.ends_with("+json"),
    }
}

/// A strong tag identifies the bytes that are sent, so each encoding has a tag of its own: `"7"`
/// becomes `"7-zstd"`. [`super::etag::IfNoneMatch`] accepts both.
fn tag_encoding(headers: &mut HeaderMap, encoding: &str) {
    let etag = headers
        .get(header::ETAG)
        .and_then(|etag| etag.to_str().ok());
    let Some(tag) = etag
        .filter(|tag| !tag.starts_with("W/"))
        .and_then(|tag| tag.strip_suffix('"'))
    else {
        return;
    };
    if let Ok(tag) = HeaderValue::from_str(&format!("{tag}-{encoding}\"")) {
        headers.insert(header::ETAG, tag);
    }
}

/// Writing to memory does not fail.
pub fn gzip(plain: &[u8]) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(
        Vec::with_capacity(plain.len() / 4),
        flate2::Compression::new(5),
    );
    let _ = encoder.write_all(plain);
    encoder.finish().unwrap_or_default().into()
}

/// Unpacks a file that is part of the program, and therefore complete.
pub fn gunzip(packed: &[u8]) -> Bytes {
    let mut plain = Vec::with_capacity(packed.len() * 4);
    let _ = flate2::read::GzDecoder::new(packed).read_to_end(&mut plain);
    plain.into()
}

pub fn zstd(plain: &[u8]) -> Option<Bytes> {
    zstd::bulk::compress(plain, 3).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_encodings_are_read_from_every_form_of_the_header() {
        let accepted = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            let Accepted { gzip, zstd } = Accepted::of(&headers);
            (gzip, zstd)
        };
        assert_eq!(Accepted::of(&HeaderMap::new()), Accepted::default());
        for (value, expected) in [
            ("", (false, false)),
            ("identity", (false, false)),
            ("br, *", (false, false)),
            ("gzip", (true, false)),
            ("gzip, deflate, br, zstd", (true, true)),
            ("GZIP ; q=0.5,zstd;q=0", (true, false)),
            ("zstd; q=1.0, gzip;q=0.000", (false, true)),
        ] {
            assert_eq!(accepted(value), expected, "{value}");
        }
    }

    fn answer(media_type: &'static str, body: impl Into<Body>) -> Response {
        let etag = (header::ETAG, HeaderValue::from_static("\"1\""));
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        let mut response = Response::new(body.into());
        response.headers_mut().extend([etag, kind]);
        response
    }

    async fn encoding_of(response: Response, accepted: Accepted) -> (String, String) {
        let response = compress(response, accepted).await;
        let text = |name| {
            response
                .headers()
                .get(name)
                .map_or("", |value| value.to_str().expect("text"))
                .to_owned()
        };
        (text(header::CONTENT_ENCODING), text(header::ETAG))
    }

    #[tokio::test]
    async fn large_text_is_compressed_and_nothing_else() {
        const BOTH: Accepted = Accepted {
            gzip: true,
            zstd: true,
        };
        const GZIP: Accepted = Accepted {
            gzip: true,
            zstd: false,
        };
        let pair = |encoding: &str, etag: &str| (encoding.to_owned(), etag.to_owned());
        let large = || "a".repeat(200_000);
        assert_eq!(
            encoding_of(answer("application/json", large()), BOTH).await,
            pair("zstd", "\"1-zstd\"")
        );
        assert_eq!(
            encoding_of(answer("text/html; charset=utf-8", large()), GZIP).await,
            pair("gzip", "\"1-gzip\"")
        );
        assert_eq!(
            encoding_of(answer("application/json", "a".repeat(1024)), GZIP).await,
            pair("gzip", "\"1-gzip\"")
        );
        let plain = pair("", "\"1\"");
        assert_eq!(
            encoding_of(answer("application/json", "a".repeat(1023)), BOTH).await,
            plain
        );
        assert_eq!(
            encoding_of(answer("application/json", large()), Accepted::default()).await,
            plain
        );
        assert_eq!(
            encoding_of(answer("application/octet-stream", large()), BOTH).await,
            plain
        );
        assert_eq!(
            encoding_of(answer("text/event-stream", large()), BOTH).await,
            plain
        );
        let stream = futures_util::stream::iter([Ok::<_, Infallible>(large())]);
        assert_eq!(
            encoding_of(answer("application/json", Body::from_stream(stream)), BOTH).await,
            plain
        );
        let mut piece = answer("application/json", large());
        *piece.status_mut() = StatusCode::PARTIAL_CONTENT;
        assert_eq!(encoding_of(piece, BOTH).await, plain);
    }

    #[tokio::test]
    async fn what_is_compressed_unpacks_to_the_same() {
        let text = "an answer, again and again; ".repeat(1000);
        let response = compress(
            answer("text/plain", text.clone()),
            Accepted {
                gzip: false,
                zstd: true,
            },
        )
        .await;
        let packed = axum::body::to_bytes(response.into_body(), usize::MAX)
            .await
            .expect("a body");
        assert_eq!(
            zstd::stream::decode_all(&packed[..]).expect("zstd"),
            text.as_bytes()
        );
        let mut unpacked = String::new();
        let packed = gzip(text.as_bytes());
        let mut decoder = flate2::read::GzDecoder::new(&*packed);
        std::io::Read::read_to_string(&mut decoder, &mut unpacked).expect("gzip");
        assert_eq!(unpacked, text);
    }
}
