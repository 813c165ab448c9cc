//! `hub export` and `hub import`: the configuration of a tenant as files. A file refers to other
//! objects by their names, so that it means the same in another tenant.

pub mod args;
mod files;
mod import;
mod models;
mod names;
mod state;

pub use files::{export, read as read_files, write_all};
pub use import::{apply, changes, import};
pub use models::set;
pub use state::{Documents, State, read as read_state};

use serde_json::Value;

/// The folders of files, in the order in which their objects are created.
pub const FOLDERS: [&str; 5] = ["apps", "models", "actions", "pipelines", "bundles"];
/// The name of the file that is not in a folder.
pub const ROUTE: &str = "route";

/// A document without empty members: at its top level, absent, empty and false mean the same.
pub fn tidy(document: Value) -> Value {
    let Value::Object(mut members) = crate::diff::canonical(document) else {
        return Value::Null;
    };
    members.retain(|_, value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    });
    Value::Object(members)
}

/// A document with the named members of a record.
pub fn members(record: &Value, names: &[&str]) -> Value {
    let member = |name: &&str| Some(((*name).to_owned(), record.get(*name)?.clone()));
    Value::Object(names.iter().filter_map(member).collect())
}

pub fn text(record: &Value, name: &str) -> String {
    match record.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}
