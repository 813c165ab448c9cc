//! Makes a backup: copies, seals, packs, verifies, and only then gives it its name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hub_base::db::snapshot::{self, Rows};
use hub_base::db::{Db, migrate};
use hub_core::config::{BackupPlace, Config, FilesConfig};
use hub_fleet::releases::files;
use hub_protocol::Timestamp;
use tokio_util::sync::CancellationToken;

use super::archive::{
    About, DATABASE, HISTORY, KEYS, Keys, RELEASES, Writer, create_private, is_history,
};
use super::places::{Archive, moment_of};
use super::unpack::unpack;
use super::work::{Work, blocking, partial, sweep};
use super::{Failure, Result, SealKeys, keys, shown};

/// The names in the work folder.
const COPY: &str = "copy.sqlite";
const ARCHIVE: &str = "archive.tar.zst";

/// Makes a backup of this moment, which is now, and returns a report of it. The service may serve
/// meanwhile. `stop` ends the work early, with nothing left of it.
pub async fn backup(
    db: &Db,
    config: &Config,
    moment: Timestamp,
    place: &BackupPlace,
    seal: &SealKeys,
    stop: &CancellationToken,
) -> Result<String> {
    let began_at = Instant::now();
    let archive = Archive::new(place, moment)?;
    let work = begin(config, place, &archive)?;
    require_space(&work, db, config)?;

    let mut about = About::new(moment);
    about.schema = migrate::version(db)
        .await
        .map_err(|error| Failure::of_database("cannot read the schema", &error))?
        .unwrap_or_default();
    let mut history = history_files(config)?;
    let copy = config.is_sqlite().then(|| work.join(COPY));
    if let Some(copy) = &copy {
        about.rows = Some(copy_database(db, copy).await?);
    }
    let (master_keys, key_ids) = keys::of_service(config)?;
    about.key_ids = key_ids;
    about.has_release_files = matches!(config.files, FilesConfig::Directory(_));
    let sealed = match seal {
        SealKeys::With(passphrase) => {
            about.keys = Keys::Sealed;
            let passphrase = passphrase.clone();
            Some(blocking(move || keys::seal(&passphrase, &master_keys)).await?)
        }
        SealKeys::Not => None,
    };

    // What the copy names was there before it was made, or is there after it.
    history.append(&mut history_files(config)?);
    let packed = work.join(ARCHIVE);
    let content = Content {
        about: about.clone(),
        copy,
        sealed,
        releases: release_files(config)?,
        history,
    };
    let (file, stopped) = (packed.clone(), stop.clone());
    blocking(move || content.pack(&file, stopped)).await?;
    let verified = verify(&packed, &work, stop).await?;
    let bytes = fs::metadata(&packed).map_or(0, |file| file.len());
    archive.keep(&packed).await?;
    Ok(report(&archive, &about, bytes, began_at, config, verified))
}

/// The work folder is beside the file that is to be, where there is room for it and renaming is
/// possible. For an object it is in the data directory.
fn begin(config: &Config, place: &BackupPlace, archive: &Archive) -> Result<Work> {
    let path = match archive {
        Archive::File(path) => path.clone(),
        Archive::Object { key, .. } => config.data_dir.join(key.filename().unwrap_or(ARCHIVE)),
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // A directory of backups may be created. That of one file may be misspelt.
    if let BackupPlace::Path(dir) = place
        && dir != &path
    {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| Failure::at(folder, "cannot create", error))?;
    }
    sweep(folder, |name| moment_of(name).is_some());
    Work::begin(partial(&path))
}

/// The copy and the archive are there together, and so are the archive and what verifies it. A disk
/// that is full would stop the service as well.
fn require_space(work: &Work, db: &Db, config: &Config) -> Result<()> {
    let disk = rustix::fs::statvfs(work.path())
        .map_err(|error| Failure::at(work.path(), "cannot use", error.into()))?;
    let free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
    let files = release_files(config)?
        .into_iter()
        .chain(history_files(config)?.into_values());
    let files: u64 = files.map(|file| file.bytes).sum();
    let needed_bytes = snapshot::size_bytes(db).saturating_mul(2) + files;
    match free_bytes < needed_bytes {
        true => Err(Failure::Failed(format!(
            "a backup may need {} at {}, where {} are free; free disk space there, or choose a place on another disk",
            shown(needed_bytes),
            work.path().parent().unwrap_or(work.path()).display(),
            shown(free_bytes),
        ))),
        false => Ok(()),
    }
}

/// Copies the database and counts the copy, which is of one moment.
async fn copy_database(db: &Db, copy: &Path) -> Result<Rows> {
    create_private(copy).map_err(|error| Failure::at(copy, "cannot write", error))?;
    let copied = async {
        snapshot::copy(db, copy).await?;
        snapshot::count_rows(copy).await
    };
    copied
        .await
        .map_err(|error| Failure::of_database("cannot copy the database", &error))
}

