//! The time for which a replica trusts what it read of a caller.

use std::time::Duration;

/// How long an entry of the cache is valid. A revoked right is refused by every replica after it.
pub const LEASE: Duration = Duration::from_millis(100);
