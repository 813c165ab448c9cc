//! Request bodies: their largest size, their compression and their content type. Memory for a body
//! is reserved before it is used: for what arrives as it arrives, for what a compressed body may
//! become before it is unpacked. Unpacking stops at the first byte beyond the limit.

use std::io::Read;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use hub_base::bodies::INLINE_BYTES;
use hub_base::budget::{Full, Held};
use hub_base::error::{Error, Result};
use tokio::time::Instant;

/// The largest ordinary JSON request.
pub const MAX_JSON_BYTES: usize = 1024 * 1024;
/// The largest hub upload, as sent.
pub const MAX_UPLOAD_BYTES: usize = 4 * 1024 * 1024;
/// The largest hub upload, unpacked.
pub const MAX_UNPACKED_BYTES: usize = 32 * 1024 * 1024;
/// The bytes of a too large body that are read before the request is refused.
const MAX_DISCARDED_BYTES: usize = 32 * 1024 * 1024;
/// A client that sends no further part of a body for this long is disconnected, like one that sends
/// no head.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pace of arrival after that time, so that a connection cannot be held forever one byte at a
/// time. The slowest radio links are faster.
const MIN_BYTES_PER_SEC: usize = 1024;
/// The pace of a file, which is far larger and comes over a better link.
const MIN_FILE_BYTES_PER_SEC: usize = 32 * 1024;
/// The largest window of a zstd frame, as a power of two: no more than a whole upload.
const MAX_ZSTD_WINDOW_LOG: u32 = 25;

/// Reads a JSON body that is not compressed. Its memory is `held`.
pub async fn read_json(request: Request, held: &mut Held) -> Result<Bytes> {
    require_json(request.headers())?;
    if encoding(request.headers())? != Encoding::Identity {
        return Err(compression_not_accepted());
    }
    read(request, MAX_JSON_BYTES, held).await
}

/// Reads a body of any type that is not compressed. Its memory is `held`.
pub async fn read_file(request: Request, limit: usize, held: &mut Held) -> Result<Bytes> {
    if encoding(request.headers())? != Encoding::Identity {
        return Err(compression_not_accepted());
    }
    read(request, limit, held).await
}

fn compression_not_accepted() -> Error {
    Error::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UNSUPPORTED_ENCODING",
        "this endpoint does not accept a `Content-Encoding`; send the body uncompressed",
    )
}

/// The response to a body for which there is no memory now.
pub fn no_memory(full: Full) -> Error {
    match full {
        Full::Share => {
            let message =
                "your requests use too much memory at once; send fewer or smaller ones at a time";
            Error::too_many_requests(message, 1)
        }
        Full::Whole => Error::unavailable(
            "BUSY",
            "too many large bodies are being processed; try again shortly",
        ),
    }
}

/// An upload that was read.
pub enum Upload {
    /// An unpacked body that is small enough for the request's own thread.
    Small(Bytes),
    Large(Large),
}

/// A body that may be large once it is unpacked.
pub struct Large {
    encoding: Encoding,
    bytes: Bytes,
    /// The memory of `bytes`.
    _held: Held,
}

/// Reads an upload, and unpacks it if that is little work. `held` is for what arrives.
pub async fn read_upload(request: Request, mut held: Held) -> Result<Upload> {
    require_json(request.headers())?;
    let encoding = encoding(request.headers())?;
    let bytes = read(request, MAX_UPLOAD_BYTES, &mut held).await?;
    match encoding {
        Encoding::Identity if bytes.len() <= INLINE_BYTES => return Ok(Upload::Small(bytes)),
        // A small body may unpack to a large one, which is found out at little cost.
        Encoding::Gzip | Encoding::Zstd if bytes.len() <= INLINE_BYTES / 4 => {
            let unpacked = unpack(
                encoding,
                &bytes,
                INLINE_BYTES,
                INLINE_BYTES,
                &mut |_| Ok(()),
            );
            if let Some(unpacked) = unpacked.unwrap_or(Ok(None))? {
                return Ok(Upload::Small(unpacked));
            }
        }
        _ => {}
    }
    Ok(Upload::Large(Large {
        encoding,
        bytes,
        _held: held,
    }))
}

