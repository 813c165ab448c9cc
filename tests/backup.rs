//! `hub-cloud backup`, `restore` and `drill` as an operator runs them, and the backups that the
//! service makes by itself.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hub_cloud::backup::schedule::Schedule;
use hub_core::config::{BackupPlace, Settings};
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::disk::SmallDisk;
use hub_tests::process::{Process, program};
use hub_tests::release::{make_app, make_app_release, stored_files};
use hub_tests::s3::{BUCKET, S3Server};
use hub_tests::{
    Backend, Client, Maker, Options, Recipe, SimulatedHub, Tenant, TestApp, on_each_database,
    on_postgres,
};
use tempfile::TempDir;
use tokio::process::Command;

const PASSPHRASE: &str = "a horse, a battery, a staple";
const DAY_SECS: i64 = 24 * 3600;

/// Exit code and everything said.
async fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(program("hub-cloud"));
    command
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
    let output = output.expect("it ends").expect("it starts");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// The directories and files of a test.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        std::fs::write(place.0.path().join("right"), PASSPHRASE).expect("a file");
        std::fs::write(place.0.path().join("wrong"), "another passphrase\n").expect("a file");
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    async fn serve(&self, name: &str) -> (Process, Client) {
        let data_dir = self.path(name);
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &data_dir];
        let mut service = Process::start("hub-cloud", &arguments, &[]);
        let client = Client::new(&service.url().await);
        (service, client)
    }

    /// A command with the passphrase in this file, and what it is to do.
    async fn with_passphrase(&self, file: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let file = self.path(file);
        run(
            &[arguments, &["--backup-passphrase-file", &file]].concat(),
            &[],
        )
        .await
    }

    fn is_empty(&self, name: &str) -> bool {
        std::fs::read_dir(self.path(name)).is_ok_and(|mut entries| entries.next().is_none())
    }
}

fn mode(path: &str) -> u32 {
    let metadata = std::fs::metadata(path).expect("a file");
    metadata.permissions().mode() & 0o777
}

