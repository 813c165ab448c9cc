//! `hub rollout`: shows, halts and resumes rollouts of agent updates.

use clap::Subcommand;
use hub_client::{Client, Operation, Policy, operations};
use serde_json::Value;
use uuid::Uuid;

use crate::connect::{in_tenant, without_tenant};
use crate::failure::Failure;
use crate::global::{Consent, Global};
use crate::terminal::{Table, confirm, note, print_json, state};
use crate::text::printable;

#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Show policies and their rollouts
    Status {
        /// Show the status of the platform (platform administrators)
        #[arg(long)]
        platform: bool,
    },
    /// Halt a rollout: no more hubs start the update
    Halt(RolloutOptions),
    /// Resume a halted rollout: more hubs start the update
    Resume(RolloutOptions),
}

#[derive(Debug, clap::Args)]
pub struct RolloutOptions {
    /// Policy; not needed while there is only one with a rollout
    pub policy: Option<Uuid>,
    /// A policy of the platform (platform administrators)
    #[arg(long)]
    pub platform: bool,
    #[command(flatten)]
    pub consent: Consent,
}

pub async fn run(global: &Global, command: RolloutCommand) -> Result<(), Failure> {
    match command {
        RolloutCommand::Status { platform } => status(global, platform).await,
        RolloutCommand::Halt(options) => {
            let operation = match options.platform {
                true => &operations::HALT_PLATFORM_ROLLOUT,
                false => &operations::HALT_ROLLOUT,
            };
            let what = "No more hubs start the update. Updates in progress continue.";
            change(global, &options, operation, what).await
        }
        RolloutCommand::Resume(options) => {
            let operation = match options.platform {
                true => &operations::RESUME_PLATFORM_ROLLOUT,
                false => &operations::RESUME_ROLLOUT,
            };
            let what = "More hubs start the update. Previous failures no longer halt the rollout.";
            change(global, &options, operation, what).await
        }
    }
}

/// A client, and the operation that lists the policies it works on.
async fn connect(global: &Global, platform: bool) -> Result<(Client, &'static Operation), Failure> {
    Ok(match platform {
        true => (
            without_tenant(global).await?,
            &operations::PLATFORM_POLICIES,
        ),
        false => (in_tenant(global).await?, &operations::POLICIES),
    })
}

async fn status(global: &Global, platform: bool) -> Result<(), Failure> {
    let (client, policies) = connect(global, platform).await?;
    let records: Vec<Value> = client.list(policies.call()).await?;
    if global.json {
        return print_json(&Value::Array(records));
    }
    table(records)?
        .print("There are no update policies; docs/operating.md describes how to create one.")
}

fn table(records: Vec<Value>) -> Result<Table, Failure> {
    let mut table = Table::new(&[
        "POLICY", "SCOPE", "VERSION", "STATE", "HUBS", "DONE", "FAILED", "SILENT", "REASON",
    ]);
    for record in records {
        let policy: Policy = serde_json::from_value(record)?;
        let scope = match policy.hub_uuid {
            Some(hub) => format!("{} {hub}", printable(&policy.scope)),
            None => printable(&policy.scope),
        };
        if policy.rollouts.is_empty() {
            let version = policy
                .version
                .unwrap_or_else(|| format!("latest of {}", policy.channel));
            let automatic = if policy.auto_update { "waiting" } else { "off" };
            table.row(vec![
                policy.policy_uuid.to_string(),
                scope,
                printable(&version),
                automatic.to_owned(),
            ]);
            continue;
        }
        for rollout in policy.rollouts {
            table.row(vec![
                policy.policy_uuid.to_string(),
                scope.clone(),
                printable(&format!("{} {}", rollout.version, rollout.architecture)),
                state(&rollout.state),
                format!("{} ({} %)", rollout.started, rollout.percent),
                rollout.succeeded.to_string(),
                rollout.failed.to_string(),
                rollout.silent.to_string(),
                printable(&rollout.reason.unwrap_or_default()),
            ]);
        }
    }
    Ok(table)
}

async fn change(
    global: &Global,
    options: &RolloutOptions,
    operation: &'static Operation,
    what: &str,
) -> Result<(), Failure> {
    let (client, policies) = connect(global, options.platform).await?;
    let policy = match options.policy {
        Some(policy) => policy,
        None => {
            let policies: Vec<Policy> = client.list(policies.call()).await?;
            let mut rolled_out = policies.iter().filter(|policy| !policy.rollouts.is_empty());
            match (rolled_out.next(), rolled_out.next()) {
                (Some(policy), None) => policy.policy_uuid,
                (None, _) => {
                    return Err(Failure::failed(
                        "no policy has a rollout; run `hub rollout status`",
                    ));
                }
                (Some(_), Some(_)) => {
                    return Err(Failure::usage(
                        "several policies have a rollout; give one that `hub rollout status` shows",
                    ));
                }
            }
        }
    };
    confirm(&format!("Policy {policy}: {what}"), options.consent.yes)?;
    let changed: Value = client
        .call(operation.call().path("policyUuid", policy))
        .await?;
    if global.json {
        return print_json(&changed);
    }
    note("Done.");
    table(vec![changed])?.print("")
}
