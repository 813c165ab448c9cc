//! A scan configuration, compiled: the catalog by which devices are recognised and read, and the
//! rules that decide what this hub reports. Never changes: another configuration is another value.

use hub_adverts::advertisement::frame_of;
use hub_adverts::catalog::{Before, Catalog, Read};
use hub_adverts::{Frame, Measurement};
use hub_protocol::HubUuid;
use hub_protocol::ble::Advertisement;
use hub_protocol::scan_config::{
    Otherwise, RouteAction, RouteLayer, RouteMatch, RouteRule, ScanConfig,
};
use serde::Serialize;
use uuid::Uuid;

/// The length of the windows of what no rule fits.
const OTHERWISE_WINDOW_SECS: i64 = 60;
const LONGEST_SECS: i64 = 86_400;
/// How 16-bit UUIDs end that are written in full.
const BASE_UUID_TAIL: &str = "-0000-1000-8000-00805f9b34fb";

#[derive(Debug)]
pub struct Selection {
    pub revision: i64,
    pub catalog: Catalog,
    pub rules: Vec<Rule>,
    /// The action on an advertisement that no rule fits.
    pub otherwise: Action,
    /// The lengths of windows, in seconds, each once.
    pub window_secs: Vec<i64>,
}

#[derive(Debug)]
pub struct Rule {
    fits: RouteMatch,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Forward,
    Drop,
    Sample {
        every_micros: i64,
    },
    /// Folds into the window whose length has this index.
    Window(usize),
    /// Reports changes of at least these deltas, by quantity.
    OnChange(Vec<(String, f64)>),
}

/// A device of the catalog, as apps and `hub-agent scan` show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownDevice {
    pub device_uuid: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_instance_id: Option<i64>,
    /// The name of the device, else of its model.
    pub device_name: String,
}

/// The sender of an advertisement, as far as the catalog knows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender {
    pub device_uuid: Option<Uuid>,
    pub device_instance_id: Option<i64>,
}

impl Selection {
    /// The rules are those of this hub. The error says what cannot be understood.
    pub fn new(config: &ScanConfig, hub_uuid: HubUuid) -> Result<Self, String> {
        let mut selection = Self {
            revision: config.revision,
            catalog: Catalog::from_scan_config(config)?,
            rules: Vec::new(),
            otherwise: Action::Forward,
            window_secs: Vec::new(),
        };
        for (number, rule) in config.routes.iter().enumerate() {
            let is_here = rule.layer == RouteLayer::Hub
                && rule.fits.hub_uuid.is_none_or(|hub| hub == hub_uuid);
            if is_here {
                let rule = selection
                    .rule(rule)
                    .map_err(|error| format!("rule {number}: {error}"))?;
                selection.rules.push(rule);
            }
        }
        // Advertisements from which the service selects must reach the service.
        let selects_later = config
            .routes
            .iter()
            .any(|rule| rule.layer == RouteLayer::Cloud);
        selection.otherwise = match config.otherwise {
            Otherwise::Drop if !selects_later => Action::Drop,
            Otherwise::Forward | Otherwise::Drop => Action::Forward,
            Otherwise::Window => selection.window(OTHERWISE_WINDOW_SECS),
        };
        Ok(selection)
    }

    /// Whether anything is reported otherwise than without a configuration.
    pub fn is_selective(&self) -> bool {
        self.otherwise != Action::Forward
            || self.rules.iter().any(|rule| rule.action != Action::Forward)
    }

