//! The script processes of this service: how many there are, and whose turn it is. A tenant has at
//! most half of them at a time, and a process that served one tenant never serves another.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hub_base::metrics::{Metrics, ScriptEnd};
use hub_protocol::TenantUuid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::child::{Child, Ended};

/// Uploads that may wait for a process; more are not run.
const MAX_WAITING: usize = 1024;
/// Of one tenant.
const MAX_WAITING_OF_TENANT: usize = 128;
/// The time after which an unused process ends.
const IDLE_TIME: Duration = Duration::from_secs(300);
/// The least time between two log lines about scripts of a tenant.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// The most tenants whose last log line is remembered.
const MAX_LOGGED: usize = 1024;

pub struct Pool {
    program: PathBuf,
    processes: usize,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    state: Mutex<State>,
    is_unfiltered_logged: AtomicBool,
    metrics: Metrics,
}

#[derive(Default)]
struct State {
    /// The most recently used is the last.
    idle: Vec<Idle>,
    /// Shares of the tenants that run or wait.
    shares: HashMap<TenantUuid, Share>,
    logged: HashMap<Option<TenantUuid>, Instant>,
}

struct Idle {
    tenant_uuid: TenantUuid,
    since: Instant,
    child: Child,
}

struct Share {
    places: Arc<Semaphore>,
    /// How many hold or want a place.
    users: usize,
}

/// A tenant's turn to use a process.
pub struct Place {
    pool: Arc<Pool>,
    tenant_uuid: TenantUuid,
    child: Option<Child>,
    _share: User,
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// Counts as a user of a tenant's share.
struct User {
    pool: Arc<Pool>,
    tenant_uuid: TenantUuid,
}

impl Drop for User {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        if let Some(share) = state.shares.get_mut(&self.tenant_uuid) {
            share.users -= 1;
            if share.users == 0 {
                state.shares.remove(&self.tenant_uuid);
            }
        }
    }
}

/// Counts as waiting.
struct Waiting(Arc<Pool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    pub fn new(program: PathBuf, processes: usize, metrics: Metrics) -> Self {
        Self {
            program,
            processes,
            places: Arc::new(Semaphore::new(processes)),
            waiting: AtomicUsize::new(0),
            state: Mutex::default(),
            is_unfiltered_logged: AtomicBool::new(false),
            metrics,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. The error is the reason for having none.
    pub async fn place(
        self: &Arc<Self>,
        tenant_uuid: TenantUuid,
        deadline: Instant,
    ) -> Result<Place, &'static str> {
        const BUSY: &str = "the service runs too many scripts";
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(BUSY);
        }
        let _waiting = Waiting(self.clone());
        let (share, user) = self
            .share(tenant_uuid)
            .ok_or("the tenant runs too many scripts")?;
        let turn = async {
            let own = share.acquire_owned().await.ok()?;
            Some((own, self.places.clone().acquire_owned().await.ok()?))
        };
        let permits = tokio::time::timeout_at(deadline.into(), turn)
            .await
            .ok()
            .flatten()
            .ok_or(BUSY)?;
        Ok(Place {
            pool: self.clone(),
            tenant_uuid,
            child: self.idle(tenant_uuid),
            _share: user,
            _permits: permits,
        })
    }

    fn share(self: &Arc<Self>, tenant_uuid: TenantUuid) -> Option<(Arc<Semaphore>, User)> {
        let mut state = self.state();
        let most = (self.processes / 2).max(1);
        let new = || Share {
            places: Arc::new(Semaphore::new(most)),
            users: 0,
        };
        let share = state.shares.entry(tenant_uuid).or_insert_with(new);
        if share.users >= MAX_WAITING_OF_TENANT {
            return None;
        }
        share.users += 1;
        Some((
            share.places.clone(),
            User {
                pool: self.clone(),
                tenant_uuid,
            },
        ))
    }

    /// A process that served the tenant last. If there is none, one of another tenant ends: there
    /// are never more than the places.
    fn idle(&self, tenant_uuid: TenantUuid) -> Option<Child> {
        let mut state = self.state();
        state.idle.retain(|idle| idle.since.elapsed() < IDLE_TIME);
        let own = state
            .idle
            .iter()
            .rposition(|idle| idle.tenant_uuid == tenant_uuid);
        let own = own.map(|at| state.idle.remove(at).child);
        // The place that is being taken does not count.
        let others = self.processes - self.places.available_permits().min(self.processes);
        if own.is_none() && state.idle.len() + others > self.processes {
            state.idle.remove(0);
        }
        self.metrics
            .script_processes
            .set(i64::try_from(state.idle.len() + others).unwrap_or(i64::MAX));
        own
    }

    async fn start(&self, within: Duration) -> Result<Child, Ended> {
        let child = Child::start(&self.program, within)
            .await
            .map_err(Ended::NotStarted)?;
        if !child.is_filtered && !self.is_unfiltered_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the kernel does not filter the system calls of scripts (seccomp); their other limits hold"
            );
        }
        Ok(child)
    }

    /// Whether a log line is due.
    fn is_loggable(&self, of: Option<TenantUuid>) -> bool {
        let mut state = self.state();
        state.logged.retain(|_, at| at.elapsed() < LOG_INTERVAL);
        if state.logged.contains_key(&of) || state.logged.len() >= MAX_LOGGED {
            return false;
        }
        state.logged.insert(of, Instant::now());
        true
    }

    pub fn log_killed(&self, tenant_uuid: TenantUuid, end: ScriptEnd) {
        if self.is_loggable(Some(tenant_uuid)) {
            let why = end.name();
            tracing::warn!(%tenant_uuid, why, "a script process was ended; further ones are not logged for a minute");
        }
    }

    pub fn log_not_started(&self, error: &io::Error) {
        if self.is_loggable(None) {
            tracing::error!(%error, program = %self.program.display(), "cannot start a script process");
        }
    }
}

impl Place {
    /// The process, which is started if there is none.
    pub async fn child(&mut self, within: Duration) -> Result<&mut Child, Ended> {
        let child = match self.child.take() {
            Some(child) => child,
            None => self.pool.start(within).await?,
        };
        Ok(self.child.insert(child))
    }

    pub fn kill(&mut self) {
        self.child = None;
    }

    /// Keeps the process for the tenant's next turn.
    pub fn keep(mut self) {
        if let Some(child) = self.child.take() {
            let tenant_uuid = self.tenant_uuid;
            self.pool.state().idle.push(Idle {
                tenant_uuid,
                since: Instant::now(),
                child,
            });
        }
    }
}
