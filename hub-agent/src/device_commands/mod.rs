//! Commands on devices: jobs of the desired state that wait for no other job. Each command is
//! carried out at most once: its begin is on disk before its first step, and a command that a kill
//! interrupted is reported at the next start and not repeated. `ble::gatt` carries the steps out.

mod ledger;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use hub_protocol::HubJobUuid;
use hub_protocol::command::DeviceCommand;
use hub_protocol::hub::{Adapter, AdapterRole};
use hub_protocol::job::{DesiredJob, HubJobEventKind, HubJobType};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::ledger::{Accepted, Ledger};
use crate::ble::gatt::{self, Ended, Gate, Stopped, Task};
use crate::clock::Clock;
use crate::identity::StateDir;
use crate::jobs::{RequestedJob, RequestedJobs};
use crate::spool::{Kind, Spool, SpoolStopped};

/// The most commands at a time. Each has a thread and a session with bluetoothd.
const MAX_AT_ONCE: usize = 2;
/// The longest that a command may take, whatever its deadline.
const LONGEST: Duration = Duration::from_secs(110);
/// A command ends this long before its deadline, so that the service still receives its outcome.
const REPORT_BEFORE_SECS: i64 = 5;
/// A command that has less time is not begun.
const LEAST_SECS: i64 = 2;
/// The time after which events that the disk did not accept are retried.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// How long after its start the agent may not know its adapters yet.
const SETTLES_WITHIN: Duration = Duration::from_secs(20);

/// Reasons beside those of `gatt`.
mod reason {
    pub const BAD_COMMAND: &str = "BAD_COMMAND";
    pub const EXPIRED: &str = "EXPIRED";
    pub const INTERRUPTED: &str = "INTERRUPTED";
    pub const NO_CONNECTING_ADAPTER: &str = "NO_CONNECTING_ADAPTER";
}

/// The parts of the agent that commands need.
pub struct Commands {
    pub spool: Spool,
    pub clock: Arc<Clock>,
    pub state_dir: Arc<StateDir>,
    pub requested: watch::Receiver<RequestedJobs>,
    pub adapters: watch::Receiver<Vec<Adapter>>,
    pub roles: watch::Receiver<BTreeMap<String, AdapterRole>>,
    /// The addresses of the adapters that the agent may use; all if empty.
    pub allowed: Vec<String>,
}

/// A command asks whether it may begin.
struct Asked {
    hub_job_uuid: HubJobUuid,
    may: oneshot::Sender<bool>,
}

struct Engine {
    commands: Commands,
    ledger: Ledger,
    running: JoinSet<(HubJobUuid, String, Ended)>,
    /// The devices that commands are carried out on.
    busy: BTreeSet<String>,
    asked: mpsc::Sender<Asked>,
    started: Instant,
    /// A command waits for the adapters to be known.
    is_waiting: bool,
}

/// Carries commands out until the spool has stopped.
pub async fn run(commands: Commands) -> Result<(), SpoolStopped> {
    let ledger = Ledger::load(commands.state_dir.clone());
    let (asked, mut asking) = mpsc::channel(MAX_AT_ONCE);
    let (running, busy, started) = (JoinSet::new(), BTreeSet::new(), Instant::now());
    let mut engine = Engine {
        commands,
        ledger,
        running,
        busy,
        asked,
        started,
        is_waiting: false,
    };
    engine.report_interrupted().await;
    loop {
        engine.spool_events().await?;
        engine.begin_requested().await;
        engine.spool_events().await?;
        let retry = !engine.ledger.outbox().is_empty() || engine.is_waiting;
        tokio::select! {
            // The sender lives as long as the agent.
            _ = engine.commands.requested.changed() => {}
            Some(ended) = engine.running.join_next() => if let Ok((uuid, address, ended)) = ended {
                engine.busy.remove(&address);
                engine.finish(uuid, &ended).await;
            },
            Some(Asked { hub_job_uuid, may }) = asking.recv() => {
                let _ = may.send(engine.may_begin(hub_job_uuid).await);
            }
            () = tokio::time::sleep(RETRY_EVERY), if retry => {}
        }
    }
}

