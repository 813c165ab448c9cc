//! The successful responses of endpoints. Each documents itself, so that a handler's signature is
//! its entry in the OpenAPI document.

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation, Response as ApiResponse, SchemaObject};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub_base::budget::{Held, Holder};
use hub_base::error::{Error, Result};
use hub_protocol::Data;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;

/// Reserves memory for a large answer until it is sent.
pub fn hold_answer(core: &Core, holder: Holder, bytes: usize) -> Result<Held> {
    core.bodies.answers.reserve(holder, bytes).map_err(|_| {
        Error::unavailable(
            "BUSY",
            "too many large answers are being read; try again shortly",
        )
    })
}

/// 200 with `{"data": ...}`.
pub struct Answer<T>(pub T);

/// 201 with `{"data": ...}`.
pub struct Created<T>(pub T);

/// 200 without a body.
pub struct Empty;

/// 204.
pub struct NoContent;

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        axum::Json(Data { data: self.0 }).into_response()
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, axum::Json(Data { data: self.0 })).into_response()
    }
}

impl IntoResponse for Empty {
    fn into_response(self) -> Response {
        StatusCode::OK.into_response()
    }
}

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// A documented JSON response of type `T`.
pub fn json_response<T: JsonSchema>(ctx: &mut GenContext, description: &str) -> ApiResponse {
    let json_schema = ctx.schema.subschema_for::<T>();
    let media = MediaType {
        schema: Some(SchemaObject {
            json_schema,
            external_docs: None,
            example: None,
        }),
        ..MediaType::default()
    };
    ApiResponse {
        description: description.to_owned(),
        content: [("application/json".to_owned(), media)]
            .into_iter()
            .collect(),
        ..ApiResponse::default()
    }
}

/// A documented response of another media type. The schema must be an object.
pub fn typed_response(
    media_type: &str,
    description: &str,
    schema: serde_json::Value,
) -> ApiResponse {
    let json_schema = schemars::Schema::try_from(schema).unwrap_or_default();
    let media = MediaType {
        schema: Some(SchemaObject {
            json_schema,
            external_docs: None,
            example: None,
        }),
        ..MediaType::default()
    };
    ApiResponse {
        description: description.to_owned(),
        content: [(media_type.to_owned(), media)].into_iter().collect(),
        ..ApiResponse::default()
    }
}

impl<T: JsonSchema> OperationOutput for Answer<T> {
    type Inner = T;
    fn operation_response(ctx: &mut GenContext, _: &mut Operation) -> Option<ApiResponse> {
        Some(json_response::<Data<T>>(ctx, "Done."))
    }
    fn inferred_responses(
        ctx: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        vec![(Some(200), json_response::<Data<T>>(ctx, "Done."))]
    }
}

impl<T: JsonSchema> OperationOutput for Created<T> {
    type Inner = T;
    fn operation_response(ctx: &mut GenContext, _: &mut Operation) -> Option<ApiResponse> {
        Some(json_response::<Data<T>>(ctx, "Created."))
    }
    fn inferred_responses(
        ctx: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        vec![(Some(201), json_response::<Data<T>>(ctx, "Created."))]
    }
}

impl OperationOutput for Empty {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let response = ApiResponse {
            description: "Done; no content.".to_owned(),
            ..ApiResponse::default()
        };
        vec![(Some(200), response)]
    }
}

impl OperationOutput for NoContent {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let response = ApiResponse {
            description: "Done; no content.".to_owned(),
            ..ApiResponse::default()
        };
        vec![(Some(204), response)]
    }
}
