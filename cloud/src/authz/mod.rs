//! What a caller may do. Holds the permission table, the extractors that check it and what they remember for a moment, and is the only place where a
//! [`Scope`] is made.

mod cache;
pub mod permission;
mod policy;
mod scope;

pub use cache::{LEASE, Permissions, Statistics};
pub use permission::KeyScopes;
pub use policy::{Authorized, Caller, Member, PlatformAdmin, Public, TENANT_HEADER, require};
pub use scope::{Actor, ActorType, Scope};
