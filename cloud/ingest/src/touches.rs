//! Which hubs were marked as seen lately.

use std::collections::HashMap;

use hub_protocol::HubUuid;

use super::kinds::Kind;

/// A hub's `last_seen_at` is at most this much behind. Writing it with every upload would cost a
/// row for each upload.
const TOUCH_INTERVAL_MICROS: i64 = 5_000_000;
/// The most hubs whose last touch is cached.
const MAX_TOUCHES: usize = 100_000;

/// When this process last marked each hub as seen.
#[derive(Default)]
pub(super) struct Touches(HashMap<(HubUuid, Kind), i64>);

impl Touches {
    pub fn is_due(&self, hub_uuid: HubUuid, kind: Kind, now_micros: i64) -> bool {
        self.0
            .get(&(hub_uuid, kind))
            .is_none_or(|at| now_micros.saturating_sub(*at).abs() >= TOUCH_INTERVAL_MICROS)
    }

    pub fn record(&mut self, touched: Vec<(HubUuid, Kind)>, now_micros: i64) {
        if self.0.len() + touched.len() > MAX_TOUCHES {
            self.0.clear();
        }
        self.0
            .extend(touched.into_iter().map(|key| (key, now_micros)));
    }
}
