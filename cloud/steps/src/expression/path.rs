//! Paths to what is in an event. A path whose first name is no member of the event names the value
//! of a measurement: `temperature` and `values.temperature` are the same there.

use hub_adverts::quantity::quantity;
use serde_json::{Map, Value as Json};

use super::super::Event;

/// Names and places of a path.
pub const MAX_SEGMENTS: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub enum Segment {
    Member(String),
    Item(usize),
}

/// A path, such as `window.count`, `serviceUuids[0]` or `values.temperature`.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    root: String,
    rest: Vec<Segment>,
    measured: Option<Measured>,
    /// How many of the rest name the measurement.
    measured_segments: usize,
}

/// A quantity, and which of several values.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub name: String,
    pub index: Option<u64>,
}

impl Measured {
    /// `temperature` or `temperature[1]`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once('[') {
            None => Some(Self {
                name: text.to_owned(),
                index: None,
            }),
            Some((name, rest)) => {
                let index = rest.strip_suffix(']')?.parse::<u8>().ok()?;
                Some(Self {
                    name: name.to_owned(),
                    index: Some(index.into()),
                })
            }
        }
    }

    /// Whether a measurement is of the quantity, and the right one of several.
    pub fn is(&self, measurement: &Map<String, Json>) -> bool {
        measurement.get("quantity").and_then(Json::as_str) == Some(&self.name)
            && (self.index.is_none()
                || measurement.get("index").and_then(Json::as_u64) == self.index)
    }

    /// Its measurement. Without an index that is the one without an index, or else the first.
    fn find<'a>(&self, event: &'a Event) -> Option<&'a Map<String, Json>> {
        let all = event.get("measurements")?.as_array()?;
        let mut found = all
            .iter()
            .filter_map(Json::as_object)
            .filter(|one| self.is(one));
        let first = found.next()?;
        if self.index.is_some() || !first.contains_key("index") {
            return Some(first);
        }
        Some(
            found
                .find(|one| !one.contains_key("index"))
                .unwrap_or(first),
        )
    }

    /// All measurements of the path in an event; those of all indexes if it has none.
    pub fn all_mut<'a>(
        &'a self,
        event: &'a mut Event,
    ) -> impl Iterator<Item = &'a mut Map<String, Json>> {
        let all = event.get_mut("measurements").and_then(Json::as_array_mut);
        all.into_iter()
            .flatten()
            .filter_map(Json::as_object_mut)
            .filter(|one| self.is(one))
    }

    /// The same, to read.
    pub fn all<'a>(&'a self, event: &'a Event) -> impl Iterator<Item = &'a Map<String, Json>> {
        let all = event.get("measurements").and_then(Json::as_array);
        all.into_iter()
            .flatten()
            .filter_map(Json::as_object)
            .filter(|one| self.is(one))
    }

    /// Sets its value, in a measurement of its own if there is none. Null removes it.
    fn set(&self, event: &mut Event, value: Json) {
        if value.is_null() {
            return self.remove(event);
        }
        if let Some(one) = self.all_mut(event).next() {
            one.insert("value".to_owned(), value);
            return;
        }
        let mut made = Map::new();
        if let Some(unit) = quantity(&self.name)
            .and_then(|quantity| quantity.unit)
            .filter(|_| value.is_number())
        {
            made.insert("unit".to_owned(), unit.into());
        }
        if let Some(index) = self.index {
            made.insert("index".to_owned(), index.into());
        }
        made.insert("quantity".to_owned(), self.name.clone().into());
        made.insert("value".to_owned(), value);
        let all = event
            .entry("measurements")
            .or_insert_with(|| Json::Array(Vec::new()));
        if !all.is_array() {
            *all = Json::Array(Vec::new());
        }
        if let Some(all) = all.as_array_mut() {
            all.push(Json::Object(made));
        }
    }

    fn remove(&self, event: &mut Event) {
        if let Some(all) = event.get_mut("measurements").and_then(Json::as_array_mut) {
            all.retain(|one| one.as_object().is_none_or(|one| !self.is(one)));
        }
    }
}

