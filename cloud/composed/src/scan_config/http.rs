//! `/v1/hubs/scan-config`.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hub_base::error::Result;
use hub_base::sealing;
use hub_core::http::compression::Accepted;
use hub_core::http::etag::{IfNoneMatch, Tagged};
use hub_core::http::operation::operation_failing;
use hub_devices::device_instances;
use hub_identity::authn::hub::Hub;
use hub_identity::authz::Scope;
use hub_protocol::scan_config::ScanConfig;

use super::{ScanConfigs, TAG_BYTES};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/v1/hubs/scan-config",
        get_with(
            scan_config,
            operation_failing(
                &[409],
                "hub.getScanConfig",
                "hub-api",
                "What the hub needs to recognise the tenant's devices",
            ),
        ),
    )
}

/// A scan configuration as bytes, which most hubs of a tenant share.
struct Reply {
    etag: String,
    body: Option<Body>,
    is_zstd: bool,
    has_keys: bool,
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let etag = if self.is_zstd {
            format!("\"{}-zstd\"", self.etag)
        } else {
            format!("\"{}\"", self.etag)
        };
        let mut response = Tagged::<()> { etag, body: None }.into_response();
        let Some(body) = self.body else {
            return response;
        };
        *response.status_mut() = axum::http::StatusCode::OK;
        *response.body_mut() = body;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        if self.is_zstd {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("zstd"));
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        if self.has_keys {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        response
    }
}

impl OperationOutput for Reply {
    type Inner = ScanConfig;
    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        Tagged::<ScanConfig>::inferred_responses(ctx, operation)
    }
}

async fn scan_config(
    hub: Hub,
    State(configs): State<ScanConfigs>,
    known: IfNoneMatch,
    accepted: Accepted,
) -> Result<Reply> {
    let scope = Scope::of_hub(&hub);
    let document = configs.document(&scope).await?;
    let core = configs.core();
    let mut etag = document.tag.clone();
    let mut keys = None;
    if document.needs_keys {
        let near =
            device_instances::keys_near(&mut core.db.read().await?, &scope, hub.hub_uuid).await?;
        if !near.is_empty() {
            let hash = sealing::hash(&near.fingerprint());
            etag.push_str(&format!(
                ".{}",
                hex::encode(hash.get(..TAG_BYTES).unwrap_or_default())
            ));
            keys = Some(near);
        }
    }
    let has_keys = keys.is_some();
    if known.matches(&format!("\"{etag}\"")) {
        return Ok(Reply {
            etag,
            body: None,
            is_zstd: false,
            has_keys,
        });
    }
    let (body, is_zstd) = match (keys, &document.zstd) {
        (Some(near), _) => (Body::from(document.with_keys(&near.open(core)?)?), false),
        (None, Some(zstd)) if accepted.zstd => (Body::from(zstd.clone()), true),
        (None, _) => (Body::from(document.plain.clone()), false),
    };
    Ok(Reply {
        etag,
        body: Some(body),
        is_zstd,
        has_keys,
    })
}
