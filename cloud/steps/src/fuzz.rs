//! Mutated input: nothing panics, and an expression ends in time. `BOLERO_RANDOM_TEST_TIME_MS` sets
//! how long each target runs, and `cargo bolero` runs them with a fuzzer that follows the coverage.

use std::time::{Duration, Instant};

use bolero::check;
use futures_util::FutureExt;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use super::expression::{Expression, Names, Work};
use super::graph::{from_graph, to_graph};
use super::tests::FORMS;
use super::text::from_text;
use super::{Event, Input, Program, State, Template};

/// The longest that an expression may take. A machine that is busy may need several attempts.
const LIMIT: Duration = if cfg!(debug_assertions) {
    Duration::from_millis(20)
} else {
    Duration::from_millis(1)
};
const ATTEMPTS: u32 = 5;

/// The words of generated expressions.
const WORDS: [&str; 72] = [
    "rssi",
    "name",
    "temperature",
    "values.temperature",
    "measurements",
    "[0]",
    "['x']",
    ".value",
    "window",
    "long",
    "manufacturerData",
    "1",
    "0",
    "-1",
    "1e308",
    "2.5",
    "9007199254740993",
    "99999999999999999999",
    "'a'",
    "\"b\"",
    "''",
    "'",
    "true",
    "false",
    "null",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    " and ",
    " or ",
    " not ",
    "!",
    "&&",
    " in ",
    "(",
    ")",
    "[",
    "]",
    ",",
    ",",
    "if(",
    "coalesce(",
    "has(",
    "lower(",
    "upper(",
    "replace(",
    "concat(",
    "substring(",
    "round(",
    "min(",
    "clamp(",
    "length(",
    "contains(",
    "number(",
    "json(",
    "hour(",
    "weekday(",
    "string(",
    " ",
    "ä",
    "{{",
    "}}",
    "\\",
    "=",
];

fn text(words: &[u8]) -> String {
    words
        .iter()
        .map(|word| WORDS[usize::from(*word) % WORDS.len()])
        .collect()
}

fn event() -> Event {
    let event = json!({
        "rssi": -61, "name": "Kitchen", "address": "AA:BB:CC:DD:EE:FF", "observedAt": "2026-01-31T08:59:59.500000Z",
        "manufacturerData": {"0499": "BQ=="}, "long": "abc ".repeat(8000), "serviceUuids": ["180f"],
        "measurements": [
            {"quantity": "temperature", "value": 23.45, "unit": "Cel"},
            {"quantity": "humidity", "value": 1e300, "unit": "%RH", "index": 1},
            {"quantity": "door", "value": "open", "kind": "STATE"},
            7,
        ],
    });
    event.as_object().cloned().expect("an object")
}

fn within_limit(run: impl Fn()) {
    for attempt in 1.. {
        let started_at = Instant::now();
        run();
        let took = started_at.elapsed();
        if took < LIMIT {
            return;
        }
        assert!(attempt < ATTEMPTS, "it took {took:?}");
    }
}

#[test]
fn expressions_end_in_time() {
    let (event, open) = (event(), Names::open());
    check!()
        .with_type::<(Vec<u8>, bool)>()
        .for_each(|(words, is_open)| {
            let source = text(words);
            let names = if *is_open { &open } else { &Names::default() };
            let Ok(expression) = Expression::compile(&source, names) else {
                return;
            };
            within_limit(|| _ = expression.json(&event, &mut Work::default()));
            let _ = (
                expression.holds(&event, &mut Work::default()),
                expression.text(&event, &mut Work::default()),
                expression.constant(),
            );
        });
}

#[test]
fn templates_are_compiled_or_refused() {
    let event = event();
    check!()
        .with_type::<Vec<(Vec<u8>, Vec<u8>)>>()
        .for_each(|parts| {
            let part = |(before, inside): &(Vec<u8>, Vec<u8>)| {
                format!("{}{{{{{}}}}}", text(before), text(inside))
            };
            let source: String = parts.iter().map(part).collect();
            let Ok(template) = Template::compile(&source) else {
                return;
            };
            let _ = template.render(&event);
        });
    check!()
        .with_type::<String>()
        .for_each(|source| _ = Template::compile(source).map(|one| one.render(&event)));
}

/// Steps that can be compiled, one of each kind.
fn steps() -> Vec<Value> {
    let list = json!([
        {"op": "filter", "when": "temperature > 20"},
        {"op": "map", "set": {"a.b": "rssi + 1", "values.humidity": "temperature * 2"}},
        {"op": "rename", "fields": {"name": "label", "values.temperature": "t"}},
        {"op": "drop", "fields": ["address", "measurements[0]"]},
        {"op": "scale", "quantity": "temperature", "factor": 2, "offset": 1},
        {"op": "convert", "quantity": "temperature", "unit": "degF"},
        {"op": "sample", "everySeconds": 2, "by": "DEVICE"},
        {"op": "on_change", "quantity": "temperature", "delta": 0.5, "maxSeconds": 60},
        {"op": "dedupe", "seconds": 10},
        {"op": "template", "body": "{{rssi}} {{json(name)}}"},
        {"op": "script", "source": "function process(event) { return event; }"},
    ]);
    list.as_array().cloned().unwrap_or_default()
}

/// A change: which step, which member, and what by.
type Change = (u8, u8, u8, Vec<u8>, f64);

