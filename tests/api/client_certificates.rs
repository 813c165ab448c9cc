//! Hubs that connect with a certificate: which are let in, which are not, and that one can always
//! get another.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hub_core::config::{ClientCertificates, Settings};
use hub_fleet::certificates;
use hub_protocol::Timestamp;
use hub_protocol::claim::HubCredentials;
use hub_tests::app::set_clock;
use hub_tests::certificates::{HubCertificate, ServerCertificate, request};
use hub_tests::{
    Backend, Call, Client, Options, Reply, SimulatedHub, Tenant, TestApp, on_each_database,
};
use rcgen::{CertificateParams, DnType, KeyPair};
use reqwest::Method;
use serde_json::json;

struct Fleet {
    app: TestApp,
    server: ServerCertificate,
    clock_micros: Arc<AtomicI64>,
    tenant: Tenant,
}

impl Fleet {
    async fn new(backend: Backend, wanted: ClientCertificates) -> Self {
        let server = ServerCertificate::new();
        let (clock, clock_micros) = set_clock(Timestamp::from_micros(1_800_000_000_000_000));
        let settings = Settings {
            tls_cert: Some(server.certificate_file()),
            tls_key: Some(server.key_file()),
            client_certificates: Some(wanted),
            hub_token_lifetime: Some("1000d".to_owned()),
            ..Settings::default()
        };
        let app = TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                settings,
            },
        )
        .await;
        let tenant = Tenant::create(&server.client(&app.url, None)).await;
        Self {
            app,
            server,
            clock_micros,
            tenant,
        }
    }

    /// A service that was started just now.
    async fn replica(&self) -> TestApp {
        let settings = Settings {
            tls_cert: Some(self.server.certificate_file()),
            tls_key: Some(self.server.key_file()),
            client_certificates: Some(self.app.app.config.client_certificates),
            ..Settings::default()
        };
        let clock = Some(self.app.app.clock.clone());
        TestApp::replica_of(&self.app, Options { clock, settings }).await
    }

    /// A new hub that shows no certificate.
    async fn hub(&self) -> SimulatedHub {
        let code = self.tenant.claim_code().await;
        let anyone = self.server.client(&self.app.url, None);
        SimulatedHub::claim_with(&anyone, &code, &uuid::Uuid::new_v4().to_string()).await
    }

    /// The hub, on connections of their own, showing this certificate.
    fn showing(&self, hub: &SimulatedHub, shown: &HubCertificate) -> Client {
        let client = self.server.client(&self.app.url, Some(shown));
        client.bearer(&hub.credentials.access_token)
    }

    fn pass_days(&self, days: i64) {
        self.clock_micros
            .fetch_add(days * 24 * 3600 * 1_000_000, Ordering::Relaxed);
    }
}

/// One request of every kind that a hub makes with its token alone; answers the codes of those that
/// were refused.
async fn try_everything(client: &Client, hub: &SimulatedHub) -> Vec<String> {
    let hub_path = |end: &str| format!("/v1/hubs/{}/{end}", hub.hub_uuid);
    let mut codes = Vec::new();
    for (method, path, body) in [
        (Method::GET, "/v1/test".to_owned(), None),
        (Method::GET, "/v1/hubs/scan-config".to_owned(), None),
        (Method::GET, hub_path("desired-state"), None),
        (
            Method::POST,
            "/v1/hubs/adapters".to_owned(),
            Some(json!({"adapters": []})),
        ),
        (
            Method::POST,
            hub_path("logs"),
            Some(json!({"message": "x"})),
        ),
        (
            Method::POST,
            hub_path("telemetry"),
            Some(json!({"load": 1})),
        ),
        (
            Method::POST,
            "/v1/ble/events".to_owned(),
            Some(json!({"batchUuid": uuid::Uuid::new_v4(), "events": []})),
        ),
    ] {
        let request = client.request(method, &path);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let reply = request.call().await;
        if !reply.status.is_success() {
            codes.push(reply.expect(401).problem().code);
        }
    }
    codes
}

#[track_caller]
fn assert_all(codes: &[String], expected: &str) {
    assert_eq!(codes, vec![expected.to_owned(); 7]);
}

