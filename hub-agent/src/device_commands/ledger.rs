//! The commands that were begun, on disk before the first step of each is taken: after a restart
//! they are reported and never repeated. They are in one small file that is replaced as a whole,
//! without the steps of the commands.

use std::collections::VecDeque;
use std::sync::Arc;

use hub_protocol::HubJobUuid;
use hub_protocol::job::{HubJobEventKind, HubJobEventRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::clock::machine_now;
use crate::identity::StateDir;
use crate::jobs::JobRecord;
use crate::set_aside;

const FILE: &str = "device-commands.json";
/// More than the desired state can hold.
const MAX_FINISHED: usize = 256;
const MAX_MESSAGE_CHARS: usize = 1_000;

/// A command that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    pub hub_job_uuid: HubJobUuid,
    /// The kernel's name of the adapter, such as `hci0`.
    pub adapter_name: String,
    pub address: String,
    /// Whether a step may have been taken.
    pub is_begun: bool,
}

/// The file's content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct State {
    accepted: Vec<Accepted>,
    /// Oldest first. The service may list them until it has received their last event.
    finished: VecDeque<HubJobUuid>,
    /// Events that are not yet in the spool, in order.
    outbox: VecDeque<JobRecord>,
}

pub struct Ledger {
    state_dir: Arc<StateDir>,
    state: State,
    /// The file was damaged: it is unknown which commands were begun.
    pub is_lost: bool,
}

impl Ledger {
    pub fn load(state_dir: Arc<StateDir>) -> Self {
        let mut is_lost = false;
        let exists = state_dir.path().join(FILE).exists();
        let parse = |bytes: &[u8]| {
            serde_json::from_slice::<State>(bytes).map_err(|error| error.to_string())
        };
        let state = match set_aside::read(state_dir.path(), FILE, parse) {
            Ok(Some(state)) => state,
            Ok(None) => {
                is_lost = exists;
                State::default()
            }
            Err(_) => {
                is_lost = true;
                State::default()
            }
        };
        Self {
            state_dir,
            state,
            is_lost,
        }
    }

    pub fn accepted(&self) -> &[Accepted] {
        &self.state.accepted
    }

    pub fn outbox(&self) -> &VecDeque<JobRecord> {
        &self.state.outbox
    }

    pub fn is_known(&self, hub_job_uuid: HubJobUuid) -> bool {
        self.state.finished.contains(&hub_job_uuid)
            || self
                .state
                .accepted
                .iter()
                .any(|accepted| accepted.hub_job_uuid == hub_job_uuid)
    }

    /// Makes a change and returns whether it is on disk. If it is not, it holds until a restart.
    async fn change(&mut self, change: impl FnOnce(&mut State)) -> bool {
        change(&mut self.state);
        let written = match serde_json::to_vec(&self.state) {
            Ok(json) => self.state_dir.replace(FILE, json).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = &written {
            tracing::error!(%error, "the device commands cannot be written; free some disk space");
        }
        written.is_ok()
    }

    pub async fn accept(&mut self, accepted: Accepted) -> bool {
        let event = record(accepted.hub_job_uuid, HubJobEventKind::Accepted, None, None);
        self.change(|state| {
            state.accepted.push(accepted);
            state.outbox.push_back(event);
        })
        .await
    }

    /// Notes that steps may be taken from now on. False if that cannot be noted, or the command is
    /// not there: none must be taken.
    pub async fn begin(&mut self, hub_job_uuid: HubJobUuid) -> bool {
        let mut is_there = false;
        let is_written = self
            .change(|state| {
                for accepted in state
                    .accepted
                    .iter_mut()
                    .filter(|accepted| accepted.hub_job_uuid == hub_job_uuid)
                {
                    accepted.is_begun = true;
                    is_there = true;
                }
            })
            .await;
        is_written && is_there
    }

    pub async fn finish(
        &mut self,
        hub_job_uuid: HubJobUuid,
        kind: HubJobEventKind,
        message: Option<&str>,
        detail: Value,
    ) -> bool {
        let event = record(hub_job_uuid, kind, message, Some(detail));
        self.change(|state| {
            state
                .accepted
                .retain(|accepted| accepted.hub_job_uuid != hub_job_uuid);
            state.finished.push_back(hub_job_uuid);
            let too_many = state.finished.len().saturating_sub(MAX_FINISHED);
            state.finished.drain(..too_many);
            state.outbox.push_back(event);
        })
        .await
    }

    /// The first events are in the spool.
    pub async fn spooled(&mut self, count: usize) {
        self.change(|state| drop(state.outbox.drain(..count.min(state.outbox.len()))))
            .await;
    }
}

fn record(
    hub_job_uuid: HubJobUuid,
    kind: HubJobEventKind,
    message: Option<&str>,
    detail: Option<Value>,
) -> JobRecord {
    // The machine's own time: the spool corrects it where that clock is wrong.
    let event = HubJobEventRequest {
        event_uuid: Uuid::now_v7(),
        kind,
        message: message.map(cleaned),
        progress: None,
        detail,
        occurred_at: machine_now(),
    };
    JobRecord {
        hub_job_uuid,
        event,
    }
}

/// The text without characters that the service refuses.
fn cleaned(text: &str) -> String {
    let is_refused = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.chars()
        .take(MAX_MESSAGE_CHARS)
        .map(|c| {
            if is_refused(c) {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(hub_job_uuid: HubJobUuid) -> Accepted {
        let (adapter_name, address) = ("hci0".to_owned(), "C4:11:22:33:44:55".to_owned());
        Accepted {
            hub_job_uuid,
            adapter_name,
            address,
            is_begun: false,
        }
    }

    #[tokio::test]
    async fn what_was_begun_is_known_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
        let (one, other) = (HubJobUuid::new(), HubJobUuid::new());
        let mut ledger = Ledger::load(state_dir.clone());
        assert!(!ledger.is_lost && !ledger.is_known(one));
        assert!(ledger.accept(accepted(one)).await && ledger.accept(accepted(other)).await);
        assert!(ledger.begin(one).await && !ledger.begin(HubJobUuid::new()).await);

        let mut ledger = Ledger::load(state_dir.clone());
        let begun: Vec<bool> = ledger
            .accepted()
            .iter()
            .map(|accepted| accepted.is_begun)
            .collect();
        assert_eq!((begun, ledger.outbox().len()), (vec![true, false], 2));
        ledger
            .finish(one, HubJobEventKind::Failed, Some("cut\u{7}"), Value::Null)
            .await;
        ledger.spooled(2).await;
        let ledger = Ledger::load(state_dir.clone());
        assert!(ledger.is_known(one) && ledger.accepted().len() == 1);
        let message = ledger.outbox()[0].event.message.as_deref();
        assert_eq!((ledger.outbox().len(), message), (1, Some("cut\u{fffd}")));

        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(Ledger::load(state_dir).is_lost);
    }

    #[tokio::test]
    async fn finished_commands_are_forgotten_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::load(Arc::new(StateDir::open(dir.path()).unwrap()));
        let first = HubJobUuid::new();
        ledger.state.finished = std::iter::once(first)
            .chain((1..MAX_FINISHED).map(|_| HubJobUuid::new()))
            .collect();
        ledger
            .finish(
                HubJobUuid::new(),
                HubJobEventKind::Succeeded,
                None,
                Value::Null,
            )
            .await;
        assert!(ledger.state.finished.len() == MAX_FINISHED && !ledger.is_known(first));
    }
}
