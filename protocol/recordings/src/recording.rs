//! A recording of any format, recognised by its first bytes.

use std::fmt;
use std::io::{Cursor, Read};

use crate::btsnoop::{self, Btsnoop};
use crate::capture::{Capture, Container};
use crate::error::RecordingError;
use crate::home_assistant;
use crate::input::Input;
use crate::pcap::{self, Pcap};
use crate::pcapng::{self, PcapNg};
use crate::report::{PassedOver, Report};
use crate::trace::Trace;

const ZSTD_MAGIC: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
/// The bytes that tell the format. The first line of a trace is shorter.
const HEAD: u64 = 8_192;
const KNOWN: &str =
    "btsnoop, pcap, pcapng, diagnostics of Home Assistant, or a trace of JSON lines";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Btsnoop,
    Pcap,
    PcapNg,
    HomeAssistant,
    Trace,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Btsnoop => "btsnoop",
            Self::Pcap => "pcap",
            Self::PcapNg => "pcapng",
            Self::HomeAssistant => "Home Assistant",
            Self::Trace => "trace",
        })
    }
}

/// The reports of a recording. After an error there are no more.
pub struct Recording {
    format: Format,
    reports: Reports,
}

enum Reports {
    Capture(Box<Capture>),
    Trace(Box<Trace>),
    Stored {
        reports: std::vec::IntoIter<Report>,
        failure: Option<RecordingError>,
        passed: PassedOver,
    },
    Ended(PassedOver),
}

impl Recording {
    /// Opens a recording, plain or compressed with zstd. Offsets are those of its plain form.
    pub fn open(reader: impl Read + Send + 'static) -> Result<Self, RecordingError> {
        let (head, reader) = peeked(Box::new(reader))?;
        let (head, reader) = match head.starts_with(ZSTD_MAGIC) {
            true => {
                let decoder = zstd::Decoder::new(reader).map_err(unreadable)?;
                peeked(Box::new(decoder))?
            }
            false => (head, reader),
        };
        let input = Input::new(reader);
        let is_json = head.trim_ascii_start().first() == Some(&b'{');
        let (format, container) = if head.starts_with(btsnoop::MAGIC) {
            (Format::Btsnoop, Container::Btsnoop(Btsnoop::open(input)?))
        } else if let Some(magic) = pcap::magic(&head) {
            (Format::Pcap, Container::Pcap(Pcap::open(input, magic)?))
        } else if head.starts_with(pcapng::MAGIC) {
            (Format::PcapNg, Container::PcapNg(PcapNg::new(input)))
        } else if is_json && !is_trace(&head) {
            let read = home_assistant::read(input);
            return Ok(Self {
                format: Format::HomeAssistant,
                reports: Reports::Stored {
                    reports: read.reports.into_iter(),
                    failure: read.failure,
                    passed: read.passed,
                },
            });
        } else if is_json || head.trim_ascii().is_empty() {
            return Ok(Self {
                format: Format::Trace,
                reports: Reports::Trace(Box::new(Trace::new(input))),
            });
        } else {
            let first = hex::encode(head.get(..8).unwrap_or(&head));
            let fault = format!("{first} begins no recording; expected {KNOWN}");
            return Err(RecordingError::malformed(0, fault));
        };
        Ok(Self {
            format,
            reports: Reports::Capture(Box::new(Capture::new(container))),
        })
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// What was passed over until now.
    pub fn passed_over(&self) -> PassedOver {
        match &self.reports {
            Reports::Capture(capture) => capture.passed_over(),
            Reports::Trace(_) => PassedOver::default(),
            Reports::Stored { passed, .. } | Reports::Ended(passed) => *passed,
        }
    }
}

impl Iterator for Recording {
    type Item = Result<Report, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match &mut self.reports {
            Reports::Capture(capture) => capture.next(),
            Reports::Trace(trace) => trace.next(),
            Reports::Stored {
                reports, failure, ..
            } => match reports.next() {
                Some(report) => Ok(Some(report)),
                None => failure.take().map_or(Ok(None), Err),
            },
            Reports::Ended(_) => Ok(None),
        };
        if !matches!(next, Ok(Some(_))) {
            self.reports = Reports::Ended(self.passed_over());
        }
        next.transpose()
    }
}

/// A reader that still has the bytes that were read of it.
type Whole = Box<dyn Read + Send>;

/// The first bytes of a reader.
fn peeked(mut reader: Whole) -> Result<(Vec<u8>, Whole), RecordingError> {
    let mut head = Vec::new();
    Read::by_ref(&mut reader)
        .take(HEAD)
        .read_to_end(&mut head)
        .or_else(|error| match error.kind() {
            // What a frame that is cut short has is read, and its end is found again.
            std::io::ErrorKind::UnexpectedEof => Ok(head.len()),
            _ => Err(unreadable(error)),
        })?;
    let whole = Cursor::new(head.clone()).chain(reader);
    Ok((head, Box::new(whole)))
}

fn unreadable(error: std::io::Error) -> RecordingError {
    RecordingError::Unreadable { offset: 0, error }
}

/// Whether the first line has the time that each line of a trace has.
fn is_trace(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
    let wanted = br#""t_ms""#;
    line.windows(wanted.len()).any(|window| window == wanted)
}