/// A hub with three events, as the service's data directory has it.
async fn hub_with_events(place: &Place) -> (Process, SimulatedHub) {
    let (service, client) = place.serve("data").await;
    let tenant = Tenant::create(&client).await;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(3).await;
    (service, hub)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_made_while_serving_restores_with_its_passphrase() {
    let place = Place::new();
    let (mut service, mut hub) = hub_with_events(&place).await;
    let (data, archive) = (place.path("data"), place.path("hub.tar.zst"));
    let backup = ["backup", &archive, "--data-dir", &data];
    let (code, said) = run(&backup, &[]).await;
    assert!(
        code == Some(2) && said.contains("--without-keys"),
        "{code:?} {said}"
    );
    let (code, said) = place.with_passphrase("right", &backup).await;
    assert!(
        code == Some(0) && said.contains("sealed with the passphrase"),
        "{code:?} {said}"
    );
    assert_eq!(mode(&archive), 0o600);
    let over = ["restore", &archive, "--data-dir", &data];
    let (code, said) = place.with_passphrase("right", &over).await;
    assert!(
        code == Some(1) && said.contains("a service is running"),
        "{code:?} {said}"
    );
    hub.upload_events(1).await;
    service.kill().await;

    let (restored, to) = ("restored", place.path("restored"));
    let restore = ["restore", &archive, "--data-dir", &to];
    let (code, said) = run(&restore, &[]).await;
    assert!(
        code == Some(2) && said.contains("--backup-passphrase-file"),
        "{code:?} {said}"
    );
    let (code, said) = place.with_passphrase("wrong", &restore).await;
    assert!(
        code == Some(1) && said.contains("does not open the master keys"),
        "{code:?} {said}"
    );
    assert!(place.is_empty(restored), "nothing is left of a failure");
    // SQLite would replay the log of a database that was moved away.
    let (elsewhere, log) = (place.path("other.sqlite"), place.path("other.sqlite-wal"));
    std::fs::write(&log, "a log").expect("a file");
    let url = format!("sqlite:{elsewhere}");
    let beside_log = [&restore[..], &["--database-url", &url]].concat();
    let (code, said) = place.with_passphrase("right", &beside_log).await;
    assert!(code == Some(1) && said.contains(&log), "{code:?} {said}");
    let (code, said) = place.with_passphrase("right", &restore).await;
    assert_eq!(code, Some(0), "{said}");
    for file in ["hub-cloud.sqlite", "master.key"] {
        assert_eq!(mode(&place.path(&format!("restored/{file}"))), 0o600);
    }
    assert_eq!(
        std::fs::read(place.path("data/master.key")).expect("a key"),
        std::fs::read(place.path("restored/master.key")).expect("a key")
    );
    let (code, said) = place.with_passphrase("right", &restore).await;
    assert!(
        code == Some(1) && said.contains("is there already"),
        "{code:?} {said}"
    );

    // The hub comes back by itself.
    let (_service, client) = place.serve(restored).await;
    hub.client = hub.client.at(&client.url);
    hub.refresh().await;
    hub.upload_events(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_were_kept_apart_are_named() {
    let place = Place::new();
    let (_service, _) = hub_with_events(&place).await;
    let (data, archive) = (place.path("data"), place.path("hub.tar.zst"));
    let (code, said) = run(
        &["backup", &archive, "--data-dir", &data, "--without-keys"],
        &[],
    )
    .await;
    assert!(
        code == Some(0) && said.contains("keep the master keys apart"),
        "{code:?} {said}"
    );
    // On the service's own machine the drill tries the service's keys.
    let (code, said) = run(&["drill", &archive, "--data-dir", &data], &[]).await;
    assert!(
        code == Some(0) && said.contains("open the secrets"),
        "{code:?} {said}"
    );
    let to = place.path("restored");
    let (code, said) = run(&["restore", &archive, "--data-dir", &to], &[]).await;
    let key = place.path("restored/master.key");
    assert!(code == Some(0) && said.contains(&key), "{code:?} {said}");
    let (code, said) = run(&["keys", "list", "--data-dir", &to], &[]).await;
    assert!(code == Some(3) && said.contains(&key), "{code:?} {said}");
    std::fs::copy(place.path("data/master.key"), &key).expect("the key");
    let (code, said) = run(&["keys", "list", "--data-dir", &to], &[]).await;
    assert!(
        code == Some(0) && said.contains("seals and opens"),
        "{said}"
    );
    // With another key in its place, the drill fails.
    std::fs::write(place.path("data/master.key"), format!("{:064x}\n", 7)).expect("a key");
    let (code, said) = run(&["drill", &archive, "--data-dir", &data], &[]).await;
    assert!(
        code == Some(3) && said.contains("restore the missing key"),
        "{code:?} {said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_archive_is_refused_and_leaves_nothing() {
    let place = Place::new();
    let (_service, _) = hub_with_events(&place).await;
    let (data, archive) = (place.path("data"), place.path("hub.tar.zst"));
    let (code, said) = run(
        &["backup", &archive, "--data-dir", &data, "--without-keys"],
        &[],
    )
    .await;
    assert_eq!(code, Some(0), "{said}");
    let whole = std::fs::read(&archive).expect("an archive");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    let (other, to) = (place.path("other.tar.zst"), place.path("restored"));
    let broken: [&[u8]; 4] = [
        &whole[..whole.len() / 2],
        &whole[..whole.len() - 1],
        &changed,
        b"not an archive",
    ];
    for bytes in broken {
        std::fs::write(&other, bytes).expect("a file");
        for command in [
            ["restore", &other, "--data-dir", &to],
            ["drill", &other, "--data-dir", &data],
        ] {
            let (code, said) = run(&command, &[]).await;
            assert!(
                code == Some(1) && said.contains("is not a whole backup"),
                "{code:?} {said}"
            );
        }
    }
    assert!(place.is_empty("restored"));
    let left = std::fs::read_dir(place.path(""))
        .expect("a directory")
        .flatten();
    assert!(
        left.map(|entry| entry.file_name())
            .all(|name| !name.to_string_lossy().ends_with(".partial"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_named_and_leaves_nothing() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let place = Place::new();
    let (_service, _) = hub_with_events(&place).await;
    let (data, archive) = (place.path("data"), place.path("hub.tar.zst"));
    disk.fill();
    let on_disk = disk.path().join("hub.tar.zst").display().to_string();
    let (code, said) = run(
        &["backup", &on_disk, "--data-dir", &data, "--without-keys"],
        &[],
    )
    .await;
    assert!(
        code == Some(1) && said.contains("free disk space"),
        "{code:?} {said}"
    );
    let (code, said) = run(
        &["backup", &archive, "--data-dir", &data, "--without-keys"],
        &[],
    )
    .await;
    assert_eq!(code, Some(0), "{said}");
    let to = disk.path().join("restored").display().to_string();
    disk.free();
    std::fs::create_dir(&to).expect("a directory");
    disk.fill();
    let restore = ["restore", &archive, "--data-dir", &to];
    let (code, said) = run(&restore, &[]).await;
    assert!(
        code == Some(1) && said.contains("free disk space"),
        "{code:?} {said}"
    );
    let names: Vec<_> = std::fs::read_dir(&to).expect("a directory").collect();
    assert!(names.is_empty(), "{names:?}");
    disk.free();
    let (code, said) = run(&restore, &[]).await;
    assert_eq!(code, Some(0), "{said}");
}

on_each_database!(release_files_come_back);
/// Release files are the same on both databases; the database is in the backup of SQLite alone.
async fn release_files_come_back(backend: Backend) {
    let place = Place::new();
    let maker = Maker::new();
    let settings = Settings {
        release_keys: Some(maker.keys()),
        ..Settings::default()
    };
    let options = Options {
        settings,
        ..Options::default()
    };
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let name = "thermostat";
    let app_uuid = make_app(&tenant, name).await;
    make_app_release(&tenant, app_uuid, &maker, &Recipe::app(name, "1.0.0", 1)).await;

    let url = secrecy::ExposeSecret::expose_secret(&app.app.config.database_url).to_owned();
    let data = app.data_dir().display().to_string();
    let key = [("HUB_CLOUD_MASTER_KEY", hub_tests::app::MASTER_KEY)];
    let (archive, to) = (place.path("hub.tar.zst"), place.path("restored"));
    let backup = ["backup", &archive, "--data-dir", &data, "--without-keys"];
    let (code, said) = run(&[&backup[..], &["--database-url", &url]].concat(), &key).await;
    let is_there = said.contains("every upload acknowledged before");
    assert!(
        code == Some(0) && is_there == (backend == Backend::Sqlite),
        "{code:?} {said}"
    );
    let mut restore = vec!["restore", &archive, "--data-dir", &to];
    if backend == Backend::Postgres {
        restore.extend(["--database-url", &url]);
    }
    let (code, said) = run(&restore, &key).await;
    assert!(
        code == Some(0) && said.contains("release files: 1"),
        "{said}"
    );
    assert_eq!(
        stored_files(app.data_dir()),
        stored_files(&PathBuf::from(&to))
    );
    let database = Path::new(&to).join("hub-cloud.sqlite");
    assert_eq!(database.exists(), backend == Backend::Sqlite);
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_in_a_bucket_are_found_by_their_prefix() {
    let s3 = S3Server::start().await;
    let place = Place::new();
    let (_service, _) = hub_with_events(&place).await;
    let environment = s3.environment();
    let (data, to) = (place.path("data"), place.path("restored"));
    let bucket = format!("s3://{BUCKET}/backups/eu");
    let (code, said) = run(&["drill", &bucket, "--data-dir", &data], &environment).await;
    assert!(code == Some(1) && said.contains("no backup"), "{said}");
    let backup = ["backup", &bucket, "--data-dir", &data, "--without-keys"];
    let (code, said) = run(&backup, &environment).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&["drill", &bucket, "--data-dir", &data], &environment).await;
    assert!(
        code == Some(0) && said.contains("open the secrets"),
        "{said}"
    );
    let (code, said) = run(&["restore", &bucket, "--data-dir", &to], &environment).await;
    assert_eq!(code, Some(0), "{said}");
    let left = std::fs::read_dir(&data).expect("a directory").flatten();
    assert!(
        left.map(|entry| entry.file_name())
            .all(|name| !name.to_string_lossy().contains(".partial"))
    );
}

fn archives(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

on_each_database!(the_service_makes_backups_when_they_are_due_and_keeps_the_newest);
async fn the_service_makes_backups_when_they_are_due_and_keeps_the_newest(backend: Backend) {
    let place = Place::new();
    let dir = PathBuf::from(place.path("backups"));
    let start: Timestamp = "2026-01-31T08:00:00Z".parse().expect("a time");
    let (clock, micros) = set_clock(start);
    let settings = Settings {
        backup_to: Some(dir.display().to_string()),
        backup_keep: Some(2),
        backup_passphrase_file: Some(place.path("right").into()),
        ..Settings::default()
    };
    let options = Options {
        clock: Some(clock),
        settings,
    };
    let app = TestApp::with(backend, options).await;
    let to: BackupPlace = app.app.config.backup.to.clone().expect("a place");
    let mut schedule = Schedule::new(&app.app);
    let at = |secs: i64| {
        let time = start.plus_secs(secs).as_micros();
        micros.store(time, std::sync::atomic::Ordering::Relaxed);
    };
    let age = || app.app.metrics.backup_age_seconds.get();
    schedule.look(&app.app, &to).await;
    assert_eq!(archives(&dir), ["hub-cloud-2026-01-31T080000Z.tar.zst"]);
    at(DAY_SECS - 1);
    schedule.look(&app.app, &to).await;
    assert_eq!((archives(&dir).len(), age()), (1, DAY_SECS - 1));
    // One that a clock named which was a year ahead neither stops the schedule nor counts.
    let future = "hub-cloud-2027-01-31T080000Z.tar.zst";
    std::fs::write(dir.join(future), "").expect("a file");
    for day in 1..=3 {
        at(day * DAY_SECS);
        // PostgreSQL may hold the lock of the last look for another moment.
        let made = async {
            schedule.look(&app.app, &to).await;
            while age() != 0 {
                schedule.look(&app.app, &to).await;
            }
        };
        let made = tokio::time::timeout(Duration::from_secs(10), made).await;
        made.unwrap_or_else(|_| panic!("no backup on day {day}"));
    }
    assert_eq!(
        archives(&dir),
        [
            "hub-cloud-2026-02-02T080000Z.tar.zst",
            "hub-cloud-2026-02-03T080000Z.tar.zst",
            future
        ]
    );
    // What is no backup is never deleted, and a failure leaves the age growing.
    std::fs::write(dir.join("notes.txt"), "of an operator").expect("a file");
    std::fs::remove_file(place.path("right")).expect("no passphrase");
    at(5 * DAY_SECS);
    schedule.look(&app.app, &to).await;
    assert_eq!((archives(&dir).len(), age()), (4, 2 * DAY_SECS));
}

on_postgres!(only_one_replica_makes_the_backup);
async fn only_one_replica_makes_the_backup(backend: Backend) {
    let app = TestApp::new(backend).await;
    let db = &app.app.db;
    let held = db
        .try_hold(1)
        .await
        .expect("an answer")
        .expect("it is free");
    assert!(db.try_hold(1).await.expect("an answer").is_none());
    assert!(db.try_hold(2).await.expect("an answer").is_some());
    drop(held);
    let freed = async {
        while db.try_hold(1).await.expect("an answer").is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), freed)
        .await
        .expect("it is free again");
}
