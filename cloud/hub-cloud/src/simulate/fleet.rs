//! The simulated hubs: claimed with the codes of their tenants, each with the devices it hears.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use hub_logging::say;
use hub_protocol::claim::HubCredentials;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Failure;
use super::profile::Profile;

const CLAIMS_AT_A_TIME: usize = 4;
/// How often a claim is repeated that the service refuses for now.
const MAX_ATTEMPTS: usize = 60;

/// A hub, and what it hears.
pub struct Hub {
    pub access_token: String,
    /// Its place among the hubs of its tenant, and their number.
    pub place: u32,
    pub places: u32,
    /// The devices of its tenant: every so many from the first on.
    pub first_device: u32,
    pub step: u32,
    pub tenant_devices: u32,
}

impl Hub {
    /// The number of devices that it hears.
    pub fn heard_devices(&self, heard_by: u32) -> u32 {
        (0..heard_by).map(|shift| self.heard_of(shift).1).sum()
    }

    /// The place so many before its own, and how many devices that place has, which it hears too.
    fn heard_of(&self, shift: u32) -> (u32, u32) {
        let place = (self.place + self.places - shift) % self.places;
        let count = (self.tenant_devices + self.places - 1 - place) / self.places;
        (place, count)
    }

    /// The number of a device that it hears, among those of all tenants.
    pub fn device(&self, index: u32, heard_by: u32) -> u32 {
        let (mut index, mut shift) = (index, 0);
        loop {
            let (place, count) = self.heard_of(shift);
            if index < count || shift + 1 >= heard_by {
                let of_tenant = place + index * self.places;
                return self.first_device + of_tenant * self.step;
            }
            index -= count;
            shift += 1;
        }
    }
}

/// Claims the hubs, or the same ones again: the identity of a simulated hub follows from its code.
pub async fn claim(
    http: &Client,
    url: &str,
    codes: &[String],
    profile: &Profile,
) -> Result<Vec<Hub>, Failure> {
    let tenants = u32::try_from(codes.len()).unwrap_or(u32::MAX);
    let (numbers, count) = (0..profile.hubs, profile.hubs);
    let claims = numbers.zip(codes.iter().cycle()).map(|(number, code)| {
        let tenant = number % tenants;
        async move {
            let access_token = claim_one(http, url, code, number / tenants).await?;
            Ok::<_, Failure>(Hub {
                access_token,
                place: number / tenants,
                places: (count + tenants - 1 - tenant) / tenants,
                first_device: tenant,
                step: tenants,
                tenant_devices: (profile.devices + tenants - 1 - tenant) / tenants,
            })
        }
    });
    let mut claimed = stream::iter(claims).buffered(CLAIMS_AT_A_TIME);
    let mut hubs = Vec::new();
    while let Some(hub) = claimed.try_next().await? {
        hubs.push(hub);
        if hubs.len() % 1000 == 0 {
            say(format_args!("claimed {} of {count} hubs", hubs.len()));
        }
    }
    Ok(hubs)
}

async fn claim_one(http: &Client, url: &str, code: &str, number: u32) -> Result<String, Failure> {
    let of_code = hex::encode(Sha256::digest(code));
    let identity = format!(
        "simulated-{}-{number}",
        of_code.get(..12).unwrap_or_default()
    );
    let key = hex::encode(Sha256::digest(format!("{code} {number}")));
    let body =
        json!({"claimCode": code, "deviceInstanceId": identity, "agentVersion": "simulated"});
    let mut attempt = 1;
    loop {
        // With the same key a claim is repeated, and the hub is the same.
        let request = http
            .post(format!("{url}/v1/hubs/claim"))
            .header("idempotency-key", &key)
            .json(&body);
        let response = request
            .send()
            .await
            .map_err(|error| Failure::Failed(format!("cannot reach {url}: {error}")))?;
        let status = response.status();
        let wait = super::retry_after(&response);
        let reply: Value = response.json().await.unwrap_or_default();
        let is_passing =
            status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE;
        if is_passing && attempt < MAX_ATTEMPTS {
            attempt += 1;
            tokio::time::sleep(wait.unwrap_or(Duration::from_secs(1))).await;
            continue;
        }
        let data = reply.get("data").cloned().unwrap_or_default();
        return match serde_json::from_value::<HubCredentials>(data) {
            Ok(credentials) if status.is_success() => Ok(credentials.access_token),
            _ => {
                let message = reply.get("message").and_then(Value::as_str);
                Err(Failure::Failed(format!(
                    "the service refused to claim hub {number} of a tenant ({status}): {}; each \
                     hub needs a use of its claim code",
                    message.unwrap_or("no reason given")
                )))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_device_is_heard_by_as_many_hubs_of_its_tenant() {
        for (places, devices, heard_by) in [(1, 5, 1), (4, 10, 1), (4, 10, 3), (5, 5, 5)] {
            let mut heard: BTreeMap<u32, u32> = BTreeMap::new();
            for place in 0..places {
                let hub = Hub {
                    access_token: String::new(),
                    place,
                    places,
                    first_device: 1,
                    step: 2,
                    tenant_devices: devices,
                };
                let mut of_hub = std::collections::BTreeSet::new();
                for index in 0..hub.heard_devices(heard_by) {
                    assert!(of_hub.insert(hub.device(index, heard_by)));
                }
                of_hub
                    .into_iter()
                    .for_each(|device| *heard.entry(device).or_default() += 1);
            }
            let expected: BTreeMap<u32, u32> = (0..devices)
                .map(|device| (1 + 2 * device, heard_by))
                .collect();
            assert_eq!(heard, expected);
        }
    }
}
