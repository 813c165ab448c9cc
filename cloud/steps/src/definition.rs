//! From the JSON of steps to their compiled form.

use hub_adverts::quantity::{Quantity, quantity};
use serde_json::{Map, Value as Json};

use super::expression::{Expression, MAX_SOURCE, Measured, Names, Path, unknown};
use super::state::SlotKind;
use super::template::Template;
use super::{MAX_STEPS, Problem};

/// Members of `set` and `fields`.
const MAX_FIELDS: usize = 64;
/// Seconds of `sample`, `on_change` and `dedupe`: 31 days.
const MAX_SECONDS: f64 = 2_678_400.0;
const MAX_DEDUPE_SECONDS: f64 = 86_400.0;
/// Bytes of a script.
pub const MAX_SCRIPT: usize = 64 * 1024;

/// The names of steps, and the members of each beside `op`.
pub const OPS: [(&str, &[&str]); 11] = [
    ("filter", &["when"]),
    ("map", &["set"]),
    ("rename", &["fields"]),
    ("drop", &["fields"]),
    ("scale", &["quantity", "factor", "offset"]),
    ("convert", &["quantity", "unit"]),
    ("sample", &["everySeconds", "by"]),
    ("on_change", &["quantity", "delta", "maxSeconds"]),
    ("dedupe", &["seconds"]),
    ("template", &["body"]),
    ("script", &["source"]),
];

#[derive(Debug)]
pub enum Step {
    Filter(Expression),
    Map(Vec<(Path, Expression)>),
    Rename(Vec<(Path, Path)>),
    Drop(Vec<Path>),
    Scale {
        measured: Measured,
        factor: f64,
        offset: f64,
    },
    Convert {
        measured: Measured,
        quantity: &'static Quantity,
        unit: String,
    },
    Sample {
        every: i64,
        by: By,
        slot: usize,
    },
    OnChange {
        measured: Measured,
        delta: f64,
        most: Option<i64>,
        slot: usize,
    },
    Dedupe {
        within: i64,
        slot: usize,
    },
    Template(Template),
    Script(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Device,
    Hub,
}

/// The compiled form of a list of steps.
#[derive(Debug, Default)]
pub struct Compiled {
    pub steps: Vec<(&'static str, Step)>,
    pub slots: Vec<SlotKind>,
    /// The names that may be used after all steps.
    pub names: Names,
}

type Refused<T> = Result<T, Problem>;

fn refused<T>(pointer: String, message: impl Into<String>) -> Refused<T> {
    Err(Problem {
        pointer,
        message: message.into(),
    })
}

/// A step, and its pointer.
struct Reader<'a> {
    members: &'a Map<String, Json>,
    pointer: String,
}

/// A name in a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl<'a> Reader<'a> {
    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.pointer)
    }

    fn required(&self, name: &str) -> Refused<&'a Json> {
        match self.members.get(name).filter(|value| !value.is_null()) {
            Some(value) => Ok(value),
            None => refused(self.at(name), "is required"),
        }
    }

    fn text(&self, name: &str, most: usize) -> Refused<&'a str> {
        match self.required(name)?.as_str() {
            None => refused(self.at(name), "must be a text"),
            Some(text) if text.trim().is_empty() => refused(self.at(name), "must not be empty"),
            Some(text) if text.len() > most => {
                refused(self.at(name), format!("must have {most} bytes or less"))
            }
            Some(text) => Ok(text),
        }
    }

    fn number(&self, name: &str) -> Refused<Option<f64>> {
        match self
            .members
            .get(name)
            .filter(|value| !value.is_null())
            .map(Json::as_f64)
        {
            None => Ok(None),
            Some(Some(value)) if value.is_finite() => Ok(Some(value)),
            Some(_) => refused(self.at(name), "must be a number"),
        }
    }

    fn required_number(&self, name: &str) -> Refused<f64> {
        self.required(name)?;
        Ok(self.number(name)?.unwrap_or_default())
    }

    /// Microseconds.
    fn seconds(&self, name: &str, most: f64) -> Refused<Option<i64>> {
        match self.number(name)? {
            None => Ok(None),
            Some(seconds) if (0.001..=most).contains(&seconds) => {
                Ok(Some((seconds * 1e6).round() as i64))
            }
            Some(_) => refused(self.at(name), format!("must be from 0.001 to {most}")),
        }
    }

    fn required_seconds(&self, name: &str, most: f64) -> Refused<i64> {
        self.required(name)?;
        Ok(self.seconds(name, most)?.unwrap_or_default())
    }

    fn measured(&self, names: &Names) -> Refused<Measured> {
        let text = self.text("quantity", MAX_SOURCE)?;
        let Some(measured) = Measured::parse(text) else {
            return refused(
                self.at("quantity"),
                "must be a quantity, or one of several such as `temperature_probe[1]`",
            );
        };
        match names.quantity(&measured.name) {
            Ok(()) => Ok(measured),
            Err(problem) => refused(self.at("quantity"), problem),
        }
    }

    /// The pairs of an object that has some.
    fn pairs(&self, name: &str) -> Refused<impl Iterator<Item = (&'a String, &'a Json, String)>> {
        let Some(pairs) = self.required(name)?.as_object() else {
            return refused(self.at(name), "must be an object");
        };
        self.count(name, pairs.len())?;
        let pointer = self.at(name);
        Ok(pairs
            .iter()
            .map(move |(key, value)| (key, value, format!("{pointer}/{}", escaped(key)))))
    }

    fn count(&self, name: &str, count: usize) -> Refused<()> {
        match count {
            0 => refused(self.at(name), "must not be empty"),
            count if count > MAX_FIELDS => refused(
                self.at(name),
                format!("must have {MAX_FIELDS} items or fewer"),
            ),
            _ => Ok(()),
        }
    }
}

