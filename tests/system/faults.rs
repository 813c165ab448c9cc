//! Everything at once: agents and the service are killed under load, agents have copies with the
//! same identity, the way to the service is cut, or a gateway or a login page answers in its
//! place, disks are full, and clocks of hubs are wrong. Repeatable with `HUB_TESTS_SEED`;
//! `HUB_TESTS_KILLS` says how many faults there are. Full disks need root, wrong clocks
//! libfaketime.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use hub_tests::disk::SmallDisk;
use hub_tests::{Backend, Client, Cloud, Tenant, on_each_database};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::crash::{Agent, Identity, seed};
use super::{identity, stored_events};

const KILLS: usize = 60;
const AGENTS: usize = 3;
/// Every hub is back within this time after the last fault, and goes on.
const BACK_WITHIN: Duration = Duration::from_secs(120);

const OPEN: u8 = 0;
const LOGIN_PAGE: u8 = 1;
const GATEWAY_TIMEOUT: u8 = 2;
const CUT: u8 = 3;

const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 25\r\n\
    connection: close\r\n\r\n<html>Please log in</html>";
const TIMEOUT: &[u8] =
    b"HTTP/1.1 504 Gateway Time-out\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The way to the service.
struct Path {
    url: String,
    state: Arc<AtomicU8>,
}

impl Path {
    async fn to(service_url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let service = service_url
            .trim_start_matches("http://")
            .trim_end_matches('/');
        let service: SocketAddr = service.parse().expect("an address");
        let state: Arc<AtomicU8> = Arc::default();
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, service, shared.clone()));
            }
        });
        Self { url, state }
    }

    fn set(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
    }
}

