//! The functions of expressions. Texts are counted in characters. Null gives null, except where the
//! documentation says otherwise.

use std::borrow::Cow;

use hub_protocol::Timestamp;
use serde_json::Value as Json;

use super::super::size;
use super::run::Run;
use super::value::{Types, Val};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Abs,
    Ceil,
    Clamp,
    Concat,
    Contains,
    EndsWith,
    Floor,
    Hour,
    Json,
    Length,
    Lower,
    Max,
    Min,
    Number,
    Replace,
    Round,
    Seconds,
    StartsWith,
    String,
    Substring,
    Trim,
    Upper,
    Weekday,
}

pub struct Signature {
    pub name: &'static str,
    function: Function,
    pub least: usize,
    pub most: usize,
    /// The last one is that of all further ones.
    parameters: &'static [Types],
    pub result: Types,
    pub example: &'static str,
}

/// Arguments of a function that takes many.
const MANY: usize = 32;
const NUMBER: Types = Types::NUMBER;
const TEXT: Types = Types::TEXT;
const SCALAR: Types = Types::NUMBER.or(Types::TEXT).or(Types::BOOL);

const fn signature(
    (name, function): (&'static str, Function),
    (least, most): (usize, usize),
    parameters: &'static [Types],
    result: Types,
    example: &'static str,
) -> Signature {
    Signature {
        name,
        function,
        least,
        most,
        parameters,
        result: result.or(Types::NULL),
        example,
    }
}

static SIGNATURES: [Signature; 23] = [
    signature(
        ("abs", Function::Abs),
        (1, 1),
        &[NUMBER],
        NUMBER,
        "abs(temperature)",
    ),
    signature(
        ("ceil", Function::Ceil),
        (1, 1),
        &[NUMBER],
        NUMBER,
        "ceil(temperature)",
    ),
    signature(
        ("clamp", Function::Clamp),
        (3, 3),
        &[NUMBER],
        NUMBER,
        "clamp(battery, 0, 100)",
    ),
    signature(
        ("concat", Function::Concat),
        (1, MANY),
        &[Types::ANY],
        TEXT,
        "concat(name, ': ', temperature)",
    ),
    signature(
        ("contains", Function::Contains),
        (2, 2),
        &[TEXT.or(Types::LIST), SCALAR],
        Types::BOOL,
        "contains(name, 'door')",
    ),
    signature(
        ("endsWith", Function::EndsWith),
        (2, 2),
        &[TEXT],
        Types::BOOL,
        "endsWith(name, '-A')",
    ),
    signature(
        ("floor", Function::Floor),
        (1, 1),
        &[NUMBER],
        NUMBER,
        "floor(temperature)",
    ),
    signature(
        ("hour", Function::Hour),
        (1, 1),
        &[TEXT],
        NUMBER,
        "hour(observedAt)",
    ),
    signature(
        ("json", Function::Json),
        (1, 1),
        &[Types::ANY],
        TEXT,
        "json(name)",
    ),
    signature(
        ("length", Function::Length),
        (1, 1),
        &[TEXT.or(Types::LIST).or(Types::OBJECT)],
        NUMBER,
        "length(measurements)",
    ),
    signature(
        ("lower", Function::Lower),
        (1, 1),
        &[TEXT],
        TEXT,
        "lower(address)",
    ),
    signature(
        ("max", Function::Max),
        (2, MANY),
        &[NUMBER],
        NUMBER,
        "max(temperature, 0)",
    ),
    signature(
        ("min", Function::Min),
        (2, MANY),
        &[NUMBER],
        NUMBER,
        "min(temperature, 100)",
    ),
    signature(
        ("number", Function::Number),
        (1, 1),
        &[SCALAR],
        NUMBER,
        "number('12')",
    ),
    signature(
        ("replace", Function::Replace),
        (3, 3),
        &[TEXT],
        TEXT,
        "replace(address, ':', '')",
    ),
    signature(
        ("round", Function::Round),
        (1, 2),
        &[NUMBER],
        NUMBER,
        "round(temperature, 1)",
    ),
    signature(
        ("seconds", Function::Seconds),
        (1, 1),
        &[TEXT],
        NUMBER,
        "seconds(observedAt)",
    ),
    signature(
        ("startsWith", Function::StartsWith),
        (2, 2),
        &[TEXT],
        Types::BOOL,
        "startsWith(name, 'TP')",
    ),
    signature(
        ("string", Function::String),
        (1, 1),
        &[SCALAR],
        TEXT,
        "string(rssi)",
    ),
    signature(
        ("substring", Function::Substring),
        (2, 3),
        &[TEXT, NUMBER, NUMBER],
        TEXT,
        "substring(address, 9, 8)",
    ),
    signature(
        ("trim", Function::Trim),
        (1, 1),
        &[TEXT],
        TEXT,
        "trim(name)",
    ),
    signature(
        ("upper", Function::Upper),
        (1, 1),
        &[TEXT],
        TEXT,
        "upper(name)",
    ),
    signature(
        ("weekday", Function::Weekday),
        (1, 1),
        &[TEXT],
        NUMBER,
        "weekday(observedAt)",
    ),
];

pub fn named(name: &str) -> Option<Function> {
    SIGNATURES
        .iter()
        .find(|signature| signature.name == name)
        .map(|signature| signature.function)
}

/// All names, including those with a syntax of their own.
pub fn names() -> impl Iterator<Item = &'static str> {
    SIGNATURES
        .iter()
        .map(|signature| signature.name)
        .chain(["coalesce", "has", "if"])
}

