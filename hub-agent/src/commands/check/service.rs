//! Whether the service can be reached: name, port, TLS, answer, and whether both clocks agree.
//! Sends no credentials.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hub_protocol::Timestamp;
use hub_protocol::check::{Finding, State};
use hub_protocol::envelope::{Data, Problem};
use reqwest::header::DATE;

use crate::ble;
use crate::clock::Clock;
use crate::cloud::{self, Unreached};
use crate::config::{self, ProxyUrl, ServiceArgs};
use crate::moved;

const CLOCKS_MAY_DIFFER_SECS: i64 = 60;
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// The service's own health.
#[derive(serde::Deserialize)]
struct Health {
    #[serde(rename = "status")]
    _status: String,
}

pub async fn check(args: &ServiceArgs, state_dir: &Path, clock: &Arc<Clock>) -> Vec<Finding> {
    if args.service_url.is_none() {
        let fix = "set service-url in /etc/hub-agent/config.toml, or use --service-url";
        return vec![Finding::warn(
            "service",
            "no service is configured, so it was not checked",
            fix,
        )];
    }
    let (url, client) = match config::service_url(args).and_then(|configured| {
        let url = moved::in_force(state_dir, configured).url;
        let client = cloud::http_client(args, &url, None, clock)?;
        Ok((url, client))
    }) {
        Ok(ready) => ready,
        Err(failure) => return vec![Finding::fail("service", failure, "correct the setting")],
    };
    let host_of = |text: &str| text.trim_matches(['[', ']']).to_owned();
    let host = host_of(url.host_str().unwrap_or_default());
    let port = url.port_or_known_default().unwrap_or(443);
    // The proxy finds the service's name and connects to it.
    let proxy = args.proxy_url.as_ref().and_then(ProxyUrl::host_and_port);
    let (first_host, first_port) = match &proxy {
        Some((host, port)) => (host_of(host), *port),
        None => (host.clone(), port),
    };
    if let Err(finding) = connect(&first_host, first_port, args.connect_timeout.0).await {
        return vec![finding];
    }
    let mut findings = Vec::new();
    if let Some((host, port)) = proxy {
        findings.push(Finding::ok("proxy", format!("{host} port {port} is used")));
    }
    if url.scheme() == "http" && !is_loopback(&host) {
        let fix = "use https:// unless the network to the service is private";
        findings.push(Finding::warn(
            "service",
            format!("{url} is not encrypted: tokens are sent in plain text"),
            fix,
        ));
    }
    // The second path is refused without credentials, in the service's format: a proxy may forward
    // only what hubs need.
    for path in ["healthz", "v1/test"] {
        let probe = url.join(path).unwrap_or(url.clone());
        let answer = match client
            .get(probe)
            .timeout(args.request_timeout.0)
            .send()
            .await
        {
            Ok(answer) => answer,
            Err(error) => {
                findings.push(failure(&url, &error));
                return findings;
            }
        };
        let status = answer.status();
        let date = answer
            .headers()
            .get(DATE)
            .and_then(|date| date.to_str().ok())
            .map(str::to_owned);
        let found = evaluate(&url, status.as_u16(), &start_of(answer).await);
        let is_last = path == "v1/test";
        if found.state == State::Ok || is_last {
            findings.push(found);
            findings.extend(date.and_then(|date| clocks(&date, ble::now())));
            break;
        }
    }
    findings
}

/// The start of an answer, as long as the service's own would be.
async fn start_of(mut answer: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < MAX_ANSWER_BYTES
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    body
}

/// Judges an answer: a login page answers 200 to anything, so only the service's format counts.
fn evaluate(url: &reqwest::Url, status: u16, body: &[u8]) -> Finding {
    let problem = serde_json::from_slice::<Problem>(body).ok();
    let fix = "check service-url, and that no proxy or login page is in between";
    match problem {
        Some(problem) if status >= 500 => Finding::warn(
            "service",
            format!(
                "{url} has a problem: {} [{status} {}]",
                problem.message, problem.code
            ),
            "try again later, then ask the service's operator",
        ),
        None if status >= 400 => Finding::warn(
            "service",
            format!("{url} answers, but with status {status}"),
            fix,
        ),
        None if serde_json::from_slice::<Data<Health>>(body).is_err() => Finding::fail(
            "service",
            format!("something other than the service answers at {url} (status {status})"),
            fix,
        ),
        _ => {
            let how = if url.scheme() == "https" {
                ", its certificate is valid"
            } else {
                ""
            };
            Finding::ok("service", format!("{url} answers{how}"))
        }
    }
}

/// Name and port first, each with its own error: the HTTP client's errors do not distinguish them
/// well.
async fn connect(host: &str, port: u16, timeout: Duration) -> Result<(), Finding> {
    let found = tokio::time::timeout(timeout, tokio::net::lookup_host((host, port))).await;
    let addresses: Vec<_> = match found {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => {
            let fix = "check the name, and this machine's DNS: resolvectl status, /etc/resolv.conf";
            return Err(Finding::fail(
                "service",
                format!("the name {host} is not found: {error}"),
                fix,
            ));
        }
        Err(_) => {
            let fix = "check the network (ip route) and the DNS server (/etc/resolv.conf)";
            return Err(Finding::fail(
                "service",
                format!("the DNS server does not answer for {host}"),
                fix,
            ));
        }
    };
    let (reason, fix) = match tokio::time::timeout(
        timeout,
        tokio::net::TcpStream::connect(addresses.as_slice()),
    )
    .await
    {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => (
            "nothing listens there".to_owned(),
            "check the port, and that the service is running",
        ),
        Ok(Err(error)) => (error.to_string(), "check the network (ip route)"),
        Err(_) => (
            "no answer".to_owned(),
            "check whether a firewall blocks this machine's connections to that port",
        ),
    };
    Err(Finding::fail(
        "service",
        format!("cannot connect to {host} port {port}: {reason}"),
        fix,
    ))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn failure(url: &reqwest::Url, error: &reqwest::Error) -> Finding {
    let Unreached { reason, fix } = Unreached::by(error);
    Finding::fail("service", format!("{url}: {reason}"), fix)
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
    async fn an_unknown_name_and_a_refused_port_have_their_own_findings() {
        let refused = connect("127.0.0.1", 1, Duration::from_secs(5))
            .await
            .unwrap_err();
        assert!(
            refused.finding.contains("nothing listens there"),
            "{refused:?}"
        );
        let unknown = connect("no-such-host.invalid", 443, Duration::from_secs(30))
            .await
            .unwrap_err();
        assert!(
            unknown.finding.contains("no-such-host.invalid"),
            "{unknown:?}"
        );
    }

    #[test]
    fn only_an_answer_in_the_service_format_counts() {
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
            assert_eq!(
                evaluate(&url, status, body.as_bytes()).state,
                state,
                "{status} {body}"
            );
        }
    }

    #[test]
    fn clocks_are_compared_by_the_date_header() {
        let date = "Sun, 01 Nov 2026 08:00:00 GMT";
        let now: Timestamp = "2026-11-01T08:00:30Z".parse().unwrap();
        assert_eq!(clocks(date, now).unwrap().state, State::Ok);
        let late = clocks(date, now.plus_secs(-3600)).unwrap();
        assert_eq!(
            (late.state, late.finding.as_str()),
            (State::Warn, "this machine is 3570 s behind the service")
        );
        assert!(clocks("yesterday", now).is_none());
    }
}
