//! The script processes of this service: how many there are, and whose turn it is. Uploads have
//! places of their own. Of those who wait, the one whose scripts took the least time lately is
//! first; a person with several tenants counts once, and whoever took much gets short turns while
//! others wait. A process that served one tenant never serves another.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hub_base::metrics::{Metrics, ScriptEnd};
use hub_protocol::TenantUuid;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::child::{Child, Ended};

/// Batches that may wait for a process in a lane; more are not run.
const MAX_WAITING: usize = 1024;
/// Of one person.
const MAX_WAITING_OF_PERSON: usize = 128;
/// The time after which an unused process ends.
const IDLE_TIME: Duration = Duration::from_secs(300);
/// The least time between two log lines about scripts of a tenant.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// The most tenants whose last log line is remembered.
const MAX_LOGGED: usize = 1024;

/// The time that scripts took counts half after this one.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// Whoever took more than this lately gets short turns while others wait.
const MUCH: Duration = Duration::from_secs(1);
const SHORT_TURN: Duration = Duration::from_millis(100);
/// The longest turn of anybody while others wait.
const LONG_TURN: Duration = Duration::from_millis(250);

/// How many calls are made before it is looked again whether the turn ends: twice as many while
/// they are quick, and few while they are slow.
const FIRST_CALLS: usize = 4;
const MOST_CALLS: usize = 4_096;
const QUICK: Duration = Duration::from_millis(20);
const SLOW: Duration = Duration::from_millis(50);
/// The most people whose time is remembered beside those who run or wait.
const MAX_REMEMBERED: usize = 4096;

/// How long it is remembered whose a tenant is, and of how many.
const OWNER_FOR: Duration = Duration::from_secs(300);
const MAX_OWNERS: usize = 10_000;

/// What scripts are run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Uploads,
    Others,
}

/// Looks up the person behind a tenant.
pub type OwnerOf =
    Box<dyn Fn(TenantUuid) -> Pin<Box<dyn Future<Output = Option<Uuid>> + Send>> + Send + Sync>;

pub struct Pool {
    program: PathBuf,
    processes: usize,
    state: Mutex<State>,
    owner_of: OnceLock<OwnerOf>,
    /// Whether scripts run where the kernel does not filter their system calls.
    runs_unfiltered: bool,
    is_unfiltered_logged: AtomicBool,
    metrics: Metrics,
}

#[derive(Default)]
struct State {
    /// The most recently used is the last.
    idle: Vec<Idle>,
    uploads: Turns,
    others: Turns,
    /// The time that scripts of people took lately.
    taken: HashMap<Uuid, Taken>,
    owners: HashMap<TenantUuid, (Instant, Uuid)>,
    logged: HashMap<Option<TenantUuid>, Instant>,
}

/// The turns of one lane.
#[derive(Default)]
struct Turns {
    running: usize,
    people: HashMap<Uuid, Person>,
    waiting: usize,
    /// Counts those who came, so that of two with the same time the earlier one is first.
    came: u64,
}

#[derive(Default)]
struct Person {
    running: usize,
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    number: u64,
    tenant_uuid: TenantUuid,
    turn: oneshot::Sender<Place>,
}

/// The time that scripts of a person took, as of a moment.
struct Taken {
    secs: f64,
    at: Instant,
}

impl Taken {
    fn now(&self) -> f64 {
        let half_lives = self.at.elapsed().as_secs_f64() / HALF_LIFE.as_secs_f64();
        self.secs * (-half_lives).exp2()
    }
}

struct Idle {
    tenant_uuid: TenantUuid,
    since: Instant,
    child: Child,
}

