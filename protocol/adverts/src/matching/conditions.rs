//! Conditions on a frame, and what they fix of it.

use uuid::Uuid;

use crate::frame::{Frame, LONGEST_PAYLOAD, uuid16};
use crate::language::{DefinitionError, Node, hex_bytes, uuid_of};

const KINDS: &[&str] = &[
    "MANUFACTURER_ID",
    "MANUFACTURER_PREFIX",
    "SERVICE_UUID",
    "SERVICE_DATA_UUID",
    "SERVICE_DATA_PREFIX",
    "NAME",
    "NAME_PREFIX",
    "ADDRESS_PREFIX",
    "IBEACON",
    "EDDYSTONE_UID",
    "PAYLOAD_LENGTH",
];

/// Conditions of one identifier.
const CONDITIONS: usize = 8;
/// Bytes of a prefix.
const PREFIX: usize = 64;
const APPLE: u16 = 0x004C;
const EDDYSTONE: Uuid = uuid16(0xFEAA);
/// The first bytes of an AltBeacon, after the company.
const ALTBEACON: [u8; 2] = [0xBE, 0xAC];
/// Bits that a length is counted as.
const LENGTH_BITS: u32 = 8;

/// The company or service that a payload belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carrier {
    Manufacturer(u16),
    Service(Uuid),
}

impl Carrier {
    fn bits(self) -> u32 {
        match self {
            Carrier::Manufacturer(_) => 16,
            Carrier::Service(uuid) => uuid_bits(uuid),
        }
    }

    fn payload<'a>(self, frame: &Frame<'a>) -> Option<&'a [u8]> {
        match self {
            Carrier::Manufacturer(company) => frame.manufacturer(company),
            Carrier::Service(uuid) => frame.service(uuid),
        }
    }
}

/// Bits of the shortest form of a UUID.
fn uuid_bits(uuid: Uuid) -> u32 {
    let short = uuid.as_u128() >> 96;
    match uuid.as_u128() ^ short << 96 == uuid16(0).as_u128() {
        true if short <= 0xFFFF => 16,
        true => 32,
        false => 128,
    }
}

/// Bits fixed at the start of a sequence of bytes. Bits outside the mask are zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Bits {
    pub bytes: Vec<u8>,
    pub mask: Vec<u8>,
}

impl Bits {
    fn whole(bytes: Vec<u8>) -> Bits {
        Bits {
            mask: vec![0xFF; bytes.len()],
            bytes,
        }
    }

    pub fn hold(&self, data: &[u8]) -> bool {
        data.len() >= self.bytes.len()
            && self
                .bytes
                .iter()
                .zip(&self.mask)
                .zip(data)
                .all(|((byte, mask), data)| data & mask == *byte)
    }

    fn count(&self) -> u32 {
        self.mask.iter().map(|mask| mask.count_ones()).sum()
    }

    fn contradict(&self, other: &Bits) -> bool {
        let mine = self.bytes.iter().zip(&self.mask);
        let theirs = other.bytes.iter().zip(&other.mask);
        mine.zip(theirs)
            .any(|((left, mask), (right, other))| (left ^ right) & mask & other != 0)
    }

    fn merge(&mut self, other: &Bits) {
        if self.bytes.len() < other.bytes.len() {
            self.bytes.resize(other.bytes.len(), 0);
            self.mask.resize(other.bytes.len(), 0);
        }
        self.bytes
            .iter_mut()
            .zip(&other.bytes)
            .for_each(|(byte, other)| *byte |= other);
        self.mask
            .iter_mut()
            .zip(&other.mask)
            .for_each(|(mask, other)| *mask |= other);
    }

