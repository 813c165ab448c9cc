//! The permission table: what each permission asks of a member's role, and which API key scope grants it.

/// The bits of a role (permission codes).
pub const READ: u8 = 1;
pub const WRITE: u8 = 2;
/// Jobs, blocking, delegation.
pub const OPERATE: u8 = 4;
/// Members, keys, secrets.
pub const MANAGE: u8 = 8;

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

/// One row of the table. Its type stands in a handler's signature, as in `Authorized<HubsRead>`.
pub trait Permission: Send + Sync + 'static {
    const NAME: &'static str;
    /// The role bit that is needed.
    const BIT: u8;
    /// The API key scope that is needed; none means that a key never may.
    const KEY_SCOPE: Option<&'static str>;
}

/// Declares the rows; each is a type, so that they cannot be mixed up.
macro_rules! permissions {
    ($($name:ident, $bit:ident, $scope:expr;)*) => {
        $(
            pub struct $name;
            impl Permission for $name {
                const NAME: &'static str = stringify!($name);
                const BIT: u8 = $bit;
                const KEY_SCOPE: Option<&'static str> = $scope;
            }
        )*
        /// All rows: name, bit, API key scope.
        pub const TABLE: &[(&str, u8, Option<&str>)] = &[$((stringify!($name), $bit, $scope)),*];
    };
}

permissions! {
    HubsRead,         READ,    Some("hubs:read");
    HubsWrite,        WRITE,   Some("hubs:write");
    ClaimCodesRead,   READ,    Some("hubs:read");
    ClaimCodesWrite,  WRITE,   Some("hubs:write");
    BleRead,          READ,    Some("ble:read");
    // A key stands for a tenant and no person: people are none of its business.
    MembersRead,      READ,    None;
    MembersManage,    MANAGE,  None;
}
