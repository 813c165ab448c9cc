//! What is known of a device, without a database.

use std::collections::BTreeMap;

use hub_adverts::quantity::quantity;
use hub_adverts::{Measurement, Sequence, Value};
use hub_ingest::Heard;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::tracked::Tracked;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros((1_000_000 + secs) * 1_000_000)
}

fn hub(number: u128) -> HubUuid {
    HubUuid(Uuid::from_u128(number))
}

fn tracked() -> Tracked {
    Tracked::new(TenantUuid(Uuid::from_u128(1)))
}

fn heard(secs: i64, rssi_dbm: i16, celsius: f64) -> Heard {
    let temperature = quantity("temperature").expect("a quantity");
    Heard {
        device_instance_id: 1,
        observed_at: at(secs),
        rssi_dbm: Some(rssi_dbm),
        expected_interval_secs: None,
        measurements: vec![Measurement::new(temperature, Value::Number(celsius))],
    }
}

#[test]
fn the_order_of_receptions_changes_nothing_of_the_values() {
    let receptions = [
        (0, -60, 1.0),
        (5, -61, 2.0),
        (5, -70, 3.0),
        (9, -65, 4.0),
        (9, -64, 4.5),
        (3, -50, 9.0),
    ];
    let state_of = |order: &[usize]| {
        let mut device = tracked();
        for place in order {
            let (secs, rssi_dbm, celsius) = receptions[*place];
            device.hear(
                hub(*place as u128),
                &heard(secs, rssi_dbm, celsius),
                at(100),
            );
        }
        let state = device.state(1, BTreeMap::new());
        (state.last_seen_at, state.last_rssi_dbm, state.values)
    };
    let expected = state_of(&[0, 1, 2, 3, 4, 5]);
    assert_eq!(expected.0, Some(at(9)));
    // Every order of the receptions.
    let mut order: Vec<usize> = (0..receptions.len()).collect();
    let mut counts = vec![0; order.len()];
    let mut place = 0;
    while place < order.len() {
        if counts[place] < place {
            order.swap(if place % 2 == 0 { 0 } else { counts[place] }, place);
            assert_eq!(state_of(&order), expected, "{order:?}");
            counts[place] += 1;
            place = 0;
        } else {
            counts[place] = 0;
            place += 1;
        }
    }
}

#[test]
fn the_nearest_hub_changes_with_hysteresis() {
    let mut device = tracked();
    let nearest = |device: &Tracked| device.state(1, BTreeMap::new()).nearest_hub_uuid;
    device.hear(hub(1), &heard(0, -70, 20.0), at(100));
    device.hear(hub(2), &heard(1, -69, 20.0), at(100));
    assert_eq!(nearest(&device), Some(hub(1)), "1 dB is nothing");
    for secs in 2..10 {
        device.hear(hub(2), &heard(secs, -69, 20.0), at(100));
    }
    assert_eq!(nearest(&device), Some(hub(1)), "however often");
    device.hear(hub(3), &heard(10, -64, 20.0), at(100));
    assert_eq!(
        (
            nearest(&device),
            device.state(1, BTreeMap::new()).nearest_since
        ),
        (Some(hub(3)), Some(at(10))),
        "6 dB are 30 %"
    );
    for secs in 11..15 {
        device.hear(hub(4), &heard(secs, -61, 20.0), at(100));
    }
    assert_eq!(nearest(&device), Some(hub(3)), "3 dB, four times");
    device.hear(hub(4), &heard(15, -61, 20.0), at(100));
    assert_eq!(nearest(&device), Some(hub(4)), "3 dB, five times");
    device.hear(hub(1), &heard(14, -20, 20.0), at(100));
    assert_eq!(nearest(&device), Some(hub(1)), "nearer by far");
    device.hear(hub(2), &heard(90, -99, 20.0), at(100));
    assert_eq!(
        nearest(&device),
        Some(hub(2)),
        "the nearest has not received it for more than a minute"
    );
}

