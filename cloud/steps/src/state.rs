//! What `sample`, `on_change` and `dedupe` remember: for each key, when it last passed and with
//! what. Bounded in keys. It depends on nothing but the events that went through, in their order.

use std::collections::HashMap;

use hub_protocol::HubUuid;

use super::wire::{Reader, Writer, hash};

/// Keys that a step remembers, and all steps of a program together. Beyond, the oldest go.
const MAX_KEYS: usize = 50_000;
const MAX_KEYS_IN_ALL: usize = 100_000;
/// The number of keys at which expired ones are removed.
const FIRST_PRUNE: usize = 1024;
const VERSION: u8 = 1;

/// The key of a step's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    Device(i64),
    /// A device that is not registered, by the bits of its address.
    Address(u64),
    Hub(HubUuid),
    Observation(i64),
}

/// The key, and the place of one of several values of a quantity.
pub type Place = (Key, Option<u8>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Entries are numbered as they are written.
    number: u64,
    /// Microseconds since 1970.
    pub at: i64,
    pub value: Remembered,
}

/// The value that passed last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remembered {
    Nothing,
    Number(f64),
    Bool(bool),
    /// The hash of a text, which may be long.
    Text(u64),
}

/// The memory of the stateful steps of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    slots: Vec<Slot>,
}

#[derive(Clone, Debug, PartialEq)]
struct Slot {
    /// The hash of the kind of step that it belongs to.
    signature: u64,
    /// Microseconds after which an entry makes no difference; None if it always does.
    lasts: Option<i64>,
    most: usize,
    entries: HashMap<Place, Entry>,
    next: u64,
    prune_at: usize,
}

/// A stateful step: what `State::from_bytes` finds its part by, and how long entries last.
#[derive(Clone, Debug)]
pub struct SlotKind {
    pub signature: String,
    pub lasts: Option<i64>,
}

/// A change that can be undone.
pub struct Undo {
    /// The event that made it.
    pub input: usize,
    slot: usize,
    place: Place,
    before: Option<Entry>,
    prune_at: usize,
}

impl State {
    pub(super) fn new(kinds: &[SlotKind]) -> Self {
        let most = MAX_KEYS.min(MAX_KEYS_IN_ALL / kinds.len().max(1));
        let slot = |kind: &SlotKind| Slot {
            signature: hash(kind.signature.as_bytes()),
            lasts: kind.lasts,
            most,
            entries: HashMap::new(),
            next: 0,
            prune_at: FIRST_PRUNE,
        };
        Self {
            slots: kinds.iter().map(slot).collect(),
        }
    }

    pub(super) fn get(&self, slot: usize, place: &Place) -> Option<&Entry> {
        self.slots.get(slot)?.entries.get(place)
    }

    /// Remembers something. What that overwrites and removes is added to `undo`.
    pub(super) fn put(
        &mut self,
        (input, slot): (usize, usize),
        place: Place,
        (at, value): (i64, Remembered),
        undo: &mut Option<Vec<Undo>>,
    ) {
        let Some(kept) = self.slots.get_mut(slot) else {
            return;
        };
        let prune_at = kept.prune_at;
        let entry = Entry {
            number: kept.next,
            at,
            value,
        };
        kept.next += 1;
        let before = kept.entries.insert(place, entry);
        let mut changes = vec![(place, before)];
        if before.is_none() && kept.entries.len() >= kept.prune_at.min(kept.most + 1) {
            kept.prune(at, &mut changes);
        }
        if let Some(undo) = undo {
            undo.extend(changes.into_iter().map(|(place, before)| Undo {
                input,
                slot,
                place,
                before,
                prune_at,
            }));
        }
    }

    /// Takes back changes, the last first. Within a step they are in the order of the events.
    pub(super) fn undo(&mut self, changes: Vec<Undo>) {
        for change in changes.into_iter().rev() {
            let Some(slot) = self.slots.get_mut(change.slot) else {
                continue;
            };
            match change.before {
                Some(entry) => slot.entries.insert(change.place, entry),
                None => slot.entries.remove(&change.place),
            };
            slot.prune_at = change.prune_at;
        }
    }

    /// The stored form: about 12 bytes a key.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut all = Writer::default();
        all.byte(VERSION);
        for slot in &self.slots {
            let content = slot.to_bytes();
            all.fixed(slot.signature);
            all.unsigned(content.len() as u64);
            all.fixed(hash(&content));
            all.bytes(&content);
        }
        all.into_bytes()
    }

    pub(super) fn read(kinds: &[SlotKind], bytes: &[u8]) -> Self {
        let mut state = Self::new(kinds);
        let mut reader = Reader::new(bytes);
        if reader.byte() != Some(VERSION) {
            return state;
        }
        let mut filled = vec![false; state.slots.len()];
        while let Some((signature, content)) = part(&mut reader) {
            let Some(content) = content else { continue };
            let mut slots = state.slots.iter_mut().zip(&mut filled);
            let slot = slots.find(|(slot, is_filled)| slot.signature == signature && !**is_filled);
            if let Some((slot, is_filled)) = slot
                && slot.fill(content).is_some()
            {
                *is_filled = true;
            }
        }
        state
    }
}