impl Signature {
    pub fn parameter(&self, place: usize) -> Types {
        self.parameters
            .get(place)
            .or(self.parameters.last())
            .copied()
            .unwrap_or(Types::ANY)
    }
}

impl Function {
    pub fn signature(self) -> &'static Signature {
        // Each function has one; the first is never used.
        let [first, ..] = &SIGNATURES;
        SIGNATURES
            .iter()
            .find(|signature| signature.function == self)
            .unwrap_or(first)
    }

    pub fn call<'a>(self, run: &mut Run<'a>, arguments: &[Val<'a>]) -> Result<Val<'a>, String> {
        if self == Self::Concat {
            return concat(run, arguments);
        }
        if self == Self::Json {
            return json(run, arguments.first().unwrap_or(&Val::Null));
        }
        let signature = self.signature();
        for (place, argument) in arguments.iter().enumerate() {
            let (wanted, found) = (signature.parameter(place), argument.kind());
            if found == Types::NULL {
                return Ok(Val::Null);
            }
            if !wanted.has(found) {
                return Err(format!(
                    "{} needs {}, not {}",
                    signature.name,
                    wanted.shown(),
                    found.shown()
                ));
            }
            if let Val::Text(text) = argument {
                run.work(text.len())?;
            }
        }
        match arguments {
            [Val::Number(value)] => Ok(of_number(self, *value)),
            [Val::Bool(value)] => Ok(match self {
                Self::Number => Val::Number(f64::from(u8::from(*value))),
                _ => Val::Text(Cow::Borrowed(if *value { "true" } else { "false" })),
            }),
            [Val::Text(text)] => of_text(self, run, text),
            [Val::Text(text), Val::Text(other)] => Ok(Val::Bool(match self {
                Self::StartsWith => text.starts_with(other.as_ref()),
                Self::EndsWith => text.ends_with(other.as_ref()),
                _ => text.contains(other.as_ref()),
            })),
            [Val::Text(text), Val::Text(from), Val::Text(to)] => replace(run, text, from, to),
            [Val::Text(text), Val::Number(start), rest @ ..] => {
                Ok(Val::Text(substring(text, *start, rest).into()))
            }
            [Val::List(items)] => Ok(Val::Number(items.len() as f64)),
            [Val::Part(Json::Array(items))] => Ok(Val::Number(items.len() as f64)),
            [Val::Part(Json::Object(members))] => Ok(Val::Number(members.len() as f64)),
            [list, wanted] if self == Self::Contains => run.is_in(wanted, list).map(Val::Bool),
            numbers => Ok(of_numbers(self, numbers)),
        }
    }
}

fn of_number<'a>(function: Function, value: f64) -> Val<'a> {
    Val::number(match function {
        Function::Abs => value.abs(),
        Function::Ceil => value.ceil(),
        Function::Floor => value.floor(),
        Function::Round => value.round(),
        Function::String => return Val::Text(Val::Number(value).shown().into()),
        _ => value,
    })
}

