//! Scripts of tenants, run by QuickJS in processes of their own (`hub-cloud script-worker`). Knows
//! no subject: it takes a source and frames or events, and returns what the script makes of each,
//! checked.
//!
//! The interpreter is assumed to have faults. A process is confined before it reads anything
//! (`confine`), serves one tenant for as long as it lives, and is killed if it does not answer in
//! time. What it answers is checked here as if the script had sent it.

mod child;
mod confine;
mod engine;
mod pool;
mod returned;
mod wire;
pub mod worker;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hub_adverts::library::OwnedFrame;
use hub_adverts::{Measurement, Value};
use hub_base::metrics::{Metrics, ScriptEnd};
use hub_protocol::TenantUuid;
use serde_json::{Map, Value as Json};

pub use child::ARGUMENT;
use child::Ended;
pub use confine::confine;
pub use pool::OwnerOf;
use pool::{Lane, Place, Pool};
use wire::{Answer, Calls, FrameText, Request, Returned, ReturnedValue, TIME_OVER};

/// How long an upload waits for all of its scripts.
pub const UPLOAD_TIME: Duration = Duration::from_secs(1);
/// The time for which a batch of reprocessed events waits for all of its scripts.
pub const BATCH_TIME: Duration = Duration::from_secs(10);
/// How long a request that tries a script waits for it.
pub const TRIAL_TIME: Duration = Duration::from_secs(5);
/// A process that accepts nothing for this long is stuck.
const SEND_TIME: Duration = Duration::from_millis(400);

/// A process that answers for another function than was called.
const NONSENSE: &str = "the script crashed its process";

/// The result of a script for a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    /// The measurements, without those outside of the sane range of their quantity.
    Values(Vec<Measurement>),
    /// The frame is not one that the script reads.
    NotMine,
    /// The reason why the frame could not be read, as a sentence.
    Failed(String),
    /// The reason why the script had no time, as a sentence.
    NotRun(String),
}

/// The result of a script for an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Processed {
    /// The events; none if it returned null.
    Events(Vec<Map<String, Json>>),
    /// The reason for the failure, as a sentence.
    Failed(String),
    /// The reason why the script had no time, as a sentence.
    NotRun(String),
}

/// Why a script could not be tried.
#[derive(Clone, Debug, PartialEq)]
pub enum Trial {
    /// There was no time for it.
    Busy,
    /// The script cannot be compiled; the message is for its author.
    Refused(String),
}

/// The processes that run scripts; cheap to clone.
#[derive(Clone)]
pub struct Scripts {
    pool: Arc<Pool>,
    lane: Lane,
    metrics: Metrics,
}

impl Scripts {
    /// The pool has at most `processes` processes of this program.
    pub fn new(program: PathBuf, processes: usize, metrics: Metrics) -> Self {
        Self::with(program, processes, metrics, false)
    }

    /// As [`Self::new`]. Where the kernel does not filter the system calls of a process, scripts
    /// run only if `runs_unfiltered`.
    pub fn with(
        program: PathBuf,
        processes: usize,
        metrics: Metrics,
        runs_unfiltered: bool,
    ) -> Self {
        Self {
            pool: Arc::new(Pool::new(
                program,
                processes,
                metrics.clone(),
                runs_unfiltered,
            )),
            lane: Lane::Others,
            metrics,
        }
    }

    /// The same, in the places that uploads have of their own.
    #[must_use]
    pub fn of_uploads(&self) -> Self {
        Self {
            lane: Lane::Uploads,
            ..self.clone()
        }
    }

    /// Tenants of one person have one share together; without this, each has its own.
    pub fn set_owner_of(&self, owner_of: OwnerOf) {
        self.pool.set_owner_of(owner_of);
    }

    /// The results of a tenant's script for frames, one answer for each. A frame whose script had
    /// no time fails alone: the answers never come much later than `within`.
    pub async fn decode(
        &self,
        tenant_uuid: TenantUuid,
        source: &str,
        frames: &[OwnedFrame],
        within: Duration,
    ) -> Vec<Decoded> {
        let frames: Vec<FrameText> = frames.iter().map(FrameText::of).collect();
        let begun = Instant::now();
        let calls = Calls::Decode(Cow::Owned(frames));
        let answers = self
            .answers(tenant_uuid, source, &calls, begun + within)
            .await;
        self.metrics
            .scripts_busy
            .inc_by(begun.elapsed().as_secs_f64());
        answers
            .into_iter()
            .map(|answer| self.decoded(answer))
            .collect()
    }

