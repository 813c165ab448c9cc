//! The agent's own logs: to standard error, and through the spool to the service. The entries for
//! the service are bounded in length, number and rate, so that logging about a failing upload
//! cannot feed itself.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hub_protocol::check::colours;
use hub_protocol::telemetry::LogEntry;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::clock::machine_now;
use crate::config::{LogArgs, LogFormat, ShipLogs};
use crate::error::Failure;
use crate::spool::{Kind, Spool, SpoolStopped};

/// The most entries that wait for the spool; further ones are counted and dropped.
const MAX_WAITING: usize = 200;

/// The waiting entries are moved to the spool this often: with the bound above, that is the maximum
/// rate.
const DELIVER_EVERY: Duration = Duration::from_secs(10);

const MAX_TEXT_BYTES: usize = 2_048;
const MAX_FIELDS: usize = 16;

/// Log entries on their way to the service.
#[derive(Clone, Default)]
pub struct Outbox(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    entries: VecDeque<LogEntry>,
    dropped: u64,
}

/// Sets up logging. Call it once.
pub fn init(args: &LogArgs) -> Result<Outbox, Failure> {
    // The library logs at every attempt a failure that the agent logs once.
    let filter: Targets = format!("rustls_platform_verifier=off,{}", args.log)
        .parse()
        .map_err(|error| Failure::Config(format!("log: {error}")))?;
    let outbox = Outbox::default();
    let shipped = outbox.clone().with_filter(match args.ship_logs {
        ShipLogs::Off => LevelFilter::OFF,
        ShipLogs::Error => LevelFilter::ERROR,
        ShipLogs::Warn => LevelFilter::WARN,
        ShipLogs::Info => LevelFilter::INFO,
        ShipLogs::Debug => LevelFilter::DEBUG,
    });
    tracing_subscriber::registry()
        .with(stderr(args.log_format).with_filter(filter))
        .with(shipped)
        .init();
    Ok(outbox)
}

fn stderr(format: LogFormat) -> Box<dyn Layer<Registry> + Send + Sync> {
    let terminal = std::io::stderr().is_terminal();
    // The journal adds the time to each line.
    let journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let text = tracing_subscriber::fmt::layer()
        .with_writer(hub_logging::lines)
        .with_ansi(colours(terminal));
    match format {
        LogFormat::Json => text.json().flatten_event(true).boxed(),
        LogFormat::Auto if !terminal && !journal => text.json().flatten_event(true).boxed(),
        LogFormat::Auto | LogFormat::Text if journal => text.without_time().boxed(),
        LogFormat::Auto | LogFormat::Text => text.boxed(),
    }
}

impl Outbox {
    /// Moves the waiting entries to the spool.
    pub async fn deliver(&self, spool: &Spool) -> Result<(), SpoolStopped> {
        let Waiting { entries, dropped } =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for entry in entries {
            spool.record(Kind::Logs, &entry).await?;
        }
        if dropped > 0 {
            let entry = LogEntry {
                at: machine_now(),
                level: Level::WARN.to_string(),
                target: module_path!().to_owned(),
                message: "log entries came too fast and were dropped".to_owned(),
                fields: BTreeMap::from([("count".to_owned(), Value::from(dropped))]),
            };
            spool.record(Kind::Logs, &entry).await?;
        }
        Ok(())
    }

    /// Delivers regularly, until the spool has stopped.
    pub async fn ship(&self, spool: &Spool) -> Result<(), SpoolStopped> {
        loop {
            tokio::time::sleep(DELIVER_EVERY).await;
            self.deliver(spool).await?;
        }
    }
}

impl<S: Subscriber> Layer<S> for Outbox {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        // Only the agent's own entries, not those of libraries.
        if !metadata.target().starts_with("hub_agent") {
            return;
        }
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.entries.len() >= MAX_WAITING {
            waiting.dropped += 1;
            return;
        }
        let mut entry = LogEntry {
            at: machine_now(),
            level: metadata.level().to_string(),
            target: metadata.target().to_owned(),
            message: String::new(),
            fields: BTreeMap::new(),
        };
        event.record(&mut Fields(&mut entry));
        waiting.entries.push_back(entry);
    }
}

/// Copies an event's fields into an entry.
struct Fields<'a>(&'a mut LogEntry);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        if self.0.fields.len() < MAX_FIELDS {
            self.0.fields.insert(field.name().to_owned(), value);
        }
    }

    fn put_text(&mut self, field: &Field, text: &str) {
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        let text = text.get(..end).unwrap_or_default().to_owned();
        if field.name() == "message" {
            self.0.message = text;
        } else {
            self.put(field, Value::String(text));
        }
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_text(field, &format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, value);
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::from(value));
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::from(value));
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Value::from(value));
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::from(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_bounded_entries() {
        let outbox = Outbox::default();
        let subscriber =
            tracing_subscriber::registry().with(outbox.clone().with_filter(LevelFilter::WARN));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!("too quiet");
            tracing::warn!(target: "reqwest::connect", "not ours");
            tracing::error!(attempts = 3, reason = "ä".repeat(5_000), "it {}", "failed");
            for _ in 0..MAX_WAITING {
                tracing::warn!("again");
            }
        });
        let waiting = outbox.0.lock().unwrap();
        assert_eq!((waiting.entries.len(), waiting.dropped), (MAX_WAITING, 1));
        let first = &waiting.entries[0];
        assert_eq!(
            (first.level.as_str(), first.message.as_str()),
            ("ERROR", "it failed")
        );
        assert_eq!(first.fields["attempts"], 3);
        assert_eq!(
            first.fields["reason"].as_str().unwrap().len(),
            MAX_TEXT_BYTES
        );
    }
}
