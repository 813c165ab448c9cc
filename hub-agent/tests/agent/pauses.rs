//! An agent keeps to the pauses that the service gives it, right after a restart too.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::service::{Fate, Service};
use super::{Site, kill};

const PAUSE: Duration = Duration::from_millis(1_500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_keep_to_the_pauses_of_the_service_over_restarts() {
    let site = Site::new(2_000, 10);
    let uploads: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = uploads.clone();
    let service = Service::with_fate(move |_| {
        noted.lock().unwrap().push(Instant::now());
        Fate::Stored
    })
    .await;
    let pause_ms = PAUSE.as_millis() as u64;
    service.change(|stored| {
        stored.desire(json!({"uploads": {
            "telemetryPauseMs": pause_ms, "bleEventsPauseMs": pause_ms, "logsPauseMs": pause_ms, "phase": 0.75}}));
    });
    for run in 1..=2 {
        let began = Instant::now();
        let mut agent = site.claimed(&service).spawn().unwrap();
        let count = 3 * run;
        service
            .until("some uploads", |stored| {
                (stored.order.len() >= count).then_some(())
            })
            .await;
        kill(&agent, rustix::process::Signal::KILL);
        agent.wait().await.unwrap();
        let turns = began.elapsed().as_millis() / PAUSE.as_millis() + 1;
        let sent = std::mem::take(&mut *uploads.lock().unwrap()).len();
        assert!(
            sent as u128 <= turns + 1,
            "run {run}: {sent} uploads in {turns} turns"
        );
        // From now on the service says nothing about pauses: the agent has them on its disk.
        service.change(|stored| stored.desire_nothing());
    }
}
