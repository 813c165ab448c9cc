//! *feeds*: brings in an export of OSV of the size of Debian's, beside reading the same archive.
//! Measures the time and the memory of the import, and what a fleet uploads meanwhile, beside the
//! same without.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hub_tests::Backend;
use hub_tests::process::program;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::fleet::{Fleet, recorded_events};
use crate::ingest::load;
use crate::service::Service;
use crate::wire::UploadRequest;

/// Debian's export has about so many records, most of them of three or four releases.
const RECORDS: usize = 60_000;
const RELEASES: [&str; 4] = ["Debian:11", "Debian:12", "Debian:13", "Debian:14"];
/// Versions that a record lists of each release.
const VERSIONS: usize = 20;
/// Source packages that have advisories.
const PACKAGES: usize = 4_000;
const WANTED_TIME: Duration = Duration::from_secs(600);
const WANTED_BYTES: u64 = 500 << 20;
const WANTED_RATIO: f64 = 0.9;
const TENANTS: usize = 20;
const HUBS: usize = 200;
const EVENTS_PER_UPLOAD: usize = 50;
const IN_FLIGHT: usize = 64;
const ROUND_TIME: Duration = Duration::from_secs(8);

pub async fn run(backend: Backend) {
    let service = Service::start(backend).await;
    let folder = tempfile::tempdir().expect("a directory");
    let [first, second] = [1, 2].map(|day| {
        let path = folder.path().join(format!("{day}.zip"));
        let bytes = write(&path, day);
        (path, bytes)
    });
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let raw = raw(&first.0);
    let (time, peak_bytes) = Import::start(&service, &first.0).finish();
    println!(
        "feeds {backend:?}: {RECORDS} records, {:.0} MiB of JSON: brought in within {:.0?} (wanted: {WANTED_TIME:.0?}), \
         {:.1} times as long as reading them alone ({raw:.1?}); {:.0} MiB of memory at most (wanted: {:.0})",
        mib(first.1),
        time,
        time.as_secs_f64() / raw.as_secs_f64(),
        mib(peak_bytes),
        mib(WANTED_BYTES),
    );

    let fleet = Fleet::claim(&service, TENANTS, HUBS).await;
    let events = recorded_events();
    let requests: Vec<UploadRequest> = fleet
        .hubs
        .iter()
        .zip(events.chunks_exact(EVENTS_PER_UPLOAD).cycle())
        .map(|(hub, batch)| {
            UploadRequest::new(&hub.access_token, &format!("[{}]", batch.join(",")))
        })
        .collect();
    let alone = load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
    // Every record is newer than what is there.
    let import = Import::start(&service, &second.0);
    let beside = load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
    let was_running = import.is_running();
    let (time, _) = import.finish();
    println!(
        "feeds {backend:?}: {:.0} uploads/s alone (p99 {:.1} ms), {:.0} beside an import (p99 {:.1} ms); ratio {:.2} \
         (wanted: {WANTED_RATIO}); the import took {time:.0?}{}",
        alone.uploads_per_sec,
        alone.percentile_ms(99),
        beside.uploads_per_sec,
        beside.percentile_ms(99),
        beside.uploads_per_sec / alone.uploads_per_sec,
        if was_running {
            ""
        } else {
            ", and ended before the uploads"
        },
    );
}

/// Writes an archive of records that were changed on a day. Returns how much JSON it has.
fn write(path: &Path, day: u32) -> u64 {
    let mut archive = ZipWriter::new(File::create(path).expect("a file"));
    let mut bytes = 0;
    for number in 0..RECORDS {
        let text = record(number, day).to_string();
        let name = format!("DEBIAN-CVE-2024-{number:05}.json");
        archive
            .start_file(name, SimpleFileOptions::default())
            .expect("an entry");
        archive.write_all(text.as_bytes()).expect("space");
        bytes += text.len() as u64;
    }
    archive.finish().expect("an archive");
    bytes
}

fn record(number: usize, day: u32) -> Value {
    let package = format!("package-{}", number % PACKAGES);
    let affected = RELEASES.iter().enumerate().map(|(release, ecosystem)| {
        let versions: Vec<String> = (0..VERSIONS)
            .map(|patch| format!("{release}.{patch}.{}-1+deb{}u1", number % 90, release + 11))
            .collect();
        let mut events = vec![json!({"introduced": "0"})];
        if !number.is_multiple_of(3) {
            events.push(json!({"fixed": format!("{release}.{VERSIONS}.{}-1", number % 90)}));
        }
        json!({
            "package": {"ecosystem": ecosystem, "name": package, "purl": format!("pkg:deb/debian/{package}?arch=source")},
            "ranges": [{"type": "ECOSYSTEM", "events": events}],
            "versions": versions,
            "ecosystem_specific": {"urgency": "not yet assigned"},
        })
    });
    let details =
        "A remote attacker can have the program read past the end of a buffer. ".repeat(6);
    json!({
        "id": format!("DEBIAN-CVE-2024-{number:05}"),
        "upstream": [format!("CVE-2024-{number:05}")],
        "details": details,
        "modified": format!("2026-01-{day:02}T00:00:00Z"),
        "published": "2024-06-01T00:00:00Z",
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
        "affected": affected.collect::<Vec<Value>>(),
        "schema_version": "1.7.0",
    })
}

/// The time to unpack every record of the archive and to parse it as JSON.
fn raw(path: &Path) -> Duration {
    let began = Instant::now();
    let mut archive = ZipArchive::new(File::open(path).expect("the archive")).expect("an archive");
    let mut text = Vec::new();
    for index in 0..archive.len() {
        text.clear();
        let mut entry = archive.by_index(index).expect("an entry");
        entry.read_to_end(&mut text).expect("its text");
        serde_json::from_slice::<Value>(&text).expect("JSON");
    }
    began.elapsed()
}

/// `hub-cloud vulnerabilities import`, in a process of its own.
struct Import {
    process: Child,
    began: Instant,
    archive: PathBuf,
}

impl Import {
    fn start(service: &Service, archive: &Path) -> Self {
        let mut command = Command::new(program("hub-cloud"));
        command
            .args(["vulnerabilities", "import"])
            .arg(archive)
            .arg("--data-dir")
            .arg(service.dir.path())
            .stdout(Stdio::null());
        if let Some(database) = &service.database {
            command.args(["--database-url", &database.url]);
        }
        Self {
            began: Instant::now(),
            process: command.spawn().expect("hub-cloud"),
            archive: archive.to_owned(),
        }
    }

    fn peak_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib << 10)
    }

    fn is_running(&self) -> bool {
        self.peak_bytes().is_some()
    }

    /// Waits for its end. Returns how long it took, and the most memory that it had.
    fn finish(mut self) -> (Duration, u64) {
        let mut peak_bytes = 0;
        loop {
            peak_bytes = self.peak_bytes().unwrap_or(0).max(peak_bytes);
            if let Some(status) = self.process.try_wait().expect("the import") {
                assert!(
                    status.success(),
                    "the import of {} failed",
                    self.archive.display()
                );
                return (self.began.elapsed(), peak_bytes);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
