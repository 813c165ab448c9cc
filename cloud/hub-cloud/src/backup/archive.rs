//! The file of a backup: a tar archive, compressed with zstd. Its first member says what it is and
//! what was counted, its last one lists all others with their digests. An archive without that list
//! was cut short, and one that differs from it was changed: neither is ever accepted as a backup.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use hub_base::db::snapshot::Rows;
use hub_protocol::{TenantUuid, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Failure, Result};

/// The version of this layout.
const FORMAT: u32 = 1;
const ABOUT: &str = "about.json";
const LIST: &str = "list.json";
pub const DATABASE: &str = "hub-cloud.sqlite";
pub const KEYS: &str = "master.key.sealed";
/// The folder of release files, each named after its release.
pub const RELEASES: &str = "releases/";

/// The folder of files with older BLE events, as they are named in the store.
pub const HISTORY: &str = "history/";

/// zstd's default: a core compresses faster than most disks write.
const LEVEL: i32 = 3;
const MAX_ABOUT_BYTES: u64 = 1 << 20;
/// Room for a million release files.
const MAX_LIST_BYTES: u64 = 256 << 20;

/// What an archive is, known before the rest is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub format: u32,
    /// The version of hub-cloud that made it.
    pub version: String,
    /// The version of the schema.
    pub schema: i64,
    /// Every upload that was acknowledged before this time is in the database.
    pub moment: Timestamp,
    /// None if the database is PostgreSQL, which is not in the archive.
    pub rows: Option<Rows>,
    pub keys: Keys,
    /// The master keys that open the database, by id.
    pub key_ids: Vec<String>,
    /// Whether release files and files with older BLE events are in the archive; those in a bucket
    /// are not.
    pub has_release_files: bool,
}

/// Where the master keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Keys {
    /// In the archive, sealed with a passphrase.
    Sealed,
    /// Elsewhere.
    Apart,
}

impl About {
    pub fn new(moment: Timestamp) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            schema: 0,
            moment,
            rows: None,
            keys: Keys::Apart,
            key_ids: Vec::new(),
            has_release_files: false,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Member {
    name: String,
    bytes: u64,
    sha256: String,
}

/// An archive that is being written.
pub struct Writer {
    tar: tar::Builder<zstd::Encoder<'static, File>>,
    members: Vec<Member>,
    stop: CancellationToken,
}

impl Writer {
    pub fn begin(file: File, about: &About, stop: CancellationToken) -> io::Result<Self> {
        let mut compressed = zstd::Encoder::new(file, LEVEL)?;
        compressed.include_checksum(true)?;
        let mut writer = Self {
            tar: tar::Builder::new(compressed),
            members: Vec::new(),
            stop,
        };
        let about = serde_json::to_vec(about)?;
        writer.append(ABOUT, about.len() as u64, about.as_slice())?;
        Ok(writer)
    }

    /// Adds a member of this length.
    pub fn append(&mut self, name: &str, bytes: u64, content: impl Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(0o600);
        let mut content = Measured::new(content.take(bytes), &self.stop);
        self.tar.append_data(&mut header, name, &mut content)?;
        if content.bytes != bytes {
            return Err(io::Error::other(format!(
                "{name} became shorter while it was copied"
            )));
        }
        self.members.push(content.member(name));
        Ok(())
    }

    /// Writes the list and syncs the file, which is whole from then on.
    pub fn finish(mut self) -> io::Result<()> {
        let list = serde_json::to_vec(&self.members)?;
        self.append(LIST, list.len() as u64, list.as_slice())?;
        self.tar.into_inner()?.finish()?.sync_all()
    }
}

/// Reads an archive from its begin to its end and gives each member to `take`. Returns only if the
/// archive is whole; what `take` has stored until then is worth nothing otherwise.
pub fn read(
    path: &Path,
    stop: &CancellationToken,
    mut take: impl FnMut(&About, &str, &mut dyn Read) -> Result<()>,
) -> Result<About> {
    let name = path.display();
    let broken = |reason: String| {
        Failure::Failed(format!(
            "{name} is not a whole backup ({reason}); use another one"
        ))
    };
    let unreadable = |error: io::Error| broken(error.to_string());
    let file = File::open(path)
        .map_err(|error| Failure::Failed(format!("cannot read {name}: {error}")))?;
    let decoder = zstd::Decoder::with_buffer(BufReader::new(file)).map_err(unreadable)?;
    let mut tar = tar::Archive::new(decoder);
    let mut about: Option<About> = None;
    let mut members = Vec::new();
    let mut is_whole = false;
    for entry in tar.entries().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let member = entry.path().map_err(unreadable)?.display().to_string();
        let is_file = entry.header().entry_type().is_file();
        let mut content = Measured::new(entry, stop);
        match &about {
            None if member == ABOUT && is_file => {
                let text = read_all(&mut content, MAX_ABOUT_BYTES).map_err(unreadable)?;
                about = Some(about_of(&text, &broken)?);
            }
            None => return Err(broken(format!("it begins with {member}"))),
            Some(_) if member == LIST && is_file => {
                let list = read_all(&mut content, MAX_LIST_BYTES).map_err(unreadable)?;
                let list: Vec<Member> =
                    serde_json::from_slice(&list).map_err(|error| broken(error.to_string()))?;
                is_whole = list == members;
                break;
            }
            Some(about) if is_known(&member) && is_file => {
                let taken = take(about, &member, &mut content);
                if let Some(reason) = content.failure.take() {
                    return Err(broken(reason));
                }
                taken?;
                // A member that is not needed is verified as well.
                io::copy(&mut content, &mut io::sink()).map_err(unreadable)?;
            }
            Some(_) => return Err(broken(format!("{member} does not belong there"))),
        }
        members.push(content.member(&member));
    }
    // The end of the file has a checksum of all that is before.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(unreadable)?;
    match about {
        Some(about) if is_whole => Ok(about),
        _ => Err(broken(
            "it ends early, or its content is not what its list says".to_owned(),
        )),
    }
}

