//! What the service and a script process say to each other: JSON, each message after its length in
//! four bytes. Whoever reads bounds the length first.

use std::borrow::Cow;
use std::io::{self, Read};

use hub_adverts::library::OwnedFrame;
use hub_adverts::{AddressType, advertisement::address_text};
use serde::{Deserialize, Serialize};

/// The longest message to a process. The service sends frames in parts that are far shorter.
pub const MAX_REQUEST_BYTES: usize = 32 * 1024 * 1024;
/// The longest answer for one frame.
pub const MAX_ANSWER_BYTES: usize = 256 * 1024;
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

/// A script to run on frames.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request<'a> {
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    pub frames: Cow<'a, [FrameText]>,
    /// Milliseconds after which no further frame is begun.
    pub within_millis: u64,
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

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Values(Vec<Said>),
    /// The script returned null.
    NotMine,
    /// For the author of the script.
    Failed(String),
    /// The script cannot be compiled; for its author.
    Refused(String),
    /// The time for all frames was over before it. The event is not at fault.
    NotRun(String),
}

/// A value as a script returns it, not checked yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    pub quantity: String,
    pub value: SaidValue,
    pub unit: Option<String>,
    pub index: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SaidValue {
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
            manufacturer_data: frame.manufacturer_data.iter().map(|(id, data)| (*id, hex::encode(data))).collect(),
            service_data: frame.service_data.iter().map(|(id, data)| (uuid_text(*id), hex::encode(data))).collect(),
            service_uuids: frame.service_uuids.iter().map(|id| uuid_text(*id)).collect(),
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
        return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    let mut content = vec![0; length(head, most)?];
    input.read_exact(&mut content)?;
    Ok(Some(content))
}

/// A text of bounded length.
pub fn clipped(text: &str, most_chars: usize) -> String {
    text.chars().take(most_chars).collect()
}
