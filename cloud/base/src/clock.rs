//! The only source of the current time in the service. Nothing else reads a clock, and SQL never
//! does, so that a test can set the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hub_protocol::Timestamp;

#[derive(Clone, Debug)]
pub enum Clock {
    System,
    /// Microseconds since 1970, set from outside.
    Set(Arc<AtomicI64>),
    /// So many microseconds behind the system.
    Behind(Arc<AtomicI64>),
}

impl Clock {
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => chrono::Utc::now().into(),
            Self::Set(micros) => Timestamp::from_micros(micros.load(Ordering::Relaxed)),
            Self::Behind(micros) => {
                let now = chrono::Utc::now().timestamp_micros();
                Timestamp::from_micros(now - micros.load(Ordering::Relaxed))
            }
        }
    }
}
