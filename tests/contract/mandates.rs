//! Mandates: of the owner of the first tenant, and of an end user with its recipient.

use hub_tests::{Call, Client, Person, SimulatedHub, Tenant, TestApp, devices};
use serde_json::{Value, json};
use uuid::Uuid;

use super::world::World;

pub struct Mandate {
    /// A hub that the owner of the first tenant owns as a person too.
    pub hub_uuid: String,
    /// A device of a mandate of somebody who withdraws no consent, and the recipient.
    pub device: String,
    pub recipient: Client,
}

impl Mandate {
    pub async fn new(app: &TestApp, tenant: &Tenant, person: &Person, device_uuid: &str) -> Self {
        let hub = hub_of(app, tenant, person).await;
        let model = device_uuid.parse().expect("a uuid");
        let made = devices::make_device(tenant, model, json!({"name": "for others too"})).await;
        let id = made["deviceInstanceId"].as_i64().expect("an id");
        let now = app.app.clock.now();
        devices::put_state(app, tenant, id, hub.hub_uuid, now, &json!({})).await;
        let granted = grant(app, person, &hub.hub_uuid.to_string()).await;
        let credential = granted["credential"].as_str().expect("a credential");
        let own = hub_of(app, tenant, &tenant.owner).await;
        Self {
            recipient: app.client().bearer(credential),
            hub_uuid: own.hub_uuid.to_string(),
            device: id.to_string(),
        }
    }
}

async fn hub_of(app: &TestApp, tenant: &Tenant, person: &Person) -> SimulatedHub {
    let body = json!({"ownerUserUuid": person.login.user_uuid});
    let code: Value = tenant
        .client
        .post("/tenant/hubs/claim-codes")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    let code = code["claimCode"].as_str().expect("a code");
    SimulatedHub::claim_with(&app.client(), code, &Uuid::new_v4().to_string()).await
}

async fn grant(app: &TestApp, person: &Person, hub_uuid: &str) -> Value {
    let until = app.app.clock.now().plus_secs(7 * 24 * 3600);
    let body = json!({
        "recipient": {"name": "A neighbour"}, "hubUuid": hub_uuid, "until": until, "form": "PULL",
    });
    person
        .client
        .post("/app/mandates")
        .json(&body)
        .call()
        .await
        .expect(201)
        .data()
}

impl World {
    /// Another mandate of the owner of the first tenant.
    pub async fn mandate_uuid(&self) -> String {
        let granted = grant(&self.app, &self.tenant.owner, &self.mandate.hub_uuid).await;
        let id = granted["mandateUuid"].as_str().expect("a uuid");
        id.to_owned()
    }
}
