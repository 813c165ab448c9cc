//! Every operation tried by everyone. `authorization.tsv` says who gets in: it is what a person
//! reviews, it is compared with what the service does, and it is compared with the permission
//! table, so that neither changes unnoticed. `HUB_TESTS_WRITE=1` writes it anew.

use std::collections::BTreeMap;
use std::path::Path;

use hub_core::config::{SecondFactorPolicy, Settings};
use hub_identity::authz::permission::{KeyAccess, Role, SCOPES, TABLE};
use hub_tests::{Backend, Call, Client, Options, Person, TestApp, on_each_database};
use reqwest::header::{CONTENT_TYPE, HeaderName};
use serde_json::json;

use super::document::{Operation, operations};
use super::world::{Objects, World};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/contract/authorization.tsv");

/// The columns. A stranger is OWNER of another tenant and names this one; `owner+key` has a good
/// token and an API key that is none. Keys: with `*`, with just the scope the operation asks for,
/// with all but that, another tenant's with `*`, one with `*` that was deactivated.
const CALLERS: [&str; 17] = [
    "nobody",
    "garbage",
    "no-tenant",
    "stranger",
    "VIEWER",
    "EDITOR",
    "OPERATOR",
    "ADMIN",
    "OWNER",
    "owner+key",
    "hub",
    "platform-admin",
    "key:*",
    "key:scope",
    "key:others",
    "key:stranger",
    "key:dead",
];

/// What an operation's permission asks of a key; nothing where no tenant's permission is needed.
fn key_access(access: &str) -> Option<KeyAccess> {
    let permission = access.strip_prefix("tenant:")?;
    let (_, _, key) = TABLE
        .iter()
        .find(|(name, ..)| *name == permission)
        .expect("a row of the permission table");
    Some(*key)
}

/// Under `/tenant`, what a key opens is a matter of its scopes, and people's affairs are none of
/// its business; elsewhere it is not looked at.
fn expected_of_key(access: &str, caller: &str) -> &'static str {
    let opens = match (caller, key_access(access)) {
        ("key:dead", _) => return "401",
        ("key:stranger", _) | (_, None | Some(KeyAccess::Never)) => false,
        (_, Some(KeyAccess::Any)) => true,
        (_, Some(KeyAccess::Scope(_))) => caller != "key:others",
    };
    if opens { "yes" } else { "403" }
}

/// What the permission table, the roles and the kinds of credential make of an operation's
/// `x-access`.
fn expected(path: &str, access: &str, caller: &str) -> &'static str {
    // Under `/tenant` a key is picked before the token beside it; elsewhere it is not looked at.
    let caller = match caller {
        _ if caller.starts_with("key:") && path.starts_with("/tenant/") => {
            return expected_of_key(access, caller);
        }
        _ if caller.starts_with("key:") => "nobody",
        "owner+key" if path.starts_with("/tenant/") => "garbage",
        "owner+key" => "OWNER",
        caller => caller,
    };

    let role = Role::ALL.into_iter().find(|role| role.name() == caller);
    let is_person = !matches!(caller, "nobody" | "garbage" | "hub");
    let (kind, permission) = access.split_once(':').unwrap_or((access, ""));
    match kind {
        // What is signed is looked at behind the door.
        "public" | "hmac" => "yes",
        "hub" if caller == "hub" => "yes",
        "hub" => "401",
        // Its credential is none of these.
        "mandate" => "401",
        _ if !is_person => "401",
        // Any person is an end user: what they see is limited by their scope.
        "user" | "app" => "yes",
        // Without the header, the path's tenant is a thing like any other that they cannot see.
        "tenant" if caller == "no-tenant" && path.starts_with("/tenant/tenants/{tenantUuid}") => {
            "404"
        }
        "platform" if caller == "platform-admin" => "yes",
        "platform" => "403",
        "tenant" => {
            let (_, bit, _) = TABLE
                .iter()
                .find(|(name, ..)| *name == permission)
                .expect("a row of the permission table");
            if role.is_some_and(|role| role.allows(*bit)) {
                "yes"
            } else {
                "403"
            }
        }
        other => panic!("nobody knows who may call with the x-access `{other}`"),
    }
}

