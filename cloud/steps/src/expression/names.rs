//! What an expression may name: the members of events, quantities, and what earlier steps added.

use std::collections::BTreeSet;

use hub_adverts::quantity::{QUANTITIES, quantity};

use super::path::Path;
use super::value::Types;

/// The members that events have. `hub` and `device` are there if what sends the event adds them.
pub const EVENT_MEMBERS: [(&str, Types); 26] = [
    ("address", Types::TEXT),
    ("addressType", Types::TEXT),
    ("adapterAddress", Types::TEXT),
    ("bleEventId", Types::NUMBER),
    ("counterStatus", Types::TEXT),
    ("deliveryStatus", Types::TEXT),
    ("device", Types::ANY),
    ("deviceInstanceId", Types::NUMBER),
    ("deviceUuid", Types::TEXT),
    ("eventUuid", Types::TEXT),
    ("hub", Types::ANY),
    ("hubUuid", Types::TEXT),
    ("manufacturerData", Types::OBJECT),
    ("measurements", Types::LIST),
    ("name", Types::TEXT),
    ("observedAt", Types::TEXT),
    ("payloadAddress", Types::TEXT),
    ("processingStatus", Types::TEXT),
    ("protocolRevision", Types::NUMBER),
    ("receivedAt", Types::TEXT),
    ("rssi", Types::NUMBER),
    ("serviceData", Types::OBJECT),
    ("serviceUuids", Types::LIST),
    ("traceparent", Types::TEXT),
    ("txPower", Types::NUMBER),
    // `window` is also a quantity.
    ("window", Types::ANY),
];

/// The least similarity of a name to be suggested.
const LIKENESS: f64 = 0.8;

/// The names that may be used at one place of a pipeline.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Members and quantities that earlier steps set, of which the type is not known.
    set: BTreeSet<String>,
    /// Whether everything may be there: after a script.
    is_open: bool,
}

impl Names {
    /// Names without any restriction or type.
    pub fn open() -> Self {
        Self {
            set: BTreeSet::new(),
            is_open: true,
        }
    }

    /// A step may add or change anything.
    pub fn opened(&mut self) {
        self.is_open = true;
    }

    /// A step sets what is at a path.
    pub fn add(&mut self, path: &Path) {
        self.set.insert(path.root().to_owned());
        self.set
            .extend(path.measured().map(|measured| measured.name.clone()));
    }

    /// Whether values of a quantity can be present. The error suggests a similar name.
    pub fn quantity(&self, name: &str) -> Result<(), String> {
        if self.is_open || self.set.contains(name) || quantity(name).is_some() {
            return Ok(());
        }
        Err(unknown(
            "quantity",
            name,
            QUANTITIES.iter().map(|quantity| quantity.name),
        ))
    }

    /// The types that a path may have.
    pub fn types(&self, path: &Path) -> Result<Types, String> {
        let root = path.root();
        if self.is_open || self.set.contains(root) {
            return Ok(Types::ANY);
        }
        if let Some(measured) = path.measured()
            && (root == "values" || member(root).is_none())
        {
            self.quantity(&measured.name)?;
            let known = quantity(&measured.name).filter(|_| !self.set.contains(&measured.name));
            let scalar = Types::NUMBER
                .or(Types::TEXT)
                .or(Types::BOOL)
                .or(Types::NULL);
            return Ok(match known {
                _ if path.goes_on_after_measured() => {
                    return Err(format!("`{}` has no members", measured.name));
                }
                Some(quantity) if quantity.is_number() => Types::NUMBER.or(Types::NULL),
                Some(_) => scalar,
                None => Types::ANY,
            });
        }
        match member(root) {
            Some(types) if path.is_root() => Ok(types.or(Types::NULL)),
            Some(types) if types.has(Types::LIST.or(Types::OBJECT)) => Ok(Types::ANY),
            Some(_) => Err(format!("`{root}` has no members")),
            None if root == "values" => {
                Err("`values` is followed by a quantity: `values.temperature`".to_owned())
            }
            None => {
                let quantities = QUANTITIES.iter().map(|quantity| quantity.name);
                let members = EVENT_MEMBERS.iter().map(|(name, _)| *name);
                let set = self.set.iter().map(String::as_str);
                Err(unknown(
                    "member or quantity",
                    root,
                    members.chain(quantities).chain(set),
                ))
            }
        }
    }
}

fn member(name: &str) -> Option<Types> {
    EVENT_MEMBERS
        .iter()
        .find(|(member, _)| *member == name)
        .map(|(_, types)| *types)
}

/// The message for an unknown name, with the most similar one.
pub fn unknown<'a>(what: &str, name: &str, others: impl Iterator<Item = &'a str>) -> String {
    let like = others.map(|other| {
        (
            strsim::jaro_winkler(&name.to_ascii_lowercase(), &other.to_ascii_lowercase()),
            other,
        )
    });
    let best = like
        .filter(|(like, _)| *like >= LIKENESS)
        .max_by(|(left, _), (right, _)| left.total_cmp(right));
    let name = super::shown(name);
    match best {
        Some((_, other)) => format!("there is no {what} `{name}`; is `{other}` meant?"),
        None => format!("there is no {what} `{name}`"),
    }
}
