//! The drill: restores a backup into a scratch directory, opens it as the service would, and
//! removes it. It proves what a restore would find, keys included; nothing of the service changes.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use hub_base::clock::Clock;
use hub_base::db::{Db, migrate};
use hub_base::sealing::MASTER_KEY_FILE;
use hub_core::config::{BackupPlace, Config, FilesConfig};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::archive::DATABASE;
use super::places::Archive;
use super::restore::passphrase;
use super::unpack::{Unpacked, unpack};
use super::work::{Work, partial, sweep};
use super::{Failure, Result, keys};
use crate::app::Base;
use crate::start_error::StartError;

/// The begin of the name of a scratch directory for a backup from a bucket.
const FETCHED: &str = "hub-cloud-drill-";

/// Returns a report of what a restore of this backup would find.
pub async fn drill(config: &Config, place: &BackupPlace) -> Result<String> {
    let began_at = Instant::now();
    let passphrase = passphrase(config)?;
    let archive = Archive::find(place).await?;
    let beside = match &archive {
        Archive::File(path) => path.clone(),
        Archive::Object { .. } => {
            let dir = std::env::temp_dir();
            sweep(&dir, |name| name.starts_with(FETCHED));
            dir.join(format!("{FETCHED}{}", Uuid::new_v4()))
        }
    };
    let work = Work::begin(partial(&beside))?;
    let packed = archive.fetch(&work).await?;
    let scratch = work.join("content");
    fs::create_dir(&scratch).map_err(|error| Failure::at(&scratch, "cannot create", error))?;
    let unpacked = unpack(&packed, &scratch, &CancellationToken::new()).await?;
    let opened = match (
        unpacked.counted,
        master_keys(config, passphrase, &unpacked)?,
    ) {
        (None, _) => "database: not in this backup".to_owned(),
        (Some(_), None) => {
            "keys: not in this backup, and not at hand; whether they open it was not tried"
                .to_owned()
        }
        (Some(_), Some((keys, whose))) => {
            open(config, keys, scratch).await?;
            format!("keys: {whose} open the secrets of the database")
        }
    };
    Ok(report(&archive, &unpacked, &opened, began_at))
}

/// The keys that a restore would have, and whose they are. They are never written to a file, which
/// would be beside the backup.
fn master_keys(
    config: &Config,
    passphrase: Option<SecretString>,
    unpacked: &Unpacked,
) -> Result<Option<(SecretString, &'static str)>> {
    let has_own = config.master_key.is_some() || config.data_dir.join(MASTER_KEY_FILE).exists();
    match &unpacked.sealed_keys {
        Some(sealed) => {
            let opened = keys::open(passphrase.as_ref(), sealed)?;
            Ok(Some((opened, "those in the backup")))
        }
        // Those that are kept apart are on this machine if it is the service's.
        None if has_own => {
            let (own, _) = keys::of_service(config)?;
            let whose = "those of this service, since the backup has none,";
            Ok(Some((own, whose)))
        }
        None => Ok(None),
    }
}

/// Opens the restored database as the service would at its start.
async fn open(config: &Config, keys: SecretString, data_dir: PathBuf) -> Result<()> {
    let mut config = config.clone();
    config.master_key = Some(keys);
    config.database_url = format!("sqlite:{}", data_dir.join(DATABASE).display()).into();
    config.files = FilesConfig::Directory(data_dir.join("files"));
    config.data_dir = data_dir;
    config.bus = None;
    let db =
        Db::open_existing(config.database_url.expose_secret()).map_err(StartError::DatabaseUrl)?;
    let migrated = migrate::run(&db, Clock::System.now()).await;
    db.close().await;
    migrated.map_err(StartError::Migrate)?;
    let base = Base::attach(config, Clock::System).await?;
    base.stop().await;
    Ok(())
}

fn report(archive: &Archive, unpacked: &Unpacked, opened: &str, began_at: Instant) -> String {
    let about = &unpacked.about;
    let database = match unpacked.counted {
        Some(rows) => format!(
            "database: {rows} rows, as the backup says; every page checked; every upload acknowledged before {}\n",
            about.moment
        ),
        None => String::new(),
    };
    format!(
        "drill: {}, made by hub-cloud {}, is whole\n{database}{opened}\nrelease files: {}, history files: {}\n\
         a restore takes about {:.0} s\n",
        archive.shown(),
        about.version,
        unpacked.release_files,
        unpacked.history_files,
        began_at.elapsed().as_secs_f64().ceil(),
    )
}
