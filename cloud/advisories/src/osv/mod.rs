//! Advisories in the format of OSV (schema 1.x): single records, and archives of them.

mod advisory;
mod archive;
mod ranges;
mod record;
mod severity;

pub use advisory::{Advisory, Affected};
pub use archive::Archive;
pub use ranges::{Ranges, Verdict};
pub use record::read;
pub use severity::{Severity, of_vector};

#[cfg(test)]
mod tests;
