//! Mosquitto: with and without TLS and passwords, both versions, every quality of service.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::tests::brokers::{Broker, certificates, has};
use crate::tests::{Target, event, message, outgoing_with, reading};
use crate::{Failure, Message};

async fn open_broker() -> Broker {
    Broker::start("mosquitto", configured).await
}

fn configured(dir: &Path, port: u16) -> Vec<String> {
    let file = dir.join("mosquitto.conf");
    let config =
        format!("listener {port} 127.0.0.1\nallow_anonymous true\nmax_packet_size 20000\n");
    std::fs::write(&file, config).expect("a file");
    vec!["-c".to_owned(), file.display().to_string()]
}

/// Everything that is published, as `topic payload`.
struct Subscriber {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Subscriber {
    /// Returns when it is subscribed: it has got the message that is retained for it.
    fn start(port: u16) -> Self {
        let port = port.to_string();
        let retained = [
            "-p",
            &port,
            "-t",
            "ready",
            "-m",
            "yes",
            "-r",
            "-h",
            "127.0.0.1",
        ];
        assert!(
            Command::new("mosquitto_pub")
                .args(retained)
                .status()
                .expect("a publisher")
                .success()
        );
        let arguments = ["-p", &port, "-t", "#", "-v", "-q", "2", "-h", "127.0.0.1"];
        let mut child = Command::new("mosquitto_sub")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a subscriber");
        let lines = BufReader::new(child.stdout.take().expect("an output")).lines();
        let mut subscriber = Self { child, lines };
        assert_eq!(subscriber.next(), ("ready".to_owned(), "yes".to_owned()));
        subscriber
    }

