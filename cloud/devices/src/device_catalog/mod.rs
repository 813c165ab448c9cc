//! Device models of a tenant: how they are recognised (identifiers), how their frames are read
//! (protocols), and which versions of them there are. It must never read an event, nor more of
//! devices than how many there are.

mod compiled;
mod described;
mod draft;
pub mod http;
mod identifiers;
mod models;
mod protocols;
mod store;
mod trial;
mod versions;

use std::collections::HashSet;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::check::changed_text;
use hub_identity::authz::Scope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

pub use compiled::{compiled, protocols_of_versions};
pub use described::{Described, described};
pub use store::{revisions, revisions_of};

/// The most characters of names, and other lines of text.
const MAX_NAME_CHARS: usize = 200;
/// Descriptions and notes.
const MAX_TEXT_CHARS: usize = 2000;
/// Items of a list in one record.
const MAX_ITEMS: usize = 256;
/// A JSON document, such as a definition.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024;

/// The name of the tenant's model; None if there is none.
pub async fn name_of(conn: &mut Conn, scope: &Scope, device_uuid: Uuid) -> Result<Option<String>> {
    store::models::name(conn, scope, device_uuid).await
}

/// The tenant's models whose support ends between two days: the model, its name and the day.
pub async fn support_ending(
    conn: &mut Conn,
    scope: &Scope,
    from: &str,
    to: &str,
    limit: i64,
) -> Result<Vec<(Uuid, String, String)>> {
    store::models::support_ending(conn, scope, from, to, limit).await
}

/// How many devices of the tenant's model have each firmware; None is not known.
pub async fn devices_by_firmware(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Uuid,
) -> Result<Vec<(Option<String>, i64)>> {
    store::versions::devices_by_firmware(conn, scope, device_uuid).await
}

/// Fails unless the model is the tenant's.
pub async fn require_model(conn: &mut Conn, scope: &Scope, device_uuid: Uuid) -> Result<()> {
    models::get(conn, scope, device_uuid).await.map(|_| ())
}

/// The given models of the tenant.
pub async fn own(conn: &mut Conn, scope: &Scope, models: &[Uuid]) -> Result<HashSet<Uuid>> {
    if models.is_empty() {
        return Ok(HashSet::new());
    }
    store::models::own(conn, scope, models)
        .await
        .map(HashSet::from_iter)
}

/// Whether the tenant's model has this version.
pub async fn version_exists(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Uuid,
    device_version_uuid: Uuid,
) -> Result<bool> {
    let version = store::versions::get(conn, scope, device_version_uuid).await?;
    Ok(version.is_some_and(|version| version.device_uuid == device_uuid))
}

/// Raises the revision of the tenant's catalog for a change of single devices, whose rows get the
/// returned revision. The catalog stays locked until the transaction ends, so that the state that
/// is checked after this cannot change meanwhile.
pub async fn raise_revision(core: &Core, tx: &mut Tx, scope: &Scope) -> Result<i64> {
    let revision = store::raise(tx, scope).await?;
    note_after_commit(core, tx, scope, revision);
    Ok(revision)
}

/// Raises the revision of the tenant's catalog for any other change: the catalog has to be read as
/// a whole.
pub async fn raise_models(core: &Core, tx: &mut Tx, scope: &Scope) -> Result<()> {
    let revision = store::raise_models(tx, scope).await?;
    note_after_commit(core, tx, scope, revision);
    Ok(())
}

fn note_after_commit(core: &Core, tx: &mut Tx, scope: &Scope, revision: i64) {
    let (core, tenant_uuid) = (core.clone(), scope.tenant_uuid());
    tx.after_commit(async move { core.catalog_revisions.note(tenant_uuid, revision) });
}

/// Begins a change of the tenant's catalog. Changes of one tenant wait for each other, so that what
/// one counts and compares stays true until it is committed.
pub async fn begin(core: &Core, scope: &Scope) -> Result<Tx> {
    let mut tx = core.db.begin().await?;
    store::lock(&mut tx, scope).await?;
    Ok(tx)
}

/// The most rows of a kind of a model and a tenant.
struct Room {
    table: store::Table,
    of_model: i64,
    of_tenant: i64,
    code: &'static str,
    /// The objects, such as `identifiers`.
    what: &'static str,
}

impl Room {
    /// Fails if the model or the tenant cannot have so many more.
    async fn require(
        &self,
        tx: &mut Tx,
        scope: &Scope,
        device_uuid: Uuid,
        more: usize,
    ) -> Result<()> {
        let (of_model, of_tenant) = store::counts(tx, scope, self.table, device_uuid).await?;
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        let (whose, most) = match () {
            () if of_model.saturating_add(more) > self.of_model => {
                ("a device model", self.of_model)
            }
            () if of_tenant.saturating_add(more) > self.of_tenant => ("a tenant", self.of_tenant),
            () => return Ok(()),
        };
        let message = format!(
            "{whose} may have at most {most} {}; delete one first",
            self.what
        );
        Err(Error::conflict(self.code, message))
    }
}

/// A value as JSON in a column of text.
#[derive(Clone, Debug, Default, PartialEq)]
struct Stored<T>(T);

impl<T: DeserializeOwned> TryFrom<String> for Stored<T> {
    type Error = serde_json::Error;

    fn try_from(text: String) -> Result<Self, serde_json::Error> {
        serde_json::from_str(&text).map(Self)
    }
}

impl<T: Serialize> Stored<T> {
    fn text(&self) -> Result<String> {
        serde_json::to_string(&self.0).map_err(Error::internal)
    }
}

/// Optional text in its stored form: blank text is absent.
fn filled(text: Option<String>) -> Option<String> {
    hub_core::http::check::filled(text.as_deref()).map(str::to_owned)
}

/// A JSON pointer below the member `root` of a request, or in the request itself if that is empty,
/// as the path of a member: `/conditions/1/value` is `conditions[1].value`.
fn member_path(root: &str, pointer: &str) -> String {
    let mut path = root.to_owned();
    for part in pointer.split('/').skip(1) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(part);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_become_paths() {
        for (root, pointer, path) in [
            ("", "/conditions/1/value", "conditions[1].value"),
            ("", "/value", "value"),
            (
                "tests[2]",
                "/expect/temperature",
                "tests[2].expect.temperature",
            ),
            ("tests[2]", "", "tests[2]"),
        ] {
            assert_eq!(member_path(root, pointer), path);
        }
    }

    #[test]
    fn blank_text_removes_and_absent_text_leaves() {
        let current = Some("old".to_owned());
        assert_eq!(changed_text(&current, None), current);
        assert_eq!(changed_text(&current, Some(" ".to_owned())), None);
        assert_eq!(
            changed_text(&current, Some(" new ".to_owned())),
            Some("new".to_owned())
        );
    }
}
