//! The threads that lanes work on. Their priority is below that of the threads that serve requests,
//! and they rest while ingest is busy, so that deliveries use the time that uploads leave.

use std::cell::Cell;
use std::future::poll_fn;
use std::num::NonZero;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use hub_base::metrics::Metrics;
use hub_core::pace::IngestLoad;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// How much nicer than others (see nice(2)): under load, about 4 % of the time is theirs. It counts
/// among the threads of this process only: the kernel shares the time between groups of processes
/// first, and the database is usually in another one.
const NICENESS: i32 = 15;
/// How long a thread rests while ingest is busy, in times of what it has worked.
const BUSY_REST: f64 = 8.0;
/// The work after which it rests.
const TURN: Duration = Duration::from_millis(1);
/// The longest rest. What it has worked is measured with the time it waited for a processor: on a
/// machine that others use, a thread would rest for seconds after each larger piece of work.
const LONGEST_REST: Duration = Duration::from_millis(50);
const MEASURE_INTERVAL: Duration = Duration::from_millis(100);

/// Cheap to clone. The threads start with the first lane, and end with the last clone.
#[derive(Clone)]
pub struct Workers(Arc<Threads>);

struct Threads {
    runtime: OnceLock<Option<Runtime>>,
    brake: Arc<Brake>,
}

/// Has threads rest while ingest is busy.
struct Brake {
    metrics: Metrics,
    load: Mutex<Load>,
}

struct Load {
    ingest: IngestLoad,
    measured_at: Instant,
    /// From 0 to 1.
    ingest_busy: f64,
}

thread_local! {
    /// What this thread has worked since its last rest.
    static WORKED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

impl Workers {
    pub fn new(metrics: Metrics) -> Self {
        Self(Arc::new(Threads {
            runtime: OnceLock::new(),
            brake: Arc::new(Brake::new(metrics)),
        }))
    }

    pub fn spawn<F: Future<Output: Send + 'static> + Send + 'static>(
        &self,
        work: F,
    ) -> JoinHandle<F::Output> {
        let Some(runtime) = self.0.runtime.get_or_init(start) else {
            return tokio::spawn(work);
        };
        let mut work = Box::pin(work);
        let brake = self.0.brake.clone();
        runtime.spawn(poll_fn(move |context| {
            let began_at = Instant::now();
            let polled = work.as_mut().poll(context);
            brake.rest(began_at.elapsed());
            polled
        }))
    }
}

impl Brake {
    fn new(metrics: Metrics) -> Self {
        let load = Load {
            ingest: IngestLoad::new(&metrics),
            measured_at: Instant::now(),
            ingest_busy: 0.0,
        };
        Self {
            metrics,
            load: Mutex::new(load),
        }
    }

    /// Has the calling thread, which has worked for so long, rest as long as ingest asks for.
    fn rest(&self, worked: Duration) {
        let worked = WORKED.get() + worked;
        if worked < TURN {
            return WORKED.set(worked);
        }
        WORKED.set(Duration::ZERO);
        let rest = worked
            .mul_f64(BUSY_REST * self.ingest_busy())
            .min(LONGEST_REST);
        if rest >= TURN {
            std::thread::sleep(rest);
        }
    }

    fn ingest_busy(&self) -> f64 {
        let mut load = self.load.lock().unwrap_or_else(PoisonError::into_inner);
        if load.measured_at.elapsed() >= MEASURE_INTERVAL {
            load.measured_at = Instant::now();
            load.ingest_busy = load.ingest.measure(&self.metrics);
        }
        load.ingest_busy
    }
}

/// None if there can be no more threads. Lanes then work on those that serve requests. They run on
/// half of the processors at most: a thread that wakes up to serve a request may have to wait until
/// one of lower priority has used up its time slice.
fn start() -> Option<Runtime> {
    let threads = available_parallelism().map_or(1, NonZero::get).div_ceil(2);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("pipelines")
        .on_thread_start(lower_priority)
        .enable_all()
        .build();
    runtime
        .inspect_err(|error| tracing::warn!(%error, "pipelines have no threads of their own"))
        .ok()
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Nothing is waited for: the last clone may be dropped by a task.
        if let Some(runtime) = self.runtime.take().flatten() {
            runtime.shutdown_background();
        }
    }
}

/// Lowers the priority of the calling thread alone: on Linux, each thread has its own.
fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "the priority of a thread cannot be lowered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_rest_while_ingest_is_busy_and_only_then() {
        let metrics = Metrics::new();
        let brake = Brake::new(metrics.clone());
        let once = || {
            let began_at = Instant::now();
            for _ in 0..10 {
                brake.rest(TURN / 2);
            }
            began_at.elapsed()
        };
        // The shortest of several: a busy machine may pause the test.
        let shortest = || (0..10).map(|_| once()).min().unwrap_or_default();
        assert!(shortest() < TURN * 5, "nobody uploads");
        std::thread::sleep(MEASURE_INTERVAL);
        metrics.ingest_busy.inc_by(1e6);
        assert!(once() >= TURN.mul_f64(5.0 * BUSY_REST), "ingest is busy");
        let began_at = Instant::now();
        brake.rest(TURN * 1000);
        assert!(
            began_at.elapsed() < TURN.mul_f64(100.0 * BUSY_REST),
            "it waited for a processor"
        );
        std::thread::sleep(MEASURE_INTERVAL);
        assert!(shortest() < TURN * 5, "uploads are over");
    }
}
