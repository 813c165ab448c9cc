//! The ledger on real files, and the order of jobs.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use hub_protocol::job::{DesiredJob, HubJobEventKind, HubJobType, MaintenanceWindow};
use hub_protocol::{AppUuid, HubJobUuid, ReleaseUuid, Timestamp};

use super::job::{Action, Failed, reason};
use super::ledger::{JobsState, Ledger, Step};
use super::queue::{self, Next, may_overtake};
use super::view::View;
use super::{RequestedJob, RequestedJobs};
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
        command: None,
        move_to: None,
    }
}

#[tokio::test]
async fn a_step_and_its_event_are_on_disk_together() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
    let view = View::default();
    let mut ledger = Ledger::load(state_dir.clone(), view.clone());
    let job = job();
    ledger.change(|state| state.begin(job.clone(), None)).await;
    ledger
        .change(|state| {
            state.enter(Step::RollingBack {
                reason: "WHY".into(),
                message: "so".into(),
            });
            state.progress(50, "half");
            state.progress(40, "never backwards");
        })
        .await;
    let reopened = Ledger::load(state_dir.clone(), View::default());
    assert_eq!(reopened.state(), ledger.state());
    let shown = view.get().job.unwrap();
    assert_eq!((shown.hub_job_uuid, shown.progress), (job.hub_job_uuid, 50));
    ledger.change(|state| state.fail("WHY", "so".into())).await;
    let reopened = Ledger::load(state_dir, View::default());
    assert_eq!(reopened.current(), None);
    assert!(reopened.state().finished.contains(&job.hub_job_uuid));
    let kinds: Vec<_> = reopened
        .state()
        .outbox
        .iter()
        .map(|record| record.event.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            HubJobEventKind::Accepted,
            HubJobEventKind::Progress,
            HubJobEventKind::Failed
        ]
    );
    assert_eq!(
        reopened.state().outbox[2].event.detail,
        Some(serde_json::json!({"reason": "WHY"}))
    );
    assert!(view.get().job.is_none());
}

#[test]
fn finished_jobs_and_failed_releases_are_bounded() {
    let mut state = JobsState::default();
    let mut first = None;
    for number in 0..300 {
        let job = job();
        first.get_or_insert(job.hub_job_uuid);
        state.begin(job, None);
        state.remember_failure(
            &format!("{number:064}"),
            &Failed {
                reason: reason::DID_NOT_START,
                message: String::new(),
            },
        );
        state.succeed("x".repeat(5_000));
    }
    assert_eq!(
        (state.finished.len(), state.failed_releases.len()),
        (256, 64)
    );
    assert!(!state.finished.contains(&first.unwrap()));
    assert!(state.outbox.iter().all(|record| {
        record
            .event
            .message
            .as_ref()
            .is_none_or(|text| text.len() <= 1_000)
    }));
}

#[tokio::test]
async fn a_damaged_file_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
    std::fs::write(dir.path().join("jobs.json"), b"{\"current\": 7").unwrap();
    assert_eq!(
        Ledger::load(state_dir, View::default()).state(),
        &JobsState::default()
    );
}

#[test]
fn events_contain_no_characters_that_the_service_refuses() {
    let mut state = JobsState::default();
    state.begin(job(), None);
    state.fail(
        "BAD_RELEASE",
        "not a number: \u{7f}ELF\u{2}\0\r\u{9b}, line 1\n\tline 2".to_owned(),
    );
    let message = state.outbox[1].event.message.clone().unwrap();
    assert_eq!(
        message,
        "not a number: \u{fffd}ELF\u{fffd}\u{fffd}\u{fffd}\u{fffd}, line 1\n\tline 2"
    );
}

#[tokio::test]
async fn recording_a_step_needs_no_new_disk_space() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
    let mut ledger = Ledger::load(state_dir.clone(), View::default());
    let files = || -> BTreeSet<(u64, u64)> {
        let names = ["jobs.json", "jobs.json.spare"];
        let found = names
            .iter()
            .filter_map(|name| std::fs::metadata(dir.path().join(name)).ok());
        found.map(|file| (file.ino(), file.blocks())).collect()
    };
    for _ in 0..3 {
        ledger.change(|state| state.begin(job(), None)).await;
        ledger
            .change(|state| state.fail("WHY", "so".repeat(100)))
            .await;
    }
    let before = files();
    assert_eq!(before.len(), 2);
    for number in 0..5 {
        ledger.change(|state| state.begin(job(), None)).await;
        ledger
            .change(|state| state.fail("WHY", "so".repeat(10 * number)))
            .await;
        ledger.change(|state| state.outbox.clear()).await;
        assert_eq!(files(), before);
        assert_eq!(
            Ledger::load(state_dir.clone(), View::default()).state(),
            ledger.state()
        );
    }
}

