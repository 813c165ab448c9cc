//! `hub-agent scan`: the advertisements around this hub, live. Scans beside a running agent without
//! disturbing it, sends nothing anywhere, and restores the terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use hub_adverts::Measurement;
use hub_protocol::ble::BleEvent;
use hub_protocol::telemetry::ScanState;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::reading::{Reading, printable, reading_of};
use super::scan_table::{Screen, Table};
use crate::ble::recognise::recognise;
use crate::ble::selection::{KnownDevice, Selection};
use crate::ble::{self, Heard, Radio, RadioConfig, Replay, Source};
use crate::config::{ScanArgs, ScanMode};
use crate::error::Failure;
use crate::scan_config;
use crate::signals;

const REFRESH: Duration = Duration::from_millis(500);

/// A line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    event: &'a BleEvent,
    /// The probable kind of the advertiser, to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'static str>,
    /// The key of the library's model, such as `ruuvi/ruuvitag`.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    measurements: Vec<Measurement>,
    #[serde(flatten)]
    known: Option<KnownDevice>,
}

pub async fn scan(args: ScanArgs) -> Result<(), Failure> {
    match listen(args).await {
        // A reader that has closed the pipe is not an error.
        Err(ScanError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| Failure::Failed(error.to_string())),
    }
}

#[derive(Debug, thiserror::Error)]
enum ScanError {
    #[error(transparent)]
    Radio(#[from] ble::RadioError),
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    #[error(
        "{0}\nno advertisements can be received; `hub-agent check` shows the cause and how to fix it"
    )]
    Blind(String),
}

async fn listen(args: ScanArgs) -> Result<(), ScanError> {
    let config = RadioConfig {
        adapters: args.adapter,
        mode: match (args.active, args.passive) {
            (true, _) => ScanMode::Active,
            (_, true) => ScanMode::Passive,
            _ => ScanMode::Auto,
        },
        dedup_window: Duration::ZERO,
        ..RadioConfig::default()
    };
    let source = match args.replay {
        Some(file) => Source::Replay(Replay {
            file,
            speed: args.replay_speed,
            repeat: false,
        }),
        None => Source::BlueZ,
    };
    let selection = scan_config::peek(&args.state_dir);
    let cancel = CancellationToken::new();
    let radio = ble::start(source, config, cancel.clone())?;
    if let Some(notice) = &radio.notice {
        hub_logging::say(format_args!("hub-agent: {notice}"));
    }
    let stop = stop_signal(args.duration);
    if !args.json && io::stdout().is_terminal() {
        show_table(radio, stop, selection.as_ref()).await
    } else {
        print_lines(radio, stop, args.json, selection.as_ref()).await
    }
}

