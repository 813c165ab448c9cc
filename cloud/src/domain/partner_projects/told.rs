//! What the partner tells of a project: the whole of it each time, so that a message that comes
//! twice changes nothing. A message with a time is applied unless a later one was. Once a project
//! had one with a time, others without are refused: whoever overheard a message cannot turn a
//! project back with it.

use std::collections::BTreeSet;

use hub_protocol::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::{self, MemberRow, ProjectRow};
use crate::audit::Audit;
use crate::core::Core;
use crate::error::{Error, Result};

/// All messages are counted together: there is one partner.
const PARTNER: Uuid = Uuid::nil();
/// How far the clock of the partner may be ahead.
const MAX_AHEAD_SECS: i64 = 300;

/// A message; checked.
pub struct Told {
    pub project_id: String,
    pub name: Option<String>,
    pub members: BTreeSet<MemberRow>,
    pub is_deleted: bool,
    pub occurred_at: Option<Timestamp>,
}

fn state(row: &ProjectRow, members: usize) -> Value {
    json!({"name": row.name, "members": members, "occurredAt": row.occurred_at, "deletedAt": row.deleted_at})
}

/// Stores what is told. Returns false if something later was told before.
pub async fn tell(core: &Core, told: Told) -> Result<bool> {
    let now = core.clock.now();
    core.turns.webhooks.count(PARTNER, now)?;
    if told
        .occurred_at
        .is_some_and(|at| at > now.plus_secs(MAX_AHEAD_SECS))
    {
        return Err(Error::field(
            "occurredAt",
            "is in the future; check the clock of the partner",
        ));
    }
    let mut tx = core.db.begin().await?;
    let name = told.name.as_deref().unwrap_or(&told.project_id);
    let is_new = store::insert_new(&mut tx, &told.project_id, name, now).await?;
    let before = store::lock(&mut tx, &told.project_id).await?;
    let before = before.ok_or_else(|| Error::internal("a project vanished while it was locked"))?;
    match (before.occurred_at, told.occurred_at) {
        (Some(_), None) => {
            let message = "is required: an earlier message about this project had it";
            return Err(Error::field("occurredAt", message));
        }
        (Some(last), Some(at)) if at < last => return Ok(false),
        _ => {}
    }
    let members_before: BTreeSet<MemberRow> = store::members(&mut tx, &told.project_id)
        .await?
        .into_iter()
        .collect();
    let members = if told.is_deleted {
        BTreeSet::new()
    } else {
        told.members
    };
    let after = ProjectRow {
        name: told.name.unwrap_or_else(|| before.name.clone()),
        occurred_at: told.occurred_at,
        deleted_at: told.is_deleted.then(|| before.deleted_at.unwrap_or(now)),
        ..before.clone()
    };
    if !is_new && after == before && members == members_before {
        return Ok(true);
    }
    store::update(
        &mut tx,
        &ProjectRow {
            updated_at: now,
            ..after.clone()
        },
    )
    .await?;
    if members != members_before {
        let members: Vec<MemberRow> = members.iter().cloned().collect();
        store::replace_members(&mut tx, &told.project_id, &members).await?;
    }
    if told.is_deleted {
        store::clear(&mut tx, &told.project_id).await?;
    }
    let action = match (told.is_deleted, is_new) {
        (true, _) => "partner_project.delete",
        (false, true) => "partner_project.create",
        (false, false) => "partner_project.update",
    };
    let before = (!is_new).then(|| state(&before, members_before.len()));
    let audit = Audit::by_system("partner", action, &told.project_id, now);
    tx.commit(audit.changed(before, Some(state(&after, members.len()))))
        .await?;
    Ok(true)
}

/// Forgets a project as if the partner had never told of it; the next message brings it back.
pub async fn forget(
    core: &Core,
    author: &crate::authn::user::User,
    project_id: &str,
) -> Result<()> {
    let mut tx = core.db.begin().await?;
    let before = match super::is_project_id(project_id) {
        true => store::lock(&mut tx, project_id).await?,
        false => None,
    };
    let before = before.ok_or_else(super::not_found)?;
    let members = store::members(&mut tx, project_id).await?.len();
    store::delete(&mut tx, project_id).await?;
    let audit = Audit::new(
        author,
        "partner_project.invalidate",
        project_id,
        core.clock.now(),
    );
    tx.commit(audit.changed(Some(state(&before, members)), None))
        .await
}
