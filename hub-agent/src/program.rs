//! The output of other programs.

use std::process::Stdio;
use std::time::Duration;

/// Programs that print their version or state answer quickly or not at all.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(5);

/// The output of a program, if it exists, ends in time, and succeeds.
pub async fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = tokio::process::Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PROGRAM_TIMEOUT, command.output())
        .await
        .ok()?
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
