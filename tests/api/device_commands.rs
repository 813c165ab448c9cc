//! Commands on devices that hubs carry out: who may give them, which hub gets them, and what is
//! shown of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hub_base::db::sql;
use hub_composed::device_commands;
use hub_fleet::jobs;
use hub_protocol::command::GattOperation;
use hub_protocol::job::{DesiredJob, HubJobType};
use hub_protocol::{HubJobUuid, Timestamp};
use hub_tests::app::set_clock;
use hub_tests::devices::{make_device, make_model, put_readings, put_state};
use hub_tests::events;
use hub_tests::{
    Backend, Call, Client, Options, Person, Reply, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};
use uuid::Uuid;

const START_SECS: i64 = 1_800_057_600;
const ADDRESS: &str = "C4:11:7D:DA:71:13";
const LED: &str = "0000ff01-0000-1000-8000-00805f9b34fb";

pub(super) struct World {
    app: TestApp,
    micros: Arc<AtomicI64>,
    tenant: Tenant,
    person: Person,
    pub(super) hub: SimulatedHub,
    model: Uuid,
    device: i64,
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros((START_SECS + secs) * 1_000_000)
}

/// Sets the brightness of a lamp, and waits until it says that it has.
fn dim() -> Value {
    json!({
        "actionId": "dim", "name": "Dim",
        "parameters": {
            "type": "object", "required": ["level"], "additionalProperties": false,
            "properties": {"level": {"type": "integer", "minimum": 0, "maximum": 100}}
        },
        "transport": {"kind": "GATT", "steps": [
            {"service": "ff00", "characteristic": "ff01", "operation": "WRITE", "value": "01{level}"},
            {"service": "ff00", "characteristic": "ff02", "operation": "NOTIFY", "timeoutMillis": 5000}
        ]}
    })
}

pub(super) fn level(level: i64) -> Value {
    json!({"actionId": "dim", "parameters": {"level": level}})
}

impl World {
    /// A hub of a person that hears a lamp.
    pub(super) async fn new(backend: Backend) -> Self {
        let (clock, micros) = set_clock(at(0));
        let app = TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                ..Options::default()
            },
        )
        .await;
        let mut tenant = Tenant::create(&app.client()).await;
        // A key does not expire.
        tenant.client = tenant
            .api_key(json!({"scopes": ["*"], "rateLimitPerMinute": 100_000}))
            .await
            .client;
        let person = Person::register(&app.client()).await;
        let hub = hub_of(&app, &tenant, &person).await;
        let model = make_model(&tenant, "Lamp").await;
        let device =
            make_device(&tenant, model, json!({"address": ADDRESS})).await["deviceInstanceId"]
                .as_i64();
        let device = device.expect("an id");
        tenant
            .client
            .post("/tenant/action-definitions")
            .json(&dim())
            .call()
            .await
            .expect(201);
        let world = Self {
            app,
            micros,
            tenant,
            person,
            hub,
            model,
            device,
        };
        world.come_online(&world.hub, Some("CONNECTOR")).await;
        put_state(
            &world.app,
            &world.tenant,
            device,
            world.hub.hub_uuid,
            at(0),
            &json!({}),
        )
        .await;
        world
    }

    async fn come_online(&self, hub: &SimulatedHub, role: Option<&str>) {
        let address = "00:1A:7D:DA:71:13";
        let adapters = json!({"adapters": [{"address": address, "name": "hci0", "powered": true}]});
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
        if let Some(role) = role {
            let path = format!("/tenant/hubs/{}/adapters/{address}", hub.hub_uuid);
            self.tenant
                .client
                .patch(&path)
                .json(&json!({"role": role}))
                .call()
                .await
                .expect(200);
        }
    }

    /// The hub uploads receptions of the device, so strong.
    async fn hear(&self, hub: &SimulatedHub, secs: i64, strengths: &[i64]) {
        let last = events::last_id(&self.app.app.db, self.tenant.tenant_uuid).await;
        let event = |rssi: &i64| json!({"observedAt": at(secs), "address": ADDRESS, "rssi": rssi});
        let events: Vec<Value> = strengths.iter().map(event).collect();
        let body = json!({"batchUuid": Uuid::new_v4(), "events": events});
        hub.client
            .post("/v1/ble/events")
            .json(&body)
            .call()
            .await
            .expect(201);
        let values = vec![json!({}); strengths.len()];
        put_readings(
            &self.app,
            &self.tenant,
            last,
            self.device,
            self.model,
            &values,
        )
        .await;
    }

    fn set_time(&self, secs: i64) {
        self.micros.store(at(secs).as_micros(), Ordering::Relaxed);
    }

    /// The person, with a token that does not expire within the test.
    pub(super) fn user(&self) -> Client {
        self.person.as_platform_admin(&self.app)
    }

    pub(super) fn path(&self, of: &str) -> String {
        format!("/{of}/devices/{}/commands", self.device)
    }

    /// The supplier gives a command and does not wait for its end.
    async fn order(&self, body: &Value) -> Reply {
        self.tenant
            .client
            .post(&format!("{}?wait=0", self.path("tenant")))
            .json(body)
            .call()
            .await
    }

    pub(super) async fn ordered(&self, body: &Value) -> Value {
        self.order(body).await.expect(200).data()
    }

    async fn shown(&self, command: &Value) -> Value {
        let path = format!(
            "{}/{}",
            self.path("tenant"),
            command["commandUuid"].as_str().expect("a uuid")
        );
        self.tenant
            .client
            .get(&path)
            .call()
            .await
            .expect(200)
            .data()
    }

    async fn refused(&self, status: u16, code: &str) {
        let problem = self.order(&level(7)).await.expect(status).problem();
        assert_eq!(problem.code, code, "{}", problem.message);
    }

    async fn job(&self) -> DesiredJob {
        let mut jobs = self.hub.desired_jobs().await;
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        jobs.remove(0)
    }

    async fn end_overdue(&self) {
        jobs::end_overdue(&self.app.app.parts().jobs, 100)
            .await
            .expect("upkeep");
    }
}

