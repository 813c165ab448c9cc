//! Records as databases publish them, and records that nobody should.

use std::io::Write;

use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

use super::*;
use crate::versions::Ecosystem;

fn read_value(record: &Value) -> Advisory {
    read(record.to_string().as_bytes()).expect("a record")
}

fn fault_of(record: &Value) -> String {
    read(record.to_string().as_bytes())
        .expect_err("no record")
        .to_string()
}

fn with(member: &str, value: Value) -> Value {
    let mut record = json!({ "id": "X-1", "modified": "2024-05-01T00:00:00Z" });
    record[member] = value;
    record
}

fn debian() -> Value {
    json!({
        "schema_version": "1.7.3",
        "id": "DEBIAN-CVE-2024-6387",
        "upstream": ["CVE-2024-6387"],
        "details": "\nA race in sshd.\u{7}\nMore of it.",
        "modified": "2024-09-01T08:00:00.123Z",
        "published": "2024-07-01T13:15:06Z",
        "affected": [
            {
                "package": { "ecosystem": "Debian:11", "name": "openssh" },
                "ranges": [{ "type": "ECOSYSTEM", "events": [{ "introduced": "0" }] }],
                "versions": ["1:8.4p1-5", "1:8.4p1-5+deb11u3"],
                "ecosystem_specific": { "urgency": "not yet assigned" }
            },
            {
                "package": {
                    "ecosystem": "Debian:12",
                    "name": "openssh",
                    "purl": "pkg:deb/debian/openssh?arch=source"
                },
                "ranges": [{
                    "type": "ECOSYSTEM",
                    "events": [{ "introduced": "0" }, { "fixed": "1:9.2p1-2+deb12u3" }]
                }],
                "versions": ["1:9.2p1-2", "1:9.2p1-2+deb12u2"],
                "ecosystem_specific": { "urgency": "medium" }
            }
        ]
    })
}

fn github() -> Value {
    json!({
        "id": "GHSA-aaaa-bbbb-cccc",
        "aliases": ["CVE-2023-1234", "PYSEC-2023-1"],
        "summary": "  Requests of others are answered  ",
        "details": "### Impact",
        "modified": "2023-06-01T00:00:00Z",
        "withdrawn": "2023-07-01T00:00:00Z",
        "severity": [
            { "type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N" }
        ],
        "database_specific": { "severity": "CRITICAL", "cwe_ids": [] },
        "affected": [
            {
                "package": { "ecosystem": "PyPI", "name": "Some_Package" },
                "ranges": [
                    { "type": "GIT", "repo": "https://example.com", "events": [
                        { "introduced": "0" }, { "fixed": "6a1b3c" }
                    ] },
                    { "type": "ECOSYSTEM", "events": [
                        { "introduced": "2.0" }, { "fixed": "2.31.0" }
                    ] }
                ],
                "versions": ["1.0.dev1", "2.0.0", "2.30"]
            },
            {
                "package": { "ecosystem": "npm", "name": "only-commits" },
                "ranges": [{ "type": "GIT", "events": [{ "introduced": "0" }] }]
            },
            { "ranges": [{ "type": "GIT", "events": [{ "introduced": "0" }] }] }
        ]
    })
}

#[test]
fn a_record_of_debian_is_read() {
    let advisory = read_value(&debian());
    assert_eq!(advisory.vulnerability_id(), "CVE-2024-6387");
    assert_eq!(advisory.title, "A race in sshd.");
    assert_eq!(advisory.severity, Severity::Medium);
    assert_eq!(advisory.score, None);
    assert_eq!(advisory.published.as_deref(), Some("2024-07-01T13:15:06Z"));
    assert!(!advisory.withdrawn);
    let [unfixed, fixed] = advisory.affected.as_slice() else {
        panic!("two packages");
    };
    assert_eq!(unfixed.ecosystem, "Debian:11");
    assert_eq!(
        unfixed.ranges.judge(Ecosystem::Debian, "0~git1"),
        Verdict::Affected { fixed_in: None }
    );
    assert_eq!(
        fixed.ranges.judge(Ecosystem::Debian, "1:9.2p1-2+deb12u2"),
        Verdict::Affected {
            fixed_in: Some("1:9.2p1-2+deb12u3".to_owned())
        }
    );
    assert_eq!(
        fixed.ranges.judge(Ecosystem::Debian, "1:9.2p1-2+deb12u3"),
        Verdict::NotAffected
    );
    // Without the versions that the range has anyway.
    assert_eq!(
        serde_json::to_value(&fixed.ranges).expect("JSON"),
        json!({ "ranges": [[{ "introduced": "0" }, { "fixed": "1:9.2p1-2+deb12u3" }]] })
    );
}

