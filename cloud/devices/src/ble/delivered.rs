//! What has become of events: shows it in lists, and narrows lists by it.

use std::collections::HashSet;

use hub_base::db::{Conn, Direction, Slice};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_identity::authz::Scope;
use hub_protocol::TenantUuid;
use serde_json::{Map, Value};

use super::store::{self, Filter};
use super::{BleEventResponse, response};
use crate::ble_routes::{self, Route};
use crate::delivery_status::{self, Bound, DeliveryStatus, Positions};

/// Events that are looked through for those with a delivery status.
const SEARCHED: i64 = 10_000;
/// Events that one statement reads.
const CHUNK: usize = 500;

/// The data that the delivery status of a tenant's events is computed from.
#[derive(Debug)]
pub struct Delivery {
    positions: Positions,
    /// The hubs that bundles bound pipelines to, for streams.
    bound: Bound,
    /// The route, if it limits some pipelines to some events.
    route: Option<Route>,
}

impl Delivery {
    /// Reads the present state.
    pub async fn read(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Self> {
        let positions = delivery_status::positions(conn, tenant_uuid).await?;
        let route = match positions.is_empty() {
            true => None,
            false => Some(ble_routes::get(conn, tenant_uuid).await?).filter(Route::names_pipelines),
        };
        Ok(Self {
            positions,
            bound: Bound::default(),
            route,
        })
    }

    /// The same for [`Delivery::show`].
    pub async fn read_for_stream(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Self> {
        let read = Self::read(conn, tenant_uuid).await?;
        let bound = delivery_status::bound_of_tenant(conn, &read.positions, tenant_uuid).await?;
        Ok(Self { bound, ..read })
    }

    /// Sets the delivery status of an event that was just committed.
    pub fn show(&self, event: &mut BleEventResponse) -> Result<()> {
        if !self.positions.is_empty() {
            event.delivery_status = self
                .status(&self.bound, &HashSet::new(), event)?
                .name()
                .to_owned();
        }
        Ok(())
    }

    async fn set(
        &self,
        conn: &mut Conn,
        tenant_uuid: TenantUuid,
        events: &mut [BleEventResponse],
    ) -> Result<()> {
        let ids: Vec<i64> = events.iter().map(|event| event.ble_event_id).collect();
        let dead = delivery_status::dead(conn, tenant_uuid, &ids).await?;
        let hubs = events.iter().map(|event| event.hub_uuid).collect();
        let bound = delivery_status::bound(conn, &self.positions, hubs).await?;
        for event in events {
            event.delivery_status = self.status(&bound, &dead, event)?.name().to_owned();
        }
        Ok(())
    }

    fn status(
        &self,
        bound: &Bound,
        dead: &HashSet<i64>,
        event: &BleEventResponse,
    ) -> Result<DeliveryStatus> {
        let shown: Map<String, Value> =
            match serde_json::to_value(event).map_err(Error::internal)? {
                Value::Object(shown) => shown,
                _ => return Err(Error::internal("an event is no object")),
            };
        let facts = (event.ble_event_id, event.hub_uuid, event.device_instance_id);
        let named = self.route.as_ref().and_then(|route| event.pipelines(route));
        Ok(self.positions.status(
            facts,
            &shown,
            named.as_deref(),
            bound,
            dead.contains(&event.ble_event_id),
        ))
    }
}

/// Sets the delivery status of events.
pub async fn show(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    events: &mut [BleEventResponse],
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let delivery = Delivery::read(conn, tenant_uuid).await?;
    if delivery.positions.is_empty() {
        return Ok(());
    }
    delivery.set(conn, tenant_uuid, events).await
}

/// One page of the events with a delivery status, and their number. The status is not stored: the
/// first [`SEARCHED`] events that fit the filter and can have the status are examined.
pub async fn list(
    core: &Core,
    scope: &Scope,
    filter: &Filter,
    wanted: DeliveryStatus,
    direction: Direction,
    slice: Slice,
) -> Result<(Vec<BleEventResponse>, i64)> {
    let mut conn = core.db.read().await?;
    let delivery = Delivery::read(&mut conn, scope.tenant_uuid()).await?;
    let positions = &delivery.positions;
    if positions.is_empty() && wanted == DeliveryStatus::None {
        drop(conn);
        let (events, total) = store::list(core, scope, filter, direction, slice).await?;
        return Ok((
            events.into_iter().map(response).collect::<Result<_>>()?,
            total,
        ));
    }
    let bounds = delivery_status::bounds(&mut conn, scope.tenant_uuid(), positions, wanted).await?;
    let Some((first, last)) = bounds.filter(|_| !positions.is_empty()) else {
        return Ok((Vec::new(), 0));
    };
    drop(conn);
    let mut filter = filter.clone();
    filter.after_id = Some(first.saturating_sub(1));
    filter.before_id = (last < i64::MAX).then(|| last.saturating_add(1));
    let (mut page, mut total, mut searched) = (Vec::new(), 0, 0);
    while searched < SEARCHED {
        let events = store::some_of(core, scope, &filter, direction, CHUNK).await?;
        let Some(end) = events.last().map(|event| event.ble_event_id) else {
            break;
        };
        searched += i64::try_from(events.len()).unwrap_or(SEARCHED);
        match direction {
            Direction::Ascending => filter.after_id = Some(end),
            Direction::Descending => filter.before_id = Some(end),
        }
        let mut events: Vec<BleEventResponse> =
            events.into_iter().map(response).collect::<Result<_>>()?;
        let mut conn = core.db.read().await?;
        delivery
            .set(&mut conn, scope.tenant_uuid(), &mut events)
            .await?;
        drop(conn);
        for event in events
            .into_iter()
            .filter(|event| event.delivery_status == wanted.name())
        {
            if (slice.offset..slice.offset.saturating_add(slice.size)).contains(&total) {
                page.push(event);
            }
            total += 1;
        }
    }
    Ok((page, total))
}
