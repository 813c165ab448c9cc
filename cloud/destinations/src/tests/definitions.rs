//! What may be in a definition.

use hub_base::metrics::Metrics;
use hub_outgoing::Outgoing;
use hub_outgoing::OutgoingConfig;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::super::{parse, parse_stored};
use super::outgoing_with;

#[test]
fn mistakes_are_named_by_their_pointer() {
    let outgoing = Outgoing::new(&OutgoingConfig::default(), Metrics::new()).expect("a client");
    let http = |more: Value| {
        let mut value = json!({"kind": "HTTP", "url": "https://example.com/hook"});
        value
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        value
    };
    let s3 = |url: &str, auth: Value| json!({"kind": "S3", "url": url, "auth": auth});
    let keys = json!({"type": "S3", "accessKeyId": "id", "secretAccessKey": "secret"});
    for (definition, pointer) in [
        (json!(1), ""),
        (json!([]), ""),
        (json!({}), "/kind"),
        (json!({"kind": "FTP"}), "/kind"),
        (json!({"kind": "HTTP"}), "/url"),
        (http(json!({"url": 1})), "/url"),
        (http(json!({"url": "http://127.0.0.1/"})), "/url"),
        (
            http(json!({"url": "http://169.254.169.254/latest"})),
            "/url",
        ),
        (
            http(json!({"url": "https://user:secret@example.com/"})),
            "/url",
        ),
        (http(json!({"url": "mqtt://example.com/"})), "/url"),
        (http(json!({"surprise": 1})), "/surprise"),
        (http(json!({"a/b~c": 1})), "/a~1b~0c"),
        (http(json!({"format": "XML"})), "/format"),
        (http(json!({"headers": []})), "/headers"),
        (http(json!({"headers": {"x": 1}})), "/headers/x"),
        (
            http(json!({"headers": {"x": "a\r\nhost: evil"}})),
            "/headers/x",
        ),
        (http(json!({"headers": {"x\r\ny": "a"}})), "/headers/x\r\ny"),
        (http(json!({"headers": {"x": "é"}})), "/headers/x"),
        (http(json!({"headers": {"Host": "evil"}})), "/headers/Host"),
        (
            http(json!({"headers": {"content-LENGTH": "1"}})),
            "/headers/content-LENGTH",
        ),
        (
            http(json!({"headers": {"Transfer-Encoding": "chunked"}})),
            "/headers/Transfer-Encoding",
        ),
        (
            http(json!({"headers": {"connection": "close"}})),
            "/headers/connection",
        ),
        (
            http(json!({"headers": {"X-Service-Signature": "x"}})),
            "/headers/X-Service-Signature",
        ),
        (
            http(json!({"headers": {"webhook-id": "x"}})),
            "/headers/webhook-id",
        ),
        (
            http(json!({"headers": {"X-A": "1", "x-a": "2"}})),
            "/headers/x-a",
        ),
        (
            http(
                json!({"headers": {"Authorization": "x"}, "auth": {"type": "BEARER", "token": "t"}}),
            ),
            "/headers/Authorization",
        ),
        (
            http(
                json!({"headers": {"X-Key": "x"}, "auth": {"type": "HEADER", "name": "x-key", "value": "v"}}),
            ),
            "/headers/X-Key",
        ),
        (
            http(json!({"auth": {"type": "HEADER", "name": "host", "value": "v"}})),
            "/auth/name",
        ),
        (
            http(json!({"auth": {"type": "HEADER", "name": "x-key", "value": "a\nb"}})),
            "/auth/value",
        ),
        (http(json!({"auth": {}})), "/auth/type"),
        (http(json!({"auth": {"type": "S3"}})), "/auth/type"),
        (http(json!({"auth": {"type": "BEARER"}})), "/auth/token"),
        (
            http(json!({"auth": {"type": "BASIC", "username": "a:b", "password": "p"}})),
            "/auth/username",
        ),
        (
            http(json!({"auth": {"type": "BEARER", "token": "t", "password": "p"}})),
            "/auth/password",
        ),
        (http(json!({"auth": "token"})), "/auth"),
        (
            json!({"kind": "MQTT", "url": "mqtt://example.com"}),
            "/topic",
        ),
        (
            json!({"kind": "MQTT", "url": "mqtt://example.com", "topic": "a/+"}),
            "/topic",
        ),
        (
            json!({"kind": "MQTT", "url": "mqtt://example.com", "topic": "a//b"}),
            "/topic",
        ),
        (
            json!({"kind": "MQTT", "url": "mqtt://example.com", "topic": "$SYS/x"}),
            "/topic",
        ),
        (
            json!({"kind": "MQTT", "url": "mqtt://example.com", "topic": "a/{{x"}),
            "/topic",
        ),
        (
            json!({"kind": "MQTT", "url": "mqtt://example.com", "topic": "a/{{}}"}),
            "/topic",
        ),
        (
            json!({"kind": "MQTT", "url": "mqtt://example.com", "topic": "a", "qos": 3}),
            "/qos",
        ),
        (
            json!({"kind": "MQTT", "url": "mqtt://example.com", "topic": "a", "retain": "yes"}),
            "/retain",
        ),
        (
            json!({"kind": "MQTT", "url": "mqtt://example.com", "topic": "a", "version": "4"}),
            "/version",
        ),
        (
            json!({"kind": "MQTT", "url": "mqtt://example.com/path", "topic": "a"}),
            "/url",
        ),
        (
            json!({"kind": "MQTT", "url": "mqtt://0x7f.1", "topic": "a"}),
            "/url",
        ),
        (
            json!({"kind": "NATS", "url": "nats://example.com", "subject": "a.>"}),
            "/subject",
        ),
        (
            json!({"kind": "NATS", "url": "nats://example.com", "subject": "a b"}),
            "/subject",
        ),
        (
            json!({"kind": "NATS", "url": "nats://[::1]", "subject": "a"}),
            "/url",
        ),
        (
            json!({"kind": "NATS", "url": "nats://example.com", "subject": "a", "tlsFirst": true}),
            "/tlsFirst",
        ),
        (json!({"kind": "S3", "url": "s3://bucket/x"}), "/auth"),
        (s3("s3://B/x", keys.clone()), "/url"),
        (s3("s3://bucket/../x", keys.clone()), "/url"),
        (s3("https://bucket/x", keys.clone()), "/url"),
        (
            json!({"kind": "S3", "url": "s3://bucket", "auth": keys, "everySeconds": 5}),
            "/everySeconds",
        ),
        (
            s3(
                "s3://bucket",
                json!({"type": "S3", "accessKeyId": "i", "secretAccessKey": "s", "region": "x.evil.com/"}),
            ),
            "/auth/region",
        ),
        (
            s3(
                "s3://bucket",
                json!({"type": "S3", "accessKeyId": "i", "secretAccessKey": "s", "endpoint": "http://10.0.0.1"}),
            ),
            "/auth/endpoint",
        ),
    ] {
        let problem = parse(&definition, &outgoing).expect_err(&definition.to_string());
        assert_eq!(
            problem.pointer, pointer,
            "{definition}: {}",
            problem.message
        );
    }
}

