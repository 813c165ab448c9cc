//! Limits of JSON that is stored, or passed on, as it was sent.

use serde_json::value::RawValue;

/// The deepest accepted nesting. Readers with a recursion limit must be able to parse it.
pub const MAX_DEPTH: usize = 64;

/// The nesting depth of the JSON. The text must be valid JSON.
pub fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The text of a JSON object that another system sent; None if it is none, or nested too deep.
pub fn object(bytes: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let fits = text.starts_with('{') && depth(text) <= MAX_DEPTH;
    fits.then(|| serde_json::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    #[test]
    fn object_is_kept_to_the_letter() {
        let text = r#"{"cents": 12345678901234567890.10, "a": {}}"#;
        let kept = super::object(format!(" {text}\n").as_bytes()).expect("an object");
        assert_eq!(kept.get(), text);
        let deep = format!("{}{}", "{\"a\":".repeat(65), "1");
        for text in [
            "",
            "[]",
            "1",
            "{",
            "{} {}",
            "{'a': 1}",
            "<p>",
            &format!("{deep}{}", "}".repeat(65)),
        ] {
            assert!(super::object(text.as_bytes()).is_none(), "{text}");
        }
        assert!(super::object(b"{\"a\": \"\xff\"}").is_none());
    }

    #[test]
    fn depth_ignores_strings() {
        for (json, expected) in [
            ("1", 0),
            ("{}", 1),
            ("[[],[[]]]", 3),
            (r#"{"a":"[[[{"}"#, 1),
            (r#"["\"[[",{"b":[]}]"#, 3),
        ] {
            assert_eq!(super::depth(json), expected, "{json}");
        }
    }
}
