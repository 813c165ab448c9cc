//! Lists of packages and releases that hubs run reach a server of Dependency-Track.

use std::sync::atomic::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_base::db::sql;
use hub_core::tasks::Done;
use hub_exposure::dependency_track;
use hub_tests::app::{perform, set_clock};
use hub_tests::receiver::{Answer, Received, Receiver};
use hub_tests::{Backend, Call, Options, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

use super::release_documents::{Place, cyclonedx};
use super::vulnerabilities::{get, image, package, runs};

const PATH: &str = "/tenant/dependency-track";
const BOM: &str = "/api/v1/bom";
const KEY: &str = "odt_a1b2c3";
const SECOND: i64 = 1_000_000;

fn options() -> Options {
    let mut options = Options::default();
    options.settings.allow_private_targets = Some(true.into());
    options
}

async fn set(tenant: &Tenant, url: &str, project: &str) -> Value {
    let body = json!({"url": url, "project": project, "apiKey": KEY});
    let set = tenant.client.put(PATH).json(&body).call().await.expect(200);
    assert!(!set.body.contains(KEY), "{}", set.body);
    set.data()
}

async fn send(app: &TestApp, tenant: &Tenant) -> Done {
    let payload = json!({"tenantUuid": tenant.tenant_uuid});
    perform(&app.app, dependency_track::SEND, payload).await
}

/// The document of an upload.
fn document(received: &Received) -> Value {
    let body = received.json();
    let packed = body["bom"].as_str().expect("a document");
    let document = STANDARD.decode(packed).expect("base64");
    serde_json::from_slice(&document).expect("JSON")
}

on_each_database!(each_list_is_sent_once);
async fn each_list_is_sent_once(backend: Backend) {
    let app = TestApp::with(backend, options()).await;
    let tenant = Tenant::create(&app.client()).await;
    let receiver = Receiver::start().await;
    let (one, other) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let old = image(vec![
        package("openssl", "3.0.11-1"),
        package("bash", "5.2.15-2"),
    ]);
    runs(&one, &old).await;
    runs(&other, &old).await;

    // Nothing is set yet.
    let nothing = get(&tenant.client, PATH).await;
    assert_eq!(
        (&nothing["url"], &nothing["waiting"]),
        (&Value::Null, &json!(0))
    );
    assert_eq!(send(&app, &tenant).await, Done::Finished);

    let shown = set(&tenant, &receiver.url, "Roof").await;
    assert_eq!((&shown["sent"], &shown["waiting"]), (&json!(0), &json!(1)));
    send(&app, &tenant).await;
    send(&app, &tenant).await;
    let received = receiver.take();
    let [upload] = received.as_slice() else {
        panic!("{} uploads", received.len())
    };
    assert_eq!(
        (upload.path.as_str(), upload.header("x-api-key")),
        (BOM, KEY)
    );
    let body = upload.json();
    assert_eq!(
        (&body["projectName"], &body["autoCreate"]),
        (&json!("Roof"), &json!(true))
    );
    let version = body["projectVersion"].as_str().expect("a version");
    assert!(version.starts_with("debian-12-"), "{version}");
    let sent = document(upload);
    assert_eq!(sent["bomFormat"], "CycloneDX");
    assert_eq!(
        sent["components"][1]["purl"],
        "pkg:deb/debian/openssl@3.0.11-1?arch=arm64&distro=debian-12"
    );

    // A hub gets another image. The server has both, until no hub runs the old one.
    runs(&one, &image(vec![package("openssl", "3.0.13-1")])).await;
    send(&app, &tenant).await;
    assert_eq!(receiver.take().len(), 1);
    let shown = get(&tenant.client, PATH).await;
    assert_eq!((&shown["sent"], &shown["waiting"]), (&json!(2), &json!(0)));
    runs(&other, &image(vec![package("openssl", "3.0.13-1")])).await;
    send(&app, &tenant).await;
    assert_eq!(receiver.take().len(), 0);
    assert_eq!(get(&tenant.client, PATH).await["sent"], 1);

    // Another project gets everything again.
    set(&tenant, &receiver.url, "Cellar").await;
    send(&app, &tenant).await;
    assert_eq!(receiver.take().len(), 1);

    // It is nobody else's, and gone when it is removed.
    let stranger = Tenant::create(&app.client()).await;
    assert_eq!(get(&stranger.client, PATH).await["url"], Value::Null);
    tenant.client.delete(PATH).call().await.expect(204);
    tenant.client.delete(PATH).call().await.expect(204);
    assert_eq!(get(&tenant.client, PATH).await["url"], Value::Null);
    assert_eq!(send(&app, &tenant).await, Done::Finished);
}

on_each_database!(releases_are_versions_of_the_project_of_their_app);
async fn releases_are_versions_of_the_project_of_their_app(backend: Backend) {
    let place = Place::with(backend, options()).await;
    let receiver = Receiver::start().await;
    let hub = SimulatedHub::claim(&place.tenant).await;
    let declared = cyclonedx(&["pkg:cargo/serde@1.0.1"]);
    let spdx = json!({"spdxVersion": "SPDX-2.3", "packages": [
        {"SPDXID": "SPDXRef-1", "name": "hyper", "versionInfo": "0.14.10", "externalRefs": [
            {"referenceType": "purl", "referenceLocator": "pkg:cargo/hyper@0.14.10"}]}]});
    let runs_it = place.release(1, Some(&declared), None).await;
    let unused = place.release(2, Some(&declared), None).await;
    place.release(3, Some(&spdx), None).await;
    place.install(&hub, &runs_it).await;
    let counts = async || get(&place.tenant.client, PATH).await["releases"].take();
    assert_eq!(
        counts().await,
        json!({"sent": 0, "refused": 0, "waiting": 0}),
        "no server is set"
    );
    set(&place.tenant, &receiver.url, "hubs").await;
    assert_eq!(
        counts().await,
        json!({"sent": 0, "refused": 0, "waiting": 2})
    );

    // What a hub runs, and the newest.
    let sent = async || {
        send(&place.app, &place.tenant).await;
        let mut received: Vec<(Value, Value, Vec<u8>)> = receiver
            .take()
            .iter()
            .map(|one| {
                let body = one.json();
                let packed = body["bom"].as_str().expect("a document");
                let document = STANDARD.decode(packed).expect("base64");
                (
                    body["projectName"].clone(),
                    body["projectVersion"].clone(),
                    document,
                )
            })
            .collect();
        received.sort_by_key(|(_, version, _)| version.to_string());
        received
    };
    let received = sent().await;
    let [declared_one, made] = received.as_slice() else {
        panic!("{} uploads", received.len())
    };
    assert_eq!(
        (&declared_one.0, &declared_one.1),
        (&json!("logger"), &json!("1.0.1"))
    );
    assert_eq!(declared_one.2, declared.to_string().into_bytes());
    assert_eq!(made.1, json!("1.0.3"));
    let document: Value = serde_json::from_slice(&made.2).expect("JSON");
    assert_eq!(document["bomFormat"], "CycloneDX");
    assert_eq!(document["components"][0]["purl"], "pkg:cargo/hyper@0.14.10");
    assert!(sent().await.is_empty(), "each is sent once");

    // The hub gets another one.
    place.install(&hub, &unused).await;
    let received = sent().await;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].1, json!("1.0.2"));
    assert_eq!(
        counts().await,
        json!({"sent": 2, "refused": 0, "waiting": 0})
    );

    // One that the server refuses is not sent again.
    place.release(4, Some(&declared), None).await;
    receiver.answer(|_| Answer::now(413));
    assert_eq!(sent().await.len(), 1);
    assert!(sent().await.is_empty());
    assert_eq!(
        counts().await,
        json!({"sent": 1, "refused": 1, "waiting": 0})
    );
    let stranger = Tenant::create(&place.app.client()).await;
    set(&stranger, &receiver.url, "hubs").await;
    send(&place.app, &stranger).await;
    assert!(receiver.take().is_empty(), "releases of another tenant");
}

