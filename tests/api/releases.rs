//! Apps and releases: what is taken in, what is refused and by which name, and who is offered what.

use std::time::{Duration, SystemTime};

use hub_base::clock::Clock;
use hub_base::db::sql;
use hub_core::config::Settings;
use hub_protocol::AppUuid;
use hub_protocol::release::{ReleaseKind, ReleaseOffer};
use hub_tests::app::set_clock;
use hub_tests::client::{Call, Client, Reply};
use hub_tests::release::{make_agent, make_app, make_app_release, stored_files, upload};
use hub_tests::{
    Backend, Maker, Options, Person, Recipe, SimulatedHub, Tenant, TestApp, on_each_database,
};
use reqwest::header::IF_NONE_MATCH;
use serde_json::{Value, json};
use uuid::Uuid;

/// A service that trusts one maker, a tenant of it, and a platform administrator.
pub struct Place {
    pub app: TestApp,
    pub maker: Maker,
    pub tenant: Tenant,
    pub admin: Client,
}

impl Place {
    pub async fn new(backend: Backend) -> Self {
        Self::with_clock(backend, None).await
    }

    pub async fn with_clock(backend: Backend, clock: Option<Clock>) -> Self {
        Self::with_settings(backend, Settings::default(), clock).await
    }

    pub async fn with_settings(backend: Backend, settings: Settings, clock: Option<Clock>) -> Self {
        let maker = Maker::new();
        let settings = Settings {
            release_keys: Some(maker.keys()),
            ..settings
        };
        let app = TestApp::with(backend, Options { settings, clock }).await;
        let tenant = Tenant::create(&app.client()).await;
        let admin = Person::register(&app.client())
            .await
            .as_platform_admin(&app);
        Self {
            app,
            maker,
            tenant,
            admin,
        }
    }

    async fn create_app_release(&self, app_uuid: AppUuid, body: &Value) -> Reply {
        self.tenant
            .client
            .post(&format!("/tenant/apps/{app_uuid}/releases"))
            .json(body)
            .call()
            .await
    }

    pub async fn create_agent_release(&self, recipe: &Recipe) -> Reply {
        let body = self.maker.body(recipe, json!({"channel": "stable"}));
        self.admin
            .post("/platform/agent-releases")
            .json(&body)
            .call()
            .await
    }
}

#[track_caller]
fn names(reply: Reply, field: &str) {
    let problem = reply.clone().expect(400).problem();
    assert!(
        problem.errors.iter().any(|error| error.field == field),
        "{field} is not named: {}",
        reply.body
    );
}

on_each_database!(app_name_is_unique_within_its_tenant);
async fn app_name_is_unique_within_its_tenant(backend: Backend) {
    let Place { app, tenant, .. } = Place::new(backend).await;
    let create = async |body: Value| tenant.client.post("/tenant/apps").json(&body).call().await;
    let made: Value = create(json!({"name": "logger", "description": " Writes. "}))
        .await
        .expect(201)
        .data();
    assert_eq!(
        (&made["name"], &made["description"]),
        (&json!("logger"), &json!("Writes."))
    );
    let path = format!("/tenant/apps/{}", made["appUuid"].as_str().expect("a uuid"));
    assert_eq!(
        tenant
            .client
            .get(&path)
            .call()
            .await
            .expect(200)
            .data::<Value>(),
        made
    );
    assert_eq!(
        create(json!({"name": "logger"}))
            .await
            .expect(409)
            .problem()
            .code,
        "APP_EXISTS"
    );
    for name in [
        "",
        "Logger",
        "-logger",
        "log ger",
        "log_ger",
        "lög",
        &"l".repeat(65),
    ] {
        names(create(json!({"name": name})).await, "name");
    }
    names(
        create(json!({"name": "other", "description": "x".repeat(2001)})).await,
        "description",
    );
    names(
        create(json!({"name": "other", "description": "\u{0}"})).await,
        "description",
    );
    let other = Tenant::create(&app.client()).await;
    make_app(&other, "logger").await;
    other.client.get(&path).call().await.expect(404);
    make_app(&tenant, "router").await;
    let reply = tenant
        .client
        .get("/tenant/apps?size=1")
        .call()
        .await
        .expect(200);
    assert_eq!(
        (
            reply.header("x-total-count"),
            &reply.json()["data"][0]["name"]
        ),
        ("2", &json!("router"))
    );
}

