//! Door locks. `lock`, `child_lock` and `anti_lock` are true where the lock is open.

use crate::bytes::{u8_at, u32_le};
use crate::measurement::Measurement;
use crate::quantity::{Quantity, known};

const ANTI_LOCK: &Quantity = known("anti_lock");
const ARMED: &Quantity = known("armed");
const CHILD_LOCK: &Quantity = known("child_lock");
const DOOR: &Quantity = known("door");
const DOOR_LEFT_OPEN: &Quantity = known("door_left_open");
const DOOR_STUCK: &Quantity = known("door_stuck");
const ERROR: &Quantity = known("error");
const FINGERPRINT: &Quantity = known("fingerprint");
const KEY_ID: &Quantity = known("key_id");
const KNOCK: &Quantity = known("knock");
const LOCK: &Quantity = known("lock");
const LOCK_ACTION: &Quantity = known("lock_action");
const LOCK_METHOD: &Quantity = known("lock_method");
const PRY: &Quantity = known("pry");

/// The low four bits of a lock's event: the action, the part of the lock, whether it is open then.
const ACTIONS: [(u8, &str, &Quantity, bool); 10] = [
    (0x0, "unlock_outside_the_door", LOCK, true),
    (0x1, "locked", LOCK, false),
    (0x2, "turn_on_antilock", ANTI_LOCK, false),
    (0x3, "release_the_antilock", ANTI_LOCK, true),
    (0x4, "unlock_inside_the_door", LOCK, true),
    (0x5, "lock_inside_the_door", LOCK, false),
    (0x6, "turn_on_child_lock", CHILD_LOCK, false),
    (0x7, "turn_off_child_lock", CHILD_LOCK, true),
    (0x8, "lock_outside_the_door", LOCK, false),
    (0xF, "abnormal", LOCK, true),
];

/// The high four bits: how the lock was operated.
const METHODS: [(u8, &str); 13] = [
    (0x0, "bluetooth"),
    (0x1, "password"),
    (0x2, "biometrics"),
    (0x3, "key"),
    (0x4, "turntable"),
    (0x5, "nfc"),
    (0x6, "one_time_password"),
    (0x7, "two_step_verification"),
    (0x8, "coercion"),
    (0x9, "homekit"),
    (0xA, "manual"),
    (0xB, "automatic"),
    (0xF, "abnormal"),
];

/// Key identifiers that stand for an error.
const ERRORS: [(u32, &str); 23] = [
    (0xC0DE_0000, "wrong_password_often"),
    (0xC0DE_0001, "wrong_fingerprint_often"),
    (0xC0DE_0002, "password_timeout"),
    (0xC0DE_0003, "lock_picking"),
    (0xC0DE_0004, "reset_pressed"),
    (0xC0DE_0005, "wrong_key_often"),
    (0xC0DE_0006, "foreign_body_in_keyhole"),
    (0xC0DE_0007, "key_left_in_keyhole"),
    (0xC0DE_0008, "wrong_nfc_often"),
    (0xC0DE_0009, "not_locked_in_time"),
    (0xC0DE_000A, "many_ways_failed_often"),
    (0xC0DE_000B, "wrong_face_often"),
    (0xC0DE_000C, "wrong_vein_often"),
    (0xC0DE_000D, "hijacking_alarm"),
    (0xC0DE_000E, "unlocked_inside_while_armed"),
    (0xC0DE_000F, "wrong_palm_print_often"),
    (0xC0DE_0010, "safe_moved"),
    (0xC0DE_1000, "battery_below_10_percent"),
    (0xC0DE_1001, "battery_below_5_percent"),
    (0xC0DE_1002, "fingerprint_sensor_abnormal"),
    (0xC0DE_1003, "accessory_battery_low"),
    (0xC0DE_1004, "mechanical_failure"),
    (0xC0DE_1005, "lock_sensor_faulty"),
];

