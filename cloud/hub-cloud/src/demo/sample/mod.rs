//! The sample of the demo: models, named sensors, a floor plan with three hubs, a day of history
//! and values that go on from it, consent, and a rollout of the agent. All of it goes through the
//! API, as a tenant's and hubs' own data does. The first hub is the real agent, which replays
//! frames of the sensors; the others are played here.

mod consent;
mod dashboard;
mod history;
mod hub;
mod rollout;
mod sensors;

use std::collections::HashMap;
use std::time::Duration;

use hub_client::{Client, Operation, now};
use hub_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Failure;
use super::client::{Api, DEVICE_INSTANCE_ID};
use super::demo_dir::{self, DemoDir};
pub use history::Past;
use hub::PlayedHub;
pub use hub::http_client;
use sensors::{SENSORS, template};

/// The hubs that are played here, with their places among the strengths of a sensor.
const PLAYED: [(&str, usize); 2] = [("Warehouse", 1), ("Loading dock", 2)];
/// Where the hubs are on the plan: the real one first.
const PLACES: [(f64, f64); 3] = [(0.17, 0.30), (0.58, 0.62), (0.68, 0.80)];
/// When the dock's hub heard nothing, before the start of the demo, and for how long.
const BLIND_FROM_SECS: i64 = 3 * 3600;
const BLIND_FOR_SECS: i64 = 600;
const LIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Seconds between two frames of a sensor that hubs report live.
const DUE_SECS: i64 = 20;
/// A replay of so many seconds is repeated.
const REPLAY_SECS: i64 = 600;
const PLAN: &[u8] = include_bytes!("floor-plan.png");

static DEVICES: Operation = Operation::new("GET", "/tenant/devices").query(&["page", "size"]);
static CREATE_DEVICE: Operation = Operation::new("POST", "/tenant/devices");
static ACTIVATE: Operation = Operation::new("POST", "/tenant/devices/{deviceInstanceId}/activate");
static PLANS: Operation = Operation::new("GET", "/tenant/floor-plans");
static CREATE_PLAN: Operation = Operation::new("POST", "/tenant/floor-plans");
static PLACE_HUBS: Operation = Operation::new("PATCH", "/tenant/floor-plans/{floorPlanUuid}");

/// The ids of what the service has made.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    device_uuid: Uuid,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Device {
    device_instance_id: i64,
    device_uuid: Uuid,
    address: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Plan {
    floor_plan_uuid: Uuid,
    hubs: Vec<Value>,
}

/// What is remembered of the sample between two starts.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Made {
    /// When the demo was first started, in seconds since 1970. The history ends here.
    start: i64,
    /// The first of the numbers that name its uploads.
    batches: Uuid,
    /// What proves at the next start that the played hubs are the same.
    claim_key: Uuid,
    pub is_complete: bool,
}

impl Made {
    /// What the last start has made, or the beginning of what the first one is going to make.
    pub fn load(demo_dir: &DemoDir) -> Result<Self, Failure> {
        if let Some(text) = demo_dir.read(demo_dir::SAMPLE)? {
            return serde_json::from_slice(&text).map_err(failed);
        }
        let made = Self {
            start: now().as_secs(),
            batches: Uuid::new_v4(),
            claim_key: Uuid::new_v4(),
            is_complete: false,
        };
        made.write(demo_dir)?;
        Ok(made)
    }

    fn write(&self, demo_dir: &DemoDir) -> Result<(), Failure> {
        let text = serde_json::to_vec(self).map_err(failed)?;
        demo_dir.write(demo_dir::SAMPLE, &text)
    }
}

/// The sample while the demo runs.
pub struct Sample {
    made: Made,
    hubs: Vec<PlayedHub>,
}

impl Sample {
    /// Makes what is not there yet. What a killed demo had begun is completed.
    pub async fn make(
        api: &Api,
        (mut made, past): (Made, &Past),
        (demo_dir, url): (&DemoDir, &str),
    ) -> Result<Self, Failure> {
        // Before there are hubs: those of owners without a consent report nothing.
        if !made.is_complete {
            consent::grant(api).await?;
        }
        let mut hubs = Vec::new();
        for (name, place) in PLAYED {
            hubs.push(PlayedHub::claim((api, url), (name, place), made.claim_key).await?);
        }
        if !made.is_complete {
            make_devices(&api.client).await?;
            dashboard::make(&api.client).await?;
            make_plan(api, url).await?;
            history::upload(&mut hubs, &made, past).await?;
            rollout::begin(api, demo_dir, &made).await?;
            made.is_complete = true;
            made.write(demo_dir)?;
        }
        Ok(Self { made, hubs })
    }

    /// The recording that the real agent replays: frames of the sensors near it, as lines of JSON.
    pub fn recording(&self) -> Result<Vec<u8>, Failure> {
        let begin = now().as_secs();
        let mut lines = Vec::new();
        for second in 0..REPLAY_SECS {
            for (index, sensor) in (0_i64..).zip(&SENSORS) {
                let is_due = (second + index) % 10 == 0 && sensor.every_secs() < 600;
                let Some(dbm) = sensor.strength_at(0).filter(|_| is_due) else {
                    continue;
                };
                if !sensor.sends(begin, self.made.start) {
                    continue;
                }
                let mut line = sensor.recorded(begin + second, self.made.start);
                line.insert("t_ms".to_owned(), json!(second * 1000 + index * 37));
                line.insert("rssi".to_owned(), json!(wavering(dbm, second)));
                lines.push((second * 1000 + index * 37, line));
            }
        }
        lines.sort_by_key(|(at, _)| *at);
        let mut recording = Vec::new();
        for (_, line) in lines {
            serde_json::to_writer(&mut recording, &line).map_err(failed)?;
            recording.push(b'\n');
        }
        Ok(recording)
    }

