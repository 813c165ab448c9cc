//! Checks the stored state: data directory, master keys, the database sealed with them, release
//! files and release keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use hub_base::db::dialect::Dialect;
use hub_base::db::migrate::{self, Schema};
use hub_base::db::{self, Db, citus};
use hub_base::error::Error;
use hub_base::sealing::{MasterKeyError, Sealer, stored};
use hub_core::config::{Config, DatabaseLayout, FilesConfig};
use hub_fleet::releases::files::Files;
use hub_fleet::releases::keys_in;
use hub_protocol::check::Finding;
use secrecy::ExposeSecret;

use super::connections;

const LOW_SPACE_BYTES: u64 = 1 << 30;
const FILE_STORE_TIMEOUT: Duration = Duration::from_secs(20);

pub async fn check(config: &Config) -> Vec<Finding> {
    let mut findings = vec![data_dir(&config.data_dir)];
    findings.extend(space(&config.data_dir));
    let database = config.database_url.expose_secret();
    match db::sqlite_file(database).is_some_and(|file| !file.exists()) {
        true => {
            findings.push(Finding::ok(
                "database",
                "does not exist yet; the first start creates it",
            ));
            findings.push(master_key(config, &[]));
        }
        false => findings.extend(database_and_keys(config, database).await),
    }
    findings.push(files(&config.files).await);
    for (folder, what) in [("agent", "the agent"), ("app", "apps")] {
        findings.extend(release_keys(&config.release_keys.join(folder), what));
    }
    findings
}

fn data_dir(dir: &Path) -> Finding {
    let shown = dir.display();
    let Ok(metadata) = fs::metadata(dir) else {
        return Finding::ok(
            "data-dir",
            format!("{shown} does not exist yet; the first start creates it"),
        );
    };
    let mode = metadata.permissions().mode() & 0o777;
    match try_to_write(dir) {
        Err(error) => Finding::fail(
            "data-dir",
            format!("{shown} is not writable: {error}"),
            format!(
                "run the command as user hub-cloud, or change the owner: chown -R hub-cloud {shown}"
            ),
        ),
        Ok(()) if mode & 0o077 != 0 => Finding::fail(
            "data-dir",
            format!("{shown} holds keys and is accessible to other users (mode {mode:03o})"),
            format!("chmod 700 {shown}"),
        ),
        Ok(()) => Finding::ok(
            "data-dir",
            format!("{shown} is writable and private to its owner"),
        ),
    }
}

fn try_to_write(dir: &Path) -> std::io::Result<()> {
    let file = dir.join(format!(".check-{}", std::process::id()));
    fs::File::create_new(&file)?;
    fs::remove_file(file)
}

/// Free space on the file system of the directory, or of its nearest existing parent.
fn space(dir: &Path) -> Option<Finding> {
    let existing = dir
        .ancestors()
        .find(|ancestor| ancestor.exists())
        .unwrap_or(Path::new("."));
    let stat = rustix::fs::statvfs(existing).ok()?;
    let free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
    let finding = format!("{} MiB free at {}", free_bytes >> 20, existing.display());
    Some(match free_bytes < LOW_SPACE_BYTES {
        true => Finding::warn(
            "disk",
            finding,
            "free disk space: on a full disk uploads are refused and hubs spool",
        ),
        false => Finding::ok("disk", finding),
    })
}

