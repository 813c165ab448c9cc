//! The subjects of the product, a folder for each: types, rules and writes in `mod.rs`; requests,
//! handlers and routes in `http.rs`; SQL in `store.rs`. A domain calls only domains of lower
//! layers, and only their `mod.rs`, never their `store.rs`.

pub mod accounts;
pub mod api_keys;
pub mod audit_logs;
pub mod ble;
pub mod ble_reprocess;
pub mod ble_routes;
pub mod bundles;
pub mod certificates;
pub mod claim_codes;
pub mod consent;
pub mod dashboard;
pub mod delivery_status;
pub mod desired_state;
pub mod device_catalog;
pub mod device_commands;
pub mod device_history;
pub mod device_instances;
pub mod device_pages;
pub mod device_query;
pub mod diagnostics;
pub mod end_users;
pub mod external_endpoints;
pub mod hub_release;
pub mod hubs;
pub mod invitations;
pub mod jobs;
pub mod notices;
pub mod pipelines;
pub mod recognition;
pub mod registration_events;
pub mod releases;
pub mod scan_config;
pub mod setup_delegations;
pub mod simulator;
pub mod streams;
pub mod supplier_links;
pub mod supplier_oauth;
pub mod telemetry;
pub mod tenant_deletion;
pub mod tenants;
pub mod transfers;
pub mod unknown_advertisers;
pub mod update_policies;
