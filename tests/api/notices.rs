//! Notices: which are sent, to whom, and how often.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hub_base::db::{Sql, sql};
use hub_composed::notices::{self, FailingPipeline, Trouble};
use hub_core::config::Settings;
use hub_core::tasks::Done;
use hub_identity::authz::permission::Role;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::devices::{make_device, make_model};
use hub_tests::mail::waiting;
use hub_tests::{
    Backend, Call, Client, Options, Person, Receiver, SimulatedHub, Tenant, TestApp,
    on_each_database,
};
use serde_json::{Value, json};
use uuid::Uuid;

const NOON: i64 = 1_800_014_400_000_000;
const SETTINGS: &str = "/tenant/notification-settings";
/// The time after a start without notices of silence, and more.
const QUIET_MINUTES: i64 = 16;

pub struct World {
    pub app: TestApp,
    pub micros: Arc<AtomicI64>,
    pub tenant: Tenant,
    /// A key, which does not expire.
    pub client: Client,
}

impl World {
    async fn new(backend: Backend) -> Self {
        Self::with(backend, Settings::default()).await
    }

    pub async fn with(backend: Backend, settings: Settings) -> Self {
        let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
        // Mail waits for a server that is nowhere.
        let settings = Settings {
            allow_private_targets: Some(true.into()),
            smtp_url: Some("smtp://127.0.0.1:9".to_owned()),
            mail_from: Some("hubs@example.com".to_owned()),
            ..settings
        };
        let app = TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                settings,
            },
        )
        .await;
        let tenant = Tenant::create(&app.client()).await;
        let client = tenant
            .api_key(json!({"scopes": ["*"], "rateLimitPerMinute": 100_000}))
            .await
            .client;
        let world = Self {
            app,
            micros,
            tenant,
            client,
        };
        world.turn_all_off().await;
        world
    }

    /// Nothing but what a test turns on.
    async fn turn_all_off(&self) {
        let listed: Vec<Value> = self.client.get(SETTINGS).call().await.expect(200).data();
        let off: Vec<Value> = listed
            .iter()
            .map(|setting| json!({"type": setting["type"], "channel": "IN_APP", "enabled": false}))
            .collect();
        self.client
            .post(&format!("{SETTINGS}/bulk"))
            .json(&off)
            .call()
            .await
            .expect(200);
    }

    pub async fn set(&self, body: Value) -> Value {
        self.client
            .put(SETTINGS)
            .json(&body)
            .call()
            .await
            .expect(200)
            .data()
    }

    fn now(&self) -> Timestamp {
        self.app.app.clock.now()
    }

    pub async fn scan(&self) {
        notices::scan(&self.app.app, &[]).await.expect("a scan");
    }

    /// Time passes, and the service scans. The hubs send telemetry.
    pub async fn pass(&self, minutes: i64, hubs: &[&SimulatedHub]) {
        for _ in 0..minutes {
            self.micros.fetch_add(60_000_000, Ordering::Relaxed);
            for hub in hubs {
                report(hub, &json!({"cpu": 1})).await;
            }
            self.scan().await;
        }
    }

    /// As a person sees them, with a token that has not expired.
    async fn seen_by(&self, person: &Person) -> Vec<Value> {
        let client = person.as_platform_admin(&self.app);
        let seen: Vec<Value> = client
            .get("/app/notifications?size=100")
            .call()
            .await
            .expect(200)
            .data();
        let me: Vec<Value> = client
            .get("/me/notifications?size=100")
            .call()
            .await
            .expect(200)
            .data();
        assert_eq!(me, seen);
        seen
    }

    pub async fn notices(&self) -> Vec<Value> {
        self.seen_by(&self.tenant.owner).await
    }

    pub async fn titles(&self) -> Vec<String> {
        self.notices()
            .await
            .iter()
            .map(|notice| notice["title"].as_str().expect("a title").to_owned())
            .collect()
    }
}

async fn report(hub: &SimulatedHub, body: &Value) {
    hub.client
        .post(&format!("/v1/hubs/{}/telemetry", hub.hub_uuid))
        .json(body)
        .call()
        .await
        .expect(204);
}

