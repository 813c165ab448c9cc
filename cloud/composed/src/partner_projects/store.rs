//! SQL of partner projects.

use std::collections::HashMap;
use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::UserScope;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};

use super::{CHANGING_ROLES, MAX_MEMBERS, MAX_TENANTS};

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct ProjectRow {
    pub project_id: String,
    pub name: String,
    /// The time of the last message that had one.
    pub occurred_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub deleted_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::FromRow)]
pub struct MemberRow {
    pub persona_uuid: PersonaUuid,
    pub role: String,
}

/// A tenant that takes part in a project.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct TenantRow {
    pub project_id: String,
    pub tenant_uuid: TenantUuid,
    pub joined_at: Timestamp,
    pub device_count: i64,
}

/// A device that takes part in a project.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct DeviceRow {
    pub device_instance_id: i64,
    pub tenant_uuid: TenantUuid,
    pub added_at: Timestamp,
}

const COLUMNS: &str =
    "x.project_id, x.name, x.occurred_at, x.created_at, x.updated_at, x.deleted_at";

/// The personas that are in force: the default one of a person, and those of their memberships.
const IN_FORCE: &str = "FROM personas p LEFT JOIN tenants t ON t.tenant_uuid = p.tenant_uuid \
    WHERE (p.tenant_uuid IS NULL OR (p.role IS NOT NULL AND t.deleted_at IS NULL))";

/// The memberships of a user.
fn memberships(scope: &UserScope, columns: &'static str) -> Sql {
    sql("SELECT ")
        .push(columns)
        .push(" FROM partner_project_members m JOIN (SELECT p.persona_uuid ")
        .push(IN_FORCE)
        .push(" AND p.user_uuid = $1) own ON own.persona_uuid = m.persona_uuid")
        .bind(scope.user_uuid())
}

fn of_user(scope: &UserScope) -> Sql {
    sql("FROM partner_projects x WHERE x.deleted_at IS NULL AND x.project_id IN (")
        .append(&memberships(scope, "m.project_id"))
        .push(")")
}

/// The projects of the person, newest first, and how many there are.
pub async fn list(
    conn: &mut Conn,
    scope: &UserScope,
    slice: Slice,
) -> Result<(Vec<ProjectRow>, i64)> {
    of_user(scope)
        .page(conn, COLUMNS, &["x.created_at DESC, x.project_id"], slice)
        .await
}

pub async fn of_person(
    conn: &mut Conn,
    scope: &UserScope,
    project_id: &str,
) -> Result<Option<ProjectRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" ")
        .append(&of_user(scope))
        .push(" AND x.project_id = ")
        .push_bind(project_id)
        .optional(conn)
        .await
}

/// The role of the person in these projects, by their ids: the strongest of those of their
/// personas. The list must not be empty.
pub async fn roles(
    conn: &mut Conn,
    scope: &UserScope,
    project_ids: &[&str],
) -> Result<HashMap<String, String>> {
    let found: Vec<(String, String)> = memberships(scope, "m.project_id, m.role")
        .push(" WHERE m.project_id IN ")
        .push_list(project_ids.iter().copied())
        .all(conn)
        .await?;
    let rank = |role: &str| {
        CHANGING_ROLES
            .iter()
            .position(|known| *known == role)
            .unwrap_or(CHANGING_ROLES.len())
    };
    let mut roles: HashMap<String, String> = HashMap::new();
    for (project_id, role) in found {
        let known = roles.entry(project_id).or_insert_with(|| role.clone());
        if rank(&role) < rank(known) {
            *known = role;
        }
    }
    Ok(roles)
}

/// Inserts a project without members, unless the id exists. Returns whether it was inserted.
pub async fn insert_new(tx: &mut Tx, project_id: &str, name: &str, now: Timestamp) -> Result<bool> {
    let inserted = sql(
        "INSERT INTO partner_projects (project_id, name, created_at, updated_at) \
         VALUES ($1, $2, $3, $3) ON CONFLICT (project_id) DO NOTHING",
    )
    .bind((project_id, name, now))
    .execute(tx)
    .await?;
    Ok(inserted == 1)
}

pub async fn get(conn: &mut Conn, project_id: &str) -> Result<Option<ProjectRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM partner_projects x WHERE x.project_id = $1")
        .bind(project_id)
        .optional(conn)
        .await
}

