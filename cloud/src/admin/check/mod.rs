//! `hub-cloud check`: tries everything the service needs, and says of each finding what it means and how to mend it. Works beside a service that
//! serves, changes nothing that lasts, and shows no secret.

mod listener;
mod peers;
mod store;

use hub_protocol::Timestamp;
use hub_protocol::check::Finding;

use crate::config::Config;

pub async fn check(config: &Config, now: Timestamp) -> Vec<Finding> {
    let (store, peers) = tokio::join!(store::check(config), peers::check(config));
    let mut findings = store;
    findings.extend(listener::check(config, now));
    findings.extend(peers);
    findings
}
