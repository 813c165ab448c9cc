//! Packets of the link layer on advertising channels (Bluetooth Core Specification, Vol 6, Part B,
//! 2.1 and 2.3).

use std::collections::VecDeque;

use crate::bytes::Bytes;
use crate::found::{Assembly, Found};
use crate::report::PassedOver;

const ADVERTISING_ACCESS_ADDRESS: u32 = 0x8E89_BED6;
const ADV_IND: u8 = 0;
const ADV_NONCONN_IND: u8 = 2;
const SCAN_RSP: u8 = 4;
const ADV_SCAN_IND: u8 = 6;
/// ADV_EXT_IND, AUX_ADV_IND, AUX_SCAN_RSP, AUX_CHAIN_IND and AUX_SYNC_IND.
const EXTENDED: u8 = 7;
/// The most advertisers that are remembered for the packets that do not repeat their address.
const MOST_REMEMBERED: usize = 64;

/// A packet, and what the receiver noted beside it.
#[derive(Clone, Copy, Debug)]
pub struct LinkPacket<'a> {
    /// From the access address on.
    pub bytes: &'a [u8],
    pub rssi_dbm: Option<i16>,
    /// Whether the receiver found the CRC correct; `None` if it did not check.
    pub crc_is_good: Option<bool>,
    pub is_coded: bool,
    pub kind: AuxiliaryKind,
}

/// What a receiver says about an extended packet of a secondary channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuxiliaryKind {
    #[default]
    Unknown,
    Sync,
    ScanResponse,
}

impl AuxiliaryKind {
    /// The kind by its number in the headers of sniffers.
    pub fn of(number: u8) -> Self {
        match number {
            2 => Self::Sync,
            3 => Self::ScanResponse,
            _ => Self::Unknown,
        }
    }
}

/// Advertising set and data, which all packets of an extended advertisement name (ADI).
type SetId = Option<u16>;

#[derive(Debug, Default)]
pub struct LinkLayer {
    assembly: Assembly<SetId>,
    /// Addresses of advertisers whose auxiliary packet is still to come.
    advertisers: VecDeque<(SetId, [u8; 6], bool)>,
}

/// The header of an extended packet, and its data.
struct Extended<'a> {
    address: Option<[u8; 6]>,
    set_id: SetId,
    has_more: bool,
    tx_power_dbm: Option<i16>,
    data: &'a [u8],
}

impl LinkLayer {
    pub fn packet(
        &mut self,
        packet: LinkPacket<'_>,
        found: &mut Vec<Found>,
        passed: &mut PassedOver,
    ) {
        if packet.crc_is_good == Some(false) {
            passed.bad_crc += 1;
        } else if self.read(packet, found, passed).is_none() {
            passed.malformed += 1;
        }
    }

    /// Gives up what has not come to its end.
    pub fn end(&mut self, passed: &mut PassedOver) {
        self.assembly.give_up(passed);
    }

    fn read(
        &mut self,
        packet: LinkPacket<'_>,
        found: &mut Vec<Found>,
        passed: &mut PassedOver,
    ) -> Option<()> {
        let mut bytes = Bytes(packet.bytes);
        if bytes.u32_le()? != ADVERTISING_ACCESS_ADDRESS {
            passed.other += 1;
            return Some(());
        }
        if packet.is_coded {
            let _coding_indicator = bytes.u8()?;
        }
        let pdu = bytes.rest();
        let [header, length] = bytes.array()?;
        let mut payload = Bytes(bytes.take(length.into())?);
        let pdu = pdu.get(..2 + usize::from(length))?;
        if packet.crc_is_good.is_none() && !has_good_crc(pdu, bytes) {
            passed.bad_crc += 1;
            return Some(());
        }
        let is_random = header & 0x40 != 0;
        match header & 0x0F {
            kind @ (ADV_IND | ADV_NONCONN_IND | ADV_SCAN_IND | SCAN_RSP) => {
                found.push(Found {
                    address: payload.address()?,
                    is_random,
                    rssi_dbm: packet.rssi_dbm,
                    tx_power_dbm: None,
                    is_scan_response: kind == SCAN_RSP,
                    data: payload.rest().to_vec(),
                });
            }
            EXTENDED if packet.kind != AuxiliaryKind::Sync => {
                let extended = extended(payload)?;
                self.extended(packet, is_random, &extended, found, passed);
            }
            _ => passed.other += 1,
        }
        Some(())
    }

