//! The order of a crate's modules, and the imports that go against it.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Folder, Segments};

/// The ` ```layers ` block of a crate's root: modules by rank, the lowest first.
pub struct Layers {
    ranks: BTreeMap<String, usize>,
}

impl Layers {
    /// The block in the comment that a crate's root begins with; none if there is none.
    pub fn of_root(text: &str) -> Result<Option<Self>, String> {
        let comment = text.lines().map_while(|line| line.strip_prefix("//!"));
        let mut lines = comment
            .map(str::trim)
            .skip_while(|line| *line != "```layers");
        if lines.next().is_none() {
            return Ok(None);
        }
        let mut ranks = BTreeMap::new();
        for (rank, line) in lines.take_while(|line| *line != "```").enumerate() {
            for module in line.split_whitespace() {
                if ranks.insert(module.to_owned(), rank).is_some() {
                    return Err(format!("the layers list {module} twice"));
                }
            }
        }
        Ok(Some(Self { ranks }))
    }

    /// Everything wrong with the files of a folder, a line each.
    pub fn check(&self, name: &str, folder: &Folder) -> Vec<String> {
        let mut faults = BTreeSet::new();
        for module in self.ranks.keys() {
            let segments: Segments = module.split('/').map(str::to_owned).collect();
            if !folder.modules.contains(&segments) && !folder.roots.contains_key(module) {
                faults.insert(format!(
                    "{name}: the layers list {module}, which does not exist"
                ));
            }
        }
        for file in &folder.files {
            let at = format!("{name}/{}", file.path);
            let own = if file.module.is_empty() {
                vec![file.root_name().to_owned()]
            } else {
                file.module.clone()
            };
            let Some((unit, rank)) = self.unit(&own) else {
                // A folder's module that only declares its parts needs no rank.
                if !file.imports.has_items {
                    continue;
                }
                faults.insert(format!("{at}: the layers do not list {}", own.join("/")));
                continue;
            };
            for target in folder.targets(file) {
                match self.unit(&target) {
                    Some((other, other_rank)) if other == unit || other_rank < rank => {}
                    Some((other, _)) => drop(faults.insert(format!("{at}: {unit} -> {other}"))),
                    None => drop(faults.insert(format!(
                        "{at}: {unit} -> {}, which is not listed",
                        target.join("/")
                    ))),
                }
            }
        }
        faults.into_iter().collect()
    }

