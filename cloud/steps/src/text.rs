//! A pipeline as text, one step a line. `docs/pipelines.md` describes every form.

use serde_json::{Map, Value, json};

use super::expression::{shown, unknown};
use super::graph::{NAMELESS, Warning};
use super::hints::hints;
use super::{DestinationForm, MAX_STEPS, OptionForm, Problem, Program};

/// Bytes of a text: of a pipeline with scripts and templates.
pub const MAX_TEXT: usize = 256 * 1024;
/// Lines that are not steps.
const MAX_LINES: usize = 4096;
/// Items of a list in a line, and headers.
const MAX_ITEMS: usize = 1000;

/// The words that begin a line before that of the destination, and after it.
const BEFORE: [&str; 16] = [
    "name",
    "description",
    "disabled",
    "from",
    "start",
    "filter",
    "map",
    "rename",
    "drop",
    "scale",
    "convert",
    "sample",
    "on_change",
    "dedupe",
    "template",
    "script",
];
const AFTER: [&str; 7] = [
    "header",
    "auth",
    "batch",
    "wait",
    "ordered",
    "concurrency",
    "timeout",
];

/// Why a text is not a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextProblem {
    /// Counted from 1; None if it is about the text as a whole.
    pub line: Option<usize>,
    pub message: String,
}

/// The parsed lines so far.
#[derive(Default)]
struct Draft<'a> {
    forms: &'a [DestinationForm],
    others: Map<String, Value>,
    source: Map<String, Value>,
    steps: Vec<Value>,
    /// The line of each step.
    lines: Vec<usize>,
    destination: Option<Map<String, Value>>,
    destination_line: usize,
    delivery: Map<String, Value>,
}

type Made<T> = Result<T, String>;

