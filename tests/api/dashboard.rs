//! `/tenant/dashboard/summary`.

use std::sync::atomic::Ordering;

use hub_composed::dashboard;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::devices::{make_device, make_model};
use hub_tests::{Backend, Call, Options, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

const NOON: i64 = 1_800_014_400_000_000;
const PATH: &str = "/tenant/dashboard/summary";

on_each_database!(a_summary_has_the_tenants_own_numbers);
async fn a_summary_has_the_tenants_own_numbers(backend: Backend) {
    let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let client = tenant
        .api_key(json!({"scopes": ["hubs:read"]}))
        .await
        .client;
    let empty: Value = client.get(PATH).call().await.expect(200).data();
    assert_eq!(empty["windowMinutes"], 60);
    assert_eq!(
        empty["hubs"],
        json!({"total": 0, "online": 0, "blocked": 0, "blind": 0})
    );
    assert_eq!(empty["ble"]["events"], 0);
    assert_eq!(
        empty["webhooks"],
        json!({"attempts": 0, "succeeded": 0, "successShare": null})
    );
    for (asked, used) in [
        ("0", 1),
        ("-7", 1),
        ("5", 5),
        ("1440", 1440),
        ("999999", 1440),
    ] {
        let summary: Value = client
            .get(&format!("{PATH}?windowMinutes={asked}"))
            .call()
            .await
            .expect(200)
            .data();
        assert_eq!(summary["windowMinutes"], used);
        assert!(summary["ble"]["series"].as_array().expect("points").len() <= 61);
    }
    let wrong = client
        .get(&format!("{PATH}?windowMinutes=many"))
        .call()
        .await
        .expect(400);
    assert_eq!(wrong.problem().errors[0].field, "windowMinutes");

    let hubs = [
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    ];
    let model = make_model(&tenant, "sensor").await;
    make_device(&tenant, model, json!({"name": "in the hall"})).await;
    // Of another tenant, which must not count.
    let other = Tenant::create(&app.client()).await;
    SimulatedHub::claim(&other).await.upload_events(3).await;
    let blind = json!({"adapters": {"A": {"state": "BLIND", "blind": []}}});
    let path = format!("/v1/hubs/{}/telemetry", hubs[0].hub_uuid);
    hubs[0]
        .client
        .post(&path)
        .json(&blind)
        .call()
        .await
        .expect(204);
    // Half a minute from where minutes begin.
    micros.fetch_add(30_000_000, Ordering::Relaxed);
    // Over half an hour, some of it counted in the background and some not.
    for round in 1..=30 {
        hubs[0].upload_events(2).await;
        micros.fetch_add(60_000_000, Ordering::Relaxed);
        if round % 7 == 0 {
            assert!(!dashboard::roll_up(&app.app).await.expect("a run"));
        }
    }
    let summary: Value = client
        .get(&format!("{PATH}?windowMinutes=120"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(summary["ble"]["events"], 60, "{summary}");
    let points = summary["ble"]["series"].as_array().expect("points");
    let in_points: i64 = points
        .iter()
        .filter_map(|point| point["events"].as_i64())
        .sum();
    assert_eq!(in_points, 60);
    assert!(
        points.iter().filter(|point| point["events"] != 0).count() >= 10,
        "{points:?}"
    );
    assert_eq!(
        (&summary["hubs"]["total"], &summary["devices"]["total"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(summary["ble"]["decodedShare"], 0.0);
    let last: Value = client
        .get(&format!("{PATH}?windowMinutes=10"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(last["ble"]["events"], 20, "{last}");

    hubs[0]
        .client
        .post(&path)
        .json(&blind)
        .call()
        .await
        .expect(204);
    let now: Value = client
        .get(&format!("{PATH}?windowMinutes=11"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        now["hubs"],
        json!({"total": 2, "online": 1, "blocked": 0, "blind": 1})
    );
    assert_eq!(
        dashboard::forget(&app.app.db, tenant.tenant_uuid, app.app.clock.now(), 1000)
            .await
            .expect("a run"),
        0
    );
    let day = app.app.clock.now().plus_secs(26 * 3600);
    assert!(
        dashboard::forget(&app.app.db, tenant.tenant_uuid, day, 1000)
            .await
            .expect("a run")
            > 0
    );
}
