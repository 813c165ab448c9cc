//! Whether an event has reached its destinations: derived from the positions of the tenant's
//! pipelines in the log, never written to the event. It reads what pipelines keep, for subjects
//! below them, and writes nothing.

pub mod event_ids;
mod source;
mod store;

use std::collections::{HashMap, HashSet};

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

pub use source::Source;
pub use store::{Attempt, attempts_of};

/// Whether an event has reached its destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DeliveryStatus {
    /// No pipeline accepts the event.
    None,
    /// The delivery is in progress.
    Pending,
    /// All pipelines that accept the event are done with it.
    Delivered,
    /// The delivery waits for a receiver that fails.
    Failed,
    /// The event is in a dead letter.
    Dead,
}

text_enum!(DeliveryStatus {
    None = "NONE",
    Pending = "PENDING",
    Delivered = "DELIVERED",
    Failed = "FAILED",
    Dead = "DEAD",
});

/// The most dead letters that are searched for the events of one page.
const MAX_DEAD_LETTERS: i64 = 5000;
/// Hubs that one statement asks about.
const AT_ONCE: usize = 500;

/// The given pipelines of the tenant.
pub async fn own(conn: &mut Conn, scope: &Scope, pipelines: &[Uuid]) -> Result<HashSet<Uuid>> {
    if pipelines.is_empty() {
        return Ok(HashSet::new());
    }
    store::own(conn, scope, pipelines)
        .await
        .map(HashSet::from_iter)
}

/// A pipeline's position in the log.
#[derive(Debug)]
struct Position {
    pipeline_uuid: Uuid,
    source: Source,
    start_id: i64,
    cursor: i64,
    /// Ranges after the cursor that are settled: after the first id, up to the last.
    settled: Vec<(i64, i64)>,
    is_failing: bool,
}

impl Position {
    fn is_pending(&self, id: i64) -> bool {
        id > self.cursor
            && !self
                .settled
                .iter()
                .any(|(after, to)| *after < id && id <= *to)
    }
}

/// The positions of all pipelines of a tenant.
#[derive(Debug, Default)]
pub struct Positions(Vec<Position>);

/// The hubs that pipelines are bound to by bundles, of those that were asked about.
#[derive(Debug, Default)]
pub struct Bound(HashMap<Uuid, HashSet<HubUuid>>);

/// The tenant's hubs that pipelines are bound to; empty unless a position is limited to hubs.
pub async fn bound_of_tenant(
    conn: &mut Conn,
    positions: &Positions,
    tenant_uuid: TenantUuid,
) -> Result<Bound> {
    let mut bound = Bound::default();
    if positions
        .0
        .iter()
        .any(|one| one.source.is_limited_to_hubs())
    {
        for (pipeline_uuid, hub_uuid) in store::bound_of_tenant(conn, tenant_uuid).await? {
            bound.0.entry(pipeline_uuid).or_default().insert(hub_uuid);
        }
    }
    Ok(bound)
}

/// The given hubs that pipelines are bound to; empty unless a position is limited to hubs.
pub async fn bound(
    conn: &mut Conn,
    positions: &Positions,
    hubs: HashSet<HubUuid>,
) -> Result<Bound> {
    let mut bound = Bound::default();
    if hubs.is_empty()
        || !positions
            .0
            .iter()
            .any(|one| one.source.is_limited_to_hubs())
    {
        return Ok(bound);
    }
    let hubs: Vec<HubUuid> = hubs.into_iter().collect();
    for (pipeline_uuid, hub_uuid) in bound_to_hubs(conn, &hubs).await? {
        bound.0.entry(pipeline_uuid).or_default().insert(hub_uuid);
    }
    Ok(bound)
}

/// The pipelines that are bound to these hubs, each with its hub.
pub async fn bound_to_hubs(conn: &mut Conn, hubs: &[HubUuid]) -> Result<Vec<(Uuid, HubUuid)>> {
    let mut bound = Vec::new();
    for some in hubs.chunks(AT_ONCE) {
        bound.extend(store::bound_to_hubs(conn, some).await?);
    }
    Ok(bound)
}

