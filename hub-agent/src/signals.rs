//! What stops a command: signals, and where configured the end of standard input.

use std::io;
use std::os::fd::AsFd;

use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Failure;

/// Waits for a signal or, where configured, for the end of standard input.
pub async fn until_stopped(with_stdin: bool) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::Failed(format!("signals cannot be received: {error}"));
    tokio::select! {
        stopped = until_signalled() => stopped.map_err(cannot),
        ended = stdin_end(), if with_stdin => ended,
    }
}

/// Waits until the other end of standard input is closed.
async fn stdin_end() -> Result<(), Failure> {
    let opened = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .and_then(pipe::Receiver::from_owned_fd);
    let mut stdin = opened.map_err(|error| {
        Failure::Config(format!(
            "stop-with-stdin: standard input is not a pipe: {error}"
        ))
    })?;
    let _ = tokio::io::copy(&mut stdin, &mut tokio::io::sink()).await;
    Ok(())
}

/// Waits for SIGTERM, SIGINT, or SIGHUP, which is the end of the terminal.
pub async fn until_signalled() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // `nohup` ignores SIGHUP, and listening for it would undo that.
    let mut hangup = if is_hangup_ignored() {
        None
    } else {
        Some(signal(SignalKind::hangup())?)
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = next(&mut hangup) => {}
    }
    Ok(())
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is signal 1, the lowest bit.
    ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 != 0)
}
