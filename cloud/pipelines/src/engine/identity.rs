//! Which lane a task works on.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use tokio_util::sync::CancellationToken;

use super::lease::Lease;

/// Which lane it is, and the right to work on it.
#[derive(Clone)]
pub struct Identity {
    pub lane_uuid: uuid::Uuid,
    pub epoch: i64,
    pub is_replay: bool,
    pub lease: Lease,
    /// Cancelled when the lane is somebody else's, or is to be given back.
    pub lost: CancellationToken,
    /// How often it was settled under this epoch.
    pub settlements: Arc<AtomicI64>,
}
