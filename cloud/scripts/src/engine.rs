//! One script in QuickJS. A call cannot tell whether there were others before it: everything that
//! scripts share is frozen, and each call runs the whole script anew for variables of its own.
//! Nothing tells a script the time, chance, or which machine runs it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rquickjs::context::intrinsic::{
    Eval, Json, MapSet, Promise, RegExp, RegExpCompiler, TypedArrays,
};
use rquickjs::{
    Array, CatchResultExt, CaughtError, Context, Ctx, Function, Module, Object, Persistent,
    Runtime, TypedArray, Value,
};
use rustix::time::{ClockId, clock_gettime};

use super::returned;
use super::wire::{
    Answer, Calls, Entry, FrameText, MAX_MESSAGE_CHARS, MAX_TEXT_CHARS, MAX_VALUES, Returned,
    ReturnedValue, clipped,
};

/// Processor time of a call. The engine looks at it every few thousand steps of a script; a single
/// step that is longer is ended from outside.
pub const CALL_TIME: Duration = Duration::from_millis(50);
/// Memory of a call, and what the engine has for itself.
const MEMORY_BYTES: usize = 16 * 1024 * 1024 + 512 * 1024;
/// The limit of a script, below the 8 MiB stack of the process.
const STACK_BYTES: usize = 512 * 1024;
/// The heap size at which cycles are collected, and again before each call.
const GC_BYTES: usize = 1024 * 1024;
/// The name of a script in its errors.
const NAME: &str = "script";
/// Removes what a script must not have and freezes the rest.
const PRELUDE: &str = include_str!("prelude.js");

type Intrinsics = (
    Eval,
    RegExpCompiler,
    RegExp,
    Json,
    MapSet,
    TypedArrays,
    Promise,
);

/// A compiled script.
pub struct Engine {
    // Dropped before the runtime that it is a part of.
    make: Persistent<Function<'static>>,
    context: Context,
    runtime: Runtime,
    ends_at: Rc<Cell<Duration>>,
    is_spoilt: bool,
}

impl Engine {
    /// Compiles a script. The error is for its author.
    pub fn new(source: &str, entry: Entry) -> Result<Self, String> {
        let broken = |error: rquickjs::Error| format!("the script cannot be run: {error}");
        let runtime = Runtime::new().map_err(broken)?;
        runtime.set_memory_limit(MEMORY_BYTES);
        runtime.set_max_stack_size(STACK_BYTES);
        runtime.set_gc_threshold(GC_BYTES);
        let ends_at = Rc::new(Cell::new(cpu_time() + CALL_TIME));
        let end = ends_at.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || cpu_time() >= end.get())));
        let context = Context::custom::<Intrinsics>(&runtime).map_err(broken)?;
        let make = context.with(|ctx| {
            // Compiled on its own first, and not run: so no script can close the function around
            // it, and the place of an error is the author's.
            Module::declare(ctx.clone(), NAME, source).map(drop).catch(&ctx).map_err(|error| syntax(&error, 0))?;
            let name = entry.name();
            let wrapped =
                format!("(function () {{\n{source}\nreturn typeof {name} === 'function' ? {name} : null;\n}})");
            let make: Function = ctx.eval(wrapped).catch(&ctx).map_err(|error| syntax(&error, 1))?;
            ctx.eval::<(), _>(PRELUDE).catch(&ctx).map_err(|error| failure(&error))?;
            Ok::<_, String>(Persistent::save(&ctx, make))
        })?;
        Ok(Self {
            make,
            context,
            runtime,
            ends_at,
            is_spoilt: false,
        })
    }

    /// Whether the script left something behind that calls would share.
    pub fn is_spoilt(&self) -> bool {
        self.is_spoilt
    }

    /// Makes one of the calls.
    pub fn answer(&mut self, calls: &Calls<'_>, at: usize) -> Answer {
        self.runtime.set_gc_threshold(GC_BYTES);
        self.ends_at.set(cpu_time() + CALL_TIME);
        let make = self.make.clone();
        let answer = self.context.with(|ctx| {
            let answer = make
                .restore(&ctx)
                .and_then(|make| called(&ctx, &make, calls, at))
                .catch(&ctx);
            answer.unwrap_or_else(|error| Answer::Failed(failure(&error)))
        });
        // The jobs of a promise never run, so they stay in the engine.
        self.is_spoilt = self.runtime.is_job_pending();
        if matches!(answer, Answer::Failed(_)) {
            self.runtime.run_gc();
        }
        answer
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

fn called<'js>(
    ctx: &Ctx<'js>,
    make: &Function<'js>,
    calls: &Calls<'_>,
    at: usize,
) -> rquickjs::Result<Answer> {
    let made: Result<Value, CaughtError<'_>> = make.call(()).catch(ctx);
    let function = match made {
        Ok(function) => function,
        Err(error) => return Ok(Answer::Refused(failure(&error))),
    };
    let Some(function) = function.into_function() else {
        return Ok(Answer::Refused(format!(
            "the script has no function {}",
            calls.entry().form()
        )));
    };
    match calls {
        Calls::Decode(frames) => match frames.get(at) {
            Some(frame) => decoded(&function.call((object_of(ctx, frame)?,))?),
            None => Ok(Answer::NotMine),
        },
        Calls::Process(events) => match events.get(at) {
            Some(event) => returned::events(&function.call((ctx.json_parse(event.get())?,))?),
            None => Ok(Answer::Events(Vec::new())),
        },
    }
}

