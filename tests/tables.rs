//! A table is read and written by its owner alone. The owners, and the modules that are exceptions,
//! are listed in migrations/README.md; the SQL of the service's crates is held against that list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const LIST: &str = "migrations/README.md";
const HEADING: &str = "## Tables and their owners";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[derive(Debug, Default)]
struct Owners {
    owners: Vec<String>,
    exceptions: Vec<String>,
}

/// The texts between backticks.
fn names(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The rows of the list: tables, their owners, and the modules that are exceptions.
fn listed(page: &str) -> BTreeMap<String, Owners> {
    let section = page.split_once(HEADING).expect("the section").1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut tables = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let [first, owners, exceptions] = cells[..] else {
            panic!("not three cells: {line}")
        };
        for table in names(first) {
            let owners = Owners {
                owners: names(owners),
                exceptions: names(exceptions),
            };
            assert!(
                tables.insert(table.clone(), owners).is_none(),
                "{table} is listed twice"
            );
        }
    }
    tables
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|known| known == extension) {
            found.push(path);
        }
    }
    found
}

/// The tables that the migrations create.
pub fn created() -> BTreeSet<String> {
    let mut tables = BTreeSet::new();
    for file in files(&root().join("migrations/sqlite"), "sql") {
        let text = fs::read_to_string(file).expect("a migration");
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix("CREATE TABLE "));
        tables.extend(
            names
                .filter_map(|rest| rest.split(' ').next())
                .map(str::to_owned),
        );
    }
    tables
}

/// The string literals of a source file, each with the code right before it on its line.
pub fn literals(source: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(start) = rest.find(['"', '/', '\'']) {
        let (before, from) = rest.split_at(start);
        let skipped = ["//", "'\"'", "'\\\"'"]
            .into_iter()
            .find(|opening| from.starts_with(opening));
        if let Some(opening) = skipped {
            let end = if opening == "//" {
                from.find('\n').unwrap_or(from.len())
            } else {
                opening.len()
            };
            rest = &from[end..];
        } else if from.starts_with('"') {
            let raw = before.ends_with("r#");
            let end = match raw {
                true => from.find("\"#").unwrap_or(from.len() - 1),
                false => closing_quote(from),
            };
            found.push((
                before.rsplit('\n').next().unwrap_or_default(),
                &from[1..end],
            ));
            rest = &from[end + 1..];
        } else {
            rest = &from[1..];
        }
    }
    found
}

fn closing_quote(literal: &str) -> usize {
    let mut escaped = false;
    for (index, byte) in literal.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return index,
            _ => escaped = byte == b'\\' && !escaped,
        }
    }
    literal.len() - 1
}

/// The tables that a source file names in its SQL, outside of its tests.
fn used(source: &str, tables: &BTreeSet<String>) -> BTreeSet<String> {
    let source = source
        .split("\n#[cfg(test)]\nmod ")
        .next()
        .unwrap_or_default();
    let mut found = BTreeSet::new();
    for (before, text) in literals(source) {
        let words: Vec<&str> = text
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .filter(|word| !word.is_empty())
            .collect();
        for pair in words.windows(2) {
            if matches!(pair[0], "FROM" | "JOIN" | "INTO" | "UPDATE" | "TABLE") {
                found.insert(pair[1].to_owned());
            }
        }
        // A name by itself, that code puts into a statement.
        if source.contains("sql(") && !before.ends_with("name: ") {
            found.insert(text.to_owned());
        }
    }
    found.intersection(tables).cloned().collect()
}

#[test]
fn tables_are_found_in_sql_and_not_in_comments() {
    let tables = ["hubs", "users", "logins", "tasks"]
        .map(str::to_owned)
        .into();
    let source = "// \"SELECT 1 FROM users\"\nlet quote = '\"';\n\
                  sql(\"SELECT 1 FROM \\\n  hubs\").push(\"logins\");\n\
                  Lane { name: \"tasks\" }";
    assert_eq!(
        used(source, &tables),
        ["hubs", "logins"].map(str::to_owned).into()
    );
}

/// The source files of the service, each named by its crate and its path in there:
/// `people/accounts/store`.
pub fn modules() -> Vec<(String, String)> {
    let cloud = root().join("cloud");
    let mut found = Vec::new();
    for entry in fs::read_dir(&cloud).expect("a folder") {
        let source = entry.expect("an entry").path().join("src");
        if !source.is_dir() {
            continue;
        }
        for file in files(&source, "rs") {
            let path = file.strip_prefix(&cloud).expect("a file below");
            let path = path.with_extension("");
            let path = path.to_str().expect("a name").replace("/src/", "/");
            let text = fs::read_to_string(&file).expect("a source file");
            found.push((path, text));
        }
    }
    assert!(found.len() > 300, "only {} files were found", found.len());
    found
}

fn is_within(module: &str, owner: &str) -> bool {
    module
        .strip_prefix(owner)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[test]
fn a_table_is_used_by_its_owner_and_the_listed_exceptions_alone() {
    let page = fs::read_to_string(root().join(LIST)).expect("the page");
    let listed = listed(&page);
    let tables = created();
    assert!(tables.len() > 30, "only {} tables were found", tables.len());
    let unlisted: Vec<_> = tables
        .iter()
        .filter(|table| !listed.contains_key(*table))
        .collect();
    assert!(unlisted.is_empty(), "{LIST} names no owner of {unlisted:?}");

    let mut faults = Vec::new();
    let mut needed = BTreeSet::new();
    for (module, source) in modules() {
        for table in used(&source, &tables) {
            let row = &listed[&table];
            if row.owners.iter().any(|owner| is_within(&module, owner)) {
                continue;
            }
            match row
                .exceptions
                .iter()
                .find(|exception| is_within(&module, exception))
            {
                Some(exception) => drop(needed.insert((table, exception.clone()))),
                None => faults.push(format!(
                    "{module} uses {table}, which belongs to {:?}",
                    row.owners
                )),
            }
        }
    }
    for (table, row) in &listed {
        for exception in &row.exceptions {
            if !needed.contains(&(table.clone(), exception.clone())) {
                faults.push(format!(
                    "{exception} is listed for {table} and does not use it"
                ));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "ask the owner's functions, or give the reason in {LIST}:\n{}",
        faults.join("\n")
    );
}
