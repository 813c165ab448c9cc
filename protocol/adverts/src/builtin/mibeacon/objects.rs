//! The objects of MiBeacon: those that Xiaomi's object definition has for all devices (0000 to
//! 1FFF), and those of single devices (2000 and above), which follow the MIoT specification.

use super::{buttons, locks};
use crate::bytes::{at, decimal, signed_le, single, u8_at, u32_le, unsigned_le};
use crate::measurement::Measurement;
use crate::quantity::{Quantity, known};

const ASLEEP: &Quantity = known("asleep");
const BATTERY: &Quantity = known("battery");
const BATTERY_CHARGING: &Quantity = known("battery_charging");
const BATTERY_LOW: &Quantity = known("battery_low");
const BUTTON: &Quantity = known("button");
const CONDUCTIVITY: &Quantity = known("conductivity");
const CONSUMABLE: &Quantity = known("consumable");
const COUNT: &Quantity = known("count");
const DOOR_LEFT_OPEN: &Quantity = known("door_left_open");
const FORCIBLY_REMOVED: &Quantity = known("forcibly_removed");
const FORMALDEHYDE: &Quantity = known("formaldehyde");
const GAS_DETECTED: &Quantity = known("gas_detected");
const HEART_RATE: &Quantity = known("heart_rate");
const HUMIDITY: &Quantity = known("humidity");
const ILLUMINANCE: &Quantity = known("illuminance");
const IMPEDANCE: &Quantity = known("impedance");
const IMPEDANCE_HIGH: &Quantity = known("impedance_high");
const LIGHT: &Quantity = known("light");
const MASS: &Quantity = known("mass");
const MOISTURE: &Quantity = known("moisture");
const MOISTURE_DETECTED: &Quantity = known("moisture_detected");
const MOTION: &Quantity = known("motion");
const MOTION_TIMER: &Quantity = known("motion_timer");
const OCCUPANCY: &Quantity = known("occupancy");
const OCCUPANCY_NEAR: &Quantity = known("occupancy_near");
const OCCUPIED_DURATION: &Quantity = known("occupied_duration");
const OPENING: &Quantity = known("opening");
const POWER_ON: &Quantity = known("power_on");
const PROFILE_ID: &Quantity = known("profile_id");
const SCORE: &Quantity = known("score");
const SMOKE: &Quantity = known("smoke");
const SPLASH: &Quantity = known("splash");
const STABILIZED: &Quantity = known("stabilized");
const TEMPERATURE: &Quantity = known("temperature");
const TEMPERATURE_PROBE: &Quantity = known("temperature_probe");
const TOOTHBRUSH: &Quantity = known("toothbrush");
const VACANT_DURATION: &Quantity = known("vacant_duration");
const WEARING: &Quantity = known("wearing");

/// The seconds without motion after which a device reports that there is none.
const MOTION_HOLD_SECS: i64 = 30;