    /// The bytes at the start that are fixed whole.
    pub fn leading(&self) -> &[u8] {
        let whole = self.mask.iter().take_while(|mask| **mask == 0xFF).count();
        self.bytes.get(..whole).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Payload {
    pub carrier: Carrier,
    pub bits: Bits,
    length: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Name {
    Exact(String),
    Prefix(String),
}

impl Name {
    fn holds(&self, name: &str) -> bool {
        match self {
            Name::Exact(exact) => exact == name,
            Name::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }

    fn contradicts(&self, other: &Name) -> bool {
        match (self, other) {
            (Name::Exact(name), other) | (other, Name::Exact(name)) => !other.holds(name),
            (Name::Prefix(left), Name::Prefix(right)) => {
                !left.starts_with(right) && !right.starts_with(left)
            }
        }
    }

    /// The end of a name is counted as a byte.
    fn bits(&self) -> u32 {
        let bytes = match self {
            Name::Exact(name) => name.len() + 1,
            Name::Prefix(prefix) => prefix.len(),
        };
        u32::try_from(bytes * 8).unwrap_or(u32::MAX)
    }
}

/// Conditions that must all hold of a frame, reduced to what they fix.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Identifier {
    pub(super) payloads: Vec<Payload>,
    pub(super) services: Vec<Uuid>,
    pub(super) name: Option<Name>,
    pub(super) address: Bits,
    specificity: u32,
}

impl Identifier {
    /// Parses `{"conditions": [{"kind", "value", "mask"?}]}`, or a single condition; `label` and
    /// `notes` may stand beside. 1 to 8 conditions. The error names the member at fault: an unknown
    /// kind, a value not of the kind's form, or a condition that contradicts another one.
    pub fn parse(value: &serde_json::Value) -> Result<Identifier, DefinitionError> {
        let node = Node::root(value);
        let conditions = if node.map()?.has("conditions") {
            let object = node.object(&["conditions", "label", "notes"])?;
            let list = object.required("conditions")?;
            let conditions = list.array()?;
            if conditions.is_empty() || conditions.len() > CONDITIONS {
                return Err(list.error(format!("must have 1 to {CONDITIONS} conditions")));
            }
            for condition in &conditions {
                condition.object(&["kind", "value", "mask"])?;
            }
            conditions
        } else {
            node.object(&["kind", "value", "mask", "label", "notes"])?;
            vec![node]
        };
        let mut identifier = Identifier::default();
        // A length is of a service's data where another condition says so: lengths come last.
        let is_length = |node: &&Node<'_>| {
            node.value
                .get("kind")
                .is_some_and(|kind| kind == "PAYLOAD_LENGTH")
        };
        for condition in conditions
            .iter()
            .filter(|node| !is_length(node))
            .chain(conditions.iter().filter(is_length))
        {
            identifier.add(condition)?;
        }
        identifier.payloads.sort_by_key(|payload| payload.carrier);
        identifier.services.sort_unstable();
        identifier.specificity = match identifier.is_generic() {
            true => identifier.fixed_bits() / 8,
            false => identifier.fixed_bits(),
        };
        Ok(identifier)
    }

    /// Number of bits of a frame that this fixes: 16 for a company or a short UUID, 8 for a
    /// character, a length or a whole byte. A bit that two conditions fix is counted once. Of what
    /// beacons of all makers send, an eighth, so that it never outranks what one maker sends.
    pub fn specificity(&self) -> u32 {
        self.specificity
    }

    pub fn matches(&self, frame: &Frame<'_>) -> bool {
        let payload = |payload: &Payload| {
            payload.carrier.payload(frame).is_some_and(|data| {
                payload.bits.hold(data) && payload.length.is_none_or(|length| length == data.len())
            })
        };
        self.payloads.iter().all(payload)
            && self
                .services
                .iter()
                .all(|uuid| frame.service_uuids.contains(uuid))
            && self
                .name
                .as_ref()
                .is_none_or(|name| frame.name.is_some_and(|given| name.holds(given)))
            && (self.address.mask.is_empty()
                || frame
                    .address
                    .is_some_and(|address| self.address.hold(&address)))
    }

    /// Whether a frame can fit both, and fits neither better: both fix the same number of bits in
    /// the same parts of a frame.
    pub fn ties(&self, other: &Identifier) -> bool {
        self.specificity == other.specificity && self.same_parts(other) && !self.contradicts(other)
    }

    /// The positions of the fixed bits, without their values. Two identifiers of one shape
    /// contradict each other unless they are equal.
    pub(super) fn shape(&self) -> Identifier {
        let mut shape = self.clone();
        for payload in &mut shape.payloads {
            payload.bits.bytes.fill(0);
            payload.length = payload.length.map(|_| 0);
        }
        shape.address.bytes.fill(0);
        shape.name = self.name.as_ref().map(|name| match name {
            Name::Exact(name) => Name::Exact("?".repeat(name.len())),
            Name::Prefix(prefix) => Name::Prefix("?".repeat(prefix.len())),
        });
        shape
    }

    pub(super) fn same_parts(&self, other: &Identifier) -> bool {
        let carried =
            |by: &Identifier, carrier| by.payloads.iter().any(|payload| payload.carrier == carrier);
        self.payloads.len() == other.payloads.len()
            && self
                .payloads
                .iter()
                .all(|payload| carried(other, payload.carrier))
            && self.services.len() == other.services.len()
            && self
                .services
                .iter()
                .all(|uuid| other.services.contains(uuid))
            && self.name.is_some() == other.name.is_some()
            && self.address.mask.is_empty() == other.address.mask.is_empty()
    }

    fn contradicts(&self, other: &Identifier) -> bool {
        let payload = |left: &Payload| {
            other
                .payloads
                .iter()
                .filter(|right| right.carrier == left.carrier)
                .any(|right| {
                    left.bits.contradict(&right.bits)
                        || left.length.zip(right.length).is_some_and(|(a, b)| a != b)
                })
        };
        let name = self
            .name
            .as_ref()
            .zip(other.name.as_ref())
            .is_some_and(|(left, right)| left.contradicts(right));
        name || self.payloads.iter().any(payload) || self.address.contradict(&other.address)
    }

    /// Whether this fixes no more than the kind of a beacon's frame: an iBeacon of any UUID, an
    /// Eddystone frame of one kind, or an AltBeacon of any company.
    fn is_generic(&self) -> bool {
        let is_kind = |payload: &Payload| {
            let kind_bits = match payload.carrier {
                Carrier::Manufacturer(APPLE) => 16,
                Carrier::Service(EDDYSTONE) => 8,
                _ => return payload.bits.bytes == ALTBEACON,
            };
            payload.bits.count() <= kind_bits
        };
        !self.payloads.is_empty()
            && self.payloads.iter().all(is_kind)
            && self.name.is_none()
            && self.address.mask.is_empty()
    }

    fn fixed_bits(&self) -> u32 {
        let payload = |payload: &Payload| {
            payload.carrier.bits()
                + payload.bits.count()
                + payload.length.map_or(0, |_| LENGTH_BITS)
        };
        self.payloads.iter().map(payload).sum::<u32>()
            + self
                .services
                .iter()
                .map(|uuid| uuid_bits(*uuid))
                .sum::<u32>()
            + self.name.as_ref().map_or(0, Name::bits)
            + self.address.count()
    }

    fn add(&mut self, condition: &Node<'_>) -> Result<(), DefinitionError> {
        let object = condition.map()?;
        let kind = object.required("kind")?;
        let kind = KINDS.get(kind.choice(KINDS)?).copied().unwrap_or_default();
        let value = object.required("value")?;
        let text = value.text()?;
        let mask = object.get("mask");
        if let Some(mask) = &mask
            && !matches!(
                kind,
                "MANUFACTURER_PREFIX" | "SERVICE_DATA_PREFIX" | "ADDRESS_PREFIX"
            )
        {
            return Err(mask.error("goes with a prefix of bytes"));
        }
        let form = |form: &str| value.error(format!("must be of the form {form}"));
        let bits = |digits: &str, longest: usize, what: &str| {
            let bytes = hex_bytes(digits).filter(|bytes| (1..=longest).contains(&bytes.len()));
            masked(bytes.ok_or_else(|| form(what))?, mask.as_ref())
        };
        match kind {
            "MANUFACTURER_ID" => {
                let company = company(text).ok_or_else(|| form("0499"))?;
                self.payload(
                    &value,
                    Carrier::Manufacturer(company),
                    Bits::default(),
                    None,
                )
            }
            "MANUFACTURER_PREFIX" => {
                let split = text
                    .split_once(':')
                    .and_then(|(id, digits)| Some((company(id)?, digits)));
                let (company, digits) = split.ok_or_else(|| form("0499:05"))?;
                self.payload(
                    &value,
                    Carrier::Manufacturer(company),
                    bits(digits, PREFIX, "0499:05")?,
                    None,
                )
            }
            "SERVICE_UUID" => {
                let uuid = uuid_of(text).ok_or_else(|| form("fff0, or 36 characters"))?;
                if !self.services.contains(&uuid) {
                    self.services.push(uuid);
                }
                Ok(())
            }
            "SERVICE_DATA_UUID" => {
                let uuid = uuid_of(text).ok_or_else(|| form("fcd2, or 36 characters"))?;
                self.payload(&value, Carrier::Service(uuid), Bits::default(), None)
            }
            "SERVICE_DATA_PREFIX" => {
                let split = text
                    .split_once(':')
                    .and_then(|(id, digits)| Some((uuid_of(id)?, digits)));
                let (uuid, digits) = split.ok_or_else(|| form("fcd2:40"))?;
                self.payload(
                    &value,
                    Carrier::Service(uuid),
                    bits(digits, PREFIX, "fcd2:40")?,
                    None,
                )
            }
            "NAME" | "NAME_PREFIX" => {
                if text.is_empty() || text.len() > 248 {
                    return Err(value.error("must be 1 to 248 characters"));
                }
                let name = if kind == "NAME" {
                    Name::Exact(text.to_owned())
                } else {
                    Name::Prefix(text.to_owned())
                };
                if self.name.is_some() {
                    return Err(value.error("is a second condition on the name"));
                }
                self.name = Some(name);
                Ok(())
            }
            "ADDRESS_PREFIX" => {
                let bits = bits(text, 6, "C4:11")?;
                if self.address.contradict(&bits) {
                    return Err(value.error("contradicts another condition"));
                }
                self.address.merge(&bits);
                Ok(())
            }
            "IBEACON" => {
                let bytes =
                    ibeacon(text).ok_or_else(|| form("uuid, uuid/major or uuid/major/minor"))?;
                self.payload(
                    &value,
                    Carrier::Manufacturer(APPLE),
                    Bits::whole(bytes),
                    None,
                )
            }
            "EDDYSTONE_UID" => {
                let bits = eddystone(text)
                    .ok_or_else(|| form("namespace or namespace/instance, in hexadecimal"))?;
                self.payload(&value, Carrier::Service(EDDYSTONE), bits, None)
            }
            _ => {
                let split = text.split_once(':').and_then(|(id, length)| {
                    let length = length
                        .parse()
                        .ok()
                        .filter(|length| *length <= LONGEST_PAYLOAD)?;
                    let service = uuid_of(id).map(Carrier::Service);
                    let known = self
                        .payloads
                        .iter()
                        .any(|payload| Some(payload.carrier) == service);
                    let carrier = if known {
                        service
                    } else {
                        company(id).map(Carrier::Manufacturer).or(service)
                    };
                    Some((carrier?, length))
                });
                let (carrier, length) = split.ok_or_else(|| form("0499:24"))?;
                self.payload(&value, carrier, Bits::default(), Some(length))
            }
        }
    }

    fn payload(
        &mut self,
        node: &Node<'_>,
        carrier: Carrier,
        bits: Bits,
        length: Option<usize>,
    ) -> Result<(), DefinitionError> {
        let Some(known) = self
            .payloads
            .iter_mut()
            .find(|payload| payload.carrier == carrier)
        else {
            self.payloads.push(Payload {
                carrier,
                bits,
                length,
            });
            return Ok(());
        };
        if known.bits.contradict(&bits) || known.length.zip(length).is_some_and(|(a, b)| a != b) {
            return Err(node.error("contradicts another condition"));
        }
        known.bits.merge(&bits);
        known.length = known.length.or(length);
        Ok(())
    }
}

fn company(text: &str) -> Option<u16> {
    let digits = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if digits {
        u16::from_str_radix(text, 16).ok()
    } else {
        None
    }
}

fn masked(mut bytes: Vec<u8>, mask: Option<&Node<'_>>) -> Result<Bits, DefinitionError> {
    let Some(node) = mask else {
        return Ok(Bits::whole(bytes));
    };
    let mask = node.hex(bytes.len(), bytes.len())?;
    bytes
        .iter_mut()
        .zip(&mask)
        .for_each(|(byte, mask)| *byte &= mask);
    Ok(Bits { bytes, mask })
}

/// The payload of an iBeacon: 0x02, 0x15, UUID, major, minor.
fn ibeacon(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('/');
    let uuid = Uuid::try_parse(parts.next()?).ok()?;
    let mut bytes = vec![0x02, 0x15];
    bytes.extend_from_slice(uuid.as_bytes());
    for number in parts.by_ref().take(2) {
        bytes.extend_from_slice(&number.parse::<u16>().ok()?.to_be_bytes());
    }
    parts.next().is_none().then_some(bytes)
}

/// Eddystone-UID service data: 0x00, transmission power, namespace of 10 bytes, instance of 6.
fn eddystone(text: &str) -> Option<Bits> {
    let (namespace, instance) = match text.split_once('/') {
        Some((namespace, instance)) => (namespace, Some(instance)),
        None => (text, None),
    };
    let mut bits = Bits {
        bytes: vec![0, 0],
        mask: vec![0xFF, 0],
    };
    let mut part = |digits: &str, size: usize| {
        let bytes = hex_bytes(digits).filter(|bytes| bytes.len() == size)?;
        bits.bytes.extend_from_slice(&bytes);
        bits.mask.resize(bits.bytes.len(), 0xFF);
        Some(())
    };
    part(namespace, 10)?;
    if let Some(instance) = instance {
        part(instance, 6)?;
    }
    Some(bits)
}
