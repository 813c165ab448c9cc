//! The pace at which the hubs of a tenant upload. The limit of uploads a minute is the tenant's, so
//! each hub may use a share of it: it makes a pause between two uploads of a kind that is long
//! enough for all hubs to have their turns within the limit, and every claimed hub gets a place of
//! its own among the turns.
//!
//! A pause doubles when there are too many hubs for it, and is halved when there are far fewer. The
//! turns of the longer pause are every second one of the shorter, so a hub that changes over
//! neither uploads out of turn nor stays away for longer than the longer pause. The limit counts
//! calendar minutes: with the longest pause that shows hubs online, turns fill half-minutes one by
//! one, first every second one, so that no minute gets more than its part.
//!
//! A change of the pause does not wake waiting hubs. It reaches the hubs of a tenant within one
//! long poll, spread over it.

use std::collections::HashMap;

use hub_base::db::Tx;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::config::Config;
use hub_people::tenants;
use hub_protocol::hub::UploadPauses;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::store::paces::{self as store, PaceRow};

/// A hub that was not seen for this long has no share. Longer than any pause between uploads.
const LIVE_SECS: i64 = 3600;
/// A pause shrinks at most this often, and at most by half: after an outage, all hubs return before
/// they are counted again.
const SHRINK_AFTER_SECS: i64 = 600;
const MINUTE_MS: i64 = 60_000;
const HALF_MINUTE_MS: i64 = 30_000;
/// The distance of turns from the end and the beginning of a half-minute, since no clock is exact.
const MARGIN_MS: i64 = 2_000;
/// The longest pause with which every hub is shown online: see `ONLINE_SECS`. The rest of those ten
/// minutes is for uploads that are late. An odd number of half-minutes, as all longer pauses.
const ONLINE_PAUSE_MS: i64 = 19 * HALF_MINUTE_MS;
/// A pause this short needs no turns: agents have a longer interval of their own.
const SHORTEST_PAUSE_MS: i64 = 500;
/// Turns up to this number are counted minute by minute; more are spread evenly enough.
const MAX_COUNTED: i64 = 20_000;
/// Tenants whose paces are adjusted at a time.
const TENANTS: i64 = 200;

const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;

/// The pauses in a hub's desired state: the tenant's pause, and the hub's place among the turns.
pub fn pauses(pause_ms: i64, slot: i64) -> UploadPauses {
    // The limit counts each kind for itself, so all kinds have the same pause.
    UploadPauses {
        telemetry_pause_ms: pause_ms,
        ble_events_pause_ms: pause_ms,
        logs_pause_ms: pause_ms,
        phase: offset_ms(pause_ms, slot) / pause_ms.max(1) as f64,
    }
}

/// When in a pause the turn of a slot is, in milliseconds.
fn offset_ms(pause_ms: i64, slot: i64) -> f64 {
    let long_ms = pause_ms.max(ONLINE_PAUSE_MS);
    // The number of half-minutes is odd, so this visits every second one, then the others.
    let half_minute = slot.saturating_mul(2).rem_euclid(long_ms / HALF_MINUTE_MS);
    // The multiples of the golden ratio, without their whole parts, lie evenly between 0 and 1.
    let place = (slot as f64 * GOLDEN_RATIO).fract();
    let long_offset_ms = (half_minute * HALF_MINUTE_MS + MARGIN_MS) as f64
        + place * (HALF_MINUTE_MS - 2 * MARGIN_MS) as f64;
    long_offset_ms.rem_euclid(pause_ms.max(1) as f64)
}

/// Assigns a newly claimed hub its place, and lengthens the tenant's pause if it has become too
/// short. The tenant's pace is locked until the transaction ends.
pub async fn make_room(
    tx: &mut Tx,
    config: &Config,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    now: Timestamp,
) -> Result<()> {
    let pace = store::count_claim(tx, tenant_uuid, now).await?;
    store::set_slot(tx, hub_uuid, pace.slots).await?;
    let limits = tenants::upload_limits(tx, [tenant_uuid]).await?;
    let limit = limits
        .first()
        .map_or(config.upload_limit_per_minute, |(_, limit)| *limit);
    if let Some(longer) =
        changed_pause(&pace, pace.live_hubs, limit, now).filter(|pause| *pause > pace.pause_ms)
    {
        store::set_pause(tx, tenant_uuid, longer, now).await?;
    }
    Ok(())
}

