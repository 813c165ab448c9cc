//! `hub catalog test`: what the library of device models makes of a recording, frame by frame.
//! Needs no service.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use hub_adverts::advertisement::frame_of;
use hub_adverts::builtin::noise;
use hub_adverts::catalog::{Advertisers, Catalog, Status};
use hub_adverts::company::company_name;
use hub_adverts::encrypted_data::KeyMaterial;
use hub_adverts::library::whole_library;
use hub_adverts::{Frame, Measurement};
use hub_protocol::Timestamp;
use hub_protocol::ble::{Advertisement, Payload};
use hub_recordings::{PassedOver, Recording, Report, parse_advertising_data};
use serde::Serialize;
use serde_json::{Value, json};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::failure::Failure;
use crate::global::Global;
use crate::terminal::{print, print_json_line};
use crate::text::printable;

pub const CATALOG_HELP: &str = "\
Requires no service and no login: the library is part of this program. Exit code 0 if the
recording was read to its end, else 1.

Examples:
  hub catalog test btsnoop_hci.log
  hub catalog test capture.pcapng --all
  hub catalog test diagnostics.json --json | jq 'select(.verdict == \"UNKNOWN\")'";

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Show what the library decodes in a recording
    #[command(after_help = CATALOG_HELP)]
    Test(CatalogTestOptions),
}

#[derive(Debug, clap::Args)]
pub struct CatalogTestOptions {
    /// Recording: btsnoop, pcap or pcapng, diagnostics of Home Assistant, or a trace of JSON lines;
    /// `-` for standard input
    pub file: PathBuf,
    /// Show each frame, instead of each payload of an address once
    #[arg(long)]
    pub all: bool,
    /// Key of encrypted advertising data (AD type 0x31): 48 hexadecimal digits, the session key and
    /// the initialization vector, as the characteristic Key Material has them
    #[arg(
        long,
        value_name = "HEX",
        env = "HUB_KEY_MATERIAL",
        hide_env_values = true
    )]
    pub key_material: Option<KeyMaterial>,
}

/// The columns of a line, and those before what was read.
const COLUMNS: usize = 100;
const INDENT: usize = 13;
/// The bytes of a payload that are shown.
const SHOWN_BYTES: usize = 24;

pub fn run(global: &Global, command: CatalogCommand) -> Result<(), Failure> {
    let CatalogCommand::Test(options) = command;
    test(global, &options).map_err(|failure| match failure.message.is_empty() {
        true => failure,
        false => failure.about(&options.file.to_string_lossy()),
    })
}

fn test(global: &Global, options: &CatalogTestOptions) -> Result<(), Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
    let reader = open(&options.file).map_err(|error| refused(&error))?;
    let mut recording = Recording::open(reader).map_err(|error| refused(&error))?;
    let (catalog, mut advertisers) = (whole_library(), Advertisers::default());
    let mut summary = Summary::default();
    let mut failure = None;
    for report in recording.by_ref() {
        let mut report = match report {
            Ok(report) => report,
            Err(error) => {
                failure = Some(printable(&error.to_string()));
                break;
            }
        };
        let sealed = unseal(&mut report, options.key_material.as_ref());
        let judged = Judged::of(catalog, &mut advertisers, &report.advertisement, sealed);
        let is_new = summary.add(&report.advertisement, &judged);
        if !is_new && !options.all {
            continue;
        }
        summary.shown += 1;
        match global.json {
            true => print_json_line(&serde_json::to_value(line(&report, &judged))?)?,
            false => print(&text(&report, &judged))?,
        }
    }
    let passed = recording.passed_over();
    match global.json {
        true => print_json_line(&json!({"summary": summary.json(passed)}))?,
        false => print(&summary.text(passed))?,
    }
    failure.map_or(Ok(()), |failure| Err(Failure::failed(failure)))
}

/// Adds what is encrypted in a report to its advertisement. Returns why it cannot be read.
fn unseal(report: &mut Report, key: Option<&KeyMaterial>) -> Option<&'static str> {
    let mut sealed = None;
    for value in &report.encrypted {
        match key.map(|key| key.decrypt(value)) {
            // There is nothing encrypted within what was.
            Some(Some(data)) => drop(parse_advertising_data(&data, &mut report.advertisement)),
            Some(None) => sealed = Some("its encrypted data is of another key, or was damaged"),
            None => sealed = Some("it has encrypted data; give its key with --key-material"),
        }
    }
    sealed
}

