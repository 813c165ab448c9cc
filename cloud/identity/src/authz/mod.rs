//! What a caller may do: the permission table and the extractors that check it. The only place that
//! creates a [`Scope`] or a [`UserScope`].

pub mod permission;
mod policy;
mod scope;

pub use permission::KeyScopes;
pub use policy::{
    ACCESS_EXTENSION, Authorized, Caller, EndUser, MandateBearer, Member, MemberOrSelf,
    PlatformAdmin, Public, Signed, TENANT_HEADER, require,
};
pub use scope::{Scope, UserScope};