    /// Plays the hubs, and places the real one once it is claimed.
    pub fn play(self, api: Api, tasks: &mut JoinSet<()>) {
        let played: Vec<Uuid> = self.hubs.iter().map(|hub| hub.hub_uuid).collect();
        tasks.spawn(async move { place_hubs(&api, &played).await });
        let start = self.made.start;
        for hub in self.hubs {
            tasks.spawn(live(hub, start));
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure(error.to_string())
}

/// A strength that is never twice the same.
fn wavering(dbm: i64, at: i64) -> i64 {
    dbm + (at * 7919).rem_euclid(7) - 3
}

/// Adds the models, and registers the sensors with their names.
async fn make_devices(client: &Client) -> Result<(), Failure> {
    let existing: Vec<Device> = client.list(DEVICES.call()).await?;
    let mut models: HashMap<&str, Uuid> = HashMap::new();
    for sensor in &SENSORS {
        let key = template(sensor.kind);
        let has_address = |device: &&Device| device.address.as_deref() == Some(sensor.address);
        if let Some(device) = existing.iter().find(has_address) {
            models.insert(key, device.device_uuid);
            continue;
        }
        let device_uuid = match models.get(key) {
            Some(device_uuid) => *device_uuid,
            None => {
                let call = hub_client::operations::CREATE_MODEL_FROM_TEMPLATE.call();
                let model: Model = client.call(call.body(json!({"template": key}))).await?;
                models.insert(key, model.device_uuid);
                model.device_uuid
            }
        };
        let device = json!({
            "deviceUuid": device_uuid, "name": sensor.name, "address": sensor.address,
            "addressType": "RANDOM",
        });
        let device: Device = client.call(CREATE_DEVICE.call().body(device)).await?;
        let activate = ACTIVATE.call();
        client
            .run(activate.path("deviceInstanceId", device.device_instance_id))
            .await?;
    }
    Ok(())
}

async fn make_plan(api: &Api, url: &str) -> Result<(), Failure> {
    let existing: Vec<Plan> = api.client.list(PLANS.call()).await?;
    if !existing.is_empty() {
        return Ok(());
    }
    let body = json!({"name": "Warehouse", "widthMetres": 40});
    let plan: Plan = api.client.call(CREATE_PLAN.call().body(body)).await?;
    let plan = plan.floor_plan_uuid;
    let request = hub::http_client()?
        .put(format!("{url}/tenant/floor-plans/{plan}/image"))
        .bearer_auth(api.access_token().await?)
        .header("x-tenant-uuid", api.tenant_uuid.to_string())
        .header("content-type", "image/png")
        .body(PLAN);
    let _: Value = hub::read(request.send().await).await?;
    Ok(())
}

/// Places the three hubs on the plan, once the real one is claimed.
async fn place_hubs(api: &Api, played: &[Uuid]) {
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let Ok((Some(real), _)) = api.statistics().await else {
            continue;
        };
        debug_assert_eq!(real.device_instance_id, DEVICE_INSTANCE_ID);
        let hubs: Vec<Value> = std::iter::once(real.hub_uuid.0)
            .chain(played.iter().copied())
            .zip(PLACES)
            .map(|(hub_uuid, (x, y))| json!({"hubUuid": hub_uuid, "x": x, "y": y}))
            .collect();
        let Ok(plans) = api.client.list::<Plan>(PLANS.call()).await else {
            continue;
        };
        let Some(plan) = plans.last().filter(|plan| plan.hubs.is_empty()) else {
            return;
        };
        let call = PLACE_HUBS.call();
        let call = call.path("floorPlanUuid", plan.floor_plan_uuid);
        if api
            .client
            .run(call.body(json!({"hubs": hubs})))
            .await
            .is_ok()
        {
            return;
        }
    }
}

/// Uploads what a hub hears, every few seconds, until the demo ends.
async fn live(mut hub: PlayedHub, start: i64) {
    let mut ticks = tokio::time::interval(LIVE_INTERVAL);
    for tick in 0_u64.. {
        ticks.tick().await;
        let at = now().as_secs();
        let heard = SENSORS.iter().filter_map(|sensor| {
            let every = sensor.every_secs();
            let is_due = every < 5400 && at.rem_euclid(every.min(DUE_SECS)) < 5;
            let dbm = sensor.strength_at(hub.place)?;
            let sends = is_due && sensor.sends(at, start);
            sends.then(|| sensor.event(at, start, wavering(dbm, at)))
        });
        let events: Vec<Value> = heard.collect();
        let events: Vec<&Value> = events.iter().collect();
        // The service may be stopping; the next turn tries again.
        let _ = hub.upload(Uuid::new_v4(), &events).await;
        let _ = hub.update().await;
        if tick % 12 == 0 {
            let _ = hub.report(blind_period(hub.place, start)).await;
        }
    }
}

/// The time in which a hub heard nothing, as its telemetry has it.
fn blind_period(place: usize, start: i64) -> Option<(Timestamp, Timestamp)> {
    let from = Timestamp::from_micros((start - BLIND_FROM_SECS) * 1_000_000);
    (place == 2).then(|| (from, from.plus_secs(BLIND_FOR_SECS)))
}
