//! `/webhook/partner-projects`, `/app/projects` and `/dev/partner-projects`: projects that a
//! partner reports, and what takes part in them.

use hub_base::db::sql;
use hub_core::config::Settings;
use hub_identity::authz::permission::Role;
use hub_outgoing::signing::service_signature;
use hub_protocol::{PersonaUuid, Timestamp};
use hub_tests::app::set_clock;
use hub_tests::devices::{make_device, make_model};
use hub_tests::{Backend, Call, Client, Options, Person, Reply, Tenant, TestApp, on_each_database};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use uuid::Uuid;

const NOON: i64 = 1_800_014_400_000_000;
const SECRET: &str = "a secret of the partner";
const HOOK: &str = "/webhook/partner-projects";
const PROJECTS: &str = "/app/projects";
const DEVICES: &str = "/app/projects/north/devices";
const TENANTS: &str = "/app/projects/north/tenants";

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(NOON).plus_secs(secs)
}

/// Two tenants, whose owners work on a project with somebody who reads.
struct World {
    app: TestApp,
    one: Tenant,
    two: Tenant,
    reader: Person,
}

async fn service(backend: Backend, secret: Option<&str>) -> TestApp {
    let (clock, _) = set_clock(at(0));
    let settings = Settings {
        partner_projects_secret: secret.map(str::to_owned),
        dev_endpoints: Some(true),
        ..Settings::default()
    };
    TestApp::with(
        backend,
        Options {
            settings,
            clock: Some(clock),
        },
    )
    .await
}

async fn tell(app: &TestApp, message: &Value) -> Reply {
    let body = message.to_string();
    let signature = service_signature(SECRET.as_bytes(), body.as_bytes());
    post(app, body, Some(&signature)).await
}

async fn post(app: &TestApp, body: impl Into<String>, signature: Option<&str>) -> Reply {
    let request = app
        .client()
        .post(HOOK)
        .header(CONTENT_TYPE, "application/json")
        .body(body.into());
    match signature {
        Some(signature) => {
            request
                .header("x-service-signature", signature)
                .call()
                .await
        }
        None => request.call().await,
    }
}

/// Whether the message was applied.
async fn applied(app: &TestApp, message: &Value) -> bool {
    let response: Value = tell(app, message).await.expect(200).data();
    assert_eq!(response["projectId"], message["project"]["id"]);
    response["applied"].as_bool().expect("a boolean")
}

fn project(id: &str, name: &str, members: &[(PersonaUuid, &str)]) -> Value {
    let member =
        |(persona, role): &(PersonaUuid, &str)| json!({"personaUuid": persona, "role": role});
    let members: Vec<Value> = members.iter().map(member).collect();
    json!({"project": {"id": id, "name": name, "members": members}, "occurredAt": at(0)})
}

async fn list(client: &Client, path: &str) -> Vec<Value> {
    client.get(path).call().await.expect(200).data()
}

impl World {
    async fn new(backend: Backend) -> Self {
        let app = service(backend, Some(SECRET)).await;
        let (one, two) = (
            Tenant::create(&app.client()).await,
            Tenant::create(&app.client()).await,
        );
        let reader = Person::register(&app.client()).await;
        let world = Self {
            app,
            one,
            two,
            reader,
        };
        let members = [
            (world.one.owner.login.persona_uuid, "OWNER"),
            (world.two.owner.login.persona_uuid, "EDITOR"),
            (world.reader.login.persona_uuid, "VIEWER"),
        ];
        assert!(applied(&world.app, &project("north", "North wing", &members)).await);
        world
    }

    async fn device(&self, tenant: &Tenant) -> i64 {
        let model = make_model(tenant, "Lamp").await;
        make_device(tenant, model, json!({"name": "in the hall"})).await["deviceInstanceId"]
            .as_i64()
            .expect("an id")
    }

    /// Both tenants take part.
    async fn join_both(&self) {
        for tenant in [&self.one, &self.two] {
            let body = json!({"tenantUuids": [tenant.tenant_uuid]});
            tenant
                .owner
                .client
                .post(TENANTS)
                .json(&body)
                .call()
                .await
                .expect(200);
        }
    }

