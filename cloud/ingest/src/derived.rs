//! Rows that follow from stored records and are written in their transaction, such as the state of
//! a device. What is derived belongs to a subject above; the writer only carries it.

use futures_util::future::BoxFuture;
use hub_adverts::Measurement;
use hub_base::db::Tx;
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

/// What a stored BLE event says of a device.
#[derive(Debug)]
pub struct Heard {
    pub device_instance_id: i64,
    pub observed_at: Timestamp,
    pub rssi_dbm: Option<i16>,
    pub expected_interval_secs: Option<i64>,
    /// None of an event that may be a recording.
    pub measurements: Vec<Measurement>,
}

impl Heard {
    /// The memory that it uses.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.measurements.len() * size_of::<Measurement>()
    }
}

/// What one stored upload says of devices.
pub struct HeardUpload<'a> {
    pub tenant_uuid: TenantUuid,
    pub hub_uuid: HubUuid,
    pub heard: &'a [Heard],
}

/// When to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// What has not been written for a while.
    Now,
    /// The same of the tenants that were heard alone: rows of others cannot be written.
    Theirs,
    /// All of it: the service ends.
    All,
}

/// Keeps what is derived until it is written. Only the writer calls it.
pub trait Derived: Send + Sync {
    /// Adds what was heard, and writes what is due.
    fn write<'a>(
        &'a self,
        tx: &'a mut Tx,
        heard: &'a [HeardUpload<'a>],
        due: Due,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<()>>;

    /// The rows of the last call of `write` are not to be written again: they were committed, or
    /// they cannot be stored.
    fn committed(&self, now: Timestamp);

    /// Whether something is still to be written.
    fn is_waiting(&self) -> bool;
}
