//! Endpoints as their callers see them.

mod api_keys;
mod audit;
mod auth;
mod bad_input;
mod bad_requests;
mod claims;
mod desired_state;
mod diagnostics;
mod external_issuer;
mod hubs;
mod hygiene;
mod invitations;
mod key_limits;
mod owners;
mod passwords;
mod refresh;
mod revocation;
mod service;
mod streams;
mod tenant_changes;
mod tenants;
mod token_attacks;
mod transfers;
mod upload_refusals;
mod uploads;
