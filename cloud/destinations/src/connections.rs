//! Open connections to brokers, between two messages of a lane. Whoever sends takes one out, so a
//! connection has one user at a time; an idle one is closed before its broker would miss it.

use std::any::Any;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use hub_protocol::TenantUuid;
use tokio::runtime::Handle;

/// Shorter than the keep-alive that brokers agree to, so that an idle connection needs no pings.
const IDLE_FOR: Duration = Duration::from_secs(45);
const SWEEP_EVERY: Duration = Duration::from_secs(15);
/// Idle connections of one lane, and of all.
const MAX_EACH: usize = 32;
const MAX_ALL: usize = 1_024;

/// Of one pipeline, in one revision, with one set of credentials.
pub type Key = (uuid::Uuid, Vec<u8>);

/// An open connection; the kind of destination that made it knows its type.
type Connection = Box<dyn Any + Send>;

/// Looks up the name of a device.
pub type NameOf = Box<
    dyn Fn(TenantUuid, i64) -> Pin<Box<dyn Future<Output = Option<String>> + Send>> + Send + Sync,
>;

/// Cheap to clone.
#[derive(Clone, Default)]
pub struct Connections {
    idle: Arc<Mutex<Idle>>,
    name_of: Option<Arc<NameOf>>,
}

#[derive(Default)]
struct Idle {
    lanes: HashMap<Key, Vec<(Instant, Connection)>>,
    count: usize,
    has_sweeper: bool,
}

impl Connections {
    pub fn new() -> Self {
        Self::default()
    }

    /// With the names of devices, for receivers that show them.
    pub fn naming(name_of: NameOf) -> Self {
        Self {
            name_of: Some(Arc::new(name_of)),
            ..Self::default()
        }
    }

    pub(super) async fn device_name(
        &self,
        tenant_uuid: TenantUuid,
        device_instance_id: i64,
    ) -> Option<String> {
        self.name_of.as_ref()?(tenant_uuid, device_instance_id).await
    }

    /// How many idle connections there are.
    pub fn idle(&self) -> usize {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .count
    }

    /// Closes what is idle of a pipeline: it was paused, changed or deleted.
    pub fn close(&self, pipeline_uuid: uuid::Uuid) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.lanes.retain(|(of, _), _| *of != pipeline_uuid);
        idle.count = idle.lanes.values().map(Vec::len).sum();
    }

    pub(super) fn take<C: Any>(&self, key: &Key) -> Option<Box<C>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = idle.lanes.get_mut(key)?;
        let (since, connection) = lane.pop()?;
        if lane.is_empty() {
            idle.lanes.remove(key);
        }
        idle.count -= 1;
        match since.elapsed() < IDLE_FOR {
            true => connection.downcast().ok(),
            false => None,
        }
    }

    pub(super) fn put<C: Any + Send>(&self, key: Key, connection: Box<C>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.count >= MAX_ALL
            || idle
                .lanes
                .get(&key)
                .is_some_and(|lane| lane.len() >= MAX_EACH)
        {
            return;
        }
        idle.lanes
            .entry(key)
            .or_default()
            .push((Instant::now(), connection));
        idle.count += 1;
        if !idle.has_sweeper
            && let Ok(runtime) = Handle::try_current()
        {
            idle.has_sweeper = true;
            runtime.spawn(sweep(Arc::downgrade(&self.idle)));
        }
    }
}

/// Closes idle connections for as long as there are any.
async fn sweep(idle: Weak<Mutex<Idle>>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
        for lane in idle.lanes.values_mut() {
            lane.retain(|(since, _)| since.elapsed() < IDLE_FOR);
        }
        idle.lanes.retain(|_, lane| !lane.is_empty());
        idle.count = idle.lanes.values().map(Vec::len).sum();
        if idle.count == 0 {
            idle.has_sweeper = false;
            return;
        }
    }
}
