//! Uploads too large for one transaction. They are stored in parts, one after the other, with other
//! uploads in between. Each part has a key of its own, derived from the upload's: if the service
//! ends between two parts, the repeated upload stores only those that are missing. The upload's own
//! key is stored with the last part, so an upload is known once all of it is stored.

use std::sync::Arc;

use hub_base::budget::Held;
use hub_base::error::Result;
use hub_core::Core;

use super::queue::Queue;
use super::receipt::Receipt;
use super::single::stored_answer;
use super::upload::{Record, ReportedAgent, Upload};

/// The memory of the records of one part, except for a single larger record.
pub const PART_BYTES: usize = 4 * 1024 * 1024;

pub(super) async fn submit(
    core: &Core,
    queue: &Queue,
    upload: Upload,
    held: &Arc<Held>,
) -> Result<Receipt> {
    let Upload {
        hub,
        kind,
        key,
        mut records,
        heard,
        answer,
        agent,
    } = upload;
    if let Some(key) = &key {
        let mut conn = core.db.read().await?;
        if stored_answer(&mut conn, &hub, kind.name(), key)
            .await?
            .is_some()
        {
            // The writer recognises it, and counts it.
            records.clear();
        }
    }
    let mut parts = split(records);
    let last = parts.pop().unwrap_or_default();
    let is_whole = parts.is_empty();
    for (index, records) in parts.into_iter().enumerate() {
        let key = key.as_deref().map(|key| part_key(key, index));
        let (hub, heard, answer) = (hub.clone(), Vec::new(), String::new());
        let part = Upload {
            hub,
            kind,
            key,
            records,
            heard,
            answer,
            agent: ReportedAgent::default(),
        };
        queue.enqueue(part, index == 0, held).await??;
    }
    let last = Upload {
        hub,
        kind,
        key,
        records: last,
        heard,
        answer,
        agent,
    };
    Ok(queue.enqueue(last, is_whole, held).await??)
}

/// No client can send it as a key: a header's key has no blanks.
fn part_key(key: &str, index: usize) -> String {
    format!("{key} part {index}")
}

/// Splits records into parts. The same records are always split alike.
fn split(records: Vec<Record>) -> Vec<Vec<Record>> {
    let mut parts: Vec<Vec<Record>> = Vec::new();
    let mut bytes = 0;
    for record in records {
        let size = record.bytes();
        match parts.last_mut() {
            Some(part) if bytes + size <= PART_BYTES => part.push(record),
            _ => {
                bytes = 0;
                parts.push(vec![record]);
            }
        }
        bytes += size;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_and_complete() {
        let record = |bytes: usize| Record::on_one_line(&"1".repeat(bytes));
        assert!(split(Vec::new()).is_empty());
        let sizes = [10, PART_BYTES - 1000, 2000, 3 * PART_BYTES, 20, 30];
        let parts = split(sizes.map(record).into());
        let sizes_of = |part: &Vec<Record>| {
            part.iter()
                .map(|record| record.text.len())
                .collect::<Vec<_>>()
        };
        let expected = vec![
            vec![10, PART_BYTES - 1000],
            vec![2000],
            vec![3 * PART_BYTES],
            vec![20, 30],
        ];
        assert_eq!(parts.iter().map(sizes_of).collect::<Vec<_>>(), expected);
    }
}
