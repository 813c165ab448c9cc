//! Text that either database stores. PostgreSQL has no text with the character NUL (U+0000), which
//! JSON and the names of devices may have: U+FFFD stands for it, on SQLite too, so that what is
//! stored can be moved. Requests with such text are refused where they are checked; this is for
//! text from elsewhere, which must not make a transaction fail each time it is tried.

use std::sync::Arc;

use serde_json::Value;

const REPLACEMENT: &str = "\u{fffd}";

pub fn text(text: String) -> String {
    match text.contains('\0') {
        true => text.replace('\0', REPLACEMENT),
        false => text,
    }
}

pub fn make(text: &mut Arc<str>) {
    if text.contains('\0') {
        *text = text.replace('\0', REPLACEMENT).into();
    }
}

pub fn json(value: Value) -> Value {
    match value {
        Value::String(string) => Value::String(text(string)),
        Value::Array(items) => Value::Array(items.into_iter().map(json).collect()),
        Value::Object(members) => {
            let member = |(name, value)| (text(name), json(value));
            Value::Object(members.into_iter().map(member).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_character_that_cannot_be_stored_is_replaced() {
        assert_eq!(super::text("a\0b\0".to_owned()), "a\u{fffd}b\u{fffd}");
        let mut given = "\0".into();
        super::make(&mut given);
        assert_eq!(&*given, "\u{fffd}");
        let given = json!({"a\0": ["\0", {"b": "c\0"}], "d": [1, null, true]});
        let stored = json!({"a\u{fffd}": ["\u{fffd}", {"b": "c\u{fffd}"}], "d": [1, null, true]});
        assert_eq!(super::json(given), stored);
    }
}
