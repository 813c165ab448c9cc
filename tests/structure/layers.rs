//! The layers of a source folder, and the imports that go against them.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Imports, Written};

/// A ` ```layers FOLDER ` block: modules by rank, the lowest first.
pub struct Layers {
    pub folder: String,
    ranks: BTreeMap<String, usize>,
}

type Segments = Vec<String>;

/// A source file: its module below the folder (the crate's root is the empty one), and what it
/// writes.
struct File {
    path: String,
    module: Segments,
    imports: Imports,
}

impl Layers {
    /// All blocks of a page.
    pub fn of_page(page: &str) -> Result<Vec<Self>, String> {
        let mut blocks = Vec::new();
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            if let Some(folder) = line.strip_prefix("```layers ") {
                let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
                blocks.push(Self::of_block(folder.trim(), &block)?);
            }
        }
        Ok(blocks)
    }

    fn of_block(folder: &str, lines: &[&str]) -> Result<Self, String> {
        let mut ranks = BTreeMap::new();
        for (rank, line) in lines.iter().enumerate() {
            for module in line.split_whitespace() {
                if ranks.insert(module.to_owned(), rank).is_some() {
                    return Err(format!("the layers of {folder} list {module} twice"));
                }
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            ranks,
        })
    }

    /// Everything wrong with these files (path below the folder, text), a line each.
    pub fn check(&self, files: &[(String, String)]) -> Vec<String> {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File::of(path, text))
            .collect();
        let is_test = |file: &File| {
            files.iter().any(|parent| {
                let mut names = parent.imports.test_children.iter();
                names.any(|name| file.module.starts_with(&child(&parent.module, name)))
            })
        };
        let files: Vec<&File> = files.iter().filter(|file| !is_test(file)).collect();
        let crates = Crates::of(&self.folder, &files);
        let mut faults = BTreeSet::new();
        for module in self.ranks.keys() {
            let segments: Segments = module.split('/').map(str::to_owned).collect();
            let exists = crates.modules.contains(&segments) || crates.roots.contains_key(module);
            if !exists {
                faults.insert(format!(
                    "{}: the layers list {module}, which does not exist",
                    self.folder
                ));
            }
        }
        for file in files {
            let at = format!("{}/{}", self.folder, file.path);
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
            for target in crates.targets(file) {
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

impl File {
    fn of(path: &str, text: &str) -> Self {
        let mut module: Segments = path
            .trim_end_matches(".rs")
            .split('/')
            .map(str::to_owned)
            .collect();
        let is_folders_own = module
            .last()
            .is_some_and(|last| last == "mod" || (last == "main" && module.len() > 1));
        if is_folders_own || path == "lib.rs" || path == "main.rs" {
            module.pop();
        }
        Self {
            path: path.to_owned(),
            module,
            imports: Imports::of(text),
        }
    }

    /// What the layers call a crate's root: `lib` or `main`.
    fn root_name(&self) -> &str {
        self.path.trim_end_matches(".rs")
    }
}

/// The crates of a folder: a library, a program, and the programs in `bin`.
struct Crates {
    /// The library's name in paths: `hub_cloud`.
    library: String,
    /// `lib` and `main`, where they are, with the modules each declares.
    roots: BTreeMap<String, BTreeSet<String>>,
    /// Every module that is a file or a folder of files.
    modules: BTreeSet<Segments>,
}

impl Crates {
    /// A crate's folder is `NAME/src`; the service's is `cloud`, its crate `hub-cloud`.
    fn of(folder: &str, files: &[&File]) -> Self {
        let name = folder
            .split('/')
            .next()
            .unwrap_or_default()
            .trim_start_matches("hub-");
        let mut roots = BTreeMap::new();
        let mut modules = BTreeSet::new();
        for file in files {
            if file.module.is_empty() {
                roots.insert(
                    file.root_name().to_owned(),
                    file.imports.children.iter().cloned().collect(),
                );
            }
            modules.extend(
                (1..=file.module.len())
                    .filter_map(|length| Some(file.module.get(..length)?.to_vec())),
            );
        }
        Self {
            library: format!("hub_{name}"),
            roots,
            modules,
        }
    }

    /// Where the file's paths lead, as far as that is in these crates.
    fn targets(&self, file: &File) -> BTreeSet<Segments> {
        let mut names: BTreeMap<&str, Vec<&Written>> = BTreeMap::new();
        for path in &file.imports.paths {
            if let Some(name) = &path.name {
                names.entry(name).or_default().push(path);
            }
        }
        let resolved = file
            .imports
            .paths
            .iter()
            .filter_map(|path| self.resolve(file, path, &names, 0));
        resolved
            .map(|(root, path)| self.known_part(root, path))
            .collect()
    }

    /// The path from its crate's root, and that root's name.
    fn resolve(
        &self,
        file: &File,
        path: &Written,
        names: &BTreeMap<&str, Vec<&Written>>,
        depth: usize,
    ) -> Option<(String, Segments)> {
        let (first, rest) = path.segments.split_first()?;
        let mut base = file.module.clone();
        base.extend(path.inside.iter().cloned());
        let own = self.root_of(file);
        let absolute = match first.as_str() {
            "crate" => [self.crate_base(file), rest.to_vec()].concat(),
            name if name == self.library => return Some(("lib".to_owned(), rest.to_vec())),
            "self" => [base, rest.to_vec()].concat(),
            "super" => {
                let ups = path
                    .segments
                    .iter()
                    .take_while(|segment| *segment == "super")
                    .count();
                base.truncate(base.len().checked_sub(ups)?);
                [base, path.segments.get(ups..)?.to_vec()].concat()
            }
            name => match names.get(name).map(Vec::as_slice) {
                // A name that a `use` elsewhere in the file gave.
                Some([used]) if **used != *path && depth < 4 => {
                    let (root, start) = self.resolve(file, used, names, depth + 1)?;
                    return Some((root, [start, rest.to_vec()].concat()));
                }
                _ if self.modules.contains(&child(&base, name)) => {
                    [base, path.segments.clone()].concat()
                }
                // Of another crate, or of none.
                _ => return None,
            },
        };
        Some((own, absolute))
    }

    /// A path cut to its modules; an item of the crate's root belongs to the root.
    fn known_part(&self, root: String, path: Segments) -> Segments {
        let modules = (1..=path.len())
            .rev()
            .filter_map(|length| path.get(..length));
        modules
            .map(<[String]>::to_vec)
            .find(|part| self.modules.contains(part))
            .unwrap_or_else(|| vec![root])
    }

    /// What `crate` means in a file: a program in `bin` is a crate of its own.
    fn crate_base(&self, file: &File) -> Segments {
        if file.module.first().is_some_and(|first| first == "bin") {
            return file.module.iter().take(2).cloned().collect();
        }
        Vec::new()
    }

    /// The root that has the file's module: `lib` or `main`.
    fn root_of(&self, file: &File) -> String {
        let declares = |root: &str| {
            let first = file.module.first();
            first.is_some_and(|first| {
                self.roots
                    .get(root)
                    .is_some_and(|children| children.contains(first))
            })
        };
        match file.module.is_empty() {
            true => file.root_name().to_owned(),
            false => if declares("main") { "main" } else { "lib" }.to_owned(),
        }
    }
}

fn child(module: &[String], name: &str) -> Segments {
    let mut path = module.to_vec();
    path.push(name.to_owned());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "text\n```layers cloud/src\nerror clock\ndb\ndomain/hubs\ndomain/jobs http\nhttp/router\nlib main\n```\n";

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let layers = Layers::of_page(PAGE).expect("a block").remove(0);
        let mut all: Vec<(String, String)> = [
            ("error.rs", ""),
            ("clock.rs", ""),
            ("db/mod.rs", ""),
            ("domain/hubs/mod.rs", ""),
            ("domain/hubs/store.rs", ""),
            ("domain/jobs.rs", ""),
            ("http/mod.rs", ""),
            ("http/router.rs", ""),
            ("lib.rs", "pub mod error;"),
            ("main.rs", ""),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .to_vec();
        for (path, text) in files {
            all.retain(|(other, _)| other != path);
            all.push(((*path).to_owned(), (*text).to_owned()));
        }
        layers.check(&all)
    }

    #[test]
    fn imports_from_lower_layers_pass() {
        let jobs = "use crate::domain::hubs::{self, store}; use crate::{db::Db, error::Error}; fn f() { hubs::g() }";
        let main = "use hub_cloud::http::router; fn f() { router::g(); }";
        assert_eq!(
            faults(&[("domain/jobs.rs", jobs), ("main.rs", main)]),
            [""; 0]
        );
    }

    #[test]
    fn an_arrow_up_is_listed() {
        let found = faults(&[("db/mod.rs", "use crate::{error::Error, domain::hubs::Hub};")]);
        assert_eq!(found, ["cloud/src/db/mod.rs: db -> domain/hubs"]);
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
                "domain/hubs/store.rs",
                "use super::Hub; use super::super::jobs::Job;"
            )]),
            ["cloud/src/domain/hubs/store.rs: domain/hubs -> domain/jobs"]
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
            ("domain/mod.rs", "pub mod hubs; const A: u8 = 1;"),
            ("http/mod.rs", "use crate::domain;"),
        ]);
        let expected = [
            "cloud/src/domain/mod.rs: the layers do not list domain",
            "cloud/src/http/mod.rs: http -> domain, which is not listed",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_unlisted_file_and_a_listed_module_that_is_gone_are_faults() {
        let layers = Layers::of_page("```layers cloud/src\nerror gone\nlib\n```\n")
            .expect("a block")
            .remove(0);
        let files = [
            ("error.rs", ""),
            ("lib.rs", ""),
            ("new/part.rs", "fn f() {}"),
            ("new/mod.rs", "mod part;"),
        ];
        let found = layers.check(&files.map(|(path, text)| (path.to_owned(), text.to_owned())));
        let expected = [
            "cloud/src/new/part.rs: the layers do not list new/part",
            "cloud/src: the layers list gone, which does not exist",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn tests_may_import_anything() {
        let db = "#[cfg(test)] mod tests; #[cfg(test)] mod more { use crate::http::router; }";
        let tests = "use crate::domain::jobs;";
        assert_eq!(
            faults(&[("db/mod.rs", db), ("db/tests.rs", tests)]),
            [""; 0]
        );
    }

    #[test]
    fn programs_in_bin_have_roots_of_their_own() {
        let block =
            "```layers hub-agent/src\nsize\nspool\nbin/helper\nbin/launcher\nlib main\n```\n";
        let layers = Layers::of_page(block).expect("a block").remove(0);
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
        let found = layers.check(&files.map(|(path, text)| (path.to_owned(), text.to_owned())));
        let expected = [
            "hub-agent/src/size.rs: size -> spool",
            "hub-agent/src/spool.rs: spool -> main",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_module_listed_twice_is_refused() {
        assert!(Layers::of_page("```layers cloud/src\nerror\nerror\n```\n").is_err());
    }
}
