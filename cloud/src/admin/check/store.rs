//! What the service keeps: the data directory, the master keys, the database sealed with them, and the files and keys of releases.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use hub_protocol::check::Finding;
use secrecy::ExposeSecret;

use crate::config::{Config, FilesConfig};
use crate::db::migrate::{self, Schema};
use crate::db::{self, Db};
use crate::domain::releases::files::Files;
use crate::domain::releases::keys_in;
use crate::error::Error;
use crate::sealing::{MasterKeyError, Sealer, stored};

const LITTLE_SPACE_BYTES: u64 = 1 << 30;
const STORE_PATIENCE: Duration = Duration::from_secs(20);

pub async fn check(config: &Config) -> Vec<Finding> {
    let mut findings = vec![data_dir(&config.data_dir)];
    findings.extend(space(&config.data_dir));
    let database = config.database_url.expose_secret();
    match db::sqlite_file(database).is_some_and(|file| !file.exists()) {
        true => {
            findings.push(Finding::ok("database", "not there yet; the first start makes it"));
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
        return Finding::ok("data-dir", format!("{shown} is not there yet; the first start makes it"));
    };
    let mode = metadata.permissions().mode() & 0o777;
    match try_to_write(dir) {
        Err(error) => Finding::fail(
            "data-dir",
            format!("{shown} cannot be written: {error}"),
            "run this as the service's user (sudo -u hub-cloud hub-cloud check), or give it the directory: chown -R hub-cloud",
        ),
        Ok(()) if mode & 0o077 != 0 => Finding::fail(
            "data-dir",
            format!("{shown} is open to others (mode {mode:03o}), and holds keys"),
            format!("chmod 700 {shown}"),
        ),
        Ok(()) => Finding::ok("data-dir", format!("{shown} can be written, and by its owner alone")),
    }
}

fn try_to_write(dir: &Path) -> std::io::Result<()> {
    let file = dir.join(format!(".check-{}", std::process::id()));
    fs::File::create_new(&file)?;
    fs::remove_file(file)
}

/// Space where the directory is, or would be.
fn space(dir: &Path) -> Option<Finding> {
    let there = dir.ancestors().find(|place| place.exists()).unwrap_or(Path::new("."));
    let stat = rustix::fs::statvfs(there).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let finding = format!("{} MiB free at {}", free >> 20, there.display());
    Some(match free < LITTLE_SPACE_BYTES {
        true => {
            Finding::warn("disk", finding, "make room: without it uploads are refused, and hubs keep what they hear")
        }
        false => Finding::ok("disk", finding),
    })
}

async fn database_and_keys(config: &Config, url: &str) -> Vec<Finding> {
    if let Err(error) = Db::try_out(url).await {
        let mend = match db::sqlite_file(url) {
            Some(file) => format!("is {} a database of hub-cloud, and may this user write it?", file.display()),
            None => "is `database-url` right, the server up, and the database made (createdb)?".to_owned(),
        };
        return vec![Finding::fail("database", error, mend)];
    }
    let looked = async {
        let db = Db::open(url)?;
        let schema = migrate::schema(&db).await?;
        let mut conn = db.read().await?;
        let registered = match schema {
            Schema::Current => stored::registered(&mut conn).await?,
            // The first version did not note its keys.
            Schema::Older(_) => stored::registered(&mut conn).await.unwrap_or_default(),
            Schema::None | Schema::Newer(_) => Vec::new(),
        };
        drop(conn);
        db.close().await;
        Ok::<_, Error>((schema, registered))
    };
    match looked.await {
        Ok((schema, registered)) => vec![schema_finding(schema), master_key(config, &registered)],
        Err(error) => vec![Finding::fail("database", error, "`hub-cloud serve --log debug` tells more")],
    }
}

fn schema_finding(schema: Schema) -> Finding {
    match schema {
        Schema::None => {
            Finding::ok("database", "answers, and holds nothing of hub-cloud yet; the first start makes the schema")
        }
        Schema::Current => Finding::ok("database", "answers, and its schema is this version's"),
        Schema::Older(behind) => Finding::warn(
            "database",
            format!("answers; its schema is {behind} steps behind this version"),
            "the next start brings it up to date, as does `hub-cloud migrate`; make a backup first",
        ),
        Schema::Newer(version) => Finding::fail(
            "database",
            format!("its schema (version {version}) is of a later hub-cloud than this one"),
            "run that version, or restore the backup from before it",
        ),
    }
}

/// Whether the keys at hand open what the database holds.
fn master_key(config: &Config, registered: &[String]) -> Finding {
    let sealer = match Sealer::load(config.master_key.as_ref(), &config.data_dir, false) {
        Ok(sealer) => sealer,
        Err(MasterKeyError::Lost(_)) if registered.is_empty() => {
            return Finding::ok("master key", "there is none yet; the first start makes it");
        }
        Err(error) => {
            return Finding::fail("master key", error, "restore it from its backup: without it what it sealed is lost");
        }
    };
    let held = sealer.key_ids();
    let missing: Vec<&str> = registered.iter().filter(|id| !held.contains(id)).map(String::as_str).collect();
    let is_open = |file: &Path| fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0);
    match sealer.file() {
        _ if !missing.is_empty() => Finding::fail(
            "master key",
            format!(
                "the database holds secrets sealed with {}, and only {} is at hand",
                missing.join(", "),
                held.join(", ")
            ),
            "put the missing key back (the setting master-key, or master.key in the data directory), or name another database",
        ),
        Some(file) if is_open(file) => Finding::fail(
            "master key",
            format!("{} is open to others", file.display()),
            format!("chmod 600 {}; then `hub-cloud keys rotate`, as it may have been read", file.display()),
        ),
        Some(file) => Finding::ok("master key", format!("{} opens this database; is it in a backup?", file.display())),
        None => Finding::ok("master key", "the setting's keys open this database"),
    }
}

