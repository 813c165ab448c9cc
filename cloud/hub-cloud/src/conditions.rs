//! What the log says of the service as a whole: that the database is away, that a tenant has lost
//! hubs or is flooded by them. Each is a line when it begins and a line when it is over, in numbers
//! and not by hub. Every replica says it in its own log; a start forgets what was said before.

use std::collections::BTreeMap;

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::Core;
use hub_fleet::hubs::{self, Flooding};
use hub_protocol::{TenantUuid, Timestamp};

/// Tenants that are watched for the return of their hubs at a time.
const MAX_TENANTS: usize = 100;

/// The conditions of tenants that hold now.
#[derive(Default)]
pub struct Conditions {
    losses: BTreeMap<TenantUuid, Loss>,
    /// How many hubs flood.
    floods: BTreeMap<TenantUuid, usize>,
}

/// Hubs of a tenant that went offline together.
struct Loss {
    /// They were heard of after this time.
    heard_after: Timestamp,
    most: i64,
    missing: i64,
}

impl Loss {
    /// Whether most of them are back. A few stay away for reasons of their own.
    fn is_over(&self) -> bool {
        self.missing < hubs::MANY_LOST || self.missing.saturating_mul(10) <= self.most
    }
}

/// Notes whether the database answers and can be written.
pub async fn watch_database(core: &Core) {
    let answer = match core.db.ping().await {
        Ok(()) => core.db.require_writable().await,
        Err(error) => Err(error),
    };
    let away = &core.metrics.conditions.database_away;
    match answer {
        Ok(()) => {
            if away.set(0) == 1 {
                tracing::warn!("the database is back");
            }
        }
        // The watch of the disk says so.
        Err(error) if error.is_storage_full() => {}
        Err(_) if core.shutdown.is_cancelled() => {}
        Err(error) => {
            if away.set(1) == 0 {
                tracing::error!(%error, "the database is away: requests get 503 until it is back");
            }
        }
    }
}

/// Notes whether the bus is connected. The bus itself logs it.
pub fn watch_bus(core: &Core) {
    let connection = core.bus.connection();
    let is_away = connection.is_some_and(|connected| !*connected.borrow());
    core.metrics.conditions.bus_away.set(i64::from(is_away));
}

impl Conditions {
    /// Looks at the hubs of all tenants.
    pub async fn look(
        &mut self,
        core: &Core,
        conn: &mut Conn,
        flooding: &[Flooding],
        now: Timestamp,
    ) -> Result<()> {
        self.look_for_losses(core, conn, now).await?;
        self.note_floods(core, flooding);
        Ok(())
    }

    async fn look_for_losses(
        &mut self,
        core: &Core,
        conn: &mut Conn,
        now: Timestamp,
    ) -> Result<()> {
        for (tenant_uuid, loss) in &mut self.losses {
            loss.missing = hubs::missing(conn, *tenant_uuid, loss.heard_after, now).await?;
            loss.most = loss.most.max(loss.missing);
            if loss.is_over() && core.surges.hubs_of_tenants.is_single() {
                let (most, back) = (loss.most, loss.most - loss.missing);
                tracing::warn!(
                    %tenant_uuid,
                    "{back} of {most} hubs of a tenant that went offline together are back"
                );
            }
        }
        self.losses.retain(|_, loss| !loss.is_over());
        for lost in hubs::lost(conn, now).await? {
            let tenant_uuid = lost.tenant_uuid;
            if self.losses.contains_key(&tenant_uuid) || self.losses.len() >= MAX_TENANTS {
                continue;
            }
            if core.surges.hubs_of_tenants.is_single() {
                tracing::warn!(
                    %tenant_uuid,
                    "{} hubs of a tenant went offline within a minute; look for what they share: site, network, proxy",
                    lost.hubs
                );
            }
            let loss = Loss {
                heard_after: lost.heard_after,
                most: lost.hubs,
                missing: lost.hubs,
            };
            self.losses.insert(tenant_uuid, loss);
        }
        let missing = self.losses.values().map(|loss| loss.missing).sum();
        core.metrics.conditions.hubs_lost.set(missing);
        Ok(())
    }

    fn note_floods(&mut self, core: &Core, flooding: &[Flooding]) {
        let mut floods = BTreeMap::new();
        for hub in flooding {
            *floods.entry(hub.tenant_uuid).or_insert(0) += 1;
        }
        for (tenant_uuid, hubs) in &floods {
            if !self.floods.contains_key(tenant_uuid) && core.surges.hubs_of_tenants.is_single() {
                tracing::warn!(
                    %tenant_uuid, hubs,
                    "hubs of a tenant upload far more than their share of its limit; the excess is refused"
                );
            }
        }
        for tenant_uuid in self.floods.keys() {
            if !floods.contains_key(tenant_uuid) && core.surges.hubs_of_tenants.is_single() {
                tracing::warn!(%tenant_uuid, "the hubs of a tenant keep to their shares again");
            }
        }
        self.floods = floods;
    }
}
