//! Backups while hubs upload 5,000 events a second, and backups and restores that are killed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hub_base::clock::Clock;
use hub_base::db::Db;
use hub_ingest::StoredEvent;
use hub_protocol::Timestamp;
use hub_tests::events;
use hub_tests::hub::events;
use hub_tests::process::program;
use hub_tests::{Backend, Client, Cloud, SimulatedHub, Tenant};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::crash::seed;

const LIMITS: [&str; 2] = ["--upload-limit-per-minute", "1000000"];
const HUBS: usize = 10;
const EVENTS_PER_UPLOAD: usize = 100;
/// Of each hub: together they send 5,000 events a second.
const UPLOAD_EVERY: Duration = Duration::from_millis(200);
/// Before and after the backup.
const LOAD_TIME: Duration = Duration::from_secs(3);
/// `HUB_TESTS_KILLS` changes it.
const KILLS: usize = 20;

fn kills() -> usize {
    let given = std::env::var("HUB_TESTS_KILLS").ok();
    given.and_then(|kills| kills.parse().ok()).unwrap_or(KILLS)
}

fn command(arguments: &[&str]) -> Child {
    Command::new(program("hub-cloud"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts")
}

/// Exit code and everything said.
async fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(arguments).wait_with_output();
    let output = tokio::time::timeout(Duration::from_secs(120), output).await;
    let output = output.expect("it ends").expect("its output");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

async fn succeeds(arguments: &[&str]) -> String {
    let (code, said) = run(arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {said}");
    said
}

/// An upload that was acknowledged.
struct Acknowledged {
    at: Timestamp,
    took: Duration,
    events: Vec<Uuid>,
}

/// Uploads until it is stopped.
async fn upload(hub: SimulatedHub, stop: Arc<AtomicBool>) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    let mut ticks = tokio::time::interval(UPLOAD_EVERY);
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        let batch = events(EVENTS_PER_UPLOAD);
        let sent_at = Instant::now();
        hub.upload(&batch).await.expect(201);
        acknowledged.push(Acknowledged {
            at: Clock::System.now(),
            took: sent_at.elapsed(),
            events: batch
                .events
                .iter()
                .filter_map(|event| event.event_uuid)
                .collect(),
        });
    }
    acknowledged
}

/// The uuids of all events in a database.
async fn stored(database: &Path) -> BTreeSet<Uuid> {
    let db = Db::open(&format!("sqlite:{}", database.display())).expect("a database");
    let uuid_of = |event: StoredEvent| -> Uuid {
        let event: Value = serde_json::from_str(&event.event).expect("JSON");
        event["eventUuid"]
            .as_str()
            .and_then(|uuid| uuid.parse().ok())
            .expect("a uuid")
    };
    let uuids = events::all(&db).await.into_iter().map(uuid_of).collect();
    db.close().await;
    uuids
}

/// What a command printed between two texts.
fn between<'a>(said: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = said.split_once(before).unwrap_or_else(|| panic!("{said}"));
    rest.split_once(after).unwrap_or_else(|| panic!("{said}")).0
}

#[test]
fn every_event_acknowledged_before_the_moment_of_a_backup_is_restored() {
    hub_tests::databases::run(Backend::Sqlite, |backend| async move {
        let cloud = Cloud::start(backend, &LIMITS).await;
        let tenant = Tenant::create(&Client::new(&cloud.url)).await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut uploads = JoinSet::new();
        for _ in 0..HUBS {
            let hub = SimulatedHub::claim(&tenant).await;
            uploads.spawn(upload(hub, stop.clone()));
        }
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name).display().to_string();
        let data = cloud.data_dir().display().to_string();
        let (archive, to) = (path("hub.tar.zst"), path("restored"));
        std::fs::write(path("passphrase"), "a horse, a battery, a staple").expect("a file");
        let passphrase = ["--backup-passphrase-file", &path("passphrase")];
        tokio::time::sleep(LOAD_TIME).await;
        let began_at = Clock::System.now();
        let backup = [&["backup", &archive, "--data-dir", &data][..], &passphrase].concat();
        let said = succeeds(&backup).await;
        let ended_at = Clock::System.now();
        tokio::time::sleep(LOAD_TIME).await;
        stop.store(true, Ordering::Relaxed);
        let acknowledged: Vec<Acknowledged> =
            uploads.join_all().await.into_iter().flatten().collect();

        let restore = [&["restore", &archive, "--data-dir", &to][..], &passphrase].concat();
        succeeds(&restore).await;
        let restored = stored(&Path::new(&to).join("hub-cloud.sqlite")).await;
        let moment: Timestamp = between(&said, "acknowledged before ", " is in it")
            .parse()
            .expect("a time");
        let before: Vec<Uuid> = acknowledged
            .iter()
            .filter(|upload| upload.at < moment)
            .flat_map(|upload| upload.events.clone())
            .collect();
        let lost = before
            .iter()
            .filter(|event| !restored.contains(event))
            .count();
        assert_eq!(lost, 0, "of {} acknowledged before {moment}", before.len());
        let all: usize = acknowledged.iter().map(|upload| upload.events.len()).sum();
        assert!(
            moment >= began_at && before.len() > 1000 && all > restored.len(),
            "the load went on: {} before, {} restored, {all} in all",
            before.len(),
            restored.len()
        );
        let during = acknowledged
            .iter()
            .filter(|upload| upload.at > began_at && upload.at < ended_at);
        let longest = during.clone().map(|upload| upload.took).max();
        let secs = (ended_at.as_micros() - began_at.as_micros()) as f64 / 1e6;
        println!(
            "{} events acknowledged before the moment, all of {} restored; {:.0} events/s during the {secs:.1} s \
             of the backup, the slowest upload took {longest:?}",
            before.len(),
            restored.len(),
            (during.count() * EVENTS_PER_UPLOAD) as f64 / secs,
        );
        // It serves, and hubs come back.
        let mut restored = hub_tests::Process::start(
            "hub-cloud",
            &["serve", "--listen", "127.0.0.1:0", "--data-dir", &to],
            &[],
        );
        let client = tenant.client.at(&restored.url().await);
        let answer = hub_tests::Call::call(client.get("/tenant/hubs"))
            .await
            .expect(200);
        let hubs = answer.json()["data"].as_array().map(Vec::len);
        assert_eq!(hubs, Some(HUBS));
    });
}

