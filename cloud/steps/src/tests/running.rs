use serde_json::{Value, json};

use super::super::{Body, Event, MAX_EVENT_BYTES, Outcome, Template};
use super::{event, one, refused, shaped, thermometer};

fn measurement(event: &Value, quantity: &str) -> Value {
    let all = event["measurements"].as_array().unwrap();
    all.iter()
        .find(|one| one["quantity"] == quantity)
        .cloned()
        .unwrap_or(Value::Null)
}

#[test]
fn a_filter_lets_pass_what_holds() {
    let filter = |when: &str| one(&json!([{"op": "filter", "when": when}]), thermometer());
    assert!(matches!(filter("temperature > 20"), Outcome::Passed(_)));
    assert_eq!(filter("pressure > 20"), Outcome::Dropped { step: 0 });
    let steps = json!([{"op": "map", "set": {"x": "1"}}, {"op": "filter", "when": "x"}]);
    let problem = "`x`: must be true or false, and is a number".to_owned();
    assert_eq!(
        one(&steps, thermometer()),
        Outcome::Failed { step: 1, problem }
    );
}

#[test]
fn map_sets_members_and_measurements_at_once() {
    let steps = json!([{"op": "map", "set": {
        "rssi": "rssi + 1", "before": "rssi", "place.room": "lower(name)", "limit": 25, "values.temperature": "temperature + 1",
        "values.dew_point": "temperature - 10", "values.humidity": "null", "values.voltage[1]": "3", "gone": "pressure"
    }}]);
    let made = shaped(&steps, thermometer());
    assert_eq!((&made["rssi"], &made["before"]), (&json!(-60), &json!(-61)));
    assert_eq!(
        (&made["place"], &made["limit"], &made["gone"]),
        (&json!({"room": "kitchen"}), &json!(25), &Value::Null)
    );
    assert_eq!(
        measurement(&made, "temperature"),
        json!({"quantity": "temperature", "value": 24.45, "unit": "Cel"})
    );
    assert_eq!(
        measurement(&made, "dew_point"),
        json!({"quantity": "dew_point", "value": 13.45, "unit": "Cel"})
    );
    assert_eq!(
        measurement(&made, "voltage"),
        json!({"quantity": "voltage", "value": 3, "unit": "V", "index": 1})
    );
    assert_eq!(measurement(&made, "humidity"), Value::Null);
}