/// The kinds of keys, by the upper half of the identifier. Bluetooth keys use all of the number.
const KEY_KINDS: [(u32, &str); 8] = [
    (0x8001, "fingerprint"),
    (0x8002, "password"),
    (0x8003, "key"),
    (0x8004, "nfc"),
    (0x8005, "two_step_verification"),
    (0x8006, "face"),
    (0x8007, "vein"),
    (0x8008, "palm_print"),
];

/// Object 0006: the finger's identifier and the result of the check.
pub fn fingerprint(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let result = match (data.len(), u8_at(data, 4)?) {
        (5, 0) => "match_successful",
        (5, 1) => "match_failed",
        (5, 2) => "timeout",
        (5, 3) => "low_quality_too_light_fuzzy",
        (5, 4) => "insufficient_area",
        (5, 5) => "skin_is_too_dry",
        (5, 6) => "skin_is_too_wet",
        _ => return None,
    };
    out.push(Measurement::text(KEY_ID, key_name(u32_le(data, 0)?)));
    out.push(Measurement::text(FINGERPRINT, result));
    Some(())
}

/// Object 0007: the door of a lock.
pub fn door(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let (open, more) = match data.first()? {
        0 => (true, Measurement::truth(DOOR_STUCK, false)),
        1 => (false, Measurement::truth(DOOR_LEFT_OPEN, false)),
        2 => (true, Measurement::truth(DOOR_LEFT_OPEN, true)),
        3 => (false, Measurement::truth(KNOCK, true)),
        4 => (true, Measurement::truth(PRY, true)),
        5 => (false, Measurement::truth(DOOR_STUCK, true)),
        _ => return None,
    };
    out.push(Measurement::truth(DOOR, open));
    out.push(more);
    Some(())
}

/// Object 0008: 0 where the lock is armed. The model DSL-C08 sends it when its handle is lifted.
pub fn armed(data: &[u8], model: &str, out: &mut Vec<Measurement>) -> Option<()> {
    let armed = match data.first()? {
        0 => true,
        1 => false,
        _ => return None,
    };
    out.push(Measurement::truth(ARMED, armed));
    if model == "DSL-C08" {
        out.push(Measurement::text(LOCK_METHOD, "manual"));
        out.push(Measurement::text(LOCK_ACTION, "lock_outside_the_door"));
    }
    Some(())
}

/// Object 000B: the action and how it was done, the key's identifier, the time.
pub fn event(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    if data.len() != 9 {
        return None;
    }
    let first = u8_at(data, 0)?;
    let (_, action, part, open) = ACTIONS.iter().find(|(code, ..)| *code == first & 0x0F)?;
    let (_, method) = METHODS.iter().find(|(code, _)| *code == first >> 4)?;
    let key = u32_le(data, 1)?;
    out.push(Measurement::text(LOCK_ACTION, *action));
    out.push(Measurement::truth(part, *open));
    out.push(Measurement::text(LOCK_METHOD, *method));
    match ERRORS.iter().find(|(code, _)| *code == key) {
        Some((_, error)) => out.push(Measurement::text(ERROR, *error)),
        None => out.push(Measurement::text(KEY_ID, key_name(key))),
    }
    Some(())
}

/// Object 100E: the state of the bolt in bit 0 and of the child lock in bit 3; set where locked.
pub fn attribute(data: &[u8], out: &mut Vec<Measurement>) -> Option<()> {
    let [bits] = *data else { return None };
    out.push(Measurement::truth(LOCK, bits & 0x01 == 0));
    out.push(Measurement::truth(CHILD_LOCK, bits & 0x08 == 0));
    Some(())
}

fn key_name(id: u32) -> String {
    match id {
        0 => "administrator".into(),
        0xFFFF_FFFF => "unknown operator".into(),
        0xDEAD_BEEF => "invalid operator".into(),
        1..=0x7FFF_FFFF => format!("bluetooth {id}"),
        _ => {
            let kind = KEY_KINDS
                .iter()
                .find(|(upper, _)| *upper == id >> 16)
                .map_or("key", |(_, kind)| *kind);
            format!("{kind} {}", id & 0xFFFF)
        }
    }
}
