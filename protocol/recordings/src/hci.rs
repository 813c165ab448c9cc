//! Advertising reports in HCI events (Bluetooth Core Specification, Vol 4, Part E, 7.7.65.2 and
//! 7.7.65.13).

use crate::bytes::Bytes;
use crate::found::{Assembly, Found};
use crate::report::PassedOver;

const LE_META_EVENT: u8 = 0x3E;
const ADVERTISING_REPORT: u8 = 0x02;
const EXTENDED_ADVERTISING_REPORT: u8 = 0x0D;
/// The event types of a report that is no broadcast, and of a scan response.
const DIRECTED: u8 = 0x01;
const SCAN_RESPONSE: u8 = 0x04;
/// The bit of an extended report that is of a scan response.
const EXTENDED_SCAN_RESPONSE: u16 = 1 << 3;
const ANONYMOUS: u8 = 0xFF;
/// A signal strength, or a transmit power, that the controller does not know.
const UNKNOWN_DBM: i8 = 127;

/// What the fragments of one advertisement have in common.
#[derive(Debug, PartialEq)]
struct Key {
    adapter: u16,
    address: [u8; 6],
    address_type: u8,
    set_id: u8,
    is_scan_response: bool,
}

#[derive(Debug, Default)]
pub struct Hci {
    assembly: Assembly<Key>,
}

impl Hci {
    /// Reads an event of an adapter, from its code on.
    pub fn event(
        &mut self,
        adapter: u16,
        event: &[u8],
        found: &mut Vec<Found>,
        passed: &mut PassedOver,
    ) {
        let mut event = Bytes(event);
        if event.u8() != Some(LE_META_EVENT) {
            passed.other += 1;
            return;
        }
        let parameters = event.u8().and_then(|length| event.take(length.into()));
        let Some(mut parameters) = parameters.map(Bytes) else {
            passed.malformed += 1;
            return;
        };
        let read = match parameters.u8() {
            Some(ADVERTISING_REPORT) => reports(parameters, found, passed),
            Some(EXTENDED_ADVERTISING_REPORT) => {
                self.extended_reports(adapter, parameters, found, passed)
            }
            Some(_) => {
                passed.other += 1;
                Some(())
            }
            None => None,
        };
        if read.is_none() {
            passed.malformed += 1;
        }
    }

    /// Gives up what has not come to its end.
    pub fn end(&mut self, passed: &mut PassedOver) {
        self.assembly.give_up(passed);
    }

    fn extended_reports(
        &mut self,
        adapter: u16,
        mut parameters: Bytes<'_>,
        found: &mut Vec<Found>,
        passed: &mut PassedOver,
    ) -> Option<()> {
        for _ in 0..parameters.u8()? {
            let event_type = parameters.u16_le()?;
            let address_type = parameters.u8()?;
            let address = parameters.address()?;
            let _phys: [u8; 2] = parameters.array()?;
            let set_id = parameters.u8()?;
            let tx_power_dbm = known(parameters.i8()?);
            let rssi_dbm = known(parameters.i8()?);
            let _interval_and_target: [u8; 9] = parameters.array()?;
            let length = parameters.u8()?;
            let data = parameters.take(length.into())?;
            if address_type == ANONYMOUS {
                passed.without_address += 1;
                continue;
            }
            let is_scan_response = event_type & EXTENDED_SCAN_RESPONSE != 0;
            let key = Key {
                adapter,
                address,
                address_type,
                set_id,
                is_scan_response,
            };
            let has_begun = self.assembly.has(&key);
            let has_more = event_type >> 5 & 3 == 1;
            if has_begun {
                self.assembly.extend(&key, data, passed);
                if !has_more {
                    found.extend(self.assembly.finish(&key));
                }
                continue;
            }
            let first = Found {
                address,
                is_random: is_random(address_type),
                rssi_dbm,
                tx_power_dbm,
                is_scan_response,
                data: data.to_vec(),
            };
            match has_more {
                true => self.assembly.begin(key, first, passed),
                false => found.push(first),
            }
        }
        Some(())
    }
}

fn reports(
    mut parameters: Bytes<'_>,
    found: &mut Vec<Found>,
    passed: &mut PassedOver,
) -> Option<()> {
    for _ in 0..parameters.u8()? {
        let event_type = parameters.u8()?;
        let address_type = parameters.u8()?;
        let address = parameters.address()?;
        let length = parameters.u8()?;
        let data = parameters.take(length.into())?;
        let rssi_dbm = known(parameters.i8()?);
        if event_type == DIRECTED {
            passed.other += 1;
            continue;
        }
        found.push(Found {
            address,
            is_random: is_random(address_type),
            rssi_dbm,
            tx_power_dbm: None,
            is_scan_response: event_type == SCAN_RESPONSE,
            data: data.to_vec(),
        });
    }
    Some(())
}

/// Types 2 and 3 are the public and the random identity of an address that was resolved.
fn is_random(address_type: u8) -> bool {
    address_type & 1 != 0
}

fn known(dbm: i8) -> Option<i16> {
    (dbm != UNKNOWN_DBM).then_some(dbm.into())
}
