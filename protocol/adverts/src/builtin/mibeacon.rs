//! MiBeacon (Xiaomi IoT, "Mijia BLE broadcasting protocol", versions 2 to 5, and "Mijia BLE object
//! definition"): data of the service FE95. All numbers are little-endian.

mod buttons;
mod locks;
mod models;
mod objects;

use crate::bytes::{at, u8_at, u16_le};
use crate::crypto::{self, Plain};
use crate::frame::{Address, Frame, uuid16};
use crate::measurement::Measurement;
use crate::outcome::{BindKey, Facts, Identity, Keys, Outcome, Sequence};
use crate::quantity::{Quantity, known};
use uuid::Uuid;

const SERVICE: Uuid = uuid16(0xFE95);

const FRAME_COUNTER: &Quantity = known("frame_counter");

/// The data that a tag authenticates beside the objects.
const ASSOCIATED: [u8; 1] = [0x11];

/// The bytes 6 to 9 of all keys of the versions 2 and 3.
const SHORT_KEY_MIDDLE: [u8; 4] = [0x8D, 0x3D, 0x3C, 0x97];

/// The control bits at the start of a frame.
#[derive(Clone, Copy)]
struct Control(u16);

impl Control {
    fn has(self, bit: u32) -> bool {
        self.0 >> bit & 1 != 0
    }

    fn is_encrypted(self) -> bool {
        self.has(3)
    }

    fn has_address(self) -> bool {
        self.has(4)
    }

    fn has_capability(self) -> bool {
        self.has(5)
    }

    fn has_objects(self) -> bool {
        self.has(6)
    }

    fn is_mesh(self) -> bool {
        self.has(7)
    }

    fn version(self) -> u16 {
        self.0 >> 12
    }
}

/// Reads a MiBeacon frame: `frame_counter` and what its objects measure. The address in the payload
/// is the frame's identity; the product's model is in the facts where it is known. Objects that are
/// not known are skipped. A frame without objects, or of a device in a mesh, is read as one that
/// measures nothing.
///
/// The versions 4 and 5 are encrypted with AES-CCM and a key of 16 bytes. The versions 2 and 3 have
/// keys of 12 bytes and send no tag: a key is called wrong where no objects come out, and the
/// frame's counter is never authenticated. The nonce needs the device's address, from the payload
/// or the advertisement.
pub fn decode(frame: &Frame, keys: &Keys, out: &mut Vec<Measurement>) -> Outcome {
    let Some(data) = frame.service(SERVICE) else {
        return Outcome::NotMine;
    };
    let Some(control) = u16_le(data, 0).map(Control) else {
        return Outcome::Invalid;
    };
    if !(2..=5).contains(&control.version()) {
        return Outcome::NotMine;
    }
    read(frame, data, control, keys, out).unwrap_or(Outcome::Invalid)
}

/// Returns `None` where the frame is cut short.
fn read(
    frame: &Frame,
    data: &[u8],
    control: Control,
    keys: &Keys,
    out: &mut Vec<Measurement>,
) -> Option<Outcome> {
    let product = u16_le(data, 2)?;
    let counter = u8_at(data, 4)?;
    let mut rest = data.get(5..)?;
    let mut facts = Facts {
        sequence: Some(Sequence {
            value: counter.into(),
            bits: 8,
            authenticated: false,
        }),
        model: models::model(product),
        encrypted: control.is_encrypted(),
        ..Facts::default()
    };
    let mut address = frame.address;
    if control.has_address() {
        let mut mac: Address = at(rest, 0)?;
        mac.reverse();
        facts.identity = Some(Identity::Mac(mac));
        address = Some(mac);
        rest = rest.get(6..)?;
    }
    if control.has_capability() {
        let capability = u8_at(rest, 0)?;
        // Bit 5 announces two bytes on how the device is paired.
        rest = rest.get(if capability & 0x20 == 0 { 1 } else { 3 }..)?;
    }
    let start = out.len();
    out.push(Measurement::number(FRAME_COUNTER, counter.into()));
    if control.is_mesh() || !control.has_objects() {
        return Some(Outcome::Decoded(facts));
    }
    let model = facts.model.unwrap_or_default();
    let reading = if control.is_encrypted() {
        let sealed = Sealed {
            data,
            rest,
            counter,
            address,
        };
        sealed
            .open(control, keys, &mut facts)
            .map(|plain| read_objects(plain.bytes(), model, out))
    } else {
        Ok(read_objects(rest, model, out))
    };
    let is_unproven = control.is_encrypted() && control.version() < 4;
    let outcome = match reading {
        Ok(Reading::Whole) => Outcome::Decoded(facts),
        Ok(_) if is_unproven => Outcome::WrongKey(facts),
        Ok(Reading::Partial) => Outcome::Decoded(facts),
        Ok(Reading::None) => Outcome::Invalid,
        Err(outcome) => outcome,
    };
    if !matches!(outcome, Outcome::Decoded(_)) {
        out.truncate(start);
    }
    Some(outcome)
}

