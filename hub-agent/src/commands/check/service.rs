//! Whether the service can be reached: name, port, TLS, answer, and whether both clocks agree. Sends no credentials.

use std::time::Duration;

use hub_protocol::Timestamp;
use hub_protocol::check::{Finding, State};
use hub_protocol::envelope::{Data, Problem};
use reqwest::header::DATE;

use crate::ble;
use crate::cloud;
use crate::config::{self, ServiceArgs};
use crate::error::chain;

const CLOCKS_MAY_DIFFER_SECS: i64 = 60;
const LONGEST_ANSWER_BYTES: usize = 64 << 10;

/// What the service says of itself.
#[derive(serde::Deserialize)]
struct Health {
    #[serde(rename = "status")]
    _status: String,
}

pub async fn check(args: &ServiceArgs) -> Vec<Finding> {
    if args.service_url.is_none() {
        let mend = "set service-url in /etc/hub-agent/config.toml, or give --service-url";
        return vec![Finding::warn("service", "no service is configured, so it was not tried", mend)];
    }
    let (url, client) = match config::service_url(args).and_then(|url| {
        let client = cloud::http_client(args, &url, None)?;
        Ok((url, client))
    }) {
        Ok(ready) => ready,
        Err(failure) => return vec![Finding::fail("service", failure, "correct the setting")],
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let timeout = args.connect_timeout.0;
    if let Err(finding) = connect(&host, port, timeout).await {
        return vec![finding];
    }
    let mut findings = Vec::new();
    if url.scheme() == "http" && !is_loopback(&host) {
        let mend = "use https:// unless the way to the service is private";
        findings.push(Finding::warn("service", format!("{url} is not encrypted: tokens travel in the clear"), mend));
    }
    // The second is refused without credentials, in the service's own form: a proxy may hand on no more than what hubs need.
    for path in ["healthz", "v1/test"] {
        let probe = url.join(path).unwrap_or(url.clone());
        let answer = match client.get(probe).timeout(args.request_timeout.0).send().await {
            Ok(answer) => answer,
            Err(error) => {
                findings.push(failure(&url, &error));
                return findings;
            }
        };
        let status = answer.status();
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let found = judge(&url, status.as_u16(), &start_of(answer).await);
        let is_last = path == "v1/test";
        if found.state == State::Ok || is_last {
            findings.push(found);
            findings.extend(date.and_then(|date| clocks(&date, ble::now())));
            break;
        }
    }
    findings
}

/// As much of an answer as the service's own would be long.
async fn start_of(mut answer: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < LONGEST_ANSWER_BYTES
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    body
}

/// Who answered: a login page says 200 to anything, so only the service's own form counts.
fn judge(url: &reqwest::Url, status: u16, body: &[u8]) -> Finding {
    let problem = serde_json::from_slice::<Problem>(body).ok();
    let mend = "is service-url right, and is no proxy or login page in between?";
    match problem {
        Some(problem) if status >= 500 => Finding::warn(
            "service",
            format!("{url} is in trouble: {} [{status} {}]", problem.message, problem.code),
            "try again later, then ask the service's operator",
        ),
        None if status >= 400 => Finding::warn("service", format!("{url} answers, but with status {status}"), mend),
        None if serde_json::from_slice::<Data<Health>>(body).is_err() => Finding::fail(
            "service",
            format!("{url} is answered by something else than the service (status {status})"),
            mend,
        ),
        _ => {
            let how = if url.scheme() == "https" { ", its certificate is good" } else { "" };
            Finding::ok("service", format!("{url} answers{how}"))
        }
    }
}

/// Name and port first, each with its own error: inside an HTTP client they are hard to tell apart.
async fn connect(host: &str, port: u16, timeout: Duration) -> Result<(), Finding> {
    let found = tokio::time::timeout(timeout, tokio::net::lookup_host((host, port))).await;
    let addresses: Vec<_> = match found {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => {
            let mend = "is the name right? Does this machine have DNS: resolvectl status, /etc/resolv.conf";
            return Err(Finding::fail("service", format!("the name {host} is not found: {error}"), mend));
        }
        Err(_) => {
            let mend = "is the network up (ip route), and its DNS server right (/etc/resolv.conf)?";
            return Err(Finding::fail("service", format!("no answer to who {host} is"), mend));
        }
    };
    let (reason, mend) = match tokio::time::timeout(timeout, tokio::net::TcpStream::connect(addresses.as_slice())).await
    {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            ("nothing listens there".to_owned(), "is the port right, and the service running?")
        }
        Ok(Err(error)) => (error.to_string(), "is the network up (ip route)?"),
        Err(_) => ("no answer".to_owned(), "does a firewall keep this machine from going out to that port?"),
    };
    Err(Finding::fail("service", format!("cannot connect to {host} port {port}: {reason}"), mend))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn failure(url: &reqwest::Url, error: &reqwest::Error) -> Finding {
    if let Some(rustls::Error::InvalidCertificate(reason)) = tls_error(error) {
        return Finding::fail(
            "service",
            format!("{url}: its certificate is refused: {reason}"),
            certificate_mend(reason),
        );
    }
    if let Some(reason) = tls_error(error) {
        let mend = "is the port one for https? Old proxies in between also break TLS";
        return Finding::fail("service", format!("{url}: TLS fails: {reason}"), mend);
    }
    if error.is_timeout() {
        let mend = "the service, or a proxy in between, is stuck: try again, then ask its operator";
        return Finding::fail("service", format!("{url} takes the connection and does not answer"), mend);
    }
    Finding::fail("service", format!("{url}: {}", chain(error)), "is service-url right?")
}

fn certificate_mend(reason: &rustls::CertificateError) -> &'static str {
    use rustls::CertificateError as Error;
    match reason {
        Error::Expired | Error::ExpiredContext { .. } | Error::NotValidYet | Error::NotValidYetContext { .. } => {
            "is this machine's clock right (above)? Else the service has to renew its certificate"
        }
        Error::UnknownIssuer => "update ca-certificates; a private authority's certificate goes into ca-file",
        Error::NotValidForName | Error::NotValidForNameContext { .. } => {
            "use the name that the certificate is for in service-url"
        }
        _ => "something between this machine and the service may be intercepting: ask the service's operator",
    }
}

