//! The radio: what is on the air around this hub, from BlueZ or from a recorded trace, de-duplicated and on request summed up in windows.
//! Owns scanning, its recovery and its health. Never writes to disk, never talks to the service, and never waits for its reader:
//! a reader that is too slow loses the oldest, which is counted.

mod bluez;
mod health;
mod outlet;
pub mod recognise;
mod replay;
mod reports;
pub mod socket;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hub_protocol::Timestamp;
use hub_protocol::ble::{BleDeviceWindow, BleEvent};
use hub_protocol::hub::{Adapter, AdapterRole};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use bluez::control::{Survey, survey};
pub use health::Health;
pub use outlet::HeardReceiver;

/// Where advertisements come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The machine's own adapters.
    BlueZ,
    Replay(Replay),
}

/// A recorded trace, played as if it were heard now.
#[derive(Clone, Debug)]
pub struct Replay {
    /// JSON Lines, or those compressed with zstd.
    pub file: PathBuf,
    /// 1 is the pace it was recorded at, 2 is twice as fast, 0 is as fast as the reader takes it.
    pub speed: f64,
    /// Begin again at the end, until cancelled.
    pub repeat: bool,
}

/// How an adapter listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanMode {
    /// Passive where BlueZ can, else active.
    #[default]
    Auto,
    /// Only listen: costs advertisers no battery, hears no scan responses.
    Passive,
    /// Ask each advertiser for its scan response.
    Active,
}

#[derive(Clone, Debug)]
pub struct RadioConfig {
    /// Adapters to use, by address in any case; empty is all of them.
    pub adapters: Vec<String>,
    pub mode: ScanMode,
    /// Report single advertisements.
    pub single_events: bool,
    /// The same payload of the same advertiser is reported once in this time. Zero reports every advertisement.
    pub dedup_window: Duration,
    /// Sum up every device each so often.
    pub report_window: Option<Duration>,
    /// An adapter that heard nothing for so long is looked into.
    pub silence: Duration,
}

impl Default for RadioConfig {
    fn default() -> Self {
        Self {
            adapters: Vec::new(),
            mode: ScanMode::Auto,
            single_events: true,
            dedup_window: Duration::from_secs(10),
            report_window: None,
            silence: Duration::from_secs(60),
        }
    }
}

/// What the radio hands to its reader.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    Event(BleEvent),
    Window(HeardWindow),
}

/// Every device heard between two times.
#[derive(Clone, Debug, PartialEq)]
pub struct HeardWindow {
    pub start: Timestamp,
    pub end: Timestamp,
    pub devices: Vec<BleDeviceWindow>,
}

/// A running radio. It stops when its token is cancelled; what it had heard by then can still be taken from `heard`, which then ends.
#[derive(Debug)]
pub struct Radio {
    pub heard: HeardReceiver,
    /// The adapters there are now, in the order of their addresses; changes when any of them does.
    pub adapters: watch::Receiver<Vec<Adapter>>,
    /// Scan health by adapter address.
    pub health: Health,
    /// Why there is no adapter to scan with at all, for a person; `None` while there is one.
    pub trouble: watch::Receiver<Option<String>>,
    /// Role by adapter address, applied at once; an adapter that is not named scans.
    pub roles: watch::Sender<BTreeMap<String, AdapterRole>>,
}

/// Why there is no radio at all. What goes wrong later is health, not an error.
#[derive(Debug, thiserror::Error)]
pub enum RadioError {
    #[error("cannot read the trace {}: {error}", file.display())]
    TraceUnreadable { file: PathBuf, error: std::io::Error },
    #[error("the trace {} is wrong at line {line}: {message}", file.display())]
    TraceLine { file: PathBuf, line: usize, message: String },
    #[error("the trace {} holds no advertisements", file.display())]
    TraceEmpty { file: PathBuf },
    #[error("a replay speed must be 0 (as fast as possible) or more, not {0}")]
    ReplaySpeed(f64),
    #[error("{0:?} is no adapter address; write it as AA:BB:CC:DD:EE:FF (`hub-agent check` lists the adapters)")]
    AdapterAddress(String),
}

/// Starts listening. Must be called within a tokio runtime.
pub fn start(source: Source, mut config: RadioConfig, cancel: CancellationToken) -> Result<Radio, RadioError> {
    for address in &mut config.adapters {
        address.make_ascii_uppercase();
        if !is_address(address) {
            return Err(RadioError::AdapterAddress(address.clone()));
        }
    }
    let (sender, heard) = outlet::channel();
    let (adapters_sender, adapters) = watch::channel(Vec::new());
    let (roles, roles_receiver) = watch::channel(BTreeMap::new());
    let (trouble_sender, trouble) = watch::channel(None);
    let health = Health::new();
    let pipeline = reports::Pipeline::new(&config, health.clone(), sender);
    match source {
        Source::BlueZ => bluez::start(
            config,
            pipeline,
            bluez::Outputs { adapters: adapters_sender, trouble: trouble_sender },
            roles_receiver,
            cancel,
        ),
        Source::Replay(replay) => replay::start(replay, pipeline, adapters_sender, cancel)?,
    }
    Ok(Radio { heard, adapters, health, trouble, roles })
}

/// Six upper-case hex octets with colons.
fn is_address(text: &str) -> bool {
    text.len() == 17
        && text.bytes().enumerate().all(|(at, byte)| {
            if at % 3 == 2 { byte == b':' } else { byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte) }
        })
}

/// The machine's wall clock.
pub fn now() -> Timestamp {
    chrono::Utc::now().into()
}
