//! Endpoints as their callers see them.

mod auth;
mod claims;
mod desired_state;
mod hubs;
mod refresh;
mod service;
mod tenants;
