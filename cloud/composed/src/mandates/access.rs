//! What the recipient of a mandate may read at a moment: devices that the mandate names and that
//! are the person's own, since they are and not before the mandate's beginning; and of their
//! quantities those that the mandate names and that are no trade secret.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::http::client_address;
use hub_devices::ble::split_key;
use hub_identity::authz::MandateBearer;
use hub_protocol::TenantUuid;
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::store::{self, MandateRow};
use super::{CREDENTIAL_PREFIX, EndReason, MAX_DEVICES};
use crate::end_users::{self, OwnDevice};

/// Requests that a recipient may make in a minute at one replica.
const REQUESTS_PER_MINUTE: u32 = 600;
const MINUTE_SECS: i64 = 60;
/// How often the use of a mandate is noted.
const NOTE_EVERY_SECS: i64 = 60;
/// One more than the devices of a mandate shows that a hub has more.
pub const LISTED_DEVICES: i64 = MAX_DEVICES as i64 + 1;

/// The requests of the present minute, by mandate. Cheap to clone.
#[derive(Clone, Default)]
pub struct Calls(Arc<Mutex<Minute>>);

#[derive(Default)]
struct Minute {
    number: i64,
    requests: HashMap<Uuid, u32>,
}

impl Calls {
    /// Counts a request. Only mandates in force are counted, which are limited for each person.
    fn count(&self, mandate_uuid: Uuid, now_secs: i64) -> Result<()> {
        let mut minute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now_secs.div_euclid(MINUTE_SECS);
        if minute.number != number {
            *minute = Minute {
                number,
                requests: HashMap::new(),
            };
        }
        let requests = minute.requests.entry(mandate_uuid).or_default();
        if *requests >= REQUESTS_PER_MINUTE {
            let message = format!("a mandate allows {REQUESTS_PER_MINUTE} requests a minute");
            let rest = MINUTE_SECS - now_secs.rem_euclid(MINUTE_SECS);
            return Err(Error::too_many_requests(message, rest.unsigned_abs()));
        }
        *requests += 1;
        Ok(())
    }
}

/// The quantities that a recipient may read.
#[derive(Clone, Debug)]
pub struct Quantities {
    /// All when None.
    named: Option<BTreeSet<String>>,
    trade_secrets: BTreeSet<String>,
}

impl Quantities {
    /// Whether the recipient may read a value, by its key such as `temperature` or `voltage[1]`.
    pub fn allow(&self, key: &str) -> bool {
        let quantity = split_key(key).0;
        let is_named = |named: &BTreeSet<String>| named.contains(quantity);
        self.named.as_ref().is_none_or(is_named) && !self.trade_secrets.contains(quantity)
    }
}

/// What may be read at this moment.
pub struct Permitted {
    pub tenant_uuid: TenantUuid,
    pub devices: Vec<OwnDevice>,
    pub quantities: Quantities,
}

/// The mandate of a request.
#[derive(Clone, Debug)]
pub struct Recipient {
    pub mandate_uuid: Uuid,
}

/// 401 for a credential that is of no mandate in force. It is always the same, so that guessing
/// reveals nothing.
fn not_in_force() -> Error {
    let message = "the credential is of no mandate that is in force; ask the person for a new one";
    Error::unauthorized("INVALID_TOKEN", message)
}

/// The mandate in force that the credential is of. Counts a request, and notes the use.
pub async fn recipient(core: &Core, calls: &Calls, bearer: &MandateBearer) -> Result<Recipient> {
    let credential = bearer.0.expose_secret();
    if !credential.starts_with(CREDENTIAL_PREFIX) {
        return Err(not_in_force());
    }
    let now = core.clock.now();
    let found = store::of_credential(&mut core.db.read().await?, sealing::hash(credential)).await?;
    let row = found
        .filter(|row| row.end(now).is_none())
        .ok_or_else(not_in_force)?;
    calls.count(row.mandate_uuid, now.as_secs())?;
    let address = client_address::current().map(|address| address.to_string());
    let is_noted = row
        .last_used_at
        .is_some_and(|at| at.plus_secs(NOTE_EVERY_SECS) > now);
    if !is_noted {
        let mut tx = core.db.begin().await?;
        store::note_use(&mut tx, row.mandate_uuid, now, address).await?;
        tx.commit_unaudited("a recipient's reading changes nothing")
            .await?;
    }
    Ok(Recipient {
        mandate_uuid: row.mandate_uuid,
    })
}