/// By column; the keys whose scopes depend on the operation, by column and scope, as in `key:others
/// hubs:read`.
async fn callers(world: &World) -> BTreeMap<String, Client> {
    let anyone = world.app.client();
    let tenant_uuid = world.tenant.tenant_uuid;
    let key = HeaderName::from_static("x-api-key");
    let mut callers = BTreeMap::from([
        ("nobody", anyone.tenant(tenant_uuid)),
        (
            "garbage",
            anyone
                .bearer("eyJhbGciOiJub25lIn0.e30.")
                .tenant(tenant_uuid),
        ),
        ("no-tenant", world.end_users[1].client.clone()),
        ("stranger", world.other.owner.client.tenant(tenant_uuid)),
        (
            "owner+key",
            world
                .tenant
                .client
                .header(key, "hmk_abcdefgh_abcdefghijklmnopqrstuvwxyz012345"),
        ),
        ("hub", world.hub.client.tenant(tenant_uuid)),
        ("platform-admin", world.admin.clone()),
    ]);
    callers.extend(
        world
            .members()
            .await
            .into_iter()
            .map(|(role, client)| (role.name(), client)),
    );
    let mut callers: BTreeMap<String, Client> = callers
        .into_iter()
        .map(|(name, client)| (name.to_owned(), client))
        .collect();
    let body = |scopes: &[&str]| json!({"scopes": scopes, "rateLimitPerMinute": 100_000});
    let dead = world.tenant.api_key(body(&["*"])).await;
    let path = format!("/tenant/api-keys/{}", dead.api_key_id);
    world.tenant.client.delete(&path).call().await.expect(200);
    callers.insert("key:dead".to_owned(), dead.client);
    callers.insert(
        "key:*".to_owned(),
        world.tenant.api_key(body(&["*"])).await.client,
    );
    let foreign = world
        .other
        .api_key(body(&["*"]))
        .await
        .client
        .tenant(tenant_uuid);
    callers.insert("key:stranger".to_owned(), foreign);
    for scope in SCOPES {
        let others: Vec<&str> = SCOPES.into_iter().filter(|other| *other != scope).collect();
        for (column, scopes) in [("key:scope", vec![scope]), ("key:others", others)] {
            callers.insert(
                format!("{column} {scope}"),
                world.tenant.api_key(body(&scopes)).await.client,
            );
        }
    }
    callers
}

fn caller<'a>(callers: &'a BTreeMap<String, Client>, column: &str, access: &str) -> &'a Client {
    let scope = match key_access(access) {
        Some(KeyAccess::Scope(scope)) => scope,
        _ => SCOPES[0],
    };
    callers
        .get(column)
        .unwrap_or_else(|| &callers[&format!("{column} {scope}")])
}

/// `401`, `403`, `404` where the tenant is not theirs to see, or `yes` for whatever lies behind the
/// door. The request is one that changes nothing even for those who get in: its body is no JSON,
/// and what has no body names what is not there.
async fn attempt(world: &World, caller: &Client, operation: &Operation) -> &'static str {
    let changes = operation.method != "GET";
    // A hub changes nothing but itself by that, and a file that is not the one a URL was signed for
    // is thrown away.
    let is_harmless = operation.access() == "hub" || operation.takes_a_file();
    let objects = if changes && !is_harmless {
        Objects::Unknown
    } else {
        Objects::Real
    };
    // The tenant acted in is always the first one: it is what callers differ in.
    let path = operation
        .path
        .replace("{tenantUuid}", &world.tenant.tenant_uuid.to_string());
    let operation = &Operation {
        path,
        ..operation.clone()
    };
    let mut request = world.request_without_body(caller, operation, objects).await;
    if changes {
        request = request.header(CONTENT_TYPE, "text/plain").body("not JSON");
    }
    let reply = request.call().await;
    assert!(
        !reply.status.is_server_error(),
        "{}: {}",
        operation.name(),
        reply.body
    );
    match reply.status.as_u16() {
        401 => {
            reply.problem();
            assert!(
                reply.headers.contains_key("www-authenticate"),
                "{}: 401 without WWW-Authenticate",
                operation.name()
            );
            "401"
        }
        403 => {
            reply.problem();
            "403"
        }
        404 if reply.problem().message == "there is no such tenant" => "404",
        _ => "yes",
    }
}

