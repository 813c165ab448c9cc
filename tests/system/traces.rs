//! Traces at a collector, decoded with the published protocol: one event is one trace, from the
//! radio of the hub over the service to the receiver of a pipeline; what nobody asked to record is
//! not recorded; and the metrics arrive as they are shown.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hub_protocol::TraceContext;
use hub_tests::hub::events;
use hub_tests::{
    Backend, Call, Client, Cloud, Process, Receiver, SimulatedHub, Tenant, on_each_database,
};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

/// A collector: it keeps what it gets.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Found>>>,
    metrics: Arc<Mutex<Vec<ExportMetricsServiceRequest>>>,
    /// The status of its answers, if it is not 200.
    refuses: Arc<Mutex<Option<StatusCode>>>,
}

/// A span, and the program it is of.
#[derive(Clone, Debug)]
struct Found {
    service: String,
    span: Span,
}

impl Found {
    fn trace_id(&self) -> u128 {
        u128::from_be_bytes(self.span.trace_id.clone().try_into().expect("16 bytes"))
    }

    fn span_id(&self) -> u64 {
        u64::from_be_bytes(self.span.span_id.clone().try_into().expect("8 bytes"))
    }

    fn parent_id(&self) -> Option<u64> {
        let parent = self.span.parent_span_id.clone();
        (!parent.is_empty()).then(|| u64::from_be_bytes(parent.try_into().expect("8 bytes")))
    }
}

fn text(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|one| one.key == name);
    let value = found.and_then(|one| one.value.clone()?.value);
    match value {
        Some(Any::StringValue(text)) => text,
        Some(Any::IntValue(number)) => number.to_string(),
        other => panic!("{name} is {other:?}"),
    }
}

