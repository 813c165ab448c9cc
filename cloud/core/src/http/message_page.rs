//! Pages that state a result in words, for a browser that was sent here from elsewhere. Programs
//! get the same as JSON. No text that a person chose is on such a page.

use std::convert::Infallible;

use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{Html, IntoResponse, Response};

use super::answer::typed_response;

/// Whether the caller is a browser that shows a page.
#[derive(Clone, Copy)]
pub struct AcceptsHtml(pub bool);

impl<S: Sync> FromRequestParts<S> for AcceptsHtml {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let mut accepted = parts
            .headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok());
        Ok(Self(accepted.any(|value| value.contains("text/html"))))
    }
}

impl OperationInput for AcceptsHtml {}

/// The content of the page, which is fixed text.
#[derive(Clone, Copy, Debug)]
pub struct MessagePage {
    pub title: &'static str,
    pub text: &'static str,
}

const STYLE: &str = "body{margin:0;font:1.0625rem/1.5 system-ui,sans-serif;background:Canvas;color:CanvasText}\
                     main{max-width:32rem;margin:0 auto;padding:1rem}h1{font-size:1.5rem;line-height:1.25}";

impl OperationOutput for MessagePage {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let schema = serde_json::json!({"type": "string"});
        let page = typed_response("text/html", "The page.", schema);
        vec![(Some(200), page)]
    }
}

impl IntoResponse for MessagePage {
    fn into_response(self) -> Response {
        let Self { title, text } = self;
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\
             <link rel=\"icon\" href=\"data:,\"><style>{STYLE}</style></head>\
             <body><main><h1>{title}</h1><p>{text}</p></main></body></html>\n"
        );
        Html(html).into_response()
    }
}