/// The TLS library's own error, however deep it is wrapped.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // An I/O error hides what it was made of from `source`.
        let inner = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn clocks(date: &str, now: Timestamp) -> Option<Finding> {
    let theirs = chrono::DateTime::parse_from_rfc2822(date).ok()?.timestamp();
    let apart = now.as_secs() - theirs;
    Some(if apart.abs() > CLOCKS_MAY_DIFFER_SECS {
        let way = if apart < 0 { "behind" } else { "ahead of" };
        let finding = format!("this machine is {} s {way} the service", apart.abs());
        Finding::warn("clock", finding, "timedatectl set-ntp true")
    } else {
        Finding::ok("clock", "agrees with the service's")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_and_a_port_fail_each_in_its_own_words() {
        let refused = connect("127.0.0.1", 1, Duration::from_secs(5)).await.unwrap_err();
        assert!(refused.finding.contains("nothing listens there"), "{refused:?}");
        let unknown = connect("no-such-host.invalid", 443, Duration::from_secs(30)).await.unwrap_err();
        assert!(unknown.finding.contains("no-such-host.invalid"), "{unknown:?}");
    }

    #[test]
    fn only_the_service_s_own_form_is_its_answer() {
        let url = "https://hubs.example.com".parse().unwrap();
        let refused = r#"{"message": "No token.", "code": "TOKEN_MISSING", "requestId": "r"}"#;
        for (status, body, state) in [
            (200, r#"{"data": {"status": "ok"}}"#, State::Ok),
            (401, refused, State::Ok),
            (503, refused, State::Warn),
            (200, "<html>Please log in</html>", State::Fail),
            (204, "", State::Fail),
            (302, "", State::Fail),
            (502, "bad gateway", State::Warn),
        ] {
            assert_eq!(judge(&url, status, body.as_bytes()).state, state, "{status} {body}");
        }
    }

    #[test]
    fn clocks_are_compared_by_the_date_header() {
        let date = "Sun, 01 Nov 2026 08:00:00 GMT";
        let now: Timestamp = "2026-11-01T08:00:30Z".parse().unwrap();
        assert_eq!(clocks(date, now).unwrap().state, State::Ok);
        let late = clocks(date, now.plus_secs(-3600)).unwrap();
        assert_eq!((late.state, late.finding.as_str()), (State::Warn, "this machine is 3570 s behind the service"));
        assert!(clocks("yesterday", now).is_none());
    }

    #[test]
    fn a_tls_error_is_found_inside_an_io_error() {
        let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let wrapped = std::io::Error::other(std::io::Error::other(tls));
        assert!(matches!(
            tls_error(&wrapped),
            Some(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer))
        ));
        assert!(tls_error(&std::io::Error::other("x")).is_none());
    }
}