    /// The results of a tenant's script for events, one answer for each, as [`Self::decode`] does.
    pub async fn process(
        &self,
        tenant_uuid: TenantUuid,
        source: &str,
        events: &[&Map<String, Json>],
        within: Duration,
    ) -> Vec<Processed> {
        let begun = Instant::now();
        let Ok(texts) = events
            .iter()
            .map(serde_json::value::to_raw_value)
            .collect::<Result<Vec<_>, _>>()
        else {
            // Maps of text to JSON can always be written.
            return vec![Processed::Failed("the event is not JSON".to_owned()); events.len()];
        };
        let calls = Calls::Process(Cow::Owned(texts));
        let answers = self
            .answers(tenant_uuid, source, &calls, begun + within)
            .await;
        self.metrics
            .scripts_busy
            .inc_by(begun.elapsed().as_secs_f64());
        answers
            .into_iter()
            .map(|answer| self.processed(answer))
            .collect()
    }

    /// Whether a script can be compiled and has `process(event)`. It is called for an empty event;
    /// that this fails is not held against it.
    pub async fn try_process(&self, tenant_uuid: TenantUuid, source: &str) -> Result<(), Trial> {
        let empty = serde_json::value::to_raw_value(&Map::<String, Json>::new())
            .map_err(|_| Trial::Busy)?;
        let calls = Calls::Process(Cow::Owned(vec![empty]));
        let answers = self
            .answers(tenant_uuid, source, &calls, Instant::now() + TRIAL_TIME)
            .await;
        match answers.into_iter().next() {
            Some(Answer::Refused(problem)) => Err(Trial::Refused(wire::clipped(
                &problem,
                wire::MAX_MESSAGE_CHARS,
            ))),
            Some(Answer::NotRun(_)) | None => Err(Trial::Busy),
            Some(_) => Ok(()),
        }
    }

    /// Compiles a script and runs it on the frames of its tests.
    pub async fn trial(
        &self,
        tenant_uuid: TenantUuid,
        source: &str,
        frames: &[OwnedFrame],
    ) -> Result<Vec<Decoded>, Trial> {
        // A frame before the others, which only compiles it, and makes the functions.
        let frames: Vec<FrameText> = std::iter::once(&OwnedFrame::default())
            .chain(frames)
            .map(FrameText::of)
            .collect();
        let begun = Instant::now();
        let calls = Calls::Decode(Cow::Owned(frames));
        let mut answers = self
            .answers(tenant_uuid, source, &calls, begun + TRIAL_TIME)
            .await
            .into_iter();
        match answers.next() {
            Some(Answer::Refused(problem)) => return Err(Trial::Refused(problem)),
            Some(Answer::NotRun(_)) | None => return Err(Trial::Busy),
            _ => {}
        }
        let answers: Vec<Answer> = answers.collect();
        if answers
            .iter()
            .any(|answer| matches!(answer, Answer::NotRun(_)))
        {
            return Err(Trial::Busy);
        }
        Ok(answers
            .into_iter()
            .map(|answer| self.decoded(answer))
            .collect())
    }

