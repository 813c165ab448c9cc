//! Checks the listening address and the TLS certificate that the service presents there.

use std::io::ErrorKind;
use std::net::TcpListener;

use hub_core::config::{Config, SecondFactorPolicy, TlsFiles};
use hub_protocol::Timestamp;
use hub_protocol::check::Finding;

use crate::http::serve::listen_advice;
use crate::http::tls;

/// A certificate that expires sooner is overdue for renewal.
const EXPIRES_SOON_SECS: i64 = 14 * 24 * 3600;

/// The danger of a listener without TLS.
pub const PLAIN_TEXT: &str = "passwords and tokens can cross the network in plain text";
pub const PLAIN_TEXT_FIX: &str =
    "set tls-cert and tls-key, or use TLS at a proxy and set public-url to its https:// address";

pub fn check(config: &Config, now: Timestamp) -> Vec<Finding> {
    let mut findings = vec![listen(config)];
    if config.is_exposed_in_plain_text() {
        findings.push(Finding::warn("TLS", PLAIN_TEXT, PLAIN_TEXT_FIX));
    }
    if config.metrics.listen.is_none() && !config.serves_metrics() {
        let finding = format!("/metrics is not served: others reach {}", config.listen);
        findings.push(Finding::warn(
            "metrics",
            finding,
            "set metrics-listen or metrics-token",
        ));
    }
    if config.builtin_login && config.second_factor == SecondFactorPolicy::Optional {
        findings.push(Finding::warn(
            "second factor",
            "platform administrators can log in with a password alone",
            "set second-factor = administrators",
        ));
    }
    findings.extend(config.tls.as_ref().map(|files| certificate(files, now)));
    findings
}

fn listen(config: &Config) -> Finding {
    let address = config.listen;
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok("listen", format!("{address} is free")),
        Err(error) => match (error.kind(), listen_advice(error.kind())) {
            (ErrorKind::AddrInUse, fix) => {
                Finding::warn("listen", format!("{address} is in use"), fix)
            }
            (_, fix) => Finding::fail("listen", format!("{address}: {error}"), fix),
        },
    }
}

fn certificate(files: &TlsFiles, now: Timestamp) -> Finding {
    let validity = match tls::own_validity(files) {
        Ok(validity) => validity,
        Err(error) => {
            let fix = "give two PEM files: tls-cert with the chain, own certificate first, and tls-key with its key";
            return Finding::fail("TLS", error, fix);
        }
    };
    let (from, until) = (validity.not_before, validity.not_after);
    let renew = "renew it, then restart the service";
    if now < from {
        let finding = format!("the certificate is not valid before {from}");
        Finding::fail(
            "TLS",
            finding,
            "check the clock of this machine, or install a certificate that is valid now",
        )
    } else if now > until {
        Finding::fail("TLS", format!("the certificate expired at {until}"), renew)
    } else if now.plus_secs(EXPIRES_SOON_SECS) > until {
        Finding::warn("TLS", format!("the certificate expires at {until}"), renew)
    } else {
        Finding::ok("TLS", format!("the certificate expires at {until}"))
    }
}
