//! The installed packages, as the files of dpkg tell them: `status`, and in images without dpkg
//! `status.d`, which has the control file of each package. Whoever wrote these files, what is read
//! of them is bounded.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use hub_protocol::packages::{MAX_PACKAGES, Package};

/// The most bytes that are read of all files together.
const MAX_BYTES: u64 = 64 << 20;
/// What is read of a line: far more than the longest field that counts.
const MAX_LINE_BYTES: u64 = 4 << 10;
/// The most characters of a field, and of an architecture.
pub const MAX_FIELD: usize = 200;
const MAX_ARCHITECTURE: usize = 64;
/// The most files of `status.d`: each package has two.
const MAX_FILES: usize = 2 * MAX_PACKAGES;

const STATUS: &str = "var/lib/dpkg/status";
const STATUS_FOLDER: &str = "var/lib/dpkg/status.d";

/// The installed packages, and what of them is missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Installed {
    pub packages: BTreeSet<Package>,
    /// How many are left out because a field of theirs is missing, too long or not a line of text.
    pub malformed: usize,
    /// How many are left out because there are more than `MAX_PACKAGES`.
    pub excess: usize,
    /// Whether files have more bytes than are read.
    pub is_cut: bool,
}

/// One file with packages.
#[derive(Debug)]
pub struct StatusFile {
    pub path: PathBuf,
    /// Whether each package has a status. Packages without one are installed.
    has_status: bool,
}

/// The files of the system below `root`, in a fixed order. There is none on a machine without dpkg.
pub fn files(root: &Path) -> io::Result<Vec<StatusFile>> {
    let mut files = Vec::new();
    let status = root.join(STATUS);
    if is_file(&status)? {
        files.push(StatusFile {
            path: status,
            has_status: true,
        });
    }
    let entries = match std::fs::read_dir(root.join(STATUS_FOLDER)) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(files),
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    for entry in entries.take(MAX_FILES) {
        let path = entry?.path();
        let is_list_of_digests = path
            .extension()
            .is_some_and(|extension| extension == "md5sums");
        if !is_list_of_digests && is_file(&path)? {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    files.extend(paths.into_iter().map(|path| StatusFile {
        path,
        has_status: false,
    }));
    Ok(files)
}

/// The packages of all these files.
pub fn installed(files: &[StatusFile]) -> io::Result<Installed> {
    let mut installed = Installed::default();
    let mut left_bytes = MAX_BYTES;
    for file in files {
        let opened = match File::open(&file.path) {
            Ok(opened) => opened,
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(error),
        };
        left_bytes = installed.read(opened, file.has_status, left_bytes)?;
        if left_bytes == 0 {
            break;
        }
    }
    Ok(installed)
}

/// Whether there is a file. What would have to be waited for, such as a named pipe, is none.
fn is_file(path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(metadata.is_file()),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

impl Installed {
    /// Reads at most `max_bytes` of a file. Returns how many of them are left.
    fn read(&mut self, file: impl Read, has_status: bool, max_bytes: u64) -> io::Result<u64> {
        let mut reader = BufReader::new(file.take(max_bytes));
        let (mut stanza, mut line) = (Stanza::default(), Vec::new());
        while read_line(&mut reader, &mut line)? {
            if line.is_empty() {
                self.add(std::mem::take(&mut stanza), has_status);
            } else {
                stanza.add(&line);
            }
        }
        let left_bytes = reader.get_ref().limit();
        if left_bytes == 0 {
            // The last stanza may lack fields, or parts of them.
            self.is_cut = true;
        } else {
            self.add(stanza, has_status);
        }
        Ok(left_bytes)
    }

    fn add(&mut self, stanza: Stanza, has_status: bool) {
        if !stanza.is_installed(has_status) {
            return;
        }
        let Some(package) = stanza.package() else {
            self.malformed += 1;
            return;
        };
        self.packages.insert(package);
        if self.packages.len() > MAX_PACKAGES {
            self.packages.pop_last();
            self.excess += 1;
        }
    }
}

/// Reads the next line, without its end. Returns false at the end of the file.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = reader
        .by_ref()
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', line)?;
    if line.pop_if(|last| *last == b'\n').is_none() && read as u64 == MAX_LINE_BYTES {
        reader.skip_until(b'\n')?;
    }
    line.pop_if(|last| *last == b'\r');
    Ok(read > 0)
}

/// The fields of a package that count, empty where it lacks them.
#[derive(Default)]
struct Stanza {
    name: String,
    status: String,
    version: String,
    architecture: String,
    source: String,
}

impl Stanza {
    fn add(&mut self, line: &[u8]) {
        // Lines that continue a field begin with a space: no field that counts has any.
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return;
        }
        let line = String::from_utf8_lossy(line);
        let Some((name, value)) = line.split_once(':') else {
            return;
        };
        let field = match name.to_ascii_lowercase().as_str() {
            "package" => &mut self.name,
            "status" => &mut self.status,
            "version" => &mut self.version,
            "architecture" => &mut self.architecture,
            "source" => &mut self.source,
            _ => return,
        };
        value.trim().clone_into(field);
    }

    /// Whether all of the package's files are there. The status has what is wanted of the package,
    /// such as `hold`, whether it is damaged, and its state.
    fn is_installed(&self, has_status: bool) -> bool {
        match self.status.split_ascii_whitespace().nth(2) {
            Some(state) => state == "installed",
            None => !has_status && !self.name.is_empty(),
        }
    }

    /// The package, if its fields can be reported.
    fn package(self) -> Option<Package> {
        // Such as `glibc (2.36-9)`: the version is given where it is not that of the package.
        let (source, source_version) = match self.source.split_once('(') {
            Some((name, rest)) => (name.trim(), rest.trim_end_matches(')').trim()),
            None => (self.source.as_str(), ""),
        };
        let differing =
            |value: &str, own: &str| (!value.is_empty() && value != own).then(|| value.to_owned());
        let (source, source_version) = (
            differing(source, &self.name),
            differing(source_version, &self.version),
        );
        let is_fit = |optional: &Option<String>| {
            optional
                .as_deref()
                .is_none_or(|value| is_line(value, MAX_FIELD))
        };
        let is_fit = is_line(&self.name, MAX_FIELD)
            && is_line(&self.version, MAX_FIELD)
            && (self.architecture.is_empty() || is_line(&self.architecture, MAX_ARCHITECTURE))
            && is_fit(&source)
            && is_fit(&source_version);
        is_fit.then(|| Package {
            name: self.name,
            version: self.version,
            architecture: Some(self.architecture).filter(|name| !name.is_empty()),
            source,
            source_version,
        })
    }
}

/// Whether a text is one line that is not blank, with at most so many characters.
pub fn is_line(text: &str, max_chars: usize) -> bool {
    !text.trim().is_empty()
        && !text.chars().any(char::is_control)
        && text.chars().count() <= max_chars
}

#[cfg(test)]
mod tests;