/// The frame as scripts see it.
fn object_of<'js>(ctx: &Ctx<'js>, frame: &FrameText) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    if let Some(address) = &frame.address {
        object.set("address", address)?;
    }
    if let Some(address_type) = &frame.address_type {
        object.set("addressType", address_type)?;
    }
    if let Some(name) = &frame.name {
        object.set("name", name)?;
    }
    let payloads = Array::new(ctx.clone())?;
    for (at, (company_id, data)) in frame.manufacturer_data.iter().enumerate() {
        let payload = Object::new(ctx.clone())?;
        payload.set("companyId", *company_id)?;
        payload.set("data", bytes_of(ctx, data)?)?;
        payloads.set(at, payload)?;
    }
    object.set("manufacturerData", payloads)?;
    let payloads = Array::new(ctx.clone())?;
    for (at, (uuid, data)) in frame.service_data.iter().enumerate() {
        let payload = Object::new(ctx.clone())?;
        payload.set("uuid", uuid)?;
        payload.set("data", bytes_of(ctx, data)?)?;
        payloads.set(at, payload)?;
    }
    object.set("serviceData", payloads)?;
    object.set("serviceUuids", &frame.service_uuids)?;
    Ok(object)
}

fn bytes_of<'js>(ctx: &Ctx<'js>, digits: &str) -> rquickjs::Result<TypedArray<'js, u8>> {
    TypedArray::new(ctx.clone(), hex::decode(digits).unwrap_or_default())
}

/// The result of a script: null, `{quantity: value}` or a list of `{quantity, value, unit, index}`.
/// Reading it may run code of the script, in the same limits.
fn decoded(result: &Value<'_>) -> rquickjs::Result<Answer> {
    if result.is_null() || result.is_undefined() {
        return Ok(Answer::NotMine);
    }
    let wrong = |what: &str| {
        Ok(Answer::Failed(format!(
            "decode must return an object, a list or null, not {what}"
        )))
    };
    if result.is_promise() {
        return wrong("a promise");
    }
    if result.is_function() {
        return wrong("a function");
    }
    let Some(object) = result.as_object() else {
        return wrong(result.type_name());
    };
    let too_many = || {
        Ok(Answer::Failed(format!(
            "decode returned more than {MAX_VALUES} values"
        )))
    };
    let mut all = Vec::new();
    if let Some(list) = result.as_array() {
        if returned::length(list)? > MAX_VALUES {
            return too_many();
        }
        for item in list.iter::<Value>() {
            let item = item?;
            let Some(item) = item.as_object() else {
                return wrong("a list with something else than objects in it");
            };
            match item_of(item)? {
                Ok(values) => all.extend(values),
                Err(problem) => return Ok(Answer::Failed(problem)),
            }
        }
        return Ok(Answer::Values(all));
    }
    let keys = object.keys::<rquickjs::String>();
    if keys.len() > MAX_VALUES {
        return too_many();
    }
    for key in keys {
        let key = key?;
        let quantity = clipped(&key.to_string()?, MAX_TEXT_CHARS);
        match value_of(&quantity, &object.get::<_, Value>(key)?)? {
            Ok(Some(value)) => all.push(Returned {
                quantity,
                value,
                unit: None,
                index: None,
            }),
            Ok(None) => {}
            Err(problem) => return Ok(Answer::Failed(problem)),
        }
    }
    Ok(Answer::Values(all))
}

