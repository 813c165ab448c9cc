//! How large an event is, and how deep.

use std::io::{self, Write};

use serde_json::Value as Json;

use super::{Event, MAX_DEPTH, MAX_EVENT_BYTES};

/// About the bytes of a value as JSON, without what is escaped in it.
pub fn of(value: &Json) -> usize {
    match value {
        Json::Null | Json::Bool(_) => 5,
        Json::Number(_) => 12,
        Json::String(text) => text.len() + 2,
        Json::Array(items) => 2 + items.iter().map(|item| of(item) + 1).sum::<usize>(),
        Json::Object(members) => {
            2 + members
                .iter()
                .map(|(name, value)| name.len() + 4 + of(value))
                .sum::<usize>()
        }
    }
}

/// About how many bytes an event has. Refuses one that is larger or deeper than it may be.
pub fn check(event: &Event) -> Result<usize, String> {
    let (about, depth) = event.iter().fold((2, 0), |(bytes, depth), (name, value)| {
        (
            bytes + name.len() + 4 + of(value),
            depth.max(depth_of(value, 0)),
        )
    });
    if depth >= MAX_DEPTH {
        return Err(format!("the event is nested more than {MAX_DEPTH} deep"));
    }
    // A byte becomes six at most, where it is escaped.
    if about > MAX_EVENT_BYTES / 6 {
        let mut counted = Counted(0);
        if serde_json::to_writer(&mut counted, event).is_err() || counted.0 > MAX_EVENT_BYTES {
            return Err(format!(
                "the event has more than {} KiB",
                MAX_EVENT_BYTES / 1024
            ));
        }
    }
    Ok(about)
}

/// Objects and lists in each other, counted no further than they may be.
fn depth_of(value: &Json, depth: usize) -> usize {
    if depth > MAX_DEPTH {
        return depth;
    }
    match value {
        Json::Array(items) => items
            .iter()
            .map(|item| depth_of(item, depth + 1))
            .max()
            .unwrap_or(depth + 1),
        Json::Object(members) => members
            .values()
            .map(|value| depth_of(value, depth + 1))
            .max()
            .unwrap_or(depth + 1),
        _ => depth,
    }
}

struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
