//! What a caller may do. Holds the permission table and the extractors that check it, and is the only place where a [`Scope`] is made.

pub mod permission;
mod policy;
mod scope;

pub use policy::{Authorized, PlatformAdmin, Public, TENANT_HEADER};
pub use scope::{Actor, Scope};
