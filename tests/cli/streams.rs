//! Following events and logs while the service goes away and comes back.

use hub_tests::{Backend, Call, Client, Cloud, SimulatedHub, TestApp};
use serde_json::{Value, json};

use super::Terminal;

async fn hub_of(terminal: &Terminal, url: &str) -> SimulatedHub {
    let code = terminal.json(&["codes", "create", "--label", "roof"]).await["claimCode"]
        .as_str()
        .expect("it")
        .to_owned();
    SimulatedHub::claim_with(&Client::new(url), &code, "hardware").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_loses_and_doubles_nothing() {
    let mut cloud = Cloud::start(Backend::Sqlite, &[]).await;
    let terminal = Terminal::of_new_tenant(&cloud.url).await;
    let hub = hub_of(&terminal, &cloud.url).await;
    let mut tail = terminal.follow(&["events", "tail", "--json"]);
    tail.note("following").await;
    let mut expected = Vec::new();
    let mut shown: Vec<Value> = Vec::new();
    for round in 0..3 {
        let upload = hub.upload_events(20).await;
        expected.extend(upload.events.iter().map(|event| json!(event.event_uuid)));
        // In the first round it is killed while events are on their way.
        if round > 0 {
            while shown.len() < expected.len() {
                shown.push(tail.json().await["eventUuid"].clone());
            }
        }
        cloud.crash().await;
        let note = tail.note("connected again").await;
        assert!(note.contains("events received after"), "{note}");
    }
    while shown.len() < expected.len() {
        shown.push(tail.json().await["eventUuid"].clone());
    }
    assert_eq!(shown, expected);
    assert_eq!(tail.interrupt().await, Some(0));
}

#[tokio::test]
async fn filters_choose_and_counts_end_a_tail() {
    let app = TestApp::new(Backend::Sqlite).await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let hub = hub_of(&terminal, &app.url).await;
    hub.upload_events(50).await;
    let since = [
        "events",
        "tail",
        "--json",
        "--since",
        "2026-01-01T00:00:00Z",
    ];
    let with = |more: &[&'static str]| [since.as_slice(), more].concat();
    let lines = |text: String| -> Vec<Value> {
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    };
    let strong = lines(
        terminal
            .run(&with(&["--min-rssi=-44", "-n", "5"]))
            .await
            .expect(0)
            .stdout,
    );
    assert!(
        strong.len() == 5
            && strong
                .iter()
                .all(|event| event["rssi"].as_i64() >= Some(-44)),
        "{strong:?}"
    );
    let one = lines(
        terminal
            .run(&with(&["--address", "c0:00:00:00:00:07", "-n", "1"]))
            .await
            .expect(0)
            .stdout,
    );
    assert_eq!(one[0]["address"], "C0:00:00:00:00:07");
    terminal
        .run(&with(&["--hub", "roof", "-n", "50"]))
        .await
        .expect(0)
        .says("50 events shown of 50");
}

#[tokio::test]
async fn a_stream_ends_when_access_does() {
    let app = TestApp::new(Backend::Sqlite).await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let mut tail = terminal.follow(&["events", "tail"]);
    tail.note("following").await;
    let stored = terminal.stored();
    let session = &stored["profiles"]["default"]["credential"]["session"];
    let logout = json!({"refreshToken": session["refreshToken"]});
    app.client()
        .post("/auth/logout")
        .json(&logout)
        .call()
        .await
        .expect(204);
    tail.note("hub login").await;
    assert_eq!(tail.child.wait().await.expect("it ends").code(), Some(1));
}

#[tokio::test]
async fn the_log_of_a_hub_is_shown_and_followed() {
    let app = TestApp::new(Backend::Sqlite).await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let hub = hub_of(&terminal, &app.url).await;
    let send = async |message: &str| {
        let entry = json!({"entries": [{"level": "WARN", "message": message}]});
        hub.client
            .post(&format!("/v1/hubs/{}/logs", hub.hub_uuid))
            .json(&entry)
            .call()
            .await
            .expect(204);
    };
    terminal
        .run(&["hubs", "logs", "roof"])
        .await
        .expect(0)
        .says("no log yet");
    send("the first").await;
    send("the second").await;
    let last = terminal
        .run(&["hubs", "logs", "roof", "-n", "1"])
        .await
        .expect(0)
        .stdout;
    assert!(
        last.contains("WARN  the second") && !last.contains("the first"),
        "{last}"
    );
    let mut following = terminal.follow(&["hubs", "logs", "roof", "-f", "-n", "2"]);
    assert!(following.line().await.contains("the first"));
    assert!(following.line().await.contains("the second"));
    send("the third").await;
    assert!(following.line().await.contains("the third"));
    assert_eq!(following.interrupt().await, Some(0));
}
