//! The times of event streams.

use std::time::Duration;

/// How event streams are watched over. These are no settings: clients rely on them. Only tests
/// shorten them.
#[derive(Clone, Copy, Debug)]
pub struct StreamTimes {
    /// Between two comments that keep the connection open.
    pub heartbeat: Duration,
    /// How long a stream may outlive its reader's membership, login or key, or the tenant.
    pub recheck: Duration,
    /// After this time the reader has to connect again.
    pub lifetime: Duration,
    /// How long a reader may leave what was sent to it unread.
    pub stall: Duration,
    /// How long a reader may take to read the rest of a stream that has ended.
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
