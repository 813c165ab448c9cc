//! `/tenant/external-endpoints`: servers of a tenant, and the proof that they are its own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::StatusCode;
use hub_core::config::Settings;
use hub_identity::authz::permission::Role;
use hub_tests::{Backend, Call, Options, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use tokio::net::{TcpListener, UdpSocket};
use uuid::Uuid;

const PATH: &str = "/tenant/external-endpoints";

fn at(endpoint: &Value) -> String {
    format!("{PATH}/{}", endpoint["id"].as_str().expect("a uuid"))
}

async fn verify(tenant: &Tenant, endpoint: &Value) -> Value {
    tenant
        .client
        .post(&format!("{}/verify", at(endpoint)))
        .call()
        .await
        .expect(200)
        .data()
}

/// What a server says for the proof.
type Said = Arc<Mutex<(StatusCode, String)>>;

/// A server that has one file.
async fn server() -> (String, Said) {
    let said: Said = Arc::new(Mutex::new((StatusCode::OK, String::new())));
    let answer = said.clone();
    let file = move |uri: axum::http::Uri| async move {
        match uri.path() {
            "/.well-known/hub-verify.txt" => answer.lock().expect("an answer").clone(),
            _ => (StatusCode::NOT_FOUND, String::new()),
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(file)).await });
    (url, said)
}

/// A name server that answers every question about text with this one; an empty one is none.
async fn name_server() -> (SocketAddr, Arc<Mutex<String>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let address = socket.local_addr().expect("an address");
    let text = Arc::new(Mutex::new(String::new()));
    let said = text.clone();
    tokio::spawn(async move {
        let mut query = [0; 512];
        while let Ok((_, from)) = socket.recv_from(&mut query).await {
            let end = 12
                + query[12..]
                    .iter()
                    .position(|byte| *byte == 0)
                    .expect("a name")
                + 5;
            let said = said.lock().expect("a text").clone();
            let has_text = !said.is_empty();
            let mut answer = query[..2].to_vec();
            answer.extend([0x85, 0x80, 0, 1, 0, u8::from(has_text), 0, 0, 0, 0]);
            answer.extend(&query[12..end]);
            if has_text {
                let length = u8::try_from(said.len()).expect("short");
                answer.extend([0xc0, 0x0c, 0, 16, 0, 1, 0, 0, 0, 0, 0, length + 1, length]);
                answer.extend(said.as_bytes());
            }
            let _ = socket.send_to(&answer, from).await;
        }
    });
    (address, text)
}

async fn development(backend: Backend, resolver: Option<SocketAddr>) -> TestApp {
    let settings = Settings {
        allow_private_targets: Some(true.into()),
        resolver,
        ..Settings::default()
    };
    TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await
}

on_each_database!(endpoint_is_proved_by_a_file_and_again_after_it_moved);
async fn endpoint_is_proved_by_a_file_and_again_after_it_moved(backend: Backend) {
    let app = development(backend, None).await;
    let tenant = Tenant::create(&app.client()).await;
    let (url, said) = server().await;
    let base = format!("{url}/api");
    let body = json!({"name": "Lamps", "baseUrl": base, "verify_method": "WELL_KNOWN",
        "authConfig": {"type": "BEARER", "token": "hunter2-hunter2"}});
    let made: Value = tenant
        .client
        .post(PATH)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&made["domain"], &made["domain_verified"]),
        (&json!("127.0.0.1"), &json!(false))
    );
    assert_eq!(
        (&made["verify_error"], &made["authConfig"]),
        (&Value::Null, &json!({"type": "BEARER"}))
    );
    let token = made["verify_token"].as_str().expect("a token").to_owned();

    let missing = verify(&tenant, &made).await;
    assert_eq!(missing["domain_verified"], false);
    assert!(
        missing["verify_error"]
            .as_str()
            .expect("a reason")
            .contains("does not contain the token")
    );
    *said.lock().expect("an answer") = (StatusCode::FOUND, token.clone());
    let redirected = verify(&tenant, &made).await;
    assert!(
        redirected["verify_error"]
            .as_str()
            .expect("a reason")
            .contains("302"),
        "{redirected}"
    );
    *said.lock().expect("an answer") = (StatusCode::OK, format!("hello\n  {token}\r\n"));
    let proved = verify(&tenant, &made).await;
    assert_eq!(
        (&proved["domain_verified"], &proved["verify_error"]),
        (&json!(true), &Value::Null)
    );
    assert!(proved["verifiedAt"].is_string(), "{proved}");

    // Without credentials, the ones there are stay. Another name changes nothing about the proof.
    let body =
        json!({"name": "Bulbs", "baseUrl": base, "verify_method": "WELL_KNOWN", "authConfig": {}});
    let renamed: Value = tenant
        .client
        .put(&at(&made))
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&renamed["name"], &renamed["domain_verified"]),
        (&json!("Bulbs"), &json!(true))
    );
    assert_eq!(
        (&renamed["authConfig"], &renamed["verify_token"]),
        (&json!({"type": "BEARER"}), &json!(token))
    );
    let body =
        json!({"name": "Bulbs", "baseUrl": format!("{url}/other"), "verify_method": "WELL_KNOWN"});
    let moved: Value = tenant
        .client
        .put(&at(&made))
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&moved["domain_verified"], &moved["verifiedAt"]),
        (&json!(false), &Value::Null)
    );
    assert_ne!(moved["verify_token"], token);
    assert_eq!(
        verify(&tenant, &made).await["domain_verified"],
        false,
        "the old token proves nothing"
    );

    let listed: Value = tenant.client.get(PATH).call().await.expect(200).data();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    let deleted: Value = tenant
        .client
        .delete(&at(&made))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(deleted, json!({"id": made["id"], "status": "deleted"}));
    tenant.client.get(&at(&made)).call().await.expect(404);
    let audit = tenant
        .client
        .get("/tenant/audit-logs")
        .call()
        .await
        .expect(200);
    assert!(!audit.json().to_string().contains("hunter2"));
}

