//! What belongs to another tenant does not exist, a hub is nobody but itself, and who is refused
//! has changed nothing.

use hub_identity::authz::permission::{KeyAccess, Role, TABLE};
use hub_tests::{Backend, Call, Client, Person, Reply, SimulatedHub, Tenant, on_each_database};
use reqwest::Method;
use reqwest::header::HeaderName;
use serde_json::json;

use super::document::{Operation, operations};
use super::dump::{Dumper, differences};
use super::world::{Objects, World};

/// Objects in the path that are the platform's, or published, and everybody's to see; and what a
/// supplier tells everybody who may want to link an account.
const OF_NO_TENANT: [&str; 5] = [
    "GET /tenant/agent-releases/{releaseUuid}",
    "GET /tenant/agent-releases/{releaseUuid}/documents/{document}",
    "GET /app/bundle-catalog/{bundleUuid}",
    "GET /app/supplier-oauth-configs/{supplierUuid}",
    "GET /app/consent-settings/{supplierUuid}",
];

/// Not there while the tenant has stated nothing; `api::evidence` asks for it as another tenant.
const OPENVEX: &str = "GET /tenant/vulnerabilities/openvex";

fn is_of_no_tenant(operation: &Operation) -> bool {
    OF_NO_TENANT.contains(&operation.name().as_str())
}

on_each_database!(another_tenants_objects_answer_as_ones_that_do_not_exist);
async fn another_tenants_objects_answer_as_ones_that_do_not_exist(backend: Backend) {
    let world = World::new(backend).await;
    let mut tried = 0;
    for operation in operations() {
        if !operation.access().starts_with("tenant:") || operation.path_parameters().is_empty() {
            continue;
        }
        if is_of_no_tenant(&operation) {
            world
                .request(&world.other.client, &operation, Objects::Real)
                .await
                .call()
                .await
                .expect(200);
            continue;
        }
        // The header is required and has to repeat the path: a stranger's cannot.
        if operation.path.starts_with("/tenant/units/") {
            continue;
        }
        // A header that contradicts the path is another matter: where the path names the tenant,
        // the header is left out.
        let (stranger, owner) = match operation.path.contains("{tenantUuid}") {
            true => (&world.other.owner.client, &world.tenant.owner.client),
            false => (&world.other.client, &world.tenant.client),
        };
        let foreign = world
            .request(stranger, &operation, Objects::Real)
            .await
            .call()
            .await
            .expect(404);
        let unknown = world
            .request(stranger, &operation, Objects::Unknown)
            .await
            .call()
            .await
            .expect(404);
        assert_eq!(
            without_id(&foreign),
            without_id(&unknown),
            "{}",
            operation.name()
        );
        let own = world
            .request(owner, &operation, Objects::Real)
            .await
            .call()
            .await;
        assert!(
            own.status.is_success(),
            "the owner's own: {} {}: {}",
            own.asked,
            own.status,
            own.body
        );
        tried += 1;
    }
    assert!(
        tried > 5,
        "only {tried} operations have an object in their path"
    );
}

/// All of the answer that a caller could tell two cases apart by.
fn without_id(reply: &Reply) -> (String, String, Vec<String>) {
    let problem = reply.problem();
    let headers = reply.headers.keys().map(|name| name.to_string()).collect();
    (problem.code, problem.message, headers)
}

on_each_database!(lists_show_nothing_of_another_tenant);
async fn lists_show_nothing_of_another_tenant(backend: Backend) {
    let world = World::new(backend).await;
    let marks = [
        world.hub.hub_uuid.to_string(),
        world.tenant.tenant_uuid.to_string(),
    ];
    let mut seen_by_owner = 0;
    for operation in operations() {
        let is_list = operation.method == "GET" && operation.path_parameters().is_empty();
        if !is_list || !operation.path.starts_with("/tenant/") {
            continue;
        }
        if operation.name() == OPENVEX {
            continue;
        }
        let path = world.path_of(&operation, Objects::Real).await;
        let to_stranger = world.other.client.get(&path).call().await.expect(200).body;
        let leak = marks.iter().find(|mark| to_stranger.contains(*mark));
        assert_eq!(
            leak,
            None,
            "{} shows another tenant's: {to_stranger}",
            operation.name()
        );
        let to_owner = world.tenant.client.get(&path).call().await.expect(200).body;
        seen_by_owner += usize::from(marks.iter().any(|mark| to_owner.contains(mark)));
    }
    assert!(
        seen_by_owner >= 3,
        "only {seen_by_owner} lists show the owner their own"
    );
}

