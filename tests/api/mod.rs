//! Endpoints as their callers see them.

mod auth;
mod bad_input;
mod bad_requests;
mod claims;
mod desired_state;
mod hubs;
mod owners;
mod refresh;
mod revocation;
mod service;
mod streams;
mod tenant_changes;
mod tenants;
mod transfers;
mod upload_refusals;
mod uploads;
