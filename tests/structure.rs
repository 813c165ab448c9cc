//! Rules of the source that no compiler checks: which module of a crate may import which (the
//! `layers` block in the comment of its root), how wide comments and SQL are, which pictures there
//! are. Reads files only.

mod imports;
mod knots;
mod layers;
mod modules;
mod source;
mod text;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use knots::{Knot, knots};
use layers::Layers;
use modules::Folder;
use source::Source;

/// Crates of several ideas: the comment of each one's root has a `layers` block.
const LAYERED: [&str; 14] = [
    "cloud/advisories/src",
    "cloud/base/src",
    "cloud/cli/src",
    "cloud/composed/src",
    "cloud/core/src",
    "cloud/devices/src",
    "cloud/exposure/src",
    "cloud/fleet/src",
    "cloud/hub-cloud/src",
    "cloud/identity/src",
    "cloud/people/src",
    "cloud/traces/src",
    "hub-agent/src",
    "protocol/recordings/src",
];
/// Crates of one idea: no modules import each other in a circle.
const UNTIED: [&str; 8] = [
    "cloud/destinations/src",
    "cloud/identity/src",
    "cloud/ingest/src",
    "cloud/outgoing/src",
    "cloud/pipelines/src",
    "cloud/scripts/src",
    "cloud/steps/src",
    "cloud/streams/src",
];
/// The circles there are, to be untied.
const KNOTS: [&str; 1] = ["cloud/steps/src/expression: functions node run"];
const MAX_COLUMNS: usize = 100;

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

/// All Rust files below a source folder: path below it, and text.
fn folder(name: &str) -> Folder {
    let root = project().join(name);
    let files = files_below(&root).into_iter().filter(|path| is_rust(path));
    let files = files.map(|path| {
        let text = std::fs::read_to_string(root.join(&path)).expect("a source file");
        (path.to_string_lossy().into_owned(), text)
    });
    Folder::of(name, &files.collect::<Vec<_>>())
}

#[test]
fn modules_import_only_from_lower_layers() {
    let is_root = |path: &Path| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    let (mut faults, mut layered) = (Vec::new(), BTreeSet::new());
    for (path, text) in texts(is_root) {
        let layers = Layers::of_root(&text);
        let layers = layers.unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        let name = path.parent().map(|folder| folder.to_string_lossy());
        let name = name.expect("a folder").into_owned();
        if let Some(layers) = layers {
            faults.extend(layers.check(&name, &folder(&name)));
            layered.insert(name);
        }
    }
    for name in LAYERED {
        if !layered.contains(name) {
            faults.push(format!("{name} has no ```layers block in its root"));
        }
    }
    assert_none(
        &faults,
        "imports go to earlier lines of the `layers` block in the crate's lib.rs or main.rs only:",
    );
}

#[test]
fn modules_of_one_idea_import_each_other_in_no_circle() {
    let found: Vec<Knot> = UNTIED
        .iter()
        .flat_map(|name| knots(name, &folder(name)))
        .collect();
    let mut faults = Vec::new();
    for knot in &found {
        if !KNOTS.contains(&knot.name.as_str()) {
            faults.push(format!("{}\n  {}", knot.name, knot.imports.join("\n  ")));
        }
    }
    for known in KNOTS {
        if !found.iter().any(|knot| knot.name == known) {
            faults.push(format!("{known}: untied, or changed; correct the list"));
        }
    }
    assert_none(
        &faults,
        "modules of one idea do not import each other in a circle:",
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
fn pictures_of_the_documents_are_shown_and_exist() {
    let docs = project().join("docs");
    let of_kind = |kind: &str| -> Vec<PathBuf> {
        let files = files_below(&docs).into_iter();
        let is_kind = |path: &PathBuf| path.extension().is_some_and(|found| found == kind);
        files.filter(is_kind).collect()
    };
    let mut shown = BTreeSet::new();
    for page in of_kind("md") {
        let text = std::fs::read_to_string(docs.join(&page)).expect("a page");
        let targets = text.split("](").skip(1);
        let targets = targets.filter_map(|rest| rest.split(')').next());
        for picture in targets.filter(|target| target.ends_with(".png")) {
            shown.insert(page.with_file_name(picture));
        }
    }
    let pictures = BTreeSet::from_iter(of_kind("png"));
    assert_eq!(
        shown, pictures,
        "pages show the left, and the right are there"
    );
}

/// The console and the command line show values in one order.
#[test]
fn quantities_have_one_order() {
    let file = project().join("cloud/console/src/pages/devices/names.ts");
    let text = std::fs::read_to_string(file).expect("the console's names");
    let first = text.split("const FIRST = [").nth(1).expect("FIRST");
    let first = first.split("];").next().unwrap_or_default();
    let names: Vec<&str> = first.split('\'').skip(1).step_by(2).collect();
    assert_eq!(names, hub_adverts::quantity::FIRST_SHOWN);
    for name in names {
        let is_known = hub_adverts::quantity::quantity(name).is_some();
        assert!(is_known, "{name} is no quantity");
    }
}