#[test]
fn a_device_is_online_for_three_of_its_intervals() {
    let online_secs = |device: &Tracked| {
        let state = device.state(1, BTreeMap::new());
        Some((state.online_until?.as_micros() - state.last_seen_at?.as_micros()) / 1_000_000)
    };
    let mut device = tracked();
    device.hear(hub(1), &heard(0, -60, 20.0), at(9_999));
    assert_eq!(online_secs(&device), Some(600));
    for secs in [900, 1_800, 2_700] {
        device.hear(hub(1), &heard(secs, -60, 20.0), at(9_999));
    }
    assert_eq!(online_secs(&device), Some(2_700), "learned");
    device.hear(
        hub(1),
        &Heard {
            expected_interval_secs: Some(300),
            ..heard(3_600, -60, 20.0)
        },
        at(9_999),
    );
    assert_eq!(online_secs(&device), Some(900), "expected");
}

#[test]
fn the_clock_of_a_hub_may_be_ahead() {
    let mut device = tracked();
    device.hear(hub(1), &heard(5_000, -60, 20.0), at(100));
    assert_eq!(device.state(1, BTreeMap::new()).last_seen_at, Some(at(100)));
}

fn counter(value: u32) -> Sequence {
    Sequence {
        value,
        bits: 32,
        authenticated: true,
    }
}

#[test]
fn a_counter_that_goes_back_is_flagged_and_heals() {
    let mut device = tracked();
    assert!(!device.is_replayed(counter(1_000), at(0)));
    assert!(!device.is_replayed(counter(1_001), at(10)));
    assert!(
        !device.is_replayed(counter(1_001), at(10)),
        "by another hub"
    );
    assert!(!device.is_replayed(counter(1_000), at(0)), "late");
    assert!(device.is_replayed(counter(900), at(20)), "a recording");
    assert!(
        !device.is_replayed(counter(1_002), at(30)),
        "the device goes on"
    );
    for secs in [40, 90, 140] {
        assert!(
            device.is_replayed(counter(900 - secs as u32), at(secs)),
            "recordings that do not rise"
        );
    }
    // After a change of its battery, the device counts from 0.
    let mut device = tracked();
    assert!(!device.is_replayed(counter(1_000), at(0)));
    let flagged: Vec<bool> = (0..7)
        .map(|step| device.is_replayed(counter(step), at(100 + 10 * i64::from(step))))
        .collect();
    assert_eq!(
        flagged,
        [true, true, true, false, false, false, false],
        "within a minute"
    );
}

#[test]
fn a_counter_starts_over_at_its_end() {
    let mut device = tracked();
    assert!(!device.is_replayed(counter(u32::MAX), at(0)));
    assert!(!device.is_replayed(counter(0), at(10)));
    let byte = |value| Sequence {
        value,
        bits: 8,
        authenticated: true,
    };
    let mut device = tracked();
    assert!(!device.is_replayed(byte(250), at(0)));
    assert!(!device.is_replayed(byte(3), at(10)));
    assert!(device.is_replayed(byte(200), at(20)));
}

#[test]
fn the_row_of_another_replica_is_adopted() {
    let (mut ours, mut others) = (tracked(), tracked());
    ours.hear(hub(1), &heard(0, -60, 20.0), at(100));
    others.hear(hub(2), &heard(5, -90, 21.0), at(100));
    let mut row = ours.state(1, BTreeMap::new());
    others.adopt(&row);
    row = others.state(1, row.values);
    assert_eq!(
        (row.last_seen_at, row.last_rssi_dbm),
        (Some(at(5)), Some(-90))
    );
    ours.adopt(&row);
    let state = ours.state(1, row.values);
    assert_eq!(state.values["temperature"].value, 21.0);
    assert_eq!(state.nearest_hub_uuid, row.nearest_hub_uuid, "both agree");
}
