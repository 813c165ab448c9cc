use serde_json::{Value, json};

use super::super::{Input, Outcome, Program, State};
use super::{event, input, program, run, thermometer};

/// Which of some inputs pass.
fn passes(steps: Value, inputs: Vec<Input>) -> Vec<bool> {
    let program = program(&steps);
    let outcomes = run(&program, &mut program.new_state(), inputs);
    outcomes
        .iter()
        .map(|outcome| matches!(outcome, Outcome::Passed(_)))
        .collect()
}

fn warm(value: Value, seconds: f64, device: i64) -> Input {
    let mut warm = thermometer();
    warm["measurements"][0]["value"] = value;
    input(warm, seconds, device)
}

#[test]
fn sample_lets_one_pass_in_a_time() {
    let steps = json!([{"op": "sample", "everySeconds": 10, "by": "DEVICE"}]);
    let at = |seconds: f64, device: i64| input(thermometer(), seconds, device);
    let inputs = vec![
        at(0.0, 1),
        at(1.0, 2),
        at(9.9, 1),
        at(10.0, 1),
        at(10.5, 2),
        at(11.0, 2),
        at(5.0, 1),
    ];
    // The last one is of a pipeline that was set back.
    assert_eq!(
        passes(steps, inputs),
        [true, true, false, true, false, true, true]
    );
    let steps = json!([{"op": "sample", "everySeconds": 10, "by": "HUB"}]);
    let mut other = at(2.0, 1);
    other.hub_uuid = hub_protocol::HubUuid(uuid::Uuid::from_u128(2));
    assert_eq!(
        passes(steps.clone(), vec![at(0.0, 1), at(1.0, 2), other.clone()]),
        [true, false, true]
    );
    let unregistered = |address: &str| Input {
        device_instance_id: None,
        address: address.to_owned(),
        ..at(1.0, 1)
    };
    let steps = json!([{"op": "sample", "everySeconds": 10, "by": "DEVICE"}]);
    let addresses = [
        "AA:BB:CC:DD:EE:01",
        "AA:BB:CC:DD:EE:02",
        "AA:BB:CC:DD:EE:01",
        "odd",
        "odd",
        "even",
    ];
    let inputs = addresses.map(unregistered).to_vec();
    assert_eq!(
        passes(steps, inputs),
        [true, true, false, true, false, true]
    );
}

#[test]
fn on_change_lets_changes_pass() {
    let steps =
        json!([{"op": "on_change", "quantity": "temperature", "delta": 0.5, "maxSeconds": 60}]);
    let inputs = vec![
        warm(json!(20), 0.0, 1),
        warm(json!(20.4), 1.0, 1),
        warm(json!(20.2), 2.0, 2),
        warm(json!(20.5), 3.0, 1),
        warm(json!(20.1), 4.0, 1),
        warm(json!(20.0), 5.0, 1),
        warm(json!(20.0), 64.9, 1),
        warm(json!(20.0), 65.0, 1),
        input(event(json!({})), 66.0, 1),
    ];
    assert_eq!(
        passes(steps, inputs),
        [true, false, true, true, false, true, false, true, false]
    );
    let door = |value: Value, seconds: f64| {
        let mut door = thermometer();
        door["measurements"][4]["value"] = value;
        input(door, seconds, 1)
    };
    let values = [
        json!(true),
        json!(true),
        json!(false),
        json!("open"),
        json!("open"),
        json!("closed"),
        json!(1),
    ];
    let inputs = values
        .into_iter()
        .enumerate()
        .map(|(at, value)| door(value, at as f64))
        .collect();
    let steps = json!([{"op": "on_change", "quantity": "door", "delta": 0}]);
    assert_eq!(
        passes(steps, inputs),
        [true, false, true, true, false, true, true]
    );
    let probe = |value: f64, seconds: f64| {
        let mut probe = thermometer();
        probe["measurements"][3]["value"] = json!(value);
        input(probe, seconds, 1)
    };
    let steps = json!([{"op": "on_change", "quantity": "temperature_probe", "delta": 1}]);
    assert_eq!(
        passes(
            steps,
            vec![probe(1.0, 0.0), probe(1.5, 1.0), probe(2.0, 2.0)]
        ),
        [true, false, true]
    );
    let steps = json!([{"op": "on_change", "quantity": "temperature_probe[0]", "delta": 1}]);
    assert_eq!(
        passes(steps, vec![probe(1.0, 0.0), probe(5.0, 1.0)]),
        [true, false]
    );
}

#[test]
fn dedupe_lets_one_reception_pass() {
    let steps = json!([{"op": "dedupe", "seconds": 5}]);
    let first = input(thermometer(), 0.0, 1);
    let further = |seconds: f64| Input {
        observation_id: Some(first.ble_event_id),
        ..input(thermometer(), seconds, 1)
    };
    let inputs = vec![
        first.clone(),
        further(1.0),
        further(4.9),
        input(thermometer(), 4.95, 1),
        further(5.0),
    ];
    assert_eq!(passes(steps, inputs), [true, false, false, true, true]);
}

/// Numbers that look like chance, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn stateful() -> Program {
    program(&json!([
        {"op": "dedupe", "seconds": 2},
        {"op": "sample", "everySeconds": 3, "by": "DEVICE"},
        {"op": "on_change", "quantity": "temperature", "delta": 0.5, "maxSeconds": 40},
        {"op": "on_change", "quantity": "door", "delta": 0},
        {"op": "sample", "everySeconds": 0.7, "by": "HUB"},
    ]))
}