#[test]
fn rename_and_drop_move_and_remove() {
    let steps = json!([
        {"op": "rename", "fields": {"name": "rssi", "rssi": "name", "values.temperature": "t", "pressure": "p"}},
        {"op": "drop", "fields": ["address", "humidity", "measurements[0]", "manufacturerData['0499']", "not_there.x"]},
    ]);
    assert!(
        refused(&steps)
            .starts_with("/1/fields/4: column 1: there is no member or quantity `not_there`")
    );
    let steps = json!([steps[0], {"op": "drop", "fields": ["address", "humidity", "measurements[0]", "manufacturerData['0499']"]}]);
    let made = shaped(&steps, thermometer());
    assert_eq!(
        (&made["name"], &made["rssi"], &made["t"]),
        (&json!(-61), &json!("Kitchen"), &json!(23.45))
    );
    assert_eq!((made.get("p"), made.get("address")), (None, None));
    assert_eq!(made["manufacturerData"], json!({}));
    let left: Vec<&Value> = made["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["quantity"])
        .collect();
    assert_eq!(left, ["temperature_probe", "door"]);
}

#[test]
fn values_are_scaled_and_converted() {
    let steps = json!([
        {"op": "scale", "quantity": "humidity", "factor": 0.1, "offset": -1},
        {"op": "scale", "quantity": "temperature_probe[1]", "offset": 0.5},
        {"op": "convert", "quantity": "temperature", "unit": "[degF]"},
    ]);
    let made = shaped(&steps, thermometer());
    assert_eq!(
        made["measurements"][0],
        json!({"quantity": "temperature", "value": 74.21, "unit": "[degF]"})
    );
    assert_eq!(made["measurements"][1]["value"], json!(4.35));
    assert_eq!(
        (
            &made["measurements"][2]["value"],
            &made["measurements"][3]["value"]
        ),
        (&json!(20), &json!(30.5))
    );
    let twice = json!([
        {"op": "convert", "quantity": "temperature", "unit": "[degF]"},
        {"op": "convert", "quantity": "temperature", "unit": "K"},
    ]);
    assert_eq!(
        shaped(&twice, thermometer())["measurements"][0]["value"],
        json!(296.6)
    );
    let failed = one(
        &json!([{"op": "scale", "quantity": "door", "factor": 2}]),
        thermometer(),
    );
    let problem = "the value of door is not a number".to_owned();
    assert_eq!(failed, Outcome::Failed { step: 0, problem });
}

#[test]
fn a_template_makes_the_text_and_keeps_the_event() {
    let steps = json!([
        {"op": "template", "body": "{\"room\": {{json(name)}}, \"t\": {{ temperature }}, \"x\": {\"y\": {{'}}'}}}}"},
        {"op": "map", "set": {"topic": "lower(name)"}},
    ]);
    let Outcome::Passed(outputs) = one(&steps, thermometer()) else {
        panic!("not passed")
    };
    assert_eq!(
        outputs[0].body,
        Body::Text("{\"room\": \"Kitchen\", \"t\": 23.45, \"x\": {\"y\": }}}}".to_owned())
    );
    assert_eq!(outputs[0].event["topic"], "kitchen");
    let failed = one(
        &json!([{"op": "template", "body": "{{pressure}}"}]),
        thermometer(),
    );
    assert_eq!(
        failed,
        Outcome::Failed {
            step: 0,
            problem: "`pressure` is null".to_owned()
        }
    );
    let topic = Template::compile("hubs/{{hubUuid}}/{{anything.at.all}}").expect("a template");
    assert_eq!(
        topic.render(&thermometer()),
        Err("`anything.at.all` is null".to_owned())
    );
    for (body, wanted) in [
        ("a\n{{ name", "/0/body: line 2: `{{` has no `}}`"),
        ("{{}}", "/0/body: line 1: `{{}}`: must not be empty"),
        (
            "{{nam}}",
            "/0/body: line 1: `{{nam}}`: column 1: there is no member or quantity `nam`; is `name` meant?",
        ),
    ] {
        assert_eq!(refused(&json!([{"op": "template", "body": body}])), wanted);
    }
    let program = super::program(&json!([{"op": "map", "set": {"room": "'x'"}}]));
    assert!(
        program.template("rooms/{{room}}").is_ok() && program.template("rooms/{{roam}}").is_err()
    );
}

#[test]
fn events_are_bounded() {
    let steps = json!([{"op": "map", "set": {"copy": "big"}}]);
    assert!(refused(&steps).contains("`big`"));
    let made = |steps: Value, bytes: usize| {
        let mut event: Event = thermometer();
        event.insert("name".to_owned(), "a".repeat(bytes).into());
        one(&steps, event)
    };
    let copies = json!([{"op": "map", "set": {"copy": "name"}}, {"op": "map", "set": {"second": "name", "third": "copy"}}]);
    assert!(matches!(made(copies.clone(), 1000), Outcome::Passed(_)));
    let problem = "the event has more than 256 KiB".to_owned();
    assert_eq!(
        made(copies, MAX_EVENT_BYTES * 2 / 5),
        Outcome::Failed { step: 1, problem }
    );
    let wrap = json!({"op": "map", "set": {"a.b.c.d.e.f.g.h": "coalesce(a, manufacturerData)"}});
    let wraps = Value::Array(vec![
        json!({"op": "map", "set": {"a": "null"}}),
        wrap.clone(),
        wrap.clone(),
        wrap.clone(),
        wrap.clone(),
        wrap,
    ]);
    let problem = "the event is nested more than 32 deep".to_owned();
    assert_eq!(
        one(&wraps, thermometer()),
        Outcome::Failed { step: 5, problem }
    );
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let many: Vec<Value> = (0..33)
        .map(|_| json!({"op": "dedupe", "seconds": 1}))
        .collect();
    let fields: serde_json::Map<String, Value> =
        (0..65).map(|n| (format!("f{n}"), json!("1"))).collect();
    for (steps, wanted) in [
        (json!({}), ": must be a list of steps"),
        (Value::Array(many), ": must have 32 steps or fewer"),
        (json!([1]), "/0: must be an object"),
        (json!([{}]), "/0/op: is required"),
        (
            json!([{"op": "fitler"}]),
            "/0/op: there is no step `fitler`; is `filter` meant?",
        ),
        (json!([{"op": "filter"}]), "/0/when: is required"),
        (
            json!([{"op": "filter", "when": 1}]),
            "/0/when: must be a text",
        ),
        (
            json!([{"op": "filter", "when": " "}]),
            "/0/when: must not be empty",
        ),
        (
            json!([{"op": "filter", "when": "rssi"}]),
            "/0/when: must be true or false, and is a number",
        ),
        (
            json!([{"op": "filter", "when": "true", "a/b": 1}]),
            "/0/a~1b: `filter` has no such member, only when",
        ),
        (
            json!([{"op": "map", "set": {}}]),
            "/0/set: must not be empty",
        ),
        (
            json!([{"op": "map", "set": fields}]),
            "/0/set: must have 64 items or fewer",
        ),
        (
            json!([{"op": "map", "set": {"a": "1 +"}}]),
            "/0/set/a: column 4: something is missing at the end",
        ),
        (
            json!([{"op": "map", "set": {"a": [1]}}]),
            "/0/set/a: must be an expression",
        ),
        (
            json!([{"op": "map", "set": {"a b": "1"}}]),
            "/0/set/a b: column 3: an operator, or the end, is missing here",
        ),
        (
            json!([{"op": "map", "set": {"a[0]": "1"}}]),
            "/0/set/a[0]: nothing can be put to a place in a list",
        ),
        (
            json!([{"op": "rename", "fields": {"name": "x", "rssi": "x"}}]),
            "/0/fields/rssi: another one is renamed to the same",
        ),
        (
            json!([{"op": "drop", "fields": "name"}]),
            "/0/fields: must be a list of paths",
        ),
        (
            json!([{"op": "drop", "fields": ["1"]}]),
            "/0/fields/0: must be a path",
        ),
        (
            json!([{"op": "scale", "quantity": "temperature"}]),
            "/0/factor: is required, or `offset` is",
        ),
        (
            json!([{"op": "scale", "quantity": "temperatur", "factor": 1}]),
            "/0/quantity: there is no quantity `temperatur`",
        ),
        (
            json!([{"op": "convert", "quantity": "temperature", "unit": "lx"}]),
            "/0/unit: `temperature` is converted to one of Cel, K, degF",
        ),
        (
            json!([{"op": "convert", "quantity": "door", "unit": "lx"}]),
            "/0/quantity: `door` has no unit",
        ),
        (
            json!([{"op": "sample", "everySeconds": 0, "by": "DEVICE"}]),
            "/0/everySeconds: must be from 0.001 to 2678400",
        ),
        (
            json!([{"op": "sample", "everySeconds": 1}]),
            "/0/by: is required",
        ),
        (
            json!([{"op": "sample", "everySeconds": 1, "by": "ROOM"}]),
            "/0/by: must be DEVICE or HUB",
        ),
        (
            json!([{"op": "on_change", "quantity": "door", "delta": -1}]),
            "/0/delta: must be 0 or more",
        ),
        (
            json!([{"op": "on_change", "quantity": "door"}]),
            "/0/delta: is required",
        ),
        (
            json!([{"op": "dedupe", "seconds": "1"}]),
            "/0/seconds: must be a number",
        ),
        (
            json!([{"op": "dedupe", "seconds": 1e9}]),
            "/0/seconds: must be from 0.001 to 86400",
        ),
        (
            json!([{"op": "script", "source": ""}]),
            "/0/source: must not be empty",
        ),
    ] {
        let problem = refused(&steps);
        assert!(problem.starts_with(wanted), "{steps}: {problem}");
    }
}

#[test]
fn later_steps_know_what_earlier_ones_made() {
    for steps in [
        json!([{"op": "map", "set": {"room": "'a'"}}, {"op": "filter", "when": "room == 'a'"}]),
        json!([{"op": "map", "set": {"temperature": "'warm'"}}, {"op": "filter", "when": "temperature == 'warm'"}]),
        json!([{"op": "map", "set": {"values.comfort": "1"}}, {"op": "on_change", "quantity": "comfort", "delta": 1}]),
        json!([{"op": "rename", "fields": {"name": "label"}}, {"op": "filter", "when": "has(label)"}]),
        json!([{"op": "script", "source": "x"}, {"op": "filter", "when": "whatever.there > 1"}]),
    ] {
        super::program(&steps);
    }
    let steps =
        json!([{"op": "filter", "when": "room == 'a'"}, {"op": "map", "set": {"room": "'a'"}}]);
    assert!(refused(&steps).starts_with("/0/when: "));
    assert!(matches!(
        one(&json!([{"op": "script", "source": "x"}]), event(json!({}))),
        Outcome::Failed { step: 0, .. }
    ));
}

#[test]
fn what_is_too_large_together_waits() {
    let steps = json!([
        {"op": "sample", "everySeconds": 1, "by": "DEVICE"},
        {"op": "map", "set": {"big": format!("replace('{}', 'x', '{}')", "x".repeat(700), "y".repeat(90))}},
        {"op": "map", "set": {"b": "big", "c": "big", "d": "big"}},
        {"op": "drop", "fields": ["big", "b", "c", "d"]},
    ]);
    let program = super::program(&steps);
    let inputs: Vec<_> = (0..400)
        .map(|at| super::input(thermometer(), f64::from(at) / 1000.0, i64::from(at)))
        .collect();
    let mut state = program.new_state();
    let outcomes = super::run(&program, &mut state, inputs.clone());
    let run = outcomes
        .iter()
        .take_while(|outcome| matches!(outcome, Outcome::Passed(_)))
        .count();
    assert!((100..400).contains(&run), "{run}");
    assert!(
        outcomes
            .iter()
            .skip(run)
            .all(|outcome| matches!(outcome, Outcome::NotRun { .. }))
    );
    let mut wanted = program.new_state();
    super::run(&program, &mut wanted, inputs[..run].to_vec());
    assert_eq!(state.to_bytes(), wanted.to_bytes());
    let rest = super::run(&program, &mut state, inputs[run..].to_vec());
    assert!(
        rest.iter()
            .all(|outcome| matches!(outcome, Outcome::Passed(_) | Outcome::NotRun { .. }))
    );
    assert!(matches!(rest[0], Outcome::Passed(_)));
}
