//! Every operation tried by everyone. `authorization.tsv` says who gets in: it is what a person reviews, it is compared with what the service does, and
//! it is compared with the permission table, so that neither changes unnoticed. `HUB_TESTS_WRITE=1` writes it anew.

use std::collections::BTreeMap;
use std::path::Path;

use hub_cloud::authz::permission::{Role, TABLE};
use hub_tests::{Call, Client, Person, backends};
use reqwest::header::{CONTENT_TYPE, HeaderName};

use super::document::{Operation, operations};
use super::world::{Objects, World};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/contract/authorization.tsv");

/// The columns. A stranger is OWNER of another tenant and names this one; `owner+key` has a good token and an API key that is none.
const CALLERS: [&str; 12] = [
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
];

/// What the permission table, the roles and the kinds of credential make of an operation's `x-access`.
fn expected(path: &str, access: &str, caller: &str) -> &'static str {
    // Under `/tenant` a key is picked before the token beside it, and every key is refused until there are any; elsewhere it is not looked at.
    let caller = match caller {
        "owner+key" if path.starts_with("/tenant/") => "garbage",
        "owner+key" => "OWNER",
        caller => caller,
    };

    let role = Role::ALL.into_iter().find(|role| role.name() == caller);
    let is_person = !matches!(caller, "nobody" | "garbage" | "hub");
    let (kind, permission) = access.split_once(':').unwrap_or((access, ""));
    match kind {
        "public" => "yes",
        "hub" if caller == "hub" => "yes",
        "hub" => "401",
        _ if !is_person => "401",
        "user" => "yes",
        // Without the header, the path's tenant is a thing like any other that they cannot see.
        "tenant" if caller == "no-tenant" && path.contains("{tenantUuid}") => "404",
        "platform" if caller == "platform-admin" => "yes",
        "platform" => "403",
        "tenant" => {
            let (_, bit, _) =
                TABLE.iter().find(|(name, ..)| *name == permission).expect("a row of the permission table");
            if role.is_some_and(|role| role.allows(*bit)) { "yes" } else { "403" }
        }
        other => panic!("nobody knows who may call with the x-access `{other}`"),
    }
}

async fn callers(world: &World) -> BTreeMap<&'static str, Client> {
    let anyone = world.app.client();
    let tenant_uuid = world.tenant.tenant_uuid;
    let key = HeaderName::from_static("x-api-key");
    let mut callers = BTreeMap::from([
        ("nobody", anyone.tenant(tenant_uuid)),
        ("garbage", anyone.bearer("eyJhbGciOiJub25lIn0.e30.").tenant(tenant_uuid)),
        ("no-tenant", Person::register(&anyone).await.client),
        ("stranger", world.other.owner.client.tenant(tenant_uuid)),
        ("owner+key", world.tenant.client.header(key, "hmk_abcdefgh_abcdefghijklmnopqrstuvwxyz012345")),
        ("hub", world.hub.client.tenant(tenant_uuid)),
        ("platform-admin", world.admin.clone()),
    ]);
    callers.extend(world.members().await.into_iter().map(|(role, client)| (role.name(), client)));
    callers
}

/// `401`, `403`, `404` where the tenant is not theirs to see, or `yes` for whatever lies behind the door. The request is one that changes nothing even for those who get in: its
/// body is no JSON, and what has no body names what is not there.
async fn attempt(world: &World, caller: &Client, operation: &Operation) -> &'static str {
    let changes = operation.method != "GET";
    let hub_itself = operation.access() == "hub";
    let objects = if changes && !hub_itself { Objects::Unknown } else { Objects::Real };
    // The tenant acted in is always the first one: it is what callers differ in.
    let path = operation.path.replace("{tenantUuid}", &world.tenant.tenant_uuid.to_string());
    let operation = &Operation { path, ..operation.clone() };
    let mut request = world.request_without_body(caller, operation, objects).await;
    if changes {
        request = request.header(CONTENT_TYPE, "text/plain").body("not JSON");
    }
    let reply = request.call().await;
    assert!(!reply.status.is_server_error(), "{}: {}", operation.name(), reply.body);
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

#[tokio::test(flavor = "multi_thread")]
async fn everyone_gets_in_where_the_matrix_says() {
    for backend in backends() {
        let world = World::new(backend).await;
        let callers = callers(&world).await;
        let mut table = format!("method\tpath\taccess\t{}\n", CALLERS.join("\t"));
        let mut wrong = Vec::new();
        for operation in operations() {
            let Operation { method, path, .. } = &operation;
            let access = operation.access();
            // What cannot be kept from changing something has a world to itself.
            let (own_world, own_callers);
            let (world, callers) = match operation.name() == "DELETE /tenant/tenants/{tenantUuid}" {
                true => {
                    own_world = World::new(backend).await;
                    own_callers = self::callers(&own_world).await;
                    (&own_world, &own_callers)
                }
                false => (&world, &callers),
            };
            table.push_str(&format!("{method}\t{path}\t{access}"));
            for caller in CALLERS {
                let outcome = attempt(world, &callers[caller], &operation).await;
                let expected = expected(path, access, caller);
                if outcome != expected {
                    wrong.push(format!(
                        "{} ({access}): {caller} should get {expected}, gets {outcome}",
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
}

fn compare(table: &str) {
    if std::env::var_os("HUB_TESTS_WRITE").is_some() {
        std::fs::write(Path::new(FILE), table).expect("authorization.tsv is written");
    }
    let checked_in = std::fs::read_to_string(FILE).unwrap_or_default();
    let differ = |a: &str, b: &str| -> Vec<String> {
        a.lines().filter(|line| !b.lines().any(|other| other == *line)).map(str::to_owned).collect()
    };
    let (new, gone) = (differ(table, &checked_in), differ(&checked_in, table));
    assert!(
        new.is_empty() && gone.is_empty(),
        "authorization.tsv differs from the service; review, then write it with HUB_TESTS_WRITE=1\nnew: {new:#?}\ngone: {gone:#?}"
    );
}
