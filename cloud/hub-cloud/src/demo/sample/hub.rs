//! A hub that the demo plays: it claims itself and uploads as an agent does.

use hub_client::{Hub, now, operations};
use hub_protocol::Timestamp;
use reqwest::{Client, Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::Failure;
use super::super::client::Api;
use super::rollout::{MACHINE, next_version};

const ADAPTER: &str = "00:1A:7D:DA:71:";
/// What the hub says of an update, one after the other, with the percentage that is done.
const UPDATE: [(&str, Option<u8>); 4] = [
    ("ACCEPTED", None),
    ("PROGRESS", Some(35)),
    ("PROGRESS", Some(80)),
    ("SUCCEEDED", None),
];

pub struct PlayedHub {
    pub hub_uuid: Uuid,
    /// Its place among the strengths of a sensor.
    pub place: usize,
    url: String,
    client: Client,
    access_token: String,
    refresh_token: String,
    agent_version: String,
    /// What it has said of the update that it is at.
    said: usize,
}

/// What the service wants of a hub.
#[derive(Deserialize)]
struct DesiredState {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    hub_job_uuid: Uuid,
    #[serde(rename = "type")]
    kind: String,
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
        let hostname = name.to_lowercase().replace(' ', "-");
        let device_instance_id = format!("demo-{hostname}");
        let known: Vec<Hub> = api.client.list(operations::HUBS.call()).await?;
        let known = known
            .into_iter()
            .find(|hub| hub.device_instance_id == device_instance_id);
        let agent_version = known.and_then(|hub| hub.agent_version);
        let agent_version = agent_version.unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
        let body = json!({
            "claimCode": api.claim_code().await?, "hubIdentifier": name, "agentVersion": agent_version,
            "deviceInstanceId": device_instance_id, "hostname": hostname, "os": {"name": "debian", "version": "12", "arch": MACHINE},
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
            agent_version,
            said: 0,
        })
    }

    pub async fn upload(&mut self, batch_uuid: Uuid, events: &[&Value]) -> Result<(), Failure> {
        if events.is_empty() {
            return Ok(());
        }
        let body = json!({"batchUuid": batch_uuid, "events": events});
        self.send("/v1/ble/events", &body).await
    }

    /// Says what comes next of an update that the service wants.
    pub async fn update(&mut self) -> Result<(), Failure> {
        let hub = format!("/v1/hubs/{}", self.hub_uuid);
        let state = format!("{hub}/desired-state");
        let state = self.request(Method::GET, &state, None).await;
        let state: Answer<DesiredState> = read(state).await?;
        let mut jobs = state.data.jobs.into_iter();
        let Some(job) = jobs.find(|job| job.kind == "SELF_UPDATE") else {
            return Ok(());
        };
        let Some((kind, progress)) = UPDATE.get(self.said) else {
            return Ok(());
        };
        let body = json!({
            "eventUuid": Uuid::new_v4(), "kind": kind, "progress": progress, "occurredAt": now(),
        });
        self.send(&format!("{hub}/jobs/{}/events", job.hub_job_uuid), &body)
            .await?;
        self.said += 1;
        if self.said == UPDATE.len() {
            self.said = 0;
            self.agent_version = next_version();
            self.report(None).await?;
        }
        Ok(())
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
            "observedAt": now(), "agentVersion": self.agent_version, "cpu": 6, "memory": 31, "disk": 22,
            "uptime": 864_000, "temperature": 44.5, "adapters": {adapter.clone(): state},
        });
        self.send(&format!("/v1/hubs/{}/telemetry", self.hub_uuid), &body)
            .await?;
        let adapters = json!({"adapters": [{"address": adapter, "name": "hci0", "powered": true}]});
        self.send("/v1/hubs/adapters", &adapters).await
    }

    async fn send(&mut self, path: &str, body: &Value) -> Result<(), Failure> {
        let reply = self.request(Method::POST, path, Some(body)).await;
        let reply = reply.and_then(Response::error_for_status);
        reply
            .map(drop)
            .map_err(|error| super::failed(hub_client::cause(&error)))
    }

    /// An access token that has ended is replaced once.
    async fn request(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> reqwest::Result<Response> {
        let request = |hub: &Self| {
            let url = format!("{}{path}", hub.url);
            let request = hub.client.request(method.clone(), url);
            let request = request.bearer_auth(&hub.access_token);
            match body {
                Some(body) => request.json(body),
                None => request,
            }
        };
        let reply = request(self).send().await?;
        if reply.status() != StatusCode::UNAUTHORIZED || self.refresh().await.is_err() {
            return Ok(reply);
        }
        request(self).send().await
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
