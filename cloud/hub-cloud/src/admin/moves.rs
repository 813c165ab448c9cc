//! `hub-cloud move`: moves the service's database from SQLite to PostgreSQL or back, reports how
//! far that is, and says what to do after it.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

use hub_base::db::moves::{Move, MoveError, Moved, Progress, Step};
use hub_base::db::{self, sqlite_file};
use hub_core::config::Config;
use hub_logging::say;
use hub_protocol::Timestamp;
use secrecy::ExposeSecret;
use tokio::sync::watch;

use crate::database::{open_current, reach};
use crate::lock::lock;
use crate::start_error::StartError;

/// Between two lines of progress, where they replace each other and where they are kept.
const REPLACED_EVERY: Duration = Duration::from_millis(500);
const KEPT_EVERY: Duration = Duration::from_secs(10);

/// Why a move did not end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("--to must be `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`")]
    Target,
    #[error("the database to move: {0}")]
    Source(StartError),
    #[error("the database given with --to: {0}")]
    TargetRefused(StartError),
    #[error(transparent)]
    Move(#[from] MoveError),
}

/// Moves the configured database to the one at `to`; returns the report.
pub async fn run(config: &Config, to: &str, now: Timestamp) -> Result<String, Failure> {
    let is_known = ["sqlite:", "postgres://", "postgresql://"]
        .iter()
        .any(|scheme| to.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
    if !is_known {
        return Err(Failure::Target);
    }
    let from = config.database_url.expose_secret();
    let source = open_current(config).await.map_err(Failure::Source)?;
    // No service starts on an SQLite database while this is held.
    let _lock = lock(config).await.map_err(Failure::Source)?;
    reach(to).await.map_err(Failure::TargetRefused)?;
    let prepared = Move::begin(source, from, to, now).await?;
    let (from, target) = (db::name(from), db::name(to));
    say(match prepared.is_continued {
        true => format!("continuing the move of {from} to {target}"),
        false => format!("moving {from} to {target}"),
    });
    let began = Instant::now();
    let (sender, progress) = watch::channel(Progress::default());
    let moved = tokio::select! {
        moved = prepared.run(&sender) => moved,
        never = show(progress) => match never {},
    };
    if std::io::stderr().is_terminal() {
        replace_line("");
    }
    Ok(report(config, &from, to, &moved?, began.elapsed()))
}

fn report(config: &Config, from: &str, to: &str, moved: &Moved, took: Duration) -> String {
    let mut text = String::new();
    for (table, rows) in &moved.tables {
        let _ = writeln!(text, "{:>15}  {table}", grouped(*rows));
    }
    let target = db::name(to);
    let setting = match sqlite_file(to) {
        Some(_) => format!("sqlite:{target}"),
        None => "the URL given with --to".to_owned(),
    };
    let _ = write!(
        text,
        "\nMoved {} rows from {from} to {target} in {}. Every row was read back and is the same.\n\n\
         Next: set database-url to {setting}, and start the service. Keep data-dir ({}):\n\
         master.key there opens the secrets in the database, and files/ has the release files, unless\n\
         the settings master-key and files name others. {from} is unchanged. Do not\n\
         start a service on it again: it does not get what hubs upload from now on.\n",
        grouped(moved.rows),
        duration(took.as_secs()),
        config.data_dir.display(),
    );
    text
}

/// Shows the progress, until it is dropped.
async fn show(progress: watch::Receiver<Progress>) -> std::convert::Infallible {
    let is_terminal = std::io::stderr().is_terminal();
    let every = match is_terminal {
        true => REPLACED_EVERY,
        false => KEPT_EVERY,
    };
    // The speed is that of the current step in this call.
    let mut began = (Step::Counting, Instant::now(), 0);
    loop {
        let shown = progress.borrow().clone();
        if began.0 != shown.step {
            began = (shown.step, Instant::now(), shown.done);
        }
        let (_, since, before) = began;
        let line = line(&shown, shown.done.saturating_sub(before), since.elapsed());
        match is_terminal {
            true => replace_line(&line),
            false => say(line),
        }
        tokio::time::sleep(every).await;
    }
}

fn replace_line(line: &str) {
    let _ = write!(hub_logging::lines(), "\r\x1b[K{line}");
}

/// `done` is what was done in `time`.
fn line(shown: &Progress, done: u64, time: Duration) -> String {
    let (verb, things) = match shown.step {
        Step::Counting => return "counting the rows".to_owned(),
        Step::Copying => ("copied", "rows"),
        Step::Indexing => ("created", "indexes"),
        Step::Comparing => ("compared", "rows"),
    };
    let percent = shown.done.saturating_mul(100) / shown.all.max(1);
    let mut line = format!(
        "{verb} {} of {} {things} ({percent} %)",
        grouped(shown.done),
        grouped(shown.all)
    );
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if done > 0 && millis >= 1000 && shown.step != Step::Indexing {
        let per_second = (done.saturating_mul(1000) / millis).max(1);
        let left = shown.all.saturating_sub(shown.done) / per_second;
        let _ = write!(
            line,
            ", {} a second, about {} left",
            grouped(per_second),
            duration(left)
        );
    }
    if !shown.table.is_empty() {
        let _ = write!(line, ", now {}", shown.table);
    }
    line
}

fn duration(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs} s"),
        60..3600 => format!("{} min {} s", secs / 60, secs % 60),
        _ => format!("{} h {} min", secs / 3600, secs % 3600 / 60),
    }
}

/// The number with a comma after every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_how_far_it_is_and_how_long_it_takes() {
        let shown = Progress {
            step: Step::Copying,
            table: "ble_events".to_owned(),
            done: 2_500_000,
            all: 10_000_000,
        };
        assert_eq!(
            line(&shown, 500_000, Duration::from_secs(10)),
            "copied 2,500,000 of 10,000,000 rows (25 %), 50,000 a second, about 2 min 30 s left, \
             now ble_events"
        );
        // The first moment says nothing about the speed.
        assert_eq!(
            line(&shown, 0, Duration::ZERO),
            "copied 2,500,000 of 10,000,000 rows (25 %), now ble_events"
        );
        // An empty database is no division by zero.
        let empty = Progress {
            step: Step::Comparing,
            ..Progress::default()
        };
        assert_eq!(
            line(&empty, 0, Duration::ZERO),
            "compared 0 of 0 rows (0 %)"
        );
    }
}
