//! The process that runs scripts: `hub-cloud script-worker`, which the service starts for itself.
//! It serves one tenant for as long as it lives.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::confine::confine;
use super::engine::Engine;
use super::wire::{self, Answer, Entry, Hello, MAX_REQUEST_BYTES, Request, TIME_OVER};

/// Scripts that are kept compiled.
const MAX_ENGINES: usize = 8;

/// Confines the process and answers until its input ends.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            hub_logging::say(format_args!("hub-cloud: script process: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let is_filtered = confine()?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    output.write_all(&wire::message(&Hello { is_filtered })?)?;
    output.flush()?;
    let mut engines = Vec::new();
    while let Some(content) = wire::read(&mut input, MAX_REQUEST_BYTES)? {
        let request: Request<'_> = serde_json::from_slice(&content)?;
        answer(&request, &mut engines, &mut output)?;
    }
    Ok(())
}

/// A script, the function of it that is called, and its compiled form.
type Compiled = (String, Entry, Result<Engine, String>);

/// Answers for each call, in order.
fn answer(
    request: &Request<'_>,
    engines: &mut Vec<Compiled>,
    output: &mut impl Write,
) -> io::Result<()> {
    let entry = request.calls.entry();
    let (begun, within) = (Instant::now(), Duration::from_millis(request.within_millis));
    // The most recently used is the last.
    let mut compiled = match engines
        .iter()
        .position(|(source, of, _)| *of == entry && *source == request.source)
    {
        Some(at) => engines.remove(at).2,
        None => Engine::new(&request.source, entry),
    };
    for at in 0..request.calls.len() {
        let answer = match &mut compiled {
            _ if begun.elapsed() >= within => Answer::NotRun(TIME_OVER.to_owned()),
            Ok(engine) => engine.answer(&request.calls, at),
            Err(problem) => Answer::Refused(problem.clone()),
        };
        if compiled.as_ref().is_ok_and(Engine::is_spoilt) {
            compiled = Engine::new(&request.source, entry);
        }
        // Each answer is flushed, which identifies the call that a process was killed for.
        output.write_all(&wire::message(&answer)?)?;
        output.flush()?;
    }
    if engines.len() >= MAX_ENGINES {
        drop(engines.remove(0));
    }
    engines.push((request.source.to_string(), entry, compiled));
    Ok(())
}
