//! The files of an export: lines of JSON in the form of the API, and a manifest that is written
//! last and has the digest of each.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use hub_protocol::{TenantUuid, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::text::printable;

pub const MANIFEST: &str = "manifest.json";
/// States what an unfinished export is of; it goes when the manifest is there.
pub const BEGUN: &str = "begun.json";
/// The folder in the form of `hub export`.
pub const CONFIGURATION: &str = "configuration";
/// The document of OpenVEX with the statements of the tenant.
pub const STATEMENTS: &str = "openvex.json";
/// The end of the name of a file that is being written.
pub const UNFINISHED: &str = ".part";
pub const FORMAT: i64 = 1;
const MAX_MANIFEST_BYTES: u64 = 256 << 20;
/// The longest line: the service sends no larger record.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// What an export is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Begun {
    pub format: i64,
    pub service_url: String,
    pub tenant_uuid: TenantUuid,
    pub tenant_name: String,
    pub began_at: Timestamp,
    /// The history is complete from this time on; from its beginning if there is none.
    pub since: Option<Timestamp>,
    pub skipped: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub path: String,
    /// Lines of the file, if it has lines.
    pub records: Option<u64>,
    pub bytes: u64,
    pub sha256: String,
}

/// What is not in the files, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    pub part: String,
    pub reason: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    #[serde(flatten)]
    pub begun: Begun,
    pub finished_at: Timestamp,
    pub service_version: String,
    pub program_version: String,
    pub left_out: Vec<LeftOut>,
    pub files: Vec<Entry>,
}

pub fn failed(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::failed(format!(
        "{}: {what}",
        printable(&path.display().to_string())
    ))
}

/// Creates a folder, which its owner alone can read: it has data of people.
pub fn make_folder(path: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| failed(path, error))
}

/// A file that is written to its end or not at all.
pub struct NewFile {
    path: PathBuf,
    unfinished: PathBuf,
    name: String,
    file: BufWriter<File>,
    digest: Sha256,
    bytes: u64,
    records: u64,
    has_lines: bool,
}

impl NewFile {
    pub fn create(directory: &Path, name: &str) -> Result<Self, Failure> {
        let path = directory.join(name);
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let unfinished = directory.join(format!("{name}{UNFINISHED}"));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)
            .map_err(|error| failed(&unfinished, error))?;
        Ok(Self {
            path,
            unfinished,
            name: name.to_owned(),
            file: BufWriter::new(file),
            digest: Sha256::new(),
            bytes: 0,
            records: 0,
            has_lines: false,
        })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file
            .write_all(bytes)
            .map_err(|error| failed(&self.unfinished, error))
    }

    pub fn line(&mut self, record: &Value) -> Result<(), Failure> {
        self.has_lines = true;
        self.records += 1;
        self.write(format!("{record}\n").as_bytes())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    /// The digest of what has been written.
    pub fn sha256(&self) -> String {
        hex::encode(self.digest.clone().finalize())
    }

    /// Gives the file its name, after its content is on disk.
    pub fn finish(mut self) -> Result<Entry, Failure> {
        let on_disk = self
            .file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all());
        on_disk
            .and_then(|()| std::fs::rename(&self.unfinished, &self.path))
            .map_err(|error| failed(&self.path, error))?;
        let has_lines = self.has_lines || self.name.ends_with(".ndjson");
        Ok(Entry {
            path: self.name,
            records: has_lines.then_some(self.records),
            bytes: self.bytes,
            sha256: hex::encode(self.digest.finalize()),
        })
    }

    pub fn discard(self) {
        let _ = std::fs::remove_file(&self.unfinished);
    }
}

/// For what is received from the service.
impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write_all(bytes)?;
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Writes a JSON document that is there as a whole or not at all.
pub fn write_document(directory: &Path, name: &str, document: &Value) -> Result<Entry, Failure> {
    let mut file = NewFile::create(directory, name)?;
    file.write((serde_json::to_string_pretty(document)? + "\n").as_bytes())?;
    file.finish()
}

/// A document that this program wrote.
pub fn read_document(path: &Path) -> Result<Value, Failure> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_MANIFEST_BYTES).read_to_end(&mut text))
        .map_err(|error| failed(path, error))?;
    serde_json::from_slice(&text).map_err(|error| failed(path, format!("damaged: {error}")))
}

/// The entry of a file that is there already.
pub fn describe(directory: &Path, name: &str) -> Result<Entry, Failure> {
    let path = directory.join(name);
    let mut file = File::open(&path).map_err(|error| failed(&path, error))?;
    let (mut digest, mut bytes, mut lines) = (Sha256::new(), 0_u64, 0_u64);
    let mut chunk = vec![0; 64 << 10];
    loop {
        let length = file
            .read(&mut chunk)
            .map_err(|error| failed(&path, error))?;
        let Some(part) = chunk.get(..length).filter(|part| !part.is_empty()) else {
            break;
        };
        digest.update(part);
        bytes += part.len() as u64;
        lines += part.iter().filter(|byte| **byte == b'\n').count() as u64;
    }
    Ok(Entry {
        path: name.to_owned(),
        records: name.ends_with(".ndjson").then_some(lines),
        bytes,
        sha256: hex::encode(digest.finalize()),
    })
}

