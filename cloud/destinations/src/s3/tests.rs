//! What is sent to a store. That a real one takes it is tested with the service.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::tests::{Target, message, reading};
use crate::{Failure, preview};

type Puts = Arc<Mutex<Vec<(Method, String, HeaderMap, Bytes)>>>;

pub async fn store(status: u16) -> (String, Puts) {
    store_with(status, "<Error/>", &[]).await
}

async fn store_with(
    status: u16,
    answer: &'static str,
    said: &'static [(&'static str, &'static str)],
) -> (String, Puts) {
    let puts = Puts::default();
    let kept = puts.clone();
    let keep = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
        kept.lock()
            .await
            .push((method, uri.path().to_owned(), headers, body));
        let mut answered = HeaderMap::new();
        answered.insert("etag", "\"1\"".parse().expect("a value"));
        for (name, value) in said {
            answered.insert(*name, value.parse().expect("a value"));
        }
        let status = StatusCode::from_u16(status).expect("a status");
        (status, answered, answer)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a listener");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(keep)).await });
    (url, puts)
}

fn target(endpoint: &str) -> Target {
    Target::new(
        json!({"kind": "S3", "url": "s3://readings/of/hubs/", "everySeconds": 10,
        "auth": {"type": "S3", "accessKeyId": "id", "secretAccessKey": "hunter2", "endpoint": endpoint}}),
    )
}

#[tokio::test]
async fn message_is_one_object_with_the_same_name_on_every_try() {
    let (endpoint, puts) = store(200).await;
    let target = target(&endpoint);
    assert_eq!(
        target
            .definition
            .batch_defaults()
            .expect("defaults")
            .every
            .as_secs(),
        10
    );
    let message = message("msg_1", vec![reading(1, 1.5), reading(2, 2.5)]);
    for _ in 0..2 {
        assert_eq!(target.send(&message).await.result, Ok(()));
    }
    let puts = puts.lock().await;
    let [first, second] = puts.as_slice() else {
        panic!("{} calls", puts.len())
    };
    assert_eq!(
        (&first.0, first.1.as_str()),
        (
            &Method::PUT,
            "/readings/of/hubs/2026/01/31/09/msg_1.ndjson.zst"
        )
    );
    assert_eq!((&first.1, &first.3), (&second.1, &second.3));
    assert!(
        first.2["authorization"]
            .to_str()
            .expect("text")
            .starts_with("AWS4-HMAC-SHA256 Credential=id/")
    );
    let lines = zstd::decode_all(first.3.as_ref()).expect("zstd");
    let lines: Vec<Value> = String::from_utf8(lines)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(
        lines,
        [
            Value::Object(reading(1, 1.5)),
            Value::Object(reading(2, 2.5))
        ]
    );
    let shown = preview(&target.definition, &message);
    assert_eq!(
        shown.url,
        "s3://readings/of/hubs/2026/01/31/09/msg_1.ndjson.zst"
    );
}

#[tokio::test]
async fn status_of_the_store_decides_and_is_not_retried_here() {
    for (status, kind) in [
        (403, "credentials"),
        (404, "receiver"),
        (413, "message"),
        (500, "receiver"),
        (301, "receiver"),
    ] {
        let (endpoint, puts) = store(status).await;
        let attempt = target(&endpoint)
            .send(&message("msg", vec![reading(1, 1.0)]))
            .await;
        let found = match attempt.result.expect_err("a failure") {
            Failure::Receiver { .. } => "receiver",
            Failure::Credentials { .. } => "credentials",
            Failure::Message { .. } => "message",
            Failure::Gone { .. } => "gone",
        };
        assert_eq!((found, attempt.response_status), (kind, Some(status)));
        assert_eq!(puts.lock().await.len(), 1);
    }
}

#[tokio::test]
async fn what_the_store_says_is_reported_as_what_it_is() {
    for (status, body, headers, kind, part) in [
        (
            403,
            "<Error><Code>RequestTimeTooSkewed</Code><Message>Too large.</Message></Error>",
            &[] as &[_],
            "receiver",
            "clocks",
        ),
        (
            301,
            "<Error><Code>PermanentRedirect</Code></Error>",
            &[("x-amz-bucket-region", "eu-west-1")],
            "receiver",
            "eu-west-1",
        ),
        (
            400,
            "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-2</Region></Error>",
            &[],
            "receiver",
            "eu-west-2",
        ),
        (
            503,
            "<Error><Code>SlowDown</Code></Error>",
            &[("retry-after", "17")],
            "receiver for 17 s",
            "SlowDown",
        ),
        (
            403,
            "<Error><Code>SignatureDoesNotMatch</Code></Error>",
            &[],
            "credentials",
            "SignatureDoesNotMatch",
        ),
        (
            400,
            "<Error><Code>EntityTooLarge</Code></Error>",
            &[],
            "message",
            "larger",
        ),
    ] {
        let (endpoint, _) = store_with(status, body, headers).await;
        let attempt = target(&endpoint)
            .send(&message("msg", vec![reading(1, 1.0)]))
            .await;
        let failure = attempt.result.expect_err("a failure");
        let found = match &failure {
            Failure::Receiver { retry_after, .. } => match retry_after {
                Some(after) => format!("receiver for {} s", after.as_secs()),
                None => "receiver".to_owned(),
            },
            Failure::Credentials { .. } => "credentials".to_owned(),
            Failure::Message { .. } => "message".to_owned(),
            Failure::Gone { .. } => "gone".to_owned(),
        };
        let reason = failure.into_reason();
        assert_eq!(found, kind, "{reason}");
        assert!(reason.contains(part), "{reason}");
    }
}
