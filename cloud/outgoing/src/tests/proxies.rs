//! Calls through the proxy of the operator.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::super::{CallErrorKind, Outgoing, Security};
use super::get;
use super::name_server::{NameServer, Record};
use crate::OutgoingConfig;

/// A proxy that wants the user `us` and the password `a b`, and connects every tunnel to one
/// receiver. The targets that it was asked for.
async fn proxy(receiver: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    let targets: Arc<Mutex<Vec<String>>> = Arc::default();
    let asked = targets.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(tunnel(client, receiver, asked.clone()));
        }
    });
    (address, targets)
}

async fn tunnel(
    client: TcpStream,
    receiver: SocketAddr,
    targets: Arc<Mutex<Vec<String>>>,
) -> Option<()> {
    let mut client = BufReader::new(client);
    let (mut head, mut line) = (String::new(), String::new());
    while line != "\r\n" {
        line.clear();
        client.read_line(&mut line).await.ok()?;
        head.push_str(&line);
    }
    // `us:a b` in base64.
    if !head.contains("Proxy-Authorization: Basic dXM6YSBi\r\n") {
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
        client.write_all(refusal.as_bytes()).await.ok()?;
        return None;
    }
    let target = head.strip_prefix("CONNECT ")?.split(' ').next()?.to_owned();
    targets.lock().ok()?.push(target);
    let mut server = TcpStream::connect(receiver).await.ok()?;
    client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await
        .ok()?;
    tokio::io::copy_bidirectional(&mut client, &mut server)
        .await
        .ok()?;
    Some(())
}

/// Answers each connection with the request that came over it.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.ok()?);
                }
                let length = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", head.len());
                stream.write_all(length.as_bytes()).await.ok()?;
                stream.write_all(&head).await.ok()
            });
        }
    });
    address
}

fn through(proxy: &str, resolver: SocketAddr) -> Outgoing {
    let config = OutgoingConfig {
        resolver: Some(resolver),
        proxy: Some(proxy.parse().expect("a proxy")),
        ..OutgoingConfig::default()
    };
    Outgoing::new(&config, hub_base::metrics::Metrics::new()).expect("a client")
}

#[tokio::test]
async fn the_proxy_is_asked_for_addresses_that_were_judged() {
    let zone = [
        (
            "public.test",
            vec![vec![Record::Address([8, 8, 8, 8].into())]],
        ),
        (
            "inside.test",
            vec![vec![Record::Address([10, 0, 0, 1].into())]],
        ),
    ];
    let names = NameServer::start(&zone).await;
    let (proxy, targets) = proxy(echo().await).await;
    let outgoing = through(&format!("http://us:a%20b@{proxy}"), names.address);

    let answer = get(&outgoing, "http://public.test:8080/path?x=1")
        .await
        .expect("an answer");
    let seen = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(seen.starts_with("GET /path?x=1 HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("host: public.test:8080\r\n"), "{seen}");
    assert!(
        !seen.to_lowercase().contains("proxy-authorization"),
        "{seen}"
    );
    let within = std::time::Duration::from_secs(30);
    let stream = outgoing.connect("public.test", 1883, Security::Plain, within);
    stream.await.expect("a stream");
    assert_eq!(
        *targets.lock().expect("targets"),
        ["8.8.8.8:8080", "8.8.8.8:1883"]
    );

    for url in [
        "http://inside.test/",
        "http://127.0.0.1/",
        "https://169.254.169.254/",
    ] {
        let failure = get(&outgoing, url).await.expect_err(url);
        assert_eq!(failure.kind, CallErrorKind::Forbidden, "{url}: {failure}");
    }
    assert_eq!(targets.lock().expect("targets").len(), 2);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let zone = [(
        "public.test",
        vec![vec![Record::Address([8, 8, 8, 8].into())]],
    )];
    let names = NameServer::start(&zone).await;
    let (proxy, _) = proxy(echo().await).await;
    let outgoing = through(&format!("http://us:hunter2@{proxy}"), names.address);
    let failure = get(&outgoing, "http://public.test/")
        .await
        .expect_err("407");
    assert!(failure.message.contains("password"), "{failure}");
    assert!(!failure.message.contains("hunter2"), "{failure}");
}

#[test]
fn a_url_that_is_no_proxy_is_refused_without_quoting_it() {
    for url in [
        "",
        "proxy:3128",
        "socks5://a:hunter2@b",
        "http://a:hunter2@b/path",
        "http://b?x",
    ] {
        let error = url.parse::<crate::OutgoingProxy>().expect_err(url);
        assert!(!error.contains("hunter2"), "{error}");
    }
}
