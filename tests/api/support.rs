//! Until when device models and releases are supported, and notices before that ends.

use std::sync::atomic::Ordering;

use hub_base::db::sql;
use hub_core::config::Settings;
use hub_tests::devices::make_model;
use hub_tests::release::{make_agent, make_app, make_app_release, make_at};
use hub_tests::{Backend, Call, Maker, Recipe, SimulatedHub, Tenant, on_each_database};
use serde_json::{Value, json};

use super::notices::World;
use super::vulnerabilities::{get, image, package, runs};

const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;

/// The day so many days from now.
fn day_in(world: &World, days: i64) -> String {
    let now = world.micros.load(Ordering::Relaxed) + days * DAY_MICROS;
    let time = hub_protocol::Timestamp::from_micros(now).to_string();
    time[..10].to_owned()
}

on_each_database!(end_of_support_is_set_and_filtered_by);
async fn end_of_support_is_set_and_filtered_by(backend: Backend) {
    let maker = Maker::new();
    let settings = Settings {
        release_keys: Some(maker.keys()),
        ..Settings::default()
    };
    let world = World::with(backend, settings).await;
    let client = &world.client;
    let model = make_model(&world.tenant, "Sensor").await;
    make_model(&world.tenant, "Another").await;
    let path = format!("/tenant/device-catalog/{model}");
    for wrong in ["2027", "2027-02-30", "2027-1-1", "tomorrow!!"] {
        let body = json!({"supportedUntil": wrong});
        let problem = client.patch(&path).json(&body).call().await;
        assert_eq!(
            problem.expect(400).problem().errors[0].field,
            "supportedUntil"
        );
    }
    let body = json!({"supportedUntil": "2030-06-30"});
    let changed: Value = client
        .patch(&path)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(changed["supportedUntil"], "2030-06-30");
    for (before, expected) in [("2030-06-30", 0), ("2030-07-01", 1)] {
        let query = format!("/tenant/device-catalog?supportEndsBefore={before}");
        let found = get(client, &query).await;
        assert_eq!(found.as_array().map(Vec::len), Some(expected), "{before}");
    }
    let wrong = client.get("/tenant/device-catalog?supportEndsBefore=soon");
    let problem = wrong.call().await.expect(400).problem();
    assert_eq!(problem.errors[0].field, "supportEndsBefore");

    let app_uuid = make_app(&world.tenant, "logger").await;
    let recipe = Recipe::app("logger", "1.0.0", 1);
    let release = make_app_release(&world.tenant, app_uuid, &maker, &recipe).await;
    let of_app = format!("/tenant/apps/{app_uuid}/releases");
    let one = format!(
        "{of_app}/{}",
        release["releaseUuid"].as_str().expect("a uuid")
    );
    let set: Value = client
        .patch(&one)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(set["supportedUntil"], "2030-06-30");
    let same: Value = client
        .patch(&one)
        .json(&json!({}))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(same["supportedUntil"], "2030-06-30");
    let found = get(client, &format!("{of_app}?supportEndsBefore=2030-07-01")).await;
    assert_eq!(found[0]["supportedUntil"], "2030-06-30");
    let found = get(client, &format!("{of_app}?supportEndsBefore=2030-06-30")).await;
    assert_eq!(found, json!([]));
    let wrong = client
        .get(&format!("{of_app}?supportEndsBefore=soon"))
        .call()
        .await;
    assert_eq!(
        wrong.expect(400).problem().errors[0].field,
        "supportEndsBefore"
    );
    let wrong = client.patch(&one).json(&json!({"supportedUntil": "soon"}));
    let problem = wrong.call().await.expect(400).problem();
    assert_eq!(problem.errors[0].field, "supportedUntil");
    let none = client.patch(&one).json(&json!({"supportedUntil": ""}));
    let none: Value = none.call().await.expect(200).data();
    assert_eq!(none["supportedUntil"], Value::Null);
    let other = Tenant::create(&world.app.client()).await;
    other
        .client
        .patch(&one)
        .json(&body)
        .call()
        .await
        .expect(404);
}

