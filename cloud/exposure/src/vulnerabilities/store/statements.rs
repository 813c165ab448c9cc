//! SQL of statements.

use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{ReleaseUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::super::statements::{Statement, VexJustification, VexStatus};

/// Ids that one query asks for.
const AT_ONCE: usize = 500;

#[derive(sqlx::FromRow)]
struct StatementRow {
    vulnerability_id: String,
    release_uuid: ReleaseUuid,
    #[sqlx(try_from = "String")]
    status: VexStatus,
    justification: Option<String>,
    impact: Option<String>,
    action: Option<String>,
    author: String,
    updated_at: Timestamp,
}

impl From<StatementRow> for Statement {
    fn from(row: StatementRow) -> Self {
        let justification = row.justification.as_deref();
        Self {
            vulnerability_id: row.vulnerability_id,
            release_uuid: Some(row.release_uuid).filter(|release| !release.0.is_nil()),
            status: row.status,
            justification: justification.and_then(VexJustification::from_name),
            impact: row.impact,
            action: row.action,
            author: row.author,
            updated_at: row.updated_at,
        }
    }
}

/// The tenant's statements in the order of their keys, after one of them.
pub async fn after(
    conn: &mut Conn,
    scope: &Scope,
    (vulnerability_id, release_uuid): (&str, ReleaseUuid),
    limit: i64,
) -> Result<Vec<Statement>> {
    let rows: Vec<StatementRow> = sql(
        "SELECT vulnerability_id, release_uuid, status, justification, impact, action, author, \
         updated_at FROM vulnerability_statements WHERE tenant_uuid = $1 \
         AND (vulnerability_id, release_uuid) > ($2, $3) \
         ORDER BY vulnerability_id, release_uuid LIMIT $4",
    )
    .bind((scope.tenant_uuid(), vulnerability_id, release_uuid, limit))
    .all(conn)
    .await?;
    Ok(rows.into_iter().map(Statement::from).collect())
}

/// The tenant's statements about these vulnerabilities. The list must not be empty.
pub async fn list(conn: &mut Conn, scope: &Scope, ids: &[String]) -> Result<Vec<Statement>> {
    let rows: Vec<StatementRow> = sql(
        "SELECT vulnerability_id, release_uuid, status, justification, impact, action, author, \
         updated_at FROM vulnerability_statements WHERE tenant_uuid = $1 AND vulnerability_id IN ",
    )
    .bind(scope.tenant_uuid())
    .push_list(ids.iter().map(String::as_str))
    .push(" ORDER BY updated_at DESC, release_uuid")
    .all(conn)
    .await?;
    Ok(rows.into_iter().map(Statement::from).collect())
}

/// What makers of the tenant's releases state by these ids. The list must not be empty.
pub async fn of_makers(conn: &mut Conn, scope: &Scope, ids: &[String]) -> Result<Vec<Statement>> {
    let mut found = Vec::new();
    for some in ids.chunks(AT_ONCE) {
        let rows: Vec<StatementRow> = sql(
            "SELECT vulnerability_id, release_uuid, status, justification, impact, action, author, \
             stated_at AS updated_at FROM release_statements \
             WHERE tenant_uuid = $1 AND vulnerability_id IN ",
        )
        .bind(scope.tenant_uuid())
        .push_list(some.iter().map(String::as_str))
        .push(" ORDER BY stated_at DESC, release_uuid")
        .all(conn)
        .await?;
        found.extend(rows.into_iter().map(Statement::from));
    }
    Ok(found)
}

/// Replaces what the maker of a release states. No two statements have the same id.
pub async fn replace_of_maker(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    release_uuid: ReleaseUuid,
    statements: &[Statement],
) -> Result<()> {
    sql("DELETE FROM release_statements WHERE tenant_uuid = $1 AND release_uuid = $2")
        .bind((tenant_uuid, release_uuid))
        .run(tx)
        .await?;
    let text = |value: fn(&Statement) -> &str| {
        let texts = statements
            .iter()
            .map(|statement| Arc::from(value(statement)));
        Column::Text(texts.collect())
    };
    let optional = |value: fn(&Statement) -> Option<&str>| {
        let texts = statements
            .iter()
            .map(|statement| value(statement).map(Arc::from));
        Column::OptionalText(texts.collect())
    };
    Bulk {
        head: "INSERT INTO release_statements (tenant_uuid, release_uuid, vulnerability_id, \
            status, justification, impact, action, author, stated_at)",
        columns: vec![
            Column::Uuid(vec![tenant_uuid.0; statements.len()]),
            Column::Uuid(vec![release_uuid.0; statements.len()]),
            text(|statement| &statement.vulnerability_id),
            text(|statement| statement.status.name()),
            optional(|statement| statement.justification.map(VexJustification::name)),
            optional(|statement| statement.impact.as_deref()),
            optional(|statement| statement.action.as_deref()),
            text(|statement| &statement.author),
            Column::Time(
                statements
                    .iter()
                    .map(|statement| statement.updated_at)
                    .collect(),
            ),
        ],
        tail: "",
    }
    .execute(tx)
    .await?;
    Ok(())
}

pub async fn put(tx: &mut Tx, scope: &Scope, statement: &Statement) -> Result<()> {
    sql(
        "INSERT INTO vulnerability_statements (tenant_uuid, vulnerability_id, release_uuid, \
         status, justification, impact, action, author, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) \
         ON CONFLICT (tenant_uuid, vulnerability_id, release_uuid) DO UPDATE SET \
         status = excluded.status, justification = excluded.justification, \
         impact = excluded.impact, action = excluded.action, author = excluded.author, \
         updated_at = excluded.updated_at",
    )
    .bind((
        scope.tenant_uuid(),
        statement.vulnerability_id.as_str(),
        statement.release_uuid.unwrap_or(ReleaseUuid(Uuid::nil())),
        statement.status.name(),
        statement.justification.map(VexJustification::name),
        statement.impact.as_deref(),
        statement.action.as_deref(),
        statement.author.as_str(),
        statement.updated_at,
    ))
    .run(tx)
    .await
}