#[test]
fn a_record_of_github_is_read() {
    let advisory = read_value(&github());
    assert_eq!(advisory.vulnerability_id(), "CVE-2023-1234");
    assert_eq!(advisory.title, "Requests of others are answered");
    assert_eq!(advisory.severity, Severity::Medium);
    assert_eq!(advisory.score, Some(6.1));
    assert!(advisory.withdrawn);
    let [package] = advisory.affected.as_slice() else {
        panic!("packages without versions are left out");
    };
    assert_eq!(package.package, "some-package");
    for (version, is_affected) in [("1.0.dev1", true), ("1.9", false), ("2.0", true)] {
        let verdict = package.ranges.judge(Ecosystem::PyPi, version);
        let fixed_in = Some("2.31.0".to_owned());
        let expected = match is_affected {
            true => Verdict::Affected { fixed_in },
            false => Verdict::NotAffected,
        };
        assert_eq!(verdict, expected, "{version}");
    }
    let json = serde_json::to_string(&package.ranges).expect("JSON");
    let same: Ranges = serde_json::from_str(&json).expect("ranges");
    assert_eq!(same, package.ranges);
}

#[test]
fn the_best_known_severity_counts() {
    let v3 = json!({ "type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H" });
    let v4 = json!({
        "type": "CVSS_V4",
        "score": "CVSS:4.0/AV:L/AC:L/AT:P/PR:L/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N"
    });
    let wrong = json!({ "type": "CVSS_V4", "score": "CVSS:4.0/none" });
    let package = |member: &str, value: &Value| json!([{ member: value }]);
    for (record, expected) in [
        (
            with("severity", json!([v3, v4])),
            (Severity::High, Some(7.3)),
        ),
        (
            with("severity", json!([v4, v3])),
            (Severity::High, Some(7.3)),
        ),
        (
            with("severity", json!([wrong, v3])),
            (Severity::Critical, Some(9.8)),
        ),
        (
            with("affected", package("severity", &json!([v4]))),
            (Severity::High, Some(7.3)),
        ),
        (
            with(
                "affected",
                package("ecosystem_specific", &json!({ "urgency": "low*" })),
            ),
            (Severity::Low, None),
        ),
        (
            with(
                "affected",
                package("database_specific", &json!({ "severity": "HIGH" })),
            ),
            (Severity::High, None),
        ),
        (
            with("database_specific", json!({ "severity": "MODERATE" })),
            (Severity::Medium, None),
        ),
        (
            with("database_specific", json!({ "severity": [1] })),
            (Severity::Unknown, None),
        ),
        (
            with("database_specific", json!(["x"])),
            (Severity::Unknown, None),
        ),
        (with("severity", Value::Null), (Severity::Unknown, None)),
    ] {
        let advisory = read_value(&record);
        assert_eq!((advisory.severity, advisory.score), expected, "{record}");
    }
}

#[test]
fn the_cve_is_found_where_there_is_one() {
    for (id, aliases, expected) in [
        ("CVE-2024-1", vec![], "CVE-2024-1"),
        (
            "UBUNTU-CVE-2024-12345",
            vec!["CVE-2024-2"],
            "CVE-2024-12345",
        ),
        ("GHSA-1", vec!["RUSTSEC-1", "CVE-2024-2"], "CVE-2024-2"),
        (
            "DSA-1-1",
            vec!["CVE-2024-1", "DEBIAN-CVE-2024-1"],
            "CVE-2024-1",
        ),
        ("DSA-1-1", vec!["CVE-2024-1", "CVE-2024-2"], "DSA-1-1"),
        ("XCVE-2024-1", vec![], "XCVE-2024-1"),
        ("CVE-24-1", vec!["CVE-2024-", "CVE-2024-1x"], "CVE-24-1"),
    ] {
        let mut record = with("id", json!(id));
        record["aliases"] = json!(aliases);
        assert_eq!(read_value(&record).vulnerability_id(), expected);
    }
}

