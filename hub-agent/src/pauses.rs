//! The pauses between uploads that the service gave to this hub. The pauses are stored on disk, so
//! that a restart neither forgets them nor uploads out of turn.

use std::path::Path;

use hub_protocol::hub::UploadPauses;
use tokio::sync::watch;

use crate::identity::StateDir;

const FILE: &str = "upload-pauses.json";

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pauses {
    /// The service was not asked yet.
    Unknown,
    /// The service gives none: it is older, or something else answers.
    None,
    Given(UploadPauses),
}

/// The last known pauses. Called at the start, before any task runs.
pub fn load(state_dir: &Path) -> Pauses {
    let read = std::fs::read(state_dir.join(FILE)).ok();
    match read.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        Some(pauses) => Pauses::Given(pauses),
        None => Pauses::Unknown,
    }
}

/// Follows the pauses that the service gives now, and stores them. Nothing is logged: with a fleet,
/// every hub would upload that log entry.
pub async fn follow(
    state_dir: &StateDir,
    pauses: &watch::Sender<Pauses>,
    given: Option<UploadPauses>,
) {
    let now = given.map_or(Pauses::None, Pauses::Given);
    let changed = pauses.send_if_modified(|before| std::mem::replace(before, now) != now);
    if !changed {
        return;
    }
    // A hub that cannot write them requests them after its next start.
    let _ = match given.and_then(|given| serde_json::to_vec(&given).ok()) {
        Some(json) => state_dir.replace(FILE, json).await,
        None => state_dir.remove(FILE).await,
    };
}

/// Notes that the service answered without saying anything about pauses.
pub fn not_given(pauses: &watch::Sender<Pauses>) {
    pauses.send_if_modified(|pauses| {
        let is_first = *pauses == Pauses::Unknown;
        if is_first {
            *pauses = Pauses::None;
        }
        is_first
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pauses_survive_a_restart_until_the_service_gives_others() {
        let dir = tempfile::tempdir().unwrap();
        let state_dir = StateDir::open(dir.path()).unwrap();
        let pauses = watch::Sender::new(load(dir.path()));
        assert_eq!(*pauses.borrow(), Pauses::Unknown);
        not_given(&pauses);
        assert_eq!(*pauses.borrow(), Pauses::None);
        let given = UploadPauses {
            telemetry_pause_ms: 570_000,
            ble_events_pause_ms: 600_000,
            logs_pause_ms: 0,
            phase: 0.618_033_988_749_895,
        };
        follow(&state_dir, &pauses, Some(given)).await;
        not_given(&pauses);
        assert_eq!(
            (*pauses.borrow(), load(dir.path())),
            (Pauses::Given(given), Pauses::Given(given))
        );
        follow(&state_dir, &pauses, None).await;
        assert_eq!(
            (*pauses.borrow(), load(dir.path())),
            (Pauses::None, Pauses::Unknown)
        );
        std::fs::write(dir.path().join(FILE), "{\"phase\": ").unwrap();
        assert_eq!(
            load(dir.path()),
            Pauses::Unknown,
            "a damaged file is no obstacle"
        );
    }
}
