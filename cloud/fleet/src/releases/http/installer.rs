//! `/installer/{filename}`: the feed of a channel, and the files themselves.

use std::ops::Range;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, RequestBody, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, Result};
use hub_core::http::answer::{Answer, typed_response};
use hub_core::http::describe::{header_parameter, headers};
use hub_core::http::etag::{IfNoneMatch, not_modified};
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation_failing;
use hub_identity::authz::Public;
use hub_protocol::{ReleaseUuid, Timestamp};
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde::Serialize;
use serde_json::json;

use super::super::installer::{self, File};
use super::super::urls::{SignedQuery, parts_of};
use super::super::{Category, Status, downloads};
use crate::releases::Releases;

pub fn routes() -> ApiRouter<crate::Parts> {
    ApiRouter::new().api_route(
        "/installer/{filename}",
        get_with(
            download,
            operation_failing(
                &[403, 416],
                "installer.download",
                "public",
                "The update feed of a channel, or a release's file",
            ),
        )
        .put_with(
            upload,
            operation_failing(
                &[400, 403, 408, 409, 413, 415],
                "installer.upload",
                "public",
                "Upload a release's file to its signed URL",
            ),
        ),
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct FilePath {
    /// `<channel>.json` for the feed of a channel, or the name of a file in a signed URL.
    pub filename: String,
}

/// Entries in a feed; the latest ones.
const MAX_FEED: i64 = 100;
const FEED_END: &str = ".json";

/// An active release of a channel, and where its file is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedEntry {
    /// The release.
    release_uuid: ReleaseUuid,
    /// The category of the file.
    category: Category,
    /// The name of the release.
    name: String,
    /// The version of the release.
    version: String,
    /// The architecture that it is built for, as `uname -m` names it, or `any`.
    architecture: String,
    /// The size of the file.
    #[schemars(range(min = 0))]
    size_bytes: i64,
    /// The SHA-256 digest of the file, in lower-case hex.
    #[schemars(regex(pattern = hub_protocol::patterns::SHA256))]
    sha256: String,
    /// The manifest, byte for byte as it was signed.
    manifest: String,
    /// A minisign signature of `manifest`.
    signature: String,
    /// Accepts range requests and needs no credential. A path of this service while it has no
    /// `public-url`, or a URL of another store.
    url: String,
    /// When the URL expires.
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
    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let mut responses = Answer::<Vec<FeedEntry>>::inferred_responses(ctx, operation);
        let piece = ApiResponse {
            headers: headers(&[
                "ETag",
                "Accept-Ranges",
                "Content-Disposition",
                "Content-Range",
            ]),
            ..binary("The range of the file that `Range` selects.")
        };
        if let Some((_, whole)) = responses.first_mut() {
            whole.description =
                "The feed of `<channel>.json`, latest first; or the file of a signed URL."
                    .to_owned();
            whole.content.extend(binary("").content);
            whole.headers = headers(&["ETag", "Accept-Ranges", "Content-Disposition"]);
        }
        responses.push((Some(206), piece));
        let held = headers(&["ETag", "Accept-Ranges", "Content-Disposition"]);
        responses.push((
            Some(304),
            ApiResponse {
                headers: held,
                ..not_modified()
            },
        ));
        responses
    }
}

fn binary(description: &str) -> ApiResponse {
    typed_response(
        BINARY,
        description,
        json!({"type": "string", "format": "binary"}),
    )
}

/// The headers `Range` and `If-Range`, which [`requested_range`] parses.
struct RangeHeaders(HeaderMap);

impl<S: Sync> FromRequestParts<S> for RangeHeaders {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &S,
    ) -> std::result::Result<Self, Self::Rejection> {
        Ok(Self(parts.headers.clone()))
    }
}

impl OperationInput for RangeHeaders {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let schema = || json_schema!({"type": "string"});
        let range = "A range of bytes of a file, such as `bytes=1000-`.";
        header_parameter(operation, "Range", range, schema());
        let condition =
            "The `ETag` of the file that `Range` refers to; any other file is sent in full.";
        header_parameter(operation, "If-Range", condition, schema());
    }
}

