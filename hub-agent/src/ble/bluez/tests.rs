//! The radio against a mocked bluetoothd: what is received, and how scanning recovers from faults.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use hub_protocol::ble::{Advertisement, Payload};
use hub_protocol::hub::AdapterRole;
use hub_protocol::telemetry::{ScanHealth, ScanState};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::mock::{BUS_FOLDER, Mock};
use crate::ble::{Heard, Radio, RadioConfig, Source, now, start};
use crate::config::ScanMode;

const ADAPTER: &str = "00:11:22:33:44:55";
const SILENCE: Duration = Duration::from_millis(1_000);

/// Whether this test runs in a process of its own, with its system bus in `BUS_FOLDER`. Otherwise
/// this runs the test in such a process. libdbus reads the bus's address from the environment only
/// once per process.
fn alone() -> bool {
    if std::env::var_os(BUS_FOLDER).is_some() {
        return true;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let thread = std::thread::current();
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            thread.name().expect("a test's thread has its name"),
            "--nocapture",
        ])
        .env(BUS_FOLDER, folder.path())
        .env(
            "DBUS_SYSTEM_BUS_ADDRESS",
            format!("unix:path={}/bus", folder.path().display()),
        )
        .output()
        .expect("it starts");
    let (output_text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && output_text.contains("1 passed"),
        "in its own process:\n{output_text}{errors}"
    );
    for line in errors.lines().filter(|line| line.starts_with("skipped: ")) {
        // A macro's output would be captured by the test runner.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    false
}

/// A mocked bluetoothd on the bus of this process. `None` if the test must not continue: it was
/// skipped, or has run in its own process.
pub fn mock() -> Option<Mock> {
    let mock = alone().then(Mock::start).flatten()?;
    assert_eq!(
        mock.address,
        super::system_address(),
        "the test's bus is not the mock's"
    );
    Some(mock)
}

struct Lab {
    mock: Mock,
    radio: Radio,
    _running: DropGuard,
}

impl Lab {
    /// A scanning radio, and a bluetoothd with one adapter.
    async fn scanning(config: RadioConfig) -> Option<Self> {
        let mut mock = mock()?;
        mock.order(json!({"cmd": "add_adapter", "address": ADAPTER}));
        let mut lab = Self::beside(mock, config);
        // bluetoothd scans before the radio has its answer.
        lab.mock.order(json!({"cmd": "wait", "discovering": true}));
        lab.until("listening", |health| health.state == ScanState::Listening)
            .await;
        Some(lab)
    }

    fn beside(mock: Mock, config: RadioConfig) -> Self {
        let cancel = CancellationToken::new();
        let radio = start(Source::BlueZ, config, cancel.clone()).expect("the radio starts");
        Self {
            mock,
            radio,
            _running: cancel.drop_guard(),
        }
    }

    fn report(&mut self, address: &str, rssi: i16) -> Value {
        self.mock
            .order(json!({"cmd": "report", "address": address, "rssi": rssi}))
    }

    async fn next(&mut self) -> Advertisement {
        let heard = tokio::time::timeout(Duration::from_secs(10), self.radio.heard.next())
            .await
            .expect("an advertisement arrives");
        match heard.expect("the radio runs").as_slice() {
            [Heard::Events(events)] if events.len() == 1 => {
                events.parsed().next().expect("an event").payload
            }
            other => panic!("one event, not {other:?}"),
        }
    }

    fn health(&self) -> ScanHealth {
        let since = hub_protocol::Timestamp::from_micros(0);
        self.radio
            .health
            .report(since, now())
            .get(ADAPTER)
            .expect("the adapter has health")
            .clone()
    }

