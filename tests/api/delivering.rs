//! What pipelines send: to a receiver of the test's own, over HTTP.

use std::time::Duration;

use hub_base::db::sql;
use hub_tests::receiver::Received;
use hub_tests::{
    Answer, Backend, Call, Options, Receiver, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

struct Setting {
    app: TestApp,
    tenant: Tenant,
    hub: SimulatedHub,
    receiver: Receiver,
}

impl Setting {
    async fn new(backend: Backend) -> Self {
        let change = |config: &mut hub_core::config::Config| {
            config.outgoing.allow_private_targets = true.into();
            config.delivers = true;
        };
        let app = TestApp::configured(backend, Options::default(), change).await;
        let tenant = Tenant::create(&app.client()).await;
        let hub = SimulatedHub::claim(&tenant).await;
        Self {
            app,
            tenant,
            hub,
            receiver: Receiver::start().await,
        }
    }

    async fn pipeline(&self, mut body: Value) -> String {
        body["name"] = json!("a pipeline");
        body["destination"] = json!({"kind": "HTTP", "url": format!("{}/in", self.receiver.url)});
        let members = [("source", json!({})), ("steps", json!([]))];
        for (member, value) in members {
            if body.get(member).is_none() {
                body[member] = value;
            }
        }
        let created = self
            .tenant
            .client
            .post("/tenant/data-pipelines")
            .json(&body)
            .call()
            .await
            .expect(201)
            .json();
        created["data"]["pipelineUuid"]
            .as_str()
            .expect("an id")
            .to_owned()
    }

    async fn shown(&self, pipeline: &str) -> Value {
        let path = format!("/tenant/data-pipelines/{pipeline}");
        self.tenant
            .client
            .get(&path)
            .call()
            .await
            .expect(200)
            .json()["data"]
            .take()
    }

    /// Waits until the pipeline is as wanted.
    async fn until(&self, pipeline: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let shown = self.shown(pipeline).await;
            if wanted(&shown) {
                return shown;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "it stays so: {shown}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        self.tenant.client.get(path).call().await.expect(200).data()
    }
}

fn ids(received: &[Received]) -> Vec<i64> {
    received.iter().flat_map(Received::event_ids).collect()
}

on_each_database!(events_arrive_in_order_and_once);
async fn events_arrive_in_order_and_once(backend: Backend) {
    let setting = Setting::new(backend).await;
    setting.hub.upload_events(3).await;
    let pipeline = setting.pipeline(json!({})).await;
    for _ in 0..4 {
        setting.hub.upload_events(25).await;
    }
    setting
        .receiver
        .until(SOON, |received| received.len() >= 100)
        .await;
    let received = setting.receiver.at("/in");
    assert_eq!(received.len(), 100, "what was there before is not sent");
    assert!(ids(&received).is_sorted());
    let one = &received[0];
    assert_eq!(one.header("x-service-event-type"), "ble.event");
    assert_eq!(
        one.header("webhook-id"),
        one.header("x-service-idempotency-key")
    );
    assert!(
        one.header("webhook-signature").starts_with("v1,"),
        "{:?}",
        one.headers
    );
    assert_eq!(one.json()["hubUuid"], json!(setting.hub.hub_uuid));
    let shown = setting
        .until(&pipeline, |shown| shown["lagEvents"] == 0)
        .await;
    assert_eq!(
        (&shown["status"], &shown["failingSince"]),
        (&json!("RUNNING"), &Value::Null)
    );
    let deliveries = setting
        .list(&format!(
            "/tenant/data-pipelines/{pipeline}/deliveries?limit=100"
        ))
        .await;
    assert_eq!(deliveries.len(), 100);
    assert!(
        deliveries
            .iter()
            .all(|one| one["status"] == "DELIVERED" && one["attempt"] == 1),
        "{:?}",
        deliveries[0]
    );
    drop(setting.app);
}

on_each_database!(events_that_are_not_sent_do_not_lag);
async fn events_that_are_not_sent_do_not_lag(backend: Backend) {
    let setting = Setting::new(backend).await;
    let other = SimulatedHub::claim(&setting.tenant).await;
    setting.hub.upload_events(2).await;
    other.upload_events(3).await;
    let source = json!({"hubUuids": [setting.hub.hub_uuid], "startAt": "2020-01-01T00:00:00Z"});
    for delivery in [json!({}), json!({"batchEvents": 2})] {
        let pipeline = setting
            .pipeline(json!({"source": source, "delivery": delivery}))
            .await;
        setting
            .until(&pipeline, |shown| shown["lagEvents"] == 0)
            .await;
    }
    assert_eq!(ids(&setting.receiver.at("/in")).len(), 4);
}

on_each_database!(batches_are_lists);
async fn batches_are_lists(backend: Backend) {
    let setting = Setting::new(backend).await;
    setting
        .pipeline(json!({"delivery": {"batchEvents": 40, "batchMillis": 200}}))
        .await;
    setting.hub.upload_events(100).await;
    setting
        .receiver
        .until(SOON, |received| ids(received).len() >= 100)
        .await;
    let received = setting.receiver.at("/in");
    assert!(received.iter().all(|one| {
        one.json()
            .as_array()
            .is_some_and(|events| events.len() <= 40)
    }));
    assert!(
        ids(&received).is_sorted() && received.len() <= 5,
        "{} messages",
        received.len()
    );
}

on_each_database!(a_failing_receiver_is_tried_again_with_the_same_id);
async fn a_failing_receiver_is_tried_again_with_the_same_id(backend: Backend) {
    let setting = Setting::new(backend).await;
    let pipeline = setting.pipeline(json!({})).await;
    setting.receiver.answer(|_| Answer::now(500));
    setting.hub.upload_events(2).await;
    setting
        .until(&pipeline, |shown| shown["status"] == "OPEN_CIRCUIT")
        .await;
    let tries = setting.receiver.at("/in");
    assert!(tries.len() >= 5);
    assert!(
        tries
            .iter()
            .all(|one| one.header("webhook-id") == tries[0].header("webhook-id"))
    );
    setting.receiver.answer(|_| Answer::now(200));
    setting
        .receiver
        .until(SOON, |received| {
            received
                .iter()
                .filter(|one| one.status.is_success())
                .count()
                >= 2
        })
        .await;
    let shown = setting
        .until(&pipeline, |shown| {
            shown["status"] == "RUNNING" && shown["lagEvents"] == 0
        })
        .await;
    assert_eq!(shown["failingSince"], Value::Null);
    let failed = setting
        .list(&format!(
            "/tenant/data-pipelines/{pipeline}/deliveries?status=FAILED&limit=100"
        ))
        .await;
    assert!(
        failed.len() >= 5 && failed[0]["responseStatus"] == 500,
        "{failed:?}"
    );
}

on_each_database!(a_refused_message_is_a_dead_letter_and_the_rest_goes_on);
async fn a_refused_message_is_a_dead_letter_and_the_rest_goes_on(backend: Backend) {
    let setting = Setting::new(backend).await;
    let pipeline = setting.pipeline(json!({})).await;
    let first = std::sync::atomic::AtomicBool::new(true);
    setting.receiver.answer(move |_| {
        match first.swap(false, std::sync::atomic::Ordering::Relaxed) {
            true => Answer::now(422),
            false => Answer::now(200),
        }
    });
    setting.hub.upload_events(3).await;
    setting
        .receiver
        .until(SOON, |received| received.len() >= 3)
        .await;
    setting
        .until(&pipeline, |shown| shown["lagEvents"] == 0)
        .await;
    let letters = setting
        .list(&format!("/tenant/data-pipelines/{pipeline}/dlq"))
        .await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0]["responseStatus"], 422);
    let refused = ids(&setting.receiver.at("/in"))[0];
    assert_eq!(letters[0]["firstEventId"], refused);
    let path = format!(
        "/tenant/data-pipelines/{pipeline}/dlq/{}/retry",
        letters[0]["dlqId"]
    );
    setting.tenant.client.post(&path).call().await.expect(200);
    setting
        .receiver
        .until(SOON, |received| received.len() >= 4)
        .await;
    let received = setting.receiver.at("/in");
    assert_eq!(received[3].event_ids(), [refused]);
    assert_eq!(
        received[3].header("webhook-id"),
        received[0].header("webhook-id")
    );
    let deadline = tokio::time::Instant::now() + SOON;
    while !setting
        .list(&format!("/tenant/data-pipelines/{pipeline}/dlq"))
        .await
        .is_empty()
    {
        assert!(tokio::time::Instant::now() < deadline, "the letter stays");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

on_each_database!(a_404_is_of_the_message_unless_the_pipeline_says_otherwise);
async fn a_404_is_of_the_message_unless_the_pipeline_says_otherwise(backend: Backend) {
    let mut setting = Setting::new(backend).await;
    let letters = async |setting: &Setting, pipeline: &str| {
        let path = format!("/tenant/data-pipelines/{pipeline}/dlq");
        setting.list(&path).await.len()
    };
    let away = [(404, Vec::new()), (404, Vec::new())];
    setting.receiver.answer_in_turn(away.clone());
    let delivery = json!({"retryOn": [404]});
    let patient = setting.pipeline(json!({"delivery": delivery})).await;
    let shown = setting.shown(&patient).await;
    assert_eq!(shown["delivery"]["retryOn"], json!([404]));
    setting.hub.upload_events(1).await;
    setting
        .until(&patient, |shown| shown["lagEvents"] == 0)
        .await;
    let tries = setting.receiver.take();
    let statuses: Vec<u16> = tries.iter().map(|one| one.status.as_u16()).collect();
    assert_eq!(
        (statuses.as_slice(), letters(&setting, &patient).await),
        ([404, 404, 200].as_slice(), 0)
    );

    // The first pipeline sends what comes as well: it would use up the answer.
    setting.receiver = Receiver::start().await;
    setting.receiver.answer_in_turn(away[..1].iter().cloned());
    let usual = setting.pipeline(json!({})).await;
    let shown = setting.shown(&usual).await;
    assert_eq!(shown["delivery"].get("retryOn"), None);
    setting.hub.upload_events(1).await;
    setting.until(&usual, |shown| shown["lagEvents"] == 0).await;
    assert_eq!(letters(&setting, &usual).await, 1);
}

on_each_database!(a_gone_receiver_suspends_and_a_resumed_pipeline_goes_on);
async fn a_gone_receiver_suspends_and_a_resumed_pipeline_goes_on(backend: Backend) {
    let setting = Setting::new(backend).await;
    let pipeline = setting.pipeline(json!({})).await;
    setting.receiver.answer(|_| Answer::now(410));
    setting.hub.upload_events(2).await;
    let shown = setting
        .until(&pipeline, |shown| shown["status"] == "SUSPENDED")
        .await;
    assert!(
        shown["lastError"]
            .as_str()
            .is_some_and(|error| error.contains("410")),
        "{shown}"
    );
    setting.receiver.answer(|_| Answer::now(200));
    let path = format!("/tenant/data-pipelines/{pipeline}/resume");
    setting
        .tenant
        .client
        .post(&path)
        .json(&json!({}))
        .call()
        .await
        .expect(200);
    setting
        .receiver
        .until(SOON, |received| received.len() >= 3)
        .await;
    assert_eq!(
        ids(&setting.receiver.at("/in"))[0],
        ids(&setting.receiver.at("/in"))[1],
        "the backlog is kept"
    );
}

on_each_database!(state_of_steps_outlives_changes);
async fn state_of_steps_outlives_changes(backend: Backend) {
    let setting = Setting::new(backend).await;
    let steps = json!([{"op": "sample", "everySeconds": 3600, "by": "HUB"}]);
    let pipeline = setting.pipeline(json!({"steps": steps})).await;
    setting.hub.upload_events(5).await;
    setting
        .receiver
        .until(SOON, |received| received.len() == 1)
        .await;
    // What is under way while a pipeline is paused is sent again.
    setting
        .until(&pipeline, |shown| shown["lagEvents"] == 0)
        .await;
    for path in ["pause", "resume"] {
        let path = format!("/tenant/data-pipelines/{pipeline}/{path}");
        setting
            .tenant
            .client
            .post(&path)
            .json(&json!({}))
            .call()
            .await
            .expect(200);
    }
    setting.hub.upload_events(5).await;
    setting
        .until(&pipeline, |shown| shown["lagEvents"] == 0)
        .await;
    assert_eq!(setting.receiver.at("/in").len(), 1, "the hour is not over");
}

on_each_database!(a_replay_sends_again_under_other_ids);
async fn a_replay_sends_again_under_other_ids(backend: Backend) {
    let setting = Setting::new(backend).await;
    let pipeline = setting.pipeline(json!({})).await;
    setting.hub.upload_events(5).await;
    setting
        .receiver
        .until(SOON, |received| received.len() == 5)
        .await;
    let path = format!("/tenant/data-pipelines/{pipeline}/replay");
    let span = json!({"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"});
    setting
        .tenant
        .client
        .post(&path)
        .json(&span)
        .call()
        .await
        .expect(202);
    setting
        .receiver
        .until(SOON, |received| received.len() == 10)
        .await;
    let received = setting.receiver.at("/in");
    assert_eq!(ids(&received[..5]), ids(&received[5..]));
    assert_ne!(
        received[0].header("webhook-id"),
        received[5].header("webhook-id")
    );
    let replays = format!("/tenant/data-pipelines/{pipeline}/replays");
    let deadline = tokio::time::Instant::now() + SOON;
    while setting.list(&replays).await[0]["status"] != "FINISHED" {
        assert!(
            tokio::time::Instant::now() < deadline,
            "{:?}",
            setting.list(&replays).await
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

on_each_database!(a_replay_of_dead_letters_sends_those_of_its_time);
async fn a_replay_of_dead_letters_sends_those_of_its_time(backend: Backend) {
    let setting = Setting::new(backend).await;
    let pipeline = setting.pipeline(json!({})).await;
    let nth = std::sync::atomic::AtomicUsize::new(0);
    setting.receiver.answer(move |_| {
        match nth.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 | 3 => Answer::now(422),
            _ => Answer::now(200),
        }
    });
    setting.hub.upload_events(5).await;
    setting
        .until(&pipeline, |shown| shown["lagEvents"] == 0)
        .await;
    let first = setting.receiver.take();
    let events = ids(&first);
    assert_eq!(events.len(), 5, "each event is a message");
    let letters = setting
        .list(&format!("/tenant/data-pipelines/{pipeline}/dlq"))
        .await;
    assert_eq!(letters.len(), 2, "{letters:?}");
    // Without the second letter.
    let span = json!({
        "from": "2020-01-01T00:00:00Z",
        "to": hub_protocol::Timestamp::from_micros(events[3]),
        "destination": "DEAD_LETTERS_ONLY",
    });
    let path = format!("/tenant/data-pipelines/{pipeline}/replay");
    setting
        .tenant
        .client
        .post(&path)
        .json(&span)
        .call()
        .await
        .expect(202);
    let replays = format!("/tenant/data-pipelines/{pipeline}/replays");
    let deadline = tokio::time::Instant::now() + SOON;
    let replay = loop {
        let replay = setting.list(&replays).await.remove(0);
        if replay["status"] == "FINISHED" {
            break replay;
        }
        assert!(tokio::time::Instant::now() < deadline, "{replay}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(
        (&replay["events"], &replay["destination"]),
        (&json!(1), &json!("DEAD_LETTERS_ONLY")),
        "{replay}"
    );
    assert!(
        replay["finishedAt"].is_string() && replay["cursor"].as_i64() < Some(events[3]),
        "{replay}"
    );
    let sent = setting.receiver.at("/in");
    assert_eq!(ids(&sent), [events[0]]);
    assert_eq!(sent[0].header("webhook-id"), first[0].header("webhook-id"));
    let left = setting
        .list(&format!("/tenant/data-pipelines/{pipeline}/dlq"))
        .await;
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0]["firstEventId"], events[3]);
}

on_each_database!(a_definition_that_cannot_be_run_any_more_is_said_once);
async fn a_definition_that_cannot_be_run_any_more_is_said_once(backend: Backend) {
    let setting = Setting::new(backend).await;
    let steps = json!([{"op": "filter", "when": "rssi > -200"}]);
    let pipeline = setting.pipeline(json!({"steps": steps})).await;
    let path = format!("/tenant/data-pipelines/{pipeline}");
    setting.hub.upload_events(2).await;
    setting
        .receiver
        .until(SOON, |received| received.len() == 2)
        .await;
    // As an earlier version may have stored it.
    let change = async |from: &str, to: &str| {
        let mut tx = setting.app.app.db.begin().await.expect("a transaction");
        sql("UPDATE pipeline_revisions SET definition = REPLACE(definition, $1, $2)")
            .bind((from, to))
            .run(&mut tx)
            .await
            .expect("a change");
        tx.commit_unaudited("a test").await.expect("a commit");
    };
    change("rssi > -200", "rssi >").await;
    let resume = format!("{path}/resume");
    setting.tenant.client.post(&resume).call().await.expect(200);
    let shown = setting
        .until(&pipeline, |shown| shown["status"] == "INVALID")
        .await;
    assert!(shown["lastError"].is_string(), "{shown}");
    setting.hub.upload_events(2).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(setting.shown(&pipeline).await["status"], "INVALID");
    // Nothing is lost: it goes on where it was once it can.
    change("rssi >", "rssi > -200").await;
    setting.tenant.client.post(&resume).call().await.expect(200);
    setting
        .receiver
        .until(SOON, |received| received.len() == 4)
        .await;
    let shown = setting
        .until(&pipeline, |shown| shown["status"] == "RUNNING")
        .await;
    assert_eq!(shown["lastError"], Value::Null, "{shown}");
}

// What a pipeline delivered cannot be stored, for whatever reason: its lane waits, others do not.
on_each_database!(a_lane_that_cannot_be_stored_holds_up_no_other);
async fn a_lane_that_cannot_be_stored_holds_up_no_other(backend: Backend) {
    let setting = Setting::new(backend).await;
    let (refused, stored) = (
        setting.pipeline(json!({})).await,
        setting.pipeline(json!({})).await,
    );
    let (refuse, accept) = match backend {
        Backend::Sqlite => (
            format!(
                "CREATE TRIGGER refusal BEFORE INSERT ON pipeline_deliveries \
                 WHEN NEW.pipeline_uuid = X'{}' BEGIN SELECT RAISE(ABORT, 'refused'); END",
                refused.replace('-', "")
            ),
            "DROP TRIGGER refusal",
        ),
        Backend::Postgres => (
            format!(
                "ALTER TABLE pipeline_deliveries \
                 ADD CONSTRAINT refusal CHECK (pipeline_uuid <> '{refused}')"
            ),
            "ALTER TABLE pipeline_deliveries DROP CONSTRAINT refusal",
        ),
    };
    let db = &setting.app.app.db;
    let change = |statement: &'static str| async move {
        let mut tx = db.begin().await.expect("a transaction");
        sql(statement).run(&mut tx).await.expect("changed");
        tx.commit_unaudited("a test").await.expect("a commit");
    };
    let listed = async |pipeline: &str| {
        let path = format!("/tenant/data-pipelines/{pipeline}/deliveries?limit=100");
        setting.list(&path).await.len()
    };
    let until_listed = async |pipeline: &str, count: usize| {
        let listing = async {
            while listed(pipeline).await < count {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(SOON, listing)
            .await
            .expect("a delivery");
    };
    change(Box::leak(refuse.into_boxed_str())).await;
    for count in [5, 10] {
        setting.hub.upload_events(5).await;
        until_listed(&stored, count).await;
    }
    assert_eq!(listed(&refused).await, 0);
    change(accept).await;
    until_listed(&refused, 10).await;
}
