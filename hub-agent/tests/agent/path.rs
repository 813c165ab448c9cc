//! A path to the service that ends requests which wait for longer than it likes, as proxies and
//! routers do.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::service::Service;
use super::{Site, stop, until_status};

/// How long this path holds a request.
const CUT: Duration = Duration::from_secs(6);
/// The page of a gateway that waited for too long.
const PAGE: &str = "HTTP/1.1 504 Gateway Time-out\r\ncontent-type: text/html\r\ncontent-length: 30\r\n\
                    connection: close\r\n\r\n<html>504 gateway time</html>\n";

/// Relays connections to the service. One on which the service is silent for too long ends, with a
/// page or without a word.
async fn relay(service: SocketAddr, page: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            tokio::spawn(one(client, service, page));
        }
    });
    address
}

async fn one(mut client: TcpStream, service: SocketAddr, page: &str) -> Option<()> {
    let mut server = TcpStream::connect(service).await.ok()?;
    let (mut request, mut answer) = ([0; 16_384], [0; 16_384]);
    let mut asked_at: Option<Instant> = None;
    loop {
        let cut_at = asked_at.map_or(Instant::now() + CUT * 100, |at| at + CUT);
        tokio::select! {
            read = client.read(&mut request) => {
                let read = read.ok().filter(|read| *read > 0)?;
                server.write_all(&request[..read]).await.ok()?;
                asked_at = Some(Instant::now());
            }
            read = server.read(&mut answer) => {
                let read = read.ok().filter(|read| *read > 0)?;
                client.write_all(&answer[..read]).await.ok()?;
                asked_at = None;
            }
            () = tokio::time::sleep_until(cut_at) => {
                client.write_all(page.as_bytes()).await.ok()?;
                return None;
            }
        }
    }
}

/// Changes come through at once, and nothing is said to be wrong with the service.
async fn changes_come_through(page: &'static str) {
    let site = Site::new(10, 10);
    let service = Service::start().await;
    let path = relay(service.address, page).await;
    let log = site.path("log");
    let mut agent = site.run_at(&format!("http://{path}"));
    agent.env("HUB_AGENT_CLAIM_CODE", super::CODE);
    agent.stderr(std::fs::File::create(&log).unwrap());
    let mut agent = agent.spawn().unwrap();
    // The first request is cut, and the path is known.
    let status = until_status(&site, |status| status["pathHoldsSecs"].is_number()).await;
    assert_eq!(status["pathHoldsSecs"], 4);
    let roles = site.state().join("adapter-roles.json");
    for number in 0..4_u64 {
        // At some moment of a request.
        tokio::time::sleep(Duration::from_millis(1_700 * number)).await;
        let address = format!("AA:BB:CC:DD:EE:{number:02}");
        let changed_at = Instant::now();
        let wanted = json!({address.clone(): "DISABLED"});
        service
            .change(|stored| stored.desire(json!({"adapterRoles": {address.clone(): "DISABLED"}})));
        while std::fs::read(&roles)
            .ok()
            .and_then(|text| serde_json::from_slice::<Value>(&text).ok())
            .as_ref()
            != Some(&wanted)
        {
            assert!(
                changed_at.elapsed() < Duration::from_secs(12),
                "change {number}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let status = until_status(&site, |status| status["unreachable"].is_null()).await;
    assert_eq!(status["pathHoldsSecs"], 4, "{status}");
    let reported = service
        .until("telemetry that says so", |stored| {
            let last = stored.telemetry.last()?;
            Some(last["agent"]["pathHoldsSecs"].clone()).filter(Value::is_number)
        })
        .await;
    assert_eq!(reported, 4);
    assert_eq!(stop(&mut agent).await, Some(0));
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(
        !log.contains("cannot be reached") && !log.contains("something else"),
        "{log}"
    );
    assert_eq!(log.matches("requests that wait").count(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_closes_waiting_requests_silences_nobody() {
    changes_come_through("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_gives_up_waiting_silences_nobody() {
    changes_come_through(PAGE).await;
}
