//! `/tenant/billing`: what another service says, passed on to the tenant whose it is.

use std::time::{Duration, Instant};

use hub_core::config::Settings;
use hub_identity::authz::permission::Role;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::documented::DOCUMENT;
use hub_tests::supplier::End;
use hub_tests::{
    Backend, Call, Options, Supplier, SupplierAnswer, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};

const NOON: i64 = 1_800_014_400_000_000;
const TOKEN: &str = "the token of the billing service";
const BALANCE: &str = "/tenant/billing/balance";
const ENTITLEMENT: &str = "/tenant/billing/entitlement";
const TRANSACTIONS: &str = "/tenant/billing/transactions";
const CHARGE_SETTINGS: &str = "/tenant/billing/charge-settings";

struct World {
    app: TestApp,
    tenant: Tenant,
    billing: Supplier,
}

async fn app(backend: Backend, billing_url: Option<String>) -> TestApp {
    let billing_token = billing_url.is_some().then(|| TOKEN.to_owned());
    // Addresses of tenants have to be public; that of the operator need not be.
    let settings = Settings {
        billing_url,
        billing_token,
        ..Settings::default()
    };
    let (clock, _) = set_clock(Timestamp::from_micros(NOON));
    TestApp::with(
        backend,
        Options {
            settings,
            clock: Some(clock),
        },
    )
    .await
}

impl World {
    async fn new(backend: Backend) -> Self {
        let billing = Supplier::start().await;
        let app = app(backend, Some(format!("{}/v2/", billing.url))).await;
        let tenant = Tenant::create(&app.client()).await;
        billing.say_otherwise(SupplierAnswer::json(
            200,
            json!({"currentCreditCents": 1250}),
        ));
        Self {
            app,
            tenant,
            billing,
        }
    }
}