/// The request that makes the pipeline of a text. Its destination has one of these forms.
pub fn from_text(
    text: &str,
    forms: &[DestinationForm],
) -> Result<(Value, Vec<Warning>), TextProblem> {
    let at = |line: Option<usize>| move |message: String| TextProblem { line, message };
    if text.len() > MAX_TEXT {
        return Err(at(None)(format!(
            "must have {} KiB or less",
            MAX_TEXT / 1024
        )));
    }
    let mut draft = Draft {
        forms,
        ..Draft::default()
    };
    let mut lines = text.lines().enumerate();
    while let Some((place, line)) = lines.next() {
        let (number, line) = (place + 1, line.trim());
        if number > MAX_LINES {
            return Err(at(Some(number))(format!(
                "there are more than {MAX_LINES} lines"
            )));
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = match rest.trim().strip_prefix("<<") {
            Some(end) if ["template", "script"].contains(&word) => {
                let end = end.trim();
                if end.is_empty() {
                    return Err(at(Some(number))(
                        "a word is missing after `<<`, such as END".to_owned(),
                    ));
                }
                let mut inner = Vec::new();
                loop {
                    match lines.next() {
                        None => {
                            return Err(at(Some(number))(format!(
                                "has no line `{}` at its end",
                                shown(end)
                            )));
                        }
                        Some((_, line)) if line.trim() == end => break,
                        Some((_, line)) => inner.push(line),
                    }
                }
                inner.join("\n")
            }
            _ => rest.trim().to_owned(),
        };
        draft
            .line(word, &rest, line, number)
            .map_err(at(Some(number)))?;
    }
    draft.finish()
}

impl Draft<'_> {
    fn line(&mut self, word: &str, rest: &str, line: &str, number: usize) -> Made<()> {
        match word {
            "name" | "description" => self.other(word, some(rest)?.into()),
            "disabled" => nothing(rest).and_then(|()| self.other("enabled", false.into())),
            "from" => self.from(rest),
            "start" => {
                let from = if rest.eq_ignore_ascii_case("now") {
                    "NOW"
                } else {
                    some(rest)?
                };
                put(&mut self.source, "startAt", from.into())
            }
            "header" => {
                let (name, value) = rest
                    .split_once(':')
                    .ok_or("`header NAME: VALUE` is meant")?;
                let destination = self
                    .destination
                    .as_mut()
                    .ok_or("the line of the destination comes first")?;
                let headers = destination.entry("headers").or_insert_with(|| json!({}));
                let headers = headers
                    .as_object_mut()
                    .filter(|headers| headers.len() < MAX_ITEMS);
                put(
                    headers.ok_or("there are too many headers")?,
                    name.trim(),
                    value.trim().into(),
                )
            }
            "auth" => {
                let auth: Value =
                    serde_json::from_str(rest).map_err(|error| format!("is not JSON: {error}"))?;
                let destination = self
                    .destination
                    .as_mut()
                    .ok_or("the line of the destination comes first")?;
                put(destination, "auth", auth)
            }
            "batch" => put(&mut self.delivery, "batchEvents", whole(rest)?),
            "wait" => put(
                &mut self.delivery,
                "batchMillis",
                number_of(duration(rest)? * 1000.0),
            ),
            "ordered" => {
                nothing(rest).and_then(|()| put(&mut self.delivery, "ordered", true.into()))
            }
            "concurrency" => put(&mut self.delivery, "concurrency", whole(rest)?),
            "retry_on" => {
                let statuses: Made<Vec<Value>> = rest.split_whitespace().map(whole).collect();
                put(&mut self.delivery, "retryOn", statuses?.into())
            }
            "timeout" => put(
                &mut self.delivery,
                "timeoutSeconds",
                number_of(duration(rest)?),
            ),
            _ => {
                if let Some(form) = self.forms.iter().find(|form| word_of(form) == word) {
                    return self.destination(form, rest, number);
                }
                let step = match line.starts_with('{') {
                    true => serde_json::from_str(line)
                        .map_err(|error| format!("is not JSON: {error}"))?,
                    false => step(word, rest)?.ok_or_else(|| self.unknown(word))?,
                };
                if self.destination.is_some() {
                    return Err("steps come before the destination".to_owned());
                }
                if self.steps.len() >= MAX_STEPS {
                    return Err(format!("a pipeline has {MAX_STEPS} steps or fewer"));
                }
                self.steps.push(step);
                self.lines.push(number);
                Ok(())
            }
        }
    }

    fn destination(&mut self, form: &DestinationForm, rest: &str, number: usize) -> Made<()> {
        if self.destination.is_some() {
            return Err("a pipeline has one destination".to_owned());
        }
        self.destination = Some(destination(form, rest)?);
        self.destination_line = number;
        Ok(())
    }

    fn unknown(&self, word: &str) -> String {
        let destinations: Vec<String> = self.forms.iter().map(word_of).collect();
        let destinations = destinations.iter().map(String::as_str);
        unknown(
            "line",
            word,
            BEFORE.into_iter().chain(destinations).chain(AFTER),
        )
    }

    fn other(&mut self, name: &str, value: Value) -> Made<()> {
        put(&mut self.others, name, value)
    }

    fn from(&mut self, rest: &str) -> Made<()> {
        const FORMS: &str = "`from hub UUID`, `from device ID`, `from model UUID`, `from quantity NAME`, `from bound hubs`, \
                             `from known devices` or `from unknown devices` is meant";
        let (what, list) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let (name, is_number) = match what {
            "known" | "unknown" if list.trim() == "devices" => {
                return put(&mut self.source, "known", (what == "known").into());
            }
            "bound" if list.trim() == "hubs" => {
                return put(&mut self.source, "boundHubs", true.into());
            }
            "hub" => ("hubUuids", false),
            "device" => ("deviceInstanceIds", true),
            "model" => ("deviceUuids", false),
            "quantity" => ("quantities", false),
            _ => return Err(FORMS.to_owned()),
        };
        let items = self.source.entry(name).or_insert_with(|| json!([]));
        let Some(items) = items.as_array_mut() else {
            return Err(FORMS.to_owned());
        };
        for item in list.split(',').map(str::trim) {
            if item.is_empty() {
                return Err(FORMS.to_owned());
            }
            if items.len() >= MAX_ITEMS {
                return Err(format!("has more than {MAX_ITEMS} items"));
            }
            items.push(if is_number { whole(item)? } else { item.into() });
        }
        Ok(())
    }

    fn finish(self) -> Result<(Value, Vec<Warning>), TextProblem> {
        let steps = Value::Array(self.steps);
        if let Err(Problem { pointer, message }) = Program::compile(&steps) {
            let place = pointer
                .trim_start_matches('/')
                .split('/')
                .next()
                .and_then(|at| at.parse::<usize>().ok());
            let line = place.and_then(|at| self.lines.get(at).copied());
            return Err(TextProblem { line, message });
        }
        let Some(destination) = self.destination else {
            let words: Vec<String> = self
                .forms
                .iter()
                .map(|form| format!("`{}`", word_of(form)))
                .collect();
            let words = words.join(", ");
            let words = match words.rsplit_once(", ") {
                Some((others, last)) => format!("{others} or {last}"),
                None => words,
            };
            let message = format!("has no destination: a line with {words}");
            return Err(TextProblem {
                line: None,
                message,
            });
        };
        let destination = Value::Object(destination);
        let mut pipeline = self.others;
        let mut warnings = Vec::new();
        let warning = |message: String| Warning {
            node_id: None,
            message,
        };
        if !pipeline.contains_key("name") {
            pipeline.insert("name".to_owned(), NAMELESS.into());
            warnings.push(warning(format!(
                "the pipeline has no name, and is called `{NAMELESS}`"
            )));
        }
        for hint in hints(&steps, &destination) {
            let line = hint
                .step
                .and_then(|step| self.lines.get(step))
                .unwrap_or(&self.destination_line);
            warnings.push(warning(format!("line {line}: {}", hint.message)));
        }
        pipeline.insert("source".to_owned(), Value::Object(self.source));
        pipeline.insert("steps".to_owned(), steps);
        pipeline.insert("destination".to_owned(), destination);
        if !self.delivery.is_empty() {
            pipeline.insert("delivery".to_owned(), Value::Object(self.delivery));
        }
        Ok((Value::Object(pipeline), warnings))
    }
}

