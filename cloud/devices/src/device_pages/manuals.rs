//! Manuals of a model: texts, or links to them.

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::{Check, filled};
use hub_identity::authz::Scope;
use hub_protocol::text_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::manuals::ManualRow;
use super::store::{self, Table};
use super::{Room, changed_text};
use crate::device_catalog;

const ROOM: Room = Room {
    table: Table::Manuals,
    of_tenant: 1000,
    code: "TOO_MANY_MANUALS",
    what: "manuals",
};

/// The location of the text of a manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ManualFormat {
    /// The text is in `content`.
    Markdown,
    /// The text is at `url`.
    Link,
}

text_enum!(ManualFormat { Markdown = "MARKDOWN", Link = "LINK" });

/// The values given for a manual. In a change, None keeps the stored value, and blank text removes
/// it.
#[derive(Debug)]
pub struct Given {
    pub title: Option<String>,
    pub locale: Option<String>,
    pub format: Option<ManualFormat>,
    pub content: Option<String>,
    pub url: Option<String>,
}

impl Given {
    /// The manual after the change. It has what its format demands, and nothing of the other one.
    fn applied_to(self, before: &ManualRow) -> Result<ManualRow> {
        let format = self.format.unwrap_or(before.format);
        let (needed, other, other_given) = match format {
            ManualFormat::Markdown => ("content", "url", &self.url),
            ManualFormat::Link => ("url", "content", &self.content),
        };
        let other_is_absent = filled(other_given.as_deref()).is_none();
        let (content, url) = match format {
            ManualFormat::Markdown => (changed_document(&before.content, self.content), None),
            ManualFormat::Link => (None, changed_text(&before.url, self.url)),
        };
        let mut check = Check::new();
        check.that(
            other_is_absent,
            other,
            format!("does not go with {}", format.name()),
        );
        check.that(
            content.is_some() || url.is_some(),
            needed,
            format!("is required for {}", format.name()),
        );
        check.done()?;
        let title = self
            .title
            .map_or_else(|| before.title.clone(), |title| title.trim().to_owned());
        let locale = changed_text(&before.locale, self.locale);
        Ok(ManualRow {
            title,
            locale,
            format,
            content,
            url,
            ..before.clone()
        })
    }
}

/// As [`changed_text`], for a text whose blanks at start and end are part of it.
fn changed_document(current: &Option<String>, given: Option<String>) -> Option<String> {
    match given {
        None => current.clone(),
        Some(text) => Some(text).filter(|text| !text.trim().is_empty()),
    }
}

impl ManualRow {
    /// The representation in the audit log. The text is represented by its digest.
    fn state(&self) -> Value {
        json!({
            "deviceUuid": self.device_uuid,
            "title": self.title,
            "locale": self.locale,
            "format": self.format,
            "contentSha256": self.content.as_ref().map(|content| hex::encode(sealing::hash(content))),
            "url": self.url,
        })
    }
}

pub async fn get(conn: &mut Conn, scope: &Scope, device_manual_id: i64) -> Result<ManualRow> {
    let row = store::manuals::get(conn, scope, device_manual_id).await?;
    row.ok_or_else(|| Error::not_found("manual"))
}

pub async fn create(
    core: &Core,
    scope: &Scope,
    device_uuid: Uuid,
    given: Given,
) -> Result<ManualRow> {
    let now = core.clock.now();
    let blank = ManualRow {
        device_manual_id: 0,
        device_uuid,
        title: String::new(),
        locale: None,
        format: ManualFormat::Markdown,
        content: None,
        url: None,
        created_at: now,
        updated_at: now,
    };
    let row = given.applied_to(&blank)?;
    let mut tx = device_catalog::begin(core, scope).await?;
    device_catalog::require_model(&mut tx, scope, device_uuid).await?;
    ROOM.require(&mut tx, scope).await?;
    let row = store::manuals::insert(&mut tx, scope, &row).await?;
    let audit = Audit::new(scope, "device_manual.create", row.device_manual_id, now);
    tx.commit(audit.changed(None, Some(row.state()))).await?;
    Ok(row)
}

pub async fn update(
    core: &Core,
    scope: &Scope,
    device_manual_id: i64,
    given: Given,
) -> Result<ManualRow> {
    let mut tx = device_catalog::begin(core, scope).await?;
    let before = get(&mut tx, scope, device_manual_id).await?;
    let changed = given.applied_to(&before)?;
    if changed == before {
        return Ok(before);
    }
    let now = core.clock.now();
    let after = ManualRow {
        updated_at: now,
        ..changed
    };
    store::manuals::update(&mut tx, scope, &after).await?;
    let audit = Audit::new(scope, "device_manual.update", device_manual_id, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

pub async fn delete(core: &Core, scope: &Scope, device_manual_id: i64) -> Result<()> {
    let mut tx = device_catalog::begin(core, scope).await?;
    let before = get(&mut tx, scope, device_manual_id).await?;
    store::manuals::delete(&mut tx, scope, device_manual_id).await?;
    let audit = Audit::new(
        scope,
        "device_manual.delete",
        device_manual_id,
        core.clock.now(),
    );
    tx.commit(audit.changed(Some(before.state()), None)).await
}