struct StoredFile {
    name: String,
    path: PathBuf,
    bytes: u64,
}

/// The complete release files of the directory; none if they are in a bucket.
fn release_files(config: &Config) -> Result<Vec<StoredFile>> {
    let FilesConfig::Directory(dir) = &config.files else {
        return Ok(Vec::new());
    };
    let dir = dir.join(files::FOLDER);
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::at(&dir, "cannot list", error)),
    };
    let found = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        uuid::Uuid::try_parse(&name).ok()?;
        Some(StoredFile {
            bytes: entry.metadata().ok()?.len(),
            path: entry.path(),
            name,
        })
    });
    Ok(found.collect())
}

/// The files with older BLE events, by their names in an archive; none if they are in a bucket.
fn history_files(config: &Config) -> Result<BTreeMap<String, StoredFile>> {
    let mut found = BTreeMap::new();
    let FilesConfig::Directory(dir) = &config.files else {
        return Ok(found);
    };
    let mut folders = vec![dir.join(HISTORY)];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Failure::at(&folder, "cannot list", error)),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(file) = entry.metadata() else { continue };
            if file.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(dir).ok().and_then(Path::to_str);
            if let Some(name) = name.filter(|name| is_history(name)).map(str::to_owned) {
                let bytes = file.len();
                found.insert(name.clone(), StoredFile { name, path, bytes });
            }
        }
    }
    Ok(found)
}

/// What goes into an archive.
struct Content {
    about: About,
    copy: Option<PathBuf>,
    sealed: Option<Vec<u8>>,
    releases: Vec<StoredFile>,
    history: BTreeMap<String, StoredFile>,
}

impl Content {
    /// Release files come after the database: none that it names is missing.
    fn pack(self, packed: &Path, stop: CancellationToken) -> Result<()> {
        let failed = |error| Failure::at(packed, "cannot write", error);
        let file = create_private(packed).map_err(failed)?;
        let mut writer = Writer::begin(file, &self.about, stop).map_err(failed)?;
        if let Some(copy) = &self.copy {
            let file = fs::File::open(copy).map_err(failed)?;
            let bytes = file.metadata().map_err(failed)?.len();
            writer.append(DATABASE, bytes, file).map_err(failed)?;
            // Its room is needed to verify the archive.
            fs::remove_file(copy).map_err(failed)?;
        }
        if let Some(sealed) = &self.sealed {
            let bytes = sealed.len() as u64;
            writer
                .append(KEYS, bytes, sealed.as_slice())
                .map_err(failed)?;
        }
        for release in &self.releases {
            // An abandoned release may be deleted meanwhile.
            let Ok(file) = fs::File::open(&release.path) else {
                continue;
            };
            let name = format!("{RELEASES}{}", release.name);
            writer.append(&name, release.bytes, file).map_err(failed)?;
        }
        for file in self.history.values() {
            // One that the copy names must not be missing.
            let content = fs::File::open(&file.path).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Failure::Failed(
                    "a file of the history was replaced meanwhile; run the backup again".to_owned(),
                ),
                _ => Failure::at(&file.path, "cannot read", error),
            })?;
            writer
                .append(&file.name, file.bytes, content)
                .map_err(failed)?;
        }
        writer.finish().map_err(failed)
    }
}

/// Restores the archive's database into a scratch file and counts. Returns what was found.
async fn verify(packed: &Path, work: &Work, stop: &CancellationToken) -> Result<String> {
    let scratch = Work::begin(work.join("scratch"))?;
    let unpacked = unpack(packed, scratch.path(), stop).await?;
    Ok(match unpacked.counted {
        Some(rows) => format!(
            "verified: restored into a scratch database; {rows} rows counted, every page checked"
        ),
        None => "verified: read back; the digest of every file is right".to_owned(),
    })
}

fn report(
    archive: &Archive,
    about: &About,
    bytes: u64,
    began_at: Instant,
    config: &Config,
    verified: String,
) -> String {
    let database = match &about.rows {
        Some(_) => format!("every upload acknowledged before {} is in it", about.moment),
        None => "not in it: PostgreSQL is backed up by base backups and its write-ahead log \
                 (docs/operating.md)"
            .to_owned(),
    };
    let keys = match about.keys {
        Keys::Sealed => "in it, sealed with the passphrase, which is needed to restore",
        Keys::Apart => "not in it: keep the master keys apart; no backup is of use without them",
    };
    let files = match &config.files {
        FilesConfig::Directory(_) => "in it".to_owned(),
        FilesConfig::S3 { bucket, .. } => {
            format!("not in it: they are in the bucket {bucket}")
        }
    };
    format!(
        "backup: {} ({}, in {:.1} s)\ndatabase: {database}\nkeys ({}): {keys}\nrelease files, history files: {files}\n\
         {verified}\nnever in a backup: config.toml, release-keys, TLS certificates\n",
        archive.shown(),
        shown(bytes),
        began_at.elapsed().as_secs_f64(),
        about.key_ids.join(", "),
    )
}