on_each_database!(a_hub_that_goes_offline_has_one_notice);
async fn a_hub_that_goes_offline_has_one_notice(backend: Backend) {
    let world = World::new(backend).await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    for notice_type in ["HUB_OFFLINE", "HUB_ONLINE"] {
        world
            .set(json!({"type": notice_type, "channel": "IN_APP", "enabled": true}))
            .await;
    }
    world.scan().await;
    world.pass(QUIET_MINUTES, &[&hub]).await;
    world.pass(9, &[]).await;
    assert!(world.notices().await.is_empty(), "it may come back");
    world.pass(30, &[]).await;
    let notices = world.notices().await;
    assert_eq!(notices.len(), 1, "{notices:?}");
    let expected = (
        json!("HUB_OFFLINE"),
        json!("WARNING"),
        json!(hub.hub_uuid),
        json!(world.tenant.tenant_uuid),
    );
    let notice = &notices[0];
    assert_eq!(
        (
            &notice["type"],
            &notice["severity"],
            &notice["hubUuid"],
            &notice["tenantUuid"]
        ),
        (&expected.0, &expected.1, &expected.2, &expected.3)
    );
    assert!(
        notice["title"]
            .as_str()
            .expect("a title")
            .contains("offline"),
        "{notice}"
    );
    assert_eq!(
        (&notice["readAt"], &notice["deviceInstanceId"]),
        (&Value::Null, &Value::Null)
    );

    // It flaps: it was never back.
    world.pass(1, &[&hub]).await;
    world.pass(15, &[]).await;
    assert_eq!(
        world.notices().await.len(),
        1 + 1,
        "its return is reported when it stays: {:?}",
        world.titles().await
    );
}

on_each_database!(a_hub_that_stays_is_back_and_may_be_missed_again);
async fn a_hub_that_stays_is_back_and_may_be_missed_again(backend: Backend) {
    let world = World::new(backend).await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    for notice_type in ["HUB_OFFLINE", "HUB_ONLINE"] {
        world
            .set(
                json!({"type": notice_type, "channel": "IN_APP", "enabled": true, "threshold": 20}),
            )
            .await;
    }
    world.scan().await;
    world.pass(QUIET_MINUTES, &[&hub]).await;
    world.pass(19, &[]).await;
    assert!(
        world.notices().await.is_empty(),
        "the threshold is 20 minutes"
    );
    world.pass(2, &[]).await;
    assert_eq!(world.notices().await.len(), 1);
    world.pass(5, &[&hub]).await;
    let notices = world.notices().await;
    assert_eq!(
        (notices.len(), &notices[0]["type"], &notices[0]["severity"]),
        (2, &json!("HUB_ONLINE"), &json!("INFO"))
    );
    world.pass(25, &[]).await;
    assert_eq!(world.notices().await.len(), 3, "{:?}", world.titles().await);
}

on_each_database!(an_outage_of_the_service_is_no_incident_of_its_hubs);
async fn an_outage_of_the_service_is_no_incident_of_its_hubs(backend: Backend) {
    let world = World::new(backend).await;
    let hubs = [
        SimulatedHub::claim(&world.tenant).await,
        SimulatedHub::claim(&world.tenant).await,
    ];
    world
        .set(json!({"type": "HUB_OFFLINE", "channel": "IN_APP", "enabled": true}))
        .await;
    world.scan().await;
    world.pass(QUIET_MINUTES, &[&hubs[0], &hubs[1]]).await;
    // The service is away for an hour, and one of the hubs for good.
    world.micros.fetch_add(3_600_000_000, Ordering::Relaxed);
    world.scan().await;
    world.pass(10, &[]).await;
    assert!(
        world.notices().await.is_empty(),
        "hubs have time to come back"
    );
    world.pass(10, &[&hubs[1]]).await;
    let notices = world.notices().await;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0]["hubUuid"], json!(hubs[0].hub_uuid));
}