    async fn count(&self, text: &'static str) -> i64 {
        sql(text)
            .scalar(&mut self.app.app.db.read().await.expect("a connection"))
            .await
            .expect("a number")
    }

    async fn devices(&self) -> Vec<i64> {
        let listed = list(&self.reader.client, DEVICES).await;
        listed
            .iter()
            .map(|device| device["deviceInstanceId"].as_i64().expect("an id"))
            .collect()
    }
}

on_each_database!(only_the_partner_tells_of_projects);
async fn only_the_partner_tells_of_projects(backend: Backend) {
    let world = World::new(backend).await;
    let message = project(
        "south",
        "South",
        &[(world.reader.login.persona_uuid, "VIEWER")],
    );
    let body = message.to_string();
    let signature = service_signature(SECRET.as_bytes(), body.as_bytes());
    for (body, signature) in [
        (body.as_str(), None),
        (body.as_str(), Some("")),
        (body.as_str(), Some("sha256=00")),
        (body.as_str(), Some(signature.trim_start_matches("sha256="))),
        (
            body.as_str(),
            Some(service_signature(b"another secret", body.as_bytes()).as_str()),
        ),
        (
            body.replace("South", "Other").as_str(),
            Some(signature.as_str()),
        ),
        ("not JSON", None),
    ] {
        let reply = post(&world.app, body, signature).await.expect(401);
        assert_eq!(
            reply.problem().code,
            "INVALID_SIGNATURE",
            "{body} {signature:?}"
        );
    }
    let persona = world.reader.login.persona_uuid;
    let twice = project("south", "South", &[(persona, "VIEWER"), (persona, "OWNER")]);
    let mut many = project("south", "South", &[]);
    many["project"]["members"] = (0..1001)
        .map(|_| json!({"personaUuid": Uuid::new_v4(), "role": "VIEWER"}))
        .collect();
    for (message, field) in [
        (json!({}), "project"),
        (json!({"project": {}}), "id"),
        (project("", "South", &[]), "project.id"),
        (project("a/b", "South", &[]), "project.id"),
        (project("..", "South", &[]), "project.id"),
        (project(&"x".repeat(129), "South", &[]), "project.id"),
        (project("south", " ", &[]), "project.name"),
        (project("south", &"x".repeat(201), &[]), "project.name"),
        (
            json!({"project": {"id": "south", "members": []}, "occurredAt": at(0)}),
            "project.name",
        ),
        (
            json!({"project": {"id": "south", "name": "South"}, "occurredAt": at(0)}),
            "project.members",
        ),
        (
            project("south", "South", &[(persona, "viewer")]),
            "project.members[0].role",
        ),
        (
            project("south", "South", &[(persona, "")]),
            "project.members[0].role",
        ),
        (twice, "project.members[1].personaUuid"),
        (many, "project.members"),
        (
            json!({"project": message["project"], "deleted": "no", "occurredAt": at(0)}),
            "deleted",
        ),
        (json!({"project": message["project"]}), "occurredAt"),
        (
            json!({"project": message["project"], "occurredAt": "noon"}),
            "occurredAt",
        ),
        (
            json!({"project": message["project"], "occurredAt": at(301)}),
            "occurredAt",
        ),
    ] {
        let problem = tell(&world.app, &message).await.expect(400).problem();
        assert!(
            problem
                .errors
                .iter()
                .any(|error| error.field.contains(field)),
            "{field}: {problem:?}"
        );
    }
    assert!(
        list(&world.reader.client, PROJECTS)
            .await
            .iter()
            .all(|project| project["projectId"] == "north")
    );
    let unconfigured = service(backend, None).await;
    let reply = post(&unconfigured, body.as_str(), Some(&signature))
        .await
        .expect(503);
    assert_eq!(reply.problem().code, "PARTNER_PROJECTS_NOT_CONFIGURED");
    let person = Person::register(&unconfigured.client()).await;
    let ids = json!({"deviceInstanceIds": [1]});
    for request in [
        person.client.get(PROJECTS),
        person.client.get(DEVICES),
        person.client.get(TENANTS),
        person.client.post(DEVICES).json(&ids),
        person.client.delete(DEVICES).json(&ids),
        person
            .client
            .post(TENANTS)
            .json(&json!({"tenantUuids": [Uuid::new_v4()]})),
        person
            .client
            .delete(TENANTS)
            .json(&json!({"tenantUuids": [Uuid::new_v4()]})),
    ] {
        let reply = request.call().await.expect(503);
        assert!(
            reply.problem().message.contains("partner-projects-secret"),
            "{}",
            reply.body
        );
    }
    unconfigured.client().get(PROJECTS).call().await.expect(401);
}

