//! The words of an expression.

/// A word and the byte at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    pub at: usize,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Number(f64),
    Text(String),
    Name(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// Longer ones first.
const SIGNS: [&str; 22] = [
    "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "!", "(", ")", "[", "]",
    ",", ".", "{", "}",
];

/// The words of a source. The error is the byte offset and the message.
pub fn words(source: &str) -> Result<Vec<Word>, (usize, String)> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = source.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = source.get(at..).unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (what, length) = match first {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '\'' | '"' => text(rest, first).map_err(|problem| (at, problem))?,
            '0'..='9' => number(rest).map_err(|problem| (at, problem))?,
            c if c.is_ascii_alphabetic() || c == '_' => {
                let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                (
                    What::Name(rest.get(..length).unwrap_or_default().to_owned()),
                    length,
                )
            }
            other => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (What::Sign(sign), sign.len()),
                None if other == '=' => {
                    return Err((at, "two values are compared with `==`".to_owned()));
                }
                None => return Err((at, format!("`{other}` has no meaning here"))),
            },
        };
        words.push(Word { at, what });
        at += length;
    }
    Ok(words)
}

fn number(rest: &str) -> Result<(What, usize), String> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        bytes
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        if digits(length + 1 + sign) > 0 {
            length += 1 + sign + digits(length + 1 + sign);
        }
    }
    let is_joined = bytes
        .get(length)
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let value = rest
        .get(..length)
        .and_then(|text| text.parse::<f64>().ok())
        .filter(|value| value.is_finite());
    match value.filter(|_| !is_joined) {
        Some(value) => Ok((What::Number(value), length)),
        None => Err("is not a number".to_owned()),
    }
}

/// A text between quotes, and how many bytes it takes.
fn text(rest: &str, quote: char) -> Result<(What, usize), String> {
    let mut found = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => found.push(escaped(&mut chars)?),
            c if c == quote => return Ok((What::Text(found), at + 1)),
            c => found.push(c),
        }
    }
    Err(format!("a text ends with {quote}"))
}

fn escaped(chars: &mut impl Iterator<Item = (usize, char)>) -> Result<char, String> {
    let problem =
        || "a text has one of \\\\ \\' \\\" \\n \\r \\t \\u0000 after a backslash".to_owned();
    match chars.next().map(|(_, c)| c) {
        Some(c @ ('\\' | '\'' | '"')) => Ok(c),
        Some('n') => Ok('\n'),
        Some('r') => Ok('\r'),
        Some('t') => Ok('\t'),
        Some('u') => {
            let digits: String = chars.take(4).map(|(_, c)| c).collect();
            let code = u32::from_str_radix(&digits, 16)
                .ok()
                .filter(|_| digits.len() == 4 && !digits.starts_with('+'));
            code.and_then(char::from_u32).ok_or_else(problem)
        }
        _ => Err(problem()),
    }
}
