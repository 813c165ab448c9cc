//! What a run would change. It reads the oldest events of the range, as many as a request may.

use std::time::{Duration, Instant};

use hub_base::error::Result;
use hub_core::Core;
use hub_identity::authz::Scope;

use super::batch::Batches;
use super::{Counts, Range};
use crate::ble::{ReprocessedEvent, Selection};
use crate::recognition::Recognition;

/// Events that one dry run reads.
pub const MAX_EVENTS: usize = 100_000;
const MAX_TIME: Duration = Duration::from_secs(5);
/// Events that it shows.
pub const MAX_EXAMPLES: usize = 20;

/// The predicted result of a run.
pub struct Preview {
    pub counts: Counts,
    pub examples: Vec<ReprocessedEvent>,
    /// Events with lower ids were read; the end of the range if all were.
    pub next_id: i64,
}

/// Computes the result without storing it. Each tenant has one preview at a time.
pub async fn preview(
    core: &Core,
    recognition: &Recognition,
    scope: &Scope,
    range: Range,
) -> Result<Preview> {
    let tenant_uuid = scope.tenant_uuid();
    let _turn = core.turns.dry_runs.take(tenant_uuid.0).await?;
    let ends_at = Instant::now() + MAX_TIME;
    recognition.latest_catalog(tenant_uuid).await?;
    let mut batches = Batches::new(core, recognition, tenant_uuid, Selection::All);
    let mut preview = Preview {
        counts: Counts::default(),
        examples: Vec::new(),
        next_id: range.from_id,
    };
    let mut read = 0;
    let mut stored = batches.stored((range.from_id, range.to_id)).await?;
    while !stored.is_empty() {
        if read >= MAX_EVENTS || Instant::now() >= ends_at {
            return Ok(preview);
        }
        let (events, next) = batches.reprocess(stored, range.to_id).await?;
        stored = next;
        read += events.len();
        for event in events {
            preview.next_id = event.ble_event_id.saturating_add(1);
            if range.has(&event) {
                preview.counts.add(&event);
                if event.change.is_some() && preview.examples.len() < MAX_EXAMPLES {
                    preview.examples.push(event);
                }
            }
        }
    }
    preview.next_id = range.to_id;
    Ok(preview)
}
