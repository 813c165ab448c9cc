//! The stage between check and commit: what it notes in a record is stored and announced with it.

use std::sync::Arc;

use hub_cloud::authn::hub::Hub;
use hub_cloud::db::sql;
use hub_cloud::ingest::{self, Commits, Kind, ProcessingStatus, Record, Stage, Upload};
use hub_protocol::TenantUuid;
use hub_tests::{Backend, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::json;
use uuid::Uuid;

on_each_database!(what_the_stage_notes_is_stored_and_announced);
async fn what_the_stage_notes_is_stored_and_announced(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let (commits, mut committed) = Commits::new(true);
    let stage: Stage = Arc::new(|upload: &mut Upload| {
        for record in &mut upload.records {
            record.processing_status = ProcessingStatus::Decoded;
            record.device_instance_id = Some(7);
        }
    });
    let (queue, writer) = ingest::queue(&app.app, commits, stage);
    writer.start((*app.app).clone()).expect("a writer");

    let tenant_uuid: TenantUuid = tenant.tenant_uuid;
    let mut conn = app.app.db.read().await.expect("a connection");
    let token_id: Uuid = sql("SELECT access_token_id FROM hubs WHERE hub_uuid = $1")
        .bind(hub.hub_uuid)
        .scalar(&mut conn)
        .await
        .expect("a token");
    drop(conn);
    let event = json!({"observedAt": "2026-01-01T00:00:00.000000Z", "address": "AA:BB:CC:DD:EE:FF"}).to_string();
    let upload = Upload {
        hub: Hub { hub_uuid: hub.hub_uuid, tenant_uuid, token_id },
        kind: Kind::BleEvents,
        key: None,
        records: vec![Record::on_one_line(&event)],
        answer: String::new(),
        agent_version: None,
    };
    queue.submit(upload).await.expect("a receipt");

    let announced = committed.recv().await.expect("a commit").remove(0).records.remove(0);
    assert_eq!(announced.record.processing_status, ProcessingStatus::Decoded);
    let mut conn = app.app.db.read().await.expect("a connection");
    let stored: (String, Option<i64>) =
        sql("SELECT processing_status, device_instance_id FROM ble_events WHERE tenant_uuid = $1")
            .bind(tenant_uuid)
            .one(&mut conn)
            .await
            .expect("the event");
    assert_eq!(stored, ("DECODED".to_owned(), Some(7)));
}
