//! Link types of captures (tcpdump.org), and how each leads to an advertisement.

use std::fmt;

use crate::bytes::Bytes;
use crate::found::Found;
use crate::hci::Hci;
use crate::link_layer::{AuxiliaryKind, LinkLayer, LinkPacket};
use crate::report::PassedOver;

const H4_EVENT: u8 = 0x04;
const MONITOR_EVENT: u16 = 3;
/// The index of the first advertising channel; those below are secondary.
const FIRST_ADVERTISING_CHANNEL: u8 = 37;
const CODED_PHY: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// An HCI event of an adapter, from its code on.
    HciEvent {
        adapter: u16,
    },
    H4,
    H4WithDirection,
    LinuxMonitor,
    LeLinkLayer,
    LeLinkLayerWithHeader,
    NordicBle,
}

impl Link {
    /// The numbers that [`Link::of`] knows, in words.
    pub const KNOWN: &str = "187, 201, 251, 254, 256 or 272";

    pub fn of(link_type: u32) -> Option<Self> {
        Some(match link_type {
            187 => Self::H4,
            201 => Self::H4WithDirection,
            251 => Self::LeLinkLayer,
            254 => Self::LinuxMonitor,
            256 => Self::LeLinkLayerWithHeader,
            272 => Self::NordicBle,
            _ => return None,
        })
    }
}

/// A link type that has no advertisements, by its number, with the name of those that are met.
pub struct OtherLink(pub u32);

impl fmt::Display for OtherLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            0 => "BSD loopback",
            1 => "Ethernet",
            101 => "raw IP",
            105 => "IEEE 802.11",
            113 => "Linux cooked capture",
            127 => "IEEE 802.11 with radiotap",
            147..=162 => "private use",
            189 | 220 => "Linux USB",
            192 => "PPI",
            195 | 230 | 283 => "IEEE 802.15.4",
            249 => "USBPcap",
            255 => "Bluetooth BR/EDR baseband",
            276 => "Linux cooked capture, version 2",
            292 => "ISO 14443",
            _ => return write!(f, "link type {}", self.0),
        };
        write!(f, "link type {} ({name})", self.0)
    }
}

/// Reads packets of all link types of one recording.
#[derive(Debug, Default)]
pub struct Packets {
    hci: Hci,
    link_layer: LinkLayer,
    pub passed: PassedOver,
}

impl Packets {
    /// Adds the advertisements that a packet completes.
    pub fn read(&mut self, link: Link, packet: &[u8], found: &mut Vec<Found>) {
        let mut bytes = Bytes(packet);
        let read = match link {
            Link::HciEvent { adapter } => {
                self.hci.event(adapter, packet, found, &mut self.passed);
                Some(())
            }
            Link::H4 => self.h4(bytes, found),
            Link::H4WithDirection => bytes.array::<4>().and_then(|_| self.h4(bytes, found)),
            Link::LinuxMonitor => self.monitor(bytes, found),
            Link::LeLinkLayer => {
                let packet = LinkPacket {
                    bytes: packet,
                    rssi_dbm: None,
                    crc_is_good: None,
                    is_coded: false,
                    kind: AuxiliaryKind::Unknown,
                };
                self.link_layer.packet(packet, found, &mut self.passed);
                Some(())
            }
            Link::LeLinkLayerWithHeader => self.with_header(bytes, found),
            Link::NordicBle => self.nordic(bytes, found),
        };
        if read.is_none() {
            self.passed.malformed += 1;
        }
    }

    /// Gives up what has not come to its end.
    pub fn end(&mut self) {
        self.hci.end(&mut self.passed);
        self.link_layer.end(&mut self.passed);
    }

    /// The packet type of the UART transport stands first.
    fn h4(&mut self, mut bytes: Bytes<'_>, found: &mut Vec<Found>) -> Option<()> {
        match bytes.u8()? {
            H4_EVENT => self.hci.event(0, bytes.rest(), found, &mut self.passed),
            _ => self.passed.other += 1,
        }
        Some(())
    }

    /// Linux's monitor: adapter and opcode, both big-endian.
    fn monitor(&mut self, mut bytes: Bytes<'_>, found: &mut Vec<Found>) -> Option<()> {
        let adapter = bytes.u16_be()?;
        match bytes.u16_be()? {
            MONITOR_EVENT => self
                .hci
                .event(adapter, bytes.rest(), found, &mut self.passed),
            _ => self.passed.other += 1,
        }
        Some(())
    }

    /// The header of LINKTYPE_BLUETOOTH_LE_LL_WITH_PHDR.
    fn with_header(&mut self, mut bytes: Bytes<'_>, found: &mut Vec<Found>) -> Option<()> {
        let _channel = bytes.u8()?;
        let signal_dbm = bytes.i8()?;
        let _noise_and_reference: [u8; 6] = bytes.array()?;
        let flags = bytes.u16_le()?;
        let has = |bit: u16| flags & bit != 0;
        let is_auxiliary = flags >> 7 & 7 == 1;
        let is_whitened = !has(0x0001);
        if is_whitened {
            return None;
        }
        let packet = LinkPacket {
            bytes: bytes.rest(),
            rssi_dbm: has(0x0002).then_some(signal_dbm.into()),
            crc_is_good: has(0x0400).then_some(has(0x0800)),
            is_coded: flags >> 14 == u16::from(CODED_PHY),
            kind: match is_auxiliary {
                true => AuxiliaryKind::of((flags >> 12 & 3) as u8),
                false => AuxiliaryKind::Unknown,
            },
        };
        self.link_layer.packet(packet, found, &mut self.passed);
        Some(())
    }

    /// The header of the nRF Sniffer, in its versions up to 3.
    fn nordic(&mut self, mut bytes: Bytes<'_>, found: &mut Vec<Found>) -> Option<()> {
        let header: [u8; 7] = bytes.array()?;
        let (version, packet_type) = match header {
            [0xBE, 0xEF, packet_type, ..] => (0, packet_type),
            [_, _, _, version, _, _, packet_type] => (version, packet_type),
        };
        let is_advertising = match version {
            // Connections come as the same type, with an access address of their own.
            0..=2 => packet_type == 0x06,
            3 => packet_type == 0x02,
            _ => return None,
        };
        if !is_advertising {
            self.passed.other += 1;
            return Some(());
        }
        // The first version has the length of all that follows here, and a header of 10 bytes.
        let length = match (version, bytes.u8()?) {
            (0, _) => 10,
            (_, length) => length,
        };
        let mut header = Bytes(bytes.take(usize::from(length).checked_sub(1)?)?);
        let flags = header.u8()?;
        let channel = header.u8()?;
        let rssi_dbm = -i16::from(header.u8()?);
        let packet = LinkPacket {
            bytes: bytes.rest(),
            rssi_dbm: Some(rssi_dbm).filter(|dbm| i8::try_from(*dbm).is_ok()),
            crc_is_good: Some(flags & 1 != 0),
            is_coded: flags >> 4 & 7 == CODED_PHY,
            kind: match version == 3 && channel < FIRST_ADVERTISING_CHANNEL {
                true => AuxiliaryKind::of(flags >> 1 & 3),
                false => AuxiliaryKind::Unknown,
            },
        };
        self.link_layer.packet(packet, found, &mut self.passed);
        Some(())
    }
}
