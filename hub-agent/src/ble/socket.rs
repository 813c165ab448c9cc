//! The advertisements for apps on this hub: a socket with one JSON document per line. A listener
//! that is too slow loses lines and receives their number; no listener makes the radio wait, and
//! without listeners this costs nothing. Nothing is read from listeners. A new listener always gets
//! a place: the process with the most places loses its oldest one.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use hub_adverts::Measurement;
use hub_protocol::Timestamp;
use hub_protocol::ble::{Advertisement, BleDeviceWindow};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast::{Receiver, Sender, error::RecvError, error::TryRecvError};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::selection::{KnownDevice, Selection};
use super::types::{Heard, Selections};

/// The number of lines that a listener may be behind. Lines are stored once for all listeners:
/// about 500 KB.
const CAPACITY: usize = 1_024;
const MAX_LISTENERS: usize = 16;
/// Lines are written together up to this many bytes.
const WRITE_BYTES: usize = 16 << 10;
/// A listener that reads nothing for this long is disconnected: others may need its place.
const PATIENCE: Duration = Duration::from_secs(60);
/// The wait after a connection could not be accepted.
const AFTER_AN_ERROR: Duration = Duration::from_secs(1);

/// A line of the socket.
#[derive(Serialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum Line<'a> {
    /// A device in a window, where windows are reported.
    Window {
        window_start: Timestamp,
        window_end: Timestamp,
        #[serde(flatten)]
        device: &'a BleDeviceWindow,
    },
    /// The number of lines that are missing at this place: the listener was too slow.
    Lost { lines: u64 },
    /// There are too many listeners, and this one is disconnected for a new one.
    Full,
}

/// An advertisement, as it is reported to the service: what the line has before its members.
const EVENT: &[u8] = br#"{"type":"event","#;

/// The device of an advertisement and its measurements, according to the scan configuration.
#[derive(Serialize)]
struct Known<'a> {
    #[serde(flatten)]
    device: KnownDevice,
    measurements: &'a [Measurement],
}

fn event_line(event: &[u8], selection: Option<&Selection>) -> Bytes {
    let members = event.get(1..).unwrap_or_default();
    let known = selection.and_then(|selection| known_of(event, selection));
    match (known, members.strip_suffix(b"}")) {
        (Some(known), Some(members)) => [
            EVENT,
            members,
            b",",
            known.get(1..).unwrap_or_default(),
            b"\n",
        ]
        .concat(),
        _ => [EVENT, members, b"\n"].concat(),
    }
    .into()
}

/// The object of what is known of an event; `None` if its model is not.
fn known_of(event: &[u8], selection: &Selection) -> Option<Vec<u8>> {
    let advertisement: Advertisement = serde_json::from_slice(event).ok()?;
    let mut measurements = Vec::new();
    let device = selection.known(&advertisement, &mut measurements)?;
    let known = Known {
        device,
        measurements: &measurements,
    };
    serde_json::to_vec(&known).ok()
}

impl Line<'_> {
    fn bytes(&self) -> Bytes {
        // Maps of strings and numbers can always be encoded.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line.into()
    }
}

/// All listeners.
#[derive(Clone, Debug)]
pub struct Listeners {
    lines: Sender<Bytes>,
    selections: Option<Selections>,
}

impl Listeners {
    /// Lines name the device and the measurements according to the selection in force.
    pub fn new(selections: Option<Selections>) -> Self {
        Self {
            lines: Sender::new(CAPACITY),
            selections,
        }
    }

    /// Sends advertisements to all listeners. Never waits.
    pub fn send(&self, heard: &[Heard]) {
        if self.lines.receiver_count() == 0 {
            return;
        }
        let selection = self
            .selections
            .as_ref()
            .and_then(|selections| selections.borrow().clone());
        let selection = selection
            .as_deref()
            .filter(|selection| !selection.catalog.is_empty());
        let send_line = |line: Bytes| {
            // The last listener may have disconnected meanwhile.
            let _ = self.lines.send(line);
        };
        for heard in heard {
            match heard {
                Heard::Events(events) => events
                    .iter()
                    .for_each(|(_, event)| send_line(event_line(event, selection))),
                Heard::Window(window) => {
                    for device in &window.devices {
                        let line = Line::Window {
                            window_start: window.start,
                            window_end: window.end,
                            device,
                        };
                        send_line(line.bytes());
                    }
                }
            }
        }
    }

