//! Diagnostics of Home Assistant: those of its Bluetooth integration, whose manager has a history
//! of what each device advertised last, and those of others that have a Bluetooth scanner.
//! Histories are found wherever they stand. Everything else is passed over without being held.

mod entry;
mod lines;
mod python;
mod values;

use std::fmt;
use std::io::Read;

use hub_protocol::ble::Advertisement;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use self::entry::Entry;
use self::lines::Lines;
use crate::error::{Grouped, RecordingError};
use crate::input::Input;
use crate::report::{PassedOver, Report};

/// A document is read as a whole.
const LONGEST_DOCUMENT: u64 = 16 << 20;
const MOST_ADVERTISEMENTS: usize = 20_000;
/// Lists of advertisements: of the manager, and of a scanner.
const HISTORIES: [&str; 3] = [
    "all_history",
    "connectable_history",
    "discovered_devices_and_advertisement_data",
];

/// The reports of a document, in the order of time, and why it could not be read to its end.
pub struct Diagnostics {
    pub reports: Vec<Report>,
    pub passed: PassedOver,
    pub failure: Option<RecordingError>,
}

struct Timed {
    /// When it was received, of a clock that begins anywhere.
    time_secs: Option<f64>,
    advertisement: Advertisement,
    encrypted: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Histories {
    timed: Vec<Timed>,
    without_address: u64,
    are_there: bool,
}

/// Reads a document.
pub fn read(mut input: Input) -> Diagnostics {
    let mut histories = Histories::default();
    let failure = parse(&mut input, &mut histories).err();
    Diagnostics {
        passed: PassedOver {
            without_address: histories.without_address,
            ..PassedOver::default()
        },
        reports: reports(histories.timed),
        failure,
    }
}

fn parse(input: &mut Input, histories: &mut Histories) -> Result<(), RecordingError> {
    let part = input.part("document");
    let mut lines = Lines::new(input.take(LONGEST_DOCUMENT));
    let mut json = serde_json::Deserializer::from_reader(&mut lines);
    let walked = Walk(histories)
        .deserialize(&mut json)
        .and_then(|()| json.end());
    let offset = lines.offset();
    if offset >= LONGEST_DOCUMENT {
        let longest = Grouped(LONGEST_DOCUMENT);
        let fault = format!("more than {longest} bytes of JSON");
        return Err(RecordingError::malformed(offset, fault));
    }
    match walked {
        Ok(()) if histories.are_there => Ok(()),
        Ok(()) => {
            let fault = "JSON without advertisements; expected `all_history` of Home Assistant's \
                         Bluetooth diagnostics, or a trace with `t_ms` in each line";
            Err(RecordingError::malformed(0, fault))
        }
        Err(error) => Err(match error.classify() {
            Category::Eof => RecordingError::CutShort {
                offset,
                within: part.to_string(),
            },
            Category::Io => RecordingError::Unreadable {
                offset,
                error: error.into(),
            },
            Category::Syntax | Category::Data => {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default();
                let fault = format!("{message}; expected JSON of Home Assistant's diagnostics");
                let at = lines.offset_of(error.line(), error.column());
                RecordingError::malformed(at, fault)
            }
        }),
    }
}

/// The same advertisement stands in several histories, and counts once.
fn reports(mut timed: Vec<Timed>) -> Vec<Report> {
    // Those with a time come before those without.
    timed.sort_by(|one, other| {
        let time = |timed: &Timed| timed.time_secs.unwrap_or(f64::INFINITY);
        content(one)
            .cmp(&content(other))
            .then(time(one).total_cmp(&time(other)))
    });
    timed.dedup_by(|one, other| {
        content(one) == content(other)
            && (one.time_secs == other.time_secs || one.time_secs.is_none())
    });
    let times = timed.iter().filter_map(|one| one.time_secs);
    let first_secs = times.clone().fold(f64::INFINITY, f64::min);
    let last_secs = times.fold(f64::NEG_INFINITY, f64::max);
    let mut reports: Vec<Report> = timed
        .into_iter()
        .map(|one| Report {
            offset: 0,
            // Saturates, like every cast from a float.
            time_us: ((one.time_secs.unwrap_or(last_secs) - first_secs) * 1e6).round() as u64,
            received_at: None,
            is_scan_response: false,
            advertisement: one.advertisement,
            encrypted: one.encrypted,
        })
        .collect();
    reports.sort_by_key(|report| report.time_us);
    reports
}

/// What is compared: all but the time, the strength and the power.
fn content(one: &Timed) -> impl Ord {
    let heard = &one.advertisement;
    (
        &heard.address,
        &heard.name,
        &heard.manufacturer_data,
        &heard.service_data,
        &heard.service_uuids,
        &one.encrypted,
    )
}

/// Looks for histories in any JSON.
struct Walk<'h>(&'h mut Histories);

/// Reads one of them.
struct History<'h>(&'h mut Histories);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Walk(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<String>()? {
            match HISTORIES.contains(&key.as_str()) {
                true => members.next_value_seed(History(&mut *self.0))?,
                false => members.next_value_seed(Walk(&mut *self.0))?,
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for History<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for History<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of advertisements")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _redacted: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.are_there = true;
        while let Some(entry) = items.next_element::<Entry>()? {
            if self.0.timed.len() == MOST_ADVERTISEMENTS {
                let most = Grouped(MOST_ADVERTISEMENTS as u64);
                return Err(serde::de::Error::custom(format!(
                    "more than {most} advertisements"
                )));
            }
            let time_secs = entry.time_secs();
            match entry.advertisement() {
                Some((advertisement, encrypted)) => self.0.timed.push(Timed {
                    time_secs,
                    advertisement,
                    encrypted,
                }),
                None => self.0.without_address += 1,
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
