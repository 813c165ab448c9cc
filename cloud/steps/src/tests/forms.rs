use serde_json::{Value, json};

use super::super::graph::{GraphProblem, from_graph, to_graph};
use super::super::text::from_text;
use super::FORMS;

fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({"id": id, "type": kind, "config": config})
}

fn edges(pairs: &[(&str, &str)]) -> Value {
    pairs
        .iter()
        .map(|(from, to)| json!({"from": from, "to": to}))
        .collect()
}

fn http() -> Value {
    json!({"kind": "HTTP", "url": "https://example.com/hook"})
}

fn graph(middle: &[Value], pairs: &[(&str, &str)]) -> Value {
    let mut nodes = vec![
        node("d", "destination", http()),
        node("s", "source", json!({"known": true})),
    ];
    nodes.extend_from_slice(middle);
    json!({"name": "Drawn", "nodes": nodes, "edges": edges(pairs)})
}

#[test]
fn a_graph_becomes_a_pipeline_and_back() {
    let filter = node("f", "filter", json!({"when": "temperature > 25"}));
    let sample = node("m", "sample", json!({"everySeconds": 60, "by": "DEVICE"}));
    let drawn = graph(&[sample, filter], &[("f", "m"), ("s", "f"), ("m", "d")]);
    let (pipeline, warnings) = from_graph(&drawn, &FORMS).expect("a pipeline");
    assert_eq!(warnings, []);
    let wanted = json!({
        "name": "Drawn", "source": {"known": true}, "destination": http(),
        "steps": [{"op": "filter", "when": "temperature > 25"}, {"op": "sample", "everySeconds": 60, "by": "DEVICE"}],
    });
    assert_eq!(pipeline, wanted);
    let again = to_graph(&pipeline);
    assert_eq!(
        again["nodes"][1],
        json!({"id": "step-1", "type": "filter", "config": {"when": "temperature > 25"}})
    );
    assert_eq!(
        from_graph(&again, &FORMS).expect("a pipeline"),
        (wanted, Vec::new())
    );
}

#[test]
fn what_is_no_chain_is_refused_with_its_node() {
    let step = |id: &str| node(id, "dedupe", json!({"seconds": 1}));
    let all = [("s", "a"), ("a", "d")];
    for (drawn, wanted_id, wanted) in [
        (
            json!([]),
            None,
            "must be an object with `nodes` and `edges`",
        ),
        (
            json!({"nodes": 1, "edges": []}),
            None,
            "`nodes` must be a list",
        ),
        (
            json!({"nodes": [], "edges": []}),
            None,
            "there is no node of type `source`",
        ),
        (
            json!({"nodes": [], "edges": [], "colour": 1}),
            None,
            "a graph has no member `colour`",
        ),
        (graph(&[], &[]), Some("s"), "leads nowhere"),
        (
            graph(&[step("a")], &[("s", "d")]),
            Some("a"),
            "is not reached from the source",
        ),
        (
            graph(&[step("a")], &[("s", "a")]),
            Some("a"),
            "leads nowhere",
        ),
        (
            graph(
                &[step("a"), step("b")],
                &[("s", "a"), ("s", "b"), ("a", "d")],
            ),
            Some("s"),
            "forks",
        ),
        (
            graph(
                &[step("a"), step("b")],
                &[("s", "a"), ("b", "a"), ("a", "d")],
            ),
            Some("a"),
            "is a join",
        ),
        (
            graph(
                &[step("a"), step("b")],
                &[("s", "d"), ("a", "b"), ("b", "a")],
            ),
            Some("a"),
            "is part of a cycle",
        ),
        (
            graph(&[step("a")], &[("s", "a"), ("a", "a")]),
            Some("a"),
            "leads to itself",
        ),
        (
            graph(&[step("a")], &[("s", "a"), ("a", "s")]),
            Some("s"),
            "nothing leads to the source",
        ),
        (
            graph(&[step("a")], &[("s", "d"), ("d", "a")]),
            Some("d"),
            "nothing follows the destination",
        ),
        (
            graph(&[step("a")], &[("s", "x")]),
            None,
            "`edges[0].to`: there is no node `x`",
        ),
        (
            graph(&[step("a"), step("a")], &all),
            Some("a"),
            "another node has the same id",
        ),
        (
            graph(&[node("a", "source", json!({}))], &all),
            Some("a"),
            "there is another node of type `source`",
        ),
        (
            graph(&[node("a", "filtr", json!({}))], &all),
            Some("a"),
            "there is no type `filtr`; is `filter` meant?",
        ),
        (
            graph(&[node("a", "filter", json!([]))], &all),
            Some("a"),
            "`config` must be an object",
        ),
        (
            graph(&[node("a", "filter", json!({"op": "drop"}))], &all),
            Some("a"),
            "`config` has no `op`",
        ),
        (
            graph(&[node("a", "filter", json!({"when": "1"}))], &all),
            Some("a"),
            "/when: must be true or false",
        ),
        (
            graph(&[json!({"id": "", "type": "drop"})], &all),
            None,
            "`nodes[2].id` must be a text",
        ),
        (
            json!({"nodes": [node("s", "source", json!({})), node("d", "destination", json!({}))], "edges": edges(&[("s", "d")])}),
            Some("d"),
            "/kind: must be one of HTTP, MQTT, NATS, S3",
        ),
    ] {
        let GraphProblem { node_id, message } = from_graph(&drawn, &FORMS).expect_err(wanted);
        assert_eq!(node_id.as_deref(), wanted_id, "{message}");
        assert!(message.starts_with(wanted), "{message}");
    }
}

