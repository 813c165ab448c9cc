//! The SQL behind every request: what the database knows about a caller's credential. The check has
//! to be one query, so this module reads tables that subjects own. It changes no rows of a subject,
//! except for the request counters of API keys and the accounts that an external issuer vouches
//! for.

use std::sync::Arc;

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::{Error, Result};
use hub_protocol::{HubUuid, PersonaUuid, TenantUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::grants::{KeyScopes, Role};
use super::principal::{self, ApiKey};

/// A person's membership in a tenant.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Member {
    pub persona_uuid: PersonaUuid,
    #[sqlx(try_from = "String")]
    pub role: Role,
}

/// A logged-in person.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// Their membership in the tenant of the request, if any.
    pub member: Option<Member>,
    /// Whether the account has a second factor, or another issuer looks after that.
    pub has_second_factor: bool,
}

#[derive(sqlx::FromRow)]
struct SignedInRow {
    persona_uuid: Option<PersonaUuid>,
    role: Option<String>,
    has_second_factor: bool,
}

impl SignedInRow {
    fn signed_in(self) -> Result<SignedIn> {
        let member = match (self.persona_uuid, self.role) {
            (Some(persona_uuid), Some(role)) => Some(Member {
                persona_uuid,
                role: Role::try_from(role).map_err(Error::internal)?,
            }),
            _ => None,
        };
        Ok(SignedIn {
            member,
            has_second_factor: self.has_second_factor,
        })
    }
}

const MEMBERSHIP_OF_CALLER: &str = " u LEFT JOIN (personas p \
     JOIN tenants t ON t.tenant_uuid = p.tenant_uuid AND t.deleted_at IS NULL) \
     ON p.user_uuid = u.user_uuid AND p.tenant_uuid = $2 AND p.role IS NOT NULL";

/// `None` if the login has ended.
pub async fn signed_in_by_login(
    conn: &mut Conn,
    login_uuid: Uuid,
    tenant_uuid: Option<TenantUuid>,
) -> Result<Option<SignedIn>> {
    let row: Option<SignedInRow> = sql("SELECT p.persona_uuid, p.role, u.has_second_factor FROM \
         (SELECT l.user_uuid, (a.issuer <> '' OR EXISTS (SELECT 1 FROM second_factors f \
         WHERE f.user_uuid = l.user_uuid AND f.confirmed_at IS NOT NULL)) AS has_second_factor \
         FROM logins l JOIN users a ON a.user_uuid = l.user_uuid \
         WHERE l.revoked_at IS NULL AND l.login_uuid = $1)")
    .push(MEMBERSHIP_OF_CALLER)
    .bind((login_uuid, tenant_uuid))
    .optional(conn)
    .await?;
    row.map(SignedInRow::signed_in).transpose()
}

/// `None` if there is no such user.
pub async fn signed_in_by_user(
    conn: &mut Conn,
    user_uuid: UserUuid,
    tenant_uuid: Option<TenantUuid>,
) -> Result<Option<SignedIn>> {
    let row: Option<SignedInRow> = sql(
        "SELECT p.persona_uuid, p.role, (1 = 1) AS has_second_factor \
         FROM (SELECT user_uuid FROM users WHERE user_uuid = $1 AND deleted_at IS NULL)",
    )
    .push(MEMBERSHIP_OF_CALLER)
    .bind((user_uuid, tenant_uuid))
    .optional(conn)
    .await?;
    row.map(SignedInRow::signed_in).transpose()
}

/// An active API key. The caller checks whether it has expired.
#[derive(Clone, Debug)]
pub struct StoredKey {
    pub key: Arc<ApiKey>,
    pub secret_hash: Vec<u8>,
}

#[derive(sqlx::FromRow)]
struct KeyRow {
    api_key_id: i64,
    tenant_uuid: TenantUuid,
    name: String,
    scopes: String,
    rate_limit_per_minute: i64,
    secret_hash: Vec<u8>,
    expires_at: Option<Timestamp>,
}

/// The active key with this id. Keys of a deleted tenant are not found.
pub async fn api_key(conn: &mut Conn, id: &str) -> Result<Option<StoredKey>> {
    let row: Option<KeyRow> = sql("SELECT k.api_key_id, k.tenant_uuid, k.name, k.scopes, \
         k.rate_limit_per_minute, k.secret_hash, k.expires_at \
         FROM api_keys k JOIN tenants t ON t.tenant_uuid = k.tenant_uuid \
         WHERE k.key_prefix = $1 AND k.deactivated_at IS NULL AND t.deleted_at IS NULL")
    .bind(id)
    .optional(conn)
    .await?;
    Ok(row.map(|row| StoredKey {
        key: Arc::new(ApiKey {
            api_key_id: row.api_key_id,
            tenant_uuid: row.tenant_uuid,
            key_prefix: principal::prefix_of(id),
            name: row.name,
            scopes: KeyScopes::from_stored(&row.scopes),
            rate_limit_per_minute: row.rate_limit_per_minute,
            expires_at: row.expires_at,
        }),
        secret_hash: row.secret_hash,
    }))
}

/// The id of the hub's one access token in force, if it has one.
pub async fn hub_token_in_force(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Uuid>> {
    let token_id = sql("SELECT access_token_id FROM hubs WHERE hub_uuid = $1").bind(hub_uuid);
    Ok(token_id.optional_scalar(conn).await?.flatten())
}

/// As [`hub_token_in_force`]; locks the hub's row, so that no other transaction changes its
/// credentials until this one ends.
pub async fn lock_hub_token(tx: &mut Tx, hub_uuid: HubUuid) -> Result<Option<Uuid>> {
    let token_id = sql("SELECT access_token_id FROM hubs WHERE hub_uuid = $1")
        .for_update(tx)
        .bind(hub_uuid);
    Ok(token_id.optional_scalar(tx).await?.flatten())
}

/// Whether the client certificate was issued to this hub and has not been revoked.
pub async fn is_certificate_in_force(
    conn: &mut Conn,
    serial_number: &str,
    hub_uuid: HubUuid,
) -> Result<bool> {
    sql("SELECT 1 FROM hub_certificates \
         WHERE serial_number = $1 AND hub_uuid = $2 AND revoked_at IS NULL")
    .bind((serial_number, hub_uuid))
    .exists(conn)
    .await
}

/// The persona of a new user that belongs to no tenant.
pub async fn insert_default_persona(
    conn: &mut Conn,
    user_uuid: UserUuid,
    persona_uuid: PersonaUuid,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO personas (persona_uuid, user_uuid, tenant_uuid, role, created_at) \
         VALUES ($1, $2, NULL, NULL, $3)",
    )
    .bind((persona_uuid, user_uuid, now))
    .run(conn)
    .await
}
