//! Two tenants with one of everything, and everyone who may try an operation on it. Requests are
//! built from the document alone: paths are filled, by the subject of the operation, with objects
//! of the first tenant or with ones that do not exist; bodies come from `samples.json` or, where it
//! has none, from the schema of the body.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hub_base::db::sql;
use hub_core::config::Settings;
use hub_identity::authz::permission::Role;
use hub_protocol::AppUuid;
use hub_protocol::release::ReleaseKind;
use hub_tests::{
    Backend, Call, Client, Maker, Options, Person, Recipe, SimulatedHub, Supplier, Tenant, TestApp,
    certificates, devices, mail, release,
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::beside::Beside;
use super::bundles;
use super::catalog::{self, Catalog};
use super::document::{Operation, object, resolve};
use super::exposure;
use super::mandates::Mandate;
use super::pipelines::Pipelines;

/// Bodies that a schema does not tell. A string that begins with `$` stands for a value of the
/// world, see [`World::value`].
pub static SAMPLES: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("samples.json")).expect("samples.json is an object")
});

const ADAPTER: &str = "00:1A:7D:DA:71:13";

pub struct World {
    pub app: TestApp,
    pub tenant: Tenant,
    /// A tenant that has nothing to do with the first.
    pub other: Tenant,
    pub hub: SimulatedHub,
    /// A hub that refreshes its token, which ends the one before.
    refreshing: SimulatedHub,
    pub admin: Client,
    /// Member of no tenant, until let in.
    pub guest: Person,
    /// Two end users, who belong to no tenant and have nothing to do with each other.
    pub end_users: [Person; 2],
    ble_event_id: i64,
    pub maker: Maker,
    /// Grows with every release that is made.
    counter: AtomicU64,
    pub app_uuid: AppUuid,
    app_release_uuid: String,
    pub catalog: Catalog,
    pub beside: Beside,
    pipelines: Pipelines,
    pub mandate: Mandate,
    /// A device, and a command that it was given.
    pub command: OnceCell<(String, String)>,
    /// The authorization server of the first tenant, once somebody links an account.
    pub supplier: OnceCell<Supplier>,
    /// Of the platform, and READY.
    agent_release: Value,
}

/// The name of the first tenant's app.
const APP: &str = "logger";
/// The file of releases that are still to be uploaded.
const FILE: &[u8] = b"the file of a release";

/// Which objects a path names.
#[derive(Clone, Copy, PartialEq)]
pub enum Objects {
    /// The first tenant's.
    Real,
    /// Well-formed identifiers that nothing has.
    Unknown,
}

impl World {
    pub async fn new(backend: Backend) -> Self {
        let (maker, beside) = (Maker::new(), Beside::start().await);
        // Mail waits for a server that is nowhere, with its tokens.
        let settings = Settings {
            security_contact: Some("mailto:security@example.com".into()),
            release_keys: Some(maker.keys()),
            upload_limit_per_minute: Some(1_000_000),
            smtp_url: Some("smtp://127.0.0.1:9".to_owned()),
            mail_from: Some("hubs@example.com".to_owned()),
            require_approval: Some(true),
            ..beside.settings()
        };
        let options = Options {
            settings,
            ..Options::default()
        };
        // Tests send one operation hundreds of times.
        let app = TestApp::configured(backend, options, |config| {
            config.hub_reports_per_minute = 1_000_000
        })
        .await;
        let tenant = Tenant::create(&app.client()).await;
        let other = Tenant::create(&app.client()).await;
        let hub = SimulatedHub::claim(&tenant).await;
        let adapters = json!({"adapters": [{"address": ADAPTER, "name": "hci0", "powered": true}]});
        hub.client
            .post("/v1/hubs/adapters")
            .json(&adapters)
            .call()
            .await
            .expect(200);
        hub.upload_events(3).await;
        // The first one makes the authority.
        hub.certificate().await;
        let refreshing = SimulatedHub::claim(&other).await;
        let events = tenant
            .client
            .get("/tenant/ble/events")
            .call()
            .await
            .expect(200)
            .json();
        let ble_event_id = events["data"][0]["bleEventId"]
            .as_i64()
            .expect("a stored event");
        let guest = Person::register(&app.client()).await;
        let end_users = [
            Person::register(&app.client()).await,
            Person::register(&app.client()).await,
        ];
        let admin = guest.as_platform_admin(&app).tenant(tenant.tenant_uuid);
        let app_uuid = release::make_app(&tenant, APP).await;
        let app_release =
            release::make_app_release(&tenant, app_uuid, &maker, &Recipe::app(APP, "1.0.0", 1))
                .await;
        let app_release_uuid = app_release["releaseUuid"]
            .as_str()
            .expect("a release's uuid")
            .to_owned();
        let agent_release =
            release::make_agent(&admin, &maker, &Recipe::agent("1.0.0", 1), json!({})).await;
        let counter = AtomicU64::new(1);
        let catalog = Catalog::new(&tenant, beside.url()).await;
        // The hub is the owner's in the app too.
        let lent = json!({"userUuid": tenant.owner.login.user_uuid});
        let path = format!("/tenant/hubs/{}/setup-delegations", hub.hub_uuid);
        tenant
            .client
            .post(&path)
            .json(&lent)
            .call()
            .await
            .expect(200);
        let pipelines = Pipelines::new(&tenant).await;
        let mandate = Mandate::new(&app, &tenant, &end_users[1], &catalog.device_uuid).await;
        exposure::expose(&app, &tenant, &hub).await;
        Self {
            app,
            tenant,
            other,
            hub,
            refreshing,
            admin,
            guest,
            end_users,
            ble_event_id,
            maker,
            counter,
            app_uuid,
            app_release_uuid,
            catalog,
            beside,
            pipelines,
            mandate,
            command: OnceCell::new(),
            supplier: OnceCell::new(),
            agent_release,
        }
    }

