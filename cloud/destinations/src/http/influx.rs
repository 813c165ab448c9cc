//! The line protocol of InfluxDB: a line such as
//! `ble,device=7,hub=... temperature=21.5,motion=true 1700000000000000000` for each event.

use chrono::DateTime;
use serde_json::{Map, Value};

const MEASUREMENT: &str = "ble";
/// Members of an event that become tags, by the tag's name.
const TAGS: [(&str, &str); 4] = [
    ("address", "address"),
    ("device", "deviceInstanceId"),
    ("hub", "hubUuid"),
    ("model", "deviceUuid"),
];

/// Appends a line; none for an event without values.
pub fn write(event: &Map<String, Value>, lines: &mut String) {
    let mut fields = Vec::new();
    for measurement in event
        .get("measurements")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some(quantity) = measurement.get("quantity").and_then(Value::as_str) else {
            continue;
        };
        let key = match measurement.get("index").and_then(Value::as_u64) {
            Some(index) => format!("{quantity}_{index}"),
            None => quantity.to_owned(),
        };
        // Numbers are always floats: a field has one type for good.
        let value = match measurement.get("value") {
            Some(Value::Number(number)) => number
                .as_f64()
                .filter(|number| number.is_finite())
                .map(|n| n.to_string()),
            Some(Value::Bool(flag)) => Some(flag.to_string()),
            Some(Value::String(text)) => Some(quoted(text)),
            _ => None,
        };
        if let Some(value) = value.filter(|_| !key.is_empty()) {
            fields.push(format!("{}={value}", escaped(&key)));
        }
    }
    if fields.is_empty() {
        return;
    }
    if !lines.is_empty() {
        lines.push('\n');
    }
    lines.push_str(MEASUREMENT);
    for (tag, member) in TAGS {
        let value = match event.get(member) {
            Some(Value::String(text)) => escaped(text),
            Some(Value::Number(number)) => number.to_string(),
            _ => continue,
        };
        // A tag without a value is a mistake of the line.
        if !value.is_empty() {
            lines.push_str(&format!(",{tag}={value}"));
        }
    }
    lines.push(' ');
    lines.push_str(&fields.join(","));
    if let Some(nanos) = time(event) {
        lines.push_str(&format!(" {nanos}"));
    }
}

fn time(event: &Map<String, Value>) -> Option<i64> {
    let text = event
        .get("observedAt")
        .or_else(|| event.get("receivedAt"))?
        .as_str()?;
    DateTime::parse_from_rfc3339(text)
        .ok()?
        .timestamp_nanos_opt()
}

/// Escapes a tag, or the key of a field. A line break or a final backslash cannot be escaped.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ',' | '=' | ' ' => escaped.extend(['\\', c]),
            '\\' => escaped.push('/'),
            c if c.is_control() => escaped.push_str("\\ "),
            c => escaped.push(c),
        }
    }
    escaped
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(events: &[Value]) -> String {
        let mut lines = String::new();
        for event in events {
            write(event.as_object().expect("an object"), &mut lines);
        }
        lines
    }

    #[test]
    fn event_becomes_a_line_with_its_values_escaped() {
        let event = json!({"observedAt": "2026-01-31T09:30:00.000001Z", "hubUuid": "h 1", "deviceInstanceId": 7,
            "address": "a,b=c", "measurements": [
                {"quantity": "temperature", "value": 21.5}, {"quantity": "co2", "value": 400},
                {"quantity": "motion", "value": true}, {"quantity": "button", "value": "a \"b\\c\n"},
                {"quantity": "temperature", "index": 2, "value": -3}]});
        let expected = "ble,address=a\\,b\\=c,device=7,hub=h\\ 1 temperature=21.5,co2=400,motion=true,\
                        button=\"a \\\"b\\\\c \",temperature_2=-3 1769851800000001000";
        assert_eq!(lines(&[event]), expected);
    }

    #[test]
    fn event_without_values_is_left_out() {
        let with = json!({"measurements": [{"quantity": "co2", "value": 1}]});
        let without = json!({"hubUuid": "h", "measurements": []});
        assert_eq!(
            lines(&[without.clone(), with.clone(), without.clone(), with]),
            "ble co2=1\nble co2=1"
        );
        assert_eq!(lines(&[without, json!({})]), "");
    }
}
