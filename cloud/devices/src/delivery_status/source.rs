//! Which events a pipeline takes.

use std::collections::HashSet;

use hub_protocol::HubUuid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The events that a pipeline accepts. An empty list selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "PipelineSource")]
pub struct Source {
    /// Events of devices of these models.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub device_uuids: Vec<Uuid>,
    /// Events of these devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(range(min = 1)))]
    pub device_instance_ids: Vec<i64>,
    /// Events that these hubs received.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub hub_uuids: Vec<HubUuid>,
    /// Events that hubs received to which a bundle has bound the pipeline, besides those in
    /// `hubUuids`, and no others. A pipeline with `hubUuids` takes these as well.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bound_hubs: bool,
    /// Events with a measurement of one of these quantities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub quantities: Vec<String>,
    /// Whether a model of the tenant's catalog has to be known, or must not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<bool>,
}

impl Source {
    /// Whether the source depends on the hub that received an event.
    pub const fn is_limited_to_hubs(&self) -> bool {
        self.bound_hubs || !self.hub_uuids.is_empty()
    }

    /// Whether it may take an event, as far as that is known without reading it. `bound` has the
    /// hub if a bundle has bound the pipeline to it.
    pub fn may_select(
        &self,
        hub_uuid: HubUuid,
        bound: &HashSet<HubUuid>,
        device_instance_id: Option<i64>,
    ) -> bool {
        (!self.is_limited_to_hubs()
            || self.hub_uuids.contains(&hub_uuid)
            || bound.contains(&hub_uuid))
            && (self.device_instance_ids.is_empty()
                || device_instance_id.is_some_and(|id| self.device_instance_ids.contains(&id)))
    }

    /// Whether it takes an event. `event` is the event as lists show it.
    pub fn selects(
        &self,
        hub_uuid: HubUuid,
        bound: &HashSet<HubUuid>,
        device_instance_id: Option<i64>,
        event: &Map<String, Value>,
    ) -> bool {
        let model = || {
            event
                .get("deviceUuid")
                .and_then(Value::as_str)
                .and_then(|text| Uuid::parse_str(text).ok())
        };
        let has_quantity = || {
            let measurements = event.get("measurements").and_then(Value::as_array);
            let names = measurements
                .into_iter()
                .flatten()
                .filter_map(|one| one.get("quantity")?.as_str());
            names
                .into_iter()
                .any(|name| self.quantities.iter().any(|wanted| wanted == name))
        };
        self.may_select(hub_uuid, bound, device_instance_id)
            && (self.device_uuids.is_empty()
                || model().is_some_and(|uuid| self.device_uuids.contains(&uuid)))
            && self.known.is_none_or(|known| model().is_some() == known)
            && (self.quantities.is_empty() || has_quantity())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MODEL: &str = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

    fn selects(source: Value, device_instance_id: Option<i64>, event: Value) -> bool {
        let source: Source = serde_json::from_value(source).expect("a source");
        let hub_uuid = HubUuid(Uuid::nil());
        source.selects(
            hub_uuid,
            &HashSet::new(),
            device_instance_id,
            event.as_object().expect("an event"),
        )
    }

    #[test]
    fn a_limited_source_takes_the_hubs_that_it_is_bound_to() {
        let (hub_uuid, other) = (HubUuid(Uuid::nil()), HubUuid(Uuid::max()));
        let bound = HashSet::from([hub_uuid]);
        for (source, takes) in [
            (json!({}), [true, true, true]),
            (json!({"boundHubs": true}), [true, false, false]),
            (json!({"hubUuids": [other]}), [true, false, true]),
            (
                json!({"hubUuids": [other], "boundHubs": true}),
                [true, false, true],
            ),
        ] {
            let parsed: Source = serde_json::from_value(source.clone()).expect("a source");
            let selects = |hub_uuid, bound: &HashSet<HubUuid>| {
                parsed.selects(hub_uuid, bound, None, &Map::new())
            };
            let none = HashSet::new();
            let found = [
                selects(hub_uuid, &bound),
                selects(hub_uuid, &none),
                selects(other, &none),
            ];
            assert_eq!(found, takes, "{source}");
        }
    }

    #[test]
    fn every_condition_must_hold() {
        let event = json!({"deviceUuid": MODEL, "measurements": [{"quantity": "humidity"}, {"quantity": "battery"}]});
        let unknown = json!({"deviceUuid": null, "measurements": []});
        for (source, takes) in [
            (json!({}), true),
            (
                json!({"hubUuids": [Uuid::nil()], "deviceUuids": [MODEL], "deviceInstanceIds": [4, 3]}),
                true,
            ),
            (json!({"quantities": ["battery"], "known": true}), true),
            (json!({"hubUuids": [MODEL]}), false),
            (json!({"deviceUuids": [Uuid::nil()]}), false),
            (json!({"deviceInstanceIds": [4]}), false),
            (json!({"quantities": ["temperature"]}), false),
            (json!({"known": false}), false),
            (
                json!({"quantities": ["battery"], "hubUuids": [MODEL]}),
                false,
            ),
        ] {
            assert_eq!(
                selects(source.clone(), Some(3), event.clone()),
                takes,
                "{source}"
            );
        }
        assert!(selects(json!({"known": false}), None, unknown.clone()));
        for source in [
            json!({"deviceInstanceIds": [3]}),
            json!({"known": true}),
            json!({"quantities": ["battery"]}),
        ] {
            assert!(!selects(source.clone(), None, unknown.clone()), "{source}");
        }
    }
}