on_each_database!(json_of_the_billing_service_is_passed_on);
async fn json_of_the_billing_service_is_passed_on(backend: Backend) {
    let World {
        app,
        tenant,
        billing,
    } = World::new(backend).await;
    let exact =
        r#"{"currentCreditCents": 12345678901234567890.10, "lastInvoice": null, "z": 1, "a": "é"}"#;
    billing.say_otherwise(SupplierAnswer {
        body: format!(" {exact}\n"),
        ..SupplierAnswer::json(200, json!({}))
    });
    let reply = tenant.client.get(BALANCE).call().await.expect(200);
    assert_eq!(
        reply.body,
        format!("{{\"data\":{exact}}}"),
        "to the last digit"
    );
    assert_eq!(reply.header("cache-control"), "no-store");
    let asked = billing.take_all().remove(0);
    assert_eq!(
        asked.path,
        format!("/v2/tenants/{}/balance", tenant.tenant_uuid)
    );
    assert_eq!((asked.query.as_str(), asked.body.len()), ("", 0));
    assert_eq!(asked.headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(asked.headers["x-request-id"], reply.header("x-request-id"));
    let headers = format!("{:?}", asked.headers);
    assert!(
        !headers.contains(&tenant.owner.login.access_token),
        "nobody's token but the service's own: {headers}"
    );

    let own = format!("{ENTITLEMENT}?tenantUuid={}", tenant.tenant_uuid);
    tenant.client.get(&own).call().await.expect(200);
    assert_eq!(
        billing.take_all()[0].path,
        format!("/v2/tenants/{}/entitlement", tenant.tenant_uuid)
    );

    for (given, expected) in [
        ("", "limit=50".to_owned()),
        ("?limit=1", "limit=1".to_owned()),
        ("?limit=100&cursor=", "limit=100".to_owned()),
        (
            "?cursor=2026-01-31T09:30:00.123456789%2B01:00&other=1",
            "limit=50&cursor=2026-01-31T09%3A30%3A00.123456789%2B01%3A00".to_owned(),
        ),
    ] {
        tenant
            .client
            .get(&format!("{TRANSACTIONS}{given}"))
            .call()
            .await
            .expect(200);
        assert_eq!(billing.take_all()[0].query, expected, "{given}");
    }
    for (given, field) in [
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=101", "limit"),
        ("limit=many", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("cursor=yesterday", "cursor"),
        ("cursor=2026-02-30T00:00:00Z", "cursor"),
        ("cursor=2026-01-31T09:30:00Z%0d%0aX-Other:%201", "cursor"),
        ("cursor=%00", "cursor"),
    ] {
        let problem = tenant
            .client
            .get(&format!("{TRANSACTIONS}?{given}"))
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{given}");
    }
    assert!(billing.take_all().is_empty(), "what is wrong is not asked");

    for settings in [
        tenant.client.get(CHARGE_SETTINGS),
        tenant.client.put(CHARGE_SETTINGS),
    ] {
        let charge: Value = settings.call().await.expect(200).data();
        assert!(
            charge
                .as_object()
                .expect("a map")
                .values()
                .all(Value::is_string),
            "{charge}"
        );
        assert_eq!(charge["status"], "MOVED");
    }
    assert!(billing.take_all().is_empty(), "nothing is changed there");
    for method in ["get", "put"] {
        assert_eq!(
            DOCUMENT["paths"][CHARGE_SETTINGS][method]["deprecated"], true,
            "{method}"
        );
    }
    drop(app);
}

on_each_database!(a_tenant_sees_its_own_billing_alone);
async fn a_tenant_sees_its_own_billing_alone(backend: Backend) {
    let World {
        app,
        tenant,
        billing,
    } = World::new(backend).await;
    let other = Tenant::create(&app.client()).await;
    let foreign = format!("{ENTITLEMENT}?tenantUuid={}", other.tenant_uuid);
    assert_eq!(
        tenant
            .client
            .get(&foreign)
            .call()
            .await
            .expect(403)
            .problem()
            .code,
        "OTHER_TENANT"
    );
    tenant
        .client
        .get(&format!("{ENTITLEMENT}?tenantUuid=mine"))
        .call()
        .await
        .expect(400);
    let stranger = other.owner.client.tenant(tenant.tenant_uuid);
    let viewer = tenant.member(Role::Viewer).await;
    let (reads, writes) = (
        json!({"scopes": ["billing:read"]}),
        json!({"scopes": ["hubs:read"]}),
    );
    let (key, other_key) = (
        tenant.api_key(reads).await.client,
        tenant.api_key(writes).await.client,
    );
    for path in [BALANCE, ENTITLEMENT, TRANSACTIONS, CHARGE_SETTINGS] {
        stranger.get(path).call().await.expect(403);
        other_key.get(path).call().await.expect(403);
        app.client()
            .tenant(tenant.tenant_uuid)
            .get(path)
            .call()
            .await
            .expect(401);
    }
    assert!(billing.take_all().is_empty());
    for path in [BALANCE, ENTITLEMENT, TRANSACTIONS, CHARGE_SETTINGS] {
        viewer.get(path).call().await.expect(200);
        key.get(path).call().await.expect(200);
    }
    for may_not in [viewer, key] {
        may_not.put(CHARGE_SETTINGS).call().await.expect(403);
    }
    let own = tenant.tenant_uuid.to_string();
    assert!(
        billing
            .take_all()
            .iter()
            .all(|asked| asked.path.contains(&own))
    );
}

on_each_database!(a_billing_service_that_misbehaves_is_reported);
async fn a_billing_service_that_misbehaves_is_reported(backend: Backend) {
    let World {
        app,
        tenant,
        billing,
    } = World::new(backend).await;
    let deep = format!("{}{}", "{\"a\":".repeat(100), "}".repeat(100));
    let text = |body: &str| SupplierAnswer {
        body: body.to_owned(),
        ..SupplierAnswer::json(200, json!({}))
    };
    let failures = [
        SupplierAnswer::html(200),
        SupplierAnswer::html(500),
        SupplierAnswer::json(500, json!({"error": "the database said: hunter2"})),
        SupplierAnswer::json(404, json!({})),
        SupplierAnswer::json(401, json!({"token": TOKEN})),
        SupplierAnswer::redirect(),
        SupplierAnswer::json(200, json!([1])),
        text(""),
        text("{"),
        text("{} {}"),
        text(&deep),
        SupplierAnswer::lost(),
        SupplierAnswer::endless(End::Never),
    ];
    billing.say_otherwise(SupplierAnswer::html(500));
    for path in [ENTITLEMENT, TRANSACTIONS] {
        tenant.client.get(path).call().await.expect(502);
    }
    for said in failures {
        billing.say_otherwise(said.clone());
        let reply = tenant.client.get(BALANCE).call().await.expect(502);
        assert_eq!(reply.problem().code, "BILLING_FAILED", "{said:?}");
        assert!(
            !reply.body.contains("sorry") && !reply.body.contains("hunter2"),
            "{}",
            reply.body
        );
    }
    assert!(
        !billing.take_all().iter().any(|asked| asked.path == "/"),
        "a redirect is not followed"
    );
    for said in [SupplierAnswer::never(), SupplierAnswer::endless(End::Drips)] {
        billing.say_otherwise(said);
        let began = Instant::now();
        let ask = |path: &str| tenant.client.get(path).call();
        let replies = tokio::join!(ask(BALANCE), ask(ENTITLEMENT), ask(TRANSACTIONS));
        for reply in [replies.0, replies.1, replies.2] {
            assert_eq!(reply.expect(504).problem().code, "BILLING_TIMED_OUT");
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
    }
    billing.say_otherwise(SupplierAnswer::json(200, json!({"transactions": []})));
    tenant.client.get(TRANSACTIONS).call().await.expect(200);
    drop(app);
}

on_each_database!(billing_that_is_not_there_is_named);
async fn billing_that_is_not_there_is_named(backend: Backend) {
    let without = app(backend, None).await;
    let tenant = Tenant::create(&without.client()).await;
    let mut replies = vec![tenant.client.put(CHARGE_SETTINGS).call().await.expect(503)];
    for path in [BALANCE, ENTITLEMENT, TRANSACTIONS, CHARGE_SETTINGS] {
        replies.push(tenant.client.get(path).call().await.expect(503));
    }
    for reply in replies {
        let problem = reply.problem();
        assert_eq!(problem.code, "BILLING_NOT_CONFIGURED");
        assert!(
            problem.message.contains("billing-url") && !reply.header("retry-after").is_empty(),
            "{reply:?}"
        );
    }
    // Nobody listens there.
    let unreachable = app(backend, Some("http://127.0.0.1:9".to_owned())).await;
    let tenant = Tenant::create(&unreachable.client()).await;
    assert_eq!(
        tenant
            .client
            .get(BALANCE)
            .call()
            .await
            .expect(502)
            .problem()
            .code,
        "BILLING_FAILED"
    );
}

on_each_database!(requests_to_the_billing_service_are_limited);
async fn requests_to_the_billing_service_are_limited(backend: Backend) {
    let World {
        app,
        tenant,
        billing,
    } = World::new(backend).await;
    let now = app.app.clock.now();
    while app
        .app
        .turns
        .billing
        .count(tenant.tenant_uuid.0, now)
        .is_ok()
    {}
    let refused = tenant.client.get(BALANCE).call().await.expect(429);
    assert!(!refused.header("retry-after").is_empty());
    assert!(billing.take_all().is_empty());
    Tenant::create(&app.client())
        .await
        .client
        .get(BALANCE)
        .call()
        .await
        .expect(200);
}