/// Adds the measurements of an object. Returns `None`, and adds nothing, where the object is
/// unknown, or its data has the wrong length or is out of range.
pub fn read(id: u16, data: &[u8], model: &str, out: &mut Vec<Measurement>) -> Option<()> {
    match id {
        0x0003 => truth(MOTION, data.first().map(|_| true), out),
        0x0006 => locks::fingerprint(data, out),
        0x0007 => locks::door(data, out),
        0x0008 => locks::armed(data, model, out),
        0x000A => number(TEMPERATURE, exactly(data, 2).and_then(signed_le), 2, out),
        0x000B => locks::event(data, out),
        0x000F => moving_with_light(data, model, out),
        0x0010 => toothbrush(data, u8_at(data, 1), out),
        0x1001 => buttons::general(data, model, out),
        0x1004 => number(TEMPERATURE, exactly(data, 2).and_then(signed_le), 1, out),
        0x1005 => kettle(data, out),
        0x1006 => number(HUMIDITY, exactly(data, 2).and_then(unsigned_le), 1, out),
        0x1007 => illuminance(data, model, out),
        0x1008 => number(MOISTURE, byte(data), 0, out),
        0x1009 => number(CONDUCTIVITY, exactly(data, 2).and_then(unsigned_le), 4, out),
        0x100A | 0x4803 | 0x4C03 | 0x5003 => number(BATTERY, byte(data), 0, out),
        0x100D => climate(data, out),
        0x100E => locks::attribute(data, out),
        0x1010 => number(
            FORMALDEHYDE,
            exactly(data, 2).and_then(unsigned_le).map(|raw| raw * 10),
            0,
            out,
        ),
        0x1012 => truth(POWER_ON, flag(data), out),
        0x1013 => number(CONSUMABLE, byte(data), 0, out),
        0x1014 | 0x4806 => truth(MOISTURE_DETECTED, flag(data), out),
        0x1015 => truth(SMOKE, flag(data), out),
        0x1016 => truth(GAS_DETECTED, flag(data), out),
        0x1017 => no_motion(exactly(data, 4).and_then(unsigned_le), out),
        0x1018 => truth(LIGHT, flag(data), out),
        0x1019 => opening(data, out),
        0x101B => truth(MOTION, data.first().map(|_| false), out),
        0x2000 => thermometer(data, out),
        0x3003 => toothbrush(exactly(data, 5).or(exactly(data, 6))?, u8_at(data, 5), out),
        _ => read_miot(id, data, model, out),
    }
}

fn read_miot(id: u16, data: &[u8], model: &str, out: &mut Vec<Measurement>) -> Option<()> {
    match id {
        0x4801 | 0x4C01 => float(TEMPERATURE, data, out),
        0x4802 | 0x4C02 => number(HUMIDITY, byte(data), 0, out),
        0x4804 | 0x4A12 => opening_of_magnet(data, out),
        0x4805 => float(ILLUMINANCE, data, out),
        0x4808 | 0x4C08 => float(HUMIDITY, data, out),
        0x480C => truth(OPENING, code(data, &[true, false]), out),
        0x4818 => no_motion(exactly(data, 2).and_then(unsigned_le), out),
        0x483C | 0x484E => truth(OCCUPANCY, occupied(data, model), out),
        0x483D => number(
            OCCUPIED_DURATION,
            exactly(data, 4).and_then(unsigned_le),
            0,
            out,
        ),
        0x483E => number(
            VACANT_DURATION,
            exactly(data, 4).and_then(unsigned_le),
            0,
            out,
        ),
        0x4851 => number(
            OCCUPIED_DURATION,
            byte(data).map(|minutes| minutes * 60),
            0,
            out,
        ),
        0x4852 => number(
            VACANT_DURATION,
            byte(data).map(|minutes| minutes * 60),
            0,
            out,
        ),
        0x487B => truth(SPLASH, flag(data), out),
        0x4A01 | 0x4E01 => truth(BATTERY_LOW, flag(data), out),
        0x4A08 => {
            float(ILLUMINANCE, data, out)?;
            truth(MOTION, Some(true), out)
        }
        0x4A0C | 0x4E0C | 0x560C => buttons::pressed("press", data, model, out),
        0x4A0D | 0x4E0D | 0x560D => buttons::pressed("double_press", data, model, out),
        0x4A0E | 0x4E0E | 0x560E => buttons::pressed("long_press", data, model, out),
        0x4A0F => {
            byte(data).filter(|value| *value == 1)?;
            truth(OPENING, Some(true), out)?;
            truth(FORCIBLY_REMOVED, Some(true), out)
        }
        0x4A13 => {
            byte(data).filter(|value| *value == 1)?;
            out.push(Measurement::text(BUTTON, "press"));
            Some(())
        }
        0x4A1A => {
            byte(data).filter(|value| *value == 1)?;
            truth(OPENING, Some(true), out)?;
            truth(DOOR_LEFT_OPEN, Some(true), out)
        }
        0x4A68 => match byte(data)? {
            wet @ (0 | 1) => truth(MOISTURE_DETECTED, Some(wet == 0), out),
            wet @ (2 | 3) => truth(SPLASH, Some(wet == 2), out),
            _ => None,
        },
        0x4E16 => scale(data, out),
        0x5413 => truth(OCCUPANCY_NEAR, flag(data), out),
        0x5422 => truth(BATTERY_CHARGING, code(data, &[true, false, false]), out),
        0x5810 => truth(ASLEEP, code(data, &[true, false]), out),
        0x6461 => truth(WEARING, code(data, &[true, false]), out),
        0x6E16 => body_scale(data, out),
        _ => None,
    }
}

