//! The ledger's promises, on real files.

use std::sync::Arc;

use hub_protocol::job::{DesiredJob, HubJobEventKind, HubJobType};
use hub_protocol::{AppUuid, HubJobUuid, ReleaseUuid, Timestamp};

use super::ledger::{Kept, Ledger, Step};
use super::{Failed, View, reason};
use crate::identity::StateDir;

fn job() -> DesiredJob {
    DesiredJob {
        hub_job_uuid: HubJobUuid::new(),
        job_type: HubJobType::AppInstall,
        app_uuid: Some(AppUuid::new()),
        release_uuid: Some(ReleaseUuid::new()),
        deadline_at: Timestamp::from_micros(0),
        window: None,
        force: false,
    }
}

#[tokio::test]
async fn a_step_and_its_event_are_on_disk_together() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
    let view = View::default();
    let mut ledger = Ledger::load(state_dir.clone(), view.clone());
    let job = job();
    ledger.change(|kept| kept.begin(job.clone())).await;
    ledger
        .change(|kept| {
            kept.enter(Step::RollingBack { reason: "WHY".into(), message: "so".into() });
            kept.progress(50, "half");
            kept.progress(40, "never backwards");
        })
        .await;
    let again = Ledger::load(state_dir.clone(), View::default());
    assert_eq!(again.kept(), ledger.kept());
    let shown = view.get().job.unwrap();
    assert_eq!((shown.hub_job_uuid, shown.progress), (job.hub_job_uuid, 50));
    ledger.change(|kept| kept.fail("WHY", "so".into())).await;
    let again = Ledger::load(state_dir, View::default());
    assert_eq!(again.current(), None);
    assert!(again.kept().over.contains(&job.hub_job_uuid));
    let kinds: Vec<_> = again.kept().outbox.iter().map(|record| record.event.kind).collect();
    assert_eq!(kinds, [HubJobEventKind::Accepted, HubJobEventKind::Progress, HubJobEventKind::Failed]);
    assert_eq!(again.kept().outbox[2].event.detail, Some(serde_json::json!({"reason": "WHY"})));
    assert!(view.get().job.is_none());
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut kept = Kept::default();
    let mut first = None;
    for number in 0..300 {
        let job = job();
        first.get_or_insert(job.hub_job_uuid);
        kept.begin(job);
        kept.remember_failure(
            &format!("{number:064}"),
            &Failed { reason: reason::DID_NOT_START, message: String::new() },
        );
        kept.succeed("x".repeat(5_000), None);
    }
    assert_eq!((kept.over.len(), kept.failed_releases.len()), (256, 64));
    assert!(!kept.over.contains(&first.unwrap()));
    assert!(kept.outbox.iter().all(|record| record.event.message.as_ref().is_none_or(|text| text.len() <= 1_000)));
}

#[tokio::test]
async fn a_damaged_file_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
    std::fs::write(dir.path().join("jobs.json"), b"{\"current\": 7").unwrap();
    assert_eq!(Ledger::load(state_dir, View::default()).kept(), &Kept::default());
}
