//! *move*: a database of BLE events from SQLite to PostgreSQL, and back, with the comparison.

use std::time::{Duration, Instant};

use hub_tests::archive::add_events;
use hub_tests::postgres::Database;
use hub_tests::process::{Process, program};
use hub_tests::{Client, SimulatedHub, Tenant};
use rustix::process::Signal;
use tokio::process::Command;

const EVENTS: i64 = 1_000_000;
const EVENTS_IN_FULL: i64 = 10_000_000;
const EVENTS_OF_A_BATCH: i64 = 50;
const HUBS: usize = 50;

pub async fn run(is_full: bool) {
    let events = if is_full { EVENTS_IN_FULL } else { EVENTS };
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("hub-cloud.sqlite");
    let (from, back) = (
        format!("sqlite:{}", file.display()),
        format!("sqlite:{}", dir.path().join("back.sqlite").display()),
    );
    let data_dir = dir.path().display().to_string();
    let settings = ["--data-dir", &data_dir, "--database-url"];
    let arguments = [
        &["serve", "--listen", "127.0.0.1:0"],
        &settings[..],
        &[&from],
    ]
    .concat();
    let mut service = Process::start("hub-cloud", &arguments, &[]);
    let tenant = Tenant::create(&Client::new(&service.url().await)).await;
    for _ in 0..HUBS {
        SimulatedHub::claim(&tenant).await.upload_events(1).await;
    }
    service.signal(Signal::TERM);
    service.ended().await;
    let began = Instant::now();
    add_events(&file, events / EVENTS_OF_A_BATCH, EVENTS_OF_A_BATCH).await;
    println!(
        "move: {events} events are stored, after {:.0?}",
        began.elapsed()
    );

    let database = Database::empty().await;
    for (from, to) in [(&from, &database.url), (&database.url, &back)] {
        let arguments = [&["move", "--to", to], &settings[..], &[from]].concat();
        let began = Instant::now();
        let mut command = Command::new(program("hub-cloud"));
        let status = command.args(arguments).status().await.expect("it runs");
        assert!(status.success(), "the move failed");
        let took = began.elapsed();
        println!(
            "move: {events} events from {from} to {to}: {}",
            rate(events, took)
        );
    }
}

fn rate(events: i64, took: Duration) -> String {
    format!(
        "{took:.0?}, {:.0} a second",
        events as f64 / took.as_secs_f64()
    )
}
