//! Scripts of tenants, run by QuickJS in processes of their own (`hub-cloud script-worker`). Knows
//! no subject: it takes a source and frames, and returns what the script says of each, checked.
//!
//! The interpreter is assumed to have faults. A process is confined before it reads anything
//! (`confine`), serves one tenant for as long as it lives, and is killed if it does not answer in
//! time. What it answers is checked here as if the script had sent it.

mod child;
mod confine;
mod engine;
mod pool;
mod wire;
pub mod worker;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hub_adverts::library::OwnedFrame;
use hub_adverts::{Measurement, Value};
use hub_protocol::TenantUuid;

pub use child::ARGUMENT;
pub use confine::confine;

use crate::metrics::{Metrics, ScriptEnd};
use child::Ended;
use pool::{Place, Pool};
use wire::{Answer, FrameText, Request, Said, SaidValue};

/// How long an upload waits for all of its scripts.
pub const UPLOAD_TIME: Duration = Duration::from_secs(1);
/// How long a batch of stored events that are read again waits for all of its scripts.
pub const BATCH_TIME: Duration = Duration::from_secs(10);
/// How long a request that tries a script waits for it.
pub const TRIAL_TIME: Duration = Duration::from_secs(5);
/// How long a process may be silent. A call has 50 ms of processor time; this is what a call may
/// take that the engine cannot interrupt, on a busy machine.
const SILENCE: Duration = Duration::from_millis(400);
/// Frames of one message.
const MAX_FRAMES: usize = 1000;

/// What a script says of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    /// What it measures; without what is outside of the sane range of its quantity.
    Values(Vec<Measurement>),
    /// The frame is not one that the script reads.
    NotMine,
    /// Why it could not be read, for people.
    Failed(String),
    /// Why there was no time for the script, for people.
    NotRun(String),
}

/// Why a script could not be tried.
#[derive(Clone, Debug, PartialEq)]
pub enum Trial {
    /// There was no time for it.
    Busy,
    /// It cannot be compiled; for its author.
    Refused(String),
}

/// The processes that run scripts; cheap to clone.
#[derive(Clone)]
pub struct Scripts {
    pool: Arc<Pool>,
    metrics: Metrics,
}

impl Scripts {
    /// At most so many processes of this program.
    pub fn new(program: PathBuf, processes: usize, metrics: Metrics) -> Self {
        Self { pool: Arc::new(Pool::new(program, processes, metrics.clone())), metrics }
    }

    /// What a script of a tenant says of frames, one answer for each. What cannot be run in time
    /// has failed, and nothing else: the answer never comes much later than `within`.
    pub async fn decode(
        &self,
        tenant_uuid: TenantUuid,
        source: &str,
        frames: &[OwnedFrame],
        within: Duration,
    ) -> Vec<Decoded> {
        let frames: Vec<FrameText> = frames.iter().map(FrameText::of).collect();
        let begun = Instant::now();
        let mut answers = self.answers(tenant_uuid, source, &frames, begun + within).await;
        self.metrics.scripts_busy.inc_by(begun.elapsed().as_secs_f64());
        answers.truncate(frames.len());
        answers.into_iter().map(|answer| self.decoded(answer)).collect()
    }

    /// Compiles a script and runs it on the frames of its tests.
    pub async fn trial(
        &self,
        tenant_uuid: TenantUuid,
        source: &str,
        frames: &[OwnedFrame],
    ) -> Result<Vec<Decoded>, Trial> {
        // A frame before the others, which only compiles it, and makes the functions.
        let frames: Vec<FrameText> = std::iter::once(&OwnedFrame::default()).chain(frames).map(FrameText::of).collect();
        let begun = Instant::now();
        let mut answers = self.answers(tenant_uuid, source, &frames, begun + TRIAL_TIME).await.into_iter();
        match answers.next() {
            Some(Answer::Refused(problem)) => return Err(Trial::Refused(problem)),
            Some(Answer::NotRun(_)) | None => return Err(Trial::Busy),
            _ => {}
        }
        let answers: Vec<Answer> = answers.collect();
        if answers.iter().any(|answer| matches!(answer, Answer::NotRun(_))) {
            return Err(Trial::Busy);
        }
        Ok(answers.into_iter().map(|answer| self.decoded(answer)).collect())
    }

