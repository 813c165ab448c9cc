//! The radio: advertisements from BlueZ or from a recording, de-duplicated and, where
//! configured, aggregated over windows. Owns scanning, its recovery and its health. Never writes to
//! disk, never calls the service, and never waits for its reader: if the reader is too slow, the
//! oldest advertisements are dropped and counted.

mod bluez;
mod events;
mod health;
mod queue;
pub mod recognise;
mod replay;
mod reports;
mod routes;
pub mod selection;
pub mod socket;
pub mod types;
mod windows;

use std::collections::BTreeMap;

use hub_protocol::hub::{Adapter, AdapterRole};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use bluez::control::{Survey, survey};
pub use bluez::gatt;
pub use health::Health;
pub use queue::HeardReceiver;
use types::is_address;
pub use types::{Heard, RadioConfig, RadioError, Replay, Selections, Source, now};

/// A running radio. It stops when its token is cancelled. Advertisements that were received by then
/// can still be read from `heard`, which then ends.
#[derive(Debug)]
pub struct Radio {
    pub heard: HeardReceiver,
    /// The present adapters, ordered by address. Changes when any of them does.
    pub adapters: watch::Receiver<Vec<Adapter>>,
    /// Scan health by adapter address.
    pub health: Health,
    /// The reason, as text, why there is no adapter to scan with; `None` while there is one.
    pub trouble: watch::Receiver<Option<String>>,
    /// Role by adapter address, applied at once. An adapter without a role scans.
    pub roles: watch::Sender<BTreeMap<String, AdapterRole>>,
    /// What of a recording is not played.
    pub notice: Option<String>,
}

/// Starts the radio. Must be called within a tokio runtime.
pub fn start(
    source: Source,
    mut config: RadioConfig,
    cancel: CancellationToken,
) -> Result<Radio, RadioError> {
    for address in &mut config.adapters {
        address.make_ascii_uppercase();
        if !is_address(address) {
            return Err(RadioError::AdapterAddress(address.clone()));
        }
    }
    let (sender, heard) = queue::channel();
    let (adapters_sender, adapters) = watch::channel(Vec::new());
    let (roles, roles_receiver) = watch::channel(BTreeMap::new());
    let (trouble_sender, trouble) = watch::channel(None);
    let health = Health::new();
    let pipeline = reports::Pipeline::new(&config, health.clone(), sender);
    let notice = match source {
        Source::BlueZ => {
            let outputs = bluez::Outputs {
                adapters: adapters_sender,
                trouble: trouble_sender,
            };
            bluez::start(config, pipeline, outputs, roles_receiver, cancel);
            None
        }
        Source::Replay(replay) => replay::start(replay, pipeline, adapters_sender, cancel)?,
    };
    Ok(Radio {
        heard,
        adapters,
        health,
        trouble,
        roles,
        notice,
    })
}
