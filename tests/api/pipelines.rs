//! `/tenant/data-pipelines/**`: what operators define and change. Nothing is sent here.

use hub_tests::app::set_clock;
use hub_tests::{Backend, Call, Client, Options, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::device_catalog::get;
use crate::contract::pipelines::dead_letter;

pub const PIPELINES: &str = "/tenant/data-pipelines";
const DELIVERIES: &str = "/tenant/ble-query/deliveries";

/// A pipeline that takes everything, to a server that is nowhere.
pub fn http() -> Value {
    json!({"name": "Hall", "source": {}, "steps": [], "destination": {"kind": "HTTP", "url": "https://example.com/in"}})
}

pub fn with(mut body: Value, member: &str, value: Value) -> Value {
    body[member] = value;
    body
}

pub async fn made(client: &Client, body: &Value) -> Value {
    client
        .post(PIPELINES)
        .json(body)
        .call()
        .await
        .expect(201)
        .data()
}

pub fn path_of(pipeline: &Value) -> String {
    format!(
        "{PIPELINES}/{}",
        pipeline["pipelineUuid"].as_str().expect("a uuid")
    )
}

async fn post(client: &Client, path: &str, body: &Value) -> Value {
    client.post(path).json(body).call().await.expect(200).data()
}

on_each_database!(a_pipeline_is_defined_changed_and_deleted);
async fn a_pipeline_is_defined_changed_and_deleted(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(3).await;
    let events = get(client, "/tenant/ble/events").await;
    let auth = json!({"type": "BASIC", "username": "me", "password": "hidden"});
    let destination = json!({"kind": "HTTP", "url": "https://example.com/in", "auth": auth});
    let body = json!({
        "name": " Hall ", "source": {"hubUuids": [hub.hub_uuid, hub.hub_uuid], "quantities": ["temperature"]},
        "steps": [{"op": "filter", "when": "rssi > -90"}], "destination": destination,
        "delivery": {"batchEvents": 5, "concurrency": 4},
    });
    let new = made(client, &body).await;
    let secret = new["signingSecret"].as_str().expect("a secret");
    assert!(secret.starts_with("whsec_"), "{secret}");
    assert!(secret.ends_with(new["secretHint"].as_str().expect("a hint")));
    assert_eq!(
        (&new["name"], &new["status"], &new["revision"]),
        (&json!("Hall"), &json!("RUNNING"), &json!(1))
    );
    assert_eq!(
        new["source"],
        json!({"hubUuids": [hub.hub_uuid], "quantities": ["temperature"]})
    );
    let delivery = json!({
        "batchEvents": 5, "batchMillis": 1000, "ordered": false, "concurrency": 4, "timeoutSeconds": 15,
    });
    assert_eq!(new["delivery"], delivery);
    assert_eq!(
        new["destination"]["auth"],
        json!({"type": "BASIC", "username": "me"})
    );
    assert_eq!(
        (&new["cursor"], &new["lagEvents"]),
        (&events[0]["bleEventId"], &json!(0)),
        "it begins now"
    );

    let path = path_of(&new);
    let shown = get(client, &path).await;
    assert_eq!(shown.get("signingSecret"), None);
    let listed = get(client, PIPELINES).await;
    assert_eq!(listed, json!([shown]));
    for text in [
        shown.to_string(),
        listed.to_string(),
        get(client, "/tenant/audit-logs").await.to_string(),
    ] {
        assert!(!text.contains("hidden") && !text.contains(secret), "{text}");
    }

    hub.upload_events(2).await;
    // What was read is sent back with a change; the secrets stay.
    let changed = client
        .put(&path)
        .json(&with(shown, "name", json!("Yard")))
        .call()
        .await
        .expect(200);
    let changed: Value = changed.data();
    assert_eq!(
        (&changed["name"], &changed["revision"]),
        (&json!("Yard"), &json!(2))
    );
    assert_eq!(
        (&changed["cursor"], &changed["lagEvents"]),
        (&new["cursor"], &json!(2)),
        "it goes on where it was"
    );
    assert_eq!(changed.get("signingSecret"), None);
    assert_eq!(
        changed["destination"]["auth"],
        json!({"type": "BASIC", "username": "me"})
    );
    let elsewhere = with(
        http(),
        "destination",
        json!({"kind": "HTTP", "url": "https://example.org/in"}),
    );
    let refused = client
        .put(&path)
        .json(&elsewhere)
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(
        refused.errors[0].field, "/destination/auth",
        "secrets do not go to another server"
    );
    let none = json!({"kind": "HTTP", "url": "https://example.org/in", "auth": null});
    let changed = client
        .put(&path)
        .json(&with(http(), "destination", none))
        .call()
        .await
        .expect(200);
    assert_eq!(changed.data::<Value>()["destination"].get("auth"), None);

    let stranger = Tenant::create(&app.client()).await;
    stranger.client.get(&path).call().await.expect(404);
    stranger
        .client
        .put(&path)
        .json(&http())
        .call()
        .await
        .expect(404);
    stranger.client.delete(&path).call().await.expect(404);
    client.delete(&path).call().await.expect(204);
    client.get(&path).call().await.expect(404);
    assert_eq!(get(client, PIPELINES).await, json!([]));
}

on_each_database!(a_pipeline_is_paused_resumed_and_moved);
async fn a_pipeline_is_paused_resumed_and_moved(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(4).await;
    let events = get(client, "/tenant/ble/events").await;
    let id = |place: usize| events[place]["bleEventId"].as_i64().expect("an id");
    let start = with(
        http(),
        "source",
        json!({"startAt": events[2]["receivedAt"]}),
    );
    let body = with(start, "enabled", json!(false));
    let new = made(client, &body).await;
    assert_eq!(
        (&new["status"], &new["cursor"]),
        (&json!("DISABLED"), &json!(id(2) - 1))
    );
    assert_eq!(new["lagEvents"], 3);
    let path = path_of(&new);
    let resumed = post(client, &format!("{path}/resume"), &json!({})).await;
    assert_eq!(
        (&resumed["status"], &resumed["enabled"]),
        (&json!("RUNNING"), &json!(true))
    );
    assert_eq!(resumed["cursor"], new["cursor"]);
    let paused: Value = client
        .post(&format!("{path}/pause"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&paused["status"], &paused["cursor"]),
        (&json!("DISABLED"), &new["cursor"])
    );
    let now = post(client, &format!("{path}/resume"), &json!({"from": "NOW"})).await;
    assert_eq!(
        (&now["cursor"], &now["lagEvents"], &now["lagSeconds"]),
        (&json!(id(0)), &json!(0), &json!(0))
    );
    let back = post(
        client,
        &format!("{path}/resume"),
        &json!({"from": events[1]["receivedAt"]}),
    )
    .await;
    assert_eq!(
        (&back["cursor"], &back["lagEvents"]),
        (&json!(id(1) - 1), &json!(2))
    );
    for from in ["", "LATER", "2999-01-01T00:00:00Z"] {
        let refused = client
            .post(&format!("{path}/resume"))
            .json(&json!({"from": from}))
            .call()
            .await
            .expect(400);
        assert_eq!(refused.problem().errors[0].field, "from", "{from}");
    }
    // Without a body it goes on where it was.
    let resumed: Value = client
        .post(&format!("{path}/resume"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(resumed["cursor"], back["cursor"]);
}

on_each_database!(every_change_takes_the_lane_away);
async fn every_change_takes_the_lane_away(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let new = made(client, &http()).await;
    let path = path_of(&new);
    let lane = async || -> (i64, Option<Uuid>) {
        let mut conn = app.app.db.read().await.expect("a connection");
        hub_base::db::sql("SELECT epoch, owner FROM pipeline_lanes WHERE kind = 'LIVE'")
            .one(&mut conn)
            .await
            .expect("a lane")
    };
    let take = async || {
        let mut tx = app.app.db.begin().await.expect("a transaction");
        hub_base::db::sql("UPDATE pipeline_lanes SET owner = $1")
            .bind(Uuid::new_v4())
            .execute(&mut tx)
            .await
            .expect("an owner");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
    };
    for (method, of, body) in [
        ("PUT", "", http()),
        ("POST", "/pause", json!({})),
        ("POST", "/resume", json!({})),
        ("POST", "/resume", json!({"from": "NOW"})),
        ("POST", "/rotate-secret", json!({})),
        ("PUT", "", with(http(), "enabled", json!(false))),
        ("PUT", "", http()),
    ] {
        take().await;
        let (before, owner) = lane().await;
        assert!(owner.is_some());
        let path = format!("{path}{of}");
        let request = if method == "PUT" {
            client.put(&path)
        } else {
            client.post(&path)
        };
        request.json(&body).call().await.expect(200);
        let (after, owner) = lane().await;
        assert!(
            after > before && owner.is_none(),
            "{method} {of}: {before}, {after}, {owner:?}"
        );
    }
}

on_each_database!(secrets_are_rotated_with_an_overlap);
async fn secrets_are_rotated_with_an_overlap(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let new = made(client, &http()).await;
    let path = format!("{}/rotate-secret", path_of(&new));
    let rotated: Value = client.post(&path).call().await.expect(200).data();
    assert_ne!(rotated["signingSecret"], new["signingSecret"]);
    assert_eq!(rotated["revision"], new["revision"]);
    let until = rotated["previousSecretUntil"].as_str().expect("a time");
    assert!(
        until
            > app
                .app
                .clock
                .now()
                .plus_secs(23 * 3600)
                .to_string()
                .as_str(),
        "{until}"
    );
    let pipeline: Uuid = new["pipelineUuid"]
        .as_str()
        .expect("a uuid")
        .parse()
        .expect("a uuid");
    let loaded = hub_pipelines::definition::load(&app.app, &[(pipeline, 1)])
        .await
        .expect("revisions");
    let compiled = loaded[&(pipeline, 1)]
        .as_ref()
        .expect("a revision that runs");
    let signing = compiled.signing.as_ref().expect("secrets");
    let exposed =
        |secret: &secrecy::SecretString| json!(secrecy::ExposeSecret::expose_secret(secret));
    assert_eq!(exposed(&signing.current), rotated["signingSecret"]);
    let previous: Vec<Value> = signing.previous.iter().map(exposed).collect();
    assert_eq!(previous, [new["signingSecret"].clone()]);
    let mqtt = json!({"kind": "MQTT", "url": "mqtts://example.com", "topic": "hub"});
    let mqtt = made(client, &with(http(), "destination", mqtt)).await;
    assert_eq!(
        (mqtt.get("signingSecret"), &mqtt["secretHint"]),
        (None, &Value::Null)
    );
    let refused = client
        .post(&format!("{}/rotate-secret", path_of(&mqtt)))
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "NOT_SIGNED");
}

on_each_database!(each_replaced_secret_signs_for_its_own_day);
async fn each_replaced_secret_signs_for_its_own_day(backend: Backend) {
    let (clock, micros) = set_clock("2026-03-01T12:00:00Z".parse().expect("a time"));
    let options = Options {
        clock: Some(clock),
        ..Options::default()
    };
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = tenant.api_key(json!({"scopes": ["*"]})).await.client;
    let new = made(&client, &http()).await;
    let path = format!("{}/rotate-secret", path_of(&new));
    let pipeline: Uuid = new["pipelineUuid"]
        .as_str()
        .expect("a uuid")
        .parse()
        .expect("a uuid");
    let signs = async || -> Vec<Value> {
        let signing = hub_pipelines::definition::signing_of(&app.app, (pipeline, 1))
            .await
            .expect("secrets")
            .expect("it signs");
        std::iter::once(&signing.current)
            .chain(&signing.previous)
            .map(|secret| json!(secrecy::ExposeSecret::expose_secret(secret)))
            .collect()
    };
    let pass_hours =
        |hours: i64| micros.fetch_add(hours * 3_600_000_000, std::sync::atomic::Ordering::Relaxed);
    let mut secrets = vec![new["signingSecret"].clone()];
    for _ in 0..8 {
        pass_hours(1);
        let rotated: Value = client.post(&path).call().await.expect(200).data();
        secrets.insert(0, rotated["signingSecret"].clone());
        assert_eq!(signs().await, secrets);
    }
    let refused = client.post(&path).call().await.expect(409).problem();
    assert_eq!(refused.code, "TOO_MANY_SECRETS");
    // The first was replaced after an hour, and signs for 24 more.
    pass_hours(16);
    assert_eq!(signs().await, secrets);
    pass_hours(1);
    assert_eq!(signs().await, secrets[..8]);
    client.post(&path).call().await.expect(200);
    pass_hours(24);
    assert_eq!(signs().await.len(), 1);
}

on_each_database!(replays_are_begun_listed_and_cancelled);
async fn replays_are_begun_listed_and_cancelled(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    SimulatedHub::claim(&tenant).await.upload_events(3).await;
    let events = get(client, "/tenant/ble/events").await;
    let new = made(client, &http()).await;
    let (replay, replays) = (
        format!("{}/replay", path_of(&new)),
        format!("{}/replays", path_of(&new)),
    );
    let body = json!({"from": events[2]["receivedAt"], "to": "2999-01-01T00:00:00Z", "destination": "DEAD_LETTERS_ONLY"});
    let begun: Value = client
        .post(&replay)
        .json(&body)
        .call()
        .await
        .expect(202)
        .data();
    let listed = get(client, &replays).await;
    assert_eq!(listed[0]["replayUuid"], begun["replayUuid"]);
    assert_eq!(
        (&listed[0]["status"], &listed[0]["destination"]),
        (&json!("RUNNING"), &json!("DEAD_LETTERS_ONLY"))
    );
    assert_eq!(listed[0]["from"], events[2]["receivedAt"]);
    let last = events[0]["bleEventId"].as_i64().expect("an id");
    let end = hub_protocol::Timestamp::from_micros(last + 1).to_string();
    assert_eq!(listed[0]["to"], end, "no further than the log");
    for _ in 1..10 {
        client.post(&replay).json(&body).call().await.expect(202);
    }
    let refused = client
        .post(&replay)
        .json(&body)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "TOO_MANY_REPLAYS");
    let one = format!(
        "{replays}/{}",
        begun["replayUuid"].as_str().expect("a uuid")
    );
    let stranger = Tenant::create(&app.client()).await;
    stranger.client.delete(&one).call().await.expect(404);
    stranger.client.get(&replays).call().await.expect(404);
    for _ in 0..2 {
        client.delete(&one).call().await.expect(204);
    }
    client.post(&replay).json(&body).call().await.expect(202);
    let listed = get(client, &replays).await;
    let cancelled = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter(|one| one["status"] == "CANCELLED")
        .count();
    assert_eq!(cancelled, 1);
    client
        .delete(&format!("{replays}/{}", Uuid::new_v4()))
        .call()
        .await
        .expect(404);
    let turned = json!({"from": events[0]["receivedAt"], "to": events[0]["receivedAt"]});
    let refused = client
        .post(&replay)
        .json(&turned)
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(refused.errors[0].field, "to");
}

on_each_database!(dead_letters_are_listed_retried_and_deleted);
async fn dead_letters_are_listed_retried_and_deleted(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let (new, other) = (made(client, &http()).await, made(client, &http()).await);
    let uuid: Uuid = new["pipelineUuid"]
        .as_str()
        .expect("a uuid")
        .parse()
        .expect("a uuid");
    let mut ids = Vec::new();
    for event in [5, 7, 9] {
        ids.push(dead_letter(&app, &tenant, uuid, &[event, event + 1]).await);
    }
    let path = format!("{}/dlq", path_of(&new));
    let listed = get(client, &path).await;
    assert_eq!(listed[0]["dlqId"], ids[2]);
    assert_eq!(listed[0]["payload"], json!({"rssi": -60}));
    assert_eq!(
        (&listed[0]["firstEventId"], &listed[0]["lastEventId"]),
        (&json!(9), &json!(10))
    );
    assert_eq!(listed[0]["retrying"], false);
    client
        .post(&format!("{path}/{}/retry?revision=original", ids[0]))
        .call()
        .await
        .expect(200);
    let some: Value = client
        .post(&format!("{path}/retry"))
        .json(&json!({"dlqIds": [ids[1], 0]}))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(some["retrying"], 1);
    let marks = async || -> Vec<Option<String>> {
        let mut conn = app.app.db.read().await.expect("a connection");
        hub_base::db::sql("SELECT retry FROM dead_letters ORDER BY dlq_id")
            .scalars(&mut conn)
            .await
            .expect("marks")
    };
    assert_eq!(
        marks().await,
        [
            Some("ORIGINAL".to_owned()),
            Some("CURRENT".to_owned()),
            None
        ]
    );
    let all: Value = client
        .post(&format!("{path}/retry"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(all["retrying"], 3);
    let mut conn = app.app.db.read().await.expect("a connection");
    let retries =
        hub_base::db::sql("SELECT status, epoch FROM pipeline_lanes WHERE kind = 'RETRY'");
    let lanes: Vec<(String, i64)> = retries.all(&mut conn).await.expect("lanes");
    drop(conn);
    assert_eq!(
        lanes,
        [("RUNNING".to_owned(), 3)],
        "one lane, which every retry takes away"
    );
    let elsewhere = format!("{}/dlq/{}", path_of(&other), ids[0]);
    client
        .post(&format!("{elsewhere}/retry"))
        .call()
        .await
        .expect(404);
    client.delete(&elsewhere).call().await.expect(404);
    let stranger = Tenant::create(&app.client()).await;
    for request in [
        stranger.client.get(&path),
        stranger.client.post(&format!("{path}/retry")),
    ] {
        request.call().await.expect(404);
    }
    client
        .delete(&format!("{path}/{}", ids[0]))
        .call()
        .await
        .expect(204);
    client
        .delete(&format!("{path}/{}", ids[0]))
        .call()
        .await
        .expect(404);
    assert_eq!(
        client
            .get(&path)
            .call()
            .await
            .expect(200)
            .header("x-total-count"),
        "2"
    );
    for (body, query, field) in [
        (json!({"dlqIds": []}), "", "dlqIds"),
        (json!({"dlqIds": vec![1; 1001]}), "", "dlqIds"),
        (json!({"dlqIds": ["x"]}), "", "dlqIds[0]"),
        (json!({}), "?revision=newest", "revision"),
    ] {
        let refused = client
            .post(&format!("{path}/retry{query}"))
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(refused.errors[0].field, field);
    }
}

on_each_database!(deliveries_are_listed_by_pipeline_and_tenant);
async fn deliveries_are_listed_by_pipeline_and_tenant(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let (one, two) = (made(client, &http()).await, made(client, &http()).await);
    let start = app.app.clock.now();
    let mut tx = app.app.db.begin().await.expect("a transaction");
    for (pipeline, status, secs) in [
        (&one, "FAILED", 0),
        (&one, "DELIVERED", 1),
        (&two, "DEAD", 2),
    ] {
        let uuid: Uuid = pipeline["pipelineUuid"]
            .as_str()
            .expect("a uuid")
            .parse()
            .expect("a uuid");
        hub_base::db::sql(
            "INSERT INTO pipeline_deliveries (tenant_uuid, pipeline_uuid, revision, status, \
             first_event_id, last_event_id, events, event_ids, attempt, response_status, \
             duration_millis, started_at) \
             VALUES ($1, $2, 1, $3, 100, 103, 2, '[0,3]', 1, 200, 7, $4)",
        )
        .bind((tenant.tenant_uuid, uuid, status, start.plus_secs(secs)))
        .execute(&mut tx)
        .await
        .expect("a row");
    }
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    let path = format!("{}/deliveries", path_of(&one));
    let listed = get(client, &path).await;
    let outcomes = |listed: &Value| -> Vec<String> {
        let all = listed.as_array().expect("a list").iter();
        all.map(|one| one["status"].as_str().expect("a status").to_owned())
            .collect()
    };
    assert_eq!(outcomes(&listed), ["DELIVERED", "FAILED"]);
    assert_eq!(
        (&listed[0]["eventIds"], &listed[0]["events"]),
        (&json!([100, 103]), &json!(2))
    );
    let reply = client
        .get(&format!("{path}?page=2&limit=1"))
        .call()
        .await
        .expect(200);
    assert_eq!(outcomes(&reply.data()), ["FAILED"]);
    assert!(
        reply.header("link").contains("limit=1"),
        "{}",
        reply.header("link")
    );
    let from = start.plus_secs(1).to_string();
    for (query, expected) in [
        ("status=FAILED", 1),
        (&format!("from={from}"), 1),
        (&format!("to={from}"), 1),
    ] {
        let reply = client
            .get(&format!("{path}?{query}"))
            .call()
            .await
            .expect(200);
        assert_eq!(
            reply.header("x-total-count"),
            expected.to_string(),
            "{query}"
        );
    }
    let all = get(client, DELIVERIES).await;
    assert_eq!(outcomes(&all["content"]), ["DEAD", "DELIVERED", "FAILED"]);
    assert_eq!(all["totalElements"], 3);
    let oldest = get(
        client,
        &format!("{DELIVERIES}?sort=startedAt,asc&size=1&from={from}"),
    )
    .await;
    assert_eq!(outcomes(&oldest["content"]), ["DELIVERED"]);
    let stranger = Tenant::create(&app.client()).await;
    assert_eq!(get(&stranger.client, DELIVERIES).await["totalElements"], 0);
    stranger.client.get(&path).call().await.expect(404);
    for (query, field) in [
        ("limit=0", "limit"),
        ("page=-1", "page"),
        ("status=LOST", "status"),
        ("from=x", "from"),
    ] {
        let refused = client
            .get(&format!("{path}?{query}"))
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(refused.errors[0].field, field);
    }
}

on_each_database!(delivery_status_follows_from_where_pipelines_are);
async fn delivery_status_follows_from_where_pipelines_are(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(1).await;
    let new = made(
        client,
        &with(http(), "source", json!({"hubUuids": [hub.hub_uuid]})),
    )
    .await;
    hub.upload_events(4).await;
    SimulatedHub::claim(&tenant).await.upload_events(1).await;
    let events = get(client, "/tenant/ble/events").await;
    let ids: Vec<i64> = events
        .as_array()
        .expect("a list")
        .iter()
        .rev()
        .map(|one| one["bleEventId"].as_i64().expect("an id"))
        .collect();
    let uuid: Uuid = new["pipelineUuid"]
        .as_str()
        .expect("a uuid")
        .parse()
        .expect("a uuid");
    dead_letter(&app, &tenant, uuid, &[ids[1]]).await;
    let set = async |status: &str| {
        let mut tx = app.app.db.begin().await.expect("a transaction");
        hub_base::db::sql("UPDATE pipeline_lanes SET cursor = $1, settled_ahead = $2, status = $3")
            .bind((ids[2], format!("[[{},{}]]", ids[3], ids[4]), status))
            .execute(&mut tx)
            .await
            .expect("a position");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
    };
    for (status, waiting) in [
        ("RUNNING", "PENDING"),
        ("OPEN_CIRCUIT", "FAILED"),
        ("SUSPENDED", "FAILED"),
    ] {
        set(status).await;
        let expected = ["NONE", "DEAD", "DELIVERED", waiting, "DELIVERED", "NONE"];
        for (list, content) in [
            ("/tenant/ble/events", ""),
            ("/tenant/ble-query/events", "/content"),
        ] {
            let listed = get(client, list).await;
            let listed = listed
                .pointer(content)
                .expect("a list")
                .as_array()
                .expect("a list")
                .clone();
            let shown: Vec<&str> = listed
                .iter()
                .rev()
                .map(|one| one["deliveryStatus"].as_str().expect("a word"))
                .collect();
            assert_eq!(shown, expected, "{list}");
        }
        for (id, expected) in ids.iter().zip(expected) {
            for path in ["/tenant/ble/events", "/tenant/ble-query/events"] {
                assert_eq!(
                    get(client, &format!("{path}/{id}")).await["deliveryStatus"],
                    expected
                );
            }
        }
        for (wanted, expected) in [
            ("NONE", vec![5, 0]),
            ("DEAD", vec![1]),
            ("DELIVERED", vec![4, 2]),
            (waiting, vec![3]),
        ] {
            let found = get(
                client,
                &format!("/tenant/ble-query/events?deliveryStatus={wanted}"),
            )
            .await;
            let found_ids: Vec<&Value> = found["content"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|one| &one["bleEventId"])
                .collect();
            let expected: Vec<Value> = expected
                .into_iter()
                .map(|place: usize| json!(ids[place]))
                .collect();
            assert_eq!(found_ids, expected.iter().collect::<Vec<_>>(), "{wanted}");
            assert_eq!(found["totalElements"], expected.len());
        }
        let other = if waiting == "FAILED" {
            "PENDING"
        } else {
            "FAILED"
        };
        let none = get(
            client,
            &format!("/tenant/ble-query/events?deliveryStatus={other}"),
        )
        .await;
        assert_eq!(none["totalElements"], 0);
    }
}

on_each_database!(a_tenant_has_a_hundred_pipelines_at_most);
async fn a_tenant_has_a_hundred_pipelines_at_most(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    for _ in 0..100 {
        made(&tenant.client, &http()).await;
    }
    let refused = tenant
        .client
        .post(PIPELINES)
        .json(&http())
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "TOO_MANY_PIPELINES");
}

on_each_database!(what_home_assistant_was_told_is_removed_with_the_pipeline_and_the_device);
async fn what_home_assistant_was_told_is_removed_with_the_pipeline_and_the_device(
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let definition = |discovery: bool| {
        json!({"name": "to Home Assistant", "source": {}, "steps": [], "destination": {
            "kind": "MQTT", "url": "mqtts://broker.example.com", "topic": "d/{{deviceInstanceId}}",
            "auth": {"type": "BASIC", "username": "u", "password": "hunter2-of-the-broker"},
            "homeAssistantDiscovery": discovery}})
    };
    let create = async |discovery: bool| -> String {
        let created = tenant.client.post(PIPELINES).json(&definition(discovery));
        let created: Value = created.call().await.expect(201).data();
        format!(
            "{PIPELINES}/{}",
            created["pipelineUuid"].as_str().expect("an id")
        )
    };
    let withdrawals = async || -> Vec<String> {
        let mut conn = app.app.db.read().await.expect("a connection");
        hub_base::db::sql(
            "SELECT CAST(payload AS TEXT) FROM tasks WHERE kind = 'pipeline.withdraw'",
        )
        .scalars(&mut conn)
        .await
        .expect("rows")
    };
    let (quiet, first, second) = (create(false).await, create(true).await, create(true).await);
    tenant.client.delete(&quiet).call().await.expect(204);
    assert!(withdrawals().await.is_empty(), "it has announced nothing");
    tenant.client.delete(&first).call().await.expect(204);
    let found = withdrawals().await;
    assert_eq!(found.len(), 1);
    assert!(!found[0].contains("hunter2"), "the secrets are sealed");
    // The definition that follows announces nothing.
    let changed = tenant.client.put(&second).json(&definition(false));
    changed.call().await.expect(200);
    assert_eq!(withdrawals().await.len(), 2);

    let third = create(true).await;
    let deleted = json!({"tenantUuid": tenant.tenant_uuid, "deviceInstanceId": 7});
    hub_tests::app::perform(&app.app, "device.was_deleted", deleted).await;
    let found = withdrawals().await;
    let of_device = found
        .iter()
        .find(|payload| payload.replace(' ', "").contains("\"deviceInstanceId\":7"));
    let payload: Value = serde_json::from_str(of_device.expect("a task")).expect("JSON");
    assert!(third.ends_with(payload["pipelineUuid"].as_str().expect("an id")));
    // The broker is away, and is tried again.
    let done = hub_tests::app::perform(&app.app, "pipeline.withdraw", payload).await;
    assert!(matches!(done, hub_core::tasks::Done::RunAt(_)), "{done:?}");
}
