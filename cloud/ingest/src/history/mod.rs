//! The closed part of the log: events that moved from the database to files, day by day. A file is
//! durable and was read back before the database says that it is part of the history. From then on
//! readers use it, and the rows are deleted a while later, when no reader can be at them.
//!
//! A file is changed by writing another one in its place. Each file that is to be removed from the
//! store is noted in `ble_history_removals`, in the transaction that replaces it, and so is one
//! that is about to be written: a process that is killed leaves nothing behind.

mod change;
mod close;
mod manifest;
mod read;
mod work;

use hub_base::error::Error;
use hub_core::EventLog;
use hub_history::HistoryError;

pub use change::{Replacement, oldest_before, without_hub};
pub(crate) use change::{Replacements, rewrite};
pub use close::{clear, close, remove_files};
pub(crate) use manifest::closed_to;
pub use manifest::{FileRow, Size, files_page, first_after, first_open, size};
pub(crate) use read::{count, load, locate, places, walk};
pub use work::{LANE, pace, perform};

/// The error of a request that needs a file.
fn unreadable(log: &EventLog, error: HistoryError) -> Error {
    log.read_failures.inc();
    match error {
        HistoryError::Store(_) | HistoryError::Ended(_) => {
            let message = "the store of older events is unavailable; try again shortly";
            Error::unavailable("HISTORY_UNAVAILABLE", message).with_cause(error)
        }
        HistoryError::Missing(_) | HistoryError::Damaged { .. } | HistoryError::Write(_) => {
            if log.history.is_first_failure(&error) {
                tracing::error!(%error, "a file of the history cannot be read; restore it from a copy of the store");
            }
            let message =
                "a file with older events is lost or damaged; ask the operator of the service";
            Error::unavailable("HISTORY_DAMAGED", message).with_cause(error)
        }
    }
}