#[tokio::test]
async fn a_deferred_job_resumes_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
    let view = View::default();
    let mut ledger = Ledger::load(state_dir.clone(), view.clone());
    let window = Some(MaintenanceWindow {
        start: "02:00".into(),
        end: "03:00".into(),
    });
    let (waiting, other) = (DesiredJob { window, ..job() }, job());
    ledger
        .change(|state| state.begin(waiting.clone(), None))
        .await;
    ledger.change(|state| state.set_staged("here".into())).await;
    ledger.change(JobsState::park_until_window).await;
    let shown = view.get().job.unwrap();
    assert_eq!(shown.hub_job_uuid, waiting.hub_job_uuid);
    assert!(
        shown
            .trouble
            .unwrap()
            .contains("maintenance window, 02:00 to 03:00")
    );
    assert_eq!(
        ledger.state().outbox.back().unwrap().event.kind,
        HubJobEventKind::Log
    );

    ledger
        .change(|state| state.begin(other.clone(), None))
        .await;
    assert_eq!(view.get().job.unwrap().trouble, None, "another's");
    ledger
        .change(|state| state.resume(waiting.hub_job_uuid))
        .await;
    assert_eq!(ledger.current().unwrap().job, other, "one at a time");
    ledger.change(|state| state.succeed(String::new())).await;
    let mut ledger = Ledger::load(state_dir, View::default());
    ledger
        .change(|state| state.resume(waiting.hub_job_uuid))
        .await;
    let current = ledger.current().unwrap();
    assert_eq!(
        (&current.job, current.is_waiting, current.staged.as_deref()),
        (&waiting, false, Some("here"))
    );
    assert!(ledger.state().parked.is_empty());
}

#[test]
fn a_job_is_abandoned_before_its_deadline_so_that_it_can_be_reported() {
    let abandon_secs = |left_secs: i64| {
        let mut state = JobsState::default();
        let now = Timestamp::from_micros(0).plus_secs(-left_secs);
        state.begin(job(), Some(now));
        state.current.unwrap().abandon_at().as_secs()
    };
    assert_eq!(
        (
            abandon_secs(3_600),
            abandon_secs(100),
            abandon_secs(9),
            abandon_secs(-5)
        ),
        (-30, -10, 0, 0)
    );
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
    assert_eq!(
        (current.progress, current.is_waiting, current.abandon_at()),
        (80, false, current.job.deadline_at)
    );
}

#[test]
fn a_job_without_a_uuid_that_it_needs_is_refused() {
    let whole = job();
    assert!(matches!(Action::of(&whole), Ok(Action::Install { .. })));
    let update = DesiredJob {
        job_type: HubJobType::SelfUpdate,
        app_uuid: None,
        ..job()
    };
    assert_eq!(Action::of(&update), Ok(Action::UpdateAgent));
    for lacking in [
        DesiredJob {
            app_uuid: None,
            ..job()
        },
        DesiredJob {
            release_uuid: None,
            ..job()
        },
        DesiredJob {
            job_type: HubJobType::AppRemove,
            app_uuid: None,
            ..job()
        },
        DesiredJob {
            release_uuid: None,
            ..update.clone()
        },
    ] {
        assert_eq!(
            Action::of(&lacking).unwrap_err().reason,
            reason::BAD_RELEASE
        );
    }
    assert!(may_overtake(&update, &whole) && may_overtake(&whole, &update));
    assert!(!may_overtake(&whole, &job()) && !may_overtake(&update, &update));
}

#[test]
fn deferred_jobs_come_before_new_ones_and_apps_are_done_in_order() {
    let at = Timestamp::from_micros(0);
    let now = Some(at);
    let deadline_at = at.plus_secs(3_600);
    let (first, second) = (
        DesiredJob {
            deadline_at,
            ..job()
        },
        DesiredJob {
            deadline_at,
            ..job()
        },
    );
    let update = DesiredJob {
        job_type: HubJobType::SelfUpdate,
        app_uuid: None,
        ..second.clone()
    };
    let update = DesiredJob {
        hub_job_uuid: HubJobUuid::new(),
        ..update
    };
    let requested = |jobs: &[&DesiredJob]| -> RequestedJobs {
        Some(
            jobs.iter()
                .map(|job| RequestedJob::Known((*job).clone()))
                .collect(),
        )
    };
    let mut state = JobsState::default();
    assert_eq!(
        queue::next(&state, &None, now),
        Next::Wait,
        "nothing is known of the desired state"
    );
    assert_eq!(
        queue::next(&state, &requested(&[&first, &second]), now),
        Next::Begin(first.clone())
    );

    // Deferred until a window that is closed: a job of another app waits, the agent's update does
    // not.
    let window = Some(MaintenanceWindow {
        start: "00:00".into(),
        end: "00:00".into(),
    });
    let waiting = DesiredJob { window, ..first };
    state.begin(waiting.clone(), now);
    state.park_until_window();
    let is_open = super::window::is_open(waiting.window.as_ref(), at);
    if is_open == Some(false) {
        assert_eq!(
            queue::next(&state, &requested(&[&waiting, &second]), now),
            Next::Wait
        );
        let all = requested(&[&waiting, &second, &update]);
        assert_eq!(queue::next(&state, &all, now), Next::Begin(update.clone()));
    }
    // Withdrawn or past its deadline it continues, to its end.
    let resumed = Next::Resume(waiting.hub_job_uuid);
    assert_eq!(queue::next(&state, &requested(&[&second]), now), resumed);
    assert_eq!(
        queue::next(&state, &requested(&[&waiting]), Some(deadline_at)),
        resumed
    );
    // Interrupted for another's window, it continues as soon as no job is current.
    state.resume(waiting.hub_job_uuid);
    state.park_for_another();
    assert_eq!(
        queue::next(&state, &requested(&[&waiting, &update]), None),
        resumed
    );

    let unknown = HubJobUuid::new();
    let refused = Some(vec![RequestedJob::NotUnderstood {
        hub_job_uuid: unknown,
        error: "new".into(),
    }]);
    let expected = Next::Refuse {
        hub_job_uuid: unknown,
        error: "new".into(),
    };
    assert_eq!(queue::next(&JobsState::default(), &refused, now), expected);
}