fn put(members: &mut Map<String, Value>, name: &str, value: Value) -> Made<()> {
    match members.insert(name.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(format!("`{}` is there twice", shown(name))),
    }
}

fn some(rest: &str) -> Made<&str> {
    if rest.is_empty() {
        Err("something is missing after the first word".to_owned())
    } else {
        Ok(rest)
    }
}

fn nothing(rest: &str) -> Made<()> {
    if rest.is_empty() {
        Ok(())
    } else {
        Err(format!("`{}` is not expected here", shown(rest)))
    }
}

fn whole(text: &str) -> Made<Value> {
    text.parse::<i64>()
        .map(Value::from)
        .map_err(|_| format!("`{}` is not a whole number", shown(text)))
}

fn number(text: &str) -> Made<Value> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    value
        .map(number_of)
        .ok_or_else(|| format!("`{}` is not a number", shown(text)))
}

fn number_of(value: f64) -> Value {
    super::expression::number(value)
}

/// Seconds: `90`, `90s`, `1.5m`, `2h`, `1d`, `500ms`.
fn duration(text: &str) -> Made<f64> {
    let units = [
        ("ms", 0.001),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ];
    let (digits, size) = units
        .iter()
        .find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)))
        .unwrap_or((text, 1.0));
    let value = digits
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite());
    value
        .map(|value| value * size)
        .ok_or_else(|| format!("`{}` is not a duration such as 90s, 5m or 2h", shown(text)))
}

/// None if no step begins with the word.
fn step(word: &str, rest: &str) -> Made<Option<Value>> {
    let words = words(rest);
    Ok(Some(match (word, words.as_slice()) {
        ("filter", _) => json!({"op": word, "when": rest}),
        ("map", _) => {
            json!({"op": word, "set": pairs(rest, ';', "map PATH = EXPRESSION", |pair| cut(pair, '='))?})
        }
        ("rename", _) => {
            let fields = pairs(rest, ',', "rename PATH to PATH", |pair| {
                pair.split_once(" to ")
            })?;
            json!({"op": word, "fields": fields})
        }
        ("drop", _) => json!({"op": word, "fields": split(rest, ',')}),
        ("scale", [quantity, "by", factor]) => {
            json!({"op": word, "quantity": quantity, "factor": number(factor)?})
        }
        ("scale", [quantity, "by", factor, "plus", offset]) => {
            json!({"op": word, "quantity": quantity, "factor": number(factor)?, "offset": number(offset)?})
        }
        ("scale", _) => {
            return Err("`scale QUANTITY by FACTOR` or `... plus OFFSET` is meant".to_owned());
        }
        ("convert", [quantity, "to", unit]) => {
            json!({"op": word, "quantity": quantity, "unit": unit})
        }
        ("convert", _) => return Err("`convert QUANTITY to UNIT` is meant".to_owned()),
        ("sample", ["every", time, "by", by @ ("device" | "hub")]) => {
            json!({"op": word, "everySeconds": number_of(duration(time)?), "by": by.to_ascii_uppercase()})
        }
        ("sample", _) => {
            return Err("`sample every TIME by device` or `... by hub` is meant".to_owned());
        }
        ("on_change", [quantity, delta]) => {
            json!({"op": word, "quantity": quantity, "delta": number(delta)?})
        }
        ("on_change", [quantity, delta, "max", time]) => {
            let most = number_of(duration(time)?);
            json!({"op": word, "quantity": quantity, "delta": number(delta)?, "maxSeconds": most})
        }
        ("on_change", _) => {
            return Err("`on_change QUANTITY DELTA` or `... max TIME` is meant".to_owned());
        }
        ("dedupe", [time]) => json!({"op": word, "seconds": number_of(duration(time)?)}),
        ("dedupe", _) => return Err("`dedupe TIME` is meant".to_owned()),
        ("template", _) => json!({"op": word, "body": rest}),
        ("script", _) => json!({"op": word, "source": rest}),
        _ => return Ok(None),
    }))
}

