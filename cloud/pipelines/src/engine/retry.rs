//! Sends dead letters again, one after the other, as the revision that was asked for makes them:
//! those that an operator named, or those of a replay's part of the log. What is delivered is
//! deleted; what is refused again stays. Ends when none is left.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hub_base::error::Result;
use hub_core::Core;
use hub_destinations::{Attempt, Failure, Message, Payload};
use hub_devices::ble::{self, StoredEvent};
use hub_devices::delivery_status::event_ids;
use hub_identity::authz::Scope;
use hub_steps::{Input, Outcome, Output};

use super::super::LaneStatus;
use super::super::definition::{self, Compiled};
use super::builder::{EVENT_TYPE, input_of_json};
use super::circuit::Health;
use super::done::{Advance, Delivery, Done, Retried};
use super::identity::Identity;
use super::shared::{NextAttempt, Shared, judge};
use super::slots::Turn;
use super::store::{self, LaneRow, RetryRow};
use super::traced;

/// Dead letters that are read at once.
const BATCH: i64 = 50;
/// Events that one query reads.
const IDS: usize = 500;
const REST: Duration = Duration::from_secs(1);
const SCRIPT_TIME: Duration = Duration::from_secs(5);

struct Retry {
    shared: Shared,
    identity: Identity,
    row: LaneRow,
    /// The current revision.
    current: Arc<Compiled>,
    health: Health,
    next_attempt: NextAttempt,
    /// The position of a replay: last event and id of the letter that was sent last.
    last: (i64, i64),
    /// Events delivered since the last time.
    events: i64,
}

/// The outcome of one dead letter.
enum Sent {
    Delivered,
    Refused,
    /// The receiver failed: it is sent again later.
    Failed,
    /// The lane is not held any more.
    Lost,
}

pub async fn run(shared: Shared, identity: Identity, row: LaneRow, compiled: Arc<Compiled>) {
    let lost = identity.lost.clone();
    let health = row.health();
    let last = (row.cursor, i64::MAX);
    let next_attempt = NextAttempt::default();
    let mut retry = Retry {
        shared,
        identity,
        row,
        current: compiled,
        health,
        next_attempt,
        last,
        events: 0,
    };
    tokio::select! {
        () = lost.cancelled() => {}
        () = retry.run() => {}
    }
}

