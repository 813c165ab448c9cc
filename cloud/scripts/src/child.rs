//! One script process, as the service holds it. It is killed when it is dropped.

use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};

use super::wire::{self, Answer, Hello, MAX_ANSWER_BYTES, Request};

/// The argument that makes the program a script process.
pub const ARGUMENT: &str = "script-worker";
/// Its allocator starts no threads and keeps one arena.
const MALLOC_CONF: &str = "background_thread:false,narenas:1";

/// The silence after which the process's use of the processor is examined.
const SILENCE: Duration = Duration::from_millis(200);

/// Why there is no answer.
#[derive(Debug)]
pub enum Ended {
    NotStarted(io::Error),
    /// The process had processor time and gave no answer.
    Silent,
    /// The machine was too busy for an answer in time.
    Starved,
    /// The process ended, or sent an invalid answer.
    Crashed,
    /// Its answers are too large together.
    TooMuch,
}

pub struct Child {
    /// Kills the process when it is dropped.
    process: tokio::process::Child,
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
        let mut child = Self {
            process,
            input,
            output: BufReader::new(output),
            is_filtered: false,
        };
        let hello = tokio::time::timeout(within, child.read::<Hello>()).await;
        let hello = hello.map_err(|_| io::Error::other("it did not start in time"))?;
        let hello =
            hello.map_err(|error| io::Error::other(format!("it ended at its start: {error}")))?;
        child.is_filtered = hello.0.is_filtered;
        Ok(child)
    }

    /// `within` is for each of the pieces in which the process takes it.
    pub async fn send(&mut self, request: &Request<'_>, within: Duration) -> Result<(), Ended> {
        let message = message(request)?;
        let mut rest = message.as_slice();
        while !rest.is_empty() {
            let written = tokio::time::timeout(within, self.input.write(rest))
                .await
                .map_err(|_| Ended::Silent)?;
            let written = written
                .ok()
                .filter(|bytes| *bytes > 0)
                .ok_or(Ended::Crashed)?;
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// An answer, and its bytes. A process that has used `time` of the processor without an answer
    /// is silent.
    pub async fn answer(
        &mut self,
        time: Duration,
        deadline: Instant,
    ) -> Result<(Answer, usize), Ended> {
        let (id, begun_at) = (self.process.id(), Instant::now());
        let mut reading = pin!(self.read::<Answer>());
        let mut used_before = None;
        loop {
            if let Ok(answer) = tokio::time::timeout(SILENCE, &mut reading).await {
                return answer.map_err(|_| Ended::Crashed);
            }
            let used = id
                .and_then(processor_time)
                .unwrap_or_else(|| begun_at.elapsed());
            if used.saturating_sub(*used_before.get_or_insert(used)) >= time {
                return Err(Ended::Silent);
            }
            if Instant::now() >= deadline {
                return Err(Ended::Starved);
            }
        }
    }

    /// A message, and its bytes.
    async fn read<T: DeserializeOwned>(&mut self) -> io::Result<(T, usize)> {
        let mut head = [0; 4];
        self.output.read_exact(&mut head).await?;
        let mut content = vec![0; wire::length(head, MAX_ANSWER_BYTES)?];
        self.output.read_exact(&mut content).await?;
        Ok((serde_json::from_slice(&content)?, content.len()))
    }
}

/// The processor time of a process; None if it is unreadable.
fn processor_time(id: u32) -> Option<Duration> {
    // Its first number are the nanoseconds, see proc_pid_schedstat in the kernel's documentation.
    let text = std::fs::read_to_string(format!("/proc/{id}/schedstat")).ok()?;
    text.split_whitespace()
        .next()?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}

fn message(request: &impl Serialize) -> Result<Vec<u8>, Ended> {
    wire::message(request).map_err(|_| Ended::Crashed)
}