fn of_numbers<'a>(function: Function, values: &[Val<'a>]) -> Val<'a> {
    let numbers = values.iter().filter_map(|value| match value {
        Val::Number(value) => Some(*value),
        _ => None,
    });
    match (function, values) {
        (Function::Min, _) => numbers.reduce(f64::min).map_or(Val::Null, Val::number),
        (Function::Max, _) => numbers.reduce(f64::max).map_or(Val::Null, Val::number),
        (Function::Clamp, [Val::Number(value), Val::Number(least), Val::Number(most)]) => {
            Val::number(value.min(*most).max(*least))
        }
        (Function::Round, [Val::Number(value), Val::Number(digits)]) => {
            let power = 10_f64.powi(digits.clamp(-15.0, 15.0) as i32);
            let scaled = value * power;
            Val::number(if scaled.is_finite() {
                scaled.round() / power
            } else {
                *value
            })
        }
        _ => Val::Null,
    }
}

fn of_text<'a>(
    function: Function,
    run: &mut Run<'a>,
    text: &Cow<'a, str>,
) -> Result<Val<'a>, String> {
    let time = || text.parse::<Timestamp>().ok();
    // The first of January 1970 was a Thursday, which is 4.
    let weekday = |seconds: i64| (seconds.div_euclid(86_400) + 3).rem_euclid(7) + 1;
    Ok(match function {
        Function::Lower => run.made(text.to_lowercase())?,
        Function::Upper => run.made(text.to_uppercase())?,
        Function::Trim => run.made(text.trim().to_owned())?,
        Function::Length => Val::Number(text.chars().count() as f64),
        Function::Number => decimal(text).map_or(Val::Null, Val::number),
        Function::Hour => time().map_or(Val::Null, |time| {
            Val::Number((time.as_secs().rem_euclid(86_400) / 3600) as f64)
        }),
        Function::Weekday => {
            time().map_or(
                Val::Null,
                |time| Val::Number(weekday(time.as_secs()) as f64),
            )
        }
        Function::Seconds => {
            time().map_or(Val::Null, |time| Val::Number(time.as_micros() as f64 / 1e6))
        }
        _ => Val::Text(text.clone()),
    })
}

/// A number in JSON's form, with an optional sign.
fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    text.parse().ok().filter(|_| is_plain)
}

fn replace<'a>(run: &mut Run<'a>, text: &str, from: &str, to: &str) -> Result<Val<'a>, String> {
    if from.is_empty() {
        return run.made(text.to_owned());
    }
    // Known before it is made.
    run.work(text.matches(from).count().saturating_mul(to.len()))?;
    run.made(text.replace(from, to))
}

/// The text from a position on, counted from 0, or from the end if it is below 0.
fn substring(text: &str, start: f64, rest: &[Val<'_>]) -> String {
    let count = match rest {
        [Val::Number(count)] => count.max(0.0) as usize,
        _ => usize::MAX,
    };
    let start = match start < 0.0 {
        true => text.chars().count().saturating_sub(start.abs() as usize),
        false => start as usize,
    };
    text.chars().skip(start).take(count).collect()
}

/// The concatenation of the arguments; null adds no text.
fn concat<'a>(run: &mut Run<'a>, arguments: &[Val<'a>]) -> Result<Val<'a>, String> {
    let mut all = String::new();
    for argument in arguments {
        match argument {
            Val::Null => {}
            Val::Text(text) => {
                run.work(text.len())?;
                all.push_str(text);
            }
            Val::Bool(_) | Val::Number(_) => all.push_str(&argument.clone().shown()),
            Val::List(_) | Val::Part(_) => {
                return Err("concat needs texts, numbers, true or false; json(x) makes a text of a list or an object"
                    .to_owned());
            }
        }
    }
    run.made(all)
}

/// The JSON form: a text has quotes, null is `null`.
fn json<'a>(run: &mut Run<'a>, value: &Val<'a>) -> Result<Val<'a>, String> {
    let text = match value {
        Val::Part(part) => {
            run.work(size::of(part))?;
            part.to_string()
        }
        Val::Text(text) => {
            run.work(text.len())?;
            value.clone().into_json().to_string()
        }
        other => other.clone().into_json().to_string(),
    };
    run.made(text)
}
