//! Checks the fields of a request that its types alone do not, and gathers all that is wrong, so that a client hears of it at once.

use hub_protocol::FieldError;

use crate::error::{Error, Result};

const MAX_WORD_BYTES: usize = 64;

/// What is wrong so far.
#[derive(Debug, Default)]
pub struct Check(Vec<FieldError>);

impl Check {
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes `message` against `field` unless `holds`.
    pub fn that(&mut self, holds: bool, field: impl Into<String>, message: impl Into<String>) {
        if !holds {
            self.0.push(FieldError { field: field.into(), message: message.into() });
        }
    }

    /// One line of text that must be there.
    pub fn required(&mut self, field: &str, text: &str, max_chars: usize) {
        self.that(!text.trim().is_empty(), field, "must not be empty");
        self.line(field, Some(text), max_chars);
    }

    /// One line of text, if there is any.
    pub fn line(&mut self, field: &str, text: Option<&str>, max_chars: usize) {
        let Some(text) = text else { return };
        self.length(field, text, max_chars);
        self.that(!text.contains(char::is_control), field, "must be one line without control characters");
    }

    /// Text of several lines, if there is any.
    pub fn lines(&mut self, field: &str, text: Option<&str>, max_chars: usize) {
        let Some(text) = text else { return };
        self.length(field, text, max_chars);
        let foreign = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        self.that(!text.contains(foreign), field, "must not hold control characters");
    }

    /// A word that stands in URLs and file names: a channel, an architecture.
    pub fn word(&mut self, field: &str, text: &str) {
        let is_char = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let is_word = (1..=MAX_WORD_BYTES).contains(&text.len()) && text.bytes().all(is_char);
        self.that(is_word, field, "must be 1 to 64 lower-case letters, digits, dashes and underscores");
    }

    fn length(&mut self, field: &str, text: &str, max_chars: usize) {
        let fits = text.len() <= max_chars || text.chars().count() <= max_chars;
        self.that(fits, field, format!("may have at most {max_chars} characters"));
    }

    /// 400 that names every field noted.
    pub fn done(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::fields(self.0)) }
    }
}

/// Optional text as it is stored: what is blank is not there.
pub fn filled(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}