/// Adjusts the paces of all tenants to the hubs that are live now.
pub async fn adjust_paces(core: &Core) -> Result<()> {
    let mut after = TenantUuid(Uuid::nil());
    loop {
        let now = core.clock.now();
        let mut conn = core.db.read().await?;
        let counts = store::live_hubs(&mut conn, after, now.plus_secs(-LIVE_SECS), TENANTS).await?;
        let Some((last, _)) = counts.last() else {
            return Ok(());
        };
        after = *last;
        let tenants = || counts.iter().map(|(tenant_uuid, _)| *tenant_uuid);
        let limits: HashMap<TenantUuid, i64> = tenants::upload_limits(&mut conn, tenants())
            .await?
            .into_iter()
            .collect();
        let paces = store::paces(&mut conn, tenants()).await?;
        drop(conn);
        let counts: HashMap<TenantUuid, i64> = counts.into_iter().collect();
        let adjusted: Vec<Adjusted> = paces
            .into_iter()
            .filter_map(|pace| {
                let limit = limits
                    .get(&pace.tenant_uuid)
                    .copied()
                    .unwrap_or(core.config.upload_limit_per_minute);
                Adjusted::of(&pace, counts.get(&pace.tenant_uuid).copied()?, limit, now)
            })
            .collect();
        store(core, &adjusted, now).await?;
    }
}

/// A pace that has to be written.
struct Adjusted {
    tenant_uuid: TenantUuid,
    live_hubs: i64,
    /// The new pause; None leaves it unchanged.
    pause_ms: Option<i64>,
}

impl Adjusted {
    /// The change of the pace; None without one.
    fn of(pace: &PaceRow, live_hubs: i64, limit: i64, now: Timestamp) -> Option<Self> {
        let pause_ms = changed_pause(pace, live_hubs, limit, now);
        let is_changed = pause_ms.is_some() || live_hubs != pace.live_hubs;
        is_changed.then_some(Self {
            tenant_uuid: pace.tenant_uuid,
            live_hubs,
            pause_ms,
        })
    }
}

async fn store(core: &Core, adjusted: &[Adjusted], now: Timestamp) -> Result<()> {
    if adjusted.is_empty() {
        return Ok(());
    }
    let mut tx = core.db.begin().await?;
    for Adjusted {
        tenant_uuid,
        live_hubs,
        pause_ms,
    } in adjusted
    {
        store::set_live_hubs(&mut tx, *tenant_uuid, *live_hubs).await?;
        if let Some(pause_ms) = pause_ms {
            store::set_pause(&mut tx, *tenant_uuid, *pause_ms, now).await?;
        }
    }
    tx.commit_unaudited("paces follow the number of hubs, not a decision of an actor")
        .await
}

/// The pause that replaces the current one; None while the current one fits.
fn changed_pause(pace: &PaceRow, hubs: i64, limit: i64, now: Timestamp) -> Option<i64> {
    let (hubs, limit) = (hubs.max(1), limit.max(1));
    if !fits(pace.pause_ms, hubs, limit) {
        return Some(least_pause_ms(hubs, limit));
    }
    let least_ms = least_pause_ms(hubs.saturating_mul(3) / 2, limit);
    let is_settled = pace.changed_at.plus_secs(SHRINK_AFTER_SECS) <= now;
    (is_settled && least_ms < pace.pause_ms).then(|| match pace.pause_ms {
        ..=ONLINE_PAUSE_MS => pace.pause_ms / 2,
        longer_ms => least_ms.max(ONLINE_PAUSE_MS.max(on_grid(longer_ms / 2))),
    })
}

/// The least pause with which so many hubs keep to the limit.
fn least_pause_ms(hubs: i64, limit: i64) -> i64 {
    let halved = (0..)
        .map(|times| ONLINE_PAUSE_MS >> times)
        .take_while(|pause_ms| *pause_ms > SHORTEST_PAUSE_MS);
    let least = halved
        .take_while(|pause_ms| fits(*pause_ms, hubs, limit))
        .last();
    least.unwrap_or_else(|| {
        // This number of hubs cannot be shown online. There is room for a tenth more, and no fewer
        // minutes than turns that are spread perfectly need.
        let hubs = hubs.saturating_mul(11) / 10;
        let mut pause_ms = on_grid((hubs / limit).saturating_mul(MINUTE_MS)).max(ONLINE_PAUSE_MS);
        while !fits(pause_ms, hubs, limit) {
            pause_ms = pause_ms.saturating_add(MINUTE_MS);
        }
        pause_ms
    })
}

/// Whether so many hubs keep to the limit with this pause, with a little to spare.
fn fits(pause_ms: i64, hubs: i64, limit: i64) -> bool {
    if pause_ms < ONLINE_PAUSE_MS {
        // An eighth is spared for hubs that do not know the next pause yet.
        return pause_ms > SHORTEST_PAUSE_MS
            && most_in_a_minute(pause_ms, hubs) <= limit - limit / 8;
    }
    let half_minutes = pause_ms / HALF_MINUTE_MS;
    let (turns, rest) = (hubs / half_minutes, hubs % half_minutes);
    // While the rest fills only every second half-minute, two consecutive ones have at most one of
    // it.
    let extra = match rest {
        0 => 0,
        _ if rest <= half_minutes / 2 => 1,
        _ => 2,
    };
    turns.saturating_mul(2).saturating_add(extra) <= limit - limit / 50
}

