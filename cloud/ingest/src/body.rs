//! The bodies of what hubs send. A handler asks the limits first, then has the body read, unpacked
//! and parsed: a large one outside of the request threads, with its memory reserved beforehand.

use std::convert::Infallible;
use std::marker::PhantomData;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRef, FromRequest, FromRequestParts, Request};
use hub_base::budget::{Held, Holder};
use hub_base::error::{Error, Result};
use hub_base::turns::{Turn, Turns};
use hub_core::Core;
use hub_core::http::body::{self, MAX_JSON_BYTES, Upload, no_memory};
use hub_core::http::describe::{header_parameter, may_fail};
use hub_core::http::extract::{BODY_FAILURES, parse_json};
use hub_identity::authn::Authn;
use hub_identity::authn::hub::{Hub, UploadingHub};
use schemars::{JsonSchema, json_schema};
use serde::de::{DeserializeOwned, IgnoredAny};

/// On whose account a hub's bodies are.
pub(super) const fn holder(hub: &Hub) -> Holder {
    Holder {
        group: hub.tenant_uuid.0,
        member: Some(hub.hub_uuid.0),
    }
}

/// The body of an upload, parsed by the endpoint, and the memory that it uses.
pub(super) struct Parsed<R> {
    pub content: Result<R>,
    /// The memory reserved for a large body.
    pub held: Option<Held>,
}

/// Reads, unpacks and parses an upload. Fails if there is no memory for it now; an error of its
/// content is part of the result.
pub(super) async fn receive<R: Send + 'static>(
    core: &Core,
    hub: &Hub,
    request: Request,
    parse: impl FnOnce(&[u8]) -> Result<R> + Send + 'static,
) -> Result<Parsed<R>> {
    let holder = holder(hub);
    let large = match body::read_upload(request, core.bodies.arriving.hold(holder)).await {
        Ok(Upload::Small(bytes)) => {
            return Ok(Parsed {
                content: parse(&bytes),
                held: None,
            });
        }
        Ok(Upload::Large(large)) => large,
        // No memory: nothing is wrong with the upload.
        Err(error) if matches!(error.status().as_u16(), 429 | 503) => return Err(error),
        Err(error) => {
            return Ok(Parsed {
                content: Err(error),
                held: None,
            });
        }
    };
    // A few bytes may unpack to many, so the token is checked first: a blocked hub gets no further.
    hub.require_in_force(core).await?;
    // While it is parsed, there are the body and its records, each of them as large.
    let mut held = core
        .bodies
        .unpacked
        .reserve(holder, 2 * large.estimate())
        .map_err(no_memory)?;
    let work = move || {
        let content = large.unpack(|bytes| held.grow_to(2 * bytes));
        content.map(|content| Parsed {
            content: content.and_then(|bytes| parse(&bytes)),
            held: Some(held),
        })
    };
    core.bodies.work(work).await?.map_err(no_memory)
}

/// The body of a hub's report, not read yet, for a handler that asks the limits first. `T` is the
/// type of the content.
pub struct UploadBody<T>(Request, PhantomData<fn() -> T>);

impl<S: Send + Sync, T> FromRequest<S> for UploadBody<T> {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> std::result::Result<Self, Infallible> {
        Ok(Self(request, PhantomData))
    }
}

impl<T: DeserializeOwned + Send + 'static> UploadBody<T> {
    /// Counts the hub's report, reads it and waits for the hub's turn to write.
    pub async fn report(self, core: &Core, turns: &Turns, hub: &Hub) -> Result<(T, Turn)> {
        self.report_up_to(MAX_JSON_BYTES, core, turns, hub).await
    }

    /// As [`Self::report`], of so many bytes once it is unpacked.
    pub async fn report_up_to(
        self,
        most: usize,
        core: &Core,
        turns: &Turns,
        hub: &Hub,
    ) -> Result<(T, Turn)> {
        turns.count(hub.hub_uuid.0, core.clock.now())?;
        let parse = move |body: &[u8]| report::<T>(body, most);
        let report = receive(core, hub, self.0, parse).await?.content?;
        Ok((report, turns.take(hub.hub_uuid.0).await?))
    }
}

/// A report is small. A larger body is accepted only as far as it can be found out what is wrong
/// with it, since parsed it would use a multiple of its memory.
fn report<T: DeserializeOwned>(body: &[u8], most: usize) -> Result<T> {
    if body.len() > most {
        parse_json::<IgnoredAny>(body)?;
        return Err(body::too_large(most, " of JSON"));
    }
    parse_json(body)
}

impl<T: JsonSchema> OperationInput for UploadBody<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        describe_body::<T>(ctx, operation);
    }
}

fn describe_body<T: JsonSchema>(ctx: &mut GenContext, operation: &mut Operation) {
    axum::Json::<T>::operation_input(ctx, operation);
    let description =
        "How the body is compressed, if it is: at most 4 MiB as sent and 32 MiB once decompressed.";
    let schema = json_schema!({"type": "string", "enum": ["gzip", "zstd", "identity"]});
    header_parameter(operation, "Content-Encoding", description, schema);
    may_fail(operation, &BODY_FAILURES);
}

/// An upload for the writer: a hub with a genuine token, and a body that is not read yet. Whether
/// the token is still in force is checked when the upload is committed. `T` is the type of the
/// content, for the OpenAPI document.
pub struct HubUpload<T> {
    pub hub: Hub,
    pub(super) request: Request,
    content: PhantomData<fn() -> T>,
}

impl<T> HubUpload<T> {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.request.headers().get(name)?.to_str().ok()
    }
}

impl<S: Send + Sync, T> FromRequest<S> for HubUpload<T>
where
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let UploadingHub(hub) = UploadingHub::from_request_parts(&mut parts, state).await?;
        Ok(Self {
            hub,
            request: Request::from_parts(parts, body),
            content: PhantomData,
        })
    }
}

impl<T: JsonSchema> OperationInput for HubUpload<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        UploadingHub::operation_input(ctx, operation);
        describe_body::<T>(ctx, operation);
    }
}
