//! Requests as a receiver sees them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use hub_outgoing::signing::{new_signing_secret, service_signature, standard_webhook};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex;

use crate::tests::{Target, event, message, reading};
use crate::{Body, Failure, Message, Payload, Signing, preview};

type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// Answers with the status that the path says, and remembers what it got.
async fn receiver() -> (String, Received) {
    let received = Received::default();
    let keep = |State(received): State<Received>,
                uri: axum::http::Uri,
                headers: HeaderMap,
                body: Bytes| async move {
        received.lock().await.push((headers, body));
        let status = uri.path().trim_matches('/').parse().unwrap_or(200);
        let after = uri.query().unwrap_or("7").replace('_', " ");
        (
            StatusCode::from_u16(status).expect("a status"),
            [("retry-after", after)],
            "an\0swer".repeat(1000),
        )
    };
    let router = Router::new().fallback(keep).with_state(received.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a listener");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

#[tokio::test]
async fn request_carries_headers_credentials_and_both_signatures() {
    let (url, received) = receiver().await;
    let target = Target::new(
        json!({"kind": "HTTP", "url": url, "headers": {"X-Own": "yes"},
        "auth": {"type": "BASIC", "username": "me", "password": "hunter2"}}),
    );
    let signing = Signing {
        current: new_signing_secret(),
        previous: vec![new_signing_secret(), new_signing_secret()],
    };
    let message = message("msg_1", vec![reading(7, 21.5)]);
    let attempt = target.send_signed(&message, Some(&signing)).await;
    assert_eq!(
        (attempt.result, attempt.response_status),
        (Ok(()), Some(200))
    );
    let body = attempt.response_body.expect("a body");
    assert!(
        body.starts_with("answeranswer") && body.len() <= 1024,
        "{body}"
    );

    let (headers, body) = received.lock().await.pop().expect("a request");
    let one = |name: &str| {
        headers
            .get(name)
            .expect(name)
            .to_str()
            .expect(name)
            .to_owned()
    };
    assert_eq!(
        serde_json::from_slice::<Value>(&body).expect("JSON"),
        Value::Object(reading(7, 21.5))
    );
    assert_eq!(one("content-type"), "application/json");
    assert_eq!(one("authorization"), "Basic bWU6aHVudGVyMg==");
    assert_eq!(one("x-own"), "yes");
    assert_eq!(one("x-service-event-type"), "ble.event");
    assert_eq!(
        [one("webhook-id"), one("x-service-idempotency-key")],
        ["msg_1", "msg_1"]
    );
    assert_eq!(
        [one("webhook-timestamp"), one("x-service-timestamp")],
        ["1769851800", "1769851800"]
    );
    let secrets: Vec<&SecretString> = std::iter::once(&signing.current)
        .chain(&signing.previous)
        .collect();
    let standard: Vec<String> = secrets
        .iter()
        .map(|secret| standard_webhook(secret, "msg_1", 1_769_851_800, &body))
        .collect();
    assert_eq!(one("webhook-signature"), standard.join(" "));
    let own: Vec<&str> = headers
        .get_all("x-service-signature")
        .iter()
        .map(|v| v.to_str().expect("text"))
        .collect();
    let expected: Vec<String> = secrets
        .iter()
        .map(|secret| {
            service_signature(
                secrecy::ExposeSecret::expose_secret(*secret).as_bytes(),
                &body,
            )
        })
        .collect();
    assert_eq!(own, expected);

    let shown = preview(&target.definition, &message);
    assert_eq!(shown.body.as_bytes(), body.as_ref());
    assert!(!format!("{shown:?}").contains("bWU6") && !shown.headers.contains_key("authorization"));
}

#[tokio::test]
async fn status_decides_what_happens_next() {
    let (url, _) = receiver().await;
    let kind = |failure: Failure| match failure {
        Failure::Receiver { retry_after, .. } => {
            ("receiver", retry_after.map(|after| after.as_secs()))
        }
        Failure::Credentials { .. } => ("credentials", None),
        Failure::Message { .. } => ("message", None),
        Failure::Gone { .. } => ("gone", None),
    };
    for (path, expected) in [
        ("/301", ("receiver", None)),
        ("/304", ("receiver", None)),
        ("/400", ("message", None)),
        ("/401", ("credentials", None)),
        ("/403", ("credentials", None)),
        ("/404", ("message", None)),
        ("/408", ("receiver", Some(7))),
        ("/410", ("gone", None)),
        ("/413", ("message", None)),
        ("/422", ("message", None)),
        ("/425", ("receiver", Some(7))),
        ("/429", ("receiver", Some(7))),
        ("/429?99999999", ("receiver", Some(3600))),
        (
            "/503?Sat,_31_Jan_2026_09:31:40_GMT",
            ("receiver", Some(100)),
        ),
        ("/503?Sat,_31_Jan_2026_08:31:40_GMT", ("receiver", Some(0))),
        (
            "/503?Saturday,_31-Jan-26_09:31:40_GMT",
            ("receiver", Some(100)),
        ),
        ("/503?Sat_Jan_31_09:31:40_2026", ("receiver", Some(100))),
        ("/503?soon", ("receiver", None)),
        ("/599", ("receiver", Some(7))),
    ] {
        let target = Target::new(json!({"kind": "HTTP", "url": format!("{url}{path}")}));
        let attempt = target.send(&message("msg", vec![reading(1, 1.0)])).await;
        assert_eq!(kind(attempt.result.expect_err(path)), expected, "{path}");
        assert!(
            attempt.response_status.is_some() && attempt.response_body.is_some() || path == "/304",
            "{path}"
        );
    }
}

/// Answers each request with these bytes and leaves the connection open, or ends it.
async fn raw_receiver(answer: &'static [u8], ends: bool) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a listener");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(answer).await;
            if !ends {
                open.push(stream);
            }
        }
    });
    url
}

