//! One script process, as the service holds it. It is killed when it is dropped.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};

use super::wire::{self, Answer, Hello, MAX_ANSWER_BYTES, Request};

/// The argument that makes the program a script process.
pub const ARGUMENT: &str = "script-worker";
/// Its allocator starts no threads and keeps one arena.
const MALLOC_CONF: &str = "background_thread:false,narenas:1";

/// Why there is no answer.
#[derive(Debug)]
pub enum Ended {
    NotStarted(io::Error),
    /// Nothing came in time.
    Silent,
    /// It ended, or answered something else.
    Crashed,
}

pub struct Child {
    /// Kills the process when it is dropped.
    _process: tokio::process::Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Whether the kernel filters its system calls.
    pub is_filtered: bool,
}

impl Child {
    pub async fn start(program: &Path, within: Duration) -> io::Result<Self> {
        let mut process = Command::new(program)
            .arg(ARGUMENT)
            .env_clear()
            .env("MALLOC_CONF", MALLOC_CONF)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::Error::other("it has no pipes"));
        };
        let mut child = Self { _process: process, input, output: BufReader::new(output), is_filtered: false };
        let hello = tokio::time::timeout(within, child.read::<Hello>()).await;
        let hello = hello.map_err(|_| io::Error::other("it did not start in time"))?;
        child.is_filtered =
            hello.map_err(|error| io::Error::other(format!("it ended at its start: {error}")))?.is_filtered;
        Ok(child)
    }

    /// `within` is for each of the pieces in which the process takes it.
    pub async fn send(&mut self, request: &Request<'_>, within: Duration) -> Result<(), Ended> {
        let message = message(request)?;
        let mut rest = message.as_slice();
        while !rest.is_empty() {
            let written = tokio::time::timeout(within, self.input.write(rest)).await.map_err(|_| Ended::Silent)?;
            let written = written.ok().filter(|bytes| *bytes > 0).ok_or(Ended::Crashed)?;
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    pub async fn answer(&mut self, within: Duration) -> Result<Answer, Ended> {
        match tokio::time::timeout(within, self.read::<Answer>()).await {
            Ok(answer) => answer.map_err(|_| Ended::Crashed),
            Err(_) => Err(Ended::Silent),
        }
    }

    async fn read<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut head = [0; 4];
        self.output.read_exact(&mut head).await?;
        let mut content = vec![0; wire::length(head, MAX_ANSWER_BYTES)?];
        self.output.read_exact(&mut content).await?;
        Ok(serde_json::from_slice(&content)?)
    }
}

fn message(request: &impl Serialize) -> Result<Vec<u8>, Ended> {
    wire::message(request).map_err(|_| Ended::Crashed)
}
