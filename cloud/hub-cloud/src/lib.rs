//! hub-cloud: gives hubs their identity, accepts what they upload, and serves the people who
//! operate them. This crate composes the subjects and is the program.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! start_error
//! database
//! app
//! conditions lock
//! http/accept http/access_log http/console http/head http/health http/hygiene http/openapi
//! http/security_txt http/trace upkeep
//! http/middleware http/tls observe
//! http/router http/serve
//! backup
//! admin
//! demo release simulate
//! cli
//! main
//! ```

pub mod admin;
pub mod app;
pub mod backup;
mod conditions;
pub mod database;
pub mod demo;
pub mod http;
pub mod lock;
pub mod observe;
pub mod release;
pub mod simulate;
pub mod start_error;
pub mod upkeep;
