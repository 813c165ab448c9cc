//! hub-cloud: gives hubs their identity, accepts what they upload, and serves the people who
//! operate them. This crate composes the subjects and is the program.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! app
//! http/accept http/access_log http/console http/head http/health http/hygiene http/openapi upkeep
//! http/middleware http/tls observe
//! http/router http/serve
//! admin
//! demo release
//! cli
//! main
//! ```

pub mod admin;
pub mod app;
pub mod demo;
pub mod http;
pub mod observe;
pub mod release;
pub mod upkeep;