on_each_database!(many_incidents_are_one_notice);
async fn many_incidents_are_one_notice(backend: Backend) {
    let world = World::new(backend).await;
    let mut hubs = Vec::new();
    for _ in 0..12 {
        hubs.push(SimulatedHub::claim(&world.tenant).await);
    }
    for channel in ["IN_APP", "EMAIL"] {
        world
            .set(json!({"type": "HUB_OFFLINE", "channel": channel, "enabled": true}))
            .await;
    }
    let all: Vec<&SimulatedHub> = hubs.iter().collect();
    world.scan().await;
    world.pass(QUIET_MINUTES - 2, &[]).await;
    world.pass(2, &all).await;
    assert!(world.notices().await.is_empty());
    world.pass(12, &[]).await;
    assert_eq!(world.titles().await, ["12 hubs are offline"]);
    let mails = waiting(&world.app).await;
    assert_eq!(mails.len(), 1, "one mail to the owner");
    assert_eq!(mails[0].to, world.tenant.owner.email);
}

on_each_database!(mails_follow_each_other_slowly);
async fn mails_follow_each_other_slowly(backend: Backend) {
    let world = World::new(backend).await;
    let hubs = [
        SimulatedHub::claim(&world.tenant).await,
        SimulatedHub::claim(&world.tenant).await,
    ];
    let body = json!({"type": "HUB_OFFLINE", "channel": "EMAIL", "enabled": true, "target": "ops@example.com"});
    world.set(body).await;
    world.scan().await;
    world.pass(QUIET_MINUTES, &[&hubs[0], &hubs[1]]).await;
    world.pass(3, &[&hubs[1]]).await;
    world.pass(8, &[]).await;
    let mails = waiting(&world.app).await;
    assert_eq!((mails.len(), mails[0].to.as_str()), (1, "ops@example.com"));
    world.pass(5, &[]).await;
    assert_eq!(
        waiting(&world.app).await.len(),
        1,
        "the second hub is offline too, and its mail waits"
    );
    world.pass(6, &[]).await;
    assert_eq!(waiting(&world.app).await.len(), 2);
    assert!(world.notices().await.is_empty(), "mail is another channel");
}

on_each_database!(webhooks_are_called_a_few_times);
async fn webhooks_are_called_a_few_times(backend: Backend) {
    let world = World::new(backend).await;
    let receiver = Receiver::start().await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    let target = format!("{}/notices?token=secret", receiver.url);
    let set = world
        .set(
            json!({"type": "HUB_OFFLINE", "channel": "WEBHOOK", "enabled": true, "target": target}),
        )
        .await;
    assert_eq!(set["target"], json!(target));
    let shown: Vec<Value> = world
        .tenant
        .member(Role::Viewer)
        .await
        .get(SETTINGS)
        .call()
        .await
        .expect(200)
        .data();
    let webhook = shown.iter().find(|one| one["channel"] == "WEBHOOK");
    assert_eq!(
        webhook.expect("the setting")["target"],
        json!(receiver.url),
        "who may not change it sees no token"
    );
    world.scan().await;
    world.pass(QUIET_MINUTES, &[&hub]).await;
    world.pass(11, &[]).await;
    let call = async || {
        let payload = json!({"tenantUuid": world.tenant.tenant_uuid});
        hub_tests::app::perform(&world.app.app, notices::WEBHOOKS, payload).await
    };
    receiver.answer_in_turn([
        (500, Vec::new()),
        (503, vec![("retry-after", "600".to_owned())]),
    ]);
    let mut ids = Vec::new();
    for attempt in 1..=3 {
        let done = call().await;
        let calls = receiver.take();
        assert_eq!(calls.len(), 1, "try {attempt}");
        let notice = calls[0].json();
        assert_eq!(
            (&notice["type"], &notice["hubUuid"]),
            (&json!("HUB_OFFLINE"), &json!(hub.hub_uuid))
        );
        assert_eq!(
            (
                calls[0].path.as_str(),
                calls[0].header("x-service-event-type")
            ),
            ("/notices", "notice")
        );
        ids.push(calls[0].header("webhook-id").to_owned());
        let Done::RunAt(at) = done else { break };
        let delay = at.as_secs() - world.now().as_secs();
        assert!(
            if attempt == 1 {
                (10..=12).contains(&delay)
            } else {
                delay == 600
            },
            "{delay}"
        );
        call().await;
        assert!(receiver.take().is_empty(), "nothing is due");
        world
            .micros
            .fetch_add((delay + 1) * 1_000_000, Ordering::Relaxed);
    }
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(call().await, Done::Finished);
}

