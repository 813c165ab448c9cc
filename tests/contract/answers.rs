//! Every operation, asked by whom it is for: it answers with the status and the shape that the
//! document says, and a change leaves an entry in the audit log.

use hub_base::db::sql;
use hub_tests::documented::{Place, conforms};
use hub_tests::people::PASSWORD;
use hub_tests::{Backend, Call, Person, SimulatedHub, TestApp, on_each_database};
use serde_json::json;

use super::document::{object, operations};
use super::world::{Objects, World};

/// Operations that read, by their method, and leave an entry.
const AUDITED_READS: [&str; 2] = [
    "GET /app/supplier-links/{id}/access-token",
    "GET /dev/partner-projects/{projectId}/invalidate",
];

/// Operations that change something and leave no entry, and why.
const UNAUDITED: [(&str, &str); 22] = [
    ("POST /app/hubs/pairing-codes/offer", "stores nothing"),
    (
        "POST /v1/hubs/{hubUuid}/logs",
        "is data, kept in a log of its own",
    ),
    ("POST /v1/hubs/{hubUuid}/telemetry", "is data"),
    ("POST /v1/ble/events", "is data"),
    ("POST /v1/ble/events/windowed", "is data"),
    (
        "POST /v1/hubs/adapters",
        "is what the hub sees, reported repeatedly",
    ),
    (
        "POST /v1/hubs/{hubUuid}/packages",
        "is what the hub runs, reported when it changes",
    ),
    (
        "PUT /v1/hubs/{hubUuid}/installed-apps",
        "is what the hub sees, reported repeatedly",
    ),
    (
        "POST /v1/hubs/{hubUuid}/jobs/{hubJobUuid}/events",
        "is kept with its job",
    ),
    (
        "POST /auth/password/forgot",
        "changes nothing yet: the work behind it has its entry, if there is such an account",
    ),
    (
        "POST /v1/hubs/{hubUuid}/device-query",
        "asks; the device that it activates has an entry",
    ),
    (
        "POST /tenant/ble/reprocess",
        "stores nothing as a dry run; another has an entry",
    ),
    ("POST /tenant/simulator/run", "stores nothing"),
    ("POST /tenant/simulator/stream", "stores nothing"),
    (
        "PUT /app/notifications/{notificationId}/read",
        "is what a person has read, and nobody else's business",
    ),
    (
        "PUT /tenant/billing/charge-settings",
        "changes nothing, and says so",
    ),
    ("POST /tenant/device-protocols/test-run", "stores nothing"),
    ("POST /tenant/data-pipelines/transpile", "stores nothing"),
    (
        "POST /tenant/data-pipelines/{pipelineUuid}/test-run",
        "stores nothing",
    ),
    (
        "POST /tenant/data-pipelines/{pipelineUuid}/compare",
        "stores nothing",
    ),
    (
        "POST /auth/refresh",
        "goes on with a login that has its entry, every 15 minutes",
    ),
    ("POST /auth/session/refresh", "the same, in a browser"),
];

on_each_database!(every_operation_does_what_its_description_says);
async fn every_operation_does_what_its_description_says(backend: Backend) {
    let mut world = World::new(backend).await;
    for operation in operations() {
        if operation.access() == "hub" || operation.id() == "hubs.readmit" {
            // A block ends all tokens of a hub.
            world.hub = SimulatedHub::claim(&world.tenant).await;
        }
        let name = operation.name();
        let (status, response) = operation
            .success()
            .unwrap_or_else(|| panic!("{name} describes no success"));
        let caller = match operation.id() {
            // Whose account is gone afterwards, or whose logins are.
            "appProfile.delete" | "session.deleteAll" => {
                Person::register(&world.app.client()).await.client
            }
            _ => world.rightful_caller(&operation),
        };
        let request = match operation.id() {
            // An earlier operation has given the owner another password.
            "session.create" => {
                let person = Person::register(&world.app.client()).await;
                let body = json!({"email": person.email, "password": PASSWORD});
                world
                    .request_without_body(&caller, &operation, Objects::Real)
                    .await
                    .json(&body)
            }
            _ => world.request(&caller, &operation, Objects::Real).await,
        };
        let entries = audit_entries(&world.app).await;
        let reply = request.call().await.expect(status);
        let written = audit_entries(&world.app).await - entries;
        let content = object(&response["content"]);
        let media_type = reply
            .header("content-type")
            .split(';')
            .next()
            .unwrap_or_default();
        match content.keys().next() {
            None => assert_eq!(reply.body, "", "{name} describes no body"),
            Some(_) => assert!(
                content.contains_key(media_type),
                "{name} answers {media_type}"
            ),
        }
        if media_type == "application/json"
            && let Some(schema) = content["application/json"].get("schema")
        {
            let mut faults = Vec::new();
            conforms(schema, &reply.json(), Place::Root, &mut faults);
            assert!(faults.is_empty(), "{name}: {faults:#?} in {}", reply.body);
        }
        let unaudited = UNAUDITED.iter().any(|(operation, _)| *operation == name);
        let is_noted = operation.method != "GET" || AUDITED_READS.contains(&name.as_str());
        let expects_entry = is_noted && !unaudited;
        assert_eq!(
            written > 0,
            expects_entry,
            "{name} wrote {written} audit entries"
        );
    }
}

async fn audit_entries(app: &TestApp) -> i64 {
    let mut conn = app.app.db.read().await.expect("a connection");
    let (count,): (i64,) = sql("SELECT COUNT(*) FROM audit_logs")
        .one(&mut conn)
        .await
        .expect("a count");
    count
}

#[test]
fn every_exception_is_an_operation() {
    let names: Vec<String> = operations()
        .iter()
        .map(super::document::Operation::name)
        .collect();
    let unknown: Vec<_> = UNAUDITED
        .iter()
        .filter(|(name, _)| !names.iter().any(|other| other == name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
