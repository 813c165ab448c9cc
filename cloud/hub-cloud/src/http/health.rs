//! The service itself: whether it is alive (`/healthz`), whether it can serve now (`/readyz`), and
//! its metrics.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::http::answer::{Answer, typed_response};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authz::Public;
use schemars::JsonSchema;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::json;

const TAG: &str = "service";

pub fn routes() -> ApiRouter<Core> {
    ApiRouter::new()
        .api_route(
            "/healthz",
            get_with(
                healthz,
                operation("service.health", TAG, "Whether the process is alive"),
            ),
        )
        .api_route(
            "/readyz",
            get_with(
                readyz,
                operation(
                    "service.readiness",
                    TAG,
                    "Whether the service can serve now",
                ),
            ),
        )
        .api_route(
            "/metrics",
            get_with(
                metrics,
                operation_failing(
                    &[401, 404],
                    "service.metrics",
                    TAG,
                    "Metrics for Prometheus",
                ),
            ),
        )
}

/// The health of the service.
#[derive(Serialize, JsonSchema)]
pub struct Health {
    /// `ok`.
    pub status: &'static str,
    /// The version of the program.
    pub version: &'static str,
}

const OK: Health = Health {
    status: "ok",
    version: env!("CARGO_PKG_VERSION"),
};

/// The process is running and responds.
async fn healthz(_: Public) -> Answer<Health> {
    Answer(OK)
}

/// The database responds too, can be written, and its disk has room; 503 otherwise. While the disk
/// is full, reads are served all the same.
async fn readyz(_: Public, State(core): State<Core>) -> Result<Answer<Health>> {
    core.db.ping().await?;
    core.db.require_writable().await?;
    if let Err(full) = core.storage.require_room() {
        return Err(full.with_status(StatusCode::SERVICE_UNAVAILABLE));
    }
    Ok(Answer(OK))
}

/// Metrics in one of the formats that Prometheus reads.
struct Metrics {
    content_type: &'static str,
    text: String,
}

impl IntoResponse for Metrics {
    fn into_response(self) -> Response {
        (
            [
                (header::CONTENT_TYPE, self.content_type),
                (header::VARY, "accept"),
            ],
            self.text,
        )
            .into_response()
    }
}

impl OperationOutput for Metrics {
    type Inner = String;
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let mut response = typed_response("text/plain", "The metrics.", json!({"type": "string"}));
        let text = response
            .content
            .values()
            .next()
            .cloned()
            .unwrap_or_default();
        response
            .content
            .insert("application/openmetrics-text".to_owned(), text);
        vec![(Some(200), response)]
    }
}

/// OpenMetrics for clients whose `Accept` names it, else the text format of Prometheus.
async fn metrics(_: Public, State(core): State<Core>, headers: HeaderMap) -> Result<Metrics> {
    if !core.config.serves_metrics() {
        let message = match core.config.metrics.listen {
            Some(_) => "metrics have a listener of their own (`metrics-listen`)",
            None => {
                "metrics are not served on an address that others reach; set `metrics-listen` or `metrics-token`"
            }
        };
        return Err(Error::new(
            StatusCode::NOT_FOUND,
            "METRICS_NOT_SERVED",
            message,
        ));
    }
    written(&core, &headers)
}

/// The router of the listener that serves metrics alone.
pub fn metrics_router(core: Core) -> Router {
    let metrics = async |State(core): State<Core>, headers: HeaderMap| written(&core, &headers);
    Router::new()
        .route("/metrics", axum::routing::get(metrics))
        .with_state(core)
}

/// The metrics, for whoever has the token, if one is required.
fn written(core: &Core, headers: &HeaderMap) -> Result<Metrics> {
    if let Some(token) = &core.config.metrics.token {
        let given = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .unwrap_or_default();
        let (given, wanted) = (sealing::hash(given), sealing::hash(token.expose_secret()));
        if given != wanted {
            let message = "`/metrics` requires `Authorization: Bearer <metrics-token>`";
            return Err(Error::unauthorized("INVALID_METRICS_TOKEN", message));
        }
    }
    core.metrics
        .body_memory_bytes
        .set(i64::try_from(core.bodies.used_bytes()).unwrap_or(i64::MAX));
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or_default();
    Ok(match accept.contains("application/openmetrics-text") {
        true => Metrics {
            content_type: "application/openmetrics-text; version=1.0.0; charset=utf-8",
            text: core.metrics.openmetrics()?,
        },
        false => Metrics {
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            text: core.metrics.classic()?,
        },
    })
}
