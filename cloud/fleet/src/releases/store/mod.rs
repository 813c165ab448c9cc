//! SQL of apps and releases: a file for each table, and what both tables of releases share.

pub mod agent_releases;
pub mod app_releases;
pub mod apps;
pub mod shared;
