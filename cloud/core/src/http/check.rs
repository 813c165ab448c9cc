//! Validates the fields of a request beyond what their types ensure. Collects all errors, so that a
//! client sees them at once.

use hub_base::error::{Error, Result};
use hub_protocol::{FieldError, Timestamp};

const MAX_WORD_BYTES: usize = 64;
/// The longest language tag.
pub const MAX_LOCALE_CHARS: usize = 35;
/// The pattern of a language tag (BCP 47), or of an empty text.
pub const LOCALE: &str = "^([A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*)?$";

/// The errors found so far.
#[derive(Debug, Default)]
pub struct Check(Vec<FieldError>);

impl Check {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `message` for `field` unless `holds`.
    pub fn that(&mut self, holds: bool, field: impl Into<String>, message: impl Into<String>) {
        if !holds {
            self.0.push(FieldError {
                field: field.into(),
                message: message.into(),
            });
        }
    }

    /// How many errors were found.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// A required line of text.
    pub fn required(&mut self, field: &str, text: &str, max_chars: usize) {
        self.that(!text.trim().is_empty(), field, "must not be empty");
        self.line(field, Some(text), max_chars);
    }

    /// An optional line of text.
    pub fn line(&mut self, field: &str, text: Option<&str>, max_chars: usize) {
        let Some(text) = text else { return };
        self.length(field, text, max_chars);
        self.that(
            !text.contains(char::is_control),
            field,
            "must be one line without control characters",
        );
    }

    /// Optional text of several lines.
    pub fn lines(&mut self, field: &str, text: Option<&str>, max_chars: usize) {
        let Some(text) = text else { return };
        self.length(field, text, max_chars);
        let foreign = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        self.that(
            !text.contains(foreign),
            field,
            "must not contain control characters",
        );
    }

    /// A word used in URLs and file names, such as a channel or an architecture.
    pub fn word(&mut self, field: &str, text: &str) {
        let is_char =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let is_word = (1..=MAX_WORD_BYTES).contains(&text.len()) && text.bytes().all(is_char);
        self.that(
            is_word,
            field,
            "must be 1 to 64 lower-case letters, digits, dashes and underscores",
        );
    }

    fn length(&mut self, field: &str, text: &str, max_chars: usize) {
        let fits = text.len() <= max_chars || text.chars().count() <= max_chars;
        self.that(
            fits,
            field,
            format!("must have at most {max_chars} characters"),
        );
    }

    /// Returns 400 with all errors, if there are any.
    pub fn done(self) -> Result<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Error::fields(self.0))
        }
    }
}

/// The text that a list is searched for: one line, or None if it is blank.
pub fn searched(q: Option<&str>, max_chars: usize) -> Result<Option<&str>> {
    let mut check = Check::new();
    check.line("q", q, max_chars);
    check.done()?;
    Ok(filled(q))
}

/// Optional text in its stored form: blank text is absent.
pub fn filled(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// An optional text after a change: absent leaves it, blank text removes it.
pub fn changed_text(current: &Option<String>, given: Option<String>) -> Option<String> {
    match given {
        None => current.clone(),
        Some(text) => filled(Some(&text)).map(str::to_owned),
    }
}

/// Whether the text is a day such as 2026-01-31.
pub fn is_day(text: &str) -> bool {
    let midnight = format!("{text}T00:00:00Z").parse::<Timestamp>();
    text.len() == 10 && midnight.is_ok_and(|midnight| midnight.to_string().starts_with(text))
}

/// Whether a browser can show what is there without running it.
pub fn is_web_address(text: &str) -> bool {
    let url = reqwest::Url::parse(text.trim());
    url.is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
}

pub fn check_locale(check: &mut Check, locale: Option<&str>) {
    let Some(locale) = filled(locale) else { return };
    let mut parts = locale.split('-');
    let language = parts.next().unwrap_or_default();
    let is_language = (2..=8).contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_part = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let holds = locale.len() <= MAX_LOCALE_CHARS && is_language && parts.all(is_part);
    check.that(
        holds,
        "locale",
        "must be a language tag, such as `de` or `pt-BR`",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_locale(text: &str) -> bool {
        let mut check = Check::new();
        check_locale(&mut check, Some(text));
        check.done().is_ok()
    }

    #[test]
    fn locales_have_the_shape_of_language_tags() {
        for text in [
            "",
            "de",
            "pt-BR",
            "zh-Hant-TW",
            "sl-rozaj-biske-1994",
            "de-DE-u-co-phonebk",
        ] {
            assert!(is_locale(text), "{text}");
        }
        for text in [
            "d",
            "de_DE",
            "de-",
            "-de",
            "1e",
            "de-ninecharsx",
            "de DE",
            "languages",
            &"de-abc".repeat(7),
        ] {
            assert!(!is_locale(text), "{text}");
        }
    }
}
