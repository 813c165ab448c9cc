//! Endpoints as their callers see them.

mod claims;
mod service;
