//! Every address that a tenant chooses, with every address that leads inside: when it is stored, as
//! far as it is known, and when its name is resolved.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use hub_composed::notices;
use hub_core::config::Settings;
use hub_core::outbox;
use hub_exposure::dependency_track;
use hub_tests::{Backend, Call, Options, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use tokio::net::{TcpListener, UdpSocket};
use uuid::Uuid;

use super::vulnerabilities::{image, package, runs};

const TARGETS: &str = include_str!("../../cloud/outgoing/src/tests/forbidden-targets.txt");
const PIPELINES: &str = "/tenant/data-pipelines";
const OAUTH: &str = "/tenant/supplier-oauth-config";
const ENDPOINTS: &str = "/tenant/external-endpoints";
const DEPENDENCY_TRACK: &str = "/tenant/dependency-track";
const NOTICES: &str = "/tenant/notification-settings";

/// Sections are separated by empty lines, and each begins with its heading.
fn hosts() -> Vec<&'static str> {
    let hosts: Vec<&str> = TARGETS
        .split("\n\n")
        .skip(1)
        .flat_map(|section| section.lines().skip(1))
        .collect();
    assert!(
        hosts.len() > 100 && hosts.contains(&"[::1]") && hosts.contains(&"169.254.169.254"),
        "{}",
        hosts.len()
    );
    hosts
}

fn pipeline(destination: Value) -> Value {
    json!({"name": "x", "source": {}, "steps": [], "destination": destination})
}

fn oauth(url: &str) -> Value {
    let mut body = json!({"client_id": "hubs", "scope": "openid", "registration_shared_secret": "a shared secret"});
    for field in OAUTH_FIELDS {
        body[field] = json!(url);
    }
    body
}

const OAUTH_FIELDS: [&str; 6] = [
    "issuer",
    "authorize_url",
    "token_url",
    "revoke_url",
    "userinfo_url",
    "registration_url",
];

/// A host in every place that takes one: method, path, body, the members that are at fault.
fn places(host: &str) -> Vec<(&'static str, &'static str, Value, Vec<&'static str>)> {
    let store = json!({"type": "S3", "accessKeyId": "i", "secretAccessKey": "s", "endpoint": format!("http://{host}")});
    let mut places = vec![
        (
            "PUT",
            OAUTH,
            oauth(&format!("https://{host}/path")),
            OAUTH_FIELDS.to_vec(),
        ),
        (
            "POST",
            ENDPOINTS,
            json!({"name": "x", "baseUrl": format!("https://{host}/"), "verify_method": "WELL_KNOWN"}),
            vec!["baseUrl"],
        ),
        (
            "PUT",
            DEPENDENCY_TRACK,
            json!({"url": format!("https://{host}/"), "project": "hubs", "apiKey": "k"}),
            vec!["url"],
        ),
        (
            "PUT",
            NOTICES,
            json!({"type": "HUB_OFFLINE", "channel": "WEBHOOK", "enabled": true, "target": format!("https://{host}/")}),
            vec!["target"],
        ),
        (
            "POST",
            PIPELINES,
            pipeline(json!({"kind": "S3", "url": "s3://bucket", "auth": store})),
            vec!["/destination/auth/endpoint"],
        ),
    ];
    for (scheme, more) in [
        ("http", json!({"kind": "HTTP"})),
        ("https", json!({"kind": "HTTP"})),
        ("mqtt", json!({"kind": "MQTT", "topic": "a"})),
        (
            "mqtts",
            json!({"kind": "MQTT", "topic": "a", "version": "5"}),
        ),
        ("nats", json!({"kind": "NATS", "subject": "a"})),
        (
            "tls",
            json!({"kind": "NATS", "subject": "a", "tlsFirst": true}),
        ),
    ] {
        let mut destination = more;
        destination["url"] = json!(format!("{scheme}://{host}"));
        places.push((
            "POST",
            PIPELINES,
            pipeline(destination),
            vec!["/destination/url"],
        ));
    }
    places
}

on_each_database!(an_address_that_leads_inside_is_stored_nowhere);
async fn an_address_that_leads_inside_is_stored_nowhere(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let places = hosts()
        .into_iter()
        .flat_map(|host| places(host).into_iter().map(move |place| (host, place)));
    stream::iter(places)
        .for_each_concurrent(8, async |(host, (method, path, body, fields))| {
            let request = match method {
                "PUT" => tenant.client.put(path),
                _ => tenant.client.post(path),
            };
            let problem = request.json(&body).call().await.expect(400).problem();
            let named: Vec<&str> = problem
                .errors
                .iter()
                .map(|error| error.field.as_str())
                .collect();
            assert_eq!(named, fields, "{host}: {body}");
        })
        .await;
    for path in [PIPELINES, ENDPOINTS, NOTICES] {
        let stored: Vec<Value> = tenant.client.get(path).call().await.expect(200).data();
        // Settings that nobody has made are listed, too.
        let made = stored
            .iter()
            .filter(|one| one.get("updatedAt") != Some(&Value::Null));
        assert_eq!(made.count(), 0, "{path}: {stored:?}");
    }
    tenant.client.get(OAUTH).call().await.expect(404);
    let server: Value = tenant
        .client
        .get(DEPENDENCY_TRACK)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(server["url"], Value::Null);
}

