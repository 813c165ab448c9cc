//! What a credential grants: the role of a member, the scopes of an API key. `authz::permission`
//! lists what each operation requires.

use std::sync::Arc;

use hub_protocol::text_enum;

/// The permission bits of a role.
pub const READ: u8 = 1;
pub const WRITE: u8 = 2;
/// Jobs, blocking, delegation.
pub const OPERATE: u8 = 4;
/// Members, keys, secrets.
pub const MANAGE: u8 = 8;
/// What only an owner may do. It is no permission code, but a bit that no other role has.
pub const OWN: u8 = 16;

/// The role of a member in a tenant.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Role {
    /// May read.
    Viewer,
    /// May also write.
    Editor,
    /// May also run jobs, block and delegate.
    Operator,
    /// May also manage members, keys and secrets.
    Admin,
    /// May also transfer and delete the tenant, and grant OWNER.
    Owner,
}

impl Role {
    pub const fn bits(self) -> u8 {
        match self {
            Self::Viewer => READ,
            Self::Editor => READ | WRITE,
            Self::Operator => READ | WRITE | OPERATE,
            Self::Admin | Self::Owner => READ | WRITE | OPERATE | MANAGE,
        }
    }

    /// Whether the role includes a permission that requires `bit`.
    pub const fn allows(self, bit: u8) -> bool {
        match self {
            Self::Owner => (self.bits() | OWN) & bit != 0,
            _ => self.bits() & bit != 0,
        }
    }
}

text_enum!(Role {
    Viewer = "VIEWER",
    Editor = "EDITOR",
    Operator = "OPERATOR",
    Admin = "ADMIN",
    Owner = "OWNER",
});

/// The permission codes of a role by name.
pub const BITS: [(&str, u8); 4] = [
    ("READ", READ),
    ("WRITE", WRITE),
    ("OPERATE", OPERATE),
    ("MANAGE", MANAGE),
];

/// What an API key may do: any of [`SCOPES`], `<kind>:*` for all scopes of a kind, or `*` for all
/// scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyScopes(Arc<[String]>);

/// All scopes.
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
    /// Parses the stored form: names separated by spaces.
    pub fn from_stored(text: &str) -> Self {
        Self(text.split_ascii_whitespace().map(str::to_owned).collect())
    }

    /// Validates scopes that a client sent and removes duplicates. The error is the first unknown
    /// name.
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

    pub fn cover(&self, required: &str) -> bool {
        self.0.iter().any(|scope| covers(scope, required))
    }
}

fn covers(scope: &str, required: &str) -> bool {
    let is_kind = || {
        scope
            .strip_suffix('*')
            .is_some_and(|kind| kind.ends_with(':') && required.starts_with(kind))
    };
    scope == "*" || scope == required || is_kind()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_cover_themselves_and_their_kind() {
        let scopes = |names: &[&str]| {
            KeyScopes::checked(names.iter().map(|&name| name.to_owned()).collect())
        };
        let keys = scopes(&["hubs:read", "catalog:*", "hubs:read"]).expect("scopes");
        assert_eq!(keys.names(), ["hubs:read", "catalog:*"]);
        assert_eq!(KeyScopes::from_stored(&keys.to_stored()), keys);
        for (required, is_covered) in [
            ("hubs:read", true),
            ("hubs:write", false),
            ("catalog:read", true),
            ("catalog:write", true),
            ("ble:read", false),
        ] {
            assert_eq!(keys.cover(required), is_covered, "{required}");
        }
        assert!(
            SCOPES
                .iter()
                .all(|scope| scopes(&["*"]).expect("a scope").cover(scope))
        );
        for unknown in [
            "",
            "hubs",
            "hubs:",
            "hubs:delete",
            "people:*",
            "ble:write",
            "h*",
            "**",
            ":*",
            "hubs:read ",
        ] {
            assert_eq!(scopes(&[unknown]), Err(unknown.to_owned()));
        }
    }
}
