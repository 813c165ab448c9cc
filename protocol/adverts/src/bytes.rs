//! Reading numbers out of payloads, and scaling them to decimals.

use std::fmt::Write;

/// The bytes at an offset, or `None` where the payload ends before.
pub fn at<const N: usize>(payload: &[u8], offset: usize) -> Option<[u8; N]> {
    payload.get(offset..)?.first_chunk().copied()
}

pub fn u8_at(payload: &[u8], offset: usize) -> Option<u8> {
    payload.get(offset).copied()
}

pub fn u16_be(payload: &[u8], offset: usize) -> Option<u16> {
    at(payload, offset).map(u16::from_be_bytes)
}

pub fn i16_be(payload: &[u8], offset: usize) -> Option<i16> {
    at(payload, offset).map(i16::from_be_bytes)
}

pub fn u24_be(payload: &[u8], offset: usize) -> Option<u32> {
    at(payload, offset).map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
}

pub fn u32_be(payload: &[u8], offset: usize) -> Option<u32> {
    at(payload, offset).map(u32::from_be_bytes)
}

pub fn u16_le(payload: &[u8], offset: usize) -> Option<u16> {
    at(payload, offset).map(u16::from_le_bytes)
}

pub fn u32_le(payload: &[u8], offset: usize) -> Option<u32> {
    at(payload, offset).map(u32::from_le_bytes)
}

/// All of the bytes as an unsigned little-endian number. Returns `None` for no bytes or more than
/// six.
pub fn unsigned_le(bytes: &[u8]) -> Option<i64> {
    if bytes.is_empty() || bytes.len() > 6 {
        return None;
    }
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |value, byte| (value << 8) | i64::from(*byte)),
    )
}

/// All of the bytes as a little-endian number in two's complement. Returns `None` for no bytes or
/// more than six.
pub fn signed_le(bytes: &[u8]) -> Option<i64> {
    let value = unsigned_le(bytes)?;
    let spare = 64 - 8 * u32::try_from(bytes.len()).ok()?;
    Some((value << spare) >> spare)
}

/// `raw` divided by 10 to the power of `places`, as the nearest number there is. The division is
/// exact to the last bit, unlike a multiplication by 0.01.
pub fn decimal(raw: i64, places: u32) -> f64 {
    raw as f64 / 10_f64.powi(places.min(22) as i32)
}

/// Standard gravity in hundred-thousandths of m/s2.
const GRAVITY: i64 = 980_665;

/// Thousandths of standard gravity in m/s2.
pub fn milli_g(raw: i64) -> f64 {
    decimal(raw * GRAVITY, 8)
}

/// A single-precision number as the decimal of seven digits that it stands for: 23.45 and not
/// 23.450000762939453. Returns `None` for infinity and NaN.
pub fn single(value: f32) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    let value = f64::from(value);
    let mut places = 6;
    let mut limit = 10.0;
    while places > 0 && value.abs() >= limit {
        places -= 1;
        limit *= 10.0;
    }
    let scale = 10_f64.powi(places);
    // The addition turns a negative zero, from a small negative number, into zero.
    Some((value * scale).round() / scale + 0.0)
}

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // A String takes all that is written.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_within_the_payload_only() {
        assert_eq!(u16_be(&[1, 2], 0), Some(0x0102));
        assert_eq!(u16_be(&[1, 2], 1), None);
        assert_eq!(u16_be(&[1, 2], usize::MAX), None);
        assert_eq!(u24_be(&[0xDE, 0xCD, 0xEE], 0), Some(14_601_710));
        assert_eq!(unsigned_le(&[0x13, 0x8A, 0x14]), Some(1_346_067));
        assert_eq!(signed_le(&[0xEA]), Some(-22));
        assert_eq!(signed_le(&[0xEA, 0x02, 0x34, 0xEA]), Some(-365_690_134));
        assert_eq!(signed_le(&[]), None);
        assert_eq!(unsigned_le(&[0; 7]), None);
    }

    #[test]
    fn decimals_are_the_nearest_numbers() {
        assert_eq!(decimal(2345, 2), 23.45);
        assert_eq!(decimal(-7, 2), -0.07);
        assert_eq!(milli_g(1000), 9.80665);
        assert_eq!(single(23.45), Some(23.45));
        assert_eq!(single(-0.1), Some(-0.1));
        assert_eq!(single(16_777_216.0), Some(16_777_216.0));
        assert_eq!(single(f32::NAN), None);
    }
}
