//! What can be tried before it is saved: test runs, the time machine, graphs and texts.

use hub_identity::authz::permission::Role;
use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

use super::device_catalog::get;
use super::pipelines::{PIPELINES, http, made, path_of, with};

on_each_database!(test_runs_show_each_step);
async fn test_runs_show_each_step(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(5).await;
    let events = get(client, "/tenant/ble/events").await;
    let steps = json!([{"op": "filter", "when": "rssi > -70"}, {"op": "drop", "fields": ["rssi"]}]);
    let new = made(client, &with(http(), "steps", steps)).await;
    let path = format!("{}/test-run", path_of(&new));
    let run = async |body: Value| -> Value {
        let found: Value = client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        found["results"].clone()
    };
    let near = run(json!({"event": {"rssi": -60, "address": "C4:11:00:00:00:01"}})).await;
    assert_eq!(near[0]["steps"][0]["op"], "filter");
    assert_eq!(near[0]["steps"][1]["op"], "drop");
    assert_eq!(
        (near[0]["output"].get("rssi"), &near[0]["output"]["address"]),
        (None, &json!("C4:11:00:00:00:01"))
    );
    assert_eq!(near[0]["request"]["method"], "POST");
    assert_eq!(near[0]["request"]["url"], "https://example.com/in");
    assert_eq!(near[0].get("response"), None);
    let far = run(json!({"event": {"rssi": -80}})).await;
    assert_eq!(
        (&far[0]["steps"][0]["dropped"], far[0].get("output")),
        (&json!(true), None)
    );
    let draft =
        run(json!({"event": {"rssi": -80}, "steps": [{"op": "template", "body": "heard"}]})).await;
    assert_eq!(draft[0]["output"], "heard");
    let by_id = run(
        json!({"bleEventIds": [events[0]["bleEventId"], events[4]["bleEventId"]], "steps": []}),
    )
    .await;
    assert_eq!(by_id.as_array().map(Vec::len), Some(2));
    assert_eq!(
        by_id[1]["input"]["bleEventId"], events[0]["bleEventId"],
        "oldest first"
    );
    let last = run(json!({"last": 3, "steps": []})).await;
    let ids: Vec<&Value> = last
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["input"]["bleEventId"])
        .collect();
    assert_eq!(
        ids,
        [
            &events[2]["bleEventId"],
            &events[1]["bleEventId"],
            &events[0]["bleEventId"]
        ]
    );
    let elsewhere =
        run(json!({"event": {"rssi": -60}, "source": {"hubUuids": [hub.hub_uuid]}})).await;
    assert_eq!(
        (&elsewhere[0]["selected"], &elsewhere[0]["steps"]),
        (&json!(false), &json!([]))
    );

    let stranger = Tenant::create(&app.client()).await;
    stranger
        .client
        .post(&path)
        .json(&json!({}))
        .call()
        .await
        .expect(404);
    let viewer = tenant.member(Role::Viewer).await;
    viewer
        .post(&path)
        .json(&json!({"event": {}}))
        .call()
        .await
        .expect(200);
    viewer
        .post(&path)
        .json(&json!({"event": {}, "send": true}))
        .call()
        .await
        .expect(403);
    for (body, field) in [
        (json!({"evnt": {}}), "/evnt"),
        (json!({"event": []}), "/event"),
        (json!({"event": {"hubUuid": "x"}}), "/event/hubUuid"),
        (json!({"event": {"observedAt": "x"}}), "/event/observedAt"),
        (json!({"event": {}, "last": 1}), "/last"),
        (json!({"last": 0}), "/last"),
        (json!({"last": 101}), "/last"),
        (json!({"bleEventIds": []}), "/bleEventIds"),
        (json!({"bleEventIds": [7]}), "/bleEventIds/0"),
        (json!({"send": 1}), "/send"),
        (
            json!({"steps": [{"op": "filter", "when": "("}]}),
            "/steps/0/when",
        ),
        (
            json!({"destination": {"kind": "HTTP", "url": "x"}}),
            "/destination/url",
        ),
        (json!({"source": {"known": 1}}), "/source/known"),
    ] {
        let problem = client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
}

