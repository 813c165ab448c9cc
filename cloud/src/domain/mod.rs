//! The subjects of the product, a folder for each: types, rules and writes in `mod.rs`; requests,
//! handlers and routes in `http.rs`; SQL in `store.rs`. A domain calls only domains of lower
//! layers, and only their `mod.rs`, never their `store.rs`.

pub mod accounts;
pub mod api_keys;
pub mod audit_logs;
pub mod ble;
pub mod ble_reprocess;
pub mod ble_routes;
pub mod certificates;
pub mod claim_codes;
pub mod desired_state;
pub mod device_catalog;
pub mod device_history;
pub mod device_instances;
pub mod device_pages;
pub mod device_query;
pub mod diagnostics;
pub mod hub_release;
pub mod hubs;
pub mod invitations;
pub mod jobs;
pub mod recognition;
pub mod releases;
pub mod scan_config;
pub mod setup_delegations;
pub mod simulator;
pub mod streams;
pub mod telemetry;
pub mod tenant_deletion;
pub mod tenants;
pub mod transfers;
pub mod unknown_advertisers;
pub mod update_policies;