/// The next part of the bytes: whose it is, and what is in it if it is not damaged.
fn part<'a>(reader: &mut Reader<'a>) -> Option<(u64, Option<&'a [u8]>)> {
    let signature = reader.fixed()?;
    let length = usize::try_from(reader.unsigned()?).ok()?;
    let wanted = reader.fixed()?;
    let content = reader.bytes(length)?;
    Some((
        signature,
        Some(content).filter(|content| hash(content) == wanted),
    ))
}

impl Slot {
    /// Removes what makes no difference at a time, and the oldest of what is too many.
    fn prune(&mut self, now: i64, removed: &mut Vec<(Place, Option<Entry>)>) {
        let lasts = self.lasts;
        let is_over =
            |entry: &Entry| lasts.is_some_and(|lasts| entry.at.saturating_add(lasts) <= now);
        let mut gone: Vec<Place> = self
            .entries
            .iter()
            .filter(|(_, entry)| is_over(entry))
            .map(|(place, _)| *place)
            .collect();
        if self.entries.len() > self.most {
            // A part of them at once, so that this is seldom done.
            let left = self.entries.len() - gone.len();
            let target = self.most - self.most / 8;
            let mut rest: Vec<(u64, Place)> = self
                .entries
                .iter()
                .filter(|(_, entry)| !is_over(entry))
                .map(|(place, entry)| (entry.number, *place))
                .collect();
            rest.sort_unstable();
            gone.extend(
                rest.into_iter()
                    .take(left.saturating_sub(target))
                    .map(|(_, place)| place),
            );
        }
        gone.sort_unstable();
        for place in gone {
            removed.push((place, self.entries.remove(&place)));
        }
        self.prune_at = (self.entries.len() * 2).max(FIRST_PRUNE);
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut entries: Vec<(&Place, &Entry)> = self.entries.iter().collect();
        entries.sort_unstable_by_key(|(_, entry)| entry.number);
        let mut writer = Writer::default();
        writer.unsigned(self.prune_at as u64);
        writer.unsigned(entries.len() as u64);
        let mut last_at = 0;
        for ((key, index), entry) in entries {
            let (kind, number) = match key {
                Key::Device(id) => (0, *id as u64),
                Key::Address(bits) => (1, *bits),
                Key::Hub(_) => (2, 0),
                Key::Observation(id) => (3, id.wrapping_sub(entry.at) as u64),
            };
            let value = match entry.value {
                Remembered::Nothing => 0,
                Remembered::Number(_) => 1,
                Remembered::Bool(false) => 2,
                Remembered::Bool(true) => 3,
                Remembered::Text(_) => 4,
            };
            writer.byte(kind | (value << 2) | (u8::from(index.is_some()) << 5));
            writer.signed(entry.at.wrapping_sub(last_at));
            last_at = entry.at;
            match key {
                Key::Hub(HubUuid(uuid)) => writer.bytes(uuid.as_bytes()),
                _ => writer.signed(number as i64),
            }
            if let Some(index) = index {
                writer.byte(*index);
            }
            match entry.value {
                Remembered::Number(value) => writer.fixed(value.to_bits()),
                Remembered::Text(hash) => writer.fixed(hash),
                Remembered::Nothing | Remembered::Bool(_) => {}
            }
        }
        writer.into_bytes()
    }

    /// None if the bytes are not a result of `to_bytes`; the state is then unchanged.
    fn fill(&mut self, bytes: &[u8]) -> Option<()> {
        let mut reader = Reader::new(bytes);
        let prune_at = usize::try_from(reader.unsigned()?).ok()?;
        let count = usize::try_from(reader.unsigned()?)
            .ok()
            .filter(|count| *count <= bytes.len())?;
        let (mut entries, mut next, mut last_at) =
            (HashMap::with_capacity(count.min(self.most)), 0, 0_i64);
        // The oldest come first, and are left out if there are too many.
        let skipped = count.saturating_sub(self.most);
        for place in 0..count {
            let head = reader.byte()?;
            let at = last_at.wrapping_add(reader.signed()?);
            last_at = at;
            let key = match head & 3 {
                0 => Key::Device(reader.signed()?),
                1 => Key::Address(reader.signed()? as u64),
                2 => Key::Hub(HubUuid(uuid::Uuid::from_bytes(
                    reader.bytes(16)?.try_into().ok()?,
                ))),
                _ => Key::Observation(reader.signed()?.wrapping_add(at)),
            };
            let index = if head & 32 == 0 {
                None
            } else {
                Some(reader.byte()?)
            };
            let value = match (head >> 2) & 7 {
                0 => Remembered::Nothing,
                1 => Remembered::Number(f64::from_bits(reader.fixed()?)),
                2 => Remembered::Bool(false),
                3 => Remembered::Bool(true),
                4 => Remembered::Text(reader.fixed()?),
                _ => return None,
            };
            if place >= skipped {
                entries.insert(
                    (key, index),
                    Entry {
                        number: next,
                        at,
                        value,
                    },
                );
                next += 1;
            }
        }
        (self.entries, self.next, self.prune_at) =
            (entries, next, prune_at.clamp(FIRST_PRUNE, MAX_KEYS * 2));
        Some(())
    }
}
