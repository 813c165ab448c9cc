//! Checks the backups: that there are some, that they are recent, and on PostgreSQL that the server
//! archives its write-ahead log.

use hub_base::db::{Db, sql};
use hub_base::error::Error;
use hub_core::config::Config;
use hub_protocol::Timestamp;
use hub_protocol::check::Finding;
use secrecy::ExposeSecret;

use crate::backup::{self, SealKeys};

pub async fn check(config: &Config, now: Timestamp) -> Vec<Finding> {
    let mut findings = vec![schedule(config, now).await];
    if config.backup.passphrase_file.is_some()
        && let Err(error) = SealKeys::choose(config, false)
    {
        findings.push(Finding::fail(
            "backups",
            error,
            "name a file that the user of the service can read, with the passphrase in its first line",
        ));
    }
    if !config.is_sqlite() {
        // A server that does not respond is a finding of its own.
        findings.extend(archiving(config).await.ok());
    }
    findings
}

async fn schedule(config: &Config, now: Timestamp) -> Finding {
    let Some(place) = &config.backup.to else {
        return Finding::ok(
            "backups",
            "the service makes none by itself: backup-to is not set",
        );
    };
    let every_secs = i64::try_from(config.backup.every.as_secs()).unwrap_or(i64::MAX);
    let fix = "start the service with these settings, or run `hub-cloud backup`; its log says why one failed";
    match backup::newest(place, now).await {
        Err(error) => Finding::fail("backups", error, "correct backup-to, or what it names"),
        Ok(None) => Finding::warn("backups", "there is none at backup-to yet", fix),
        Ok(Some(newest)) if newest.plus_secs(every_secs.saturating_mul(2)) < now => {
            Finding::warn("backups", format!("the newest one is of {newest}"), fix)
        }
        Ok(Some(newest)) => Finding::ok("backups", format!("the newest one is of {newest}")),
    }
}

/// Whether the server keeps what a restore to a moment needs.
async fn archiving(config: &Config) -> Result<Finding, Error> {
    let db = Db::open_existing(config.database_url.expose_secret())?;
    let read = async {
        let mut conn = db.read().await?;
        sql(
            "SELECT current_setting('archive_mode'), last_archived_time, last_failed_time \
             FROM pg_stat_archiver",
        )
        .one::<(String, Option<Timestamp>, Option<Timestamp>)>(&mut conn)
        .await
    };
    let read = read.await;
    db.close().await;
    let (mode, archived, failed) = read?;
    Ok(match archived {
        _ if mode == "off" => Finding::warn(
            "write-ahead log",
            "the server archives none (archive_mode is off)",
            "set up pgBackRest or another archive as docs/operating.md shows, unless the log is streamed to one",
        ),
        _ if failed > archived => Finding::fail(
            "write-ahead log",
            "the last attempt of the server to archive a piece of it failed",
            "the log of the server says why its archive_command fails; until it works, pg_wal grows",
        ),
        Some(at) => Finding::ok(
            "write-ahead log",
            format!("the server archived a piece of it at {at}"),
        ),
        None => Finding::warn(
            "write-ahead log",
            "the server has not archived a piece of it yet",
            "run SELECT pg_switch_wal() as a superuser, then this check again",
        ),
    })
}