/// Ends with a signal, or after the duration.
async fn stop_signal(duration_secs: Option<u64>) {
    let signalled = async {
        if signals::until_signalled().await.is_err() {
            std::future::pending().await
        }
    };
    let timed_out = async {
        match duration_secs {
            Some(secs) => tokio::time::sleep(Duration::from_secs(secs)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = signalled => {}
        () = timed_out => {}
    }
}

async fn print_lines(
    mut radio: Radio,
    stop: impl Future<Output = ()>,
    json: bool,
    selection: Option<&Selection>,
) -> Result<(), ScanError> {
    tokio::pin!(stop);
    let mut output = io::BufWriter::new(io::stdout().lock());
    let mut is_blind = std::pin::pin!(blindness(&radio));
    let mut has_heard = false;
    loop {
        tokio::select! {
            () = &mut stop => return Ok(()),
            reason = &mut is_blind, if !has_heard => return Err(ScanError::Blind(reason)),
            heard = radio.heard.next() => {
                let Some(heard) = heard else { return Ok(()) };
                has_heard = true;
                for event in events(heard) {
                    print_line(&mut output, &event, json, selection)?;
                }
                output.flush()?;
            }
        }
    }
}

fn print_line(
    output: &mut impl Write,
    event: &BleEvent,
    json: bool,
    selection: Option<&Selection>,
) -> io::Result<()> {
    let what = recognise(&event.payload);
    let reading = reading_of(&event.payload, selection);
    if json {
        let Reading {
            known,
            model,
            measurements,
            ..
        } = reading;
        serde_json::to_writer(
            &mut *output,
            &Line {
                event,
                what,
                model,
                measurements,
                known,
            },
        )?;
        return output.write_all(b"\n");
    }
    let advertisement = &event.payload;
    let rssi = advertisement
        .rssi
        .map_or("-".to_owned(), |rssi| rssi.to_string());
    let name = printable(advertisement.name.as_deref().unwrap_or_default());
    write!(
        output,
        "{} {} {rssi:>4} {:<27} {name}",
        event.observed_at,
        advertisement.address,
        what.unwrap_or("-")
    )?;
    match reading.described() {
        Some(described) => writeln!(output, "  {described}"),
        None => writeln!(output),
    }
}

fn events(heard: Vec<Heard>) -> impl Iterator<Item = BleEvent> {
    heard.into_iter().flat_map(|heard| match heard {
        Heard::Events(events) => events.parsed().collect(),
        // The radio of `scan` delivers no windows.
        Heard::Window(_) => Vec::new(),
    })
}

async fn show_table(
    mut radio: Radio,
    stop: impl Future<Output = ()>,
    selection: Option<&Selection>,
) -> Result<(), ScanError> {
    tokio::pin!(stop);
    let started = Instant::now();
    let mut table = Table::default();
    let mut screen = None;
    let mut refresh = tokio::time::interval(REFRESH);
    let mut is_blind = std::pin::pin!(blindness(&radio));
    let mut has_heard = false;
    loop {
        tokio::select! {
            () = &mut stop => break,
            reason = &mut is_blind, if !has_heard => return Err(ScanError::Blind(reason)),
            heard = radio.heard.next() => {
                let Some(heard) = heard else { break };
                has_heard = true;
                for event in events(heard) {
                    table.heard(&event, selection);
                }
            }
            _ = refresh.tick() => {
                let screen = match &mut screen {
                    Some(screen) => screen,
                    // The screen is not switched earlier: an error at the start must stay on the
                    // normal screen.
                    None if has_heard || started.elapsed() > REFRESH => screen.insert(Screen::enter()?),
                    None => continue,
                };
                screen.draw(&table.render(screen.size(), &status(&radio, started), ble::now()))?;
            }
        }
    }
    drop(screen);
    let line = status(&radio, started);
    writeln!(io::stdout(), "{} devices; {line}", table.len())?;
    Ok(())
}

fn status(radio: &Radio, started: Instant) -> String {
    let now = ble::now();
    let health = radio.health.report(now, now);
    let count = radio.health.advertisements();
    let secs = started.elapsed().as_secs();
    let rate = count as f64 / started.elapsed().as_secs_f64().max(0.001);
    let adapters = if health.len() == 1 {
        "adapter"
    } else {
        "adapters"
    };
    let mut line = format!(
        "{count} advertisements in {secs} s ({rate:.0}/s), {} {adapters}",
        health.len()
    );
    for (address, adapter) in &health {
        if let Some(reason) = &adapter.reason {
            line.push_str(&format!("; {address} is blind: {reason}"));
        }
    }
    line
}

/// Waits until it is certain that no adapter listens. Returns why.
fn blindness(radio: &Radio) -> impl Future<Output = String> + use<> {
    let (mut trouble, health) = (radio.trouble.clone(), radio.health.clone());
    async move {
        loop {
            let now = ble::now();
            let mut reasons = Vec::new();
            let adapters = health.report(now, now);
            for (address, adapter) in &adapters {
                if adapter.state == ScanState::Blind {
                    reasons.push(format!(
                        "{address}: {}",
                        adapter.reason.as_deref().unwrap_or_default()
                    ));
                }
            }
            let no_adapter = trouble.borrow_and_update().clone();
            if !reasons.is_empty() && reasons.len() == adapters.len() {
                return reasons.join("\n");
            }
            if let Some(reason) = no_adapter {
                return reason;
            }
            let _ = tokio::time::timeout(REFRESH, trouble.changed()).await;
        }
    }
}
