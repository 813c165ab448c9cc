//! Modules of one folder that import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Folder, Segments};

/// The modules of one parent, with the modules of the same parent that each imports from, and the
/// files that do.
type Siblings = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Modules that import each other in a circle.
pub struct Knot {
    /// `FOLDER: A B C`
    pub name: String,
    /// Each import within it, as `FOLDER/FILE: A -> B`.
    pub imports: Vec<String>,
}

/// The knots of a folder. A module stands for all that is below it. That a module and its own parts
/// use each other is no knot: they are one thing in several files.
pub fn knots(name: &str, folder: &Folder) -> Vec<Knot> {
    let mut parents: BTreeMap<Segments, Siblings> = BTreeMap::new();
    for file in &folder.files {
        for target in folder.targets(file) {
            let common = file.module.iter().zip(&target);
            let common = common.take_while(|(own, other)| own == other).count();
            if let (Some(from), Some(to)) = (file.module.get(common), target.get(common))
                && folder.modules.contains(&target)
            {
                let parent = file.module.iter().take(common).cloned().collect();
                let imports = parents.entry(parent).or_default();
                let imports = imports.entry(from.clone()).or_default();
                let files = imports.entry(to.clone()).or_default();
                files.insert(format!("{name}/{}", file.path));
            }
        }
    }
    let mut found = Vec::new();
    for (parent, siblings) in &parents {
        let place = [&[name.to_owned()], parent.as_slice()].concat().join("/");
        let mut seen = BTreeSet::new();
        for module in siblings.keys() {
            let is_tied = |other: &&String| {
                reaches(siblings, module, other) && reaches(siblings, other, module)
            };
            let tied: Vec<&str> = siblings
                .keys()
                .filter(is_tied)
                .map(String::as_str)
                .collect();
            if !tied.is_empty() && seen.insert(tied.clone()) {
                found.push(Knot {
                    name: format!("{place}: {}", tied.join(" ")),
                    imports: imports_among(siblings, &tied),
                });
            }
        }
    }
    found
}

fn imports_among(siblings: &Siblings, tied: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (from, imports) in siblings {
        for (to, files) in imports {
            if tied.contains(&from.as_str()) && tied.contains(&to.as_str()) {
                found.extend(files.iter().map(|file| format!("{file}: {from} -> {to}")));
            }
        }
    }
    found
}

/// Whether imports lead from one module to another.
fn reaches(siblings: &Siblings, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(module) = waiting.pop() {
        for next in siblings.get(module).into_iter().flat_map(BTreeMap::keys) {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                waiting.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, String)> = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        let found = knots("steps/src", &Folder::of("steps/src", &files));
        found.into_iter().map(|knot| knot.name).collect()
    }

    #[test]
    fn a_circle_of_siblings_is_found_at_any_depth() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "mod x; mod y; use crate::d::D;"),
            ("b/x.rs", "use super::y::Y; use crate::c;"),
            ("b/y.rs", "fn f() { super::x::g() }"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", ""),
        ];
        assert_eq!(found(&files), ["steps/src: a b c", "steps/src/b: x y"]);
    }

    #[test]
    fn what_the_parent_hands_on_is_of_its_module() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B as C;"),
            ("a.rs", "use crate::C;"),
            ("b.rs", "fn f() { super::A::new() }"),
        ];
        assert_eq!(found(&files), ["steps/src: a b"]);
    }

    #[test]
    fn a_module_and_its_parts_are_no_circle() {
        let files = [
            ("lib.rs", "mod a; pub use a::A; pub struct L;"),
            ("a/mod.rs", "mod store; use crate::L; fn f() { store::g() }"),
            ("a/store.rs", "use super::A; use crate::L;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn a_knot_names_its_imports() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::{b, c};"),
            ("b.rs", "use super::a::A;"),
            ("c.rs", ""),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()));
        let found = knots("steps/src", &Folder::of("steps/src", &files));
        let imports: Vec<_> = found.iter().flat_map(|knot| &knot.imports).collect();
        assert_eq!(
            imports,
            ["steps/src/a.rs: a -> b", "steps/src/b.rs: b -> a"]
        );
    }
}
