//! The spool on real files. A crash is simulated by a copy of the files, taken while the spool
//! runs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hub_protocol::Timestamp;
use hub_protocol::ble::{
    Advertisement, BleDeviceWindow, BleEvent, BleEventUpload, WindowedBleUpload,
};
use serde_json::json;

use super::*;
use crate::ble::types::HeardWindow;
use crate::clock::since_boot_micros;

const MAX: u64 = 10_000;

fn event(number: usize) -> BleEvent {
    BleEvent {
        event_uuid: None,
        observed_at: machine_now(),
        traceparent: None,
        payload: Advertisement {
            address: "AA:BB:CC:DD:EE:FF".into(),
            name: Some(number.to_string()),
            ..Advertisement::default()
        },
    }
}

fn heard(numbers: std::ops::Range<usize>) -> Vec<Heard> {
    numbers.map(|number| Heard::from(&event(number))).collect()
}

/// Commits only when a batch is requested, so that a test decides when.
fn config(dir: &Path) -> SpoolConfig {
    SpoolConfig {
        commit_every: Duration::from_secs(3_600),
        disk_headroom_bytes: 0,
        ..SpoolConfig::of(dir)
    }
}

fn start(dir: &Path) -> Spool {
    start_with(config(dir), Arc::new(Clock::new()))
}

fn start_with(config: SpoolConfig, clock: Arc<Clock>) -> Spool {
    Spool::start(config, clock, || {}).unwrap()
}

