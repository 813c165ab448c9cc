//! Claim codes, which a tenant issues so that a hub can join it. A code is looked up by its hash
//! and stored sealed. It is never logged, and only callers who may create codes read one in full. A
//! use is counted in the transaction of the claim that consumes it.

mod code;
pub mod http;
mod store;

use hub_base::db::{Conn, Db, Tx};
use hub_base::error::{Error, Result};
use hub_base::sealing::stored::{CLAIM_CODE, row_of_bytes};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use hub_people::accounts;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

pub use code::ClaimCode;
pub use store::{forget_owner, revoke_all};

/// Unused codes that a tenant may have, expired ones included.
const MAX_UNUSED: i64 = 50_000;

/// The status of a claim code: the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "ClaimCodeStatus")]
pub enum Status {
    /// The code was revoked.
    Revoked,
    /// The code was used as often as allowed.
    Used,
    /// The code has expired.
    Expired,
    /// The code can be used.
    Pending,
}

/// The parameters of a new code.
#[derive(Debug)]
pub struct NewClaimCode {
    pub expires_at: Timestamp,
    pub max_uses: i64,
    pub bundle_uuid: Option<Uuid>,
    pub hub_identifier: Option<String>,
    pub owner_user_uuid: Option<UserUuid>,
    pub note: Option<String>,
    /// Whether a claim may replace credentials that are in force without the hub's own proof.
    pub allow_reclaim: bool,
}

/// The name of a stored code in a request.
#[derive(Debug)]
pub enum Named {
    Code(ClaimCode),
    Id(Uuid),
}

impl Named {
    pub fn parse(text: &str) -> Option<Self> {
        match text.parse() {
            Ok(id) => Some(Self::Id(id)),
            Err(_) => ClaimCode::parse(text).map(Self::Code),
        }
    }
}

/// A stored code.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct StoredCode {
    pub code_hash: Vec<u8>,
    /// Names the code; nothing can be claimed with it.
    pub claim_code_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    sealed_code: Vec<u8>,
    pub max_uses: i64,
    pub use_count: i64,
    pub bundle_uuid: Option<Uuid>,
    pub hub_identifier: Option<String>,
    pub owner_user_uuid: Option<UserUuid>,
    pub note: Option<String>,
    pub allow_reclaim: bool,
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The hub that used it last.
    pub claimed_hub_uuid: Option<HubUuid>,
    /// Whether a person made it for themselves.
    pub is_pairing: bool,
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

    /// The representation in the audit log, without the code itself.
    fn state(&self) -> Value {
        json!({
            "maxUses": self.max_uses,
            "useCount": self.use_count,
            "bundleUuid": self.bundle_uuid,
            "hubIdentifier": self.hub_identifier,
            "ownerUserUuid": self.owner_user_uuid,
            "note": self.note,
            "allowReclaim": self.allow_reclaim,
            "expiresAt": self.expires_at,
            "revokedAt": self.revoked_at,
        })
    }

    fn open(&self, core: &Core) -> Result<ClaimCode> {
        let code = core
            .sealer
            .open(
                CLAIM_CODE,
                &row_of_bytes(&self.code_hash),
                &self.sealed_code,
            )
            .map_err(Error::internal)?;
        let code = String::from_utf8(code).map_err(Error::internal)?;
        ClaimCode::parse(&code).ok_or_else(|| Error::internal("a stored claim code is malformed"))
    }
}

/// A new code, in clear and as it is to be stored.
fn generated(
    core: &Core,
    scope: &Scope,
    new: NewClaimCode,
    is_pairing: bool,
) -> (ClaimCode, StoredCode) {
    let code = ClaimCode::generate();
    let code_hash = code.hash();
    let stored = StoredCode {
        sealed_code: core.sealer.seal(
            CLAIM_CODE,
            &row_of_bytes(&code_hash),
            code.spelled().as_bytes(),
        ),
        code_hash,
        claim_code_uuid: Uuid::new_v4(),
        tenant_uuid: scope.tenant_uuid(),
        max_uses: new.max_uses,
        use_count: 0,
        bundle_uuid: new.bundle_uuid,
        hub_identifier: new.hub_identifier,
        owner_user_uuid: new.owner_user_uuid,
        note: new.note,
        allow_reclaim: new.allow_reclaim,
        expires_at: new.expires_at,
        revoked_at: None,
        created_at: core.clock.now(),
        claimed_hub_uuid: None,
        is_pairing,
    };
    (code, stored)
}