/// The most turns of a calendar minute, with a pause that is shorter than [`ONLINE_PAUSE_MS`].
fn most_in_a_minute(pause_ms: i64, hubs: i64) -> i64 {
    // The minutes after which everything repeats.
    let cycle_ms = 2 * ONLINE_PAUSE_MS;
    if hubs > MAX_COUNTED || hubs * cycle_ms / pause_ms > MAX_COUNTED {
        return hubs.saturating_mul(MINUTE_MS) / pause_ms + 1;
    }
    let mut minutes = [0; (2 * ONLINE_PAUSE_MS / MINUTE_MS) as usize];
    for slot in 1..=hubs {
        let mut at_ms = offset_ms(pause_ms, slot) as i64;
        while let Some(count) = minutes.get_mut((at_ms / MINUTE_MS) as usize) {
            *count += 1;
            at_ms += pause_ms;
        }
    }
    minutes.into_iter().max().unwrap_or_default()
}

/// A pause as an odd number of half-minutes.
fn on_grid(pause_ms: i64) -> i64 {
    ((pause_ms / HALF_MINUTE_MS) | 1) * HALF_MINUTE_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_micros(1_800_014_400_000_000);

    fn pace(pause_ms: i64) -> PaceRow {
        PaceRow {
            tenant_uuid: TenantUuid::new(),
            live_hubs: 0,
            slots: 0,
            pause_ms,
            changed_at: NOON,
        }
    }

    /// The uploads of each minute of a day, by hubs with so many slots from `first`.
    fn day(pause_ms: i64, first: i64, hubs: i64) -> Vec<i64> {
        let mut minutes = vec![0; 1_440];
        for slot in first..first + hubs {
            let mut at_ms = offset_ms(pause_ms, slot) as i64;
            while let Some(count) = minutes.get_mut((at_ms / MINUTE_MS) as usize) {
                *count += 1;
                at_ms += pause_ms;
            }
        }
        minutes
    }

    #[test]
    fn no_minute_has_more_uploads_than_the_limit_and_hubs_stay_online_as_far_as_possible() {
        let cases = [
            (100, 1),
            (100, 2),
            (100, 60),
            (100, 97),
            (100, 400),
            (100, 410),
            (100, 500),
            (100, 900),
            (100, 931),
            (1, 1),
            (1, 9),
            (3, 1),
            (3, 5),
            (3, 27),
            (7, 65),
            (10, 30),
            (10, 90),
            (1_000, 9_200),
        ];
        for (limit, hubs) in cases {
            let pause_ms = least_pause_ms(hubs, limit);
            assert!(
                pause_ms <= ONLINE_PAUSE_MS,
                "{hubs} hubs with the limit {limit} look offline: {pause_ms}"
            );
            for first in [1, 4_321] {
                let most = day(pause_ms, first, hubs)
                    .into_iter()
                    .max()
                    .expect("minutes");
                assert!(
                    most <= limit,
                    "{hubs} hubs with the limit {limit}: {most} in a minute"
                );
            }
        }
        let pause_ms = least_pause_ms(5_000, 100);
        let most = day(pause_ms, 1, 5_000).into_iter().max();
        assert!(
            pause_ms > ONLINE_PAUSE_MS && most <= Some(100),
            "{pause_ms} {most:?}"
        );
        assert!(
            pause_ms < 5_000 * 60_000 / 100 * 5 / 4,
            "{pause_ms} is far too long"
        );
    }

    #[test]
    fn a_growing_fleet_changes_its_pause_a_few_times_only() {
        let mut pace = pace(0);
        let mut changes = 0;
        for hubs in 1..=5_000 {
            if let Some(longer) = changed_pause(&pace, hubs, 100, NOON) {
                assert!(longer > pace.pause_ms);
                (pace.pause_ms, changes) = (longer, changes + 1);
            }
        }
        assert!((20..40).contains(&changes), "{changes} changes");
    }

    #[test]
    fn turns_of_a_longer_pause_are_turns_of_the_shorter_one_too() {
        for slot in 1..2_000 {
            let long_ms = pauses(ONLINE_PAUSE_MS, slot).phase * ONLINE_PAUSE_MS as f64;
            for pause_ms in [285_000, 142_500, 71_250, 35_625] {
                let short_ms = pauses(pause_ms, slot).phase * pause_ms as f64;
                let apart_ms = (long_ms - short_ms).rem_euclid(pause_ms as f64);
                assert!(
                    apart_ms.min(pause_ms as f64 - apart_ms) < 0.01,
                    "{slot} {pause_ms}: {apart_ms}"
                );
            }
        }
    }

    #[test]
    fn a_pause_shrinks_by_half_at_most_and_not_at_once() {
        let pace = pace(ONLINE_PAUSE_MS);
        assert_eq!(
            changed_pause(&pace, 10, 100, NOON.plus_secs(SHRINK_AFTER_SECS - 1)),
            None
        );
        let later = NOON.plus_secs(SHRINK_AFTER_SECS);
        assert_eq!(changed_pause(&pace, 10, 100, later), Some(285_000));
        assert_eq!(
            changed_pause(&pace, 390, 100, later),
            None,
            "with a few more hubs it would be too short"
        );
    }
}
