//! Suppliers of the world: their OAuth configurations, and links to them.

use hub_base::db::sql;
use hub_base::sealing::stored::SUPPLIER_ACCESS_TOKEN;
use hub_outgoing::signing::service_signature;
use hub_tests::supplier::completion;
use hub_tests::{Call, Supplier};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use uuid::Uuid;

use super::document::Operation;
use super::exposure::SBOM;
use super::world::{SAMPLES, World};

/// What an image begins with.
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0";

impl World {
    /// A file that the console's page loads.
    pub async fn file_of_console(&self) -> String {
        let page = self
            .app
            .client()
            .get("/console")
            .call()
            .await
            .expect(200)
            .body;
        let names = page
            .split('"')
            .find_map(|part| part.strip_prefix("/console/assets/"));
        names.expect("a file").to_owned()
    }

    /// A server of the tenant, for which there is always room.
    pub async fn external_endpoint(&self) -> String {
        const PATH: &str = "/tenant/external-endpoints";
        let listed: Value = self.tenant.client.get(PATH).call().await.expect(200).data();
        let id = |endpoint: &Value| endpoint["id"].as_str().expect("a uuid").to_owned();
        let is_free = |endpoint: &&Value| id(endpoint) != self.catalog.endpoint;
        let many = listed.as_array().filter(|listed| listed.len() > 50);
        if let Some(oldest) = many.and_then(|listed| listed.iter().rev().find(is_free)) {
            self.tenant
                .client
                .delete(&format!("{PATH}/{}", id(oldest)))
                .call()
                .await
                .expect(200);
        }
        // Nobody answers there: the name is refused without a look-up.
        let body = json!({"name": "Lamps", "baseUrl": "https://lamps.invalid", "verify_method": "WELL_KNOWN"});
        id(&self
            .tenant
            .client
            .post(PATH)
            .json(&body)
            .call()
            .await
            .expect(200)
            .data())
    }