/// The names of all files below a folder. Anything but files and folders is refused.
pub fn names(directory: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let path = directory.join(&folder);
        for entry in std::fs::read_dir(&path).map_err(|error| failed(&path, error))? {
            let entry = entry.map_err(|error| failed(&path, error))?;
            let kind = entry.file_type().map_err(|error| failed(&path, error))?;
            let name = entry.file_name();
            let name = match (name.to_str(), folder.is_empty()) {
                (Some(name), true) => name.to_owned(),
                (Some(name), false) => format!("{folder}/{name}"),
                (None, _) => return Err(failed(&entry.path(), "its name is not UTF-8")),
            };
            if kind.is_dir() {
                folders.push(name);
            } else if kind.is_file() {
                found.push(name);
            } else {
                return Err(failed(&entry.path(), "is neither a file nor a folder"));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Removes what an interrupted export had not finished.
pub fn remove_unfinished(directory: &Path) -> Result<(), Failure> {
    for name in names(directory)? {
        if name.ends_with(UNFINISHED) {
            let path = directory.join(name);
            std::fs::remove_file(&path).map_err(|error| failed(&path, error))?;
        }
    }
    Ok(())
}

/// The manifest of an export whose files are all there and unchanged, and its digest.
pub fn open(directory: &Path) -> Result<(Manifest, String), Failure> {
    let path = directory.join(MANIFEST);
    if !path.is_file() {
        let place = printable(&directory.display().to_string());
        return Err(Failure::usage(match directory.join(BEGUN).is_file() {
            true => format!(
                "the export in {place} is not finished; run `hub export tenant` again with this folder"
            ),
            false => format!("{place} is not a folder of `hub export tenant`"),
        }));
    }
    let document = read_document(&path)?;
    if document.get("format").and_then(Value::as_i64) != Some(FORMAT) {
        return Err(Failure::usage(format!(
            "{} has a different format; use the version of hub that wrote it",
            path.display()
        )));
    }
    let manifest: Manifest = serde_json::from_value(document)
        .map_err(|error| failed(&path, format!("damaged: {error}")))?;
    let mut listed: BTreeMap<&str, &Entry> = BTreeMap::new();
    for entry in &manifest.files {
        let is_plain = Path::new(&entry.path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || listed.insert(&entry.path, entry).is_some() {
            let name = printable(&entry.path);
            return Err(failed(
                &path,
                format!("`{name}` is no name of a file, or twice there"),
            ));
        }
    }
    for name in names(directory)? {
        if name == MANIFEST {
            continue;
        }
        let place = directory.join(&name);
        let Some(entry) = listed.remove(name.as_str()) else {
            return Err(failed(&place, "is not in the manifest; remove it"));
        };
        let found = describe(directory, &name)?;
        if (found.bytes, found.sha256.as_str()) != (entry.bytes, entry.sha256.as_str()) {
            return Err(failed(
                &place,
                "was changed after the export; take the original file",
            ));
        }
    }
    if let Some(missing) = listed.keys().next() {
        return Err(failed(&directory.join(missing), "is missing"));
    }
    let digest = describe(directory, MANIFEST)?.sha256;
    Ok((manifest, digest))
}

/// The records of a file, one at a time.
pub struct Lines {
    path: PathBuf,
    reader: Option<BufReader<File>>,
}

impl Lines {
    /// Without records, if the export has no such file.
    pub fn open(directory: &Path, name: &str) -> Result<Self, Failure> {
        let path = directory.join(name);
        let reader = match path.is_file() {
            true => {
                let file = File::open(&path).map_err(|error| failed(&path, error))?;
                Some(BufReader::new(file))
            }
            false => None,
        };
        Ok(Self { path, reader })
    }

    pub fn next(&mut self) -> Result<Option<Value>, Failure> {
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        let mut line = Vec::new();
        reader
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(|error| failed(&self.path, error))?;
        match (line.is_empty(), line.ends_with(b"\n")) {
            (true, _) => Ok(None),
            (false, false) => Err(failed(&self.path, "a line is too long or not finished")),
            (false, true) => serde_json::from_slice(&line)
                .map(Some)
                .map_err(|error| failed(&self.path, format!("a line is no JSON: {error}"))),
        }
    }
}

/// All records of a short file.
pub fn records(directory: &Path, name: &str) -> Result<Vec<Value>, Failure> {
    let mut lines = Lines::open(directory, name)?;
    let mut found = Vec::new();
    while let Some(record) = lines.next()? {
        found.push(record);
    }
    Ok(found)
}

/// A file beside the folder of the export, which stays as it was.
pub fn beside(directory: &Path, suffix: &str) -> Result<PathBuf, Failure> {
    let place = std::fs::canonicalize(directory).map_err(|error| failed(directory, error))?;
    match place.file_name().and_then(|name| name.to_str()) {
        Some(name) => Ok(place.with_file_name(format!("{name}.{suffix}"))),
        None => Err(Failure::usage("give the folder of an export by its name")),
    }
}
