//! Exact numbers. The content of a frame is an integer or a decimal, and the scale in a data sheet
//! is a decimal or a ratio; a float is made once, at the end, so that 2345 with a scale of 0.01 is
//! 23.45 and nothing beside it.

use std::fmt::Write;

/// `mantissa * 10^exponent`: an integer, or what a float's shortest digits say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Raw {
    pub mantissa: i128,
    pub exponent: i32,
}

impl Raw {
    pub fn integer(value: i128) -> Raw {
        Raw {
            mantissa: value,
            exponent: 0,
        }
    }

    /// The number of a single-precision float: 23.45 and not 23.450000762939453. Returns `None` if
    /// it is not finite.
    pub fn single(value: f32) -> Option<Raw> {
        if value.is_finite() {
            shortest(format_args!("{value:e}"))
        } else {
            None
        }
    }

    /// The number of a double-precision float. Returns `None` if it is not finite.
    pub fn double(value: f64) -> Option<Raw> {
        if value.is_finite() {
            shortest(format_args!("{value:e}"))
        } else {
            None
        }
    }
}

/// Parses a float's shortest digits.
fn shortest(text: std::fmt::Arguments<'_>) -> Option<Raw> {
    let mut digits = Digits::default();
    digits.write_fmt(text).ok()?;
    decimal(digits.bytes())
}

/// Digits of a number, on the stack.
#[derive(Default)]
struct Digits {
    bytes: [u8; 32],
    length: usize,
}

impl Digits {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        let room = self
            .bytes
            .get_mut(self.length..end)
            .ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Reads `[+-]digits[.digits][e[+-]digits]`, at most 30 digits. Returns `None` for all other text.
pub fn decimal(text: &[u8]) -> Option<Raw> {
    let (negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut mantissa: i128 = 0;
    let mut exponent: i32 = 0;
    let mut digits = 0;
    let mut point = false;
    while let [byte, tail @ ..] = rest {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                if digits > 30 {
                    return None;
                }
                mantissa = mantissa * 10 + i128::from(byte - b'0');
                exponent -= i32::from(point);
            }
            b'.' if !point => point = true,
            b'e' | b'E' => {
                let power: i32 = std::str::from_utf8(tail).ok()?.parse().ok()?;
                exponent = exponent.checked_add(power)?;
                rest = &[];
                continue;
            }
            _ => return None,
        }
        rest = tail;
    }
    if digits == 0 || exponent.unsigned_abs() > 400 {
        return None;
    }
    Some(Raw {
        mantissa: if negative { -mantissa } else { mantissa },
        exponent,
    })
}

/// `10^exponent` within i128.
pub fn power_of_ten(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

/// A ratio of integers in lowest terms, the denominator positive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    pub const ONE: Ratio = Ratio {
        numerator: 1,
        denominator: 1,
    };
    pub const ZERO: Ratio = Ratio {
        numerator: 0,
        denominator: 1,
    };

    /// Returns `None` if the denominator is zero.
    pub fn new(numerator: i128, denominator: i128) -> Option<Ratio> {
        if denominator == 0 {
            return None;
        }
        let (numerator, denominator) = if denominator < 0 {
            (numerator.checked_neg()?, denominator.checked_neg()?)
        } else {
            (numerator, denominator)
        };
        let divisor = greatest_common_divisor(numerator, denominator)?;
        Some(Ratio {
            numerator: numerator / divisor,
            denominator: denominator / divisor,
        })
    }

    /// Parses a ratio such as `0.0625` or `175/65535`.
    pub fn parse(text: &str) -> Option<Ratio> {
        let (above, below) = text.split_once('/').unwrap_or((text, "1"));
        let above = Ratio::of(decimal(above.trim().as_bytes())?)?;
        let below = Ratio::of(decimal(below.trim().as_bytes())?)?;
        Ratio::new(
            above.numerator.checked_mul(below.denominator)?,
            above.denominator.checked_mul(below.numerator)?,
        )
    }

    pub fn of(raw: Raw) -> Option<Ratio> {
        let power = power_of_ten(raw.exponent.unsigned_abs())?;
        if raw.exponent < 0 {
            Ratio::new(raw.mantissa, power)
        } else {
            Some(Ratio {
                numerator: raw.mantissa.checked_mul(power)?,
                denominator: 1,
            })
        }
    }

    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    pub fn is_zero(self) -> bool {
        self.numerator == 0
    }

    fn times(self, other: Ratio) -> Option<Ratio> {
        Ratio::new(
            self.numerator.checked_mul(other.numerator)?,
            self.denominator.checked_mul(other.denominator)?,
        )
    }

    fn plus(self, other: Ratio) -> Option<Ratio> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Ratio::new(
            left.checked_add(right)?,
            self.denominator.checked_mul(other.denominator)?,
        )
    }
}

