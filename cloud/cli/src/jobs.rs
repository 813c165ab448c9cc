//! Jobs of hubs, as commands that create one follow them.

use std::time::Duration;

use hub_client::{Client, Job, operations};
use hub_protocol::{HubJobUuid, HubUuid};
use serde_json::Value;

use crate::failure::Failure;
use crate::global::Global;
use crate::terminal::{note, print_json, state};
use crate::text::printable;

/// Waits until a job has finished, and fails if it failed.
pub async fn wait_for(
    global: &Global,
    client: &Client,
    hub: HubUuid,
    job: HubJobUuid,
) -> Result<(), Failure> {
    let mut shown = String::new();
    loop {
        let call = operations::HUB_JOB
            .call()
            .path("hubUuid", hub)
            .path("jobUuid", job);
        let record: Value = client.call(call).await?;
        let job: Job = serde_json::from_value(record.clone())?;
        let progress = job
            .progress
            .map(|percent| format!(" {percent} %"))
            .unwrap_or_default();
        let detail = job
            .detail
            .as_deref()
            .map(|detail| format!(": {}", printable(detail)))
            .unwrap_or_default();
        let text = format!("{}{progress}{detail}", state(&job.status));
        if text != shown && !global.json {
            note(&text);
        }
        shown = text;
        if job.has_finished() {
            if global.json {
                print_json(&record)?;
            }
            return match job.status.as_str() {
                "SUCCEEDED" => Ok(()),
                _ => Err(Failure::failed(format!(
                    "the job ended as {}{detail}",
                    printable(&job.status)
                ))),
            };
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
