//! `hub-agent status`: requests the running agent's status and prints it. Fails if the service
//! refuses the hub.

use super::output;
use crate::clock;
use crate::config::StatusArgs;
use crate::control;
use crate::error::Failure;
use crate::identity::StateDir;
use crate::status::AccessState;

pub fn status(args: &StatusArgs) -> Result<(), Failure> {
    let state_dir = &args.common.state_dir;
    let Some(status) = control::request_status(state_dir)? else {
        if let Some(trouble) = StateDir::trouble(state_dir) {
            return Err(Failure::Failed(format!(
                "{} cannot be written ({trouble}); the agent waits until it can (journalctl -u hub-agent), so mount \
                 it writable or replace the disk",
                state_dir.display()
            )));
        }
        return Err(Failure::Failed(format!(
            "no agent is running on {} (systemctl start hub-agent; --state-dir selects another directory)",
            state_dir.display()
        )));
    };
    if args.json {
        let json = serde_json::to_string_pretty(&status)
            .map_err(|error| Failure::Failed(error.to_string()))?;
        output::print(&format!("{json}\n"))?;
    } else {
        output::print(&status.to_text(clock::machine_now()))?;
    }
    match status.access {
        AccessState::Refused => Err(Failure::Failed(
            "the service refuses this hub; claim it again (hub-agent claim --code CODE)".to_owned(),
        )),
        AccessState::Unclaimed | AccessState::Claimed => Ok(()),
    }
}