/// The files that a power cut now would leave.
fn crash(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["spool.db", "spool.db-wal"] {
        std::fs::copy(dir.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

fn upload(batch: &Batch) -> BleEventUpload {
    let upload: BleEventUpload =
        serde_json::from_slice(&zstd::stream::decode_all(&batch.body[..]).unwrap()).unwrap();
    assert_eq!(upload.batch_uuid, batch.batch);
    assert_eq!(upload.events.len() as u64, batch.records);
    upload
}

fn numbers(batch: &Batch) -> Vec<usize> {
    upload(batch)
        .events
        .iter()
        .map(|event| event.payload.name.as_ref().unwrap().parse().unwrap())
        .collect()
}

async fn next(spool: &Spool) -> Option<Batch> {
    spool.next(Kind::BleEvents, MAX).await.unwrap()
}

async fn stored(spool: &Spool, batch: &Batch) {
    spool
        .resolve(batch.kind, batch.batch, Verdict::Stored { rejected: 0 })
        .await
        .unwrap();
}

/// Uploads everything, in order.
async fn drain(spool: &Spool) -> Vec<usize> {
    let mut all = Vec::new();
    while let Some(batch) = next(spool).await {
        all.extend(numbers(&batch));
        stored(spool, &batch).await;
    }
    all
}

/// Writes segments of ten events each to disk. None of them has been offered.
async fn fill(dir: &Path, segments: usize) {
    for segment in 0..segments {
        let spool = start(dir);
        spool
            .append(heard(segment * 10..segment * 10 + 10))
            .await
            .unwrap();
        spool.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_batch_stays_the_same_until_it_is_resolved() {
    let dir = tempfile::tempdir().unwrap();
    let spool = start(dir.path());
    spool.append(heard(0..3)).await.unwrap();
    let first = next(&spool).await.unwrap();
    spool.append(heard(3..5)).await.unwrap();
    assert_eq!(next(&spool).await.unwrap(), first);
    stored(&spool, &first).await;
    let second = next(&spool).await.unwrap();
    assert_eq!(
        (numbers(&first), numbers(&second)),
        (vec![0, 1, 2], vec![3, 4])
    );
    stored(&spool, &second).await;
    assert_eq!(next(&spool).await, None);
    assert_eq!(spool.stats().total().records, 0);
}

#[tokio::test]
async fn a_batch_that_may_have_been_sent_is_the_same_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let spool = start(dir.path());
    spool.append(heard(0..3)).await.unwrap();
    let sent = next(&spool).await.unwrap();
    // More records arrive, and are on disk, before the crash.
    spool.append(heard(3..5)).await.unwrap();
    assert_eq!(spool.next(Kind::Logs, MAX).await.unwrap(), None);

    let reopened = start(crash(dir.path()).path());
    assert_eq!(next(&reopened).await.unwrap(), sent);
    assert_eq!(drain(&reopened).await, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn small_segments_are_joined_in_a_batch_that_survives_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 5).await;
    let spool = start(dir.path());
    // The first segment may have been sent by an earlier start: it is a batch of its own.
    let head = next(&spool).await.unwrap();
    assert_eq!(numbers(&head).len(), 10);
    stored(&spool, &head).await;
    let joined = next(&spool).await.unwrap();
    assert_eq!(numbers(&joined), (10..50).collect::<Vec<_>>());

    let reopened = start(crash(dir.path()).path());
    assert_eq!(next(&reopened).await.unwrap(), joined);
    assert_eq!(
        next(&reopened).await.unwrap(),
        joined,
        "although fewer records can be joined now"
    );
}

fn window(number: i64, devices: usize) -> Heard {
    let at = |secs: i64| Timestamp::from_micros((1_800_000_000 + 5 * number + secs) * 1_000_000);
    let device = BleDeviceWindow {
        count: 1,
        rssi_min: -60,
        rssi_max: -60,
        rssi_mean: -60.0,
        first_seen_at: at(1),
        last_seen_at: at(1),
        payload: event(0).payload,
    };
    Heard::Window(HeardWindow {
        start: at(0),
        end: at(5),
        devices: vec![device; devices],
    })
}

#[tokio::test]
async fn an_upload_contains_exactly_one_whole_window() {
    let dir = tempfile::tempdir().unwrap();
    // One start each, so that each has segments of its own; the large window needs more than one
    // segment.
    for numbers in [0..3, 3..5] {
        let spool = start(dir.path());
        for number in numbers {
            spool
                .append(vec![window(number, if number == 1 { 3_000 } else { 2 })])
                .await
                .unwrap();
        }
        spool.close().await.unwrap();
    }
    let spool = start(dir.path());
    let mut seen = Vec::new();
    while let Some(batch) = spool.next(Kind::BleWindows, MAX).await.unwrap() {
        let json = zstd::stream::decode_all(&batch.body[..]).unwrap();
        let upload: WindowedBleUpload = serde_json::from_slice(&json).unwrap();
        assert_eq!(
            upload.window_end.as_secs() - upload.window_start.as_secs(),
            5
        );
        seen.push((
            upload.window_start.as_secs() % 1_800_000_000 / 5,
            upload.devices.len(),
        ));
        stored(&spool, &batch).await;
    }
    assert_eq!(seen, [(0, 2), (1, 3_000), (2, 2), (3, 2), (4, 2)]);
}

#[tokio::test]
async fn a_batch_respects_the_bound_on_records() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 5).await;
    let spool = start(dir.path());
    let mut sizes = Vec::new();
    while let Some(batch) = spool.next(Kind::BleEvents, 20).await.unwrap() {
        sizes.push(batch.records);
        stored(&spool, &batch).await;
    }
    assert_eq!(sizes, [10, 20, 20]);
}

#[tokio::test]
async fn a_delivered_batch_is_deleted_with_the_next_commit() {
    let dir = tempfile::tempdir().unwrap();
    let spool = start(dir.path());
    spool.append(heard(0..3)).await.unwrap();
    let first = next(&spool).await.unwrap();
    stored(&spool, &first).await;
    spool.append(heard(3..5)).await.unwrap();
    let second = next(&spool).await.unwrap();
    // The deletion of the first batch was committed together with the second's records.
    let reopened = start(crash(dir.path()).path());
    assert_eq!(next(&reopened).await.unwrap(), second);
}

#[tokio::test]
async fn a_full_spool_drops_the_oldest_advertisements_first_and_counts_them() {
    let dir = tempfile::tempdir().unwrap();
    let spool = start_with(
        SpoolConfig {
            max_bytes: 2_048,
            ..config(dir.path())
        },
        Arc::new(Clock::new()),
    );
    spool
        .record(Kind::Telemetry, &json!({"observedAt": machine_now()}))
        .await
        .unwrap();
    let telemetry = spool.next(Kind::Telemetry, MAX).await.unwrap().unwrap();
    assert_eq!(telemetry.records, 1);
    let mut given = None;
    for round in 0..40 {
        spool
            .append(heard(round * 10..round * 10 + 10))
            .await
            .unwrap();
        // Requesting a batch of another kind writes them, as a segment of their own.
        assert_eq!(spool.next(Kind::Logs, MAX).await.unwrap(), None);
        let batch = next(&spool).await.unwrap();
        // The first batch is being uploaded meanwhile and is not dropped.
        assert_eq!(*given.get_or_insert_with(|| batch.clone()), batch);
    }
    let stats = spool.stats();
    assert!(stats.total().bytes <= 2_048, "{stats:?}");
    stored(&spool, &given.unwrap()).await;
    let left = drain(&spool).await;
    assert_eq!(left.last(), Some(&399));
    assert_eq!(
        stats.counters.dropped_events as usize + left.len() + 10,
        400
    );
    assert_eq!(
        spool.next(Kind::Telemetry, MAX).await.unwrap(),
        Some(telemetry),
        "advertisements are dropped first"
    );
    spool.close().await.unwrap();
    assert_eq!(
        start(dir.path()).stats().counters,
        stats.counters,
        "the count is stored"
    );
}

#[tokio::test]
async fn a_damaged_file_is_quarantined_and_a_new_one_created() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1).await;
    std::fs::write(
        dir.path().join("spool.db"),
        b"this is no database at all, and long enough to be looked at. ".repeat(100),
    )
    .unwrap();
    std::fs::remove_file(dir.path().join("spool.db-wal")).ok();
    let spool = start(dir.path());
    spool.append(heard(0..3)).await.unwrap();
    assert_eq!(drain(&spool).await, [0, 1, 2]);
    assert!(dir.path().join("spool.db.damaged").exists());
    assert_eq!(spool.stats().trouble, None);
}

