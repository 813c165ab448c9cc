//! Who calls, and what they may do.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! authn
//! authz
//! ```

pub mod authn;
pub mod authz;
