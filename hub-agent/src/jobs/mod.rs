//! Jobs of the desired state, done one at a time in their order: apps are installed and removed,
//! the agent is updated. A kill or a power cut at any moment is continued or undone at the next
//! start; a job ends once, with the outcome that it reports. Changes that need root are requested
//! of the helper, which trusts nothing that it receives. [`engine`] has the state machine.

mod apps;
mod context;
mod download;
mod engine;
mod health;
mod helper;
mod job;
mod ledger;
mod moving;
mod prepare;
mod queue;
pub mod release;
#[cfg(test)]
mod tests;
mod upkeep;
mod view;
mod window;

pub use apps::report_installed;
pub use context::Jobs;
pub use engine::run;
pub use helper::{HelperClient, HelperFailure};
pub use job::{JobRecord, JobsConfig, RequestedJob, RequestedJobs};
pub use view::{AppsChanged, JobShown, View};