pub(super) async fn hub_of(app: &TestApp, tenant: &Tenant, person: &Person) -> SimulatedHub {
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

fn error_code(command: &Value) -> &str {
    command["error"]["code"].as_str().unwrap_or_default()
}

on_each_database!(a_hub_carries_out_a_command_and_its_giver_gets_the_result);
async fn a_hub_carries_out_a_command_and_its_giver_gets_the_result(backend: Backend) {
    let world = World::new(backend).await;
    let user = world.user();
    let (path, hub) = (world.path("app"), world.hub.clone());
    let carried_out = tokio::spawn(async move {
        let job = loop {
            match hub.desired_jobs().await.pop() {
                Some(job) => break job,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        hub.tell(job.hub_job_uuid, "ACCEPTED", json!({}))
            .await
            .expect(204);
        let steps = json!([{"characteristic": LED, "operation": "WRITE"}, {"characteristic": LED, "operation": "NOTIFY", "value": "2a"}]);
        let done = json!({"eventUuid": Uuid::new_v4(), "kind": "SUCCEEDED", "occurredAt": at(1), "detail": {"steps": steps}});
        hub.tell_event(job.hub_job_uuid, &done).await.expect(204);
        // The answer was lost on the way.
        hub.tell_event(job.hub_job_uuid, &done).await.expect(204);
        job
    });
    let done: Value = user
        .post(&path)
        .json(&level(42))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (done["status"].as_str(), &done["error"]),
        (Some("SUCCEEDED"), &Value::Null),
        "{done}"
    );
    assert_eq!(done["result"]["steps"][1]["value"], "2a");
    assert_eq!(
        (&done["hubUuid"], &done["actionId"]),
        (&json!(world.hub.hub_uuid), &json!("dim"))
    );
    assert!(done["completedAt"].is_string());

    let job = carried_out.await.expect("the hub");
    assert_eq!(
        (job.job_type, job.deadline_at),
        (HubJobType::DeviceCommand, at(120))
    );
    let command = job.command.expect("what to do");
    assert_eq!(
        (command.device_instance_id, command.address.as_str()),
        (world.device, ADDRESS)
    );
    let [write, notify] = &command.steps[..] else {
        panic!("two steps: {command:?}")
    };
    assert_eq!(
        (
            write.characteristic.to_string().as_str(),
            write.value.as_deref()
        ),
        (LED, Some("012a"))
    );
    assert_eq!(
        (notify.operation, notify.timeout_millis),
        (GattOperation::Notify, Some(5000))
    );
    assert!(world.hub.desired_jobs().await.is_empty());

    // Both see it; what was written is kept nowhere.
    let listed: Value = user.get(&path).call().await.expect(200).data();
    assert_eq!(listed, json!([done]));
    assert_eq!(world.shown(&done).await, done);
    let mut conn = world.app.app.db.read().await.expect("a connection");
    let kept: i64 = sql("SELECT COUNT(*) FROM hub_jobs WHERE command IS NOT NULL")
        .scalar(&mut conn)
        .await
        .expect("rows");
    assert_eq!(kept, 0);
}

on_each_database!(parameters_have_to_fit_the_schema_of_the_action);
async fn parameters_have_to_fit_the_schema_of_the_action(backend: Backend) {
    let world = World::new(backend).await;
    for (body, field) in [
        (level(101), "/parameters/level"),
        (
            json!({"actionId": "dim", "parameters": {"level": "7"}}),
            "/parameters/level",
        ),
        (json!({"actionId": "dim"}), "/parameters"),
        (
            json!({"actionId": "dim", "parameters": {"level": 7, "colour": 1}}),
            "/parameters",
        ),
        (json!({"actionId": "Dim"}), "actionId"),
        (
            json!({"actionId": "dim", "idempotencyKey": "a b"}),
            "idempotencyKey",
        ),
    ] {
        let problem = world.order(&body).await.expect(400).problem();
        assert_eq!(
            problem
                .errors
                .iter()
                .map(|error| error.field.as_str())
                .next(),
            Some(field),
            "{body}"
        );
    }
    let other = make_model(&world.tenant, "Blind").await;
    let up = json!({"actionId": "up", "name": "Up", "deviceUuid": other, "transport": dim()["transport"], "parameters": dim()["parameters"]});
    world
        .tenant
        .client
        .post("/tenant/action-definitions")
        .json(&up)
        .call()
        .await
        .expect(201);
    for action in ["up", "none"] {
        let body = json!({"actionId": action, "parameters": {"level": 7}});
        assert_eq!(
            world.order(&body).await.expect(404).problem().message,
            "there is no such action"
        );
    }
    // A schema that cannot be checked against is refused when it is defined.
    for schema in [
        json!({"properties": {"a": {"pattern": "("}}}),
        json!({"properties": {"a": {"$ref": "#"}}}),
    ] {
        let mut body = dim();
        (body["actionId"], body["parameters"]) = (json!("bad"), schema);
        body["transport"]["steps"][0]["value"] = json!("01");
        let problem = world
            .tenant
            .client
            .post("/tenant/action-definitions")
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, "parameters", "{}", problem.message);
    }
    assert!(world.hub.desired_jobs().await.is_empty());
}

on_each_database!(only_whose_device_it_is_now_gives_commands);
async fn only_whose_device_it_is_now_gives_commands(backend: Backend) {
    let world = World::new(backend).await;
    let other = Person::register(&world.app.client()).await;
    let other = other.as_platform_admin(&world.app);
    let path = world.path("app");
    let order = async |client: &Client| {
        client
            .post(&format!("{path}?wait=0"))
            .json(&level(7))
            .call()
            .await
    };
    let mine: Value = order(&world.user()).await.expect(200).data();
    let one = format!("{path}/{}", mine["commandUuid"].as_str().expect("a uuid"));
    order(&other).await.expect(404);
    other.get(&path).call().await.expect(404);
    other.get(&one).call().await.expect(404);
    let stranger = Tenant::create(&world.app.client()).await;
    stranger
        .client
        .post(&world.path("tenant"))
        .json(&level(7))
        .call()
        .await
        .expect(404);
    stranger
        .client
        .get(&world.path("tenant"))
        .call()
        .await
        .expect(404);

    // Lent for ten minutes, the device is also theirs; the commands of others are not.
    let email = json!({"userUuid": other.get("/app/profile").call().await.expect(200).data::<Value>()["userUuid"], "expiresAt": at(600)});
    let delegations = format!("/tenant/hubs/{}/setup-delegations", world.hub.hub_uuid);
    world
        .tenant
        .client
        .post(&delegations)
        .json(&email)
        .call()
        .await
        .expect(200);
    put_state(
        &world.app,
        &world.tenant,
        world.device,
        world.hub.hub_uuid,
        at(1),
        &json!({}),
    )
    .await;
    let theirs: Value = order(&other).await.expect(200).data();
    let listed: Value = other.get(&path).call().await.expect(200).data();
    assert_eq!(listed[0]["commandUuid"], theirs["commandUuid"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    other.get(&one).call().await.expect(404);
    let all: Value = world
        .tenant
        .client
        .get(&world.path("tenant"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        all.as_array().map(Vec::len),
        Some(2),
        "the supplier sees both"
    );
    world.set_time(601);
    order(&other).await.expect(404);
    other.get(&path).call().await.expect(404);
}

on_each_database!(the_hub_that_hears_the_device_best_and_may_connect_gets_the_command);
async fn the_hub_that_hears_the_device_best_and_may_connect_gets_the_command(backend: Backend) {
    let world = World::new(backend).await;
    let (near, nearer) = (
        SimulatedHub::claim(&world.tenant).await,
        SimulatedHub::claim(&world.tenant).await,
    );
    world.hear(&world.hub, 0, &[-80, -70]).await;
    world.hear(&near, 0, &[-90, -55]).await;
    world.hear(&nearer, 0, &[-40]).await;
    let chosen = async || world.ordered(&level(7)).await["hubUuid"].clone();
    assert_eq!(
        chosen().await,
        json!(world.hub.hub_uuid),
        "the others are not online"
    );
    world.come_online(&near, None).await;
    world.come_online(&nearer, Some("SCANNER")).await;
    assert_eq!(
        chosen().await,
        json!(near.hub_uuid),
        "an adapter without a role may connect, and one that scans may not"
    );
    world.come_online(&nearer, Some("CONNECTOR")).await;
    assert_eq!(chosen().await, json!(nearer.hub_uuid));
    let app: Value = world
        .user()
        .post(&format!("{}?wait=0", world.path("app")))
        .json(&level(7))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        app["hubUuid"],
        json!(world.hub.hub_uuid),
        "a person's commands go through their own hubs"
    );
    world.set_time(400);
    world.hear(&near, 390, &[-60]).await;
    for hub in [&world.hub, &near, &nearer] {
        world.come_online(hub, None).await;
    }
    world.set_time(700);
    assert_eq!(
        chosen().await,
        json!(near.hub_uuid),
        "where the device was 10 minutes ago says nothing"
    );
}

on_each_database!(the_reason_for_having_no_hub_is_reported);
async fn the_reason_for_having_no_hub_is_reported(backend: Backend) {
    let world = World::new(backend).await;
    world.come_online(&world.hub, Some("SCANNER")).await;
    world.refused(409, "NO_CONNECTING_ADAPTER").await;
    world.come_online(&world.hub, Some("CONNECTOR")).await;
    let off = json!({"adapters": []});
    world
        .hub
        .client
        .post("/v1/hubs/adapters")
        .json(&off)
        .call()
        .await
        .expect(200);
    world.refused(409, "NO_CONNECTING_ADAPTER").await;
    world.come_online(&world.hub, None).await;
    world.set_time(601);
    world.refused(409, "DEVICE_OUT_OF_RANGE").await;
    put_state(
        &world.app,
        &world.tenant,
        world.device,
        world.hub.hub_uuid,
        at(601),
        &json!({}),
    )
    .await;
    world.refused(409, "NO_HUB_ONLINE").await;
    world.come_online(&world.hub, None).await;
    world.ordered(&level(7)).await;
    let device = format!("/tenant/devices/{}", world.device);
    for (step, code) in [
        ("suspend", "DEVICE_SUSPENDED"),
        ("retire", "DEVICE_RETIRED"),
    ] {
        // A device is active before it is suspended.
        if step == "suspend" {
            world
                .tenant
                .client
                .post(&format!("{device}/activate"))
                .call()
                .await
                .expect(200);
        }
        world
            .tenant
            .client
            .post(&format!("{device}/{step}"))
            .call()
            .await
            .expect(200);
        world.refused(409, code).await;
    }
    let nameless = make_device(&world.tenant, world.model, json!({"name": "no address"})).await;
    let path = format!("/tenant/devices/{}/commands", nameless["deviceInstanceId"]);
    let problem = world
        .tenant
        .client
        .post(&path)
        .json(&level(7))
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(problem.code, "DEVICE_HAS_NO_ADDRESS");
}

on_each_database!(a_command_whose_hub_is_silent_is_not_repeated);
async fn a_command_whose_hub_is_silent_is_not_repeated(backend: Backend) {
    let world = World::new(backend).await;
    let [unsent, unbegun, begun, failed, cancelled] = {
        let mut commands = Vec::new();
        commands.push(world.ordered(&level(1)).await);
        for number in 2..=5 {
            commands.push(world.ordered(&level(number)).await);
        }
        <[Value; 5]>::try_from(commands).expect("five")
    };
    assert_eq!(unsent["status"], "QUEUED");
    // Everything is dispatched at once, so the first is taken back by hand.
    let jobs = world.hub.desired_jobs().await;
    let uuids: Vec<HubJobUuid> = jobs.iter().map(|job| job.hub_job_uuid).collect();
    let mut tx = world.app.app.db.begin().await.expect("a transaction");
    sql(
        "UPDATE hub_jobs SET status = 'PENDING', dispatched_at = NULL, leased_until = NULL, \
         attempts = 0 WHERE hub_job_uuid = $1",
    )
    .bind(uuids[0])
    .run(&mut tx)
    .await
    .expect("an update");
    tx.commit_unaudited("a test").await.expect("a commit");
    assert_eq!(world.shown(&unbegun).await["status"], "SENT");
    world
        .hub
        .tell(uuids[2], "ACCEPTED", json!({}))
        .await
        .expect(204);
    assert_eq!(world.shown(&begun).await["status"], "SENT");
    // The hub was killed in the middle, and says so.
    let detail =
        json!({"reason": "INTERRUPTED", "steps": [{"characteristic": LED, "operation": "WRITE"}]});
    let failure = json!({"message": "the hub stopped in the middle of it", "detail": detail});
    world
        .hub
        .tell(uuids[3], "FAILED", failure)
        .await
        .expect(204);
    let path = format!("/tenant/hubs/{}/jobs/{}", world.hub.hub_uuid, uuids[4]);
    world.tenant.client.delete(&path).call().await.expect(200);

    world.set_time(121);
    assert!(
        world.hub.desired_jobs().await.is_empty(),
        "none is handed out after its time"
    );
    world.end_overdue().await;
    for (command, status, code) in [
        (&unsent, "EXPIRED", "HUB_NOT_REACHED"),
        (&unbegun, "EXPIRED", "HUB_SILENT"),
        (&begun, "FAILED", "OUTCOME_UNKNOWN"),
        (&failed, "FAILED", "INTERRUPTED"),
        (&cancelled, "FAILED", "CANCELLED"),
    ] {
        let shown = world.shown(command).await;
        assert_eq!(
            (shown["status"].as_str(), error_code(&shown)),
            (Some(status), code),
            "{shown}"
        );
        assert!(
            shown["completedAt"].is_string()
                && shown["error"]["message"]
                    .as_str()
                    .is_some_and(|text| text.len() > 10)
        );
    }
    assert_eq!(
        world.shown(&failed).await["result"]["steps"][0]["operation"],
        "WRITE",
        "what was done before"
    );
    // What the hub says too late changes nothing.
    world
        .hub
        .tell(uuids[2], "SUCCEEDED", json!({}))
        .await
        .expect(409);
    assert_eq!(error_code(&world.shown(&begun).await), "OUTCOME_UNKNOWN");
}

on_each_database!(a_repeated_order_is_carried_out_once);
async fn a_repeated_order_is_carried_out_once(backend: Backend) {
    let world = World::new(backend).await;
    let mut body = level(7);
    body["idempotencyKey"] = json!("press-1");
    let orders = (0..8).map(|_| world.ordered(&body));
    let given = futures_util::future::join_all(orders).await;
    assert!(
        given
            .iter()
            .all(|command| command["commandUuid"] == given[0]["commandUuid"]),
        "{given:?}"
    );
    let job = world.job().await;
    world
        .hub
        .tell(
            job.hub_job_uuid,
            "SUCCEEDED",
            json!({"detail": {"steps": []}}),
        )
        .await
        .expect(204);
    assert_eq!(
        world.ordered(&body).await["status"],
        "SUCCEEDED",
        "as it has become"
    );
    assert!(world.hub.desired_jobs().await.is_empty());
    // The key of somebody else is another one.
    let path = format!("{}?wait=0", world.path("app"));
    let theirs: Value = world
        .user()
        .post(&path)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_ne!(theirs["commandUuid"], given[0]["commandUuid"]);
    let mut off = dim();
    off["actionId"] = json!("off");
    world
        .tenant
        .client
        .post("/tenant/action-definitions")
        .json(&off)
        .call()
        .await
        .expect(201);
    body["actionId"] = json!("off");
    let problem = world.order(&body).await.expect(409).problem();
    assert_eq!(problem.code, "IDEMPOTENCY_KEY_REUSED");
}

on_each_database!(commands_are_bounded_and_forgotten);
async fn commands_are_bounded_and_forgotten(backend: Backend) {
    let world = World::new(backend).await;
    for number in 0..20 {
        world.ordered(&level(number)).await;
    }
    let reply = world.order(&level(20)).await.expect(429);
    assert_eq!(reply.header("retry-after"), "60");
    world.set_time(61);
    // All of them wait for the hub still.
    world.refused(409, "TOO_MANY_COMMANDS").await;
    let days = 90 * 24 * 3600;
    world.set_time(days - 1);
    let forget = async || {
        let before = world.app.app.clock.now().plus_secs(-days);
        device_commands::forget(&world.app.app.db, before, 7)
            .await
            .expect("upkeep")
    };
    assert_eq!(forget().await, 0);
    world.set_time(days + 1);
    assert_eq!(
        [
            forget().await,
            forget().await,
            forget().await,
            forget().await
        ],
        [7, 7, 6, 0]
    );
}