#[tokio::test]
async fn without_a_disk_the_newest_records_are_uploaded_from_memory() {
    let dir = tempfile::tempdir().unwrap();
    let spool = start(&dir.path().join("not there"));
    spool.append(heard(0..3)).await.unwrap();
    let batch = next(&spool).await.unwrap();
    assert_eq!(next(&spool).await.unwrap(), batch);
    assert!(spool.stats().trouble.is_some());
    assert_eq!(drain(&spool).await, [0, 1, 2]);
    // The records are far more than can be held: random names do not compress.
    for _ in 0..60 {
        let events = (0..2_000).map(|number| {
            let mut event = event(number);
            event.payload.address =
                uuid::Uuid::new_v4().to_string() + &uuid::Uuid::new_v4().to_string();
            Heard::from(&event)
        });
        spool.append(events.collect()).await.unwrap();
    }
    let kept = drain(&spool).await.len() as u64;
    let lost = spool.stats().counters.dropped_events;
    assert!(lost > 0 && kept > 0, "kept {kept}, lost {lost}");
    assert_eq!(kept + lost, 120_000);
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_halved_down_to_one_record() {
    let dir = tempfile::tempdir().unwrap();
    let spool = start(dir.path());
    spool.append(heard(0..5)).await.unwrap();
    let (mut alone, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
    while let Some(batch) = spool.next(Kind::BleEvents, 10).await.unwrap() {
        assert!(seen.insert(batch.batch), "no id is used for two contents");
        assert!(seen.len() < 10, "halves are not joined again");
        let verdict = if batch.records > 1 {
            Verdict::TooLarge
        } else {
            alone.extend(numbers(&batch));
            Verdict::Stored { rejected: 0 }
        };
        spool
            .resolve(batch.kind, batch.batch, verdict)
            .await
            .unwrap();
    }
    alone.sort();
    assert_eq!(alone, [0, 1, 2, 3, 4]);

    spool.append(heard(5..6)).await.unwrap();
    let single = next(&spool).await.unwrap();
    spool
        .resolve(single.kind, single.batch, Verdict::TooLarge)
        .await
        .unwrap();
    assert_eq!(next(&spool).await, None);
    assert_eq!(spool.stats().counters.refused_records, 1);
}

#[tokio::test]
async fn a_refused_batch_is_counted_and_quarantined_and_blocks_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let spool = start(dir.path());
    spool.append(heard(0..3)).await.unwrap();
    let refused = next(&spool).await.unwrap();
    spool
        .resolve(refused.kind, refused.batch, Verdict::Refused)
        .await
        .unwrap();
    spool.append(heard(3..5)).await.unwrap();
    assert_eq!(drain(&spool).await, [3, 4]);
    assert_eq!(spool.stats().counters.refused_records, 3);
    let folder = dir.path().join("refused");
    let file = folder.join(format!("{}.json.zst", refused.batch));
    assert_eq!(std::fs::read(&file).unwrap(), refused.body);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
}

#[tokio::test]
async fn a_new_owner_gets_no_records_of_the_previous_one() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 2).await;
    let spool = start(dir.path());
    let given = next(&spool).await.unwrap();
    spool.append(heard(20..25)).await.unwrap();
    spool.forget().await.unwrap();
    assert_eq!(next(&spool).await, None);
    // An upload that was under way is resolved late.
    stored(&spool, &given).await;
    spool.append(heard(30..31)).await.unwrap();
    assert_eq!(drain(&spool).await, [30]);
    assert_eq!(spool.stats().counters.discarded_records, 25);
}

