//! What name servers answer, and what becomes of it.

use std::net::IpAddr;
use std::time::Duration;

use super::super::{CallErrorKind, Outgoing, Security};
use super::name_server::{NameServer, Record};
use super::{get, outgoing};

fn address(text: &str) -> Record {
    Record::Address(text.parse::<IpAddr>().expect(text))
}

async fn kinds(outgoing: &Outgoing, host: &str) -> [CallErrorKind; 2] {
    let http = get(outgoing, &format!("http://{host}/"))
        .await
        .expect_err(host)
        .kind;
    let stream = outgoing
        .connect(host, 1883, Security::Plain, Duration::from_secs(30))
        .await
        .expect_err(host)
        .kind;
    [http, stream]
}

#[tokio::test]
async fn names_that_lead_inside_are_refused() {
    let zone = [
        ("loop.test", vec![vec![address("127.0.0.1")]]),
        ("loop6.test", vec![vec![address("::1")]]),
        ("private.test", vec![vec![address("10.1.2.3")]]),
        ("metadata.test", vec![vec![address("169.254.169.254")]]),
        ("mapped.test", vec![vec![address("::ffff:127.0.0.1")]]),
        ("nat64.test", vec![vec![address("64:ff9b::7f00:1")]]),
        (
            "mixed.test",
            vec![vec![address("8.8.8.8"), address("127.0.0.1")]],
        ),
        (
            "mixed6.test",
            vec![vec![address("8.8.8.8"), address("fe80::1")]],
        ),
        (
            "last.test",
            vec![
                (1..=40)
                    .map(|n| address(&format!("8.8.4.{n}")))
                    .chain([address("10.0.0.1")])
                    .collect(),
            ],
        ),
        ("alias.test", vec![vec![Record::Alias("loop.test")]]),
        ("local.test", vec![vec![Record::Alias("localhost")]]),
    ];
    let server = NameServer::start(&zone).await;
    let outgoing = outgoing(false, Some(server.address), None);
    for (host, _) in &zone {
        assert_eq!(
            kinds(&outgoing, host).await,
            [CallErrorKind::Forbidden; 2],
            "{host}"
        );
    }
    for host in [
        "localhost",
        "a.localhost",
        "127.0.0.1",
        "[::1]",
        "2130706433",
    ] {
        assert_eq!(
            kinds(&outgoing, host).await,
            [CallErrorKind::Forbidden; 2],
            "{host}"
        );
    }
}

/// Each connection checks the address.
#[tokio::test]
async fn name_that_changes_its_mind_is_refused() {
    let zone = [(
        "rebinding.test",
        vec![vec![address("8.8.8.8")], vec![address("127.0.0.1")]],
    )];
    let server = NameServer::start(&zone).await;
    let outgoing = outgoing(false, Some(server.address), None);
    let first = outgoing
        .0
        .names
        .judged("rebinding.test")
        .await
        .expect("a public address");
    assert_eq!(first, ["8.8.8.8".parse::<IpAddr>().expect("an address")]);
    assert_eq!(
        kinds(&outgoing, "rebinding.test").await,
        [CallErrorKind::Forbidden; 2]
    );
}

#[tokio::test]
async fn name_without_address_is_a_failure_of_the_name() {
    let zone = [
        ("empty.test", vec![vec![]]),
        (
            "text.test",
            vec![vec![Record::Text("a"), Record::Text("b")]],
        ),
    ];
    let server = NameServer::start(&zone).await;
    let outgoing = outgoing(false, Some(server.address), None);
    for host in ["missing.test", "empty.test", "text.test"] {
        assert_eq!(
            kinds(&outgoing, host).await,
            [CallErrorKind::Dns; 2],
            "{host}"
        );
    }
    assert_eq!(outgoing.txt("text.test").await.expect("texts"), ["a", "b"]);
    assert!(
        outgoing
            .txt("empty.test")
            .await
            .expect("no texts")
            .is_empty()
    );
    assert!(
        outgoing
            .txt("missing.test")
            .await
            .expect("no texts")
            .is_empty()
    );
}
