//! Makes measurements from the content of a frame.

use super::number::{Raw, decimal, power_of_ten};
use super::program::{Constant, Float, Index, Measure, Output, Range, Source};
use super::run::Run;
use crate::measurement::{Measurement, Value};

/// The digits of a float are found by trying.
const FLOAT_COST: u32 = 40;

impl<'f> Run<'f> {
    /// Adds a measurement, unless the frame has none: its condition does not hold, it lies beyond
    /// the end, it is marked as not available, or it is outside the sane range of its quantity. The
    /// first of two measurements of the same quantity and index stays.
    pub fn measure(&mut self, measure: &Measure, payload: &[u8], output: &mut Vec<Measurement>) {
        if let Some(condition) = &measure.condition
            && self
                .evaluate(condition, payload)
                .is_none_or(|value| value == 0)
        {
            return;
        }
        let mine = output.get(self.first..).unwrap_or_default();
        let number = mine.len();
        let mut same = mine
            .iter()
            .filter(|other| std::ptr::eq(other.quantity, measure.quantity));
        let index = match &measure.index {
            Index::None => None,
            Index::Order => Some(u8::try_from(same.clone().count()).unwrap_or(u8::MAX)),
            Index::Computed(index) => match self
                .evaluate(index, payload)
                .and_then(|index| u8::try_from(index).ok())
            {
                Some(index) => Some(index),
                None => return,
            },
        };
        if same.any(|other| other.index == index) {
            return;
        }
        let Some(value) = self.value(measure, payload) else {
            return;
        };
        if !measure.quantity.allows(&value) {
            return;
        }
        if matches!(measure.index, Index::Order) {
            self.ordered |= 1_u64
                .checked_shl(u32::try_from(number).unwrap_or(u32::MAX))
                .unwrap_or(0);
        }
        output.push(Measurement {
            quantity: measure.quantity,
            kind: measure.kind,
            value,
            index,
        });
    }

    /// Bytes that become a text, which costs more than reading them.
    fn written<'p>(&self, range: &Range, payload: &'p [u8]) -> Option<&'p [u8]>
    where
        'f: 'p,
    {
        let bytes = self.bytes(range, payload)?;
        self.spend(u32::try_from(bytes.len()).ok()?)
            .then_some(bytes)
    }

    fn value(&self, measure: &Measure, payload: &[u8]) -> Option<Value> {
        let raw = match &measure.source {
            Source::Integer(expression) => {
                let value = self.evaluate(expression, payload)?;
                if measure.missing.contains(&value) {
                    return None;
                }
                Raw::integer(value)
            }
            Source::Float {
                payload: from,
                at,
                kind,
                big_endian,
            } => {
                let range = Range {
                    payload: *from,
                    at: at.clone(),
                    size: i32::try_from(kind.bytes()).ok(),
                };
                let bytes = self.bytes(&range, payload)?;
                if !self.spend(FLOAT_COST) {
                    return None;
                }
                float(*kind, *big_endian, bytes)?
            }
            Source::Digits(range) => decimal(self.bytes(range, payload)?.trim_ascii())?,
            Source::Text(range) => return text(self.written(range, payload)?),
            Source::Hex(range) => return Some(Value::Text(hex(self.written(range, payload)?, ""))),
            Source::Mac { range, reversed } => {
                let mut address: [u8; 6] = self.bytes(range, payload)?.try_into().ok()?;
                if *reversed {
                    address.reverse();
                }
                return Some(Value::Text(hex(&address, ":")));
            }
            Source::Constant(constant) => return Some(constant.value()),
        };
        match &measure.output {
            Output::Number(linear) => linear.apply(raw).map(Value::Number),
            Output::Bool => Some(Value::Bool(raw.mantissa != 0)),
            Output::Lookup { table, otherwise } => table
                .get(raw.mantissa)
                .or(otherwise.as_ref())
                .map(Constant::value),
        }
    }
}

impl Constant {
    fn value(&self) -> Value {
        match self {
            Constant::Number(value) => Value::Number(*value),
            Constant::Bool(value) => Value::Bool(*value),
            Constant::Text(text) => Value::Text(text.clone()),
        }
    }
}

/// Printable text up to the first zero byte. Returns `None` if it is empty or not printable.
fn text(bytes: &[u8]) -> Option<Value> {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    let text = std::str::from_utf8(bytes.get(..end)?).ok()?.trim();
    let printable = !text.is_empty() && !text.chars().any(char::is_control);
    printable.then(|| Value::Text(text.to_owned()))
}