#[tokio::test]
async fn wrong_times_are_corrected_before_they_are_sent() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(Clock::new());
    let spool = start_with(config(dir.path()), clock.clone());
    spool.append(heard(0..2)).await.unwrap();
    let day = 86_400;
    let now = since_boot_micros();
    clock.learn_service_time(machine_now().plus_secs(day), now, now);
    let late = upload(&next(&spool).await.unwrap());
    for event in &late.events {
        let ahead = event.observed_at.as_secs() - machine_now().as_secs();
        assert!((day - 5..=day + 5).contains(&ahead), "{ahead}");
    }
    spool.close().await.unwrap();
    let repeated = upload(&next(&start_with(config(dir.path()), clock)).await.unwrap());
    assert_eq!(repeated, late, "it is corrected once");
}

/// A start without a network in which the clock stayed at 1970, then a reboot that knows the time.
#[tokio::test]
async fn records_of_a_boot_without_the_time_are_dated_before_the_next_boot() {
    let dir = tempfile::tempdir().unwrap();
    let spool = start(dir.path());
    for secs in [600, 700] {
        let mut event = event(0);
        event.observed_at = Timestamp::from_micros(secs * 1_000_000);
        spool.append(vec![Heard::from(&event)]).await.unwrap();
    }
    spool.close().await.unwrap();
    let database = rusqlite::Connection::open(dir.path().join("spool.db")).unwrap();
    let changed = database
        .execute(
            "UPDATE segments SET boot = ?1, clock_offset_micros = 0",
            [uuid::Uuid::new_v4()],
        )
        .unwrap();
    assert_eq!(changed, 1);
    drop(database);

    let clock = Arc::new(Clock::new());
    let booted_at = Timestamp::from_micros(clock.offset().micros).as_secs();
    let spool = start_with(config(dir.path()), clock);
    let times: Vec<i64> = upload(&next(&spool).await.unwrap())
        .events
        .iter()
        .map(|event| event.observed_at.as_secs() - booted_at)
        .collect();
    assert!(
        (times[1]).abs() <= 1 && (times[0] + 100).abs() <= 1,
        "{times:?}"
    );
}

