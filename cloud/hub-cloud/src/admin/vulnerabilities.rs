//! `hub-cloud vulnerabilities`: brings in what is published about vulnerabilities, and says what is
//! there.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hub_base::error::{Error, Result};
use hub_exposure::feeds::{self, ImportError, Imported, Progress, mirror};
use hub_logging::say;
use serde_json::json;

use super::printed;
use crate::app::Base;

/// What `update` fetches unless ecosystems are named.
const ECOSYSTEMS: [&str; 5] = ["Debian", "crates.io", "PyPI", "npm", "Go"];
/// Longest name of an ecosystem.
const MAX_NAME_BYTES: usize = 64;
/// Between two lines of progress, where they replace each other and where they are kept.
const REPLACED_EVERY: Duration = Duration::from_millis(500);
const KEPT_EVERY: Duration = Duration::from_secs(10);

/// Brings in files and directories.
pub async fn import(base: &Base, files: &[PathBuf]) -> std::result::Result<String, ImportError> {
    let mut report = String::new();
    for file in files {
        report.push_str(&bring_in(base, file, &file.display().to_string()).await?);
    }
    Ok(report)
}

/// Fetches feeds from the mirror and brings them in.
pub async fn update(
    base: &Base,
    ecosystems: &[String],
) -> std::result::Result<String, ImportError> {
    let Some(mirror) = &base.config.vulnerability_mirror else {
        let message = "is not set: it is the URL that feeds are fetched from";
        return Err(Error::field("vulnerability-mirror", message).into());
    };
    for name in ecosystems {
        let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b".-_ ".contains(&byte);
        let is_name = !name.starts_with('.')
            && (1..=MAX_NAME_BYTES).contains(&name.len())
            && name.bytes().all(is_char);
        if !is_name {
            return Err(Error::field("ECOSYSTEM", "must be a name such as `Debian`").into());
        }
    }
    let named = ecosystems.iter().map(String::as_str);
    let wanted: Vec<&str> = match ecosystems.is_empty() {
        true => ECOSYSTEMS.to_vec(),
        false => named.collect(),
    };
    let mut report = String::new();
    for ecosystem in wanted.into_iter().map(Some).chain([None]) {
        let path = mirror::path_of(ecosystem);
        say(format_args!("fetching {path}"));
        let fetched = mirror::fetch(base, mirror, &path).await?;
        report.push_str(&bring_in(base, fetched.path(), &path).await?);
    }
    Ok(report)
}

async fn bring_in(
    base: &Base,
    file: &Path,
    name: &str,
) -> std::result::Result<String, ImportError> {
    let is_terminal = std::io::stderr().is_terminal();
    let every = match is_terminal {
        true => REPLACED_EVERY,
        false => KEPT_EVERY,
    };
    let mut shown_at = Instant::now();
    let imported = feeds::import(base, file, |progress| {
        if shown_at.elapsed() >= every {
            shown_at = Instant::now();
            let line = line(name, progress);
            match is_terminal {
                true => replace_line(&line),
                false => say(line),
            }
        }
    })
    .await;
    if is_terminal {
        replace_line("");
    }
    Ok(report(name, &imported?))
}

fn line(name: &str, progress: &Progress) -> String {
    let of = progress
        .total
        .map_or_else(String::new, |total| format!(" of {total}"));
    let (read, stored) = (progress.read, progress.stored);
    format!("{name}: {read}{of} records read, {stored} are new")
}

fn replace_line(line: &str) {
    let _ = write!(hub_logging::lines(), "\r\x1b[K{line}");
}

fn report(name: &str, imported: &Imported) -> String {
    let records: usize = imported.feeds.values().sum();
    let mut text = format!(
        "{name}: {records} records, of which {} are new",
        imported.stored
    );
    if imported.refused > 0 {
        let _ = write!(text, "; {} cannot be read", imported.refused);
    }
    text.push('\n');
    for reason in &imported.reasons {
        let _ = writeln!(text, "  {reason}");
    }
    text
}

/// The feeds that are there, one per line, or as one JSON object.
pub async fn status(base: &Base, as_json: bool) -> std::result::Result<String, ImportError> {
    Ok(listed(base, as_json).await?)
}

async fn listed(base: &Base, as_json: bool) -> Result<String> {
    let feeds = feeds::list(&mut base.db.read().await?).await?;
    if as_json {
        let feeds: Vec<_> = feeds
            .into_iter()
            .map(|feed| {
                json!({
                    "feed": feed.feed,
                    "records": feed.record_count,
                    "newestAt": feed.newest_at,
                    "importedAt": feed.imported_at,
                    "unfinished": feed.is_unfinished,
                })
            })
            .collect();
        return printed(&json!({"feeds": feeds}));
    }
    let mut lines = String::new();
    for feed in feeds {
        let newest = feed
            .newest_at
            .map_or_else(|| "-".to_owned(), |at| at.to_string());
        let unfinished = match feed.is_unfinished {
            true => ", unfinished: import it again",
            false => "",
        };
        let _ = writeln!(
            lines,
            "{}  {} records, the newest of {newest}, imported {}{unfinished}",
            feed.feed, feed.record_count, feed.imported_at
        );
    }
    if lines.is_empty() {
        lines.push_str("no feed was brought in yet: see hub-cloud vulnerabilities import --help\n");
    }
    Ok(lines)
}