#[test]
fn secrets_are_apart_and_the_rest_is_shown() {
    let outgoing = outgoing_with(None);
    for (given, shown) in [
        (
            json!({"kind": "HTTP", "url": "https://example.com/hook", "headers": {"X-A": "b"},
                "auth": {"type": "BEARER", "token": "hunter2"}}),
            json!({"kind": "HTTP", "url": "https://example.com/hook", "headers": {"X-A": "b"}, "format": "JSON",
                "auth": {"type": "BEARER"}}),
        ),
        (
            json!({"kind": "MQTT", "url": "mqtts://broker.example.com", "topic": "a/{{address}}",
                "auth": {"type": "BASIC", "username": "me", "password": "hunter2"}}),
            json!({"kind": "MQTT", "url": "mqtts://broker.example.com", "topic": "a/{{address}}", "qos": 1,
                "retain": false, "version": "3.1.1", "homeAssistantDiscovery": false,
                "auth": {"type": "BASIC", "username": "me"}}),
        ),
        (
            json!({"kind": "NATS", "url": "nats://example.com", "subject": "a.b", "auth": null}),
            json!({"kind": "NATS", "url": "nats://example.com", "subject": "a.b"}),
        ),
        (
            json!({"kind": "NATS", "url": "tls://example.com", "subject": "a.b", "tlsFirst": true}),
            json!({"kind": "NATS", "url": "tls://example.com", "subject": "a.b", "tlsFirst": true}),
        ),
        (
            json!({"kind": "S3", "url": "s3://bucket/prefix", "auth": {"type": "S3", "accessKeyId": "id",
                "secretAccessKey": "hunter2", "region": "eu-central-1", "endpoint": "https://s3.example.com"}}),
            json!({"kind": "S3", "url": "s3://bucket/prefix", "everySeconds": 60, "auth": {"type": "S3",
                "accessKeyId": "id", "region": "eu-central-1", "endpoint": "https://s3.example.com"}}),
        ),
    ] {
        let (definition, secrets) = parse(&given, &outgoing).expect("a destination");
        let stored = serde_json::to_value(&definition).expect("JSON");
        assert_eq!(stored, shown);
        assert!(!format!("{definition:?}").contains("hunter2"));
        let has_secret = given["auth"].is_object();
        assert_eq!(
            secrets.is_some_and(|secrets| secrets.expose_secret().contains("hunter2")),
            has_secret
        );
        // What was stored is read again without its secrets.
        let again = parse_stored(&stored, &outgoing).expect("a stored destination");
        assert_eq!(serde_json::to_value(&again).expect("JSON"), stored);
    }
}
