//! The language of pipelines with real scripts, and its documentation.

use std::path::PathBuf;
use std::time::Duration;

use hub_base::metrics::Metrics;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use hub_scripts::{Processed, Scripts, Trial};
use hub_steps::text::from_text;
use hub_steps::{Body, Event, Input, Outcome, Program};
use hub_tests::process::program;
use serde_json::{Value, json};
use uuid::Uuid;

const PAGE: &str = include_str!("../docs/pipelines.md");
/// Of a busy machine.
const TIME: Duration = Duration::from_secs(30);

fn scripts() -> Scripts {
    Scripts::new(program("hub-cloud"), 4, Metrics::new())
}

fn tenant() -> TenantUuid {
    TenantUuid(Uuid::new_v4())
}

fn object(value: &Value) -> Event {
    value.as_object().cloned().expect("an object")
}

fn input(event: Event, seconds: i64) -> Input {
    let at = Timestamp::from_micros(1_769_850_000_000_000).plus_secs(seconds);
    Input {
        device_instance_id: event.get("deviceInstanceId").and_then(Value::as_i64),
        observation_id: None,
        hub_uuid: HubUuid(Uuid::from_u128(1)),
        address: "AA:BB:CC:DD:EE:FF".to_owned(),
        received_at: at,
        observed_at: at,
        ble_event_id: at.as_micros(),
        event,
    }
}

/// The blocks of the documentation that begin with these words, with what follows them in the line.
fn blocks(kind: &str) -> Vec<(&'static str, &'static str)> {
    let block = |part: &'static str| {
        let (head, text) = part.split_once('\n').expect("a line");
        (head.trim(), text.split_once("```").expect("an end").0)
    };
    PAGE.split(&format!("```{kind}"))
        .skip(1)
        .map(block)
        .collect()
}

/// The event that the documentation shows.
fn shown_event() -> Event {
    let blocks = blocks("json event");
    object(&serde_json::from_str(blocks.first().expect("an event").1).expect("JSON"))
}

#[tokio::test]
async fn the_examples_of_the_documentation_work() {
    let scripts = scripts();
    let examples = blocks("json example=");
    assert!(examples.len() >= 8, "{}", examples.len());
    for (name, text) in examples {
        let example: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let compiled = Program::compile(&example["steps"])
            .unwrap_or_else(|problem| panic!("{name}: {problem}"));
        let mut state = compiled.new_state();
        for (at, case) in example["events"]
            .as_array()
            .expect("events")
            .iter()
            .enumerate()
        {
            let mut event = shown_event();
            event.extend(object(&case["event"]));
            let seconds = case["seconds"].as_i64().unwrap_or_default();
            let outcomes = compiled
                .run(
                    &mut state,
                    vec![input(event, seconds)],
                    Some(&scripts),
                    tenant(),
                    TIME,
                )
                .await;
            let found = match outcomes.into_iter().next().expect("an outcome") {
                Outcome::Dropped { step } => json!({"dropped": step}),
                Outcome::Failed { step, problem } => json!({"failed": step, "problem": problem}),
                Outcome::NotRun { problem } => panic!("{name}: {problem}"),
                Outcome::Passed(outputs) => {
                    let wanted = case["passed"].as_array().cloned().unwrap_or_default();
                    // Of an event, the members that the example shows.
                    let shown = |(place, output): (usize, hub_steps::Output)| match output.body {
                        Body::Text(text) => Value::String(text),
                        Body::Event(event) => match wanted.get(place).and_then(Value::as_object) {
                            Some(wanted) => wanted
                                .keys()
                                .map(|name| {
                                    (
                                        name.clone(),
                                        event.get(name).cloned().unwrap_or(Value::Null),
                                    )
                                })
                                .collect(),
                            None => Value::Object(event),
                        },
                    };
                    json!({"passed": outputs.into_iter().enumerate().map(shown).collect::<Vec<_>>()})
                }
            };
            let mut wanted = object(case);
            wanted.retain(|name, _| name != "event" && name != "seconds");
            assert_eq!(found, Value::Object(wanted), "{name}, event {at}");
        }
    }
}

