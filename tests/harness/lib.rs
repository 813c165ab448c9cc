//! What every test starts from: the real service on either database, callers of every kind, and the
//! real programs as processes. Nothing of the product is replaced here but the clock.

pub mod app;
pub mod archive;
pub mod certificates;
pub mod client;
pub mod cluster;
pub mod databases;
pub mod devices;
pub mod disk;
pub mod documented;
pub mod duckdb;
pub mod events;
pub mod fleet;
pub mod hub;
pub mod issuer;
pub mod mail;
pub mod people;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod receiver;
pub mod release;
pub mod s3;
pub mod secrets;
pub mod stream;
pub mod supplier;

pub use app::{Options, TestApp};
pub use client::{Call, Client, Reply};
pub use databases::Backend;
pub use hub::SimulatedHub;
pub use mail::MailServer;
pub use people::{ApiKey, Person, Tenant};
pub use process::{Cloud, Process};
pub use receiver::{Answer, Receiver};
pub use release::{Maker, Recipe};
pub use stream::Follower;
pub use supplier::{Supplier, SupplierAnswer};

use std::time::Duration;

/// Fails unless most of these times are far below the second after which the service would have
/// looked by itself. A machine that stands still for a moment delays one of them.
pub fn assert_at_once(mut times: Vec<Duration>) {
    times.sort_unstable();
    assert!(times.len() >= 10, "too few to tell");
    assert!(
        times[times.len() / 2] < Duration::from_millis(250),
        "{times:?}"
    );
}

/// Reports on standard error, past the test runner's capture, that a test was skipped and what it
/// needs. With `HUB_TESTS_REQUIRE=1` nothing may be skipped, and the test fails instead.
pub fn skip(what: &str, needs: &str) {
    use std::io::Write;
    let line = format!("skipped: {what} needs {needs}\n");
    if std::env::var_os("HUB_TESTS_REQUIRE").is_some_and(|value| value == "1") {
        panic!("{line}");
    }
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The NATS server at `HUB_TESTS_NATS_URL`. A test without one reports that it was skipped.
pub fn nats_url() -> Option<String> {
    let given = std::env::var("HUB_TESTS_NATS_URL")
        .ok()
        .filter(|url| !url.is_empty());
    let url = given.unwrap_or_else(|| "nats://127.0.0.1:4222".to_owned());
    let address = url.trim_start_matches("nats://").to_owned();
    match std::net::TcpStream::connect(&address) {
        Ok(_) => Some(url),
        Err(_) => {
            skip(
                "replicas connected by a bus",
                &format!("NATS at {address} (HUB_TESTS_NATS_URL)"),
            );
            None
        }
    }
}
