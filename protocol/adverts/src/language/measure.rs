//! Compiles what reads a value: places, types, expressions, units and lookup tables.

use super::compile::Compiler;
use super::expression::{Expression, Place};
use super::node::{Node, Object, Result};
use super::number::{Linear, Ratio, decimal};
use super::program::{Constant, Float, Index, Measure, Output, Part, Range, Source, Step, Table};
use super::text;
use super::units;
use crate::measurement::Kind;
use crate::quantity::{Quantity, quantity};

const MEASURE: &[&str] = &[
    "quantity",
    "comment",
    "at",
    "type",
    "bits",
    "size",
    "in",
    "value",
    "constant",
    "scale",
    "offset",
    "unit",
    "decimals",
    "missing",
    "lookup",
    "otherwise",
    "as",
    "kind",
    "index",
    "if",
];
const LET: &[&str] = &["let", "comment", "at", "type", "bits", "in", "value"];
const RANGE: &[&str] = &["at", "size", "in"];

/// Bytes that no definition needs more of in a constant.
const CONSTANT: usize = 64;

impl Compiler {
    /// `{"quantity": "temperature", "at": 2, "type": "i16", "scale": 0.01}`
    pub fn measure(&mut self, step: &Node<'_>) -> Result<Step> {
        let step = step.object(MEASURE)?;
        let name = step.required("quantity")?;
        let quantity = quantity(name.text()?)
            .ok_or_else(|| name.error(format!("there is no quantity {}", name.value)))?;
        let condition = self.optional_expression(&step, "if")?;
        let source = self.source(&step)?;
        let kind = match step.get("kind") {
            None => quantity.kind,
            Some(kind) => Kind::of(&kind)?,
        };
        let index = match step.get("index") {
            None => Index::None,
            Some(index) if index.value == "order" => Index::Order,
            Some(index) => Index::Computed(self.expression(&index)?),
        };
        let missing = match step.get("missing") {
            None => Vec::new(),
            Some(missing) if matches!(source, Source::Integer(_)) => {
                let values = missing.one_or_list()?;
                self.spend_entries(&missing, values.len())?;
                values.iter().map(number).collect::<Result<_>>()?
            }
            Some(missing) => return Err(missing.error("applies to integers only")),
        };
        let output = self.output(&step, quantity, &source)?;
        Ok(Step::Measure(Box::new(Measure {
            quantity,
            kind,
            index,
            condition,
            source,
            missing,
            output,
        })))
    }

    /// `{"let": "raw", "at": 2, "type": "u16"}`
    pub fn define(&mut self, step: &Node<'_>) -> Result<Step> {
        let step = step.object(LET)?;
        let Source::Integer(value) = self.source(&step)? else {
            return Err(step.node.error("a variable is an integer"));
        };
        let slot = self.variable(&step.required("let")?)?;
        Ok(Step::Let { slot, value })
    }

    fn source(&mut self, step: &Object<'_>) -> Result<Source> {
        let given: Vec<&str> = ["at", "value", "constant"]
            .into_iter()
            .filter(|key| step.has(key))
            .collect();
        let [given] = given.as_slice() else {
            return Err(step.node.error("needs one of at, value, constant"));
        };
        if *given != "at"
            && let Some(extra) = ["type", "bits", "size", "in"]
                .into_iter()
                .find_map(|key| step.get(key))
        {
            return Err(extra.error("goes with at"));
        }
        match *given {
            "value" => Ok(Source::Integer(self.expression(&step.required("value")?)?)),
            "constant" => Ok(Source::Constant(constant(&step.required("constant")?)?)),
            _ => self.field(step),
        }
    }

