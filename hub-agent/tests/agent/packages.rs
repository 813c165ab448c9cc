//! The agent reports the software of its hub: the hash first, the list where it is wanted, and
//! nothing while nothing has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::digest;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use hub_protocol::packages::{PackageList, SoftwareReport};
use serde_json::json;
use tokio::process::Command;

use super::helper::FakeHelper;
use super::service::{HUB, Service, Shared, Stored, authorized, problem, unpack};
use super::{Site, kill, output, stop};

/// How long a report that must not come is waited for: several looks at the files, and the same
/// after the time that an agent waits at its start.
const LOOKS: Duration = Duration::from_millis(1_500);
const START: Duration = Duration::from_millis(5_000);

/// The reports of software that arrived.
#[derive(Default)]
pub struct Software {
    pub reports: Vec<(Instant, SoftwareReport)>,
    /// The hashes of the lists that are known.
    lists: BTreeSet<String>,
    /// The status of the answers, if not success, and their `Retry-After`.
    fails_with: Option<(u16, u64)>,
    /// Reports with a list get a 503.
    refuses_lists: bool,
}

pub fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/v1/hubs/{hub}/packages", post(report))
}

async fn report(
    State(shared): State<Arc<Shared>>,
    Path(hub): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    assert_eq!(hub, HUB);
    assert_eq!(headers[header::CONTENT_ENCODING], "zstd");
    let report: SoftwareReport = serde_json::from_slice(&unpack(&headers, &body)).unwrap();
    let mut stored = shared.stored.lock().unwrap();
    if !authorized(&stored, &headers) {
        return problem(401, "TOKEN_INVALID");
    }
    let software = &mut stored.software;
    software.reports.push((Instant::now(), report.clone()));
    let is_refused = software.refuses_lists && report.package_list.is_some();
    let fails_with = software.fails_with.or(is_refused.then_some((503, 0)));
    let answer = match fails_with {
        Some((status, retry_after)) => {
            let retry_after = [(header::RETRY_AFTER, retry_after.to_string())];
            (retry_after, problem(status, "NOT_TAKEN")).into_response()
        }
        None => {
            let hash = report.packages_sha256;
            if let Some(list) = report.package_list {
                let digest = digest::digest(&digest::SHA256, &list.canonical());
                assert_eq!(hash, hex::encode(digest));
                software.lists.insert(hash.clone());
            }
            let wanted = !software.lists.contains(&hash);
            let answer = json!({"data": {"packageListWanted": wanted}});
            (StatusCode::OK, Json(answer)).into_response()
        }
    };
    drop(stored);
    shared.changed.notify_waiters();
    answer
}

/// A hub with a system of its own.
struct Hub {
    site: Site,
    service: Service,
}

impl Hub {
    async fn new() -> Self {
        Self::at(Site::new(10, 10)).await
    }

    async fn at(site: Site) -> Self {
        let hub = Self {
            site,
            service: Service::start().await,
        };
        for folder in ["etc", "var/lib/dpkg"] {
            std::fs::create_dir_all(hub.root().join(folder)).unwrap();
        }
        let release = "ID=debian\nVERSION_ID=\"12\"\n";
        std::fs::write(hub.root().join("etc/os-release"), release).unwrap();
        hub.install("1.0");
        hub
    }

    fn root(&self) -> PathBuf {
        self.site.path("root")
    }

    /// Another version of a package, written as dpkg does.
    fn install(&self, version: &str) {
        let status = format!(
            "Package: bluez\nStatus: install ok installed\nArchitecture: arm64\nVersion: 5.66-1\n\n\
             Package: app\nStatus: install ok installed\nVersion: {version}\n"
        );
        let folder = self.root().join("var/lib/dpkg");
        std::fs::write(folder.join("status-new"), status).unwrap();
        std::fs::rename(folder.join("status-new"), folder.join("status")).unwrap();
    }