impl Recipient {
    /// What the recipient may read now: of these devices, or of all. Fails with 401 once the
    /// mandate has ended.
    pub async fn permitted(
        &self,
        core: &Core,
        conn: &mut Conn,
        wanted: Option<&[i64]>,
    ) -> Result<Permitted> {
        let row = store::get(conn, self.mandate_uuid)
            .await?
            .ok_or_else(not_in_force)?;
        permitted(core, conn, &row, wanted).await
    }
}

/// What a mandate allows now.
pub async fn permitted(
    core: &Core,
    conn: &mut Conn,
    row: &MandateRow,
    wanted: Option<&[i64]>,
) -> Result<Permitted> {
    if row.end(core.clock.now()).is_some() {
        return Err(not_in_force());
    }
    let mut devices = owned(core, conn, row, wanted).await?;
    for device in &mut devices {
        device.since = device.since.max(row.from_at);
    }
    let secrets = store::trade_secrets(conn, [row.tenant_uuid]).await?;
    let quantities = Quantities {
        named: row.quantities()?.map(BTreeSet::from_iter),
        trade_secrets: secrets.into_iter().map(|secret| secret.quantity).collect(),
    };
    Ok(Permitted {
        tenant_uuid: row.tenant_uuid,
        devices,
        quantities,
    })
}

/// The devices of a mandate that are the person's own now.
async fn owned(
    core: &Core,
    conn: &mut Conn,
    row: &MandateRow,
    wanted: Option<&[i64]>,
) -> Result<Vec<OwnDevice>> {
    let person = end_users::owner(core, row.user_uuid);
    let named = row.device_instance_ids()?;
    let ids = match (named, wanted) {
        (None, None) => None,
        (Some(named), None) => Some(named),
        (None, Some(wanted)) => Some(wanted.to_vec()),
        (Some(named), Some(wanted)) => {
            Some(named.into_iter().filter(|id| wanted.contains(id)).collect())
        }
    };
    let mut devices = match ids {
        Some(ids) => end_users::own_devices(conn, &person, &ids).await?,
        None => end_users::some_devices(conn, &person, row.hub_uuid, LISTED_DEVICES).await?,
    };
    devices.retain(|device| {
        device.tenant_uuid == row.tenant_uuid
            && row
                .hub_uuid
                .is_none_or(|hub_uuid| device.hub_uuid == hub_uuid)
    });
    Ok(devices)
}

/// Why a mandate that has no end yet has to get one.
pub async fn overdue_end(
    core: &Core,
    conn: &mut Conn,
    row: &MandateRow,
) -> Result<Option<EndReason>> {
    if let Some((_, reason)) = row.end(core.clock.now()) {
        return Ok(Some(reason));
    }
    let person = end_users::owner(core, row.user_uuid);
    let is_owner = match row.hub_uuid {
        Some(hub_uuid) => !end_users::some_hubs(conn, &person, Some(hub_uuid), 1)
            .await?
            .is_empty(),
        // A device may be out of earshot for a while; without a hub of the supplier none returns.
        None => end_users::is_customer(conn, &person, row.tenant_uuid).await?,
    };
    Ok((!is_owner).then_some(EndReason::OwnershipEnded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipient_reads_the_named_quantities_and_no_trade_secret() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let all = Quantities {
            named: None,
            trade_secrets: set(&["vibration"]),
        };
        assert!(all.allow("temperature") && all.allow("voltage[1]"));
        assert!(!all.allow("vibration") && !all.allow("vibration[0]"));
        let some = Quantities {
            named: Some(set(&["voltage", "vibration"])),
            trade_secrets: set(&["vibration"]),
        };
        assert!(some.allow("voltage[1]"));
        assert!(!some.allow("temperature") && !some.allow("vibration"));
    }

    #[test]
    fn a_mandate_has_so_many_requests_in_a_minute() {
        let calls = Calls::default();
        let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
        for _ in 0..REQUESTS_PER_MINUTE {
            assert!(calls.count(one, 119).is_ok());
        }
        assert!(calls.count(one, 119).is_err());
        assert!(calls.count(other, 119).is_ok());
        assert!(calls.count(one, 120).is_ok());
    }
}
