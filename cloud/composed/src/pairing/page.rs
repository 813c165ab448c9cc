//! The pairing page and its files. It is the same for everybody: the claim code is in the fragment
//! of its URL, which browsers do not send.

use std::sync::{Arc, LazyLock};

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::response::{IntoResponse, Response};
use hub_core::http::answer::typed_response;
use hub_core::http::asset::{Asset, cacheable};
use hub_core::http::compression::Accepted;
use hub_core::http::etag::IfNoneMatch;
use hub_core::http::operation::operation;
use hub_identity::authz::Public;
use serde_json::json;

use crate::Parts;

const TAG: &str = "app";

static HTML: LazyLock<Arc<Asset>> = LazyLock::new(|| {
    Arc::new(Asset::new(
        "text/html; charset=utf-8",
        include_str!("page/pair.html"),
    ))
});
static STYLE: LazyLock<Arc<Asset>> = LazyLock::new(|| {
    Arc::new(Asset::new(
        "text/css; charset=utf-8",
        include_str!("page/pair.css"),
    ))
});
static SCRIPT: LazyLock<Arc<Asset>> = LazyLock::new(|| {
    Arc::new(Asset::new(
        "text/javascript; charset=utf-8",
        include_str!("page/pair.js"),
    ))
});

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/pair",
            get_with(
                html,
                operation("pairPage.get", TAG, "The page to pair a hub with"),
            ),
        )
        .api_route(
            "/app/pair.css",
            get_with(
                style,
                operation("pairPage.getStyle", TAG, "The style of that page"),
            ),
        )
        .api_route(
            "/app/pair.js",
            get_with(
                script,
                operation("pairPage.getScript", TAG, "The script of that page"),
            ),
        )
}

/// A file of the page.
struct PageFile<const KIND: char>(Response);

impl<const KIND: char> IntoResponse for PageFile<KIND> {
    fn into_response(self) -> Response {
        self.0
    }
}

impl<const KIND: char> OperationOutput for PageFile<KIND> {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let media_type = match KIND {
            'H' => "text/html",
            'C' => "text/css",
            _ => "text/javascript",
        };
        cacheable(typed_response(
            media_type,
            "The file.",
            json!({"type": "string"}),
        ))
    }
}

async fn html(_: Public, accepted: Accepted, known: IfNoneMatch) -> PageFile<'H'> {
    PageFile(HTML.clone().answer(accepted, &known).await)
}

async fn style(_: Public, accepted: Accepted, known: IfNoneMatch) -> PageFile<'C'> {
    PageFile(STYLE.clone().answer(accepted, &known).await)
}

async fn script(_: Public, accepted: Accepted, known: IfNoneMatch) -> PageFile<'J'> {
    PageFile(SCRIPT.clone().answer(accepted, &known).await)
}
