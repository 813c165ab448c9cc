//! Commands on devices that a supplier's server carries out.

use hub_base::db::sql;
use hub_protocol::Timestamp;
use hub_tests::devices::{make_device, make_model, put_state};
use hub_tests::supplier::access_token;
use hub_tests::{Backend, Call, SimulatedHub, SupplierAnswer, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::supplier_links::Linking;

struct World {
    linking: Linking,
    device: i64,
    endpoint: String,
}

impl World {
    /// A lamp near the hub of somebody who may link an account, with actions of an endpoint that is
    /// verified.
    async fn new(backend: Backend) -> Self {
        let linking = Linking::new(backend).await;
        let tenant = &linking.tenant;
        let body = json!({"ownerUserUuid": linking.person.login.user_uuid});
        let code: Value = tenant
            .client
            .post("/tenant/hubs/claim-codes")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        let code = code["claimCode"].as_str().expect("a code");
        let hub =
            SimulatedHub::claim_with(&linking.app.client(), code, &Uuid::new_v4().to_string())
                .await;
        let model = make_model(tenant, "Lamp").await;
        let made = make_device(tenant, model, json!({"serialNumber": "L-7"})).await;
        let device = made["deviceInstanceId"].as_i64().expect("an id");
        let now = linking.app.app.clock.now();
        put_state(&linking.app, tenant, device, hub.hub_uuid, now, &json!({})).await;
        let body = json!({
            "name": "Lamps", "baseUrl": format!("{}/api/", linking.supplier.url), "verify_method": "WELL_KNOWN",
            "authConfig": {"type": "HEADER", "name": "X-Api-Key", "value": "the key of the endpoint"}
        });
        let made: Value = tenant
            .client
            .post("/tenant/external-endpoints")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        let endpoint = made["id"].as_str().expect("an id").to_owned();
        for (action, method) in [("on", "POST"), ("state", "GET")] {
            let transport = json!({"kind": "HTTP", "externalEndpointId": endpoint, "path": "/lamp", "method": method});
            let parameters =
                json!({"type": "object", "properties": {"level": {"type": "integer"}}});
            let body = json!({"actionId": action, "name": action, "parameters": parameters, "transport": transport});
            tenant
                .client
                .post("/tenant/action-definitions")
                .json(&body)
                .call()
                .await
                .expect(201);
        }
        Self {
            linking,
            device,
            endpoint,
        }
    }

    async fn verify(&self) {
        let mut tx = self
            .linking
            .app
            .app
            .db
            .begin()
            .await
            .expect("a transaction");
        sql("UPDATE external_endpoints SET domain_verified = $1 WHERE external_endpoint_uuid = $2")
            .bind((true, self.endpoint.parse::<Uuid>().expect("a uuid")))
            .run(&mut tx)
            .await
            .expect("an update");
        tx.commit_unaudited("a test").await.expect("a commit");
    }

    fn path(&self, of: &str) -> String {
        format!("/{of}/devices/{}/commands", self.device)
    }

    async fn order(&self, action: &str) -> hub_tests::Reply {
        let body = json!({"actionId": action, "parameters": {"level": 7}});
        self.linking
            .user()
            .post(&self.path("app"))
            .json(&body)
            .call()
            .await
    }
}

on_each_database!(a_suppliers_server_carries_out_a_command_in_the_name_of_the_user);
async fn a_suppliers_server_carries_out_a_command_in_the_name_of_the_user(backend: Backend) {
    let world = World::new(backend).await;
    let supplier = &world.linking.supplier;
    assert_eq!(
        world.order("on").await.expect(409).problem().code,
        "EXTERNAL_ENDPOINT_NOT_VERIFIED"
    );
    world.verify().await;
    assert_eq!(
        world.order("on").await.expect(409).problem().code,
        "SUPPLIER_LINK_REQUIRED"
    );
    assert!(supplier.take("/api/lamp").is_empty());
    world.linking.link().await;
    supplier.say("/api/lamp", SupplierAnswer::json(202, json!({"level": 7})));
    let done: Value = world.order("on").await.expect(200).data();
    assert_eq!(
        (done["status"].as_str(), &done["hubUuid"]),
        (Some("SUCCEEDED"), &Value::Null),
        "{done}"
    );
    assert_eq!(done["result"], json!({"status": 202, "body": {"level": 7}}));
    let asked = supplier.take("/api/lamp");
    assert_eq!(asked.len(), 1, "once");
    let header = |name: &str| {
        asked[0]
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    assert_eq!(
        header("authorization"),
        format!("Bearer {}", access_token(1))
    );
    assert_eq!(header("x-api-key"), "the key of the endpoint");
    assert_eq!(
        header("idempotency-key"),
        done["commandUuid"].as_str().expect("a uuid")
    );
    assert_eq!(header("x-device-instance-id"), world.device.to_string());

    // The supplier's own people use the credentials of the endpoint alone.
    let body = json!({"actionId": "state"});
    let tenant = &world.linking.tenant;
    let done: Value = tenant
        .client
        .post(&world.path("tenant"))
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(done["status"], "SUCCEEDED");
    let asked = supplier.take("/api/lamp");
    assert!(
        asked.len() == 1 && !asked[0].headers.contains_key("authorization"),
        "{asked:?}"
    );
}

on_each_database!(faults_of_a_suppliers_server_are_reported_and_not_repeated);
async fn faults_of_a_suppliers_server_are_reported_and_not_repeated(backend: Backend) {
    let world = World::new(backend).await;
    let supplier = &world.linking.supplier;
    world.verify().await;
    world.linking.link().await;
    for (said, code) in [
        (
            SupplierAnswer::json(404, json!({"error": "no such lamp"})),
            "ENDPOINT_REFUSED",
        ),
        (SupplierAnswer::html(500), "ENDPOINT_REFUSED"),
        (SupplierAnswer::lost(), "ENDPOINT_BROKEN"),
    ] {
        let status = said.status;
        supplier.say("/api/lamp", said);
        let done: Value = world.order("on").await.expect(200).data();
        assert_eq!(
            (done["status"].as_str(), done["error"]["code"].as_str()),
            (Some("FAILED"), Some(code)),
            "{done}"
        );
        assert!(code != "ENDPOINT_REFUSED" || done["result"]["status"] == status);
        assert_eq!(supplier.take("/api/lamp").len(), 1, "once");
    }
    // A service that was killed in the middle knows only that it began.
    let mut tx = world
        .linking
        .app
        .app
        .db
        .begin()
        .await
        .expect("a transaction");
    sql("UPDATE device_commands SET finished_at = NULL, error_code = NULL")
        .run(&mut tx)
        .await
        .expect("an update");
    tx.commit_unaudited("a test").await.expect("a commit");
    let listed = async || -> Value {
        world
            .linking
            .user()
            .get(&world.path("app"))
            .call()
            .await
            .expect(200)
            .data()
    };
    assert_eq!(listed().await[0]["status"], "SENT");
    world.linking.pass(121);
    let shown = listed().await[0].clone();
    assert_eq!(
        (shown["status"].as_str(), shown["error"]["code"].as_str()),
        (Some("FAILED"), Some("OUTCOME_UNKNOWN"))
    );
    assert!(
        shown["completedAt"]
            .as_str()
            .and_then(|at| at.parse::<Timestamp>().ok())
            .is_some()
    );
}