/// What a device says of itself.
async fn hear(world: &World, device: &Value, online_until: Timestamp, state: Value) {
    let mut tx = world.app.app.db.begin().await.expect("a transaction");
    sql(
        "INSERT INTO device_states (device_instance_id, tenant_uuid, last_seen_at, online_until, \
         state) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant_uuid, device_instance_id) DO \
         UPDATE SET online_until = excluded.online_until, state = excluded.state",
    )
    .bind((
        device["deviceInstanceId"].as_i64(),
        world.tenant.tenant_uuid,
        world.now(),
        online_until,
        state.to_string(),
    ))
    .run(&mut tx)
    .await
    .expect("a row");
    tx.commit_unaudited("a test").await.expect("a commit");
}

on_each_database!(devices_have_notices);
async fn devices_have_notices(backend: Backend) {
    let world = World::new(backend).await;
    let model = make_model(&world.tenant, "sensor").await;
    let device = make_device(&world.tenant, model, json!({"name": "freezer"})).await;
    let path = format!("/tenant/devices/{}/activate", device["deviceInstanceId"]);
    world.client.post(&path).call().await.expect(200);
    let threshold = json!({"quantity": "temperature", "above": 8, "below": 2});
    for (notice_type, threshold) in [
        ("DEVICE_SILENT", Value::Null),
        ("DEVICE_BATTERY_LOW", json!(20)),
        ("DEVICE_THRESHOLD", threshold),
    ] {
        world.set(json!({"type": notice_type, "channel": "IN_APP", "enabled": true, "threshold": threshold})).await;
    }
    let state = |temperature: f64, battery: i64| {
        json!({
            "temperature": {"value": temperature, "unit": "Cel", "at": world.now()},
            "battery": {"value": battery, "unit": "%EL", "at": world.now()},
        })
    };
    hear(&world, &device, world.now().plus_secs(3600), state(5.0, 90)).await;
    world.scan().await;
    world.pass(QUIET_MINUTES, &[]).await;
    assert!(world.notices().await.is_empty());
    hear(&world, &device, world.now().plus_secs(600), state(9.5, 90)).await;
    world.pass(3, &[]).await;
    assert_eq!(
        world.titles().await,
        ["A value of device freezer is out of range"]
    );
    assert_eq!(
        world.notices().await[0]["deviceInstanceId"],
        device["deviceInstanceId"]
    );
    hear(&world, &device, world.now().plus_secs(600), state(5.0, 19)).await;
    world.pass(3, &[]).await;
    assert_eq!(
        world.titles().await[0],
        "The battery of device freezer is low"
    );
    world.pass(10, &[]).await;
    assert_eq!(world.titles().await.len(), 2, "silent for three minutes");
    world.pass(3, &[]).await;
    assert_eq!(world.titles().await[0], "Device freezer is silent");
    // It was over; now it is too cold.
    hear(&world, &device, world.now().plus_secs(600), state(1.0, 90)).await;
    world.pass(1, &[]).await;
    assert_eq!(world.titles().await.len(), 4, "{:?}", world.titles().await);
}