on_each_database!(hub_without_a_certificate_obtains_one_and_connects_with_it);
async fn hub_without_a_certificate_obtains_one_and_connects_with_it(backend: Backend) {
    let fleet = Fleet::new(backend, ClientCertificates::Required).await;
    let hub = fleet.hub().await;
    assert_all(
        &try_everything(&hub.client, &hub).await,
        "CLIENT_CERTIFICATE_REQUIRED",
    );
    let refresh = json!({"refreshToken": hub.credentials.refresh_token});
    let refreshed = hub
        .client
        .post("/v1/hubs/refresh")
        .json(&refresh)
        .call()
        .await
        .expect(200)
        .json();
    let token = refreshed["data"]["accessToken"].as_str().expect("a token");
    let mut hub = hub;
    hub.credentials.access_token = token.to_owned();
    hub.client = hub.client.bearer(token);
    hub.client
        .get("/v1/hubs/ca-bundle")
        .call()
        .await
        .expect(200);
    let certificate = hub.certificate().await;
    let connected = fleet.showing(&hub, &certificate);
    assert!(try_everything(&connected, &hub).await.is_empty());
    // The certificate alone, without the one that issued it, will do.
    let alone = Some((
        certificate.key.clone(),
        certificate.issued.certificate.clone(),
    ));
    let alone = fleet
        .server
        .client_showing(&fleet.app.url, alone)
        .bearer(token);
    assert!(try_everything(&alone, &hub).await.is_empty());
    // It stands in for no token.
    let without_token = fleet.server.client(&fleet.app.url, Some(&certificate));
    assert_eq!(
        without_token
            .get("/v1/test")
            .call()
            .await
            .expect(401)
            .problem()
            .code,
        "UNAUTHENTICATED"
    );
    // Nobody else needs one.
    fleet
        .tenant
        .client
        .get("/tenant/hubs")
        .call()
        .await
        .expect(200);
    fleet
        .server
        .client(&fleet.app.url, None)
        .get("/healthz")
        .call()
        .await
        .expect(200);
}

on_each_database!(certificate_of_another_hub_is_refused);
async fn certificate_of_another_hub_is_refused(backend: Backend) {
    for wanted in [ClientCertificates::Optional, ClientCertificates::Required] {
        let fleet = Fleet::new(backend, wanted).await;
        let (hub, other) = (fleet.hub().await, fleet.hub().await);
        let stolen = other.certificate().await;
        let codes = try_everything(&fleet.showing(&hub, &stolen), &hub).await;
        assert_all(&codes, "CLIENT_CERTIFICATE_OF_OTHER_HUB");
        if wanted == ClientCertificates::Optional {
            assert!(
                try_everything(&hub.client, &hub).await.is_empty(),
                "none is needed"
            );
        }
        assert!(
            try_everything(&fleet.showing(&other, &stolen), &other)
                .await
                .is_empty()
        );
    }
}

on_each_database!(revoked_certificate_is_refused_and_can_be_replaced);
async fn revoked_certificate_is_refused_and_can_be_replaced(backend: Backend) {
    let fleet = Fleet::new(backend, ClientCertificates::Required).await;
    let mut hub = fleet.hub().await;
    let old = hub.certificate().await;
    let connected = fleet.showing(&hub, &old);
    assert!(try_everything(&connected, &hub).await.is_empty());
    // Over the same connections, with the old certificate: it claims itself again, is refused, and
    // gets another one.
    let code = fleet.tenant.claim_code().await;
    let again = SimulatedHub::claim_with(&connected, &code, &hub.device_instance_id).await;
    assert_eq!(again.hub_uuid, hub.hub_uuid);
    hub = again;
    assert_all(
        &try_everything(&hub.client, &hub).await,
        "CLIENT_CERTIFICATE_REVOKED",
    );
    let new = hub.certificate().await;
    assert!(
        try_everything(&fleet.showing(&hub, &new), &hub)
            .await
            .is_empty()
    );
}

on_each_database!(expired_certificate_is_refused_and_can_be_replaced);
async fn expired_certificate_is_refused_and_can_be_replaced(backend: Backend) {
    let fleet = Fleet::new(backend, ClientCertificates::Required).await;
    let mut hub = fleet.hub().await;
    let old = hub.certificate().await;
    let connected = fleet.showing(&hub, &old);
    fleet.pass_days(89);
    assert!(try_everything(&connected, &hub).await.is_empty());
    fleet.pass_days(2);
    assert_all(
        &try_everything(&connected, &hub).await,
        "CLIENT_CERTIFICATE_EXPIRED",
    );
    // A new connection gets the same response, and is not just cut off.
    hub.client = fleet.showing(&hub, &old);
    assert_all(
        &try_everything(&hub.client, &hub).await,
        "CLIENT_CERTIFICATE_EXPIRED",
    );
    let new = hub.certificate().await;
    assert!(
        try_everything(&fleet.showing(&hub, &new), &hub)
            .await
            .is_empty()
    );
}

