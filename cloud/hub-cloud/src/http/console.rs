//! The web console: files that are part of the program, which `cloud/console` builds. Any path
//! below `/console` is the one page, whose script shows what the path names.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use hub_base::error::{Error, Result};
use hub_console::{FILES, PAGE_HASH};
use hub_core::Core;
use hub_core::http::answer::typed_response;
use hub_core::http::asset::cacheable;
use hub_core::http::compression::{self, Accepted};
use hub_core::http::etag::IfNoneMatch;
use hub_core::http::extract::Path;
use hub_core::http::operation::operation;
use hub_identity::authz::Public;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

const TAG: &str = "service";
const PAGE: &str = "index.html";

pub fn routes() -> ApiRouter<Core> {
    ApiRouter::new()
        .api_route(
            "/console",
            get_with(
                page,
                operation(
                    "console.get",
                    TAG,
                    "The web console, also at any path below",
                ),
            ),
        )
        .api_route(
            "/console/assets/{file}",
            get_with(
                asset,
                operation("console.getFile", TAG, "A file of the console"),
            ),
        )
        .route("/", get(root))
        .route("/console/", get(page))
        .route("/console/{*path}", get(page))
}

/// A file of the console.
#[derive(Debug, Deserialize, JsonSchema)]
struct AssetPath {
    /// Its name, which contains a hash of its content.
    #[schemars(length(min = 1, max = 200))]
    file: String,
}

async fn root(_: Public) -> Redirect {
    Redirect::to("/console")
}

async fn page(_: Public, accepted: Accepted, known: IfNoneMatch) -> Result<Page> {
    answer(PAGE, "no-cache", accepted, &known).map(Page)
}

async fn asset(
    _: Public,
    Path(AssetPath { file }): Path<AssetPath>,
    accepted: Accepted,
    known: IfNoneMatch,
) -> Result<BuiltFile> {
    answer(
        &format!("assets/{file}"),
        "public, max-age=31536000, immutable",
        accepted,
        &known,
    )
    .map(BuiltFile)
}

/// Files are in the program compressed alone, as browsers take them.
fn answer(
    name: &str,
    caching: &'static str,
    accepted: Accepted,
    known: &IfNoneMatch,
) -> Result<Response> {
    let file = FILES.iter().find(|(path, _)| *path == name);
    let (_, gzipped) = *file.ok_or_else(|| Error::not_found("file of the console"))?;
    let etag = format!("W/\"{}\"", if name == PAGE { PAGE_HASH } else { name });
    let mut response = if known.matches(&etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if accepted.gzip {
        let headers = [
            (header::CONTENT_ENCODING, "gzip"),
            (header::VARY, "accept-encoding"),
        ];
        (headers, Bytes::from_static(gzipped)).into_response()
    } else {
        compression::gunzip(gzipped).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(media_type(name)),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    Ok(response)
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        _ => "image/svg+xml",
    }
}

struct Page(Response);

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        self.0
    }
}

impl OperationOutput for Page {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        cacheable(typed_response(
            "text/html",
            "The page.",
            json!({"type": "string"}),
        ))
    }
}

struct BuiltFile(Response);

impl IntoResponse for BuiltFile {
    fn into_response(self) -> Response {
        self.0
    }
}

impl OperationOutput for BuiltFile {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let mut response =
            typed_response("text/javascript", "The file.", json!({"type": "string"}));
        let text = response
            .content
            .values()
            .next()
            .cloned()
            .unwrap_or_default();
        response.content.insert("text/css".to_owned(), text.clone());
        response.content.insert("image/svg+xml".to_owned(), text);
        cacheable(response)
    }
}
