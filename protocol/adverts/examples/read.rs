//! Reads frames with the library. Each line of standard input is a JSON object of the members
//! `name`, `address`, `manufacturerData` and `serviceData` (hexadecimal), as in the tests of a
//! model. Each line of standard output is `{"model", "values"}`, or `null` where no model fits.
//! With the argument `quantities`, it prints all quantities and their sane ranges instead.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};

use hub_adverts::library::{OwnedFrame, read};
use hub_adverts::quantity::QUANTITIES;
use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = stdout().lock();
    if std::env::args().nth(1).as_deref() == Some("quantities") {
        let ranges = QUANTITIES
            .iter()
            .map(|quantity| (quantity.name.to_owned(), json!(quantity.range)));
        return Ok(writeln!(out, "{}", Value::Object(ranges.collect()))?);
    }
    for line in stdin().lock().lines() {
        let frame = OwnedFrame::parse(&serde_json::from_str(&line?)?)?;
        let found = frame.with(read).map(|reading| {
            let values = reading
                .measurements
                .iter()
                .map(|one| (one.key(), one.value.json()));
            json!({"model": reading.model.key, "values": values.collect::<Map<String, Value>>()})
        });
        writeln!(out, "{}", found.unwrap_or(Value::Null))?;
    }
    Ok(())
}
