//! Prints all quantities with their units and kinds as JSON, for the tests beside other programs.

use hub_adverts::quantity::QUANTITIES;
use serde_json::{Value, json};

fn main() {
    let quantity = |quantity: &hub_adverts::Quantity| {
        let kind = format!("{:?}", quantity.kind).to_uppercase();
        json!({"quantity": quantity.name, "unit": quantity.unit, "kind": kind})
    };
    println!("{}", Value::from_iter(QUANTITIES.iter().map(quantity)));
}