impl Retry {
    async fn run(&mut self) {
        loop {
            match self.batch().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::debug!(%error, "dead letters cannot be read; tried again");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }

    /// Returns whether to go on.
    async fn batch(&mut self) -> Result<bool> {
        let letters = self.letters().await?;
        if letters.is_empty() && self.identity.is_replay {
            self.finish().await;
            return Ok(false);
        }
        if letters.is_empty() {
            let mut tx = self.shared.core.db.begin().await?;
            store::end_retries(&mut tx, self.identity.lane_uuid, self.identity.epoch).await?;
            store::release(&mut tx, self.identity.lane_uuid, self.identity.epoch).await?;
            tx.commit_unaudited("no dead letter is left to be sent again")
                .await?;
            return Ok(false);
        }
        let revisions: Vec<_> = letters
            .iter()
            .map(|letter| (self.row.pipeline_uuid, letter.revision))
            .collect();
        let originals = definition::load(&self.shared.core, &revisions).await?;
        for letter in letters {
            let compiled = match letter.retry.as_str() {
                "ORIGINAL" => originals.get(&(self.row.pipeline_uuid, letter.revision)),
                _ => None,
            };
            let compiled = match compiled {
                Some(Ok(original)) => original.clone(),
                _ => self.current.clone(),
            };
            loop {
                self.wait().await;
                match self.letter(&letter, &compiled).await? {
                    Sent::Delivered | Sent::Refused => {
                        self.last = (letter.last_event_id, letter.dlq_id);
                        break;
                    }
                    Sent::Failed if self.health.is_working() => {}
                    Sent::Failed | Sent::Lost => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    async fn letters(&self) -> Result<Vec<RetryRow>> {
        let mut conn = self.shared.core.db.read().await?;
        let LaneRow {
            pipeline_uuid,
            start_id,
            until_id,
            ..
        } = self.row;
        match self.identity.is_replay {
            false => store::retries(&mut conn, pipeline_uuid, BATCH).await,
            true => {
                let of = (self.current.tenant_uuid, pipeline_uuid);
                let range = (start_id, until_id.unwrap_or(start_id));
                store::replayed(&mut conn, of, range, self.last, BATCH).await
            }
        }
    }

    /// All dead letters of the replay have been sent.
    async fn finish(&mut self) {
        self.health.status = LaneStatus::Finished;
        let (cursor, now) = (
            self.row.until_id.unwrap_or(self.row.cursor),
            self.shared.core.clock.now(),
        );
        let advance = Advance {
            cursor,
            finished_at: Some(now),
            ..self.advance()
        };
        let _ = self
            .shared
            .settler
            .put(
                self.row.pipeline_uuid,
                advance,
                Done::default(),
                &self.identity,
            )
            .await;
    }

    async fn wait(&mut self) {
        while let Some(wait) =
            self.next_attempt
                .wait(&self.health, self.shared.core.clock.now(), Instant::now())
        {
            tokio::time::sleep(wait).await;
        }
    }

    async fn letter(&mut self, letter: &RetryRow, compiled: &Arc<Compiled>) -> Result<Sent> {
        let turn = if self.health.failures > 0 {
            Turn::Probe
        } else {
            Turn::Low
        };
        let slot = self
            .shared
            .slots
            .acquire(compiled.tenant_uuid, self.identity.lane_uuid, turn)
            .await;
        let ids = event_ids::decode(letter.first_event_id, letter.event_ids.as_deref());
        let inputs = self.inputs(letter, &ids).await?;
        let outputs = match self.outputs(compiled, inputs).await {
            Ok(outputs) => outputs,
            Err(problem) => {
                drop(slot);
                return Ok(self.refused(letter, &ids, compiled, problem, None).await);
            }
        };
        let payload = |Output { body, event }| Payload {
            body,
            event: Arc::new(event),
        };
        let message = Message {
            id: letter.message_id.clone(),
            event_type: EVENT_TYPE,
            sent_at: self.shared.core.clock.now(),
            is_batch: compiled.delivery.batch_events > 1 || outputs.len() > 1,
            bodies: outputs.into_iter().map(payload).collect(),
            tenant_uuid: compiled.tenant_uuid,
            pipeline_uuid: compiled.pipeline_uuid,
            first_event_id: letter.first_event_id,
            last_event_id: ids.last().copied().unwrap_or(letter.first_event_id),
            trace: None,
        };
        if message.bodies.is_empty() {
            // The steps drop it now: there is nothing to deliver.
            return Ok(self.delivered(letter, &ids, compiled, None).await);
        }
        if !self.identity.lease.is_valid() {
            return Ok(Sent::Lost);
        }
        let (core, connections) = (&self.shared.core, &self.shared.connections);
        let attempt = traced::send(core, connections, compiled, &message).await;
        drop(slot);
        judge(
            &mut self.health,
            &attempt.result,
            self.shared.core.clock.now(),
        );
        match &attempt.result {
            Ok(()) => Ok(self.delivered(letter, &ids, compiled, Some(attempt)).await),
            Err(Failure::Message { reason }) => {
                let reason = reason.clone();
                Ok(self
                    .refused(letter, &ids, compiled, reason, Some(attempt))
                    .await)
            }
            Err(Failure::Receiver { .. } | Failure::Credentials { .. } | Failure::Gone { .. }) => {
                Ok(self
                    .put(Done::default())
                    .await
                    .map_or(Sent::Lost, |()| Sent::Failed))
            }
        }
    }

    /// The events of a letter. What retention has deleted is not there any more, but for the first,
    /// which the letter holds.
    async fn inputs(&self, letter: &RetryRow, ids: &[i64]) -> Result<Vec<Input>> {
        let stored = stored(&self.shared.core, &self.current, ids).await?;
        let first = || serde_json::from_str(&letter.payload).ok();
        let input = |id: &i64| match stored.get(id) {
            Some(event) => definition::input_of(event.clone()).ok(),
            None if *id == letter.first_event_id => input_of_json(*id, first()?),
            None => None,
        };
        Ok(ids.iter().filter_map(input).collect())
    }

    async fn outputs(
        &self,
        compiled: &Compiled,
        inputs: Vec<Input>,
    ) -> std::result::Result<Vec<Output>, String> {
        if inputs.is_empty() {
            return Err("its events were deleted by retention".to_owned());
        }
        // A letter is no part of the course of events: state is not shared with it.
        let (mut state, scripts) = (
            compiled.program.new_state(),
            Some(&self.shared.core.scripts),
        );
        let outcomes = compiled
            .program
            .run(
                &mut state,
                inputs,
                scripts,
                compiled.tenant_uuid,
                SCRIPT_TIME,
            )
            .await;
        let mut outputs = Vec::new();
        for outcome in outcomes {
            match outcome {
                Outcome::Passed(passed) => outputs.extend(passed),
                Outcome::Dropped { .. } => {}
                Outcome::Failed { step, problem } => {
                    return Err(format!("step {}: {problem}", step + 1));
                }
                Outcome::NotRun { problem } => return Err(problem),
            }
        }
        Ok(outputs)
    }

    async fn delivered(
        &mut self,
        letter: &RetryRow,
        ids: &[i64],
        compiled: &Compiled,
        attempt: Option<Attempt>,
    ) -> Sent {
        self.events += attempt
            .as_ref()
            .map_or(0, |_| i64::try_from(ids.len()).unwrap_or(i64::MAX));
        let retried = Retried::Delivered {
            dlq_id: letter.dlq_id,
        };
        let delivery = attempt.map(|attempt| self.delivery(letter, ids, compiled, attempt));
        self.store(retried, delivery)
            .await
            .map_or(Sent::Lost, |()| Sent::Delivered)
    }

    async fn refused(
        &mut self,
        letter: &RetryRow,
        ids: &[i64],
        compiled: &Compiled,
        reason: String,
        attempt: Option<Attempt>,
    ) -> Sent {
        let response_status = attempt
            .as_ref()
            .and_then(|attempt| attempt.response_status)
            .map(i64::from);
        let attempts = letter.attempts + 1;
        let retried = Retried::Refused {
            dlq_id: letter.dlq_id,
            attempts,
            reason,
            response_status,
        };
        let delivery = attempt.map(|attempt| self.delivery(letter, ids, compiled, attempt));
        self.store(retried, delivery)
            .await
            .map_or(Sent::Lost, |()| Sent::Refused)
    }

    fn delivery(
        &self,
        letter: &RetryRow,
        ids: &[i64],
        compiled: &Compiled,
        attempt: Attempt,
    ) -> Delivery {
        Delivery::new(
            compiled,
            ids,
            letter.attempts + 1,
            self.shared.core.clock.now(),
            attempt,
        )
    }

    async fn store(&mut self, retried: Retried, delivery: Option<Delivery>) -> Option<()> {
        let deliveries = delivery.into_iter().collect();
        self.put(Done {
            retried: vec![retried],
            deliveries,
            ..Done::default()
        })
        .await
    }

    /// None if the lane is somebody else's.
    async fn put(&mut self, done: Done) -> Option<()> {
        let advance = Advance {
            events: std::mem::take(&mut self.events),
            ..self.advance()
        };
        self.shared
            .settler
            .put(self.row.pipeline_uuid, advance, done, &self.identity)
            .await
            .ok()
    }

    /// How far it is: letters whose last events are the same are settled together.
    fn advance(&self) -> Advance {
        let until = self.row.until_id.unwrap_or(self.row.cursor);
        Advance {
            lane_uuid: self.identity.lane_uuid,
            epoch: self.identity.epoch,
            cursor: self
                .last
                .0
                .saturating_sub(1)
                .min(until)
                .max(self.row.cursor),
            settled_ahead: None,
            planned: None,
            health: self.health.clone(),
            events: 0,
            finished_at: None,
        }
    }
}

async fn stored(
    core: &Core,
    compiled: &Compiled,
    ids: &[i64],
) -> Result<HashMap<i64, StoredEvent>> {
    let scope = Scope::system("pipelines", compiled.tenant_uuid);
    let mut found = HashMap::with_capacity(ids.len());
    for ids in ids.chunks(IDS) {
        let events = ble::some(core, &scope, ids).await?;
        found.extend(events.into_iter().map(|event| (event.ble_event_id, event)));
    }
    Ok(found)
}
