//! Receptions of one frame by several hubs. They share the id of the first one, as far as this
//! process stored it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::batches::FirstReception;
use super::upload::Observation;

/// Hubs may differ so much in when they received a frame.
const APART_MICROS: i64 = 10_000_000;
/// The most frames that are remembered.
const MAX_FRAMES: usize = 100_000;
/// The most hubs of one frame. Further ones begin another observation.
const MAX_HUBS: usize = 64;

type Key = (TenantUuid, u64);

/// The first reception of a frame, and the hubs that received it.
#[derive(Clone, Debug)]
struct Frame {
    first: FirstReception,
    observed_at: Timestamp,
    hubs: Vec<HubUuid>,
}

/// Frames that were stored lately.
#[derive(Debug, Default)]
pub(super) struct Observations(HashMap<Key, Frame>);

/// The frames of one group, until it is committed.
pub(super) struct Assigning<'a> {
    stored: &'a Observations,
    new: HashMap<Key, Frame>,
}

/// What a commit adds to the frames that were stored.
pub(super) struct NewFrames(HashMap<Key, Frame>);

impl Observations {
    pub fn assign(&self) -> Assigning<'_> {
        Assigning {
            stored: self,
            new: HashMap::new(),
        }
    }

    pub fn record(&mut self, NewFrames(frames): NewFrames) {
        if self.0.len() + frames.len() > MAX_FRAMES
            && let Some(latest) = frames
                .values()
                .map(|frame| frame.observed_at.as_micros())
                .max()
        {
            self.0
                .retain(|_, frame| frame.observed_at.as_micros() > latest - APART_MICROS);
            if self.0.len() + frames.len() > MAX_FRAMES {
                self.0.clear();
            }
        }
        self.0.extend(frames);
    }
}

impl Assigning<'_> {
    /// The first reception of the frame; None if this one is it.
    pub fn first_of(
        &mut self,
        tenant: TenantUuid,
        hub: HubUuid,
        this: FirstReception,
        observation: Observation,
    ) -> Option<FirstReception> {
        let key = (tenant, observation.hash);
        let frame = match self.new.entry(key) {
            Entry::Occupied(entry) => Some(entry.into_mut()),
            Entry::Vacant(entry) => self
                .stored
                .0
                .get(&key)
                .map(|frame| entry.insert(frame.clone())),
        };
        let joined = frame.filter(|frame| {
            let apart = frame
                .observed_at
                .as_micros()
                .abs_diff(observation.observed_at.as_micros());
            let is_repeat = frame.hubs.contains(&hub) && !observation.has_sequence;
            apart <= APART_MICROS.unsigned_abs() && !is_repeat && frame.hubs.len() < MAX_HUBS
        });
        match joined {
            Some(frame) => {
                if !frame.hubs.contains(&hub) {
                    frame.hubs.push(hub);
                }
                Some(frame.first)
            }
            None => {
                let frame = Frame {
                    first: this,
                    observed_at: observation.observed_at,
                    hubs: vec![hub],
                };
                self.new.insert(key, frame);
                None
            }
        }
    }

    pub fn finish(self) -> NewFrames {
        NewFrames(self.new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receptions_of_one_frame_share_the_first_id() {
        let tenant = TenantUuid(uuid::Uuid::from_u128(1));
        let hub = |number| HubUuid(uuid::Uuid::from_u128(number));
        let event = |id| FirstReception { id, batch_id: 10 };
        let at = |secs: i64, has_sequence| Observation {
            hash: 7,
            observed_at: Timestamp::from_micros(secs * 1_000_000),
            has_sequence,
        };
        let mut stored = Observations::default();
        let mut group = stored.assign();
        assert_eq!(
            group.first_of(tenant, hub(1), event(10), at(100, false)),
            None
        );
        assert_eq!(
            group.first_of(tenant, hub(2), event(11), at(103, false)),
            Some(event(10)),
            "another hub"
        );
        let frames = group.finish();
        stored.record(frames);
        let mut group = stored.assign();
        assert_eq!(
            group.first_of(tenant, hub(3), event(12), at(99, false)),
            Some(event(10)),
            "in a later group"
        );
        assert_eq!(
            group.first_of(tenant, hub(1), event(13), at(105, false)),
            None,
            "the same hub again"
        );
        assert_eq!(
            group.first_of(tenant, hub(1), event(14), at(105, true)),
            Some(event(13)),
            "the same number again"
        );
        assert_eq!(
            group.first_of(tenant, hub(2), event(15), at(130, false)),
            None,
            "much later"
        );
        assert_eq!(
            group.first_of(
                TenantUuid(uuid::Uuid::from_u128(2)),
                hub(2),
                event(16),
                at(130, false)
            ),
            None
        );
    }
}