    /// A release that there is none of yet.
    pub fn recipe(&self, kind: ReleaseKind) -> Recipe {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed) + 1;
        let version = format!("1.0.{counter}");
        let recipe = match kind {
            ReleaseKind::Agent => Recipe::agent(&version, counter),
            ReleaseKind::App => Recipe::app(APP, &version, counter),
        };
        Recipe {
            file: FILE.to_vec(),
            ..recipe
        }
    }

    /// A release of the platform that awaits its file.
    async fn new_agent_release(&self) -> Value {
        let body = self
            .maker
            .body(&self.recipe(ReleaseKind::Agent), json!({"channel": "beta"}));
        self.admin
            .post("/platform/agent-releases")
            .json(&body)
            .call()
            .await
            .expect(201)
            .data()
    }

    /// The path of a signed URL, for the next upload.
    async fn upload_path(&self) -> String {
        let made = self.new_agent_release().await;
        made["uploadUrl"]
            .as_str()
            .expect("a URL")
            .trim_start_matches("/installer/")
            .to_owned()
    }

    /// The caller an operation is for, with all it asks of one.
    pub fn rightful_caller(&self, operation: &Operation) -> Client {
        match operation.access().split(':').next().unwrap_or_default() {
            _ if operation.id() == "signIn.begin" => self.app.client().without_redirects(),
            "hub" if operation.id() == "hub.refresh" => self.refreshing.client.clone(),
            "public" | "hmac" => self.app.client(),
            "hub" => self.hub.client.clone(),
            "mandate" => self.mandate.recipient.clone(),
            "platform" => self.admin.clone(),
            "user" => self.tenant.owner.client.clone(),
            // A path that names the tenant needs no header, and may name another tenant of the same
            // owner.
            _ if operation.path.starts_with("/tenant/tenants/") => self.tenant.owner.client.clone(),
            _ => self.tenant.client.clone(),
        }
    }

    /// Members of the first tenant, one of each role.
    pub async fn members(&self) -> Vec<(Role, Client)> {
        let mut members = Vec::new();
        for role in Role::ALL {
            members.push((role, self.tenant.member(role).await));
        }
        members
    }

    /// The operation's path with its parameters filled in.
    pub async fn path_of(&self, operation: &Operation, objects: Objects) -> String {
        let mut path = operation.path.clone();
        if operation.area() == "secondFactor" {
            self.forget_second_factor().await;
        }
        match operation.id() {
            "supplierOauthConfig.get" | "supplierOauthConfig.delete" => {
                self.configure_suppliers().await
            }
            "supplierLinks.callback" => {
                return format!("{}?{}", operation.path, self.refusal().await);
            }
            _ => {}
        }
        if matches!(
            operation.id(),
            "consentSettings.get" | "appConsent.grant" | "appPairing.create"
        ) {
            self.ask_for_consent().await;
        }
        for name in operation.path_parameters() {
            let object = match objects {
                Objects::Real => self.object(operation, name).await,
                Objects::Unknown => unknown(operation, name),
            };
            path = path.replace(&format!("{{{name}}}"), &object);
        }
        path + &self.query_of(operation)
    }

    /// What has to be in the query for the operation to succeed.
    fn query_of(&self, operation: &Operation) -> String {
        match operation.id() {
            "hub.getLatestAgentRelease" => "?architecture=x86_64".to_owned(),
            "downloads.getAssetUrl" => format!(
                "?category=HUB_AGENT&assetId={}",
                self.agent_release["assetId"]
            ),
            "appActionDefinitions.list" => format!("?supplierUuid={}", self.tenant.tenant_uuid),
            "deviceCommands.create" | "appDeviceCommands.create" => "?wait=0".to_owned(),
            "signIn.begin" => "?returnTo=/console".to_owned(),
            "hubJobs.removeApp" => format!("?appUuid={}", self.app_uuid),
            _ => String::new(),
        }
    }

    /// The object that a parameter of the operation's path names: one that exists, and that this
    /// can be done to.
    async fn object(&self, operation: &Operation, name: &str) -> String {
        if let Some(object) = self.object_beside(operation, name).await {
            return object;
        }
        match (operation.area(), name) {
            ("tenants" | "transfers", "tenantUuid") if takes_the_tenant(operation) => {
                Tenant::create_by(&self.tenant.owner)
                    .await
                    .tenant_uuid
                    .to_string()
            }
            // One that somebody else made its owner a member of.
            ("tenants", "tenantUuid") if operation.id() == "tenants.accept" => {
                let tenant = Tenant::create(&self.app.client()).await;
                tenant.let_in(&self.tenant.owner, Role::Viewer).await;
                tenant.tenant_uuid.to_string()
            }
            (_, "tenantUuid") => self.tenant.tenant_uuid.to_string(),
            ("tenants", "targetPersonaUuid") | ("personas", "personaUuid") => self
                .tenant
                .let_in(&self.guest, Role::Viewer)
                .await
                .to_string(),
            ("transfers", "requestUuid") => self.transfer_for(operation).await,
            ("invitations", "invitationId") => self.invitation().await.0,
            ("invitations", "token") => self.invitation().await.1,
            ("apiKeys", "apiKeyId") => self
                .tenant
                .api_key(json!({"scopes": ["hubs:read"]}))
                .await
                .api_key_id
                .to_string(),
            // One for each request: deleting it is one of them.
            ("claimCodes", "claimCode") => self.tenant.claim_code().await,
            ("hubs", "address") => ADAPTER.to_owned(),
            ("hubJobs", "jobUuid" | "hubJobUuid") | ("hub", "hubJobUuid") => self.job().await,
            ("setupDelegations", "id") => self.delegation().await,
            ("supplierOauthApprovals", "id") => self.approval().await,
            ("supplierLinks" | "webhooks", "supplierUuid") => {
                self.configure_suppliers().await;
                self.tenant.tenant_uuid.to_string()
            }
            ("supplierLinks", "id") => self.supplier_link().await.to_string(),
            ("registrationEvents", "id") => {
                let events: Value = self
                    .admin
                    .get("/platform/registration-events")
                    .call()
                    .await
                    .expect(200)
                    .data();
                events[0]["id"].to_string()
            }
            ("appNotifications", "notificationId") => self.notice().await,
            // One for each request: it is gone afterwards.
            ("hubs" | "platformHubs", "hubUuid") if operation.id().ends_with(".release") => {
                SimulatedHub::claim(&self.tenant).await.hub_uuid.to_string()
            }
            (_, "hubUuid" | "hub_uuid") => self.hub.hub_uuid.to_string(),
            ("devices", "deviceInstanceId") => {
                let made = devices::make_device(
                    &self.tenant,
                    self.catalog.device_uuid.parse().expect("a uuid"),
                    json!({"name": "in the hall"}),
                )
                .await;
                made["deviceInstanceId"].to_string()
            }
            ("appDevices", "deviceInstanceId") => self.own_device().await,
            ("deviceCommands" | "appDeviceCommands", "deviceInstanceId")
                if !operation.id().ends_with(".get") =>
            {
                self.commanded_device().await
            }
            ("deviceCommands" | "appDeviceCommands", "deviceInstanceId") => {
                self.command().await.0.clone()
            }
            ("deviceCommands" | "appDeviceCommands", "commandUuid") => {
                self.command().await.1.clone()
            }
            ("appActionDefinitions", "actionId") => self.catalog.action().await,
            ("appConsent", "consentId") => self.consent().await,
            ("appMandates", "mandateUuid") => self.mandate_uuid().await,
            ("mandate", "deviceInstanceId") => self.mandate.device.clone(),
            ("appConsentSettings", "supplierUuid") => {
                self.ask_for_consent().await;
                self.tenant.tenant_uuid.to_string()
            }
            ("bleEvents", "bleEventId") => self.ble_event_id.to_string(),
            ("bleReprocess", "taskId") => self.reprocess_task().await,
            ("apps", "appUuid") => self.app_uuid.to_string(),
            ("apps", "releaseUuid") if operation.path.ends_with("/file-url") => {
                self.app_release_uuid.clone()
            }
            ("apps", "releaseUuid") => self.documented_app_release(operation).await,
            ("agentReleases" | "platformAgentReleases", "releaseUuid")
                if operation.path.ends_with("/documents/{document}") =>
            {
                self.documented_agent_release(operation).await
            }
            (_, "document") => "sbom".to_owned(),
            ("hub", "appReleaseUuid") => self.app_release_uuid.clone(),
            ("agentReleases", "releaseUuid") => release_uuid(&self.agent_release),
            // Which of the platform's releases it is matters to those who ask for it next.
            ("platformAgentReleases", "releaseUuid") => {
                release_uuid(&self.new_agent_release().await)
            }
            ("updatePolicies" | "platformUpdatePolicies", "policyUuid") => {
                self.policy_for(operation).await
            }
            ("deviceCatalog", "deviceUuid") => self.catalog.model().await,
            ("deviceIdentifiers", "deviceUuid") => self.catalog.device_uuid.clone(),
            ("deviceIdentifiers", "id") => self.catalog.identifier().await,
            ("deviceProtocols", "deviceProtocolId") => self.catalog.protocol().await,
            ("deviceVersions", "deviceVersionUuid") => self.catalog.version().await,
            ("deviceUis", "deviceUiId") => self.catalog.ui().await,
            ("deviceManuals", "deviceManualId") => self.catalog.manual().await,
            ("actionDefinitions", "actionId") => self.catalog.action().await,
            ("bundles", "bundleUuid") => {
                bundles::bundle_for(&self.tenant.client, operation.id()).await
            }
            ("bundleCatalog", "bundleUuid") => bundles::published(&self.tenant.client).await,
            ("pipelines", "pipelineUuid") => self.pipelines.pipeline().await,
            ("pipelineReplays" | "deadLetters", "pipelineUuid") => {
                self.pipelines.pipeline_uuid.clone()
            }
            ("pipelineReplays", "replayUuid") => self.pipelines.replay().await,
            ("deadLetters", "dlqId") => self.dead_letter().await.to_string(),
            ("externalEndpoints", "id") => self.external_endpoint().await,
            ("sessions", "sessionUuid") => self.session().await,
            ("vulnerabilities", "vulnerabilityId") => exposure::VULNERABILITY.to_owned(),
            ("advisories", "advisoryId") => self.advisory().await,
            ("dashboards", "dashboardUuid") => self.dashboard().await,
            ("floorPlans", "floorPlanUuid") => self.floor_plan(operation).await,
            ("library", "brand") => "ruuvi".to_owned(),
            ("library", "key") => "ruuvitag".to_owned(),
            ("installer", "filename") if operation.method == "PUT" => self.upload_path().await,
            ("installer", "filename") => "stable.json".to_owned(),
            ("console", "file") => self.file_of_console().await,
            (area, _) => panic!(
                "tests/contract/world.rs makes no object for `{{{name}}}` of {area} yet: add one"
            ),
        }
    }

    /// An update policy for the hub, whose rollout is such that this can be done to it.
    async fn policy_for(&self, operation: &Operation) -> String {
        let body = json!({"scope": "HUB", "hubUuid": self.hub.hub_uuid});
        let made = self
            .tenant
            .client
            .put("/tenant/agent-update-policies")
            .json(&body)
            .call()
            .await
            .expect(200)
            .json();
        let policy_uuid = made["data"]["policyUuid"]
            .as_str()
            .expect("a policy's uuid")
            .to_owned();
        let state = if operation.path.ends_with("/resume") {
            "HALTED"
        } else {
            "RUNNING"
        };
        let now = self.app.app.clock.now();
        let mut tx = self.app.app.db.begin().await.expect("a transaction");
        sql(
            "INSERT INTO update_rollouts (policy_uuid, release_uuid, version, architecture, state, \
             percent, is_wanted, next_step_at, judged_from, \
             started, succeeded, failed, silent, created_at, updated_at) \
             VALUES ($1, $2, '1.0.0', 'x86_64', $3, 100, $4, $5, $5, 0, 0, 0, 0, $5, $5) \
             ON CONFLICT (policy_uuid, release_uuid) DO UPDATE SET state = excluded.state",
        )
        .bind((
            policy_uuid.parse::<Uuid>().expect("a uuid"),
            release_uuid(&self.agent_release)
                .parse::<Uuid>()
                .expect("a uuid"),
            state,
            true,
            now,
        ))
        .execute(&mut tx)
        .await
        .expect("a row");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
        policy_uuid
    }

    /// A new dead letter of the pipeline that stays.
    async fn dead_letter(&self) -> i64 {
        self.pipelines
            .dead_letter(&self.app, &self.tenant, self.ble_event_id)
            .await
    }

    /// A job of the hub that nothing has come of yet; whatever was to be done before is done with.
    async fn job(&self) -> String {
        let mut tx = self.app.app.db.begin().await.expect("a transaction");
        sql(
            "UPDATE hub_jobs SET status = 'CANCELLED', finished_at = created_at \
             WHERE finished_at IS NULL",
        )
        .execute(&mut tx)
        .await
        .expect("an end");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
        self.tenant
            .remove(&self.hub, self.app_uuid)
            .await
            .to_string()
    }

    /// A notice of a tenant that has no other member than the first tenant's owner.
    async fn notice(&self) -> String {
        let tenant = Tenant::create_by(&self.tenant.owner).await;
        let mut tx = self.app.app.db.begin().await.expect("a transaction");
        let id: i64 = sql(
            "INSERT INTO notices (notice_uuid, tenant_uuid, type, channel, title, \
             body, severity, created_at, attempts) VALUES ($1, $2, 'HUB_OFFLINE', 'IN_APP', \
             'A hub', '', 'WARNING', $3, 0) RETURNING notice_id",
        )
        .bind((Uuid::new_v4(), tenant.tenant_uuid, self.app.app.clock.now()))
        .scalar(&mut tx)
        .await
        .expect("a row");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
        id.to_string()
    }

    /// Somebody to whom the hub is lent.
    async fn delegation(&self) -> String {
        let path = format!("/tenant/hubs/{}/setup-delegations", self.hub.hub_uuid);
        let body = json!({"userUuid": Uuid::new_v4()});
        let made = self
            .tenant
            .client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(200)
            .json();
        made["data"]["id"].to_string()
    }

    /// A pending transfer that the rightful caller may do this to.
    async fn transfer_for(&self, operation: &Operation) -> String {
        let (from, to) = match operation.path.ends_with("/cancel") {
            true => (&self.tenant.owner, &self.other.owner),
            false => (&self.other.owner, &self.tenant.owner),
        };
        Tenant::create_by(from)
            .await
            .offer(&json!({"targetPersonaUuid": to.login.persona_uuid}))
            .await
    }

    /// A new invitation of the first tenant: its id, and its token.
    async fn invitation(&self) -> (String, String) {
        let email = format!("{}@example.com", Uuid::new_v4().simple());
        let invited = self.invite(&self.tenant, &email).await;
        (
            invited["invitationId"].to_string(),
            mail::token_for(&self.app, &email).await,
        )
    }

    /// Invites somebody; answers the invitation. However often one address was mailed to before:
    /// that is slowed, which is no matter here.
    async fn invite(&self, tenant: &Tenant, email: &str) -> Value {
        let mut tx = self.app.app.db.begin().await.expect("a transaction");
        sql("DELETE FROM login_failures")
            .execute(&mut tx)
            .await
            .expect("a deletion");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
        let body = json!({"email": email});
        let invited: Value = tenant
            .client
            .post("/tenant/personas/invite")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        invited["invitation"].clone()
    }

    /// A token that sets the password of somebody who has nothing else to do here.
    async fn reset_token(&self) -> String {
        let person = Person::register(&self.app.client()).await;
        let token = Uuid::new_v4().to_string();
        let now = self.app.app.clock.now();
        let mut tx = self.app.app.db.begin().await.expect("a transaction");
        sql(
            "INSERT INTO password_resets (token_hash, user_uuid, created_at, expires_at) \
             VALUES ($1, $2, $3, $4)",
        )
        .bind((
            hub_base::sealing::hash(&token),
            person.login.user_uuid,
            now,
            now.plus_secs(60),
        ))
        .execute(&mut tx)
        .await
        .expect("a row");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
        token
    }

    /// A request for the operation that would succeed if its caller may make it.
    pub async fn request(
        &self,
        caller: &Client,
        operation: &Operation,
        objects: Objects,
    ) -> RequestBuilder {
        let request = self.request_without_body(caller, operation, objects).await;
        match self.body(operation).await {
            Some(body) => Self::signed(operation, request, body.to_string().as_bytes()).json(&body),
            None if operation.takes_a_file() => request.body(Self::file_for(operation, FILE)),
            None => request,
        }
    }

    pub async fn request_without_body(
        &self,
        caller: &Client,
        operation: &Operation,
        objects: Objects,
    ) -> RequestBuilder {
        let method: Method = operation.method.parse().expect("a method");
        let request = caller.request(method, &self.path_of(operation, objects).await);
        self.as_browsers_ask(operation, request).await
    }

    /// A body that the operation takes.
    pub async fn body(&self, operation: &Operation) -> Option<Value> {
        let schema = operation.body_schema()?;
        let sample = SAMPLES
            .get(&operation.name())
            .cloned()
            .unwrap_or_else(|| sample_of(schema));
        Some(self.fill(sample).await)
    }

    /// The sample with every `$name` replaced.
    async fn fill(&self, sample: Value) -> Value {
        match sample {
            Value::String(text) if text.starts_with('$') => self.value(&text).await,
            Value::Array(items) => {
                let mut filled = Vec::new();
                for item in items {
                    filled.push(Box::pin(self.fill(item)).await);
                }
                Value::Array(filled)
            }
            Value::Object(members) => {
                let mut filled = Map::new();
                for (name, value) in members {
                    filled.insert(name, Box::pin(self.fill(value)).await);
                }
                Value::Object(filled)
            }
            other => other,
        }
    }

    /// What a `$name` in a sample stands for; made anew for each request where it can be used once.
    /// The tenant's task, which nobody carries out here.
    async fn reprocess_task(&self) -> String {
        let body =
            json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "dryRun": false});
        let reply = self
            .tenant
            .client
            .post("/tenant/ble/reprocess")
            .json(&body)
            .call()
            .await;
        if reply.status == 409 {
            let message = reply.expect(409).problem().message;
            return message
                .split_whitespace()
                .filter(|word| Uuid::parse_str(word).is_ok())
                .collect();
        }
        let task: Value = reply.expect(202).data();
        task["taskId"].as_str().expect("a task").to_owned()
    }

    async fn value(&self, name: &str) -> Value {
        match name {
            "$uuid" => json!(Uuid::new_v4()),
            "$email" => json!(format!("{}@example.com", Uuid::new_v4().simple())),
            "$tenantUuid" => json!(self.tenant.tenant_uuid),
            "$ownerEmail" => json!(self.tenant.owner.email),
            "$password" => json!(hub_tests::people::PASSWORD),
            "$refreshToken" => json!(self.guest.login.refresh_token),
            "$logoutToken" => json!(
                Person::register(&self.app.client())
                    .await
                    .login
                    .refresh_token
            ),
            "$otherPersonaUuid" => json!(self.other.owner.login.persona_uuid),
            "$personaUuid" => json!(self.guest.login.persona_uuid),
            "$newPassword" => json!(format!("the password {}", Uuid::new_v4())),
            "$resetToken" => json!(self.reset_token().await),
            // To the first tenant's owner, from a tenant they are no member of yet.
            "$invitationToken" => {
                let email = &self.tenant.owner.email;
                self.invite(&Tenant::create(&self.app.client()).await, email)
                    .await;
                json!(mail::token_for(&self.app, email).await)
            }
            "$appUuid" => json!(self.app_uuid),
            "$appReleaseUuid" => json!(self.app_release_uuid),
            "$agentReleaseUuid" => json!(release_uuid(&self.agent_release)),
            "$appName" => json!(format!("app-{}", Uuid::new_v4().simple())),
            "$appRelease" => self.maker.body(&self.recipe(ReleaseKind::App), json!({})),
            "$agentRelease" => self
                .maker
                .body(&self.recipe(ReleaseKind::Agent), json!({"channel": "beta"})),
            "$channel" => json!(Uuid::new_v4().simple().to_string()),
            "$ownersClaimCode" => {
                let body = json!({"ownerUserUuid": self.tenant.owner.login.user_uuid});
                let made = self
                    .tenant
                    .client
                    .post("/tenant/hubs/claim-codes")
                    .json(&body)
                    .call()
                    .await
                    .expect(200)
                    .json();
                made["data"]["claimCode"].clone()
            }
            "$claimCode" => json!(self.tenant.claim_code().await),
            "$hubRefreshToken" => json!(self.refreshing.credentials.refresh_token),
            "$keptAppUuid" => json!(self.app_uuid),
            "$keptPipelineUuid" => json!(self.pipelines.pipeline_uuid),
            "$keptDeviceUuid" => json!(self.catalog.device_uuid),
            "$externalEndpointId" => json!(self.catalog.endpoint),
            "$address" => {
                let [a, b, c, d, e, ..] = Uuid::new_v4().into_bytes();
                json!(format!("C4:{a:02X}:{b:02X}:{c:02X}:{d:02X}:{e:02X}"))
            }
            "$completion" => self.completion().await,
            "$enrolmentOtp" => self.second_factor(false).await,
            "$otp" => self.second_factor(true).await,
            "$linkableTenantUuid" => self.linkable().await,
            "$hubUuid" => json!(self.hub.hub_uuid),
            "$ownHubUuid" => json!(self.mandate.hub_uuid),
            "$nextWeek" => json!(self.app.app.clock.now().plus_secs(7 * 24 * 3600)),
            "$deviceUuid" => json!(self.catalog.model().await),
            "$dlqId" => json!(self.dead_letter().await),
            "$actionId" => json!(catalog::action_id()),
            "$blinkActionId" => json!(catalog::BLINK),
            "$manufacturerPrefix" => json!(catalog::manufacturer_prefix()),
            "$csr" => json!(certificates::request().1),
            "$now" => json!(self.app.app.clock.now()),
            _ => self.value_beside(name).await,
        }
    }
}

