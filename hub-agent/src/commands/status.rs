//! `hub-agent status`: asks the running agent and shows what it says.

use crate::clock;
use crate::config::StatusArgs;
use crate::control;
use crate::error::Failure;

pub fn status(args: &StatusArgs) -> Result<(), Failure> {
    let state_dir = &args.common.state_dir;
    let Some(status) = control::ask_status(state_dir)? else {
        return Err(Failure::Failed(format!(
            "no agent runs on {} (systemctl start hub-agent; --state-dir names another directory)",
            state_dir.display()
        )));
    };
    if args.json {
        let json = serde_json::to_string_pretty(&status).map_err(|error| Failure::Failed(error.to_string()))?;
        super::print(&format!("{json}\n"))
    } else {
        super::print(&status.to_text(clock::machine_now()))
    }
}
