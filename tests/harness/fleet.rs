//! Jobs, as operators create them and as hubs receive them.

use hub_protocol::hub::DesiredState;
use hub_protocol::job::DesiredJob;
use hub_protocol::{AppUuid, HubJobUuid, ReleaseUuid};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::{Call, Reply};
use crate::hub::SimulatedHub;
use crate::people::Tenant;

impl Tenant {
    /// Has the hub install a release; answers the job.
    pub async fn install(&self, hub: &SimulatedHub, release_uuid: ReleaseUuid) -> HubJobUuid {
        self.try_install(hub, &json!({"appReleaseUuid": release_uuid}))
            .await
            .expect(201)
            .data()
    }

    pub async fn try_install(&self, hub: &SimulatedHub, body: &Value) -> Reply {
        self.client
            .post(&format!("/tenant/hubs/{}/jobs/app-install", hub.hub_uuid))
            .json(body)
            .call()
            .await
    }

    pub async fn remove(&self, hub: &SimulatedHub, app_uuid: AppUuid) -> HubJobUuid {
        let path = format!(
            "/tenant/hubs/{}/jobs/app-remove?appUuid={app_uuid}",
            hub.hub_uuid
        );
        self.client.post(&path).call().await.expect(201).data()
    }

    /// The job as the API shows it, with its result.
    pub async fn job(&self, hub: &SimulatedHub, job: HubJobUuid) -> Value {
        let path = format!("/tenant/hub-monitoring/{}/jobs/{job}", hub.hub_uuid);
        self.client.get(&path).call().await.expect(200).data()
    }

    pub async fn status(&self, hub: &SimulatedHub, job: HubJobUuid) -> String {
        self.job(hub, job).await["status"]
            .as_str()
            .expect("a status")
            .to_owned()
    }

    pub async fn cancel(&self, hub: &SimulatedHub, job: HubJobUuid) -> Reply {
        self.client
            .delete(&format!("/tenant/hubs/{}/jobs/{job}", hub.hub_uuid))
            .call()
            .await
    }
}

impl SimulatedHub {
    /// The answer to a request for the desired state that does not wait.
    pub async fn desired_reply(&self) -> Reply {
        self.client
            .get(&format!("/v1/hubs/{}/desired-state", self.hub_uuid))
            .call()
            .await
            .expect(200)
    }

    pub async fn desired(&self) -> DesiredState {
        self.desired_reply().await.data()
    }

    pub async fn desired_jobs(&self) -> Vec<DesiredJob> {
        self.desired().await.jobs
    }

    /// Reports an event of a job: the kind, and whatever else the event has.
    pub async fn tell(&self, job: HubJobUuid, kind: &str, more: Value) -> Reply {
        let mut event = json!({"eventUuid": Uuid::new_v4(), "kind": kind, "occurredAt": "2026-01-31T08:00:00Z"});
        let members = more.as_object().cloned().unwrap_or_default();
        event.as_object_mut().expect("an object").extend(members);
        self.tell_event(job, &event).await
    }

    pub async fn tell_event(&self, job: HubJobUuid, event: &Value) -> Reply {
        self.client
            .post(&format!("/v1/hubs/{}/jobs/{job}/events", self.hub_uuid))
            .json(event)
            .call()
            .await
    }
}
