//! What is an end user's: a device of their hub, and a consent.

use hub_tests::{Call, devices};
use serde_json::{Value, json};

use super::world::{SAMPLES, World};

impl World {
    /// Of both tenants, what the sample of a grant names is in force.
    pub async fn ask_for_consent(&self) {
        let body = &SAMPLES["POST /tenant/consent-settings"];
        for tenant in [&self.tenant, &self.other] {
            tenant.client.post("/tenant/consent-settings").json(body).call().await.expect(200);
        }
    }

    /// A consent of the owner of the first tenant.
    pub async fn consent(&self) -> String {
        self.ask_for_consent().await;
        let body = json!({"supplierUuid": self.tenant.tenant_uuid, "version": "2026-11", "purposes": ["monitoring"]});
        let made: Value = self.tenant.owner.client.post("/app/consent").json(&body).call().await.expect(200).data();
        made["consentId"].to_string()
    }

    /// A device that the hub hears best.
    pub async fn own_device(&self) -> String {
        let model = self.catalog.device_uuid.parse().expect("a uuid");
        let made = devices::make_device(&self.tenant, model, json!({"name": "in the hall"})).await;
        let id = made["deviceInstanceId"].as_i64().expect("an id");
        let now = self.app.app.clock.now();
        devices::put_state(&self.app, &self.tenant, id, self.hub.hub_uuid, now, &json!({})).await;
        id.to_string()
    }
}