on_each_database!(messages_that_come_twice_or_late_turn_nothing_back);
async fn messages_that_come_twice_or_late_turn_nothing_back(backend: Backend) {
    let world = World::new(backend).await;
    let entries = "SELECT COUNT(*) FROM audit_logs WHERE action LIKE 'partner_project.%'";
    assert_eq!(world.count(entries).await, 1);
    let persona = world.reader.login.persona_uuid;
    let timed = |name: &str, members: &[(PersonaUuid, &str)], secs: i64| {
        let mut message = project("south", name, members);
        message["occurredAt"] = json!(at(secs));
        message
    };
    let name = async || -> Option<String> {
        let listed = list(&world.reader.client, PROJECTS).await;
        let found = listed
            .iter()
            .find(|project| project["projectId"] == "south");
        found.map(|project| project["name"].as_str().expect("a name").to_owned())
    };
    let first = timed("first", &[(persona, "VIEWER")], -100);
    let second = timed("second", &[(persona, "VIEWER")], -50);
    assert!(applied(&world.app, &first).await);
    assert!(applied(&world.app, &second).await);
    let count = world.count(entries).await;
    assert!(applied(&world.app, &second).await, "the same again");
    assert!(
        !applied(&world.app, &first).await,
        "somebody sends an old one again"
    );
    assert_eq!(name().await.as_deref(), Some("second"));
    assert_eq!(
        world.count(entries).await,
        count,
        "nothing of that changed anything"
    );
    // A deletion that comes before what it follows.
    let gone = json!({"project": {"id": "south"}, "deleted": true, "occurredAt": at(-10)});
    assert!(applied(&world.app, &gone).await);
    assert!(!applied(&world.app, &timed("third", &[(persona, "VIEWER")], -20)).await);
    assert_eq!(name().await, None);
    assert!(applied(&world.app, &timed("fourth", &[(persona, "VIEWER")], 0)).await);
    assert_eq!(name().await.as_deref(), Some("fourth"));
    // Of a project that was never heard of.
    let gone = json!({"project": {"id": "east"}, "deleted": true, "occurredAt": at(0)});
    assert!(applied(&world.app, &gone).await);
    let mut late = project("east", "East", &[(persona, "VIEWER")]);
    late["occurredAt"] = json!(at(-1));
    assert!(!applied(&world.app, &late).await);
    assert!(
        list(&world.reader.client, PROJECTS)
            .await
            .iter()
            .all(|project| project["projectId"] != "east")
    );

    while world
        .app
        .app
        .turns
        .webhooks
        .count(Uuid::nil(), at(0))
        .is_ok()
    {}
    post(&world.app, "{}", None).await.expect(401);
    tell(&world.app, &second).await.expect(429);
}

