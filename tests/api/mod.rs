//! Endpoints as their callers see them.

mod auth;
mod bad_input;
mod bad_requests;
mod claims;
mod desired_state;
mod hubs;
mod hygiene;
mod invitations;
mod passwords;
mod refresh;
mod service;
mod streams;
mod tenants;
mod upload_refusals;
mod uploads;