/// How far objects could be read.
enum Reading {
    /// The objects were read to the end, and all are known.
    Whole,
    /// An object is unknown, or the last one is cut short.
    Partial,
    /// The first object is cut short, or there is no object.
    None,
}

/// Objects are an identifier, a length and data. The objects before one that is cut short are kept.
fn read_objects(mut rest: &[u8], model: &str, out: &mut Vec<Measurement>) -> Reading {
    let mut reading = Reading::None;
    while let Some((id, data, next)) = split_object(rest) {
        let known = objects::read(id, data, model, out).is_some();
        reading = match reading {
            Reading::None | Reading::Whole if known => Reading::Whole,
            _ => Reading::Partial,
        };
        rest = next;
    }
    if rest.is_empty() || matches!(reading, Reading::None) {
        reading
    } else {
        Reading::Partial
    }
}

fn split_object(rest: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let id = u16_le(rest, 0)?;
    let length = u8_at(rest, 2)?;
    let (data, next) = rest.get(3..)?.split_at_checked(usize::from(length))?;
    Some((id, data, next))
}

/// Encrypted objects and the frame they are in.
struct Sealed<'a> {
    data: &'a [u8],
    rest: &'a [u8],
    counter: u8,
    address: Option<Address>,
}

impl Sealed<'_> {
    fn open(&self, control: Control, keys: &Keys, facts: &mut Facts) -> Result<Plain, Outcome> {
        let opened = if control.version() >= 4 {
            self.open_new(keys, facts)
        } else {
            self.open_old(keys, facts)
        };
        opened.unwrap_or(Err(Outcome::Invalid))
    }

    /// Versions 4 and 5: the objects, three bytes that continue the counter, the tag. The nonce is
    /// the address backwards, the product, the counter and its continuation. Returns `None` where
    /// the frame is cut short.
    fn open_new(&self, keys: &Keys, facts: &mut Facts) -> Option<Result<Plain, Outcome>> {
        let (rest, tag) = self.rest.split_last_chunk::<4>()?;
        let (text, more) = rest.split_last_chunk::<3>()?;
        let [e0, e1, e2] = *more;
        let sequence = Sequence {
            value: u32::from_le_bytes([self.counter, e0, e1, e2]),
            bits: 32,
            authenticated: false,
        };
        facts.sequence = Some(sequence);
        let (Some(bind_key), Some(address)) = (keys.bind_key, self.address) else {
            return Some(Err(Outcome::NeedsKey(*facts)));
        };
        let BindKey::Full(key) = bind_key else {
            return Some(Err(Outcome::WrongKey(*facts)));
        };
        let [a0, a1, a2, a3, a4, a5] = address;
        let [p0, p1] = at(self.data, 2)?;
        let nonce = [a5, a4, a3, a2, a1, a0, p0, p1, self.counter, e0, e1, e2];
        let plain = crypto::ccm(key, &nonce, &ASSOCIATED, text, *tag);
        if plain.is_some() {
            facts.sequence = Some(Sequence {
                authenticated: true,
                ..sequence
            });
        }
        Some(plain.ok_or(Outcome::WrongKey(*facts)))
    }

    /// Versions 2 and 3: the objects, three bytes that continue the counter, and a byte that is no
    /// tag. The nonce is the first five bytes of the frame, the continuation, and five bytes of the
    /// address backwards. Returns `None` where the frame is cut short.
    fn open_old(&self, keys: &Keys, facts: &Facts) -> Option<Result<Plain, Outcome>> {
        let (text, [e0, e1, e2, _]) = self.rest.split_last_chunk::<4>()?;
        let (Some(bind_key), Some(address)) = (keys.bind_key, self.address) else {
            return Some(Err(Outcome::NeedsKey(*facts)));
        };
        let key = match bind_key {
            BindKey::Full(key) => *key,
            BindKey::Short(short) => full_key(short),
        };
        let [_, a1, a2, a3, a4, a5] = address;
        let [d0, d1, d2, d3, d4] = at(self.data, 0)?;
        let nonce = [d0, d1, d2, d3, d4, *e0, *e1, *e2, a5, a4, a3, a2, a1];
        crypto::ccm_without_tag(&key, &nonce, text).map(Ok)
    }
}

fn full_key(short: &[u8; 12]) -> [u8; 16] {
    let [k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11] = *short;
    let [m0, m1, m2, m3] = SHORT_KEY_MIDDLE;
    [
        k0, k1, k2, k3, k4, k5, m0, m1, m2, m3, k6, k7, k8, k9, k10, k11,
    ]
}
