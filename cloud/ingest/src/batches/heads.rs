//! The heads of a batch's events: what is known of each beside its texts, in a few bytes. Lists are
//! narrowed and counted by heads alone.
//!
//! The first byte is the version, 1. Each event follows with its flags and, where the flags say so,
//! the members in the order of [`Head`]. Numbers are LEB128, seven bits a byte from the lowest;
//! differences are folded first (0, -1, 1, -2 ...). Times are differences to the last one before,
//! and an observation to the event's own id: both are small. A device is written as it is, so that
//! the database finds the batches that have it ([`device_bytes`]).

use hub_protocol::Timestamp;

use crate::ProcessingStatus;

const VERSION: u8 = 1;

const STATUS: u8 = 0b111;
const HAS_DEVICE: u8 = 1 << 3;
const HAS_OBSERVATION: u8 = 1 << 4;
const HAS_WINDOW: u8 = 1 << 5;
const IS_REPROCESSED: u8 = 1 << 6;
const HAS_READING: u8 = 1 << 7;

/// What is known of an event beside its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub processing_status: ProcessingStatus,
    /// Bytes of the JSON object as the hub sent it.
    pub event_bytes: usize,
    /// Bytes of what was read from it.
    pub reading_bytes: Option<usize>,
    pub device_instance_id: Option<i64>,
    /// The id of the first reception of the same frame; None of the first.
    pub observation_id: Option<i64>,
    /// The window of a windowed upload.
    pub window: Option<(Timestamp, Timestamp)>,
    /// When the event was last reprocessed with a change.
    pub reprocessed_at: Option<Timestamp>,
}

impl Head {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        self.event_bytes + self.reading_bytes.unwrap_or(0)
    }
}

/// The code of a status, also the place of its bit in [`status_bits`].
const fn code(status: ProcessingStatus) -> u8 {
    match status {
        ProcessingStatus::Received => 0,
        ProcessingStatus::Matched => 1,
        ProcessingStatus::Unmatched => 2,
        ProcessingStatus::Decoded => 3,
        ProcessingStatus::Failed => 4,
    }
}

fn status_of(code: u8) -> Option<ProcessingStatus> {
    ProcessingStatus::ALL
        .into_iter()
        .find(|status| self::code(*status) == code)
}

/// A bit for each status.
pub fn status_bits(statuses: impl IntoIterator<Item = ProcessingStatus>) -> i64 {
    statuses
        .into_iter()
        .fold(0, |bits, status| bits | 1 << code(status))
}

/// How heads name a device. Heads without these bytes have no event of it; heads with them may.
pub(super) fn device_bytes(device_instance_id: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_number(device_instance_id.cast_unsigned(), &mut bytes);
    bytes
}

/// Writes the heads of events with ids from `first_id` on.
pub fn encode(first_id: i64, heads: &[Head]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + heads.len() * 12);
    bytes.push(VERSION);
    let mut last_time = 0;
    let mut id = first_id;
    for head in heads {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        bytes.push(
            code(head.processing_status)
                | flag(head.device_instance_id.is_some(), HAS_DEVICE)
                | flag(head.observation_id.is_some(), HAS_OBSERVATION)
                | flag(head.window.is_some(), HAS_WINDOW)
                | flag(head.reprocessed_at.is_some(), IS_REPROCESSED)
                | flag(head.reading_bytes.is_some(), HAS_READING),
        );
        write_number(head.event_bytes as u64, &mut bytes);
        if let Some(reading_bytes) = head.reading_bytes {
            write_number(reading_bytes as u64, &mut bytes);
        }
        if let Some(device) = head.device_instance_id {
            write_number(device.cast_unsigned(), &mut bytes);
        }
        if let Some(mut observation_id) = head.observation_id {
            write_difference(id, &mut observation_id, &mut bytes);
        }
        let times = head.window.map(|(start, end)| [start, end]);
        for time in times.into_iter().flatten().chain(head.reprocessed_at) {
            write_difference(time.as_micros(), &mut last_time, &mut bytes);
        }
        id = id.wrapping_add(1);
    }
    bytes
}

