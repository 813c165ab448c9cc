//! BTHome (bthome.io, "Format", "Encryption" and "BTHome v1"): version 2 under the service FCD2,
//! version 1 under 181C and, encrypted, 181E. All numbers are little-endian.

mod objects;

use crate::bytes::{at, hex, signed_le, unsigned_le};
use crate::crypto::{self, Plain};
use crate::frame::{Address, Frame, uuid16};
use crate::measurement::{Measurement, Value};
use crate::outcome::{BindKey, Facts, Identity, Keys, Outcome, Sequence};
use crate::quantity::{QUANTITIES, Quantity, known};
use objects::{Object, Shape, object};
use uuid::Uuid;

const SERVICE_V2: Uuid = uuid16(0xFCD2);
const SERVICE_V1: Uuid = uuid16(0x181C);
const SERVICE_V1_ENCRYPTED: Uuid = uuid16(0x181E);

const COMMAND_ARGUMENTS: &Quantity = known("command_arguments");
const COMMAND_STEPS: &Quantity = known("command_steps");
const DIMMER_STEPS: &Quantity = known("dimmer_steps");

/// The object that holds the packet's number.
const PACKET_ID: u8 = 0x00;

/// Reads a BTHome frame: the quantities of the objects in it. A property that occurs more than once
/// has an index in frame order, which counts the events "none" too: they measure nothing. An object
/// that is not known ends the reading of version 2, and what was read before it is kept; version 1
/// has the length of each object, so that unknown ones are skipped. Texts that are not UTF-8 are
/// left out.
///
/// Encryption is AES-CCM with a key of 16 bytes and the advertiser's address in the nonce. The
/// counter of an encrypted frame is its sequence, else the packet's number.
pub fn decode(frame: &Frame, keys: &Keys, out: &mut Vec<Measurement>) -> Outcome {
    if let Some(data) = frame.service(SERVICE_V2) {
        return version_2(frame, data, keys, out);
    }
    if let Some(data) = frame.service(SERVICE_V1) {
        return version_1(data, Facts::default(), out);
    }
    if let Some(data) = frame.service(SERVICE_V1_ENCRYPTED) {
        return version_1_encrypted(frame, data, keys, out);
    }
    Outcome::NotMine
}

/// The device information byte: encryption in bit 0, an address before the objects in bit 1, the
/// version in the bits 5 to 7.
fn version_2(frame: &Frame, data: &[u8], keys: &Keys, out: &mut Vec<Measurement>) -> Outcome {
    let Some((information, rest)) = data.split_first() else {
        return Outcome::Invalid;
    };
    if information >> 5 != 2 {
        return Outcome::NotMine;
    }
    let mut facts = Facts::default();
    let mut address = frame.address;
    let mut rest = rest;
    if information & 0x02 != 0 {
        let Some((reversed, after)) = rest.split_first_chunk::<6>() else {
            return Outcome::Invalid;
        };
        let mut mac: Address = *reversed;
        mac.reverse();
        facts.identity = Some(Identity::Mac(mac));
        address = Some(mac);
        rest = after;
    }
    if information & 0x01 == 0 {
        return finish(objects_v2(rest, out), facts);
    }
    let Some(sealed) = Sealed::of(rest) else {
        return Outcome::Invalid;
    };
    let header = [0xD2, 0xFC, *information];
    match sealed.open(address, &header, &[], keys, &mut facts) {
        Ok(plain) => finish(objects_v2(plain.bytes(), out), facts),
        Err(outcome) => outcome,
    }
}

fn version_1(objects: &[u8], facts: Facts, out: &mut Vec<Measurement>) -> Outcome {
    finish(objects_v1(objects, out), facts)
}

fn version_1_encrypted(
    frame: &Frame,
    data: &[u8],
    keys: &Keys,
    out: &mut Vec<Measurement>,
) -> Outcome {
    let Some(sealed) = Sealed::of(data) else {
        return Outcome::Invalid;
    };
    let mut facts = Facts::default();
    match sealed.open(frame.address, &[0x1E, 0x18], &[0x11], keys, &mut facts) {
        Ok(plain) => version_1(plain.bytes(), facts, out),
        Err(outcome) => outcome,
    }
}

/// The counter of an encrypted frame goes before the packet's number.
fn finish(packet: Option<Option<Sequence>>, mut facts: Facts) -> Outcome {
    let Some(packet) = packet else {
        return Outcome::Invalid;
    };
    facts.sequence = facts.sequence.or(packet);
    Outcome::Decoded(facts)
}

/// Encrypted objects, the counter and the tag.
struct Sealed<'a> {
    text: &'a [u8],
    counter: [u8; 4],
    tag: [u8; 4],
}

impl<'a> Sealed<'a> {
    fn of(data: &'a [u8]) -> Option<Self> {
        let (rest, tag) = data.split_last_chunk()?;
        let (text, counter) = rest.split_last_chunk()?;
        Some(Self {
            text,
            counter: *counter,
            tag: *tag,
        })
    }

