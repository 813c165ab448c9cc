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
        let summary = format!("5 frames of 1 address, {shown} shown: 0 decoded, 5 recognised");
        assert!(tried.stdout.contains(&summary), "{}", tried.stdout);
    }
    let piped = terminal
        .run_with(&["catalog", "test", "-"], &trace)
        .await
        .expect(0);
    assert!(piped.stdout.contains("5 recognised"), "{}", piped.stdout);
}

/// Frames are read as the service reads them: two frames of one event are joined, and of company
/// ids that pile up the one that changed is read.
#[tokio::test]
async fn frames_are_read_as_the_service_reads_them() {
    let terminal = Terminal::new();
    // An iBeacon and Eddystone-TLM: 3,000 mV, 21.5 °C. A ThermoPro TP357: 27.9 °C, then 27.2 °C.
    let trace = r#"{"t_ms":1,"address":"A4:C1:38:00:00:01","manufacturerData":{"004c":"02150102030405060708090a0b0c0d0e0f1000010002c5"},"serviceData":{"feaa":"20000bb8158000000064000001f4"}}
{"t_ms":2,"address":"A4:C1:38:00:00:02","name":"TP357 (2A01)","manufacturerData":{"17c2":"0127022c"}}
{"t_ms":3,"address":"A4:C1:38:00:00:02","name":"TP357 (2A01)","manufacturerData":{"17c2":"0127022c","10c2":"0147022c"}}
{"t_ms":4,"address":"A4:C1:38:00:00:03","name":"TP357 (2A02)","manufacturerData":{"17c2":"0127022c","10c2":"0147022c"}}
"#;
    stored(&terminal, "trace.jsonl", trace.as_bytes());
    let tried = terminal
        .run(&["catalog", "test", "trace.jsonl", "--json"])
        .await
        .expect(0);
    let lines = lines(&tried.stdout);
    let value = |line: usize, quantity: &str| {
        let measurements = lines[line]["measurements"].as_array().expect("a list");
        let found = measurements.iter().find(|one| one["quantity"] == quantity);
        found.map(|one| one["value"].clone())
    };
    assert_eq!(value(0, "temperature"), Some(json!(21.5)), "{}", lines[0]);
    assert_eq!(value(0, "tx_power"), Some(json!(-59)), "{}", lines[0]);
    assert_eq!(value(1, "temperature"), Some(json!(27.9)));
    assert_eq!(value(2, "temperature"), Some(json!(27.2)), "{}", lines[2]);
    assert_eq!(value(3, "temperature"), None, "which came last is unknown");
    assert_eq!(lines[3]["verdict"], "RECOGNISED", "{}", lines[3]);
}

/// The key of the sample data of the Core Specification Supplement, Part A, 2.3; the data is BTHome
/// v2 with 25.06 °C, encrypted by another implementation of AES-CCM (Python's cryptography).
#[tokio::test]
async fn encrypted_advertising_data_is_read_with_its_key() {
    const KEY: &str = "57a9da12d12e6e131e20612ad10a6a199e7a00efb17ae746";
    const SEALED: [u8; 22] = [
        0x15, 0x31, 0x01, 0x02, 0x03, 0x04, 0x85, 0xBD, 0x71, 0xC9, 0x9C, 0xC0, 0xB6, 0x2F, 0xE8,
        0x8B, 0x4B, 0xA5, 0xAD, 0x2C, 0xB3, 0x99,
    ];
    let terminal = Terminal::new();
    let event = samples::legacy_event(&[(false, &SEALED)]);
    stored(
        &terminal,
        "sealed.btsnoop",
        &samples::btsnoop(1001, 3, &[event.clone(), event.clone(), event]),
    );
    let history = json!({"all_history": [{"address": "C4:7C:8D:6A:11:22", "rssi": -60, "time": 1.5,
        "name": "", "manufacturer_data": {}, "service_data": {}, "service_uuids": [],
        "raw": hex::encode(SEALED)}]});
    stored(
        &terminal,
        "diagnostics.json",
        history.to_string().as_bytes(),
    );
    for file in ["sealed.btsnoop", "diagnostics.json"] {
        let run = async |arguments: &[&str]| {
            let command = [&["catalog", "test", file], arguments].concat();
            terminal.run(&command).await.expect(0).stdout
        };
        let without = run(&[]).await;
        assert!(without.contains("--key-material"), "{without}");
        let opened = run(&["--key-material", KEY]).await;
        assert!(opened.contains("temperature 25.06 °C"), "{opened}");
        let other = KEY.replace("57a9", "57aa");
        let damaged = run(&["--key-material", &other]).await;
        assert!(damaged.contains("of another key"), "{damaged}");
    }
    let short = terminal
        .run(&[
            "catalog",
            "test",
            "sealed.btsnoop",
            "--key-material",
            "57a9",
        ])
        .await
        .expect(2);
    short.says("48 hexadecimal digits");
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
