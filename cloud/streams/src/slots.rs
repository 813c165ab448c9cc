//! How many streams may be open at this replica: in all, of one tenant, of one caller. So nobody
//! can use up the streams of everybody else.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub_base::error::{Error, Result};
use hub_identity::authz::Caller;
use hub_protocol::{TenantUuid, UserUuid};
use prometheus_client::metrics::gauge::Gauge;
use uuid::Uuid;

/// The most open streams of all tenants.
const MAX_STREAMS: i64 = 20_000;
/// A caller may have half of its tenant's streams, and at least this many of them.
const MIN_STREAMS_PER_CALLER: i64 = 8;
/// Streams of one mandate: its recipient is one program, and may have another one take over.
const STREAMS_PER_MANDATE: i64 = 2;
const RETRY_AFTER_SECS: u64 = 10;

/// Counts open streams; cheap to clone.
#[derive(Clone)]
pub struct Slots(Arc<Inner>);

struct Inner {
    counts: Mutex<Counts>,
    /// The gauge of open streams.
    open: Gauge,
}

#[derive(Default)]
struct Counts {
    all: i64,
    tenants: HashMap<TenantUuid, i64>,
    holders: HashMap<Holder, i64>,
}

impl Counts {
    fn of(&self, holder: Holder) -> i64 {
        self.holders.get(&holder).copied().unwrap_or(0)
    }

    fn require_room(&self) -> Result<()> {
        match self.all < MAX_STREAMS {
            true => Ok(()),
            false => Err(Error::unavailable(
                "TOO_MANY_STREAMS",
                "too many streams are open; try again shortly",
            )),
        }
    }
}

/// The holder of a slot: a person, with any login and in any tenant, an API key, or the recipient
/// of a mandate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    User(UserUuid),
    ApiKey(i64),
    Mandate(Uuid),
}

impl From<&Caller> for Holder {
    fn from(caller: &Caller) -> Self {
        match caller {
            Caller::Member { user, .. } => Self::User(user.user_uuid),
            Caller::ApiKey(key) => Self::ApiKey(key.api_key_id),
        }
    }
}

/// The place of one open stream; dropping it frees the place.
pub struct Slot {
    slots: Slots,
    /// None of a stream of a person's data.
    tenant_uuid: Option<TenantUuid>,
    holder: Holder,
}

impl Slots {
    pub fn new(open: Gauge) -> Self {
        Self(Arc::new(Inner {
            counts: Mutex::default(),
            open,
        }))
    }

    /// A place for one more stream. `limit` is the tenant's. Fails with 429 if the tenant or the
    /// caller has as many streams as it may have, and with 503 if the service has.
    pub fn enter(&self, tenant_uuid: TenantUuid, caller: &Caller, limit: i64) -> Result<Slot> {
        self.enter_as(tenant_uuid, caller.into(), limit)
    }

    /// A place for a stream of a person's own data, which counts for no tenant. Fails as
    /// [`Self::enter`].
    pub fn enter_person(&self, user_uuid: UserUuid) -> Result<Slot> {
        self.enter_alone(Holder::User(user_uuid), MIN_STREAMS_PER_CALLER)
    }

    /// A place for a stream of the recipient of a mandate. Fails as [`Self::enter`].
    pub fn enter_recipient(&self, mandate_uuid: Uuid) -> Result<Slot> {
        self.enter_alone(Holder::Mandate(mandate_uuid), STREAMS_PER_MANDATE)
    }

    fn enter_alone(&self, holder: Holder, limit: i64) -> Result<Slot> {
        let mut counts = self.lock();
        counts.require_room()?;
        if counts.of(holder) >= limit {
            let message =
                format!("you may have {limit} streams open; close one, or try again later");
            return Err(Error::too_many_requests(message, RETRY_AFTER_SECS));
        }
        Ok(self.count(&mut counts, None, holder))
    }

