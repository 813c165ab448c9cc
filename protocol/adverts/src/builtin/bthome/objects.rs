//! The objects of BTHome. Numbers are scaled to the unit of their quantity: 0.01 hPa is 1 Pa.

use crate::quantity::{Quantity, known};

/// An object: what its data is, and which quantity it measures.
pub struct Object {
    pub id: u8,
    pub quantity: &'static Quantity,
    pub shape: Shape,
}

#[derive(Clone, Copy)]
pub enum Shape {
    /// A number of `length` bytes, multiplied and then divided.
    Number {
        length: usize,
        signed: bool,
        scale: (i64, f64),
    },
    /// A byte, true where it is not 0.
    Truth,
    /// A byte for the kind of a button's press.
    Button,
    /// The length of the arguments in the low five bits of a byte, the command, its arguments.
    Command,
    /// The direction and the steps.
    Dimmer,
    /// Seconds since 1970 in four bytes.
    Timestamp,
    /// The length in a byte, then UTF-8.
    Text,
    /// The length in a byte, then bytes.
    Raw,
    /// A version of `length` parts.
    Version { length: usize },
}

impl Object {
    /// The data of the object, and what follows. Returns `None` where the object is cut short.
    pub fn split<'a>(&self, rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        match self.shape {
            Shape::Number { length, .. } | Shape::Version { length } => {
                rest.split_at_checked(length)
            }
            Shape::Truth | Shape::Button => rest.split_at_checked(1),
            Shape::Dimmer => rest.split_at_checked(2),
            Shape::Timestamp => rest.split_at_checked(4),
            Shape::Text | Shape::Raw => {
                let (length, rest) = rest.split_first()?;
                rest.split_at_checked(usize::from(*length))
            }
            Shape::Command => {
                let (length, rest) = rest.split_first()?;
                rest.split_at_checked(usize::from(length & 0x1F) + 1)
            }
        }
    }
}

/// The object of an identifier.
pub fn object(id: u8) -> Option<&'static Object> {
    let at = OBJECTS.binary_search_by_key(&id, |object| object.id).ok()?;
    OBJECTS.get(at)
}

/// Names of the commands 0 to 4.
pub const COMMANDS: [&str; 5] = ["off", "on", "toggle", "step_up", "step_down"];

const DEGREES_PER_RADIAN: f64 = 180.0 / std::f64::consts::PI;

const fn unsigned(id: u8, quantity: &str, length: usize, factor: i64, divisor: f64) -> Object {
    let shape = Shape::Number {
        length,
        signed: false,
        scale: (factor, divisor),
    };
    other(id, quantity, shape)
}

const fn signed(id: u8, quantity: &str, length: usize, factor: i64, divisor: f64) -> Object {
    let shape = Shape::Number {
        length,
        signed: true,
        scale: (factor, divisor),
    };
    other(id, quantity, shape)
}

const fn other(id: u8, quantity: &str, shape: Shape) -> Object {
    Object {
        id,
        quantity: known(quantity),
        shape,
    }
}

