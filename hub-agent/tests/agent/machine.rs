//! The machine around the agent: its clock, its trusted authorities, a proxy, and a disk that
//! cannot be written.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use super::certificates::Front;
use super::jobs::Hub;
use super::service::Service;
use super::{Site, TEN_SECONDS, output, stop, text, until_status, until_status_within};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// The agent at this address, with the authority of the fleet in its `ca-file`.
fn at(hub: &Hub, url: &str) -> Command {
    let authority = hub.fleet(|fleet| fleet.authority.pem());
    std::fs::write(hub.site.path("ca.pem"), authority).unwrap();
    let mut agent = hub.run_at(url);
    agent.arg("--ca-file").arg(hub.site.path("ca.pem"));
    agent
}

fn is_in_contact(status: &Value) -> bool {
    status["unreachable"].is_null() && !status["lastContactAt"].is_null()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_before_the_certificate_learns_the_time_of_the_service() {
    let hub = Hub::new().await;
    hub.service.change(|stored| stored.ahead_secs = 30 * DAY);
    let front = Front::valid(&hub, 29 * DAY, 60 * DAY).await;
    let mut agent = at(&hub, &front.url()).spawn().unwrap();
    until_status(&hub.site, is_in_contact).await;
    let events = hub.service.until("events of that time", |stored| {
        let first = stored.all_events().next()?;
        Some(first["observedAt"].as_str().unwrap().to_owned())
    });
    let at: chrono::DateTime<chrono::Utc> = events.await.parse().unwrap();
    let ahead = at.timestamp() - chrono::Utc::now().timestamp();
    assert!((ahead - 30 * DAY).abs() < 60, "{ahead}");
    assert_eq!(stop(&mut agent).await, Some(0));
}

/// The time in an answer is from when it was sent, and a slow network delivers it later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_network_does_not_change_the_times_of_events() {
    let (site, service) = (Site::new(10, 10), Service::start().await);
    service.change(|stored| stored.late_secs = 8);
    let began_at = chrono::Utc::now();
    let mut agent = site.claimed(&service).spawn().unwrap();
    let first = service.until("events", |stored| {
        let first = stored.all_events().next()?;
        Some(first["observedAt"].as_str().unwrap().to_owned())
    });
    let at: chrono::DateTime<chrono::Utc> = first.await.parse().unwrap();
    assert!(at >= began_at, "{at} is before {began_at}");
    assert_eq!(stop(&mut agent).await, Some(0));
}

/// A time that the certificate was not valid at is believed of nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_outside_of_the_certificate_is_not_learned() {
    let hub = Hub::new().await;
    for ahead_secs in [0, 90 * DAY] {
        hub.service.change(|stored| stored.ahead_secs = ahead_secs);
        let front = Front::valid(&hub, 29 * DAY, 60 * DAY).await;
        let mut agent = at(&hub, &front.url()).spawn().unwrap();
        let status = until_status(&hub.site, |status| !status["unreachable"].is_null()).await;
        let reason = status["unreachable"].as_str().unwrap();
        assert!(reason.contains("not valid yet"), "{reason}");
        assert_eq!(stop(&mut agent).await, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_certificate_is_refused_whatever_time_the_service_shows() {
    let hub = Hub::new().await;
    hub.service.change(|stored| stored.ahead_secs = -2 * DAY);
    let front = Front::valid(&hub, -30 * DAY, -DAY).await;
    let mut agent = at(&hub, &front.url()).spawn().unwrap();
    let status = until_status(&hub.site, |status| !status["unreachable"].is_null()).await;
    let reason = status["unreachable"].as_str().unwrap();
    assert!(reason.contains("expired"), "{reason}");
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_authorities_are_read_again() {
    let hub = Hub::new().await;
    let front = Front::start(&hub).await;
    let mut agent = at(&hub, &front.url());
    let ours = std::fs::read(hub.site.path("ca.pem")).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).unwrap();
    std::fs::write(hub.site.path("ca.pem"), other.cert.pem()).unwrap();
    let mut agent = agent.spawn().unwrap();
    until_status(&hub.site, |status| !status["unreachable"].is_null()).await;
    // In the midst of its update it is not a certificate: that changes nothing.
    std::fs::write(hub.site.path("ca.pem"), "-----BEGIN").unwrap();
    tokio::time::sleep(Duration::from_secs(11)).await;
    std::fs::write(hub.site.path("ca.pem"), ours).unwrap();
    // Files are looked at every 10 s, and the agent rests for up to 20 s between its attempts.
    until_status_within(Duration::from_secs(60), &hub.site, is_in_contact).await;
    assert_eq!(stop(&mut agent).await, Some(0));
}

/// A proxy that wants a password, and the targets that it was asked for.
async fn proxy() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let targets: Arc<Mutex<Vec<String>>> = Arc::default();
    let asked = targets.clone();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            tokio::spawn(tunnel(client, asked.clone()));
        }
    });
    (address, targets)
}