#[tokio::test]
async fn job_events_are_uploaded_one_by_one_and_never_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let spool = start_with(
        SpoolConfig {
            max_bytes: 2_048,
            ..config(dir.path())
        },
        Arc::new(Clock::new()),
    );
    for number in 0..3 {
        assert!(
            spool
                .keep(
                    Kind::JobEvents,
                    &json!({"number": number, "occurredAt": machine_now()})
                )
                .await
                .unwrap()
        );
    }
    // The record is on disk when the call returns.
    let copy = crash(dir.path());
    for spool in [
        start_with(
            SpoolConfig {
                max_bytes: 2_048,
                ..config(copy.path())
            },
            Arc::new(Clock::new()),
        ),
        spool,
    ] {
        for round in 0..20 {
            spool
                .append(heard(round * 500..(round + 1) * 500))
                .await
                .unwrap();
            // Requesting a batch of any kind writes everything first.
            assert_eq!(spool.next(Kind::Telemetry, MAX).await.unwrap(), None);
        }
        assert!(
            spool.stats().counters.dropped_events > 0,
            "the spool was full"
        );
        for number in 0..3 {
            let batch = spool.next(Kind::JobEvents, 1).await.unwrap().unwrap();
            assert_eq!(batch.records, 1);
            let record = zstd::bulk::decompress(&batch.body, 4_096).unwrap();
            assert_eq!(
                serde_json::from_slice::<serde_json::Value>(&record).unwrap()["number"],
                number
            );
            spool
                .resolve(
                    Kind::JobEvents,
                    batch.batch,
                    Verdict::Stored { rejected: 0 },
                )
                .await
                .unwrap();
        }
        assert_eq!(spool.next(Kind::JobEvents, 1).await.unwrap(), None);
        spool.close().await.unwrap();
    }
}

/// A file system of its own, so small that it can be filled.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where this user may not mount one.
    fn mount(mebibytes: u32) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let size = format!("size={mebibytes}m,mode=700");
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(dir.path())
            .output();
        match mount {
            Ok(done) if done.status.success() => Some(Self(dir)),
            _ => {
                use std::io::Write;
                assert!(
                    std::env::var_os("HUB_TESTS_REQUIRE").is_none_or(|value| value != "1"),
                    "no tmpfs is mounted"
                );
                let _ = std::io::stderr()
                    .write_all(b"skipped: a full disk of the agent needs root, to mount a tmpfs\n");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all that is left.
    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.path().join("filler")).unwrap();
        for bytes in [&[0_u8; 65_536][..], &[0; 512], &[0; 1]] {
            while file.write_all(bytes).is_ok() {}
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
    }
}

/// Events that do not compress.
fn bulky(numbers: std::ops::Range<usize>) -> Vec<Heard> {
    let bulky = |number: usize| {
        let mut event = event(number);
        event.payload.address = (0..8).map(|_| uuid::Uuid::new_v4().to_string()).collect();
        Heard::from(&event)
    };
    numbers.map(bulky).collect()
}

