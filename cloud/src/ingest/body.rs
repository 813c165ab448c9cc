//! The body of an upload.

use std::convert::Infallible;
use std::marker::PhantomData;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRef, FromRequest, FromRequestParts, Request};
use bytes::Bytes;
use schemars::{JsonSchema, json_schema};

use crate::authn::Authn;
use crate::authn::hub::{Hub, UploadingHub};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::http::body::{self, Upload};
use crate::http::describe::{header_parameter, may_fail};
use crate::http::extract::BODY_FAILURES;

/// The unpacked body of an upload, or the error in it, for a handler that checks the hub's token
/// itself. `T` is the type of the content, for the OpenAPI document.
pub struct UploadBody<T>(pub Result<Bytes>, PhantomData<fn() -> T>);

impl<S: Send + Sync, T> FromRequest<S> for UploadBody<T> {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> std::result::Result<Self, Infallible> {
        let read = async {
            match body::read_upload(request).await? {
                Upload::Ready(bytes) => Ok(bytes),
                Upload::Packed(packed) => packed.unpack().await,
            }
        };
        Ok(Self(read.await, PhantomData))
    }
}

impl<T: JsonSchema> OperationInput for UploadBody<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        describe_body::<T>(ctx, operation);
    }
}

fn describe_body<T: JsonSchema>(ctx: &mut GenContext, operation: &mut Operation) {
    axum::Json::<T>::operation_input(ctx, operation);
    let description = "How the body is compressed, if it is: at most 4 MiB as sent and 32 MiB once decompressed.";
    let schema = json_schema!({"type": "string", "enum": ["gzip", "zstd", "identity"]});
    header_parameter(operation, "Content-Encoding", description, schema);
    may_fail(operation, &BODY_FAILURES);
}

/// An upload for the writer: a hub with a genuine token, and the unpacked body or the error in it.
/// Whether the token is still in force is checked when the upload is committed.
pub struct HubUpload<T> {
    pub hub: Hub,
    pub body: Result<Bytes>,
    content: PhantomData<fn() -> T>,
}

impl<S: Send + Sync, T> FromRequest<S> for HubUpload<T>
where
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let UploadingHub(hub) = UploadingHub::from_request_parts(&mut parts, state).await?;
        let body = read(Request::from_parts(parts, body), &hub, &Core::from_ref(state)).await;
        Ok(Self { hub, body, content: PhantomData })
    }
}

async fn read(request: Request, hub: &Hub, core: &Core) -> Result<Bytes> {
    match body::read_upload(request).await? {
        Upload::Ready(bytes) => Ok(bytes),
        Upload::Packed(packed) => {
            // A few bytes may unpack to many, so the token is checked first: a blocked hub gets no
            // further.
            hub.require_in_force(core).await?;
            packed.unpack().await
        }
    }
}

impl<T: JsonSchema> OperationInput for HubUpload<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        UploadingHub::operation_input(ctx, operation);
        describe_body::<T>(ctx, operation);
    }
}
