//! What `process(event)` returned, as JSON. Unlike `JSON.stringify`, this refuses what JSON does
//! not have, so that nothing is lost unnoticed. Reading may run code of the script, in the same
//! limits.

use rquickjs::{Array, Object, Value};
use serde_json::{Map, Number, Value as Json};

use super::wire::{Answer, MAX_DEPTH, MAX_EVENT_BYTES, MAX_EVENTS, MAX_EVENTS_BYTES, clipped};

/// Characters of a name in a message.
const MAX_NAME_CHARS: usize = 60;

/// The reason to reject a returned value: an error of the script, or a message for its author.
enum Refusal {
    Script(rquickjs::Error),
    Author(String),
}

impl From<rquickjs::Error> for Refusal {
    fn from(error: rquickjs::Error) -> Self {
        Self::Script(error)
    }
}

/// Reads one event.
struct Reader<'js> {
    /// The prototype of plain objects.
    plain: Option<Object<'js>>,
    bytes: usize,
}

/// Null, an event, or a list of events.
pub fn events(result: &Value<'_>) -> rquickjs::Result<Answer> {
    match read(result) {
        Ok(events) => Ok(Answer::Events(events)),
        Err(Refusal::Author(problem)) => Ok(Answer::Failed(problem)),
        Err(Refusal::Script(error)) => Err(error),
    }
}

fn read(result: &Value<'_>) -> Result<Vec<Map<String, Json>>, Refusal> {
    if result.is_null() || result.is_undefined() {
        return Ok(Vec::new());
    }
    // The prelude has frozen it.
    let plain = Object::new(result.ctx().clone())?.get_prototype();
    let Some(list) = result.as_array() else {
        let mut reader = Reader { plain, bytes: 0 };
        return Ok(vec![reader.event(result)?]);
    };
    if length(list)? > MAX_EVENTS {
        return Err(Refusal::Author(format!(
            "process returned more than {MAX_EVENTS} events"
        )));
    }
    let (mut events, mut bytes) = (Vec::with_capacity(list.len()), 0);
    for item in list.iter::<Value>() {
        let mut reader = Reader {
            plain: plain.clone(),
            bytes: 0,
        };
        events.push(reader.event(&item?)?);
        bytes += reader.bytes;
        if bytes > MAX_EVENTS_BYTES {
            let most = MAX_EVENTS_BYTES / 1024;
            return Err(Refusal::Author(format!(
                "process returned events of more than {most} KiB"
            )));
        }
    }
    Ok(events)
}

impl<'js> Reader<'js> {
    fn event(&mut self, value: &Value<'js>) -> Result<Map<String, Json>, Refusal> {
        let is_plain =
            value.is_object() && !value.is_array() && !value.is_function() && !value.is_promise();
        match value.as_object().filter(|_| is_plain) {
            Some(object) => self.object(object, 1, "the event"),
            None => {
                let problem = format!(
                    "process must return an event, a list of events or null, not {}",
                    kind(value)
                );
                Err(Refusal::Author(problem))
            }
        }
    }

    /// Counts bytes as JSON has them at least.
    fn add(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes > MAX_EVENT_BYTES {
            true => Err(Refusal::Author(format!(
                "an event has more than {} KiB",
                MAX_EVENT_BYTES / 1024
            ))),
            false => Ok(()),
        }
    }

    fn object(
        &mut self,
        object: &Object<'js>,
        depth: usize,
        name: &str,
    ) -> Result<Map<String, Json>, Refusal> {
        let inherited = object.get_prototype();
        if inherited.is_some() && inherited != self.plain {
            return Err(refused(
                name,
                "is an object that JSON does not have; only plain ones are",
            ));
        }
        if depth > MAX_DEPTH {
            return Err(Refusal::Author(format!(
                "the event is nested more than {MAX_DEPTH} deep"
            )));
        }
        let mut members = Map::new();
        for member in object.props::<String, Value>() {
            let (member, value) = member?;
            if value.is_undefined() {
                continue;
            }
            self.add(member.len() + 4)?;
            let value = self.value(&value, depth, &member)?;
            members.insert(member, value);
        }
        Ok(members)
    }

    fn list(&mut self, list: &Array<'js>, depth: usize, name: &str) -> Result<Json, Refusal> {
        if depth > MAX_DEPTH {
            return Err(Refusal::Author(format!(
                "the event is nested more than {MAX_DEPTH} deep"
            )));
        }
        // The length is checked before the items are read: a list may have billions of empty
        // places.
        let length = length(list)?;
        self.add(length.saturating_mul(2))?;
        let mut items = Vec::with_capacity(length);
        for item in list.iter::<Value>() {
            items.push(self.value(&item?, depth, name)?);
        }
        Ok(Json::Array(items))
    }

    /// A value within something; `name` is the member that it is in.
    fn value(&mut self, value: &Value<'js>, depth: usize, name: &str) -> Result<Json, Refusal> {
        if value.is_null() {
            self.add(4)?;
            return Ok(Json::Null);
        }
        if let Some(is_true) = value.as_bool() {
            self.add(4)?;
            return Ok(Json::Bool(is_true));
        }
        if let Some(whole) = value.as_int() {
            self.add(1)?;
            return Ok(Json::from(whole));
        }
        if let Some(number) = value.as_number() {
            self.add(1)?;
            return number_of(number)
                .ok_or_else(|| refused(name, &format!("is {number}, which JSON does not have")));
        }
        if let Some(text) = value.as_string() {
            let text = text.to_string()?;
            self.add(text.len() + 2)?;
            return Ok(Json::String(text));
        }
        if let Some(list) = value.as_array() {
            return self.list(list, depth + 1, name);
        }
        let is_other = value.is_function() || value.is_promise() || value.is_error();
        match value.as_object().filter(|_| !is_other) {
            Some(object) => self.object(object, depth + 1, name).map(Json::Object),
            None => Err(refused(
                name,
                &format!("is {}, which JSON does not have", kind(value)),
            )),
        }
    }
}

/// The places of a list. `Array::len` panics where there are more than an `i32` counts.
pub fn length(list: &Array<'_>) -> rquickjs::Result<usize> {
    let length: f64 = list
        .as_value()
        .as_object()
        .map_or(Ok(0.0), |list| list.get("length"))?;
    Ok(length as usize)
}

/// A whole number has no decimal point.
fn number_of(value: f64) -> Option<Json> {
    match value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        true => Some(Json::from(value as i64)),
        false => Number::from_f64(value).map(Json::Number),
    }
}

/// The name of a value's type in messages.
fn kind(value: &Value<'_>) -> &'static str {
    match value {
        _ if value.is_promise() => "a promise",
        _ if value.is_function() => "a function",
        _ => value.type_name(),
    }
}

fn refused(name: &str, problem: &str) -> Refusal {
    Refusal::Author(format!("{} {problem}", clipped(name, MAX_NAME_CHARS)))
}