#[tokio::test]
async fn the_expressions_of_the_documentation_give_what_it_says() {
    let mut count = 0;
    for (_, text) in blocks("text expressions") {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (source, wanted) = line
                .split_once(" gives ")
                .unwrap_or_else(|| panic!("{line}"));
            let wanted: Value = serde_json::from_str(wanted.trim())
                .unwrap_or_else(|error| panic!("{line}: {error}"));
            let compiled =
                Program::compile(&json!([{"op": "map", "set": {"found": source.trim()}}]));
            let compiled = compiled.unwrap_or_else(|problem| panic!("{line}: {problem}"));
            let inputs = vec![input(shown_event(), 0)];
            let outcomes = compiled
                .run(&mut compiled.new_state(), inputs, None, tenant(), TIME)
                .await;
            let [Outcome::Passed(outputs)] = outcomes.as_slice() else {
                panic!("{line}: {outcomes:?}")
            };
            assert_eq!(outputs[0].event["found"], wanted, "{line}");
            count += 1;
        }
    }
    assert!(count >= 20, "{count}");
}

#[test]
fn the_texts_of_the_documentation_become_what_it_shows() {
    let texts = blocks("text pipeline=");
    assert!(!texts.is_empty());
    for (name, text) in texts {
        let (pipeline, _) = from_text(text, &hub_destinations::forms())
            .unwrap_or_else(|problem| panic!("{name}: {problem:?}"));
        let shown = blocks(&format!("json pipeline={name}"));
        let shown: Value = serde_json::from_str(shown.first().expect("its JSON").1).expect("JSON");
        assert_eq!(pipeline, shown, "{name}");
    }
}

/// A body of `process`, run for the second of three events; the others must be made all the same.
async fn second(scripts: &Scripts, body: &str) -> Processed {
    let source =
        format!("function process(event) {{ if (event.n === 2) {{ {body} }} return event; }}");
    let events = [
        json!({"n": 1}),
        json!({"n": 2, "text": "ä\u{0}\"", "list": [1, 2.5, null, true]}),
        json!({"n": 3}),
    ];
    let events: Vec<Event> = events.iter().map(object).collect();
    let events: Vec<&Event> = events.iter().collect();
    let mut found = scripts.process(tenant(), &source, &events, TIME).await;
    assert_eq!(found.len(), 3);
    let [first, last] = [0, 2].map(|at| found[at].clone());
    assert_eq!(
        (first, last),
        (passed(&[json!({"n": 1})]), passed(&[json!({"n": 3})])),
        "{body}"
    );
    found.remove(1)
}

fn passed(events: &[Value]) -> Processed {
    Processed::Events(events.iter().map(object).collect())
}

#[tokio::test]
async fn what_process_returns_is_read() {
    let scripts = scripts();
    let same = json!({"n": 2, "text": "ä\u{0}\"", "list": [1, 2.5, null, true]});
    for (body, wanted) in [
        ("return event;", passed(&[same])),
        ("return null;", passed(&[])),
        ("return;", passed(&[])),
        ("return [];", passed(&[])),
        (
            "return [{a: 1}, {b: [undefinedToo()]}]; function undefinedToo() { return 0; }",
            passed(&[json!({"a": 1}), json!({"b": [0]})]),
        ),
        (
            "return {a: undefined, b: -0.5, c: 2 ** 40, d: {e: {}}};",
            passed(&[json!({"b": -0.5, "c": 1_099_511_627_776_i64, "d": {"e": {}}})]),
        ),
        (
            "return Object.assign(Object.create(null), {a: 1});",
            passed(&[json!({"a": 1})]),
        ),
        ("return Array(100).fill({});", passed(&vec![json!({}); 100])),
    ] {
        assert_eq!(second(&scripts, body).await, wanted, "{body}");
    }
}