async fn files(config: &FilesConfig) -> Finding {
    let place = match config {
        FilesConfig::Directory(dir) if !dir.exists() => {
            return Finding::ok("files", format!("{} is not there yet; the first start makes it", dir.display()));
        }
        FilesConfig::Directory(dir) => dir.display().to_string(),
        FilesConfig::S3 { bucket, .. } => format!("the bucket {bucket}"),
    };
    let tried = async { Files::open(config).map_err(Error::internal)?.try_out().await };
    let failed = match tokio::time::timeout(STORE_PATIENCE, tried).await {
        Ok(Ok(())) => return Finding::ok("files", format!("{place} takes files, and gives them back")),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", STORE_PATIENCE.as_secs()),
    };
    let mend = match config {
        FilesConfig::Directory(dir) => format!("give it to the service's user: chown -R hub-cloud {}", dir.display()),
        FilesConfig::S3 { .. } => {
            "are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL those of the service, and may it put, get and delete?".to_owned()
        }
    };
    Finding::fail("files", format!("{place}: {failed}"), mend)
}

/// How many keys there are, and what is wrong with those that cannot be used.
fn release_keys(dir: &Path, what: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut usable = 0;
    for (file, key) in keys_in(dir) {
        match key {
            Ok(_) => usable += 1,
            Err(reason) => findings.push(Finding::fail(
                "release keys",
                format!("{} cannot be used: {reason}", file.display()),
                "put a minisign public key there, as `hub-cloud release keygen` makes it, or remove the file",
            )),
        }
    }
    findings.push(match usable {
        0 => Finding::warn(
            "release keys",
            format!("{} has none: no release of {what} is taken in", dir.display()),
            format!(
                "`hub-cloud release keygen` makes one; put its .pub file into {}, where it counts at once",
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
    fn a_directory_with_keys_is_for_its_owner_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        for (mode, state) in [(0o700, State::Ok), (0o750, State::Fail), (0o707, State::Fail)] {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).expect("a mode");
            assert_eq!(data_dir(dir.path()).state, state, "{mode:o}");
        }
        assert_eq!(data_dir(&dir.path().join("none")).state, State::Ok, "made at the first start");
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0, "nothing is left");
    }

    #[test]
    fn unusable_release_keys_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(release_keys(dir.path(), "apps")[0].state, State::Warn);
        fs::write(dir.path().join("a.pub"), "RWTKvP6hJTGr6XmTNnLBqWQ9brYvzWTVYzS4oVM+eXYiwXlvqRjPDWlM\n")
            .expect("a file");
        fs::write(dir.path().join("b.pub"), "no key").expect("a file");
        let findings = release_keys(dir.path(), "apps");
        assert_eq!(findings.iter().map(|finding| finding.state).collect::<Vec<_>>(), [State::Fail, State::Ok]);
        assert!(findings[0].finding.contains("b.pub"), "{findings:?}");
    }
}