on_each_database!(everyone_gets_in_where_the_matrix_says);
async fn everyone_gets_in_where_the_matrix_says(backend: Backend) {
    let world = World::new(backend).await;
    let callers = callers(&world).await;
    let mut table = format!("method\tpath\taccess\t{}\n", CALLERS.join("\t"));
    let mut wrong = Vec::new();
    for operation in operations() {
        let Operation { method, path, .. } = &operation;
        let access = operation.access();
        table.push_str(&format!("{method}\t{path}\t{access}"));
        for column in CALLERS {
            let expected = expected(path, access, column);
            // A caller who may delete the tenant, or end their logins, does, and has a world of its
            // own for that.
            let deletes = ["tenants.delete", "session.deleteAll"].contains(&operation.id())
                && expected == "yes";
            let (own_world, own_callers);
            let (world, callers) = match deletes {
                true => {
                    own_world = World::new(backend).await;
                    own_callers = self::callers(&own_world).await;
                    (&own_world, &own_callers)
                }
                false => (&world, &callers),
            };
            let outcome = attempt(world, caller(callers, column, access), &operation).await;
            if outcome != expected {
                wrong.push(format!(
                    "{} ({access}): {column} should get {expected}, gets {outcome}",
                    operation.name()
                ));
            }
            table.push('\t');
            table.push_str(outcome);
        }
        table.push('\n');
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    compare(&table);
}

fn compare(table: &str) {
    if std::env::var_os("HUB_TESTS_WRITE").is_some() {
        std::fs::write(Path::new(FILE), table).expect("authorization.tsv is written");
    }
    let checked_in = std::fs::read_to_string(FILE).unwrap_or_default();
    let differ = |a: &str, b: &str| -> Vec<String> {
        a.lines()
            .filter(|line| !b.lines().any(|other| other == *line))
            .map(str::to_owned)
            .collect()
    };
    let (new, gone) = (differ(table, &checked_in), differ(&checked_in, table));
    assert!(
        new.is_empty() && gone.is_empty(),
        "authorization.tsv differs from the service; review, then write it with HUB_TESTS_WRITE=1\nnew: {new:#?}\ngone: {gone:#?}"
    );
}

on_each_database!(a_second_factor_that_is_required_is_required_by_every_operation);
async fn a_second_factor_that_is_required_is_required_by_every_operation(backend: Backend) {
    let world = World::new(backend).await;
    let settings = Settings {
        second_factor: Some(SecondFactorPolicy::Everyone),
        dev_endpoints: Some(true),
        ..Settings::default()
    };
    let options = Options {
        settings,
        clock: None,
    };
    let app = TestApp::with(backend, options).await;
    let person = Person::register(&app.client()).await;
    let admin = person.as_platform_admin(&app);
    let mut without = Vec::new();
    for operation in operations() {
        let caller = match operation.access().split(':').next() {
            Some("user" | "app") => person.client.clone(),
            Some("tenant") => person.client.tenant(world.tenant.tenant_uuid),
            Some("platform") => admin.clone(),
            _ => continue,
        };
        let request = world.request_without_body(&caller, &operation, Objects::Unknown);
        let reply = request.await.call().await;
        if reply.status != 403 || reply.problem().code != "SECOND_FACTOR_REQUIRED" {
            without.push(operation.id().to_owned());
        }
    }
    assert_eq!(without, ["secondFactor.create", "secondFactor.confirm"]);
}
