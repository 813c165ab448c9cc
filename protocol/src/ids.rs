//! One type for each kind of identifier, so that a hub's uuid cannot be passed where a tenant's belongs.
//! On the wire and in the database each is a plain uuid.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Declares a uuid newtype: six identical sets of conversions are noise that hides the one line that matters.
macro_rules! uuid_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transparent))]
        #[cfg_attr(feature = "database", derive(sqlx::Type), sqlx(transparent))]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new identifier that sorts by the time it was made (RFC 9562, version 7).
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

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }
    };
}

uuid_type!(
    /// A supplier: `tenant_uuid` and `supplier_uuid` name this same value.
    TenantUuid
);
uuid_type!(
    /// A person's account.
    UserUuid
);
uuid_type!(
    /// A person's identity inside one tenant, or their default one outside of any.
    PersonaUuid
);
uuid_type!(
    /// One gateway in the field.
    HubUuid
);
uuid_type!(
    /// One upload of BLE events. Chosen by the hub before it sends, so that a retry is recognised.
    BatchUuid
);
uuid_type!(
    /// Something a hub is to do once.
    HubJobUuid
);
uuid_type!(
    /// A supplier's app.
    AppUuid
);
uuid_type!(
    /// One version of an app or of the agent, for one architecture.
    ReleaseUuid
);