fn about_of(text: &[u8], broken: &impl Fn(String) -> Failure) -> Result<About> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
        version: String,
    }
    // A later layout may have other members.
    let Format { format, version } =
        serde_json::from_slice(text).map_err(|error| broken(error.to_string()))?;
    if format > FORMAT {
        return Err(Failure::newer(&version));
    }
    serde_json::from_slice(text).map_err(|error| broken(error.to_string()))
}

fn is_known(member: &str) -> bool {
    let release = member.strip_prefix(RELEASES);
    member == DATABASE
        || member == KEYS
        || release.is_some_and(|name| Uuid::try_parse(name).is_ok())
        || is_history(member)
}

/// Whether this is how a file with older BLE events is named.
pub fn is_history(member: &str) -> bool {
    let parsed = || {
        let (folders, file) = member.rsplit_once('/')?;
        let tenant = folders
            .strip_prefix(HISTORY)?
            .strip_prefix("tenant_uuid=")?;
        let tenant_uuid = Uuid::try_parse(tenant.split('/').next()?).ok()?;
        let (first_id, name) = file.strip_suffix(".parquet")?.split_once('-')?;
        let (first_id, name) = (first_id.parse().ok()?, Uuid::try_parse(name).ok()?);
        Some(hub_history::path_of(
            TenantUuid(tenant_uuid),
            first_id,
            name,
        ))
    };
    parsed().as_deref() == Some(member)
}

/// At most so many bytes.
pub fn read_all(content: &mut impl Read, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    content.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Counts and digests what is read, and fails once the work is to stop.
struct Measured<'a, R> {
    content: R,
    digest: Sha256,
    bytes: u64,
    /// Why the content cannot be read.
    failure: Option<String>,
    stop: &'a CancellationToken,
}

impl<'a, R: Read> Measured<'a, R> {
    fn new(content: R, stop: &'a CancellationToken) -> Self {
        Self {
            content,
            digest: Sha256::new(),
            bytes: 0,
            failure: None,
            stop,
        }
    }

    fn member(self, name: &str) -> Member {
        Member {
            name: name.to_owned(),
            bytes: self.bytes,
            sha256: hex::encode(self.digest.finalize()),
        }
    }
}

impl<R: Read> Read for Measured<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("the service stops"));
        }
        let length = self
            .content
            .read(buffer)
            .inspect_err(|error| self.failure = Some(error.to_string()))?;
        self.digest.update(buffer.get(..length).unwrap_or_default());
        self.bytes += length as u64;
        Ok(length)
    }
}

/// Writes and syncs a new private file.
pub fn write_private(path: &Path, content: &mut dyn Read) -> io::Result<()> {
    let mut file = create_private(path)?;
    io::copy(content, &mut file)?;
    file.flush()?;
    file.sync_all()
}

/// A new file that its owner alone may read.
pub fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(dir: &Path, format: u32) -> std::path::PathBuf {
        let path = dir.join(format!("{format}.tar.zst"));
        let about = About {
            format,
            ..About::new(Timestamp::from_micros(0))
        };
        let file = create_private(&path).expect("a file");
        let mut writer = Writer::begin(file, &about, CancellationToken::new()).expect("begun");
        let noise: Vec<u8> = (0..200_000_u32)
            .flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        writer
            .append(DATABASE, noise.len() as u64, noise.as_slice())
            .expect("a member");
        writer.finish().expect("finished");
        path
    }

    fn outcome(path: &Path) -> std::result::Result<About, String> {
        read(path, &CancellationToken::new(), |_, _, _| Ok(())).map_err(|error| error.to_string())
    }

    #[test]
    fn an_archive_that_was_cut_or_changed_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = archive(dir.path(), FORMAT);
        outcome(&path).expect("a whole one");
        let whole = std::fs::read(&path).expect("its bytes");
        let other = dir.path().join("other");
        for part in 0..40 {
            let at = whole.len() * part / 40;
            std::fs::write(&other, &whole[..at]).expect("a file");
            let error = outcome(&other).expect_err("cut short");
            assert!(error.contains("is not a whole backup"), "{at}: {error}");
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            std::fs::write(&other, &changed).expect("a file");
            outcome(&other).expect_err("changed");
        }
    }

    #[test]
    fn an_archive_of_a_later_layout_names_the_version_that_reads_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let error = outcome(&archive(dir.path(), FORMAT + 1)).expect_err("a later layout");
        assert!(
            error.contains(env!("CARGO_PKG_VERSION")) && error.contains("newer"),
            "{error}"
        );
    }
}
