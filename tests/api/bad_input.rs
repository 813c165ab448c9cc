//! Bodies nobody should send, sent to every operation of the document: each is refused with a 4xx
//! in the one shape all failures have, naming the field where a field is wrong; both databases
//! answer alike; nothing is ever answered 5xx, and the service goes on. `bad_requests` does the
//! same with all that is not the body.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use hub_tests::{Backend, Call, Reply};
use reqwest::RequestBuilder;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};

use crate::contract::document::{Operation, object, operations, resolve};
use crate::contract::world::{Objects, World};

/// Lists the codes of all failures.
const CONVENTIONS: &str = include_str!("../../docs/api/conventions.md");

/// What an answer has to be.
#[derive(Clone, Debug)]
pub enum Expect {
    /// Anything but a 5xx; a failure has the usual body.
    Answered,
    Status(u16),
    /// 400. Of a batch, the one bad record may be refused and the rest stored.
    Refused,
    /// As `Refused`, and the 400 names the field.
    Field(String),
}

/// All that was sent on one database, and how it was answered.
pub struct Trials {
    backend: Backend,
    answers: Vec<(String, u16)>,
    faults: Vec<String>,
}

impl Trials {
    pub async fn send(&mut self, what: String, request: RequestBuilder, expect: Expect) {
        let reply = match request.try_call().await {
            Ok(reply) => reply,
            Err(error) => {
                return self
                    .faults
                    .push(format!("{}: {what}: no answer: {error:?}", self.backend));
            }
        };
        if let Err(fault) = judge(&reply, &expect) {
            let body: String = reply.body.chars().take(300).collect();
            self.faults.push(format!(
                "{}: {what}: {fault}: {} {body}",
                self.backend, reply.status
            ));
        }
        self.answers
            .push((without_uuids(&what), reply.status.as_u16()));
    }
}

fn judge(reply: &Reply, expect: &Expect) -> Result<(), String> {
    let status = reply.status.as_u16();
    if status >= 500 {
        return Err("our own fault".to_owned());
    }
    if status >= 400 {
        let problem: hub_protocol::Problem = serde_json::from_str(&reply.body)
            .map_err(|error| format!("not the body of a failure: {error}"))?;
        if problem.message.is_empty()
            || problem.code.is_empty()
            || problem.request_id != reply.header("x-request-id")
        {
            return Err("an incomplete body".to_owned());
        }
        if !CONVENTIONS.contains(&format!("`{}`", problem.code)) {
            return Err("a code that docs/api/conventions.md does not list".to_owned());
        }
        if let Expect::Field(name) = expect
            && !problem
                .errors
                .iter()
                .any(|error| error.field.contains(name.as_str()))
        {
            return Err(format!("does not name `{name}`"));
        }
    }
    match expect {
        Expect::Status(expected) if *expected != status => Err(format!("should be {expected}")),
        Expect::Field(_) | Expect::Refused if status != 400 && !rejects_a_record(reply) => {
            Err("should be 400".to_owned())
        }
        _ => Ok(()),
    }
}

fn rejects_a_record(reply: &Reply) -> bool {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    reply.status == 201
        && body["data"]["rejected"]
            .as_array()
            .is_some_and(|rejected| !rejected.is_empty())
}

