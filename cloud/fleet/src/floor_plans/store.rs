//! SQL of floor plans.

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp};
use uuid::Uuid;

use super::Position;
use super::image::ImageType;

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct PlanRow {
    pub floor_plan_uuid: Uuid,
    pub name: String,
    pub width_millimetres: Option<i64>,
    pub image_type: Option<String>,
    pub image_bytes: Option<i64>,
    pub image_width: Option<i64>,
    pub image_height: Option<i64>,
    pub image_hash: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

const COLUMNS: &str = "floor_plan_uuid, name, width_millimetres, image_type, image_bytes, \
                       image_width, image_height, image_hash, created_at, updated_at";

/// The tenant's plans, newest first.
pub async fn list(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<Vec<PlanRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM floor_plans WHERE tenant_uuid = $1 \
             ORDER BY created_at DESC, floor_plan_uuid LIMIT $2",
        )
        .bind((scope.tenant_uuid(), limit))
        .all(conn)
        .await
}

pub async fn count(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    sql("SELECT COUNT(*) FROM floor_plans WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .scalar(conn)
        .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, id: Uuid) -> Result<Option<PlanRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM floor_plans WHERE floor_plan_uuid = $1 AND tenant_uuid = $2")
        .bind((id, scope.tenant_uuid()))
        .optional(conn)
        .await
}

pub async fn lock(tx: &mut Tx, scope: &Scope, id: Uuid) -> Result<Option<PlanRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM floor_plans WHERE floor_plan_uuid = $1 AND tenant_uuid = $2")
        .bind((id, scope.tenant_uuid()))
        .for_update(tx)
        .optional(tx)
        .await
}

pub async fn insert(tx: &mut Tx, scope: &Scope, row: &PlanRow) -> Result<()> {
    sql(
        "INSERT INTO floor_plans (tenant_uuid, floor_plan_uuid, name, width_millimetres, \
         created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind((
        scope.tenant_uuid(),
        row.floor_plan_uuid,
        row.name.as_str(),
        row.width_millimetres,
        row.created_at,
        row.updated_at,
    ))
    .run(tx)
    .await
}

pub async fn update(tx: &mut Tx, scope: &Scope, row: &PlanRow) -> Result<()> {
    sql(
        "UPDATE floor_plans SET name = $3, width_millimetres = $4, image_type = $5, \
         image_bytes = $6, image_hash = $7, updated_at = $8, image_width = $9, \
         image_height = $10 \
         WHERE floor_plan_uuid = $2 AND tenant_uuid = $1",
    )
    .bind((
        scope.tenant_uuid(),
        row.floor_plan_uuid,
        row.name.as_str(),
        row.width_millimetres,
        row.image_type.as_deref(),
        row.image_bytes,
        row.image_hash.as_deref(),
        row.updated_at,
        row.image_width,
        row.image_height,
    ))
    .run(tx)
    .await
}

/// The plan must be locked.
pub async fn put_image(tx: &mut Tx, id: Uuid, image: Vec<u8>) -> Result<()> {
    sql(
        "INSERT INTO floor_plan_images (floor_plan_uuid, image) VALUES ($1, $2) \
         ON CONFLICT (floor_plan_uuid) DO UPDATE SET image = excluded.image",
    )
    .bind((id, image))
    .run(tx)
    .await
}

#[derive(sqlx::FromRow)]
pub struct ImageRow {
    #[sqlx(try_from = "String")]
    pub image_type: ImageType,
    pub image_hash: String,
    pub image: Vec<u8>,
}

pub async fn image(conn: &mut Conn, scope: &Scope, id: Uuid) -> Result<Option<ImageRow>> {
    sql(
        "SELECT p.image_type, p.image_hash, i.image FROM floor_plans p \
         JOIN floor_plan_images i ON i.floor_plan_uuid = p.floor_plan_uuid \
         WHERE p.floor_plan_uuid = $1 AND p.tenant_uuid = $2",
    )
    .bind((id, scope.tenant_uuid()))
    .optional(conn)
    .await
}

#[derive(sqlx::FromRow)]
struct HubRow {
    floor_plan_uuid: Uuid,
    hub_uuid: HubUuid,
    x: i64,
    y: i64,
}

/// The hubs on all plans of the tenant, or on one of them.
pub async fn hubs(
    conn: &mut Conn,
    scope: &Scope,
    id: Option<Uuid>,
) -> Result<Vec<(Uuid, Position)>> {
    let rows: Vec<HubRow> = sql(
        "SELECT h.floor_plan_uuid, h.hub_uuid, h.x, h.y FROM floor_plans p \
         JOIN floor_plan_hubs h ON h.floor_plan_uuid = p.floor_plan_uuid \
         WHERE p.tenant_uuid = $1 AND ($2 IS NULL OR p.floor_plan_uuid = $2) ORDER BY h.hub_uuid",
    )
    .bind((scope.tenant_uuid(), id))
    .all(conn)
    .await?;
    let position = |HubRow {
                        floor_plan_uuid,
                        hub_uuid,
                        x,
                        y,
                    }| (floor_plan_uuid, Position { hub_uuid, x, y });
    Ok(rows.into_iter().map(position).collect())
}

/// The plan must be locked, and the hubs.
pub async fn replace_hubs(tx: &mut Tx, id: Uuid, hubs: &[Position]) -> Result<()> {
    sql("DELETE FROM floor_plan_hubs WHERE floor_plan_uuid = $1")
        .bind(id)
        .run(tx)
        .await?;
    Bulk {
        head: "INSERT INTO floor_plan_hubs (floor_plan_uuid, hub_uuid, x, y) ",
        columns: vec![
            Column::Uuid(vec![id; hubs.len()]),
            Column::Uuid(hubs.iter().map(|hub| hub.hub_uuid.0).collect()),
            Column::Int(hubs.iter().map(|hub| hub.x).collect()),
            Column::Int(hubs.iter().map(|hub| hub.y).collect()),
        ],
        tail: "",
    }
    .execute(tx)
    .await?;
    Ok(())
}

/// Takes a hub that is released off all plans. The caller writes the audit entry.
pub async fn forget_hub(tx: &mut Tx, hub_uuid: HubUuid) -> Result<u64> {
    sql("DELETE FROM floor_plan_hubs WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .execute(tx)
        .await
}

/// The plan must be locked.
pub async fn delete(tx: &mut Tx, id: Uuid) -> Result<()> {
    sql("DELETE FROM floor_plan_hubs WHERE floor_plan_uuid = $1")
        .bind(id)
        .run(tx)
        .await?;
    sql("DELETE FROM floor_plan_images WHERE floor_plan_uuid = $1")
        .bind(id)
        .run(tx)
        .await?;
    sql("DELETE FROM floor_plans WHERE floor_plan_uuid = $1")
        .bind(id)
        .run(tx)
        .await
}

/// Deletes all plans of a tenant that is deleted. The caller writes the audit entry.
pub async fn delete_all(tx: &mut Tx, scope: &Scope) -> Result<u64> {
    const OF_TENANT: &str = "(SELECT floor_plan_uuid FROM floor_plans WHERE tenant_uuid = $1)";
    let tenant_uuid = scope.tenant_uuid();
    let hubs = sql("DELETE FROM floor_plan_hubs WHERE floor_plan_uuid IN ").push(OF_TENANT);
    hubs.bind(tenant_uuid).run(tx).await?;
    let images = sql("DELETE FROM floor_plan_images WHERE floor_plan_uuid IN ").push(OF_TENANT);
    images.bind(tenant_uuid).run(tx).await?;
    sql("DELETE FROM floor_plans WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .execute(tx)
        .await
}
