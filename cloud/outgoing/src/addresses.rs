//! Which addresses a tenant may make the service call. Everything that is not plainly a public
//! address is refused: a new kind of special address is refused until somebody adds it here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;

/// The reach of an address, as far as the check of targets needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Public,
    /// This machine or a private network: allowed for development.
    Private,
    /// Never called, with the reason.
    Never(&'static str),
}

/// The addresses of this machine and of private networks that may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PrivateTargets {
    #[default]
    None,
    All,
    Networks(Vec<IpNet>),
}

impl PrivateTargets {
    pub fn allow(&self, address: IpAddr) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Networks(networks) => networks.iter().any(|network| network.contains(&address)),
        }
    }
}

impl From<bool> for PrivateTargets {
    fn from(all: bool) -> Self {
        match all {
            true => Self::All,
            false => Self::None,
        }
    }
}

/// `true`, `false`, or networks and addresses, separated by commas.
impl FromStr for PrivateTargets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(all) = text.trim().parse::<bool>() {
            return Ok(all.into());
        }
        let network = |part: &str| {
            let network = part.parse::<IpNet>();
            network.or_else(|_| part.parse::<IpAddr>().map(IpNet::from))
        };
        let networks: Result<Vec<IpNet>, _> = text.split(',').map(str::trim).map(network).collect();
        networks.map(Self::Networks).map_err(|_| {
            "must be true, false, or networks such as 10.2.0.0/16, separated by commas".to_owned()
        })
    }
}

/// Why the address must not be called; None if it may be.
pub fn refusal(address: IpAddr, private: &PrivateTargets) -> Option<&'static str> {
    match reach(address) {
        Reach::Public => None,
        Reach::Private if private.allow(address) => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_targets_are_all_none_or_some_networks() {
        let parsed = |text: &str| text.parse::<PrivateTargets>();
        assert_eq!(parsed("true"), Ok(PrivateTargets::All));
        assert_eq!(parsed("false"), Ok(PrivateTargets::None));
        let some = parsed("10.2.0.0/16, 192.168.7.9,fd00:7::/32").expect("networks");
        for (address, is_allowed) in [
            ("10.2.255.1", true),
            ("10.3.0.1", false),
            ("192.168.7.9", true),
            ("192.168.7.10", false),
            ("fd00:7::1", true),
            ("fd00:8::1", false),
            ("127.0.0.1", false),
            ("93.184.215.14", true),
        ] {
            let refused = refusal(address.parse().expect("an address"), &some);
            assert_eq!(refused.is_none(), is_allowed, "{address}: {refused:?}");
        }
        // A network does not open what is never called.
        let wide = parsed("0.0.0.0/0").expect("a network");
        for never in ["169.254.169.254", "169.254.1.1", "224.0.0.1", "0.0.0.0"] {
            assert!(
                refusal(never.parse().expect("an address"), &wide).is_some(),
                "{never}"
            );
        }
        for wrong in ["", "yes", "10.2.0.0/33", "10.2.0.0/16,", "intranet"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
