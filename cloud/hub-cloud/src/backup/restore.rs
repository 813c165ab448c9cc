//! Restores a backup: unpacks everything into a folder of the data directory, verifies it, and then
//! moves each part to its place, the database last. While that folder is there, the service refuses
//! to start and the next restore begins anew, so a restore that was killed is never taken for one
//! that was done.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};

use hub_base::db::sqlite_file;
use hub_base::paths::{sync_folder_of, with_suffix};
use hub_base::sealing::MASTER_KEY_FILE;
use hub_core::config::{BackupPlace, Config, FilesConfig};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use super::archive::{DATABASE, Keys, write_private};
use super::places::Archive;
use super::unpack::{FILES, Unpacked, unpack};
use super::work::Work;
use super::{Failure, Result, keys};
use crate::database::UNFINISHED_RESTORE;
use crate::lock;

/// The list of what a restore moves, in its folder.
const PLACES: &str = "places.json";
/// The name of that folder while it is removed.
const DONE: &str = "restore.done";

/// Restores the backup at this place into the empty data directory of the settings, and returns a
/// report.
pub async fn restore(config: &Config, place: &BackupPlace) -> Result<String> {
    let passphrase = passphrase(config)?;
    let archive = Archive::find(place).await?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&config.data_dir)
        .map_err(|error| Failure::at(&config.data_dir, "cannot create", error))?;
    let folder = config.data_dir.join(UNFINISHED_RESTORE);
    let work = Work::again(folder, remove_moved)?;
    require_empty(config)?;
    let packed = archive.fetch(&work).await?;
    let content = work.join("content");
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&content)
        .map_err(|error| Failure::at(&content, "cannot create", error))?;
    let unpacked = unpack(&packed, &content, &CancellationToken::new()).await?;
    // A setting may hold the keys.
    if let (Some(sealed), None) = (&unpacked.sealed_keys, &config.master_key) {
        let opened = keys::open(passphrase.as_ref(), sealed)?;
        let file = content.join(MASTER_KEY_FILE);
        write_private(&file, &mut opened.expose_secret().as_bytes())
            .map_err(|error| Failure::at(&file, "cannot write", error))?;
    }
    let moves = moves(config, &content, &unpacked)?;
    give_to_owner(&config.data_dir, &content)
        .map_err(|error| Failure::at(&content, "cannot set the owner of", error))?;
    if let Err(failure) = move_all(&work, &moves) {
        match remove_moved(work.path()) {
            Ok(()) => {}
            // The next restore removes it.
            Err(_) => work.keep(),
        }
        return Err(failure);
    }
    let report = report(config, &archive, &unpacked);
    let done = config.data_dir.join(DONE);
    work.finish(&done)
        .and_then(|()| sync_folder_of(&done))
        .map_err(|error| Failure::at(&done, "cannot remove", error))?;
    Ok(report)
}

pub fn passphrase(config: &Config) -> Result<Option<SecretString>> {
    let file = config.backup.passphrase_file.as_deref();
    file.map(keys::read_passphrase).transpose()
}

/// Nothing that is there may be mixed with what is restored. A service that starts from here on
/// finds the folder of the restore, and one that started before holds its lock.
fn require_empty(config: &Config) -> Result<()> {
    let refused = |path: &Path| {
        Failure::Failed(format!(
            "{} is there already; restore into an empty data directory (--data-dir DIR), or stop the service \
             and move it away first",
            path.display()
        ))
    };
    let mut lock_file = None;
    if let Some(database) = sqlite_file(config.database_url.expose_secret()) {
        if lock::is_locked(database) {
            return Err(Failure::Failed(format!(
                "a service is running on {}; stop it first, or restore into another data directory (--data-dir DIR)",
                database.display()
            )));
        }
        // SQLite would replay the log of another database.
        for suffix in ["", "-wal", "-journal"] {
            let file = with_suffix(database, suffix);
            if file.exists() {
                return Err(refused(&file));
            }
        }
        lock_file = Some(lock::lock_file(database));
    }
    let failed = |error| Failure::at(&config.data_dir, "cannot list", error);
    for entry in fs::read_dir(&config.data_dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_ours = path.ends_with(UNFINISHED_RESTORE) || path.ends_with(DONE);
        if !is_ours && lock_file.as_ref() != Some(&path) && !is_empty_folder(&path) {
            return Err(refused(&path));
        }
    }
    if let FilesConfig::Directory(dir) = &config.files
        && dir.exists()
        && !is_empty_folder(dir)
    {
        return Err(refused(dir));
    }
    Ok(())
}

