//! A route, and what it makes of an event. The layers are separate: a hub tries the `HUB` rules in
//! their order, the service the `CLOUD` rules on what arrives. `otherwise` is for what no rule of
//! either layer fits.

use hub_adverts::Frame;
use hub_adverts::frame::uuid16;
use hub_protocol::scan_config::{Otherwise, RouteAction, RouteLayer, RouteMatch, RouteRule};
use hub_protocol::{HubUuid, Timestamp};
use uuid::Uuid;

/// The rules of a tenant, ready to be tried.
#[derive(Clone, Debug, Default)]
pub struct Route {
    pub rules: Vec<RouteRule>,
    pub otherwise: Otherwise,
    /// The revision; 0 of a tenant without a route.
    pub revision: i64,
    /// When the route was set; None for a tenant without one.
    pub updated_at: Option<Timestamp>,
    /// The parsed parts of each rule.
    parsed: Vec<Parsed>,
}

/// The identifiers of a rule as frames have them.
#[derive(Clone, Copy, Debug, Default)]
struct Parsed {
    company: Option<u16>,
    service: Option<Uuid>,
}

/// The properties of an event that rules are matched with.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The model, if one was recognised.
    pub device_uuid: Option<Uuid>,
    /// The registered device, if the sender is one.
    pub device_instance_id: Option<i64>,
    /// The hub that received it.
    pub hub_uuid: HubUuid,
    /// The signal strength; of a window, the strongest.
    pub rssi_dbm: Option<i16>,
    pub frame: &'a Frame<'a>,
}

/// The decision of a layer for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The rule that fitted, counted from 0; None if none of the layer's did.
    pub rule: Option<usize>,
    pub action: RouteAction,
}

/// The action for an event that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Keep,
    Drop,
}

impl Route {
    /// A route of checked rules.
    pub fn new(
        rules: Vec<RouteRule>,
        otherwise: Otherwise,
        revision: i64,
        updated_at: Option<Timestamp>,
    ) -> Self {
        let parsed = rules.iter().map(|rule| Parsed::of(&rule.fits)).collect();
        Self {
            rules,
            otherwise,
            revision,
            updated_at,
            parsed,
        }
    }

    /// The hub's decision for an advertisement.
    pub fn hub_decision(&self, facts: &Facts<'_>) -> Decision {
        self.decision(RouteLayer::Hub, facts).unwrap_or(Decision {
            rule: None,
            action: match self.hub_otherwise() {
                Otherwise::Forward => RouteAction::Forward,
                Otherwise::Drop => RouteAction::Drop,
                Otherwise::Window => RouteAction::Window,
            },
        })
    }

    /// The service's decision for an event that has arrived.
    pub fn cloud_decision(&self, facts: &Facts<'_>) -> Decision {
        self.decision(RouteLayer::Cloud, facts).unwrap_or_else(|| {
            // An event that a rule of the hub passed on is not subject to "otherwise".
            let is_dropped = self.otherwise == Otherwise::Drop
                && self.decision(RouteLayer::Hub, facts).is_none();
            Decision {
                rule: None,
                action: if is_dropped {
                    RouteAction::Drop
                } else {
                    RouteAction::Forward
                },
            }
        })
    }

    /// Whether the service stores an event that has arrived.
    pub fn cloud_verdict(&self, facts: &Facts<'_>) -> Verdict {
        if self.keeps_everything() {
            return Verdict::Keep;
        }
        match self.cloud_decision(facts).action {
            RouteAction::Drop => Verdict::Drop,
            _ => Verdict::Keep,
        }
    }

    /// Whether no event that has arrived is dropped, whatever its properties.
    pub fn keeps_everything(&self) -> bool {
        let drops =
            |rule: &RouteRule| rule.layer == RouteLayer::Cloud && rule.action == RouteAction::Drop;
        self.otherwise != Otherwise::Drop && !self.rules.iter().any(drops)
    }

    /// Whether some events are for some pipelines only.
    pub fn names_pipelines(&self) -> bool {
        self.rules
            .iter()
            .any(|rule| !rule.pipeline_uuids.is_empty())
    }

    /// The pipelines that see an event that has arrived, as the rule that fits names them; None if
    /// all do.
    pub fn pipelines(&self, facts: &Facts<'_>) -> Option<&[Uuid]> {
        let rule = self
            .cloud_decision(facts)
            .rule
            .and_then(|at| self.rules.get(at))?;
        Some(rule.pipeline_uuids.as_slice()).filter(|named| !named.is_empty())
    }

    /// Whether a pipeline sees an event that has arrived.
    pub fn is_for(&self, pipeline_uuid: Uuid, facts: &Facts<'_>) -> bool {
        self.pipelines(facts)
            .is_none_or(|named| named.contains(&pipeline_uuid))
    }