/// The positions of the tenant's pipelines, read by an index.
pub async fn positions(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Positions> {
    #[derive(Deserialize)]
    struct Definition {
        source: Source,
    }
    let rows = store::positions(conn, tenant_uuid).await?;
    let position = |row: store::PositionRow| -> Result<Position> {
        let definition: Definition =
            serde_json::from_str(&row.definition).map_err(Error::internal)?;
        let settled = row
            .settled_ahead
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        Ok(Position {
            pipeline_uuid: row.pipeline_uuid,
            source: definition.source,
            start_id: row.start_id,
            cursor: row.cursor,
            settled: settled.unwrap_or_default(),
            is_failing: matches!(
                row.status.as_str(),
                "OPEN_CIRCUIT" | "SUSPENDED" | "INVALID"
            ),
        })
    };
    rows.into_iter()
        .map(position)
        .collect::<Result<_>>()
        .map(Positions)
}

/// The given events in dead letters. The events are in the order of their ids or of the reverse.
pub async fn dead(conn: &mut Conn, tenant_uuid: TenantUuid, ids: &[i64]) -> Result<HashSet<i64>> {
    let (Some(first), Some(last)) = (ids.iter().min(), ids.iter().max()) else {
        return Ok(HashSet::new());
    };
    let letters = store::dead_letters(conn, tenant_uuid, (*first, *last), MAX_DEAD_LETTERS).await?;
    let all = letters
        .into_iter()
        .flat_map(|(first_id, others)| event_ids::decode(first_id, others.as_deref()));
    let wanted: HashSet<i64> = ids.iter().copied().collect();
    Ok(all.filter(|id| wanted.contains(id)).collect())
}

/// The ids between which events with a status can be, both included; None if there are none.
pub async fn bounds(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    positions: &Positions,
    status: DeliveryStatus,
) -> Result<Option<(i64, i64)>> {
    let waiting = |positions: &mut dyn Iterator<Item = &Position>| {
        positions
            .map(|one| one.cursor.max(one.start_id))
            .min()
            .map(|after| (after.saturating_add(1), i64::MAX))
    };
    Ok(match status {
        DeliveryStatus::Dead => store::dead_bounds(conn, tenant_uuid).await?,
        DeliveryStatus::Pending => waiting(&mut positions.0.iter().filter(|one| !one.is_failing)),
        DeliveryStatus::Failed => waiting(&mut positions.0.iter().filter(|one| one.is_failing)),
        DeliveryStatus::Delivered => positions
            .0
            .iter()
            .map(|one| one.start_id)
            .min()
            .map(|after| (after, i64::MAX)),
        DeliveryStatus::None => Some((0, i64::MAX)),
    })
}

impl Positions {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The delivery status of an event. `event` is the event as lists show it, and `named` the only
    /// pipelines that the tenant's route passes it to; None for all.
    pub fn status(
        &self,
        (id, hub_uuid, device_instance_id): (i64, HubUuid, Option<i64>),
        event: &Map<String, Value>,
        named: Option<&[Uuid]>,
        bound: &Bound,
        is_dead: bool,
    ) -> DeliveryStatus {
        if is_dead {
            return DeliveryStatus::Dead;
        }
        let mut status = DeliveryStatus::None;
        let none = HashSet::new();
        for position in &self.0 {
            if named.is_some_and(|named| !named.contains(&position.pipeline_uuid)) {
                continue;
            }
            let bound = bound.0.get(&position.pipeline_uuid).unwrap_or(&none);
            if position.start_id >= id
                || !position
                    .source
                    .selects(hub_uuid, bound, device_instance_id, event)
            {
                continue;
            }
            match (position.is_pending(id), position.is_failing) {
                (true, true) => return DeliveryStatus::Failed,
                (true, false) => status = DeliveryStatus::Pending,
                (false, _) if status == DeliveryStatus::None => status = DeliveryStatus::Delivered,
                (false, _) => {}
            }
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(start_id: i64, cursor: i64, settled: &[(i64, i64)], is_failing: bool) -> Position {
        let pipeline_uuid = Uuid::from_u128(start_id.unsigned_abs().into());
        Position {
            pipeline_uuid,
            source: Source::default(),
            start_id,
            cursor,
            settled: settled.to_vec(),
            is_failing,
        }
    }

    fn status_of(
        positions: Vec<Position>,
        id: i64,
        named: Option<&[Uuid]>,
        is_dead: bool,
    ) -> DeliveryStatus {
        Positions(positions).status(
            (id, HubUuid(Uuid::nil()), None),
            &Map::new(),
            named,
            &Bound::default(),
            is_dead,
        )
    }

    fn status(positions: Vec<Position>, id: i64) -> DeliveryStatus {
        status_of(positions, id, None, false)
    }

    #[test]
    fn status_follows_from_the_positions() {
        let lane = || position(10, 20, &[(25, 30)], false);
        for (id, expected) in [
            (10, DeliveryStatus::None),
            (11, DeliveryStatus::Delivered),
            (20, DeliveryStatus::Delivered),
            (21, DeliveryStatus::Pending),
            (25, DeliveryStatus::Pending),
            (26, DeliveryStatus::Delivered),
            (30, DeliveryStatus::Delivered),
            (31, DeliveryStatus::Pending),
        ] {
            assert_eq!(status(vec![lane()], id), expected, "{id}");
        }
        let failing = || position(10, 15, &[], true);
        assert_eq!(
            status(vec![lane(), failing()], 16),
            DeliveryStatus::Failed,
            "of several, the worst"
        );
        assert_eq!(
            status(vec![failing(), lane()], 15),
            DeliveryStatus::Delivered
        );
        let later = position(40, 40, &[], false);
        assert_eq!(
            status(vec![lane(), later], 21),
            DeliveryStatus::Pending,
            "the later one does not take it"
        );
        assert_eq!(
            status_of(vec![lane()], 11, None, true),
            DeliveryStatus::Dead
        );
        let later = || position(12, 40, &[], false);
        let (first, second) = (Uuid::from_u128(10), Uuid::from_u128(12));
        for (named, expected) in [
            (vec![first, second], DeliveryStatus::Pending),
            (vec![second], DeliveryStatus::Delivered),
            (vec![Uuid::nil()], DeliveryStatus::None),
        ] {
            assert_eq!(
                status_of(vec![lane(), later()], 21, Some(&named), false),
                expected,
                "{named:?}"
            );
        }
    }
}
