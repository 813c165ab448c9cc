//! The bytes of a recording with their offsets. Lengths are checked before anything is allocated.

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use crate::error::{Grouped, RecordingError};

/// The longest record, block or line that is held.
pub const LONGEST_RECORD: usize = 65_535;

pub struct Input {
    reader: BufReader<Box<dyn Read + Send>>,
    offset: u64,
}

/// The part of a recording that is being read.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub name: &'static str,
    pub start: u64,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = Grouped(self.start);
        write!(f, "the {} that begins at byte {start}", self.name)
    }
}

impl Input {
    pub fn new(reader: Box<dyn Read + Send>) -> Self {
        Self {
            reader: BufReader::new(reader),
            offset: 0,
        }
    }

    /// The number of bytes read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The part that begins here.
    pub fn part(&self, name: &'static str) -> Part {
        Part {
            name,
            start: self.offset,
        }
    }

    pub fn is_at_end(&mut self) -> Result<bool, RecordingError> {
        loop {
            match self.reader.fill_buf() {
                Ok(buffered) => return Ok(buffered.is_empty()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error, "a compressed frame")),
            }
        }
    }

    pub fn array<const N: usize>(&mut self, part: Part) -> Result<[u8; N], RecordingError> {
        let mut array = [0; N];
        let mut filled = 0;
        while let Some(space) = array.get_mut(filled..).filter(|space| !space.is_empty()) {
            match self.read(space) {
                Ok(0) => return Err(self.cut_short(part)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error, part)),
            }
        }
        Ok(array)
    }

    /// Replaces what the buffer holds by the next bytes. The length is at most [`LONGEST_RECORD`].
    pub fn record(
        &mut self,
        buffer: &mut Vec<u8>,
        length: u32,
        part: Part,
    ) -> Result<(), RecordingError> {
        if length as usize > LONGEST_RECORD {
            let (length, longest) = (Grouped(u64::from(length)), Grouped(LONGEST_RECORD as u64));
            let fault = format!("a record of {length} bytes; the longest is {longest}");
            return Err(RecordingError::malformed(part.start, fault));
        }
        buffer.clear();
        let read = Read::by_ref(self)
            .take(u64::from(length))
            .read_to_end(buffer)
            .map_err(|error| self.failed(error, part))?;
        match read == length as usize {
            true => Ok(()),
            false => Err(self.cut_short(part)),
        }
    }

    pub fn skip(&mut self, length: u64, part: Part) -> Result<(), RecordingError> {
        let skipped = io::copy(&mut Read::by_ref(self).take(length), &mut io::sink())
            .map_err(|error| self.failed(error, part))?;
        match skipped == length {
            true => Ok(()),
            false => Err(self.cut_short(part)),
        }
    }

    /// The next line without its end, at most [`LONGEST_RECORD`] bytes; `None` at the end.
    pub fn line(&mut self, buffer: &mut Vec<u8>) -> Result<Option<()>, RecordingError> {
        buffer.clear();
        let start = self.offset;
        let limit = LONGEST_RECORD as u64 + 1;
        let read = (&mut self.reader).take(limit).read_until(b'\n', buffer);
        let read = read.map_err(|error| self.failed(error, self.part("line")))?;
        self.offset += read as u64;
        if buffer.last() == Some(&b'\n') {
            buffer.pop();
        } else if read > LONGEST_RECORD {
            let longest = Grouped(LONGEST_RECORD as u64);
            let fault = format!("a line of more than {longest} bytes");
            return Err(RecordingError::malformed(start, fault));
        }
        Ok((read > 0).then_some(()))
    }

    fn cut_short(&self, part: Part) -> RecordingError {
        RecordingError::CutShort {
            offset: self.offset,
            within: part.to_string(),
        }
    }

    /// A compressed recording that is cut short fails with an unexpected end.
    fn failed(&self, error: io::Error, within: impl fmt::Display) -> RecordingError {
        let offset = self.offset;
        match error.kind() {
            ErrorKind::UnexpectedEof => RecordingError::CutShort {
                offset,
                within: within.to_string(),
            },
            _ => RecordingError::Unreadable { offset, error },
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}