/// Relays until the way changes, which may be in the midst of a request or an answer.
async fn relay(mut client: TcpStream, service: SocketAddr, state: Arc<AtomicU8>) -> Option<()> {
    let page: &[u8] = match state.load(Ordering::Relaxed) {
        LOGIN_PAGE => PAGE,
        GATEWAY_TIMEOUT => TIMEOUT,
        CUT => return None,
        _ => {
            let mut server = TcpStream::connect(service).await.ok()?;
            let changed = async {
                while state.load(Ordering::Relaxed) == OPEN {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                () = changed => {}
            }
            return None;
        }
    };
    let _ = client.read(&mut [0; 4096]).await.ok()?;
    client.write_all(page).await.ok()
}

/// The variables of an agent whose clock is wrong by up to five minutes; none without libfaketime.
fn wrong_clock(random: &mut SmallRng) -> Vec<(String, String)> {
    let library = format!(
        "/usr/lib/{}-linux-gnu/faketime/libfaketime.so.1",
        std::env::consts::ARCH
    );
    if !std::path::Path::new(&library).exists() {
        hub_tests::skip("wrong clocks", "libfaketime");
        return Vec::new();
    }
    let secs: i32 = random.random_range(-300..=300);
    let variable = |name: &str, value: String| (name.to_owned(), value);
    vec![
        variable("LD_PRELOAD", library),
        variable("FAKETIME", format!("{secs:+}s")),
        variable("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// Waits until all have uploaded what they have. Each of the hubs goes on with it all the time;
/// their copies take turns with them, and go on at the latest when those are done.
async fn wait_until_emptied(agents: &[Agent]) {
    let mut waiting: Vec<(usize, Instant)> = vec![(usize::MAX, Instant::now()); agents.len()];
    loop {
        for (agent, (count, moved_at)) in agents.iter().zip(&mut waiting) {
            let now = agent.spooled().len();
            if now < *count {
                *moved_at = Instant::now();
            }
            *count = now;
        }
        let is_stuck =
            |(count, moved_at): &(usize, Instant)| *count > 0 && moved_at.elapsed() >= BACK_WITHIN;
        if waiting.iter().all(|(count, _)| *count == 0) {
            return;
        }
        let (hubs, _) = waiting.split_at(AGENTS);
        let nobody_moves = waiting.iter().all(|one| one.0 == 0 || is_stuck(one));
        assert!(
            !nobody_moves && !hubs.iter().any(is_stuck),
            "a hub is not back: {:?}\n{}",
            waiting.iter().map(|(count, _)| count).collect::<Vec<_>>(),
            agents
                .iter()
                .map(Agent::last_lines)
                .collect::<Vec<_>>()
                .join("\n\n")
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

on_each_database!(nothing_is_lost_or_doubled_and_every_hub_comes_back);
async fn nothing_is_lost_or_doubled_and_every_hub_comes_back(backend: Backend) {
    println!("on {backend}");
    let mut random = SmallRng::seed_from_u64(seed());
    let kills = std::env::var("HUB_TESTS_KILLS").ok();
    let kills = kills.and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let limits = [
        "--upload-limit-per-minute",
        "1000000",
        "--hub-token-lifetime",
        "60s",
    ];
    let mebibytes = u32::try_from(64 + kills * 2).expect("a size");
    let disk = SmallDisk::mount(mebibytes);
    let data_dir = match &disk {
        Some(disk) => tempfile::tempdir_in(disk.path()),
        None => tempfile::tempdir(),
    };
    let data_dir = data_dir.expect("a directory");
    let mut cloud = Cloud::start_on(data_dir, backend, &limits, &[]).await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    // A person's token is over after a quarter of an hour; many faults take longer.
    let key = json!({"scopes": ["ble:read"], "rateLimitPerMinute": 100_000});
    let reader = tenant.api_key(key).await.client;
    let path = Path::to(&cloud.url).await;
    let mut agents = Vec::new();
    for number in 0..AGENTS {
        let code = tenant.claim_code().await;
        let (disk, name) = (SmallDisk::mount(64), format!("faults-{number}"));
        agents.push(Agent::start_on(disk, &path.url, &code, &name));
    }
    let mut clones: Vec<Agent> = Vec::new();
    let mut must_arrive: BTreeSet<Identity> = BTreeSet::new();
    // What waits on two disks may come from both.
    let mut copied: BTreeSet<Identity> = BTreeSet::new();
    // What waits on a disk that is full makes room for what is heard then.
    let mut replaced: BTreeSet<Identity> = BTreeSet::new();
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(random.random_range(20..400))).await;
        let at = random.random_range(0..AGENTS);
        let fault = match random.random_range(0..15) {
            12 | 13 => {
                let full = match (&disk, random.random_range(0..2)) {
                    (Some(disk), 0) => disk,
                    _ => {
                        replaced.extend(agents[at].spooled());
                        match &agents[at].machine.disk {
                            Some(disk) => disk,
                            None => continue,
                        }
                    }
                };
                full.fill();
                let ms = random.random_range(50..1_500);
                tokio::time::sleep(Duration::from_millis(ms)).await;
                full.free();
                "disk full"
            }
            14 => {
                agents[at].machine.environment = wrong_clock(&mut random);
                agents[at].crash(&mut must_arrive, "long.jsonl").await;
                "clock wrong"
            }
            0..5 => {
                agents[at].crash(&mut must_arrive, "long.jsonl").await;
                "agent killed"
            }
            5..8 => {
                cloud.crash().await;
                "service killed"
            }
            // More machines than this have no room here.
            8 if clones.len() < 2 => {
                clones.push(agents[at].clone_of(&mut copied));
                "cloned"
            }
            8 | 9 => match clones.pop() {
                Some(mut clone) => {
                    clone.crash(&mut must_arrive, "short.jsonl").await;
                    clones.insert(0, clone);
                    "clone killed"
                }
                None => "none",
            },
            way => {
                let state = if way == 10 {
                    LOGIN_PAGE
                } else {
                    random.random_range(GATEWAY_TIMEOUT..=CUT)
                };
                path.set(state);
                let ms = random.random_range(50..1_500);
                tokio::time::sleep(Duration::from_millis(ms)).await;
                path.set(OPEN);
                "way to the service"
            }
        };
        *faults.entry(fault).or_default() += 1;
    }
    agents.append(&mut clones);
    for agent in &mut agents {
        agent.crash(&mut must_arrive, "short.jsonl").await;
    }
    wait_until_emptied(&agents).await;
    let mut times_stored: BTreeMap<Identity, usize> = BTreeMap::new();
    for event in &stored_events(&reader).await {
        *times_stored.entry(identity(event)).or_default() += 1;
    }
    let lost: Vec<_> = must_arrive
        .iter()
        .filter(|event| !times_stored.contains_key(*event) && !replaced.contains(*event))
        .collect();
    assert!(
        lost.is_empty(),
        "{} events are lost: {:?} ...",
        lost.len(),
        lost.first()
    );
    let twice: Vec<_> = times_stored
        .iter()
        .filter(|(event, times)| **times > 1 && !copied.contains(*event))
        .collect();
    assert!(
        twice.is_empty(),
        "{} events came twice: {:?} ...",
        twice.len(),
        twice.first()
    );
    assert!(
        must_arrive.len() > 200,
        "{} events: the faults came too early",
        must_arrive.len()
    );
    println!(
        "{faults:?}: {} events, {} seen on disk",
        times_stored.len(),
        must_arrive.len()
    );
}