fn open(file: &Path) -> std::io::Result<Box<dyn Read + Send>> {
    Ok(match file.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(file)?),
    })
}

/// The outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Verdict {
    Read,
    /// A model fits, and its decoder cannot read the frame.
    Recognised,
    Unknown,
}

struct Judged {
    verdict: Verdict,
    /// The key of the model.
    model: Option<&'static str>,
    measurements: Vec<Measurement>,
    /// Why there are no measurements.
    reason: Option<String>,
}

impl Judged {
    /// Reads a frame as the service does, with what was heard of its advertiser before.
    fn of(
        catalog: &'static Catalog,
        advertisers: &mut Advertisers,
        advertisement: &Advertisement,
        sealed: Option<&'static str>,
    ) -> Self {
        frame_of(advertisement).with(|frame| {
            let mut hasher = DefaultHasher::new();
            frame.address.hash(&mut hasher);
            let before = advertisers.note(hasher.finish(), frame);
            let frame = &before.complete(frame);
            let mut measurements = Vec::new();
            let read = catalog.read(frame, &mut measurements);
            let reason = match read.status {
                Status::Unmatched => Some(sealed.map_or_else(|| sender(frame), str::to_owned)),
                Status::Decoded if measurements.is_empty() => {
                    Some("the frame has no values".to_owned())
                }
                _ => read.unread_reason().map(str::to_owned),
            };
            Self {
                verdict: match read.status {
                    Status::Decoded => Verdict::Read,
                    Status::Matched | Status::Failed => Verdict::Recognised,
                    Status::Unmatched => Verdict::Unknown,
                },
                model: read.model.map(|model| model.name.as_str()),
                measurements,
                reason,
            }
        })
    }

    /// The content as one line of text.
    fn text(&self, advertisement: &Advertisement) -> String {
        let values: Vec<String> = self.measurements.iter().map(ToString::to_string).collect();
        let mut text = match (self.model, &self.reason) {
            (Some(model), None) => format!("{model}: {}", values.join(", ")),
            (Some(model), Some(reason)) => format!("{model}: {reason}"),
            (None, reason) => format!("unknown: {}", reason.as_deref().unwrap_or_default()),
        };
        if self.measurements.is_empty() {
            for payload in payloads(advertisement) {
                text.push_str(", ");
                text.push_str(&payload);
            }
        }
        printable(&text)
    }
}

/// Who may have sent a frame that no model fits.
fn sender(frame: &Frame<'_>) -> String {
    if let Some(noise) = noise::of(frame) {
        return format!("{}, without values", noise.name());
    }
    let companies = frame.manufacturer_data.iter().map(|(id, _)| *id);
    match companies.filter_map(company_name).next() {
        Some(company) => format!("no model of {company} matches"),
        None => "no model matches".to_owned(),
    }
}

fn payloads(advertisement: &Advertisement) -> impl Iterator<Item = String> {
    let shown = |Payload(data): &Payload| {
        let digits = hex::encode(data.get(..SHOWN_BYTES).unwrap_or(data));
        match data.len() > SHOWN_BYTES {
            true => format!("{digits}… ({} bytes)", data.len()),
            false => digits,
        }
    };
    let companies = advertisement.manufacturer_data.iter();
    let companies = companies.map(move |(id, data)| format!("manufacturer {id} {}", shown(data)));
    let services = advertisement.service_data.iter();
    companies.chain(services.map(move |(id, data)| format!("service {id} {}", shown(data))))
}

/// Two lines, or more where they do not fit.
fn text(report: &Report, judged: &Judged) -> String {
    let heard = &report.advertisement;
    let rssi = heard
        .rssi
        .map_or_else(|| "-".to_owned(), |dbm| format!("{dbm} dBm"));
    let seconds = report.time_us as f64 / 1e6;
    let name = printable(heard.name.as_deref().unwrap_or_default());
    let first = format!("{seconds:>9.3} s  {}  {rssi:>8}  {name}", heard.address);
    let mut lines = wrapped(&first, 44);
    lines.push_str(&wrapped(
        &format!("{}{}", " ".repeat(INDENT), judged.text(heard)),
        INDENT + 2,
    ));
    lines
}