    async fn until(&mut self, what: &str, condition: impl Fn(&ScanHealth) -> bool) -> ScanHealth {
        for _ in 0..750 {
            let since = hub_protocol::Timestamp::from_micros(0);
            if let Some(health) = self.radio.health.report(since, now()).get(ADAPTER)
                && condition(health)
            {
                return health.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("timed out waiting for {what}: {:?}", self.health());
    }

    fn calls(&mut self) -> Value {
        self.mock.order(json!({"cmd": "state"}))["adapters"]["hci0"]["calls"].clone()
    }
}

fn report_all() -> RadioConfig {
    RadioConfig {
        mode: ScanMode::Active,
        dedup_window: Duration::ZERO,
        silence: Duration::from_secs(3_600),
        ..RadioConfig::default()
    }
}

fn impatient() -> RadioConfig {
    RadioConfig {
        silence: SILENCE,
        ..report_all()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_of_an_advertisement_arrives_and_an_rssi_alone_makes_a_whole_report() {
    let Some(mut lab) = Lab::scanning(report_all()).await else {
        return;
    };
    lab.mock.order(json!({
        "cmd": "report", "address": "C0:00:00:00:00:01", "address_type": "random", "rssi": -61, "tx_power": 4, "name": "Té 1",
        "uuids": ["fcd2", "180d", "6e400001-b5a3-f393-e0a9-e50e24dcca9e"],
        "manufacturer_data": {"0499": "05ff00", "004c": ""}, "service_data": {"fcd2": "4041"},
    }));
    let first = lab.next().await;
    let expected = Advertisement {
        adapter_address: Some(ADAPTER.into()),
        address: "C0:00:00:00:00:01".into(),
        address_type: Some("random".into()),
        rssi: Some(-61),
        tx_power: Some(4),
        name: Some("Té 1".into()),
        manufacturer_data: [
            ("0499".into(), Payload(vec![5, 255, 0])),
            ("004c".into(), Payload(vec![])),
        ]
        .into(),
        service_data: [("fcd2".into(), Payload(vec![0x40, 0x41]))].into(),
        service_uuids: vec![
            "180d".into(),
            "6e400001-b5a3-f393-e0a9-e50e24dcca9e".into(),
            "fcd2".into(),
        ],
        device_instance_id: None,
    };
    assert_eq!(first, expected);
    lab.report("C0:00:00:00:00:01", -70);
    assert_eq!(
        lab.next().await,
        Advertisement {
            rssi: Some(-70),
            ..expected.clone()
        }
    );
    lab.mock.order(
        json!({"cmd": "report", "address": "C0:00:00:00:00:01", "manufacturer_data": {"0499": "01"}, "service_data": {"181a": "02"}}),
    );
    let changed = lab.next().await;
    assert_eq!(
        changed.manufacturer_data,
        [("0499".into(), Payload(vec![1]))].into(),
        "data that is no longer sent is removed"
    );
    assert_eq!(
        changed.service_data,
        [("181a".into(), Payload(vec![2]))].into()
    );
    assert_eq!(changed.name, expected.name);
    let adapters = lab
        .radio
        .adapters
        .wait_for(|adapters| adapters.len() == 1)
        .await
        .expect("it runs")
        .clone();
    assert_eq!(
        (
            adapters[0].address.as_str(),
            adapters[0].name.as_str(),
            adapters[0].powered
        ),
        (ADAPTER, "hci0", true)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_advertisement_is_lost_at_a_thousand_a_second() {
    let Some(mut lab) = Lab::scanning(report_all()).await else {
        return;
    };
    lab.mock
        .order(json!({"cmd": "start_feed", "rate": 1_000, "devices": 300, "count": 4_000}));
    let mut last_round = vec![None; 300];
    let mut count = 0;
    while count < 4_000 {
        for heard in lab.radio.heard.next().await.expect("the radio runs") {
            let Heard::Events(events) = heard else {
                panic!("no window was requested")
            };
            for event in events.parsed() {
                let data = &event.payload.manufacturer_data["0499"].0;
                let device = usize::from(u16::from_be_bytes([data[1], data[2]]));
                let round = u32::from_be_bytes([data[3], data[4], data[5], data[6]]);
                assert_eq!(
                    round,
                    last_round[device].map_or(0, |last| last + 1),
                    "device {device} misses a report"
                );
                last_round[device] = Some(round);
                count += 1;
            }
        }
    }
    assert_eq!(lab.mock.answer()["event"], "fed");
    assert_eq!(lab.radio.heard.dropped(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scanning_resumes_after_bluetoothd_has_restarted() {
    let Some(mut lab) = Lab::scanning(report_all()).await else {
        return;
    };
    for crash in [false, true] {
        lab.report("C0:00:00:00:00:01", -50);
        lab.next().await;
        lab.mock
            .order(json!({"cmd": "stop_daemon", "crash": crash}));
        let blind = lab
            .until("blindness", |health| health.state == ScanState::Blind)
            .await;
        assert!(blind.reason.is_some());
        let mut trouble = lab.radio.trouble.clone();
        let trouble = trouble
            .wait_for(Option::is_some)
            .await
            .expect("it runs")
            .clone();
        assert!(trouble.is_some());
        lab.mock.order(json!({"cmd": "start_daemon"}));
        lab.mock
            .order(json!({"cmd": "add_adapter", "address": ADAPTER}));
        lab.mock.order(json!({"cmd": "wait", "discovering": true}));
        let well = lab
            .until("listening", |health| health.state == ScanState::Listening)
            .await;
        assert!(
            well.blind.iter().all(|period| period.to.is_some()),
            "{well:?}"
        );
    }
    assert_eq!(lab.health().blind.len(), 2);
    assert!(lab.radio.trouble.borrow().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adapter_that_returns_under_another_name_is_the_same_adapter() {
    let Some(mut lab) = Lab::scanning(report_all()).await else {
        return;
    };
    lab.mock.order(json!({"cmd": "remove_adapter"}));
    let blind = lab
        .until("blindness", |health| health.state == ScanState::Blind)
        .await;
    assert!(
        blind
            .reason
            .as_deref()
            .is_some_and(|reason| reason.contains("unplugged")),
        "{blind:?}"
    );
    lab.radio
        .adapters
        .wait_for(Vec::is_empty)
        .await
        .expect("it runs");
    lab.mock
        .order(json!({"cmd": "add_adapter", "adapter": "hci3", "address": ADAPTER}));
    lab.mock
        .order(json!({"cmd": "wait", "adapter": "hci3", "discovering": true}));
    lab.until("listening", |health| health.state == ScanState::Listening)
        .await;
    lab.mock.order(
        json!({"cmd": "report", "adapter": "hci3", "address": "C0:00:00:00:00:01", "rssi": -50}),
    );
    assert_eq!(lab.next().await.adapter_address.as_deref(), Some(ADAPTER));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hub_is_blind_while_discovery_is_refused() {
    let Some(mut mock) = mock() else { return };
    mock.order(json!({"cmd": "add_adapter", "address": ADAPTER, "powered": false}));
    mock.order(json!({"cmd": "fault", "call": "StartDiscovery", "error": "Failed", "times": 2}));
    let mut lab = Lab::beside(mock, report_all());
    let blind = lab
        .until("blindness", |health| health.state == ScanState::Blind)
        .await;
    assert!(
        blind
            .reason
            .as_deref()
            .is_some_and(|reason| reason.contains("org.bluez.Error.Failed")),
        "{blind:?}"
    );
    lab.mock.order(json!({"cmd": "wait", "discovering": true}));
    let well = lab
        .until("listening", |health| health.state == ScanState::Listening)
        .await;
    assert_eq!(well.restarts, 2);
    assert_eq!(lab.calls()["StartDiscovery"], json!(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discovery_and_power_that_others_end_are_restored() {
    let Some(mut lab) = Lab::scanning(report_all()).await else {
        return;
    };
    lab.mock.order(json!({"cmd": "end_discovery"}));
    lab.mock
        .order(json!({"cmd": "wait", "calls": {"StartDiscovery": 2}}));
    lab.mock.order(json!({"cmd": "wait", "discovering": true}));
    lab.until("listening", |health| {
        health.state == ScanState::Listening && health.blind.len() == 1
    })
    .await;
    lab.mock.order(json!({"cmd": "set_powered", "on": false}));
    lab.mock
        .order(json!({"cmd": "wait", "discovering": true, "powered": true}));
    let well = lab
        .until("listening", |health| {
            health.state == ScanState::Listening && health.blind.len() == 2
        })
        .await;
    assert!(well.blind[1].reason.contains("switched off"), "{well:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_scan_is_restarted_and_its_gap_is_a_blind_period() {
    let Some(mut lab) = Lab::scanning(impatient()).await else {
        return;
    };
    lab.report("C0:00:00:00:00:01", -50);
    lab.next().await;
    lab.mock.order(json!({"cmd": "silent", "on": true}));
    lab.mock
        .order(json!({"cmd": "wait", "calls": {"StartDiscovery": 2}}));
    lab.mock.order(json!({"cmd": "silent", "on": false}));
    lab.mock.order(json!({"cmd": "wait", "discovering": true}));
    lab.report("C0:00:00:00:00:01", -50);
    let health = lab
        .until("a blind period", |health| !health.blind.is_empty())
        .await;
    assert_eq!(health.state, ScanState::Listening);
    let gap =
        health.blind[0].to.expect("it is over").as_micros() - health.blind[0].from.as_micros();
    assert!(
        gap >= 900_000,
        "the gap begins with the silence, not when it is noticed: {gap} us"
    );
    assert_eq!(health.restarts, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_silent_advertisers_are_silence_and_many_at_once_are_blindness() {
    for (advertisers, expected) in [(1, ScanState::Silent), (9, ScanState::Blind)] {
        let Some(mut lab) = Lab::scanning(impatient()).await else {
            return;
        };
        for number in 0..advertisers {
            lab.report(&format!("C0:00:00:00:00:{number:02X}"), -50);
        }
        lab.mock.order(json!({"cmd": "silent", "on": true}));
        let state = lab
            .until("the end of the escalation", |health| {
                health.state != ScanState::Listening
            })
            .await;
        assert_eq!(
            state.state, expected,
            "after {advertisers} advertisers: {state:?}"
        );
        assert_eq!(state.restarts, 2, "a restarted scan, then a power cycle");
        assert_eq!(lab.calls()["Powered"], json!(2));
        lab.mock.order(json!({"cmd": "silent", "on": false}));
        lab.mock.order(json!({"cmd": "wait", "discovering": true}));
        lab.report("C0:00:00:00:00:01", -50);
        lab.until("listening", |health| health.state == ScanState::Listening)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_is_applied_at_once() {
    let Some(mut lab) = Lab::scanning(report_all()).await else {
        return;
    };
    for role in [AdapterRole::Disabled, AdapterRole::Connector] {
        lab.radio
            .roles
            .send_replace([(ADAPTER.to_owned(), role)].into());
        lab.mock.order(json!({"cmd": "wait", "discovering": false}));
        lab.until("rest", |health| health.state == ScanState::Disabled)
            .await;
        lab.radio
            .roles
            .send_replace([(ADAPTER.to_owned(), AdapterRole::Scanner)].into());
        lab.mock.order(json!({"cmd": "wait", "discovering": true}));
        lab.until("listening", |health| health.state == ScanState::Listening)
            .await;
    }
    assert!(
        lab.health().blind.is_empty(),
        "a disabled adapter is not blind"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_adapter_can_be_disabled_and_is_then_not_blind() {
    let Some(mut lab) = Lab::scanning(report_all()).await else {
        return;
    };
    lab.mock.order(json!({"cmd": "remove_adapter"}));
    lab.until("blindness", |health| health.state == ScanState::Blind)
        .await;
    lab.radio
        .roles
        .send_replace([(ADAPTER.to_owned(), AdapterRole::Disabled)].into());
    let disabled = lab
        .until("rest", |health| health.state == ScanState::Disabled)
        .await;
    assert!(
        disabled.reason.is_none() && disabled.blind[0].to.is_some(),
        "{disabled:?}"
    );
    lab.mock.order(json!({"cmd": "stop_daemon"}));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(lab.health().state, ScanState::Disabled);
    lab.radio
        .roles
        .send_replace([(ADAPTER.to_owned(), AdapterRole::Scanner)].into());
    lab.until("blindness", |health| {
        health.state == ScanState::Blind && health.blind.len() == 2
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_configured_adapters_are_used() {
    let Some(mut mock) = mock() else { return };
    mock.order(json!({"cmd": "add_adapter", "address": ADAPTER}));
    mock.order(json!({"cmd": "add_adapter", "adapter": "hci1", "address": "00:11:22:33:44:66"}));
    let config = RadioConfig {
        adapters: vec!["00:11:22:33:44:66".into(), "00:11:22:33:44:77".into()],
        ..report_all()
    };
    let mut lab = Lab::beside(mock, config);
    lab.mock
        .order(json!({"cmd": "wait", "adapter": "hci1", "discovering": true}));
    lab.radio
        .adapters
        .wait_for(|adapters| adapters.len() == 2)
        .await
        .expect("it runs");
    let state = lab.mock.order(json!({"cmd": "state"}));
    assert_eq!(state["adapters"]["hci0"]["discovering"], json!(false));
    let health = lab.radio.health.report(now(), now());
    assert!(!health.contains_key(ADAPTER));
    assert_eq!(
        health["00:11:22:33:44:77"].state,
        ScanState::Blind,
        "a configured adapter that is missing"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auto_scans_actively_if_monitors_are_never_activated() {
    let Some(mut lab) = Lab::scanning(RadioConfig {
        mode: ScanMode::Auto,
        ..report_all()
    })
    .await
    else {
        return;
    };
    lab.report("C0:00:00:00:00:01", -50);
    assert_eq!(lab.next().await.rssi, Some(-50));
    assert!(lab.health().blind.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_that_is_not_there_is_trouble_with_a_name() {
    if !alone() {
        return;
    }
    let cancel = CancellationToken::new();
    let _running = cancel.clone().drop_guard();
    let config = RadioConfig {
        adapters: vec![ADAPTER.into()],
        ..report_all()
    };
    let mut radio = start(Source::BlueZ, config, cancel).expect("it starts");
    let trouble = radio
        .trouble
        .wait_for(Option::is_some)
        .await
        .expect("it runs")
        .clone()
        .unwrap_or_default();
    assert!(trouble.contains(&super::system_address()), "{trouble}");
    assert_eq!(
        radio.health.report(now(), now())[ADAPTER].state,
        ScanState::Blind
    );
    drop(_running);
    assert_eq!(radio.heard.next().await, None);
}
