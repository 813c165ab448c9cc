//! Names, adverts and log lines of hubs in the field, which are whatever somebody sends: they stay
//! text, in tables as in JSON.

use hub_protocol::BatchUuid;
use hub_protocol::Timestamp;
use hub_protocol::ble::{Advertisement, BleEvent, BleEventUpload};
use hub_tests::{Backend, Call, Client, SimulatedHub, TestApp};
use serde_json::{Value, json};

use super::Terminal;

/// Sets the window's title, clears the screen, and turns the text around.
const HOSTILE: &str = "a\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}b\u{200b}";

#[track_caller]
fn assert_harmless(text: &str) {
    let harms = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
    };
    assert_eq!(text.chars().find(harms), None, "{text:?}");
}

#[tokio::test]
async fn text_from_the_field_does_not_drive_the_terminal() {
    let app = TestApp::new(Backend::Sqlite).await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let code = terminal.json(&["codes", "create"]).await["claimCode"]
        .as_str()
        .expect("a code")
        .to_owned();
    let hub =
        SimulatedHub::claim_with(&Client::new(&app.url), &code, "\u{202e}hardware\u{200b}").await;
    let logs =
        json!({"entries": [{"level": HOSTILE, "message": HOSTILE, "time": HOSTILE}, HOSTILE]});
    hub.client
        .post(&format!("/v1/hubs/{}/logs", hub.hub_uuid))
        .json(&logs)
        .call()
        .await
        .expect(204);
    let advertisement = Advertisement {
        address: "C0:00:00:00:00:01".to_owned(),
        name: Some(HOSTILE.to_owned()),
        ..Advertisement::default()
    };
    let event = BleEvent {
        event_uuid: None,
        observed_at: app.app.clock.now(),
        traceparent: None,
        payload: advertisement,
    };
    let since = Timestamp::from_micros(event.observed_at.as_micros() - 60_000_000).to_string();
    let upload = BleEventUpload {
        batch_uuid: BatchUuid::new(),
        events: vec![event],
    };
    hub.upload(&upload).await.expect(201);

    let uuid = hub.hub_uuid.to_string();
    let tail = ["events", "tail", "--since", &since, "-n", "1"];
    let commands: [&[&str]; 4] = [
        &["hubs", "list"],
        &["hubs", "show", &uuid],
        &["hubs", "logs", &uuid],
        &tail,
    ];
    for command in commands {
        let shown = terminal.run(command).await.expect(0);
        assert_harmless(&shown.stdout);
        assert!(
            shown.stdout.contains("\\u{202e}"),
            "{command:?}: {}",
            shown.stdout
        );
        let json = terminal
            .run(&[command, &["--json"]].concat())
            .await
            .expect(0);
        assert_harmless(&json.stdout);
        assert!(
            json.stdout.contains("\\u202e"),
            "{command:?}: {}",
            json.stdout
        );
        let parsed: Value = json.json();
        assert!(parsed.to_string().contains('\u{202e}'), "{parsed}");
    }
    // Messages of the service quote what they were given.
    let refused = terminal.run(&["hubs", "show", HOSTILE]).await.expect(1);
    assert_harmless(&refused.stderr);
}
