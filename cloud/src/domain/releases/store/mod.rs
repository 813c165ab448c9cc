//! SQL of apps and releases, a file for each table.

pub mod agent_releases;
pub mod app_releases;
pub mod apps;
