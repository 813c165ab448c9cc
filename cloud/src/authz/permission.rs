//! The permission table: what each permission asks of a member's role, and which API key scope grants it.

use std::sync::Arc;

use KeyAccess::{Any, Never, Scope};

/// The bits of a role (permission codes).
pub const READ: u8 = 1;
pub const WRITE: u8 = 2;
/// Jobs, blocking, delegation.
pub const OPERATE: u8 = 4;
/// Members, keys, secrets.
pub const MANAGE: u8 = 8;
/// What only an owner may; no permission code, but a bit that no other role has.
pub const OWN: u8 = 16;

/// A member's role in a tenant.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Role {
    Viewer,
    Editor,
    Operator,
    Admin,
    /// As ADMIN, and what only an owner may: transfer, delete, grant OWNER.
    Owner,
}

impl Role {
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Editor, Self::Operator, Self::Admin, Self::Owner];

    pub const fn bits(self) -> u8 {
        match self {
            Self::Viewer => READ,
            Self::Editor => READ | WRITE,
            Self::Operator => READ | WRITE | OPERATE,
            Self::Admin | Self::Owner => READ | WRITE | OPERATE | MANAGE,
        }
    }

    /// Whether the role reaches as far as a permission that asks for `bit`.
    pub const fn allows(self, bit: u8) -> bool {
        match self {
            Self::Owner => (self.bits() | OWN) & bit != 0,
            _ => self.bits() & bit != 0,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "VIEWER",
            Self::Editor => "EDITOR",
            Self::Operator => "OPERATOR",
            Self::Admin => "ADMIN",
            Self::Owner => "OWNER",
        }
    }
}

/// As the database holds it.
impl TryFrom<String> for Role {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::ALL.into_iter().find(|role| role.name() == name).ok_or_else(|| format!("unknown role {name}"))
    }
}

/// The permission codes of a role by name, for people.
pub const BITS: [(&str, u8); 4] = [("READ", READ), ("WRITE", WRITE), ("OPERATE", OPERATE), ("MANAGE", MANAGE)];

/// What an API key may do: any of [`SCOPES`], `<kind>:*` for both of a kind, or `*` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyScopes(Arc<[String]>);

/// Every scope there is.
pub const SCOPES: [&str; 15] = [
    "hubs:read",
    "hubs:write",
    "devices:read",
    "devices:write",
    "catalog:read",
    "catalog:write",
    "ble:read",
    "bundles:read",
    "bundles:write",
    "pipelines:read",
    "pipelines:write",
    "releases:read",
    "releases:write",
    "audit:read",
    "billing:read",
];

impl KeyScopes {
    /// As the database holds them, with blanks in between.
    pub fn from_stored(text: &str) -> Self {
        Self(text.split_ascii_whitespace().map(str::to_owned).collect())
    }

    /// Scopes as a client names them, each once; the error is one that does not exist.
    pub fn checked(names: Vec<String>) -> Result<Self, String> {
        let mut scopes: Vec<String> = Vec::new();
        for name in names {
            let exists = SCOPES.iter().any(|scope| covers(&name, scope));
            match exists {
                true if !scopes.contains(&name) => scopes.push(name),
                true => {}
                false => return Err(name),
            }
        }
        Ok(Self(scopes.into()))
    }

    pub fn to_stored(&self) -> String {
        self.0.join(" ")
    }

    pub fn names(&self) -> Vec<String> {
        self.0.to_vec()
    }

    pub fn cover(&self, wanted: &str) -> bool {
        self.0.iter().any(|scope| covers(scope, wanted))
    }
}

fn covers(scope: &str, wanted: &str) -> bool {
    let is_kind = || scope.strip_suffix('*').is_some_and(|kind| kind.ends_with(':') && wanted.starts_with(kind));
    scope == "*" || scope == wanted || is_kind()
}

/// What a permission asks of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAccess {
    /// A key stands for a tenant and no person: people, keys and secrets are none of its business.
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

/// One row of the table. Its type stands in a handler's signature, as in `Authorized<HubsRead>`.
pub trait Permission: Send + Sync + 'static {
    const NAME: &'static str;
    /// The role bit that is needed.
    const BIT: u8;
    const KEY: KeyAccess;
}

/// Declares the rows; each is a type, so that they cannot be mixed up.
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
        /// All rows: name, bit, what it asks of an API key.
        pub const TABLE: &[(&str, u8, KeyAccess)] = &[$((stringify!($name), $bit, $key)),*];
    };
}

permissions! {
    HubsRead,          READ,    Scope("hubs:read");
    HubsWrite,         WRITE,   Scope("hubs:write");
    HubsOperate,       OPERATE, Scope("hubs:write");
    ClaimCodesRead,    READ,    Scope("hubs:read");
    ClaimCodesWrite,   WRITE,   Scope("hubs:write");
    BleRead,           READ,    Scope("ble:read");
    MembersRead,       READ,    Never;
    MembersManage,     MANAGE,  Never;
    TenantUpdate,      MANAGE,  Never;
    TenantOwn,         OWN,     Never;
    ApiKeysManage,     MANAGE,  Never;
    ReleasesRead,      READ,    Scope("releases:read");
    ReleasesWrite,     WRITE,   Scope("releases:write");
    AuditRead,         MANAGE,  Scope("audit:read");
    Diagnostics,       READ,    Any;
    UpdatePoliciesRead, READ,   Scope("releases:read");
    UpdatePoliciesOperate, OPERATE, Scope("hubs:write");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_cover_themselves_and_their_kind() {
        let scopes = |names: &[&str]| KeyScopes::checked(names.iter().map(|&name| name.to_owned()).collect());
        let keys = scopes(&["hubs:read", "catalog:*", "hubs:read"]).expect("scopes");
        assert_eq!(keys.names(), ["hubs:read", "catalog:*"]);
        assert_eq!(KeyScopes::from_stored(&keys.to_stored()), keys);
        for (wanted, is_covered) in [
            ("hubs:read", true),
            ("hubs:write", false),
            ("catalog:read", true),
            ("catalog:write", true),
            ("ble:read", false),
        ] {
            assert_eq!(keys.cover(wanted), is_covered, "{wanted}");
        }
        assert!(SCOPES.iter().all(|scope| scopes(&["*"]).expect("a scope").cover(scope)));
        for unknown in ["", "hubs", "hubs:", "hubs:delete", "people:*", "ble:write", "h*", "**", ":*", "hubs:read "] {
            assert_eq!(scopes(&[unknown]), Err(unknown.to_owned()));
        }
    }
}
