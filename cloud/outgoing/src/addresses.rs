//! Which addresses a tenant may make the service call. Everything that is not plainly a public
//! address is refused: a new kind of special address is refused until somebody adds it here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The reach of an address, as far as the check of targets needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Public,
    /// This machine or a private network: allowed for development.
    Private,
    /// Never called, with the reason.
    Never(&'static str),
}

/// Why the address must not be called; None if it may be.
pub fn refusal(address: IpAddr, allow_private: bool) -> Option<&'static str> {
    match reach(address) {
        Reach::Public => None,
        Reach::Private if allow_private => None,
        Reach::Private => Some("an address of this machine or of a private network"),
        Reach::Never(reason) => Some(reason),
    }
}

fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

const METADATA: Reach = Reach::Never("the address of a cloud's metadata service");
const LINK_LOCAL: Reach = Reach::Never("a link-local address");
const MULTICAST: Reach = Reach::Never("a multicast or broadcast address");
const UNSPECIFIED: Reach = Reach::Never("the unspecified address");
const RESERVED: Reach = Reach::Never("a reserved address");
const TRANSLATED: Reach = Reach::Never("an IPv6 form of an IPv4 address");

fn reach_v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        [0, 0, 0, 0] => UNSPECIFIED,
        // Amazon and others, Alibaba, Azure, Oracle.
        [169, 254, 169, 254] | [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => {
            METADATA
        }
        [169, 254, ..] => LINK_LOCAL,
        [127, ..] | [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => {
            Reach::Private
        }
        [224..=239, ..] | [255, 255, 255, 255] => MULTICAST,
        [0, ..] | [240..=255, ..] => RESERVED,
        // Protocol assignments, documentation, the relay of 6to4, benchmarks.
        [192, 0, 0 | 2, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..] => RESERVED,
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        match reach_v4(Ipv4Addr::new(a, b, c, d)) {
            // Through a translator an address of a private network is somebody else's.
            Reach::Private => TRANSLATED,
            other => other,
        }
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => UNSPECIFIED,
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Private,
        // Mapped, compatible, translated.
        [0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => TRANSLATED,
        // Amazon, Google, Oracle.
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254]
        | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254]
        | [0xfd00, 0x00c1, 0, 0, 0, 0, 0xa9fe, 0xa9fe] => METADATA,
        // NAT64: what name servers answer where there is no IPv4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x64, 0xff9b, ..] => TRANSLATED,
        [0xfc00..=0xfdff, ..] => Reach::Private,
        [0xfe80..=0xfebf, ..] => LINK_LOCAL,
        [0xff00..=0xffff, ..] => MULTICAST,
        // 6to4. Teredo is one of the protocol assignments 2001::/23.
        [0x2002, high, low, ..] => embedded(high, low),
        [0x2001, 0..=0x1ff, ..] => RESERVED,
        // Documentation.
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => RESERVED,
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => RESERVED,
    }
}
