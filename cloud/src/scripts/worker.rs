//! The process that runs scripts: `hub-cloud script-worker`, which the service starts for itself.
//! It serves one tenant for as long as it lives.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::confine::confine;
use super::engine::Engine;
use super::wire::{self, Answer, Hello, MAX_REQUEST_BYTES, Request};

/// Scripts that are kept compiled.
const MAX_ENGINES: usize = 8;

/// Confines the process and answers until its input ends.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hub-cloud: script process: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let is_filtered = confine()?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    output.write_all(&wire::message(&Hello { is_filtered })?)?;
    output.flush()?;
    let mut engines: Vec<(String, Result<Engine, String>)> = Vec::new();
    while let Some(content) = wire::read(&mut input, MAX_REQUEST_BYTES)? {
        let request: Request<'_> = serde_json::from_slice(&content)?;
        answer(&request, &mut engines, &mut output)?;
    }
    Ok(())
}

/// Answers for each frame, in order.
fn answer(
    request: &Request<'_>,
    engines: &mut Vec<(String, Result<Engine, String>)>,
    output: &mut impl Write,
) -> io::Result<()> {
    let (begun, within) = (Instant::now(), Duration::from_millis(request.within_millis));
    // The most recently used is the last.
    let mut compiled = match engines.iter().position(|(source, _)| *source == request.source) {
        Some(at) => engines.remove(at).1,
        None => Engine::new(&request.source),
    };
    for frame in request.frames.iter() {
        let answer = match &mut compiled {
            _ if begun.elapsed() >= within => {
                Answer::NotRun("the time for the scripts of an upload was over".to_owned())
            }
            Ok(engine) => engine.decode(frame),
            Err(problem) => Answer::Refused(problem.clone()),
        };
        if compiled.as_ref().is_ok_and(Engine::is_spoilt) {
            compiled = Engine::new(&request.source);
        }
        // At once, so that it is known which frame a process was killed for.
        output.write_all(&wire::message(&answer)?)?;
        output.flush()?;
    }
    if engines.len() >= MAX_ENGINES {
        drop(engines.remove(0));
    }
    engines.push((request.source.to_string(), compiled));
    Ok(())
}
