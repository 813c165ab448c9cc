//! Requests and responses of `/app` about hubs, devices, actions and forms, a file for each.

mod actions;
mod device_ui;
pub mod devices;
pub mod hubs;

use aide::axum::ApiRouter;
use axum::extract::FromRef;

use crate::authn::Authn;
use crate::core::Core;
use crate::domain::supplier_links::SupplierLinks;

const TAG: &str = "app";

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    SupplierLinks: FromRef<S>,
{
    ApiRouter::new()
        .merge(hubs::routes())
        .merge(devices::routes())
        .merge(actions::routes())
        .merge(device_ui::routes())
}
