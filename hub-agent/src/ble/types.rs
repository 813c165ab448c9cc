//! Types that the parts of the radio share: the source of advertisements, the radio's settings, and
//! the items that it delivers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use hub_protocol::Timestamp;
use hub_protocol::ble::BleDeviceWindow;
use hub_recordings::RecordingError;
use tokio::sync::watch;

use super::events::Events;
use super::selection::Selection;
use crate::config::ScanMode;

/// Where advertisements come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The machine's own adapters.
    BlueZ,
    Replay(Replay),
}

/// A recording, played as if its advertisements were received now.
#[derive(Clone, Debug)]
pub struct Replay {
    /// A recording of any format, plain or compressed with zstd.
    pub file: PathBuf,
    /// 1 is the recorded speed, 2 is twice as fast, 0 is as fast as the reader can read.
    pub speed: f64,
    /// Restart the recording at its end, until cancelled.
    pub repeat: bool,
}

#[derive(Clone, Debug)]
pub struct RadioConfig {
    /// Adapters to use, by address in any case; empty is all of them.
    pub adapters: Vec<String>,
    pub mode: ScanMode,
    /// Report single advertisements.
    pub single_events: bool,
    /// The same payload of the same advertiser is reported once in this time. Zero reports every
    /// advertisement.
    pub dedup_window: Duration,
    /// Aggregate the advertisements of each device over windows of this length.
    pub report_window: Option<Duration>,
    /// Windows are at least this long, in microseconds: each is an upload of its own, so there must
    /// not be more of them than may be uploaded. May change at any time.
    pub least_window_micros: Arc<AtomicI64>,
    /// The share of events with which a trace begins, from 0 to 1.
    pub trace_ratio: f64,
    /// Scanning is restarted on an adapter that receives nothing for this long.
    pub silence: Duration,
    /// The selection that the service has sent to this hub; it may change at any time.
    pub selection: Option<Selections>,
}

/// The compiled scan configuration, once there is one.
pub type Selections = watch::Receiver<Option<Arc<Selection>>>;

impl Default for RadioConfig {
    fn default() -> Self {
        Self {
            adapters: Vec::new(),
            mode: ScanMode::Auto,
            single_events: true,
            dedup_window: Duration::from_secs(10),
            report_window: None,
            trace_ratio: 0.0,
            least_window_micros: Arc::default(),
            silence: Duration::from_secs(60),
            selection: None,
        }
    }
}

/// An item that the radio delivers to its reader.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    Events(Events),
    Window(HeardWindow),
}

#[cfg(test)]
impl From<&hub_protocol::ble::BleEvent> for Heard {
    fn from(event: &hub_protocol::ble::BleEvent) -> Self {
        let mut events = Events::default();
        events.push(event.observed_at, event.traceparent, &event.payload);
        Self::Events(events)
    }
}

/// Every device that advertised between two times.
#[derive(Clone, Debug, PartialEq)]
pub struct HeardWindow {
    pub start: Timestamp,
    pub end: Timestamp,
    pub devices: Vec<BleDeviceWindow>,
}

/// Why the radio cannot start. Faults that occur later are health, not errors.
#[derive(Debug, thiserror::Error)]
pub enum RadioError {
    #[error("cannot read the recording {}: {error}", file.display())]
    RecordingUnreadable {
        file: PathBuf,
        error: std::io::Error,
    },
    #[error("cannot replay {}: {error}", file.display())]
    RecordingRefused {
        file: PathBuf,
        error: RecordingError,
    },
    #[error("the recording {} contains no advertisements", file.display())]
    RecordingEmpty { file: PathBuf },
    #[error("a replay speed must be 0 (as fast as possible) or more, not {0}")]
    ReplaySpeed(f64),
    #[error(
        "{0:?} is not an adapter address; write it as AA:BB:CC:DD:EE:FF (`hub-agent check` lists the adapters)"
    )]
    AdapterAddress(String),
}

/// Six upper-case hex octets with colons.
pub fn is_address(text: &str) -> bool {
    text.len() == 17
        && text.bytes().enumerate().all(|(at, byte)| {
            if at % 3 == 2 {
                byte == b':'
            } else {
                byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte)
            }
        })
}

/// The machine's wall clock.
pub fn now() -> Timestamp {
    chrono::Utc::now().into()
}