#[tokio::test]
async fn a_full_disk_drops_the_oldest_first_and_everything_goes_on() {
    let Some(disk) = SmallDisk::mount(24) else {
        return;
    };
    let spool = start(disk.path());
    assert!(
        spool
            .keep(Kind::JobEvents, &json!({"number": 0}))
            .await
            .unwrap()
    );
    let mut given = 0;
    for _ in 0..20 {
        spool.append(bulky(given..given + 2_000)).await.unwrap();
        given += 2_000;
        // Every request for a batch writes the records in memory first.
        assert_eq!(spool.next(Kind::Logs, MAX).await.unwrap(), None);
    }
    disk.fill();
    for _ in 0..40 {
        spool.append(bulky(given..given + 2_000)).await.unwrap();
        given += 2_000;
        assert_eq!(spool.next(Kind::Logs, MAX).await.unwrap(), None);
    }
    let stats = spool.stats();
    assert!(stats.counters.dropped_events > 0, "{stats:?}");
    // All records that were not dropped are delivered, and they are newer than the dropped ones.
    assert!(
        spool
            .keep(Kind::JobEvents, &json!({"number": 1}))
            .await
            .unwrap(),
        "{:?}",
        spool.stats().trouble
    );
    let left = drain(&spool).await;
    assert_eq!(left.last(), Some(&(given - 1)));
    assert!(left.is_sorted(), "in order");
    let dropped = spool.stats().counters.dropped_events as usize;
    assert_eq!(left.len() + dropped, given);
    for number in 0..2 {
        let event = spool.next(Kind::JobEvents, 1).await.unwrap().unwrap();
        let record = zstd::bulk::decompress(&event.body, 4_096).unwrap();
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&record).unwrap()["number"],
            number
        );
        stored(&spool, &event).await;
    }
    disk.free();
    spool.append(heard(0..10)).await.unwrap();
    assert_eq!(drain(&spool).await.len(), 10);
    assert_eq!(spool.stats().trouble, None);
    spool.close().await.unwrap();
    assert_eq!(
        start(disk.path()).stats().total().records,
        0,
        "and nothing is damaged"
    );
}

#[tokio::test]
async fn a_disk_that_was_full_before_the_start_is_no_obstacle() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    fill(disk.path(), 3).await;
    disk.fill();
    let spool = start(disk.path());
    spool.append(heard(30..40)).await.unwrap();
    assert_eq!(drain(&spool).await, (0..40).collect::<Vec<_>>());
    // The credentials find their space, too.
    hub_agent::durable::replace(disk.path(), "credentials.json", &[b'x'; 4_000]).unwrap();
}

/// Makes all records on disk older, as if they had waited for this long.
fn age(dir: &Path, by: Duration) {
    let database = rusqlite::Connection::open(dir.join("spool.db")).unwrap();
    let micros = by.as_micros() as i64;
    database
        .execute(
            "UPDATE segments SET from_micros = from_micros - ?1, to_micros = to_micros - ?1",
            [micros],
        )
        .unwrap();
}

#[tokio::test]
async fn new_records_go_ahead_of_a_backlog_and_both_advance_in_order() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 6).await;
    age(dir.path(), Duration::from_secs(120));
    let spool = start(dir.path());
    let (mut order, mut new) = (Vec::new(), 60);
    for _ in 0..4 {
        spool.append(heard(new..new + 10)).await.unwrap();
        new += 10;
        let batch = spool.next(Kind::BleEvents, 10).await.unwrap().unwrap();
        order.extend(numbers(&batch));
        // The same until it is resolved, also after a crash.
        assert_eq!(
            spool.next(Kind::BleEvents, 10).await.unwrap(),
            Some(batch.clone())
        );
        if order.len() == 20 {
            let copy = crash(dir.path());
            let restarted = drain_batches(&start(copy.path())).await;
            let found = restarted.iter().find(|other| other.batch == batch.batch);
            assert_eq!(found.map(numbers), Some(numbers(&batch)));
        }
        stored(&spool, &batch).await;
    }
    let backlog: Vec<usize> = order
        .iter()
        .copied()
        .filter(|number| *number < 60)
        .collect();
    let ahead: Vec<usize> = order
        .iter()
        .copied()
        .filter(|number| *number >= 60)
        .collect();
    assert!(backlog.len() >= 10 && ahead.len() >= 10, "{order:?}");
    assert!(ahead.is_sorted() && backlog.is_sorted(), "{order:?}");
    order.extend(drain(&spool).await);
    let late: Vec<usize> = order
        .iter()
        .copied()
        .filter(|number| *number < 60)
        .collect();
    assert_eq!(late, (0..60).collect::<Vec<_>>(), "nothing is lost");
    order.sort_unstable();
    assert_eq!(order, (0..new).collect::<Vec<_>>(), "nor sent twice");
}

