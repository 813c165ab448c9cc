//! The threads that lanes work on. Their priority is below that of the threads that serve requests,
//! so that deliveries use the time that uploads leave.

use std::num::NonZero;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// How much nicer than others (see nice(2)): under load, about 4 % of the time is theirs.
const NICENESS: i32 = 15;

/// Cheap to clone. The threads start with the first lane, and end with the last clone.
#[derive(Clone, Default)]
pub struct Workers(Arc<Threads>);

#[derive(Default)]
struct Threads(OnceLock<Option<Runtime>>);

impl Workers {
    pub fn spawn<F: Future<Output: Send + 'static> + Send + 'static>(&self, work: F) -> JoinHandle<F::Output> {
        match self.0.0.get_or_init(start) {
            Some(runtime) => runtime.spawn(work),
            None => tokio::spawn(work),
        }
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
    runtime.inspect_err(|error| tracing::warn!(%error, "pipelines have no threads of their own")).ok()
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Nothing is waited for: the last clone may be dropped by a task.
        if let Some(runtime) = self.0.take().flatten() {
            runtime.shutdown_background();
        }
    }
}

/// Of the calling thread alone: on Linux, priorities are those of threads.
fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "the priority of a thread cannot be lowered");
    }
}