    fn field(&mut self, step: &Object<'_>) -> Result<Source> {
        let payload = self.payload(step)?;
        let name = step.get("type");
        let type_name = name.as_ref().map_or(Ok("u8"), Node::text)?;
        if let Some(integer) = text::integer(type_name, self.big_endian()) {
            if let Some(size) = step.get("size") {
                return Err(size.error("goes with text, hex and digits"));
            }
            let at = self.place(&step.required("at")?)?;
            let read = Expression::Read {
                payload,
                at,
                integer,
            };
            let Some(bits) = step.get("bits") else {
                return Ok(Source::Integer(read));
            };
            let (low, high) = bit_range(&bits)?;
            if usize::from(high) >= integer.bytes * 8 {
                return Err(bits.error(format!("{type_name} has no bit {high}")));
            }
            let of = Box::new(Expression::Bits {
                of: Box::new(read),
                low,
                high,
            });
            let width = high - low + 1;
            return Ok(Source::Integer(if integer.signed {
                Expression::Signed { of, bits: width }
            } else {
                *of
            }));
        }
        if let Some(bits) = step.get("bits") {
            return Err(bits.error("goes with an integer type"));
        }
        let (base, big_endian) = match (type_name.strip_suffix("be"), type_name.strip_suffix("le"))
        {
            (Some(base), _) => (base, true),
            (_, Some(base)) => (base, false),
            _ => (type_name, self.big_endian()),
        };
        let float = match base {
            "f16" => Some(Float::Half),
            "f32" => Some(Float::Single),
            "f64" => Some(Float::Double),
            "sfloat" => Some(Float::Medical16),
            "float" => Some(Float::Medical32),
            _ => None,
        };
        if let Some(kind) = float {
            let at = self.place(&step.required("at")?)?;
            return Ok(Source::Float {
                payload,
                at,
                kind,
                big_endian,
            });
        }
        let mut range = self.range_of(step)?;
        match type_name {
            "text" => Ok(Source::Text(range)),
            "hex" => Ok(Source::Hex(range)),
            "digits" => Ok(Source::Digits(range)),
            "mac" | "mac-reversed" => {
                range.size = Some(6);
                Ok(Source::Mac { range, reversed: type_name == "mac-reversed" })
            }
            _ => Err(step.required("type")?.error(
                "must be an integer (u8 to u64, i8 to i64), a float (f16, f32, f64, sfloat, float), text, hex, digits, \
                 mac or mac-reversed; numbers may end with le or be",
            )),
        }
    }

    fn output(
        &mut self,
        step: &Object<'_>,
        quantity: &Quantity,
        source: &Source,
    ) -> Result<Output> {
        let numeric = ["scale", "offset", "unit", "decimals"]
            .into_iter()
            .find_map(|key| step.get(key));
        if let Some(lookup) = step.get("lookup") {
            if let Some(extra) = numeric.or_else(|| step.get("as")) {
                return Err(extra.error("does not go with lookup"));
            }
            if !matches!(source, Source::Integer(_)) {
                return Err(lookup.error("needs an integer"));
            }
            let table = self.table(&lookup, |_, value| constant(value))?;
            let otherwise = step
                .get("otherwise")
                .map(|value| constant(&value))
                .transpose()?;
            return Ok(Output::Lookup { table, otherwise });
        }
        if let Some(otherwise) = step.get("otherwise") {
            return Err(otherwise.error("goes with lookup"));
        }
        if let Some(kind) = step.get("as") {
            kind.choice(&["bool"])?;
            if let Some(extra) = numeric {
                return Err(extra.error("does not go with bool"));
            }
            return match source {
                Source::Integer(_) => Ok(Output::Bool),
                _ => Err(kind.error("needs an integer")),
            };
        }
        if let Some(extra) = &numeric
            && !matches!(
                source,
                Source::Integer(_) | Source::Float { .. } | Source::Digits(_)
            )
        {
            return Err(extra.error("goes with numbers"));
        }
        let scale = step
            .get("scale")
            .map_or(Ok(Ratio::ONE), |scale| ratio(&scale))?;
        if scale.is_zero() {
            return Err(step.required("scale")?.error("must not be zero"));
        }
        let offset = step
            .get("offset")
            .map_or(Ok(Ratio::ZERO), |offset| ratio(&offset))?;
        let unit = match step.get("unit") {
            None => (Ratio::ONE, Ratio::ZERO),
            Some(unit) => units::conversion(quantity.unit, unit.text()?).ok_or_else(|| {
                match quantity.unit {
                    Some(own) => unit.error(format!(
                        "{} is in one of {}",
                        quantity.name,
                        units::known(own).join(", ")
                    )),
                    None => unit.error(format!("{} has no unit", quantity.name)),
                }
            })?,
        };
        let decimals = match step.get("decimals") {
            None => None,
            Some(decimals) => u8::try_from(decimals.integer(0, 15)?).ok(),
        };
        let linear = Linear::new(scale, offset, unit, decimals);
        let linear = linear.ok_or_else(|| {
            step.node
                .error("scale and offset have too many digits together")
        })?;
        Ok(Output::Number(linear))
    }

