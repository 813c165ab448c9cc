//! A hub that the demo plays: it claims itself and uploads as an agent does.

use hub_client::now;
use hub_protocol::Timestamp;
use reqwest::{Client, Method};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::Failure;
use super::super::client::Api;
use super::rollout::MACHINE;

const ADAPTER: &str = "00:1A:7D:DA:71:";

pub struct PlayedHub {
    pub hub_uuid: Uuid,
    /// Its place among the strengths of a sensor.
    pub place: usize,
    url: String,
    client: Client,
    access_token: String,
    refresh_token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claimed {
    hub_uuid: Uuid,
    access_token: String,
    refresh_token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Refreshed {
    access_token: String,
}

#[derive(Deserialize)]
struct Answer<T> {
    data: T,
}

impl PlayedHub {
    /// Claims the hub. It stays the same hub at each start of the demo.
    pub async fn claim(
        (api, url): (&Api, &str),
        (name, place): (&str, usize),
        claim_key: Uuid,
    ) -> Result<Self, Failure> {
        let client = http_client()?;
        let body = json!({
            "claimCode": api.claim_code().await?, "hubIdentifier": name, "agentVersion": env!("CARGO_PKG_VERSION"),
            "deviceInstanceId": format!("demo-{}", name.to_lowercase().replace(' ', "-")),
            "hostname": name.to_lowercase().replace(' ', "-"), "os": {"name": "debian", "version": "12", "arch": MACHINE},
        });
        let request = client
            .post(format!("{url}/v1/hubs/claim"))
            .header("idempotency-key", claim_key.to_string())
            .json(&body);
        let claimed: Answer<Claimed> = read(request.send().await).await?;
        let Claimed {
            hub_uuid,
            access_token,
            refresh_token,
        } = claimed.data;
        Ok(Self {
            hub_uuid,
            place,
            url: url.to_owned(),
            client,
            access_token,
            refresh_token,
        })
    }

    pub async fn upload(&mut self, batch_uuid: Uuid, events: &[&Value]) -> Result<(), Failure> {
        if events.is_empty() {
            return Ok(());
        }
        let body = json!({"batchUuid": batch_uuid, "events": events});
        self.send("/v1/ble/events", &body).await
    }

    /// Sends telemetry, with a period in which the adapter heard nothing.
    pub async fn report(&mut self, blind: Option<(Timestamp, Timestamp)>) -> Result<(), Failure> {
        let adapter = format!("{ADAPTER}0{}", self.place);
        let blind: Vec<Value> = blind
            .into_iter()
            .map(
                |(from, to)| json!({"from": from, "to": to, "reason": "the adapter was unplugged"}),
            )
            .collect();
        let state = json!({
            "state": "LISTENING", "advertisements": 1200, "advertisementsPerSec": 3.5, "restarts": 0,
            "lastHeardAt": now(), "blind": blind,
        });
        let body = json!({
            "observedAt": now(), "agentVersion": env!("CARGO_PKG_VERSION"), "cpu": 6, "memory": 31, "disk": 22,
            "uptime": 864_000, "temperature": 44.5, "adapters": {adapter.clone(): state},
        });
        self.send(&format!("/v1/hubs/{}/telemetry", self.hub_uuid), &body)
            .await?;
        let adapters = json!({"adapters": [{"address": adapter, "name": "hci0", "powered": true}]});
        self.send("/v1/hubs/adapters", &adapters).await
    }

    /// Sends a body; an access token that has ended is replaced once.
    async fn send(&mut self, path: &str, body: &Value) -> Result<(), Failure> {
        for is_last in [false, true] {
            let request = self
                .client
                .request(Method::POST, format!("{}{path}", self.url))
                .bearer_auth(&self.access_token)
                .json(body);
            let reply = request
                .send()
                .await
                .map_err(|error| super::failed(hub_client::cause(&error)))?;
            match reply.status().as_u16() {
                401 if !is_last => self.refresh().await?,
                200..=299 => return Ok(()),
                status => return Err(Failure(format!("{path}: status {status}"))),
            }
        }
        Ok(())
    }

    async fn refresh(&mut self) -> Result<(), Failure> {
        let body = json!({"refreshToken": self.refresh_token});
        let request = self
            .client
            .post(format!("{}/v1/hubs/refresh", self.url))
            .bearer_auth(&self.access_token)
            .json(&body);
        let refreshed: Answer<Refreshed> = read(request.send().await).await?;
        self.access_token = refreshed.data.access_token;
        Ok(())
    }
}

/// Calls go to this machine, whatever proxy its user has.
pub fn http_client() -> Result<Client, Failure> {
    let client = Client::builder().no_proxy().build();
    client.map_err(|error| super::failed(hub_client::cause(&error)))
}

pub async fn read<T: serde::de::DeserializeOwned>(
    reply: reqwest::Result<reqwest::Response>,
) -> Result<T, Failure> {
    let failed = |error: reqwest::Error| super::failed(hub_client::cause(&error));
    let reply = reply
        .and_then(reqwest::Response::error_for_status)
        .map_err(failed)?;
    reply.json().await.map_err(failed)
}