async fn download(
    _: Public,
    State(releases): State<Releases>,
    Path(FilePath {
        filename: file_name,
    }): Path<FilePath>,
    Query(query): Query<SignedQuery>,
    RangeHeaders(range): RangeHeaders,
    known: IfNoneMatch,
) -> Result<Served> {
    let Some((_, name)) = parts_of(&file_name) else {
        let channel = file_name
            .strip_suffix(FEED_END)
            .ok_or_else(|| Error::not_found("file"))?;
        return feed(&releases, channel).await.map(Served::Feed);
    };
    let file = installer::find(&releases, &file_name, &query).await?;
    let mut response = serve(&releases, file, &range, &known).await?;
    // Names, versions and architectures contain no quotes.
    set(
        &mut response,
        header::CONTENT_DISPOSITION,
        &format!("attachment; filename=\"{name}\""),
    );
    Ok(Served::File(response))
}

async fn feed(releases: &Releases, channel: &str) -> Result<Vec<FeedEntry>> {
    let offered = downloads::feed(releases, channel, MAX_FEED).await?;
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

async fn serve(
    releases: &Releases,
    file: File,
    headers: &HeaderMap,
    known: &IfNoneMatch,
) -> Result<Response> {
    let etag = format!("\"{}\"", file.sha256);
    let size_bytes = file.size_bytes;
    let mut response = if known.matches(&etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        match requested_range(headers, &etag, size_bytes) {
            RequestedRange::All => {
                Body::from_stream(installer::read(releases, &file, 0..size_bytes).await?)
                    .into_response()
            }
            RequestedRange::Part(range) => {
                let body =
                    Body::from_stream(installer::read(releases, &file, range.clone()).await?);
                let mut response = (StatusCode::PARTIAL_CONTENT, body).into_response();
                let place = format!("bytes {}-{}/{size_bytes}", range.start, range.end - 1);
                set(&mut response, header::CONTENT_RANGE, &place);
                set(
                    &mut response,
                    header::CONTENT_LENGTH,
                    &(range.end - range.start).to_string(),
                );
                response
            }
            RequestedRange::Nothing => {
                let message =
                    format!("the range is outside the file, which has {size_bytes} bytes");
                let error = Error::new(
                    StatusCode::RANGE_NOT_SATISFIABLE,
                    "RANGE_NOT_SATISFIABLE",
                    message,
                );
                return Err(error.with_header("content-range", format!("bytes */{size_bytes}")));
            }
        }
    };
    if response.status() == StatusCode::OK {
        set(
            &mut response,
            header::CONTENT_LENGTH,
            &size_bytes.to_string(),
        );
    }
    set(&mut response, header::CONTENT_TYPE, BINARY);
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    set(&mut response, header::ETAG, &etag);
    Ok(response)
}

/// The text consists of digits, hex and fixed words, which are valid in every header.
fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// The part of a file that a request selects.
#[derive(Debug, PartialEq)]
enum RequestedRange {
    All,
    Part(Range<u64>),
    /// A range that starts after the end.
    Nothing,
}

/// A single range is supported (RFC 9110, 14). Several ranges, other units, and a range of another
/// file are ignored.
fn requested_range(headers: &HeaderMap, etag: &str, size_bytes: u64) -> RequestedRange {
    let text = |name: HeaderName| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let Some(range) = text(header::RANGE) else {
        return RequestedRange::All;
    };
    // A weak tag or a date does not prove that the bytes are the same.
    if text(header::IF_RANGE).is_some_and(|condition| condition.trim() != etag) {
        return RequestedRange::All;
    }
    let number = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
        // A number too large to parse is behind the end of every file.
        true if !text.is_empty() => Some(text.parse::<u64>().unwrap_or(u64::MAX)),
        _ => None,
    };
    let Some((first, last)) = range
        .trim()
        .strip_prefix("bytes=")
        .and_then(|range| range.trim().split_once('-'))
    else {
        return RequestedRange::All;
    };
    let (start, end) = match (first, last) {
        ("", last) => match number(last) {
            Some(length) => (size_bytes.saturating_sub(length), size_bytes),
            None => return RequestedRange::All,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(start), None) if last.is_empty() => (start, size_bytes),
            (Some(start), Some(last)) if start <= last => {
                (start, last.saturating_add(1).min(size_bytes))
            }
            _ => return RequestedRange::All,
        },
    };
    if start < end {
        RequestedRange::Part(start..end)
    } else {
        RequestedRange::Nothing
    }
}

