//! `/installer/{filename}`: the feed of a channel, and the files themselves.

use std::ops::Range;

use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, RequestBody, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub_protocol::{ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::installer::{self, File};
use super::super::urls::{SignedQuery, parts_of};
use super::super::{Category, Status, downloads};
use crate::app::App;
use crate::authz::Public;
use crate::error::{Error, Result};
use crate::http::answer::Answer;
use crate::http::etag::IfNoneMatch;
use crate::http::extract::{Path, Query};

/// Entries of a feed: the latest.
const MAX_FEED: i64 = 100;
const FEED_END: &str = ".json";

/// An active release of a channel, and where its file is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedEntry {
    release_uuid: ReleaseUuid,
    category: Category,
    name: String,
    version: String,
    /// As `uname -m` names it, or `any`.
    architecture: String,
    size_bytes: i64,
    /// Of the file, in lower-case hex.
    sha256: String,
    /// The manifest, byte for byte as it was signed.
    manifest: String,
    /// A minisign signature of `manifest`.
    signature: String,
    /// Takes range requests and no credentials. A path of this service while it has no `public-url`, or a URL of another store.
    url: String,
    url_expires_at: Timestamp,
}

/// The feed of a channel, or a file or a piece of one.
pub enum Served {
    Feed(Vec<FeedEntry>),
    File(Response),
}

impl IntoResponse for Served {
    fn into_response(self) -> Response {
        match self {
            Self::Feed(entries) => Answer(entries).into_response(),
            Self::File(response) => response,
        }
    }
}

const BINARY: &str = "application/octet-stream";

impl OperationOutput for Served {
    type Inner = Vec<FeedEntry>;
    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Vec<(Option<u16>, ApiResponse)> {
        let mut responses = Answer::<Vec<FeedEntry>>::inferred_responses(ctx, operation);
        let piece = ApiResponse { description: "The piece of the file that `Range` asks for.".to_owned(), ..binary() };
        if let Some((_, whole)) = responses.first_mut() {
            whole.description = "The feed of `<channel>.json`, latest first; or the file of a signed URL.".to_owned();
            whole.content.extend(binary().content);
        }
        responses.push((Some(206), piece));
        let held = ApiResponse { description: "The client has it already.".to_owned(), ..ApiResponse::default() };
        responses.push((Some(304), held));
        responses
    }
}

fn binary() -> ApiResponse {
    let content = [(BINARY.to_owned(), MediaType::default())].into_iter().collect();
    ApiResponse { content, ..ApiResponse::default() }
}

pub async fn download(
    _: Public,
    State(app): State<App>,
    Path(file_name): Path<String>,
    Query(query): Query<SignedQuery>,
    headers: HeaderMap,
    known: IfNoneMatch,
) -> Result<Served> {
    let Some((_, name)) = parts_of(&file_name) else {
        let channel = file_name.strip_suffix(FEED_END).ok_or_else(|| Error::not_found("file"))?;
        return feed(&app, channel).await.map(Served::Feed);
    };
    let file = installer::find(&app, &file_name, &query).await?;
    let mut response = serve(&app, file, &headers, &known).await?;
    // Names, versions and architectures have no quotes in them.
    set(&mut response, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\""));
    Ok(Served::File(response))
}

async fn feed(app: &App, channel: &str) -> Result<Vec<FeedEntry>> {
    let offered = downloads::feed(app, channel, MAX_FEED).await?;
    let entries = offered.into_iter().map(|(row, url)| FeedEntry {
        release_uuid: row.release_uuid,
        category: row.category,
        name: row.name,
        version: row.version,
        architecture: row.architecture,
        size_bytes: row.size_bytes,
        sha256: row.sha256,
        manifest: row.manifest,
        signature: row.signature,
        url: url.url,
        url_expires_at: url.expires_at,
    });
    Ok(entries.collect())
}

async fn serve(app: &App, file: File, headers: &HeaderMap, known: &IfNoneMatch) -> Result<Response> {
    let etag = format!("\"{}\"", file.sha256);
    let size_bytes = file.size_bytes;
    let mut response = if known.matches(&etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        match wanted(headers, &etag, size_bytes) {
            Wanted::All => Body::from_stream(installer::read(app, &file, 0..size_bytes).await?).into_response(),
            Wanted::Piece(range) => {
                let body = Body::from_stream(installer::read(app, &file, range.clone()).await?);
                let mut response = (StatusCode::PARTIAL_CONTENT, body).into_response();
                let place = format!("bytes {}-{}/{size_bytes}", range.start, range.end - 1);
                set(&mut response, header::CONTENT_RANGE, &place);
                set(&mut response, header::CONTENT_LENGTH, &(range.end - range.start).to_string());
                response
            }
            Wanted::Nothing => {
                let message = format!("the file has {size_bytes} bytes, and none of them are in that range");
                let error = Error::new(StatusCode::RANGE_NOT_SATISFIABLE, "RANGE_NOT_SATISFIABLE", message);
                return Err(error.with_header("content-range", format!("bytes */{size_bytes}")));
            }
        }
    };
    if response.status() == StatusCode::OK {
        set(&mut response, header::CONTENT_LENGTH, &size_bytes.to_string());
    }
    set(&mut response, header::CONTENT_TYPE, BINARY);
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    set(&mut response, header::ETAG, &etag);
    Ok(response)
}

