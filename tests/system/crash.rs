//! Agent and service are killed again and again, at moments nobody chose, while the agent hears a
//! thousand advertisements a second. What had reached the agent's disk is stored once, nothing is
//! stored twice, and a reader of the live stream that loses its connection too sees all of it, in
//! order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hub_tests::disk::SmallDisk;
use hub_tests::{Backend, Client, Cloud, Follower, Process, Tenant, on_each_database};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rusqlite::OpenFlags;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{identity, stored_events};

const KILLS: usize = 50;
/// More than a life of the agent lasts.
const TRACE_EVENTS: usize = 20_000;
const IN_THE_END: Duration = Duration::from_secs(90);

pub type Identity = (String, String);

/// A machine that the agent runs on: its disk, and what it was started with.
pub struct Machine {
    dir: TempDir,
    /// The file system of the state directory, if it is so small that a test can fill it.
    pub disk: Option<SmallDisk>,
    service_url: String,
    claim_code: String,
    device_instance_id: String,
    /// Variables of the next start.
    pub environment: Vec<(String, String)>,
}

impl Machine {
    fn new(service_url: &str, claim_code: &str, device_instance_id: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        write_trace(&dir.path().join("long.jsonl"), TRACE_EVENTS);
        write_trace(&dir.path().join("short.jsonl"), 1);
        std::fs::write(dir.path().join("config.toml"), "").expect("a file");
        Self {
            dir,
            disk: None,
            service_url: service_url.to_owned(),
            claim_code: claim_code.to_owned(),
            device_instance_id: device_instance_id.to_owned(),
            environment: Vec::new(),
        }
    }

    fn state_dir(&self) -> PathBuf {
        let on = self.disk.as_ref().map_or(self.dir.path(), SmallDisk::path);
        on.join("state")
    }

    fn start(&self, trace: &str) -> Process {
        let path = |name: &str| self.dir.path().join(name).display().to_string();
        let (config, trace) = (path("config.toml"), path(trace));
        let state_dir = self.state_dir().display().to_string();
        let arguments = [
            ["run", "--config", &config, "--state-dir", &state_dir].as_slice(),
            &["--replay", &trace, "--service-url", &self.service_url],
            &["--dedup-window", "0s", "--spool-commit", "50ms"],
            &["--upload-interval", "20ms", "--log", "warn"],
        ]
        .concat();
        let mut environment = vec![
            ("HUB_AGENT_DEVICE_INSTANCE_ID", &*self.device_instance_id),
            ("HUB_AGENT_CLAIM_CODE", &*self.claim_code),
        ];
        let own = self.environment.iter();
        environment.extend(own.map(|(name, value)| (name.as_str(), value.as_str())));
        Process::start("hub-agent", &arguments, &environment)
    }

    /// The events on disk that the service has not acknowledged.
    fn spooled(&self) -> BTreeSet<Identity> {
        spooled_in(&self.state_dir())
    }
}

/// The agent as a process on its machine.
pub struct Agent {
    process: Process,
    pub machine: Machine,
}

impl Agent {
    pub fn start(service_url: &str, claim_code: &str, device_instance_id: &str) -> Self {
        Self::on(Machine::new(service_url, claim_code, device_instance_id))
    }

    /// With its state on a file system of its own.
    pub fn start_on(
        disk: Option<SmallDisk>,
        service_url: &str,
        claim_code: &str,
        device_instance_id: &str,
    ) -> Self {
        let mut machine = Machine::new(service_url, claim_code, device_instance_id);
        machine.disk = disk;
        Self::on(machine)
    }

    fn on(machine: Machine) -> Self {
        let process = machine.start("long.jsonl");
        Self { process, machine }
    }

    /// A second machine with a copy of this one's disk, as it is now. Notes the events on it.
    pub fn clone_of(&self, copied: &mut BTreeSet<Identity>) -> Self {
        let Machine {
            service_url,
            claim_code,
            device_instance_id,
            ..
        } = &self.machine;
        let second = Machine::new(service_url, claim_code, device_instance_id);
        std::fs::create_dir(second.state_dir()).expect("a directory");
        // All files are of one moment, as on the disk of a machine without power.
        self.process.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(20));
        let files = std::fs::read_dir(self.machine.state_dir());
        for file in files.into_iter().flatten().flatten() {
            // A socket is not on the copy.
            let _ = std::fs::copy(file.path(), second.state_dir().join(file.file_name()));
        }
        self.process.signal(Signal::CONT);
        copied.extend(second.spooled());
        Self::on(second)
    }

    pub fn last_lines(&self) -> String {
        self.process.last_lines()
    }

    /// Kills it, notes what it had on disk, and starts it again on that.
    pub async fn crash(&mut self, must_arrive: &mut BTreeSet<Identity>, trace: &str) {
        assert!(
            self.process.is_running(),
            "the agent ended by itself:\n{}",
            self.process.last_lines()
        );
        self.process.kill().await;
        must_arrive.extend(self.spooled());
        self.process = self.machine.start(trace);
    }

    /// The events on disk that the service has not acknowledged.
    pub fn spooled(&self) -> BTreeSet<Identity> {
        self.machine.spooled()
    }
}