fn inputs(seed: u64, count: usize, devices: u64) -> Vec<Input> {
    let mut chance = Chance(seed);
    let mut seconds = 0.0;
    let mut all: Vec<Input> = Vec::new();
    for _ in 0..count {
        seconds += chance.below(1000) as f64 / 1000.0;
        let mut one = warm(
            json!(chance.below(30) as f64 / 10.0),
            seconds,
            chance.below(devices) as i64,
        );
        one.event["measurements"][4]["value"] = json!(chance.below(3));
        one.hub_uuid = hub_protocol::HubUuid(uuid::Uuid::from_u128(chance.below(3).into()));
        if chance.below(4) == 0 {
            one.device_instance_id = None;
            one.address = format!("AA:BB:CC:DD:EE:{:02X}", chance.below(devices) % 256);
        }
        if chance.below(3) == 0 {
            one.observation_id = all
                .last()
                .map(|last| last.observation_id.unwrap_or(last.ble_event_id));
        }
        all.push(one);
    }
    all
}

#[test]
fn state_survives_at_any_point() {
    let program = stateful();
    for seed in 0..6 {
        let inputs = inputs(seed, 400, 20);
        let mut state = program.new_state();
        let wanted = run(&program, &mut state, inputs.clone());
        assert!(
            wanted
                .iter()
                .any(|outcome| matches!(outcome, Outcome::Passed(_)))
        );
        for cut in [0, 1, 7, 100, 399] {
            let (before, after) = inputs.split_at(cut);
            let mut state = program.new_state();
            let mut found = run(&program, &mut state, before.to_vec());
            let mut state = State::from_bytes(&program, &state.to_bytes());
            found.extend(run(&program, &mut state, after.to_vec()));
            assert_eq!(found, wanted, "seed {seed}, cut at {cut}");
        }
        // Single events and one batch have the same result.
        let mut state = program.new_state();
        let found: Vec<Outcome> = inputs
            .into_iter()
            .flat_map(|input| run(&program, &mut state, vec![input]))
            .collect();
        assert_eq!(found, wanted, "seed {seed}, one by one");
    }
}

#[test]
fn what_fits_of_a_state_is_kept() {
    let dedupe = json!({"op": "dedupe", "seconds": 60});
    let sample = json!({"op": "sample", "everySeconds": 60, "by": "DEVICE"});
    let before = program(&json!([dedupe, sample]));
    let mut state = before.new_state();
    run(&before, &mut state, vec![input(thermometer(), 0.0, 1)]);
    let bytes = state.to_bytes();
    let after = |steps: Value, bytes: &[u8], seconds: f64| {
        let after = program(&steps);
        let mut state = State::from_bytes(&after, bytes);
        run(&after, &mut state, vec![input(thermometer(), seconds, 1)]).remove(0)
    };
    // The steps changed their places, and one its time.
    let filter = json!({"op": "filter", "when": "true"});
    let shorter = json!({"op": "sample", "everySeconds": 30, "by": "DEVICE"});
    assert_eq!(
        after(json!([filter, shorter, dedupe]), &bytes, 29.0),
        Outcome::Dropped { step: 1 }
    );
    assert!(matches!(
        after(json!([filter, shorter, dedupe]), &bytes, 31.0),
        Outcome::Passed(_)
    ));
    let by_hub = json!({"op": "sample", "everySeconds": 60, "by": "HUB"});
    assert!(matches!(
        after(json!([by_hub]), &bytes, 1.0),
        Outcome::Passed(_)
    ));
    for damaged in [&bytes[..bytes.len() - 1], &[], &[9, 9, 9], &[1, 0xff, 0xff]] {
        assert!(
            matches!(after(json!([sample]), damaged, 1.0), Outcome::Passed(_)),
            "{damaged:?}"
        );
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        after(json!([dedupe, sample]), &damaged, 1.0);
    }
}

#[test]
fn state_is_bounded_and_the_oldest_go() {
    let program = program(&json!([{"op": "sample", "everySeconds": 2_000_000, "by": "DEVICE"}]));
    let mut state = program.new_state();
    let small = |at: u32| input(event(json!({})), f64::from(at), i64::from(at));
    run(&program, &mut state, (0..60_000).map(small).collect());
    let bytes = state.to_bytes();
    assert!(bytes.len() < 50_000 * 12, "{} bytes", bytes.len());
    let passed = |state: &mut State, device: i64| {
        let outcome = run(
            &program,
            state,
            vec![input(event(json!({})), 60_001.0, device)],
        )
        .remove(0);
        matches!(outcome, Outcome::Passed(_))
    };
    let mut read = State::from_bytes(&program, &bytes);
    for state in [&mut state, &mut read] {
        assert!(passed(state, 0) && !passed(state, 59_999) && !passed(state, 20_000));
    }
    // Expired entries are not kept.
    let program = super::program(&json!([{"op": "dedupe", "seconds": 1}]));
    let mut state = program.new_state();
    run(&program, &mut state, (0..10_000).map(small).collect());
    assert!(
        state.to_bytes().len() < 2048 * 12,
        "{} bytes",
        state.to_bytes().len()
    );
}