on_each_database!(endpoint_is_proved_by_a_text_record);
async fn endpoint_is_proved_by_a_text_record(backend: Backend) {
    let (resolver, text) = name_server().await;
    let app = development(backend, Some(resolver)).await;
    let tenant = Tenant::create(&app.client()).await;
    let body =
        json!({"name": "Lamps", "baseUrl": "https://lamps.test", "verify_method": "DNS_TXT"});
    let made: Value = tenant
        .client
        .post(PATH)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&made["domain"], &made["authConfig"]),
        (&json!("lamps.test"), &Value::Null)
    );
    let missing = verify(&tenant, &made).await;
    assert_eq!(missing["domain_verified"], false);
    assert!(
        missing["verify_error"]
            .as_str()
            .expect("a reason")
            .contains("_hub-verify.lamps.test"),
        "{missing}"
    );

    let token = made["verify_token"].as_str().expect("a token").to_owned();
    *text.lock().expect("a text") = token;
    // The service remembers for a while that there was no record; another name is asked for anew.
    let body =
        json!({"name": "Lamps", "baseUrl": "https://LAMPS.test/", "verify_method": "DNS_TXT"});
    let same: Value = tenant
        .client
        .put(&at(&made))
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        same["verify_token"], made["verify_token"],
        "it is the same URL"
    );
    assert_eq!(verify(&tenant, &made).await["domain_verified"], true);
}

on_each_database!(endpoint_is_its_tenants_alone);
async fn endpoint_is_its_tenants_alone(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let stranger = Tenant::create(&app.client()).await;
    let body =
        json!({"name": "Lamps", "baseUrl": "https://lamps.invalid/", "verify_method": "DNS_TXT"});
    let made: Value = tenant
        .client
        .post(PATH)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    let one = at(&made);
    let verifying = format!("{one}/verify");
    stranger.client.get(&one).call().await.expect(404);
    stranger
        .client
        .put(&one)
        .json(&body)
        .call()
        .await
        .expect(404);
    stranger.client.post(&verifying).call().await.expect(404);
    stranger.client.delete(&one).call().await.expect(404);
    let operator = tenant.member(Role::Operator).await;
    operator.get(&one).call().await.expect(200);
    operator.post(&verifying).call().await.expect(403);
    operator.put(&one).json(&body).call().await.expect(403);

    // What uses it is named, and in the way.
    let transport = json!({"kind": "HTTP", "externalEndpointId": made["id"], "path": "/v1/on", "method": "POST"});
    let action = json!({"actionId": "light-up", "name": "On", "transport": transport});
    tenant
        .client
        .post("/tenant/action-definitions")
        .json(&action)
        .call()
        .await
        .expect(201);
    let refused = tenant
        .client
        .delete(&one)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "EXTERNAL_ENDPOINT_IN_USE");
    assert!(refused.message.contains("light-up"), "{}", refused.message);
    tenant
        .client
        .delete("/tenant/action-definitions/light-up")
        .call()
        .await
        .expect(200);
    tenant.client.delete(&one).call().await.expect(200);
    tenant
        .client
        .delete(&format!("{PATH}/{}", Uuid::new_v4()))
        .call()
        .await
        .expect(404);
}

on_each_database!(endpoint_that_leads_inside_is_refused);
async fn endpoint_that_leads_inside_is_refused(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let good =
        json!({"name": "Lamps", "baseUrl": "https://lamps.invalid/", "verify_method": "DNS_TXT"});
    for (field, value, named) in [
        ("baseUrl", json!("http://example.com/"), "baseUrl"),
        ("baseUrl", json!("https://127.0.0.1/"), "baseUrl"),
        ("baseUrl", json!("https://0x7f.1/"), "baseUrl"),
        ("baseUrl", json!("https://169.254.169.254/"), "baseUrl"),
        ("baseUrl", json!("https://[::ffff:10.0.0.1]/"), "baseUrl"),
        (
            "baseUrl",
            json!("https://user:secret@example.com/"),
            "baseUrl",
        ),
        ("baseUrl", json!("https://example.com/?a=b"), "baseUrl"),
        ("baseUrl", json!("https://example.com/#a"), "baseUrl"),
        ("name", json!(" "), "name"),
        ("verify_method", json!("MAIL"), "verify_method"),
        ("authConfig", json!({"type": "S3"}), "authConfig.type"),
        ("authConfig", json!({"type": "BEARER"}), "authConfig.token"),
        (
            "authConfig",
            json!({"type": "HEADER", "name": "Host", "value": "x"}),
            "authConfig.name",
        ),
        (
            "authConfig",
            json!({"type": "BASIC", "username": "a", "password": "b\n"}),
            "authConfig.password",
        ),
        ("authConfig", json!("BEARER"), "authConfig"),
    ] {
        let mut body = good.clone();
        body[field] = value;
        let refused = tenant
            .client
            .post(PATH)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(refused.errors[0].field, named, "{body}");
    }
    for number in 0..100 {
        let mut body = good.clone();
        body["name"] = json!(format!("Lamp {number}"));
        tenant
            .client
            .post(PATH)
            .json(&body)
            .call()
            .await
            .expect(200);
    }
    let refused = tenant
        .client
        .post(PATH)
        .json(&good)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "TOO_MANY_EXTERNAL_ENDPOINTS");
}