    /// Cases by keys such as `"3"`, `"0x10-0x1f"` and `"1, 2"`.
    pub fn table<T>(
        &mut self,
        node: &Node<'_>,
        mut read: impl FnMut(&mut Compiler, &Node<'_>) -> Result<T>,
    ) -> Result<Table<T>> {
        let mut ranges = Vec::new();
        let mut values = Vec::new();
        for (key, value) in node.map()?.entries() {
            for part in key.split(',') {
                let (low, high) = key_range(part.trim()).ok_or_else(|| {
                    value.error("its name must be numbers or ranges of numbers, such as 3, 0x10-0x1f or 1, 2")
                })?;
                self.spend_entries(&value, 1)?;
                ranges.push((low, high, values.len()));
            }
            values.push(read(self, &value)?);
        }
        Table::new(ranges, values).map_err(|key| node.error(format!("has {key} twice")))
    }

    /// An expression in text, or an integer.
    pub fn expression(&mut self, node: &Node<'_>) -> Result<Expression> {
        if let Some(value) = node.value.as_i64() {
            return Ok(Expression::Constant(i128::from(value)));
        }
        let text = node
            .value
            .as_str()
            .ok_or_else(|| node.error("must be an expression or an integer"))?;
        let mut parts = 0;
        let expression =
            text::parse(text, self.names(), &mut parts).map_err(|problem| node.error(problem))?;
        self.spend_parts(node, parts)?;
        Ok(expression)
    }

    pub fn optional_expression(
        &mut self,
        object: &Object<'_>,
        key: &str,
    ) -> Result<Option<Expression>> {
        object
            .get(key)
            .map(|node| self.expression(&node))
            .transpose()
    }

    fn place(&mut self, node: &Node<'_>) -> Result<Place> {
        let expression = self.expression(node)?;
        text::place(expression).map_err(|problem| node.error(problem))
    }

    /// The payload that `in` names.
    fn payload(&self, object: &Object<'_>) -> Result<usize> {
        let Some(name) = object.get("in") else {
            return Ok(0);
        };
        let text = name.text()?;
        let found = self.names().payloads.iter().position(|known| known == text);
        found
            .map(|at| at + 1)
            .ok_or_else(|| name.error(format!("there is no payload {text}")))
    }

    /// A range with no other members beside it.
    pub fn range(&mut self, node: &Node<'_>) -> Result<Range> {
        self.range_of(&node.object(RANGE)?)
    }

    /// The range that `at`, `size` and `in` of an object say.
    pub fn range_of(&mut self, object: &Object<'_>) -> Result<Range> {
        let payload = self.payload(object)?;
        let at = match object.get("at") {
            None => Place::Fixed(0),
            Some(at) => self.place(&at)?,
        };
        let size = match object.get("size") {
            None => None,
            Some(size) => i32::try_from(size.integer(-1_650, 1_650)?).ok(),
        };
        Ok(Range { payload, at, size })
    }

    /// Bytes put together of constants and parts of the frame: `least` to `most`.
    pub fn parts(&mut self, node: &Node<'_>, least: usize, most: usize) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for item in node.one_or_list()? {
            parts.push(self.bytes_part(&item)?);
            self.spend_entries(&item, 1)?;
        }
        let size: usize = parts.iter().map(Part::size).sum();
        if !(least..=most).contains(&size) {
            let wanted = if least == most {
                least.to_string()
            } else {
                format!("{least} to {most}")
            };
            return Err(node.error(format!("must be {wanted} bytes, not {size}")));
        }
        Ok(parts)
    }