impl Engine {
    /// Reports the commands that a kill or a power cut interrupted.
    async fn report_interrupted(&mut self) {
        for accepted in self.ledger.accepted().to_vec() {
            let message = match accepted.is_begun {
                true => {
                    "the agent or the hub stopped in the middle of it; it may have been carried out in part"
                }
                false => "the agent or the hub stopped before its first step; nothing was done",
            };
            tracing::warn!(hub_job_uuid = %accepted.hub_job_uuid, "a device command was interrupted; it is not repeated");
            // bluetoothd keeps a connection until a program ends it.
            gatt::disconnect(accepted.adapter_name, accepted.address).await;
            self.fail(
                accepted.hub_job_uuid,
                &Stopped::new(reason::INTERRUPTED, message),
            )
            .await;
        }
    }

    async fn spool_events(&mut self) -> Result<(), SpoolStopped> {
        let mut spooled = 0;
        for record in self.ledger.outbox() {
            if !self.commands.spool.keep(Kind::JobEvents, record).await? {
                break;
            }
            spooled += 1;
        }
        if spooled > 0 {
            self.ledger.spooled(spooled).await;
        }
        Ok(())
    }

    /// Begins commands that are requested and were never begun, as far as there is room.
    async fn begin_requested(&mut self) {
        let Some(requested) = self.commands.requested.borrow_and_update().clone() else {
            return;
        };
        let is_lost = std::mem::take(&mut self.ledger.is_lost);
        self.is_waiting = false;
        for job in requested {
            let RequestedJob::Known(job) = job else {
                continue;
            };
            if job.job_type != HubJobType::DeviceCommand || self.ledger.is_known(job.hub_job_uuid) {
                continue;
            }
            if is_lost {
                let message =
                    "the hub has lost its record of what it began; it may have been carried out";
                self.fail(
                    job.hub_job_uuid,
                    &Stopped::new(reason::INTERRUPTED, message),
                )
                .await;
                continue;
            }
            match self.prepared(&job) {
                Ok(task)
                    if self.running.len() < MAX_AT_ONCE && !self.busy.contains(&task.address) =>
                {
                    self.begin(job.hub_job_uuid, task).await;
                }
                Ok(_) => {}
                Err(stopped)
                    if stopped.reason == reason::NO_CONNECTING_ADAPTER && self.is_starting() =>
                {
                    self.is_waiting = true;
                }
                Err(stopped) => self.fail(job.hub_job_uuid, &stopped).await,
            }
        }
    }

    fn prepared(&self, job: &DesiredJob) -> Result<Task, Stopped> {
        let missing = || Stopped::new(reason::BAD_COMMAND, "the command says not what to do");
        let DeviceCommand { address, steps, .. } = job.command.clone().ok_or_else(missing)?;
        let clock = &self.commands.clock;
        let within = match clock.offset().known {
            // The time of a clock that was never set means nothing.
            false => LONGEST,
            true => {
                let left_secs =
                    job.deadline_at.as_secs() - clock.now().as_secs() - REPORT_BEFORE_SECS;
                if left_secs < LEAST_SECS {
                    let message = "nothing was done: the hub received it too late";
                    return Err(Stopped::new(reason::EXPIRED, message));
                }
                Duration::from_secs(left_secs.unsigned_abs()).min(LONGEST)
            }
        };
        let adapter_name = self.adapter().ok_or_else(|| {
            let message = "nothing was done: the hub has no adapter that is on and may connect";
            Stopped::new(reason::NO_CONNECTING_ADAPTER, message)
        })?;
        Ok(Task {
            adapter_name,
            address,
            steps,
            within,
        })
    }

    fn is_starting(&self) -> bool {
        self.started.elapsed() < SETTLES_WITHIN
    }

    /// An adapter that is kept for connections, else one that also scans.
    fn adapter(&self) -> Option<String> {
        let (adapters, roles) = (
            self.commands.adapters.borrow(),
            self.commands.roles.borrow(),
        );
        let allowed = &self.commands.allowed;
        chosen(&adapters, &roles, allowed)
    }

    async fn begin(&mut self, hub_job_uuid: HubJobUuid, task: Task) {
        let (adapter_name, address) = (task.adapter_name.clone(), task.address.clone());
        let accepted = Accepted {
            hub_job_uuid,
            adapter_name,
            address: address.clone(),
            is_begun: false,
        };
        tracing::info!(%hub_job_uuid, adapter = task.adapter_name, address, "a device command begins");
        // Whether this is on disk does not matter yet: the first step waits for `begin`.
        self.ledger.accept(accepted).await;
        self.busy.insert(address.clone());
        let asked = self.asked.clone();
        self.running.spawn(async move {
            let ((ask, asks), (may, answer)) = (oneshot::channel(), oneshot::channel());
            let gate = Gate { ask, may: answer };
            let passing = async {
                // A command that ends before its first step asks nothing.
                if asks.await.is_ok() {
                    let _ = asked.send(Asked { hub_job_uuid, may }).await;
                }
            };
            let (ended, ()) = tokio::join!(gatt::perform(task, gate), passing);
            (hub_job_uuid, address, ended)
        });
    }