fn is_empty_folder(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// From the folder of the restore to the place of the service, the database last.
type Moves = Vec<(PathBuf, PathBuf)>;

fn moves(config: &Config, content: &Path, unpacked: &Unpacked) -> Result<Moves> {
    let mut moves = Vec::new();
    if let FilesConfig::Directory(dir) = &config.files
        && unpacked.about.has_release_files
    {
        moves.push((content.join(FILES), dir.clone()));
    }
    if content.join(MASTER_KEY_FILE).exists() {
        let file = config.data_dir.join(MASTER_KEY_FILE);
        moves.push((content.join(MASTER_KEY_FILE), file));
    }
    if unpacked.about.rows.is_some() {
        let file = sqlite_file(config.database_url.expose_secret()).ok_or_else(|| {
            Failure::WrongUsage(
                "this backup has an SQLite database, and database-url names PostgreSQL; \
                 restore it with --database-url sqlite:FILE"
                    .to_owned(),
            )
        })?;
        moves.push((content.join(DATABASE), file.to_owned()));
    }
    Ok(moves)
}

/// The list of places is on disk before the first of them exists.
fn move_all(work: &Work, moves: &Moves) -> Result<()> {
    let places: Vec<&PathBuf> = moves.iter().map(|(_, to)| to).collect();
    let list = work.join(PLACES);
    let text = serde_json::to_vec(&places).map_err(|error| Failure::Failed(error.to_string()))?;
    write_private(&list, &mut text.as_slice())
        .and_then(|()| sync_folder_of(&list))
        .and_then(|()| sync_folder_of(work.path()))
        .map_err(|error| Failure::at(&list, "cannot write", error))?;
    for (from, to) in moves {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::CrossesDevices => Failure::Failed(format!(
                "{} is on another disk than the data directory, and a restore is in one piece on one disk; restore \
                 with --database-url sqlite:FILE and --files file://DIR in the data directory, and move them there \
                 before the start",
                to.display()
            )),
            _ => Failure::at(to, "cannot move what was restored to", error),
        };
        fs::rename(from, to).map_err(failed)?;
        sync_folder_of(to).map_err(failed)?;
    }
    Ok(())
}

/// Removes what a restore that did not end had moved: these places were empty before it.
fn remove_moved(folder: &Path) -> Result<()> {
    let Ok(text) = fs::read(folder.join(PLACES)) else {
        // It had moved nothing.
        return Ok(());
    };
    let places: Vec<PathBuf> = serde_json::from_slice(&text).unwrap_or_default();
    for place in places {
        let removed = match place.is_dir() {
            true => fs::remove_dir_all(&place),
            false => fs::remove_file(&place),
        };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::at(&place, "cannot remove", error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Root may restore for the service, which owns its data directory.
fn give_to_owner(data_dir: &Path, content: &Path) -> std::io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let owner = fs::metadata(data_dir)?;
    let mut folders = vec![content.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            chown(entry.path(), Some(owner.uid()), Some(owner.gid()))?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}

fn report(config: &Config, archive: &Archive, unpacked: &Unpacked) -> String {
    let about = &unpacked.about;
    let database = match unpacked.counted {
        Some(rows) => format!(
            "{rows} rows, every upload acknowledged before {}",
            about.moment
        ),
        None => {
            "not in this backup: restore PostgreSQL from its own (docs/operating.md)".to_owned()
        }
    };
    let file = config.data_dir.join(MASTER_KEY_FILE);
    let keys = match about.keys {
        _ if config.master_key.is_some() => "the setting master-key holds them".to_owned(),
        Keys::Sealed => format!("restored to {}", file.display()),
        Keys::Apart => format!(
            "not in this backup: put the keys {} into {} before the start",
            about.key_ids.join(", "),
            file.display()
        ),
    };
    format!(
        "restored: {} into {}\ndatabase: {database}\nkeys: {keys}\nrelease files: {}, history files: {}\n\
         next: start the service; if an old copy still runs elsewhere, stop it first\n",
        archive.shown(),
        config.data_dir.display(),
        unpacked.release_files,
        unpacked.history_files,
    )
}