/// A tenant's turn to use a process.
pub struct Place {
    pool: Arc<Pool>,
    lane: Lane,
    tenant_uuid: TenantUuid,
    person: Uuid,
    since: Instant,
    child: Option<Child>,
    /// How many calls are made at once.
    pub calls_at_once: usize,
    /// Whether it counts.
    is_taken: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_taken {
            return;
        }
        let mut state = self.pool.state();
        state.add_time(self.person, self.since.elapsed());
        let turns = state.turns(self.lane);
        turns.running -= 1;
        if let Some(person) = turns.people.get_mut(&self.person) {
            person.running -= 1;
        }
        turns.forget(self.person);
        Pool::grant(&self.pool, &mut state, self.lane);
    }
}

/// Waits in the queue, until it is dropped.
struct Waiter {
    pool: Arc<Pool>,
    lane: Lane,
    person: Uuid,
    number: u64,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        let turns = state.turns(self.lane);
        if let Some(person) = turns.people.get_mut(&self.person)
            && let Some(at) = person
                .waiting
                .iter()
                .position(|one| one.number == self.number)
        {
            person.waiting.remove(at);
            turns.waiting -= 1;
        }
        turns.forget(self.person);
    }
}

impl Turns {
    /// Forgets a person who neither runs nor waits.
    fn forget(&mut self, person: Uuid) {
        let is_idle = |known: &Person| known.running == 0 && known.waiting.is_empty();
        if self.people.get(&person).is_some_and(is_idle) {
            self.people.remove(&person);
        }
    }
}

impl State {
    fn turns(&mut self, lane: Lane) -> &mut Turns {
        match lane {
            Lane::Uploads => &mut self.uploads,
            Lane::Others => &mut self.others,
        }
    }

    fn running(&self) -> usize {
        self.uploads.running + self.others.running
    }

    /// The time that scripts of a person took lately.
    fn taken(&self, person: Uuid) -> f64 {
        self.taken.get(&person).map_or(0.0, Taken::now)
    }

    fn add_time(&mut self, person: Uuid, time: Duration) {
        let taken = Taken {
            secs: self.taken(person) + time.as_secs_f64(),
            at: Instant::now(),
        };
        if self.taken.len() >= MAX_REMEMBERED {
            self.taken
                .retain(|_, taken| taken.now() > SHORT_TURN.as_secs_f64());
        }
        self.taken.insert(person, taken);
    }
}

impl Pool {
    pub fn new(
        program: PathBuf,
        processes: usize,
        metrics: Metrics,
        runs_unfiltered: bool,
    ) -> Self {
        Self {
            program,
            processes,
            state: Mutex::default(),
            owner_of: OnceLock::new(),
            runs_unfiltered,
            is_unfiltered_logged: AtomicBool::new(false),
            metrics,
        }
    }

    pub fn set_owner_of(&self, owner_of: OwnerOf) {
        // The first one stays; there is one service in a process.
        let _ = self.owner_of.set(owner_of);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The processes of a lane.
    fn places(&self, lane: Lane) -> usize {
        let others = (self.processes / 2).max(1);
        match lane {
            Lane::Uploads => self.processes.saturating_sub(others).max(1),
            Lane::Others => others,
        }
    }

    /// The person behind a tenant, whose tenants have one share together.
    async fn person(&self, tenant_uuid: TenantUuid) -> Uuid {
        let Some(owner_of) = self.owner_of.get() else {
            return tenant_uuid.0;
        };
        let known = self.state().owners.get(&tenant_uuid).copied();
        if let Some((at, person)) = known
            && at.elapsed() < OWNER_FOR
        {
            return person;
        }
        let person = owner_of(tenant_uuid).await.unwrap_or(tenant_uuid.0);
        let mut state = self.state();
        if state.owners.len() >= MAX_OWNERS {
            state.owners.clear();
        }
        state.owners.insert(tenant_uuid, (Instant::now(), person));
        person
    }

    /// Waits for a turn. The error is the reason for having none.
    pub async fn place(
        self: &Arc<Self>,
        lane: Lane,
        tenant_uuid: TenantUuid,
        deadline: Instant,
    ) -> Result<Place, &'static str> {
        const BUSY: &str = "the service runs too many scripts";
        let person = self.person(tenant_uuid).await;
        let (turn, mine) = oneshot::channel();
        let _waiter = {
            let mut state = self.state();
            let turns = state.turns(lane);
            let known = turns.people.entry(person).or_default();
            if known.waiting.len() >= MAX_WAITING_OF_PERSON {
                return Err("the tenant runs too many scripts");
            }
            if turns.waiting >= MAX_WAITING {
                turns.forget(person);
                return Err(BUSY);
            }
            let number = turns.came;
            known.waiting.push_back(Waiting {
                number,
                tenant_uuid,
                turn,
            });
            turns.came += 1;
            turns.waiting += 1;
            Self::grant(self, &mut state, lane);
            Waiter {
                pool: self.clone(),
                lane,
                person,
                number,
            }
        };
        // A turn that is not taken in time goes back.
        let granted = tokio::time::timeout_at(deadline.into(), mine).await;
        let mut place = granted.ok().and_then(Result::ok).ok_or(BUSY)?;
        place.child = self.idle(tenant_uuid);
        Ok(place)
    }