/// Creates a code and returns it in clear.
pub async fn create(
    core: &Core,
    scope: &Scope,
    new: NewClaimCode,
) -> Result<(ClaimCode, StoredCode)> {
    let (new_bundle, owner) = (new.bundle_uuid, new.owner_user_uuid);
    let (code, stored) = generated(core, scope, new, false);
    let mut conn = core.db.read().await?;
    if let Some(bundle_uuid) = new_bundle {
        match store::bundle_status(&mut conn, scope, bundle_uuid)
            .await?
            .as_deref()
        {
            None => return Err(Error::field("bundleUuid", "is no bundle of this tenant")),
            Some("ARCHIVED") => {
                return Err(Error::field(
                    "bundleUuid",
                    "is archived, and applied to no hub any more",
                ));
            }
            Some(_) => {}
        }
    }
    if let Some(owner) = owner
        && !accounts::exists(&mut conn, owner).await?
    {
        return Err(Error::field(
            "ownerUserUuid",
            "is no user of this service; a user exists once they have signed in",
        ));
    }
    // Counted ahead of the transaction, which would hold others up: those that are created at the
    // same moment may exceed the limit by their number.
    let unused = store::count_unused(&mut conn, scope, MAX_UNUSED).await?;
    drop(conn);
    if unused >= MAX_UNUSED {
        let message =
            format!("a tenant may have at most {MAX_UNUSED} unused claim codes; delete some first");
        return Err(Error::conflict("TOO_MANY_CLAIM_CODES", message));
    }
    let mut tx = core.db.begin().await?;
    store::insert(&mut tx, scope, &stored).await?;
    tx.commit(created(scope, &code, &stored)).await?;
    Ok((code, stored))
}

fn created(scope: &Scope, code: &ClaimCode, stored: &StoredCode) -> Audit {
    let audit = Audit::new(
        scope,
        "claim_code.create",
        stored.claim_code_uuid,
        stored.created_at,
    );
    audit
        .changed(None, Some(stored.state()))
        .with(json!({"claimCode": code.masked()}))
}

/// The lifetime of a code that a person makes for themselves.
const PAIRING_SECS: i64 = 15 * 60;
/// Codes of one person that wait for a hub, and codes that they make in an hour.
const MAX_PAIRING_OPEN: i64 = 5;
const MAX_PAIRING_PER_HOUR: i64 = 20;
const HOUR_SECS: i64 = 3600;

/// Creates a code for one hub, made out to the person who asks for it. The caller has checked that
/// the tenant allows that, and has locked the person's account.
pub async fn create_pairing(
    core: &Core,
    mut tx: Tx,
    scope: &Scope,
    user_uuid: UserUuid,
) -> Result<(ClaimCode, StoredCode)> {
    let now = core.clock.now();
    let (open, recent) =
        store::count_pairing(&mut tx, user_uuid, now, now.plus_secs(-HOUR_SECS)).await?;
    if open >= MAX_PAIRING_OPEN {
        let message = format!(
            "{MAX_PAIRING_OPEN} claim codes of yours wait for a hub; use one of them, or wait until they expire"
        );
        return Err(Error::conflict("TOO_MANY_CLAIM_CODES", message));
    }
    if recent >= MAX_PAIRING_PER_HOUR {
        let message = format!(
            "a person may make {MAX_PAIRING_PER_HOUR} claim codes an hour; wait before the next one"
        );
        return Err(Error::too_many_requests(
            message,
            PAIRING_SECS.unsigned_abs(),
        ));
    }
    let new = NewClaimCode {
        expires_at: now.plus_secs(PAIRING_SECS),
        max_uses: 1,
        bundle_uuid: None,
        hub_identifier: None,
        owner_user_uuid: Some(user_uuid),
        note: None,
        allow_reclaim: false,
    };
    let (code, stored) = generated(core, scope, new, true);
    store::insert(&mut tx, scope, &stored).await?;
    tx.commit(created(scope, &code, &stored)).await?;
    Ok((code, stored))
}

/// Deletes at most `limit` codes that people made for themselves and no hub used. They are counted
/// for an hour.
pub async fn forget_unused_pairing(db: &Db, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = store::delete_unused_pairing(&mut tx, now.plus_secs(-HOUR_SECS), limit).await?;
    tx.commit_unaudited("expired codes have no effect").await?;
    Ok(deleted)
}

/// Deletes an unused code, and revokes a used one: the record of which code a hub was claimed with
/// is kept.
pub async fn delete(core: &Core, scope: &Scope, named: &Named) -> Result<()> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    // A concurrent claim with the code commits either before this lock or after this transaction.
    let before = store::lock(&mut tx, scope, named)
        .await?
        .ok_or_else(|| Error::not_found("claim code"))?;
    let (action, after) = match before.use_count {
        0 => {
            store::delete(&mut tx, scope, &before.code_hash).await?;
            ("claim_code.delete", None)
        }
        _ if before.revoked_at.is_some() => return Ok(()),
        _ => {
            store::revoke(&mut tx, scope, &before.code_hash, now).await?;
            let after = StoredCode {
                revoked_at: Some(now),
                ..before.clone()
            };
            ("claim_code.revoke", Some(after.state()))
        }
    };
    let masked = before.open(core)?.masked();
    let audit =
        Audit::new(scope, action, before.claim_code_uuid, now).changed(Some(before.state()), after);
    tx.commit(audit.with(json!({"claimCode": masked}))).await
}

/// Finds a code of any tenant: a hub that claims does not know its tenant yet.
pub async fn find(conn: &mut Conn, code: &ClaimCode) -> Result<Option<StoredCode>> {
    store::find(conn, &code.hash()).await
}

/// Consumes one use of the code. Returns false if the code can no longer be used. Of concurrent
/// claims for the last use, one succeeds.
pub async fn consume_use(
    tx: &mut Tx,
    code: &StoredCode,
    hub_uuid: HubUuid,
    now: Timestamp,
) -> Result<bool> {
    store::consume_use(tx, &code.code_hash, hub_uuid, now).await
}