on_each_database!(end_of_support_is_told_of_three_times);
async fn end_of_support_is_told_of_three_times(backend: Backend) {
    let maker = Maker::new();
    let settings = Settings {
        release_keys: Some(maker.keys()),
        hub_token_lifetime: Some("1000d".to_owned()),
        ..Settings::default()
    };
    let world = World::with(backend, settings).await;
    world
        .set(json!({"type": "SUPPORT_ENDING", "channel": "IN_APP", "enabled": true}))
        .await;
    world.scan().await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    let app_uuid = make_app(&world.tenant, "logger").await;
    let recipe = Recipe::app("logger", "1.0.0", 1);
    let release = make_app_release(&world.tenant, app_uuid, &maker, &recipe).await;
    let release_uuid = release["releaseUuid"].as_str().expect("a uuid");
    let body = json!({"supportedUntil": day_in(&world, 91)});
    let path = format!("/tenant/apps/{app_uuid}/releases/{release_uuid}");
    world
        .client
        .patch(&path)
        .json(&body)
        .call()
        .await
        .expect(200);
    world.pass(11, &[]).await;
    assert_eq!(
        world.titles().await.len(),
        0,
        "it is early, and no hub runs it"
    );
    let installed = json!({"apps": [{"appUuid": app_uuid, "releaseUuid": release_uuid,
        "version": "1.0.0", "state": "RUNNING", "since": "2026-01-31T08:00:00Z"}]});
    let path = format!("/v1/hubs/{}/installed-apps", hub.hub_uuid);
    hub.client
        .put(&path)
        .json(&installed)
        .call()
        .await
        .expect(204);
    let soon = "The support of logger 1.0.0 ends soon";
    let ended = "The support of logger 1.0.0 has ended";
    for (days, expected) in [
        (0, vec![]),
        (2, vec![soon]),
        (1, vec![soon]),
        (60, vec![soon, soon]),
        (28, vec![soon, soon]),
        (1, vec![soon, soon, ended]),
        (1, vec![soon, soon, ended]),
    ] {
        world.micros.fetch_add(days * DAY_MICROS, Ordering::Relaxed);
        world.pass(11, &[]).await;
        let mut conn = world.app.app.db.read().await.expect("a connection");
        let titles: Vec<String> = sql("SELECT title FROM notices ORDER BY notice_id")
            .scalars(&mut conn)
            .await
            .expect("titles");
        assert_eq!(titles, expected, "after {days} more days");
    }
}

on_each_database!(end_of_support_of_the_agent_reaches_tenants_that_run_it);
async fn end_of_support_of_the_agent_reaches_tenants_that_run_it(backend: Backend) {
    let maker = Maker::new();
    let settings = Settings {
        release_keys: Some(maker.keys()),
        hub_token_lifetime: Some("1000d".to_owned()),
        ..Settings::default()
    };
    let world = World::with(backend, settings).await;
    let admin = world.tenant.owner.as_platform_admin(&world.app);
    let path = "/platform/agent-releases";
    // The version that hubs report, and one that none runs.
    let (mut run, mut other) = (Recipe::agent("1.4.0", 1), Recipe::agent("1.5.0", 2));
    for recipe in [&mut run, &mut other] {
        recipe.architecture = "any".to_owned();
    }
    let wrong = maker.body(
        &run,
        json!({"channel": "stable", "supportedUntil": "2027-02-30"}),
    );
    let problem = admin.post(path).json(&wrong).call().await.expect(400);
    assert_eq!(problem.problem().errors[0].field, "supportedUntil");
    let day = day_in(&world, 30);
    let body = maker.body(&run, json!({"channel": "stable", "supportedUntil": day}));
    let made = make_at(&admin, path, &body, &run.file).await;
    assert_eq!(made["supportedUntil"], json!(day));
    make_agent(&admin, &maker, &other, json!({"supportedUntil": day})).await;

    // The same request is the same release, whatever has been set since.
    let one = format!("{path}/{}", made["releaseUuid"].as_str().expect("a uuid"));
    let change = async |body: Value| -> Value {
        let changed = admin.patch(&one).json(&body).call().await;
        changed.expect(200).data()
    };
    let kept = change(json!({"active": true})).await;
    assert_eq!(kept["supportedUntil"], json!(day));
    let removed = change(json!({"supportedUntil": ""})).await;
    assert_eq!(removed["supportedUntil"], Value::Null);
    let mut same = body.clone();
    same["supportedUntil"] = Value::Null;
    admin.post(path).json(&same).call().await.expect(201);
    let refused = admin.post(path).json(&body).call().await.expect(409);
    assert_eq!(refused.problem().code, "RELEASE_EXISTS");
    let wrong = admin.patch(&one).json(&json!({"supportedUntil": "soon"}));
    let problem = wrong.call().await.expect(400).problem();
    assert_eq!(problem.errors[0].field, "supportedUntil");
    change(json!({"supportedUntil": day})).await;
    for (path, client) in [(path, &admin), ("/tenant/agent-releases", &world.client)] {
        for (before, expected) in [(&day, 0), (&day_in(&world, 31), 2)] {
            let found = get(client, &format!("{path}?supportEndsBefore={before}")).await;
            assert_eq!(found.as_array().map(Vec::len), Some(expected), "{path}");
        }
        let wrong = client.get(&format!("{path}?supportEndsBefore=soon"));
        let problem = wrong.call().await.expect(400).problem();
        assert_eq!(problem.errors[0].field, "supportEndsBefore");
    }

    world
        .set(json!({"type": "SUPPORT_ENDING", "channel": "IN_APP", "enabled": true}))
        .await;
    world.scan().await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    world.pass(11, &[]).await;
    assert_eq!(world.titles().await.len(), 0, "no hub runs it");
    runs(&hub, &image(vec![package("bash", "5.2.15-2")])).await;
    world.pass(11, &[]).await;
    assert_eq!(
        world.titles().await,
        ["The support of hub-agent 1.4.0 ends soon"]
    );
}