/// Breaks a text at spaces, and within words that are too long, with an indent after each break.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut rest = text.trim_end();
    let mut space = COLUMNS;
    while rest.width() > space {
        let mut columns = 0;
        let fits = rest.char_indices().find(|(_, char)| {
            columns += char.width().unwrap_or(0);
            columns > space
        });
        let most = fits.map_or(rest.len(), |(at, _)| at);
        let line = rest.get(..most).unwrap_or(rest);
        // The indent of the text is no place for a break.
        let begin = line.len() - line.trim_start().len();
        let at = line.rfind(' ').filter(|at| *at > begin).unwrap_or(most);
        let (line, after) = rest.split_at(at);
        lines.push_str(line.trim_end());
        lines.push('\n');
        lines.push_str(&" ".repeat(indent));
        rest = after.trim_start();
        space = COLUMNS - indent;
    }
    lines.push_str(rest);
    lines.push('\n');
    lines
}

/// A line of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    offset: u64,
    time_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_at: Option<Timestamp>,
    is_scan_response: bool,
    #[serde(flatten)]
    advertisement: &'a Advertisement,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    measurements: &'a [Measurement],
}

fn line<'a>(report: &'a Report, judged: &'a Judged) -> Line<'a> {
    Line {
        offset: report.offset,
        time_us: report.time_us,
        received_at: report.received_at,
        is_scan_response: report.is_scan_response,
        advertisement: &report.advertisement,
        verdict: judged.verdict,
        model: judged.model,
        reason: judged.reason.as_deref(),
        measurements: &judged.measurements,
    }
}

#[derive(Default)]
struct Summary {
    frames: u64,
    shown: u64,
    read: u64,
    recognised: u64,
    unknown: u64,
    addresses: HashSet<String>,
    /// Hashes of addresses with what they sent.
    payloads: HashSet<u64>,
}

impl Summary {
    /// Counts a frame. Returns whether its address has not sent the same before.
    fn add(&mut self, heard: &Advertisement, judged: &Judged) -> bool {
        self.frames += 1;
        *match judged.verdict {
            Verdict::Read => &mut self.read,
            Verdict::Recognised => &mut self.recognised,
            Verdict::Unknown => &mut self.unknown,
        } += 1;
        if !self.addresses.contains(&heard.address) {
            self.addresses.insert(heard.address.clone());
        }
        let mut hasher = DefaultHasher::new();
        heard.address.hash(&mut hasher);
        heard.name.hash(&mut hasher);
        heard.manufacturer_data.hash(&mut hasher);
        heard.service_data.hash(&mut hasher);
        heard.service_uuids.hash(&mut hasher);
        self.payloads.insert(hasher.finish())
    }

    fn text(&self, passed: PassedOver) -> String {
        let count = |number: u64, one: &str, many: &str| match number {
            1 => format!("1 {one}"),
            _ => format!("{number} {many}"),
        };
        let frames = count(self.frames, "frame", "frames");
        let addresses = count(self.addresses.len() as u64, "address", "addresses");
        let mut text = format!(
            "{frames} of {addresses}, {} shown: {} decoded, {} recognised but not decoded, {} unknown\n",
            self.shown, self.read, self.recognised, self.unknown
        );
        let losses = passed.to_string();
        if !losses.is_empty() {
            text.push_str(&format!("Skipped packets: {losses}\n"));
        }
        text
    }

    fn json(&self, passed: PassedOver) -> Value {
        json!({
            "frames": self.frames, "addresses": self.addresses.len(), "shown": self.shown,
            "read": self.read, "recognised": self.recognised, "unknown": self.unknown,
            "passedOver": {
                "other": passed.other, "badCrc": passed.bad_crc, "malformed": passed.malformed,
                "incomplete": passed.incomplete, "withoutAddress": passed.without_address,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_in_the_columns() {
        for text in [
            "short".to_owned(),
            "word ".repeat(60),
            "7".repeat(250),
            format!("{}{}", " ".repeat(13), "7".repeat(250)),
            "日本 ".repeat(60),
            "日".repeat(130),
        ] {
            let lines = wrapped(&text, 15);
            let solid = |text: &str| text.replace([' ', '\n'], "");
            assert_eq!(solid(&lines), solid(&text));
            for line in lines.lines() {
                assert!(line.width() <= COLUMNS, "{line}");
            }
        }
    }
}
