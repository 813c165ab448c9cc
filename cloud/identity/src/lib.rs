//! Who calls, and what they may do. Checks return boxed futures, so that they are compiled here and
//! not once more into every handler.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! authn
//! authz
//! ```

pub mod authn;
pub mod authz;