fn path(source: &str, names: &Names, pointer: &str) -> Refused<Path> {
    Expression::path(source, names).or_else(|message| refused(pointer.to_owned(), message))
}

/// A path that something is put to. What it names may be new.
fn target(source: &str, pointer: &str) -> Refused<Path> {
    let path = path(source, &Names::open(), pointer)?;
    match path.is_settable() {
        true => Ok(path),
        false => refused(
            pointer.to_owned(),
            "nothing can be put to a place in a list",
        ),
    }
}

impl Compiled {
    pub fn of(steps: &Json) -> Refused<Self> {
        let Some(list) = steps.as_array() else {
            return refused(String::new(), "must be a list of steps");
        };
        if list.len() > MAX_STEPS {
            return refused(
                String::new(),
                format!("must have {MAX_STEPS} steps or fewer"),
            );
        }
        let mut compiled = Self::default();
        for (at, step) in list.iter().enumerate() {
            let pointer = format!("/{at}");
            let Some(members) = step.as_object() else {
                return refused(pointer, "must be an object");
            };
            let reader = Reader { members, pointer };
            let op = reader.text("op", 100)?;
            let Some((op, known)) = OPS.iter().find(|(name, _)| *name == op) else {
                let message = unknown("step", op, OPS.iter().map(|(name, _)| *name));
                return refused(reader.at("op"), message);
            };
            if let Some(name) = members
                .keys()
                .find(|name| *name != "op" && !known.contains(&name.as_str()))
            {
                let message = format!("`{op}` has no such member, only {}", known.join(", "));
                return refused(reader.at(&escaped(name)), message);
            }
            let step = compiled.step(op, &reader)?;
            compiled.steps.push((op, step));
        }
        Ok(compiled)
    }

    fn slot(&mut self, signature: String, lasts: Option<i64>) -> usize {
        self.slots.push(SlotKind { signature, lasts });
        self.slots.len() - 1
    }

