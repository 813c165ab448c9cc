//! Events with what was read from them, and the receptions of one frame as one observation.

use hub_protocol::Timestamp;
use hub_tests::devices::{make_device, make_model, put_readings};
use hub_tests::events::note_repeat;
use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

on_each_database!(receptions_of_one_frame_are_one_observation);
async fn receptions_of_one_frame_are_one_observation(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let model = make_model(&tenant, "Thermometer").await;
    let device = make_device(&tenant, model, json!({})).await["deviceInstanceId"]
        .as_i64()
        .expect("an id");
    let (one, two) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    one.upload_events(2).await;
    two.upload_events(1).await;
    let values = json!({"temperature": 21.5, "button[2]": "press"});
    let ids = put_readings(
        &app,
        &tenant,
        0,
        device,
        model,
        &[values.clone(), values.clone(), values],
    )
    .await;
    note_repeat(&app.app.db, tenant.tenant_uuid, ids[2], ids[0]).await;

    let list: Vec<Value> = tenant
        .client
        .get("/tenant/ble/events")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(list.len(), 3);
    for event in &list {
        assert_eq!(
            (&event["deviceUuid"], &event["deviceInstanceId"]),
            (&json!(model), &json!(device))
        );
        assert_eq!(
            (&event["protocolRevision"], &event["processingStatus"]),
            (&json!(3), &json!("DECODED"))
        );
        let temperature = json!({"quantity": "temperature", "value": 21.5, "unit": "Cel"});
        let button = json!({"quantity": "button", "value": "press", "kind": "EVENT", "index": 2});
        let measurements = event["measurements"].as_array().expect("a list");
        assert!(
            measurements.len() == 2
                && measurements.contains(&temperature)
                && measurements.contains(&button),
            "{event}"
        );
        assert!(event.get("counterStatus").is_none() && event.get("receptions").is_none());
    }
    let path = format!("/tenant/ble/events/{}", ids[2]);
    let event: Value = tenant.client.get(&path).call().await.expect(200).data();
    assert_eq!(event, list[0]);

    let reply = tenant
        .client
        .get("/tenant/ble/events?view=observations")
        .call()
        .await
        .expect(200);
    assert_eq!(reply.header("x-total-count"), "2");
    let list: Vec<Value> = reply.data();
    let reception = |hub: &SimulatedHub, id: i64, rssi: i64| json!({"bleEventId": id, "hubUuid": hub.hub_uuid, "rssiDbm": rssi, "receivedAt": Timestamp::from_micros(id)});
    assert_eq!(list[0]["receptions"], json!([reception(&one, ids[1], -41)]));
    assert_eq!(
        list[1]["receptions"],
        json!([reception(&one, ids[0], -40), reception(&two, ids[2], -40)])
    );
    let page: Value = tenant
        .client
        .get("/tenant/ble-query/events?view=observations&size=1")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&page["totalElements"], &page["content"][0]),
        (&json!(2), &list[0])
    );
    let page: Value = tenant
        .client
        .get("/tenant/ble-query/events?view=receptions")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(page["totalElements"], 3);
    for path in [
        "/tenant/ble/events",
        "/tenant/ble-query/events",
        "/tenant/stream/ble/events",
    ] {
        let refused = tenant
            .client
            .get(&format!("{path}?view=both"))
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(refused.errors[0].field, "view");
    }

    // A stream begins before the first event.
    for (view, expected) in [
        ("observations", vec![ids[0], ids[1]]),
        ("receptions", ids.clone()),
    ] {
        let path = format!("/tenant/stream/ble/events?view={view}");
        let follower = hub_tests::stream::Follower::start(&tenant.client, &path, 100, 1);
        follower.until(expected.len()).await;
        let seen: Vec<i64> = follower
            .seen()
            .iter()
            .filter_map(|event| event.data["bleEventId"].as_i64())
            .collect();
        assert_eq!(seen, expected, "{view}");
        assert_eq!(
            follower.seen()[0].data["measurements"]
                .as_array()
                .map(Vec::len),
            Some(2)
        );
    }
}