    /// The objects. The nonce is the address, the header and the counter.
    fn open(
        &self,
        address: Option<Address>,
        header: &[u8],
        associated: &[u8],
        keys: &Keys,
        facts: &mut Facts,
    ) -> Result<Plain, Outcome> {
        let sequence = Sequence {
            value: u32::from_le_bytes(self.counter),
            bits: 32,
            authenticated: false,
        };
        facts.encrypted = true;
        facts.sequence = Some(sequence);
        let (Some(bind_key), Some(address)) = (keys.bind_key, address) else {
            return Err(Outcome::NeedsKey(*facts));
        };
        let BindKey::Full(key) = bind_key else {
            return Err(Outcome::WrongKey(*facts));
        };
        let mut nonce = [0; 13];
        let length = address.len() + header.len() + self.counter.len();
        for (place, byte) in nonce
            .iter_mut()
            .zip(address.iter().chain(header).chain(&self.counter))
        {
            *place = *byte;
        }
        let nonce = nonce.get(..length).unwrap_or_default();
        let plain = crypto::ccm(key, nonce, associated, self.text, self.tag)
            .ok_or(Outcome::WrongKey(*facts))?;
        facts.sequence = Some(Sequence {
            authenticated: true,
            ..sequence
        });
        Ok(plain)
    }
}

/// Reads the objects of version 2 and returns the packet's number; `None` where the first object is
/// cut short, or there is no object.
fn objects_v2(mut rest: &[u8], out: &mut Vec<Measurement>) -> Option<Option<Sequence>> {
    let mut reader = Reader::new(out);
    if rest.is_empty() {
        return None;
    }
    while let Some((id, after)) = rest.split_first() {
        let Some(object) = object(*id) else { break };
        let Some((data, next)) = object.split(after) else {
            if reader.is_untouched() {
                return None;
            }
            break;
        };
        reader.read(object, data, Encoding::OfObject);
        rest = next;
    }
    Some(reader.finish())
}

/// Reads the objects of version 1: the length and the encoding, the object's identifier, data.
fn objects_v1(mut rest: &[u8], out: &mut Vec<Measurement>) -> Option<Option<Sequence>> {
    let mut reader = Reader::new(out);
    while let Some((control, after)) = rest.split_first() {
        let Some((body, next)) = after.split_at_checked(usize::from(control & 0x1F)) else {
            break;
        };
        rest = next;
        let Some((id, data)) = body.split_first() else {
            continue;
        };
        let encoding = match control >> 5 {
            1 => Encoding::Signed,
            2 => Encoding::Float,
            4 => continue,
            _ => Encoding::Unsigned,
        };
        if let Some(object) = object(*id) {
            reader.read(object, data, encoding);
        }
    }
    if reader.is_untouched() {
        None
    } else {
        Some(reader.finish())
    }
}

/// How a number is encoded.
#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    /// The encoding that version 2 defines for the object.
    OfObject,
    Unsigned,
    Signed,
    Float,
}

/// Adds what objects measure, and numbers those that occur more than once.
struct Reader<'a> {
    out: &'a mut Vec<Measurement>,
    start: usize,
    /// How often each quantity occurred, in the order of the catalogue.
    counts: [u8; QUANTITIES.len()],
    objects: usize,
    packet: Option<Sequence>,
}

impl<'a> Reader<'a> {
    fn new(out: &'a mut Vec<Measurement>) -> Self {
        let start = out.len();
        Self {
            out,
            start,
            counts: [0; QUANTITIES.len()],
            objects: 0,
            packet: None,
        }
    }

    fn is_untouched(&self) -> bool {
        self.objects == 0
    }

    fn read(&mut self, object: &Object, data: &[u8], encoding: Encoding) {
        self.objects += 1;
        if object.id == PACKET_ID
            && let [number] = data
        {
            self.packet = Some(Sequence {
                value: (*number).into(),
                bits: 8,
                authenticated: false,
            });
        }
        match object.shape {
            Shape::Button => self.push(object.quantity, button(data)),
            Shape::Dimmer => self.dimmer(object, data),
            Shape::Command => self.command(object, data),
            Shape::Number { signed, scale, .. } => {
                let encoding = match encoding {
                    Encoding::OfObject if signed => Encoding::Signed,
                    Encoding::OfObject => Encoding::Unsigned,
                    other => other,
                };
                self.push(
                    object.quantity,
                    number(data, encoding, scale).map(Value::Number),
                );
            }
            Shape::Truth => {
                let value = data.first().map(|byte| Value::Bool(*byte != 0));
                self.push(object.quantity, value);
            }
            Shape::Timestamp => {
                let seconds = unsigned_le(data);
                self.push(
                    object.quantity,
                    seconds.and_then(objects::rfc_3339).map(Value::Text),
                );
            }
            Shape::Version { .. } => self.push(object.quantity, version(data)),
            Shape::Text => {
                let text = std::str::from_utf8(data)
                    .ok()
                    .filter(|text| !text.is_empty());
                self.push(
                    object.quantity,
                    text.map(|text| Value::Text(text.to_owned())),
                );
            }
            Shape::Raw => {
                let value = (!data.is_empty()).then(|| Value::Text(hex(data)));
                self.push(object.quantity, value);
            }
        }
    }

