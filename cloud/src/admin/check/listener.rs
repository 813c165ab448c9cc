//! Whether clients can come in: the address, and the certificate that is shown there.

use std::io::ErrorKind;
use std::net::TcpListener;

use hub_protocol::Timestamp;
use hub_protocol::check::Finding;

use crate::config::{Config, TlsFiles};
use crate::http::serve::listen_advice;
use crate::http::tls;

/// A certificate that ends sooner should have been replaced by now.
const ENDS_SOON_SECS: i64 = 14 * 24 * 3600;

pub fn check(config: &Config, now: Timestamp) -> Vec<Finding> {
    let mut findings = vec![listen(config)];
    findings.extend(config.tls.as_ref().map(|files| certificate(files, now)));
    findings
}

fn listen(config: &Config) -> Finding {
    let address = config.listen;
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok("listen", format!("{address} is free")),
        Err(error) => match (error.kind(), listen_advice(error.kind())) {
            (ErrorKind::AddrInUse, mend) => Finding::warn("listen", format!("{address} is taken"), mend),
            (_, mend) => Finding::fail("listen", format!("{address}: {error}"), mend),
        },
    }
}

fn certificate(files: &TlsFiles, now: Timestamp) -> Finding {
    let validity = match tls::own_validity(files) {
        Ok(validity) => validity,
        Err(error) => {
            return Finding::fail("TLS", error, "both files are PEM: the chain, own certificate first, and its key");
        }
    };
    let (from, until) = (validity.not_before, validity.not_after);
    let renew = "renew it, and restart the service";
    if now < from {
        Finding::fail("TLS", format!("the certificate is valid from {from} only"), "is this machine's clock right?")
    } else if now > until {
        Finding::fail("TLS", format!("the certificate ended at {until}"), renew)
    } else if now.plus_secs(ENDS_SOON_SECS) > until {
        Finding::warn("TLS", format!("the certificate ends at {until}"), renew)
    } else {
        Finding::ok("TLS", format!("the certificate ends at {until}"))
    }
}