#[track_caller]
fn code_of(reply: &Reply) -> String {
    assert_eq!(reply.status, 401, "{}", reply.body);
    reply.problem().code
}

on_each_database!(stolen_token_gets_no_certificate_where_one_is_required);
async fn stolen_token_gets_no_certificate_where_one_is_required(backend: Backend) {
    let fleet = Fleet::new(backend, ClientCertificates::Required).await;
    let mut hub = fleet.hub().await;
    let thief = hub.clone();
    let (key, csr) = request();
    hub.ask_for_certificate(&csr).await.expect(200);
    // Its answer was lost: the hub asks again, with the same key.
    let issued = hub.ask_for_certificate(&csr).await.expect(200).data();
    let first = HubCertificate { key, issued };

    for _ in 0..2 {
        let refused = thief.ask_for_certificate(&request().1).await;
        assert_eq!(code_of(&refused), "CLIENT_CERTIFICATE_REQUIRED");
        assert!(
            refused.problem().message.contains("claim the hub again"),
            "{}",
            refused.body
        );
    }
    let neighbour = fleet.hub().await;
    let stolen = neighbour.certificate().await;
    let disguised = SimulatedHub {
        client: fleet.showing(&hub, &stolen),
        ..hub.clone()
    };
    let refused = disguised.ask_for_certificate(&request().1).await;
    assert_eq!(code_of(&refused), "CLIENT_CERTIFICATE_OF_OTHER_HUB");

    // The hub renews it, with the one in force. From then on the first key gets nothing any more.
    hub.client = fleet.showing(&hub, &first);
    let renewed = hub.certificate().await;
    assert_eq!(
        code_of(&thief.ask_for_certificate(&csr).await),
        "CLIENT_CERTIFICATE_REQUIRED"
    );
    assert!(
        try_everything(&fleet.showing(&hub, &renewed), &hub)
            .await
            .is_empty()
    );
    assert_all(
        &try_everything(&thief.client, &hub).await,
        "CLIENT_CERTIFICATE_REQUIRED",
    );

    // A hub that lost its key claims again, with its own proof, and begins anew.
    let several = json!({"maxUses": 5});
    let code = fleet
        .tenant
        .client
        .post("/tenant/hubs/claim-codes")
        .json(&several)
        .call()
        .await
        .expect(200)
        .json();
    let body = json!({"claimCode": code["data"]["claimCode"], "deviceInstanceId": hub.device_instance_id,
        "refreshToken": hub.credentials.refresh_token});
    let anyone = fleet.server.client(&fleet.app.url, None);
    let again: HubCredentials = anyone
        .post("/v1/hubs/claim")
        .json(&body)
        .call()
        .await
        .expect(201)
        .data();
    let hub = SimulatedHub {
        client: anyone.bearer(&again.access_token),
        credentials: again,
        ..hub
    };
    let certificate = hub.certificate().await;
    assert!(
        try_everything(&fleet.showing(&hub, &certificate), &hub)
            .await
            .is_empty()
    );
    assert_eq!(
        code_of(&hub.ask_for_certificate(&request().1).await),
        "CLIENT_CERTIFICATE_REQUIRED"
    );
}

on_each_database!(readmitted_hub_gets_a_first_certificate_again);
/// Its image was restored, from before its first certificate.
async fn readmitted_hub_gets_a_first_certificate_again(backend: Backend) {
    let fleet = Fleet::new(backend, ClientCertificates::Required).await;
    let hub = fleet.hub().await;
    let before = hub.certificate().await;
    let refused = hub.ask_for_certificate(&request().1).await;
    assert_eq!(code_of(&refused), "CLIENT_CERTIFICATE_REQUIRED");
    let path = format!("/tenant/hubs/{}/readmit", hub.hub_uuid);
    let readmit = fleet.tenant.client.post(&path).json(&json!({}));
    readmit.call().await.expect(200);
    let again = hub.certificate().await;
    for certificate in [&before, &again] {
        let codes = try_everything(&fleet.showing(&hub, certificate), &hub).await;
        assert!(codes.is_empty(), "{codes:?}");
    }
    let thief = hub.ask_for_certificate(&request().1).await;
    assert_eq!(code_of(&thief), "CLIENT_CERTIFICATE_REQUIRED");
}