#[tokio::test]
async fn a_hostile_event_fails_alone() {
    let scripts = scripts();
    for (body, wanted) in [
        ("return 7;", "not int"),
        ("return 'x';", "not string"),
        ("return [1];", "not int"),
        ("return process;", "not a function"),
        ("return (async () => event)();", "not a promise"),
        ("return {a: NaN};", "a is NaN, which JSON does not have"),
        ("return {a: [1 / 0]};", "a is inf"),
        ("return {a: 1n};", "which JSON does not have"),
        ("return {a: () => 1};", "a is a function"),
        ("return {a: Symbol('x')};", "a is symbol"),
        ("return {a: [undefined]};", "a is undefined"),
        (
            "return {a: new Map()};",
            "a is an object that JSON does not have",
        ),
        (
            "return {a: new Uint8Array(3)};",
            "a is an object that JSON does not have",
        ),
        ("return new (class { n = 1; })();", "only plain ones are"),
        (
            "const a = {}; a.a = a; return a;",
            "nested more than 32 deep",
        ),
        (
            "const a = []; a.push(a); return {a};",
            "nested more than 32 deep",
        ),
        ("return {a: 'x'.repeat(300000)};", "more than 256 KiB"),
        (
            "const a = []; a.length = 2 ** 32 - 1; return {a};",
            "more than 256 KiB",
        ),
        ("return Array(101).fill({});", "more than 100 events"),
        (
            "return Array(50).fill({a: 'x'.repeat(100000)});",
            "more than 1024 KiB",
        ),
        (
            "return {get a() { throw new Error('mine'); }};",
            "threw Error: mine",
        ),
        (
            "return {get a() { for (;;); }};",
            "in time|longer than 50 ms",
        ),
        ("for (;;);", "in time|longer than 50 ms"),
        ("throw new Error(event.n);", "threw Error: 2"),
        ("leak = 1;", "leak"),
        ("Object.prototype.toJSON = () => 1;", "extensible"),
    ] {
        let found = second(&scripts, body).await;
        let Processed::Failed(problem) = &found else {
            panic!("{body}: {found:?}")
        };
        assert!(
            wanted.split('|').any(|wanted| problem.contains(wanted)),
            "{body}: {problem}"
        );
    }
}

#[tokio::test]
async fn a_script_is_tried_before_it_is_kept() {
    let scripts = scripts();
    assert_eq!(
        scripts
            .try_process(tenant(), "function process(event) { return event.a.b; }")
            .await,
        Ok(())
    );
    for (source, wanted) in [
        ("function process(event) {", "line 1"),
        ("const a = 1;", "the script has no function process(event)"),
        (
            "function decode(frame) { return null; }",
            "the script has no function process(event)",
        ),
        ("throw new Error('early');", "threw Error: early"),
    ] {
        match scripts.try_process(tenant(), source).await {
            Err(Trial::Refused(problem)) => {
                assert!(problem.contains(wanted), "{source}: {problem}")
            }
            other => panic!("{source}: {other:?}"),
        }
    }
    let none = Scripts::new(PathBuf::from("/nonexistent"), 1, Metrics::new());
    assert_eq!(
        none.try_process(tenant(), "function process(event) {}")
            .await,
        Err(Trial::Busy)
    );
}

#[tokio::test]
async fn what_there_was_no_time_for_leaves_no_trace() {
    let steps = json!([
        {"op": "sample", "everySeconds": 10, "by": "DEVICE"},
        {"op": "filter", "when": "rssi > -100"},
        {"op": "script", "source": "function process(event) { return event; }"},
        {"op": "dedupe", "seconds": 10},
    ]);
    let compiled = Program::compile(&steps).expect("steps");
    assert!(compiled.has_state() && compiled.has_script());
    let event = |rssi: i64| object(&json!({"rssi": rssi, "deviceInstanceId": 1}));
    let inputs = vec![
        input(event(-101), 0),
        input(event(-50), 20),
        input(event(-50), 21),
    ];
    let mut state = compiled.new_state();
    let none = Scripts::new(PathBuf::from("/nonexistent"), 1, Metrics::new());
    let outcomes = compiled
        .run(&mut state, inputs.clone(), Some(&none), tenant(), TIME)
        .await;
    // The first one did not come to the script.
    assert_eq!(outcomes[0], Outcome::Dropped { step: 1 });
    assert!(
        outcomes[1..]
            .iter()
            .all(|outcome| matches!(outcome, Outcome::NotRun { .. })),
        "{outcomes:?}"
    );
    let mut before = compiled.new_state();
    compiled
        .run(
            &mut before,
            inputs[..1].to_vec(),
            Some(&none),
            tenant(),
            TIME,
        )
        .await;
    assert_eq!(state.to_bytes(), before.to_bytes());
    let scripts = scripts();
    let outcomes = compiled
        .run(
            &mut state,
            inputs[1..].to_vec(),
            Some(&scripts),
            tenant(),
            TIME,
        )
        .await;
    assert!(matches!(outcomes[0], Outcome::Passed(_)), "{outcomes:?}");
    assert_eq!(outcomes[1], Outcome::Dropped { step: 0 });
}