/// Returns `None` if both are zero.
fn greatest_common_divisor(left: i128, right: i128) -> Option<i128> {
    let (mut left, mut right) = (left.checked_abs()?, right.checked_abs()?);
    while right != 0 {
        (left, right) = (right, left % right);
    }
    (left != 0).then_some(left)
}

/// `(raw * factor + constant) / divisor`: scale, offset and change of unit in one.
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    factor: i128,
    constant: i128,
    divisor: i128,
    /// `divisor` is ten to this power.
    places: Option<u8>,
    /// Digits after the point that are kept.
    decimals: Option<u8>,
}

impl Linear {
    /// `raw * scale + offset`, of which each unit is `unit.0` units of the quantity, from `unit.1`.
    /// Returns `None` if the numbers are too long to be exact.
    pub fn new(
        scale: Ratio,
        offset: Ratio,
        unit: (Ratio, Ratio),
        decimals: Option<u8>,
    ) -> Option<Linear> {
        let scale = scale.times(unit.0)?;
        let offset = offset.times(unit.0)?.plus(unit.1)?;
        let mut factor = scale.numerator.checked_mul(offset.denominator)?;
        let mut constant = offset.numerator.checked_mul(scale.denominator)?;
        let mut divisor = scale.denominator.checked_mul(offset.denominator)?;
        let common = greatest_common_divisor(greatest_common_divisor(factor, divisor)?, constant)?;
        factor /= common;
        constant /= common;
        divisor /= common;
        let mut places = None;
        for exponent in 0..=15_u8 {
            let power = power_of_ten(u32::from(exponent))?;
            if power % divisor == 0 {
                factor = factor.checked_mul(power / divisor)?;
                constant = constant.checked_mul(power / divisor)?;
                divisor = power;
                places = Some(exponent);
                break;
            }
        }
        const LIMIT: i128 = 1 << 100;
        let fits = factor.abs() < LIMIT && constant.abs() < LIMIT && divisor < LIMIT;
        fits.then_some(Linear {
            factor,
            constant,
            divisor,
            places,
            decimals,
        })
    }

    /// The value of a number in a frame. Returns `None` if it is not finite.
    pub fn apply(&self, raw: Raw) -> Option<f64> {
        self.exact(raw)
            .or_else(|| self.approximate(raw))
            .filter(|value| value.is_finite())
    }

    fn exact(&self, raw: Raw) -> Option<f64> {
        let power = if raw.exponent == 0 {
            1
        } else {
            power_of_ten(raw.exponent.unsigned_abs())?
        };
        let mut numerator = raw.mantissa.checked_mul(self.factor)?;
        let mut divisor = self.divisor;
        let mut places = self.places;
        if raw.exponent >= 0 {
            numerator = numerator.checked_mul(power)?.checked_add(self.constant)?;
        } else {
            numerator = numerator.checked_add(self.constant.checked_mul(power)?)?;
            divisor = divisor.checked_mul(power)?;
            places = places.and_then(|places| {
                places.checked_add(u8::try_from(raw.exponent.unsigned_abs()).ok()?)
            });
        }
        if let Some(decimals) = self.decimals
            && places.is_none_or(|places| places > decimals)
        {
            numerator = round(
                numerator.checked_mul(power_of_ten(u32::from(decimals))?)?,
                divisor,
            )?;
            return float(numerator, decimals);
        }
        match places {
            Some(places) => float(numerator, places),
            None => Some(quotient(numerator, divisor)),
        }
    }

    /// The value, for numbers beyond 128 bits.
    fn approximate(&self, raw: Raw) -> Option<f64> {
        let value = parse_float(raw.mantissa, raw.exponent)?;
        Some((value * self.factor as f64 + self.constant as f64) / self.divisor as f64)
    }
}

