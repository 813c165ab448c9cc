//! The modules of a source folder, and which of them each file imports from.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Imports, Written};

pub type Segments = Vec<String>;

/// What the state of a crate's handlers is called, in its root.
const STATE: &str = "Parts";

/// A source file: its module below the folder (the crate's root is the empty one), and what it
/// writes.
pub struct File {
    pub path: String,
    pub module: Segments,
    pub imports: Imports,
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
    pub fn root_name(&self) -> &str {
        self.path.trim_end_matches(".rs")
    }
}

/// The source folder of a crate: its library, its program, and the programs in `bin`.
pub struct Folder {
    /// All files but those of tests.
    pub files: Vec<File>,
    /// The library's name in paths: `hub_fleet`.
    library: String,
    /// `lib` and `main`, where they are, with the modules each declares.
    pub roots: BTreeMap<String, BTreeSet<String>>,
    /// Every module that is a file or a folder of files.
    pub modules: BTreeSet<Segments>,
}

impl Folder {
    /// The folder `NAME/src` of the crate `hub-NAME`, and its files: path below it, and text.
    pub fn of(folder: &str, files: &[(String, String)]) -> Self {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File::of(path, text))
            .collect();
        let tests: Vec<Segments> = files
            .iter()
            .flat_map(|parent| {
                let names = parent.imports.test_children.iter();
                names.map(|name| child(&parent.module, name))
            })
            .collect();
        let is_test = |file: &File| tests.iter().any(|test| file.module.starts_with(test));
        let files: Vec<File> = files.into_iter().filter(|file| !is_test(file)).collect();
        let mut roots = BTreeMap::new();
        let mut modules = BTreeSet::new();
        for file in &files {
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
        let name = folder.trim_end_matches("/src").rsplit('/').next();
        let name = name.unwrap_or_default().trim_start_matches("hub-");
        Self {
            files,
            library: format!("hub_{name}"),
            roots,
            modules,
        }
    }

    /// The modules that a file imports from. The state of a crate's handlers counts for none: the
    /// root composes it of the subjects, whose handlers name it.
    pub fn targets(&self, file: &File) -> BTreeSet<Segments> {
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
            .filter(|(_, path)| path.first().is_none_or(|first| first != STATE))
            .map(|(root, path)| self.home(root, path, 0))
            .collect()
    }

    /// The module that a path leads to. Where that one only hands on what it uses from another, the
    /// other.
    fn home(&self, root: String, path: Segments, depth: usize) -> Segments {
        let part = self.known_part(&path);
        let handed_on = path.get(part.len()).and_then(|item| {
            let is_part = |file: &&File| {
                file.module == part && (!part.is_empty() || file.root_name() == root)
            };
            let file = self.files.iter().find(is_part)?;
            let mut uses = file.imports.paths.iter();
            let used = uses.find(|used| used.name.as_ref() == Some(item) && used.inside.is_empty());
            self.resolve(file, used?, &BTreeMap::new(), 0)
        });
        match handed_on {
            Some((root, path)) if depth < 4 => self.home(root, path, depth + 1),
            _ if part.is_empty() => vec![root],
            _ => part,
        }
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

    /// A path cut to its modules.
    fn known_part(&self, path: &[String]) -> Segments {
        let modules = (1..=path.len())
            .rev()
            .filter_map(|length| path.get(..length));
        modules
            .map(<[String]>::to_vec)
            .find(|part| self.modules.contains(part))
            .unwrap_or_default()
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