/// Pairs of texts, such as of paths and expressions.
fn pairs<'a>(
    rest: &'a str,
    separator: char,
    form: &str,
    pair: impl Fn(&'a str) -> Option<(&'a str, &'a str)>,
) -> Made<Map<String, Value>> {
    let mut all = Map::new();
    for item in split(rest, separator) {
        let (left, right) = pair(item).ok_or_else(|| format!("`{form}` is meant"))?;
        put(&mut all, left.trim(), right.trim().into())?;
    }
    Ok(all)
}

/// Places of a character outside of quotes and brackets.
fn places(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let (mut quote, mut depth, mut is_escaped) = (None, 0_usize, false);
    text.char_indices().filter_map(move |(at, c)| {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, c) if c == wanted && depth == 0 => return Some(at),
            (None, _) => {}
        }
        None
    })
}

/// Parts between an ASCII character.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for at in places(text, separator) {
        parts.push(text.get(start..at).unwrap_or_default().trim());
        start = at + 1;
    }
    parts.push(text.get(start..).unwrap_or_default().trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn cut(text: &str, separator: char) -> Option<(&str, &str)> {
    let at = places(text, separator).next()?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Words between spaces that are not within `{{ }}`.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut is_inside) = (0, false);
    for (at, c) in text.char_indices() {
        let rest = text.get(at..).unwrap_or_default();
        is_inside = (is_inside || rest.starts_with("{{")) && !rest.starts_with("}}");
        if c.is_whitespace() && !is_inside {
            words.push(text.get(start..at).unwrap_or_default());
            start = at + c.len_utf8();
        }
    }
    words.push(text.get(start..).unwrap_or_default());
    words.retain(|word| !word.is_empty());
    words
}

/// The first word of the line of a destination.
fn word_of(form: &DestinationForm) -> String {
    form.kind.to_ascii_lowercase()
}

fn destination(form: &DestinationForm, rest: &str) -> Made<Map<String, Value>> {
    let words = words(rest);
    let (url, options) = words.split_first().ok_or("the URL is missing")?;
    let mut made = Map::new();
    made.insert("kind".to_owned(), form.kind.into());
    made.insert("url".to_owned(), (*url).into());
    let mut given = Vec::new();
    let mut options = options.iter().copied();
    while let Some(option) = options.next() {
        let known = form.options.iter().find(|(word, _)| *word == option);
        let Some((_, member)) = known else {
            let word = word_of(form);
            return Err(format!("`{word}` has no option `{}`", shown(option)));
        };
        let mut value = || {
            options
                .next()
                .ok_or_else(|| format!("something is missing after `{option}`"))
        };
        let (name, value) = match *member {
            OptionForm::Itself(name) => (name, option.to_ascii_uppercase().into()),
            OptionForm::Flag(name) => (name, true.into()),
            OptionForm::Text(name) => (name, value()?.into()),
            OptionForm::Whole(name) => (name, whole(value()?)?),
            OptionForm::Time(name) => (name, number_of(duration(value()?)?)),
        };
        put(&mut made, name, value)?;
        given.push(option);
    }
    match form.required.filter(|required| !given.contains(required)) {
        Some(missing) => Err(format!("`{missing}` is missing")),
        None => Ok(made),
    }
}
