//! What people see of a device model and do with its devices: forms (UI schemas), manuals, actions.
//! It checks and keeps them. It must never call an external endpoint or reach a device.

mod actions;
mod config;
pub mod http;
mod manuals;
mod schema;
mod store;
mod transport;
mod uis;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authz::Scope;
use crate::db::Tx;
use crate::error::{Error, Result};
use crate::http::check::{Check, changed_text, filled};

/// Names, titles, ids of steps.
const MAX_NAME_CHARS: usize = 200;
/// Descriptions, URLs, paths.
const MAX_TEXT_CHARS: usize = 2000;
/// Members of an object, items of a list.
const MAX_ITEMS: usize = 256;
/// Steps of a form or of an action.
const MAX_STEPS: usize = 64;
/// A document, such as the form or the text of a manual.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024;
/// The longest language tag.
const MAX_LOCALE_CHARS: usize = 35;
/// What the shape of a language tag is (BCP 47), or nothing.
const LOCALE: &str = "^([A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*)?$";
/// The path of an external endpoint. A second slash at the start would name another host.
const ENDPOINT_PATH: &str = r"^/([!$-;=?-\[\]_a-z|~][!$-;=?-\[\]_a-z|~]*)?$";

/// How an external endpoint is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(rename = "EndpointMethod")]
enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// How many rows of a kind a tenant may have.
struct Room {
    table: store::Table,
    of_tenant: i64,
    code: &'static str,
    /// Such as `manuals`.
    what: &'static str,
}

impl Room {
    /// Fails if the tenant cannot have one more.
    async fn require(&self, tx: &mut Tx, scope: &Scope) -> Result<()> {
        if store::count(tx, scope, self.table).await? < self.of_tenant {
            return Ok(());
        }
        let message = format!("a tenant may have at most {} {}; delete one first", self.of_tenant, self.what);
        Err(Error::conflict(self.code, message))
    }
}

fn check_locale(check: &mut Check, locale: Option<&str>) {
    let Some(locale) = filled(locale) else { return };
    let mut parts = locale.split('-');
    let language = parts.next().unwrap_or_default();
    let is_language = (2..=8).contains(&language.len()) && language.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_part = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let holds = locale.len() <= MAX_LOCALE_CHARS && is_language && parts.all(is_part);
    check.that(holds, "locale", "must be a language tag, such as `de` or `pt-BR`");
}

/// A path, with or without a query, that stays at the host of its endpoint.
fn check_path(check: &mut Check, field: &str, path: &str) {
    let is_char = |byte: u8| byte.is_ascii_graphic() && !b"\"#<>\\^`{}".contains(&byte);
    let holds =
        path.len() <= MAX_TEXT_CHARS && path.starts_with('/') && !path.starts_with("//") && path.bytes().all(is_char);
    let message = format!(
        "must begin with one `/` and have at most {MAX_TEXT_CHARS} characters of a URL's path and query, without braces"
    );
    check.that(holds, field, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_locale(text: &str) -> bool {
        let mut check = Check::new();
        check_locale(&mut check, Some(text));
        check.done().is_ok()
    }

    #[test]
    fn locales_have_the_shape_of_language_tags() {
        for text in ["", "de", "pt-BR", "zh-Hant-TW", "sl-rozaj-biske-1994", "de-DE-u-co-phonebk"] {
            assert!(is_locale(text), "{text}");
        }
        for text in ["d", "de_DE", "de-", "-de", "1e", "de-ninecharsx", "de DE", "languages", &"de-abc".repeat(7)] {
            assert!(!is_locale(text), "{text}");
        }
    }

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
        for text in ["", "a", "//host/a", "/a b", "/\\host", "/a#b", "/{level}", "/ü", "https://host/", "/\n"] {
            assert!(!is_path(text), "{text}");
        }
        assert!(!is_path(&format!("/{}", "a".repeat(2000))));
    }
}