    /// The action of hubs for events that none of their rules fits. They drop such an event only if
    /// no rule of the service may want it.
    pub fn hub_otherwise(&self) -> Otherwise {
        let has_cloud_rules = self
            .rules
            .iter()
            .any(|rule| rule.layer == RouteLayer::Cloud);
        match self.otherwise {
            Otherwise::Drop if has_cloud_rules => Otherwise::Forward,
            otherwise => otherwise,
        }
    }

    /// The rules that hubs apply.
    pub fn hub_rules(&self) -> impl Iterator<Item = &RouteRule> {
        self.rules
            .iter()
            .filter(|rule| rule.layer == RouteLayer::Hub)
    }

    /// Whether hubs have to distinguish registered devices.
    pub fn hubs_know_devices(&self) -> bool {
        self.otherwise == Otherwise::Window || self.hub_rules().next().is_some()
    }

    /// Whether hubs have to decode advertisements, also encrypted ones, and to recognise devices
    /// whose addresses change.
    pub fn hubs_need_keys(&self) -> bool {
        let reads = |rule: &RouteRule| {
            let RouteMatch {
                device_uuid,
                device_instance_id,
                known,
                ..
            } = &rule.fits;
            matches!(rule.action, RouteAction::OnChange | RouteAction::Window)
                || device_uuid.is_some()
                || device_instance_id.is_some()
                || known.is_some()
        };
        self.otherwise == Otherwise::Window || self.hub_rules().any(reads)
    }

    /// The first rule of a layer that fits.
    fn decision(&self, layer: RouteLayer, facts: &Facts<'_>) -> Option<Decision> {
        let mut rules = self.rules.iter().zip(&self.parsed).enumerate();
        let (at, (rule, _)) = rules
            .find(|(_, (rule, parsed))| rule.layer == layer && parsed.fits(&rule.fits, facts))?;
        Some(Decision {
            rule: Some(at),
            action: rule.action,
        })
    }
}

impl Parsed {
    fn of(fits: &RouteMatch) -> Self {
        Self {
            company: fits.company_id.as_deref().and_then(company_of),
            service: fits.service_uuid.as_deref().and_then(service_of),
        }
    }

    fn fits(&self, fits: &RouteMatch, facts: &Facts<'_>) -> bool {
        let frame = facts.frame;
        let has_service =
            |uuid: Uuid| frame.service_uuids.contains(&uuid) || frame.service(uuid).is_some();
        fits.device_uuid
            .is_none_or(|uuid| facts.device_uuid == Some(uuid))
            && fits
                .device_instance_id
                .is_none_or(|id| facts.device_instance_id == Some(id))
            && fits
                .hub_uuid
                .is_none_or(|hub_uuid| facts.hub_uuid == hub_uuid)
            && fits
                .known
                .is_none_or(|known| facts.device_uuid.is_some() == known)
            && fits
                .min_rssi_dbm
                .is_none_or(|least| facts.rssi_dbm.is_some_and(|dbm| dbm >= least))
            && self
                .company
                .is_none_or(|company| frame.manufacturer(company).is_some())
            && self.service.is_none_or(has_service)
    }
}

/// The company, from 4 hex digits.
pub fn company_of(text: &str) -> Option<u16> {
    let is_company = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_company {
        u16::from_str_radix(text, 16).ok()
    } else {
        None
    }
}