fn hex(bytes: &[u8], between: &str) -> String {
    // An address is written in capitals, other bytes are not.
    let digits = if between.is_empty() {
        b"0123456789abcdef"
    } else {
        b"0123456789ABCDEF"
    };
    let digit = |value: u8| {
        digits
            .get(usize::from(value))
            .copied()
            .map_or('0', char::from)
    };
    let mut text = String::with_capacity(bytes.len() * (2 + between.len()));
    for byte in bytes {
        if !text.is_empty() {
            text.push_str(between);
        }
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

/// Returns `None` for NaN, which marks a value that is not available.
fn float(kind: Float, big_endian: bool, bytes: &[u8]) -> Option<Raw> {
    let mut bits: u64 = 0;
    for at in 0..bytes.len() {
        let from = if big_endian { at } else { bytes.len() - 1 - at };
        bits = bits << 8 | u64::from(*bytes.get(from)?);
    }
    match kind {
        Float::Half => half(bits as u16),
        Float::Single => Raw::single(f32::from_bits(bits as u32)),
        Float::Double => Raw::double(f64::from_bits(bits)),
        Float::Medical16 => medical(bits, 12, 4),
        Float::Medical32 => medical(bits, 24, 8),
    }
}

/// IEEE 754 binary16.
fn half(bits: u16) -> Option<Raw> {
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = i128::from(bits & 0x3FF);
    let sign = if bits & 0x8000 == 0 { 1 } else { -1 };
    if exponent == 31 {
        return None;
    }
    let (mantissa, exponent) = if exponent == 0 {
        (fraction, -24)
    } else {
        (fraction + 1024, exponent - 25)
    };
    if exponent >= 0 {
        return Some(Raw::integer(sign * (mantissa << exponent)));
    }
    // m / 2^n = m * 5^n / 10^n: a half is exact in decimal digits.
    let power = power_of_ten(exponent.unsigned_abs())? >> exponent.unsigned_abs();
    Some(Raw {
        mantissa: sign * mantissa * power,
        exponent,
    })
}

/// IEEE 11073-20601: a decimal mantissa below a decimal exponent, both in two's complement. The
/// five mantissas around the lowest are NaN, infinities and reserved.
fn medical(bits: u64, mantissa_bits: u8, exponent_bits: u8) -> Option<Raw> {
    let mantissa = super::expression::signed(i128::from(bits), mantissa_bits);
    let exponent = super::expression::signed(i128::from(bits) >> mantissa_bits, exponent_bits);
    let largest = 1 << (mantissa_bits - 1);
    let special = exponent == 0 && (mantissa >= largest - 2 || mantissa <= 2 - largest);
    if special {
        None
    } else {
        Some(Raw {
            mantissa,
            exponent: i32::try_from(exponent).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_every_kind_are_read() {
        let linear = super::super::number::Linear::new(
            super::super::number::Ratio::ONE,
            super::super::number::Ratio::ZERO,
            (
                super::super::number::Ratio::ONE,
                super::super::number::Ratio::ZERO,
            ),
            None,
        )
        .unwrap();
        let value = |kind, bytes: &[u8]| float(kind, true, bytes).and_then(|raw| linear.apply(raw));
        assert_eq!(value(Float::Half, &[0x3C, 0x00]), Some(1.0));
        assert_eq!(value(Float::Half, &[0xC0, 0x80]), Some(-2.25));
        assert_eq!(value(Float::Half, &[0x7B, 0xFF]), Some(65_504.0));
        assert_eq!(value(Float::Half, &[0x00, 0x01]), Some(2.0_f64.powi(-24)));
        assert_eq!(value(Float::Half, &[0x7E, 0x00]), None);
        assert_eq!(value(Float::Single, &23.45_f32.to_be_bytes()), Some(23.45));
        assert_eq!(
            value(Float::Double, &(-1e-9_f64).to_be_bytes()),
            Some(-1e-9)
        );
        // The Bluetooth SIG's example of a body temperature: 36.4.
        assert_eq!(
            value(Float::Medical32, &[0xFF, 0x00, 0x01, 0x6C]),
            Some(36.4)
        );
        assert_eq!(value(Float::Medical16, &[0xF1, 0x6C]), Some(36.4));
        assert_eq!(value(Float::Medical16, &[0xFE, 0x94]), Some(-36.4));
        for special in [0x07FE_u16, 0x07FF, 0x0800, 0x0801, 0x0802] {
            assert_eq!(
                value(Float::Medical16, &special.to_be_bytes()),
                None,
                "{special:04x}"
            );
        }
        assert_eq!(value(Float::Medical32, &[0x00, 0x7F, 0xFF, 0xFF]), None);
    }

    #[test]
    fn text_ends_at_a_zero_byte_and_is_printable() {
        assert_eq!(text(b"ab\0\xFF"), Some(Value::Text("ab".to_owned())));
        assert_eq!(text(b"\0ab"), None);
        assert_eq!(text(b"a\nb"), None);
        assert_eq!(text(b"\xC3"), None);
    }
}
