//! Reports from the packets of a capture, whatever its container.

use std::collections::{HashMap, VecDeque};

use hub_protocol::ble::Advertisement;

use crate::advertising_data::parse;
use crate::btsnoop::Btsnoop;
use crate::clock::{Clock, time_of_day};
use crate::error::RecordingError;
use crate::found::Found;
use crate::link::Packets;
use crate::packet::Packet;
use crate::pcap::Pcap;
use crate::pcapng::PcapNg;
use crate::report::{PassedOver, Report};

/// The most advertisers whose names are remembered.
const MOST_NAMES: usize = 4_096;

pub enum Container {
    Btsnoop(Btsnoop),
    Pcap(Pcap),
    PcapNg(PcapNg),
}

pub struct Capture {
    container: Container,
    packets: Packets,
    clock: Clock,
    /// The bytes of the packet that is being read.
    data: Vec<u8>,
    found: Vec<Found>,
    /// Reports that were read and not yet taken.
    ready: VecDeque<Report>,
    names: HashMap<[u8; 6], String>,
}

impl Capture {
    pub fn new(container: Container) -> Self {
        Self {
            container,
            packets: Packets::default(),
            clock: Clock::default(),
            data: Vec::new(),
            found: Vec::new(),
            ready: VecDeque::new(),
            names: HashMap::new(),
        }
    }

    pub fn passed_over(&self) -> PassedOver {
        self.packets.passed
    }

    pub fn next(&mut self) -> Result<Option<Report>, RecordingError> {
        loop {
            if let Some(report) = self.ready.pop_front() {
                return Ok(Some(report));
            }
            let packet = match &mut self.container {
                Container::Btsnoop(btsnoop) => btsnoop.next(&mut self.data),
                Container::Pcap(pcap) => pcap.next(&mut self.data),
                Container::PcapNg(pcapng) => pcapng.next(&mut self.data),
            };
            match packet {
                Ok(Some(packet)) => self.read(packet),
                ended => {
                    self.packets.end();
                    return ended.map(|_| None);
                }
            }
        }
    }

    fn read(&mut self, packet: Packet) {
        let Some(link) = packet.link else {
            self.packets.passed.other += 1;
            return;
        };
        self.packets.read(link, &self.data, &mut self.found);
        for found in self.found.drain(..) {
            let (mut advertisement, encrypted) = advertisement(&found);
            match &advertisement.name {
                Some(name) => {
                    if self.names.len() == MOST_NAMES {
                        self.names.clear();
                    }
                    self.names.insert(found.address, name.clone());
                }
                None => advertisement.name = self.names.get(&found.address).cloned(),
            }
            self.ready.push_back(Report {
                offset: packet.offset,
                time_us: self.clock.elapsed_us(packet.unix_us),
                received_at: time_of_day(packet.unix_us),
                is_scan_response: found.is_scan_response,
                advertisement,
                encrypted,
            });
        }
    }
}

fn advertisement(found: &Found) -> (Advertisement, Vec<Vec<u8>>) {
    let kind = match found.is_random {
        true => "random",
        false => "public",
    };
    let mut advertisement = Advertisement {
        address: found.address.map(|byte| format!("{byte:02X}")).join(":"),
        address_type: Some(kind.to_owned()),
        rssi: found.rssi_dbm,
        tx_power: found.tx_power_dbm,
        ..Advertisement::default()
    };
    let encrypted = parse(&found.data, &mut advertisement);
    (advertisement, encrypted)
}
