//! `hub export tenant` and `hub import tenant`: all that a tenant has, as files that another
//! service takes in.

mod archive;
pub mod args;
mod configuration;
mod devices;
mod export;
mod exporter;
mod history;
mod import;
mod importer;
mod journal;
mod pages;
mod parts;
mod release_files;
mod releases;
mod report;
mod settings;
mod sites;
mod values;
mod vulnerabilities;

pub use export::export;
pub use import::import;

use hub_client::{Client, operations};
use hub_protocol::{TenantUuid, Timestamp};
use serde::Deserialize;

use crate::failure::Failure;

/// The tenant that a client acts in, and the time of its service.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Caller {
    tenant_uuid: TenantUuid,
    tenant_name: String,
    server_time: Timestamp,
}

async fn caller(client: &Client) -> Result<Caller, Failure> {
    Ok(client.call(operations::CALLER.call()).await?)
}
