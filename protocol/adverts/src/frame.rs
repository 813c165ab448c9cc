//! An advertisement as a decoder sees it.

use uuid::Uuid;

/// An advertiser's address in the order in which it is written: `C4:11:...` is `[0xC4, 0x11, ...]`.
pub type Address = [u8; 6];

/// Kind of an address (Bluetooth Core Specification, Vol 6, Part B, 1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressType {
    Public,
    Random,
}

/// The longest payload: what extended advertising carries.
pub const LONGEST_PAYLOAD: usize = 1_650;

/// An advertisement. All parts are borrowed, so that a frame costs no allocation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frame<'a> {
    pub address: Option<Address>,
    pub address_type: Option<AddressType>,
    pub name: Option<&'a str>,
    /// Company identifier and the payload after it.
    pub manufacturer_data: &'a [(u16, &'a [u8])],
    /// Service UUID and its data. A 16-bit UUID is in its 128-bit form.
    pub service_data: &'a [(Uuid, &'a [u8])],
    pub service_uuids: &'a [Uuid],
    pub tx_power_dbm: Option<i8>,
}

/// The 128-bit form of a 16-bit UUID (Bluetooth Core Specification, Vol 3, Part B, 2.5.1).
pub const fn uuid16(short: u16) -> Uuid {
    Uuid::from_u128(0x0000_0000_0000_1000_8000_0080_5F9B_34FB | ((short as u128) << 96))
}

impl<'a> Frame<'a> {
    /// The payload that follows a company identifier.
    pub fn manufacturer(&self, company: u16) -> Option<&'a [u8]> {
        self.manufacturer_data
            .iter()
            .find(|(id, _)| *id == company)
            .map(|(_, payload)| *payload)
    }

    /// The data of a service.
    pub fn service(&self, uuid: Uuid) -> Option<&'a [u8]> {
        self.service_data
            .iter()
            .find(|(id, _)| *id == uuid)
            .map(|(_, payload)| *payload)
    }
}
