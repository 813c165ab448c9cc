//! Escapes text from devices, services and files, so that it cannot control the terminal.

/// The text with control, direction and invisible characters escaped.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_harmless(c) {
            true => shown.push(c),
            false => shown.extend(c.escape_unicode()),
        }
    }
    shown
}

/// Control characters control the terminal; the others reverse the direction of text, or are
/// invisible.
fn is_harmless(c: char) -> bool {
    let is_hidden = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !is_hidden
}

/// The same JSON, with these characters escaped. They occur in strings only.
pub fn harmless_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_harmless(c) || c == '\n' {
            true => shown.push(c),
            false => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| shown.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn names_from_the_field_do_not_drive_the_terminal() {
        let hostile = "a\x1b]0;owned\x07\u{9b}31m\u{202e}b\r\n\u{7f}\u{e0041}é 日本";
        let shown = printable(hostile);
        assert!(
            !shown.chars().any(char::is_control) && !shown.contains('\u{202e}'),
            "{shown}"
        );
        assert!(shown.ends_with("é 日本"), "{shown}");
        let json = harmless_json(&Value::from(hostile).to_string());
        assert!(
            !json.chars().any(char::is_control) && !json.contains('\u{202e}'),
            "{json}"
        );
        assert_eq!(
            serde_json::from_str::<Value>(&json).expect("JSON"),
            Value::from(hostile)
        );
    }
}
