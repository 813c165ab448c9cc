//! Messages of the partner about a project: the whole of it each time, so that a message that comes
//! twice changes nothing. A message is applied unless a later one was: whoever overheard a message
//! cannot turn a project back with it.

use std::collections::BTreeSet;

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_protocol::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::{self, MemberRow, ProjectRow};

/// The rate limit key of all messages: there is one partner.
const PARTNER: Uuid = Uuid::nil();
/// The largest accepted advance of the partner's clock.
const MAX_AHEAD_SECS: i64 = 300;

/// A message; checked.
pub struct ProjectMessage {
    pub project_id: String,
    pub name: Option<String>,
    pub members: BTreeSet<MemberRow>,
    pub is_deleted: bool,
    pub occurred_at: Timestamp,
}

fn state(row: &ProjectRow, members: usize) -> Value {
    json!({"name": row.name, "members": members, "occurredAt": row.occurred_at, "deletedAt": row.deleted_at})
}

/// Stores the project. Returns false if a later message was applied before.
pub async fn apply(core: &Core, message: ProjectMessage) -> Result<bool> {
    let now = core.clock.now();
    core.turns.webhooks.count(PARTNER, now)?;
    if message.occurred_at > now.plus_secs(MAX_AHEAD_SECS) {
        return Err(Error::field(
            "occurredAt",
            "is in the future; check the clock of the partner",
        ));
    }
    let mut tx = core.db.begin().await?;
    let name = message.name.as_deref().unwrap_or(&message.project_id);
    let is_new = store::insert_new(&mut tx, &message.project_id, name, now).await?;
    let before = store::lock(&mut tx, &message.project_id).await?;
    let before = before.ok_or_else(|| Error::internal("a project vanished while it was locked"))?;
    if before
        .occurred_at
        .is_some_and(|last| message.occurred_at < last)
    {
        return Ok(false);
    }
    let members_before: BTreeSet<MemberRow> = store::members(&mut tx, &message.project_id)
        .await?
        .into_iter()
        .collect();
    let members = if message.is_deleted {
        BTreeSet::new()
    } else {
        message.members
    };
    let after = ProjectRow {
        name: message.name.unwrap_or_else(|| before.name.clone()),
        occurred_at: Some(message.occurred_at),
        deleted_at: message.is_deleted.then(|| before.deleted_at.unwrap_or(now)),
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
        store::replace_members(&mut tx, &message.project_id, &members).await?;
    }
    if message.is_deleted {
        store::clear(&mut tx, &message.project_id).await?;
    }
    let action = match (message.is_deleted, is_new) {
        (true, _) => "partner_project.delete",
        (false, true) => "partner_project.create",
        (false, false) => "partner_project.update",
    };
    let before = (!is_new).then(|| state(&before, members_before.len()));
    let audit = Audit::by_system("partner", action, &message.project_id, now);
    tx.commit(audit.changed(before, Some(state(&after, members.len()))))
        .await?;
    Ok(true)
}

/// Deletes a project as if the partner had never sent it; the next message restores it.
pub async fn forget(
    core: &Core,
    author: &hub_identity::authn::user::User,
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