impl Path {
    pub fn new(root: String, rest: Vec<Segment>) -> Self {
        let index = |at: usize| match rest.get(at) {
            Some(Segment::Item(index)) => u64::try_from(*index).ok(),
            _ => None,
        };
        let (measured, measured_segments) = match rest.first() {
            Some(Segment::Member(name)) if root == "values" => {
                let measured = Measured::parse(name).unwrap_or(Measured {
                    name: name.clone(),
                    index: None,
                });
                let index = measured.index.or(index(1));
                let used = if measured.index.is_none() && index.is_some() {
                    2
                } else {
                    1
                };
                (Some(Measured { index, ..measured }), used)
            }
            _ if quantity(&root).is_some() => {
                let index = index(0);
                (
                    Some(Measured {
                        name: root.clone(),
                        index,
                    }),
                    usize::from(index.is_some()),
                )
            }
            _ => (None, 0),
        };
        Self {
            root,
            rest,
            measured,
            measured_segments,
        }
    }

    pub fn root(&self) -> &str {
        &self.root
    }

    pub fn is_root(&self) -> bool {
        self.rest.is_empty()
    }

    /// The measurement that the path names where the event has no such member.
    pub fn measured(&self) -> Option<&Measured> {
        self.measured.as_ref()
    }

    pub fn goes_on_after_measured(&self) -> bool {
        self.rest.len() > self.measured_segments
    }

    /// Whether something can be put there: places in lists cannot.
    pub fn is_settable(&self) -> bool {
        match self.measured_to_set() {
            Some(_) => !self.goes_on_after_measured(),
            None => self
                .rest
                .iter()
                .all(|segment| matches!(segment, Segment::Member(_))),
        }
    }

    /// Only a path with `values` sets a measurement: a new member may have the name of a quantity.
    fn measured_to_set(&self) -> Option<&Measured> {
        self.measured.as_ref().filter(|_| self.root == "values")
    }

    /// The value at the path.
    pub fn get<'a>(&self, event: &'a Event) -> Option<&'a Json> {
        let Some(first) = event.get(&self.root) else {
            let found = self
                .measured
                .as_ref()
                .filter(|_| !self.goes_on_after_measured())?;
            return found.find(event)?.get("value");
        };
        let mut here = first;
        for segment in &self.rest {
            here = match (segment, here) {
                (Segment::Member(name), Json::Object(members)) => members.get(name)?,
                (Segment::Item(at), Json::Array(items)) => items.get(*at)?,
                _ => return None,
            };
        }
        Some(here)
    }

    /// Puts a value there. Objects on the way are made, also in place of something else.
    pub fn set(&self, event: &mut Event, value: Json) {
        if !event.contains_key(&self.root)
            && let Some(measured) = self.measured_to_set()
        {
            return measured.set(event, value);
        }
        let mut name = &self.root;
        let mut here = event;
        for segment in &self.rest {
            let Segment::Member(next) = segment else {
                return;
            };
            let inner = here
                .entry(name.clone())
                .or_insert_with(|| Json::Object(Map::new()));
            if !inner.is_object() {
                *inner = Json::Object(Map::new());
            }
            let Some(inner) = inner.as_object_mut() else {
                return;
            };
            (here, name) = (inner, next);
        }
        here.insert(name.clone(), value);
    }

    /// Takes out what is there.
    pub fn take(&self, event: &mut Event) -> Option<Json> {
        if !event.contains_key(&self.root) {
            let measured = self
                .measured
                .as_ref()
                .filter(|_| !self.goes_on_after_measured())?;
            let value = measured.find(event)?.get("value").cloned();
            measured.remove(event);
            return value;
        }
        let Some((last, way)) = self.rest.split_last() else {
            return event.remove(&self.root);
        };
        let mut here = event.get_mut(&self.root)?;
        for segment in way {
            here = match (segment, here) {
                (Segment::Member(name), Json::Object(members)) => members.get_mut(name)?,
                (Segment::Item(at), Json::Array(items)) => items.get_mut(*at)?,
                _ => return None,
            };
        }
        match (last, here) {
            (Segment::Member(name), Json::Object(members)) => members.remove(name),
            (Segment::Item(at), Json::Array(items)) if *at < items.len() => Some(items.remove(*at)),
            _ => None,
        }
    }
}