/// A request's body as it is, of any size: the reader limits it.
pub struct FileBody(Request);

impl<S: Sync> FromRequest<S> for FileBody {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, _: &S) -> std::result::Result<Self, Self::Rejection> {
        Ok(Self(request))
    }
}

impl OperationInput for FileBody {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let body = RequestBody {
            description: Some("The file.".to_owned()),
            content: binary("").content,
            required: true,
            ..RequestBody::default()
        };
        operation.request_body = Some(aide::openapi::ReferenceOr::Item(body));
    }
}

/// A file that was stored.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseFileResponse {
    /// The release.
    release_uuid: ReleaseUuid,
    /// The status of the release now.
    status: Status,
    /// The size of the file.
    #[schemars(range(min = 0))]
    size_bytes: u64,
    /// The SHA-256 digest of the file, in lower-case hex.
    #[schemars(regex(pattern = hub_protocol::patterns::SHA256))]
    sha256: String,
}

async fn upload(
    _: Public,
    State(releases): State<Releases>,
    Path(FilePath {
        filename: file_name,
    }): Path<FilePath>,
    Query(query): Query<SignedQuery>,
    FileBody(request): FileBody,
) -> Result<Answer<ReleaseFileResponse>> {
    let File {
        release_uuid,
        size_bytes,
        sha256,
    } = installer::receive(&releases, &file_name, &query, request).await?;
    Ok(Answer(ReleaseFileResponse {
        release_uuid,
        status: Status::Ready,
        size_bytes,
        sha256,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_as_in_rfc_9110() {
        let parsed = |range: &'static str, condition: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, HeaderValue::from_static(range));
            if let Some(condition) = condition {
                headers.insert(header::IF_RANGE, HeaderValue::from_static(condition));
            }
            requested_range(&headers, "\"tag\"", 10)
        };
        for (range, expected) in [
            ("bytes=0-0", RequestedRange::Part(0..1)),
            ("bytes=2-4", RequestedRange::Part(2..5)),
            ("bytes=2-", RequestedRange::Part(2..10)),
            ("bytes=-3", RequestedRange::Part(7..10)),
            ("bytes=-99", RequestedRange::Part(0..10)),
            (
                "bytes=9-99999999999999999999999",
                RequestedRange::Part(9..10),
            ),
            ("bytes=10-", RequestedRange::Nothing),
            ("bytes=10-11", RequestedRange::Nothing),
            ("bytes=-0", RequestedRange::Nothing),
            ("bytes=99999999999999999999999-", RequestedRange::Nothing),
            ("bytes=4-2", RequestedRange::All),
            ("bytes=0-1,3-4", RequestedRange::All),
            ("bytes=a-", RequestedRange::All),
            ("bytes=+1-", RequestedRange::All),
            ("bytes=-", RequestedRange::All),
            ("bytes=", RequestedRange::All),
            ("items=0-1", RequestedRange::All),
            ("", RequestedRange::All),
        ] {
            assert_eq!(parsed(range, None), expected, "{range}");
        }
        assert_eq!(
            parsed("bytes=2-4", Some("\"tag\"")),
            RequestedRange::Part(2..5)
        );
        for condition in [
            "\"other\"",
            "W/\"tag\"",
            "Sat, 21 Nov 2026 08:00:00 GMT",
            "",
        ] {
            assert_eq!(
                parsed("bytes=2-4", Some(condition)),
                RequestedRange::All,
                "{condition}"
            );
        }
    }
}
