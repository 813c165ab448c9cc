//! The quantities that measurements have: names, SenML units and sane ranges.

mod table;

use crate::language::{between_units, known_units};
use crate::measurement::{Kind, Value};
pub use table::QUANTITIES;

/// A quantity. Its name is unique and snake_case; its unit is of the SenML registry (RFC 8428,
/// RFC 8798).
#[derive(Debug, PartialEq)]
pub struct Quantity {
    pub name: &'static str,
    /// `None` for a quantity without a unit, such as an event.
    pub unit: Option<&'static str>,
    /// The usual kind of its values; a decoder may give a value another kind.
    pub kind: Kind,
    pub description: &'static str,
    /// Values outside this range are a device's or a decoder's error.
    pub range: Option<(f64, f64)>,
}

impl Quantity {
    /// Whether a value is not a number outside the sane range.
    pub fn allows(&self, value: &Value) -> bool {
        match (value, self.range) {
            (Value::Number(value), Some((least, most))) => (least..=most).contains(value),
            _ => true,
        }
    }

    /// Whether its values are numbers: other quantities may have texts, booleans or numbers.
    pub fn is_number(&self) -> bool {
        self.unit.is_some() || matches!(self.kind, Kind::Measurement | Kind::Counter)
    }

    /// The units in which its values may be given, its own one first.
    pub fn units(&self) -> Vec<&str> {
        self.unit.map(known_units).unwrap_or_default()
    }

    /// Factor and offset of a value from one unit to another. Returns `None` if one of them is not
    /// a unit of this quantity. The result needs [`rounded`](crate::rounded).
    pub fn conversion(&self, from: &str, to: &str) -> Option<(f64, f64)> {
        between_units(self.unit?, from, to)
    }
}

/// The quantities that people look for first, in this order.
pub const FIRST_SHOWN: &[&str] = &[
    "temperature",
    "temperature_probe",
    "humidity",
    "co2",
    "pm25",
    "pressure",
    "illuminance",
    "motion",
    "occupancy",
    "opening",
    "contact",
    "door",
    "water_leak",
    "moisture",
    "smoke",
    "power",
    "energy",
    "mass",
    "button",
    "battery",
    "voltage",
];

/// The place of a quantity among those that are shown: the lower, the more people look for it.
pub fn shown_at(name: &str) -> usize {
    let found = FIRST_SHOWN.iter().position(|first| *first == name);
    found.unwrap_or(FIRST_SHOWN.len())
}

/// A value and its unit as people read them: air pressure in hPa, temperatures in °C.
pub fn readable(value: f64, unit: &str) -> (f64, &str) {
    match unit {
        "Pa" if value.abs() >= 150_000.0 => (crate::rounded(value / 1000.0), "kPa"),
        "Pa" if value.abs() >= 1000.0 => (crate::rounded(value / 100.0), "hPa"),
        "J" if value.abs() >= 36_000.0 => (crate::rounded(value / 3.6e6), "kWh"),
        "Cel" => (value, "°C"),
        "%RH" | "%EL" => (value, "%"),
        _ => (value, unit),
    }
}

/// The quantity of a name.
pub fn quantity(name: &str) -> Option<&'static Quantity> {
    let at = QUANTITIES
        .binary_search_by(|quantity| quantity.name.cmp(name))
        .ok()?;
    QUANTITIES.get(at)
}

/// The quantity of a name that a table of this crate holds. The function is meant for constants: a
/// name that does not exist stops the build.
pub(crate) const fn known(name: &str) -> &'static Quantity {
    let mut rest = QUANTITIES;
    while let Some((first, others)) = rest.split_first() {
        if same(first.name.as_bytes(), name.as_bytes()) {
            return first;
        }
        rest = others;
    }
    panic!("no such quantity")
}

const fn same(mut left: &[u8], mut right: &[u8]) -> bool {
    while let (Some((l, left_rest)), Some((r, right_rest))) =
        (left.split_first(), right.split_first())
    {
        if *l != *r {
            return false;
        }
        left = left_rest;
        right = right_rest;
    }
    left.is_empty() && right.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of RFC 8428, section 12.1, and of RFC 8798, both tables.
    const REGISTERED_UNITS: &[&str] = &[
        "m", "kg", "g", "s", "A", "K", "cd", "mol", "Hz", "rad", "sr", "N", "Pa", "J", "W", "C",
        "V", "F", "Ohm", "S", "Wb", "T", "H", "Cel", "lm", "lx", "Bq", "Gy", "Sv", "kat", "m2",
        "m3", "l", "m/s", "m/s2", "m3/s", "l/s", "W/m2", "cd/m2", "bit", "bit/s", "lat", "lon",
        "pH", "dB", "dBW", "Bspl", "count", "/", "%", "%RH", "%EL", "EL", "1/s", "1/min",
        "beat/min", "beats", "S/m", "B", "VA", "VAs", "var", "vars", "J/m", "kg/m3", "deg", "NTU",
        "ms", "min", "h", "MHz", "kW", "kVA", "kvar", "Ah", "Wh", "kWh", "varh", "kvarh", "kVAh",
        "Wh/km", "KiB", "GB", "Mbit/s", "B/s", "MB/s", "mV", "mA", "dBm", "ug/m3", "mm/h", "m/h",
        "ppm", "/100", "/1000", "hPa", "mm", "cm", "km", "km/h",
    ];

    #[test]
    fn the_table_is_sorted_and_names_are_unique() {
        for pair in QUANTITIES.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} before {}",
                pair[0].name,
                pair[1].name
            );
        }
    }

    #[test]
    fn names_are_snake_case_and_found() {
        for entry in QUANTITIES {
            assert!(
                entry.name.starts_with(|c: char| c.is_ascii_lowercase()),
                "{}",
                entry.name
            );
            assert!(
                entry
                    .name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            );
            assert_eq!(
                quantity(entry.name).map(|found| found.name),
                Some(entry.name)
            );
            assert!(
                !entry.description.is_empty() && !entry.description.ends_with('.'),
                "{}",
                entry.name
            );
        }
        assert!(quantity("").is_none());
        assert!(quantity("temperatur").is_none());
    }

    #[test]
    fn units_are_registered_and_ranges_hold_something() {
        for entry in QUANTITIES {
            if let Some(unit) = entry.unit {
                assert!(REGISTERED_UNITS.contains(&unit), "{}: {unit}", entry.name);
            }
            if let Some((least, most)) = entry.range {
                assert!(least < most, "{}", entry.name);
            }
        }
    }

    #[test]
    fn values_are_readable() {
        for (value, unit, expected) in [
            (101_325.0, "Pa", (1013.25, "hPa")),
            (230_000.0, "Pa", (230.0, "kPa")),
            (12.5, "Pa", (12.5, "Pa")),
            (-18.2, "Cel", (-18.2, "°C")),
            (7_200_000.0, "J", (2.0, "kWh")),
            (3.0, "V", (3.0, "V")),
        ] {
            assert_eq!(readable(value, unit), expected, "{value} {unit}");
        }
    }
}
