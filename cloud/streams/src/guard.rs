//! Watches over one open stream from beside it. A stream is asked for bytes only while its reader
//! reads, so it cannot end itself in time: its guard ends it when its time is over, when its reader
//! may read no longer, and when its reader has stopped reading.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hub_core::Core;
use hub_core::http::connection::Connection;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// The state that a stream and its guard share.
pub struct Watch {
    /// The token that ends the stream.
    end: CancellationToken,
    opened_at: Instant,
    /// Milliseconds from `opened_at` until bytes were handed over that the connection has not sent
    /// on yet; [`NOTHING`] while there are none.
    handed_over_ms: AtomicU64,
}

const NOTHING: u64 = u64::MAX;

impl Watch {
    fn new(end: CancellationToken) -> Arc<Self> {
        // The head of the response is handed over first.
        Arc::new(Self {
            end,
            opened_at: Instant::now(),
            handed_over_ms: AtomicU64::new(0),
        })
    }

    /// Completes when the stream has to end.
    pub async fn ended(&self) {
        self.end.cancelled().await;
    }

    /// Ends the stream.
    pub fn end(&self) {
        self.end.cancel();
    }

    /// Notes that bytes were handed to the connection.
    pub fn handed_over(&self) {
        self.handed_over_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Notes that the connection has sent all bytes on and asks for more.
    pub fn sent_on(&self) {
        self.handed_over_ms.store(NOTHING, Ordering::Relaxed);
    }

    /// The time for which the connection has been unable to send.
    fn stalled_for(&self) -> Duration {
        match self.handed_over_ms.load(Ordering::Relaxed) {
            NOTHING => Duration::ZERO,
            since_ms => Duration::from_millis(self.now_ms().saturating_sub(since_ms)),
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.opened_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The reader of a stream, as its guard sees it.
pub struct Reader {
    pub core: Core,
    pub connection: Connection,
    /// Whether it may still read.
    pub is_allowed: Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>,
}

/// The guard of a stream. Dropping it with the stream dismisses it.
pub struct Guard(AbortHandle);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts to watch over a stream that was just opened.
pub fn post(reader: Reader) -> (Arc<Watch>, Guard) {
    let watch = Watch::new(reader.core.shutdown.child_token());
    let guarding = tokio::spawn(reader.guard(watch.clone()));
    (watch, Guard(guarding.abort_handle()))
}

impl Reader {
    async fn guard(self, watch: Arc<Watch>) {
        let times = self.core.config.stream_times;
        // Readers that connect at the same moment, as after a restart, are rechecked at different
        // times, so that one cached result serves many of the same caller.
        let phase =
            f64::from(u16::from_le_bytes(hub_base::sealing::random())) / f64::from(u16::MAX);
        let mut rechecks =
            interval_at(Instant::now() + times.recheck.mul_f64(phase), times.recheck);
        rechecks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut lifetime = std::pin::pin!(tokio::time::sleep(times.lifetime));
        loop {
            tokio::select! {
                () = watch.ended() => break,
                () = &mut lifetime => break,
                _ = rechecks.tick() => {}
            }
            if watch.stalled_for() >= times.stall {
                self.core.metrics.stream_slow_readers.inc();
                self.connection.end();
                return;
            }
            if !(self.is_allowed)().await {
                break;
            }
        }
        watch.end.cancel();
        // A stream that has ended takes its guard with it, unless its reader does not read on.
        tokio::time::sleep(times.farewell).await;
        self.connection.end();
    }
}