#[tokio::test]
async fn message_is_delivered_whatever_the_body_of_a_2xx_does() {
    const CUT: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf";
    const BROKEN: &[u8] = b"HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\nno chunk";
    for (answer, ends) in [(CUT, true), (CUT, false), (BROKEN, true), (BROKEN, false)] {
        let url = raw_receiver(answer, ends).await;
        let target = Target::new(json!({"kind": "HTTP", "url": url}));
        let message = message("msg", vec![reading(1, 1.0)]);
        let attempt = target.send_within(&message, Duration::from_secs(2)).await;
        assert_eq!(attempt.result, Ok(()), "{answer:?}, ends: {ends}");
    }
    const FAILED: &[u8] = b"HTTP/1.1 503 Away\r\ncontent-length: 1000\r\n\r\nhalf";
    let target = Target::new(json!({"kind": "HTTP", "url": raw_receiver(FAILED, true).await}));
    let attempt = target.send(&message("msg", vec![reading(1, 1.0)])).await;
    assert_eq!(attempt.response_status, Some(503));
    attempt.result.expect_err("a failure");
}

#[tokio::test]
async fn statuses_that_a_pipeline_names_are_failures_of_the_receiver() {
    let (url, _) = receiver().await;
    for status in [404, 403, 410] {
        let target = Target::new(json!({"kind": "HTTP", "url": format!("{url}/{status}")}));
        let attempt = target.send(&message("msg", vec![reading(1, 1.0)])).await;
        let others = attempt.retried_on(&[400, 405]);
        assert!(!matches!(others.result, Err(Failure::Receiver { .. })));
        let named = others.retried_on(&[400, status]);
        assert!(
            matches!(named.result, Err(Failure::Receiver { .. })),
            "{status}"
        );
    }
    let target = Target::new(json!({"kind": "HTTP", "url": url}));
    let attempt = target.send(&message("msg", vec![reading(1, 1.0)])).await;
    assert_eq!(attempt.retried_on(&[404]).result, Ok(()));
}

fn texts(texts: &[&str]) -> Message {
    let payload = |text: &&str| Payload {
        body: Body::Text((*text).to_owned()),
        event: Arc::default(),
    };
    Message {
        bodies: texts.iter().map(payload).collect(),
        ..message("msg", Vec::new())
    }
}

