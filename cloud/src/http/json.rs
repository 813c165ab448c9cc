//! Limits of JSON that is stored as it was sent.

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

#[cfg(test)]
mod tests {
    #[test]
    fn depth_ignores_strings() {
        for (json, expected) in
            [("1", 0), ("{}", 1), ("[[],[[]]]", 3), (r#"{"a":"[[[{"}"#, 1), (r#"["\"[[",{"b":[]}]"#, 3)]
        {
            assert_eq!(super::depth(json), expected, "{json}");
        }
    }
}