fn spooled_in(state_dir: &Path) -> BTreeSet<Identity> {
    let file = state_dir.join("spool.db");
    // Killed before it created the file, or the table.
    if !file.exists() {
        return BTreeSet::new();
    }
    let spool = rusqlite::Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .expect("a spool");
    spool.busy_timeout(IN_THE_END).expect("a time limit");
    let mut segments = match spool.prepare("SELECT body FROM segments WHERE kind = 1") {
        Err(error) if error.to_string().contains("no such table") => return BTreeSet::new(),
        // A spool that cannot be read is not an empty one.
        segments => segments.unwrap_or_else(|error| panic!("the spool cannot be read: {error}")),
    };
    let bodies = segments
        .query_map([], |row| row.get::<_, Vec<u8>>(0))
        .expect("the spool's rows");
    let mut found = BTreeSet::new();
    for body in bodies {
        let body = body.expect("a segment");
        let json = zstd::decode_all(body.as_slice()).expect("a body is zstd");
        let events: Vec<Value> =
            serde_json::from_slice(&[b"[", json.as_slice(), b"]"].concat()).expect("events");
        found.extend(events.iter().map(identity));
    }
    found
}

/// Advertisements a millisecond apart, each with a name of its own.
fn write_trace(file: &Path, events: usize) {
    let line = |number: usize| {
        let line = json!({"t_ms": number, "address": "C0:00:00:00:00:01", "addressType": "random", "rssi": -60,
            "name": format!("event {number}"), "manufacturerData": {"0499": format!("{number:08x}")}});
        format!("{line}\n")
    };
    std::fs::write(file, (0..events).map(line).collect::<String>()).expect("a trace");
}

/// Repeatable with `HUB_TESTS_SEED`.
pub fn seed() -> u64 {
    let given = std::env::var("HUB_TESTS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(rand::random);
    println!("HUB_TESTS_SEED={seed}");
    seed
}

on_each_database!(kills_neither_lose_nor_duplicate_events);
async fn kills_neither_lose_nor_duplicate_events(backend: Backend) {
    println!("on {backend}");
    let seed = seed();
    let mut random = SmallRng::seed_from_u64(seed);
    let mut cloud = Cloud::start(backend, &["--upload-limit-per-minute", "1000000"]).await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let follower = Follower::start(&tenant.client, "/tenant/stream/ble/events", 300, seed);
    let mut agent = Agent::start(&cloud.url, &tenant.claim_code().await, "crash-test-hub");
    let mut must_arrive = BTreeSet::new();
    for _ in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(random.random_range(20..500))).await;
        match random.random_range(0..5) {
            0 | 1 => agent.crash(&mut must_arrive, "long.jsonl").await,
            2 | 3 => cloud.crash().await,
            _ => {
                agent.crash(&mut must_arrive, "long.jsonl").await;
                cloud.crash().await;
            }
        }
    }
    agent.crash(&mut must_arrive, "short.jsonl").await;
    let emptied = async {
        while !agent.spooled().is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let emptied = tokio::time::timeout(IN_THE_END, emptied).await;
    assert!(
        emptied.is_ok(),
        "the agent does not get rid of its spool:\n{}",
        agent.process.last_lines()
    );

    let stored = stored_events(&tenant.client).await;
    let mut times_stored: BTreeMap<Identity, usize> = BTreeMap::new();
    for event in &stored {
        *times_stored.entry(identity(event)).or_default() += 1;
    }
    let lost: Vec<_> = must_arrive
        .iter()
        .filter(|event| !times_stored.contains_key(*event))
        .collect();
    assert!(
        lost.is_empty(),
        "{} of {} spooled events are lost: {:?} ...; {} are stored. The agent:\n{}",
        lost.len(),
        must_arrive.len(),
        lost.first(),
        stored.len(),
        agent.last_lines()
    );
    let twice: Vec<_> = times_stored
        .iter()
        .filter(|(_, times)| **times > 1)
        .collect();
    assert!(
        twice.is_empty(),
        "{} events are stored more than once: {:?} ...",
        twice.len(),
        twice.first()
    );
    assert!(
        must_arrive.len() > 500,
        "the kills came too early to show anything: {} events",
        must_arrive.len()
    );

    let complete = tokio::time::timeout(IN_THE_END, follower.until(stored.len())).await;
    let seen = follower.seen();
    assert!(
        complete.is_ok(),
        "{} events are stored, the stream has shown {}",
        stored.len(),
        seen.len()
    );
    let ids = |events: &mut dyn Iterator<Item = &Value>| -> Vec<i64> {
        events
            .map(|event| event["bleEventId"].as_i64().unwrap_or_default())
            .collect()
    };
    assert_eq!(
        ids(&mut seen.iter().map(|event| &event.data)),
        ids(&mut stored.iter()),
        "each once, in order"
    );
    assert!(
        seen.iter()
            .all(|event| event.data["receivedAt"] == event.id),
        "an event's id is when it was received"
    );
    println!(
        "{KILLS} kills: {} events stored, {} of them seen on disk by a kill",
        stored.len(),
        must_arrive.len()
    );
}
