//! `hub catalog test`: what the library reads in recordings, without a service.

use serde_json::{Value, json};

use super::Terminal;

#[path = "../../protocol/recordings/tests/samples/mod.rs"]
mod samples;

fn stored(terminal: &Terminal, name: &str, content: &[u8]) {
    std::fs::write(terminal.home.path().join(name), content).expect("it is written");
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[tokio::test]
async fn recordings_of_every_format_are_tried() {
    let terminal = Terminal::new();
    for (name, content) in samples::all() {
        stored(&terminal, name, &content);
        let tried = terminal.run(&["catalog", "test", name]).await.expect(0);
        assert_eq!(tried.stderr, "", "{name}");
        for part in [
            samples::ADDRESS,
            "Ruuvi 884F",
            "ruuvi/ruuvitag: data_format 5, temperature 24.3 °C, humidity 53.49 %",
            "3 frames of 1 address, ",
            ": 2 decoded, 0 recognised but not decoded, 1 unknown",
        ] {
            assert!(tried.stdout.contains(part), "{name}: {}", tried.stdout);
        }
        for line in tried.stdout.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
}

#[tokio::test]
async fn a_recording_becomes_json_lines() {
    let terminal = Terminal::new();
    let (_, content) = samples::all().remove(0);
    stored(&terminal, "snoop.log", &content);
    let tried = terminal
        .run(&["catalog", "test", "snoop.log", "--all", "--json"])
        .await
        .expect(0);
    let [first, name, last, summary] = &lines(&tried.stdout)[..] else {
        panic!("four lines, not {}", tried.stdout)
    };
    assert_eq!(
        (&first["verdict"], &first["model"], &first["timeUs"]),
        (&json!("READ"), &json!("ruuvi/ruuvitag"), &json!(0))
    );
    assert_eq!(first["receivedAt"], "2026-01-31T08:00:00.000000Z");
    assert_eq!(first["offset"], 16);
    assert_eq!(
        first["measurements"][1],
        json!({"quantity": "temperature", "value": 24.3, "unit": "Cel"})
    );
    assert_eq!(
        (&name["verdict"], &name["isScanResponse"]),
        (&json!("UNKNOWN"), &json!(true))
    );
    assert_eq!(last["timeUs"], 1_500_000);
    assert_eq!(
        summary["summary"],
        json!({
            "frames": 3, "addresses": 1, "shown": 3, "read": 2, "recognised": 0, "unknown": 1,
            "passedOver": {"other": 0, "badCrc": 0, "malformed": 0, "incomplete": 0, "withoutAddress": 0},
        })
    );
}

#[tokio::test]
async fn a_payload_of_an_address_is_shown_once() {
    let terminal = Terminal::new();
    let line = r#"{"t_ms":1,"address":"A4:C1:38:00:00:01","serviceData":{"fcd2":"41a47266c95f730011223378237214"}}"#;
    let trace = format!("{line}\n").repeat(5);
    stored(&terminal, "trace.jsonl", trace.as_bytes());
    for (arguments, shown) in [(&[][..], 1), (&["--all"], 5)] {
        let tried = terminal
            .run(&[&["catalog", "test", "trace.jsonl"], arguments].concat())
            .await
            .expect(0);
        let frames = tried.stdout.matches("A4:C1:38:00:00:01").count();
        assert_eq!(frames, shown, "{}", tried.stdout);
        assert!(tried.stdout.contains("encrypted"), "{}", tried.stdout);
        let summary = format!("5 frames of 1 address, {shown} shown: 0 read, 5 recognised");
        assert!(tried.stdout.contains(&summary), "{}", tried.stdout);
    }
    let piped = terminal
        .run_with(&["catalog", "test", "-"], &trace)
        .await
        .expect(0);
    assert!(piped.stdout.contains("5 recognised"), "{}", piped.stdout);
}

#[tokio::test]
async fn what_cannot_be_read_fails_with_its_place() {
    let terminal = Terminal::new();
    let (_, content) = samples::all().remove(0);
    let end = content.len() - 3;
    stored(&terminal, "cut.log", &content[..end]);
    let cut = terminal
        .run(&["catalog", "test", "cut.log"])
        .await
        .expect(1);
    cut.says(&format!("cut.log: byte {end}: the recording ends within"));
    assert!(
        cut.stdout.contains("2 frames of 1 address"),
        "{}",
        cut.stdout
    );

    stored(&terminal, "picture.png", b"\x89PNG\r\n\x1a\n");
    let refused = terminal
        .run(&["catalog", "test", "picture.png"])
        .await
        .expect(1);
    refused.says("picture.png: byte 0: 89504e470d0a1a0a begins no recording");
    assert_eq!(refused.stdout, "");
    let absent = terminal.run(&["catalog", "test", "absent"]).await.expect(1);
    absent.says("absent: No such file");
    let usage = terminal.run(&["catalog", "test"]).await;
    usage.expect(2);
}
