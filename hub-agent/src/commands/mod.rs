//! What the commands beside `run` do.

pub mod check;
pub mod claim;
pub mod scan;
mod scan_table;
pub mod status;

use std::io::{self, ErrorKind, Write};

use crate::error::Failure;

/// Writes to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    written(output.write_all(text.as_bytes()).and_then(|()| output.flush()))
}

/// Whoever read our output may have gone, which is an end like any other.
fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Failed(format!("cannot write: {error}"))),
        _ => Ok(()),
    }
}
