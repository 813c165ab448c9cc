//! What claims bring to hubs: bundles of codes, and those that are applied by themselves.

use std::time::Duration;

use futures_util::future::join_all;
use hub_cloud::upkeep;
use hub_core::config::Settings;
use hub_core::tasks::{Done, Task};
use hub_protocol::AppUuid;
use hub_protocol::claim::HubCredentials;
use hub_tests::{
    Backend, Call, Client, Maker, Options, Receiver, Recipe, Reply, SimulatedHub, Tenant, TestApp,
    devices, on_each_database, release,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::device_catalog::get;
use super::pipelines::{PIPELINES, http, made, with};

pub const BUNDLES: &str = "/tenant/supplier-bundles";
const CODES: &str = "/tenant/hubs/claim-codes";
const SOON: Duration = Duration::from_secs(30);

pub struct Setting {
    pub app: std::sync::Arc<TestApp>,
    pub tenant: Tenant,
    maker: std::sync::Arc<Maker>,
}

/// An app and its release.
pub struct Made {
    pub app: AppUuid,
    pub release: Uuid,
}

impl Setting {
    pub async fn new(backend: Backend) -> Self {
        Self::configured(backend, |_| {}).await
    }

    async fn configured(
        backend: Backend,
        change: impl FnOnce(&mut hub_core::config::Config),
    ) -> Self {
        let maker = Maker::new();
        let settings = Settings {
            release_keys: Some(maker.keys()),
            ..Settings::default()
        };
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
        Self {
            app: std::sync::Arc::new(app),
            tenant,
            maker: std::sync::Arc::new(maker),
        }
    }

    /// Another tenant of the same service.
    pub async fn beside(other: &Self) -> Self {
        let tenant = Tenant::create(&other.app.client()).await;
        Self {
            app: other.app.clone(),
            tenant,
            maker: other.maker.clone(),
        }
    }

    pub async fn app(&self, name: &str) -> AppUuid {
        release::make_app(&self.tenant, name).await
    }

    async fn release(&self, app: AppUuid, recipe: &Recipe) -> Uuid {
        uuid(
            &release::make_app_release(&self.tenant, app, &self.maker, recipe).await["releaseUuid"],
        )
    }

    pub async fn app_with_release(&self, name: &str, version: &str) -> Made {
        let app = self.app(name).await;
        Made {
            app,
            release: self.release(app, &Recipe::app(name, version, 1)).await,
        }
    }

    pub async fn release_without_file(&self, app: AppUuid, name: &str, version: &str) -> Value {
        let body = self.maker.body(&Recipe::app(name, version, 2), json!({}));
        let path = format!("/tenant/apps/{app}/releases");
        let made: Value = self
            .tenant
            .client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(201)
            .data();
        made["releaseUuid"].clone()
    }

    async fn code(&self, mut body: Value) -> String {
        body["allowReclaim"] = json!(true);
        let made: Value = self
            .tenant
            .client
            .post(CODES)
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        made["claimCode"].as_str().expect("a code").to_owned()
    }

    async fn code_for(&self, bundle: &Value) -> String {
        self.code(json!({"bundleUuid": bundle["bundleUuid"], "maxUses": 5}))
            .await
    }

    async fn claim(&self, code: &str, device: &str, architecture: Option<&str>) -> Reply {
        let mut body = json!({"claimCode": code, "deviceInstanceId": device});
        if let Some(architecture) = architecture {
            body["os"] = json!({"arch": architecture});
        }
        self.app
            .client()
            .post("/v1/hubs/claim")
            .json(&body)
            .call()
            .await
    }

    async fn claimed(&self, code: &str, device: &str) -> String {
        let reply = self.claim(code, device, Some("aarch64")).await.expect(201);
        reply.data::<HubCredentials>().hub_uuid.to_string()
    }

    /// Why a claim is refused. It has used nothing up, and left nothing behind.
    async fn refused(&self, code: &str, device: &str, architecture: Option<&str>) -> String {
        let before = (
            get(&self.tenant.client, CODES).await,
            get(&self.tenant.client, "/tenant/hubs").await,
        );
        let problem = self
            .claim(code, device, architecture)
            .await
            .expect(409)
            .problem();
        let after = (
            get(&self.tenant.client, CODES).await,
            get(&self.tenant.client, "/tenant/hubs").await,
        );
        assert_eq!(before, after, "{problem:?}");
        problem.code
    }

    async fn bundles_of(&self, hub: &str) -> Value {
        get(&self.tenant.client, &format!("/tenant/hubs/{hub}/bundles")).await
    }

    async fn jobs_of(&self, hub: &str) -> Vec<Value> {
        let path = format!("/tenant/hubs/{hub}/jobs?size=100");
        self.tenant
            .client
            .get(&path)
            .call()
            .await
            .expect(200)
            .data()
    }
}

pub fn uuid(value: &Value) -> Uuid {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{value} is no uuid"))
}

pub fn path_of(bundle: &Value) -> String {
    format!(
        "{BUNDLES}/{}",
        bundle["bundleUuid"].as_str().expect("a uuid")
    )
}

pub async fn draft(client: &Client, mut body: Value) -> Value {
    if body.get("name").is_none() {
        body["name"] = json!("Hall");
    }
    client
        .post(BUNDLES)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data()
}

/// A published bundle with these parts.
pub async fn published(client: &Client, body: Value, parts: &Value) -> Value {
    let bundle = draft(client, body).await;
    let path = path_of(&bundle);
    for (part, items) in parts.as_object().expect("an object") {
        client
            .put(&format!("{path}/{part}"))
            .json(items)
            .call()
            .await
            .expect(200);
    }
    client
        .post(&format!("{path}/publish"))
        .call()
        .await
        .expect(200)
        .data()
}

on_each_database!(a_claim_brings_what_the_bundle_of_its_code_has);
async fn a_claim_brings_what_the_bundle_of_its_code_has(backend: Backend) {
    let setting = Setting::new(backend).await;
    let client = &setting.tenant.client;
    let (logger, router) = (
        setting.app_with_release("logger", "1.0.0").await,
        setting.app_with_release("router", "2.0.0").await,
    );
    let newer = setting
        .release(router.app, &Recipe::app("router", "2.1.0", 2))
        .await;
    let beta = setting
        .release(router.app, &Recipe::app("router", "2.2.0-beta.1", 3))
        .await;
    let foreign = Recipe {
        architecture: "riscv64".to_owned(),
        ..Recipe::app("router", "2.1.9", 4)
    };
    setting.release(router.app, &foreign).await;
    let model = devices::make_model(&setting.tenant, "Thermometer").await;
    let pipeline = uuid(&made(client, &http()).await["pipelineUuid"]);
    let parts = json!({
        "apps": [{"appUuid": logger.app, "appReleaseUuid": logger.release}, {"appUuid": router.app}],
        "devices": [{"deviceUuid": model, "quantity": 5}], "pipelines": [pipeline],
    });
    let bundle = published(client, json!({"name": "Hall"}), &parts).await;
    // Others are not applied: the code names one.
    let auto = published(
        client,
        json!({"name": "Every", "autoApply": true}),
        &json!({}),
    )
    .await;
    let hub = setting
        .claimed(&setting.code_for(&bundle).await, "one")
        .await;
    let jobs = setting.jobs_of(&hub).await;
    let job_of = |app: AppUuid| {
        jobs.iter()
            .find(|job| job["appUuid"] == json!(app))
            .expect("a job")
    };
    assert_eq!(jobs.len(), 2);
    assert!(
        jobs.iter()
            .all(|job| job["type"] == "APP_INSTALL" && job["status"] == "PENDING"),
        "{jobs:?}"
    );
    assert_eq!(job_of(logger.app)["releaseUuid"], json!(logger.release));
    assert_eq!(
        job_of(router.app)["releaseUuid"],
        json!(newer),
        "the newest that is stable and runs there"
    );
    let shown = setting.bundles_of(&hub).await;
    let expected = json!([{
        "bundleUuid": bundle["bundleUuid"], "name": "Hall", "status": "PUBLISHED", "appliedAt": shown[0]["appliedAt"],
        "apps": [
            {"appUuid": logger.app, "name": "logger", "appReleaseUuid": logger.release, "version": "1.0.0",
             "hubJobUuid": job_of(logger.app)["hubJobUuid"]},
            {"appUuid": router.app, "name": "router", "appReleaseUuid": newer, "version": "2.1.0",
             "hubJobUuid": job_of(router.app)["hubJobUuid"]},
        ],
        "devices": [{"deviceUuid": model, "name": "Thermometer", "quantity": 5}], "pipelines": [pipeline],
    }]);
    assert_eq!(shown, expected);
    let apps = get(client, &format!("/tenant/hubs/{hub}/apps")).await;
    assert_eq!(
        apps.as_array().map(Vec::len),
        Some(2),
        "what the hub is to have"
    );
    let stranger = Tenant::create(&setting.app.client()).await.client;
    stranger
        .get(&format!("/tenant/hubs/{hub}/bundles"))
        .call()
        .await
        .expect(404);

    // A code without a bundle brings those that are applied by themselves; of an app that several
    // have, the release of the last one.
    let both = json!({"apps": [{"appUuid": router.app, "channel": "beta"}]});
    let last = published(client, json!({"name": "Beta", "autoApply": true}), &both).await;
    let hub = setting.claimed(&setting.code(json!({})).await, "two").await;
    let shown = setting.bundles_of(&hub).await;
    let names: Vec<&Value> = shown
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["bundleUuid"])
        .collect();
    assert!(
        names.len() == 2
            && names.contains(&&auto["bundleUuid"])
            && names.contains(&&last["bundleUuid"])
    );
    let jobs = setting.jobs_of(&hub).await;
    assert_eq!((jobs.len(), &jobs[0]["releaseUuid"]), (1, &json!(beta)));
    // A hub claimed again gets it again, in place of what it had not begun.
    let again = setting.claimed(&setting.code(json!({})).await, "two").await;
    assert_eq!(again, hub);
    let statuses: Vec<Value> = setting
        .jobs_of(&hub)
        .await
        .iter()
        .map(|job| job["status"].clone())
        .collect();
    assert_eq!(statuses, ["PENDING", "CANCELLED"]);
    assert_eq!(
        setting.bundles_of(&hub).await.as_array().map(Vec::len),
        Some(2)
    );

    // A released hub has nothing of it any more.
    client
        .delete(&format!("/tenant/hubs/{hub}"))
        .call()
        .await
        .expect(204);
    let hub = setting
        .claimed(&setting.code_for(&bundle).await, "two")
        .await;
    assert_eq!(
        setting.bundles_of(&hub).await.as_array().map(Vec::len),
        Some(1)
    );
}

