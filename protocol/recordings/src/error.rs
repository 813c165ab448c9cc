//! Why a recording cannot be read, or not to its end.

use std::fmt;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A part that breaks the rules of its format, or exceeds a limit.
    #[error("byte {}: {fault}", Grouped(*.offset))]
    Malformed { offset: u64, fault: String },
    /// The recording ends within a part. What was read before counts.
    #[error("byte {}: the recording ends within {within}", Grouped(*.offset))]
    CutShort { offset: u64, within: String },
    /// A line of a trace.
    #[error("line {line}: {fault}")]
    Line { line: u64, fault: String },
    #[error("cannot read beyond byte {}: {error}", Grouped(*.offset))]
    Unreadable { offset: u64, error: io::Error },
}

impl RecordingError {
    pub(crate) fn malformed(offset: u64, fault: impl Into<String>) -> Self {
        Self::Malformed {
            offset,
            fault: fault.into(),
        }
    }

    /// Whether the recording merely ends too early.
    pub fn is_cut_short(&self) -> bool {
        matches!(self, Self::CutShort { .. })
    }
}

/// A number with commas between its thousands, such as `1,900,000`.
pub(crate) struct Grouped(pub u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (4_120, "4,120")] {
            assert_eq!(Grouped(number).to_string(), text);
        }
        let error = RecordingError::malformed(1_234_567, "a fault");
        assert_eq!(error.to_string(), "byte 1,234,567: a fault");
    }
}
