//! Texts in columns. JSON objects of one kind differ in their values alone, so the rest of a text,
//! its frame, is kept once, and the values of the same place in all texts stand together, where
//! they compress best. Any text comes back byte for byte; JSON is what becomes short.
//!
//! The layout: the number of frames; each frame with its length; the frame of each text, by its
//! place; then the columns, by frame and by place in the frame. Where all values of a column are of
//! one length, that length plus one and the values follow, so that one is found without those
//! before it; else 0 and the values, each on a line. Numbers are LEB128.

use std::collections::HashMap;
use std::ops::Range;

use super::heads::{read_number, write_number};

/// Stands for a value in a frame. No JSON text has it, nor a line break inside of a value.
const VALUE: u8 = 0;
const END: u8 = b'\n';

/// Texts of one frame, while they are written: the values of each place.
struct TextsOfFrame<'a> {
    frame: Vec<u8>,
    columns: Vec<Vec<&'a str>>,
}

/// Writes texts in columns; None if one has a byte that stands for something here.
pub fn encode(texts: &[&str]) -> Option<Vec<u8>> {
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut frames: Vec<TextsOfFrame> = Vec::new();
    let mut of_texts: Vec<usize> = Vec::with_capacity(texts.len());
    let (mut frame, mut values) = (Vec::new(), Vec::new());
    for text in texts {
        if memchr::memchr2(VALUE, END, text.as_bytes()).is_some() {
            return None;
        }
        frame.clear();
        values.clear();
        split(text, &mut frame, &mut values);
        // Neighbours are mostly alike.
        let before = of_texts.last().copied();
        let is_alike = |place: &usize| frames.get(*place).is_some_and(|one| one.frame == frame);
        let known = before
            .filter(is_alike)
            .or_else(|| places.get(&frame).copied());
        let place = known.unwrap_or_else(|| {
            places.insert(frame.clone(), frames.len());
            frames.push(TextsOfFrame {
                frame: frame.clone(),
                columns: vec![Vec::new(); values.len()],
            });
            frames.len() - 1
        });
        of_texts.push(place);
        for (column, value) in frames.get_mut(place)?.columns.iter_mut().zip(&values) {
            column.push(value);
        }
    }
    let mut bytes = Vec::new();
    write_number(frames.len() as u64, &mut bytes);
    for TextsOfFrame { frame, .. } in &frames {
        write_number(frame.len() as u64, &mut bytes);
        bytes.extend_from_slice(frame);
    }
    for place in of_texts {
        write_number(place as u64, &mut bytes);
    }
    for column in frames.iter().flat_map(|one| &one.columns) {
        write_column(column, &mut bytes);
    }
    Some(bytes)
}

fn write_column(values: &[&str], bytes: &mut Vec<u8>) {
    let length = values.first().map_or(0, |value| value.len());
    let is_of_one_length = values.iter().all(|value| value.len() == length);
    write_number(
        if is_of_one_length {
            length as u64 + 1
        } else {
            0
        },
        bytes,
    );
    for value in values {
        bytes.extend_from_slice(value.as_bytes());
        if !is_of_one_length {
            bytes.push(END);
        }
    }
}

/// Appends the frame of a text, and its values: what is in the quotes of strings that are no names,
/// and numbers.
fn split<'a>(text: &'a str, frame: &mut Vec<u8>, values: &mut Vec<&'a str>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let value = match byte {
            b'"' => {
                let end = end_of_string(bytes, at + 1);
                let is_name = bytes.get(end + 1) == Some(&b':');
                (!is_name && end < bytes.len()).then_some(at + 1..end)
            }
            b'-' | b'0'..=b'9' => {
                let is_of_number =
                    |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let length = bytes.iter().skip(at).take_while(is_of_number).count();
                Some(at..at + length)
            }
            _ => None,
        };
        match value.and_then(|value| Some((text.get(value.clone())?, value))) {
            Some((content, value)) => {
                if byte == b'"' {
                    frame.push(byte);
                }
                frame.push(VALUE);
                values.push(content);
                at = value.end;
                if byte == b'"' {
                    frame.push(byte);
                    at += 1;
                }
            }
            // A name goes into the frame whole: what is in it is no value.
            None if byte == b'"' => {
                let end = (end_of_string(bytes, at + 1) + 1).min(bytes.len());
                frame.extend(bytes.get(at..end).unwrap_or_default());
                at = end;
            }
            None => {
                frame.push(byte);
                at += 1;
            }
        }
    }
}

/// Where the quote is that ends a string which begins here; the end of the text without one.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Texts that were read from columns, as far as they are asked for.
pub struct Columns {
    bytes: Vec<u8>,
    frames: Vec<Frame>,
    /// The frame of each text, and its number among those of the frame.
    texts: Vec<(usize, usize)>,
}

struct Frame {
    range: Range<usize>,
    texts: usize,
    columns: Vec<Column>,
}

/// The values of one place, from `start` on.
struct Column {
    start: usize,
    lengths: Lengths,
}

enum Lengths {
    Same(usize),
    /// Where each value ends, from the start of the column.
    Lines(Vec<usize>),
}

