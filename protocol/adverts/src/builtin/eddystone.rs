//! Eddystone (Google, protocol specification and its frame types UID, URL, TLM, EID): data of the
//! service FEAA. All numbers are big-endian.

use crate::bytes::{at, decimal, hex, i16_be, u8_at, u16_be, u32_be};
use crate::frame::{Frame, uuid16};
use crate::measurement::Measurement;
use crate::outcome::{Facts, Identity, Keys, Outcome};
use crate::quantity::{Quantity, known};
use uuid::Uuid;

const SERVICE: Uuid = uuid16(0xFEAA);

const ADVERTISEMENT_COUNT: &Quantity = known("advertisement_count");
const EID: &Quantity = known("eid");
const ENCRYPTED_TELEMETRY: &Quantity = known("encrypted_telemetry");
const MIC: &Quantity = known("mic");
const SALT: &Quantity = known("salt");
const TELEMETRY_VERSION: &Quantity = known("telemetry_version");
const TEMPERATURE: &Quantity = known("temperature");
const TX_POWER: &Quantity = known("tx_power");
const UPTIME: &Quantity = known("uptime");
const URL: &Quantity = known("url");
const VOLTAGE: &Quantity = known("voltage");

/// The expansions of the first byte of an encoded URL.
const SCHEMES: [&str; 4] = ["http://www.", "https://www.", "http://", "https://"];

/// The expansions of the bytes 00 to 0D of an encoded URL.
const EXPANSIONS: [&str; 14] = [
    ".com/", ".org/", ".edu/", ".net/", ".info/", ".biz/", ".gov/", ".com", ".org", ".edu", ".net",
    ".info", ".biz", ".gov",
];

/// Reads an Eddystone frame. `tx_power` is in dBm at 0 m.
/// - UID: `tx_power`; namespace and instance are the frame's identity.
/// - URL: `tx_power`, `url`.
/// - TLM: `telemetry_version`, `voltage`, `temperature`, `advertisement_count`, `uptime`. Encrypted
///   telemetry is not decrypted, as its key is the beacon owner's: `encrypted_telemetry`, `salt`
///   and `mic` give it as it was sent.
/// - EID: `tx_power`, `eid`.
///
/// A frame of another length than its type has is invalid. Frames of other types, such as those of
/// trackers under the same service, are not Eddystone.
pub fn decode(frame: &Frame, _keys: &Keys, out: &mut Vec<Measurement>) -> Outcome {
    let Some(payload) = frame.service(SERVICE) else {
        return Outcome::NotMine;
    };
    let outcome = match payload {
        [0x00, ..] => uid(payload, out),
        [0x10, ..] => url(payload, out),
        [0x20, 0x00, ..] => telemetry(payload, out),
        [0x20, 0x01, ..] => encrypted_telemetry(payload, out),
        [0x20] => None,
        [0x30, ..] => eid(payload, out),
        _ => return Outcome::NotMine,
    };
    outcome.map_or(Outcome::Invalid, Outcome::Decoded)
}

/// The text of an encoded URL: scheme byte, then characters and expansions. Returns `None` where a
/// byte is reserved, or nothing follows the scheme.
pub(super) fn expand_url(encoded: &[u8]) -> Option<String> {
    let (scheme, rest) = encoded.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let mut url = String::from(*SCHEMES.get(usize::from(*scheme))?);
    for byte in rest {
        match byte {
            0x21..=0x7E => url.push(char::from(*byte)),
            _ => url.push_str(EXPANSIONS.get(usize::from(*byte))?),
        }
    }
    Some(url)
}

/// The encoded URL of an Eddystone URL frame.
pub(super) fn encoded_url<'a>(frame: &Frame<'a>) -> Option<&'a [u8]> {
    match frame.service(SERVICE)? {
        [0x10, _, encoded @ ..] => Some(encoded),
        _ => None,
    }
}

fn tx_power(payload: &[u8]) -> Option<Measurement> {
    let power = u8_at(payload, 1)?.cast_signed();
    Some(Measurement::number(TX_POWER, f64::from(power)))
}

/// Old beacons leave out the two reserved bytes at the end.
fn uid(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Facts> {
    if !(18..=20).contains(&payload.len()) {
        return None;
    }
    let identity = Identity::Eddystone {
        namespace: at(payload, 2)?,
        instance: at(payload, 12)?,
    };
    out.push(tx_power(payload)?);
    Some(Facts {
        identity: Some(identity),
        ..Facts::default()
    })
}

fn url(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Facts> {
    let url = expand_url(payload.get(2..)?)?;
    out.push(tx_power(payload)?);
    out.push(Measurement::text(URL, url));
    Some(Facts::default())
}

/// A voltage of 0 and a temperature of 8000 say that the beacon does not measure it.
fn telemetry(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Facts> {
    if payload.len() != 14 {
        return None;
    }
    let millivolts = u16_be(payload, 2)?;
    let temperature = i16_be(payload, 4)?;
    let advertisements = u32_be(payload, 6)?;
    let tenths = u32_be(payload, 10)?;
    out.push(Measurement::number(TELEMETRY_VERSION, 0.0));
    if millivolts != 0 {
        out.push(Measurement::number(VOLTAGE, decimal(millivolts.into(), 3)));
    }
    if temperature != i16::MIN {
        out.push(Measurement::number(
            TEMPERATURE,
            f64::from(temperature) / 256.0,
        ));
    }
    out.push(Measurement::number(
        ADVERTISEMENT_COUNT,
        f64::from(advertisements),
    ));
    out.push(Measurement::number(UPTIME, decimal(tenths.into(), 1)));
    Some(Facts::default())
}

fn encrypted_telemetry(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Facts> {
    if payload.len() != 18 {
        return None;
    }
    out.push(Measurement::number(TELEMETRY_VERSION, 1.0));
    out.push(Measurement::text(
        ENCRYPTED_TELEMETRY,
        hex(payload.get(2..14)?),
    ));
    out.push(Measurement::text(SALT, hex(payload.get(14..16)?)));
    out.push(Measurement::text(MIC, hex(payload.get(16..18)?)));
    Some(Facts {
        encrypted: true,
        ..Facts::default()
    })
}

fn eid(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Facts> {
    if payload.len() != 10 {
        return None;
    }
    out.push(tx_power(payload)?);
    out.push(Measurement::text(EID, hex(payload.get(2..)?)));
    Some(Facts::default())
}
