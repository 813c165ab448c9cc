//! Claim codes: what a tenant hands out so that a hub may become its own. A code is found by its hash and kept sealed; it is never logged, and its
//! uses are counted in the transaction of the claim that uses it up.

mod code;
pub mod http;
mod store;

pub use code::ClaimCode;
use hub_protocol::{TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::authz::Scope;
use crate::db::{Conn, Tx};
use crate::domain::audit::Audit;
use crate::error::{Error, Result};
use crate::sealing::stored::{CLAIM_CODE, row_of_bytes};

/// Where a code stands; the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    Revoked,
    /// Used as often as it may be.
    Used,
    Expired,
    /// It can be used.
    Pending,
}

/// A code about to be handed out.
#[derive(Debug)]
pub struct NewClaimCode {
    pub expires_at: Timestamp,
    pub max_uses: i64,
    pub bundle_uuid: Option<Uuid>,
    pub hub_identifier: Option<String>,
    pub owner_user_uuid: Option<UserUuid>,
    pub note: Option<String>,
}

/// A code as it is stored.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct StoredCode {
    pub code_hash: Vec<u8>,
    pub tenant_uuid: TenantUuid,
    sealed_code: Vec<u8>,
    pub max_uses: i64,
    pub use_count: i64,
    pub bundle_uuid: Option<Uuid>,
    pub hub_identifier: Option<String>,
    pub owner_user_uuid: Option<UserUuid>,
    pub note: Option<String>,
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl StoredCode {
    pub fn status(&self, now: Timestamp) -> Status {
        if self.revoked_at.is_some() {
            Status::Revoked
        } else if self.use_count >= self.max_uses {
            Status::Used
        } else if self.expires_at <= now {
            Status::Expired
        } else {
            Status::Pending
        }
    }

    /// As the audit log shows it: all but the code.
    fn state(&self) -> Value {
        json!({
            "maxUses": self.max_uses,
            "useCount": self.use_count,
            "bundleUuid": self.bundle_uuid,
            "hubIdentifier": self.hub_identifier,
            "ownerUserUuid": self.owner_user_uuid,
            "note": self.note,
            "expiresAt": self.expires_at,
            "revokedAt": self.revoked_at,
        })
    }

    fn open(&self, app: &App) -> Result<String> {
        let code =
            app.sealer.open(CLAIM_CODE, &row_of_bytes(&self.code_hash), &self.sealed_code).map_err(Error::internal)?;
        String::from_utf8(code).map_err(Error::internal)
    }
}

/// Makes a code and tells it.
pub async fn create(app: &App, scope: &Scope, new: NewClaimCode) -> Result<(String, StoredCode)> {
    let now = app.clock.now();
    let code = ClaimCode::generate();
    let spelled = code.spelled();
    let code_hash = code.hash();
    let stored = StoredCode {
        sealed_code: app.sealer.seal(CLAIM_CODE, &row_of_bytes(&code_hash), spelled.as_bytes()),
        code_hash,
        tenant_uuid: scope.tenant_uuid(),
        max_uses: new.max_uses,
        use_count: 0,
        bundle_uuid: new.bundle_uuid,
        hub_identifier: new.hub_identifier,
        owner_user_uuid: new.owner_user_uuid,
        note: new.note,
        expires_at: new.expires_at,
        revoked_at: None,
        created_at: now,
    };
    let mut tx = app.db.begin().await?;
    store::insert(&mut tx, scope, &stored).await?;
    let audit = Audit::new(scope, "claim_code.create", code.masked(), now);
    tx.commit(audit.changed(None, Some(stored.state()))).await?;
    Ok((spelled, stored))
}

/// Removes a code that no hub has used, and revokes one that a hub has: what a hub came by stays on record.
pub async fn delete(app: &App, scope: &Scope, code: &ClaimCode) -> Result<()> {
    let now = app.clock.now();
    let hash = code.hash();
    let mut tx = app.db.begin().await?;
    // Whoever claims with it meanwhile is before this or after it.
    let before = store::lock(&mut tx, scope, &hash).await?.ok_or_else(|| Error::not_found("claim code"))?;
    let (action, after) = match before.use_count {
        0 => {
            store::delete(&mut tx, scope, &hash).await?;
            ("claim_code.delete", None)
        }
        _ if before.revoked_at.is_some() => return Ok(()),
        _ => {
            store::revoke(&mut tx, scope, &hash, now).await?;
            let after = StoredCode { revoked_at: Some(now), ..before.clone() };
            ("claim_code.revoke", Some(after.state()))
        }
    };
    tx.commit(Audit::new(scope, action, code.masked(), now).changed(Some(before.state()), after)).await
}

/// Revokes all codes of a tenant that goes; answers how many.
pub async fn revoke_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    store::revoke_all(tx, scope, now).await
}

/// The code of whichever tenant handed it out: a hub that claims knows none.
pub async fn find(conn: &mut Conn, code: &ClaimCode) -> Result<Option<StoredCode>> {
    store::find(conn, &code.hash()).await
}

/// Uses the code once; false when, by now, it cannot be used. Of those who race for the last use one wins.
pub async fn take_use(tx: &mut Tx, code: &StoredCode, now: Timestamp) -> Result<bool> {
    store::take_use(tx, &code.code_hash, now).await
}