on_each_database!(release_is_offered_once_its_file_is_complete);
async fn release_is_offered_once_its_file_is_complete(backend: Backend) {
    let place = Place::new(backend).await;
    let app_uuid = make_app(&place.tenant, "logger").await;
    let hub = SimulatedHub::claim(&place.tenant).await;
    let recipe = Recipe::app("logger", "1.0.0", 1);
    let body = place.maker.body(&recipe, json!({}));
    let made: Value = place
        .create_app_release(app_uuid, &body)
        .await
        .expect(201)
        .data();
    assert_eq!(
        (&made["status"], &made["readyAt"]),
        (&json!("AWAITING_FILE"), &Value::Null)
    );
    let path = format!(
        "/v1/apps/{}/manifest",
        made["releaseUuid"].as_str().expect("a uuid")
    );
    hub.client.get(&path).call().await.expect(404);
    let file_url = format!(
        "/tenant/apps/{app_uuid}/releases/{}/file-url",
        made["releaseUuid"].as_str().expect("a uuid")
    );
    let missing = place.tenant.client.get(&file_url).call().await;
    missing.expect(404);
    let taken: Value = upload(&place.app.client(), &made, &recipe.file)
        .await
        .expect(200)
        .data();
    assert_eq!(taken["status"], "READY");
    let reply = hub.client.get(&path).call().await.expect(200);
    let etag = reply.header("etag").to_owned();
    let offer: ReleaseOffer = reply.data();
    assert_eq!(
        (offer.app_uuid, offer.version.as_str()),
        (Some(app_uuid), "1.0.0")
    );
    assert_eq!(
        (offer.manifest, offer.signature),
        (
            recipe.manifest(),
            body["signature"].as_str().unwrap().to_owned()
        )
    );
    let file = place
        .app
        .client()
        .get(&offer.download_url)
        .call()
        .await
        .expect(200);
    assert_eq!(file.body.as_bytes(), recipe.file);
    let held = hub
        .client
        .get(&path)
        .header(IF_NONE_MATCH, &etag)
        .call()
        .await
        .expect(304);
    assert_eq!(
        (held.body.as_str(), held.header("etag")),
        ("", etag.as_str())
    );
    // The tenant gets it too.
    let asset = place.tenant.client.get(&file_url).call().await;
    let asset: Value = asset.expect(200).data();
    assert_eq!(
        (&asset["sizeBytes"], &asset["sha256"]),
        (&json!(recipe.file.len()), &made["sha256"])
    );
    let url = asset["url"].as_str().expect("a URL");
    let file = place.app.client().get(url).call().await.expect(200);
    assert_eq!(file.body.as_bytes(), recipe.file);
    let list = format!("/tenant/apps/{app_uuid}/releases");
    let listed = place
        .tenant
        .client
        .get(&list)
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        (
            &listed["data"][0]["status"],
            &listed["data"][0]["uploadUrl"]
        ),
        (&json!("READY"), &Value::Null)
    );
    assert!(listed["data"][0]["readyAt"].is_string());
    // Of another tenant's apps a hub hears nothing.
    let stranger = Tenant::create(&place.app.client()).await;
    SimulatedHub::claim(&stranger)
        .await
        .client
        .get(&path)
        .call()
        .await
        .expect(404);
    stranger.client.get(&list).call().await.expect(404);
    stranger.client.get(&file_url).call().await.expect(404);
    stranger
        .client
        .post(&list)
        .json(&body)
        .call()
        .await
        .expect(404);
    let again = upload(&place.app.client(), &made, &recipe.file)
        .await
        .expect(409);
    assert_eq!(again.problem().code, "ALREADY_READY");
}