on_each_database!(a_draft_is_compared_with_what_runs);
async fn a_draft_is_compared_with_what_runs(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let (one, two) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    one.upload_events(3).await;
    two.upload_events(2).await;
    let events = get(client, "/tenant/ble/events").await;
    let new = made(
        client,
        &with(http(), "source", json!({"hubUuids": [one.hub_uuid]})),
    )
    .await;
    let path = format!("{}/compare", path_of(&new));
    let (from, to) = (&events[4]["receivedAt"], "2999-01-01T00:00:00Z");
    let compare = async |draft: Value, limit: i64| -> Value {
        let body = json!({"draft": draft, "from": from, "to": to, "limit": limit});
        client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(200)
            .data()
    };
    let counts = |found: &Value| {
        [
            "events",
            "same",
            "changed",
            "onlyBefore",
            "onlyAfter",
            "errors",
        ]
        .map(|name| found[name].as_i64().expect("a count"))
    };
    let same = compare(
        with(http(), "source", json!({"hubUuids": [one.hub_uuid]})),
        100,
    )
    .await;
    assert_eq!(counts(&same), [5, 5, 0, 0, 0, 0]);
    assert_eq!(
        (&same["complete"], &same["examples"]),
        (&json!(true), &json!([]))
    );
    let wider = compare(http(), 100).await;
    assert_eq!(counts(&wider), [5, 3, 0, 0, 2, 0]);
    assert_eq!(wider["examples"][0]["difference"], "ONLY_AFTER");
    assert_eq!(wider["examples"][0]["before"], json!({}));
    let narrower = compare(
        with(http(), "steps", json!([{"op": "filter", "when": "false"}])),
        100,
    )
    .await;
    assert_eq!(counts(&narrower), [5, 2, 0, 3, 0, 0]);
    let other = compare(
        with(
            http(),
            "steps",
            json!([{"op": "template", "body": "heard"}]),
        ),
        100,
    )
    .await;
    assert_eq!(counts(&other), [5, 0, 3, 0, 2, 0]);
    assert_eq!(other["examples"][0]["after"], json!({"output": "heard"}));
    let first = compare(http(), 2).await;
    assert_eq!((counts(&first)[0], &first["complete"]), (2, &json!(false)));
    assert!(first["readTo"].as_str() > events[3]["receivedAt"].as_str());
    let body =
        json!({"draft": with(http(), "steps", json!([{"op": "x"}])), "from": from, "to": to});
    assert_eq!(
        client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem()
            .errors[0]
            .field,
        "/draft/steps/0/op"
    );
    for (body, field) in [
        (json!({"draft": http(), "from": to, "to": from}), "to"),
        (
            json!({"draft": http(), "from": from, "to": to, "limit": 10_001}),
            "limit",
        ),
        (json!({"from": from, "to": to}), "draft"),
    ] {
        assert_eq!(
            client
                .post(&path)
                .json(&body)
                .call()
                .await
                .expect(400)
                .problem()
                .errors[0]
                .field,
            field
        );
    }
}

on_each_database!(graphs_and_texts_become_pipelines);
async fn graphs_and_texts_become_pipelines(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let path = format!("{PIPELINES}/transpile");
    let node =
        |id: &str, kind: &str, config: Value| json!({"id": id, "type": kind, "config": config});
    let destination = json!({"kind": "HTTP", "url": "https://example.com/in"});
    let nodes = json!([
        node("s", "source", json!({})),
        node("f", "filter", json!({"when": "rssi > -70"})),
        node("d", "destination", destination),
    ]);
    let graph =
        json!({"nodes": nodes, "edges": [{"from": "s", "to": "f"}, {"from": "f", "to": "d"}]});
    let found: Value = client
        .post(&path)
        .json(&graph)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        found["pipeline"]["steps"],
        json!([{"op": "filter", "when": "rssi > -70"}])
    );
    made(client, &found["pipeline"]).await;
    let back: Value = client
        .post(&path)
        .json(&json!({"pipeline": found["pipeline"]}))
        .call()
        .await
        .expect(200)
        .data();
    let again: Value = client
        .post(&path)
        .json(&back["graph"])
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(again["pipeline"], found["pipeline"]);
    let fork =
        json!({"nodes": nodes, "edges": [{"from": "s", "to": "f"}, {"from": "s", "to": "d"}]});
    let problem = client
        .post(&path)
        .json(&fork)
        .call()
        .await
        .expect(400)
        .problem();
    assert!(
        problem.errors[0].field.starts_with("/nodes"),
        "{}",
        problem.errors[0].field
    );
    for body in [
        json!({"text": "no such word"}),
        json!("no such word"),
        json!({"pipeline": []}),
        json!([]),
        json!(null),
    ] {
        client.post(&path).json(&body).call().await.expect(400);
    }
}
