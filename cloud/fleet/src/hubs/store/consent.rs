//! SQL of whether hubs report BLE events: hubs of app users do not while their owner has not
//! granted what the supplier requires.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, UserUuid};

/// The hubs that a change of consent applies to.
#[derive(Clone, Copy, Debug)]
pub enum Concerned {
    AllHubs,
    HubsOf(UserUuid),
    Hub(HubUuid),
}

/// Whether hub `h` has to withhold its events.
const HAS_TO_WITHHOLD: &str = "(h.owner_user_uuid IS NOT NULL AND EXISTS (\
    SELECT 1 FROM consent_settings c WHERE c.tenant_uuid = h.tenant_uuid AND c.is_current \
    AND c.enforce AND NOT EXISTS (SELECT 1 FROM consent_records r \
    WHERE r.user_uuid = h.owner_user_uuid AND r.tenant_uuid = h.tenant_uuid \
    AND r.status = 'GRANTED' AND r.version = c.version \
    AND (r.hub_uuid IS NULL OR r.hub_uuid = h.hub_uuid))))";

/// Makes hubs of the tenant follow what was consented to, and returns those that changed. The
/// tenant is locked.
pub async fn settle(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    concerned: Concerned,
) -> Result<Vec<HubUuid>> {
    let mut changed = sql("UPDATE hubs SET withholds_events = NOT withholds_events, \
         desired_revision = desired_revision + 1 WHERE hub_uuid IN (SELECT h.hub_uuid FROM hubs h \
         WHERE h.tenant_uuid = $1 AND h.released_at IS NULL AND h.withholds_events <> ")
    .push(HAS_TO_WITHHOLD)
    .bind(tenant_uuid);
    changed = match concerned {
        Concerned::AllHubs => changed,
        Concerned::HubsOf(user_uuid) => changed
            .push(" AND h.owner_user_uuid = ")
            .push_bind(user_uuid),
        Concerned::Hub(hub_uuid) => changed.push(" AND h.hub_uuid = ").push_bind(hub_uuid),
    };
    changed
        .push(" ORDER BY h.hub_uuid")
        .for_update(tx)
        .push(") RETURNING hub_uuid")
        .scalars(tx)
        .await
}

/// The hubs of the tenant that a claim code was made out to this person for.
pub async fn owned(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    user_uuid: UserUuid,
) -> Result<Vec<HubUuid>> {
    sql(
        "SELECT hub_uuid FROM hubs WHERE owner_user_uuid = $1 AND tenant_uuid = $2 \
         AND released_at IS NULL ORDER BY hub_uuid",
    )
    .bind((user_uuid, tenant_uuid))
    .scalars(conn)
    .await
}

pub async fn withholds(conn: &mut Conn, hub_uuid: HubUuid) -> Result<bool> {
    let withholds = sql("SELECT withholds_events FROM hubs WHERE hub_uuid = $1").bind(hub_uuid);
    Ok(withholds.optional_scalar(conn).await?.unwrap_or(false))
}