fn exactly(data: &[u8], length: usize) -> Option<&[u8]> {
    (data.len() == length).then_some(data)
}

fn byte(data: &[u8]) -> Option<i64> {
    exactly(data, 1).and_then(unsigned_le)
}

fn flag(data: &[u8]) -> Option<bool> {
    byte(data).map(|value| value != 0)
}

/// The meaning of a byte with the values 0, 1, ...
fn code(data: &[u8], meanings: &[bool]) -> Option<bool> {
    meanings.get(usize::try_from(byte(data)?).ok()?).copied()
}

fn number(
    quantity: &'static Quantity,
    raw: Option<i64>,
    places: u32,
    out: &mut Vec<Measurement>,
) -> Option<()> {
    out.push(Measurement::number(quantity, decimal(raw?, places)));
    Some(())
}

fn truth(
    quantity: &'static Quantity,
    value: Option<bool>,
    out: &mut Vec<Measurement>,
) -> Option<()> {
    out.push(Measurement::truth(quantity, value?));
    Some(())
}

/// A number of single precision.
fn float(quantity: &'static Quantity, data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let value = single(f32::from_le_bytes(at(exactly(data, 4)?, 0)?))?;
    out.push(Measurement::number(quantity, value));
    Some(())
}

fn climate(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let (temperature, humidity) = exactly(data, 4)?.split_at_checked(2)?;
    number(TEMPERATURE, signed_le(temperature), 1, out)?;
    number(HUMIDITY, unsigned_le(humidity), 1, out)
}

fn kettle(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let [on, temperature] = *data else {
        return None;
    };
    truth(POWER_ON, Some(on != 0), out)?;
    number(TEMPERATURE, Some(temperature.into()), 0, out)
}

/// Models whose "illuminance" is only dark or light, where light is 100 or more.
fn tells_light_only(model: &str) -> bool {
    matches!(model, "MJYD02YL" | "RTCGQ02LM" | "MCCGQ02HL")
}

fn illuminance(data: &[u8], model: &str, out: &mut Vec<Measurement>) -> Option<()> {
    let raw = exactly(data, 3).and_then(unsigned_le)?;
    if tells_light_only(model) {
        return truth(LIGHT, Some(raw >= 100), out);
    }
    number(ILLUMINANCE, Some(raw), 0, out)
}

fn moving_with_light(data: &[u8], model: &str, out: &mut Vec<Measurement>) -> Option<()> {
    illuminance(data, model, out)?;
    truth(MOTION, Some(true), out)
}

fn no_motion(seconds: Option<i64>, out: &mut Vec<Measurement>) -> Option<()> {
    let seconds = seconds?;
    truth(MOTION, Some(seconds <= MOTION_HOLD_SECS), out)?;
    number(MOTION_TIMER, Some(seconds), 0, out)
}

/// 3 is a reset of the device, which says nothing of the door.
fn opening(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    match byte(data)? {
        0 => truth(OPENING, Some(true), out),
        1 => {
            truth(OPENING, Some(false), out)?;
            truth(DOOR_LEFT_OPEN, Some(false), out)
        }
        2 => {
            truth(OPENING, Some(true), out)?;
            truth(DOOR_LEFT_OPEN, Some(true), out)
        }
        _ => None,
    }
}

