//! Text from outside.

/// The text on one line, without control characters, cut to so many characters.
pub(crate) fn line(text: &str, max_chars: usize) -> String {
    let shown = text.chars().filter(|character| !character.is_control());
    shown.take(max_chars).collect()
}

/// What is wrong with a text that is to be kept as it is.
pub(crate) fn fault(text: &str, max_chars: usize) -> Option<String> {
    if text.chars().any(char::is_control) {
        return Some("contains a control character".to_owned());
    }
    // No text has more characters than bytes.
    let is_long = text.len() > max_chars && text.chars().count() > max_chars;
    is_long.then(|| format!("longer than {max_chars} characters"))
}