/// The text is digits, hex and words of ours, which every header may hold.
fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// What a request asks for of a file.
#[derive(Debug, PartialEq)]
enum Wanted {
    All,
    Piece(Range<u64>),
    /// A range that begins behind the end.
    Nothing,
}

/// One range is answered (RFC 9110, 14). Several, and what is no range of bytes, are passed over, and so is a range of another file than this.
fn wanted(headers: &HeaderMap, etag: &str, size_bytes: u64) -> Wanted {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let Some(range) = text(header::RANGE) else { return Wanted::All };
    // A weak tag or a date is not enough to tell that the bytes are the same.
    if text(header::IF_RANGE).is_some_and(|condition| condition.trim() != etag) {
        return Wanted::All;
    }
    let number = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
        // What is too large to be read lies behind every end.
        true if !text.is_empty() => Some(text.parse::<u64>().unwrap_or(u64::MAX)),
        _ => None,
    };
    let Some((first, last)) = range.trim().strip_prefix("bytes=").and_then(|range| range.trim().split_once('-')) else {
        return Wanted::All;
    };
    let (start, end) = match (first, last) {
        ("", last) => match number(last) {
            Some(length) => (size_bytes.saturating_sub(length), size_bytes),
            None => return Wanted::All,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(start), None) if last.is_empty() => (start, size_bytes),
            (Some(start), Some(last)) if start <= last => (start, last.saturating_add(1).min(size_bytes)),
            _ => return Wanted::All,
        },
    };
    if start < end { Wanted::Piece(start..end) } else { Wanted::Nothing }
}

/// A request's body as it is, of any size: whoever takes it bounds it.
pub struct FileBody(Request);

impl<S: Sync> FromRequest<S> for FileBody {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, _: &S) -> std::result::Result<Self, Self::Rejection> {
        Ok(Self(request))
    }
}

impl OperationInput for FileBody {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let content = [(BINARY.to_owned(), MediaType::default())].into_iter().collect();
        let body = RequestBody {
            description: Some("The file.".to_owned()),
            content,
            required: true,
            ..RequestBody::default()
        };
        operation.request_body = Some(aide::openapi::ReferenceOr::Item(body));
    }
}

/// A file that was taken in.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseFileResponse {
    release_uuid: ReleaseUuid,
    status: Status,
    size_bytes: u64,
    /// In lower-case hex.
    sha256: String,
}

pub async fn upload(
    _: Public,
    State(app): State<App>,
    Path(file_name): Path<String>,
    Query(query): Query<SignedQuery>,
    FileBody(request): FileBody,
) -> Result<Answer<ReleaseFileResponse>> {
    let File { release_uuid, size_bytes, sha256 } = installer::receive(&app, &file_name, &query, request).await?;
    Ok(Answer(ReleaseFileResponse { release_uuid, status: Status::Ready, size_bytes, sha256 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_rfc_says() {
        let asked = |range: &'static str, condition: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, HeaderValue::from_static(range));
            if let Some(condition) = condition {
                headers.insert(header::IF_RANGE, HeaderValue::from_static(condition));
            }
            wanted(&headers, "\"tag\"", 10)
        };
        for (range, expected) in [
            ("bytes=0-0", Wanted::Piece(0..1)),
            ("bytes=2-4", Wanted::Piece(2..5)),
            ("bytes=2-", Wanted::Piece(2..10)),
            ("bytes=-3", Wanted::Piece(7..10)),
            ("bytes=-99", Wanted::Piece(0..10)),
            ("bytes=9-99999999999999999999999", Wanted::Piece(9..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=10-11", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=4-2", Wanted::All),
            ("bytes=0-1,3-4", Wanted::All),
            ("bytes=a-", Wanted::All),
            ("bytes=+1-", Wanted::All),
            ("bytes=-", Wanted::All),
            ("bytes=", Wanted::All),
            ("items=0-1", Wanted::All),
            ("", Wanted::All),
        ] {
            assert_eq!(asked(range, None), expected, "{range}");
        }
        assert_eq!(asked("bytes=2-4", Some("\"tag\"")), Wanted::Piece(2..5));
        for condition in ["\"other\"", "W/\"tag\"", "Sat, 21 Nov 2026 08:00:00 GMT", ""] {
            assert_eq!(asked("bytes=2-4", Some(condition)), Wanted::All, "{condition}");
        }
    }
}
