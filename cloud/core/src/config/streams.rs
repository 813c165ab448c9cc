//! The times of event streams.

use std::time::Duration;

/// The times of event streams. These are no settings: clients rely on them. Only tests shorten
/// them.
#[derive(Clone, Copy, Debug)]
pub struct StreamTimes {
    /// The time between two comments that keep the connection open.
    pub heartbeat: Duration,
    /// The time for which a stream may outlive its reader's membership, login or key, or the
    /// tenant.
    pub recheck: Duration,
    /// The lifetime of a connection; its reader reconnects afterwards.
    pub lifetime: Duration,
    /// The time for which a reader may leave sent data unread.
    pub stall: Duration,
    /// The time that a reader has for the rest of a stream that has ended.
    pub farewell: Duration,
}

impl Default for StreamTimes {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(20),
            recheck: Duration::from_secs(10),
            lifetime: Duration::from_secs(300),
            stall: Duration::from_secs(30),
            farewell: Duration::from_secs(5),
        }
    }
}