    fn rule(&mut self, rule: &RouteRule) -> Result<Rule, String> {
        let every_secs = || match rule.every_seconds {
            Some(secs @ 1..=LONGEST_SECS) => Ok(secs),
            Some(secs) => Err(format!("everySeconds is {secs}, not 1 to {LONGEST_SECS}")),
            None => Err("everySeconds is missing".to_owned()),
        };
        let action = match rule.action {
            RouteAction::Forward => Action::Forward,
            RouteAction::Drop => Action::Drop,
            RouteAction::Sample => Action::Sample {
                every_micros: every_secs()? * 1_000_000,
            },
            RouteAction::Window => self.window(every_secs()?),
            RouteAction::OnChange => Action::OnChange(
                rule.quantities
                    .iter()
                    .map(|(name, delta)| (name.clone(), *delta))
                    .collect(),
            ),
        };
        let mut fits = rule.fits.clone();
        if let Some(company) = &mut fits.company_id {
            company.make_ascii_lowercase();
        }
        fits.service_uuid = fits.service_uuid.map(|service| short_service(&service));
        Ok(Rule { fits, action })
    }

    fn window(&mut self, secs: i64) -> Action {
        let place = self
            .window_secs
            .iter()
            .position(|known| *known == secs)
            .unwrap_or_else(|| {
                self.window_secs.push(secs);
                self.window_secs.len() - 1
            });
        Action::Window(place)
    }

    /// Reads an advertisement with what was heard before, and calls `call` with the result and the
    /// measurements, which are in `measured`.
    pub fn read<T>(
        &self,
        advertisement: &Advertisement,
        before: &Before,
        measured: &mut Vec<Measurement>,
        call: impl FnOnce(&Read<'_>, &Frame<'_>, &[Measurement]) -> T,
    ) -> T {
        measured.clear();
        frame_of(advertisement).with(|frame| {
            let frame = &before.complete(frame);
            let read = self.catalog.read(frame, measured);
            call(&read, frame, measured)
        })
    }

    /// The device that sent an advertisement, if its model is known. Its measurements are in
    /// `measured`.
    pub fn known(
        &self,
        advertisement: &Advertisement,
        measured: &mut Vec<Measurement>,
    ) -> Option<KnownDevice> {
        self.read(advertisement, &Before::default(), measured, |read, _, _| {
            let model = read.model?;
            Some(KnownDevice {
                device_uuid: model.device_uuid,
                device_instance_id: read.instance.map(|device| device.device_instance_id),
                device_name: read
                    .instance
                    .and_then(|device| device.name.as_ref())
                    .unwrap_or(&model.name)
                    .clone(),
            })
        })
    }
}

impl Rule {
    /// Whether the catalog is needed to see if the rule fits.
    pub fn is_of_senders(&self) -> bool {
        self.fits.device_uuid.is_some()
            || self.fits.device_instance_id.is_some()
            || self.fits.known.is_some()
    }

    pub fn fits(&self, advertisement: &Advertisement, sender: &Sender) -> bool {
        let RouteMatch {
            device_uuid,
            device_instance_id,
            hub_uuid: _,
            known,
            min_rssi_dbm,
            company_id,
            service_uuid,
        } = &self.fits;
        let has_service = |service: &String| {
            advertisement.service_data.contains_key(service)
                || advertisement.service_uuids.contains(service)
        };
        min_rssi_dbm.is_none_or(|least| advertisement.rssi.is_some_and(|rssi| rssi >= least))
            && company_id
                .as_ref()
                .is_none_or(|company| advertisement.manufacturer_data.contains_key(company))
            && service_uuid.as_ref().is_none_or(has_service)
            && known.is_none_or(|known| known == sender.device_uuid.is_some())
            && device_uuid.is_none_or(|model| sender.device_uuid == Some(model))
            && device_instance_id.is_none_or(|device| sender.device_instance_id == Some(device))
    }
}

/// The UUID as in reported advertisements: 4 digits, or a longer UUID in full.
fn short_service(uuid: &str) -> String {
    let uuid = uuid.to_ascii_lowercase();
    match uuid
        .strip_prefix("0000")
        .and_then(|rest| rest.strip_suffix(BASE_UUID_TAIL))
    {
        Some(short) if short.len() == 4 => short.to_owned(),
        _ => uuid,
    }
}