    /// Serves the socket until it is dropped. Every user who can enter its directory can connect.
    pub async fn serve(&self, path: &Path) -> io::Result<()> {
        if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
            fs::DirBuilder::new().mode(0o755).create(directory)?;
            // Independent of the umask: apps run as users of their own.
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
        let mut served = JoinSet::new();
        let mut places: Vec<Place> = Vec::new();
        let mut refused = None;
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = served.join_next() => continue,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                // The cause is temporary, such as the lack of a free file descriptor.
                Err(error) => {
                    if refused != Some(error.kind()) {
                        tracing::warn!(%error, "an app's connection to the BLE socket cannot be accepted; it is tried again");
                        refused = Some(error.kind());
                    }
                    tokio::time::sleep(AFTER_AN_ERROR).await;
                    continue;
                }
            };
            refused = None;
            places.retain(|place| !place.disconnect.is_closed());
            if places.len() >= MAX_LISTENERS
                && let Some(place) = place_to_free(&places)
            {
                let _ = places.remove(place).disconnect.send(());
            }
            let (disconnect, disconnected) = oneshot::channel();
            // Within a user namespace users are indistinguishable, but processes are not.
            let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
            places.push(Place {
                process,
                disconnect,
            });
            served.spawn(feed(stream, self.lines.subscribe(), disconnected));
        }
    }
}

/// A listener's place.
struct Place {
    process: Option<i32>,
    /// Closed when the listener has ended.
    disconnect: oneshot::Sender<()>,
}

/// The oldest place of the process with the most places.
fn place_to_free(places: &[Place]) -> Option<usize> {
    let held = |place: &Place| {
        places
            .iter()
            .filter(|other| other.process == place.process)
            .count()
    };
    let most = places.iter().map(held).max()?;
    places.iter().position(|place| held(place) == most)
}