    fn agent(&self) -> Command {
        let mut agent = self.site.claimed(&self.service);
        agent.args(["--software-every", "200ms", "--software-root"]);
        agent.arg(self.root());
        agent
    }

    fn fail_with(&self, failure: Option<(u16, u64)>) {
        self.service
            .change(|stored| stored.software.fails_with = failure);
    }

    /// Waits for so many reports in all. Returns the last.
    async fn report(&self, count: usize) -> SoftwareReport {
        let look = |stored: &Stored| {
            let (_, report) = stored.software.reports.get(count - 1)?;
            Some(report.clone())
        };
        self.service.until("a report of software", look).await
    }

    /// There are so many reports in all, and no more come.
    async fn stays_at(&self, count: usize, time: Duration) {
        tokio::time::sleep(time).await;
        self.service
            .change(|stored| assert_eq!(stored.software.reports.len(), count));
    }
}

fn versions(list: Option<PackageList>) -> Vec<String> {
    let packages = list.expect("the list").packages.into_iter();
    packages
        .map(|package| format!("{} {}", package.name, package.version))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_software_is_reported_when_it_changes_and_only_then() {
    let hub = Hub::new().await;
    let mut agent = hub.agent().spawn().unwrap();
    let first = hub.report(1).await;
    assert_eq!(first.package_list, None, "the service may know the list");
    assert_eq!(first.bluez.as_deref(), Some("5.66-1"));
    assert_eq!(first.agent, "0.1.0");
    assert!(first.kernel.is_some());
    let whole = hub.report(2).await;
    assert_eq!(whole.packages_sha256, first.packages_sha256);
    let list = whole.package_list.clone().unwrap();
    assert_eq!(
        (
            list.distribution.as_str(),
            list.distribution_version.as_str()
        ),
        ("debian", "12")
    );
    assert_eq!(versions(whole.package_list), ["app 1.0", "bluez 5.66-1"]);
    hub.stays_at(2, LOOKS).await;

    hub.install("1.1");
    assert_ne!(hub.report(3).await.packages_sha256, first.packages_sha256);
    let whole = hub.report(4).await;
    assert_eq!(versions(whole.package_list), ["app 1.1", "bluez 5.66-1"]);
    hub.install("1.0");
    assert_eq!(hub.report(5).await, first, "its list is known");
    // An agent that ends before it has the answer on disk reports once more.
    hub.stays_at(5, LOOKS).await;
    assert_eq!(stop(&mut agent).await, Some(0));

    let mut agent = hub.agent().spawn().unwrap();
    hub.stays_at(5, START).await;
    assert_eq!(stop(&mut agent).await, Some(0));
    hub.install("1.2");
    let mut agent = hub.agent().spawn().unwrap();
    let whole = hub.report(7).await;
    assert_eq!(versions(whole.package_list), ["app 1.2", "bluez 5.66-1"]);

    // Another owner knows nothing of this hub.
    hub.service
        .change(|stored| stored.give_away("3333-3333-3333-3333"));
    let mut claim = hub.site.command("claim");
    claim.args(["--code", "3333-3333-3333-3333"]);
    assert_eq!(output(claim).await.status.code(), Some(0));
    assert_eq!(hub.report(8).await.package_list, None);
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_firmware_of_adapters_is_reported_once_the_helper_knows_it() {
    // The adapter is there for half a minute.
    let hub = Hub::at(Site::new(3_000, 10)).await;
    let helper = FakeHelper::start(hub.site.dir.path(), hub.site.state());
    let mut agent = hub.agent();
    agent.arg("--helper-socket").arg(&helper.socket);
    let mut agent = agent.spawn().unwrap();
    // The helper does not answer, which delays nothing else.
    assert_eq!(hub.report(2).await.adapter_firmware, BTreeMap::new());
    hub.stays_at(2, LOOKS).await;

    let text = "HCI 11, revision 0x1d86, manufacturer 0x000a";
    let firmware = [("replay", text), ("hci7", "of no adapter of BlueZ")];
    let firmware = firmware.map(|(name, text)| (name.to_owned(), text.to_owned()));
    helper.inspect(|state| state.firmware = Some(firmware.into()));
    let report = hub.report(3).await;
    let texts: Vec<&String> = report.adapter_firmware.values().collect();
    assert_eq!(texts, [text]);
    hub.stays_at(3, LOOKS).await;
    // It is not asked again while the adapters are the same.
    helper.inspect(|state| state.firmware = Some(BTreeMap::new()));
    hub.stays_at(3, LOOKS).await;
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_outlives_outages_and_kills() {
    let hub = Hub::new().await;
    hub.fail_with(Some((429, 2)));
    let mut agent = hub.agent().spawn().unwrap();
    hub.report(2).await;
    hub.service.change(|stored| {
        let [(first, _), (second, _)] = &stored.software.reports[..] else {
            panic!("two reports")
        };
        let between = second.duration_since(*first);
        assert!(between >= Duration::from_secs(2), "{between:?}");
        stored.software.fails_with = Some((503, 0));
    });
    hub.report(3).await;
    kill(&agent, rustix::process::Signal::KILL);
    agent.wait().await.unwrap();

    // The hash arrives, the list does not.
    hub.service.change(|stored| {
        stored.software = Software {
            refuses_lists: true,
            ..Software::default()
        };
    });
    let mut agent = hub.agent().spawn().unwrap();
    assert!(hub.report(2).await.package_list.is_some());
    kill(&agent, rustix::process::Signal::KILL);
    agent.wait().await.unwrap();
    hub.service
        .change(|stored| stored.software = Software::default());
    let mut agent = hub.agent().spawn().unwrap();
    assert_eq!(hub.report(1).await.package_list, None);
    let whole = hub.report(2).await;
    assert_eq!(versions(whole.package_list), ["app 1.0", "bluez 5.66-1"]);
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_takes_no_report_is_left_alone() {
    let hub = Hub::new().await;
    for (status, reports) in [(404, 1), (400, 2), (413, 2)] {
        hub.service
            .change(|stored| stored.software = Software::default());
        hub.fail_with(Some((status, 0)));
        hub.install("1.0");
        let log = std::fs::File::create(hub.site.path("log")).unwrap();
        let mut agent = hub.agent().stderr(log).spawn().unwrap();
        hub.report(1).await;
        hub.stays_at(1, LOOKS).await;
        // What is refused may be accepted once it has changed; an older service takes nothing.
        hub.install("1.1");
        hub.stays_at(reports, LOOKS).await;
        assert_eq!(stop(&mut agent).await, Some(0));
        let log = std::fs::read_to_string(hub.site.path("log")).unwrap();
        let refused = "refuses the report of this hub's software";
        let count = if status == 404 { 0 } else { reports };
        assert_eq!(log.matches(refused).count(), count, "{log}");
        assert_eq!(log.matches("It is NOT_TAKEN").count(), count, "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_reports_no_software() {
    let hub = Hub::new().await;
    let mut agent = hub.site.claimed(&hub.service).spawn().unwrap();
    hub.stays_at(0, START).await;
    hub.service
        .change(|stored| assert!(!stored.telemetry.is_empty(), "the agent is in contact"));
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_lost_a_list_gets_it_again() {
    let hub = Hub::new().await;
    let mut agent = hub.site.claimed(&hub.service);
    agent.args(["--software-every", "20ms", "--software-root"]);
    agent.arg(hub.root());
    let mut agent = agent.spawn().unwrap();
    let whole = hub.report(2).await;
    assert!(whole.package_list.is_some());
    // The service is restored from an older backup.
    hub.service.change(|stored| stored.software.lists.clear());
    let repeated = hub.report(3).await;
    assert_eq!(repeated.package_list, None);
    assert_eq!(hub.report(4).await, whole);
    assert_eq!(stop(&mut agent).await, Some(0));
}
