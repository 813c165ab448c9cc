//! The ledger's promises, on real files.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use hub_protocol::job::{DesiredJob, HubJobEventKind, HubJobType, MaintenanceWindow};
use hub_protocol::{AppUuid, HubJobUuid, ReleaseUuid, Timestamp};

use super::ledger::{Kept, Ledger, Step};
use super::work::{Work, may_overtake};
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
    ledger.change(|kept| kept.begin(job.clone(), None)).await;
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
        kept.begin(job, None);
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

#[test]
fn events_hold_nothing_that_the_service_refuses() {
    let mut kept = Kept::default();
    kept.begin(job(), None);
    kept.fail("BAD_RELEASE", "not a number: \u{7f}ELF\u{2}\0\r\u{9b}, line 1\n\tline 2".to_owned());
    let message = kept.outbox[1].event.message.clone().unwrap();
    assert_eq!(message, "not a number: \u{fffd}ELF\u{fffd}\u{fffd}\u{fffd}\u{fffd}, line 1\n\tline 2");
}

#[tokio::test]
async fn a_step_takes_no_room_that_is_not_had_already() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
    let mut ledger = Ledger::load(state_dir.clone(), View::default());
    let files = || -> BTreeSet<(u64, u64)> {
        let names = ["jobs.json", "jobs.json.spare"];
        let found = names.iter().filter_map(|name| std::fs::metadata(dir.path().join(name)).ok());
        found.map(|file| (file.ino(), file.blocks())).collect()
    };
    for _ in 0..3 {
        ledger.change(|kept| kept.begin(job(), None)).await;
        ledger.change(|kept| kept.fail("WHY", "so".repeat(100))).await;
    }
    let before = files();
    assert_eq!(before.len(), 2);
    for number in 0..5 {
        ledger.change(|kept| kept.begin(job(), None)).await;
        ledger.change(|kept| kept.fail("WHY", "so".repeat(10 * number))).await;
        ledger.change(|kept| kept.outbox.clear()).await;
        assert_eq!(files(), before);
        assert_eq!(Ledger::load(state_dir.clone(), View::default()).kept(), ledger.kept());
    }
}

#[tokio::test]
async fn a_job_that_waits_is_kept_aside_and_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
    let view = View::default();
    let mut ledger = Ledger::load(state_dir.clone(), view.clone());
    let window = Some(MaintenanceWindow { start: "02:00".into(), end: "03:00".into() });
    let (waiting, other) = (DesiredJob { window, ..job() }, job());
    ledger.change(|kept| kept.begin(waiting.clone(), None)).await;
    ledger.change(|kept| kept.current.as_mut().unwrap().staged = Some("here".into())).await;
    ledger.change(Kept::park_until_window).await;
    let shown = view.get().job.unwrap();
    assert_eq!(shown.hub_job_uuid, waiting.hub_job_uuid);
    assert!(shown.trouble.unwrap().contains("maintenance window, 02:00 to 03:00"));
    assert_eq!(ledger.kept().outbox.back().unwrap().event.kind, HubJobEventKind::Log);

    ledger.change(|kept| kept.begin(other.clone(), None)).await;
    assert_eq!(view.get().job.unwrap().trouble, None, "another's");
    ledger.change(|kept| kept.take_up(waiting.hub_job_uuid)).await;
    assert_eq!(ledger.current().unwrap().job, other, "one at a time");
    ledger.change(|kept| kept.succeed(String::new(), None)).await;
    let mut ledger = Ledger::load(state_dir, View::default());
    ledger.change(|kept| kept.take_up(waiting.hub_job_uuid)).await;
    let current = ledger.current().unwrap();
    assert_eq!((&current.job, current.waits, current.staged.as_deref()), (&waiting, false, Some("here")));
    assert!(ledger.kept().parked.is_empty());
}

#[test]
fn a_job_is_given_up_before_its_deadline_so_that_it_can_be_told() {
    let give_up_secs = |left_secs: i64| {
        let mut kept = Kept::default();
        let now = Timestamp::from_micros(0).plus_secs(-left_secs);
        kept.begin(job(), Some(now));
        kept.current.unwrap().give_up_at().as_secs()
    };
    assert_eq!((give_up_secs(3_600), give_up_secs(100), give_up_secs(9), give_up_secs(-5)), (-30, -10, 0, 0));
}

#[tokio::test]
async fn a_file_of_an_older_agent_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
    let job = serde_json::to_value(job()).unwrap();
    let file = serde_json::json!({"current": {"job": job, "step": {"name": "preparing"}, "progress": 80, "staged": "1"}, "over": [], "outbox": [],
        "failedReleases": {}});
    std::fs::write(dir.path().join("jobs.json"), file.to_string()).unwrap();
    let ledger = Ledger::load(state_dir, View::default());
    let current = ledger.current().unwrap();
    assert_eq!((current.progress, current.waits, current.give_up_at()), (80, false, current.job.deadline_at));
}

#[test]
fn a_job_names_all_that_it_takes() {
    let whole = job();
    assert!(matches!(Work::of(&whole), Ok(Work::Install { .. })));
    let update = DesiredJob { job_type: HubJobType::SelfUpdate, app_uuid: None, ..job() };
    assert_eq!(Work::of(&update), Ok(Work::Update));
    for lacking in [
        DesiredJob { app_uuid: None, ..job() },
        DesiredJob { release_uuid: None, ..job() },
        DesiredJob { job_type: HubJobType::AppRemove, app_uuid: None, ..job() },
        DesiredJob { release_uuid: None, ..update.clone() },
    ] {
        assert_eq!(Work::of(&lacking).unwrap_err().reason, reason::BAD_RELEASE);
    }
    assert!(may_overtake(&update, &whole) && may_overtake(&whole, &update));
    assert!(!may_overtake(&whole, &job()) && !may_overtake(&update, &update));
}