fn release_uuid(release: &Value) -> String {
    release["releaseUuid"]
        .as_str()
        .expect("a release's uuid")
        .to_owned()
}

/// A well-formed identifier that nothing has.
fn unknown(operation: &Operation, name: &str) -> String {
    let schema = operation
        .parameter_schema("path", name)
        .expect("a described parameter");
    match (schema["type"].as_str(), schema["format"].as_str(), name) {
        (_, Some("uuid"), _) => Uuid::new_v4().to_string(),
        (Some("integer"), ..) => "4242424242".to_owned(),
        (.., "address") => "FF:FF:FF:FF:FF:FF".to_owned(),
        (.., "claimCode") => "0000-0000-0000-0000".to_owned(),
        (.., "document") => "sbom".to_owned(),
        _ => "1".to_owned(),
    }
}

/// Operations after which the tenant in the path is gone, or cannot be asked the same again: they
/// get one of their own.
fn takes_the_tenant(operation: &Operation) -> bool {
    matches!(operation.id(), "tenants.delete" | "transfers.initiate")
}

/// The least value that the schema admits: required members only, one item where there must be one.
fn sample_of(schema: &'static Value) -> Value {
    let schema = resolve(schema);
    if let Some(values) = schema["enum"].as_array() {
        return values.first().cloned().unwrap_or_default();
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        if let Some(first) = schema[choice]
            .as_array()
            .and_then(|choices| choices.first())
        {
            return sample_of(first);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match (kind, schema["format"].as_str()) {
        (Some("string"), Some("uuid")) => json!("$uuid"),
        (Some("string"), Some("date-time")) => json!("$now"),
        (Some("string"), _) => json!("text"),
        (Some("integer" | "number"), _) => schema.get("minimum").cloned().unwrap_or(json!(1)),
        (Some("boolean"), _) => json!(true),
        (Some("array"), _) => json!([]),
        _ => {
            let required = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            let properties = object(&schema["properties"]);
            let members = required
                .filter_map(|name| Some((name.to_owned(), sample_of(properties.get(name)?))));
            Value::Object(members.collect())
        }
    }
}