on_each_database!(an_expansion_that_cannot_be_done_refuses_the_claim);
async fn an_expansion_that_cannot_be_done_refuses_the_claim(backend: Backend) {
    let setting = Setting::new(backend).await;
    let client = &setting.tenant.client;
    let stranger = Setting::beside(&setting).await;
    let theirs = published(&stranger.tenant.client, json!({}), &json!({})).await;
    let body = json!({"bundleUuid": theirs["bundleUuid"]});
    let problem = client
        .post(CODES)
        .json(&body)
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(
        problem.errors[0].field, "bundleUuid",
        "another tenant's is none"
    );

    let waiting = draft(client, json!({})).await;
    let code = setting.code_for(&waiting).await;
    assert_eq!(
        setting.refused(&code, "one", None).await,
        "BUNDLE_NOT_PUBLISHED"
    );
    client
        .post(&format!("{}/publish", path_of(&waiting)))
        .call()
        .await
        .expect(200);
    setting.claimed(&code, "one").await;
    client
        .post(&format!("{}/archive", path_of(&waiting)))
        .call()
        .await
        .expect(200);
    assert_eq!(
        setting.refused(&code, "two", None).await,
        "BUNDLE_NOT_PUBLISHED",
        "the code is older"
    );
    client
        .post(CODES)
        .json(&json!({"bundleUuid": waiting["bundleUuid"]}))
        .call()
        .await
        .expect(400);
    let gone = draft(client, json!({})).await;
    let code = setting.code_for(&gone).await;
    client.delete(&path_of(&gone)).call().await.expect(200);
    assert_eq!(setting.refused(&code, "two", None).await, "BUNDLE_UNKNOWN");

    let app = setting.app("logger").await;
    let recipe = Recipe {
        architecture: "x86_64".to_owned(),
        ..Recipe::app("logger", "1.0.0", 1)
    };
    let release = setting.release(app, &recipe).await;
    for item in [
        json!({"appUuid": app}),
        json!({"appUuid": app, "appReleaseUuid": release}),
    ] {
        let bundle = published(client, json!({}), &json!({"apps": [item]})).await;
        let code = setting.code_for(&bundle).await;
        assert_eq!(
            setting.refused(&code, "two", Some("aarch64")).await,
            "BUNDLE_NOT_INSTALLABLE"
        );
        setting
            .claim(&code, &format!("good {item}"), Some("amd64"))
            .await
            .expect(201);
    }
    // One that is applied by itself concerns the codes that name none.
    let auto = published(
        client,
        json!({"autoApply": true}),
        &json!({"apps": [{"appUuid": app}]}),
    )
    .await;
    let code = setting.code(json!({})).await;
    assert_eq!(
        setting.refused(&code, "two", None).await,
        "BUNDLE_NOT_INSTALLABLE"
    );
    client
        .post(&format!("{}/archive", path_of(&auto)))
        .call()
        .await
        .expect(200);
    let hub = setting.claimed(&code, "two").await;
    assert_eq!(setting.bundles_of(&hub).await, json!([]));
}

