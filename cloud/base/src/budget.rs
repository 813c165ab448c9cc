//! Memory that many share, reserved before it is used. Nobody waits for it: a reservation succeeds
//! at once or is refused. A group and each of its members may use as much as they leave free, so
//! one alone gets a part of the whole, several get equal parts, and something is left for whoever
//! comes next.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use uuid::Uuid;

/// The account that memory is charged to: a group, such as a tenant, and one of its members, if the
/// group has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    pub group: Uuid,
    pub member: Option<Uuid>,
}

impl Holder {
    /// A client without an account, known by its address. The lower half of an IPv6 address is the
    /// client's to choose, so it does not count.
    pub fn address(address: Option<IpAddr>) -> Self {
        let bits = match address {
            Some(IpAddr::V4(address)) => u128::from(address.to_bits()),
            Some(IpAddr::V6(address)) => address.to_bits() >> 64 << 64,
            None => 0,
        };
        Self {
            group: Uuid::from_u128(bits),
            member: None,
        }
    }
}

/// Why a reservation is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Others use it.
    Whole,
    /// The holder itself uses its share.
    Share,
}

/// A number of bytes; cheap to clone.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    bytes: usize,
    /// Bytes by group and by member; no entry is zero.
    by_holder: HashMap<Uuid, usize>,
}

/// Reserved bytes, released when dropped.
#[derive(Debug)]
pub struct Held {
    budget: Budget,
    holder: Holder,
    bytes: usize,
}

impl Budget {
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Inner {
            bytes,
            used: Mutex::default(),
        }))
    }

    /// An empty reservation, to grow.
    pub fn hold(&self, holder: Holder) -> Held {
        Held {
            budget: self.clone(),
            holder,
            bytes: 0,
        }
    }

    pub fn reserve(&self, holder: Holder, bytes: usize) -> Result<Held, Full> {
        let mut held = self.hold(holder);
        held.grow_to(bytes)?;
        Ok(held)
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    fn of(&self, holder: Uuid) -> usize {
        self.by_holder.get(&holder).copied().unwrap_or(0)
    }

    fn add(&mut self, holder: Holder, bytes: usize) {
        self.bytes += bytes;
        for key in [Some(holder.group), holder.member].into_iter().flatten() {
            *self.by_holder.entry(key).or_default() += bytes;
        }
    }

    fn remove(&mut self, holder: Holder, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        for key in [Some(holder.group), holder.member].into_iter().flatten() {
            let left = self.of(key).saturating_sub(bytes);
            match left {
                0 => self.by_holder.remove(&key),
                left => self.by_holder.insert(key, left),
            };
        }
    }
}

impl Held {
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves what is missing to `bytes`. A refusal changes nothing.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), Full> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let mut used = self.budget.lock();
        let free = self.budget.0.bytes.saturating_sub(used.bytes);
        let of_group = used.of(self.holder.group);
        let for_group = free.saturating_sub(of_group);
        let of_member = self.holder.member.map_or(0, |member| used.of(member));
        let for_member = for_group.saturating_sub(of_member);
        // An unused budget grants anything, which otherwise could never be had.
        if more > for_member && used.bytes > 0 {
            // The group's own use, and not that of others, leaves no room.
            let is_own = more <= free + of_group;
            return Err(if is_own { Full::Share } else { Full::Whole });
        }
        used.add(self.holder, more);
        self.bytes = self.bytes.max(bytes);
        Ok(())
    }

    pub fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        if less > 0 {
            self.budget.lock().remove(self.holder, less);
            self.bytes = bytes;
        }
    }

    /// The bytes, which hold the reservation until the last part of them is dropped.
    pub fn attach(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(HeldBytes { bytes, _held: self })
    }
}

struct HeldBytes {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(group: u128, member: u128) -> Holder {
        Holder {
            group: Uuid::from_u128(group),
            member: Some(Uuid::from_u128(member)),
        }
    }

    /// How much it gets in steps of one byte.
    fn fill(budget: &Budget, holder: Holder) -> Held {
        let mut held = budget.hold(holder);
        while held.grow_to(held.bytes() + 1).is_ok() {}
        held
    }

    #[test]
    fn one_leaves_room_for_others() {
        let budget = Budget::new(120);
        let hub = fill(&budget, member(1, 11));
        assert_eq!(hub.bytes(), 40, "a third, for one hub");
        let sibling = fill(&budget, member(1, 12));
        assert_eq!(
            hub.bytes() + sibling.bytes(),
            54,
            "less than half, for one tenant"
        );
        assert_eq!(
            fill(&budget, member(2, 21)).bytes(),
            22,
            "a third of the rest"
        );
        assert_eq!(budget.used_bytes(), 54);
        drop((hub, sibling));
        assert_eq!(budget.used_bytes(), 0);
        assert!(budget.lock().by_holder.is_empty(), "nobody is remembered");
    }

    #[test]
    fn refusal_says_whose_use_is_in_the_way() {
        let budget = Budget::new(100);
        let held = budget.reserve(member(1, 11), 60).expect("room");
        assert_eq!(budget.reserve(member(1, 11), 10).err(), Some(Full::Share));
        assert_eq!(budget.reserve(member(1, 12), 100).err(), Some(Full::Share));
        assert_eq!(budget.reserve(member(1, 12), 101).err(), Some(Full::Whole));
        assert_eq!(budget.reserve(member(2, 21), 41).err(), Some(Full::Whole));
        let _other = budget.reserve(member(2, 21), 40).expect("what is free");
        drop(held);
        assert_eq!(budget.used_bytes(), 40);
    }

    #[test]
    fn unused_budget_grants_anything() {
        let budget = Budget::new(10);
        let mut held = budget
            .reserve(member(1, 1), 50)
            .expect("nobody else uses it");
        assert_eq!(budget.reserve(member(2, 2), 1).err(), Some(Full::Whole));
        held.shrink_to(5);
        assert!(budget.reserve(member(2, 2), 5).is_ok());
    }

    #[test]
    fn bytes_hold_their_reservation_to_the_last_part() {
        let budget = Budget::new(10);
        let bytes = budget
            .reserve(member(1, 1), 4)
            .expect("room")
            .attach(Bytes::from_static(b"four"));
        let part = bytes.slice(1..2);
        drop(bytes);
        assert_eq!((&*part, budget.used_bytes()), (&b"o"[..], 4));
        drop(part);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_holder() {
        let of = |text: &str| Holder::address(Some(text.parse().expect("an address")));
        assert_eq!(of("2001:db8::1"), of("2001:db8::2:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