    fn bytes_part(&mut self, node: &Node<'_>) -> Result<Part> {
        if let Some(text) = node.value.as_str() {
            return match text {
                "address" => Ok(Part::Address { reversed: false }),
                "address-reversed" => Ok(Part::Address { reversed: true }),
                _ => Ok(Part::Constant(node.hex(1, CONSTANT)?)),
            };
        }
        let object = node.object(&["at", "size", "in", "reversed", "value", "type"])?;
        if object.has("value") {
            if let Some(extra) = ["at", "size", "in", "reversed"]
                .into_iter()
                .find_map(|key| object.get(key))
            {
                return Err(extra.error("does not go with value"));
            }
            let name = object.required("type")?;
            let integer = text::integer(name.text()?, self.big_endian());
            let integer =
                integer.ok_or_else(|| name.error("must be an integer type such as u32le"))?;
            return Ok(Part::Value {
                value: self.expression(&object.required("value")?)?,
                integer,
            });
        }
        if let Some(extra) = object.get("type") {
            return Err(extra.error("goes with value"));
        }
        let mut range = self.range_of(&object)?;
        let size = object.required("size")?.integer(1, CONSTANT as i64)?;
        range.size = i32::try_from(size).ok();
        let reversed = object
            .get("reversed")
            .map_or(Ok(false), |reversed| reversed.boolean())?;
        Ok(Part::Bytes {
            range,
            size: usize::try_from(size).unwrap_or_default(),
            reversed,
        })
    }
}

impl Kind {
    /// Parses the name of a kind, in capitals.
    pub(crate) fn of(node: &Node<'_>) -> Result<Kind> {
        Ok(
            match node.choice(&["MEASUREMENT", "STATE", "EVENT", "COUNTER"])? {
                0 => Kind::Measurement,
                1 => Kind::State,
                2 => Kind::Event,
                _ => Kind::Counter,
            },
        )
    }
}

/// `3`, `"3"` or `"0-6"`.
fn bit_range(node: &Node<'_>) -> Result<(u8, u8)> {
    let text = match node.value.as_u64() {
        Some(bit) => bit.to_string(),
        None => node.value.as_str().unwrap_or_default().to_owned(),
    };
    let (low, high) = text.split_once('-').unwrap_or((&text, &text));
    match (low.trim().parse::<u8>(), high.trim().parse::<u8>()) {
        (Ok(low), Ok(high)) if low <= high && high < 64 => Ok((low, high)),
        _ => Err(node.error("must be a bit, such as 3, or bits from low to high, such as \"0-6\"")),
    }
}

/// A number or a range of numbers in the key of a table.
fn key_range(text: &str) -> Option<(i128, i128)> {
    if let Some(value) = text.strip_prefix('-') {
        let value = -text::number(value)?;
        return Some((value, value));
    }
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (text::number(low.trim())?, text::number(high.trim())?);
    (low <= high).then_some((low, high))
}

/// An integer, or one in text such as `"0x7fff"`.
fn number(node: &Node<'_>) -> Result<i128> {
    if let Some(value) = node.value.as_i64() {
        return Ok(i128::from(value));
    }
    let value = node
        .value
        .as_str()
        .and_then(|text| match text.strip_prefix('-') {
            Some(text) => text::number(text).map(|value| -value),
            None => text::number(text),
        });
    value.ok_or_else(|| node.error("must be an integer or text such as \"0x7fff\""))
}

/// A decimal, or a ratio in text such as `"175/65535"`.
fn ratio(node: &Node<'_>) -> Result<Ratio> {
    let ratio = match node.value {
        serde_json::Value::Number(value) => {
            decimal(value.to_string().as_bytes()).and_then(Ratio::of)
        }
        serde_json::Value::String(text) => Ratio::parse(text),
        _ => None,
    };
    ratio.ok_or_else(|| node.error("must be a decimal or text such as \"175/65535\""))
}

fn constant(node: &Node<'_>) -> Result<Constant> {
    match node.value {
        serde_json::Value::Bool(value) => Ok(Constant::Bool(*value)),
        serde_json::Value::Number(value) => {
            match value.as_f64().filter(|value| value.is_finite()) {
                Some(value) => Ok(Constant::Number(value)),
                None => Err(node.error("must be a finite number")),
            }
        }
        serde_json::Value::String(text) if text.len() <= 200 => Ok(Constant::Text(text.clone())),
        _ => Err(node.error("must be a text of at most 200 characters, a number, true or false")),
    }
}