on_each_database!(a_summary_lists_what_needs_somebody);
async fn a_summary_lists_what_needs_somebody(backend: Backend) {
    let world = World::new(backend).await;
    for notice_type in ["HUB_OFFLINE", "DEVICE_BATTERY_LOW", "PIPELINE_FAILING"] {
        world
            .set(json!({"type": notice_type, "channel": "IN_APP", "enabled": true}))
            .await;
    }
    let model = make_model(&world.tenant, "sensor").await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    let with = async |scopes: Value| world.tenant.api_key(json!({"scopes": scopes})).await.client;
    let all = with(json!(["hubs:read", "devices:read", "pipelines:read"])).await;
    let hubs_alone = with(json!(["hubs:read"])).await;
    // Without a name, the model and the address name them.
    for number in 10..17 {
        let address = format!("C4:11:7D:DA:71:{number}");
        let device = make_device(&world.tenant, model, json!({"address": address})).await;
        let path = format!("/tenant/devices/{}/activate", device["deviceInstanceId"]);
        world.client.post(&path).call().await.expect(200);
        let state = json!({"battery": {"value": 5, "unit": "%EL", "at": world.now()}});
        hear(&world, &device, world.now().plus_secs(7200), state).await;
    }
    let failing = FailingPipeline {
        tenant_uuid: world.tenant.tenant_uuid,
        pipeline_uuid: Uuid::from_u128(7),
        name: "to the ERP".to_owned(),
        trouble: Trouble::Fails {
            since: world.now().plus_secs(-7200),
            error: "the connection was refused".to_owned(),
        },
    };
    assert_eq!(attention(&all).await, Vec::<Value>::new());
    world.pass(20, &[&hub]).await;
    world.pass(12, &[]).await;
    notices::scan(&world.app.app, &[failing])
        .await
        .expect("a scan");
    // A summary may be two seconds old.
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    let items = attention(&all).await;
    let types: Vec<&Value> = items.iter().map(|item| &item["type"]).collect();
    let of_type = |name: &str| -> Vec<&Value> {
        let of_type = items.iter().filter(|item| item["type"] == name);
        of_type.collect()
    };
    assert_eq!(types[0], "PIPELINE_FAILING", "critical first: {items:?}");
    assert_eq!(
        (&items[0]["pipelineUuid"], &items[0]["title"]),
        (
            &json!(Uuid::from_u128(7)),
            &json!("Pipeline to the ERP is failing")
        )
    );
    assert_eq!(of_type("HUB_OFFLINE").len(), 1);
    assert_eq!(of_type("DEVICE_BATTERY_LOW").len(), 5, "the latest five");
    for item in of_type("DEVICE_BATTERY_LOW") {
        let title = item["title"].as_str().expect("a title");
        assert!(
            title.starts_with("The battery of device sensor DA711"),
            "{item}"
        );
        assert_eq!(item["ofThisType"], 7);
    }
    let seen = attention(&hubs_alone).await;
    let types: Vec<&Value> = seen.iter().map(|item| &item["type"]).collect();
    assert_eq!(types, ["HUB_OFFLINE"], "what the key may read");

    // What is over, and what nobody wants to know, is gone.
    world
        .set(json!({"type": "DEVICE_BATTERY_LOW", "channel": "IN_APP", "enabled": false}))
        .await;
    world.pass(2, &[&hub]).await;
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    assert_eq!(attention(&all).await, Vec::<Value>::new());
}

async fn attention(client: &Client) -> Vec<Value> {
    let reply = client.get("/tenant/dashboard/summary").call().await;
    let summary: Value = reply.expect(200).data();
    summary["attention"].as_array().expect("a list").clone()
}

on_each_database!(hubs_report_that_they_are_blind);
async fn hubs_report_that_they_are_blind(backend: Backend) {
    let world = World::new(backend).await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    world
        .set(json!({"type": "HUB_BLIND", "channel": "IN_APP", "enabled": true}))
        .await;
    world.scan().await;
    let from = world.now();
    let blind = json!({"adapters": {"00:1A:7D:DA:71:13": {
        "state": "BLIND", "blind": [{"from": from, "reason": "the adapter is gone"}],
    }}});
    for _ in 0..7 {
        world.micros.fetch_add(60_000_000, Ordering::Relaxed);
        report(&hub, &blind).await;
        world.scan().await;
    }
    let notices = world.notices().await;
    assert_eq!(
        (notices.len(), &notices[0]["hubUuid"]),
        (1, &json!(hub.hub_uuid)),
        "{notices:?}"
    );
    assert!(
        notices[0]["body"]
            .as_str()
            .expect("a body")
            .contains("the adapter is gone"),
        "{notices:?}"
    );
    let well = json!({"adapters": {"00:1A:7D:DA:71:13": {"state": "LISTENING", "blind": []}}});
    for _ in 0..4 {
        world.micros.fetch_add(60_000_000, Ordering::Relaxed);
        report(&hub, &well).await;
        world.scan().await;
    }
    assert_eq!(world.notices().await.len(), 1);
}

