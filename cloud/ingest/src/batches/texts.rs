//! The texts of a batch's events, compressed together: events are alike, and so are readings.
//!
//! The first byte says how they are laid out: 0 one after the other, 1 in columns. Their length
//! before they are compressed follows (LEB128), then one frame of zstd (RFC 8878). The heads say
//! how long each text is.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

use super::MAX_BATCH_BYTES;
use super::columns::{self, Columns};
use super::heads::{Head, read_number, write_number};

/// Higher levels cost several times as much, and save a few percent.
const LEVEL: i32 = 3;
const PLAIN: u8 = 0;
const IN_COLUMNS: u8 = 1;

thread_local! {
    // Their memory costs more to get than a batch to compress.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses all events, followed by all readings.
pub fn pack<'a>(
    events: impl Iterator<Item = &'a str>,
    readings: impl Iterator<Item = &'a str>,
) -> std::io::Result<Vec<u8>> {
    let texts: Vec<&str> = events.chain(readings).collect();
    let (layout, bytes) = match columns::encode(&texts) {
        Some(bytes) => (IN_COLUMNS, bytes),
        None => (PLAIN, texts.concat().into_bytes()),
    };
    let mut packed = vec![layout];
    write_number(bytes.len() as u64, &mut packed);
    COMPRESSOR.with_borrow_mut(|compressor| {
        let compressor = match compressor {
            Some(compressor) => compressor,
            None => compressor.insert(Compressor::new(LEVEL)?),
        };
        packed.extend(compressor.compress(&bytes)?);
        Ok(packed)
    })
}

/// The texts of a batch.
pub struct Texts {
    texts: Layout,
    /// For each event, its number among the texts, and that of its reading.
    numbers: Vec<(usize, Option<usize>)>,
}

enum Layout {
    /// With where each text begins and ends.
    Plain(String, Vec<std::ops::Range<usize>>),
    InColumns(Columns),
}

impl Texts {
    /// Reads what [`pack`] wrote; None of anything else.
    pub fn unpack(packed: &[u8], heads: &[Head]) -> Option<Self> {
        let (layout, mut rest) = packed.split_first()?;
        let length = usize::try_from(read_number(&mut rest)?).ok()?;
        if length > MAX_BATCH_BYTES {
            return None;
        }
        let bytes = DECOMPRESSOR.with_borrow_mut(|decompressor| {
            let decompressor = match decompressor {
                Some(decompressor) => decompressor,
                None => decompressor.insert(Decompressor::new().ok()?),
            };
            decompressor.decompress(rest, length).ok()
        })?;
        let readings = heads.iter().filter_map(|head| head.reading_bytes);
        let lengths: Vec<usize> = heads
            .iter()
            .map(|head| head.event_bytes)
            .chain(readings)
            .collect();
        let mut next_reading = heads.len();
        let mut number_of_reading = |_| {
            next_reading += 1;
            next_reading - 1
        };
        let numbers = heads
            .iter()
            .enumerate()
            .map(|(event, head)| (event, head.reading_bytes.map(&mut number_of_reading)))
            .collect();
        let texts = match *layout {
            PLAIN => {
                let mut start = 0_usize;
                let mut ranges = Vec::with_capacity(lengths.len());
                for length in lengths {
                    let end = start.checked_add(length)?;
                    ranges.push(start..end);
                    start = end;
                }
                Layout::Plain(String::from_utf8(bytes).ok()?, ranges)
            }
            IN_COLUMNS => Layout::InColumns(Columns::decode(bytes, lengths.len())?),
            _ => return None,
        };
        Some(Self { texts, numbers })
    }

    /// The event at a place in the batch, and its reading; None of texts that are not as long as
    /// the head says.
    pub fn at(&self, place: usize, head: &Head) -> Option<(String, Option<String>)> {
        let text = |number: usize, length: usize| {
            let text = match &self.texts {
                Layout::Plain(text, ranges) => text.get(ranges.get(number)?.clone())?.to_owned(),
                Layout::InColumns(columns) => columns.text(number)?,
            };
            (text.len() == length).then_some(text)
        };
        let (event, reading) = *self.numbers.get(place)?;
        let reading = match (reading, head.reading_bytes) {
            (Some(number), Some(length)) => Some(text(number, length)?),
            _ => None,
        };
        Some((text(event, head.event_bytes)?, reading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProcessingStatus;

    type Text = (String, Option<String>);

    fn heads(texts: &[Text]) -> Vec<Head> {
        let head = |(event, reading): &Text| Head {
            processing_status: ProcessingStatus::Received,
            event_bytes: event.len(),
            reading_bytes: reading.as_ref().map(String::len),
            device_instance_id: None,
            observation_id: None,
            window: None,
            reprocessed_at: None,
        };
        texts.iter().map(head).collect()
    }

    fn packed(texts: &[Text]) -> Vec<u8> {
        pack(
            texts.iter().map(|(event, _)| event.as_str()),
            texts.iter().filter_map(|(_, reading)| reading.as_deref()),
        )
        .expect("memory")
    }

    #[test]
    fn texts_are_read_as_they_were_written() {
        let json: Vec<Text> = (0..300)
            .map(|number| {
                let event = format!("{{\"rssi\":-{number},\"name\":\"Küche {number}\"}}");
                let reading = (number % 3 == 0).then(|| format!("{{\"t\":{number}}}"));
                (event, reading)
            })
            .collect();
        let mut with_line_break = json.clone();
        with_line_break[7].0.push('\n');
        for (texts, layout) in [(json, IN_COLUMNS), (with_line_break, PLAIN)] {
            let (heads, packed) = (heads(&texts), packed(&texts));
            assert_eq!(packed[0], layout);
            assert!(packed.len() < 300 * 8, "{}", packed.len());
            let unpacked = Texts::unpack(&packed, &heads).expect("texts");
            for (place, (text, head)) in texts.iter().zip(&heads).enumerate() {
                assert_eq!(unpacked.at(place, head).as_ref(), Some(text));
            }
            assert!(unpacked.at(300, &heads[0]).is_none());

            let shorter = Head {
                event_bytes: 3,
                ..heads[0]
            };
            assert!(unpacked.at(0, &shorter).is_none(), "another head");
            assert!(Texts::unpack(&packed[2..], &heads).is_none(), "damaged");
        }
    }

    #[test]
    fn a_length_beyond_all_memory_is_refused() {
        let mut packed = vec![PLAIN];
        write_number(u64::MAX, &mut packed);
        assert!(Texts::unpack(&packed, &[]).is_none());
    }
}