    fn dimmer(&mut self, object: &Object, data: &[u8]) {
        let (event, steps) = match data {
            [1, steps, ..] => (Some("rotate_left"), Some(*steps)),
            [2, steps, ..] => (Some("rotate_right"), Some(*steps)),
            _ => (None, None),
        };
        self.push(
            object.quantity,
            event.map(|event| Value::Text(event.to_owned())),
        );
        self.push(DIMMER_STEPS, steps.map(|steps| Value::Number(steps.into())));
    }

    /// The code of the command and its arguments, of which those of a step are its number.
    fn command(&mut self, object: &Object, data: &[u8]) {
        let Some((code, arguments)) = data.split_first() else {
            return;
        };
        let event = objects::COMMANDS
            .get(usize::from(*code))
            .map_or_else(|| code.to_string(), |name| (*name).into());
        self.push(object.quantity, Some(Value::Text(event)));
        let (steps, others) = match (code, arguments) {
            (3 | 4, [steps]) => (Some(Value::Number((*steps).into())), None),
            (_, []) => (None, None),
            _ => (None, Some(Value::Text(hex(arguments)))),
        };
        self.push(COMMAND_STEPS, steps);
        self.push(COMMAND_ARGUMENTS, others);
    }

    /// Counts a quantity, and adds its value where there is one.
    fn push(&mut self, quantity: &'static Quantity, value: Option<Value>) {
        let Some(count) = QUANTITIES
            .element_offset(quantity)
            .and_then(|place| self.counts.get_mut(place))
        else {
            return;
        };
        let index = *count;
        // An advertisement of 255 bytes has no place for more than 127 objects.
        *count = count.saturating_add(1);
        if let Some(value) = value {
            self.out.push(Measurement::new(quantity, value).at(index));
        }
    }

    /// Takes the index from all that occurred once.
    fn finish(self) -> Option<Sequence> {
        for measurement in self.out.iter_mut().skip(self.start) {
            let place = QUANTITIES.element_offset(measurement.quantity);
            if place
                .and_then(|place| self.counts.get(place))
                .is_some_and(|count| *count == 1)
            {
                measurement.index = None;
            }
        }
        self.packet
    }
}

/// Returns `None` for the event "none" and for unknown events.
fn button(data: &[u8]) -> Option<Value> {
    let event = match data.first()? {
        0x01 => "press",
        0x02 => "double_press",
        0x03 => "triple_press",
        0x04 => "long_press",
        0x05 => "long_double_press",
        0x06 => "long_triple_press",
        // FE is what Shelly's buttons sent before the document had the event.
        0x80 | 0xFE => "hold_press",
        _ => return None,
    };
    Some(Value::Text(event.to_owned()))
}

/// Returns `None` for lengths that a number does not have. A floating-point number is rounded to
/// the step of its object.
fn number(data: &[u8], encoding: Encoding, scale: (i64, f64)) -> Option<f64> {
    let (factor, divisor) = scale;
    let raw = match encoding {
        Encoding::Signed => signed_le(data)?,
        Encoding::Float => float(data)
            .filter(|value| value.abs() < LARGEST_FLOAT)?
            .round() as i64,
        _ => unsigned_le(data)?,
    };
    Some(raw.checked_mul(factor)? as f64 / divisor)
}

/// Numbers beyond this measure nothing.
const LARGEST_FLOAT: f64 = 1e15;

/// A number of IEEE 754 in 2, 4 or 8 bytes.
fn float(data: &[u8]) -> Option<f64> {
    match data.len() {
        2 => Some(half(u16::from_le_bytes(at(data, 0)?))),
        4 => Some(f32::from_le_bytes(at(data, 0)?).into()),
        8 => Some(f64::from_le_bytes(at(data, 0)?)),
        _ => None,
    }
}

/// A half-precision number.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3FF) / 1024.0;
    let magnitude = match i32::from(bits >> 10 & 0x1F) {
        0x1F => f64::NAN,
        0 => fraction * 2_f64.powi(-14),
        exponent => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    };
    if bits & 0x8000 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// Bytes of a version, the least significant first: 00 01 02 04 is "4.2.1.0".
fn version(data: &[u8]) -> Option<Value> {
    let (first, rest) = data.split_last()?;
    let mut text = first.to_string();
    for part in rest.iter().rev() {
        text.push('.');
        text.push_str(&part.to_string());
    }
    Some(Value::Text(text))
}