/// Objects have other ids on the other database.
fn without_uuids(text: &str) -> String {
    let (mut without, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(first) = rest.chars().next() {
        let is_uuid = rest
            .get(..36)
            .is_some_and(|head| uuid::Uuid::try_parse(head).is_ok());
        if is_uuid {
            without.push_str("(uuid)");
        } else {
            without.push(first);
        }
        rest = rest
            .get(if is_uuid { 36 } else { first.len_utf8() }..)
            .unwrap_or_default();
    }
    without
}

/// Runs the trials on both databases, at the same time, and requires the same answers of both.
pub async fn on_both_databases(run: impl AsyncFn(&World, &mut Trials)) {
    let (sqlite, postgres) = tokio::join!(trials_on(Backend::Sqlite, &run), async {
        match Backend::Postgres.is_available() {
            true => Some(trials_on(Backend::Postgres, &run).await),
            false => None,
        }
    });
    let mut faults = sqlite.faults;
    println!("{} requests", sqlite.answers.len());
    if let Some(postgres) = postgres {
        faults.extend(postgres.faults);
        if sqlite.answers.len() != postgres.answers.len() {
            faults.push(format!("{} requests on PostgreSQL", postgres.answers.len()));
        }
        let pairs = sqlite
            .answers
            .iter()
            .zip(&postgres.answers)
            .filter(|(sqlite, postgres)| sqlite != postgres);
        faults.extend(
            pairs.map(|(sqlite, postgres)| format!("SQLite: {sqlite:?}, PostgreSQL: {postgres:?}")),
        );
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

async fn trials_on(backend: Backend, run: impl AsyncFn(&World, &mut Trials)) -> Trials {
    let world = World::new(backend).await;
    let mut trials = Trials {
        backend,
        answers: Vec::new(),
        faults: Vec::new(),
    };
    run(&world, &mut trials).await;
    world.app.client().get("/readyz").call().await.expect(200);
    trials
}

/// A request of the rightful caller with this body in place of a good one.
async fn with_body(
    world: &World,
    operation: &Operation,
    body: impl Into<reqwest::Body>,
) -> RequestBuilder {
    let request = world
        .request_without_body(&world.rightful_caller(operation), operation, Objects::Real)
        .await;
    let body = body.into();
    let signed = World::signed(operation, request, body.as_bytes().unwrap_or_default());
    signed.header(CONTENT_TYPE, "application/json").body(body)
}

fn with_bodies() -> impl Iterator<Item = (Operation, &'static Value)> {
    operations()
        .into_iter()
        .filter_map(|operation| operation.body_schema().map(|schema| (operation, schema)))
}

/// Whether all of the body may be left out.
fn is_optional(operation: &Operation) -> bool {
    let optional = ["/resume", "/dlq/retry", "/readmit"];
    optional.iter().any(|end| operation.path.ends_with(end))
}

fn is_upload(operation: &Operation) -> bool {
    let of_data = ["/logs", "/telemetry", "/ble/events", "/windowed"];
    let of_reports = [
        "/v1/hubs/adapters",
        "/v1/hubs/{hubUuid}/packages",
        "/{hubJobUuid}/events",
        "/installed-apps",
        "/device-query",
    ];
    of_data
        .iter()
        .chain(&of_reports)
        .any(|end| operation.path.ends_with(end))
}

#[tokio::test(flavor = "multi_thread")]
async fn body_that_is_not_json_is_refused() {
    on_both_databases(async |world, trials| {
        for (operation, _) in with_bodies() {
            let good = world.body(&operation).await.unwrap_or_default().to_string();
            let utf16: Vec<u8> = good.encode_utf16().flat_map(u16::to_be_bytes).collect();
            let mut bodies: Vec<(&str, Vec<u8>)> = vec![
                ("empty", Vec::new()),
                ("white", b" \n".to_vec()),
                ("half a word", b"nul".to_vec()),
                ("single quotes", b"{'a': 1}".to_vec()),
                ("a comma too many", b"{\"a\": 1,}".to_vec()),
                ("a comment", b"{} // done".to_vec()),
                ("NaN", b"{\"a\": NaN}".to_vec()),
                ("something behind", [good.as_bytes(), b"}"].concat()),
                ("two values", [good.as_bytes(), good.as_bytes()].concat()),
                ("a NUL byte", b"{\"a\": \"\0\"}".to_vec()),
                ("a line break in a string", b"{\"a\": \"\n\"}".to_vec()),
                (
                    "a byte order mark",
                    [b"\xef\xbb\xbf", good.as_bytes()].concat(),
                ),
                ("UTF-16", utf16),
                ("invalid UTF-8", b"{\"a\": \"\xff\xfe\"}".to_vec()),
                ("an overlong encoding", b"{\"a\": \"\xc0\xaf\"}".to_vec()),
                ("half an escape", b"{\"a\": \"\\ud8".to_vec()),
                ("deep arrays", vec![b'['; 100_000]),
                ("deep objects", b"{\"a\":".repeat(100_000)),
                (
                    "deep and closed",
                    [vec![b'['; 100_000], vec![b']'; 100_000]].concat(),
                ),
            ];
            // As many for each database, though a request with a signature in it is now longer, now
            // shorter.
            for part in 1..=12 {
                let end = (good.len() * part / 13).clamp(1, good.len() - 1);
                bodies.push(("cut off", good.as_bytes()[..end].to_vec()));
            }
            for (what, body) in bodies {
                if body.is_empty() && is_optional(&operation) {
                    continue;
                }
                let what = format!("{}: {what}", operation.name());
                trials
                    .send(
                        what,
                        with_body(world, &operation, body).await,
                        Expect::Status(400),
                    )
                    .await;
            }
        }
    })
    .await;
}

/// A place in a good body that the schema has something to say about.
struct Place {
    /// JSON pointer.
    pointer: String,
    name: String,
    schema: &'static Value,
    /// Whether the object it stands in must have it.
    required: bool,
}

impl Place {
    fn kinds(&self) -> Vec<&'static str> {
        kinds(self.schema)
    }
}

/// The JSON types a schema admits; none when it admits all.
pub fn kinds(schema: &'static Value) -> Vec<&'static str> {
    let schema = resolve(schema);
    let mut found: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    for choice in ["anyOf", "oneOf"] {
        found.extend(
            schema[choice]
                .as_array()
                .into_iter()
                .flatten()
                .flat_map(kinds),
        );
    }
    found
}

/// What the schema says beside its type, also where the value may be null.
pub fn constraint(schema: &'static Value, name: &str) -> Option<&'static Value> {
    let schema = resolve(schema);
    let choices = schema["anyOf"].as_array().into_iter().flatten();
    schema.get(name).or_else(|| {
        choices
            .into_iter()
            .find_map(|choice| constraint(choice, name))
    })
}

fn places(schema: &'static Value, value: &Value, pointer: &str, found: &mut Vec<Place>) {
    let schema = resolve(schema);
    for part in ["anyOf", "oneOf", "allOf"]
        .iter()
        .filter_map(|name| schema[*name].as_array())
        .flatten()
    {
        places(part, value, pointer, found);
    }
    for (name, schema_of_member) in object(&schema["properties"]) {
        let pointer = format!("{pointer}/{name}");
        let required = schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|other| other == name));
        let member = value.get(name);
        if member.is_some() || pointer.matches('/').count() == 1 {
            found.push(Place {
                pointer: pointer.clone(),
                name: name.clone(),
                schema: schema_of_member,
                required,
            });
        }
        if let Some(member) = member {
            places(schema_of_member, member, &pointer, found);
        }
    }
    if let (Some(items), Some(first)) = (schema.get("items"), value.get(0)) {
        places(items, first, &format!("{pointer}/0"), found);
    }
}

/// Values as JSON text, since some of them no parser gives back, with their type.
const VALUES: [(&str, &str); 18] = [
    ("null", "null"),
    ("true", "boolean"),
    ("12", "integer"),
    ("-1", "integer"),
    ("1.5", "number"),
    ("9223372036854775808", "integer"),
    ("-9223372036854775809", "integer"),
    (
        "123456789012345678901234567890123456789012345678901234567890",
        "integer",
    ),
    ("1e999", "too large"),
    ("-1e999", "too large"),
    ("\"text\"", "string"),
    ("\"\"", "string"),
    ("\"\\u0000\"", "string"),
    ("\"a\\u0000b\"", "string"),
    ("\"\\ud800\"", "half a character"),
    ("[]", "array"),
    ("[[[[]]]]", "array"),
    ("{\"unknown\": {\"a\": []}}", "object"),
];

fn expectation(place: &Place, text: &str, kind: &str) -> Expect {
    let kinds = place.kinds();
    let admitted = kinds.is_empty()
        || kinds.contains(&kind)
        || (kind == "integer" && kinds.contains(&"number"));
    let refused = Expect::Field(place.name.clone());
    match kind {
        "too large" => refused,
        "half a character" => Expect::Refused,
        "null" if !place.required => Expect::Answered,
        _ if !admitted => refused,
        "string" if constraint(place.schema, "enum").is_some() && text != "\"\"" => refused,
        "string"
            if constraint(place.schema, "format")
                .is_some_and(|format| format == "uuid" || format == "date-time") =>
        {
            refused
        }
        _ => Expect::Answered,
    }
}

/// The good body with the text in the place of a value.
fn replaced(good: &Value, pointer: &str, text: &str) -> String {
    const MARK: &str = "a place for a value";
    let mut body = good.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
    match body.pointer_mut(parent) {
        Some(Value::Object(members)) => drop(members.insert(name.to_owned(), json!(MARK))),
        _ => panic!("{pointer} is not in {good}"),
    }
    body.to_string().replace(&format!("\"{MARK}\""), text)
}

/// The members of an object in the body, as an array.
fn members_as_array(good: &Value, pointer: &str) -> Option<String> {
    let members = good.pointer(pointer)?.as_object()?;
    Some(Value::from_iter(members.values().cloned()).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn value_of_the_wrong_type_is_refused() {
    on_both_databases(async |world, trials| {
        for (operation, schema) in with_bodies() {
            let good = world.body(&operation).await.unwrap_or_default();
            let mut found = Vec::new();
            places(schema, &good, "", &mut found);
            let long = format!("\"{}\"", "long ".repeat(40_000));
            let dates = [
                "\"yesterday\"",
                "\"2026-02-30T00:00:00Z\"",
                "\"2026-01-01\"",
                "\"99999-01-01T00:00:00Z\"",
            ];
            for place in found {
                let mut values: Vec<(&str, Expect)> = VALUES
                    .iter()
                    .map(|(text, kind)| (*text, expectation(&place, text, kind)))
                    .collect();
                values.push((&long, Expect::Answered));
                if constraint(place.schema, "format").is_some_and(|format| format == "date-time") {
                    values.extend(dates.map(|date| (date, Expect::Field(place.name.clone()))));
                }
                // Serde's derives would read both.
                let as_array = members_as_array(&good, &place.pointer);
                values.extend(
                    as_array
                        .as_deref()
                        .map(|array| (array, Expect::Field(place.name.clone()))),
                );
                let word = constraint(place.schema, "enum").and_then(|words| words.get(0));
                let as_object = word.map(|word| format!("{{{word}: null}}"));
                values.extend(
                    as_object
                        .as_deref()
                        .map(|object| (object, Expect::Field(place.name.clone()))),
                );
                for (text, expect) in values {
                    // Made anew each time: some of what it names can be used once.
                    let good = world.body(&operation).await.unwrap_or_default();
                    let body = replaced(&good, &place.pointer, text);
                    let shown: String = text.chars().take(40).collect();
                    let what = format!("{}: {} = {shown}", operation.name(), place.pointer);
                    trials
                        .send(what, with_body(world, &operation, body).await, expect)
                        .await;
                }
                if place.required {
                    let mut body = world.body(&operation).await.unwrap_or_default();
                    let (parent, name) = place.pointer.rsplit_once('/').unwrap_or_default();
                    body.pointer_mut(parent)
                        .and_then(Value::as_object_mut)
                        .and_then(|members| members.remove(name));
                    let what = format!("{}: without {}", operation.name(), place.pointer);
                    let request = with_body(world, &operation, body.to_string()).await;
                    trials
                        .send(what, request, Expect::Field(place.name.clone()))
                        .await;
                }
            }
            for (text, kind) in VALUES {
                let kinds = kinds(schema);
                let expect = match kind {
                    "too large" | "half a character" => Expect::Status(400),
                    _ if !kinds.is_empty() && !kinds.contains(&kind) => Expect::Status(400),
                    _ => Expect::Answered,
                };
                let what = format!("{}: the body is {text}", operation.name());
                trials
                    .send(what, with_body(world, &operation, text).await, expect)
                    .await;
            }
        }
    })
    .await;
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("memory")
}

/// A frame header that asks for a window of 2^41 bytes (RFC 8878, 3.1.1.1.2), and one raw block.
const HUGE_WINDOW: &[u8] = &[
    0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x11, 0x00, 0x00, b'{', b'}',
];

#[tokio::test(flavor = "multi_thread")]
async fn zip_bomb_or_wrong_content_encoding_is_refused() {
    let zeros = vec![b' '; 64 * 1024 * 1024];
    let (gzip_bomb, zstd_bomb) = (gzip(&zeros), zstd(&zeros));
    drop(zeros);
    let nested_bomb = gzip(&gzip_bomb);
    on_both_databases(async |world, trials| {
        for (operation, _) in with_bodies() {
            let good = world.body(&operation).await.unwrap_or_default().to_string();
            let good = good.as_bytes();
            let (gzipped, zstded) = (gzip(good), zstd(good));
            let mut spoiled = gzipped.clone();
            let checksum = spoiled.len() - 6;
            spoiled[checksum] ^= 0xff;
            let packed: Vec<(&str, &str, Vec<u8>, u16)> = vec![
                ("a gzip bomb", "gzip", gzip_bomb.clone(), 413),
                ("a zstd bomb", "zstd", zstd_bomb.clone(), 413),
                ("a gzip bomb in gzip", "gzip", nested_bomb.clone(), 400),
                (
                    "truncated gzip",
                    "gzip",
                    gzipped[..gzipped.len() / 2].to_vec(),
                    400,
                ),
                (
                    "truncated zstd",
                    "zstd",
                    zstded[..zstded.len() - 3].to_vec(),
                    400,
                ),
                ("gzip with a wrong checksum", "gzip", spoiled, 400),
                ("gzip that is zstd", "gzip", zstded.clone(), 400),
                ("zstd that is gzip", "zstd", gzipped.clone(), 400),
                ("gzip that is plain", "gzip", good.to_vec(), 400),
                ("zstd with a huge window", "zstd", HUGE_WINDOW.to_vec(), 400),
                ("gzip of nothing", "gzip", gzip(b""), 400),
                ("no gzip at all", "gzip", Vec::new(), 400),
                ("an encoding nobody knows", "br", good.to_vec(), 415),
                ("two encodings", "gzip, gzip", gzip(&gzipped), 415),
            ];
            for (what, encoding, body, status) in packed {
                if body.is_empty() && is_optional(&operation) {
                    continue;
                }
                let status = if is_upload(&operation) { status } else { 415 };
                let what = format!("{}: {what}", operation.name());
                let request = with_body(world, &operation, body)
                    .await
                    .header(CONTENT_ENCODING, encoding);
                trials.send(what, request, Expect::Status(status)).await;
            }
            if is_upload(&operation) {
                for (encoding, body) in [("gzip", gzipped), ("zstd", zstded), ("GZIP", gzip(good))]
                {
                    let request = with_body(world, &operation, body)
                        .await
                        .header(CONTENT_ENCODING, encoding);
                    let (status, _) = operation
                        .success()
                        .unwrap_or_else(|| panic!("no success described"));
                    trials
                        .send(
                            format!("{}: {encoding}", operation.name()),
                            request,
                            Expect::Status(status),
                        )
                        .await;
                }
            }
            for media_type in [
                "",
                "text/plain",
                "application/xml",
                "application/x-www-form-urlencoded",
                "json",
                "é",
                ";",
            ] {
                let caller = world.rightful_caller(&operation);
                let request = world
                    .request_without_body(&caller, &operation, Objects::Real)
                    .await;
                let media_type_value =
                    HeaderValue::from_bytes(media_type.as_bytes()).expect("a header value");
                let request = request
                    .header(CONTENT_TYPE, media_type_value)
                    .body(good.to_vec());
                let what = format!("{}: the type {media_type:?}", operation.name());
                trials.send(what, request, Expect::Status(415)).await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn body_above_the_limit_is_refused() {
    on_both_databases(async |world, trials| {
        for (operation, _) in with_bodies() {
            let limit = if is_upload(&operation) {
                4 << 20
            } else {
                1 << 20
            };
            for excess in [1, 1 << 20, 8 << 20] {
                let what = format!("{}: {excess} bytes too many", operation.name());
                let body = vec![b' '; limit + excess];
                trials
                    .send(
                        what,
                        with_body(world, &operation, body).await,
                        Expect::Status(413),
                    )
                    .await;
            }
            // Without a length that could be looked at first.
            let parts = (0..=limit >> 20).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1 << 20]));
            let body = reqwest::Body::wrap_stream(futures_util::stream::iter(parts));
            let what = format!("{}: in parts, too many", operation.name());
            trials
                .send(
                    what,
                    with_body(world, &operation, body).await,
                    Expect::Status(413),
                )
                .await;
            let what = format!("{}: white up to the limit", operation.name());
            trials
                .send(
                    what,
                    with_body(world, &operation, vec![b' '; limit]).await,
                    Expect::Status(400),
                )
                .await;
        }
    })
    .await;
}