#[test]
fn a_text_becomes_a_pipeline() {
    let text = "
# Everything that a line can say
name Warm rooms
description For the kitchen
disabled
from hub 0194e0a8-0000-7000-8000-000000000001, 0194e0a8-0000-7000-8000-000000000002
from device 7, 8
from model 0194e0a8-0000-7000-8000-000000000003
from quantity temperature
from known devices
start now
dedupe 10s
filter temperature > 25 and name != '; # x'
map place.room = lower(name); limit = if(rssi > -70, 1, 2)
rename name to label, rssi to 'x'
";
    let problem = from_text(text, &FORMS).expect_err("a text is no path");
    assert_eq!(
        (problem.line, problem.message.as_str()),
        (
            Some(15),
            "must be a path such as `rssi` or `values.temperature`"
        )
    );
    let text = text.replace("'x'", "signal")
        + "
drop address, manufacturerData['0499']
scale humidity by 0.1 plus -1
convert temperature to degF
sample every 1.5m by device
on_change temperature 0.5 max 10m
{\"op\": \"on_change\", \"quantity\": \"door\", \"delta\": 0}
script <<END
function process(event) {
  return event;
}
END
template <<.
{{label}}
  {{ temperature }}
.
mqtt mqtts://broker.example.com topic sensors/{{ label }}/t qos 1 retain discovery
auth {\"username\": \"hub\", \"password\": \"secret\"}
batch 100
wait 250ms
ordered
concurrency 4
timeout 10s
";
    let (pipeline, warnings) =
        from_text(&text, &FORMS).unwrap_or_else(|problem| panic!("{problem:?}"));
    let wanted = json!({
        "name": "Warm rooms", "description": "For the kitchen", "enabled": false,
        "source": {
            "hubUuids": ["0194e0a8-0000-7000-8000-000000000001", "0194e0a8-0000-7000-8000-000000000002"],
            "deviceInstanceIds": [7, 8], "deviceUuids": ["0194e0a8-0000-7000-8000-000000000003"],
            "quantities": ["temperature"], "known": true, "startAt": "NOW",
        },
        "steps": [
            {"op": "dedupe", "seconds": 10},
            {"op": "filter", "when": "temperature > 25 and name != '; # x'"},
            {"op": "map", "set": {"place.room": "lower(name)", "limit": "if(rssi > -70, 1, 2)"}},
            {"op": "rename", "fields": {"name": "label", "rssi": "signal"}},
            {"op": "drop", "fields": ["address", "manufacturerData['0499']"]},
            {"op": "scale", "quantity": "humidity", "factor": 0.1, "offset": -1},
            {"op": "convert", "quantity": "temperature", "unit": "degF"},
            {"op": "sample", "everySeconds": 90, "by": "DEVICE"},
            {"op": "on_change", "quantity": "temperature", "delta": 0.5, "maxSeconds": 600},
            {"op": "on_change", "quantity": "door", "delta": 0},
            {"op": "script", "source": "function process(event) {\n  return event;\n}"},
            {"op": "template", "body": "{{label}}\n  {{ temperature }}"},
        ],
        "destination": {
            "kind": "MQTT", "url": "mqtts://broker.example.com", "topic": "sensors/{{ label }}/t", "qos": 1, "retain": true,
            "homeAssistantDiscovery": true, "auth": {"username": "hub", "password": "secret"},
        },
        "delivery": {"batchEvents": 100, "batchMillis": 250, "ordered": true, "concurrency": 4, "timeoutSeconds": 10},
    });
    assert_eq!((pipeline, warnings), (wanted, Vec::new()));
    let (pipeline, warnings) = from_text(
        "http https://example.com influx_line\nheader X-Room: 1",
        &FORMS,
    )
    .expect("a pipeline");
    let wanted = json!({"kind": "HTTP", "url": "https://example.com", "format": "INFLUX_LINE", "headers": {"X-Room": "1"}});
    assert_eq!(pipeline["destination"], wanted);
    assert_eq!(
        warnings[0].message,
        "the pipeline has no name, and is called `Pipeline`"
    );
    let (pipeline, _) = from_text("s3 s3://bucket/prefix every 5m", &FORMS).expect("a pipeline");
    assert_eq!(
        pipeline["destination"],
        json!({"kind": "S3", "url": "s3://bucket/prefix", "everySeconds": 300})
    );
    let (pipeline, _) =
        from_text("nats nats://n.example.com subject a.{{address}}", &FORMS).expect("a pipeline");
    assert_eq!(pipeline["destination"]["subject"], "a.{{address}}");
}

#[test]
fn what_a_line_gets_wrong_is_told_with_its_number() {
    for (text, line, wanted) in [
        ("", None, "has no destination"),
        (
            "filtr x",
            Some(1),
            "there is no line `filtr`; is `filter` meant?",
        ),
        (
            "\n\nfilter temprature > 2",
            Some(3),
            "column 1: there is no member or quantity `temprature`",
        ),
        ("name", Some(1), "something is missing"),
        ("name a\nname b", Some(2), "`name` is there twice"),
        ("disabled yes", Some(1), "`yes` is not expected here"),
        ("from nowhere", Some(1), "`from hub UUID`"),
        ("from hub", Some(1), "`from hub UUID`"),
        ("from device x", Some(1), "`x` is not a whole number"),
        ("map a", Some(1), "`map PATH = EXPRESSION` is meant"),
        ("map a = 1; a = 2", Some(1), "`a` is there twice"),
        ("rename a", Some(1), "`rename PATH to PATH` is meant"),
        ("scale temperature 2", Some(1), "`scale QUANTITY by FACTOR`"),
        (
            "convert temperature degF",
            Some(1),
            "`convert QUANTITY to UNIT` is meant",
        ),
        ("sample 60s", Some(1), "`sample every TIME by device`"),
        (
            "sample every soon by hub",
            Some(1),
            "`soon` is not a duration",
        ),
        (
            "on_change temperature",
            Some(1),
            "`on_change QUANTITY DELTA`",
        ),
        ("dedupe", Some(1), "`dedupe TIME` is meant"),
        ("script <<END\nx", Some(1), "has no line `END` at its end"),
        ("script <<", Some(1), "a word is missing after `<<`"),
        ("{\"op\"", Some(1), "is not JSON"),
        (
            "{\"op\": \"none\"}\nhttp https://x",
            Some(1),
            "there is no step `none`",
        ),
        ("http", Some(1), "the URL is missing"),
        (
            "http https://x\nhttp https://y",
            Some(2),
            "a pipeline has one destination",
        ),
        (
            "http https://x fast",
            Some(1),
            "`http` has no option `fast`",
        ),
        (
            "http https://x\ndedupe 1s",
            Some(2),
            "steps come before the destination",
        ),
        ("mqtt mqtts://x", Some(1), "`topic` is missing"),
        (
            "mqtt mqtts://x topic",
            Some(1),
            "something is missing after `topic`",
        ),
        (
            "header a: b",
            Some(1),
            "the line of the destination comes first",
        ),
        (
            "http https://x\nheader a",
            Some(2),
            "`header NAME: VALUE` is meant",
        ),
    ] {
        let problem = from_text(text, &FORMS).expect_err(text);
        assert_eq!(problem.line, line, "{text}: {}", problem.message);
        assert!(
            problem.message.starts_with(wanted),
            "{text}: {}",
            problem.message
        );
    }
}

#[test]
fn what_is_probably_not_meant_is_told() {
    let warnings = |text: &str| -> Vec<String> {
        let (_, warnings) = from_text(&format!("name x\n{text}"), &FORMS)
            .unwrap_or_else(|problem| panic!("{text}: {problem:?}"));
        warnings
            .into_iter()
            .map(|warning| warning.message)
            .collect()
    };
    let url = "http https://example.com";
    assert_eq!(
        warnings(&format!("filter 1 < 2\n{url}")),
        ["line 2: is always true: the filter lets every event pass"]
    );
    assert_eq!(
        warnings(&format!("filter null == 1\n{url}")),
        ["line 2: is never true: the filter drops every event"]
    );
    let found = warnings(&format!("on_change temperature 1\ndedupe 5s\n{url}"));
    assert_eq!(
        found,
        [
            "line 3: comes after `on_change`, which lets few further receptions pass: put `dedupe` before it"
        ]
    );
    assert_eq!(
        warnings(&format!("dedupe 5s\nsample every 1m by device\n{url}")),
        [""; 0]
    );
    let found = warnings(&format!(
        "template {{{{rssi}}}}\nmap a = 1\nfilter rssi > 1\n{url} template"
    ));
    assert_eq!(
        found,
        ["line 3: changes the event, and not the text that the template in step 1 has made"]
    );
    assert_eq!(
        warnings(&format!("{url} template")),
        ["line 2: the format is TEMPLATE, and there is no `template` step"]
    );
    let drawn = json!({
        "name": "x",
        "nodes": [node("s", "source", json!({})), node("f", "filter", json!({"when": "true"})), node("d", "destination", http())],
        "edges": edges(&[("s", "f"), ("f", "d")]),
    });
    let (_, found) = from_graph(&drawn, &FORMS).expect("a pipeline");
    assert_eq!(found[0].node_id.as_deref(), Some("f"));
}
