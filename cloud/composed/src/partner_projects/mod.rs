//! Projects of a partner: people of several tenants work on devices of theirs. The partner says
//! who is a member with which role, in signed messages. Which tenants take part, and with which of
//! their devices, is said here by members who may act for those tenants, and by nobody else. The
//! row of a deleted project stays, with the time of its last message, so that an older message does
//! not bring it back.

mod changes;
pub mod http;
mod message;
mod store;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_identity::authz::{Scope, UserScope};
use hub_protocol::FieldError;
use secrecy::SecretString;

use store::ProjectRow;
pub use store::forget_persona;

/// The form of a partner's ids: characters that need no escape in a path.
const PROJECT_ID: &str = "^[A-Za-z0-9][A-Za-z0-9._~:-]{0,127}$";
const MAX_PROJECT_ID_BYTES: usize = 128;
const MAX_NAME_CHARS: usize = 200;
/// Items of one request.
const MAX_ITEMS: usize = 256;
const MAX_MEMBERS: usize = 1_000;
const MAX_TENANTS: i64 = 100;
const MAX_DEVICES: i64 = 10_000;
/// Roles whose members may change the participants. All other roles of a partner are to read.
const CHANGING_ROLES: [&str; 5] = ["OWNER", "ADMIN", "OPERATOR", "EDITOR", "MEMBER"];

/// Whether a member with this role may change what takes part in the project.
fn may_change(role: &str) -> bool {
    CHANGING_ROLES.contains(&role)
}

fn is_project_id(text: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:-".contains(&byte);
    text.len() <= MAX_PROJECT_ID_BYTES
        && text.bytes().all(is_char)
        && text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
}

/// The secret of the partner's signatures; 503 without a partner.
fn secret(core: &Core) -> Result<&SecretString> {
    core.config.partner_projects_secret.as_ref().ok_or_else(|| {
        let message = "this requires a partner that has projects, and none is configured; the operator of the service \
                       has to set partner-projects-secret";
        Error::unavailable("PARTNER_PROJECTS_NOT_CONFIGURED", message).with_retry_after(60)
    })
}

fn not_found() -> Error {
    Error::not_found("project")
}

/// A project of the person, with the role that they have in it.
async fn of_person(
    conn: &mut Conn,
    scope: &UserScope,
    project_id: &str,
) -> Result<(ProjectRow, String)> {
    let project = match is_project_id(project_id) {
        true => store::of_person(conn, scope, project_id).await?,
        false => None,
    };
    let project = project.ok_or_else(not_found)?;
    let mut roles = store::roles(conn, scope, &[project.project_id.as_str()]).await?;
    let role = roles.remove(project_id).ok_or_else(not_found)?;
    Ok((project, role))
}

/// The bad items of a list, by their place in it.
#[derive(Debug)]
struct BadItems {
    field: &'static str,
    errors: Vec<FieldError>,
}

impl BadItems {
    const fn of(field: &'static str) -> Self {
        Self {
            field,
            errors: Vec::new(),
        }
    }

    fn add(&mut self, at: usize, message: String) {
        self.errors.push(FieldError {
            field: format!("{}[{at}]", self.field),
            message,
        });
    }

    /// Fails with `error`, which then names the items, if there are any.
    fn or(self, error: impl FnOnce() -> Error) -> Result<()> {
        match self.errors.is_empty() {
            true => Ok(()),
            false => Err(error().with_fields(self.errors)),
        }
    }
}

/// A tenant that is being deleted leaves all projects, with its devices. Returns how many it was
/// in. The caller writes the audit entry.
pub async fn leave_all(tx: &mut Tx, scope: &Scope) -> Result<u64> {
    store::leave_all(tx, scope.tenant_uuid()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_projects_stay_what_they_are_in_a_path() {
        for id in ["1", "prj_1", "a.b~c:d-e", &"x".repeat(128)] {
            assert!(is_project_id(id), "{id}");
        }
        for id in [
            "",
            "-a",
            ".",
            "..",
            "a/b",
            "a b",
            "a\0",
            "ü",
            "a%20",
            &"x".repeat(129),
        ] {
            assert!(!is_project_id(id), "{id}");
        }
    }
}
