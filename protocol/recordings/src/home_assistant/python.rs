//! Bytes in JSON, as Home Assistant writes them: hexadecimal digits, or what Python shows of them,
//! such as `b'\x01a'`.

/// Reads hexadecimal digits.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    hex::decode(text).ok()
}

/// Reads a literal of bytes as Python's `repr` writes it.
pub fn from_repr(text: &str) -> Option<Vec<u8>> {
    let text = text
        .strip_prefix("bytearray(")
        .and_then(|text| text.strip_suffix(')'))
        .unwrap_or(text);
    let quoted = text.strip_prefix('b')?;
    let quote = quoted
        .chars()
        .next()
        .filter(|quote| matches!(quote, '\'' | '"'))?;
    let inner = quoted.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut chars = inner.chars();
    let mut bytes = Vec::with_capacity(inner.len());
    while let Some(char) = chars.next() {
        let byte = match char {
            '\\' => match chars.next()? {
                'x' => {
                    let high = chars.next()?.to_digit(16)?;
                    let low = chars.next()?.to_digit(16)?;
                    u8::try_from(high << 4 | low).ok()?
                }
                't' => b'\t',
                'n' => b'\n',
                'r' => b'\r',
                char @ ('\\' | '\'' | '"') => u8::try_from(char).ok()?,
                _ => return None,
            },
            char if char.is_ascii() && char != quote => u8::try_from(char).ok()?,
            _ => return None,
        };
        bytes.push(byte);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read() {
        for (literal, bytes) in [
            ("b''", ""),
            (r"b'\x01'", "01"),
            (r"b'\xd1\xfb;t\xc8\x90'", "d1fb3b74c890"),
            (r#"b"it's\t\\""#, "697427730 95c"),
            (r"b'\n\r\'\x00a'", "0a0d270061"),
            (r"bytearray(b'\xff')", "ff"),
        ] {
            let expected = hex::decode(bytes.replace(' ', "")).unwrap();
            assert_eq!(from_repr(literal), Some(expected), "{literal}");
        }
        for literal in [
            "", "b", "b'", "'01'", r"b'\x1'", r"b'\q'", "b'é'", "b'''", r"b'\'", "b'a\"",
        ] {
            assert_eq!(from_repr(literal), None, "{literal}");
        }
    }
}