#[tokio::test]
async fn one_event_becomes_a_hundred_at_most() {
    let ten = json!({"op": "script", "source": "function process(event) { return Array(11).fill(event); }"});
    let compiled = Program::compile(&json!([ten, ten])).expect("steps");
    let inputs = vec![input(object(&json!({"a": 1})), 0)];
    let outcomes = compiled
        .run(
            &mut compiled.new_state(),
            inputs,
            Some(&scripts()),
            tenant(),
            TIME,
        )
        .await;
    let problem = "more than 100 events came of one".to_owned();
    assert_eq!(outcomes, [Outcome::Failed { step: 1, problem }]);
}

#[tokio::test]
async fn a_script_that_returns_much_is_stopped_and_goes_on_later() {
    let source = "function process(event) { return Array(9).fill({a: 'x'.repeat(100000)}); }";
    let event = Event::new();
    let found = scripts()
        .process(tenant(), source, &[&event; 60], TIME)
        .await;
    let done = found
        .iter()
        .take_while(|one| matches!(one, Processed::Events(events) if events.len() == 9))
        .count();
    assert!((20..60).contains(&done), "{done}");
    assert!(
        found
            .iter()
            .skip(done)
            .all(|one| matches!(one, Processed::NotRun(_)))
    );
}

#[tokio::test]
async fn a_trace_shows_each_step() {
    let steps = json!([
        {"op": "map", "set": {"n": "rssi + 1"}},
        {"op": "script", "source": "function process(event) { return [event, {n: 5}]; }"},
        {"op": "filter", "when": "n > 4"},
        {"op": "template", "body": "n is {{n}}"},
        {"op": "filter", "when": "n > 9"},
        {"op": "drop", "fields": ["n"]},
    ]);
    let compiled = Program::compile(&steps).expect("steps");
    let event = object(&json!({"rssi": -3}));
    let scripts = scripts();
    let mut state = compiled.new_state();
    let (traces, outcome) = compiled
        .trace_to_end(&mut state, input(event, 0), Some(&scripts), tenant())
        .await;
    assert_eq!(outcome, Outcome::Dropped { step: 4 });
    let shown: Vec<(&str, Value, bool)> = traces
        .iter()
        .map(|trace| {
            (
                trace.op.as_str(),
                trace.output.clone().unwrap_or_default(),
                trace.dropped.unwrap_or_default(),
            )
        })
        .collect();
    let wanted = [
        ("map", json!({"rssi": -3, "n": -2}), false),
        ("script", json!([{"rssi": -3, "n": -2}, {"n": 5}]), false),
        ("filter", json!({"n": 5}), false),
        ("template", json!("n is 5"), false),
        ("filter", Value::Null, true),
    ];
    assert_eq!(shown, wanted);
    let failing = Program::compile(&json!([{"op": "script", "source": "x"}])).expect("steps");
    let traces = failing
        .trace(
            &mut failing.new_state(),
            input(Event::new(), 0),
            None,
            tenant(),
        )
        .await;
    assert_eq!(traces[0].error.as_deref(), Some("scripts are not run here"));
}
