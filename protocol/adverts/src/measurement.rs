//! The values that a decoder reads from a frame.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::quantity::Quantity;

/// A value in the unit of its quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    pub quantity: &'static Quantity,
    pub kind: Kind,
    pub value: Value,
    /// The index of a quantity that occurs more than once in a frame: 0, 1, ... in frame order.
    /// Else `None`.
    pub index: Option<u8>,
}

/// The kind of a value, which decides whether it may be sampled or folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A physical value that can be sampled.
    Measurement,
    /// A state that lasts until it changes, such as an open door.
    State,
    /// Something that happened, such as a button that was pressed. Never dropped.
    Event,
    /// A number that only rises until it starts over. Never dropped.
    Counter,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number, rounded to the resolution of the format.
    Number(f64),
    Text(String),
    Bool(bool),
}

impl Measurement {
    /// A value of the quantity's usual kind, and the only one of its quantity.
    pub fn new(quantity: &'static Quantity, value: Value) -> Self {
        Self {
            quantity,
            kind: quantity.kind,
            value,
            index: None,
        }
    }

    pub fn number(quantity: &'static Quantity, value: f64) -> Self {
        Self::new(quantity, Value::Number(value))
    }

    pub fn text(quantity: &'static Quantity, value: impl Into<String>) -> Self {
        Self::new(quantity, Value::Text(value.into()))
    }

    pub fn truth(quantity: &'static Quantity, value: bool) -> Self {
        Self::new(quantity, Value::Bool(value))
    }

    /// `quantity`, or `quantity[index]` of one of several.
    pub fn key(&self) -> String {
        match self.index {
            None => self.quantity.name.to_owned(),
            Some(index) => format!("{}[{index}]", self.quantity.name),
        }
    }

    /// The value at a place among several of its quantity.
    pub fn at(mut self, index: u8) -> Self {
        self.index = Some(index);
        self
    }
}

impl Value {
    /// A whole number has no decimal point.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Value::Number(value) => whole(*value).map_or_else(|| (*value).into(), Into::into),
            Value::Text(text) => text.as_str().into(),
            Value::Bool(value) => (*value).into(),
        }
    }
}

/// A value is serialized as [`Value::json`].
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Number(value) => match whole(*value) {
                Some(whole) => serializer.serialize_i64(whole),
                None => serializer.serialize_f64(*value),
            },
            Value::Text(text) => serializer.serialize_str(text),
            Value::Bool(value) => serializer.serialize_bool(*value),
        }
    }
}

/// The number without a fraction, if it has none.
fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 1e15).then_some(value as i64)
}

/// The measurement as text, such as `temperature 23.4 °C`.
impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.quantity.name)?;
        if let Some(index) = self.index {
            write!(f, "[{index}]")?;
        }
        match &self.value {
            Value::Number(value) => write!(f, " {value}")?,
            Value::Text(text) => write!(f, " {text}")?,
            Value::Bool(value) => f.write_str(if *value { " yes" } else { " no" })?,
        }
        match (&self.value, self.quantity.unit) {
            (Value::Number(_), Some(unit)) => write!(f, " {}", shown_unit(unit)),
            _ => Ok(()),
        }
    }
}

/// A SenML unit in its usual spelling.
fn shown_unit(unit: &str) -> &str {
    match unit {
        "Cel" => "°C",
        "%RH" | "%EL" => "%",
        "ug/m3" => "µg/m³",
        "m/s2" => "m/s²",
        "m3" => "m³",
        _ => unit,
    }
}

/// `{"quantity", "value", "unit"?, "kind"?, "index"?}`; `kind` is absent for a measurement.
impl Serialize for Measurement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("quantity", self.quantity.name)?;
        map.serialize_entry("value", &self.value)?;
        if let Some(unit) = self.quantity.unit {
            map.serialize_entry("unit", unit)?;
        }
        match self.kind {
            Kind::Measurement => {}
            Kind::State => map.serialize_entry("kind", "STATE")?,
            Kind::Event => map.serialize_entry("kind", "EVENT")?,
            Kind::Counter => map.serialize_entry("kind", "COUNTER")?,
        }
        if let Some(index) = self.index {
            map.serialize_entry("index", &index)?;
        }
        map.end()
    }
}