fn changed(order: &[u8], changes: &[Change]) -> Value {
    let all = steps();
    let mut list: Vec<Value> = order
        .iter()
        .take(40)
        .map(|at| all[usize::from(*at) % all.len()].clone())
        .collect();
    for (at, member, kind, words, number) in changes.iter().take(8) {
        let count = list.len().max(1);
        let Some(step) = list
            .get_mut(usize::from(*at) % count)
            .and_then(Value::as_object_mut)
        else {
            continue;
        };
        let names: Vec<String> = step.keys().cloned().collect();
        let name = names[usize::from(*member) % names.len()].clone();
        let value = match kind % 6 {
            0 => json!(number),
            1 => Value::Null,
            2 => json!([text(words)]),
            3 => json!({text(words): text(words)}),
            4 => json!(number % 2.0 == 0.0),
            _ => json!(text(words)),
        };
        step.insert(name, value);
    }
    Value::Array(list)
}

fn inputs(times: &[i32]) -> Vec<Input> {
    let input = |(at, seconds): (usize, &i32)| Input {
        event: event(),
        received_at: Timestamp::from_micros(i64::from(*seconds) * 1000),
        observed_at: Timestamp::from_micros(0),
        hub_uuid: HubUuid(Uuid::from_u128(at as u128 % 3)),
        device_instance_id: (at % 4 != 0).then_some(at as i64 % 5),
        address: format!("{at}"),
        observation_id: (at % 3 == 0).then_some(i64::from(*seconds)),
        ble_event_id: at as i64,
    };
    times.iter().take(20).enumerate().map(input).collect()
}

#[test]
fn steps_are_compiled_or_refused_and_run() {
    type Steps = (Vec<u8>, Vec<Change>, Vec<i32>, u8);
    check!()
        .with_type::<Steps>()
        .for_each(|(order, changes, times, cut)| {
            let Ok(program) = Program::compile(&changed(order, changes)) else {
                return;
            };
            let run = |state: &mut State, inputs: Vec<Input>| {
                let tenant_uuid = TenantUuid(Uuid::nil());
                program
                    .run(state, inputs, None, tenant_uuid, Duration::ZERO)
                    .now_or_never()
                    .expect("no script")
            };
            let inputs = inputs(times);
            let wanted = run(&mut program.new_state(), inputs.clone());
            assert_eq!(wanted.len(), inputs.len());
            let (before, after) = inputs.split_at(usize::from(*cut).min(inputs.len()));
            let mut state = program.new_state();
            let mut found = run(&mut state, before.to_vec());
            let mut state = State::from_bytes(&program, &state.to_bytes());
            found.extend(run(&mut state, after.to_vec()));
            assert_eq!(found, wanted);
        });
}

#[test]
fn states_are_read_or_left_out() {
    let program = Program::compile(&Value::Array(steps())).expect("steps");
    check!().with_type::<Vec<u8>>().for_each(|bytes| {
        let state = State::from_bytes(&program, bytes);
        assert_eq!(
            State::from_bytes(&program, &state.to_bytes()).to_bytes(),
            state.to_bytes()
        );
    });
}

#[test]
fn graphs_are_read_or_refused() {
    let types = [
        "source",
        "destination",
        "filter",
        "drop",
        "dedupe",
        "script",
        "none",
    ];
    check!()
        .with_type::<(Vec<(u8, u8, u8)>, Vec<(u8, u8)>)>()
        .for_each(|(nodes, edges)| {
            let all = steps();
            let node = |(id, kind, config): &(u8, u8, u8)| {
                let mut members = all[usize::from(*config) % all.len()]
                    .as_object()
                    .cloned()
                    .unwrap_or_default();
                members.remove("op");
                members.insert("kind".to_owned(), json!("HTTP"));
                let kind = types[usize::from(*kind) % types.len()];
                if kind != "destination" && config % 8 != 0 {
                    members.remove("kind");
                }
                json!({"id": (id % 8).to_string(), "type": kind, "config": members})
            };
            let nodes: Vec<Value> = nodes.iter().map(node).collect();
            let edges: Vec<Value> = edges
            .iter()
            .map(|(from, to)| json!({"from": (from % 8).to_string(), "to": (to % 8).to_string()}))
            .collect();
            if let Ok((pipeline, _)) = from_graph(&json!({"nodes": nodes, "edges": edges}), &FORMS)
            {
                assert_eq!(
                    from_graph(&to_graph(&pipeline), &FORMS).map(|(pipeline, _)| pipeline),
                    Ok(pipeline)
                );
            }
        });
}

#[test]
fn texts_are_read_or_refused() {
    let beginnings = [
        "filter ",
        "map a = ",
        "rename a to ",
        "drop ",
        "scale temperature by ",
        "convert temperature to ",
        "{",
        "sample every 1s by ",
        "on_change temperature ",
        "dedupe ",
        "template ",
        "script <<END\n",
        "END",
        "http ",
        "mqtt x topic ",
        "from ",
        "header ",
        "auth ",
        "batch ",
        "wait ",
        "name ",
        "",
    ];
    check!()
        .with_type::<(Vec<(u8, Vec<u8>)>, String)>()
        .for_each(|(lines, raw)| {
            let line = |(beginning, words): &(u8, Vec<u8>)| {
                format!(
                    "{}{}\n",
                    beginnings[usize::from(*beginning) % beginnings.len()],
                    text(words)
                )
            };
            let written: String = lines.iter().map(line).collect();
            for written in [&written, raw, &format!("{written}http https://example.com")] {
                if let Ok((pipeline, _)) = from_text(written, &FORMS) {
                    Program::compile(&pipeline["steps"]).expect("steps that can be compiled");
                }
            }
        });
}