on_each_database!(a_hub_acts_for_no_other_hub);
async fn a_hub_acts_for_no_other_hub(backend: Backend) {
    let world = World::new(backend).await;
    let neighbour = SimulatedHub::claim(&world.tenant).await;
    let mut tried = 0;
    for operation in operations() {
        if operation.access() != "hub" || !operation.path.contains("{hubUuid}") {
            continue;
        }
        let reply = world
            .request(&neighbour.client, &operation, Objects::Real)
            .await
            .call()
            .await
            .expect(403);
        assert_eq!(reply.problem().code, "OTHER_HUB");
        let unknown = world
            .request(&neighbour.client, &operation, Objects::Unknown)
            .await
            .call()
            .await;
        unknown.expect(403);
        tried += 1;
    }
    assert!(tried >= 3, "only {tried} operations name the hub");
}

/// Everybody who has no business with an object of the first tenant, made once; who they are is
/// said when they get in.
struct Intruders {
    /// Members by role.
    members: Vec<(Role, Client)>,
    /// In no tenant at all.
    nobody: Client,
    /// Member of no tenant either.
    platform_admin: Client,
    neighbour: SimulatedHub,
    foreign_hub: SimulatedHub,
    /// The first tenant's, with a scope that no operation of these asks for; and one of the other
    /// tenant with all scopes.
    weak_key: String,
    foreign_key: String,
}

impl Intruders {
    async fn new(world: &World) -> Self {
        let nobody = world.end_users[0].client.clone();
        Self {
            members: world.members().await,
            nobody,
            platform_admin: Person::register(&world.app.client())
                .await
                .as_platform_admin(&world.app),
            neighbour: SimulatedHub::claim(&world.tenant).await,
            foreign_hub: SimulatedHub::claim(&world.other).await,
            weak_key: world
                .tenant
                .stored_api_key(&world.app, "billing:read")
                .await,
            foreign_key: world.other.stored_api_key(&world.app, "*").await,
        }
    }

    /// Those whom the operation is not for, each with a name.
    fn of(&self, world: &World, operation: &Operation) -> Vec<(String, Client)> {
        let tenant_uuid = world.tenant.tenant_uuid;
        let with_key =
            |client: Client, key: &str| client.header(HeaderName::from_static("x-api-key"), key);
        let anyone = world.app.client();
        let (kind, permission) = operation
            .access()
            .split_once(':')
            .unwrap_or((operation.access(), ""));
        let mut found: Vec<(String, Client)> = Vec::new();
        let mut add = |who: &str, client: Client| found.push((who.to_owned(), client));
        match kind {
            "tenant" => {
                let (_, bit, key) = TABLE
                    .iter()
                    .find(|(name, ..)| *name == permission)
                    .expect("a row of the table");
                let named_by_path = operation.path.contains("{tenantUuid}");
                let other = &world.other;
                add(
                    "another tenant's OWNER, as such",
                    if named_by_path {
                        other.owner.client.clone()
                    } else {
                        other.client.clone()
                    },
                );
                add(
                    "another tenant's OWNER, naming this one",
                    other.owner.client.tenant(tenant_uuid),
                );
                add("someone without a tenant", self.nobody.tenant(tenant_uuid));
                add(
                    "a platform administrator",
                    self.platform_admin.tenant(tenant_uuid),
                );
                add(
                    "another tenant's key",
                    with_key(anyone.tenant(tenant_uuid), &self.foreign_key),
                );
                if !named_by_path {
                    add(
                        "another tenant's key, as such",
                        with_key(anyone.tenant(other.tenant_uuid), &self.foreign_key),
                    );
                }
                if *key != KeyAccess::Any {
                    add(
                        "a key without the scope",
                        with_key(anyone.tenant(tenant_uuid), &self.weak_key),
                    );
                }
                for (role, client) in self.members.iter().filter(|(role, _)| !role.allows(*bit)) {
                    add(role.name(), client.clone());
                }
            }
            // Of these only transfers name an object: a person's own part in them decides.
            "user" | "app" => {
                add("someone without a tenant", self.nobody.clone());
                add("a platform administrator", self.platform_admin.clone());
                add(
                    "a key",
                    with_key(anyone.tenant(tenant_uuid), &self.weak_key),
                );
                let is_cancel = operation.path.ends_with("/cancel");
                add(
                    if is_cancel {
                        "whom it is offered to"
                    } else {
                        "who asked"
                    },
                    world.other.owner.client.clone(),
                );
                self.members
                    .iter()
                    .for_each(|(role, client)| add(role.name(), client.clone()));
            }
            "mandate" => {
                add(
                    "the person who granted it",
                    world.end_users[1].client.clone(),
                );
                add("the supplier's OWNER", world.tenant.client.clone());
                add("a hub", self.neighbour.client.clone());
                add(
                    "a key",
                    with_key(anyone.tenant(tenant_uuid), &self.weak_key),
                );
            }
            "platform" => {
                add("someone without a tenant", self.nobody.clone());
                add("another tenant's OWNER", world.other.client.clone());
                self.members
                    .iter()
                    .for_each(|(role, client)| add(role.name(), client.clone()));
            }
            "hub" => {
                add("another tenant's hub", self.foreign_hub.client.clone());
                // What is the tenant's is there for all of its hubs.
                if operation.path.contains("{hubUuid}") {
                    add("another hub", self.neighbour.client.clone());
                }
            }
            other => panic!("nobody knows who may not call with the x-access `{other}`"),
        }
        found
    }
}

