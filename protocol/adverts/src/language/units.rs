//! Units in which data sheets give values, and what one of them is in a quantity's own unit.

use super::number::{Linear, Ratio, Raw};

/// Quantity's unit, unit of the data sheet, size of the latter, value of its zero.
const UNITS: &[(&str, &str, &str, &str)] = &[
    ("%EL", "%", "1", "0"),
    ("%RH", "%", "1", "0"),
    ("A", "mA", "0.001", "0"),
    ("Cel", "K", "1", "-273.15"),
    ("Cel", "degF", "5/9", "-160/9"),
    ("J", "Wh", "3600", "0"),
    ("J", "kWh", "3600000", "0"),
    ("J", "kJ", "1000", "0"),
    ("Pa", "bar", "100000", "0"),
    ("Pa", "hPa", "100", "0"),
    ("Pa", "kPa", "1000", "0"),
    ("Pa", "mbar", "100", "0"),
    ("Pa", "mmHg", "133.322387415", "0"),
    ("Pa", "psi", "6894.757293168", "0"),
    ("S/m", "mS/cm", "0.1", "0"),
    ("S/m", "uS/cm", "0.0001", "0"),
    ("V", "mV", "0.001", "0"),
    ("W", "kW", "1000", "0"),
    ("W", "mW", "0.001", "0"),
    ("kg", "g", "0.001", "0"),
    ("kg", "lb", "0.45359237", "0"),
    ("m", "cm", "0.01", "0"),
    ("m", "ft", "0.3048", "0"),
    ("m", "in", "0.0254", "0"),
    ("m", "km", "1000", "0"),
    ("m", "mm", "0.001", "0"),
    ("m/s", "km/h", "1/3.6", "0"),
    ("m/s2", "g", "9.80665", "0"),
    ("m/s2", "mg", "0.00980665", "0"),
    ("m3", "l", "0.001", "0"),
    ("m3", "ml", "0.000001", "0"),
    ("m3/s", "l/min", "1/60000", "0"),
    ("ppm", "ppb", "0.001", "0"),
    ("s", "d", "86400", "0"),
    ("s", "h", "3600", "0"),
    ("s", "min", "60", "0"),
    ("s", "ms", "0.001", "0"),
    ("ug/m3", "mg/m3", "1000", "0"),
];

/// The size of `unit` in `own`, and its zero. Returns `None` if the unit is unknown.
pub fn conversion(own: Option<&str>, unit: &str) -> Option<(Ratio, Ratio)> {
    if own == Some(unit) {
        return Some((Ratio::ONE, Ratio::ZERO));
    }
    let (_, _, size, zero) = UNITS
        .iter()
        .find(|(to, from, _, _)| Some(*to) == own && *from == unit)?;
    Some((Ratio::parse(size)?, Ratio::parse(zero)?))
}

/// A value of another unit in a quantity's own. Returns `None` if the unit is unknown.
pub fn in_own_unit(own: Option<&str>, unit: &str, value: f64) -> Option<f64> {
    if own == Some(unit) {
        return Some(value);
    }
    let linear = Linear::new(Ratio::ONE, Ratio::ZERO, conversion(own, unit)?, None)?;
    linear.apply(Raw::double(value)?)
}

/// The units in which a quantity's values may be given.
pub fn known(own: &str) -> Vec<&str> {
    let others = UNITS
        .iter()
        .filter(|(to, _, _, _)| *to == own)
        .map(|(_, from, _, _)| *from);
    [own].into_iter().chain(others).collect()
}

/// Factor and offset from one unit to another, both of a quantity with the unit `own`. Returns
/// `None` if one of them is unknown. The result needs rounding.
pub fn between(own: &str, from: &str, to: &str) -> Option<(f64, f64)> {
    let (from_size, from_zero) = conversion(Some(own), from)?;
    let (to_size, to_zero) = conversion(Some(own), to)?;
    let size = to_size.to_f64();
    Some((
        from_size.to_f64() / size,
        (from_zero.to_f64() - to_zero.to_f64()) / size,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_a_size() {
        for (to, from, _, _) in UNITS {
            assert!(conversion(Some(to), from).is_some(), "{from}");
            assert!(known(to).contains(from));
        }
    }

    #[test]
    fn units_convert_into_each_other() {
        let converted = |own, from, to, value: f64| {
            let (factor, offset) = between(own, from, to).unwrap();
            format!("{:.6}", value * factor + offset)
        };
        assert_eq!(converted("Cel", "Cel", "degF", 23.45), "74.210000");
        assert_eq!(converted("Cel", "degF", "K", 32.0), "273.150000");
        assert_eq!(converted("Pa", "Pa", "hPa", 101_325.0), "1013.250000");
        assert_eq!(converted("kg", "g", "kg", 1500.0), "1.500000");
        assert_eq!(between("kg", "kg", "lx"), None);
        for (own, unit, _, _) in UNITS {
            assert!(
                between(own, own, unit)
                    .is_some_and(|(factor, _)| factor.is_finite() && factor != 0.0),
                "{unit}"
            );
        }
    }
}
