//! The subjects of devices: the catalog of models, devices and their pages, recognition, BLE events
//! and their history, external endpoints.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! assigned_names delivery_status history unknown_advertisers
//! device_catalog
//! device_pages
//! device_instances external_endpoints
//! ble_routes dashboards
//! recognition
//! ble
//! device_history
//! ble_reprocess device_query
//! lib
//! ```

pub mod assigned_names;
pub mod ble;
pub mod ble_reprocess;
pub mod ble_routes;
pub mod dashboards;
pub mod delivery_status;
pub mod device_catalog;
pub mod device_history;
pub mod device_instances;
pub mod device_pages;
pub mod device_query;
pub mod external_endpoints;
pub mod history;
pub mod recognition;
pub mod unknown_advertisers;

use aide::axum::ApiRouter;
use axum::extract::FromRef;
use hub_core::Core;
use hub_identity::authn::Authn;
use hub_ingest::Ingest;

use recognition::Recognition;

/// The state of this crate's handlers; each takes the part it needs. Cheap to clone.
#[derive(Clone, FromRef)]
pub struct Parts {
    pub core: Core,
    pub authn: Authn,
    pub ingest: Ingest,
    pub recognition: Recognition,
}

/// The routes of all subjects of this crate.
pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(device_instances::http::routes())
        .merge(device_history::http::routes())
        .merge(ble::http::routes())
        .merge(ble_routes::http::routes())
        .merge(ble_reprocess::http::routes())
        .merge(history::routes())
        .merge(device_query::http::routes())
        .merge(unknown_advertisers::http::routes())
        .merge(assigned_names::routes())
        .merge(device_catalog::http::routes())
        .merge(device_pages::http::routes())
        .merge(external_endpoints::http::routes())
        .merge(dashboards::http::routes())
}
