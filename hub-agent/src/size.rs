//! Sizes as they are written in settings.

use std::str::FromStr;

/// A number of bytes, written as a whole number and `B`, `KiB`, `MiB` or `GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, u64); 4] = [
            ("B", 1),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
        ];
        let bytes = number_and_unit(text, &UNITS)
            .ok_or("write it as a whole number and B, KiB, MiB or GiB, such as 256MiB")?;
        if bytes > 1 << 50 {
            Err("that is more than any disk holds".into())
        } else {
            Ok(Self(bytes))
        }
    }
}

/// A whole number and one of these units, converted to the smallest unit.
pub fn number_and_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}