async fn drain_batches(spool: &Spool) -> Vec<Batch> {
    let mut all = Vec::new();
    while let Some(batch) = next(spool).await {
        stored(spool, &batch).await;
        all.push(batch);
    }
    all
}

/// Lets the spool work on its own for a while.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} within 10 s");
}

fn set_format(file: &Path, format: i64) {
    let database = rusqlite::Connection::open(file).unwrap();
    database
        .pragma_update(None, "user_version", format)
        .unwrap();
}

#[tokio::test]
async fn a_spool_of_another_version_is_set_aside_and_used_again_by_that_version() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 3).await;
    set_format(&dir.path().join("spool.db"), 7);

    let spool = start(dir.path());
    spool.append(heard(30..35)).await.unwrap();
    assert_eq!(drain(&spool).await, (30..35).collect::<Vec<_>>());
    assert!(spool.stats().set_aside_bytes > 0, "it is reported");
    spool.close().await.unwrap();

    // The version that reads it.
    let aside = quarantine::set_aside_files(dir.path());
    assert_eq!(aside.len(), 1);
    set_format(&aside[0], 1);
    let quick = SpoolConfig {
        commit_every: Duration::from_millis(50),
        ..config(dir.path())
    };
    let spool = start_with(quick, Arc::new(Clock::new()));
    spool.append(heard(35..40)).await.unwrap();
    until("its file is gone", || {
        quarantine::set_aside_files(dir.path()).is_empty()
    })
    .await;
    let mut found = drain(&spool).await;
    found.sort_unstable();
    assert_eq!(found, (0..30).chain(35..40).collect::<Vec<_>>());
    assert_eq!(spool.stats().set_aside_bytes, 0);
}

#[tokio::test]
async fn an_owner_without_the_hub_leaves_nothing_that_was_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1).await;
    set_format(&dir.path().join("spool.db"), 7);
    let spool = start(dir.path());
    spool.forget().await.unwrap();
    until("its file is gone", || {
        quarantine::set_aside_files(dir.path()).is_empty()
    })
    .await;
}

#[tokio::test]
async fn records_of_an_unknown_kind_stay_and_disturb_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 2).await;
    let database = rusqlite::Connection::open(dir.path().join("spool.db")).unwrap();
    let first = "(SELECT MIN(id) FROM segments)";
    let sql = format!("UPDATE segments SET kind = 99 WHERE id = {first}");
    database.execute(&sql, []).unwrap();
    let spool = start(dir.path());
    spool.append(heard(20..25)).await.unwrap();
    assert_eq!(drain(&spool).await, (10..25).collect::<Vec<_>>());
    assert!(spool.stats().set_aside_bytes > 0);
    let left: i64 = database
        .query_row("SELECT COUNT(*) FROM segments WHERE kind = 99", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(left, 1);
}

/// A restored image, or a copied card: what the disk holds may be stored already, and what is heard
/// afterwards is not.
#[tokio::test]
async fn new_records_are_not_sent_under_an_id_that_the_service_may_know() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 4).await;
    let restored = tempfile::tempdir().unwrap();
    std::fs::copy(
        dir.path().join("spool.db"),
        restored.path().join("spool.db"),
    )
    .unwrap();
    let mut sent = std::collections::HashMap::new();
    let spool = start(dir.path());
    while let Some(batch) = spool.next(Kind::BleEvents, 10).await.unwrap() {
        sent.insert(batch.batch, numbers(&batch));
        stored(&spool, &batch).await;
    }
    assert_eq!(sent.len(), 4);
    let spool = start(restored.path());
    spool.append(heard(100..110)).await.unwrap();
    let mut arrived = std::collections::BTreeSet::new();
    while let Some(batch) = next(&spool).await {
        // The service stores nothing of a batch whose id it knows.
        arrived.extend(match sent.get(&batch.batch) {
            Some(known) => known.clone(),
            None => numbers(&batch),
        });
        stored(&spool, &batch).await;
    }
    assert!(
        (100..110).all(|number| arrived.contains(&number)),
        "{arrived:?}"
    );
}
