//! `hub-cloud check`: tests everything that the service depends on and reports each finding with a
//! fix. It may run while the service runs, leaves no changes behind and prints no secret.

mod backups;
mod connections;
mod listener;
mod peers;
mod store;

use hub_core::config::Config;
use hub_protocol::Timestamp;
use hub_protocol::check::Finding;
pub use listener::{PLAIN_TEXT, PLAIN_TEXT_FIX};

pub async fn check(config: &Config, now: Timestamp) -> Vec<Finding> {
    let (store, peers) = tokio::join!(store::check(config), peers::check(config));
    let mut findings = store;
    findings.extend(listener::check(config, now));
    findings.extend(peers);
    findings.extend(backups::check(config, now).await);
    findings
}