/// A service that has stopped, with some thousand events.
async fn filled() -> (Cloud, usize) {
    let cloud = Cloud::start(Backend::Sqlite, &LIMITS).await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let hub = SimulatedHub::claim(&tenant).await;
    for _ in 0..20 {
        hub.upload_events(500).await;
    }
    (cloud, 10_000)
}

/// Starts a command, and kills it at some moment of its work.
async fn kill(arguments: &[&str], random: &mut SmallRng, usual: Duration) -> bool {
    let mut child = command(arguments);
    let after = usual.mul_f64(random.random_range(0.0..1.1));
    match tokio::time::timeout(after, child.wait()).await {
        Ok(_) => false,
        Err(_) => {
            child.kill().await.expect("it is killed");
            true
        }
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_killed_backup_is_whole_or_has_no_name() {
    hub_tests::databases::run(Backend::Sqlite, |_| async {
        let mut random = SmallRng::seed_from_u64(seed());
        let (cloud, _) = filled().await;
        let place = tempfile::tempdir().expect("a directory");
        let data = cloud.data_dir().display().to_string();
        let dir = format!("{}/", place.path().display());
        let one = place.path().join("one.tar.zst").display().to_string();
        let backup = |to| ["backup", to, "--data-dir", &data, "--without-keys"];
        // The first one reads the programs and the database from the disk.
        succeeds(&backup(&one)).await;
        let began_at = Instant::now();
        succeeds(&backup(&one)).await;
        let usual = began_at.elapsed();
        let (mut killed, mut unfinished) = (0, 0);
        for turn in 0..kills() {
            // The same file again, or one named after the time.
            let to = if turn % 2 == 0 { &one } else { &dir };
            killed += usize::from(kill(&backup(to), &mut random, usual).await);
            for name in names(place.path()) {
                let path = place.path().join(&name).display().to_string();
                match name.ends_with(".partial") {
                    true => unfinished += 1,
                    false => drop(succeeds(&["drill", &path, "--data-dir", &data]).await),
                }
            }
        }
        succeeds(&backup(&one)).await;
        succeeds(&backup(&dir)).await;
        let left = names(place.path());
        assert!(
            left.iter().all(|name| name.ends_with(".tar.zst")),
            "the next backup removes what killed ones left: {left:?}"
        );
        println!("{killed} kills, {unfinished} times something unfinished was there");
        assert!(
            killed > kills() / 4 && unfinished > 0,
            "the kills came too late"
        );
    });
}

#[test]
fn a_killed_restore_is_whole_or_refused() {
    hub_tests::databases::run(Backend::Sqlite, |_| async {
        let mut random = SmallRng::seed_from_u64(seed());
        let (cloud, count) = filled().await;
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name).display().to_string();
        let (data, archive) = (cloud.data_dir().display().to_string(), path("hub.tar.zst"));
        std::fs::write(path("passphrase"), "a horse, a battery, a staple").expect("a file");
        let passphrase = ["--backup-passphrase-file", &path("passphrase")];
        succeeds(&[&["backup", &archive, "--data-dir", &data][..], &passphrase].concat()).await;
        let restore = |to: &str| -> Vec<String> {
            let arguments = [&["restore", &archive, "--data-dir", to][..], &passphrase].concat();
            arguments.into_iter().map(str::to_owned).collect()
        };
        let arguments = restore(&path("usual"));
        let began_at = Instant::now();
        succeeds(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let usual = began_at.elapsed();
        let (mut refused, mut whole) = (0, 0);
        for turn in 0..kills() {
            let to = path(&format!("restored-{turn}"));
            let arguments = restore(&to);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            kill(&arguments, &mut random, usual).await;
            let dir = PathBuf::from(&to);
            if dir.join("restore.partial").exists() {
                refused += 1;
                for command in [
                    &["serve", "--listen", "127.0.0.1:0", "--data-dir", &to][..],
                    &["keys", "list", "--data-dir", &to],
                ] {
                    let (code, said) = run(command).await;
                    assert!(
                        code == Some(1) && said.contains("hub-cloud restore"),
                        "{code:?} {said}"
                    );
                }
                succeeds(&arguments).await;
            } else if !dir.join("hub-cloud.sqlite").exists() {
                assert!(
                    names(&dir).is_empty(),
                    "it had not begun: {:?}",
                    names(&dir)
                );
                continue;
            } else {
                whole += 1;
            }
            assert_eq!(stored(&dir.join("hub-cloud.sqlite")).await.len(), count);
            succeeds(&["keys", "list", "--data-dir", &to]).await;
        }
        println!("{refused} restores were refused and repeated, {whole} were whole");
        assert!(refused > kills() / 10, "the kills came at the wrong time");
    });
}
