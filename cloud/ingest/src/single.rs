//! Record ids and idempotency keys for uploads that are stored in a transaction of their own, by
//! the same rules as the writer's.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authn::hub::Hub;
use hub_protocol::{TenantUuid, Timestamp};

use super::Kind;

/// The ids that a tenant's clock issued.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Ids {
    /// The last id issued before, by any replica.
    pub previous_id: i64,
    #[sqlx(rename = "last_id")]
    pub id: i64,
}

/// Issues an id for one record. The clock row stays locked until the transaction ends, so that
/// commits are in the order of ids.
pub async fn issue_id(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    kind: Kind,
    now: Timestamp,
) -> Result<Ids> {
    sql(
        "INSERT INTO upload_clocks (tenant_uuid, kind, minute, requests, last_id, previous_id) \
         VALUES ($1, $2, 0, 0, $3, $3 - 1) \
         ON CONFLICT (tenant_uuid, kind) DO UPDATE SET previous_id = upload_clocks.last_id, \
         last_id = CASE WHEN upload_clocks.last_id >= excluded.last_id THEN upload_clocks.last_id \
         + 1 ELSE excluded.last_id END RETURNING previous_id, last_id",
    )
    .bind((tenant_uuid, kind.name(), now.as_micros()))
    .one(tx)
    .await
}

/// The response to an earlier request with this key. The caller has locked the hub, so that of two
/// requests one waits for the other.
pub async fn stored_answer(
    conn: &mut Conn,
    hub: &Hub,
    kind: &str,
    key: &str,
) -> Result<Option<String>> {
    sql("SELECT answer FROM upload_keys \
         WHERE tenant_uuid = $1 AND idempotency_key = $2 AND hub_uuid = $3 AND kind = $4")
    .bind((hub.tenant_uuid, key, hub.hub_uuid, kind))
    .optional_scalar(conn)
    .await
}

pub async fn store_answer(
    tx: &mut Tx,
    hub: &Hub,
    kind: &str,
    key: &str,
    answer: &str,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO upload_keys (tenant_uuid, idempotency_key, hub_uuid, kind, answer, first_id) \
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind((
        hub.tenant_uuid,
        key,
        hub.hub_uuid,
        kind,
        answer,
        now.as_micros(),
    ))
    .run(tx)
    .await
}
