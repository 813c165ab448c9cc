//! Addresses and tricks, of every kind of destination.

use std::net::IpAddr;

use super::super::addresses::refusal;
use super::{SCHEMES, outgoing};

const TARGETS: &str = include_str!("forbidden-targets.txt");
const ALL: [&str; 6] = ["http", "https", "mqtt", "mqtts", "nats", "tls"];

/// The lines after the heading that begins so.
fn section(heading: &str) -> Vec<&'static str> {
    let lines = TARGETS
        .lines()
        .skip_while(|line| !line.starts_with(heading))
        .skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    assert!(lines.len() > 20, "{heading}");
    lines
}

#[test]
fn forbidden_targets_are_refused_by_every_scheme() {
    let outgoing = outgoing(false, None, None);
    let hosts = [
        section("[private"),
        section("[always"),
        section("[malformed"),
    ]
    .concat();
    assert!(hosts.len() >= 100, "{}", hosts.len());
    for host in hosts {
        for scheme in ALL {
            let url = format!("{scheme}://{host}/path");
            let refused = outgoing.check_url(&url, &ALL);
            assert!(refused.is_err(), "{url} became {refused:?}");
        }
    }
}

#[test]
fn development_allows_private_targets_and_no_others() {
    let outgoing = outgoing(true, None, None);
    for host in section("[private") {
        outgoing
            .check_url(&format!("http://{host}:8080/path"), &SCHEMES)
            .expect(host);
        outgoing
            .check_url(&format!("mqtt://{host}:1883"), &ALL)
            .expect(host);
    }
    for host in section("[always") {
        let refused = outgoing.check_url(&format!("http://{host}/"), &SCHEMES);
        assert!(refused.is_err(), "{host} became {refused:?}");
    }
}

#[test]
fn ordinary_urls_are_accepted_in_their_one_form() {
    let outgoing = outgoing(false, None, None);
    for (given, accepted) in [
        (
            "https://example.com/hook?a=b",
            "https://example.com/hook?a=b",
        ),
        ("https://example.com:8443", "https://example.com:8443/"),
        ("HTTPS://EXAMPLE.com/", "https://example.com/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://134744072/", "http://8.8.8.8/"),
        ("mqtts://134744072:8883", "mqtts://8.8.8.8:8883"),
        ("mqtt://Broker.Example.COM", "mqtt://broker.example.com"),
        (
            "http://[2606:4700:4700::1111]/",
            "http://[2606:4700:4700::1111]/",
        ),
        ("http://[64:ff9b::8.8.8.8]/", "http://[64:ff9b::808:808]/"),
        (
            "nats://nats.example.com:4222",
            "nats://nats.example.com:4222",
        ),
    ] {
        let url = outgoing.check_url(given, &ALL).expect(given);
        assert_eq!(url.as_str(), accepted);
    }
}

#[test]
fn urls_that_hide_something_are_refused() {
    let outgoing = outgoing(true, None, None);
    for url in [
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "http:example.com",
        "http:/example.com",
        "http:\\\\example.com",
        "//example.com",
        "example.com",
        "",
        "http://",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com/#fragment",
        "http://user@example.com/",
        "http://:secret@example.com/",
        " http://example.com/",
        "http://example.com/\n",
        "http://exam\tple.com/",
        "data:text/plain,x",
    ] {
        assert!(outgoing.check_url(url, &SCHEMES).is_err(), "{url:?}");
    }
    let long = format!("http://example.com/{}", "a".repeat(3_000));
    assert!(outgoing.check_url(&long, &SCHEMES).is_err());
}

#[test]
fn edges_of_the_ranges_are_where_they_should_be() {
    for (address, is_refused) in [
        ("9.255.255.255", false),
        ("11.0.0.0", false),
        ("100.63.255.255", false),
        ("100.128.0.0", false),
        ("126.255.255.255", false),
        ("128.0.0.0", false),
        ("169.253.255.255", false),
        ("169.255.0.0", false),
        ("172.15.255.255", false),
        ("172.32.0.0", false),
        ("192.167.255.255", false),
        ("192.169.0.0", false),
        ("198.17.255.255", false),
        ("198.20.0.0", false),
        ("223.255.255.255", false),
        ("1.0.0.0", false),
        ("0.255.255.255", true),
        ("224.0.0.0", true),
        ("239.255.255.255", true),
        ("240.0.0.0", true),
        ("2001:200::1", false),
        ("2001:1ff::1", true),
        ("2001:db9::1", false),
        ("2002:808:808::1", false),
        ("3ffe::1", false),
        ("3fff:1000::1", false),
        ("2000::1", false),
        ("1fff::1", true),
        ("64:ff9b::808:808", false),
        ("64:ff9c::808:808", true),
    ] {
        let parsed: IpAddr = address.parse().expect(address);
        assert_eq!(
            refusal(parsed, &false.into()).is_some(),
            is_refused,
            "{address}"
        );
    }
}