on_each_database!(a_repeated_claim_brings_nothing_twice);
async fn a_repeated_claim_brings_nothing_twice(backend: Backend) {
    let setting = Setting::new(backend).await;
    let app = setting.app_with_release("logger", "1.0.0").await;
    let parts = json!({"apps": [{"appUuid": app.app}]});
    let bundle = published(&setting.tenant.client, json!({}), &parts).await;
    let code = setting
        .code(json!({"bundleUuid": bundle["bundleUuid"], "maxUses": 1}))
        .await;
    let body = json!({"claimCode": code, "deviceInstanceId": "one"});
    let mut hubs = Vec::new();
    for _ in 0..2 {
        let request = setting
            .app
            .client()
            .post("/v1/hubs/claim")
            .header("idempotency-key", "k".repeat(32))
            .json(&body);
        hubs.push(
            request
                .call()
                .await
                .expect(201)
                .data::<HubCredentials>()
                .hub_uuid,
        );
    }
    assert_eq!(hubs[0], hubs[1]);
    assert_eq!(setting.jobs_of(&hubs[0].to_string()).await.len(), 1);
    // Archived meanwhile, it refuses no repetition.
    setting
        .tenant
        .client
        .post(&format!("{}/archive", path_of(&bundle)))
        .call()
        .await
        .expect(200);
    let request = setting
        .app
        .client()
        .post("/v1/hubs/claim")
        .header("idempotency-key", "k".repeat(32))
        .json(&body);
    request.call().await.expect(201);
}