on_each_database!(members_see_their_projects_and_nobody_else_does);
async fn members_see_their_projects_and_nobody_else_does(backend: Backend) {
    let world = World::new(backend).await;
    let stranger = Person::register(&world.app.client()).await;
    for (client, role) in [
        (&world.one.owner.client, "OWNER"),
        (&world.two.owner.client, "EDITOR"),
        (&world.reader.client, "VIEWER"),
    ] {
        let listed = list(client, PROJECTS).await;
        let expected = json!([{"projectId": "north", "name": "North wing", "role": role, "tenants": [], "deviceCount": 0}]);
        assert_eq!(json!(listed), expected);
    }
    assert!(list(&stranger.client, PROJECTS).await.is_empty());
    let unknown = stranger
        .client
        .get("/app/projects/nowhere/devices")
        .call()
        .await
        .expect(404)
        .problem()
        .message;
    for path in [
        DEVICES,
        TENANTS,
        "/app/projects/%00/devices",
        "/app/projects/a%2Fb/tenants",
        "/app/projects/%ff/tenants",
    ] {
        let reply = stranger.client.get(path).call().await;
        assert!(
            matches!(reply.status.as_u16(), 400 | 404),
            "{path}: {}",
            reply.body
        );
        assert!(
            reply.status == 400 || reply.problem().message == unknown,
            "{path}: {}",
            reply.body
        );
    }
    // A persona within a tenant counts while it is in force; of several roles the strongest does.
    let persona = world.one.let_in(&stranger, Role::Viewer).await;
    let members = [(persona, "GUEST"), (stranger.login.persona_uuid, "ADMIN")];
    assert!(applied(&world.app, &project("south", "South", &members)).await);
    assert_eq!(list(&stranger.client, PROJECTS).await[0]["role"], "ADMIN");
    assert!(applied(&world.app, &project("south", "South", &members[..1])).await);
    assert_eq!(list(&stranger.client, PROJECTS).await[0]["role"], "GUEST");
    let path = format!(
        "/tenant/tenants/{}/members/{persona}",
        world.one.tenant_uuid
    );
    world.one.client.delete(&path).call().await.expect(200);
    assert!(
        list(&stranger.client, PROJECTS).await.is_empty(),
        "no member of the tenant any more"
    );
    // Members go, and projects do.
    let owner = [(world.one.owner.login.persona_uuid, "OWNER")];
    assert!(applied(&world.app, &project("north", "North wing", &owner)).await);
    world.reader.client.get(DEVICES).call().await.expect(404);
    assert!(list(&world.reader.client, PROJECTS).await.is_empty());
    assert!(
        applied(
            &world.app,
            &json!({"project": {"id": "north"}, "deleted": true, "occurredAt": at(0)})
        )
        .await
    );
    world.one.owner.client.get(DEVICES).call().await.expect(404);
}

