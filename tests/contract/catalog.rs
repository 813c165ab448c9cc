//! The device catalog of the first tenant.

use hub_tests::{Call, Client, Tenant};
use serde_json::{Value, json};
use uuid::Uuid;

pub struct Catalog {
    client: Client,
    /// A model that stays.
    pub device_uuid: String,
    /// An external endpoint that stays.
    pub endpoint: String,
}

impl Catalog {
    /// Its endpoint is at this URL.
    pub async fn new(tenant: &Tenant, base_url: &str) -> Self {
        let client = tenant.client.clone();
        let device_uuid = model(&client).await;
        let body = json!({"name": "Lamps", "baseUrl": base_url, "verify_method": "DNS_TXT"});
        let made: Value = client
            .post("/tenant/external-endpoints")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        let endpoint = made["id"].as_str().expect("a uuid").to_owned();
        let blink = json!({
            "actionId": BLINK, "name": "Blink",
            "parameters": {"type": "object", "properties": {"times": {"type": "integer", "minimum": 1}}},
            "transport": {
                "kind": "GATT",
                "steps": [{"service": "180a", "characteristic": "2a56", "operation": "WRITE", "value": "{times}"}]
            }
        });
        client
            .post("/tenant/action-definitions")
            .json(&blink)
            .call()
            .await
            .expect(201);
        Self {
            client,
            device_uuid,
            endpoint,
        }
    }

    /// A new model.
    pub async fn model(&self) -> String {
        make_room(&self.client).await;
        model(&self.client).await
    }

    /// A new identifier of the model that stays.
    pub async fn identifier(&self) -> String {
        let path = format!("/tenant/device-catalog/{}/identifiers", self.device_uuid);
        let listed: Value = self.client.get(&path).call().await.expect(200).data();
        if let Some(known) = listed.as_array().filter(|known| known.len() > 50) {
            let id = &known[0]["id"];
            self.client
                .delete(&format!("{path}/{id}"))
                .call()
                .await
                .expect(200);
        }
        let body = json!({"kind": "MANUFACTURER_PREFIX", "value": manufacturer_prefix()});
        let made: Value = self
            .client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        made["id"].to_string()
    }

    /// A new protocol of a new model.
    pub async fn protocol(&self) -> String {
        let definition = json!({"decoder": "bthome"});
        let body = json!({"deviceUuid": self.model().await, "name": "BTHome", "kind": "BUILTIN", "definition": definition});
        let made: Value = self
            .client
            .post("/tenant/device-protocols")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        made["deviceProtocolId"].to_string()
    }

    /// A new version of a new model.
    pub async fn version(&self) -> String {
        let body = json!({"deviceUuid": self.model().await, "version": "1.0"});
        let made: Value = self
            .client
            .post("/tenant/device-versions")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        made["deviceVersionUuid"]
            .as_str()
            .expect("a uuid")
            .to_owned()
    }

    /// A new form of a new model.
    pub async fn ui(&self) -> String {
        let config = json!({"steps": [{"id": "one", "title": "One"}]});
        let body = json!({"deviceUuid": self.model().await, "kind": "SETUP", "name": "Set up", "configJson": config});
        let made: Value = self
            .client
            .post("/tenant/device-ui-schemas")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        made["deviceUiId"].to_string()
    }

    /// A new manual of a new model.
    pub async fn manual(&self) -> String {
        let body = json!({"deviceUuid": self.model().await, "title": "Mounting", "format": "MARKDOWN", "content": "Screw it."});
        let made: Value = self
            .client
            .post("/tenant/manuals")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        made["deviceManualId"].to_string()
    }

    /// A new action of a new model.
    pub async fn action(&self) -> String {
        let action_id = action_id();
        let transport = json!({"kind": "HTTP", "externalEndpointId": self.endpoint, "path": "/v1/on", "method": "POST"});
        let body = json!({"actionId": action_id, "deviceUuid": self.model().await, "name": "On", "transport": transport});
        self.client
            .post("/tenant/action-definitions")
            .json(&body)
            .call()
            .await
            .expect(201);
        action_id
    }
}

/// An action that stays.
pub const BLINK: &str = "blink";

/// One that no action has.
pub fn action_id() -> String {
    format!("action-{}", Uuid::new_v4().simple())
}

async fn model(client: &Client) -> String {
    let body = json!({"name": "Door sensor"});
    let made: Value = client
        .post("/tenant/device-catalog")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    made["deviceUuid"].as_str().expect("a uuid").to_owned()
}

/// Keeps the tenant below the number of models that it may have: tests make thousands.
async fn make_room(client: &Client) {
    let listed = client
        .get("/tenant/device-catalog?size=100")
        .call()
        .await
        .expect(200);
    if listed
        .header("x-total-count")
        .parse()
        .is_ok_and(|total: u32| total < 900)
    {
        return;
    }
    for model in listed.json()["data"].as_array().into_iter().flatten() {
        let path = format!(
            "/tenant/device-catalog/{}",
            model["deviceUuid"].as_str().unwrap_or_default()
        );
        client.delete(&path).call().await.expect(200);
    }
}

/// One that no identifier has.
pub fn manufacturer_prefix() -> String {
    format!("ffff:{}", &Uuid::new_v4().simple().to_string()[..16])
}