async fn database_and_keys(config: &Config, url: &str) -> Vec<Finding> {
    if let Err(error) = Db::try_out(url).await {
        let fix = match db::sqlite_file(url) {
            Some(file) => format!("check that {} is a hub-cloud database that this user may write", file.display()),
            None => "check `database-url`, that the server runs, and that the database exists (createdb)".to_owned(),
        };
        return vec![Finding::fail("database", error, fix)];
    }
    let inspected = async {
        let db = Db::open_existing(url)?;
        let schema = migrate::schema(&db).await?;
        let mut conn = db.read().await?;
        let registered = match schema {
            Schema::Current | Schema::Older(_) => stored::registered(&mut conn).await?,
            Schema::None | Schema::UnfinishedMove | Schema::Newer(_) | Schema::Unreleased(_) => {
                Vec::new()
            }
        };
        let accepted = match db.dialect() {
            Dialect::Postgres => Some(connections::accepted(&mut conn).await?),
            Dialect::Sqlite => None,
        };
        drop(conn);
        let layout = match schema {
            Schema::Current => layout(config, &db).await?,
            _ => Vec::new(),
        };
        db.close().await;
        Ok::<_, Error>((schema, registered, layout, accepted))
    };
    match inspected.await {
        Ok((schema, registered, layout, accepted)) => {
            let mut findings = vec![schema_finding(schema)];
            findings.extend(layout);
            findings.push(master_key(config, &registered));
            findings.extend(accepted.map(|accepted| connections::check(config, accepted)));
            findings
        }
        Err(error) => vec![Finding::fail(
            "database",
            error,
            "run `hub-cloud serve --log debug` for details",
        )],
    }
}

/// Whether the tables are where `database-layout` wants them.
async fn layout(config: &Config, db: &Db) -> Result<Vec<Finding>, Error> {
    if config.database_layout == DatabaseLayout::Plain {
        return Ok(match citus::is_distributed(db).await? {
            true => vec![Finding::fail(
                "database layout",
                "tables are distributed by Citus",
                "set `database-layout` to citus, so that new tables are distributed too",
            )],
            false => Vec::new(),
        });
    }
    let (faults, workers) = citus::faults(db).await?;
    if faults.is_empty() {
        return Ok(vec![Finding::ok(
            "database layout",
            format!("the growing tables are distributed over {workers} workers"),
        )]);
    }
    let fix = "run `hub-cloud migrate`, which distributes tables; add and start workers as \
               docs/operating.md says";
    let finding = |fault| Finding::fail("database layout", fault, fix);
    Ok(faults.into_iter().map(finding).collect())
}

fn schema_finding(schema: Schema) -> Finding {
    match schema {
        Schema::None => Finding::ok(
            "database",
            "responds; the first start creates the hub-cloud schema",
        ),
        Schema::UnfinishedMove => Finding::fail(
            "database",
            "is the target of a move that has not ended",
            "run the same `hub-cloud move` again until it says that it is done, or set `database-url` to the database that is moved",
        ),
        Schema::Current => Finding::ok("database", "responds; its schema is current"),
        Schema::Older(behind) => Finding::warn(
            "database",
            format!("responds; its schema lacks {behind} migrations of this version"),
            "take a backup, then start the service or run `hub-cloud migrate`: both apply the migrations",
        ),
        Schema::Newer(version) => Finding::fail(
            "database",
            format!("its schema (version {version}) belongs to a newer hub-cloud"),
            "run the newer hub-cloud, or restore the backup from before its first start",
        ),
        Schema::Unreleased(_) => Finding::fail(
            "database",
            "its schema belongs to a hub-cloud from before the first release",
            "set `database-url` to a new database, or move the old one away: no later version can use it",
        ),
    }
}

/// Whether the available master keys open the secrets in the database.
fn master_key(config: &Config, registered: &[String]) -> Finding {
    let sealer = match Sealer::load(config.master_key.as_ref(), &config.data_dir, false) {
        Ok(sealer) => sealer,
        Err(MasterKeyError::Lost(_)) if registered.is_empty() => {
            return Finding::ok(
                "master key",
                "does not exist yet; the first start creates it",
            );
        }
        Err(error) => {
            let fix = "restore it from its backup: without it the secrets sealed with it are lost";
            return Finding::fail("master key", error, fix);
        }
    };
    let available = sealer.key_ids();
    let missing: Vec<&str> = registered
        .iter()
        .filter(|id| !available.contains(id))
        .map(String::as_str)
        .collect();
    let is_open = |file: &Path| {
        fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
    };
    match sealer.file() {
        _ if !missing.is_empty() => Finding::fail(
            "master key",
            format!(
                "the database holds secrets sealed with {}; only {} is available",
                missing.join(", "),
                available.join(", ")
            ),
            "restore the missing key (the setting master-key or the file master.key), or set another database-url",
        ),
        Some(file) if is_open(file) => Finding::fail(
            "master key",
            format!("{} is accessible to other users", file.display()),
            format!(
                "chmod 600 {}; then run `hub-cloud keys rotate`, because the key may be known",
                file.display()
            ),
        ),
        Some(file) => Finding::ok(
            "master key",
            format!(
                "{} opens this database; keep a backup of it",
                file.display()
            ),
        ),
        None => Finding::ok("master key", "the keys in the setting open this database"),
    }
}

