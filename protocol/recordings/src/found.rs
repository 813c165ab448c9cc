//! An advertisement as packets carry it, and the assembly of one that comes in fragments.

use std::collections::VecDeque;

use crate::report::PassedOver;

/// The most advertising data of one advertisement (Bluetooth Core Specification, Vol 4, Part E,
/// 7.8.54).
const LONGEST_DATA: usize = 1_650;
/// The most advertisements that are in assembly at a time.
const MOST_OPEN: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub address: [u8; 6],
    pub is_random: bool,
    pub rssi_dbm: Option<i16>,
    pub tx_power_dbm: Option<i16>,
    pub is_scan_response: bool,
    pub data: Vec<u8>,
}

/// Advertisements of which fragments are still to come, the oldest first.
#[derive(Debug)]
pub struct Assembly<K> {
    open: VecDeque<(K, Found)>,
}

impl<K> Default for Assembly<K> {
    fn default() -> Self {
        Self {
            open: VecDeque::new(),
        }
    }
}

impl<K: PartialEq> Assembly<K> {
    pub fn has(&self, key: &K) -> bool {
        self.open.iter().any(|(open, _)| open == key)
    }

    /// The key of what is open, if it is the only one.
    pub fn only_key(&self) -> Option<&K> {
        let mut keys = self.open.iter().map(|(key, _)| key);
        keys.next().filter(|_| keys.next().is_none())
    }

    /// Begins with a first fragment. An earlier assembly of this key has lost its end.
    pub fn begin(&mut self, key: K, found: Found, passed: &mut PassedOver) {
        if self.finish(&key).is_some() {
            passed.incomplete += 1;
        }
        if self.open.len() == MOST_OPEN && self.open.pop_front().is_some() {
            passed.incomplete += 1;
        }
        self.open.push_back((key, found));
    }

    /// Adds a fragment to the assembly of a key. One that becomes too long is given up.
    pub fn extend(&mut self, key: &K, data: &[u8], passed: &mut PassedOver) {
        let Some((_, found)) = self.open.iter_mut().find(|(open, _)| open == key) else {
            return;
        };
        if found.data.len() + data.len() > LONGEST_DATA {
            self.finish(key);
            passed.incomplete += 1;
        } else {
            found.data.extend_from_slice(data);
        }
    }

    /// Ends the assembly of a key.
    pub fn finish(&mut self, key: &K) -> Option<Found> {
        let at = self.open.iter().position(|(open, _)| open == key)?;
        self.open.remove(at).map(|(_, found)| found)
    }

    /// Gives up all that is open.
    pub fn give_up(&mut self, passed: &mut PassedOver) {
        passed.incomplete += self.open.len() as u64;
        self.open.clear();
    }
}