on_each_database!(release_without_a_trusted_signature_is_refused);
async fn release_without_a_trusted_signature_is_refused(backend: Backend) {
    let place = Place::new(backend).await;
    let app_uuid = make_app(&place.tenant, "logger").await;
    let recipe = Recipe::app("logger", "1.0.0", 1);
    let good = place.maker.body(&recipe, json!({}));
    let changed = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    let stranger = Maker::new();
    let altered = recipe.manifest().replace("1.0.0", "1.0.1");
    let spaced = format!("{} ", recipe.manifest());
    let agent = Recipe {
        kind: ReleaseKind::Agent,
        ..recipe.clone()
    };
    for (body, field) in [
        (stranger.body(&recipe, json!({})), "signature"),
        (changed("manifest", json!(altered)), "signature"),
        (changed("manifest", json!(spaced)), "signature"),
        (changed("signature", json!("")), "signature"),
        (
            changed(
                "signature",
                json!("untrusted comment: x\nAAAA\ntrusted comment: y\nAAAA\n"),
            ),
            "signature",
        ),
        (changed("signature", json!("x".repeat(5000))), "signature"),
        (changed("signature", json!("a\u{0}b")), "signature"),
        (changed("signature", Value::Null), "signature"),
        (json!({"signature": good["signature"]}), "manifest"),
        (place.maker.body(&agent, json!({})), "manifest.kind"),
        (
            place.maker.body(
                &Recipe {
                    name: "router".into(),
                    ..recipe.clone()
                },
                json!({}),
            ),
            "manifest.name",
        ),
        (
            place.maker.body(
                &Recipe {
                    name: "Logger".into(),
                    ..recipe.clone()
                },
                json!({}),
            ),
            "manifest.name",
        ),
        (
            place.maker.body(
                &Recipe {
                    version: "1.0".into(),
                    ..recipe.clone()
                },
                json!({}),
            ),
            "manifest.version",
        ),
        (
            place.maker.body(
                &Recipe {
                    counter: 0,
                    ..recipe.clone()
                },
                json!({}),
            ),
            "manifest.counter",
        ),
        (
            place.maker.body(
                &Recipe {
                    file: Vec::new(),
                    ..recipe.clone()
                },
                json!({}),
            ),
            "manifest.sizeBytes",
        ),
    ] {
        names(place.create_app_release(app_uuid, &body).await, field);
    }
    // What is signed by the right key and is no manifest, or one of too large a file.
    let large = recipe.manifest().replace(
        &format!("\"sizeBytes\": {}", recipe.file.len()),
        "\"sizeBytes\": 2147483649",
    );
    for (manifest, field) in [
        ("{}", "manifest"),
        ("[", "manifest"),
        (large.as_str(), "manifest.sizeBytes"),
    ] {
        let body = json!({"manifest": manifest, "signature": place.maker.sign(manifest)});
        names(place.create_app_release(app_uuid, &body).await, field);
    }
    let listed = place
        .tenant
        .client
        .get(&format!("/tenant/apps/{app_uuid}/releases"))
        .call()
        .await
        .expect(200);
    assert_eq!(listed.header("x-total-count"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_are_refused_without_release_keys() {
    let maker = Maker::new();
    let settings = Settings {
        release_keys: Some(maker.keys()),
        ..Settings::default()
    };
    let app = TestApp::with(
        Backend::Sqlite,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let app_uuid = make_app(&tenant, "logger").await;
    let key = maker.keys().join("app/maker.pub");
    let text = std::fs::read_to_string(&key).expect("a key");
    std::fs::write(&key, "this is no key").expect("a file");
    let path = format!("/tenant/apps/{app_uuid}/releases");
    let body = maker.body(&Recipe::app("logger", "1.0.0", 1), json!({}));
    let problem = tenant
        .client
        .post(&path)
        .json(&body)
        .call()
        .await
        .expect(503)
        .problem();
    assert!(
        problem.code == "NO_RELEASE_KEYS" && problem.message.contains("release-keys"),
        "{}",
        problem.message
    );
    // A key is in force as soon as it is there.
    std::fs::write(&key, text).expect("a file");
    tenant
        .client
        .post(&path)
        .json(&body)
        .call()
        .await
        .expect(201);
}

on_each_database!(used_version_or_lower_counter_is_refused);
async fn used_version_or_lower_counter_is_refused(backend: Backend) {
    let place = Place::new(backend).await;
    let app_uuid = make_app(&place.tenant, "logger").await;
    let create = async |recipe: &Recipe| {
        place
            .create_app_release(app_uuid, &place.maker.body(recipe, json!({})))
            .await
    };
    let first = Recipe::app("logger", "1.0.0", 5);
    let made: Value = create(&first).await.expect(201).data();
    // Asked for again, as long as the file is awaited, it is the same release.
    let again: Value = create(&first).await.expect(201).data();
    assert_eq!(made["releaseUuid"], again["releaseUuid"]);
    upload(&place.app.client(), &again, &first.file)
        .await
        .expect(200);
    for (recipe, code) in [
        // Signed anew.
        (first.clone(), "RELEASE_EXISTS"),
        (
            Recipe {
                file: b"another".to_vec(),
                ..first.clone()
            },
            "RELEASE_EXISTS",
        ),
        (
            Recipe {
                counter: 6,
                ..first.clone()
            },
            "RELEASE_EXISTS",
        ),
        (
            Recipe {
                version: "1.0.1".into(),
                ..first.clone()
            },
            "RELEASE_EXISTS",
        ),
        (
            Recipe {
                version: "1.0.1".into(),
                architecture: "aarch64".into(),
                ..first.clone()
            },
            "RELEASE_EXISTS",
        ),
        (Recipe::app("logger", "1.1.0", 4), "COUNTER_TOO_LOW"),
    ] {
        assert_eq!(
            create(&recipe).await.expect(409).problem().code,
            code,
            "{recipe:?}"
        );
    }
    create(&Recipe {
        downgrade: true,
        ..Recipe::app("logger", "0.9.0", 4)
    })
    .await
    .expect(201);
    // Hubs may go back to what was there already, once it is signed so.
    create(&Recipe {
        downgrade: true,
        ..Recipe::app("logger", "1.0.0", 2)
    })
    .await
    .expect(201);
    create(&Recipe::app("logger", "1.1.0", 6)).await.expect(201);
    // Another app of the same maker counts for itself.
    let router = make_app(&place.tenant, "router").await;
    let body = place
        .maker
        .body(&Recipe::app("router", "1.0.0", 5), json!({}));
    place.create_app_release(router, &body).await.expect(201);
}

on_each_database!(release_counters_only_increase);
/// A hub counts once for all it runs, whether that was built for its architecture or for any.
async fn release_counters_only_increase(backend: Backend) {
    let place = Place::new(backend).await;
    let app_uuid = make_app(&place.tenant, "logger").await;
    for (architecture, counter, expected) in [
        ("x86_64", 5, 201),
        ("aarch64", 3, 201),
        ("any", 4, 409),
        ("aarch64", 2, 409),
        ("aarch64", 4, 201),
        ("any", 7, 201),
        ("x86_64", 6, 409),
        ("riscv64", 1, 409),
        ("riscv64", 8, 201),
    ] {
        let version = format!("1.{counter}.0");
        let of = |recipe: Recipe| Recipe {
            architecture: architecture.to_owned(),
            ..recipe
        };
        let body = place
            .maker
            .body(&of(Recipe::app("logger", &version, counter)), json!({}));
        let agent = place
            .create_agent_release(&of(Recipe::agent(&version, counter)))
            .await;
        for reply in [place.create_app_release(app_uuid, &body).await, agent] {
            assert_eq!(
                reply.status.as_u16(),
                expected,
                "{architecture} {counter}: {}",
                reply.body
            );
            assert!(
                expected == 201 || reply.problem().code == "COUNTER_TOO_LOW",
                "{}",
                reply.body
            );
        }
    }
}

on_each_database!(repeated_release_request_returns_the_existing_release);
async fn repeated_release_request_returns_the_existing_release(backend: Backend) {
    let place = Place::new(backend).await;
    let app_uuid = make_app(&place.tenant, "logger").await;
    let recipe = Recipe::app("logger", "1.0.0", 1);
    let body = place.maker.body(&recipe, json!({}));
    let made: Value = place
        .create_app_release(app_uuid, &body)
        .await
        .expect(201)
        .data();
    upload(&place.app.client(), &made, &recipe.file)
        .await
        .expect(200);
    let again: Value = place
        .create_app_release(app_uuid, &body)
        .await
        .expect(201)
        .data();
    assert_eq!(
        (&again["releaseUuid"], &again["status"]),
        (&made["releaseUuid"], &json!("READY"))
    );
    assert_eq!(
        (&again["uploadUrl"], &again["uploadUrlExpiresAt"]),
        (&Value::Null, &Value::Null)
    );

    let recipe = Recipe::agent("1.0.0", 1);
    let body = place.maker.body(&recipe, json!({"channel": "stable"}));
    let create = async |more: Value| {
        let mut body = body.clone();
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        place
            .admin
            .post("/platform/agent-releases")
            .json(&body)
            .call()
            .await
    };
    create(json!({})).await.expect(201);
    // What is said last counts, while the file is awaited.
    let made: Value = create(json!({"channel": "beta", "active": false}))
        .await
        .expect(201)
        .data();
    assert_eq!(
        (&made["channel"], &made["active"]),
        (&json!("beta"), &json!(false))
    );
    let listed = place
        .admin
        .get("/platform/agent-releases")
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&listed["data"][0]["channel"], &listed["data"][0]["active"]),
        (&json!("beta"), &json!(false))
    );
    upload(&place.app.client(), &made, &recipe.file)
        .await
        .expect(200);
    let again: Value = create(json!({"channel": "beta", "active": false}))
        .await
        .expect(201)
        .data();
    assert_eq!(
        (&again["releaseUuid"], &again["uploadUrl"]),
        (&made["releaseUuid"], &Value::Null)
    );
    for more in [
        json!({"active": false}),
        json!({"channel": "beta"}),
        json!({"signature": place.maker.sign("x")}),
    ] {
        let reply = create(more.clone()).await;
        assert!(
            matches!(reply.status.as_u16(), 400 | 409),
            "{more}: {}",
            reply.body
        );
    }
    assert!(
        create(json!({}))
            .await
            .expect(409)
            .problem()
            .message
            .contains("PATCH")
    );
    // Nothing was made, changed or offered anew.
    let after = place
        .admin
        .get("/platform/agent-releases")
        .call()
        .await
        .expect(200);
    assert_eq!(
        (
            after.header("x-total-count"),
            &after.json()["data"][0]["channel"]
        ),
        ("1", &json!("beta"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_minisign_signatures_are_accepted() {
    let place = Place::new(Backend::Sqlite).await;
    let recipe = Recipe::agent("1.0.0", 1);
    let signature = place.maker.sign_unhashed(&recipe.manifest());
    let read = minisign::SignatureBox::from_string(&signature).expect("a signature");
    let manifest = std::io::Cursor::new(recipe.manifest());
    minisign::verify(
        &place.maker.public_key(),
        &read,
        manifest,
        true,
        false,
        true,
    )
    .expect("one that minisign takes");
    let body = |manifest: String| json!({"channel": "stable", "manifest": manifest, "signature": signature});
    let create = async |body: Value| {
        place
            .admin
            .post("/platform/agent-releases")
            .json(&body)
            .call()
            .await
    };
    names(
        create(body(recipe.manifest().replace("1.0.0", "1.0.1"))).await,
        "signature",
    );
    create(body(recipe.manifest())).await.expect(201);
}

on_each_database!(concurrent_creators_of_a_release_have_one_winner);
async fn concurrent_creators_of_a_release_have_one_winner(backend: Backend) {
    let place = Place::new(backend).await;
    let recipes: Vec<Recipe> = (0..8)
        .map(|n| Recipe {
            file: vec![n],
            ..Recipe::agent("1.0.0", 1)
        })
        .collect();
    let calls = recipes
        .iter()
        .map(|recipe| place.create_agent_release(recipe));
    let statuses: Vec<u16> = futures_util::future::join_all(calls)
        .await
        .iter()
        .map(|reply| reply.status.as_u16())
        .collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 201).count(),
        1,
        "{statuses:?}"
    );
    assert!(
        statuses.iter().all(|status| matches!(status, 201 | 409)),
        "{statuses:?}"
    );
}

on_each_database!(latest_agent_release_is_the_highest_version_for_the_hub);
async fn latest_agent_release_is_the_highest_version_for_the_hub(backend: Backend) {
    let Place {
        app,
        maker,
        tenant,
        admin,
    } = Place::new(backend).await;
    let code = tenant.claim_code().await;
    let claim =
        json!({"claimCode": code, "deviceInstanceId": Uuid::new_v4(), "os": {"arch": "aarch64"}});
    let token = app
        .client()
        .post("/v1/hubs/claim")
        .json(&claim)
        .call()
        .await
        .expect(201)
        .json();
    let hub = app
        .client()
        .bearer(token["data"]["accessToken"].as_str().expect("a token"));
    let latest = async |query: &str| {
        hub.get(&format!("/v1/agent/releases/latest{query}"))
            .call()
            .await
    };
    latest("").await.expect(404);
    let arm = |version: &str, counter| Recipe {
        architecture: "aarch64".into(),
        ..Recipe::agent(version, counter)
    };
    let version_of = |reply: Reply| reply.expect(200).data::<ReleaseOffer>().version;
    make_agent(&admin, &maker, &arm("1.9.0", 1), json!({})).await;
    let ten = make_agent(&admin, &maker, &arm("1.10.0", 2), json!({})).await;
    // Built later, and lower all the same.
    make_agent(&admin, &maker, &arm("1.9.9", 3), json!({})).await;
    make_agent(&admin, &maker, &arm("1.10.0-rc.1", 4), json!({})).await;
    make_agent(&admin, &maker, &arm("2.0.0", 5), json!({"channel": "beta"})).await;
    make_agent(&admin, &maker, &arm("3.0.0", 6), json!({"active": false})).await;
    make_agent(&admin, &maker, &Recipe::agent("4.0.0", 7), json!({})).await;
    let image = Recipe {
        name: "hub-os".into(),
        ..arm("9.0.0", 1)
    };
    make_agent(&admin, &maker, &image, json!({"category": "HUB_OS"})).await;
    let body = maker.body(&arm("5.0.0", 8), json!({"channel": "stable"}));
    admin
        .post("/platform/agent-releases")
        .json(&body)
        .call()
        .await
        .expect(201);
    assert_eq!(version_of(latest("").await), "1.10.0");
    assert_eq!(version_of(latest("?channel=beta").await), "2.0.0");
    assert_eq!(version_of(latest("?architecture=x86_64").await), "4.0.0");
    latest("?channel=nightly").await.expect(404);
    latest("?architecture=riscv64").await.expect(404);
    names(latest("?architecture=no/where").await, "architecture");
    names(latest("?channel=A").await, "channel");
    names(latest("?releaseUuid=x").await, "releaseUuid");
    latest(&format!("?releaseUuid={}", Uuid::new_v4()))
        .await
        .expect(404);
    // A withdrawn release is not the newest, and hubs with a job for it may still get it.
    let ten = ten["releaseUuid"].as_str().expect("a uuid");
    let path = format!("/platform/agent-releases/{ten}");
    admin
        .patch(&path)
        .json(&json!({"active": false}))
        .call()
        .await
        .expect(200);
    assert_eq!(version_of(latest("").await), "1.10.0-rc.1");
    assert_eq!(
        version_of(latest(&format!("?releaseUuid={ten}")).await),
        "1.10.0"
    );
    // `any` is for every hub.
    make_agent(
        &admin,
        &maker,
        &Recipe {
            architecture: "any".into(),
            ..arm("1.11.0", 9)
        },
        json!({}),
    )
    .await;
    assert_eq!(version_of(latest("").await), "1.11.0");
    let silent = SimulatedHub::claim(&tenant).await;
    assert_eq!(
        version_of(silent.client.get("/v1/agent/releases/latest").call().await),
        "1.11.0"
    );
}

on_each_database!(platform_decides_which_releases_tenants_see);
async fn platform_decides_which_releases_tenants_see(backend: Backend) {
    let place = Place::new(backend).await;
    let Place {
        maker,
        tenant,
        admin,
        ..
    } = &place;
    let stable = make_agent(admin, maker, &Recipe::agent("1.0.0", 1), json!({})).await;
    let beta = make_agent(
        admin,
        maker,
        &Recipe::agent("1.1.0", 2),
        json!({"channel": "beta", "active": false}),
    )
    .await;
    let awaiting: Value = place
        .create_agent_release(&Recipe::agent("1.2.0", 3))
        .await
        .expect(201)
        .data();
    let versions = async |client: &Client, path: &str| -> Vec<String> {
        let reply = client.get(path).call().await.expect(200);
        let listed = reply.json()["data"].as_array().expect("a list").clone();
        assert_eq!(reply.header("x-total-count"), listed.len().to_string());
        listed
            .iter()
            .map(|row| row["version"].as_str().expect("a version").to_owned())
            .collect()
    };
    assert_eq!(
        versions(&tenant.client, "/tenant/agent-releases").await,
        ["1.1.0", "1.0.0"]
    );
    assert_eq!(
        versions(&tenant.client, "/tenant/agent-releases?activeOnly=true").await,
        ["1.0.0"]
    );
    assert_eq!(
        versions(&tenant.client, "/tenant/agent-releases?channel=beta").await,
        ["1.1.0"]
    );
    assert_eq!(
        versions(admin, "/platform/agent-releases").await,
        ["1.2.0", "1.1.0", "1.0.0"]
    );
    assert_eq!(
        versions(admin, "/platform/agent-releases?channel=stable").await,
        ["1.2.0", "1.0.0"]
    );
    let path = |release: &Value| {
        format!(
            "/tenant/agent-releases/{}",
            release["releaseUuid"].as_str().expect("a uuid")
        )
    };
    tenant.client.get(&path(&stable)).call().await.expect(200);
    tenant.client.get(&path(&awaiting)).call().await.expect(404);
    // What proved itself in beta becomes stable.
    let change = path(&beta).replace("/tenant/", "/platform/");
    let body = json!({"active": true, "channel": "stable"});
    let changed: Value = admin
        .patch(&change)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&changed["active"], &changed["channel"]),
        (&json!(true), &json!("stable"))
    );
    let unchanged: Value = admin
        .patch(&change)
        .json(&json!({}))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(unchanged, changed);
    names(
        admin
            .patch(&change)
            .json(&json!({"channel": "a b"}))
            .call()
            .await,
        "channel",
    );
    assert_eq!(
        versions(&tenant.client, "/tenant/agent-releases?activeOnly=true").await,
        ["1.1.0", "1.0.0"]
    );
    // Only the agent is called hub-agent.
    for (name, category) in [("hub-agent", "INSTALLER"), ("hub-os", "HUB_AGENT")] {
        let recipe = Recipe {
            name: name.into(),
            ..Recipe::agent("7.0.0", 7)
        };
        let body = maker.body(&recipe, json!({"channel": "stable", "category": category}));
        names(
            admin
                .post("/platform/agent-releases")
                .json(&body)
                .call()
                .await,
            "manifest.name",
        );
    }
    let body = maker.body(&Recipe::agent("7.0.0", 7), json!({"channel": "../x"}));
    names(
        admin
            .post("/platform/agent-releases")
            .json(&body)
            .call()
            .await,
        "channel",
    );
}

on_each_database!(newest_release_of_each_kind_can_be_downloaded);
async fn newest_release_of_each_kind_can_be_downloaded(backend: Backend) {
    let Place {
        app,
        maker,
        tenant,
        admin,
    } = Place::new(backend).await;
    let manifest = async |query: &str| {
        tenant
            .client
            .get(&format!("/tenant/downloads/manifest{query}"))
            .call()
            .await
            .expect(200)
            .data::<Value>()
    };
    let empty = manifest("").await;
    assert_eq!(
        (&empty["latestRelease"], &empty["installer"]),
        (&Value::Null, &json!([]))
    );
    let old = make_agent(&admin, &maker, &Recipe::agent("1.2.0", 1), json!({})).await;
    make_agent(&admin, &maker, &Recipe::agent("1.10.0", 2), json!({})).await;
    let arm = Recipe {
        architecture: "aarch64".into(),
        ..Recipe::agent("1.3.0", 3)
    };
    make_agent(&admin, &maker, &arm, json!({})).await;
    let installer = Recipe {
        name: "installer".into(),
        ..Recipe::agent("1.0.0", 1)
    };
    make_agent(&admin, &maker, &installer, json!({"category": "INSTALLER"})).await;
    make_agent(
        &admin,
        &maker,
        &Recipe::agent("2.0.0", 9),
        json!({"channel": "beta"}),
    )
    .await;
    let found = manifest("").await;
    assert_eq!(
        (&found["channel"], &found["latestRelease"]["version"]),
        (&json!("stable"), &json!("1.10.0"))
    );
    let versions = |kind: &str| -> Vec<String> {
        let assets = found[kind].as_array().expect("a list");
        assets
            .iter()
            .map(|asset| format!("{} {}", asset["architecture"], asset["version"]).replace('"', ""))
            .collect()
    };
    assert_eq!(versions("hubAgent"), ["aarch64 1.3.0", "x86_64 1.10.0"]);
    assert_eq!(versions("installer"), ["x86_64 1.0.0"]);
    assert!(versions("hubOs").is_empty());
    assert_eq!(
        manifest("?channel=beta").await["latestRelease"]["version"],
        "2.0.0"
    );
    let asset_id = found["installer"][0]["assetId"].as_i64().expect("an id");
    let url = async |query: String| {
        tenant
            .client
            .get(&format!("/tenant/downloads/asset-url?{query}"))
            .call()
            .await
    };
    let asset: Value = url(format!("category=INSTALLER&assetId={asset_id}"))
        .await
        .expect(200)
        .data();
    let file = app
        .client()
        .get(asset["url"].as_str().expect("a URL"))
        .call()
        .await
        .expect(200);
    assert_eq!(file.body.as_bytes(), installer.file);
    // What is not the newest is still offered.
    url(format!("category=HUB_AGENT&assetId={}", old["assetId"]))
        .await
        .expect(200);
    url(format!("category=HUB_OS&assetId={asset_id}"))
        .await
        .expect(404);
    url("category=HUB_OS&assetId=999999".to_owned())
        .await
        .expect(404);
    names(
        url(format!("category=FILM&assetId={asset_id}")).await,
        "category",
    );
    names(url("category=HUB_OS".to_owned()).await, "assetId");
    names(url("assetId=1".to_owned()).await, "category");
    names(
        url("category=HUB_OS&assetId=one".to_owned()).await,
        "assetId",
    );
    let feed = app
        .client()
        .get("/installer/stable.json")
        .call()
        .await
        .expect(200)
        .json();
    let feed = feed["data"].as_array().expect("a list");
    assert_eq!(feed.len(), 4);
    assert_eq!(
        (&feed[0]["name"], &feed[0]["sha256"]),
        (&json!("installer"), &asset["sha256"])
    );
    let file = app
        .client()
        .get(feed[0]["url"].as_str().expect("a URL"))
        .call()
        .await
        .expect(200);
    assert_eq!(file.body.as_bytes(), installer.file);
    app.client()
        .get("/installer/stable.txt")
        .call()
        .await
        .expect(404);
    names(
        app.client().get("/installer/A%20B.json").call().await,
        "filename",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn api_keys_with_the_scope_create_releases() {
    let place = Place::new(Backend::Sqlite).await;
    let writer = place
        .tenant
        .api_key(json!({"scopes": ["releases:read", "releases:write"]}))
        .await
        .client;
    let made: Value = writer
        .post("/tenant/apps")
        .json(&json!({"name": "logger"}))
        .call()
        .await
        .expect(201)
        .data();
    let path = format!(
        "/tenant/apps/{}/releases",
        made["appUuid"].as_str().expect("a uuid")
    );
    let body = place
        .maker
        .body(&Recipe::app("logger", "1.0.0", 1), json!({}));
    writer.post(&path).json(&body).call().await.expect(201);
    writer.get(&path).call().await.expect(200);
    let reader = place
        .tenant
        .api_key(json!({"scopes": ["releases:read"]}))
        .await
        .client;
    reader.get(&path).call().await.expect(200);
    reader.post(&path).json(&body).call().await.expect(403);
}

on_each_database!(release_without_a_file_is_deleted_in_time);
async fn release_without_a_file_is_deleted_in_time(backend: Backend) {
    let (clock, micros) = set_clock(Clock::System.now());
    let place = Place::with_clock(backend, Some(clock)).await;
    let app_uuid = make_app(&place.tenant, "logger").await;
    make_app_release(
        &place.tenant,
        app_uuid,
        &place.maker,
        &Recipe::app("logger", "1.0.0", 1),
    )
    .await;
    let body = place
        .maker
        .body(&Recipe::app("logger", "1.1.0", 2), json!({}));
    place.create_app_release(app_uuid, &body).await.expect(201);
    place
        .create_agent_release(&Recipe::agent("1.0.0", 1))
        .await
        .expect(201);
    let forget = async || {
        hub_fleet::releases::forget_abandoned(&place.app.app.parts().releases, 50)
            .await
            .expect("upkeep")
    };
    assert_eq!(forget().await, 0);
    // What a killed process left of an upload, and what another is still writing.
    let folder = place.app.data_dir().join("files/releases");
    let uuid = Uuid::new_v4();
    for (number, age_secs) in [(1, 2 * 3600), (2, 60)] {
        let draft =
            std::fs::File::create(folder.join(format!("{uuid}#{number}"))).expect("a draft");
        let modified = SystemTime::now() - Duration::from_secs(age_secs);
        draft.set_modified(modified).expect("a time");
    }
    assert_eq!(
        (forget().await, stored_files(place.app.data_dir()).len()),
        (0, 2)
    );
    std::fs::remove_file(folder.join(format!("{uuid}#2"))).expect("the draft");
    micros.fetch_add(27 * 3_600_000_000, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(forget().await, 2);
    assert_eq!(forget().await, 0);
    // What is READY stays, and so does its file.
    let mut conn = place.app.app.db.read().await.expect("a connection");
    let (left,): (i64,) = sql("SELECT COUNT(*) FROM app_releases")
        .one(&mut conn)
        .await
        .expect("a count");
    assert_eq!((left, stored_files(place.app.data_dir()).len()), (1, 1));
}

on_each_database!(renewed_release_without_a_file_is_kept);
/// Somebody asks for another URL at the moment when the release is about to be forgotten.
async fn renewed_release_without_a_file_is_kept(backend: Backend) {
    let (clock, micros) = set_clock(Clock::System.now());
    let place = Place::with_clock(backend, Some(clock)).await;
    let app = place.app.app.clone();
    place
        .create_agent_release(&Recipe::agent("1.0.0", 1))
        .await
        .expect(201);
    micros.fetch_add(27 * 3_600_000_000, std::sync::atomic::Ordering::Relaxed);
    let mut renewal = app.db.begin().await.expect("a transaction");
    let renew = sql("UPDATE agent_releases SET created_at = $1").bind(app.clock.now());
    assert_eq!(renew.execute(&mut renewal).await.expect("renewed"), 1);
    let forgetting = tokio::spawn({
        let app = app.clone();
        async move { hub_fleet::releases::forget_abandoned(&app.parts().releases, 50).await }
    });
    // It has found the release by now, and waits.
    tokio::time::sleep(Duration::from_millis(500)).await;
    renewal
        .commit_unaudited("a test's own")
        .await
        .expect("a commit");
    forgetting.await.expect("it ends").expect("upkeep");
    let mut conn = app.db.read().await.expect("a connection");
    let (left,): (i64,) = sql("SELECT COUNT(*) FROM agent_releases")
        .one(&mut conn)
        .await
        .expect("a count");
    assert_eq!(left, 1);
}
