#![allow(
    clippy::unwrap_used,
    reason = "a test that meets what it does not expect fails"
)]

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::crypto::aws_lc_rs::default_provider;

use super::*;

const DAY_SECS: u64 = 86_400;
/// 2026-11-01.
const NOW_SECS: u64 = 1_793_491_200;

fn time(secs: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(secs))
}

/// As `openssl req -x509` makes it, valid for ten days.
fn self_signed() -> CertificateDer<'static> {
    let mut params = CertificateParams::new(vec!["broker.example".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let at = |secs: u64| time::OffsetDateTime::from_unix_timestamp(secs as i64).unwrap();
    params.not_before = at(NOW_SECS);
    params.not_after = at(NOW_SECS + 10 * DAY_SECS);
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().der().clone()
}

#[test]
fn a_given_certificate_is_trusted_for_its_name_and_its_time_alone() {
    let (given, other) = (self_signed(), self_signed());
    let trust = Trust::only(vec![given.clone()], Arc::new(default_provider())).unwrap();
    let verified = |shown: &CertificateDer<'_>, name: &'static str, secs: u64| {
        let name = ServerName::try_from(name).unwrap();
        trust
            .verify_server_cert(shown, &[], &name, &[], time(secs))
            .is_ok()
    };
    assert!(verified(&given, "broker.example", NOW_SECS + DAY_SECS));
    assert!(!verified(&given, "other.example", NOW_SECS + DAY_SECS));
    assert!(!verified(&given, "broker.example", NOW_SECS - 1));
    assert!(!verified(
        &given,
        "broker.example",
        NOW_SECS + 11 * DAY_SECS
    ));
    assert!(!verified(&other, "broker.example", NOW_SECS + DAY_SECS));
}

#[test]
fn a_changed_file_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ca.pem");
    let before = FilesNow::of_authorities(Some(&file));
    assert_eq!(FilesNow::of_authorities(Some(&file)), before);
    std::fs::write(&file, "1").unwrap();
    let written = FilesNow::of_authorities(Some(&file));
    assert_ne!(written, before);
    // As a package replaces it.
    std::fs::write(dir.path().join("new"), "2").unwrap();
    std::fs::rename(dir.path().join("new"), &file).unwrap();
    assert_ne!(FilesNow::of_authorities(Some(&file)), written);
}
