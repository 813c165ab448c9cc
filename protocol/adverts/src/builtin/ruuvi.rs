//! Ruuvi sensors (docs.ruuvi.com, "Bluetooth advertisements"): manufacturer data of company 0499 in
//! the formats 3, 5, 6, 8, C5 and E1, and the URLs of the first tags, formats 2 and 4. All numbers
//! are big-endian.

use super::eddystone;
use crate::bytes::{at, decimal, i16_be, milli_g, u8_at, u16_be, u24_be};
use crate::frame::Frame;
use crate::measurement::Measurement;
use crate::outcome::{Facts, Identity, Keys, Outcome, Sequence};
use crate::quantity::{Quantity, known};

const COMPANY: u16 = 0x0499;

const ACCELERATION_X: &Quantity = known("acceleration_x");
const ACCELERATION_Y: &Quantity = known("acceleration_y");
const ACCELERATION_Z: &Quantity = known("acceleration_z");
const CALIBRATING: &Quantity = known("calibrating");
const CO2: &Quantity = known("co2");
const DATA_FORMAT: &Quantity = known("data_format");
const HUMIDITY: &Quantity = known("humidity");
const ILLUMINANCE: &Quantity = known("illuminance");
const MEASUREMENT_SEQUENCE: &Quantity = known("measurement_sequence");
const MOVEMENT_COUNTER: &Quantity = known("movement_counter");
const NOX_INDEX: &Quantity = known("nox_index");
const PM1: &Quantity = known("pm1");
const PM10: &Quantity = known("pm10");
const PM25: &Quantity = known("pm25");
const PM4: &Quantity = known("pm4");
const PRESSURE: &Quantity = known("pressure");
const TEMPERATURE: &Quantity = known("temperature");
const TX_POWER: &Quantity = known("tx_power");
const VOC_INDEX: &Quantity = known("voc_index");
const VOLTAGE: &Quantity = known("voltage");

/// The pressure that the raw value 0 stands for, in Pa.
const PRESSURE_OFFSET: i64 = 50_000;

/// Reads a frame of a Ruuvi sensor: `data_format`, and those of `temperature`, `humidity`,
/// `pressure`, `acceleration_x`, `_y`, `_z`, `voltage`, `tx_power`, `movement_counter`,
/// `measurement_sequence`, `pm1`, `pm25`, `pm4`, `pm10`, `co2`, `voc_index`, `nox_index`,
/// `illuminance` and `calibrating` that the format has and the sensor measures. The address in the
/// payload is the frame's identity, of format 6 its last three bytes. Format 8, which is a
/// proposal, is reported as encrypted and is not decrypted. A payload that is shorter than its
/// format is invalid.
pub fn decode(frame: &Frame, _keys: &Keys, out: &mut Vec<Measurement>) -> Outcome {
    let Some(payload) = frame.manufacturer(COMPANY) else {
        return url(frame, out);
    };
    let outcome = match payload.first() {
        Some(0x03) => format_3(payload, out),
        Some(0x05) => format_5(payload, out),
        Some(0x06) => format_6(payload, out),
        Some(0x08) => return format_8(payload),
        Some(0xC5) => format_c5(payload, out),
        Some(0xE1) => format_e1(payload, out),
        _ => return Outcome::NotMine,
    };
    outcome.map_or(Outcome::Invalid, Outcome::Decoded)
}