on_each_database!(tenants_join_and_leave_as_a_whole_or_not_at_all);
async fn tenants_join_and_leave_as_a_whole_or_not_at_all(backend: Backend) {
    let world = World::new(backend).await;
    let (one, two, owner) = (
        world.one.tenant_uuid,
        world.two.tenant_uuid,
        &world.one.owner.client,
    );
    let names = |problem: &hub_protocol::Problem| -> Vec<String> {
        problem
            .errors
            .iter()
            .map(|error| error.field.clone())
            .collect()
    };
    // A tenant that the caller does not belong to is one that does not exist.
    for stranger in [json!(two), json!(Uuid::new_v4())] {
        let problem = owner
            .post(TENANTS)
            .json(&json!({"tenantUuids": [one, stranger]}))
            .call()
            .await
            .expect(404)
            .problem();
        assert_eq!(
            (problem.message.as_str(), names(&problem)),
            ("there is no such tenant", vec!["tenantUuids[1]".into()])
        );
    }
    let editor = Tenant::create(&world.app.client()).await;
    editor.let_in(&world.one.owner, Role::Operator).await;
    let body = json!({"tenantUuids": [editor.tenant_uuid, one]});
    let problem = owner
        .post(TENANTS)
        .json(&body)
        .call()
        .await
        .expect(403)
        .problem();
    assert_eq!(
        names(&problem),
        ["tenantUuids[0]"],
        "to join takes an ADMIN"
    );
    assert!(
        list(owner, TENANTS).await.is_empty(),
        "nothing of all that joined"
    );
    let body = json!({"tenantUuids": [one, one]});
    world.one.let_in(&world.reader, Role::Admin).await;
    let problem = world
        .reader
        .client
        .post(TENANTS)
        .json(&body)
        .call()
        .await
        .expect(403)
        .problem();
    assert!(problem.message.contains("VIEWER"), "{problem:?}");

    let joined: Value = owner
        .post(TENANTS)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&joined["projectId"], &joined["tenants"][0]["tenantUuid"]),
        (&json!("north"), &json!(one))
    );
    owner.post(TENANTS).json(&body).call().await.expect(200);
    let entries = "SELECT COUNT(*) FROM audit_logs WHERE action = 'partner_project.join'";
    assert_eq!(world.count(entries).await, 1, "once more changes nothing");
    let log = world
        .one
        .client
        .get("/tenant/audit-logs?action=partner_project.join")
        .call()
        .await
        .expect(200);
    assert!(
        log.body.contains("\"north\""),
        "the tenant sees it: {}",
        log.body
    );
    world.join_both().await;
    let listed = list(&world.reader.client, TENANTS).await;
    assert_eq!(
        (listed.len(), &listed[0]["deviceCount"]),
        (2, &json!(0)),
        "{listed:?}"
    );
    assert!(listed.iter().all(|tenant| {
        tenant["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("Tenant of"))
    }));

    let (first, second) = (
        world.device(&world.one).await,
        world.device(&world.two).await,
    );
    for (tenant, id) in [(&world.one, first), (&world.two, second)] {
        tenant
            .owner
            .client
            .post(DEVICES)
            .json(&json!({"deviceInstanceIds": [id]}))
            .call()
            .await
            .expect(200);
    }
    let absent = json!({"tenantUuids": [one, editor.tenant_uuid]});
    let problem = owner
        .delete(TENANTS)
        .json(&absent)
        .call()
        .await
        .expect(404)
        .problem();
    assert_eq!(names(&problem), ["tenantUuids[1]"]);
    let problem = owner
        .delete(TENANTS)
        .json(&json!({"tenantUuids": [one, two]}))
        .call()
        .await
        .expect(403)
        .problem();
    assert_eq!(
        names(&problem),
        ["tenantUuids[1]"],
        "the other tenant's people decide"
    );
    assert_eq!(world.devices().await.len(), 2, "nothing left");
    let left: Value = owner
        .delete(TENANTS)
        .json(&json!({"tenantUuids": [one]}))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (
            &left["deviceCount"],
            left["tenants"].as_array().map(Vec::len)
        ),
        (&json!(1), Some(1))
    );
    assert_eq!(world.devices().await, [second], "its devices left with it");
    // A tenant that is deleted leaves everything.
    let path = format!("/tenant/tenants/{two}");
    world
        .two
        .owner
        .client
        .delete(&path)
        .call()
        .await
        .expect(200);
    assert!(world.devices().await.is_empty() && list(owner, TENANTS).await.is_empty());
    assert_eq!(
        world
            .count("SELECT COUNT(*) FROM partner_project_devices")
            .await,
        0
    );
}

on_each_database!(a_project_has_so_many_tenants);
async fn a_project_has_so_many_tenants(backend: Backend) {
    let world = World::new(backend).await;
    let mut tx = world.app.app.db.begin().await.expect("a transaction");
    for _ in 0..100 {
        let tenant = Uuid::new_v4();
        let made = sql("INSERT INTO tenants (tenant_uuid, name, created_at) VALUES ($1, 'x', $2)");
        made.bind((tenant, at(0)))
            .run(&mut tx)
            .await
            .expect("a row");
        let joined = sql(
            "INSERT INTO partner_project_tenants (project_id, tenant_uuid, joined_at) \
             VALUES ('north', $1, $2)",
        );
        joined
            .bind((tenant, at(0)))
            .run(&mut tx)
            .await
            .expect("a row");
    }
    tx.commit_unaudited("a test").await.expect("a commit");
    let body = json!({"tenantUuids": [world.one.tenant_uuid]});
    let problem = world
        .one
        .owner
        .client
        .post(TENANTS)
        .json(&body)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(problem.code, "TOO_MANY_PROJECT_TENANTS");
    assert_eq!(list(&world.reader.client, TENANTS).await.len(), 100);
}

