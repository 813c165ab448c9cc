//! The subjects of people and tenants: accounts, members, API keys, invitations, transfers, what
//! suppliers configure, billing.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! audit_logs billing
//! accounts
//! tenants
//! api_keys diagnostics invitations supplier_oauth
//! registration_events supplier_links transfers
//! lib
//! ```

pub mod accounts;
pub mod api_keys;
pub mod audit_logs;
pub mod billing;
pub mod diagnostics;
pub mod invitations;
pub mod registration_events;
pub mod supplier_links;
pub mod supplier_oauth;
pub mod tenants;
pub mod transfers;

use aide::axum::ApiRouter;
use axum::extract::FromRef;
use hub_core::Core;
use hub_identity::authn::Authn;

use accounts::Accounts;
use billing::Billing;
use supplier_links::SupplierLinks;

/// The state of this crate's handlers; each takes the part it needs. Cheap to clone.
#[derive(Clone, FromRef)]
pub struct Parts {
    pub core: Core,
    pub authn: Authn,
    pub accounts: Accounts,
    pub supplier_links: SupplierLinks,
    pub billing: Billing,
}

/// The routes of all subjects of this crate.
pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(accounts::http::routes())
        .merge(tenants::http::routes())
        .merge(api_keys::http::routes())
        .merge(audit_logs::http::routes())
        .merge(diagnostics::http::routes())
        .merge(transfers::http::routes())
        .merge(invitations::http::routes())
        .merge(supplier_oauth::http::routes())
        .merge(supplier_links::http::routes())
        .merge(registration_events::http::routes())
        .merge(billing::http::routes())
}
