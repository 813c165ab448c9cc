//! The permission table: what each permission requires of a member's role, and which API key scope
//! grants it.

use KeyAccess::{Any, Never, Scope};

pub use crate::authn::grants::{BITS, KeyScopes, MANAGE, OPERATE, OWN, READ, Role, SCOPES, WRITE};

/// What a permission requires of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAccess {
    /// No key: a key acts for a tenant and no person, so it must not manage people, keys or
    /// secrets.
    Never,
    /// A key with this scope.
    Scope(&'static str),
    /// Any key.
    Any,
}

impl KeyAccess {
    pub fn is_met_by(self, scopes: &KeyScopes) -> bool {
        match self {
            Self::Never => false,
            Self::Scope(scope) => scopes.cover(scope),
            Self::Any => true,
        }
    }
}

/// One row of the table. Handlers name its type in their signature, as in `Authorized<HubsRead>`.
pub trait Permission: Send + Sync + 'static {
    const NAME: &'static str;
    /// The required role bit.
    const BIT: u8;
    const KEY: KeyAccess;
}

/// Declares the rows. Each is a type, so that they cannot be confused.
macro_rules! permissions {
    ($($name:ident, $bit:ident, $key:expr;)*) => {
        $(
            pub struct $name;
            impl Permission for $name {
                const NAME: &'static str = stringify!($name);
                const BIT: u8 = $bit;
                const KEY: KeyAccess = $key;
            }
        )*
        /// All rows: name, bit, required key access.
        pub const TABLE: &[(&str, u8, KeyAccess)] = &[$((stringify!($name), $bit, $key)),*];
    };
}

permissions! {
    HubsRead,          READ,    Scope("hubs:read");
    HubsWrite,         WRITE,   Scope("hubs:write");
    HubsOperate,       OPERATE, Scope("hubs:write");
    HubsMove,          MANAGE,  Never;
    ClaimCodesRead,    READ,    Scope("hubs:read");
    ClaimCodesWrite,   WRITE,   Scope("hubs:write");
    BleRead,           READ,    Scope("ble:read");
    BleRouteWrite,     WRITE,   Scope("pipelines:write");
    BleReprocess,      WRITE,   Scope("pipelines:write");
    BundlesRead,       READ,    Scope("bundles:read");
    BundlesWrite,      WRITE,   Scope("bundles:write");
    BundlesPublish,    OPERATE, Scope("bundles:write");
    PipelinesRead,     READ,    Scope("pipelines:read");
    PipelinesWrite,    WRITE,   Scope("pipelines:write");
    DevicesRead,       READ,    Scope("devices:read");
    DevicesWrite,      WRITE,   Scope("devices:write");
    DevicesOperate,    OPERATE, Scope("devices:write");
    HistoryImport,     MANAGE,  Never;
    MembersRead,       READ,    Never;
    MembersManage,     MANAGE,  Never;
    TenantUpdate,      MANAGE,  Never;
    TenantOwn,         OWN,     Never;
    ApiKeysManage,     MANAGE,  Never;
    ReleasesRead,      READ,    Scope("releases:read");
    ReleasesWrite,     WRITE,   Scope("releases:write");
    AuditRead,         MANAGE,  Scope("audit:read");
    CatalogRead,       READ,    Scope("catalog:read");
    CatalogWrite,      WRITE,   Scope("catalog:write");
    ExternalEndpointsRead,   READ,   Scope("catalog:read");
    ExternalEndpointsManage, MANAGE, Scope("catalog:write");
    Diagnostics,       READ,    Any;
    UpdatePoliciesRead, READ,   Scope("releases:read");
    UpdatePoliciesOperate, OPERATE, Scope("hubs:write");
    SupplierOauthManage, MANAGE, Never;
    VulnerabilitiesRead, READ,  Scope("hubs:read");
    VulnerabilitiesOperate, OPERATE, Scope("hubs:write");
    NotificationsRead, READ,    Scope("pipelines:read");
    NotificationsWrite, WRITE,  Scope("pipelines:write");
    DashboardRead,     READ,    Scope("hubs:read");
    ConsentRead,       READ,    Scope("hubs:read");
    ConsentRecordsRead, READ,   Scope("audit:read");
    ConsentManage,     MANAGE,  Never;
    BillingRead,       READ,    Scope("billing:read");
    BillingManage,     MANAGE,  Never;
}
