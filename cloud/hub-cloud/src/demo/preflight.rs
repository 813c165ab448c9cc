//! What would keep the demo from working, found before it starts anything.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use tokio::net::TcpStream;

use super::{Failure, Options, agent};
use crate::http::serve::listen_advice;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The remedy of each check of `hub-agent check` that Bluetooth depends on.
const BLUETOOTH: [(&str, &str); 4] = [
    (
        "D-Bus",
        "the system bus (D-Bus) does not run: install and start it (Debian: apt-get install dbus bluez)",
    ),
    (
        "bluetoothd",
        "bluetoothd does not run, or does not answer this user: start it (systemctl enable --now bluetooth)",
    ),
    (
        "adapter",
        "this machine has no Bluetooth adapter that can be used: plug one in",
    ),
    (
        "rfkill",
        "Bluetooth is switched off: turn it on (rfkill unblock bluetooth)",
    ),
];

/// What `hub-agent check --json` prints.
#[derive(Deserialize)]
struct Report {
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    check: String,
    state: String,
}

/// Fails with what is wrong and what to do about it.
pub async fn check(listen: SocketAddr, options: &Options, program: &Path) -> Result<(), Failure> {
    require_free(listen)?;
    if let Some(receiver) = &options.send_to {
        require_answer(receiver).await?;
    }
    match options.bluez {
        true => require_bluetooth(program).await,
        false => Ok(()),
    }
}

fn require_free(listen: SocketAddr) -> Result<(), Failure> {
    let Err(error) = TcpListener::bind(listen) else {
        return Ok(());
    };
    let problem = match error.kind() {
        ErrorKind::AddrInUse => format!(
            "another program listens on {listen}: stop it, or choose another address, such as \
             --listen 127.0.0.1:0 for a free port"
        ),
        kind => format!("cannot listen on {listen}: {}", listen_advice(kind)),
    };
    Err(Failure(problem))
}

/// The receiver of `--send-to` accepts connections.
async fn require_answer(receiver: &str) -> Result<(), Failure> {
    let url = Url::parse(receiver)
        .map_err(|_| Failure("the URL of --send-to is not valid: correct it".to_owned()))?;
    let name = url.host_str().unwrap_or_default().to_owned();
    let default_port = match url.scheme() {
        "mqtt" => Some(1883),
        "mqtts" => Some(8883),
        "nats" => Some(4222),
        _ => None,
    };
    let found = tokio::task::spawn_blocking(move || url.socket_addrs(|| default_port)).await;
    let addresses = match found {
        Ok(Ok(addresses)) if !addresses.is_empty() => addresses,
        _ => {
            return Err(Failure(format!(
                "no address is known of {name}, to which --send-to points: correct the URL"
            )));
        }
    };
    let port = addresses.first().map_or(0, SocketAddr::port);
    let connecting = TcpStream::connect(addresses.as_slice());
    match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(Ok(_)) => Ok(()),
        _ => Err(Failure(format!(
            "nothing answers at {name} port {port}, to which --send-to points: start the receiver \
             there, or correct the URL"
        ))),
    }
}

/// An adapter can be used, as the agent finds it.
async fn require_bluetooth(program: &Path) -> Result<(), Failure> {
    let report = agent::command(program, &["check", "--json"]).output().await;
    let report = report
        .ok()
        .and_then(|output| serde_json::from_slice::<Report>(&output.stdout).ok());
    let Some(Report { findings }) = report else {
        return Err(Failure(format!(
            "--bluez cannot be used: {} check does not say whether there is Bluetooth; build it anew",
            program.display()
        )));
    };
    let has_adapter = |one: &Finding| one.check == "adapter" && one.state != "fail";
    if findings.iter().any(has_adapter) {
        return Ok(());
    }
    let failed = |name: &str| {
        findings
            .iter()
            .any(|one| one.check == name && one.state == "fail")
    };
    let problem = BLUETOOTH.into_iter().find(|(name, _)| failed(name));
    let problem = problem.map_or("there is no Bluetooth on this machine", |(_, text)| text);
    Err(Failure(format!(
        "--bluez cannot be used: {problem}, or leave --bluez out"
    )))
}
