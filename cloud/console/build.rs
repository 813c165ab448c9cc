//! Compresses the files of `dist/`. Their names, and what they call each other, have the word
//! `BUILDHASH` in place of the hash of all files, so that names in the repository stay the same.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

const PLACEHOLDER: &str = "BUILDHASH";
const HASH_DIGITS: usize = 16;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=dist");
    let dist = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("dist");
    if !dist.join("index.html").is_file() {
        println!(
            "cargo::error={} has no index.html: run `npm ci --ignore-scripts` in cloud/console, \
             then `npm run build`",
            dist.display()
        );
        return Ok(());
    }
    let mut files = Vec::new();
    collect(&dist, "", &mut files)?;
    files.sort();

    let mut digest = Sha256::new();
    for (name, text) in &files {
        digest.update(format!("{name} {}\n{text}", text.len()));
    }
    let mut hash = String::new();
    for byte in digest.finalize() {
        let _ = write!(hash, "{byte:02x}");
    }
    hash.truncate(HASH_DIGITS);

    let target = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut list = String::from("&[\n");
    for (index, (name, text)) in files.iter().enumerate() {
        let file = target.join(format!("{index}.gz"));
        // The header says neither when nor where it was made: the result is always the same.
        let mut gzip = GzBuilder::new()
            .mtime(0)
            .operating_system(255)
            .write(fs::File::create(&file)?, Compression::best());
        gzip.write_all(text.replace(PLACEHOLDER, &hash).as_bytes())?;
        gzip.finish()?;
        let name = name.replace(PLACEHOLDER, &hash);
        let _ = writeln!(list, "    ({name:?}, include_bytes!({file:?})),");
    }
    list.push_str("]\n");
    fs::write(target.join("files.rs"), list)?;
    println!("cargo::rustc-env=PAGE_HASH={hash}");
    Ok(())
}

/// Reads all files below a folder, as their names relative to `dist/` and their text.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files)?;
        } else {
            files.push((name, fs::read_to_string(&path)?));
        }
    }
    Ok(())
}
