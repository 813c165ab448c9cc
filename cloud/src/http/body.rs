//! Request bodies: their largest size, their compression and their content type. An upload is
//! unpacked while it is read, and reading stops at the first byte beyond the limit, so a zip bomb
//! costs no more than the limit.

use std::io::Read;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::error::{Error, Result};

/// The largest ordinary JSON request.
pub const MAX_JSON_BYTES: usize = 1024 * 1024;
/// The largest hub upload, as sent.
pub const MAX_UPLOAD_BYTES: usize = 4 * 1024 * 1024;
/// The largest hub upload, unpacked.
pub const MAX_UNPACKED_BYTES: usize = 32 * 1024 * 1024;
/// How much of a body that is too large is read before the request is refused.
const MAX_DISCARDED_BYTES: usize = 32 * 1024 * 1024;
/// A client that sends no further part of a body for this long is disconnected, like one that sends
/// no head.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// After that time a body must have arrived at this pace, so that a connection cannot be held
/// forever one byte at a time. The slowest radio links are faster.
const MIN_BYTES_PER_SEC: usize = 1024;
/// The same for a file, which is far larger and comes over a better link.
const MIN_FILE_BYTES_PER_SEC: usize = 32 * 1024;
/// Larger bodies are unpacked outside of the request threads.
const INLINE_UNPACK_BYTES: usize = 64 * 1024;

/// Reads a JSON body that is not compressed.
pub async fn read_json(request: Request) -> Result<Bytes> {
    require_json(request.headers())?;
    if encoding(request.headers())? != Encoding::Identity {
        return Err(compression_not_accepted());
    }
    read(request, MAX_JSON_BYTES).await
}

fn compression_not_accepted() -> Error {
    Error::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UNSUPPORTED_ENCODING",
        "this endpoint does not accept a `Content-Encoding`; send the body uncompressed",
    )
}

/// An upload after reading.
pub enum Upload {
    Ready(Bytes),
    /// Unpacked, it may be large.
    Packed(Packed),
}

pub struct Packed {
    encoding: Encoding,
    bytes: Bytes,
}

/// Reads an upload, and unpacks it if that is little work.
pub async fn read_upload(request: Request) -> Result<Upload> {
    require_json(request.headers())?;
    let encoding = encoding(request.headers())?;
    let packed = read(request, MAX_UPLOAD_BYTES).await?;
    if encoding == Encoding::Identity {
        return Ok(Upload::Ready(packed));
    }
    if packed.len() <= INLINE_UNPACK_BYTES / 4 {
        // A small body may unpack to a large one. What exceeds the inline limit is unpacked outside
        // of the request threads.
        if let Some(unpacked) = unpack(encoding, &packed, INLINE_UNPACK_BYTES)? {
            return Ok(Upload::Ready(unpacked));
        }
    }
    Ok(Upload::Packed(Packed { encoding, bytes: packed }))
}

impl Packed {
    pub async fn unpack(self) -> Result<Bytes> {
        let unpacked =
            tokio::task::spawn_blocking(move || unpack(self.encoding, &self.bytes, MAX_UNPACKED_BYTES)).await;
        unpacked.map_err(Error::internal)??.ok_or_else(|| too_large(MAX_UNPACKED_BYTES, " unpacked"))
    }
}

async fn read(request: Request, limit: usize) -> Result<Bytes> {
    if declared_length(&request).is_some_and(|length| length > limit as u64) {
        if !request.headers().contains_key(header::EXPECT) {
            discard(request.into_body(), IDLE_TIMEOUT).await;
        }
        return Err(too_large(limit, ""));
    }
    read_body(request.into_body(), limit, IDLE_TIMEOUT).await
}

/// The length of the body, if the client declares it.
pub fn declared_length(request: &Request) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
}

/// Reads and discards a body that will be refused, since few clients look for a response before
/// they have sent everything. A client that waits for `100 Continue` does look, and one that sends
/// far too much or stops sending is disconnected.
async fn discard(body: Body, idle_timeout: Duration) {
    let mut frames = Frames::new(body, idle_timeout);
    while let Ok(Some(_)) = frames.next().await {
        if frames.bytes > MAX_DISCARDED_BYTES {
            return;
        }
    }
}

async fn read_body(body: Body, limit: usize, idle_timeout: Duration) -> Result<Bytes> {
    let mut frames = Frames::new(body, idle_timeout);
    let within = |bytes: usize| if bytes <= limit { Ok(()) } else { Err(too_large(limit, "")) };
    let Some(first) = frames.next().await? else { return Ok(Bytes::new()) };
    within(first.len())?;
    // Most bodies are one frame, which is returned without a copy.
    let Some(second) = frames.next().await? else { return Ok(first) };
    let mut whole = BytesMut::from(first);
    let mut next = Some(second);
    while let Some(data) = next {
        within(whole.len() + data.len())?;
        whole.extend_from_slice(&data);
        next = frames.next().await?;
    }
    Ok(whole.freeze())
}

/// A body as it arrives.
pub struct Frames {
    stream: BodyDataStream,
    idle_timeout: Duration,
    min_bytes_per_sec: usize,
    started: Instant,
    bytes: usize,
}

impl Frames {
    fn new(body: Body, idle_timeout: Duration) -> Self {
        let stream = body.into_data_stream();
        Self { stream, idle_timeout, min_bytes_per_sec: MIN_BYTES_PER_SEC, started: Instant::now(), bytes: 0 }
    }