/// `numerator / divisor` to the nearest integer, halves away from zero.
fn round(numerator: i128, divisor: i128) -> Option<i128> {
    let half = if numerator < 0 {
        -(divisor / 2)
    } else {
        divisor / 2
    };
    numerator.checked_add(half)?.checked_div(divisor)
}

const EXACT: i128 = 1 << 53;

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// The double nearest to `mantissa / 10^places`. Of two exact doubles, the quotient is it.
fn float(mantissa: i128, places: u8) -> Option<f64> {
    if mantissa.unsigned_abs() < EXACT.unsigned_abs()
        && let Some(power) = POWERS.get(usize::from(places))
    {
        return Some(mantissa as f64 / power);
    }
    parse_float(mantissa, -i32::from(places))
}

fn quotient(numerator: i128, divisor: i128) -> f64 {
    let common = greatest_common_divisor(numerator, divisor).unwrap_or(1);
    (numerator / common) as f64 / (divisor / common) as f64
}

fn parse_float(mantissa: i128, exponent: i32) -> Option<f64> {
    let mut text = Wide::default();
    write!(text, "{mantissa}e{exponent}").ok()?;
    std::str::from_utf8(text.bytes.get(..text.length)?)
        .ok()?
        .parse()
        .ok()
}

/// As [`Digits`], for every value of an i128.
struct Wide {
    bytes: [u8; 56],
    length: usize,
}

impl Default for Wide {
    fn default() -> Wide {
        Wide {
            bytes: [0; 56],
            length: 0,
        }
    }
}

impl Write for Wide {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        let room = self
            .bytes
            .get_mut(self.length..end)
            .ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(scale: &str, offset: &str, decimals: Option<u8>) -> Linear {
        let unit = (Ratio::ONE, Ratio::ZERO);
        Linear::new(
            Ratio::parse(scale).unwrap(),
            Ratio::parse(offset).unwrap(),
            unit,
            decimals,
        )
        .unwrap()
    }

    #[test]
    fn decimal_scales_give_the_decimal() {
        let hundredth = linear("0.01", "0", None);
        for raw in -40_000..70_000 {
            let expected: f64 = format!("{raw}e-2").parse().unwrap();
            assert_eq!(hundredth.apply(Raw::integer(raw)), Some(expected));
        }
        assert_eq!(
            linear("0.1", "-40", None).apply(Raw::integer(635)),
            Some(23.5)
        );
        assert_eq!(
            linear("0.0625", "0", None).apply(Raw::integer(-7)),
            Some(-0.4375)
        );
    }

    #[test]
    fn ratios_are_rounded_where_it_is_asked() {
        let raw = Raw::integer(0x6789);
        assert_eq!(
            linear("175/65535", "-45", None).apply(raw),
            Some(f64::from(0x6789 * 175 - 45 * 65_535) / 65_535.0)
        );
        assert_eq!(linear("175/65535", "-45", Some(2)).apply(raw), Some(25.78));
        assert_eq!(
            linear("1/3", "0", Some(0)).apply(Raw::integer(-2)),
            Some(-1.0)
        );
        assert_eq!(
            linear("0.5", "0", Some(0)).apply(Raw::integer(3)),
            Some(2.0)
        );
    }

    #[test]
    fn floats_keep_the_digits_that_they_resolve() {
        let same = linear("1", "0", None);
        assert_eq!(same.apply(Raw::single(23.45).unwrap()), Some(23.45));
        assert_eq!(same.apply(Raw::double(1e300).unwrap()), Some(1e300));
        assert_eq!(
            linear("100", "0", None).apply(Raw::single(1013.25).unwrap()),
            Some(101_325.0)
        );
        assert_eq!(Raw::single(f32::NAN), None);
        assert_eq!(same.apply(Raw::integer(i128::MAX)), Some(i128::MAX as f64));
    }

    #[test]
    fn text_that_is_no_number_is_none() {
        for text in [
            "",
            "+",
            "-",
            ".",
            "1.2.3",
            "1e",
            "0x1",
            " 1",
            "1e99999",
            "nan",
            "1234567890123456789012345678901",
        ] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            decimal(b"+023.5"),
            Some(Raw {
                mantissa: 235,
                exponent: -1
            })
        );
        assert_eq!(Ratio::parse("1/0"), None);
    }
}