    /// Gives the free places of a lane to those who took least.
    fn grant(self: &Arc<Self>, state: &mut State, lane: Lane) {
        let places = self.places(lane);
        // One person leaves something to others, where there is more than one place.
        let most = (places - places / 4)
            .max(1)
            .min((self.processes / 2).max(1));
        while state.turns(lane).running < places {
            let turns = match lane {
                Lane::Uploads => &state.uploads,
                Lane::Others => &state.others,
            };
            let first = turns
                .people
                .iter()
                .filter(|(_, known)| known.running < most)
                .filter_map(|(person, known)| {
                    Some((state.taken(*person), known.waiting.front()?.number, *person))
                })
                .min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            let Some((_, _, person)) = first else { return };
            let turns = state.turns(lane);
            let Some(known) = turns.people.get_mut(&person) else {
                return;
            };
            let Some(waiting) = known.waiting.pop_front() else {
                return;
            };
            turns.waiting -= 1;
            known.running += 1;
            turns.running += 1;
            let place = Place {
                pool: self.clone(),
                lane,
                tenant_uuid: waiting.tenant_uuid,
                person,
                since: Instant::now(),
                child: None,
                calls_at_once: FIRST_CALLS,
                is_taken: true,
            };
            if let Err(mut place) = waiting.turn.send(place) {
                // Whoever waited has gone.
                place.is_taken = false;
                known.running -= 1;
                turns.running -= 1;
                turns.forget(person);
            }
        }
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
        let others = state.running();
        let most = self.places(Lane::Uploads) + self.places(Lane::Others);
        if own.is_none() && state.idle.len() + others > most && !state.idle.is_empty() {
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
        if !child.is_filtered && !self.runs_unfiltered {
            return Err(Ended::NotStarted(io::Error::other(
                "the kernel does not filter its system calls (seccomp): run the service where it \
                 does, or set scripts-without-seccomp",
            )));
        }
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
    /// Notes how long calls took.
    pub fn note(&mut self, took: Duration) {
        if took < QUICK {
            self.calls_at_once = (self.calls_at_once * 2).min(MOST_CALLS);
        } else if took > SLOW {
            self.calls_at_once = FIRST_CALLS / 2;
        }
    }

    /// When the turn ends, while others wait: above all soon if its person took much lately.
    pub fn ends_at(&self) -> Option<Instant> {
        let mut state = self.pool.state();
        let elapsed = self.since.elapsed();
        let taken = state.taken(self.person) + elapsed.as_secs_f64();
        let turn = match taken >= MUCH.as_secs_f64() {
            true => SHORT_TURN,
            false => LONG_TURN,
        };
        let turns = state.turns(self.lane);
        let others_wait = turns
            .people
            .iter()
            .any(|(person, known)| *person != self.person && !known.waiting.is_empty());
        others_wait.then(|| self.since + turn)
    }

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
