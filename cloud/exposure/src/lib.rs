//! Who is exposed to which published vulnerability: what hubs run, what is published, and the
//! answers that follow from both.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! purl severity software
//! feeds
//! vulnerabilities
//! release_documents report
//! dependency_track
//! lib
//! ```

pub mod dependency_track;
pub mod feeds;
mod purl;
pub mod release_documents;
pub mod report;
pub mod severity;
pub mod software;
pub mod vulnerabilities;

use aide::axum::ApiRouter;
use axum::extract::FromRef;
use hub_core::Core;
use hub_identity::authn::Authn;

/// The state of this crate's handlers; each takes the part it needs. Cheap to clone.
#[derive(Clone, FromRef)]
pub struct Parts {
    pub core: Core,
    pub authn: Authn,
}

/// The routes of all subjects of this crate.
pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(software::http::routes())
        .merge(feeds::http::routes())
        .merge(dependency_track::http::routes())
        .merge(vulnerabilities::http::routes())
        .merge(report::http::routes())
        .merge(release_documents::http::routes())
}
