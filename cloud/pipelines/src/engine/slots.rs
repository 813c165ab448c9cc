//! Who may work next. A slot is the right to read, run steps and send one message. Tenants get
//! slots by deficit round robin over the bytes they send, lanes of a tenant in turn. No tenant has
//! more than a quarter of the slots, and attempts at receivers that fail have a tenth together.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub_protocol::TenantUuid;
use tokio::sync::oneshot;
use uuid::Uuid;

/// Bytes that a tenant may send in its turn.
const QUANTUM: i64 = 64 * 1024;
/// What a message costs at least, in bytes.
const LEAST_COST: i64 = 1024;
/// A tenant's debt is no larger: one large message does not silence it for long.
const MOST_DEBT: i64 = 16 * QUANTUM;
/// Of so many slots, one is given to what waits with low priority first.
const LOW_EVERY: u64 = 8;

/// What a slot is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Normal,
    /// Replays: while nothing else waits, and one of a few otherwise.
    Low,
    /// A receiver that fails is tried.
    Probe,
}

/// The slots of this replica; cheap to clone.
#[derive(Clone)]
pub struct Slots(Arc<Mutex<State>>);

/// One slot. Free again when it is dropped.
pub struct Slot {
    slots: Slots,
    tenant_uuid: TenantUuid,
    is_probe: bool,
}

struct Waiter {
    lane_uuid: Uuid,
    turn: Turn,
    granted: oneshot::Sender<Slot>,
}

#[derive(Default)]
struct Tenant {
    used: usize,
    deficit: i64,
    waiting: VecDeque<Waiter>,
}

struct State {
    total: usize,
    used: usize,
    probes: usize,
    grants: u64,
    tenants: HashMap<TenantUuid, Tenant>,
    /// Tenants with waiting lanes, in the order of their turns.
    round: VecDeque<TenantUuid>,
}