/// All objects by identifier: quantity, length, factor and divisor.
static OBJECTS: &[Object] = &[
    unsigned(0x00, "packet_id", 1, 1, 1.0),
    unsigned(0x01, "battery", 1, 1, 1.0),
    signed(0x02, "temperature", 2, 1, 100.0),
    unsigned(0x03, "humidity", 2, 1, 100.0),
    unsigned(0x04, "pressure", 3, 1, 1.0),
    unsigned(0x05, "illuminance", 3, 1, 100.0),
    unsigned(0x06, "mass", 2, 1, 100.0),
    unsigned(0x07, "mass", 2, 45_359_237, 10_000_000_000.0),
    signed(0x08, "dew_point", 2, 1, 100.0),
    unsigned(0x09, "count", 1, 1, 1.0),
    unsigned(0x0A, "energy", 3, 3_600, 1.0),
    unsigned(0x0B, "power", 3, 1, 100.0),
    unsigned(0x0C, "voltage", 2, 1, 1_000.0),
    unsigned(0x0D, "pm25", 2, 1, 1.0),
    unsigned(0x0E, "pm10", 2, 1, 1.0),
    other(0x0F, "generic_boolean", Shape::Truth),
    other(0x10, "power_on", Shape::Truth),
    other(0x11, "opening", Shape::Truth),
    unsigned(0x12, "co2", 2, 1, 1.0),
    unsigned(0x13, "tvoc", 2, 1, 1.0),
    unsigned(0x14, "moisture", 2, 1, 100.0),
    other(0x15, "battery_low", Shape::Truth),
    other(0x16, "battery_charging", Shape::Truth),
    other(0x17, "carbon_monoxide", Shape::Truth),
    other(0x18, "cold", Shape::Truth),
    other(0x19, "connectivity", Shape::Truth),
    other(0x1A, "door", Shape::Truth),
    other(0x1B, "garage_door", Shape::Truth),
    other(0x1C, "gas_detected", Shape::Truth),
    other(0x1D, "heat", Shape::Truth),
    other(0x1E, "light", Shape::Truth),
    other(0x1F, "lock", Shape::Truth),
    other(0x20, "moisture_detected", Shape::Truth),
    other(0x21, "motion", Shape::Truth),
    other(0x22, "moving", Shape::Truth),
    other(0x23, "occupancy", Shape::Truth),
    other(0x24, "plug", Shape::Truth),
    other(0x25, "presence", Shape::Truth),
    other(0x26, "problem", Shape::Truth),
    other(0x27, "running", Shape::Truth),
    other(0x28, "safety", Shape::Truth),
    other(0x29, "smoke", Shape::Truth),
    other(0x2A, "sound", Shape::Truth),
    other(0x2B, "tamper", Shape::Truth),
    other(0x2C, "vibration", Shape::Truth),
    other(0x2D, "window", Shape::Truth),
    unsigned(0x2E, "humidity", 1, 1, 1.0),
    unsigned(0x2F, "moisture", 1, 1, 1.0),
    other(0x3A, "button", Shape::Button),
    other(0x3B, "command", Shape::Command),
    other(0x3C, "dimmer", Shape::Dimmer),
    unsigned(0x3D, "count", 2, 1, 1.0),
    unsigned(0x3E, "count", 4, 1, 1.0),
    signed(0x3F, "rotation", 2, 1, 10.0),
    unsigned(0x40, "distance", 2, 1, 1_000.0),
    unsigned(0x41, "distance", 2, 1, 10.0),
    unsigned(0x42, "duration", 3, 1, 1_000.0),
    unsigned(0x43, "current", 2, 1, 1_000.0),
    unsigned(0x44, "speed", 2, 1, 100.0),
    signed(0x45, "temperature", 2, 1, 10.0),
    unsigned(0x46, "uv_index", 1, 1, 10.0),
    unsigned(0x47, "volume", 2, 1, 10_000.0),
    unsigned(0x48, "volume", 2, 1, 1_000_000.0),
    unsigned(0x49, "volume_flow", 2, 1, 3_600_000.0),
    unsigned(0x4A, "voltage", 2, 1, 10.0),
    unsigned(0x4B, "gas", 3, 1, 1_000.0),
    unsigned(0x4C, "gas", 4, 1, 1_000.0),
    unsigned(0x4D, "energy", 4, 3_600, 1.0),
    unsigned(0x4E, "volume", 4, 1, 1_000_000.0),
    unsigned(0x4F, "water", 4, 1, 1_000_000.0),
    other(0x50, "timestamp", Shape::Timestamp),
    unsigned(0x51, "acceleration", 2, 1, 1_000.0),
    unsigned(0x52, "gyroscope", 2, 1, DEGREES_PER_RADIAN * 1000.0),
    other(0x53, "text", Shape::Text),
    other(0x54, "raw", Shape::Raw),
    unsigned(0x55, "volume_stored", 4, 1, 1_000_000.0),
    unsigned(0x56, "conductivity", 2, 1, 10_000.0),
    signed(0x57, "temperature", 1, 1, 1.0),
    signed(0x58, "temperature", 1, 35, 100.0),
    signed(0x59, "count", 1, 1, 1.0),
    signed(0x5A, "count", 2, 1, 1.0),
    signed(0x5B, "count", 4, 1, 1.0),
    signed(0x5C, "power", 4, 1, 100.0),
    signed(0x5D, "current", 2, 1, 1_000.0),
    unsigned(0x5E, "direction", 2, 1, 100.0),
    unsigned(0x5F, "precipitation", 2, 1, 10_000.0),
    unsigned(0x60, "channel", 1, 1, 1.0),
    unsigned(0x61, "rotational_speed", 2, 1, 1.0),
    signed(0x62, "speed", 4, 1, 1_000_000.0),
    signed(0x63, "acceleration", 4, 1, 1_000_000.0),
    unsigned(0x64, "light_level", 1, 1, 1.0),
    unsigned(0x65, "settings_revision", 1, 1, 1.0),
    unsigned(0xF0, "device_type_id", 2, 1, 1.0),
    other(0xF1, "firmware_version", Shape::Version { length: 4 }),
    other(0xF2, "firmware_version", Shape::Version { length: 3 }),
];

/// The last second that RFC 3339 can write, at the end of the year 9999.
const LAST_SECOND: i64 = 253_402_300_799;

/// Seconds since 1970 as a time of RFC 3339 in UTC: 2023-05-14T19:41:17Z.
pub fn rfc_3339(seconds: i64) -> Option<String> {
    if !(0..=LAST_SECOND).contains(&seconds) {
        return None;
    }
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from March on, so that the day of a leap year is the last one.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_sorted() {
        for pair in OBJECTS.windows(2) {
            assert!(pair[0].id < pair[1].id);
        }
    }

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(
            rfc_3339(1_684_093_277).as_deref(),
            Some("2023-05-14T19:41:17Z")
        );
        assert_eq!(rfc_3339(0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(
            rfc_3339(951_782_400).as_deref(),
            Some("2000-02-29T00:00:00Z")
        );
        assert_eq!(
            rfc_3339(4_294_967_295).as_deref(),
            Some("2106-02-07T06:28:15Z")
        );
        assert_eq!(
            rfc_3339(LAST_SECOND).as_deref(),
            Some("9999-12-31T23:59:59Z")
        );
        assert_eq!(rfc_3339(LAST_SECOND + 1), None);
    }
}
