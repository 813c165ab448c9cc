//! Published vulnerabilities, components of software, and the order of their versions.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! text
//! error versions
//! json purl
//! components kev osv vex
//! documents image
//! lib
//! ```

pub mod components;
pub mod documents;
mod error;
pub mod image;
mod json;
pub mod kev;
pub mod osv;
pub mod purl;
mod text;
pub mod versions;
pub mod vex;

pub use error::{DocumentError, FeedError};
