//! The events of the log that are in the database. Those of an upload are one row of
//! `ble_batches`, a large upload is several: an event costs a few bytes where a row of its own,
//! with its entries in indexes, costs hundreds. The ids of a batch have no gaps.
//!
//! Events are found by time (`ble_batches` is in the order of ids), by hub, and by device
//! (`ble_device_hours` has the hours in which hubs received events of it). Batches that repeat
//! what others were the first to receive are in `ble_batch_repeats`. An entry there may be of a
//! batch that is gone.

mod columns;
mod forget;
mod heads;
mod hours;
mod read;
mod rewrite;
mod texts;
mod write;

pub(super) use forget::forget;
pub use heads::{Head, status_bits};
pub(super) use read::{
    Found, are_unchanged, count, load, oldest, places, places_of, repeats, walk,
};
pub use read::{Place, Wanted};
pub use rewrite::Rewritten;
pub(super) use rewrite::{count_bytes, rewrite};
pub use write::{Batches, FirstReception, split};

/// The most events of a batch. A batch that an id is in begins less than so many ids before it.
pub const MAX_EVENTS: i64 = 1024;
/// A batch is full with so many bytes of texts. A larger event is a batch of its own.
const FULL_BYTES: usize = 256 * 1024;
/// No batch has more; what says so is damaged.
const MAX_BATCH_BYTES: usize = 256 * 1024 * 1024;