on_each_database!(notices_in_the_app_are_on_until_they_are_turned_off);
async fn notices_in_the_app_are_on_until_they_are_turned_off(backend: Backend) {
    let world = World::new(backend).await;
    // A tenant whose notices nobody has set.
    let tenant = Tenant::create(&world.app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let settings: Vec<Value> = tenant.client.get(SETTINGS).call().await.expect(200).data();
    assert_eq!(
        settings.len(),
        17,
        "all types but the one that needs bounds"
    );
    for setting in &settings {
        assert_eq!(
            (
                &setting["channel"],
                &setting["enabled"],
                &setting["updatedAt"]
            ),
            (&json!("IN_APP"), &json!(true), &Value::Null),
            "{setting}"
        );
    }
    world.pass(20, &[&hub]).await;
    world.pass(20, &[]).await;
    let seen = world.seen_by(&tenant.owner).await;
    let titles: Vec<&str> = seen.iter().filter_map(|one| one["type"].as_str()).collect();
    assert_eq!(titles, ["HUB_OFFLINE"], "{seen:?}");
    let off = json!({"type": "HUB_OFFLINE", "channel": "IN_APP", "enabled": false});
    let owner = tenant.owner.as_platform_admin(&world.app);
    owner
        .tenant(tenant.tenant_uuid)
        .put(SETTINGS)
        .json(&off)
        .call()
        .await
        .expect(200);
    world.pass(5, &[&hub]).await;
    world.pass(20, &[]).await;
    let seen = world.seen_by(&tenant.owner).await;
    let offline = seen.iter().filter(|one| one["type"] == "HUB_OFFLINE");
    assert_eq!(offline.count(), 1, "{seen:?}");
}

on_each_database!(people_see_notices_of_hubs_that_are_theirs);
async fn people_see_notices_of_hubs_that_are_theirs(backend: Backend) {
    let world = World::new(backend).await;
    let (owner, stranger) = (
        Person::register(&world.app.client()).await,
        Person::register(&world.app.client()).await,
    );
    let body = json!({"ownerUserUuid": owner.login.user_uuid});
    let code: Value = world
        .client
        .post("/tenant/hubs/claim-codes")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    let code = code["claimCode"].as_str().expect("a code");
    let model = make_model(&world.tenant, "lamp").await;
    let device = make_device(&world.tenant, model, json!({"name": "lamp"})).await;
    let theirs = SimulatedHub::claim_with(&world.app.client(), code, "theirs").await;
    let other = SimulatedHub::claim(&world.tenant).await;
    for (notice_type, member) in [("HUB_OFFLINE", true), ("PIPELINE_FAILING", true)] {
        world
            .set(json!({"type": notice_type, "channel": "IN_APP", "enabled": member}))
            .await;
    }
    world.pass(20, &[&theirs, &other]).await;
    world.pass(12, &[]).await;
    let failing = FailingPipeline {
        tenant_uuid: world.tenant.tenant_uuid,
        pipeline_uuid: Uuid::nil(),
        name: "to the ERP".to_owned(),
        trouble: Trouble::Fails {
            since: world.now().plus_secs(-7200),
            error: "the connection was refused".to_owned(),
        },
    };
    notices::scan(&world.app.app, &[failing])
        .await
        .expect("a scan");
    assert_eq!(world.notices().await.len(), 3, "the tenant sees all");
    let seen = world.seen_by(&owner).await;
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(
        (&seen[0]["type"], &seen[0]["hubUuid"]),
        (&json!("HUB_OFFLINE"), &json!(theirs.hub_uuid))
    );
    assert!(world.seen_by(&stranger).await.is_empty());
    // What they read is theirs to mark, and nobody else's.
    let path = |notice: &Value| format!("/app/notifications/{}/read", notice["notificationId"]);
    owner
        .as_platform_admin(&world.app)
        .put(&path(&seen[0]))
        .call()
        .await
        .expect(200);
    assert_eq!(world.seen_by(&owner).await[0]["readAt"], json!(world.now()));
    let all = world.notices().await;
    for notice in all
        .iter()
        .filter(|notice| notice["hubUuid"] != json!(theirs.hub_uuid))
    {
        owner
            .as_platform_admin(&world.app)
            .put(&path(notice))
            .call()
            .await
            .expect(404);
    }
    stranger
        .as_platform_admin(&world.app)
        .put(&path(&seen[0]))
        .call()
        .await
        .expect(404);

    // A device that their hub hears.
    let insert = "INSERT INTO notices (notice_uuid, tenant_uuid, type, channel, title, body, \
                  severity, device_instance_id, created_at, attempts) \
                  VALUES ($1, $2, 'DEVICE_SILENT', 'IN_APP', 'silent', '', 'WARNING', $3, $4, 0)";
    let id = device["deviceInstanceId"].as_i64();
    let (notice, tenant) = (Uuid::new_v4(), world.tenant.tenant_uuid);
    execute(&world, sql(insert).bind((notice, tenant, id, world.now()))).await;
    hear(&world, &device, world.now(), json!({})).await;
    assert_eq!(world.seen_by(&owner).await.len(), 1, "no hub of theirs");
    let nearest = "UPDATE device_states SET nearest_hub_uuid = $2 WHERE device_instance_id = $1";
    for (hub, count) in [(&other, 1), (&theirs, 2)] {
        execute(&world, sql(nearest).bind((id, hub.hub_uuid))).await;
        assert_eq!(world.seen_by(&owner).await.len(), count);
    }
}

async fn execute(world: &World, statement: Sql) {
    let mut tx = world.app.app.db.begin().await.expect("a transaction");
    statement.run(&mut tx).await.expect("a statement");
    tx.commit_unaudited("a test").await.expect("a commit");
}

on_each_database!(notices_are_read_by_each_member_on_their_own);
async fn notices_are_read_by_each_member_on_their_own(backend: Backend) {
    let world = World::new(backend).await;
    let member = world.tenant.member_person(Role::Viewer).await;
    let stranger = Tenant::create(&world.app.client()).await;
    world.set(json!({"type": "PIPELINE_FAILING", "channel": "IN_APP", "enabled": true, "threshold": 30})).await;
    world.scan().await;
    let failing = |minutes: i64| FailingPipeline {
        tenant_uuid: world.tenant.tenant_uuid,
        pipeline_uuid: Uuid::nil(),
        name: "to the ERP".to_owned(),
        trouble: Trouble::Fails {
            since: world.now().plus_secs(-minutes * 60),
            error: "the connection was refused".to_owned(),
        },
    };
    for (minutes, expected) in [(10, 0), (40, 1), (60, 1)] {
        world
            .micros
            .store(NOON + minutes * 60_000_000, Ordering::Relaxed);
        notices::scan(&world.app.app, &[failing(minutes)])
            .await
            .expect("a scan");
        assert_eq!(
            world.notices().await.len(),
            expected,
            "after {minutes} minutes"
        );
    }
    let notice = world.notices().await.remove(0);
    assert_eq!(
        (&notice["severity"], &notice["title"]),
        (&json!("CRITICAL"), &json!("Pipeline to the ERP is failing"))
    );
    let path = format!("/app/notifications/{}/read", notice["notificationId"]);
    // With tokens that have not expired.
    let (reader, other) = (
        member.as_platform_admin(&world.app),
        stranger.owner.as_platform_admin(&world.app),
    );
    assert_eq!(
        reader.put(&path).call().await.expect(200).json(),
        json!({"data": null})
    );
    reader.put(&path).call().await.expect(200);
    assert_eq!(
        world.seen_by(&member).await[0]["readAt"],
        json!(world.now())
    );
    assert_eq!(world.notices().await[0]["readAt"], Value::Null);
    assert!(world.seen_by(&stranger.owner).await.is_empty());
    other.put(&path).call().await.expect(404);
    reader
        .put("/app/notifications/4242424242/read")
        .call()
        .await
        .expect(404);
}

on_each_database!(wrong_settings_are_refused);
async fn wrong_settings_are_refused(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let of = |notice_type: &str, channel: &str| json!({"type": notice_type, "channel": channel, "enabled": true});
    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    for (body, field) in [
        (of("HUB_GONE", "IN_APP"), "type"),
        (of("HUB_OFFLINE", "FAX"), "channel"),
        (
            json!({"type": "HUB_OFFLINE", "channel": "IN_APP"}),
            "enabled",
        ),
        (of("HUB_OFFLINE", "WEBHOOK"), "target"),
        (
            with(
                of("HUB_OFFLINE", "WEBHOOK"),
                "target",
                json!("https://10.0.0.1/notices"),
            ),
            "target",
        ),
        (
            with(
                of("HUB_OFFLINE", "WEBHOOK"),
                "target",
                json!("http://example.com/notices"),
            ),
            "target",
        ),
        (
            with(
                of("HUB_OFFLINE", "IN_APP"),
                "target",
                json!("ada@example.com"),
            ),
            "target",
        ),
        (
            with(of("HUB_OFFLINE", "EMAIL"), "target", json!("ada")),
            "target",
        ),
        (
            with(of("HUB_OFFLINE", "IN_APP"), "threshold", json!(0)),
            "threshold",
        ),
        (
            with(of("HUB_OFFLINE", "IN_APP"), "threshold", json!("10")),
            "threshold",
        ),
        (
            with(of("JOB_FAILED", "IN_APP"), "threshold", json!(1)),
            "threshold",
        ),
        (of("DEVICE_THRESHOLD", "IN_APP"), "threshold"),
        (
            with(
                of("DEVICE_THRESHOLD", "IN_APP"),
                "threshold",
                json!({"quantity": "mood", "above": 1}),
            ),
            "threshold.quantity",
        ),
    ] {
        let reply = tenant
            .client
            .put(SETTINGS)
            .json(&body)
            .call()
            .await
            .expect(400);
        assert_eq!(reply.problem().errors[0].field, field, "{body}");
    }
    let refused = tenant
        .client
        .put(SETTINGS)
        .json(&of("HUB_OFFLINE", "EMAIL"))
        .call()
        .await
        .expect(503);
    assert_eq!(refused.problem().code, "MAIL_NOT_CONFIGURED");

    let bulk = format!("{SETTINGS}/bulk");
    let both = json!([
        of("HUB_OFFLINE", "IN_APP"),
        of("DEVICE_THRESHOLD", "IN_APP")
    ]);
    let reply = tenant
        .client
        .post(&bulk)
        .json(&both)
        .call()
        .await
        .expect(400);
    assert_eq!(reply.problem().errors[0].field, "[1].threshold");
    let twice = json!([of("HUB_OFFLINE", "IN_APP"), of("HUB_OFFLINE", "IN_APP")]);
    tenant
        .client
        .post(&bulk)
        .json(&twice)
        .call()
        .await
        .expect(400);
    tenant
        .client
        .post(&bulk)
        .json(&json!([]))
        .call()
        .await
        .expect(400);
    tenant
        .client
        .post(&bulk)
        .json(&json!(vec![of("HUB_OFFLINE", "IN_APP"); 1000]))
        .call()
        .await
        .expect(400);
    let none: Vec<Value> = tenant.client.get(SETTINGS).call().await.expect(200).data();
    let is_default = |setting: &Value| setting["updatedAt"].is_null();
    assert!(none.iter().all(is_default), "all or nothing: {none:?}");
    let all = json!([of("HUB_OFFLINE", "IN_APP"), of("JOB_FAILED", "IN_APP")]);
    let set: Vec<Value> = tenant
        .client
        .post(&bulk)
        .json(&all)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(set.len(), 2);
    let changed = json!({"type": "JOB_FAILED", "channel": "IN_APP", "enabled": false});
    tenant
        .client
        .put(SETTINGS)
        .json(&changed)
        .call()
        .await
        .expect(200);
    let listed: Vec<Value> = tenant.client.get(SETTINGS).call().await.expect(200).data();
    let set: Vec<&Value> = listed.iter().filter(|one| !is_default(one)).collect();
    assert_eq!((set.len(), &set[1]["enabled"]), (2, &json!(false)));
    let viewer = tenant.member(Role::Viewer).await;
    viewer.put(SETTINGS).json(&changed).call().await.expect(403);
}
