//! Why what was published or uploaded cannot be read.

use std::fmt;

use serde_json::error::Category;

/// The longest fault that an error repeats: parts of it are from outside.
const MAX_FAULT_CHARS: usize = 300;

/// A record, a catalog or an archive of advisories that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FeedError(Fault);

/// An uploaded document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DocumentError(Fault);

/// What is wrong, and in which field, such as `affected[3].package`. Empty: the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    field: String,
    text: String,
}

impl FeedError {
    pub(crate) fn of(field: &str, text: impl fmt::Display) -> Self {
        Self(Fault::of(field, text))
    }

    /// The same error, of a record in an archive.
    pub(crate) fn within(self, record: &str) -> Self {
        Self(Fault::of(record, self))
    }
}

impl DocumentError {
    pub(crate) fn of(field: &str, text: impl fmt::Display) -> Self {
        Self(Fault::of(field, text))
    }

    /// The name of the field, such as `components[3].name`. Empty: the whole document.
    pub fn field(&self) -> &str {
        &self.0.field
    }
}

impl From<Fault> for FeedError {
    fn from(fault: Fault) -> Self {
        Self(fault)
    }
}

impl From<Fault> for DocumentError {
    fn from(fault: Fault) -> Self {
        Self(fault)
    }
}

impl Fault {
    pub fn of(field: &str, text: impl fmt::Display) -> Self {
        Self {
            field: crate::text::line(field, MAX_FAULT_CHARS),
            text: crate::text::line(&text.to_string(), MAX_FAULT_CHARS),
        }
    }

    /// At a path such as `affected[3].package`, which is `.` for the whole.
    pub fn of_json(path: &str, error: serde_json::Error) -> Self {
        let text = error.to_string();
        match error.classify() {
            // The path says where it is; the text may be of a part that was read by itself.
            Category::Data => {
                let fault = text
                    .rsplit_once(" at line ")
                    .map_or(&*text, |(fault, _)| fault);
                Self::of(path.trim_start_matches('.'), fault)
            }
            Category::Io | Category::Syntax | Category::Eof => Self::of("", text),
        }
    }

    /// The same fault, of a part of something.
    pub fn below(self, field: &str) -> Self {
        let separator = match self.field.chars().next() {
            None | Some('[') => "",
            Some(_) => ".",
        };
        Self {
            field: format!("{field}{separator}{}", self.field),
            text: self.text,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.text)
    }
}
