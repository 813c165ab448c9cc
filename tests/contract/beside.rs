//! What stands beside the service: a billing service and endpoint of a supplier, which agrees to
//! everything, a partner with projects, an issuer of people, and browsers.

use hub_base::db::{Sql, sql};
use hub_core::config::Settings;
use hub_tests::Person;
use hub_tests::issuer::{OwnIssuer, SigningKey};
use hub_tests::people::PASSWORD;
use hub_tests::{Call, Supplier, SupplierAnswer, devices};
use jsonwebtoken::Algorithm;
use reqwest::RequestBuilder;
use reqwest::header::HeaderName;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::document::Operation;
use super::world::{SAMPLES, World};

pub struct Beside {
    server: Supplier,
    issuer: OwnIssuer,
    /// A form that sends to the server.
    form: OnceCell<i64>,
    /// The device that projects have.
    device: OnceCell<i64>,
}

impl Beside {
    pub async fn start() -> Self {
        let server = Supplier::start().await;
        server.say_otherwise(SupplierAnswer::json(200, json!({"done": true})));
        let issuer = OwnIssuer::start(&[SigningKey::new(Algorithm::ES256)]).await;
        Self {
            server,
            issuer,
            form: OnceCell::new(),
            device: OnceCell::new(),
        }
    }

    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// The partner signs as suppliers do.
    pub fn settings(&self) -> Settings {
        let secret =
            SAMPLES["PUT /tenant/supplier-oauth-config"]["registration_shared_secret"].as_str();
        Settings {
            billing_url: Some(self.server.url.clone()),
            billing_token: Some("the token of the billing service".to_owned()),
            partner_projects_secret: secret.map(str::to_owned),
            dev_endpoints: Some(true),
            allow_private_targets: Some(true.into()),
            ..self.issuer.settings()
        }
    }
}

impl World {
    /// With what browsers add, where they are the callers.
    pub async fn as_browsers_ask(
        &self,
        operation: &Operation,
        request: RequestBuilder,
    ) -> RequestBuilder {
        if !matches!(operation.area(), "session" | "signIn") {
            return request;
        }
        let request = request.header("sec-fetch-site", "same-origin");
        match operation.id() {
            "session.refresh" | "session.delete" => {
                // Other operations give the owner another password.
                let person = Person::register(&self.app.client()).await;
                let credentials = json!({"email": person.email, "password": PASSWORD});
                let page = self
                    .app
                    .client()
                    .header(HeaderName::from_static("sec-fetch-site"), "same-origin");
                let signed_in = page
                    .post("/auth/session")
                    .json(&credentials)
                    .call()
                    .await
                    .expect(200);
                request.header(
                    "cookie",
                    signed_in
                        .header("set-cookie")
                        .split(';')
                        .next()
                        .unwrap_or_default(),
                )
            }
            "signIn.callback" => request.header("accept", "text/html"),
            _ => request,
        }
    }

    pub async fn object_beside(&self, operation: &Operation, name: &str) -> Option<String> {
        match (operation.id(), name) {
            ("appDeviceUi.getSetup", "hubUuid") => {
                self.catalog.ui().await;
                Some(self.hub.hub_uuid.to_string())
            }
            (id, "projectId") => Some(self.project_for(id).await),
            (_, "personaId") => Some(self.tenant.owner.login.persona_uuid.to_string()),
            _ => None,
        }
    }

    pub async fn value_beside(&self, name: &str) -> Value {
        match name {
            "$projectDevice" => json!(self.project_device().await),
            "$deviceUiId" => {
                // Whoever sends a form has linked an account.
                self.supplier_link().await;
                json!(self.sending_form().await)
            }
            _ => panic!("samples.json uses {name}, which tests/contract/world.rs does not know"),
        }
    }

    async fn project_device(&self) -> i64 {
        let made = async || {
            let model = self.catalog.device_uuid.parse().expect("a uuid");
            let made =
                devices::make_device(&self.tenant, model, json!({"name": "in the hall"})).await;
            made["deviceInstanceId"].as_i64().expect("an id")
        };
        *self.beside.device.get_or_init(made).await
    }

    /// A project of the first tenant's owner to which this can be done.
    async fn project_for(&self, operation_id: &str) -> String {
        let id = format!("project-{}", Uuid::new_v4());
        let now = self.app.app.clock.now();
        self.put(
            sql(
                "INSERT INTO partner_projects (project_id, name, created_at, updated_at) \
                 VALUES ($1, 'North wing', $2, $2)",
            )
            .bind((id.as_str(), now)),
        )
        .await;
        self.put(
            sql(
                "INSERT INTO partner_project_members (project_id, persona_uuid, role) \
                 VALUES ($1, $2, 'OWNER')",
            )
            .bind((id.as_str(), self.tenant.owner.login.persona_uuid)),
        )
        .await;
        if operation_id == "appProjects.joinTenants" {
            return id;
        }
        self.put(
            sql(
                "INSERT INTO partner_project_tenants (project_id, tenant_uuid, joined_at) \
                 VALUES ($1, $2, $3)",
            )
            .bind((id.as_str(), self.tenant.tenant_uuid, now)),
        )
        .await;
        if operation_id == "appProjects.addDevices" {
            return id;
        }
        self.put(
            sql(
                "INSERT INTO partner_project_devices (project_id, device_instance_id, \
                 tenant_uuid, added_at) VALUES ($1, $2, $3, $4)",
            )
            .bind((
                id.as_str(),
                self.project_device().await,
                self.tenant.tenant_uuid,
                now,
            )),
        )
        .await;
        id
    }

    async fn sending_form(&self) -> i64 {
        let made = async || {
            self.put(sql("UPDATE external_endpoints SET domain_verified = $1").bind(true))
                .await;
            let submit = json!({"externalEndpointId": self.catalog.endpoint, "path": "/v1/places", "method": "POST"});
            let config = json!({"steps": [{"id": "send", "title": "Send", "submit": submit}]});
            let body = json!({"deviceUuid": self.catalog.device_uuid, "kind": "CONTROL", "name": "Send", "configJson": config});
            let made = self
                .tenant
                .client
                .post("/tenant/device-ui-schemas")
                .json(&body)
                .call()
                .await
                .expect(200);
            made.data::<Value>()["deviceUiId"].as_i64().expect("an id")
        };
        *self.beside.form.get_or_init(made).await
    }

    async fn put(&self, statement: Sql) {
        let mut tx = self.app.app.db.begin().await.expect("a transaction");
        statement.run(&mut tx).await.expect("a statement");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
    }
}
