//! One type for each kind of identifier, so that a hub's uuid cannot be passed as a tenant's. On
//! the wire and in the database, each is a plain uuid.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Declares a uuid newtype. Eight copies of the same conversions would hide the one line that
/// differs. Its comment is the description in schemas.
macro_rules! uuid_type {
    ($(#[doc = $doc:literal])+ $name:ident) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(feature = "database", derive(sqlx::Type), sqlx(transparent))]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new identifier that sorts by its creation time (RFC 9562, version 7).
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let description = concat!($($doc),+).trim();
                schemars::json_schema!({"type": "string", "format": "uuid", "description": description})
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }
    };
}

uuid_type!(
    /// A tenant, which is also called a supplier or a unit.
    TenantUuid
);
uuid_type!(
    /// The account of a person.
    UserUuid
);
uuid_type!(
    /// A persona: the identity of a person in one tenant, or outside of any.
    PersonaUuid
);
uuid_type!(
    /// A hub.
    HubUuid
);
uuid_type!(
    /// One upload of BLE events. The hub chooses it before it sends, so that a retry is recognised.
    BatchUuid
);
uuid_type!(
    /// A job of a hub.
    HubJobUuid
);
uuid_type!(
    /// An app of a tenant.
    AppUuid
);
uuid_type!(
    /// A release: one version of an app or of the agent, for one architecture.
    ReleaseUuid
);