    /// The body of a file, which is not compressed.
    pub fn of_file(request: Request) -> Result<Self> {
        if encoding(request.headers())? != Encoding::Identity {
            return Err(compression_not_accepted());
        }
        Ok(Self { min_bytes_per_sec: MIN_FILE_BYTES_PER_SEC, ..Self::new(request.into_body(), IDLE_TIMEOUT) })
    }

    /// The next part. Waits at most for the idle timeout, and at most until the pace of the whole
    /// body falls below the minimum.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let earned = Duration::from_secs((self.bytes / self.min_bytes_per_sec) as u64);
        let deadline = (Instant::now() + self.idle_timeout).min(self.started + self.idle_timeout + earned);
        match tokio::time::timeout_at(deadline, self.stream.next()).await {
            Ok(Some(Ok(data))) => {
                self.bytes += data.len();
                Ok(Some(data))
            }
            Ok(None) => Ok(None),
            Ok(Some(Err(_))) => Err(Error::bad_request("INCOMPLETE_BODY", "the body ended before it was complete")),
            Err(_) => Err(Error::new(
                StatusCode::REQUEST_TIMEOUT,
                "REQUEST_TIMEOUT",
                "the body arrived too slowly; send the request again",
            )),
        }
    }
}

fn too_large(limit: usize, how: &str) -> Error {
    let mebibytes = limit / (1024 * 1024);
    Error::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "BODY_TOO_LARGE",
        format!("the body may have at most {mebibytes} MiB{how}; send it in parts"),
    )
}

fn require_json(headers: &HeaderMap) -> Result<()> {
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media == "application/json" || (media.starts_with("application/") && media.ends_with("+json")) {
        return Ok(());
    }
    Err(Error::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UNSUPPORTED_MEDIA_TYPE",
        "send JSON, with the header `Content-Type: application/json`",
    ))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

fn encoding(headers: &HeaderMap) -> Result<Encoding> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(Encoding::Identity) };
    match value.to_str().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(Encoding::Identity),
        "gzip" | "x-gzip" => Ok(Encoding::Gzip),
        "zstd" => Ok(Encoding::Zstd),
        _ => Err(Error::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UNSUPPORTED_ENCODING",
            "`Content-Encoding` may be `gzip` or `zstd`",
        )),
    }
}

/// The unpacked bytes, or `None` if there are more than `limit`.
fn unpack(encoding: Encoding, packed: &[u8], limit: usize) -> Result<Option<Bytes>> {
    let malformed = |_| Error::bad_request("MALFORMED_ENCODING", "the body does not match its `Content-Encoding`");
    let mut unpacked = Vec::with_capacity((packed.len() * 4).min(limit));
    let mut read_limited = |reader: &mut dyn Read| reader.take(limit as u64 + 1).read_to_end(&mut unpacked);
    match encoding {
        Encoding::Identity => return Ok(Some(Bytes::copy_from_slice(packed))),
        Encoding::Gzip => read_limited(&mut flate2::read::MultiGzDecoder::new(packed)).map_err(malformed)?,
        Encoding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(malformed)?;
            // A frame may request a window of its own. None may be larger than a whole upload.
            decoder.window_log_max(25).map_err(malformed)?;
            read_limited(&mut decoder).map_err(malformed)?
        }
    };
    Ok((unpacked.len() <= limit).then(|| Bytes::from(unpacked)))
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    const SHORT: Duration = Duration::from_millis(1);

    fn body_of(frames: &[&'static str]) -> Body {
        let frames: Vec<Result<Bytes>> = frames.iter().map(|&frame| Ok(Bytes::from_static(frame.as_bytes()))).collect();
        Body::from_stream(stream::iter(frames))
    }

    #[tokio::test]
    async fn frames_are_joined_up_to_the_limit() {
        for (frames, expected) in
            [(&[][..], ""), (&["12345"], "12345"), (&["12", "345"], "12345"), (&["1", "", "2", "345"], "12345")]
        {
            assert_eq!(read_body(body_of(frames), 5, IDLE_TIMEOUT).await.expect("a body"), expected);
        }
        for frames in [&["123456"][..], &["12345", "6"], &["1", "2345", "6"]] {
            let error = read_body(body_of(frames), 5, IDLE_TIMEOUT).await.expect_err("a refusal");
            assert_eq!((error.status().as_u16(), error.code()), (413, "BODY_TOO_LARGE"), "{frames:?}");
        }
    }

    #[tokio::test]
    async fn stalled_body_times_out() {
        let stalls =
            |frames: &[&'static str]| Body::from_stream(body_of(frames).into_data_stream().chain(stream::pending()));
        for frames in [&[][..], &["1"], &["1", "2", "3"]] {
            let error = read_body(stalls(frames), 5, SHORT).await.expect_err("a refusal");
            assert_eq!((error.status().as_u16(), error.code()), (408, "REQUEST_TIMEOUT"), "{frames:?}");
        }
        // A body that will be refused is not waited for either.
        discard(stalls(&["1", "2"]), SHORT).await;
    }

    #[tokio::test]
    async fn truncated_body_is_incomplete() {
        let cut = stream::iter([Ok(Bytes::from_static(b"1")), Err(std::io::Error::other("gone"))]);
        let error = read_body(Body::from_stream(cut), 5, IDLE_TIMEOUT).await.expect_err("a refusal");
        assert_eq!((error.status().as_u16(), error.code()), (400, "INCOMPLETE_BODY"));
    }
}