/// The service, from 4 hex digits, or from a longer UUID in full.
pub fn service_of(text: &str) -> Option<Uuid> {
    match text.len() {
        36 => Uuid::try_parse(text).ok(),
        _ => company_of(text).map(uuid16),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn route(rules: Value, otherwise: Otherwise) -> Route {
        Route::new(
            serde_json::from_value(rules).expect("rules"),
            otherwise,
            1,
            None,
        )
    }

    const HUB: HubUuid = HubUuid(Uuid::from_u128(7));
    const MODEL: Uuid = Uuid::from_u128(8);

    /// A known device with company 0499 and service fcd2, of -60 dBm.
    fn with<T>(call: impl FnOnce(Facts<'_>) -> T) -> T {
        let frame = Frame {
            manufacturer_data: &[(0x0499, &[5])],
            service_uuids: &[uuid16(0xFCD2)],
            ..Frame::default()
        };
        let (device_uuid, device_instance_id) = (Some(MODEL), Some(3));
        call(Facts {
            device_uuid,
            device_instance_id,
            hub_uuid: HUB,
            rssi_dbm: Some(-60),
            frame: &frame,
        })
    }

    #[test]
    fn all_that_a_rule_names_must_hold() {
        let full = "0000fcd2-0000-1000-8000-00805f9b34fb";
        for (fits, expected) in [
            (json!({}), true),
            (
                json!({"deviceUuid": MODEL, "deviceInstanceId": 3, "hubUuid": HUB, "known": true}),
                true,
            ),
            (
                json!({"companyId": "0499", "serviceUuid": "FCD2", "minRssiDbm": -60}),
                true,
            ),
            (json!({"serviceUuid": full}), true),
            (json!({"deviceUuid": HUB}), false),
            (json!({"deviceInstanceId": 4}), false),
            (json!({"hubUuid": MODEL}), false),
            (json!({"known": false}), false),
            (json!({"minRssiDbm": -59}), false),
            (json!({"companyId": "004c"}), false),
            (json!({"serviceUuid": "fcd3"}), false),
            (json!({"companyId": "0499", "known": false}), false),
        ] {
            let route = route(
                json!([{"layer": "CLOUD", "match": fits, "action": "DROP"}]),
                Otherwise::Forward,
            );
            let dropped = with(|facts| route.cloud_verdict(&facts)) == Verdict::Drop;
            assert_eq!(dropped, expected, "{fits}");
        }
        let near = route(
            json!([{"layer": "CLOUD", "match": {"minRssiDbm": -90}, "action": "DROP"}]),
            Otherwise::Forward,
        );
        let unheard = with(|facts| {
            near.cloud_verdict(&Facts {
                rssi_dbm: None,
                ..facts
            })
        });
        assert_eq!(
            unheard,
            Verdict::Keep,
            "a strength that is not known is below every other"
        );
    }

    #[test]
    fn the_first_rule_of_a_layer_decides() {
        let rules = json!([
            {"layer": "CLOUD", "match": {"companyId": "004c"}, "action": "DROP"},
            {"layer": "HUB", "match": {"known": true}, "action": "SAMPLE", "everySeconds": 60},
            {"layer": "CLOUD", "match": {"known": true}, "action": "FORWARD"},
            {"layer": "CLOUD", "action": "DROP"},
            {"layer": "HUB", "action": "DROP"},
        ]);
        let route = route(rules, Otherwise::Forward);
        let (hub, cloud) = with(|facts| (route.hub_decision(&facts), route.cloud_decision(&facts)));
        assert_eq!(
            hub,
            Decision {
                rule: Some(1),
                action: RouteAction::Sample
            }
        );
        assert_eq!(
            cloud,
            Decision {
                rule: Some(2),
                action: RouteAction::Forward
            }
        );
    }

    #[test]
    fn otherwise_is_for_what_no_rule_of_either_layer_fits() {
        let hub = json!([{"layer": "HUB", "match": {"known": true}, "action": "FORWARD"}]);
        let with_hub_rule = route(hub, Otherwise::Drop);
        assert_eq!(
            with(|facts| with_hub_rule.cloud_verdict(&facts)),
            Verdict::Keep
        );
        let unknown = with(|facts| {
            let facts = Facts {
                device_uuid: None,
                ..facts
            };
            (
                with_hub_rule.hub_decision(&facts).action,
                with_hub_rule.cloud_verdict(&facts),
            )
        });
        assert_eq!(unknown, (RouteAction::Drop, Verdict::Drop));

        let cloud = json!([{"layer": "CLOUD", "match": {"known": true}, "action": "FORWARD"}]);
        let with_cloud_rule = route(cloud, Otherwise::Drop);
        assert_eq!(
            with_cloud_rule.hub_otherwise(),
            Otherwise::Forward,
            "the service may want it"
        );
        assert_eq!(
            with(|facts| with_cloud_rule.cloud_verdict(&facts)),
            Verdict::Keep
        );
        let windowed = route(json!([]), Otherwise::Window);
        assert_eq!(
            with(|facts| windowed.hub_decision(&facts).action),
            RouteAction::Window
        );
        assert_eq!(with(|facts| windowed.cloud_verdict(&facts)), Verdict::Keep);
    }

    #[test]
    fn hubs_get_keys_only_for_rules_that_read() {
        let is_needed = |rule: Value| route(json!([rule]), Otherwise::Forward).hubs_need_keys();
        assert!(!is_needed(
            json!({"layer": "HUB", "match": {"companyId": "004c"}, "action": "DROP"})
        ));
        assert!(!is_needed(
            json!({"layer": "CLOUD", "match": {"known": true}, "action": "DROP"})
        ));
        assert!(is_needed(
            json!({"layer": "HUB", "match": {"known": false}, "action": "DROP"})
        ));
        assert!(is_needed(
            json!({"layer": "HUB", "action": "WINDOW", "everySeconds": 60})
        ));
        assert!(route(json!([]), Otherwise::Window).hubs_need_keys());
        assert!(!Route::default().hubs_need_keys() && !Route::default().hubs_know_devices());
    }
}