    /// Whether the first step may be taken: the service still wants it, and that is on disk.
    async fn may_begin(&mut self, hub_job_uuid: HubJobUuid) -> bool {
        let is_requested =
            |jobs: &Vec<RequestedJob>| jobs.iter().any(|job| job.hub_job_uuid() == hub_job_uuid);
        let is_wanted = self
            .commands
            .requested
            .borrow()
            .as_ref()
            .is_none_or(is_requested);
        is_wanted && self.ledger.begin(hub_job_uuid).await
    }

    async fn finish(&mut self, hub_job_uuid: HubJobUuid, ended: &Ended) {
        match &ended.stopped {
            None => {
                tracing::info!(%hub_job_uuid, "a device command is done");
                let detail = json!({"steps": ended.outcomes});
                self.ledger
                    .finish(hub_job_uuid, HubJobEventKind::Succeeded, None, detail)
                    .await;
            }
            Some(stopped) => {
                let detail = match ended.outcomes.is_empty() {
                    true => json!({"reason": stopped.reason}),
                    false => json!({"reason": stopped.reason, "steps": ended.outcomes}),
                };
                self.fail_with(hub_job_uuid, stopped, detail).await;
            }
        }
    }

    async fn fail(&mut self, hub_job_uuid: HubJobUuid, stopped: &Stopped) {
        self.fail_with(hub_job_uuid, stopped, json!({"reason": stopped.reason}))
            .await;
    }

    async fn fail_with(&mut self, hub_job_uuid: HubJobUuid, stopped: &Stopped, detail: Value) {
        tracing::warn!(%hub_job_uuid, reason = stopped.reason, cause = stopped.message, "a device command failed");
        self.ledger
            .finish(
                hub_job_uuid,
                HubJobEventKind::Failed,
                Some(&stopped.message),
                detail,
            )
            .await;
    }
}

fn chosen(
    adapters: &[Adapter],
    roles: &BTreeMap<String, AdapterRole>,
    allowed: &[String],
) -> Option<String> {
    let role = |adapter: &Adapter| roles.get(&adapter.address.to_ascii_uppercase()).copied();
    let is_allowed = |adapter: &Adapter| {
        allowed.is_empty() || allowed.contains(&adapter.address.to_ascii_uppercase())
    };
    let with = |wanted: Option<AdapterRole>| {
        let mut found = adapters
            .iter()
            .filter(|adapter| role(adapter) == wanted && is_allowed(adapter));
        found.find(|adapter| adapter.powered || wanted == Some(AdapterRole::Connector))
    };
    let adapter = with(Some(AdapterRole::Connector)).or_else(|| with(None))?;
    Some(adapter.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_that_only_scans_is_never_chosen() {
        let adapter = |number: u8, powered: bool| Adapter {
            address: format!("00:11:22:33:44:0{number}"),
            name: format!("hci{number}"),
            alias: None,
            powered,
            discovering: None,
            address_type: None,
            manufacturer: None,
            modalias: None,
        };
        let adapters = [adapter(0, true), adapter(1, true), adapter(2, false)];
        let role = |number: u8, role: AdapterRole| (format!("00:11:22:33:44:0{number}"), role);
        let with = |roles: &[(String, AdapterRole)], allowed: &[String]| {
            chosen(&adapters, &roles.iter().cloned().collect(), allowed)
        };
        let (scanner, connector) = (AdapterRole::Scanner, AdapterRole::Connector);
        assert_eq!(with(&[], &[]).as_deref(), Some("hci0"));
        assert_eq!(with(&[role(0, scanner)], &[]).as_deref(), Some("hci1"));
        assert_eq!(with(&[role(1, connector)], &[]).as_deref(), Some("hci1"));
        assert_eq!(
            with(&[role(2, connector)], &[]).as_deref(),
            Some("hci2"),
            "it is switched on"
        );
        assert_eq!(
            with(&[role(0, scanner), role(1, AdapterRole::Disabled)], &[]),
            None
        );
        assert_eq!(
            with(&[], &["00:11:22:33:44:01".to_owned()]).as_deref(),
            Some("hci1")
        );
        assert_eq!(
            with(&[role(1, connector)], &["00:11:22:33:44:02".to_owned()]),
            None,
            "it is off"
        );
    }
}
