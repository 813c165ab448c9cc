//! What is an end user's: a device of their hub, and a consent.

use hub_tests::{Call, SimulatedHub, devices};
use serde_json::{Value, json};

use super::world::{SAMPLES, World};

impl World {
    /// Of both tenants, what the sample of a grant names is in force.
    pub async fn ask_for_consent(&self) {
        let body = &SAMPLES["POST /tenant/consent-settings"];
        for tenant in [&self.tenant, &self.other] {
            tenant
                .client
                .post("/tenant/consent-settings")
                .json(body)
                .call()
                .await
                .expect(200);
        }
    }

    /// A consent of the owner of the first tenant.
    pub async fn consent(&self) -> String {
        self.ask_for_consent().await;
        let body = json!({"supplierUuid": self.tenant.tenant_uuid, "version": "2026-11", "purposes": ["monitoring"]});
        let made: Value = self
            .tenant
            .owner
            .client
            .post("/app/consent")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        made["consentId"].to_string()
    }

    /// A device near a hub that can connect to it; both are new, and the owner's of the first
    /// tenant in the app too.
    pub async fn commanded_device(&self) -> String {
        let body = json!({"ownerUserUuid": self.tenant.owner.login.user_uuid});
        let code: Value = self
            .tenant
            .client
            .post("/tenant/hubs/claim-codes")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        let code = code["claimCode"].as_str().expect("a code");
        let hub =
            SimulatedHub::claim_with(&self.app.client(), code, &uuid::Uuid::new_v4().to_string())
                .await;
        let adapters = json!({"adapters": [{"address": "00:1A:7D:DA:71:13", "name": "hci0", "powered": true}]});
        hub.client
            .post("/v1/hubs/adapters")
            .json(&adapters)
            .call()
            .await
            .expect(200);
        let telemetry = format!("/v1/hubs/{}/telemetry", hub.hub_uuid);
        hub.client
            .post(&telemetry)
            .json(&json!({"load1m": 0.5}))
            .call()
            .await
            .expect(204);
        let [a, b, c, d, e, ..] = uuid::Uuid::new_v4().into_bytes();
        let address = format!("C4:{a:02X}:{b:02X}:{c:02X}:{d:02X}:{e:02X}");
        let model = self.catalog.device_uuid.parse().expect("a uuid");
        let made = devices::make_device(&self.tenant, model, json!({"address": address})).await;
        let id = made["deviceInstanceId"].as_i64().expect("an id");
        let now = self.app.app.clock.now();
        devices::put_state(&self.app, &self.tenant, id, hub.hub_uuid, now, &json!({})).await;
        id.to_string()
    }

    /// A device, and a command that the owner of the first tenant gave it.
    pub async fn command(&self) -> &(String, String) {
        let give = || async {
            let device = self.commanded_device().await;
            let path = format!("/app/devices/{device}/commands?wait=0");
            let body = json!({"actionId": super::catalog::BLINK, "parameters": {"times": 1}});
            let given: Value = self
                .tenant
                .owner
                .client
                .post(&path)
                .json(&body)
                .call()
                .await
                .expect(200)
                .data();
            (
                device,
                given["commandUuid"].as_str().expect("a uuid").to_owned(),
            )
        };
        self.command.get_or_init(give).await
    }

    /// A device that the hub hears best.
    pub async fn own_device(&self) -> String {
        let model = self.catalog.device_uuid.parse().expect("a uuid");
        let made = devices::make_device(&self.tenant, model, json!({"name": "in the hall"})).await;
        let id = made["deviceInstanceId"].as_i64().expect("an id");
        let now = self.app.app.clock.now();
        devices::put_state(
            &self.app,
            &self.tenant,
            id,
            self.hub.hub_uuid,
            now,
            &json!({}),
        )
        .await;
        id.to_string()
    }
}
