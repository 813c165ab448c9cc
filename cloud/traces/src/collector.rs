//! The collector: OTLP over HTTP, as protobuf (OpenTelemetry Protocol Specification 1.5,
//! "OTLP/HTTP").

use std::time::Duration;

use hub_base::clock::Clock;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url};

use crate::samples;
use crate::span::{Program, Span, Value, attribute, nanos};

const TIMEOUT: Duration = Duration::from_secs(10);
/// A batch is sent so often while the collector is away, with growing pauses.
const TRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// A setting with which nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("otlp-endpoint must be a URL such as http://127.0.0.1:4318")]
    Endpoint,
    #[error("otlp-headers must be NAME=VALUE, separated by commas")]
    Headers,
    #[error("cannot create the client for otlp-endpoint: {0}")]
    Client(reqwest::Error),
}

/// Where spans and metrics go.
#[derive(Debug)]
pub struct Collector {
    http: reqwest::Client,
    traces: Url,
    metrics: Url,
    headers: HeaderMap,
    /// Names this replica.
    instance: String,
    clock: Clock,
    /// Whether the last request failed: that is logged once.
    is_away: bool,
}

impl Collector {
    /// `headers`: `NAME=VALUE`, separated by commas.
    pub fn new(
        endpoint: &str,
        headers: &str,
        instance: String,
        clock: Clock,
    ) -> Result<Self, SettingsError> {
        let base: Url = endpoint.parse().map_err(|_| SettingsError::Endpoint)?;
        if !matches!(base.scheme(), "http" | "https") || base.query().is_some() {
            return Err(SettingsError::Endpoint);
        }
        let path = base.path().trim_end_matches('/').to_owned();
        let at = |signal: &str| {
            let mut url = base.clone();
            url.set_path(&format!("{path}/v1/{signal}"));
            url
        };
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(SettingsError::Client)?;
        Ok(Self {
            http,
            traces: at("traces"),
            metrics: at("metrics"),
            headers: parse_headers(headers)?,
            instance,
            clock,
            is_away: false,
        })
    }

    /// Returns whether the collector accepted them.
    pub async fn send_spans(&mut self, spans: Vec<Span>) -> bool {
        let (agents, services): (Vec<Span>, Vec<Span>) = spans
            .into_iter()
            .partition(|span| span.program == Program::Agent);
        let parts = [(Program::Service, services), (Program::Agent, agents)];
        let resource_spans = parts
            .into_iter()
            .filter(|(_, spans)| !spans.is_empty())
            .map(|(program, spans)| ResourceSpans {
                resource: Some(self.resource(program)),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope()),
                    spans: spans.into_iter().map(Span::into_otlp).collect(),
                    ..ScopeSpans::default()
                }],
                ..ResourceSpans::default()
            })
            .collect();
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        self.send(self.traces.clone(), body).await
    }

    /// Sends metrics, given as Prometheus reads them.
    pub async fn send_metrics(&mut self, text: &str) -> bool {
        let request = ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource(Program::Service)),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(scope()),
                    metrics: samples::to_otlp(text, nanos(self.clock.now())),
                    ..ScopeMetrics::default()
                }],
                ..ResourceMetrics::default()
            }],
        };
        self.send(self.metrics.clone(), request.encode_to_vec())
            .await
    }

    fn resource(&self, program: Program) -> Resource {
        let version = Value::from(env!("CARGO_PKG_VERSION"));
        let attributes = match program {
            Program::Service => vec![
                attribute("service.name", "hub-cloud".into()),
                attribute("service.version", version),
                attribute("service.instance.id", self.instance.clone().into()),
            ],
            Program::Agent => vec![attribute("service.name", "hub-agent".into())],
        };
        Resource {
            attributes,
            ..Resource::default()
        }
    }

    async fn send(&mut self, url: Url, body: Vec<u8>) -> bool {
        let mut pause = FIRST_PAUSE;
        let mut failure = String::new();
        for attempt in 1..=TRIES {
            let request = self
                .http
                .post(url.clone())
                .headers(self.headers.clone())
                .header(CONTENT_TYPE, "application/x-protobuf")
                .body(body.clone());
            let may_work_later = match request.send().await {
                Ok(response) if response.status().is_success() => {
                    if std::mem::take(&mut self.is_away) {
                        tracing::warn!("the collector of otlp-endpoint is back");
                    }
                    return true;
                }
                Ok(response) => {
                    failure = format!("it answers {}", response.status());
                    is_temporary(response.status())
                }
                Err(error) => {
                    failure = error.without_url().to_string();
                    true
                }
            };
            // While it is away, a batch has one try.
            if !may_work_later || self.is_away || attempt == TRIES {
                break;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        if !std::mem::replace(&mut self.is_away, true) {
            tracing::warn!(
                failure,
                "the collector of otlp-endpoint accepts nothing: spans and metrics are dropped until it does"
            );
        }
        false
    }
}

/// The statuses after which a request is sent again (the same, "Retryable Response Codes").
fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "hub-cloud".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

fn parse_headers(text: &str) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(SettingsError::Headers)?;
        let name: HeaderName = name.trim().parse().map_err(|_| SettingsError::Headers)?;
        let mut value: HeaderValue = value.trim().parse().map_err(|_| SettingsError::Headers)?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
