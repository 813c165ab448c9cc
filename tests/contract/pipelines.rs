//! The pipelines of the first tenant.

use hub_base::db::sql;
use hub_tests::{Call, Client, Tenant, TestApp};
use serde_json::{Value, json};
use uuid::Uuid;

const PIPELINES: &str = "/tenant/data-pipelines";

pub struct Pipelines {
    client: Client,
    /// A pipeline that stays.
    pub pipeline_uuid: String,
}

impl Pipelines {
    pub async fn new(tenant: &Tenant) -> Self {
        let client = tenant.client.clone();
        let pipeline_uuid = made(&client).await;
        Self {
            client,
            pipeline_uuid,
        }
    }

    /// A new pipeline.
    pub async fn pipeline(&self) -> String {
        let listed: Value = self.client.get(PIPELINES).call().await.expect(200).data();
        let all = listed.as_array().expect("a list");
        let others = all
            .iter()
            .filter_map(|one| one["pipelineUuid"].as_str())
            .filter(|one| *one != self.pipeline_uuid);
        if all.len() > 50 {
            for one in others.take(10) {
                self.client
                    .delete(&format!("{PIPELINES}/{one}"))
                    .call()
                    .await
                    .expect(204);
            }
        }
        made(&self.client).await
    }

    /// A new replay of the pipeline that stays; there is room for another one.
    pub async fn replay(&self) -> String {
        let path = format!("{PIPELINES}/{}", self.pipeline_uuid);
        let listed: Value = self
            .client
            .get(&format!("{path}/replays"))
            .call()
            .await
            .expect(200)
            .data();
        let running = listed
            .as_array()
            .expect("a list")
            .iter()
            .filter(|one| one["finishedAt"].is_null());
        for one in running {
            let replay = one["replayUuid"].as_str().expect("a uuid");
            self.client
                .delete(&format!("{path}/replays/{replay}"))
                .call()
                .await
                .expect(204);
        }
        let body = json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"});
        let begun: Value = self
            .client
            .post(&format!("{path}/replay"))
            .json(&body)
            .call()
            .await
            .expect(202)
            .data();
        begun["replayUuid"].as_str().expect("a uuid").to_owned()
    }

    /// A new dead letter of the pipeline that stays.
    pub async fn dead_letter(&self, app: &TestApp, tenant: &Tenant, ble_event_id: i64) -> i64 {
        let pipeline_uuid: Uuid = self.pipeline_uuid.parse().expect("a uuid");
        dead_letter(app, tenant, pipeline_uuid, &[ble_event_id]).await
    }
}

async fn made(client: &Client) -> String {
    let body = json!({
        "name": "Hall", "source": {},
        "destination": {"kind": "HTTP", "url": "https://example.com/in"},
    });
    let made: Value = client
        .post(PIPELINES)
        .json(&body)
        .call()
        .await
        .expect(201)
        .data();
    made["pipelineUuid"].as_str().expect("a uuid").to_owned()
}

/// Stores a dead letter with these events, as the engine does.
pub async fn dead_letter(
    app: &TestApp,
    tenant: &Tenant,
    pipeline_uuid: Uuid,
    events: &[i64],
) -> i64 {
    let (first, last) = (events[0], events[events.len() - 1]);
    let mut tx = app.app.db.begin().await.expect("a transaction");
    let dlq_id = sql(
        "INSERT INTO dead_letters (tenant_uuid, pipeline_uuid, revision, message_id, \
         first_event_id, last_event_id, events, event_ids, payload, reason, attempts, created_at) \
         VALUES ($1, $2, 1, 'm', $3, $4, $5, $6, $7, 'the receiver answered 400', 1, $8) \
         RETURNING dlq_id",
    )
    .bind((
        tenant.tenant_uuid,
        pipeline_uuid,
        first,
        last,
        i64::try_from(events.len()).expect("a count"),
        hub_pipelines::event_ids::encode(events),
        "{\"rssi\": -60}",
        app.app.clock.now(),
    ))
    .scalar(&mut tx)
    .await
    .expect("a row");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    dlq_id
}