#[tokio::test]
async fn formats_make_one_body_of_many_events() {
    let (url, received) = receiver().await;
    let batch = |message: Message| Message {
        is_batch: true,
        ..message
    };
    let two = || {
        message(
            "msg",
            vec![reading(1, 1.5), event(json!({})), reading(2, 2.5)],
        )
    };
    let line = |device: i64, value: f64| {
        format!(
            "ble,address=C4:11:00:00:00:01,device={device},hub=0d6c6f1e-7c6e-4a43-8f5c-6e2a1a3a4b5c \
                 temperature={value},motion=true 1769851800000000000"
        )
    };
    let json = |values: Value| values.to_string();
    for (format, message, expected) in [
        (
            "JSON",
            two(),
            json(json!([reading(1, 1.5), {}, reading(2, 2.5)])),
        ),
        (
            "JSON",
            batch(message("msg", vec![event(json!({"a": 1}))])),
            json(json!([{"a": 1}])),
        ),
        ("JSON", texts(&["{\"a\": 1}"]), "{\"a\": 1}".to_owned()),
        ("JSON", batch(texts(&["1", "[2]"])), "[1,[2]]".to_owned()),
        (
            "INFLUX_LINE",
            two(),
            format!("{}\n{}", line(1, 1.5), line(2, 2.5)),
        ),
        ("INFLUX_LINE", texts(&["ble x=1"]), "ble x=1".to_owned()),
        ("TEMPLATE", texts(&["a", "b c"]), "a\nb c".to_owned()),
    ] {
        let target = Target::new(json!({"kind": "HTTP", "url": url, "format": format}));
        assert_eq!(target.send(&message).await.result, Ok(()));
        let (headers, body) = received.lock().await.pop().expect("a request");
        assert_eq!(String::from_utf8_lossy(&body), expected);
        assert_eq!(
            headers["content-type"] == "application/json",
            format == "JSON"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_said_is_not_sent() {
    let (url, received) = receiver().await;
    let target = |format: &str| Target::new(json!({"kind": "HTTP", "url": url, "format": format}));
    let is_message = |result: Result<(), Failure>| matches!(result, Err(Failure::Message { .. }));
    assert!(is_message(
        target("JSON").send(&texts(&["no JSON"])).await.result
    ));
    assert!(is_message(
        target("TEMPLATE")
            .send(&message("msg", vec![reading(1, 1.0)]))
            .await
            .result
    ));
    // There is nothing to say, which is no failure.
    let nothing = target("INFLUX_LINE")
        .send(&message("msg", vec![event(json!({}))]))
        .await;
    assert_eq!((nothing.result, nothing.response_status), (Ok(()), None));
    assert!(received.lock().await.is_empty());
}

#[tokio::test]
async fn destination_without_its_secrets_sends_nothing() {
    let (url, received) = receiver().await;
    let mut target =
        Target::new(json!({"kind": "HTTP", "url": url, "auth": {"type": "BEARER", "token": "t"}}));
    target.secrets = None;
    let result = target
        .send(&message("msg", vec![reading(1, 1.0)]))
        .await
        .result;
    assert!(matches!(result, Err(Failure::Credentials { .. })));
    assert!(received.lock().await.is_empty());
}

/// Of every kind, at a name that is judged when it is called.
#[tokio::test]
async fn address_that_is_forbidden_is_gone() {
    let allowed = crate::tests::outgoing_with(None);
    let strict =
        hub_outgoing::Outgoing::new(&Default::default(), hub_base::metrics::Metrics::new())
            .expect("a client");
    let keys = json!({"type": "S3", "accessKeyId": "i", "secretAccessKey": "s", "endpoint": "http://127.0.0.1:9"});
    for definition in [
        json!({"kind": "HTTP", "url": "http://127.0.0.1:9/"}),
        json!({"kind": "MQTT", "url": "mqtt://127.0.0.1:9", "topic": "a"}),
        json!({"kind": "MQTT", "url": "mqtts://localhost:9", "topic": "a", "version": "5"}),
        json!({"kind": "NATS", "url": "nats://[::1]:9", "subject": "a"}),
        json!({"kind": "NATS", "url": "tls://2130706433:9", "subject": "a"}),
        json!({"kind": "S3", "url": "s3://bucket", "auth": keys}),
    ] {
        let target = Target {
            outgoing: strict.clone(),
            ..Target::with(allowed.clone(), definition.clone())
        };
        let result = target
            .send(&message("msg", vec![reading(1, 1.0)]))
            .await
            .result;
        assert!(
            matches!(result, Err(Failure::Gone { .. })),
            "{definition}: {result:?}"
        );
        // Where nobody listens it is the receiver's fault.
        let target = Target {
            outgoing: allowed.clone(),
            ..target
        };
        let result = target
            .send(&message("msg", vec![reading(1, 1.0)]))
            .await
            .result;
        assert!(
            matches!(result, Err(Failure::Receiver { .. })),
            "{definition}: {result:?}"
        );
    }
}

#[tokio::test]
async fn silent_receiver_of_any_kind_takes_no_longer_than_it_may() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a listener");
    let address = listener.local_addr().expect("an address");
    let keys = json!({"type": "S3", "accessKeyId": "i", "secretAccessKey": "s", "endpoint": format!("http://{address}")});
    for definition in [
        json!({"kind": "HTTP", "url": format!("http://{address}/")}),
        json!({"kind": "MQTT", "url": format!("mqtt://{address}"), "topic": "a"}),
        json!({"kind": "MQTT", "url": format!("mqtts://{address}"), "topic": "a"}),
        json!({"kind": "NATS", "url": format!("nats://{address}"), "subject": "a"}),
        json!({"kind": "S3", "url": "s3://bucket", "auth": keys}),
    ] {
        let Target {
            definition,
            secrets,
            outgoing,
            connections,
        } = Target::new(definition);
        let message = message("msg", vec![reading(1, 1.0)]);
        let within = Duration::from_millis(200);
        let sending = crate::send(
            &definition,
            secrets.as_ref(),
            None,
            &message,
            &connections,
            &outgoing,
            within,
        );
        let result = sending.await.result;
        assert!(
            matches!(result, Err(Failure::Receiver { .. })),
            "{definition:?}: {result:?}"
        );
    }
}