/// The project, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, project_id: &str) -> Result<Option<ProjectRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM partner_projects x WHERE x.project_id = $1")
        .bind(project_id)
        .for_update(tx)
        .optional(tx)
        .await
}

pub async fn update(tx: &mut Tx, row: &ProjectRow) -> Result<()> {
    sql(
        "UPDATE partner_projects SET name = $2, occurred_at = $3, updated_at = $4, \
         deleted_at = $5 WHERE project_id = $1",
    )
    .bind((
        row.project_id.as_str(),
        row.name.as_str(),
        row.occurred_at,
        row.updated_at,
        row.deleted_at,
    ))
    .run(tx)
    .await
}

/// Deletes the project with all that belongs to it.
pub async fn delete(tx: &mut Tx, project_id: &str) -> Result<()> {
    sql("DELETE FROM partner_projects WHERE project_id = $1")
        .bind(project_id)
        .run(tx)
        .await
}

/// The members in the order of their personas.
pub async fn members(conn: &mut Conn, project_id: &str) -> Result<Vec<MemberRow>> {
    sql(
        "SELECT persona_uuid, role FROM partner_project_members WHERE project_id = $1 \
         ORDER BY persona_uuid LIMIT $2",
    )
    .bind((project_id, i64::try_from(MAX_MEMBERS).unwrap_or(i64::MAX)))
    .all(conn)
    .await
}

/// The users behind those members whose personas are in force.
pub async fn users_of_members(
    conn: &mut Conn,
    project_id: &str,
) -> Result<Vec<(PersonaUuid, UserUuid)>> {
    sql("SELECT p.persona_uuid, p.user_uuid ")
        .push(IN_FORCE)
        .push(
            " AND p.persona_uuid IN (SELECT m.persona_uuid FROM partner_project_members m \
             WHERE m.project_id = $1)",
        )
        .bind(project_id)
        .all(conn)
        .await
}

/// Deletes the persona from all projects.
pub async fn forget_persona(tx: &mut Tx, persona_uuid: PersonaUuid) -> Result<()> {
    sql("DELETE FROM partner_project_members WHERE persona_uuid = $1")
        .bind(persona_uuid)
        .run(tx)
        .await?;
    Ok(())
}

pub async fn replace_members(tx: &mut Tx, project_id: &str, members: &[MemberRow]) -> Result<()> {
    sql("DELETE FROM partner_project_members WHERE project_id = $1")
        .bind(project_id)
        .run(tx)
        .await?;
    let rows = Bulk {
        head: "INSERT INTO partner_project_members (project_id, persona_uuid, role)",
        columns: vec![
            ids(project_id, members.len()),
            Column::Uuid(members.iter().map(|member| member.persona_uuid.0).collect()),
            Column::Text(
                members
                    .iter()
                    .map(|member| Arc::from(member.role.as_str()))
                    .collect(),
            ),
        ],
        tail: "ON CONFLICT DO NOTHING",
    };
    rows.execute(tx).await.map(drop)
}

fn ids(project_id: &str, count: usize) -> Column {
    Column::Text(vec![Arc::from(project_id); count])
}