    /// The answers, one for each call.
    async fn answers(
        &self,
        tenant_uuid: TenantUuid,
        source: &str,
        calls: &Calls<'_>,
        deadline: Instant,
    ) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(calls.len());
        if let Err(why) = self
            .answer(tenant_uuid, source, calls, deadline, &mut answers)
            .await
        {
            answers.resize(calls.len(), Answer::NotRun(why.to_owned()));
        }
        answers.truncate(calls.len());
        answers
    }

    /// The error is the reason why the rest of the calls was not run.
    async fn answer(
        &self,
        tenant_uuid: TenantUuid,
        source: &str,
        calls: &Calls<'_>,
        deadline: Instant,
        answers: &mut Vec<Answer>,
    ) -> Result<(), &'static str> {
        if calls.len() == 0 {
            return Ok(());
        }
        let mut place = self.pool.place(self.lane, tenant_uuid, deadline).await?;
        // A process that ends for another reason is not counted against a call, unless the same
        // call ends a second one.
        let mut crashed_at = None;
        let mut bytes = 0;
        while let Some(part) = calls.part(answers.len(), place.calls_at_once) {
            let within = deadline.saturating_duration_since(Instant::now());
            if within.is_zero() {
                return Err(TIME_OVER);
            }
            if place.ends_at().is_some_and(|at| at <= Instant::now()) {
                // Others are first; the rest waits for another turn.
                place.keep();
                place = self.pool.place(self.lane, tenant_uuid, deadline).await?;
                continue;
            }
            let within_millis = u64::try_from(within.as_millis()).unwrap_or_default();
            let request = Request {
                source: Cow::Borrowed(source),
                calls: part,
                within_millis,
            };
            let began = Instant::now();
            let answered = part_answers(&mut place, &request, answers, &mut bytes).await;
            place.note(began.elapsed());
            match answered {
                Ok(()) => {}
                Err(Ended::NotStarted(error)) => {
                    self.pool.log_not_started(&error);
                    return Err("no process could be started for it");
                }
                Err(Ended::Starved) => return Err("the machine is too busy"),
                Err(Ended::TooMuch) => return Err("it returns too much for one batch"),
                Err(ended) => {
                    let end = if matches!(ended, Ended::Silent) {
                        ScriptEnd::Silent
                    } else {
                        ScriptEnd::Crashed
                    };
                    self.metrics.script_process_ended(end);
                    let at = answers.len();
                    if end == ScriptEnd::Crashed && crashed_at != Some(at) {
                        crashed_at = Some(at);
                        continue;
                    }
                    self.pool.log_killed(tenant_uuid, end);
                    answers.push(Answer::Failed(match end {
                        ScriptEnd::Silent => {
                            "the script did not end in time, and was killed".to_owned()
                        }
                        ScriptEnd::Crashed => "the script crashed its process".to_owned(),
                    }));
                }
            }
        }
        place.keep();
        Ok(())
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
            Answer::Events(_) => {
                self.metrics.script_run("failed");
                Decoded::Failed(NONSENSE.to_owned())
            }
            Answer::NotRun(why) => {
                self.metrics.script_run("not_run");
                let why = wire::clipped(&why, wire::MAX_MESSAGE_CHARS);
                Decoded::NotRun(format!(
                    "script not run: {why}; the event is read again when there is time"
                ))
            }
        }
    }

    fn processed(&self, answer: Answer) -> Processed {
        let (outcome, processed) = match answer {
            Answer::Events(events) if events.len() > wire::MAX_EVENTS => (
                "failed",
                Processed::Failed(format!(
                    "process returned more than {} events",
                    wire::MAX_EVENTS
                )),
            ),
            Answer::Events(events) => ("processed", Processed::Events(events)),
            Answer::Failed(problem) | Answer::Refused(problem) => (
                "failed",
                Processed::Failed(wire::clipped(&problem, wire::MAX_MESSAGE_CHARS)),
            ),
            Answer::Values(_) | Answer::NotMine => {
                ("failed", Processed::Failed(NONSENSE.to_owned()))
            }
            Answer::NotRun(why) => {
                let why = wire::clipped(&why, wire::MAX_MESSAGE_CHARS);
                (
                    "not_run",
                    Processed::NotRun(format!("script not run: {why}")),
                )
            }
        };
        self.metrics.script_run(outcome);
        processed
    }
}

/// One part of the calls. Answers are added as they arrive, also if the process ends after them;
/// `bytes` counts them over all parts.
async fn part_answers(
    place: &mut Place,
    request: &Request<'_>,
    answers: &mut Vec<Answer>,
    bytes: &mut usize,
) -> Result<(), Ended> {
    // A process that is slow to start does not make an upload wait longer.
    let child = place
        .child(Duration::from_millis(request.within_millis))
        .await?;
    let deadline = Instant::now() + Duration::from_millis(request.within_millis);
    let asked = async {
        child.send(request, SEND_TIME).await?;
        for _ in 0..request.calls.len() {
            let (answer, length) = child.answer(engine::CALL_TIME, deadline).await?;
            answers.push(answer);
            *bytes += length;
            if *bytes > wire::MAX_BATCH_BYTES {
                return Err(Ended::TooMuch);
            }
        }
        Ok(())
    };
    let answered = asked.await;
    if answered.is_err() {
        place.kill();
    }
    answered
}

/// Checks what a process claims that a script has returned.
fn checked(all: Vec<Returned>) -> Result<Vec<Measurement>, String> {
    if all.len() > wire::MAX_VALUES {
        return Err(format!(
            "decode returned more than {} values",
            wire::MAX_VALUES
        ));
    }
    let mut measurements: Vec<Measurement> = Vec::with_capacity(all.len());
    for Returned {
        quantity,
        value,
        unit,
        index,
    } in all
    {
        let value = match value {
            ReturnedValue::Number(value) => Value::Number(value),
            ReturnedValue::Bool(value) => Value::Bool(value),
            ReturnedValue::Text(text) => Value::Text(wire::clipped(&text, wire::MAX_TEXT_CHARS)),
        };
        let found = Measurement::scripted(&quantity, value, unit.as_deref(), index);
        let Some(found) =
            found.map_err(|problem| wire::clipped(&problem, wire::MAX_MESSAGE_CHARS))?
        else {
            continue;
        };
        if measurements
            .iter()
            .any(|one| one.quantity.name == found.quantity.name && one.index == found.index)
        {
            return Err(format!(
                "{} is there twice; give each value an index",
                found.key()
            ));
        }
        measurements.push(found);
    }
    Ok(measurements)
}
