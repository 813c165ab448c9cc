use serde_json::{Value, json};

use super::super::expression::{Expression, Names, Work};
use super::{event, thermometer};

fn value(source: &str) -> Value {
    let expression = Expression::compile(source, &Names::default());
    let expression = expression.unwrap_or_else(|problem| panic!("{source}: {problem}"));
    expression
        .json(&thermometer(), &mut Work::default())
        .unwrap_or_else(|problem| panic!("{source}: {problem}"))
}

#[test]
fn expressions_give_what_they_say() {
    for (source, wanted) in [
        ("rssi", json!(-61)),
        ("temperature", json!(23.45)),
        ("values.temperature", json!(23.45)),
        ("values['temperature']", json!(23.45)),
        ("temperature_probe", json!(20)),
        ("temperature_probe[1]", json!(30)),
        ("values.temperature_probe[1]", json!(30)),
        ("values['temperature_probe[1]']", json!(30)),
        ("temperature_probe[2]", Value::Null),
        ("pressure", Value::Null),
        ("window.count", Value::Null),
        ("serviceUuids[1]", json!("fcd2")),
        ("serviceUuids[9]", Value::Null),
        ("measurements[1].value", json!(53.5)),
        ("manufacturerData['0499']", json!("BQ==")),
        ("hub.name", Value::Null),
        ("1 + 2 * 3 - 4 / 2", json!(5)),
        ("-2 - -3", json!(1)),
        ("7 % 4 + 0.5", json!(3.5)),
        ("0.1 + 0.2", json!(0.3)),
        ("temperature * 1.8 + 32", json!(74.21)),
        ("1 / 0", Value::Null),
        ("0 % 0", Value::Null),
        ("1e308 * 10", Value::Null),
        ("9007199254740991 + 0", json!(9_007_199_254_740_991_i64)),
        ("1 + pressure", Value::Null),
        ("temperature > 23 and has(humidity)", json!(true)),
        ("temperature > 25 || humidity >= 53.5", json!(true)),
        ("not (temperature > 25)", json!(true)),
        ("!(rssi < -70) && rssi != -60", json!(true)),
        ("pressure > 1", json!(false)),
        ("not (pressure > 1)", json!(true)),
        ("pressure != 1", json!(false)),
        ("pressure == null", json!(true)),
        ("null != temperature", json!(true)),
        ("has(pressure)", json!(false)),
        ("door", json!(true)),
        ("door == true and not (door == 'open')", json!(true)),
        ("'b' > 'a' and 'ä' == \"ä\"", json!(true)),
        ("'0499' in manufacturerData", json!(true)),
        ("'fcd2' in serviceUuids", json!(true)),
        ("rssi in [-60, -61]", json!(true)),
        ("'61' in [-61]", json!(false)),
        ("'itch' in name", json!(true)),
        ("pressure in [1]", json!(false)),
        ("[1, 'a', null]", json!([1, "a", null])),
        ("if(rssi > -70, 'near', 'far')", json!("near")),
        ("coalesce(pressure, co2, 5)", json!(5)),
        ("'a' + 'b'", json!("ab")),
        (
            "concat(name, ' ', temperature, ' ', pressure, true)",
            json!("Kitchen 23.45 true"),
        ),
        ("lower(name) + upper('é')", json!("kitchenÉ")),
        ("trim('  a ')", json!("a")),
        (
            "length('äö') + length(measurements) + length(manufacturerData) + length([1])",
            json!(9),
        ),
        (
            "contains(name, 'tch') and contains(serviceUuids, '180f') and contains([1], 1)",
            json!(true),
        ),
        (
            "startsWith(address, 'AA') and endsWith(address, 'FF')",
            json!(true),
        ),
        ("substring(address, 9)", json!("DD:EE:FF")),
        ("substring('äöü', 1, 1)", json!("ö")),
        ("substring('abc', -2)", json!("bc")),
        ("substring('abc', 5)", json!("")),
        ("replace(address, ':', '')", json!("AABBCCDDEEFF")),
        ("abs(rssi) + min(3, 1, 2) + max(3, 4)", json!(66)),
        ("round(temperature) + floor(1.9) + ceil(1.1)", json!(26)),
        ("round(temperature, 1)", json!(23.5)),
        ("round(1234, -2)", json!(1200)),
        ("clamp(120, 0, 100)", json!(100)),
        ("number('12.5') + number(true)", json!(13.5)),
        ("number('x')", Value::Null),
        ("number('inf')", Value::Null),
        (
            "string(rssi) + string(true) + string('x')",
            json!("-61truex"),
        ),
        (
            "json(name) + json(pressure) + json(serviceUuids)",
            json!("\"Kitchen\"null[\"180f\",\"fcd2\"]"),
        ),
        ("hour(observedAt)", json!(8)),
        ("weekday(observedAt)", json!(6)),
        ("seconds('1970-01-01T00:00:01.5Z')", json!(1.5)),
        ("hour('no time')", Value::Null),
        ("'it\\'s \\u00e4'", json!("it's ä")),
    ] {
        assert_eq!(value(source), wanted, "{source}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_column() {
    let deep = "(".repeat(70) + "1" + &")".repeat(70);
    let chain = vec!["1"; 70].join(" + ");
    for (source, wanted) in [
        ("", "must not be empty"),
        (
            "temprature > 25",
            "column 1: there is no member or quantity `temprature`; is `temperature` meant?",
        ),
        ("1 +", "column 4: something is missing at the end"),
        ("1 2", "column 3: an operator, or the end, is missing here"),
        ("(1", "column 3: `)` is missing here"),
        (
            "'a' * 2",
            "column 1: `*` needs a number, and this is a text",
        ),
        (
            "name * 2",
            "column 1: `*` needs a number, and this is a text",
        ),
        (
            "temperature + 'a'",
            "column 1: `+` cannot add a number and a text",
        ),
        (
            "temperature == 'a'",
            "column 1: `==` cannot compare a number with a text",
        ),
        (
            "true < false",
            "column 1: `<` cannot compare true or false with true or false",
        ),
        ("rssi = 1", "column 6: two values are compared with `==`"),
        (
            "1 < rssi < 2",
            "column 1: comparisons are joined with `and`",
        ),
        ("rssi < null", "column 1: nothing is less or more than null"),
        (
            "not 1",
            "column 5: `not` needs true or false, and this is a number",
        ),
        (
            "rssi and door",
            "column 1: `and` needs true or false, and this is a number",
        ),
        (
            "lowr(name)",
            "column 1: there is no function `lowr`; is `lower` meant?",
        ),
        (
            "lower()",
            "column 1: `lower` needs one argument, as in `lower(address)`",
        ),
        ("clamp(1, 2)", "column 1: `clamp` needs 3 arguments"),
        (
            "lower(rssi)",
            "column 7: `lower` needs a text, and this is a number",
        ),
        ("has(1)", "column 1: `has` needs one path"),
        (
            "if(rssi, 1, 2)",
            "column 4: the condition of `if` needs true or false",
        ),
        (
            "1 in 2",
            "column 6: the right of `in` needs a text or a list or an object",
        ),
        ("rssi.x", "column 1: `rssi` has no members"),
        ("temperature.x", "column 1: `temperature` has no members"),
        ("values", "column 1: `values` is followed by a quantity"),
        (
            "values.temprature",
            "column 1: there is no quantity `temprature`",
        ),
        ("'abc", "column 1: a text ends with '"),
        ("'\\x'", "column 1: a text has one of"),
        ("1x", "column 1: is not a number"),
        ("a[b]", "column 2: `[` is followed by"),
        ("a.", "column 2: a name is missing after `.`"),
        ("ä", "column 1: `ä` has no meaning here"),
        ("null + 1", "column 1: `+` cannot add null and a number"),
        (&deep, "nested more than 64 deep"),
        (&chain, "nested more than 64 deep"),
        (&"a".repeat(5000), "must have 4096 bytes or less"),
    ] {
        let problem = Expression::compile(source, &Names::default()).expect_err(source);
        assert!(problem.contains(wanted), "{source}: {problem}");
    }
    let problem =
        Expression::condition("temperature + 1", &Names::default()).expect_err("a number");
    assert_eq!(problem, "must be true or false, and is a number");
}

#[test]
fn what_is_known_at_run_time_alone_fails_then() {
    let strange = event(json!({"x": {"y": "text"}, "n": 5, "l": [1], "long": "a".repeat(40_000)}));
    for (source, wanted) in [
        (
            "n + x.y",
            "`n + x.y`: + cannot be done with a number and a text",
        ),
        ("-x.y", "`-x.y`: - needs a number, not a text"),
        ("x.y < 1", "< cannot compare a text with a number"),
        ("x == l", "== cannot compare an object with a list"),
        ("n and true", "and needs true or false, not a number"),
        ("lower(n)", "lower needs a text, not a number"),
        ("n in n", "in cannot look for a number in a number"),
        ("concat(l)", "concat needs texts"),
        ("long + long", "makes a text of more than 65536 bytes"),
        ("replace(long, 'a', long)", "too long for expressions"),
        (
            "lower(long) == upper(long) or lower(long) == upper(long)",
            "too long for expressions",
        ),
    ] {
        let expression = Expression::compile(source, &Names::open())
            .unwrap_or_else(|problem| panic!("{problem}"));
        let problem = expression
            .json(&strange, &mut Work::default())
            .expect_err(source);
        assert!(problem.contains(wanted), "{source}: {problem}");
    }
    let condition = Expression::condition("n", &Names::open()).expect("anything");
    assert_eq!(
        condition.holds(&strange, &mut Work::default()),
        Err("`n`: must be true or false, and is a number".to_owned())
    );
    assert_eq!(
        condition.holds(&event(json!({})), &mut Work::default()),
        Ok(false)
    );
}

#[test]
fn a_member_comes_before_a_quantity_of_its_name() {
    let both = event(
        json!({"window": {"count": 3}, "measurements": [{"quantity": "window", "value": true}]}),
    );
    let value = |source: &str| {
        Expression::compile(source, &Names::default())
            .unwrap()
            .json(&both, &mut Work::default())
            .unwrap()
    };
    assert_eq!(value("window.count"), json!(3));
    assert_eq!(value("values.window"), json!(true));
}
