//! `/auth/**` and `/.well-known/jwks.json`.

use aide::OperationOutput;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::authn::keys::PublicKey;
use crate::authz::Public;
use crate::http::answer::json_response;

/// A JSON Web Key Set (RFC 7517): what user tokens are checked with.
#[derive(Serialize, JsonSchema)]
pub struct KeySet {
    keys: Vec<PublicKey>,
}

impl IntoResponse for KeySet {
    fn into_response(self) -> Response {
        ([("cache-control", "public, max-age=300")], axum::Json(self)).into_response()
    }
}

impl OperationOutput for KeySet {
    type Inner = Self;
    fn inferred_responses(
        ctx: &mut aide::generate::GenContext,
        _: &mut aide::openapi::Operation,
    ) -> Vec<(Option<u16>, aide::openapi::Response)> {
        vec![(Some(200), json_response::<Self>(ctx, "The keys in use."))]
    }
}

pub async fn jwks(_: Public, State(app): State<App>) -> KeySet {
    KeySet { keys: app.keys.public() }
}