on_each_database!(devices_come_and_go_as_a_whole_or_not_at_all);
async fn devices_come_and_go_as_a_whole_or_not_at_all(backend: Backend) {
    let world = World::new(backend).await;
    let owner = &world.one.owner.client;
    let (first, second, foreign) = (
        world.device(&world.one).await,
        world.device(&world.one).await,
        world.device(&world.two).await,
    );
    let ids = |ids: &[i64]| json!({"deviceInstanceIds": ids});
    let problem = owner
        .post(DEVICES)
        .json(&ids(&[first]))
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(
        (problem.code.as_str(), problem.errors[0].field.as_str()),
        ("TENANT_NOT_IN_PROJECT", "deviceInstanceIds[0]")
    );
    world.join_both().await;
    for unknown in [foreign, 4_242_424_242, -1, 0] {
        let problem = owner
            .post(DEVICES)
            .json(&ids(&[first, unknown, second]))
            .call()
            .await
            .expect(404)
            .problem();
        assert_eq!(problem.message, "there is no such device");
        assert_eq!(
            (problem.errors.len(), problem.errors[0].field.as_str()),
            (1, "deviceInstanceIds[1]")
        );
    }
    assert!(
        world.devices().await.is_empty(),
        "nothing of all that was added"
    );
    for request in [owner.post(DEVICES), owner.delete(DEVICES)] {
        let many: Vec<i64> = (1..=257).collect();
        for body in [
            ids(&[]),
            ids(&many),
            json!({}),
            json!({"deviceInstanceIds": ["1"]}),
            json!({"deviceInstanceIds": 1}),
        ] {
            let problem = request
                .try_clone()
                .expect("a request")
                .json(&body)
                .call()
                .await
                .expect(400)
                .problem();
            assert!(
                problem.errors[0].field.starts_with("deviceInstanceIds"),
                "{problem:?}"
            );
        }
    }
    let added: Value = owner
        .post(DEVICES)
        .json(&ids(&[second, first, first]))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(added["deviceCount"], 2);
    owner
        .post(DEVICES)
        .json(&ids(&[first]))
        .call()
        .await
        .expect(200);
    let entries = "SELECT COUNT(*) FROM audit_logs WHERE action = 'partner_project.add_devices'";
    assert_eq!(world.count(entries).await, 1);
    world
        .two
        .owner
        .client
        .post(DEVICES)
        .json(&ids(&[foreign]))
        .call()
        .await
        .expect(200);
    assert_eq!(
        world.devices().await,
        [foreign, second, first],
        "newest first, for everybody in the project"
    );
    let page = world
        .reader
        .client
        .get(&format!("{DEVICES}?size=1&page=2"))
        .call()
        .await
        .expect(200);
    assert_eq!(
        (
            page.header("x-total-count"),
            &page.json()["data"][0]["deviceInstanceId"]
        ),
        ("3", &json!(second))
    );
    assert_eq!(page.json()["data"][0]["deviceName"], "Lamp");

    let problem = owner
        .delete(DEVICES)
        .json(&ids(&[first, foreign]))
        .call()
        .await
        .expect(403)
        .problem();
    assert_eq!(
        problem.errors[0].field, "deviceInstanceIds[1]",
        "the other tenant's"
    );
    let absent = world.device(&world.one).await;
    let problem = owner
        .delete(DEVICES)
        .json(&ids(&[first, absent]))
        .call()
        .await
        .expect(404)
        .problem();
    assert_eq!(problem.errors[0].field, "deviceInstanceIds[1]");
    let viewer = world
        .reader
        .client
        .delete(DEVICES)
        .json(&ids(&[first]))
        .call()
        .await
        .expect(403);
    assert_eq!(viewer.problem().code, "PERMISSION_DENIED");
    // Who may only read in the tenant adds and takes out nothing of it.
    world.one.let_in(&world.two.owner, Role::Viewer).await;
    for request in [
        world.two.owner.client.post(DEVICES),
        world.two.owner.client.delete(DEVICES),
    ] {
        request.json(&ids(&[first])).call().await.expect(403);
    }
    assert_eq!(world.devices().await.len(), 3);
    let left: Value = owner
        .delete(DEVICES)
        .json(&ids(&[first, first]))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(left["deviceCount"], 2);
    world
        .one
        .client
        .delete(&format!("/tenant/devices/{second}"))
        .call()
        .await
        .expect(200);
    assert_eq!(
        world.devices().await,
        [foreign],
        "a deleted device is nowhere"
    );
}