async fn files(config: &FilesConfig) -> Finding {
    let location = match config {
        FilesConfig::Directory(dir) if !dir.exists() => {
            return Finding::ok(
                "files",
                format!(
                    "{} does not exist yet; the first start creates it",
                    dir.display()
                ),
            );
        }
        FilesConfig::Directory(dir) => dir.display().to_string(),
        FilesConfig::S3 { bucket, .. } => format!("the bucket {bucket}"),
    };
    let tried = async {
        Files::open(config)
            .map_err(Error::internal)?
            .try_out()
            .await
    };
    let failure = match tokio::time::timeout(FILE_STORE_TIMEOUT, tried).await {
        Ok(Ok(())) => return Finding::ok("files", format!("{location} stores and returns files")),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no response within {} s", FILE_STORE_TIMEOUT.as_secs()),
    };
    let fix = match config {
        FilesConfig::Directory(dir) => format!("change its owner: chown -R hub-cloud {}", dir.display()),
        FilesConfig::S3 { .. } => {
            "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL as for the service, \
             and allow put, get and delete"
                .to_owned()
        }
    };
    Finding::fail("files", format!("{location}: {failure}"), fix)
}

/// The number of usable keys, and a finding for each file that is not one.
fn release_keys(dir: &Path, what: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut usable = 0;
    for (file, key) in keys_in(dir) {
        match key {
            Ok(_) => usable += 1,
            Err(reason) => findings.push(Finding::fail(
                "release keys",
                format!("{} is not usable: {reason}", file.display()),
                "replace it with a minisign public key, as created by `hub-cloud release keygen`, or remove the file",
            )),
        }
    }
    findings.push(match usable {
        0 => Finding::warn(
            "release keys",
            format!("{} holds no key: releases of {what} are refused", dir.display()),
            format!(
                "create one with `hub-cloud release keygen` and copy its .pub file to {}; no restart is needed",
                dir.display()
            ),
        ),
        1 => Finding::ok("release keys", format!("1 key for {what}")),
        _ => Finding::ok("release keys", format!("{usable} keys for {what}")),
    });
    findings
}

#[cfg(test)]
mod tests {
    use hub_protocol::check::State;

    use super::*;

    #[test]
    fn data_directory_accessible_to_others_fails_the_check() {
        let dir = tempfile::tempdir().expect("a directory");
        for (mode, state) in [
            (0o700, State::Ok),
            (0o750, State::Fail),
            (0o707, State::Fail),
        ] {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).expect("a mode");
            assert_eq!(data_dir(dir.path()).state, state, "{mode:o}");
        }
        assert_eq!(
            data_dir(&dir.path().join("none")).state,
            State::Ok,
            "created at the first start"
        );
        assert_eq!(
            fs::read_dir(dir.path()).expect("a directory").count(),
            0,
            "the check leaves no file behind"
        );
    }

    #[test]
    fn unusable_release_key_is_reported_with_its_file_name() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(release_keys(dir.path(), "apps")[0].state, State::Warn);
        fs::write(
            dir.path().join("a.pub"),
            "RWTKvP6hJTGr6XmTNnLBqWQ9brYvzWTVYzS4oVM+eXYiwXlvqRjPDWlM\n",
        )
        .expect("a file");
        fs::write(dir.path().join("b.pub"), "no key").expect("a file");
        let findings = release_keys(dir.path(), "apps");
        assert_eq!(
            findings
                .iter()
                .map(|finding| finding.state)
                .collect::<Vec<_>>(),
            [State::Fail, State::Ok]
        );
        assert!(findings[0].finding.contains("b.pub"), "{findings:?}");
    }
}
