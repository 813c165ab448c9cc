//! Rules of the source that no compiler checks: which module may import which (the `layers` blocks
//! of ARCHITECTURE.md), how wide comments and SQL are, how long a file is. Reads files only.

mod imports;
mod layers;
mod source;
mod text;

use std::path::{Path, PathBuf};

use layers::Layers;
use source::Source;

const LAYERED: [&str; 2] = ["cloud/src", "hub-agent/src"];
const MAX_COLUMNS: usize = 100;
const MAX_LINES: usize = 600;

fn project() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// All files below a folder, relative to it, sorted. What is built, fetched or hidden is left out.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    fn collect(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry"))
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().expect("a type");
            let is_hidden = name.starts_with('.') && name != ".ci";
            if kind.is_dir() && !is_hidden && name != "target" && name != "node_modules" {
                collect(root, &entry.path(), found);
            } else if kind.is_file() {
                found.push(
                    entry
                        .path()
                        .strip_prefix(root)
                        .expect("below the root")
                        .to_owned(),
                );
            }
        }
    }
    let mut found = Vec::new();
    collect(folder, folder, &mut found);
    found.sort();
    found
}

/// The text of each file with a name that `chosen` accepts; files that are no text are left out.
fn texts(chosen: impl Fn(&Path) -> bool) -> Vec<(PathBuf, String)> {
    let files = files_below(project())
        .into_iter()
        .filter(|path| chosen(path));
    files
        .filter_map(|path| {
            Some((
                path.clone(),
                std::fs::read_to_string(project().join(path)).ok()?,
            ))
        })
        .collect()
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

fn assert_none(faults: &[String], rule: &str) {
    assert!(
        faults.is_empty(),
        "{rule}\n{}\n({} in all)",
        faults.join("\n"),
        faults.len()
    );
}

#[test]
fn modules_import_only_from_lower_layers() {
    let page = std::fs::read_to_string(project().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let blocks = Layers::of_page(&page).unwrap_or_else(|fault| panic!("ARCHITECTURE.md: {fault}"));
    let mut faults = Vec::new();
    for folder in LAYERED {
        if !blocks.iter().any(|layers| layers.folder == folder) {
            faults.push(format!("ARCHITECTURE.md has no block ```layers {folder}"));
        }
    }
    for layers in blocks {
        let root = project().join(&layers.folder);
        let files = files_below(&root).into_iter().filter(|path| is_rust(path));
        let files = files.map(|path| {
            let text = std::fs::read_to_string(root.join(&path)).expect("a source file");
            (path.to_string_lossy().into_owned(), text)
        });
        faults.extend(layers.check(&files.collect::<Vec<_>>()));
    }
    assert_none(
        &faults,
        "imports go to earlier lines of the `layers` blocks in ARCHITECTURE.md only:",
    );
}

#[test]
fn comments_and_sql_fit_in_100_columns() {
    let mut faults = Vec::new();
    for (path, text) in texts(is_rust) {
        let source = Source::of(&text);
        let wide = text::wide_comments(&source, MAX_COLUMNS)
            .into_iter()
            .chain(text::wide_sql(&source, MAX_COLUMNS));
        faults.extend(
            wide.map(|(line, columns)| format!("{}:{line}: {columns} columns", path.display())),
        );
    }
    for (path, text) in texts(|path| !is_rust(path)) {
        if text::is_script(&path, &text) {
            let wide = text::wide_script_comments(&text, MAX_COLUMNS);
            faults.extend(
                wide.map(|(line, columns)| format!("{}:{line}: {columns} columns", path.display())),
            );
        }
    }
    assert_none(&faults, "comments and SQL text wrap at 100 columns:");
}

#[test]
fn rust_files_have_at_most_600_lines() {
    let lengths = texts(is_rust)
        .into_iter()
        .map(|(path, text)| (path, text.lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > MAX_LINES);
    let faults: Vec<_> = long
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert_none(&faults, "a Rust file has at most 600 lines:");
}
