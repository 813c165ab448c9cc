//! iBeacon (Apple, Proximity Beacon Specification): Apple's company identifier, type 02 of 21
//! bytes, UUID, major and minor number, and the power that is received at 1 m.

use crate::bytes::{at, u8_at, u16_be};
use crate::frame::Frame;
use crate::measurement::Measurement;
use crate::outcome::{Facts, Identity, Keys, Outcome};
use crate::quantity::{Quantity, known};
use uuid::Uuid;

const APPLE: u16 = 0x004C;
const TYPE_AND_LENGTH: [u8; 2] = [0x02, 0x15];
const TX_POWER: &Quantity = known("tx_power");

/// Reads an iBeacon: `tx_power` in dBm at 1 m. Its UUID and numbers are the frame's identity. A
/// payload that is shorter than its length byte says is invalid.
pub fn decode(frame: &Frame, _keys: &Keys, out: &mut Vec<Measurement>) -> Outcome {
    match frame.manufacturer(APPLE) {
        Some(payload) if payload.starts_with(&TYPE_AND_LENGTH) => {
            read(payload, out).unwrap_or(Outcome::Invalid)
        }
        _ => Outcome::NotMine,
    }
}

fn read(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Outcome> {
    let uuid = Uuid::from_bytes(at(payload, 2)?);
    let major = u16_be(payload, 18)?;
    let minor = u16_be(payload, 20)?;
    let power = u8_at(payload, 22)?.cast_signed();
    out.push(Measurement::number(TX_POWER, f64::from(power)));
    let identity = Some(Identity::Beacon { uuid, major, minor });
    Some(Outcome::Decoded(Facts {
        identity,
        ..Facts::default()
    }))
}