    fn enter_as(&self, tenant_uuid: TenantUuid, holder: Holder, limit: i64) -> Result<Slot> {
        let mut counts = self.lock();
        counts.require_room()?;
        if counts
            .tenants
            .get(&tenant_uuid)
            .is_some_and(|open| *open >= limit)
            || limit <= 0
        {
            let message = format!(
                "this tenant may have {limit} streams open (streams-per-tenant); close one, or try again later"
            );
            return Err(Error::too_many_requests(message, RETRY_AFTER_SECS));
        }
        let share = (limit / 2).max(MIN_STREAMS_PER_CALLER);
        if counts.of(holder) >= share {
            let message = format!(
                "one caller may have {share} streams open, which leaves the others of its tenant some \
                 (streams-per-tenant is {limit}); close one, or try again later"
            );
            return Err(Error::too_many_requests(message, RETRY_AFTER_SECS));
        }
        *counts.tenants.entry(tenant_uuid).or_default() += 1;
        Ok(self.count(&mut counts, Some(tenant_uuid), holder))
    }

    fn count(&self, counts: &mut Counts, tenant_uuid: Option<TenantUuid>, holder: Holder) -> Slot {
        counts.all += 1;
        *counts.holders.entry(holder).or_default() += 1;
        self.0.open.inc();
        Slot {
            slots: self.clone(),
            tenant_uuid,
            holder,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.slots.lock();
        counts.all -= 1;
        if let Some(tenant_uuid) = self.tenant_uuid {
            leave(&mut counts.tenants, tenant_uuid);
        }
        leave(&mut counts.holders, self.holder);
        self.slots.0.open.dec();
    }
}

fn leave<K: Eq + Hash>(counts: &mut HashMap<K, i64>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() <= 0 {
            count.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(slots: &Slots, tenant: TenantUuid, holder: Holder, limit: i64) -> u16 {
        slots
            .enter_as(tenant, holder, limit)
            .err()
            .expect("a refusal")
            .status()
            .as_u16()
    }

    #[test]
    fn a_caller_has_half_of_its_tenants_streams_in_all_its_tenants() {
        let slots = Slots::new(Gauge::default());
        let (one, other) = (TenantUuid::new(), TenantUuid::new());
        let (greedy, modest) = (Holder::User(UserUuid::new()), Holder::ApiKey(7));
        let held: Vec<_> = (0..20)
            .map(|_| slots.enter_as(one, greedy, 40).expect("a slot"))
            .collect();
        assert_eq!(status(&slots, one, greedy, 40), 429);
        assert_eq!(
            status(&slots, other, greedy, 40),
            429,
            "another tenant's streams are the same caller's"
        );
        let rest: Vec<_> = (0..20)
            .map(|_| slots.enter_as(one, modest, 40).expect("a slot"))
            .collect();
        assert_eq!(
            status(&slots, one, Holder::ApiKey(8), 40),
            429,
            "the tenant has all its streams"
        );
        slots
            .enter_as(other, Holder::ApiKey(9), 40)
            .expect("another tenant's are its own");
        drop((held, rest));
        let counts = slots.lock();
        assert!(counts.all == 0 && counts.tenants.is_empty() && counts.holders.is_empty());
        assert_eq!(slots.0.open.get(), 0);
    }

    #[test]
    fn a_small_limit_is_not_halved_and_none_is_none() {
        let slots = Slots::new(Gauge::default());
        let (tenant, holder) = (TenantUuid::new(), Holder::ApiKey(1));
        let held: Vec<_> = (0..3)
            .map(|_| slots.enter_as(tenant, holder, 3).expect("a slot"))
            .collect();
        assert_eq!(status(&slots, tenant, holder, 3), 429);
        drop(held);
        assert_eq!(status(&slots, tenant, holder, 0), 429);
    }

    #[test]
    fn the_service_as_a_whole_is_limited_too() {
        let slots = Slots::new(Gauge::default());
        let held: Vec<_> = (0..MAX_STREAMS)
            .map(|id| {
                slots
                    .enter_as(TenantUuid::new(), Holder::ApiKey(id), 1)
                    .expect("a slot")
            })
            .collect();
        assert_eq!(
            status(&slots, TenantUuid::new(), Holder::ApiKey(-1), 1),
            503
        );
        drop(held);
    }
}