/// Sends lines until the listener disconnects or no longer reads.
async fn feed(
    mut stream: UnixStream,
    mut lines: Receiver<Bytes>,
    mut disconnected: oneshot::Receiver<()>,
) {
    let (mut read, mut write) = stream.split();
    let mut nothing = [0; 64];
    let mut buffer = Vec::new();
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Ok(line) => buffer.extend_from_slice(&line),
                Err(RecvError::Lagged(lost)) => buffer.extend_from_slice(&Line::Lost { lines: lost }.bytes()),
                Err(RecvError::Closed) => return,
            },
            // Input of a listener is discarded: it only shows that the listener is still connected.
            sent = read.read(&mut nothing) => match sent {
                Ok(length) if length > 0 => continue,
                _ => return,
            },
            _ = &mut disconnected => {
                let _ = write.try_write(&Line::Full.bytes());
                return;
            }
        }
        while buffer.len() < WRITE_BYTES {
            match lines.try_recv() {
                Ok(line) => buffer.extend_from_slice(&line),
                Err(TryRecvError::Lagged(lost)) => {
                    buffer.extend_from_slice(&Line::Lost { lines: lost }.bytes())
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        tokio::select! {
            written = tokio::time::timeout(PATIENCE, write.write_all(&buffer)) => match written {
                Ok(Ok(())) => buffer.clear(),
                _ => return,
            },
            // The line would be in the middle of another.
            _ = &mut disconnected => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::types::HeardWindow;
    use super::*;
    use hub_protocol::ble::BleEvent;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, BufReader, Lines};

    fn event(number: usize) -> Heard {
        let payload = Advertisement {
            address: format!("{number}"),
            ..Advertisement::default()
        };
        Heard::from(&BleEvent {
            event_uuid: None,
            observed_at: Timestamp::from_micros(0),
            traceparent: None,
            payload,
        })
    }

    #[test]
    fn what_the_configuration_knows_of_an_event_is_added_to_its_line() {
        let model = uuid::Uuid::from_u128(0xaa);
        let config = json!({
            "revision": 1, "routes": [], "otherwise": "FORWARD", "keys": [],
            "devices": [{"deviceUuid": model, "name": "Thermometer", "deviceProtocolId": 21},
                {"deviceUuid": model, "deviceInstanceId": 7, "name": "Cold store", "address": "C4:00:00:00:00:07"}],
            "identifiers": [{"id": 11, "deviceUuid": model, "conditions": [{"kind": "SERVICE_DATA_UUID", "value": "fcd2"}]}],
            "protocols": [{"deviceProtocolId": 21, "revision": 1, "kind": "BUILTIN", "definition": {"decoder": "bthome"}}],
        });
        let selection = Selection::new(
            &serde_json::from_value(config).unwrap(),
            hub_protocol::HubUuid::new(),
        )
        .unwrap();
        let line = |address: &str, service: &str| -> Value {
            let event = json!({"observedAt": "2026-01-31T08:00:00.000000Z", "address": address, "name": "BTH",
                "serviceData": {service: "QALKCQ=="}});
            let line = event_line(event.to_string().as_bytes(), Some(&selection));
            assert!(line.ends_with(b"}\n"));
            serde_json::from_slice(&line).unwrap()
        };
        let known = line("C4:00:00:00:00:07", "fcd2");
        let measured = json!([{"quantity": "temperature", "value": 25.06, "unit": "Cel"}]);
        assert_eq!(
            (&known["type"], &known["name"], &known["deviceUuid"]),
            (&json!("event"), &json!("BTH"), &json!(model))
        );
        assert_eq!(
            (&known["deviceInstanceId"], &known["deviceName"]),
            (&json!(7), &json!("Cold store"))
        );
        assert_eq!(known["measurements"], measured);
        let unregistered = line("C4:00:00:00:00:08", "fcd2");
        assert_eq!(
            (
                &unregistered["deviceName"],
                unregistered.get("deviceInstanceId")
            ),
            (&json!("Thermometer"), None)
        );
        let unknown = line("C4:00:00:00:00:08", "181a");
        assert_eq!(
            (unknown.get("deviceUuid"), unknown.get("measurements")),
            (None, None)
        );
    }

    struct Served {
        dir: tempfile::TempDir,
        listeners: Listeners,
        _serving: JoinSet<()>,
    }

    impl Served {
        fn start() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (listeners, mut serving) = (Listeners::new(None), JoinSet::new());
            let (served, path) = (listeners.clone(), dir.path().join("ble/socket"));
            serving.spawn(async move { served.serve(&path).await.unwrap() });
            Self {
                dir,
                listeners,
                _serving: serving,
            }
        }

        async fn connect(&self) -> Lines<BufReader<UnixStream>> {
            loop {
                match UnixStream::connect(self.dir.path().join("ble/socket")).await {
                    Ok(stream) => return BufReader::new(stream).lines(),
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        }

        async fn until_listening(&self, count: usize) {
            while self.listeners.lines.receiver_count() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    async fn next(lines: &mut Lines<BufReader<UnixStream>>) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(10), lines.next_line())
            .await
            .unwrap()
            .unwrap();
        serde_json::from_str(&line.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn each_advertisement_is_one_line() {
        let served = Served::start();
        let (mut one, mut other) = (served.connect().await, served.connect().await);
        served.until_listening(2).await;
        let device = BleDeviceWindow {
            count: 3,
            rssi_min: -70,
            rssi_max: -60,
            rssi_mean: -65.0,
            first_seen_at: Timestamp::from_micros(0),
            last_seen_at: Timestamp::from_micros(0),
            payload: Advertisement {
                address: "w".into(),
                ..Advertisement::default()
            },
        };
        let (start, end) = (
            Timestamp::from_micros(0),
            Timestamp::from_micros(60_000_000),
        );
        served.listeners.send(&[
            event(1),
            Heard::Window(HeardWindow {
                start,
                end,
                devices: vec![device],
            }),
        ]);
        for listener in [&mut one, &mut other] {
            let line = next(listener).await;
            assert_eq!(
                (&line["type"], &line["address"]),
                (&json!("event"), &json!("1")),
                "{line}"
            );
            assert!(line["observedAt"].is_string(), "{line}");
            let line = next(listener).await;
            assert_eq!(
                (&line["type"], &line["address"], &line["count"]),
                (&json!("window"), &json!("w"), &json!(3))
            );
            assert!(
                line["windowStart"].is_string() && line["windowEnd"].is_string(),
                "{line}"
            );
        }
        drop(one);
        served.until_listening(1).await;
    }

    #[tokio::test]
    async fn a_slow_listener_receives_the_number_of_lost_lines_and_delays_nobody() {
        let served = Served::start();
        let (mut slow, mut quick) = (served.connect().await, served.connect().await);
        served.until_listening(2).await;
        let (mut sent_lines, mut quick_lost) = (0_u64, 0);
        let quick = tokio::spawn(async move {
            let mut seen = 0;
            while seen + quick_lost < 20_000 {
                let line = next(&mut quick).await;
                match line["type"].as_str() {
                    Some("lost") => quick_lost += line["lines"].as_u64().unwrap(),
                    _ => seen += 1,
                }
            }
            quick_lost
        });
        for hundred in 0..200 {
            let heard: Vec<Heard> = (0..100)
                .map(|number| event(hundred * 100 + number))
                .collect();
            served.listeners.send(&heard);
            sent_lines += 100;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(
            quick.await.unwrap(),
            0,
            "a slow listener does not cost a quick one any line"
        );
        let (mut seen, mut lost, mut expected) = (0, 0, 0);
        while seen + lost < sent_lines {
            let line = next(&mut slow).await;
            match line["type"].as_str() {
                Some("lost") => {
                    lost += line["lines"].as_u64().unwrap();
                    expected += line["lines"].as_u64().unwrap();
                }
                _ => {
                    assert_eq!(
                        line["address"],
                        json!(expected.to_string()),
                        "the gap is where it is sent_lines"
                    );
                    seen += 1;
                    expected += 1;
                }
            }
        }
        assert!(lost > 0, "{lost} of {sent_lines} lost");
    }

    #[tokio::test]
    async fn a_new_listener_replaces_the_oldest() {
        let served = Served::start();
        let mut listening = Vec::new();
        for count in 1..=MAX_LISTENERS {
            listening.push(served.connect().await);
            served.until_listening(count).await;
        }
        let mut late = served.connect().await;
        let mut oldest = listening.remove(0);
        assert_eq!(next(&mut oldest).await, json!({"type": "full"}));
        assert_eq!(oldest.next_line().await.unwrap(), None);
        served.until_listening(MAX_LISTENERS).await;
        served.listeners.send(&[event(7)]);
        assert_eq!(next(&mut late).await["address"], json!("7"));
        assert_eq!(
            next(&mut listening[0]).await["address"],
            json!("7"),
            "the others stay"
        );
        listening.truncate(1);
        served.until_listening(2).await;
        let mut later = served.connect().await;
        served.until_listening(3).await;
        served.listeners.send(&[event(8)]);
        for listener in [&mut late, &mut later, &mut listening[0]] {
            assert_eq!(
                next(listener).await["address"],
                json!("8"),
                "places that were disconnected are free"
            );
        }
    }

    #[test]
    fn one_app_cannot_take_the_places_of_others() {
        let place = |process| Place {
            process: Some(process),
            disconnect: oneshot::channel().0,
        };
        let places: Vec<Place> = [1, 2, 2, 3, 2, 3].map(place).into();
        assert_eq!(
            place_to_free(&places),
            Some(1),
            "the oldest of the process that holds the most"
        );
        let places: Vec<Place> = [1, 2, 3].map(place).into();
        assert_eq!(place_to_free(&places), Some(0));
        assert_eq!(place_to_free(&[]), None);
    }
}
