//! Unpacks a backup and proves that it is one: every member has the digest that the list says,
//! every page of the database is right, and every table has the rows that were counted.

use std::fs;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use hub_base::db::snapshot::Rows;
use hub_base::db::{migrate, snapshot};
use hub_fleet::releases::files;
use tokio_util::sync::CancellationToken;

use super::archive::{self, About, DATABASE, HISTORY, KEYS, RELEASES, write_private};
use super::work::blocking;
use super::{Failure, Result};

/// The folder of the file store among the parts.
pub const FILES: &str = "files";
/// No master keys are longer.
const MAX_KEYS_BYTES: u64 = 1 << 20;

/// The parts of a backup as files of one folder, verified.
pub struct Unpacked {
    pub about: About,
    /// The number of rows that were counted; none without a database.
    pub counted: Option<i64>,
    pub sealed_keys: Option<Vec<u8>>,
    pub release_files: usize,
    /// Files with older BLE events.
    pub history_files: usize,
}

/// Unpacks a backup into an empty folder and verifies all of it.
pub async fn unpack(packed: &Path, folder: &Path, stop: &CancellationToken) -> Result<Unpacked> {
    let (source, target, stopped) = (packed.to_owned(), folder.to_owned(), stop.clone());
    let (about, sealed_keys, (release_files, history_files)) =
        blocking(move || unpack_files(&source, &target, &stopped)).await?;
    let counted = match &about.rows {
        None => None,
        Some(expected) => {
            let database = folder.join(DATABASE);
            let broken = |error| Failure::of_database("the restored database is broken", &error);
            snapshot::check(&database).await.map_err(broken)?;
            let found = snapshot::count_rows(&database).await.map_err(broken)?;
            compare(expected, &found)?;
            Some(found.values().sum())
        }
    };
    Ok(Unpacked {
        about,
        counted,
        sealed_keys,
        release_files,
        history_files,
    })
}

type Files = (About, Option<Vec<u8>>, (usize, usize));

fn unpack_files(packed: &Path, folder: &Path, stop: &CancellationToken) -> Result<Files> {
    let releases = folder.join(FILES).join(files::FOLDER);
    create_folder(&releases)?;
    let mut sealed_keys = None;
    let (mut release_files, mut history_files) = (0, 0);
    let take = |about: &About, name: &str, content: &mut dyn Read| {
        if about.schema > migrate::VERSION {
            return Err(Failure::newer(&about.version));
        }
        let path = match name.strip_prefix(RELEASES) {
            Some(release) => {
                release_files += 1;
                releases.join(release)
            }
            None if name.starts_with(HISTORY) => {
                history_files += 1;
                let path = folder.join(FILES).join(name);
                create_folder(path.parent().unwrap_or(folder))?;
                path
            }
            None if name == KEYS => {
                let sealed = archive::read_all(&mut { content }, MAX_KEYS_BYTES);
                sealed_keys =
                    Some(sealed.map_err(|error| Failure::at(packed, "cannot read", error))?);
                return Ok(());
            }
            None => folder.join(name),
        };
        write_private(&path, content).map_err(|error| Failure::at(&path, "cannot write", error))
    };
    let about = archive::read(packed, stop, take)?;
    for folder in [&releases, &folder.join(FILES), folder] {
        fs::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| Failure::at(folder, "cannot write", error))?;
    }
    Ok((about, sealed_keys, (release_files, history_files)))
}

fn create_folder(path: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| Failure::at(path, "cannot create", error))
}

fn compare(expected: &Rows, found: &Rows) -> Result<()> {
    let differs = expected
        .iter()
        .find(|(table, rows)| found.get(*table) != Some(rows));
    match differs {
        None => Ok(()),
        Some((table, rows)) => Err(Failure::Failed(format!(
            "the table {table} of the restored database has {} rows and not {rows}; use another backup",
            found.get(table).copied().unwrap_or_default()
        ))),
    }
}