/// The projects in which the persona is a member, deleted ones left out, with its role.
pub async fn of_persona(
    conn: &mut Conn,
    persona: PersonaUuid,
    slice: Slice,
) -> Result<(Vec<PersonaProject>, i64)> {
    sql("FROM partner_project_members m \
         JOIN partner_projects x ON x.project_id = m.project_id AND x.deleted_at IS NULL \
         WHERE m.persona_uuid = $1")
    .bind(persona)
    .page(
        conn,
        "x.project_id, x.name, m.role",
        &["x.project_id"],
        slice,
    )
    .await
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct PersonaProject {
    pub project_id: String,
    pub name: String,
    pub role: String,
}

/// The tenants that take part in these projects, each with how many devices. The list must not be
/// empty.
pub async fn tenants(conn: &mut Conn, project_ids: &[&str]) -> Result<Vec<TenantRow>> {
    sql(
        "SELECT j.project_id, j.tenant_uuid, j.joined_at, (SELECT COUNT(*) \
         FROM partner_project_devices d WHERE d.project_id = j.project_id \
         AND d.tenant_uuid = j.tenant_uuid) AS device_count \
         FROM partner_project_tenants j WHERE j.project_id IN ",
    )
    .push_list(project_ids.iter().copied())
    .push(" ORDER BY j.project_id, j.joined_at, j.tenant_uuid LIMIT ")
    .push_bind(MAX_TENANTS.saturating_mul(i64::try_from(project_ids.len()).unwrap_or(1)))
    .all(conn)
    .await
}

pub async fn join(
    tx: &mut Tx,
    project_id: &str,
    tenants: &[TenantUuid],
    now: Timestamp,
) -> Result<()> {
    let rows = Bulk {
        head: "INSERT INTO partner_project_tenants (project_id, tenant_uuid, joined_at)",
        columns: vec![
            ids(project_id, tenants.len()),
            Column::Uuid(tenants.iter().map(|tenant| tenant.0).collect()),
            Column::Time(vec![now; tenants.len()]),
        ],
        tail: "ON CONFLICT DO NOTHING",
    };
    rows.execute(tx).await.map(drop)
}

/// Removes tenants with their devices. The list must not be empty.
pub async fn leave(tx: &mut Tx, project_id: &str, tenants: &[TenantUuid]) -> Result<()> {
    sql("DELETE FROM partner_project_tenants WHERE project_id = $1 AND tenant_uuid IN ")
        .bind(project_id)
        .push_list(tenants.iter().copied())
        .run(tx)
        .await
}

/// Removes all tenants from the project, with their devices.
pub async fn clear(tx: &mut Tx, project_id: &str) -> Result<()> {
    sql("DELETE FROM partner_project_tenants WHERE project_id = $1")
        .bind(project_id)
        .run(tx)
        .await
}

/// The tenant leaves all projects, with its devices.
pub async fn leave_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<u64> {
    sql("DELETE FROM partner_project_tenants WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .execute(tx)
        .await
}

/// Devices of the project, newest first, and how many there are.
pub async fn devices(
    conn: &mut Conn,
    project_id: &str,
    slice: Slice,
) -> Result<(Vec<DeviceRow>, i64)> {
    sql("FROM partner_project_devices d WHERE d.project_id = $1")
        .bind(project_id)
        .page(
            conn,
            "d.device_instance_id, d.tenant_uuid, d.added_at",
            &["d.device_instance_id DESC"],
            slice,
        )
        .await
}

pub async fn count_devices(conn: &mut Conn, project_id: &str) -> Result<i64> {
    sql("SELECT COUNT(*) FROM partner_project_devices WHERE project_id = $1")
        .bind(project_id)
        .scalar(conn)
        .await
}

/// The given devices that are in the project, with their tenants. The list must not be empty.
pub async fn present(
    conn: &mut Conn,
    project_id: &str,
    devices: &[i64],
) -> Result<HashMap<i64, TenantUuid>> {
    let found: Vec<(i64, TenantUuid)> = sql("SELECT device_instance_id, tenant_uuid \
         FROM partner_project_devices WHERE project_id = $1 AND device_instance_id IN ")
    .bind(project_id)
    .push_list(devices.iter().copied())
    .all(conn)
    .await?;
    Ok(HashMap::from_iter(found))
}

pub async fn add_devices(
    tx: &mut Tx,
    project_id: &str,
    devices: &[(i64, TenantUuid)],
    now: Timestamp,
) -> Result<()> {
    let rows = Bulk {
        head: "INSERT INTO partner_project_devices \
               (project_id, device_instance_id, tenant_uuid, added_at)",
        columns: vec![
            ids(project_id, devices.len()),
            Column::Int(devices.iter().map(|(id, _)| *id).collect()),
            Column::Uuid(devices.iter().map(|(_, tenant)| tenant.0).collect()),
            Column::Time(vec![now; devices.len()]),
        ],
        tail: "ON CONFLICT DO NOTHING",
    };
    rows.execute(tx).await.map(drop)
}

/// The list must not be empty.
pub async fn remove_devices(tx: &mut Tx, project_id: &str, devices: &[i64]) -> Result<()> {
    sql("DELETE FROM partner_project_devices WHERE project_id = $1 AND device_instance_id IN ")
        .bind(project_id)
        .push_list(devices.iter().copied())
        .run(tx)
        .await
}
