//! Endpoints as their callers see them.

mod service;
