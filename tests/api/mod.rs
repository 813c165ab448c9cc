//! Endpoints as their callers see them.

mod auth;
mod bad_input;
mod bad_requests;
mod claims;
mod desired_state;
mod external_issuer;
mod hubs;
mod hygiene;
mod refresh;
mod service;
mod streams;
mod tenants;
mod token_attacks;
mod upload_refusals;
mod uploads;