impl Slots {
    pub fn new(total: usize) -> Self {
        let tenants = HashMap::new();
        let total = total.max(1);
        Self(Arc::new(Mutex::new(State {
            total,
            used: 0,
            probes: 0,
            grants: 0,
            tenants,
            round: VecDeque::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot. A lane waits for one at a time. None is granted after the future is
    /// dropped.
    pub fn acquire(
        &self,
        tenant_uuid: TenantUuid,
        lane_uuid: Uuid,
        turn: Turn,
    ) -> impl Future<Output = Slot> + use<> {
        let (granted, slot) = oneshot::channel();
        let ready = {
            let mut state = self.lock();
            state.enqueue(
                tenant_uuid,
                Waiter {
                    lane_uuid,
                    turn,
                    granted,
                },
            );
            state.grant()
        };
        self.give(ready);
        async move {
            match slot.await {
                Ok(slot) => slot,
                // The state lives as long as the slots.
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Hands out slots outside of the lock: one that is not wanted any more comes back at once.
    fn give(&self, mut ready: Vec<Granted>) {
        while let Some(Granted {
            waiter,
            tenant_uuid,
        }) = ready.pop()
        {
            let is_probe = waiter.turn == Turn::Probe;
            let slot = Slot {
                slots: self.clone(),
                tenant_uuid,
                is_probe,
            };
            if let Err(slot) = waiter.granted.send(slot) {
                ready.extend(slot.give_back());
            }
        }
    }

    /// Slots in use.
    pub fn used(&self) -> usize {
        self.lock().used
    }
}

struct Granted {
    waiter: Waiter,
    tenant_uuid: TenantUuid,
}

impl Slot {
    /// Counts what was sent in this turn.
    pub fn charge(&self, bytes: usize) {
        let cost = i64::try_from(bytes).unwrap_or(i64::MAX).max(LEAST_COST);
        if let Some(tenant) = self.slots.lock().tenants.get_mut(&self.tenant_uuid) {
            tenant.deficit = tenant.deficit.saturating_sub(cost).max(-MOST_DEBT);
        }
    }

    /// Frees the slot; returns whose turn it is, without a slot being dropped meanwhile.
    fn give_back(self) -> Vec<Granted> {
        let slot = std::mem::ManuallyDrop::new(self);
        let mut state = slot.slots.lock();
        state.free(slot.tenant_uuid, slot.is_probe);
        state.grant()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let ready = {
            let mut state = self.slots.lock();
            state.free(self.tenant_uuid, self.is_probe);
            state.grant()
        };
        self.slots.give(ready);
    }
}

impl State {
    fn enqueue(&mut self, tenant_uuid: TenantUuid, waiter: Waiter) {
        let tenant = self.tenants.entry(tenant_uuid).or_default();
        // A lane that stopped waiting and waits again keeps one place.
        tenant
            .waiting
            .retain(|other| other.lane_uuid != waiter.lane_uuid && !other.granted.is_closed());
        let was_waiting = self.round.contains(&tenant_uuid);
        tenant.waiting.push_back(waiter);
        if !was_waiting {
            self.round.push_back(tenant_uuid);
        }
    }

    fn free(&mut self, tenant_uuid: TenantUuid, is_probe: bool) {
        self.used = self.used.saturating_sub(1);
        self.probes = self.probes.saturating_sub(usize::from(is_probe));
        if let Some(tenant) = self.tenants.get_mut(&tenant_uuid) {
            tenant.used = tenant.used.saturating_sub(1);
            if tenant.used == 0 && tenant.waiting.is_empty() {
                self.tenants.remove(&tenant_uuid);
            }
        }
    }

    /// Grants free slots as far as somebody may have them.
    fn grant(&mut self) -> Vec<Granted> {
        let mut granted = Vec::new();
        while self.used < self.total {
            self.grants += 1;
            let low_first = self.grants.is_multiple_of(LOW_EVERY);
            let next = match low_first {
                true => self
                    .next(|turn| turn == Turn::Low)
                    .or_else(|| self.next(|turn| turn != Turn::Low)),
                false => self
                    .next(|turn| turn != Turn::Low)
                    .or_else(|| self.next(|turn| turn == Turn::Low)),
            };
            let Some(next) = next else { break };
            self.used += 1;
            self.probes += usize::from(next.waiter.turn == Turn::Probe);
            granted.push(next);
        }
        granted
    }

    /// Whose turn it is among those that wait for what `fits`.
    fn next(&mut self, fits: impl Fn(Turn) -> bool) -> Option<Granted> {
        let most_of_tenant = (self.total / 4).max(1);
        let may_probe = self.probes < (self.total / 10).max(1);
        // Each round adds to what tenants may send; debts are bounded, so the rounds are too.
        for _ in 0..=(MOST_DEBT / QUANTUM) {
            let mut is_anybody_eligible = false;
            for _ in 0..self.round.len() {
                let Some(tenant_uuid) = self.round.pop_front() else {
                    break;
                };
                let Some(tenant) = self.tenants.get_mut(&tenant_uuid) else {
                    continue;
                };
                tenant.waiting.retain(|waiter| !waiter.granted.is_closed());
                if tenant.waiting.is_empty() {
                    if tenant.used == 0 {
                        self.tenants.remove(&tenant_uuid);
                    }
                    continue;
                }
                let may_have = |waiter: &Waiter| {
                    fits(waiter.turn) && (waiter.turn != Turn::Probe || may_probe)
                };
                let place = tenant
                    .waiting
                    .iter()
                    .position(may_have)
                    .filter(|_| tenant.used < most_of_tenant);
                let Some(place) = place else {
                    self.round.push_back(tenant_uuid);
                    continue;
                };
                is_anybody_eligible = true;
                if tenant.deficit <= 0 {
                    tenant.deficit += QUANTUM;
                    self.round.push_back(tenant_uuid);
                    continue;
                }
                let waiter = tenant.waiting.remove(place);
                tenant.used += 1;
                // It keeps its turn until it has sent its share.
                if !tenant.waiting.is_empty() {
                    self.round.push_front(tenant_uuid);
                }
                return waiter.map(|waiter| Granted {
                    waiter,
                    tenant_uuid,
                });
            }
            if !is_anybody_eligible {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn waiting(
        slots: &Slots,
        tenant: TenantUuid,
        turn: Turn,
    ) -> futures_util::future::BoxFuture<'static, Slot> {
        slots.acquire(tenant, Uuid::new_v4(), turn).fuse().boxed()
    }

    #[test]
    fn a_tenant_has_a_quarter_of_the_slots() {
        let slots = Slots::new(8);
        let (one, two) = (TenantUuid::new(), TenantUuid::new());
        let mut of_one: Vec<_> = (0..8).map(|_| waiting(&slots, one, Turn::Normal)).collect();
        let held: Vec<Slot> = of_one
            .iter_mut()
            .filter_map(FutureExt::now_or_never)
            .collect();
        assert_eq!(held.len(), 2);
        assert!(waiting(&slots, two, Turn::Normal).now_or_never().is_some());
        drop(held);
        assert_eq!(slots.used(), 2, "the next two of the tenant have them");
    }

    #[test]
    fn probes_have_a_tenth_together() {
        let slots = Slots::new(20);
        let tenants: Vec<TenantUuid> = (0..5).map(|_| TenantUuid::new()).collect();
        let mut probes: Vec<_> = tenants
            .iter()
            .map(|tenant| waiting(&slots, *tenant, Turn::Probe))
            .collect();
        let held: Vec<Slot> = probes
            .iter_mut()
            .filter_map(FutureExt::now_or_never)
            .collect();
        assert_eq!(held.len(), 2);
        assert!(
            waiting(&slots, tenants[0], Turn::Normal)
                .now_or_never()
                .is_some()
        );
    }

    #[test]
    fn tenants_get_equal_shares_of_bytes() {
        let slots = Slots::new(1);
        let (small, large) = (TenantUuid::new(), TenantUuid::new());
        let first = waiting(&slots, small, Turn::Normal)
            .now_or_never()
            .expect("a free slot");
        let mut queue: Vec<_> = (0..4000)
            .map(|n| waiting(&slots, if n % 2 == 0 { small } else { large }, Turn::Normal))
            .collect();
        drop(first);
        let mut sent: HashMap<TenantUuid, i64> = HashMap::new();
        for _ in 0..1000 {
            let slot = queue
                .iter_mut()
                .find_map(FutureExt::now_or_never)
                .expect("somebody has the slot");
            let bytes: usize = if slot.tenant_uuid == small {
                2048
            } else {
                32 * 1024
            };
            *sent.entry(slot.tenant_uuid).or_default() += i64::try_from(bytes).unwrap_or_default();
            slot.charge(bytes);
        }
        let (small, large) = (sent[&small] as f64, sent[&large] as f64);
        assert!(
            (0.8..1.25).contains(&(small / large)),
            "{small} and {large}"
        );
    }

    #[test]
    fn replays_wait_for_others_and_are_not_forgotten() {
        let slots = Slots::new(1);
        let tenant = TenantUuid::new();
        let held = waiting(&slots, tenant, Turn::Normal)
            .now_or_never()
            .expect("a free slot");
        let mut replay = waiting(&slots, tenant, Turn::Low);
        let mut others: Vec<_> = (0..100)
            .map(|_| waiting(&slots, tenant, Turn::Normal))
            .collect();
        drop(held);
        let mut before = 0;
        loop {
            if let Some(slot) = replay.as_mut().now_or_never() {
                drop(slot);
                break;
            }
            let slot = others
                .iter_mut()
                .find_map(FutureExt::now_or_never)
                .expect("somebody has the slot");
            before += 1;
            drop(slot);
        }
        assert!((1..=8).contains(&before), "{before} before it");
    }

    #[test]
    fn a_slot_that_nobody_wants_any_more_goes_to_the_next() {
        let slots = Slots::new(1);
        let tenant = TenantUuid::new();
        let held = waiting(&slots, tenant, Turn::Normal)
            .now_or_never()
            .expect("a free slot");
        let gone = waiting(&slots, tenant, Turn::Normal);
        let next = waiting(&slots, tenant, Turn::Normal);
        drop(gone);
        drop(held);
        assert!(next.now_or_never().is_some());
        assert_eq!(slots.used(), 0);
    }
}