    /// The kinds of extended packets differ in their content only: ADV_EXT_IND has no data and
    /// points to AUX_ADV_IND, which has the address unless ADV_EXT_IND had it; AUX_CHAIN_IND has
    /// neither.
    fn extended(
        &mut self,
        packet: LinkPacket<'_>,
        is_random: bool,
        extended: &Extended<'_>,
        found: &mut Vec<Found>,
        passed: &mut PassedOver,
    ) {
        let Extended {
            set_id,
            has_more,
            data,
            ..
        } = *extended;
        let advertiser = match extended.address {
            Some(address) if data.is_empty() => {
                if has_more {
                    self.remember(set_id, address, is_random);
                }
                passed.other += 1;
                return;
            }
            Some(address) => Some((address, is_random)),
            None => None,
        };
        if advertiser.is_none()
            && let Some(key) = self.chain(set_id)
        {
            self.assembly.extend(&key, data, passed);
            if !has_more {
                found.extend(self.assembly.finish(&key));
            }
            return;
        }
        let advertiser = advertiser.or_else(|| self.recall(set_id));
        match advertiser {
            Some((address, is_random)) if !data.is_empty() => {
                let first = Found {
                    address,
                    is_random,
                    rssi_dbm: packet.rssi_dbm,
                    tx_power_dbm: extended.tx_power_dbm,
                    is_scan_response: packet.kind == AuxiliaryKind::ScanResponse,
                    data: data.to_vec(),
                };
                match has_more {
                    true => self.assembly.begin(set_id, first, passed),
                    false => found.push(first),
                }
            }
            None if !data.is_empty() => passed.without_address += 1,
            _ => passed.other += 1,
        }
    }

    /// The open chain that a packet without an address continues. It may leave out its set.
    fn chain(&self, set_id: SetId) -> Option<SetId> {
        match set_id {
            None => self.assembly.only_key().copied(),
            Some(_) => self.assembly.has(&set_id).then_some(set_id),
        }
    }

    fn remember(&mut self, set_id: SetId, address: [u8; 6], is_random: bool) {
        self.advertisers.retain(|(known, ..)| *known != set_id);
        if self.advertisers.len() == MOST_REMEMBERED {
            self.advertisers.pop_front();
        }
        self.advertisers.push_back((set_id, address, is_random));
    }

    fn recall(&self, set_id: SetId) -> Option<([u8; 6], bool)> {
        set_id?;
        let mut known = self.advertisers.iter();
        let (_, address, is_random) = known.find(|(known, ..)| *known == set_id)?;
        Some((*address, *is_random))
    }
}

/// The common extended advertising payload (2.3.4).
fn extended(mut payload: Bytes<'_>) -> Option<Extended<'_>> {
    let length = payload.u8()? & 0x3F;
    let mut header = Bytes(payload.take(length.into())?);
    let mut extended = Extended {
        address: None,
        set_id: None,
        has_more: false,
        tx_power_dbm: None,
        data: payload.rest(),
    };
    let Some(flags) = header.u8() else {
        return Some(extended);
    };
    let has = |bit: u8| flags >> bit & 1 == 1;
    if has(0) {
        extended.address = Some(header.address()?);
    }
    if has(1) {
        let _target = header.address()?;
    }
    if has(2) {
        let _constant_tone = header.u8()?;
    }
    if has(3) {
        extended.set_id = Some(header.u16_le()?);
    }
    if has(4) {
        let [_, offset_low, offset_high] = header.array()?;
        // An offset of zero means that no packet follows.
        extended.has_more = offset_low != 0 || offset_high & 0x1F != 0;
    }
    if has(5) {
        let _sync: [u8; 18] = header.array()?;
    }
    if has(6) {
        extended.tx_power_dbm = Some(header.i8()?.into());
    }
    Some(extended)
}

/// Compares the CRC of a packet that its receiver did not check. One that is absent or zero was not
/// recorded.
fn has_good_crc(pdu: &[u8], mut after: Bytes<'_>) -> bool {
    match after.array::<3>() {
        None | Some([0, 0, 0]) => true,
        Some([low, middle, high]) => crc(pdu) == u32::from_le_bytes([low, middle, high, 0]),
    }
}

/// The CRC of an advertising packet (3.1.1): the polynomial and the initial value 0x555555, both in
/// the order in which bits are sent.
fn crc(pdu: &[u8]) -> u32 {
    pdu.iter().fold(0xAA_AAAA, |crc, byte| {
        (0..8).fold(crc, |crc, bit| {
            let feedback = (crc ^ u32::from(byte >> bit)) & 1;
            (crc >> 1) ^ (feedback * 0xDA_6000)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet that was published with the verdict of the receiver that its CRC is correct.
    #[test]
    fn the_crc_is_that_of_a_published_packet() {
        let pdu = "461e23a29b6a692b0201040e094e6f726469635f426561636f6e05ff59000900";
        let found = crc(&hex::decode(pdu).unwrap()).to_le_bytes();
        assert_eq!(hex::encode(&found[..3]), "d1ea17");
    }
}
