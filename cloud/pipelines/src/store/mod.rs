//! SQL of pipelines, a file for each table and who writes it.

pub mod bound;
pub mod dead_letters;
pub mod deliveries;
pub mod numbers;
pub mod operators;
pub mod revisions;

use hub_base::db::{Conn, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::LaneStatus;
pub use revisions::RevisionRow;

/// A pipeline with its revision in force and its position in the log.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct PipelineRow {
    pub pipeline_uuid: Uuid,
    pub name: String,
    pub description: Option<String>,
    pub enabled: bool,
    pub revision: i64,
    pub secret_hint: Option<String>,
    pub previous_secret_until: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub revision_uuid: Uuid,
    pub definition: String,
    pub sealed_auth: Option<Vec<u8>>,
    #[sqlx(try_from = "String")]
    pub status: LaneStatus,
    pub cursor: i64,
    pub failing_since: Option<Timestamp>,
    pub last_error: Option<String>,
    pub last_delivered_at: Option<Timestamp>,
    pub next_attempt_at: Option<Timestamp>,
    pub lost_from: Option<i64>,
    pub lost_to: Option<i64>,
}

fn shown() -> Sql {
    sql(
        "SELECT p.pipeline_uuid, p.name, p.description, p.enabled, p.revision, p.secret_hint, \
         p.previous_secret_until, p.created_at, p.updated_at, r.revision_uuid, r.definition, \
         r.sealed_auth, l.status, l.cursor, l.failing_since, l.last_error, l.last_delivered_at, \
         l.next_attempt_at, l.lost_from, l.lost_to FROM pipelines p \
         JOIN pipeline_revisions r ON r.pipeline_uuid = p.pipeline_uuid \
         AND r.revision = p.revision \
         JOIN pipeline_lanes l ON l.pipeline_uuid = p.pipeline_uuid AND l.kind = 'LIVE' \
         WHERE p.tenant_uuid = $1",
    )
}

/// The tenant's pipelines.
pub async fn of_tenant(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Vec<PipelineRow>> {
    shown().bind(tenant_uuid).all(conn).await
}

/// The tenant's pipelines, the oldest first.
pub async fn list(conn: &mut Conn, scope: &Scope) -> Result<Vec<PipelineRow>> {
    shown()
        .bind(scope.tenant_uuid())
        .push(" ORDER BY p.created_at, p.pipeline_uuid")
        .all(conn)
        .await
}

pub async fn get(
    conn: &mut Conn,
    scope: &Scope,
    pipeline_uuid: Uuid,
) -> Result<Option<PipelineRow>> {
    let one = shown()
        .bind(scope.tenant_uuid())
        .push(" AND p.pipeline_uuid = ")
        .push_bind(pipeline_uuid);
    one.optional(conn).await
}

/// Locks a pipeline of the tenant until the transaction ends. False if there is none.
pub async fn lock(tx: &mut Tx, scope: &Scope, pipeline_uuid: Uuid) -> Result<bool> {
    sql("SELECT pipeline_uuid FROM pipelines WHERE pipeline_uuid = $1 AND tenant_uuid = $2")
        .bind((pipeline_uuid, scope.tenant_uuid()))
        .for_update(tx)
        .exists(tx)
        .await
}

pub async fn exists(conn: &mut Conn, scope: &Scope, pipeline_uuid: Uuid) -> Result<bool> {
    sql("SELECT pipeline_uuid FROM pipelines WHERE pipeline_uuid = $1 AND tenant_uuid = $2")
        .bind((pipeline_uuid, scope.tenant_uuid()))
        .exists(conn)
        .await
}

pub async fn count(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    sql("SELECT COUNT(*) FROM pipelines WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .scalar(conn)
        .await
}

/// A sealed signing secret, and what is shown of it.
pub struct SealedSecret {
    pub sealed: Vec<u8>,
    pub hint: String,
}

/// What a pipeline has beside its revisions.
pub struct NewPipeline<'a> {
    pub pipeline_uuid: Uuid,
    pub name: &'a str,
    pub description: Option<&'a str>,
    pub enabled: bool,
    pub secret: Option<SealedSecret>,
}

pub async fn insert(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    new: NewPipeline<'_>,
    now: Timestamp,
) -> Result<()> {
    let (sealed, hint) = new
        .secret
        .map(|secret| (secret.sealed, secret.hint))
        .unzip();
    sql(
        "INSERT INTO pipelines (pipeline_uuid, tenant_uuid, name, description, enabled, revision, \
         sealed_signing_secret, secret_hint, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $8)",
    )
    .bind((
        new.pipeline_uuid,
        tenant_uuid,
        new.name,
        new.description,
        new.enabled,
        sealed,
        hint,
        now,
    ))
    .run(tx)
    .await
}

/// Makes another revision the one in force.
pub async fn update(
    tx: &mut Tx,
    new: NewPipeline<'_>,
    revision: i64,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE pipelines SET name = $2, description = $3, enabled = $4, revision = $5, \
         updated_at = $6 WHERE pipeline_uuid = $1",
    )
    .bind((
        new.pipeline_uuid,
        new.name,
        new.description,
        new.enabled,
        revision,
        now,
    ))
    .run(tx)
    .await?;
    match new.secret {
        Some(secret) => set_secret(tx, new.pipeline_uuid, secret, None, now).await,
        None => Ok(()),
    }
}

pub async fn set_enabled(
    tx: &mut Tx,
    pipeline_uuid: Uuid,
    enabled: bool,
    now: Timestamp,
) -> Result<()> {
    sql("UPDATE pipelines SET enabled = $2, updated_at = $3 WHERE pipeline_uuid = $1")
        .bind((pipeline_uuid, enabled, now))
        .run(tx)
        .await
}

/// The sealed signing secret of a pipeline, and those that it replaced.
pub async fn sealed_secrets(
    tx: &mut Tx,
    pipeline_uuid: Uuid,
) -> Result<(Option<Vec<u8>>, Option<Vec<u8>>)> {
    sql(
        "SELECT sealed_signing_secret, sealed_previous_secret FROM pipelines \
         WHERE pipeline_uuid = $1",
    )
    .bind(pipeline_uuid)
    .one(tx)
    .await
}

/// The replaced secrets of a pipeline, and when the last of them signs no longer.
pub struct SealedPrevious {
    pub sealed: Vec<u8>,
    pub until: Timestamp,
}

/// Sets the signing secret, and those that it replaces.
pub async fn set_secret(
    tx: &mut Tx,
    pipeline_uuid: Uuid,
    secret: SealedSecret,
    previous: Option<SealedPrevious>,
    now: Timestamp,
) -> Result<()> {
    let (previous, until) = previous
        .map(|SealedPrevious { sealed, until }| (sealed, until))
        .unzip();
    sql(
        "UPDATE pipelines SET sealed_signing_secret = $2, secret_hint = $3, \
         sealed_previous_secret = $4, previous_secret_until = $5, updated_at = $6 \
         WHERE pipeline_uuid = $1",
    )
    .bind((
        pipeline_uuid,
        secret.sealed,
        secret.hint,
        previous,
        until,
        now,
    ))
    .run(tx)
    .await
}

/// Deletes a pipeline with its revisions, lanes and dead letters.
pub async fn delete(tx: &mut Tx, pipeline_uuid: Uuid) -> Result<()> {
    sql("DELETE FROM pipelines WHERE pipeline_uuid = $1")
        .bind(pipeline_uuid)
        .run(tx)
        .await
}

/// Ends all pipelines of a tenant that is deleted, and returns how many there were.
pub async fn delete_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<u64> {
    sql("DELETE FROM pipelines WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .execute(tx)
        .await
}