on_each_database!(server_that_fails_is_left_alone_for_a_while);
async fn server_that_fails_is_left_alone_for_a_while(backend: Backend) {
    let start = "2026-01-31T08:00:00Z".parse().expect("a time");
    let (clock, micros) = set_clock(start);
    let options = Options {
        clock: Some(clock),
        ..options()
    };
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let receiver = Receiver::start().await;
    let hub = SimulatedHub::claim(&tenant).await;
    runs(&hub, &image(vec![package("bash", "5.2.15-2")])).await;
    set(&tenant, &receiver.url, "hubs").await;

    receiver.answer(|_| Answer::now(401));
    send(&app, &tenant).await;
    send(&app, &tenant).await;
    assert_eq!(receiver.take().len(), 1, "it is tried again later");
    let shown = get(&tenant.client, PATH).await;
    assert_eq!(shown["failingSince"], "2026-01-31T08:00:00.000000Z");
    let error = shown["lastError"].as_str().expect("an error");
    assert!(
        error.contains("401") && error.contains("BOM_UPLOAD"),
        "{error}"
    );
    assert_eq!(shown["retryAt"], "2026-01-31T08:01:00.000000Z");

    micros.fetch_add(61 * SECOND, Ordering::Relaxed);
    receiver.answer(|_| Answer::now(503));
    send(&app, &tenant).await;
    assert_eq!(receiver.take().len(), 1);
    let shown = get(&tenant.client, PATH).await;
    assert_eq!(shown["retryAt"], "2026-01-31T08:03:01.000000Z");
    assert_eq!(shown["failingSince"], "2026-01-31T08:00:00.000000Z");

    // A list that is refused does not hold back the others, and is not sent again.
    micros.fetch_add(121 * SECOND, Ordering::Relaxed);
    receiver.answer(|_| Answer::now(400));
    send(&app, &tenant).await;
    let next = SimulatedHub::claim(&tenant).await;
    runs(&next, &image(vec![package("bash", "5.2.15-3")])).await;
    receiver.answer(|_| Answer::now(200));
    send(&app, &tenant).await;
    assert_eq!(receiver.take().len(), 2);
    let shown = get(&tenant.client, PATH).await;
    assert_eq!(
        (&shown["sent"], &shown["refused"], &shown["waiting"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert_eq!(shown["retryAt"], Value::Null);
    assert_eq!(shown["failingSince"], Value::Null);
}

on_each_database!(key_is_sealed_and_goes_with_the_tenant);
async fn key_is_sealed_and_goes_with_the_tenant(backend: Backend) {
    let app = TestApp::with(backend, options()).await;
    let tenant = Tenant::create(&app.client()).await;
    for (wrong, field) in [
        (
            json!({"url": "ftp://a", "project": "p", "apiKey": "k"}),
            "url",
        ),
        (
            json!({"url": "https://a.example/?x=1", "project": "p", "apiKey": "k"}),
            "url",
        ),
        (
            json!({"url": "https://a.example", "project": " ", "apiKey": "k"}),
            "project",
        ),
        (
            json!({"url": "https://a.example", "project": "p", "apiKey": ""}),
            "apiKey",
        ),
        (
            json!({"url": "https://a.example", "project": "p", "apiKey": "a\r\nb: c"}),
            "apiKey",
        ),
    ] {
        let refused = tenant.client.put(PATH).json(&wrong).call().await;
        let problem = refused.expect(400).problem();
        assert_eq!(problem.errors[0].field, field, "{wrong}");
    }
    set(&tenant, "https://dtrack.example.com", "hubs").await;
    let sealed = async || -> Vec<Vec<u8>> {
        let mut conn = app.app.db.read().await.expect("a connection");
        sql("SELECT sealed_api_key FROM dependency_track_servers")
            .scalars(&mut conn)
            .await
            .expect("rows")
    };
    let stored = sealed().await;
    assert_eq!(stored.len(), 1);
    let holds_key = stored
        .iter()
        .any(|bytes| bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()));
    assert!(!holds_key);
    let path = format!("/tenant/tenants/{}", tenant.tenant_uuid);
    tenant.owner.client.delete(&path).call().await.expect(200);
    assert!(sealed().await.is_empty());
}