on_each_database!(certificate_that_expired_lately_is_renewed);
async fn certificate_that_expired_lately_is_renewed(backend: Backend) {
    let fleet = Fleet::new(backend, ClientCertificates::Required).await;
    let (early, late) = (fleet.hub().await, fleet.hub().await);
    let (of_early, of_late) = (early.certificate().await, late.certificate().await);
    // Under a root that has been replaced meanwhile.
    assert!(
        certificates::rotate_root(&fleet.app.app)
            .await
            .expect("a new root")
    );
    fleet.pass_days(90 + 29);
    let replica = fleet.replica().await;
    let showing = |hub: &SimulatedHub, shown: &HubCertificate| {
        let client = fleet
            .server
            .client(&replica.url, Some(shown))
            .bearer(&hub.credentials.access_token);
        SimulatedHub {
            client,
            ..hub.clone()
        }
    };
    let (showing_early, showing_late) = (showing(&early, &of_early), showing(&late, &of_late));
    showing_early.certificate().await;
    assert_eq!(
        code_of(&early.ask_for_certificate(&request().1).await),
        "CLIENT_CERTIFICATE_REQUIRED"
    );
    // Connected in time, and late all the same.
    showing_late
        .client
        .get("/v1/hubs/ca-bundle")
        .call()
        .await
        .expect(200);
    fleet.pass_days(2);
    let refused = showing_late.ask_for_certificate(&request().1).await;
    assert_eq!(code_of(&refused), "CLIENT_CERTIFICATE_EXPIRED");
}

on_each_database!(certificate_needs_no_other_where_none_is_required);
async fn certificate_needs_no_other_where_none_is_required(backend: Backend) {
    for wanted in [ClientCertificates::Off, ClientCertificates::Optional] {
        let fleet = Fleet::new(backend, wanted).await;
        let hub = fleet.hub().await;
        hub.certificate().await;
        hub.certificate().await;
    }
}

on_each_database!(certificate_of_an_unknown_authority_cannot_connect);
async fn certificate_of_an_unknown_authority_cannot_connect(backend: Backend) {
    let fleet = Fleet::new(backend, ClientCertificates::Optional).await;
    let hub = fleet.hub().await;
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, hub.hub_uuid.to_string());
    let forged = params.self_signed(&key).expect("a certificate").pem();
    let client = fleet
        .server
        .client_showing(&fleet.app.url, Some((key.serialize_pem(), forged)));
    let answer = client
        .bearer(&hub.credentials.access_token)
        .get("/v1/test")
        .try_call()
        .await;
    assert!(answer.is_err(), "{answer:?}");
}

on_each_database!(new_root_is_accepted_without_a_restart);
async fn new_root_is_accepted_without_a_restart(backend: Backend) {
    let fleet = Fleet::new(backend, ClientCertificates::Required).await;
    let mut hub = fleet.hub().await;
    let old = hub.certificate().await;
    // Another process makes it.
    let other = TestApp::replica_of(
        &fleet.app,
        Options {
            clock: Some(fleet.app.app.clock.clone()),
            ..Options::default()
        },
    );
    assert!(
        certificates::rotate_root(&other.await.app)
            .await
            .expect("a new root")
    );
    fleet.clock_micros.fetch_add(61_000_000, Ordering::Relaxed);
    hub.client = fleet.showing(&hub, &old);
    let new = hub.certificate().await;
    assert_ne!(new.issued.chain, old.issued.chain);
    // In operation there is a minute between the two.
    let connects = async {
        let connected = fleet.showing(&hub, &new);
        while connected.get("/v1/test").try_call().await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), connects)
        .await
        .expect("the new root is known");
    for certificate in [&old, &new] {
        assert!(
            try_everything(&fleet.showing(&hub, certificate), &hub)
                .await
                .is_empty()
        );
    }
}

on_each_database!(certificates_are_not_requested_where_they_are_disabled);
async fn certificates_are_not_requested_where_they_are_disabled(backend: Backend) {
    let fleet = Fleet::new(backend, ClientCertificates::Off).await;
    let (hub, other) = (fleet.hub().await, fleet.hub().await);
    let certificate = other.certificate().await;
    assert!(
        try_everything(&fleet.showing(&hub, &certificate), &hub)
            .await
            .is_empty()
    );
}
