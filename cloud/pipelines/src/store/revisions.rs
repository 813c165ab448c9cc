//! SQL of the revisions of pipelines.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

/// Revisions of a pipeline that are kept, besides those that dead letters name.
const KEPT_REVISIONS: i64 = 50;

/// A revision, with what its pipeline has beside it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct RevisionRow {
    pub pipeline_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    pub sealed_signing_secret: Option<Vec<u8>>,
    pub sealed_previous_secret: Option<Vec<u8>>,
    pub revision_uuid: Uuid,
    pub revision: i64,
    pub definition: String,
    pub sealed_auth: Option<Vec<u8>>,
}

/// Some revisions, each a pipeline and a number. The list must be short and not empty.
pub async fn of_all(conn: &mut Conn, wanted: &[(Uuid, i64)]) -> Result<Vec<RevisionRow>> {
    let mut query = sql(
        "SELECT p.pipeline_uuid, p.tenant_uuid, p.sealed_signing_secret, \
         p.sealed_previous_secret, r.revision_uuid, r.revision, r.definition, r.sealed_auth \
         FROM pipeline_revisions r \
         JOIN pipelines p ON p.pipeline_uuid = r.pipeline_uuid \
         WHERE (r.pipeline_uuid, r.revision) IN (VALUES ",
    );
    for (index, (pipeline_uuid, revision)) in wanted.iter().enumerate() {
        query = query
            .push(if index > 0 { ", (" } else { "(" })
            .push_bind(*pipeline_uuid)
            .push(", ");
        query = query.push_bind(*revision).push(")");
    }
    query.push(")").all(conn).await
}

/// What is stored of a revision.
pub struct NewRevision {
    pub revision_uuid: Uuid,
    pub pipeline_uuid: Uuid,
    pub revision: i64,
    pub definition: String,
    pub sealed_auth: Option<Vec<u8>>,
}

pub async fn insert(tx: &mut Tx, new: NewRevision, now: Timestamp) -> Result<()> {
    sql(
        "INSERT INTO pipeline_revisions (revision_uuid, pipeline_uuid, revision, definition, \
         sealed_auth, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind((
        new.revision_uuid,
        new.pipeline_uuid,
        new.revision,
        new.definition,
        new.sealed_auth,
        now,
    ))
    .run(tx)
    .await
}

/// Deletes revisions that are neither among the last ones nor named by a dead letter.
pub async fn forget_old(tx: &mut Tx, pipeline_uuid: Uuid, latest: i64) -> Result<()> {
    sql(
        "DELETE FROM pipeline_revisions WHERE pipeline_uuid = $1 AND revision <= $2 \
         AND NOT EXISTS (SELECT 1 FROM dead_letters d \
         WHERE d.pipeline_uuid = pipeline_revisions.pipeline_uuid \
         AND d.revision = pipeline_revisions.revision)",
    )
    .bind((pipeline_uuid, latest - KEPT_REVISIONS))
    .run(tx)
    .await
}
