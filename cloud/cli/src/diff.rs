//! The differences between two JSON documents, a line for each value.

use serde_json::Value;

use crate::text::printable;

/// Lines such as `~ /steps/0/when: "a" -> "b"`; none if the documents are equal.
pub fn lines(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", before, after, &mut found);
    found
}

fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let path = format!("{path}/{name}");
                part(&path, old.get(name), new.get(name), found);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for at in 0..old.len().max(new.len()) {
                part(&format!("{path}/{at}"), old.get(at), new.get(at), found);
            }
        }
        (before, after) if before == after => {}
        (before, after) => found.push(format!(
            "~ {}: {} -> {}",
            shown(path),
            text(before),
            text(after)
        )),
    }
}

fn part(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<String>) {
    match (before, after) {
        (Some(before), Some(after)) => compare(path, before, after, found),
        (Some(before), None) => found.push(format!("- {}: {}", shown(path), text(before))),
        (None, Some(after)) => found.push(format!("+ {}: {}", shown(path), text(after))),
        (None, None) => {}
    }
}

fn shown(path: &str) -> String {
    printable(if path.is_empty() { "/" } else { path })
}

fn text(value: &Value) -> String {
    printable(&value.to_string())
}

/// The same document with its members sorted by name, and without those that are null: absent and
/// null mean the same in a definition.
pub fn canonical(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name, canonical(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(canonical).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_difference_is_a_line() {
        let before = json!({"a": 1, "b": [1, 2], "c": {"d": "x"}, "e": null});
        let after = json!({"a": 1, "b": [1, 3, 4], "c": {"d": "y"}, "f": true});
        let expected = [
            "~ /b/1: 2 -> 3",
            "+ /b/2: 4",
            "~ /c/d: \"x\" -> \"y\"",
            "- /e: null",
            "+ /f: true",
        ];
        assert_eq!(lines(&before, &after), expected);
        assert!(lines(&before, &before).is_empty());
    }

    #[test]
    fn order_and_null_make_no_difference() {
        let a = canonical(json!({"b": 1, "a": {"d": null, "c": [null]}}));
        assert_eq!(a.to_string(), r#"{"a":{"c":[null]},"b":1}"#);
    }
}
