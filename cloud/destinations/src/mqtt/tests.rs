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
