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
use hub_protocol::Timestamp;
use hub_protocol::ble::BleDeviceWindow;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast::{Receiver, Sender, error::RecvError, error::TryRecvError};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::types::Heard;

/// How many lines a listener may be behind. They are stored once for all listeners: about 500 KB.
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
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Line<'a> {
    /// A device in a window, where windows are reported.
    Window {
        window_start: Timestamp,
        window_end: Timestamp,
        #[serde(flatten)]
        device: &'a BleDeviceWindow,
    },
    /// This many lines are missing here: the listener was too slow.
    Lost { lines: u64 },
    /// There are too many listeners, and this one is disconnected for a new one.
    Full,
}

/// An advertisement, as it is reported to the service: what the line has before its members.
const EVENT: &[u8] = br#"{"type":"event","#;

fn event_line(event: &[u8]) -> Bytes {
    let members = event.get(1..).unwrap_or_default();
    [EVENT, members, b"\n"].concat().into()
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
pub struct Listeners(Sender<Bytes>);

impl Default for Listeners {
    fn default() -> Self {
        Self(Sender::new(CAPACITY))
    }
}

impl Listeners {
    /// Sends advertisements to all listeners. Never waits.
    pub fn send(&self, heard: &[Heard]) {
        if self.0.receiver_count() == 0 {
            return;
        }
        let send_line = |line: Bytes| {
            // The last listener may have disconnected meanwhile.
            let _ = self.0.send(line);
        };
        for heard in heard {
            match heard {
                Heard::Events(events) => events.iter().for_each(|(_, event)| send_line(event_line(event))),
                Heard::Window(window) => {
                    for device in &window.devices {
                        let line = Line::Window { window_start: window.start, window_end: window.end, device };
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
                // For example, there is no free file descriptor: that is temporary.
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
            places.push(Place { process, disconnect });
            served.spawn(feed(stream, self.0.subscribe(), disconnected));
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
    let held = |place: &Place| places.iter().filter(|other| other.process == place.process).count();
    let most = places.iter().map(held).max()?;
    places.iter().position(|place| held(place) == most)
}

/// Until the listener disconnects, or reads nothing any more.
async fn feed(mut stream: UnixStream, mut lines: Receiver<Bytes>, mut disconnected: oneshot::Receiver<()>) {
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
            // What a listener sends is discarded: it only shows that the listener is still
            // connected.
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
                Err(TryRecvError::Lagged(lost)) => buffer.extend_from_slice(&Line::Lost { lines: lost }.bytes()),
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
    use hub_protocol::ble::{Advertisement, BleEvent};
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, BufReader, Lines};

    fn event(number: usize) -> Heard {
        let payload = Advertisement { address: format!("{number}"), ..Advertisement::default() };
        Heard::from(&BleEvent { event_uuid: None, observed_at: Timestamp::from_micros(0), payload })
    }

    struct Served {
        dir: tempfile::TempDir,
        listeners: Listeners,
        _serving: JoinSet<()>,
    }

    impl Served {
        fn start() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (listeners, mut serving) = (Listeners::default(), JoinSet::new());
            let (served, path) = (listeners.clone(), dir.path().join("ble/socket"));
            serving.spawn(async move { served.serve(&path).await.unwrap() });
            Self { dir, listeners, _serving: serving }
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
            while self.listeners.0.receiver_count() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    async fn next(lines: &mut Lines<BufReader<UnixStream>>) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(10), lines.next_line()).await.unwrap().unwrap();
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
            payload: Advertisement { address: "w".into(), ..Advertisement::default() },
        };
        let (start, end) = (Timestamp::from_micros(0), Timestamp::from_micros(60_000_000));
        served.listeners.send(&[event(1), Heard::Window(HeardWindow { start, end, devices: vec![device] })]);
        for listener in [&mut one, &mut other] {
            let line = next(listener).await;
            assert_eq!((&line["type"], &line["address"]), (&json!("event"), &json!("1")), "{line}");
            assert!(line["observedAt"].is_string(), "{line}");
            let line = next(listener).await;
            assert_eq!((&line["type"], &line["address"], &line["count"]), (&json!("window"), &json!("w"), &json!(3)));
            assert!(line["windowStart"].is_string() && line["windowEnd"].is_string(), "{line}");
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
            let heard: Vec<Heard> = (0..100).map(|number| event(hundred * 100 + number)).collect();
            served.listeners.send(&heard);
            sent_lines += 100;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(quick.await.unwrap(), 0, "a slow listener does not cost a quick one any line");
        let (mut seen, mut lost, mut expected) = (0, 0, 0);
        while seen + lost < sent_lines {
            let line = next(&mut slow).await;
            match line["type"].as_str() {
                Some("lost") => {
                    lost += line["lines"].as_u64().unwrap();
                    expected += line["lines"].as_u64().unwrap();
                }
                _ => {
                    assert_eq!(line["address"], json!(expected.to_string()), "the gap is where it is sent_lines");
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
        assert_eq!(next(&mut listening[0]).await["address"], json!("7"), "the others stay");
        listening.truncate(1);
        served.until_listening(2).await;
        let mut later = served.connect().await;
        served.until_listening(3).await;
        served.listeners.send(&[event(8)]);
        for listener in [&mut late, &mut later, &mut listening[0]] {
            assert_eq!(next(listener).await["address"], json!("8"), "places that were disconnected are free");
        }
    }

    #[test]
    fn one_app_cannot_take_the_places_of_others() {
        let place = |process| Place { process: Some(process), disconnect: oneshot::channel().0 };
        let places: Vec<Place> = [1, 2, 2, 3, 2, 3].map(place).into();
        assert_eq!(place_to_free(&places), Some(1), "the oldest of the process that holds the most");
        let places: Vec<Place> = [1, 2, 3].map(place).into();
        assert_eq!(place_to_free(&places), Some(0));
        assert_eq!(place_to_free(&[]), None);
    }
}
