//! The subjects of hubs: claim codes, certificates, adapters, releases, jobs, update policies,
//! telemetry, consent, delegations, floor plans.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! certificates claim_codes
//! hubs
//! certificates/http consent floor_plans releases setup_delegations telemetry
//! jobs
//! update_policies
//! lib
//! ```

pub mod certificates;
pub mod claim_codes;
pub mod consent;
pub mod floor_plans;
pub mod hubs;
pub mod jobs;
pub mod releases;
pub mod setup_delegations;
pub mod telemetry;
pub mod update_policies;

use aide::axum::ApiRouter;
use axum::extract::FromRef;
use hub_core::Core;
use hub_identity::authn::Authn;
use hub_ingest::Ingest;

use hubs::Hubs;
use jobs::Jobs;
use releases::Releases;
use update_policies::Policies;

/// The state of this crate's handlers; each takes the part it needs. Cheap to clone.
#[derive(Clone, FromRef)]
pub struct Parts {
    pub core: Core,
    pub authn: Authn,
    pub ingest: Ingest,
    pub hubs: Hubs,
    pub releases: Releases,
    pub jobs: Jobs,
    pub policies: Policies,
}

/// The routes of all subjects of this crate.
pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(claim_codes::http::routes())
        .merge(hubs::http::routes())
        .merge(certificates::http::routes())
        .merge(setup_delegations::http::routes())
        .merge(telemetry::http::routes())
        .merge(floor_plans::http::routes())
        .merge(releases::http::routes())
        .merge(jobs::http::routes())
        .merge(update_policies::http::routes())
        .merge(consent::http::routes())
}
