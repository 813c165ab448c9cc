//! What of the BLE events a reader wants: of one hub, one device, one address, strong enough, and
//! of each sender not more often than it asks for. Tried on the reader's own task, for what comes
//! from the channel and for what is read from the database alike.

use std::collections::HashMap;

use hub_adverts::Address;
use hub_adverts::advertisement::address_of;
use hub_devices::ble::BleEventResponse;
use hub_protocol::HubUuid;

/// Senders that are remembered at a time for thinning out. Events of others pass as they come.
pub const MAX_SENDERS: usize = 4096;

/// The members of an event that filters are matched with.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// None for a malformed address, which no version stores.
    address: Option<Address>,
    pub(super) device_instance_id: Option<i64>,
    /// The signal strength in dBm; of a window, the strongest. None if it is not known.
    rssi_dbm: Option<i16>,
}

impl From<&BleEventResponse> for Heard {
    fn from(event: &BleEventResponse) -> Self {
        Self {
            address: address_of(&event.advertisement.address),
            device_instance_id: event.device_instance_id,
            rssi_dbm: event.strongest_dbm(),
        }
    }
}

/// The events that a reader subscribes to. None of a member accepts any value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: Option<i64>,
    pub address: Option<Address>,
    pub min_rssi_dbm: Option<i16>,
    /// Microseconds between two events of one sender.
    pub every: Option<i64>,
}

impl Wanted {
    const fn is_all(&self) -> bool {
        let Self {
            hub_uuid,
            device_instance_id,
            address,
            min_rssi_dbm,
            every,
        } = self;
        hub_uuid.is_none()
            && device_instance_id.is_none()
            && address.is_none()
            && min_rssi_dbm.is_none()
            && every.is_none()
    }
}

/// The filter of one reader.
pub struct Filter {
    wanted: Wanted,
    thinned: Thinned,
}

impl Filter {
    /// None if all events are accepted.
    pub fn new(wanted: Wanted) -> Option<Self> {
        (!wanted.is_all()).then(|| Self {
            wanted,
            thinned: Thinned::default(),
        })
    }

    /// Whether the reader gets this event. Asked once for each event, in the order of their ids.
    pub fn passes(&mut self, id: i64, hub_uuid: HubUuid, heard: &Heard) -> bool {
        let Wanted {
            hub_uuid: hub,
            device_instance_id,
            address,
            min_rssi_dbm,
            every,
        } = self.wanted;
        hub.is_none_or(|wanted| hub_uuid == wanted)
            && (device_instance_id.is_none() || heard.device_instance_id == device_instance_id)
            && (address.is_none() || heard.address == address)
            && min_rssi_dbm.is_none_or(|least| heard.rssi_dbm.is_some_and(|dbm| dbm >= least))
            && every.is_none_or(|every| self.thinned.is_due(id, every, heard))
    }
}

/// A registered device, whatever its address, or an address of an unknown device.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Sender {
    Device(i64),
    Address(Address),
}

/// When each sender's last event was passed, by the time of receipt: events that are read from the
/// database later are thinned out as they would have been live.
#[derive(Default)]
struct Thinned {
    last: HashMap<Sender, i64>,
    /// No entry expires before an event with this id.
    full_until: i64,
}

impl Thinned {
    fn is_due(&mut self, id: i64, every: i64, heard: &Heard) -> bool {
        let sender = match (heard.device_instance_id, heard.address) {
            (Some(device_instance_id), _) => Sender::Device(device_instance_id),
            (None, Some(address)) => Sender::Address(address),
            (None, None) => return true,
        };
        if let Some(last) = self.last.get_mut(&sender) {
            let is_due = id.saturating_sub(*last) >= every;
            if is_due {
                *last = id;
            }
            return is_due;
        }
        if self.last.len() >= MAX_SENDERS && id >= self.full_until {
            self.last.retain(|_, last| id.saturating_sub(*last) < every);
            // The next search for expired entries makes sense when the oldest expires.
            self.full_until = self
                .last
                .values()
                .min()
                .map_or(id, |oldest| oldest.saturating_add(every));
        }
        if self.last.len() < MAX_SENDERS {
            self.last.insert(sender, id);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn from(number: u16) -> Heard {
        let [high, low] = number.to_be_bytes();
        Heard {
            address: Some([0, 0, 0, 0, high, low]),
            device_instance_id: None,
            rssi_dbm: Some(-60),
        }
    }

    fn every(seconds: i64) -> Filter {
        Filter::new(Wanted {
            every: Some(seconds * SECOND),
            ..Wanted::default()
        })
        .expect("a filter")
    }

    #[test]
    fn a_sender_has_its_first_event_in_each_interval() {
        let (mut filter, hub) = (every(2), HubUuid::new());
        let mut let_through = |ms: i64, heard: &Heard| filter.passes(ms * 1000, hub, heard);
        let (one, other) = (from(1), from(2));
        assert!(
            let_through(10_000, &one) && !let_through(11_000, &one) && let_through(11_000, &other)
        );
        assert!(
            !let_through(11_999, &one) && let_through(12_000, &one) && !let_through(12_001, &one)
        );
        // A device is one sender, whatever its address.
        let device = |number| Heard {
            device_instance_id: Some(7),
            ..from(number)
        };
        assert!(let_through(13_000, &device(1)) && !let_through(13_001, &device(9)));
    }

    #[test]
    fn the_senders_that_are_remembered_are_bounded_and_make_room() {
        let (mut filter, hub) = (every(1), HubUuid::new());
        let many = u16::try_from(MAX_SENDERS).expect("a small number");
        for number in 0..many {
            assert!(filter.passes(i64::from(number), hub, &from(number)));
        }
        // One more sender is not thinned out, and uses no memory.
        assert!(filter.passes(5000, hub, &from(many)) && filter.passes(5001, hub, &from(many)));
        assert_eq!(filter.thinned.last.len(), MAX_SENDERS);
        // Expired senders make room for it.
        assert!(
            filter.passes(3 * SECOND, hub, &from(many))
                && !filter.passes(3 * SECOND + 1, hub, &from(many))
        );
        assert_eq!(filter.thinned.last.len(), 1);
    }

    #[test]
    fn an_event_has_to_be_all_that_is_wanted() {
        let hub = HubUuid::new();
        let heard = Heard {
            device_instance_id: Some(7),
            ..from(1)
        };
        let passes = |wanted: Wanted| {
            Filter::new(wanted)
                .expect("a filter")
                .passes(1, hub, &heard)
        };
        let all = Wanted {
            hub_uuid: Some(hub),
            device_instance_id: Some(7),
            address: from(1).address,
            min_rssi_dbm: Some(-60),
            every: None,
        };
        assert!(passes(all));
        assert!(!passes(Wanted {
            hub_uuid: Some(HubUuid::new()),
            ..all
        }));
        assert!(!passes(Wanted {
            device_instance_id: Some(8),
            ..all
        }));
        assert!(!passes(Wanted {
            address: from(2).address,
            ..all
        }));
        assert!(!passes(Wanted {
            min_rssi_dbm: Some(-59),
            ..all
        }));
        let unknown = Heard {
            rssi_dbm: None,
            ..heard
        };
        assert!(
            !Filter::new(all).expect("a filter").passes(1, hub, &unknown),
            "of unknown strength"
        );
        assert!(Filter::new(Wanted::default()).is_none());
    }
}
