//! Requests and responses of `/app` about hubs, devices, actions and forms, a file for each.

mod actions;
mod device_ui;
pub mod devices;
pub mod hubs;

use aide::axum::ApiRouter;

use crate::Parts;

const TAG: &str = "app";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(hubs::routes())
        .merge(devices::routes())
        .merge(actions::routes())
        .merge(device_ui::routes())
}
