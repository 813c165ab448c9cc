//! The machine's adapters, through BlueZ over D-Bus. The only place that knows D-Bus.

use std::collections::BTreeMap;

use hub_protocol::hub::{Adapter, AdapterRole};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::reports::Pipeline;
use super::{RadioConfig, now};

pub fn start(
    _config: RadioConfig,
    pipeline: Pipeline,
    _adapters: watch::Sender<Vec<Adapter>>,
    _roles: watch::Receiver<BTreeMap<String, AdapterRole>>,
    cancel: CancellationToken,
) {
    tokio::spawn(async move {
        cancel.cancelled().await;
        pipeline.finish(now());
    });
}
