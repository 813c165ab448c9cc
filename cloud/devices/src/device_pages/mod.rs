//! What people see of a device model and do with its devices: forms (UI schemas), manuals, actions.
//! It checks and keeps them. It must never call an external endpoint or reach a device.

mod actions;
mod carried;
mod config;
pub mod http;
mod manuals;
pub mod of_model;
mod parameters;
mod schema;
mod store;
mod transport;
mod uis;

use std::collections::BTreeSet;

use axum::http::Method;
use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::http::check::{Check, LOCALE, MAX_LOCALE_CHARS, changed_text, check_locale};
use hub_identity::authz::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The most characters of names, titles, and ids of steps.
const MAX_NAME_CHARS: usize = 200;
/// The most characters of descriptions, URLs, and paths.
const MAX_TEXT_CHARS: usize = 2000;
/// Members of an object, items of a list.
const MAX_ITEMS: usize = 256;
/// Steps of a form or of an action.
const MAX_STEPS: usize = 64;
/// A document, such as the form or the text of a manual.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024;
/// The path of an external endpoint. A second slash at the start would name another host.
const ENDPOINT_PATH: &str = r"^/([!$-;=?-\[\]_a-z|~][!$-;=?-\[\]_a-z|~]*)?$";

pub use carried::{Carried, Prepared, prepare};
pub use config::Submission;
pub use http::{ActionDefinitionResponse, DeviceUiResponse};
pub use store::manuals::ManualRow;

/// The method of a request to an external endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum EndpointMethod {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl EndpointMethod {
    pub const fn http(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }

    /// Whether the values go into a body; else they go into the query.
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// The most rows of a kind of a tenant.
struct Room {
    table: store::Table,
    of_tenant: i64,
    code: &'static str,
    /// The objects, such as `manuals`.
    what: &'static str,
}

impl Room {
    /// Fails if the tenant cannot have one more.
    async fn require(&self, tx: &mut Tx, scope: &Scope) -> Result<()> {
        if store::count(tx, scope, self.table).await? < self.of_tenant {
            return Ok(());
        }
        let message = format!(
            "a tenant may have at most {} {}; delete one first",
            self.of_tenant, self.what
        );
        Err(Error::conflict(self.code, message))
    }
}

/// The external endpoints that a form or an action names, each with the member that does.
#[derive(Debug, Default)]
struct NamedEndpoints(Vec<(String, Uuid)>);

impl NamedEndpoints {
    /// Fails unless all are the tenant's. They stay until the transaction ends.
    async fn require(&self, tx: &mut Tx, scope: &Scope) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let named: BTreeSet<Uuid> = self.0.iter().map(|(_, endpoint)| *endpoint).collect();
        let own = store::hold_endpoints(tx, scope, named).await?;
        let mut check = Check::new();
        for (field, endpoint) in &self.0 {
            check.that(
                own.contains(endpoint),
                field.as_str(),
                "is no external endpoint of the tenant",
            );
        }
        check.done()
    }
}

/// A form or an action of the tenant that calls this external endpoint, in words; None if none
/// does.
pub async fn user_of_endpoint(
    tx: &mut Tx,
    scope: &Scope,
    endpoint: Uuid,
) -> Result<Option<String>> {
    let ui = store::uis::of_endpoint(tx, scope, endpoint).await?;
    if let Some(name) = ui {
        return Ok(Some(format!("the UI schema {name:?}")));
    }
    let action = store::actions::of_endpoint(tx, scope, endpoint).await?;
    Ok(action.map(|action_id| format!("the action {action_id:?}")))
}

/// A path, with or without a query, that stays at the host of its endpoint.
fn check_path(check: &mut Check, field: &str, path: &str) {
    let is_char = |byte: u8| byte.is_ascii_graphic() && !b"\"#<>\\^`{}".contains(&byte);
    let holds = path.len() <= MAX_TEXT_CHARS
        && path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(is_char);
    let message = format!(
        "must begin with one `/` and have at most {MAX_TEXT_CHARS} characters of a URL's path and query, without braces"
    );
    check.that(holds, field, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_at_their_host() {
        let is_path = |text: &str| {
            let mut check = Check::new();
            check_path(&mut check, "path", text);
            check.done().is_ok()
        };
        for text in ["/", "/v1/lamps/7", "/a?b=c&d=%20", "/a//b", "/[x]_|~"] {
            assert!(is_path(text), "{text}");
        }
        for text in [
            "",
            "a",
            "//host/a",
            "/a b",
            "/\\host",
            "/a#b",
            "/{level}",
            "/ü",
            "https://host/",
            "/\n",
        ] {
            assert!(!is_path(text), "{text}");
        }
        assert!(!is_path(&format!("/{}", "a".repeat(2000))));
    }
}