#[test]
fn what_is_no_record_is_refused_by_field() {
    let range = |events: Value| {
        with(
            "affected",
            json!([{ "ranges": [{ "type": "SEMVER", "events": events }] }]),
        )
    };
    for (record, expected) in [
        (json!({ "id": "X-1" }), "missing field `modified`"),
        (with("id", json!("")), "id: is empty"),
        (
            with("id", json!("a\nb")),
            "id: contains a control character",
        ),
        (
            with("id", json!("x".repeat(201))),
            "id: longer than 200 characters",
        ),
        (with("modified", json!("yesterday")), "modified: is no time"),
        (
            with("published", json!("2024-01-01")),
            "published: is no time",
        ),
        (
            with("aliases", json!("X")),
            "aliases: invalid type: string \"X\", expected a list",
        ),
        (
            with("aliases", json!(vec!["X"; 1_001])),
            "aliases: more than 1000 elements",
        ),
        (
            with("affected", json!([{ "versions": [1] }])),
            "affected[0].versions[0]: ",
        ),
        (
            range(json!([{ "fixed": 1 }])),
            "affected[0].ranges[0].events[0].fixed: ",
        ),
        (
            range(json!(vec![json!({ "fixed": "1" }); 2_001])),
            "affected[0].ranges: element 0: more than 2000",
        ),
        (
            with("affected", json!([{ "package": {} }])),
            "affected[0].package: missing field `eco",
        ),
        (json!([]), "invalid"),
    ] {
        let fault = fault_of(&record);
        assert!(fault.starts_with(expected), "{fault}");
    }
    for text in [
        "",
        "{",
        "nonsense",
        "{\"id\":\"X\",\"modified\":\"2024-05-01T00:00:00Z\"} x",
    ] {
        assert!(read(text.as_bytes()).is_err(), "{text}");
    }
    let deep = format!("{{\"id\":{}", "[".repeat(100_000));
    assert!(read(deep.as_bytes()).is_err());
    let long = fault_of(&with("aliases", json!("x".repeat(10_000))));
    assert!(long.len() < 400, "{long}");
    let large = vec![b' '; 16 * 1024 * 1024 + 1];
    let fault = read(&large).expect_err("too large").to_string();
    assert_eq!(fault, "the record is longer than 16 MiB");
}

#[test]
fn any_cut_and_any_changed_byte_of_a_record_is_read_or_refused() {
    let json = github().to_string().into_bytes();
    for end in 0..json.len() {
        assert!(read(&json[..end]).is_err());
    }
    for at in 0..json.len() {
        for byte in [b'"', b'{', b'0', b',', 0, 0xff] {
            let mut changed = json.clone();
            changed[at] = byte;
            let _ = read(&changed);
        }
    }
}

fn archive_of(entries: &[(&str, &[u8])]) -> std::fs::File {
    let mut file = tempfile::tempfile().expect("a file");
    let mut zip = zip::ZipWriter::new(&mut file);
    for (name, bytes) in entries {
        zip.start_file(*name, SimpleFileOptions::default())
            .expect("an entry");
        zip.write_all(bytes).expect("an entry");
    }
    zip.finish().expect("an archive");
    file
}

#[test]
fn an_archive_is_read_entry_by_entry() {
    let record = debian().to_string();
    let mut archive = Archive::open(archive_of(&[
        ("DEBIAN-CVE-2024-6387.json", record.as_bytes()),
        ("README.txt", b"records"),
        ("broken.json", b"{}"),
        ("folder.json/", b""),
        ("large.json", &vec![b' '; 16 * 1024 * 1024 + 1]),
    ]))
    .expect("an archive");
    assert_eq!(archive.len(), 5);
    let advisory = archive.read(0).expect("a record").expect("a record");
    assert_eq!(advisory, read_value(&debian()));
    assert_eq!(archive.read(1), Ok(None));
    let fault = archive.read(2).expect_err("broken").to_string();
    assert!(
        fault.starts_with("broken.json: missing field `id`"),
        "{fault}"
    );
    assert_eq!(archive.read(3), Ok(None));
    let fault = archive.read(4).expect_err("too large").to_string();
    assert_eq!(fault, "large.json: the record is longer than 16 MiB");
    assert!(archive.read(5).is_err());
    assert_eq!(archive.read(0), Ok(Some(advisory)));
}

#[test]
fn a_cut_archive_is_none() {
    let record = debian().to_string();
    let entries = [("a.json", record.as_bytes()), ("b.json", record.as_bytes())];
    let length = archive_of(&entries).metadata().expect("a length").len();
    for end in 0..length {
        let file = archive_of(&entries);
        file.set_len(end).expect("a shorter file");
        let fault = Archive::open(file)
            .err()
            .expect("a cut archive")
            .to_string();
        assert!(fault.starts_with("the archive: "), "{fault}");
    }
}
