//! What hubs may be told to install, put into the database as it is once it is READY, and jobs as hubs see them.

use hub_cloud::db::sql;
use hub_protocol::hub::DesiredState;
use hub_protocol::job::DesiredJob;
use hub_protocol::{AppUuid, HubJobUuid, ReleaseUuid};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::TestApp;
use crate::client::{Call, Reply};
use crate::hub::SimulatedHub;
use crate::people::Tenant;

impl Tenant {
    /// An app of the tenant's.
    pub async fn stored_app(&self, app: &TestApp) -> AppUuid {
        let app_uuid = AppUuid::new();
        let mut tx = app.app.db.begin().await.expect("a transaction");
        sql("INSERT INTO apps (app_uuid, tenant_uuid, name, created_at) VALUES ($1, $2, $3, $4)")
            .bind(app_uuid)
            .bind(self.tenant_uuid)
            .bind(app_uuid.to_string())
            .bind(app.app.clock.now())
            .execute(&mut tx)
            .await
            .expect("an app");
        tx.commit_unaudited("a test's own set-up").await.expect("a commit");
        app_uuid
    }

    /// A release of an app of the tenant's.
    pub async fn stored_release(&self, app: &TestApp, app_uuid: AppUuid, version: &str, arch: &str) -> ReleaseUuid {
        let release_uuid = ReleaseUuid::new();
        let counter = i64::try_from(Uuid::now_v7().as_u128() >> 66).expect("62 bits");
        let mut tx = app.app.db.begin().await.expect("a transaction");
        sql("INSERT INTO app_releases (release_uuid, tenant_uuid, app_uuid, version, architecture, counter, size_bytes, sha256, manifest, \
             signature, status, created_at, ready_at) VALUES ($1, $2, $3, $4, $5, $6, 1, '', '', '', 'READY', $7, $7)")
        .bind(release_uuid)
        .bind(self.tenant_uuid)
        .bind(app_uuid)
        .bind(version)
        .bind(arch)
        .bind(counter)
        .bind(app.app.clock.now())
        .execute(&mut tx)
        .await
        .expect("a release");
        tx.commit_unaudited("a test's own set-up").await.expect("a commit");
        release_uuid
    }

    /// Has the hub install a release; answers the job.
    pub async fn install(&self, hub: &SimulatedHub, release_uuid: ReleaseUuid) -> HubJobUuid {
        self.try_install(hub, &json!({"appReleaseUuid": release_uuid})).await.expect(201).data()
    }

    pub async fn try_install(&self, hub: &SimulatedHub, body: &Value) -> Reply {
        self.client.post(&format!("/tenant/hubs/{}/jobs/app-install", hub.hub_uuid)).json(body).call().await
    }

    pub async fn remove(&self, hub: &SimulatedHub, app_uuid: AppUuid) -> HubJobUuid {
        let path = format!("/tenant/hubs/{}/jobs/app-remove?appUuid={app_uuid}", hub.hub_uuid);
        self.client.post(&path).call().await.expect(201).data()
    }

    /// The job with what is wanted and what came of it.
    pub async fn job(&self, hub: &SimulatedHub, job: HubJobUuid) -> Value {
        let path = format!("/tenant/hub-monitoring/{}/jobs/{job}", hub.hub_uuid);
        self.client.get(&path).call().await.expect(200).data()
    }

    pub async fn status(&self, hub: &SimulatedHub, job: HubJobUuid) -> String {
        self.job(hub, job).await["status"].as_str().expect("a status").to_owned()
    }

    pub async fn cancel(&self, hub: &SimulatedHub, job: HubJobUuid) -> Reply {
        self.client.delete(&format!("/tenant/hubs/{}/jobs/{job}", hub.hub_uuid)).call().await
    }
}

/// A release of the agent.
pub async fn stored_agent_release(app: &TestApp, version: &str, arch: &str) -> ReleaseUuid {
    let release_uuid = ReleaseUuid::new();
    let counter = i64::try_from(Uuid::now_v7().as_u128() >> 66).expect("62 bits");
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql("INSERT INTO agent_releases (release_uuid, category, channel, name, version, architecture, counter, size_bytes, sha256, manifest, \
         signature, status, active, created_at, ready_at) \
         VALUES ($1, 'HUB_AGENT', 'stable', $2, $3, $4, $5, 1, '', '', '', 'READY', $6, $7, $7)")
    .bind(release_uuid)
    .bind(release_uuid.to_string())
    .bind(version)
    .bind(arch)
    .bind(counter)
    .bind(true)
    .bind(app.app.clock.now())
    .execute(&mut tx)
    .await
    .expect("a release");
    tx.commit_unaudited("a test's own set-up").await.expect("a commit");
    release_uuid
}

impl SimulatedHub {
    /// The answer to a request for the desired state that does not wait.
    pub async fn desired_reply(&self) -> Reply {
        self.client.get(&format!("/v1/hubs/{}/desired-state", self.hub_uuid)).call().await.expect(200)
    }

    pub async fn desired(&self) -> DesiredState {
        self.desired_reply().await.data()
    }

    pub async fn desired_jobs(&self) -> Vec<DesiredJob> {
        self.desired().await.jobs
    }

    /// Tells of a job: the kind, and whatever else the event has.
    pub async fn tell(&self, job: HubJobUuid, kind: &str, more: Value) -> Reply {
        let mut event = json!({"eventUuid": Uuid::new_v4(), "kind": kind, "occurredAt": "2026-01-31T08:00:00Z"});
        let members = more.as_object().cloned().unwrap_or_default();
        event.as_object_mut().expect("an object").extend(members);
        self.tell_event(job, &event).await
    }

    pub async fn tell_event(&self, job: HubJobUuid, event: &Value) -> Reply {
        self.client.post(&format!("/v1/hubs/{}/jobs/{job}/events", self.hub_uuid)).json(event).call().await
    }
}
