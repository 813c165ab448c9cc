//! The agent's own logs: to standard error as systemd and people read them.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{CommonArgs, LogFormat};
use crate::error::Failure;

/// Sets up logging. To be called once.
pub fn init(args: &CommonArgs) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&args.log)
        .map_err(|error| Failure::Config(format!("log: {error}; write it as info, or info,hub_agent::ble=debug")))?;
    let terminal = std::io::stderr().is_terminal();
    // The journal stamps each line itself.
    let journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let json = match args.log_format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => !terminal && !journal,
    };
    let text = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(terminal);
    let registry = tracing_subscriber::registry().with(filter);
    if json {
        registry.with(text.json().flatten_event(true)).init();
    } else if journal {
        registry.with(text.without_time()).init();
    } else {
        registry.with(text).init();
    }
    Ok(())
}