/// Reads what [`encode`] wrote; None of anything else.
pub fn decode(first_id: i64, bytes: &[u8]) -> Option<Vec<Head>> {
    let (version, mut rest) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    // A head has four bytes or more, with its device and its reading.
    let mut heads = Vec::with_capacity(rest.len() / 4);
    let mut last_time = 0;
    let mut id = first_id;
    while let Some((flags, after)) = rest.split_first() {
        rest = after;
        let has = |flag: u8| flags & flag != 0;
        let event_bytes = usize::try_from(read_number(&mut rest)?).ok()?;
        let reading_bytes = match has(HAS_READING) {
            true => Some(usize::try_from(read_number(&mut rest)?).ok()?),
            false => None,
        };
        let device_instance_id = match has(HAS_DEVICE) {
            true => Some(read_number(&mut rest)?.cast_signed()),
            false => None,
        };
        let observation_id = match has(HAS_OBSERVATION) {
            true => Some(id.wrapping_sub(read_difference(&mut rest, &mut 0)?)),
            false => None,
        };
        let mut time = || read_difference(&mut rest, &mut last_time).map(Timestamp::from_micros);
        let window = match has(HAS_WINDOW) {
            true => Some((time()?, time()?)),
            false => None,
        };
        let reprocessed_at = match has(IS_REPROCESSED) {
            true => Some(time()?),
            false => None,
        };
        heads.push(Head {
            processing_status: status_of(flags & STATUS)?,
            event_bytes,
            reading_bytes,
            device_instance_id,
            observation_id,
            window,
            reprocessed_at,
        });
        id = id.wrapping_add(1);
    }
    Some(heads)
}

/// Writes how far `value` is from `last`, which it becomes.
fn write_difference(value: i64, last: &mut i64, bytes: &mut Vec<u8>) {
    let difference = value.wrapping_sub(*last);
    *last = value;
    write_number(
        ((difference << 1) ^ (difference >> 63)).cast_unsigned(),
        bytes,
    );
}

fn read_difference(bytes: &mut &[u8], last: &mut i64) -> Option<i64> {
    let folded = read_number(bytes)?;
    let difference = (folded >> 1).cast_signed() ^ -(folded & 1).cast_signed();
    *last = last.wrapping_add(difference);
    Some(*last)
}

pub(super) fn write_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

pub(super) fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(number: i64) -> Head {
        let at = |micros| Timestamp::from_micros(1_780_000_000_000_000 + micros);
        Head {
            processing_status: ProcessingStatus::ALL[number.unsigned_abs() as usize % 5],
            event_bytes: number.unsigned_abs() as usize * 37,
            reading_bytes: (number % 2 == 0).then_some(number.unsigned_abs() as usize),
            device_instance_id: (number % 3 != 0).then_some(number * number * 1001),
            observation_id: (number % 4 == 1).then_some(5_000 - number * 300),
            window: (number % 5 == 2).then_some((at(number), at(number * 1_000_000))),
            reprocessed_at: (number % 7 == 3).then_some(at(-number)),
        }
    }

    #[test]
    fn heads_are_read_as_they_were_written() {
        let heads: Vec<Head> = (0..1000).map(head).collect();
        let bytes = encode(5_000, &heads);
        assert_eq!(decode(5_000, &bytes), Some(heads));
        assert_eq!(decode(5_000, &encode(5_000, &[])), Some(Vec::new()));
        let extreme = Head {
            device_instance_id: Some(i64::MAX),
            observation_id: Some(i64::MIN),
            ..head(1)
        };
        let extremes = [
            extreme,
            Head {
                device_instance_id: Some(i64::MIN),
                ..extreme
            },
        ];
        let bytes = encode(i64::MAX - 1, &extremes);
        assert_eq!(decode(i64::MAX - 1, &bytes), Some(extremes.to_vec()));
    }

    #[test]
    fn heads_have_the_bytes_of_each_of_their_devices() {
        let heads: Vec<Head> = (0..1000).map(head).collect();
        for some in heads.chunks(7) {
            let bytes = encode(5_000, some);
            for device in some.iter().filter_map(|head| head.device_instance_id) {
                let name = device_bytes(device);
                assert!(bytes.windows(name.len()).any(|bytes| bytes == name));
            }
        }
    }

    #[test]
    fn a_head_of_a_known_device_takes_eight_bytes() {
        let heads: Vec<Head> = (0..100)
            .map(|number| Head {
                processing_status: ProcessingStatus::Decoded,
                event_bytes: 171,
                reading_bytes: Some(353),
                device_instance_id: Some(1_000_000 + (number * 7919) % 1000),
                observation_id: None,
                window: None,
                reprocessed_at: None,
            })
            .collect();
        let bytes = encode(1_780_000_000_000_000, &heads).len();
        assert!(bytes <= 1 + 8 * heads.len(), "beside the version");
    }

    #[test]
    fn damaged_heads_are_refused_and_never_panic() {
        let bytes = encode(7, &(0..50).map(head).collect::<Vec<_>>());
        assert_eq!(decode(7, &[]), None);
        assert_eq!(decode(7, &[2, 0, 1]), None, "of another version");
        for end in 0..bytes.len() {
            if let Some(heads) = decode(7, &bytes[..end]) {
                assert!(heads.len() < 50, "cut at {end}");
            }
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0xff;
            let _ = decode(7, &damaged);
        }
    }
}