async fn tunnel(client: TcpStream, targets: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut client = BufReader::new(client);
    let (mut request, mut is_allowed) = (String::new(), false);
    client.read_line(&mut request).await.ok()?;
    loop {
        let mut line = String::new();
        client.read_line(&mut line).await.ok()?;
        // `user:secret` in base64.
        is_allowed |= line
            .trim()
            .to_ascii_lowercase()
            .starts_with("proxy-authorization: basic")
            && line.trim().ends_with("dXNlcjpzZWNyZXQ=");
        if line.trim().is_empty() {
            break;
        }
    }
    if !is_allowed {
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
        client.write_all(refusal.as_bytes()).await.ok()?;
        return None;
    }
    let target = request
        .strip_prefix("CONNECT ")?
        .split(' ')
        .next()?
        .to_owned();
    targets.lock().unwrap().push(target.clone());
    let mut server = TcpStream::connect(&target).await.ok()?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
    tokio::io::copy_bidirectional(&mut client, &mut server)
        .await
        .ok()?;
    Some(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_is_reached_through_the_proxy_alone() {
    let hub = Hub::new().await;
    let front = Front::start(&hub).await;
    let (proxy, targets) = proxy().await;
    let log = hub.site.path("log");
    let mut agent = at(&hub, &front.url());
    agent.env("HUB_AGENT_PROXY_URL", format!("http://user:secret@{proxy}"));
    agent.env_remove("NO_PROXY").env_remove("no_proxy");
    agent.stderr(std::fs::File::create(&log).unwrap());
    let mut agent = agent.spawn().unwrap();
    until_status(&hub.site, is_in_contact).await;
    assert_eq!(stop(&mut agent).await, Some(0));
    let (targets, shown) = (targets.lock().unwrap().clone(), front.connections());
    // One that takes too long to begin is given up.
    assert!(
        (1..=targets.len()).contains(&shown),
        "no connection passes it by: {shown} of {}",
        targets.len()
    );
    let host = format!("localhost:{}", front.port());
    assert!(targets.iter().all(|target| *target == host), "{targets:?}");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("secret"), "{log}");
}

#[tokio::test]
async fn a_proxy_url_that_is_none_is_refused_without_quoting_it() {
    let site = Site::new(1, 1);
    for url in [
        "socks5://user:hunter2@proxy:1080",
        "http://user:hunter2@proxy/path",
    ] {
        let mut agent = site.run_at("http://127.0.0.1:1");
        agent.env("HUB_AGENT_PROXY_URL", url);
        let output = output(agent).await;
        assert_eq!(output.status.code(), Some(3));
        let error = text(&output.stderr);
        assert!(
            error.contains("PROXY_URL") && !error.contains("hunter2"),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_a_state_directory_waits_for_one() {
    let hub = Hub::new().await;
    let state = hub.site.state();
    // What a broken disk leaves.
    std::fs::write(&state, "").unwrap();
    let mut agent = hub.run().spawn().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(agent.try_wait().unwrap().is_none(), "it waits");
    std::fs::remove_file(&state).unwrap();
    until_status(&hub.site, is_in_contact).await;
    assert_eq!(stop(&mut agent).await, Some(0));
}

/// A directory that can only be read, as long as it lives.
struct ReadOnly<'a>(&'a Path);

impl<'a> ReadOnly<'a> {
    /// `None` where this user may not mount it.
    fn mount(dir: &'a Path) -> Option<Self> {
        let mount = |arguments: &[&str]| {
            let mut mount = std::process::Command::new("mount");
            let done = mount.args(arguments).arg(dir).output();
            done.is_ok_and(|done| done.status.success())
        };
        let path = dir.to_str().unwrap();
        if mount(&["--bind", path]) {
            let mounted = Self(dir);
            if mount(&["-o", "remount,bind,ro"]) {
                return Some(mounted);
            }
        }
        assert!(
            std::env::var_os("HUB_TESTS_REQUIRE").is_none_or(|value| value != "1"),
            "nothing can be mounted"
        );
        eprintln!("skipped: a state directory that is read-only needs root, to mount it");
        None
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("--lazy")
            .arg(self.0)
            .status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_state_directory_is_explained_and_healed_by_a_remount() {
    let hub = Hub::new().await;
    let mut agent = hub.run().spawn().unwrap();
    until_status(&hub.site, is_in_contact).await;
    assert_eq!(stop(&mut agent).await, Some(0));
    let state = hub.site.state();
    let Some(read_only) = ReadOnly::mount(&state) else {
        return;
    };
    let mut agent = hub.run().spawn().unwrap();
    let said = hub.service.until("the reason", |stored| {
        let mut logs = stored.logs.iter();
        logs.find_map(|entry| entry["fields"]["reason"].as_str().map(str::to_owned))
    });
    assert!(said.await.contains("Read-only file system"));
    let status = output(hub.site.command("status")).await;
    let error = text(&status.stderr);
    assert!(
        status.status.code() == Some(1) && error.contains("cannot be written"),
        "{error}"
    );
    assert!(agent.try_wait().unwrap().is_none(), "it waits");
    drop(read_only);
    until_status_within(TEN_SECONDS * 2, &hub.site, is_in_contact).await;
    assert_eq!(stop(&mut agent).await, Some(0));
}
