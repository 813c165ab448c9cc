//! Buttons, dials and cubes. The index distinguishes several buttons: 0 is the first or left one.

use super::models::{Buttons, buttons};
use crate::measurement::Measurement;
use crate::quantity::{Quantity, known};

const BUTTON: &Quantity = known("button");
const CUBE: &Quantity = known("cube");
const DIMMER: &Quantity = known("dimmer");
const DIMMER_STEPS: &Quantity = known("dimmer_steps");
const DURATION: &Quantity = known("duration");

/// Object 1001: which button, a value, and how it was pressed.
pub fn general(data: &[u8], model: &str, out: &mut Vec<Measurement>) -> Option<()> {
    let [which, value, press] = *data else {
        return None;
    };
    let kind = buttons(model);
    match kind {
        Buttons::Cube => {
            let turned = match which {
                0 => "rotate_right",
                1 => "rotate_left",
                _ => return None,
            };
            out.push(Measurement::text(CUBE, turned));
        }
        Buttons::Dimmer => dimmer(which, value, press, out)?,
        Buttons::Plain => out.push(Measurement::text(BUTTON, press_of(press)?)),
        Buttons::Remote => out.push(Measurement::text(BUTTON, press_of(press)?).at(which)),
        Buttons::Wall1 => out.push(Measurement::text(BUTTON, wall_press(press)?)),
        Buttons::Wall2 | Buttons::Wall3 => {
            let press = wall_press(press)?;
            for index in wall_buttons(kind, which)? {
                out.push(Measurement::text(BUTTON, press).at(*index));
            }
        }
    }
    Some(())
}

fn press_of(press: u8) -> Option<&'static str> {
    match press {
        0 | 5 => Some("press"),
        1 => Some("double_press"),
        2 | 6 => Some("long_press"),
        _ => None,
    }
}

fn wall_press(press: u8) -> Option<&'static str> {
    match press {
        0 => Some("press"),
        1 => Some("long_press"),
        2 => Some("double_press"),
        _ => None,
    }
}

/// The buttons of a combination.
fn wall_buttons(kind: Buttons, which: u8) -> Option<&'static [u8]> {
    match (kind, which) {
        (_, 0) => Some(&[0]),
        (_, 1) => Some(&[1]),
        (Buttons::Wall2, 2) => Some(&[0, 1]),
        (Buttons::Wall3, 2) => Some(&[2]),
        (Buttons::Wall3, 3) => Some(&[0, 1]),
        (Buttons::Wall3, 4) => Some(&[1, 2]),
        (Buttons::Wall3, 5) => Some(&[0, 2]),
        (Buttons::Wall3, 6) => Some(&[0, 1, 2]),
        _ => None,
    }
}

/// A dial: the number of presses, the seconds that it was held, or the steps that it was turned.
fn dimmer(which: u8, value: u8, press: u8, out: &mut Vec<Measurement>) -> Option<()> {
    let (event, amount) = match (press, which) {
        (3, 0) => ("press", value),
        (3, 1) => {
            out.push(Measurement::text(DIMMER, "long_press"));
            out.push(Measurement::number(DURATION, value.into()));
            return Some(());
        }
        (4, 0) => turned(value, "rotate_right", "rotate_left"),
        (4, steps) => turned(steps, "rotate_right_pressed", "rotate_left_pressed"),
        _ => return None,
    };
    out.push(Measurement::text(DIMMER, event));
    out.push(Measurement::number(DIMMER_STEPS, amount.into()));
    Some(())
}

/// Steps to the left are negative.
fn turned(steps: u8, right: &'static str, left: &'static str) -> (&'static str, u8) {
    let signed = steps.cast_signed();
    (
        if signed >= 0 { right } else { left },
        signed.unsigned_abs(),
    )
}

/// Objects that are a press of one kind (4A0C to 4A0E, 4E0C to 4E0E, 560C to 560E): their data, if
/// any, identifies the button in a way that is specific to the model.
pub fn pressed(
    press: &'static str,
    data: &[u8],
    model: &str,
    out: &mut Vec<Measurement>,
) -> Option<()> {
    let which = data.first().copied();
    let indexes: &[u8] = match (model, which) {
        ("XMWS01XS", Some(0)) | ("XMWXKG01YL" | "KS1" | "KS1BP", Some(1)) => &[0],
        ("XMWS01XS", Some(1)) | ("XMWXKG01YL" | "KS1" | "KS1BP", Some(2)) => &[1],
        ("XMWXKG01YL", Some(3)) => &[0, 1],
        ("KS1" | "KS1BP", Some(3)) => &[2],
        ("KS1" | "KS1BP", Some(4)) => &[3],
        ("XMWS01XS" | "XMWXKG01YL", _) => return None,
        _ => &[],
    };
    let press = match (model, which) {
        ("K9BB-1BTN", Some(1)) => "press",
        ("K9BB-1BTN", Some(8)) => "long_press",
        ("K9BB-1BTN", Some(15)) => "double_press",
        ("K9BB-1BTN", _) => return None,
        _ => press,
    };
    if indexes.is_empty() {
        out.push(Measurement::text(BUTTON, press));
    }
    for index in indexes {
        out.push(Measurement::text(BUTTON, press).at(*index));
    }
    Some(())
}