on_each_database!(claims_at_once_and_an_archive_agree);
/// Either a hub has all of the bundle, or it was refused and there is no trace of it.
async fn claims_at_once_and_an_archive_agree(backend: Backend) {
    const HUBS: usize = 20;
    let setting = Setting::new(backend).await;
    let client = &setting.tenant.client;
    let app = setting.app_with_release("logger", "1.0.0").await;
    let parts = json!({"apps": [{"appUuid": app.app}]});
    let bundle = published(client, json!({}), &parts).await;
    let code = setting
        .code(json!({"bundleUuid": bundle["bundleUuid"], "maxUses": HUBS}))
        .await;
    let names: Vec<String> = (0..HUBS).map(|hub| format!("hub-{hub}")).collect();
    let claims = join_all(names.iter().map(|name| setting.claim(&code, name, None)));
    let archive = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        client
            .post(&format!("{}/archive", path_of(&bundle)))
            .call()
            .await
            .expect(200)
    };
    let (replies, _) = futures_util::future::join(claims, archive).await;
    let mut claimed = 0;
    for reply in replies {
        if reply.status == 201 {
            let hub = reply.data::<HubCredentials>().hub_uuid.to_string();
            assert_eq!(setting.jobs_of(&hub).await.len(), 1);
            assert_eq!(
                setting.bundles_of(&hub).await.as_array().map(Vec::len),
                Some(1)
            );
            claimed += 1;
        } else {
            assert_eq!(reply.expect(409).problem().code, "BUNDLE_NOT_PUBLISHED");
        }
    }
    let hubs = client.get("/tenant/hubs?size=1").call().await.expect(200);
    assert_eq!(hubs.header("x-total-count"), claimed.to_string());
    let listed = get(client, CODES).await;
    assert_eq!(listed[0]["useCount"], json!(claimed));
}

