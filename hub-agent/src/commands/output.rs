//! Standard output of the commands.

use std::io::{self, ErrorKind, Write};

use crate::error::Failure;

/// Writes to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    written(
        output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush()),
    )
}

/// A reader that has closed the pipe is not an error.
pub fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}