    fn next(&mut self) -> (String, String) {
        let line = self.lines.next().expect("a line").expect("a line");
        line.split_once(' ')
            .map(|(topic, payload)| (topic.to_owned(), payload.to_owned()))
            .expect("a payload")
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn events_are_published_in_order_over_one_connection() {
    if !has("mosquitto") || !has("mosquitto_sub") {
        return;
    }
    let broker = open_broker().await;
    let mut subscriber = Subscriber::start(broker.port);
    for version in ["3.1.1", "5"] {
        for qos in 0..=2 {
            let target = Target::new(
                json!({"kind": "MQTT", "url": format!("mqtt://127.0.0.1:{}", broker.port),
                "version": version, "qos": qos, "topic": "hubs/{{hubUuid}}/{{deviceInstanceId}}"}),
            );
            for _ in 0..2 {
                // More than may be in flight at a time.
                let events = (0..50).map(|device| reading(device, 21.5)).collect();
                let attempt = target.send(&message("msg", events)).await;
                assert_eq!(attempt.result, Ok(()), "{version} {qos}");
                assert_eq!(
                    target.connections.idle(),
                    1,
                    "the connection is kept and used again"
                );
                for device in 0..50 {
                    let (topic, payload) = subscriber.next();
                    assert_eq!(
                        topic,
                        format!("hubs/0d6c6f1e-7c6e-4a43-8f5c-6e2a1a3a4b5c/{device}")
                    );
                    let payload: Value = serde_json::from_str(&payload).expect("JSON");
                    assert_eq!(payload, Value::Object(reading(device, 21.5)));
                }
            }
        }
    }
}

#[tokio::test]
async fn topic_or_event_that_does_not_fit_is_the_messages_fault() {
    if !has("mosquitto") {
        return;
    }
    let broker = open_broker().await;
    let url = format!("mqtt://127.0.0.1:{}", broker.port);
    let target =
        Target::new(json!({"kind": "MQTT", "url": url, "version": "5", "topic": "a/{{name}}/b"}));
    let long = "x".repeat(30_000);
    for body in [
        json!({}),
        json!({"name": ""}),
        json!({"name": "+"}),
        json!({"name": "x/#"}),
        json!({"name": "a", "x": long}),
    ] {
        let attempt = target
            .send(&message("msg", vec![event(body.clone())]))
            .await;
        assert!(
            matches!(attempt.result, Err(Failure::Message { .. })),
            "{:?}",
            attempt.result
        );
    }
    assert_eq!(
        target
            .send(&message("msg", vec![event(json!({"name": "a/b"}))]))
            .await
            .result,
        Ok(())
    );
}

#[tokio::test]
async fn broker_with_tls_and_passwords_is_believed_and_believes() {
    if !has("mosquitto") || !has("mosquitto_passwd") {
        return;
    }
    let broker = Broker::start("mosquitto", |dir, port| {
        certificates(dir);
        let file = |name: &str| dir.join(name).display().to_string();
        let made = Command::new("mosquitto_passwd").args(["-b", "-c", &file("passwords"), "me", "right"]).status();
        assert!(made.expect("a password file").success());
        std::fs::write(dir.join("acl"), "user me\ntopic write allowed/#\n").expect("a file");
        let config = format!(
            "listener {port} 127.0.0.1\nuser root\nallow_anonymous false\npassword_file {}\nacl_file {}\ncertfile {}\n\
             keyfile {}\n",
            file("passwords"),
            file("acl"),
            file("cert.pem"),
            file("key.pem")
        );
        std::fs::write(dir.join("mosquitto.conf"), config).expect("a file");
        vec!["-c".to_owned(), file("mosquitto.conf")]
    })
    .await;
    let url = format!("mqtts://127.0.0.1:{}", broker.port);
    let known = outgoing_with(Some(broker.file("ca.pem")));
    let definition = |version: &str, password: &str| {
        json!({"kind": "MQTT", "url": url, "version": version, "topic": "{{name}}/x",
            "auth": {"type": "BASIC", "username": "me", "password": password}})
    };
    let sent = |name: &str| message("msg", vec![event(json!({"name": name}))]);
    for version in ["3.1.1", "5"] {
        let target = Target::with(known.clone(), definition(version, "right"));
        assert_eq!(
            target.send(&sent("allowed")).await.result,
            Ok(()),
            "{version}"
        );
        let wrong = Target::with(known.clone(), definition(version, "wrong"))
            .send(&sent("allowed"))
            .await
            .result;
        assert!(
            matches!(wrong, Err(Failure::Credentials { .. })),
            "{version}: {wrong:?}"
        );
        let unknown = Target::with(outgoing_with(None), definition(version, "right"))
            .send(&sent("allowed"))
            .await;
        assert!(
            matches!(unknown.result, Err(Failure::Receiver { .. })),
            "{version}: {:?}",
            unknown.result
        );
    }
    // Only version 5 can say that a topic is not allowed.
    let refused = Target::with(known.clone(), definition("5", "right"))
        .send(&sent("forbidden"))
        .await
        .result;
    assert!(
        matches!(refused, Err(Failure::Credentials { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn broker_that_restarts_is_connected_to_again() {
    if !has("mosquitto") {
        return;
    }
    let broker = open_broker().await;
    let port = broker.port;
    let target = Target::new(
        json!({"kind": "MQTT", "url": format!("mqtt://127.0.0.1:{port}"), "topic": "a"}),
    );
    let sent = message("msg", vec![event(json!({"a": 1}))]);
    assert_eq!(target.send(&sent).await.result, Ok(()));
    drop(broker);
    assert!(matches!(
        target.send(&sent).await.result,
        Err(Failure::Receiver { .. })
    ));
    let _broker = Broker::start_on("mosquitto", port, configured).await;
    assert_eq!(target.send(&sent).await.result, Ok(()));
}

#[tokio::test]
async fn home_assistant_learns_of_each_device_once() {
    if !has("mosquitto") || !has("mosquitto_sub") {
        return;
    }
    let broker = open_broker().await;
    let mut subscriber = Subscriber::start(broker.port);
    let target = Target::new(
        json!({"kind": "MQTT", "url": format!("mqtt://127.0.0.1:{}", broker.port),
        "topic": "devices/{{deviceInstanceId}}", "homeAssistantDiscovery": true}),
    );
    let send = |device: i64| message("msg", vec![reading(device, 21.5)]);
    let sent: [Message; 3] = [send(7), send(7), send(8)];
    for message in &sent {
        assert_eq!(target.send(message).await.result, Ok(()));
    }
    let topics: Vec<(String, Value)> = (0..7)
        .map(|_| subscriber.next())
        .map(|(topic, payload)| (topic, serde_json::from_str(&payload).expect("JSON")))
        .collect();
    let names: Vec<&str> = topics.iter().map(|(topic, _)| topic.as_str()).collect();
    assert_eq!(
        names,
        [
            "homeassistant/sensor/hub_cloud_7/temperature/config",
            "homeassistant/binary_sensor/hub_cloud_7/motion/config",
            "devices/7",
            "devices/7",
            "homeassistant/sensor/hub_cloud_8/temperature/config",
            "homeassistant/binary_sensor/hub_cloud_8/motion/config",
            "devices/8",
        ]
    );
    let config = &topics[0].1;
    assert_eq!(config["device_class"], "temperature");
    assert_eq!(config["unit_of_measurement"], "°C");
    assert_eq!(config["state_class"], "measurement");
    assert_eq!(config["state_topic"], "devices/7");
    assert_eq!(config["device"]["identifiers"], json!(["hub_cloud_7"]));
    assert_eq!(config["unique_id"], "hub_cloud_7_temperature");
}

#[tokio::test]
async fn events_are_published_over_websocket() {
    if !has("mosquitto") || !has("mosquitto_sub") {
        return;
    }
    let web = crate::tests::brokers::free_port();
    let broker = Broker::start("mosquitto", |dir, port| {
        let arguments = configured(dir, port);
        let file = dir.join("mosquitto.conf");
        let config = std::fs::read_to_string(&file).expect("a file");
        let config = format!(
            "{config}listener {web} 127.0.0.1\nprotocol websockets\nallow_anonymous true\n"
        );
        std::fs::write(&file, config).expect("a file");
        arguments
    })
    .await;
    let mut subscriber = Subscriber::start(broker.port);
    for version in ["3.1.1", "5"] {
        let url = format!("ws://127.0.0.1:{web}/mqtt");
        let target = Target::new(json!({"kind": "MQTT", "url": url, "version": version,
            "topic": "of/{{deviceInstanceId}}", "qos": 2}));
        let events: Vec<_> = (0..40).map(|device| reading(device, 1.5)).collect();
        for _ in 0..2 {
            let attempt = target.send(&message("msg", events.clone())).await;
            assert_eq!(attempt.result, Ok(()));
            assert_eq!(target.connections.idle(), 1, "it is used again");
            for device in 0..40 {
                assert_eq!(subscriber.next().0, format!("of/{device}"));
            }
        }
    }
    // What answers there is no WebSocket.
    let (url, _) = crate::s3::tests::store(200).await;
    let url = url.replace("http:", "ws:");
    let target = Target::new(json!({"kind": "MQTT", "url": url, "topic": "a"}));
    let attempt = target.send(&message("msg", vec![reading(1, 1.5)])).await;
    let reason = attempt.result.expect_err("a failure").into_reason();
    assert!(reason.contains("WebSocket (200)"), "{reason}");
}

#[tokio::test]
async fn a_broker_with_a_tls_of_its_own_is_shown_the_certificate() {
    if !has("mosquitto") {
        return;
    }
    let broker = Broker::start("mosquitto", |dir, port| {
        certificates(dir);
        let file = dir.join("mosquitto.conf");
        let path = dir.display();
        let config = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\ncafile {path}/ca.pem\n\
             certfile {path}/cert.pem\nkeyfile {path}/key.pem\nrequire_certificate true\n"
        );
        std::fs::write(&file, config).expect("a file");
        vec!["-c".to_owned(), file.display().to_string()]
    })
    .await;
    let read = |name: &str| std::fs::read_to_string(broker.file(name)).expect("a file");
    let url = format!("mqtts://127.0.0.1:{}", broker.port);
    let definition = |tls: Value| json!({"kind": "MQTT", "url": url, "topic": "a", "tls": tls});
    let whole = json!({"ca": read("ca.pem"), "certificate": read("cert.pem"),
        "key": read("key.pem")});
    let target = Target::new(definition(whole));
    let shown = serde_json::to_value(&target.definition).expect("JSON");
    assert!(shown["tls"]["key"].is_null() && shown["tls"]["ca"].is_string());
    let sent = target.send(&message("msg", vec![reading(1, 1.5)])).await;
    assert_eq!(sent.result, Ok(()));
    let without = Target::new(definition(json!({"ca": read("ca.pem")})));
    let sent = without.send(&message("msg", vec![reading(1, 1.5)])).await;
    assert!(
        matches!(sent.result, Err(Failure::Receiver { .. })),
        "{:?}",
        sent.result
    );
}

/// What is retained under a filter; nothing of what comes later.
fn retained(port: u16, filter: &str) -> Vec<String> {
    let port = port.to_string();
    let arguments = [
        "-h",
        "127.0.0.1",
        "-p",
        &port,
        "-t",
        filter,
        "-W",
        "1",
        "-F",
        "%t",
    ];
    let output = Command::new("mosquitto_sub").args(arguments).output();
    let output = String::from_utf8(output.expect("a subscriber").stdout).expect("text");
    let mut topics: Vec<String> = output.lines().map(str::to_owned).collect();
    topics.sort();
    topics
}

#[tokio::test]
async fn what_was_announced_is_named_and_removed_with_the_device_and_with_the_pipeline() {
    if !has("mosquitto") || !has("mosquitto_sub") {
        return;
    }
    let broker = open_broker().await;
    for version in ["3.1.1", "5"] {
        let definition = json!({"kind": "MQTT", "version": version,
            "url": format!("mqtt://127.0.0.1:{}", broker.port),
            "topic": "devices/{{deviceInstanceId}}", "homeAssistantDiscovery": true});
        let mut target = Target::new(definition);
        target.connections = crate::Connections::naming(Box::new(|_, device| {
            Box::pin(async move { (device == 7).then(|| "Cold store".to_owned()) })
        }));
        let (ours, other) = (uuid::Uuid::now_v7(), uuid::Uuid::now_v7());
        for (pipeline_uuid, device) in [(ours, 7), (ours, 8), (other, 9)] {
            let mut message = message("msg", vec![reading(device, 21.5)]);
            message.pipeline_uuid = pipeline_uuid;
            assert_eq!(target.send(&message).await.result, Ok(()));
        }
        let filter = "homeassistant/+/+/+/config";
        assert_eq!(retained(broker.port, filter).len(), 6);
        let port = broker.port.to_string();
        let document = Command::new("mosquitto_sub")
            .args(["-h", "127.0.0.1", "-p", &port, "-C", "1", "-t"])
            .arg("homeassistant/sensor/hub_cloud_7/temperature/config")
            .output()
            .expect("a subscriber");
        let document: Value = serde_json::from_slice(&document.stdout).expect("JSON");
        assert_eq!(document["device"]["name"], "Cold store");

        let withdraw = async |device: Option<i64>| {
            let within = std::time::Duration::from_secs(20);
            let removed = crate::withdraw(
                &target.definition,
                target.secrets.as_ref(),
                ours,
                device,
                &target.outgoing,
                within,
            );
            removed.await.expect("a number")
        };
        assert_eq!(withdraw(Some(7)).await, 2);
        assert_eq!(retained(broker.port, filter).len(), 4);
        assert_eq!(withdraw(Some(9)).await, 0, "another pipeline's");
        assert_eq!(withdraw(None).await, 2);
        assert_eq!(
            retained(broker.port, filter),
            [
                "homeassistant/binary_sensor/hub_cloud_9/motion/config",
                "homeassistant/sensor/hub_cloud_9/temperature/config"
            ]
        );
    }
}
