//! Endpoints as their callers see them.

mod auth;
mod claims;
mod service;
mod tenants;