/// An item of a list; None if it has no value.
fn item_of(item: &Object<'_>) -> rquickjs::Result<Result<Option<Returned>, String>> {
    let text = |name: &str| -> rquickjs::Result<Result<Option<String>, String>> {
        let value: Value = item.get(name)?;
        if value.is_null() || value.is_undefined() {
            return Ok(Ok(None));
        }
        match value.as_string() {
            Some(text) => Ok(Ok(Some(clipped(&text.to_string()?, MAX_TEXT_CHARS)))),
            None => Ok(Err(format!(
                "the {name} of a value must be a text, not {}",
                value.type_name()
            ))),
        }
    };
    let quantity = match text("quantity")? {
        Ok(Some(quantity)) => quantity,
        Ok(None) => return Ok(Err("a value has no quantity".to_owned())),
        Err(problem) => return Ok(Err(problem)),
    };
    let unit = match text("unit")? {
        Ok(unit) => unit,
        Err(problem) => return Ok(Err(problem)),
    };
    let given: Value = item.get("index")?;
    let index = match given.as_number() {
        Some(index) => Some(index),
        None if given.is_null() || given.is_undefined() => None,
        None => return Ok(Err(format!("the index of {quantity} must be a number"))),
    };
    let value = value_of(&quantity, &item.get::<_, Value>("value")?)?;
    Ok(value.map(|value| {
        value.map(|value| Returned {
            quantity,
            value,
            unit,
            index,
        })
    }))
}

/// A value; None for null and undefined, which mark it as not available.
fn value_of(
    quantity: &str,
    value: &Value<'_>,
) -> rquickjs::Result<Result<Option<ReturnedValue>, String>> {
    if value.is_null() || value.is_undefined() {
        return Ok(Ok(None));
    }
    if let Some(is_true) = value.as_bool() {
        return Ok(Ok(Some(ReturnedValue::Bool(is_true))));
    }
    if let Some(number) = value.as_number() {
        return Ok(match number.is_finite() {
            true => Ok(Some(ReturnedValue::Number(number))),
            false => Err(format!(
                "{quantity} is {number}, which is no value; null says that it is not available"
            )),
        });
    }
    let Some(text) = value.as_string() else {
        let problem = format!(
            "{quantity} must be a number, a text, true or false, not {}",
            value.type_name()
        );
        return Ok(Err(problem));
    };
    let text = text.to_string()?;
    Ok(match text.chars().nth(MAX_TEXT_CHARS) {
        None => Ok(Some(ReturnedValue::Text(text))),
        Some(_) => Err(format!(
            "{quantity} is a text of more than {MAX_TEXT_CHARS} characters"
        )),
    })
}

/// The error in a script, with its place: `line 3, column 7: ...`.
fn syntax(error: &CaughtError<'_>, lines_before: u32) -> String {
    let CaughtError::Exception(exception) = error else {
        return failure(error);
    };
    let message = exception.message().unwrap_or_default();
    // The first line of the stack is `    at script:3:7`.
    let stack = exception.stack().unwrap_or_default();
    let place = stack.lines().find_map(|line| {
        let (_, place) = line.rsplit_once(&format!("{NAME}:"))?;
        let (line, column) = place.trim_end_matches(')').split_once(':')?;
        Some((
            line.parse::<u32>().ok()?.saturating_sub(lines_before),
            column.parse::<u32>().ok()?,
        ))
    });
    let message = clipped(&message, MAX_MESSAGE_CHARS);
    place.map_or(message.clone(), |(line, column)| {
        format!("line {line}, column {column}: {message}")
    })
}

/// Why a call failed.
fn failure(error: &CaughtError<'_>) -> String {
    let text = match error {
        CaughtError::Exception(exception) => {
            let name: String = exception.as_object().get("name").unwrap_or_default();
            let message = exception.message().unwrap_or_default();
            match message.as_str() {
                "interrupted" => {
                    format!("the script took longer than {} ms", CALL_TIME.as_millis())
                }
                "out of memory" => "the script needed more than 16 MiB of memory".to_owned(),
                _ => format!("the script threw {name}: {message}"),
            }
        }
        CaughtError::Value(value) if value.is_null() => {
            "the script threw null, or needed more than 16 MiB of memory".to_owned()
        }
        CaughtError::Value(value) => format!(
            "the script threw something else than an Error ({})",
            value.type_name()
        ),
        CaughtError::Error(error) => format!("the script failed: {error}"),
    };
    clipped(&text, MAX_MESSAGE_CHARS)
}