impl Column {
    fn value(&self, number: usize) -> Option<Range<usize>> {
        let (start, end) = match &self.lengths {
            Lengths::Same(length) => {
                let start = number.checked_mul(*length)?;
                (start, start.checked_add(*length)?)
            }
            Lengths::Lines(ends) => {
                let start = match number.checked_sub(1) {
                    Some(before) => *ends.get(before)? + 1,
                    None => 0,
                };
                (start, *ends.get(number)?)
            }
        };
        Some(self.start.checked_add(start)?..self.start.checked_add(end)?)
    }
}

/// Reads a column of so many values, which begins where `rest` of these bytes does.
fn read_column(bytes: &[u8], rest: &mut &[u8], count: usize) -> Option<Column> {
    let length = usize::try_from(read_number(rest)?).ok()?.checked_sub(1);
    let start = bytes.len() - rest.len();
    let (lengths, size) = match length {
        Some(length) => (Lengths::Same(length), length.checked_mul(count)?),
        None => {
            let ends: Vec<usize> = memchr::memchr_iter(END, rest).take(count).collect();
            let size = ends.last().map_or(0, |end| end + 1);
            let is_whole = ends.len() == count;
            (is_whole.then_some(Lengths::Lines(ends))?, size)
        }
    };
    *rest = rest.get(size..)?;
    Some(Column { start, lengths })
}

impl Columns {
    /// Reads what [`encode`] wrote of so many texts; None of anything else.
    pub fn decode(bytes: Vec<u8>, count: usize) -> Option<Self> {
        let mut rest = bytes.as_slice();
        let at = |rest: &[u8]| bytes.len() - rest.len();
        let mut frames: Vec<Frame> = Vec::new();
        for _ in 0..read_number(&mut rest)? {
            let length = usize::try_from(read_number(&mut rest)?).ok()?;
            let start = at(rest);
            rest = rest.get(length..)?;
            frames.push(Frame {
                range: start..start + length,
                texts: 0,
                columns: Vec::new(),
            });
        }
        let mut texts = Vec::new();
        for _ in 0..count {
            let place = usize::try_from(read_number(&mut rest)?).ok()?;
            let frame = frames.get_mut(place)?;
            texts.push((place, frame.texts));
            frame.texts += 1;
        }
        for frame in &mut frames {
            let places = bytes.get(frame.range.clone())?;
            for _ in places.iter().filter(|byte| **byte == VALUE) {
                let column = read_column(&bytes, &mut rest, frame.texts)?;
                frame.columns.push(column);
            }
        }
        rest.is_empty().then_some(Self {
            bytes,
            frames,
            texts,
        })
    }

    /// The text with this number; None if there is none, or it is damaged.
    pub fn text(&self, number: usize) -> Option<String> {
        let (place, number) = *self.texts.get(number)?;
        let frame = self.frames.get(place)?;
        let mut columns = frame.columns.iter();
        let mut text = Vec::new();
        for byte in self.bytes.get(frame.range.clone())? {
            match *byte {
                VALUE => {
                    let range = columns.next()?.value(number)?;
                    text.extend_from_slice(self.bytes.get(range)?);
                }
                byte => text.push(byte),
            }
        }
        String::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn come_back(texts: &[&str]) -> Vec<u8> {
        let bytes = encode(texts).expect("columns");
        let columns = Columns::decode(bytes.clone(), texts.len()).expect("columns");
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(columns.text(number).as_deref(), Some(*text));
        }
        assert_eq!(columns.text(texts.len()), None);
        bytes
    }

    #[test]
    fn texts_come_back_byte_for_byte() {
        come_back(&[]);
        come_back(&[
            r#"{"rssi":-60,"name":"K\u00fcche \"1\"","values":{"a":1.5e-3,"b":null,"c":[true,2]}}"#,
            r#"{"rssi":-61,"name":"Küche \\","values":{"a":0,"b":null,"c":[true,-7]}}"#,
            r#"{ "rssi" : 1 , "name":"" }"#,
            r#"{"7":"8","-1":{"x":"y:"}}"#,
            "",
            "no JSON, \"and a quote",
            "\"escaped to the end\\",
            "\"",
            "1-2+3",
            "[\"a\",\"b\"]",
        ]);
        assert_eq!(encode(&["a\nb"]), None);
        assert_eq!(encode(&["a\0b"]), None);
    }

    #[test]
    fn texts_of_one_kind_share_a_frame() {
        let texts: Vec<String> = (0..100)
            .map(|number| format!("{{\"rssi\":{number},\"name\":\"n{number}\"}}"))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let bytes = come_back(&texts);
        let frame = b"{\"rssi\":\0,\"name\":\"\0\"}";
        let found = bytes.windows(frame.len()).filter(|part| part == frame);
        assert_eq!(found.count(), 1);
        assert!(bytes.len() < 900, "{}", bytes.len());
    }

    #[test]
    fn damaged_columns_never_panic() {
        let texts = ["{\"a\":1,\"b\":\"c\"}", "{\"a\":2,\"b\":\"d\"}", "[3]"];
        let bytes = encode(&texts).expect("columns");
        let read = |bytes: Vec<u8>| {
            if let Some(columns) = Columns::decode(bytes, texts.len()) {
                (0..texts.len()).for_each(|number| drop(columns.text(number)));
            }
        };
        for place in 0..bytes.len() {
            read(bytes[..place].to_vec());
            for damage in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[place] ^= damage;
                read(damaged);
            }
        }
        assert!(Columns::decode(bytes, 4).is_none(), "of more texts");
    }
}