on_each_database!(who_may_not_is_refused_and_changes_nothing);
async fn who_may_not_is_refused_and_changes_nothing(backend: Backend) {
    let world = World::new(backend).await;
    let intruders = Intruders::new(&world).await;
    let mut dumper = Dumper::new(&world.app).await;
    let (mut tried, mut faults) = (0, Vec::new());
    for operation in operations() {
        let is_open =
            matches!(operation.access(), "public" | "hmac") || is_of_no_tenant(&operation);
        if operation.path_parameters().is_empty() || is_open {
            continue;
        }
        // The objects and the body are made first: what happens from then on is the intruders'
        // doing. The tenant is the one they are members of.
        let in_tenant = operation
            .path
            .replace("{tenantUuid}", &world.tenant.tenant_uuid.to_string());
        let path = world
            .path_of(
                &Operation {
                    path: in_tenant,
                    ..operation.clone()
                },
                Objects::Real,
            )
            .await;
        let body = world.body(&operation).await;
        let mut before = dumper.dump().await;
        for (who, client) in intruders.of(&world, &operation) {
            let method: Method = operation.method.parse().expect("a method");
            let request = client.request(method, &path);
            let reply = match &body {
                Some(body) => request.json(body),
                None => request,
            };
            let reply = reply.call().await;
            // A key is no person: outside of a tenant it is no credential at all. Nor are the
            // tokens of others where a mandate is wanted.
            let is_elsewhere = operation.access() == "mandate"
                || (who == "a key" && !operation.path.starts_with("/tenant/"));
            let is_no_credential = is_elsewhere && reply.status == 401;
            if !matches!(reply.status.as_u16(), 403 | 404) && !is_no_credential {
                faults.push(format!(
                    "{}: {who}: {} {}",
                    operation.name(),
                    reply.status,
                    reply.body
                ));
            }
            let after = dumper.dump().await;
            let changes = differences(&before, &after);
            faults.extend(
                changes
                    .into_iter()
                    .map(|change| format!("{}: {who} changed {change}", operation.name())),
            );
            before = after;
            tried += 1;
        }
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(tried > 150, "only {tried} tries");
}

on_each_database!(a_pending_transfer_is_seen_by_those_it_concerns);
async fn a_pending_transfer_is_seen_by_those_it_concerns(backend: Backend) {
    let world = World::new(backend).await;
    let offered = Tenant::create_by(&world.tenant.owner).await;
    let request_uuid = offered
        .offer(&json!({"targetPersonaUuid": world.guest.login.persona_uuid}))
        .await;
    for (client, list, sees) in [
        (&world.guest.client, "incoming", true),
        (&world.guest.client, "outgoing", false),
        (&world.tenant.owner.client, "outgoing", true),
        (&world.tenant.owner.client, "incoming", false),
        (&world.other.owner.client, "incoming", false),
        (&world.other.owner.client, "outgoing", false),
    ] {
        let reply = client
            .get(&format!("/tenant/transfer-requests/{list}"))
            .call()
            .await
            .expect(200);
        assert_eq!(
            reply.body.contains(&request_uuid),
            sees,
            "{list}: {}",
            reply.body
        );
    }
}
