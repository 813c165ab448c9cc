//! Values that a script returns, under the same limits as those of the decoder language.

use crate::language::{in_own_unit, known_units};
use crate::measurement::{Measurement, Value};
use crate::quantity::quantity;

/// Digits that are kept of a computed number that is not whole.
const DIGITS: usize = 12;

impl Measurement {
    /// A value as a script gives it: `name` is a quantity or `quantity[index]`. Returns `None` if
    /// it is outside the sane range of its quantity, so that it is absent. The error is text to
    /// display.
    pub fn scripted(
        name: &str,
        value: Value,
        unit: Option<&str>,
        index: Option<f64>,
    ) -> Result<Option<Measurement>, String> {
        let (name, index) = match (name.split_once('['), index) {
            (None, None) => (name, None),
            (None, Some(index)) => (name, Some(index)),
            (Some((name, rest)), None) => {
                let index = rest
                    .strip_suffix(']')
                    .and_then(|index| index.parse::<u8>().ok());
                (name, Some(index.map_or(f64::NAN, f64::from)))
            }
            (Some(_), Some(_)) => return Err(format!("{name} has two indexes")),
        };
        let quantity = quantity(name).ok_or_else(|| format!("there is no quantity {name}"))?;
        let index = match index {
            None => None,
            Some(index) if index.fract() == 0.0 && (0.0..=255.0).contains(&index) => {
                Some(index as u8)
            }
            Some(_) => {
                return Err(format!(
                    "the index of {name} must be a whole number from 0 to 255"
                ));
            }
        };
        if !matches!(value, Value::Number(_)) && quantity.is_number() {
            return Err(format!("{name} must be a number"));
        }
        let value = match (value, unit) {
            (Value::Number(value), _) if !value.is_finite() => {
                return Err(format!("{name} is {value}"));
            }
            (Value::Number(value), None) => Value::Number(rounded(value)),
            (Value::Number(value), Some(unit)) => {
                let converted =
                    in_own_unit(quantity.unit, unit, value).ok_or_else(|| match quantity.unit {
                        Some(own) => format!(
                            "{name} is in one of {}, not in {unit}",
                            known_units(own).join(", ")
                        ),
                        None => format!("{name} has no unit"),
                    })?;
                Value::Number(rounded(converted))
            }
            (_, Some(_)) => return Err(format!("{name} has no unit")),
            (value, None) => value,
        };
        if !quantity.allows(&value) {
            return Ok(None);
        }
        Ok(Some(Measurement {
            index,
            ..Measurement::new(quantity, value)
        }))
    }
}

/// The value without the remainders of binary fractions, which no sensor resolves.
pub fn rounded(value: f64) -> f64 {
    match value.fract() == 0.0 {
        true => value,
        false => format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(
        name: &str,
        value: f64,
        unit: Option<&str>,
        index: Option<f64>,
    ) -> Result<Option<String>, String> {
        let found = Measurement::scripted(name, Value::Number(value), unit, index)?;
        Ok(found.map(|found| found.to_string()))
    }

    #[test]
    fn values_are_rounded_converted_and_indexed() {
        assert_eq!(
            number("temperature", 0.1 + 0.2, None, None),
            Ok(Some("temperature 0.3 °C".to_owned()))
        );
        assert_eq!(
            number("temperature", 212.0, Some("degF"), None),
            Ok(Some("temperature 100 °C".to_owned()))
        );
        assert_eq!(
            number("voltage", 3001.0, Some("mV"), Some(1.0)),
            Ok(Some("voltage[1] 3.001 V".to_owned()))
        );
        assert_eq!(
            number("voltage[2]", 3.0, Some("V"), None),
            Ok(Some("voltage[2] 3 V".to_owned()))
        );
        assert_eq!(number("temperature", 1e9, None, None), Ok(None));
    }

    #[test]
    fn nonsense_is_refused_with_its_name() {
        let refused = [
            (
                number("temprature", 1.0, None, None),
                "there is no quantity temprature",
            ),
            (
                number("temperature", f64::NAN, None, None),
                "temperature is NaN",
            ),
            (
                number("temperature", 1.0, Some("lx"), None),
                "temperature is in one of Cel, K, degF, not in lx",
            ),
            (
                number("temperature", 1.0, None, Some(0.5)),
                "the index of temperature must be a whole number",
            ),
            (
                number("temperature[x]", 1.0, None, None),
                "the index of temperature must be a whole number",
            ),
            (
                number("temperature[1]", 1.0, None, Some(1.0)),
                "temperature[1] has two indexes",
            ),
        ];
        for (found, wanted) in refused {
            let problem = found.expect_err(wanted);
            assert!(problem.starts_with(wanted), "{problem}");
        }
        let text = Measurement::scripted("temperature", Value::Text("warm".to_owned()), None, None);
        assert_eq!(text, Err("temperature must be a number".to_owned()));
    }
}
