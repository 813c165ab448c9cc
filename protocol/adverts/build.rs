//! Lists the model files `library/<brand>/<model>.json`, so that they are compiled in. Files beside
//! the brands' folders are notes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("library");
    println!("cargo::rerun-if-changed=library");
    let mut models = Vec::new();
    for brand in entries(&root)?.into_iter().filter(|path| path.is_dir()) {
        for file in entries(&brand)? {
            let key = file.strip_prefix(&root).unwrap_or(&file).with_extension("");
            models.push((key.to_string_lossy().replace('\\', "/"), file));
        }
    }
    // Look-ups rely on the order of the keys, which is not that of the paths.
    models.sort();
    let mut list = String::from("&[\n");
    for (key, file) in models {
        let _ = writeln!(
            list,
            "    ({key:?}, include_str!({:?})),",
            file.to_string_lossy()
        );
    }
    list.push_str("]\n");
    let target = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(target.join("library.rs"), list)
}

fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect()
}