/// RAWv1, which has no mark for values that are not available.
fn format_3(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Facts> {
    let voltage = u16_be(payload, 12)?;
    environment(payload, out)?;
    for (quantity, offset) in [
        (ACCELERATION_X, 6),
        (ACCELERATION_Y, 8),
        (ACCELERATION_Z, 10),
    ] {
        out.push(Measurement::number(
            quantity,
            milli_g(i16_be(payload, offset)?.into()),
        ));
    }
    out.push(Measurement::number(VOLTAGE, decimal(voltage.into(), 3)));
    Some(Facts::default())
}

/// The first six bytes of the formats 2, 3 and 4: humidity in half percents, temperature as sign,
/// whole and hundredths, and pressure.
fn environment(payload: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let [format, humidity, whole, hundredths] = at(payload, 0)?;
    let pressure = u16_be(payload, 4)?;
    out.push(Measurement::number(DATA_FORMAT, format.into()));
    // More than 99 hundredths are none: the sensor did not measure.
    if hundredths <= 99 {
        let magnitude = i64::from(whole & 0x7F) * 100 + i64::from(hundredths);
        let signed = if whole & 0x80 == 0 {
            magnitude
        } else {
            -magnitude
        };
        out.push(Measurement::number(TEMPERATURE, decimal(signed, 2)));
    }
    out.push(Measurement::number(
        HUMIDITY,
        decimal(i64::from(humidity) * 5, 1),
    ));
    out.push(Measurement::number(
        PRESSURE,
        decimal(i64::from(pressure) + PRESSURE_OFFSET, 0),
    ));
    Some(())
}

/// RAWv2.
fn format_5(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Facts> {
    let mac = at(payload, 18)?;
    climate(payload, out)?;
    for (quantity, offset) in [
        (ACCELERATION_X, 7),
        (ACCELERATION_Y, 9),
        (ACCELERATION_Z, 11),
    ] {
        let raw = i16_be(payload, offset)?;
        if raw != i16::MIN {
            out.push(Measurement::number(quantity, milli_g(raw.into())));
        }
    }
    tag(payload, 13, mac, out)
}

/// RAWv2 without acceleration.
fn format_c5(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Facts> {
    let mac = at(payload, 12)?;
    climate(payload, out)?;
    tag(payload, 7, mac, out)
}

/// Temperature, humidity and pressure as all formats from 5 on have them.
fn climate(payload: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let format = u8_at(payload, 0)?;
    let temperature = i16_be(payload, 1)?;
    let humidity = u16_be(payload, 3)?;
    let pressure = u16_be(payload, 5)?;
    out.push(Measurement::number(DATA_FORMAT, format.into()));
    if temperature != i16::MIN {
        out.push(Measurement::number(
            TEMPERATURE,
            decimal(i64::from(temperature) * 5, 3),
        ));
    }
    if humidity != u16::MAX {
        out.push(Measurement::number(
            HUMIDITY,
            decimal(i64::from(humidity) * 25, 4),
        ));
    }
    if pressure != u16::MAX {
        out.push(Measurement::number(
            PRESSURE,
            decimal(i64::from(pressure) + PRESSURE_OFFSET, 0),
        ));
    }
    Some(())
}

/// The end of the formats 5 and C5: power info, movement counter, measurement sequence.
fn tag(payload: &[u8], offset: usize, mac: [u8; 6], out: &mut Vec<Measurement>) -> Option<Facts> {
    let power = u16_be(payload, offset)?;
    let movements = u8_at(payload, offset + 2)?;
    let sequence = u16_be(payload, offset + 3)?;
    let (millivolts, tx_power) = (power >> 5, power & 0x1F);
    if millivolts != 0x7FF {
        out.push(Measurement::number(
            VOLTAGE,
            decimal(i64::from(millivolts) + 1600, 3),
        ));
    }
    if tx_power != 0x1F {
        out.push(Measurement::number(
            TX_POWER,
            f64::from(tx_power) * 2.0 - 40.0,
        ));
    }
    if movements != u8::MAX {
        out.push(Measurement::number(MOVEMENT_COUNTER, movements.into()));
    }
    let known = (sequence != u16::MAX).then_some(u32::from(sequence));
    Some(Facts {
        identity: whole(mac),
        sequence: sequence_of(known, 16, out),
        ..Facts::default()
    })
}

/// Air quality in an advertisement of Bluetooth 4.
fn format_6(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Facts> {
    let mac: [u8; 3] = at(payload, 17)?;
    climate(payload, out)?;
    particles(payload, &[(PM25, 7)], out)?;
    let flags = u8_at(payload, 16)?;
    gases(payload, 9, flags, out)?;
    let code = u8_at(payload, 13)?;
    if code != u8::MAX {
        out.push(Measurement::number(ILLUMINANCE, logarithmic_lux(code)));
    }
    out.push(Measurement::truth(CALIBRATING, flags & 1 != 0));
    let identity = (mac != [u8::MAX; 3]).then_some(Identity::MacTail(mac));
    let sequence = sequence_of(u8_at(payload, 15).map(u32::from), 8, out);
    Some(Facts {
        identity,
        sequence,
        ..Facts::default()
    })
}

/// Air quality in an extended advertisement.
fn format_e1(payload: &[u8], out: &mut Vec<Measurement>) -> Option<Facts> {
    let mac = at(payload, 34)?;
    climate(payload, out)?;
    particles(payload, &[(PM1, 7), (PM25, 9), (PM4, 11), (PM10, 13)], out)?;
    let flags = u8_at(payload, 28)?;
    gases(payload, 15, flags, out)?;
    let light = u24_be(payload, 19)?;
    if light != 0xFF_FFFF {
        out.push(Measurement::number(ILLUMINANCE, decimal(light.into(), 2)));
    }
    out.push(Measurement::truth(CALIBRATING, flags & 1 != 0));
    let sequence = u24_be(payload, 25)?;
    let known = (sequence != 0xFF_FFFF).then_some(sequence);
    Some(Facts {
        identity: whole(mac),
        sequence: sequence_of(known, 24, out),
        ..Facts::default()
    })
}

fn particles(
    payload: &[u8],
    fields: &[(&'static Quantity, usize)],
    out: &mut Vec<Measurement>,
) -> Option<()> {
    for (quantity, offset) in fields {
        let raw = u16_be(payload, *offset)?;
        if raw != u16::MAX {
            out.push(Measurement::number(quantity, decimal(raw.into(), 1)));
        }
    }
    Some(())
}

/// CO2 and the indexes of VOC and NOX. The lowest of the nine bits of an index is among the flags.
fn gases(payload: &[u8], offset: usize, flags: u8, out: &mut Vec<Measurement>) -> Option<()> {
    let co2 = u16_be(payload, offset)?;
    if co2 != u16::MAX {
        out.push(Measurement::number(CO2, co2.into()));
    }
    for (quantity, offset, bit) in [(VOC_INDEX, offset + 2, 6), (NOX_INDEX, offset + 3, 7)] {
        let index = u16::from(u8_at(payload, offset)?) << 1 | u16::from(flags >> bit & 1);
        if index != 0x1FF {
            out.push(Measurement::number(quantity, index.into()));
        }
    }
    Some(())
}

/// Format 6 codes illuminance as 254 steps on the logarithmic scale from 0 to 65,535 lx. The result
/// is rounded to 0.01 lx, as in the document.
fn logarithmic_lux(code: u8) -> f64 {
    let value = (16.0 * f64::from(code) / 254.0).exp2() - 1.0;
    (value * 100.0).round() / 100.0
}

/// The proposed format of 16 encrypted bytes, a checksum and the address.
fn format_8(payload: &[u8]) -> Outcome {
    match at(payload, 18) {
        Some(mac) => Outcome::NeedsKey(Facts {
            identity: whole(mac),
            encrypted: true,
            ..Facts::default()
        }),
        None => Outcome::Invalid,
    }
}

fn whole(mac: [u8; 6]) -> Option<Identity> {
    (mac != [u8::MAX; 6]).then_some(Identity::Mac(mac))
}

fn sequence_of(value: Option<u32>, bits: u8, out: &mut Vec<Measurement>) -> Option<Sequence> {
    let value = value?;
    out.push(Measurement::number(MEASUREMENT_SEQUENCE, value.into()));
    Some(Sequence {
        value,
        bits,
        authenticated: false,
    })
}

/// The formats 2 and 4: an Eddystone URL of ruu.vi whose fragment is the data in base64.
fn url(frame: &Frame, out: &mut Vec<Measurement>) -> Outcome {
    let Some(encoded) = eddystone::encoded_url(frame) else {
        return Outcome::NotMine;
    };
    let fragment = match encoded {
        [
            0x02 | 0x03,
            b'r',
            b'u',
            b'u',
            b'.',
            b'v',
            b'i',
            b'/',
            b'#',
            fragment @ ..,
        ] => fragment,
        _ => return Outcome::NotMine,
    };
    let Some(data) = base64(fragment) else {
        return Outcome::Invalid;
    };
    match data {
        [2 | 4, ..] => environment(&data, out)
            .map_or(Outcome::Invalid, |()| Outcome::Decoded(Facts::default())),
        _ => Outcome::NotMine,
    }
}

/// The first six bytes of a text in URL-safe base64. The ninth character of format 4 is a random
/// number of the tag.
fn base64(text: &[u8]) -> Option<[u8; 6]> {
    let characters: [u8; 8] = at(text, 0)?;
    let mut bits = 0_u64;
    for character in characters {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u64::from(value);
    }
    let [_, _, data @ ..] = bits.to_be_bytes();
    Some(data)
}
