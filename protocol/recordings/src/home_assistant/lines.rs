//! Offsets of bytes that a parser names by line and column.

use std::collections::VecDeque;
use std::io::{self, Read};

/// A parser may have read on beyond the place that it names.
const REMEMBERED: usize = 16;

/// A reader that remembers where the last lines begin.
pub struct Lines<R> {
    reader: R,
    offset: u64,
    line: usize,
    /// Where the last lines begin, the present one last.
    starts: VecDeque<u64>,
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            offset: 0,
            line: 1,
            starts: VecDeque::from([0]),
        }
    }

    /// The number of bytes read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The byte at a line and a column, which both count from 1.
    pub fn offset_of(&self, line: usize, column: usize) -> u64 {
        let back = self.line.checked_sub(line);
        let start = back.and_then(|back| self.starts.iter().rev().nth(back));
        start.map_or(self.offset, |start| {
            start + (column as u64).saturating_sub(1)
        })
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        for byte in buffer.iter().take(read) {
            self.offset += 1;
            if *byte == b'\n' {
                self.line += 1;
                self.starts.push_back(self.offset);
                if self.starts.len() > REMEMBERED {
                    self.starts.pop_front();
                }
            }
        }
        Ok(read)
    }
}