fn opening_of_magnet(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    match byte(data)? {
        1 => truth(OPENING, Some(true), out),
        2 => {
            truth(OPENING, Some(false), out)?;
            truth(DOOR_LEFT_OPEN, Some(false), out)
        }
        _ => None,
    }
}

/// The model XMOSB01XS has 2 for vacant too.
fn occupied(data: &[u8], model: &str) -> Option<bool> {
    let value = byte(data)?;
    Some(if model == "XMOSB01XS" {
        value == 1
    } else {
        value != 0
    })
}

/// 0 is the start of brushing, with its number; all else the end, with a score.
fn toothbrush(data: &[u8], value: Option<u8>, out: &mut Vec<Measurement>) -> Option<()> {
    let running = *data.first()? == 0;
    truth(TOOTHBRUSH, Some(running), out)?;
    if let Some(value) = value {
        // The longer object has a score at both ends.
        let quantity = if running && data.len() == 2 {
            COUNT
        } else {
            SCORE
        };
        number(quantity, Some(value.into()), 0, out)?;
    }
    Some(())
}

/// A thermometer for the skin: two temperatures in 0.01 degrees, and the battery. The temperature
/// of the body follows from both by an approximation for 36.5 to 37.8 degrees; it is rounded to
/// what the device resolves.
fn thermometer(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let (temperatures, battery) = exactly(data, 5)?.split_at_checked(4)?;
    let (first, second) = temperatures.split_at_checked(2)?;
    let (first, second) = (
        decimal(signed_le(first)?, 2),
        decimal(signed_le(second)?, 2),
    );
    let body = 3.71934e-11 * (decimal(69_314, 5) * first).exp()
        - 1.02801e-8 * (0.53871 * second).exp()
        + 36.413;
    out.push(Measurement::number(
        TEMPERATURE,
        (body * 100.0).round() / 100.0,
    ));
    out.push(Measurement::number(TEMPERATURE_PROBE, first).at(0));
    out.push(Measurement::number(TEMPERATURE_PROBE, second).at(1));
    number(BATTERY, unsigned_le(battery), 0, out)
}

/// A scale: the person's number, 0.01 kg, the time.
fn scale(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let (profile, mass) = (u8_at(exactly(data, 9)?, 0)?, u32_le(data, 1)?);
    if mass != 0 {
        number(PROFILE_ID, Some(profile.into()), 0, out)?;
        number(MASS, Some(mass.into()), 2, out)?;
    }
    Some(())
}

/// A scale that measures a body: the person's number, then in 32 bits 0.1 kg, heart rate above 50
/// and 0.1 Ohm, then the time. The impedance without a mass is that of the higher frequency.
fn body_scale(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let (profile, bits) = (u8_at(exactly(data, 9)?, 0)?, u32_le(data, 1)?);
    let (mass, heart_rate, impedance) = (bits & 0x7FF, bits >> 11 & 0x7F, bits >> 18);
    number(PROFILE_ID, Some(profile.into()), 0, out)?;
    if mass != 0 {
        number(MASS, Some(mass.into()), 1, out)?;
    }
    if (1..127).contains(&heart_rate) {
        number(HEART_RATE, Some(i64::from(heart_rate) + 50), 0, out)?;
    }
    let is_last = mass == 0 && heart_rate == 0;
    if impedance != 0 {
        let quantity = if is_last { IMPEDANCE_HIGH } else { IMPEDANCE };
        number(quantity, Some(impedance.into()), 1, out)?;
    }
    // A second frame with the other impedance follows a mass, unless there is no impedance.
    truth(
        STABILIZED,
        Some(if is_last {
            impedance != 0
        } else {
            impedance == 0
        }),
        out,
    )
}
