//! The subjects that compose several others: bundles, end users, the desired state of hubs,
//! commands, notices, deletions, retention. Only the router and the workers call them.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! bundles end_users pairing partner_projects simulator
//! device_commands hub_release mandates notices scan_config
//! dashboard person_stream things value_files
//! platform_summary tenant_setup
//! account_deletion account_export desired_state tenant_deletion
//! retention
//! lib
//! ```

pub mod account_deletion;
pub mod account_export;
pub mod bundles;
pub mod dashboard;
pub mod desired_state;
pub mod device_commands;
pub mod end_users;
pub mod hub_release;
pub mod mandates;
pub mod notices;
pub mod pairing;
pub mod partner_projects;
pub mod person_stream;
pub mod platform_summary;
pub mod retention;
pub mod scan_config;
pub mod simulator;
pub mod tenant_deletion;
pub mod tenant_setup;
pub mod things;
pub mod value_files;

use aide::axum::ApiRouter;
use axum::extract::FromRef;
use hub_core::Core;
use hub_devices::recognition::Recognition;
use hub_fleet::hubs::Hubs;
use hub_identity::authn::Authn;
use hub_people::accounts::Accounts;
use hub_people::supplier_links::SupplierLinks;
use hub_streams::Streams;

use dashboard::Dashboards;
use device_commands::DeviceCommands;
use scan_config::ScanConfigs;

/// The state of this crate's handlers; each takes the part it needs. Cheap to clone.
#[derive(Clone, FromRef)]
pub struct Parts {
    pub core: Core,
    pub authn: Authn,
    pub accounts: Accounts,
    pub supplier_links: SupplierLinks,
    pub hubs: Hubs,
    pub recognition: Recognition,
    pub scan_configs: ScanConfigs,
    pub dashboards: Dashboards,
    pub device_commands: DeviceCommands,
    pub streams: Streams,
    pub mandate_calls: mandates::access::Calls,
}

/// The routes of all subjects of this crate.
pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(tenant_deletion::http::routes())
        .merge(bundles::http::routes())
        .merge(hub_release::http::routes())
        .merge(simulator::http::routes())
        .merge(end_users::http::routes())
        .merge(device_commands::http::routes())
        .merge(person_stream::http::routes())
        .merge(mandates::http::routes())
        .merge(things::http::routes())
        .merge(value_files::http::routes())
        .merge(desired_state::http::routes())
        .merge(scan_config::http::routes())
        .merge(notices::http::routes())
        .merge(pairing::http::routes())
        .merge(account_deletion::http::routes())
        .merge(account_export::http::routes())
        .merge(dashboard::http::routes())
        .merge(platform_summary::routes())
        .merge(tenant_setup::routes())
        .merge(partner_projects::http::routes())
}

/// The routes that are served with the setting `dev-endpoints` alone.
pub fn dev_routes() -> ApiRouter<Parts> {
    partner_projects::http::dev_routes()
}