    /// The listed module that a path belongs to, the longest one, and its rank.
    fn unit(&self, path: &[String]) -> Option<(String, usize)> {
        (1..=path.len()).rev().find_map(|length| {
            let name = path.get(..length)?.join("/");
            self.ranks.get(&name).map(|rank| (name, *rank))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "//! Text.\n//!\n//! ```layers\n//! error clock\n//! db\n//! fleet/hubs\n\
                        //! fleet/jobs http\n//! http/router\n//! lib main\n//! ```\npub mod error;\n";

    fn checked(name: &str, root: &str, files: &[(String, String)]) -> Vec<String> {
        let layers = Layers::of_root(root)
            .expect("modules once")
            .expect("a block");
        layers.check(name, &Folder::of(name, files))
    }

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let mut all: Vec<(String, String)> = [
            ("error.rs", ""),
            ("clock.rs", ""),
            ("db/mod.rs", ""),
            ("fleet/hubs/mod.rs", ""),
            ("fleet/hubs/store.rs", ""),
            ("fleet/jobs.rs", ""),
            ("http/mod.rs", ""),
            ("http/router.rs", ""),
            ("lib.rs", ROOT),
            ("main.rs", ""),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .to_vec();
        for (path, text) in files {
            all.retain(|(other, _)| other != path);
            all.push(((*path).to_owned(), (*text).to_owned()));
        }
        checked("cloud/src", ROOT, &all)
    }

    #[test]
    fn imports_from_lower_layers_pass() {
        let jobs = "use crate::fleet::hubs::{self, store}; use crate::{db::Db, error::Error}; fn f() { hubs::g() }";
        let main = "use hub_cloud::http::router; fn f() { router::g(); }";
        assert_eq!(
            faults(&[("fleet/jobs.rs", jobs), ("main.rs", main)]),
            [""; 0]
        );
    }

    #[test]
    fn an_arrow_up_is_listed() {
        let found = faults(&[("db/mod.rs", "use crate::{error::Error, fleet::hubs::Hub};")]);
        assert_eq!(found, ["cloud/src/db/mod.rs: db -> fleet/hubs"]);
    }

    #[test]
    fn an_arrow_to_the_same_line_is_listed() {
        let found = faults(&[("error.rs", "fn f() -> crate::clock::Clock { todo!() }")]);
        assert_eq!(found, ["cloud/src/error.rs: error -> clock"]);
    }

    #[test]
    fn a_submodule_belongs_to_the_longest_listed_module() {
        assert_eq!(
            faults(&[(
                "fleet/hubs/store.rs",
                "use super::Hub; use super::super::jobs::Job;"
            )]),
            ["cloud/src/fleet/hubs/store.rs: fleet/hubs -> fleet/jobs"]
        );
        assert_eq!(faults(&[("http/router.rs", "use super::Error;")]), [""; 0]);
        assert_eq!(
            faults(&[("http/mod.rs", "mod router; fn f() { router::g() }")]),
            ["cloud/src/http/mod.rs: http -> http/router"]
        );
        assert_eq!(
            faults(&[("http/mod.rs", "fn f() { self::router::g() }")]),
            ["cloud/src/http/mod.rs: http -> http/router"]
        );
    }

    #[test]
    fn a_name_is_followed_to_what_it_was_given_for() {
        let found = faults(&[(
            "db/mod.rs",
            "use crate::error as e; use crate::http; fn f() { http::router::g() }",
        )]);
        assert_eq!(
            found,
            [
                "cloud/src/db/mod.rs: db -> http",
                "cloud/src/db/mod.rs: db -> http/router"
            ]
        );
    }

    #[test]
    fn an_item_of_the_root_belongs_to_the_root() {
        assert_eq!(
            faults(&[("db/mod.rs", "use crate::VERSION;")]),
            ["cloud/src/db/mod.rs: db -> lib"]
        );
    }

    #[test]
    fn a_folder_above_listed_modules_is_no_module_to_import() {
        let found = faults(&[
            ("fleet/mod.rs", "pub mod hubs; const A: u8 = 1;"),
            ("http/mod.rs", "use crate::fleet;"),
        ]);
        let expected = [
            "cloud/src/fleet/mod.rs: the layers do not list fleet",
            "cloud/src/http/mod.rs: http -> fleet, which is not listed",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_unlisted_file_and_a_listed_module_that_is_gone_are_faults() {
        let root = "//! ```layers\n//! error gone\n//! lib\n//! ```\n";
        let files = [
            ("error.rs", ""),
            ("lib.rs", ""),
            ("new/part.rs", "fn f() {}"),
            ("new/mod.rs", "mod part;"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let found = checked("cloud/src", root, &files);
        let expected = [
            "cloud/src/new/part.rs: the layers do not list new/part",
            "cloud/src: the layers list gone, which does not exist",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn tests_may_import_anything() {
        let db = "#[cfg(test)] mod tests; #[cfg(test)] mod more { use crate::http::router; }";
        let tests = "use crate::fleet::jobs;";
        assert_eq!(
            faults(&[("db/mod.rs", db), ("db/tests.rs", tests)]),
            [""; 0]
        );
    }

    #[test]
    fn programs_in_bin_have_roots_of_their_own() {
        let root = "//! ```layers\n//! size\n//! spool\n//! bin/helper\n//! bin/launcher\n\
                    //! lib main\n//! ```\n";
        let files = [
            ("lib.rs", "pub mod size;"),
            ("main.rs", "mod spool;"),
            ("size.rs", "use crate::spool::Spool;"),
            ("spool.rs", "use crate::VERSION; use hub_agent::size;"),
            (
                "bin/helper/main.rs",
                "mod root; use crate::root::Root; use hub_agent::size::Size;",
            ),
            (
                "bin/helper/root.rs",
                "use super::Other; use crate::main_thing;",
            ),
            ("bin/launcher.rs", "use hub_agent::size::Size;"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let found = checked("hub-agent/src", root, &files);
        let expected = [
            "hub-agent/src/size.rs: size -> spool",
            "hub-agent/src/spool.rs: spool -> main",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_module_listed_twice_is_refused() {
        assert!(Layers::of_root("//! ```layers\n//! error\n//! error\n//! ```\n").is_err());
    }

    #[test]
    fn a_block_belongs_to_the_comment_at_the_beginning() {
        let elsewhere = "//! Text.\nmod a;\n//! ```layers\n//! error\n//! ```\n";
        assert!(Layers::of_root(elsewhere).expect("no fault").is_none());
    }

    #[test]
    fn the_state_of_handlers_counts_for_no_import() {
        let handlers = "use crate::Parts; fn f(parts: crate::Parts) { Parts::g() }";
        assert_eq!(faults(&[("fleet/jobs.rs", handlers)]), [""; 0]);
    }
}
