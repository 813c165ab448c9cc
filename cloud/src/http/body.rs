//! Request bodies: how large they may be, how they may be compressed, and what they must be called. An upload is unpacked as it is read and
//! given up at the first byte too many, so a zip bomb costs no more than the limit.

use std::io::Read;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::error::{Error, Result};

/// Ordinary JSON requests.
pub const MAX_JSON_BYTES: usize = 1024 * 1024;
/// Hub uploads as sent.
pub const MAX_UPLOAD_BYTES: usize = 4 * 1024 * 1024;
/// Hub uploads once unpacked.
pub const MAX_UNPACKED_BYTES: usize = 32 * 1024 * 1024;
/// How much of a body that is too large is read before it is refused.
const MAX_PASSED_OVER_BYTES: usize = 32 * 1024 * 1024;
/// A client that sends nothing more of a body for this long is given up, as one that sends no head is.
const PATIENCE: Duration = Duration::from_secs(30);
/// After that long a body has to have come at this pace, or it holds a connection for ever a byte at a time. The slowest of radio links is faster.
const MIN_BYTES_PER_SEC: usize = 1024;
/// The same for a file, which is far larger and comes from somebody with a better link.
const MIN_FILE_BYTES_PER_SEC: usize = 32 * 1024;
/// Above this, unpacking runs beside the request threads, not on them.
const INLINE_UNPACK_BYTES: usize = 64 * 1024;

/// Reads a JSON body that is not compressed.
pub async fn read_json(request: Request) -> Result<Bytes> {
    require_json(request.headers())?;
    if encoding(request.headers())? != Encoding::Identity {
        return Err(packed_for_nothing());
    }
    read(request, MAX_JSON_BYTES).await
}

fn packed_for_nothing() -> Error {
    Error::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UNSUPPORTED_ENCODING",
        "this endpoint takes no `Content-Encoding`; send the body as it is",
    )
}

/// An upload that was read.
pub enum Upload {
    Ready(Bytes),
    /// What it unpacks to may be large.
    Packed(Packed),
}

pub struct Packed {
    encoding: Encoding,
    bytes: Bytes,
}

/// Reads an upload, and unpacks it where that is little work.
pub async fn read_upload(request: Request) -> Result<Upload> {
    require_json(request.headers())?;
    let encoding = encoding(request.headers())?;
    let packed = read(request, MAX_UPLOAD_BYTES).await?;
    if encoding == Encoding::Identity {
        return Ok(Upload::Ready(packed));
    }
    if packed.len() <= INLINE_UNPACK_BYTES / 4 {
        // Small as it is, it may unpack to much: what does not fit inline is unpacked aside.
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
            pass_over(request.into_body(), PATIENCE).await;
        }
        return Err(too_large(limit, ""));
    }
    read_body(request.into_body(), limit, PATIENCE).await
}

/// How long the body is, if its sender says so.
pub fn declared_length(request: &Request) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
}

/// Reads what is refused anyway: few clients look for an answer before they have sent all. One that waits for `100 Continue` does, and one
/// that sends far too much, or nothing more, is cut off.
async fn pass_over(body: Body, patience: Duration) {
    let mut frames = Frames::new(body, patience);
    while let Ok(Some(_)) = frames.next().await {
        if frames.bytes > MAX_PASSED_OVER_BYTES {
            return;
        }
    }
}

async fn read_body(body: Body, limit: usize, patience: Duration) -> Result<Bytes> {
    let mut frames = Frames::new(body, patience);
    let within = |bytes: usize| if bytes <= limit { Ok(()) } else { Err(too_large(limit, "")) };
    let Some(first) = frames.next().await? else { return Ok(Bytes::new()) };
    within(first.len())?;
    // Most bodies are one frame, which is taken as it came.
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

/// A body as it comes.
pub struct Frames {
    stream: BodyDataStream,
    patience: Duration,
    min_bytes_per_sec: usize,
    started: Instant,
    bytes: usize,
}

impl Frames {
    fn new(body: Body, patience: Duration) -> Self {
        let stream = body.into_data_stream();
        Self { stream, patience, min_bytes_per_sec: MIN_BYTES_PER_SEC, started: Instant::now(), bytes: 0 }
    }

    /// Of a file that is sent as it is.
    pub fn of_file(request: Request) -> Result<Self> {
        if encoding(request.headers())? != Encoding::Identity {
            return Err(packed_for_nothing());
        }
        Ok(Self { min_bytes_per_sec: MIN_FILE_BYTES_PER_SEC, ..Self::new(request.into_body(), PATIENCE) })
    }

    /// The next part. It is waited for no longer than the patience lasts, and no longer than the pace of all that came allows.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let earned = Duration::from_secs((self.bytes / self.min_bytes_per_sec) as u64);
        let deadline = (Instant::now() + self.patience).min(self.started + self.patience + earned);
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
                "the body came too slowly; send the request again",
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

/// The unpacked bytes, or nothing when there are more than `limit`.
fn unpack(encoding: Encoding, packed: &[u8], limit: usize) -> Result<Option<Bytes>> {
    let malformed = |_| Error::bad_request("MALFORMED_ENCODING", "the body is not what its `Content-Encoding` says");
    let mut unpacked = Vec::with_capacity((packed.len() * 4).min(limit));
    let mut read_limited = |reader: &mut dyn Read| reader.take(limit as u64 + 1).read_to_end(&mut unpacked);
    match encoding {
        Encoding::Identity => return Ok(Some(Bytes::copy_from_slice(packed))),
        Encoding::Gzip => read_limited(&mut flate2::read::MultiGzDecoder::new(packed)).map_err(malformed)?,
        Encoding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(malformed)?;
            // A frame may ask for a window of its own; none larger than a whole upload is given.
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
            assert_eq!(read_body(body_of(frames), 5, PATIENCE).await.expect("a body"), expected);
        }
        for frames in [&["123456"][..], &["12345", "6"], &["1", "2345", "6"]] {
            let error = read_body(body_of(frames), 5, PATIENCE).await.expect_err("a refusal");
            assert_eq!((error.status().as_u16(), error.code()), (413, "BODY_TOO_LARGE"), "{frames:?}");
        }
    }

    #[tokio::test]
    async fn a_body_that_stops_coming_is_given_up() {
        let stalls =
            |frames: &[&'static str]| Body::from_stream(body_of(frames).into_data_stream().chain(stream::pending()));
        for frames in [&[][..], &["1"], &["1", "2", "3"]] {
            let error = read_body(stalls(frames), 5, SHORT).await.expect_err("a refusal");
            assert_eq!((error.status().as_u16(), error.code()), (408, "REQUEST_TIMEOUT"), "{frames:?}");
        }
        // What is refused anyway is not waited for either.
        pass_over(stalls(&["1", "2"]), SHORT).await;
    }

    #[tokio::test]
    async fn a_body_cut_short_is_incomplete() {
        let cut = stream::iter([Ok(Bytes::from_static(b"1")), Err(std::io::Error::other("gone"))]);
        let error = read_body(Body::from_stream(cut), 5, PATIENCE).await.expect_err("a refusal");
        assert_eq!((error.status().as_u16(), error.code()), (400, "INCOMPLETE_BODY"));
    }
}
