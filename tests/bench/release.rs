//! *release*: uploads and downloads a file of 500 MiB. Measures how much the memory of the service
//! grows and how fast it is, compared with hashing the same bytes and writing them to a file, and
//! reading them back.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use hub_tests::release::{LargeFile, make_app, patient_client};
use hub_tests::{Backend, Call, Client, Maker, Recipe, SimulatedHub, Tenant};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::service::Service;

const FILE: LargeFile = LargeFile { mebibytes: 500 };
const WANTED_GROWTH: u64 = 16 << 20;

pub async fn run(backend: Backend) {
    let maker = Maker::new();
    let keys = maker.keys().display().to_string();
    let service = Service::start_with(backend, &["--release-keys", &keys]).await;
    let tenant = Tenant::create(&Client::new(&service.url)).await;
    let app_uuid = make_app(&tenant, "logger").await;
    let hub = SimulatedHub::claim(&tenant).await;
    let http = patient_client();
    let releases = format!("/tenant/apps/{app_uuid}/releases");
    let make = async |file: LargeFile, counter: u64| -> Value {
        let body = file.release(
            &maker,
            &Recipe::app("logger", &format!("1.0.{counter}"), counter),
        );
        tenant
            .client
            .post(&releases)
            .json(&body)
            .call()
            .await
            .expect(201)
            .data()
    };
    let url_in = |answer: &Value, member: &str| {
        format!("{}{}", service.url, answer[member].as_str().expect("a URL"))
    };
    let offer = async |made: &Value| -> Value {
        let path = format!(
            "/v1/apps/{}/manifest",
            made["releaseUuid"].as_str().expect("a uuid")
        );
        hub.client.get(&path).call().await.expect(200).data()
    };
    // A first one, so that what is made once is not counted.
    let small = LargeFile { mebibytes: 2 };
    let made = make(small, 1).await;
    small.upload(&http, &url_in(&made, "uploadUrl")).await;
    small
        .download(&http, &url_in(&offer(&made).await, "downloadUrl"))
        .await;

    let made = make(FILE, 2).await;
    let before = service.resident_bytes();
    let (up, grown_up) = watched(
        &service,
        before,
        FILE.upload(&http, &url_in(&made, "uploadUrl")),
    )
    .await;
    let url = url_in(&offer(&made).await, "downloadUrl");
    let (down, grown_down) = watched(&service, before, async {
        assert_eq!(FILE.download(&http, &url).await, FILE.sha256());
    })
    .await;
    let (raw_up, raw_down) = raw(service.dir.path());
    let rate = |time: Duration| f64::from(FILE.mebibytes) / time.as_secs_f64();
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "release {backend:?}: {} MiB up at {:.0} MiB/s (hashed and written: {:.0}), memory grew by {:.1} MiB; down at {:.0} MiB/s (read and hashed: {:.0}), \
         memory grew by {:.1} MiB (wanted: {:.0})",
        FILE.mebibytes,
        rate(up),
        rate(raw_up),
        mebibytes(grown_up),
        rate(down),
        rate(raw_down),
        mebibytes(grown_down),
        mebibytes(WANTED_GROWTH),
    );
    assert!(
        grown_up.max(grown_down) < WANTED_GROWTH,
        "the service's memory grew by more than it may"
    );
}

/// How long the work takes, and by how much the service's memory grows meanwhile.
async fn watched(
    service: &Service,
    before: u64,
    work: impl Future<Output = ()>,
) -> (Duration, u64) {
    let started_at = Instant::now();
    let mut work = std::pin::pin!(work);
    let mut peak = before;
    while tokio::time::timeout(Duration::from_millis(10), &mut work)
        .await
        .is_err()
    {
        peak = peak.max(service.resident_bytes());
    }
    (
        started_at.elapsed(),
        peak.max(service.resident_bytes()) - before,
    )
}

/// What hashing and the disk alone take, each way.
fn raw(dir: &std::path::Path) -> (Duration, Duration) {
    let path = dir.join("raw");
    let started_at = Instant::now();
    let mut digest = Sha256::new();
    let mut file = std::fs::File::create(&path).expect("a file");
    for part in FILE.parts() {
        digest.update(&part);
        file.write_all(&part).expect("space for the file");
    }
    file.sync_all().expect("a file on disk");
    let up = started_at.elapsed();
    let started_at = Instant::now();
    let mut file = std::fs::File::open(&path).expect("the file");
    let mut again = Sha256::new();
    let mut part = vec![0; 1 << 20];
    loop {
        let length = file.read(&mut part).expect("the file");
        if length == 0 {
            break;
        }
        again.update(&part[..length]);
    }
    assert_eq!(digest.finalize(), again.finalize());
    (up, started_at.elapsed())
}
