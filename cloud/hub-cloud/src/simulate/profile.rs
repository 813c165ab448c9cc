//! What the fleet is: how many hubs and devices there are, and how often they send.

use std::path::{Path, PathBuf};

use clap::Args;
use hub_protocol::ble::MAX_EVENTS_PER_UPLOAD;
use serde::Deserialize;

use super::Failure;

/// The longest run. Access tokens are not renewed.
const MAX_SECS: u64 = 12 * 3600;
const MAX_HUBS: u32 = 100_000;
const MAX_DEVICES: u32 = 100_000_000;

/// The profile as it is given: flags override the file.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Given {
    /// Hubs of all tenants together [default: 100]
    #[arg(long, value_name = "COUNT")]
    hubs: Option<u32>,
    /// Devices of all tenants together [default: 1000]
    #[arg(long, value_name = "COUNT")]
    devices: Option<u32>,
    /// Hubs that hear each device [default: 1]
    #[arg(long, value_name = "COUNT")]
    heard_by: Option<u32>,
    /// Time between two events of a device at a hub [default: 10]
    #[arg(long, value_name = "SECONDS")]
    event_every: Option<f64>,
    /// Time between two uploads of a hub [default: 10]
    #[arg(long, value_name = "SECONDS")]
    upload_every: Option<f64>,
    /// How long the fleet uploads [default: 60]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
}

/// A profile that can be simulated.
#[derive(Clone, Debug)]
pub struct Profile {
    pub hubs: u32,
    pub devices: u32,
    pub heard_by: u32,
    pub event_every_secs: f64,
    pub upload_every_secs: f64,
    pub seconds: u64,
}

impl Profile {
    /// Merges the flags over the file, and checks the result for hubs of this many tenants.
    pub fn load(given: &Given, file: Option<&PathBuf>, tenants: u32) -> Result<Self, Failure> {
        let file = match file {
            Some(path) => read(path)?,
            None => Given::default(),
        };
        let profile = Self {
            hubs: given.hubs.or(file.hubs).unwrap_or(100),
            devices: given.devices.or(file.devices).unwrap_or(1000),
            heard_by: given.heard_by.or(file.heard_by).unwrap_or(1),
            event_every_secs: given.event_every.or(file.event_every).unwrap_or(10.0),
            upload_every_secs: given.upload_every.or(file.upload_every).unwrap_or(10.0),
            seconds: given.seconds.or(file.seconds).unwrap_or(60),
        };
        let wrong = |message: String| Err(Failure::WrongUsage(message));
        let is_time = |secs: f64| (0.01..=86_400.0).contains(&secs);
        match &profile {
            of if !(tenants..=MAX_HUBS).contains(&of.hubs) => wrong(format!(
                "hubs must be {tenants} (one for each claim code) to {MAX_HUBS}"
            )),
            of if !(of.hubs..=MAX_DEVICES).contains(&of.devices) => wrong(format!(
                "devices must be {} (one for each hub) to {MAX_DEVICES}",
                of.hubs
            )),
            of if !(1..=of.hubs / tenants).contains(&of.heard_by) => wrong(format!(
                "heard-by must be 1 to {}, the hubs of a tenant",
                of.hubs / tenants
            )),
            of if !is_time(of.event_every_secs) => {
                wrong("event-every must be 0.01 to 86400 seconds".to_owned())
            }
            of if !is_time(of.upload_every_secs) => {
                wrong("upload-every must be 0.01 to 86400 seconds".to_owned())
            }
            of if !(1..=MAX_SECS).contains(&of.seconds) => {
                wrong(format!("seconds must be 1 to {MAX_SECS}"))
            }
            of if of.events_per_upload() > MAX_EVENTS_PER_UPLOAD as f64 => wrong(format!(
                "an upload would have {:.0} events, and {MAX_EVENTS_PER_UPLOAD} are allowed: \
                 raise hubs, or lower upload-every",
                of.events_per_upload()
            )),
            _ => Ok(profile),
        }
    }

    /// Events of all hubs together.
    pub fn events_per_sec(&self) -> f64 {
        f64::from(self.devices) * f64::from(self.heard_by) / self.event_every_secs
    }

    pub fn uploads_per_sec(&self) -> f64 {
        f64::from(self.hubs) / self.upload_every_secs
    }

    pub fn events_per_upload(&self) -> f64 {
        self.events_per_sec() / self.uploads_per_sec()
    }
}

fn read(path: &Path) -> Result<Given, Failure> {
    let wrong = |error: String| Failure::WrongUsage(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(given: Given, tenants: u32) -> Result<Profile, String> {
        Profile::load(&given, None, tenants).map_err(|error| error.to_string())
    }

    #[test]
    fn a_wrong_value_is_named() {
        let cases: [(Given, u32, &str); 6] = [
            (
                Given {
                    hubs: Some(1),
                    ..Given::default()
                },
                2,
                "hubs",
            ),
            (
                Given {
                    devices: Some(99),
                    ..Given::default()
                },
                1,
                "devices",
            ),
            (
                Given {
                    heard_by: Some(51),
                    ..Given::default()
                },
                2,
                "heard-by",
            ),
            (
                Given {
                    event_every: Some(0.0),
                    ..Given::default()
                },
                1,
                "event-every",
            ),
            (
                Given {
                    upload_every: Some(f64::NAN),
                    ..Given::default()
                },
                1,
                "upload-every",
            ),
            (
                Given {
                    hubs: Some(50),
                    event_every: Some(0.01),
                    ..Given::default()
                },
                1,
                "raise hubs",
            ),
        ];
        for (given, tenants, expected) in cases {
            let error = load(given, tenants).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        let profile = load(Given::default(), 2).expect("a profile");
        assert_eq!(
            (profile.events_per_sec(), profile.events_per_upload()),
            (100.0, 10.0)
        );
    }
}
