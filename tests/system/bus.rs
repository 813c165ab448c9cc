//! Replicas whose bus is killed or hangs find what the others change by polling, as soon as they do
//! without a bus.

use std::time::{Duration, Instant};

use hub_core::config::Settings;
use hub_tests::{Backend, Call, Follower, Options, SimulatedHub, Tenant, TestApp, on_postgres};
use reqwest::header::IF_NONE_MATCH;
use rustix::process::Signal;
use serde_json::json;

use super::interruptions::nats;

/// Polling without a bus takes a second at most.
const SOON: Duration = Duration::from_secs(3);
/// Within this time the loss of the bus is noticed.
const NOTICED: Duration = Duration::from_secs(2);

struct Replicas {
    app: TestApp,
    other: TestApp,
    tenant: Tenant,
    hub: SimulatedHub,
    /// Reads the stream of BLE events at the other replica.
    follower: Follower,
    events: usize,
    label: usize,
}

impl Replicas {
    /// The time until a change at one replica reaches a hub that waits at the other.
    async fn until_hub_knows(&mut self) -> Duration {
        let client = self.hub.client.at(&self.other.url);
        let path = format!("/v1/hubs/{}/desired-state", self.hub.hub_uuid);
        let state = client.get(&path).call().await.expect(200);
        let held = client
            .get(&format!("{path}?wait=50"))
            .header(IF_NONE_MATCH, state.header("etag"));
        let held = tokio::spawn(async move { held.call().await });
        while self.other.app.metrics.hub_waits.get() == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.label += 1;
        let began_at = Instant::now();
        self.tenant
            .client
            .patch(&format!("/tenant/hubs/{}", self.hub.hub_uuid))
            .json(&json!({"hubIdentifier": format!("Gate {}", self.label)}))
            .call()
            .await
            .expect(200);
        held.await.expect("an answer").expect(200);
        began_at.elapsed()
    }

    /// The time until an event that one replica stores is read at the other.
    async fn until_event_is_read(&mut self) -> Duration {
        self.events += 1;
        let began_at = Instant::now();
        self.hub.upload_events(1).await;
        self.follower.until(self.events).await;
        began_at.elapsed()
    }

    async fn hear_of_each_other_soon(&mut self, fault: &str) {
        for _ in 0..3 {
            let hub = self.until_hub_knows().await;
            let event = self.until_event_is_read().await;
            assert!(hub < SOON && event < SOON, "{fault}: {hub:?}, {event:?}");
        }
    }
}

on_postgres!(replicas_hear_of_each_other_soon_while_the_bus_is_away);
async fn replicas_hear_of_each_other_soon_while_the_bus_is_away(backend: Backend) {
    let dir = tempfile::tempdir().expect("a directory");
    let port = hub_tests::ports::lasting();
    let Some(mut broker) = nats(dir.path(), port) else {
        return;
    };
    let options = || Options {
        settings: Settings {
            bus: Some(format!("nats://127.0.0.1:{port}")),
            ..Settings::default()
        },
        ..Options::default()
    };
    let app = TestApp::with(backend, options()).await;
    let other = TestApp::replica_of(&app, options()).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let path = "/tenant/stream/ble/events";
    let mut replicas = Replicas {
        follower: Follower::start(&tenant.client.at(&other.url), path, 1_000, 1),
        app,
        other,
        tenant,
        hub,
        events: 0,
        label: 0,
    };
    replicas.hear_of_each_other_soon("with a bus").await;

    broker.kill().await;
    tokio::time::sleep(NOTICED).await;
    replicas.hear_of_each_other_soon("killed").await;

    let mut broker = nats(dir.path(), port).expect("it is there");
    replicas.hear_of_each_other_soon("restarted").await;

    // It accepts everything and answers nothing.
    broker.signal(Signal::STOP);
    tokio::time::sleep(NOTICED).await;
    replicas.hear_of_each_other_soon("hangs").await;
    broker.kill().await;
    drop(replicas.app);
}