    /// The file that an operation takes: an image, a bill of materials, or this one of a release.
    pub fn file_for(operation: &Operation, release: &'static [u8]) -> &'static [u8] {
        match operation.path.rsplit('/').next() {
            Some("image") => IMAGE,
            Some("{document}") => SBOM,
            _ => release,
        }
    }

    /// A dashboard, for which there is always room.
    pub async fn dashboard(&self) -> String {
        const PATH: &str = "/tenant/dashboards";
        let client = &self.tenant.client;
        let uuid = |one: &Value| one["dashboardUuid"].as_str().expect("a uuid").to_owned();
        let listed: Vec<Value> = client.get(PATH).call().await.expect(200).data();
        for one in listed.iter().skip(30) {
            let path = format!("{PATH}/{}", uuid(one));
            client.delete(&path).call().await.expect(204);
        }
        let made = client
            .post(PATH)
            .json(&json!({"name": "Hall", "tiles": []}));
        uuid(&made.call().await.expect(201).data())
    }

    /// An advisory about the tenant's app, for which there is always room.
    pub async fn advisory(&self) -> String {
        const PATH: &str = "/tenant/advisories";
        let body = json!({"title": "It forgets", "affected": [{"appUuid": self.app_uuid}]});
        let made = self.tenant.client.post(PATH).json(&body).call().await;
        let made: Value = made.expect(201).data();
        made["id"].as_str().expect("an id").to_owned()
    }

    /// A floor plan, for which there is always room; with an image, unless it is to get its first.
    pub async fn floor_plan(&self, operation: &Operation) -> String {
        const PATH: &str = "/tenant/floor-plans";
        let uuid = |plan: &Value| plan["floorPlanUuid"].as_str().expect("a uuid").to_owned();
        let listed: Vec<Value> = self.tenant.client.get(PATH).call().await.expect(200).data();
        for plan in listed.iter().skip(15) {
            self.tenant
                .client
                .delete(&format!("{PATH}/{}", uuid(plan)))
                .call()
                .await
                .expect(204);
        }
        let plan = uuid(
            &self
                .tenant
                .client
                .post(PATH)
                .json(&json!({"name": "Hall"}))
                .call()
                .await
                .expect(201)
                .data(),
        );
        if operation.id() != "floorPlans.putImage" {
            self.tenant
                .client
                .put(&format!("{PATH}/{plan}/image"))
                .body(IMAGE)
                .call()
                .await
                .expect(200);
        }
        plan
    }

    /// Both tenants have an OAuth configuration in force.
    pub async fn configure_suppliers(&self) {
        for tenant in [&self.tenant, &self.other] {
            let mut body = SAMPLES["PUT /tenant/supplier-oauth-config"].clone();
            body["supplier_uuid"] = json!(tenant.tenant_uuid);
            self.admin
                .put("/platform/supplier-oauth-configs")
                .json(&body)
                .call()
                .await
                .expect(200);
        }
    }

    /// The first tenant, as a supplier whose authorization server need not be asked for anything.
    pub async fn linkable(&self) -> Value {
        let mut body = SAMPLES["PUT /platform/supplier-oauth-configs"].clone();
        body["supplier_uuid"] = json!(self.tenant.tenant_uuid);
        self.admin
            .put("/platform/supplier-oauth-configs")
            .json(&body)
            .call()
            .await
            .expect(200);
        json!(self.tenant.tenant_uuid)
    }

    /// What a supplier sends a browser back with whose user did not agree.
    pub async fn refusal(&self) -> String {
        self.linkable().await;
        format!("error=access_denied&state={}", self.begun().await)
    }

    /// A link of the first tenant's owner, who has no other.
    /// What completes a link that the owner has begun.
    pub async fn completion(&self) -> Value {
        let supplier = self.supplier.get_or_init(Supplier::start).await;
        let mut body = supplier.config();
        body["supplier_uuid"] = json!(self.tenant.tenant_uuid);
        self.admin
            .put("/platform/supplier-oauth-configs")
            .json(&body)
            .call()
            .await
            .expect(200);
        let state = self.begun().await;
        let query = format!("code=code&state={state}&iss={}", supplier.url);
        let back = self
            .app
            .client()
            .without_redirects()
            .get(&format!("/auth/supplier-link/callback?{query}"))
            .call()
            .await
            .expect(303);
        completion(back.header("location"))
    }

    /// The state of a link that the owner begins.
    async fn begun(&self) -> String {
        let begun: Value = self
            .tenant
            .client
            .post("/app/supplier-link/authorize")
            .json(&json!({"supplierUuid": self.tenant.tenant_uuid}))
            .call()
            .await
            .expect(200)
            .data();
        begun["state"].as_str().expect("a state").to_owned()
    }

    pub async fn supplier_link(&self) -> i64 {
        let now = self.app.app.clock.now();
        let link_uuid = Uuid::new_v4();
        let sealed = self.app.app.sealer.seal(
            SUPPLIER_ACCESS_TOKEN,
            &link_uuid.to_string(),
            b"a supplier's token",
        );
        let mut tx = self.app.app.db.begin().await.expect("a transaction");
        sql("DELETE FROM supplier_links")
            .execute(&mut tx)
            .await
            .expect("a deletion");
        let id = sql(
            "INSERT INTO supplier_links (link_uuid, tenant_uuid, user_uuid, user_sub, \
             scope, status, token_auth, sealed_access_token, version, linked_at, expires_at) \
             VALUES ($1, $2, $3, 'ada', 'openid', 'ACTIVE', 'NONE', $4, 1, $5, $6) \
             RETURNING supplier_link_id",
        )
        .bind((
            link_uuid,
            self.tenant.tenant_uuid,
            self.tenant.owner.login.user_uuid,
            sealed,
            now,
            now.plus_secs(3600),
        ))
        .scalar(&mut tx)
        .await
        .expect("a row");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
        id
    }

    /// The signature of a body that a supplier sends, if the operation asks for one.
    pub fn signed(operation: &Operation, request: RequestBuilder, body: &[u8]) -> RequestBuilder {
        let secret =
            SAMPLES["PUT /tenant/supplier-oauth-config"]["registration_shared_secret"].as_str();
        match operation.access() {
            "hmac" => {
                let signature = service_signature(secret.expect("a secret").as_bytes(), body);
                request.header("x-service-signature", signature)
            }
            _ => request,
        }
    }

    /// A change of the first tenant's OAuth configuration that waits.
    pub async fn approval(&self) -> String {
        let body = &SAMPLES["PUT /tenant/supplier-oauth-config"];
        self.tenant
            .client
            .put("/tenant/supplier-oauth-config")
            .json(body)
            .call()
            .await
            .expect(200);
        let waiting: Value = self
            .admin
            .get("/platform/supplier-oauth-configs/approvals")
            .call()
            .await
            .expect(200)
            .data();
        waiting[0]["id"].to_string()
    }
}
