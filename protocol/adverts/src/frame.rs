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
    /// The companies whose data is not what the advertiser's last report had. Operating systems
    /// still report what an advertiser has sent before, beside what it sends now. `None` if the
    /// last report is not known.
    pub changed_companies: Option<&'a [u16]>,
}

/// Companies and the payloads after them.
pub type ManufacturerData<'a> = Vec<(u16, &'a [u8])>;
/// Services and their data.
pub type ServiceData<'a> = Vec<(Uuid, &'a [u8])>;

/// Payloads of a frame, as bits by their places. Those beyond the 32nd of a kind are never in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Payloads(u64);

const PLACES: usize = 32;

impl Payloads {
    pub fn add_manufacturer(&mut self, place: usize) {
        if place < PLACES {
            self.0 |= 1 << place;
        }
    }

    pub fn add_service(&mut self, place: usize) {
        if place < PLACES {
            self.0 |= 1 << (place + PLACES);
        }
    }

    fn has_manufacturer(self, place: usize) -> bool {
        place < PLACES && self.0 & (1 << place) != 0
    }

    fn has_service(self, place: usize) -> bool {
        place < PLACES && self.0 & (1 << (place + PLACES)) != 0
    }

    #[must_use]
    pub fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The 128-bit form of a 16-bit UUID (Bluetooth Core Specification, Vol 3, Part B, 2.5.1).
pub const fn uuid16(short: u16) -> Uuid {
    Uuid::from_u128(0x0000_0000_0000_1000_8000_0080_5F9B_34FB | ((short as u128) << 96))
}

impl<'a> Frame<'a> {
    /// The manufacturer data and the service data without some of the payloads.
    pub fn rest(&self, without: Payloads) -> (ManufacturerData<'a>, ServiceData<'a>) {
        let manufacturer = self.manufacturer_data.iter().enumerate();
        let manufacturer = manufacturer.filter(|(place, _)| !without.has_manufacturer(*place));
        let service = self.service_data.iter().enumerate();
        let service = service.filter(|(place, _)| !without.has_service(*place));
        (
            manufacturer.map(|(_, entry)| *entry).collect(),
            service.map(|(_, entry)| *entry).collect(),
        )
    }

    /// The payloads of these companies and services.
    pub fn payloads_of(&self, companies: &[u16], services: &[Uuid]) -> Payloads {
        let mut payloads = Payloads::default();
        for (place, (company, _)) in self.manufacturer_data.iter().enumerate() {
            if companies.contains(company) {
                payloads.add_manufacturer(place);
            }
        }
        for (place, (service, _)) in self.service_data.iter().enumerate() {
            if services.contains(service) {
                payloads.add_service(place);
            }
        }
        payloads
    }

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