on_each_database!(development_shows_what_is_stored_where_it_is_switched_on);
async fn development_shows_what_is_stored_where_it_is_switched_on(backend: Backend) {
    let world = World::new(backend).await;
    world.join_both().await;
    let admin = world.reader.as_platform_admin(&world.app);
    let stranger = PersonaUuid::new();
    let members = [
        (world.reader.login.persona_uuid, "VIEWER"),
        (stranger, "OWNER"),
    ];
    let mut message = project("north", "North wing", &members);
    message["occurredAt"] = json!(at(0));
    assert!(applied(&world.app, &message).await);
    let base = "/dev/partner-projects";
    let of_persona = format!("{base}/personas/{}", world.reader.login.persona_uuid);
    let paths = [
        format!("{base}/north"),
        format!("{base}/north/authz"),
        of_persona,
        format!("{base}/north/invalidate"),
    ];
    for path in &paths {
        world.one.owner.client.get(path).call().await.expect(403);
        world.app.client().get(path).call().await.expect(401);
    }
    let stored: Value = admin.get(&paths[0]).call().await.expect(200).data();
    assert_eq!(
        (&stored["name"], &stored["occurredAt"]),
        (&json!("North wing"), &json!(at(0)))
    );
    assert_eq!(stored["members"].as_array().map(Vec::len), Some(2));
    assert_eq!(stored["tenants"].as_array().map(Vec::len), Some(2));
    let authz = list(&admin, &paths[1]).await;
    let of = |persona: PersonaUuid| {
        authz
            .iter()
            .find(|one| one["personaUuid"] == json!(persona))
            .expect("the member")
    };
    let known = of(world.reader.login.persona_uuid);
    assert_eq!(
        (&known["userUuid"], &known["mayRead"], &known["mayChange"]),
        (
            &json!(world.reader.login.user_uuid),
            &json!(true),
            &json!(false)
        )
    );
    assert_eq!(
        (&of(stranger)["userUuid"], &of(stranger)["mayChange"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(
        json!(list(&admin, &paths[2]).await),
        json!([{"projectId": "north", "name": "North wing", "role": "VIEWER"}])
    );
    assert!(
        list(&admin, &format!("{base}/personas/{}", Uuid::new_v4()))
            .await
            .is_empty()
    );
    admin
        .get(&format!("{base}/personas/nobody"))
        .call()
        .await
        .expect(400);
    for unknown in [
        "nowhere",
        "nowhere/authz",
        "nowhere/invalidate",
        "%00",
        "%00/invalidate",
    ] {
        admin
            .get(&format!("{base}/{unknown}"))
            .call()
            .await
            .expect(404);
    }
    let gone: Value = admin.get(&paths[3]).call().await.expect(200).data();
    assert_eq!(gone, json!({"projectId": "north", "status": "INVALIDATED"}));
    admin.get(&paths[0]).call().await.expect(404);
    assert!(list(&world.reader.client, PROJECTS).await.is_empty());
    assert_eq!(
        world
            .count("SELECT COUNT(*) FROM partner_project_tenants")
            .await,
        0
    );
    let entries = "SELECT COUNT(*) FROM audit_logs WHERE action = 'partner_project.invalidate'";
    assert_eq!(world.count(entries).await, 1);
    assert!(
        applied(&world.app, &message).await,
        "the partner reports it again"
    );

    let settings = Settings {
        partner_projects_secret: Some(SECRET.to_owned()),
        ..Settings::default()
    };
    let plain = TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let admin = Person::register(&plain.client())
        .await
        .as_platform_admin(&plain);
    for path in &paths {
        for caller in [&admin, &plain.client()] {
            assert_eq!(
                caller.get(path).call().await.expect(404).problem().code,
                "UNKNOWN_PATH",
                "{path}"
            );
        }
    }
}