    async fn answers(
        &self,
        tenant_uuid: TenantUuid,
        source: &str,
        frames: &[FrameText],
        deadline: Instant,
    ) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(frames.len());
        if frames.is_empty() {
            return answers;
        }
        let mut place = match self.pool.place(tenant_uuid, deadline).await {
            Ok(place) => place,
            Err(why) => return not_run(answers, frames, why),
        };
        // A process that ends for another reason is not held against a frame, unless it does so
        // for the same frame again.
        let mut crashed_at = None;
        while let Some(rest) = frames.get(answers.len()..).filter(|rest| !rest.is_empty()) {
            let within = deadline.saturating_duration_since(Instant::now());
            if within.is_zero() {
                return not_run(answers, frames, "the time for the scripts of an upload was over");
            }
            let part = rest.get(..MAX_FRAMES).unwrap_or(rest);
            let request = Request {
                source: Cow::Borrowed(source),
                frames: Cow::Borrowed(part),
                within_millis: u64::try_from(within.as_millis()).unwrap_or_default(),
            };
            match part_answers(&mut place, &request, &mut answers).await {
                Ok(()) => {}
                Err(Ended::NotStarted(error)) => {
                    self.pool.log_not_started(&error);
                    return not_run(answers, frames, "no process could be started for it");
                }
                Err(ended) => {
                    let end = if matches!(ended, Ended::Silent) { ScriptEnd::Silent } else { ScriptEnd::Crashed };
                    self.metrics.script_process_ended(end);
                    let at = answers.len();
                    if end == ScriptEnd::Crashed && crashed_at != Some(at) {
                        crashed_at = Some(at);
                        continue;
                    }
                    self.pool.log_killed(tenant_uuid, end);
                    answers.push(Answer::Failed(match end {
                        ScriptEnd::Silent => "the script did not end in time, and was killed".to_owned(),
                        ScriptEnd::Crashed => "the script crashed its process".to_owned(),
                    }));
                }
            }
        }
        place.keep();
        answers
    }

    fn decoded(&self, answer: Answer) -> Decoded {
        match answer {
            Answer::Values(all) => match checked(all) {
                Ok(measurements) => {
                    self.metrics.script_run("decoded");
                    Decoded::Values(measurements)
                }
                Err(problem) => {
                    self.metrics.script_run("failed");
                    Decoded::Failed(problem)
                }
            },
            Answer::NotMine => {
                self.metrics.script_run("not_mine");
                Decoded::NotMine
            }
            Answer::Failed(problem) | Answer::Refused(problem) => {
                self.metrics.script_run("failed");
                Decoded::Failed(wire::clipped(&problem, wire::MAX_MESSAGE_CHARS))
            }
            Answer::NotRun(why) => {
                self.metrics.script_run("not_run");
                let why = wire::clipped(&why, wire::MAX_MESSAGE_CHARS);
                Decoded::NotRun(format!("script not run: {why}; reprocess the event"))
            }
        }
    }
}

/// One part of the frames. Answers are added as they arrive, also if the process ends after them.
async fn part_answers(place: &mut Place, request: &Request<'_>, answers: &mut Vec<Answer>) -> Result<(), Ended> {
    // A process that is slow to start does not make an upload wait longer.
    let child = place.child(Duration::from_millis(request.within_millis)).await?;
    let asked = async {
        child.send(request, SILENCE).await?;
        for _ in request.frames.iter() {
            answers.push(child.answer(SILENCE).await?);
        }
        Ok(())
    };
    let answered = asked.await;
    if answered.is_err() {
        place.kill();
    }
    answered
}

/// The rest of the frames was not run.
fn not_run(mut answers: Vec<Answer>, frames: &[FrameText], why: &str) -> Vec<Answer> {
    answers.resize(frames.len(), Answer::NotRun(why.to_owned()));
    answers
}

/// Checks what a process claims that a script has returned.
fn checked(all: Vec<Said>) -> Result<Vec<Measurement>, String> {
    if all.len() > wire::MAX_VALUES {
        return Err(format!("decode returned more than {} values", wire::MAX_VALUES));
    }
    let mut measurements: Vec<Measurement> = Vec::with_capacity(all.len());
    for Said { quantity, value, unit, index } in all {
        let value = match value {
            SaidValue::Number(value) => Value::Number(value),
            SaidValue::Bool(value) => Value::Bool(value),
            SaidValue::Text(text) => Value::Text(wire::clipped(&text, wire::MAX_TEXT_CHARS)),
        };
        let found = Measurement::scripted(&quantity, value, unit.as_deref(), index);
        let Some(found) = found.map_err(|problem| wire::clipped(&problem, wire::MAX_MESSAGE_CHARS))? else { continue };
        if measurements.iter().any(|one| one.quantity.name == found.quantity.name && one.index == found.index) {
            return Err(format!("{} is there twice; give each value an index", found.key()));
        }
        measurements.push(found);
    }
    Ok(measurements)
}