    fn step(&mut self, op: &str, reader: &Reader<'_>) -> Refused<Step> {
        Ok(match op {
            "filter" => {
                let when = reader.text("when", MAX_SOURCE)?;
                let condition = Expression::condition(when, &self.names);
                Step::Filter(condition.or_else(|message| refused(reader.at("when"), message))?)
            }
            "map" => self.map(reader)?,
            "rename" => self.rename(reader)?,
            "drop" => {
                let Some(fields) = reader.required("fields")?.as_array() else {
                    return refused(reader.at("fields"), "must be a list of paths");
                };
                reader.count("fields", fields.len())?;
                let mut paths = Vec::with_capacity(fields.len());
                for (at, field) in fields.iter().enumerate() {
                    let pointer = reader.at(&format!("fields/{at}"));
                    let Some(source) = field.as_str() else {
                        return refused(pointer, "must be a text");
                    };
                    paths.push(path(source, &self.names, &pointer)?);
                }
                Step::Drop(paths)
            }
            "scale" => {
                let measured = reader.measured(&self.names)?;
                let (factor, offset) = (reader.number("factor")?, reader.number("offset")?);
                if factor.is_none() && offset.is_none() {
                    return refused(reader.at("factor"), "is required, or `offset` is");
                }
                Step::Scale {
                    measured,
                    factor: factor.unwrap_or(1.0),
                    offset: offset.unwrap_or(0.0),
                }
            }
            "convert" => convert(reader)?,
            "sample" => {
                let every = reader.required_seconds("everySeconds", MAX_SECONDS)?;
                let by = match reader.text("by", 100)? {
                    "DEVICE" => By::Device,
                    "HUB" => By::Hub,
                    _ => return refused(reader.at("by"), "must be DEVICE or HUB"),
                };
                Step::Sample {
                    every,
                    by,
                    slot: self.slot(format!("sample {by:?}"), Some(every)),
                }
            }
            "on_change" => {
                let measured = reader.measured(&self.names)?;
                let delta = reader.required_number("delta")?;
                if delta < 0.0 {
                    return refused(reader.at("delta"), "must be 0 or more");
                }
                let most = reader.seconds("maxSeconds", MAX_SECONDS)?;
                let signature = format!("on_change {} {:?}", measured.name, measured.index);
                Step::OnChange {
                    measured,
                    delta,
                    most,
                    slot: self.slot(signature, most),
                }
            }
            "dedupe" => {
                let within = reader.required_seconds("seconds", MAX_DEDUPE_SECONDS)?;
                Step::Dedupe {
                    within,
                    slot: self.slot("dedupe".to_owned(), Some(within)),
                }
            }
            "template" => {
                let body = reader.text("body", super::template::MAX_TEMPLATE)?;
                let template = Template::with_names(body, &self.names);
                Step::Template(template.or_else(|message| refused(reader.at("body"), message))?)
            }
            _ => {
                let source = reader.text("source", MAX_SCRIPT)?;
                self.names.opened();
                Step::Script(source.to_owned())
            }
        })
    }

    fn map(&mut self, reader: &Reader<'_>) -> Refused<Step> {
        let mut set = Vec::new();
        for (key, value, pointer) in reader.pairs("set")? {
            let path = target(key, &pointer)?;
            // A number or a boolean is an expression too; a text needs quotes.
            let source = match value {
                Json::String(source) => source.clone(),
                Json::Number(_) | Json::Bool(_) | Json::Null => value.to_string(),
                _ => return refused(pointer, "must be an expression"),
            };
            let expression = Expression::compile(&source, &self.names);
            set.push((
                path,
                expression.or_else(|message| refused(pointer, message))?,
            ));
        }
        set.iter().for_each(|(path, _)| self.names.add(path));
        Ok(Step::Map(set))
    }

    fn rename(&mut self, reader: &Reader<'_>) -> Refused<Step> {
        let mut fields: Vec<(Path, Path)> = Vec::new();
        for (from, to, pointer) in reader.pairs("fields")? {
            let Some(to) = to.as_str() else {
                return refused(pointer, "must be a path");
            };
            let (from, to) = (path(from, &self.names, &pointer)?, target(to, &pointer)?);
            if fields.iter().any(|(_, other)| *other == to) {
                return refused(pointer, "another one is renamed to the same");
            }
            fields.push((from, to));
        }
        fields.iter().for_each(|(_, to)| self.names.add(to));
        Ok(Step::Rename(fields))
    }
}

fn convert(reader: &Reader<'_>) -> Refused<Step> {
    let name = reader.text("quantity", MAX_SOURCE)?;
    let measured = Measured::parse(name);
    let known = measured.and_then(|measured| Some((quantity(&measured.name)?, measured)));
    let Some((quantity, measured)) = known else {
        let quantities = hub_adverts::quantity::QUANTITIES
            .iter()
            .map(|quantity| quantity.name);
        return refused(reader.at("quantity"), unknown("quantity", name, quantities));
    };
    let Some(own) = quantity.unit else {
        return refused(
            reader.at("quantity"),
            format!("`{}` has no unit", quantity.name),
        );
    };
    let unit = reader.text("unit", 100)?;
    if quantity.conversion(own, canonical(unit)).is_none() {
        let units = quantity.units().join(", ");
        return refused(
            reader.at("unit"),
            format!("`{}` is converted to one of {units}", quantity.name),
        );
    }
    Ok(Step::Convert {
        measured,
        quantity,
        unit: unit.to_owned(),
    })
}

/// A unit as the table of units has it.
pub fn canonical(unit: &str) -> &str {
    match unit {
        "[degF]" | "°F" => "degF",
        "°C" => "Cel",
        "µg/m³" => "ug/m3",
        "m³" => "m3",
        "m/s²" => "m/s2",
        other => other,
    }
}
