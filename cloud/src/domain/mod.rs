//! What the product is about, one folder a subject: rules and write operations in `mod.rs`, requests and handlers in `http.rs`, SQL in `store.rs`.
//! A subject may call another's `mod.rs`, never its `store.rs`.

pub mod accounts;
pub mod api_keys;
pub mod audit;
pub mod ble;
pub mod certificates;
pub mod claim_codes;
pub mod diagnostics;
pub mod hubs;
pub mod invitations;
pub mod jobs;
pub mod policies;
pub mod releases;
pub mod setup_delegations;
pub mod streams;
pub mod telemetry;
pub mod tenants;
pub mod transfers;