on_each_database!(a_bound_pipeline_takes_the_hubs_events);
async fn a_bound_pipeline_takes_the_hubs_events(backend: Backend) {
    let change = |config: &mut hub_core::config::Config| {
        config.outgoing.allow_private_targets = true.into();
        config.delivers = true;
    };
    let setting = Setting::configured(backend, change).await;
    let client = &setting.tenant.client;
    let receiver = Receiver::start().await;
    let other = SimulatedHub::claim(&setting.tenant).await;
    let destination = json!({"kind": "HTTP", "url": format!("{}/in", receiver.url)});
    let body = with(
        with(http(), "source", json!({"boundHubs": true})),
        "destination",
        destination,
    );
    let pipeline = made(client, &body).await;
    assert_eq!(pipeline["source"], json!({"boundHubs": true}));
    let parts = json!({"pipelines": [pipeline["pipelineUuid"]]});
    let bundle = published(client, json!({}), &parts).await;
    let code = setting.code_for(&bundle).await;
    let hub = SimulatedHub::claim_with(&setting.app.client(), &code, "bound").await;
    other.upload_events(3).await;
    hub.upload_events(2).await;
    other.upload_events(3).await;
    receiver.until(SOON, |received| received.len() >= 2).await;
    let path = format!(
        "{PIPELINES}/{}",
        pipeline["pipelineUuid"].as_str().expect("a uuid")
    );
    let deadline = tokio::time::Instant::now() + 3 * SOON;
    while get(client, &path).await["lagEvents"] != 0 {
        assert!(tokio::time::Instant::now() < deadline, "it lags");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let senders: Vec<Value> = receiver
        .received()
        .iter()
        .map(|one| one.json()["hubUuid"].clone())
        .collect();
    assert_eq!(senders, vec![json!(hub.hub_uuid); 2], "of no other hub");
    let events: Vec<Value> = client
        .get("/tenant/ble/events?size=20")
        .call()
        .await
        .expect(200)
        .data();
    for event in events {
        let expected = if event["hubUuid"] == json!(hub.hub_uuid) {
            "DELIVERED"
        } else {
            "NONE"
        };
        assert_eq!(event["deliveryStatus"], expected);
    }
    let tried = client
        .post(&format!("{path}/test-run"))
        .json(&json!({"last": 9}))
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(tried["data"]["results"].as_array().map(Vec::len), Some(2));
    for (at, takers) in [(hub.hub_uuid, 1), (other.hub_uuid, 0)] {
        let event = json!({"preset": "ruuvi/ruuvitag", "hubUuid": at});
        let run = client
            .post("/tenant/simulator/run")
            .json(&event)
            .call()
            .await
            .expect(200)
            .json();
        assert_eq!(
            run["data"]["pipelines"].as_array().map(Vec::len),
            Some(takers)
        );
    }
}

on_each_database!(an_archived_bundle_is_removed_from_hubs_if_wanted);
async fn an_archived_bundle_is_removed_from_hubs_if_wanted(backend: Backend) {
    let setting = Setting::new(backend).await;
    let client = &setting.tenant.client;
    let (logger, router) = (
        setting.app_with_release("logger", "1.0.0").await,
        setting.app_with_release("router", "1.0.0").await,
    );
    let pipeline = uuid(&made(client, &http()).await["pipelineUuid"]);
    let parts = json!({"apps": [{"appUuid": logger.app}, {"appUuid": router.app}], "pipelines": [pipeline]});
    let keeper = published(
        client,
        json!({"name": "Kept"}),
        &json!({"apps": [{"appUuid": logger.app}]}),
    )
    .await;
    let bundle = published(client, json!({"name": "Removed"}), &parts).await;
    let code = setting.code_for(&bundle).await;
    let (one, two) = (
        setting.claimed(&code, "one").await,
        setting.claimed(&code, "two").await,
    );
    // Somebody wants the router there, whatever the bundle says.
    let body = json!({"appReleaseUuid": router.release});
    client
        .post(&format!("/tenant/hubs/{two}/jobs/app-install"))
        .json(&body)
        .call()
        .await
        .expect(201);
    let three = setting
        .claimed(&setting.code_for(&keeper).await, "three")
        .await;

    client
        .post(&format!("{}/archive?atHubs=MAYBE", path_of(&keeper)))
        .call()
        .await
        .expect(400);
    client
        .post(&format!("{}/archive?atHubs=KEEP", path_of(&keeper)))
        .call()
        .await
        .expect(200);
    client
        .post(&format!("{}/archive?atHubs=REMOVE", path_of(&bundle)))
        .call()
        .await
        .expect(200);
    assert_eq!(
        setting.bundles_of(&one).await[0]["status"],
        "ARCHIVED",
        "it is removed by and by"
    );
    let payload =
        json!({"tenantUuid": setting.tenant.tenant_uuid, "bundleUuid": bundle["bundleUuid"]});
    for _ in 0..2 {
        let kind = "supplier_bundle.withdraw".to_owned();
        let task = Task {
            task_uuid: Uuid::nil(),
            kind,
            payload: payload.clone(),
            attempts: 1,
        };
        let done = upkeep::perform(setting.app.app.clone(), task)
            .await
            .expect("work");
        assert_eq!(done, Done::Finished);
    }
    assert_eq!(
        (
            setting.bundles_of(&one).await,
            setting.bundles_of(&two).await
        ),
        (json!([]), json!([]))
    );
    let removed = |jobs: Vec<Value>| -> Vec<Value> {
        let jobs = jobs.into_iter().filter(|job| job["type"] == "APP_REMOVE");
        jobs.map(|job| job["appUuid"].clone()).collect()
    };
    assert_eq!(removed(setting.jobs_of(&one).await).len(), 2);
    assert_eq!(removed(setting.jobs_of(&two).await), [json!(logger.app)]);
    let kept = setting.bundles_of(&three).await;
    assert_eq!(
        (&kept[0]["name"], &kept[0]["status"]),
        (&json!("Kept"), &json!("ARCHIVED"))
    );
    assert_eq!(removed(setting.jobs_of(&three).await), Vec::<Value>::new());
    let log = get(client, "/tenant/audit-logs?size=100").await.to_string();
    assert!(log.contains("supplier_bundle.withdraw"));
}
