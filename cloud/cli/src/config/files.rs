//! The files of an export: one for each object, in a stable format.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hub_client::operations;
use serde_json::{Value, json};

use super::args::ExportOptions;
use super::models::PARTS;
use super::state::{self, Documents, State};
use super::{FOLDERS, ROUTE, models, text, tidy};
use crate::connect::in_tenant;
use crate::diff::canonical;
use crate::failure::Failure;
use crate::global::Global;
use crate::pipelines::{check_definition, complete, read_json, with_variables};
use crate::terminal::{note, print_json};
use crate::text::printable;

/// The file that marks a directory as an export, with the version of its format.
const MARKER: &str = "hub-export.json";
const FORMAT: i64 = 1;

pub async fn export(global: &Global, options: &ExportOptions) -> Result<(), Failure> {
    let Some(directory) = &options.directory else {
        return Err(Failure::usage("give the directory to write to"));
    };
    check_target(directory)?;
    let client = in_tenant(global).await?;
    let written = write_all(directory, &state::read(&client).await?)?;
    match global.json {
        true => print_json(&json!({"files": written})),
        false => {
            note(&format!(
                "Wrote {} files to {}.",
                written.len(),
                directory.display()
            ));
            Ok(())
        }
    }
}

/// Writes the files of a configuration, and removes those whose objects no longer exist. Returns
/// the paths of all files.
pub fn write_all(directory: &Path, state: &State) -> Result<BTreeSet<String>, Failure> {
    let mut written = BTreeSet::from([MARKER.to_owned()]);
    write(directory, MARKER, &json!({"form": FORMAT}))?;
    for ((folder, name), document) in &state.documents {
        let (path, document) = match folder.as_str() {
            ROUTE => (format!("{ROUTE}.json"), document.clone()),
            "pipelines" => (
                file_name(folder, name, &written),
                with_variables(document.clone(), name),
            ),
            _ => (file_name(folder, name, &written), document.clone()),
        };
        write(directory, &path, &document)?;
        written.insert(path);
    }
    for path in existing(directory)? {
        if !written.contains(&path) {
            let path = directory.join(path);
            std::fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
        }
    }
    Ok(written)
}

fn failed(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("{}: {what}", path.display()))
}

/// Refuses a directory with other files.
fn check_target(directory: &Path) -> Result<(), Failure> {
    let Ok(mut entries) = std::fs::read_dir(directory) else {
        return Ok(());
    };
    let is_empty = entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == ".git"));
    match is_empty || directory.join(MARKER).is_file() {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "{} contains other files; use a new directory, or one of `hub export`",
            directory.display()
        ))),
    }
}

/// A file name of characters that every system allows, with a number if it is taken.
fn file_name(folder: &str, name: &str, taken: &BTreeSet<String>) -> String {
    let allowed = |c: char| {
        if c.is_alphanumeric() {
            c.to_lowercase().next().unwrap_or('-')
        } else {
            '-'
        }
    };
    let plain: String = name.chars().take(60).map(allowed).collect();
    let plain = plain.trim_matches('-');
    let plain = if plain.is_empty() { "unnamed" } else { plain };
    let names =
        std::iter::once(plain.to_owned()).chain((2..).map(|number| format!("{plain}-{number}")));
    let mut paths = names.map(|name| format!("{folder}/{name}.json"));
    paths.find(|path| !taken.contains(path)).unwrap_or_default()
}

fn write(directory: &Path, path: &str, document: &Value) -> Result<(), Failure> {
    let path = directory.join(path);
    let text = serde_json::to_string_pretty(&canonical(document.clone()))? + "\n";
    let parent = path.parent().unwrap_or(directory);
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| failed(&path, &error))
}

/// The files of an export, below the directory.
fn existing(directory: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let Ok(entries) = std::fs::read_dir(directory.join(folder)) else {
            continue;
        };
        for entry in entries {
            let entry = entry.map_err(|error| failed(directory, &error))?;
            if let Some(name) = entry
                .file_name()
                .to_str()
                .filter(|name| name.ends_with(".json"))
            {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    if directory.join(format!("{ROUTE}.json")).is_file() {
        found.push(format!("{ROUTE}.json"));
    }
    found.sort();
    Ok(found)
}

/// The documents of a directory, in the form of `State::documents`.
pub fn read(directory: &Path) -> Result<Documents, Failure> {
    let mark = directory.join(MARKER);
    let form = match mark.is_file() {
        true => read_json(&mark)?.get("form").and_then(Value::as_i64),
        false => {
            return Err(Failure::usage(format!(
                "{} is not a directory of `hub export`",
                directory.display()
            )));
        }
    };
    if form != Some(FORMAT) {
        return Err(Failure::usage(format!(
            "{} has a different format; use the version of hub that wrote it",
            mark.display()
        )));
    }
    let mut documents = Documents::new();
    for path in existing(directory)? {
        let place: PathBuf = directory.join(&path);
        let document = canonical(read_json(&place)?);
        let folder = path.split(['/', '.']).next().unwrap_or_default().to_owned();
        let about = |failure: Failure| failure.about(&place.display().to_string());
        let (name, document) = checked(&folder, document).map_err(about)?;
        if documents.insert((folder, name.clone()), document).is_some() {
            let name = printable(&name);
            return Err(Failure::usage(format!(
                "{}: another file has the name `{name}` too",
                place.display()
            )));
        }
    }
    Ok(documents)
}

/// The name and the document of a file. Unknown members are refused, as they may be misspelt.
fn checked(folder: &str, document: Value) -> Result<(String, Value), Failure> {
    let parts: Vec<&str> = PARTS.iter().map(|part| part.member).collect();
    let (naming, allowed): (&str, Vec<&str>) = match folder {
        "apps" => ("name", vec!["name", "description"]),
        "models" => ("name", [operations::MODEL_MEMBERS, &parts].concat()),
        "actions" => ("actionId", operations::ACTION_MEMBERS.to_vec()),
        "pipelines" => return Ok((check_definition(&document, "the file")?, complete(document))),
        "bundles" => (
            "name",
            [
                operations::BUNDLE_MEMBERS,
                &["apps", "devices", "pipelines", "published"],
            ]
            .concat(),
        ),
        _ => ("", operations::ROUTE_MEMBERS.to_vec()),
    };
    let members = document
        .as_object()
        .ok_or_else(|| Failure::usage("it is not a JSON object"))?;
    if let Some(unknown) = members
        .keys()
        .find(|name| !allowed.contains(&name.as_str()))
    {
        let (unknown, allowed) = (printable(unknown), allowed.join(", "));
        return Err(Failure::usage(format!(
            "it has the unknown member `{unknown}`; allowed are: {allowed}"
        )));
    }
    let name = text(&document, naming);
    if !naming.is_empty() && name.is_empty() {
        return Err(Failure::usage(format!("it has no `{naming}`")));
    }
    Ok((
        name,
        match folder {
            "models" => models::of_file(document)?,
            ROUTE => document,
            _ => tidy(document),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_differ() {
        let mut taken = BTreeSet::new();
        for (name, expected) in [
            ("../../etc/passwd", "models/etc-passwd.json"),
            ("Roof ☂ 1", "models/roof---1.json"),
            ("roof / 1", "models/roof---1-2.json"),
            ("\u{1b}[31m", "models/31m.json"),
            ("...", "models/unnamed.json"),
        ] {
            let path = file_name("models", name, &taken);
            assert_eq!(path, expected);
            taken.insert(path);
        }
    }
}
