//! What a recording yields: reports of advertisements, and counts of what is passed over.

use std::fmt;

use hub_protocol::Timestamp;
use hub_protocol::ble::Advertisement;

use crate::error::Grouped;

/// One advertisement or one scan response, as one receiver heard it.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The byte of the recording, unpacked, at which the record begins that completes the report.
    pub offset: u64,
    /// Microseconds since the first report. Never less than that of the report before.
    pub time_us: u64,
    /// When it was received, where the recording tells.
    pub received_at: Option<Timestamp>,
    pub is_scan_response: bool,
    /// Without a name of its own it has the last one that its address sent, as BlueZ reports it:
    /// most names are in scan responses.
    pub advertisement: Advertisement,
    /// Encrypted advertising data (AD type 0x31), where the recording has raw advertising data.
    pub encrypted: Vec<Vec<u8>>,
}

/// Counts of packets that yield no report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// Packets that carry no advertisement, such as commands and connections.
    pub other: u64,
    /// Packets that were received with errors.
    pub bad_crc: u64,
    /// Packets that break the rules of Bluetooth, or were cut when they were recorded.
    pub malformed: u64,
    /// Advertisements in fragments of which some are absent.
    pub incomplete: u64,
    /// Advertisements without the address of the advertiser.
    pub without_address: u64,
}

/// The counts that mean a loss, such as `3 with a bad CRC, 1 malformed`; empty if there are none.
impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let losses = [
            (self.bad_crc, "with a bad CRC"),
            (self.malformed, "malformed"),
            (self.incomplete, "incomplete"),
            (self.without_address, "without an address"),
        ];
        let mut is_first = true;
        for (count, what) in losses.into_iter().filter(|(count, _)| *count > 0) {
            let comma = if is_first { "" } else { ", " };
            write!(f, "{comma}{} {what}", Grouped(count))?;
            is_first = false;
        }
        Ok(())
    }
}