impl Large {
    /// The unpacked size, as far as it can be estimated without unpacking.
    pub fn estimate(&self) -> usize {
        let estimate = match self.encoding {
            Encoding::Identity => self.bytes.len(),
            // The last four bytes hold the size, if the body has one member and is honest.
            Encoding::Gzip => {
                let stated = self
                    .bytes
                    .last_chunk()
                    .map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
                stated.max(self.bytes.len() * 16)
            }
            // An upper bound; none if it is malformed.
            Encoding::Zstd => zstd::bulk::Decompressor::upper_bound(&self.bytes).unwrap_or(0),
        };
        estimate.min(MAX_UNPACKED_BYTES)
    }

    /// Unpacks it. `reserve` is asked for more memory, in all, before more than the estimate is
    /// used; if it refuses, unpacking ends.
    pub fn unpack(
        &self,
        mut reserve: impl FnMut(usize) -> Result<(), Full>,
    ) -> Result<Result<Bytes>, Full> {
        if self.encoding == Encoding::Identity {
            return Ok(Ok(self.bytes.clone()));
        }
        let unpacked = unpack(
            self.encoding,
            &self.bytes,
            self.estimate(),
            MAX_UNPACKED_BYTES,
            &mut reserve,
        )?;
        Ok(unpacked.and_then(|unpacked| {
            unpacked.ok_or_else(|| too_large(MAX_UNPACKED_BYTES, " unpacked"))
        }))
    }
}

async fn read(request: Request, limit: usize, held: &mut Held) -> Result<Bytes> {
    if declared_length(&request).is_some_and(|length| length > limit as u64) {
        if !request.headers().contains_key(header::EXPECT) {
            discard(request.into_body(), IDLE_TIMEOUT).await;
        }
        return Err(too_large(limit, ""));
    }
    read_body(request.into_body(), limit, IDLE_TIMEOUT, held).await
}

/// The length of the body, if the client declares it.
pub fn declared_length(request: &Request) -> Option<u64> {
    request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok())
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

async fn read_body(
    body: Body,
    limit: usize,
    idle_timeout: Duration,
    held: &mut Held,
) -> Result<Bytes> {
    let mut frames = Frames::new(body, idle_timeout);
    let mut within = |bytes: usize| match bytes <= limit {
        true => held.grow_to(bytes).map_err(no_memory),
        false => Err(too_large(limit, "")),
    };
    let Some(first) = frames.next().await? else {
        return Ok(Bytes::new());
    };
    within(first.len())?;
    // Most bodies are one frame, which is returned without a copy.
    let Some(second) = frames.next().await? else {
        return Ok(first);
    };
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
        Self {
            stream,
            idle_timeout,
            min_bytes_per_sec: MIN_BYTES_PER_SEC,
            started: Instant::now(),
            bytes: 0,
        }
    }

    /// The body of a file, which is not compressed.
    pub fn of_file(request: Request) -> Result<Self> {
        if encoding(request.headers())? != Encoding::Identity {
            return Err(compression_not_accepted());
        }
        Ok(Self {
            min_bytes_per_sec: MIN_FILE_BYTES_PER_SEC,
            ..Self::new(request.into_body(), IDLE_TIMEOUT)
        })
    }

    /// The next part. Waits at most for the idle timeout, and at most until the pace of the whole
    /// body falls below the minimum.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let earned = Duration::from_secs((self.bytes / self.min_bytes_per_sec) as u64);
        let deadline =
            (Instant::now() + self.idle_timeout).min(self.started + self.idle_timeout + earned);
        match tokio::time::timeout_at(deadline, self.stream.next()).await {
            Ok(Some(Ok(data))) => {
                self.bytes += data.len();
                Ok(Some(data))
            }
            Ok(None) => Ok(None),
            Ok(Some(Err(_))) => Err(Error::bad_request(
                "INCOMPLETE_BODY",
                "the body ended before it was complete",
            )),
            Err(_) => Err(Error::new(
                StatusCode::REQUEST_TIMEOUT,
                "REQUEST_TIMEOUT",
                "the body arrived too slowly; send the request again",
            )),
        }
    }
}

