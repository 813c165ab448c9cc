//! `/tenant/ble/names`: names of the companies and services that advertisements name by number, for
//! those who choose one.

use std::collections::BTreeMap;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use hub_adverts::company::companies;
use hub_adverts::service::SERVICES;
use hub_core::http::answer::Answer;
use hub_core::http::operation::operation;
use hub_identity::authz::{Authorized, permission as perm};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/ble/names",
        get_with(
            names,
            operation(
                "assignedNames.get",
                "tenant-ble",
                "Names of companies and services by their identifiers",
            ),
        ),
    )
}

/// Names by identifiers of 4 hex digits, as routes and advertisements have them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssignedNames {
    /// Companies, by the identifiers in manufacturer data.
    companies: BTreeMap<String, &'static str>,
    /// Services, by their identifiers of 16 bits; few of those of single companies.
    services: BTreeMap<String, &'static str>,
}

async fn names(_: Authorized<perm::BleRead>) -> Answer<AssignedNames> {
    let named = |(id, name): (u16, &'static str)| (format!("{id:04x}"), name);
    Answer(AssignedNames {
        companies: companies().map(named).collect(),
        services: SERVICES.into_iter().map(named).collect(),
    })
}