impl Collector {
    async fn start() -> (Self, String) {
        let collector = Self::default();
        let app = Router::new()
            .route("/in/v1/traces", post(traces))
            .route("/in/v1/metrics", post(metrics))
            .with_state(collector.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let url = format!("http://{}/in", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        (collector, url)
    }

    fn spans(&self) -> Vec<Found> {
        self.spans.lock().expect("the spans").clone()
    }

    /// Waits until the spans are as wanted.
    async fn until(&self, wanted: impl Fn(&[Found]) -> bool) -> Vec<Found> {
        let began = Instant::now();
        loop {
            let spans = self.spans();
            if wanted(&spans) {
                return spans;
            }
            assert!(began.elapsed() < SOON, "{spans:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn answer(&self, headers: &HeaderMap) -> StatusCode {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert_eq!(headers["x-key"], "secret");
        let refuses = *self.refuses.lock().expect("the status");
        refuses.unwrap_or(StatusCode::OK)
    }
}

async fn traces(State(collector): State<Collector>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let status = collector.answer(&headers);
    if status == StatusCode::OK {
        let request = ExportTraceServiceRequest::decode(body).expect("spans");
        for part in request.resource_spans {
            let attributes = part.resource.unwrap_or_default().attributes;
            let service = text(&attributes, "service.name");
            let spans = part.scope_spans.into_iter().flat_map(|scope| scope.spans);
            let found = spans.map(|span| Found {
                service: service.clone(),
                span,
            });
            collector.spans.lock().expect("the spans").extend(found);
        }
    }
    status
}

async fn metrics(
    State(collector): State<Collector>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let status = collector.answer(&headers);
    if status == StatusCode::OK {
        let request = ExportMetricsServiceRequest::decode(body).expect("metrics");
        collector.metrics.lock().expect("the metrics").push(request);
    }
    status
}

async fn start(backend: Backend, url: &str, ratio: &str) -> Cloud {
    let settings = [
        "--allow-private-targets",
        "--otlp-endpoint",
        url,
        "--trace-ratio",
        ratio,
    ];
    let headers = [("HUB_CLOUD_OTLP_HEADERS", "x-key=secret")];
    Cloud::start_in(backend, &settings, &headers).await
}

async fn pipeline(tenant: &Tenant, receiver: &Receiver) {
    let body = json!({"name": "all", "source": {}, "steps": [],
        "destination": {"kind": "HTTP", "url": format!("{}/in", receiver.url)}});
    let created = tenant.client.post("/tenant/data-pipelines").json(&body);
    created.call().await.expect(201);
}

on_each_database!(one_event_is_one_trace_from_the_radio_to_the_receiver);
async fn one_event_is_one_trace_from_the_radio_to_the_receiver(backend: Backend) {
    let (collector, url) = Collector::start().await;
    let mut cloud = start(backend, &url, "1").await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let receiver = Receiver::start().await;
    pipeline(&tenant, &receiver).await;

    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let line = |number: usize| {
        let line = json!({"t_ms": number, "address": "C0:00:00:00:00:01", "addressType": "random",
            "rssi": -60, "name": format!("event {number}")});
        format!("{line}\n")
    };
    let trace = (0..3).map(line).collect::<String>();
    std::fs::write(path("trace.jsonl"), trace).expect("a trace");
    let (state_dir, replay) = (path("state"), path("trace.jsonl"));
    let code = tenant.claim_code().await;
    let _agent = Process::start(
        "hub-agent",
        &[
            "run",
            "--state-dir",
            &state_dir,
            "--replay",
            &replay,
            "--service-url",
            &cloud.url,
            "--trace-ratio",
            "1",
            "--upload-interval",
            "100ms",
        ],
        &[
            ("HUB_AGENT_CLAIM_CODE", code.as_str()),
            ("HUB_AGENT_DEVICE_INSTANCE_ID", "a traced hub"),
        ],
    );
    receiver.until(SOON, |all| all.len() >= 3).await;

    let of = |spans: &[Found], name: &str| -> Vec<Found> {
        let named = spans.iter().filter(|found| found.span.name == name);
        named.cloned().collect()
    };
    let spans = collector
        .until(|spans| of(spans, "deliver").len() == 3 && of(spans, "hear").len() == 3)
        .await;
    let mut traces: Vec<u128> = Vec::new();
    for received in receiver.received().iter() {
        let context: TraceContext = received.header("traceparent").parse().expect("a context");
        let in_trace = |name: &str| -> Found {
            let mut found = of(&spans, name);
            found.retain(|found| found.trace_id() == context.trace_id);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            found.remove(0)
        };
        let (hear, store, deliver) = (in_trace("hear"), in_trace("store"), in_trace("deliver"));
        assert_eq!(
            (hear.service.as_str(), hear.parent_id()),
            ("hub-agent", None)
        );
        assert_eq!(store.parent_id(), Some(hear.span_id()));
        assert_eq!(deliver.parent_id(), Some(hear.span_id()));
        assert_eq!(deliver.span_id(), context.span_id);
        assert!(context.is_sampled && store.service == "hub-cloud");
        assert!(hear.span.start_time_unix_nano <= store.span.start_time_unix_nano);
        assert!(store.span.start_time_unix_nano <= deliver.span.end_time_unix_nano);
        assert_eq!(
            text(&deliver.span.attributes, "delivery.status"),
            "DELIVERED"
        );
        let tenant_uuid = text(&store.span.attributes, "tenant.uuid");
        assert_eq!(tenant_uuid, text(&deliver.span.attributes, "tenant.uuid"));
        // The event names its trace, so that whoever reads it finds it.
        let body = received.json();
        let of_event: TraceContext = serde_json::from_value(body["traceparent"].clone())
            .unwrap_or_else(|error| panic!("{error}: {body}"));
        assert_eq!(of_event.trace_id, context.trace_id);
        traces.push(context.trace_id);
    }
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 3, "each event has a trace of its own");
    cloud.stop().await;
    let requests = of(&collector.spans(), "POST /v1/ble/events");
    assert!(!requests.is_empty(), "requests are recorded, also the last");
    let metrics = collector.metrics.lock().expect("the metrics");
    let last = metrics.last().expect("metrics").resource_metrics[0].clone();
    let all = last
        .scope_metrics
        .into_iter()
        .flat_map(|scope| scope.metrics);
    assert!(
        all.into_iter()
            .any(|metric| metric.name == "hub_cloud_http_requests")
    );
}

on_each_database!(what_nobody_asked_to_record_is_not_recorded);
async fn what_nobody_asked_to_record_is_not_recorded(backend: Backend) {
    let (collector, url) = Collector::start().await;
    let cloud = start(backend, &url, "0.5").await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let receiver = Receiver::start().await;
    pipeline(&tenant, &receiver).await;
    let hub = SimulatedHub::claim(&tenant).await;
    // The last 56 bits decide: 0x48eb… is below the half of them, 0xc8eb… is above.
    let below = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
    let above = "00-0af7651916cd43dd84c8eb211c80319c-b7ad6b7169203331";
    for header in [
        format!("{below}-00"),
        format!("{above}-01"),
        "no context at all".to_owned(),
        format!("{below}-01"),
    ] {
        let upload = hub.client.post("/v1/ble/events").json(&events(1));
        let uploaded = upload.header("traceparent", &header).call().await;
        uploaded.expect(201);
    }
    // What an event names decides, whatever it is; a name alone can make no event unreadable.
    for named in [
        json!(null),
        json!(7),
        json!("no"),
        json!(format!("{below}-00")),
    ] {
        let mut body = json!(events(1));
        body["events"][0]["traceparent"] = named;
        let upload = hub.client.post("/v1/ble/events").json(&body);
        let uploaded = upload.header("traceparent", &format!("{below}-01"));
        uploaded.call().await.expect(201);
    }
    receiver.until(SOON, |all| all.len() == 8).await;
    let listed = tenant.client.get("/tenant/ble/events").call().await;
    assert_eq!(listed.expect(200).data::<Vec<Value>>().len(), 8);
    let wanted: TraceContext = format!("{below}-01").parse().expect("a context");
    let delivered = |spans: &[Found]| spans.iter().any(|found| found.span.name == "deliver");
    let spans = collector.until(delivered).await;
    let of_events = spans
        .iter()
        .filter(|found| ["store", "deliver"].contains(&found.span.name.as_str()));
    for found in of_events {
        assert_eq!(found.trace_id(), wanted.trace_id, "{found:?}");
        assert_eq!(found.parent_id(), Some(wanted.span_id));
    }
    let received = receiver.take();
    let traced: Vec<&str> = received
        .iter()
        .map(|one| one.header("traceparent"))
        .filter(|header| !header.is_empty())
        .collect();
    assert_eq!(traced.len(), 1, "{traced:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_is_named_once_and_delays_nothing() {
    let (collector, url) = Collector::start().await;
    *collector.refuses.lock().expect("the status") = Some(StatusCode::SERVICE_UNAVAILABLE);
    let cloud = start(Backend::Sqlite, &url, "1").await;
    let client = Client::new(&cloud.url);
    let said = |what: &str| cloud.last_lines().matches(what).count();
    let dropped = async || {
        let metrics = client.get("/metrics").call().await.expect(200).body;
        let line = metrics
            .lines()
            .find(|line| line.starts_with("hub_cloud_trace_spans_dropped_total "));
        let count = line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        count.expect("the metric")
    };
    let began = Instant::now();
    // Metrics are sent first, so it may be away before there is a span.
    while said("accepts nothing") == 0 || dropped().await == 0.0 {
        let asked = Instant::now();
        client.get("/healthz").call().await.expect(200);
        assert!(asked.elapsed() < Duration::from_secs(5));
        assert!(began.elapsed() < SOON, "{}", cloud.last_lines());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    *collector.refuses.lock().expect("the status") = None;
    while said("is back") == 0 {
        client.get("/healthz").call().await.expect(200);
        assert!(began.elapsed() < SOON * 2, "{}", cloud.last_lines());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!((said("accepts nothing"), said("is back")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_name_no_collector_are_refused() {
    for (settings, part) in [
        (vec!["--otlp-endpoint", "collector:4318"], "otlp-endpoint"),
        (
            vec!["--otlp-endpoint", "http://c", "--trace-ratio", "1.5"],
            "trace-ratio",
        ),
        (vec!["--trace-ratio", "0.1"], "otlp-endpoint"),
        (
            vec!["--otlp-endpoint", "http://c", "--otlp-headers", "secret"],
            "otlp-headers",
        ),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = tokio::process::Command::new(hub_tests::process::program("hub-cloud"));
        command
            .arg("serve")
            .arg("--data-dir")
            .arg(dir.path().join("data"));
        let output = command
            .args(["--listen", "127.0.0.1:0"])
            .args(&settings)
            .output();
        let output = output.await.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(3) && said.contains(part),
            "{settings:?}: {said}"
        );
        assert!(!said.contains("secret"), "{said}");
    }
}