pub fn too_large(limit: usize, how: &str) -> Error {
    let mebibytes = limit / (1024 * 1024);
    Error::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "BODY_TOO_LARGE",
        format!("the body may have at most {mebibytes} MiB{how}; send it in parts"),
    )
}

fn require_json(headers: &HeaderMap) -> Result<()> {
    let media = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media = media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if media == "application/json"
        || (media.starts_with("application/") && media.ends_with("+json"))
    {
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
    let Some(value) = headers.get(header::CONTENT_ENCODING) else {
        return Ok(Encoding::Identity);
    };
    match value
        .to_str()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
        .as_str()
    {
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

/// The unpacked bytes, or `None` if there are more than `limit`. `room` bytes are reserved; before
/// more are used, `reserve` is asked for them.
fn unpack(
    encoding: Encoding,
    packed: &[u8],
    mut room: usize,
    limit: usize,
    reserve: &mut dyn FnMut(usize) -> Result<(), Full>,
) -> Result<Result<Option<Bytes>>, Full> {
    let malformed = |_| {
        Error::bad_request(
            "MALFORMED_ENCODING",
            "the body does not match its `Content-Encoding`",
        )
    };
    let mut reader: Box<dyn Read + '_> = match encoding {
        Encoding::Identity => Box::new(packed),
        Encoding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Encoding::Zstd => match zstd_decoder(packed) {
            Ok(decoder) => Box::new(decoder),
            Err(error) => return Ok(Err(malformed(error))),
        },
    };
    // A read of one more byte than there is room for detects a longer body. Unwritten memory is not
    // used, but small bodies are many.
    let capacity = if room <= INLINE_BYTES {
        room.min(packed.len() * 4)
    } else {
        room
    };
    let mut unpacked = Vec::with_capacity(capacity + 1);
    loop {
        let wanted = (room + 1).saturating_sub(unpacked.len()) as u64;
        if let Err(error) = reader.by_ref().take(wanted).read_to_end(&mut unpacked) {
            return Ok(Err(malformed(error)));
        }
        if unpacked.len() <= room {
            return Ok(Ok(Some(Bytes::from(unpacked))));
        }
        if room >= limit {
            return Ok(Ok(None));
        }
        room = (room * 2).clamp(INLINE_BYTES, limit);
        reserve(room)?;
        unpacked.reserve_exact((room + 1).saturating_sub(unpacked.len()));
    }
}

fn zstd_decoder(packed: &[u8]) -> std::io::Result<zstd::stream::read::Decoder<'static, &[u8]>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
    decoder.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
    Ok(decoder)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use hub_base::budget::{Budget, Holder};

    const SHORT: Duration = Duration::from_millis(1);

    fn held(bytes: usize) -> Held {
        Budget::new(bytes).hold(Holder::address(None))
    }

    fn body_of(frames: &[&'static str]) -> Body {
        let frames: Vec<Result<Bytes>> = frames
            .iter()
            .map(|&frame| Ok(Bytes::from_static(frame.as_bytes())))
            .collect();
        Body::from_stream(stream::iter(frames))
    }

    #[tokio::test]
    async fn frames_are_joined_up_to_the_limit() {
        for (frames, expected) in [
            (&[][..], ""),
            (&["12345"], "12345"),
            (&["12", "345"], "12345"),
            (&["1", "", "2", "345"], "12345"),
        ] {
            assert_eq!(
                read_body(body_of(frames), 5, IDLE_TIMEOUT, &mut held(100))
                    .await
                    .expect("a body"),
                expected
            );
        }
        for frames in [&["123456"][..], &["12345", "6"], &["1", "2345", "6"]] {
            let read = read_body(body_of(frames), 5, IDLE_TIMEOUT, &mut held(100)).await;
            let error = read.expect_err("a refusal");
            assert_eq!(
                (error.status().as_u16(), error.code()),
                (413, "BODY_TOO_LARGE"),
                "{frames:?}"
            );
        }
    }

    #[tokio::test]
    async fn stalled_body_times_out() {
        let stalls = |frames: &[&'static str]| {
            Body::from_stream(body_of(frames).into_data_stream().chain(stream::pending()))
        };
        for frames in [&[][..], &["1"], &["1", "2", "3"]] {
            let error = read_body(stalls(frames), 5, SHORT, &mut held(100))
                .await
                .expect_err("a refusal");
            assert_eq!(
                (error.status().as_u16(), error.code()),
                (408, "REQUEST_TIMEOUT"),
                "{frames:?}"
            );
        }
        // A body that will be refused is not waited for either.
        discard(stalls(&["1", "2"]), SHORT).await;
    }

    #[tokio::test]
    async fn truncated_body_is_incomplete() {
        let cut = stream::iter([
            Ok(Bytes::from_static(b"1")),
            Err(std::io::Error::other("gone")),
        ]);
        let read = read_body(Body::from_stream(cut), 5, IDLE_TIMEOUT, &mut held(100)).await;
        let error = read.expect_err("a refusal");
        assert_eq!(
            (error.status().as_u16(), error.code()),
            (400, "INCOMPLETE_BODY")
        );
    }

    #[tokio::test]
    async fn body_holds_what_has_arrived_and_no_more() {
        let budget = Budget::new(100);
        let holder = Holder::address(None);
        let mut arriving = budget.hold(holder);
        let read = read_body(
            body_of(&["12345", "678"]),
            1000,
            IDLE_TIMEOUT,
            &mut arriving,
        )
        .await;
        assert_eq!((read.expect("a body").len(), budget.used_bytes()), (8, 8));
        let long = ["0123456789"; 6];
        let error = read_body(body_of(&long), 1000, IDLE_TIMEOUT, &mut budget.hold(holder))
            .await
            .expect_err("no room");
        assert_eq!(error.status().as_u16(), 429);
        assert_eq!(budget.used_bytes(), 8, "what was refused is released");
    }

    fn large(encoding: Encoding, bytes: Vec<u8>) -> Large {
        Large {
            encoding,
            bytes: bytes.into(),
            _held: held(100),
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        crate::http::compression::gzip(bytes).to_vec()
    }

    #[test]
    fn estimate_covers_what_a_body_becomes() {
        for size in [100_000, 1_000_000, MAX_UNPACKED_BYTES] {
            let plain = vec![b' '; size];
            let streamed = zstd::stream::encode_all(&plain[..], 3).expect("packed");
            let sized = zstd::bulk::compress(&plain, 3).expect("packed");
            for (encoding, packed) in [
                (Encoding::Zstd, streamed),
                (Encoding::Zstd, sized),
                (Encoding::Gzip, gzip(&plain)),
            ] {
                let body = large(encoding, packed);
                assert!(body.estimate() >= size, "{} of {size}", body.estimate());
                let unpacked = body
                    .unpack(|bytes| panic!("{bytes} more"))
                    .expect("room")
                    .expect("valid");
                assert_eq!(unpacked.len(), size);
            }
        }
        assert_eq!(large(Encoding::Zstd, b"not zstd".to_vec()).estimate(), 0);
    }

    #[test]
    fn body_that_understates_its_size_reserves_as_it_grows() {
        let members = [gzip(&vec![b' '; 4 << 20]), gzip(b"x")].concat();
        let body = large(Encoding::Gzip, members);
        assert!(body.estimate() < 1 << 20, "{}", body.estimate());
        let mut reserved = 0;
        let unpacked = body.unpack(|bytes| {
            reserved = bytes;
            Ok(())
        });
        assert_eq!(unpacked.expect("room").expect("valid").len(), (4 << 20) + 1);
        assert!(reserved > 4 << 20, "{reserved}");
        assert_eq!(body.unpack(|_| Err(Full::Share)).err(), Some(Full::Share));
    }

    #[test]
    fn body_beyond_the_limit_is_refused() {
        for (encoding, packed) in [
            (
                Encoding::Zstd,
                zstd::stream::encode_all(&vec![b' '; MAX_UNPACKED_BYTES + 1][..], 3)
                    .expect("packed"),
            ),
            (Encoding::Gzip, gzip(&vec![b' '; MAX_UNPACKED_BYTES + 1])),
        ] {
            let unpacked = large(encoding, packed).unpack(|_| Ok(())).expect("room");
            assert_eq!(unpacked.expect_err("a refusal").status().as_u16(), 413);
        }
    }
}