/// A name server for which every name is this machine.
async fn name_server() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let address = socket.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut query = [0; 512];
        while let Ok((_, from)) = socket.recv_from(&mut query).await {
            let end = 12
                + query[12..]
                    .iter()
                    .position(|byte| *byte == 0)
                    .expect("a name")
                + 5;
            let is_about_v4 = query[end - 4..end - 2] == [0, 1];
            let mut answer = query[..2].to_vec();
            answer.extend([0x85, 0x80, 0, 1, 0, u8::from(is_about_v4), 0, 0, 0, 0]);
            answer.extend(&query[12..end]);
            if is_about_v4 {
                answer.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
            }
            let _ = socket.send_to(&answer, from).await;
        }
    });
    address
}

on_each_database!(a_name_that_leads_inside_is_called_by_nothing);
async fn a_name_that_leads_inside_is_called_by_nothing(backend: Backend) {
    let settings = Settings {
        resolver: Some(name_server().await),
        ..Settings::default()
    };
    let change = |config: &mut hub_core::config::Config| config.delivers = true;
    let app = TestApp::configured(
        backend,
        Options {
            settings,
            ..Options::default()
        },
        change,
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let host = format!(
        "inside.test:{}",
        listener.local_addr().expect("an address").port()
    );
    let perform = async |kind: &str| {
        let payload = json!({"tenantUuid": tenant.tenant_uuid});
        hub_tests::app::perform(&app.app, kind, payload).await;
    };

    // The domain of an endpoint.
    let body =
        json!({"name": "x", "baseUrl": format!("https://{host}/"), "verify_method": "WELL_KNOWN"});
    let made: Value = client
        .post(ENDPOINTS)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    let path = format!(
        "{ENDPOINTS}/{}/verify",
        made["id"].as_str().expect("a uuid")
    );
    let verified: Value = client.post(&path).call().await.expect(200).data();
    assert_forbidden(&verified["verify_error"]);

    // The system that receives registration events.
    client
        .put(OAUTH)
        .json(&oauth(&format!("https://{host}/registered")))
        .call()
        .await
        .expect(200);
    let hub = SimulatedHub::claim(&tenant).await;
    perform(outbox::PUSH).await;
    let admin = tenant.owner.as_platform_admin(&app);
    let events: Vec<Value> = admin
        .get("/platform/registration-events")
        .call()
        .await
        .expect(200)
        .data();
    assert_forbidden(&events[0]["lastError"]);

    // The server that gets what hubs run.
    let server = json!({"url": format!("https://{host}"), "project": "hubs", "apiKey": "k"});
    let set = client.put(DEPENDENCY_TRACK).json(&server);
    set.call().await.expect(200);
    runs(&hub, &image(vec![package("bash", "5.2.15-2")])).await;
    perform(dependency_track::SEND).await;
    let tried: Value = client.get(DEPENDENCY_TRACK).call().await.expect(200).data();
    assert_forbidden(&tried["lastError"]);

    // Every kind of destination.
    let keys = json!({"type": "S3", "accessKeyId": "i", "secretAccessKey": "s", "endpoint": format!("https://{host}")});
    let destinations = [
        json!({"kind": "HTTP", "url": format!("http://{host}/")}),
        json!({"kind": "HTTP", "url": format!("https://{host}/")}),
        json!({"kind": "MQTT", "url": format!("mqtt://{host}"), "topic": "a"}),
        json!({"kind": "MQTT", "url": format!("mqtts://{host}"), "topic": "a"}),
        json!({"kind": "NATS", "url": format!("nats://{host}"), "subject": "a"}),
        json!({"kind": "NATS", "url": format!("tls://{host}"), "subject": "a", "tlsFirst": true}),
        json!({"kind": "S3", "url": "s3://bucket", "auth": keys, "everySeconds": 10}),
    ];
    for destination in &destinations {
        client
            .post(PIPELINES)
            .json(&pipeline(destination.clone()))
            .call()
            .await
            .expect(201);
    }
    hub.upload_events(1).await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    let suspended = loop {
        let listed: Vec<Value> = client.get(PIPELINES).call().await.expect(200).data();
        if listed.iter().all(|one| one["status"] == "SUSPENDED") {
            break listed;
        }
        assert!(tokio::time::Instant::now() < deadline, "{listed:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(suspended.len(), destinations.len());
    suspended
        .iter()
        .for_each(|one| assert_forbidden(&one["lastError"]));

    // The webhook of notices, which reports one of them.
    let target = format!("https://{host}/notices");
    let setting = json!({"type": "PIPELINE_FAILING", "channel": "WEBHOOK", "enabled": true, "target": target});
    client.put(NOTICES).json(&setting).call().await.expect(200);
    let failing = notices::FailingPipeline {
        tenant_uuid: tenant.tenant_uuid,
        pipeline_uuid: Uuid::nil(),
        name: "x".to_owned(),
        trouble: notices::Trouble::HasLost {
            from: app.app.clock.now(),
            to: app.app.clock.now(),
        },
    };
    notices::scan(&app.app, &[failing]).await.expect("a scan");
    perform(notices::WEBHOOKS).await;
    let mut conn = app.app.db.read().await.expect("a connection");
    let tried: i64 = hub_base::db::sql("SELECT attempts FROM notices WHERE channel = 'WEBHOOK'")
        .scalar(&mut conn)
        .await
        .expect("a count");
    assert_eq!(tried, 1, "it was tried, and failed");

    let connected = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(connected.is_err(), "somebody connected");
}

fn assert_forbidden(error: &Value) {
    assert!(
        error
            .as_str()
            .is_some_and(|error| error.contains("must not be called")),
        "{error}"
    );
}
