//! What the service and a script process say to each other: JSON, each message after its length in
//! four bytes. Whoever reads bounds the length first.

use std::borrow::Cow;
use std::io::{self, Read};

use hub_adverts::library::OwnedFrame;
use hub_adverts::{AddressType, advertisement::address_text};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The longest message to a process. The service sends calls in parts that are far shorter.
pub const MAX_REQUEST_BYTES: usize = 32 * 1024 * 1024;
/// Calls of one message.
const MAX_CALLS: usize = 1000;
/// About the bytes of the events of one message: one more may go beyond.
const PART_BYTES: usize = 4 * 1024 * 1024;
/// The longest answer for one frame or event.
pub const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of an event that a script returns, and of all that it returns for one event.
pub const MAX_EVENT_BYTES: usize = 256 * 1024;
pub const MAX_EVENTS_BYTES: usize = 1024 * 1024;
/// Bytes of all answers to one message.
pub const MAX_BATCH_BYTES: usize = 32 * 1024 * 1024;
/// Events that a script may return for an event.
pub const MAX_EVENTS: usize = 100;
/// Objects and lists in each other in an event that a script returns.
pub const MAX_DEPTH: usize = 32;
/// Why a call was not begun.
pub const TIME_OVER: &str = "the time for the scripts was over";
/// Values that a script may return for a frame.
pub const MAX_VALUES: usize = 64;
/// Characters of a name, a unit or a text that a script returns.
pub const MAX_TEXT_CHARS: usize = 200;
/// Characters of a message to the author of a script.
pub const MAX_MESSAGE_CHARS: usize = 400;

/// The first message of a process, once it is confined.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Whether the kernel filters its system calls.
    pub is_filtered: bool,
}

/// A script to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request<'a> {
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    pub calls: Calls<'a>,
    /// Milliseconds after which no further call is begun.
    pub within_millis: u64,
}

/// Which function of the script is called, and with what, one call each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Calls<'a> {
    /// `decode(frame)`
    Decode(Cow<'a, [FrameText]>),
    /// `process(event)`
    Process(Cow<'a, [Box<RawValue>]>),
}

/// A function that a script has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Decode,
    Process,
}

impl Entry {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Process => "process",
        }
    }

    /// The signature, with its parameter.
    pub const fn form(self) -> &'static str {
        match self {
            Self::Decode => "decode(frame)",
            Self::Process => "process(event)",
        }
    }
}

impl Calls<'_> {
    pub const fn entry(&self) -> Entry {
        match self {
            Self::Decode(_) => Entry::Decode,
            Self::Process(_) => Entry::Process,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Decode(frames) => frames.len(),
            Self::Process(events) => events.len(),
        }
    }

    /// The calls from a position on, up to the size of a message and `most` of them. None if none
    /// are left.
    pub fn part(&self, from: usize, most: usize) -> Option<Calls<'_>> {
        let part = match self {
            Self::Decode(frames) => {
                Calls::Decode(Cow::Borrowed(first(frames.get(from..)?, most, |_| 0)))
            }
            Self::Process(events) => {
                Calls::Process(Cow::Borrowed(first(events.get(from..)?, most, |event| {
                    event.get().len()
                })))
            }
        };
        (part.len() > 0).then_some(part)
    }
}

/// The first items, up to the size of a message and `most` of them.
fn first<T>(all: &[T], most: usize, bytes: impl Fn(&T) -> usize) -> &[T] {
    let mut left = PART_BYTES;
    let fits = |one: &&T| {
        let is_fitting = left > 0;
        left = left.saturating_sub(bytes(one));
        is_fitting
    };
    let count = all
        .iter()
        .take(MAX_CALLS.min(most))
        .take_while(fits)
        .count();
    all.get(..count).unwrap_or(all)
}

/// A frame. Payloads are hexadecimal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FrameText {
    pub address: Option<String>,
    /// `public` or `random`.
    pub address_type: Option<String>,
    pub name: Option<String>,
    pub manufacturer_data: Vec<(u16, String)>,
    pub service_data: Vec<(String, String)>,
    pub service_uuids: Vec<String>,
}

/// The outcome of a frame or an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Values(Vec<Returned>),
    /// The events; none if the script returned null.
    Events(Vec<Map<String, Value>>),
    /// The script returned null.
    NotMine,
    /// A message for the author of the script.
    Failed(String),
    /// The script cannot be compiled; for its author.
    Refused(String),
    /// The time for all calls was over before it. The event is not at fault.
    NotRun(String),
}

/// A value as a script returns it, not checked yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Returned {
    pub quantity: String,
    pub value: ReturnedValue,
    pub unit: Option<String>,
    pub index: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ReturnedValue {
    Number(f64),
    Text(String),
    Bool(bool),
}

impl FrameText {
    pub fn of(frame: &OwnedFrame) -> Self {
        let address_type = frame.address_type.map(|kind| match kind {
            AddressType::Public => "public".to_owned(),
            AddressType::Random => "random".to_owned(),
        });
        Self {
            address: frame.address.map(address_text),
            address_type,
            name: frame.name.clone(),
            manufacturer_data: frame
                .manufacturer_data
                .iter()
                .map(|(id, data)| (*id, hex::encode(data)))
                .collect(),
            service_data: frame
                .service_data
                .iter()
                .map(|(id, data)| (uuid_text(*id), hex::encode(data)))
                .collect(),
            service_uuids: frame
                .service_uuids
                .iter()
                .map(|id| uuid_text(*id))
                .collect(),
        }
    }
}

/// Four digits of a 16-bit UUID, else all.
fn uuid_text(id: uuid::Uuid) -> String {
    let short = u16::try_from(id.as_u128() >> 96).unwrap_or_default();
    match hub_adverts::frame::uuid16(short) == id {
        true => format!("{short:04x}"),
        false => id.to_string(),
    }
}

/// The message with its length before it.
pub fn message(content: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, content)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    if let Some(head) = bytes.first_chunk_mut::<4>() {
        *head = length.to_le_bytes();
    }
    Ok(bytes)
}

/// The length of the message that follows, if it is bearable.
pub fn length(head: [u8; 4], most: usize) -> io::Result<usize> {
    usize::try_from(u32::from_le_bytes(head))
        .ok()
        .filter(|length| *length <= most)
        .ok_or_else(|| io::Error::other("too long"))
}

/// The next message; None at the end.
pub fn read(input: &mut impl Read, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 4];
    if let Err(error) = input.read_exact(&mut head) {
        return if error.kind() == io::ErrorKind::UnexpectedEof {
            Ok(None)
        } else {
            Err(error)
        };
    }
    let mut content = vec![0; length(head, most)?];
    input.read_exact(&mut content)?;
    Ok(Some(content))
}

/// A text of bounded length.
pub fn clipped(text: &str, most_chars: usize) -> String {
    text.chars().take(most_chars).collect()
}
