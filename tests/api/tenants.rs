//! Tenants and who belongs to them.

use hub_identity::authz::permission::Role;
use hub_protocol::{PersonaUuid, TenantUuid};
use hub_tests::{Backend, Call, Client, Person, Reply, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

fn members_path(tenant: &Tenant) -> String {
    format!("/tenant/tenants/{}/members", tenant.tenant_uuid)
}

async fn grant(client: &Client, tenant: &Tenant, persona_uuid: PersonaUuid, role: &str) -> Reply {
    let body = json!({"personaUuid": persona_uuid, "role": role});
    client.post(&members_path(tenant)).json(&body).call().await
}

async fn remove(client: &Client, tenant: &Tenant, persona_uuid: PersonaUuid) -> Reply {
    client
        .delete(&format!("{}/{persona_uuid}", members_path(tenant)))
        .call()
        .await
}

/// The persona in the tenant that the answer of a grant names.
fn persona(reply: &Reply) -> PersonaUuid {
    reply.json()["data"]["personaUuid"]
        .as_str()
        .expect("a persona")
        .parse()
        .expect("a uuid")
}

async fn owner_persona(tenant: &Tenant) -> PersonaUuid {
    let members: Vec<Value> = tenant
        .client
        .get(&members_path(tenant))
        .call()
        .await
        .expect(200)
        .data();
    members[0]["personaUuid"]
        .as_str()
        .expect("a persona")
        .parse()
        .expect("a uuid")
}

on_each_database!(creator_of_a_tenant_owns_it);
async fn creator_of_a_tenant_owns_it(backend: Backend) {
    let app = TestApp::new(backend).await;
    let person = Person::register(&app.client()).await;
    let none: Vec<Value> = person
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200)
        .data();
    assert!(none.is_empty());
    let mut founded = Vec::new();
    for name in ["Acme", "  Beta GmbH & Söhne ", &"x".repeat(200)] {
        let reply = person
            .client
            .post("/tenant/tenants")
            .json(&json!({"name": name}))
            .call()
            .await
            .expect(200);
        let tenant = reply.json()["data"].clone();
        assert_eq!(
            (tenant["name"].as_str(), tenant["role"].as_str()),
            (Some(name.trim()), Some("OWNER"))
        );
        assert_ne!(
            tenant["personaUuid"],
            json!(person.login.persona_uuid),
            "a tenant has personas of its own"
        );
        founded.insert(0, tenant);
    }
    let listed: Vec<Value> = person
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(listed, founded, "newest first, and nobody else's");
    let other = Tenant::create(&app.client()).await;
    let others: Vec<Value> = other
        .owner
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(others.len(), 1);
}

on_each_database!(tenant_requires_a_name_and_a_person);
async fn tenant_requires_a_name_and_a_person(backend: Backend) {
    let app = TestApp::new(backend).await;
    let person = Person::register(&app.client()).await;
    let long = "x".repeat(201);
    for body in [
        json!({}),
        json!({"name": null}),
        json!({"name": 1}),
        json!({"name": ""}),
        json!({"name": " \t"}),
        json!({"name": "a\u{0}b"}),
        json!({"name": long}),
        json!({"Name": "x"}),
    ] {
        let problem = person
            .client
            .post("/tenant/tenants")
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, "name", "{body}");
    }
    let with_key = person
        .client
        .get("/tenant/tenants")
        .header("x-api-key", "hmk_abcdefgh_x");
    assert_eq!(
        with_key.call().await.expect(401).problem().code,
        "INVALID_API_KEY",
        "there is no falling through"
    );
    for token in ["", "x", "a.b.c"] {
        app.client()
            .bearer(token)
            .get("/tenant/tenants")
            .call()
            .await
            .expect(401);
    }
    app.client()
        .post("/tenant/tenants")
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(401);
}

on_each_database!(members_are_added_changed_and_removed);
async fn members_are_added_changed_and_removed(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let person = Person::register(&app.client()).await;
    let newcomer = person.client.clone();
    newcomer
        .get(&members_path(&tenant))
        .call()
        .await
        .expect(404);
    newcomer
        .tenant(tenant.tenant_uuid)
        .get(&members_path(&tenant))
        .call()
        .await
        .expect(403);
    let granted = grant(&tenant.client, &tenant, person.login.persona_uuid, "VIEWER")
        .await
        .expect(200);
    let member = granted.json()["data"].clone();
    assert_eq!(
        (member["email"].as_str(), member["role"].as_str()),
        (Some(person.email.as_str()), Some("VIEWER"))
    );
    let in_tenant = persona(&granted);
    let members: Vec<Value> = tenant
        .client
        .get(&members_path(&tenant))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!((members.len(), &members[1]), (2, &member));
    let members: Vec<Value> = newcomer
        .get(&members_path(&tenant))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&members[1]["personaUuid"], &members[1]["email"]),
        (&json!(in_tenant), &Value::Null)
    );
    let tenants: Vec<Value> = newcomer
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (tenants.len(), tenants[0]["role"].as_str()),
        (1, Some("VIEWER"))
    );
    // By either of the two personas; once is as good as twice.
    for (named, role) in [
        (in_tenant, "ADMIN"),
        (person.login.persona_uuid, "ADMIN"),
        (in_tenant, "EDITOR"),
    ] {
        let changed = grant(&tenant.client, &tenant, named, role)
            .await
            .expect(200);
        assert_eq!(
            (persona(&changed), changed.json()["data"]["role"].as_str()),
            (in_tenant, Some(role))
        );
    }
    assert_eq!(
        remove(&tenant.client, &tenant, in_tenant)
            .await
            .expect(200)
            .body,
        ""
    );
    newcomer
        .get(&members_path(&tenant))
        .call()
        .await
        .expect(404);
    remove(&tenant.client, &tenant, in_tenant).await.expect(404);
    let back = grant(
        &tenant.client,
        &tenant,
        person.login.persona_uuid,
        "OPERATOR",
    )
    .await
    .expect(200);
    assert_eq!(persona(&back), in_tenant, "who comes back is who they were");
}

on_each_database!(each_role_has_its_permissions);
async fn each_role_has_its_permissions(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let someone = Person::register(&app.client()).await.login.persona_uuid;
    for role in [Role::Viewer, Role::Editor, Role::Operator] {
        let client = tenant.member(role).await;
        client.get(&members_path(&tenant)).call().await.expect(200);
        let refused = grant(&client, &tenant, someone, "VIEWER").await.expect(403);
        assert_eq!(refused.problem().code, "PERMISSION_DENIED");
        remove(&client, &tenant, someone).await.expect(403);
    }
    let admin = tenant.member(Role::Admin).await;
    let in_tenant = persona(&grant(&admin, &tenant, someone, "ADMIN").await.expect(200));
    grant(&admin, &tenant, someone, "OWNER").await.expect(403);
    remove(&admin, &tenant, in_tenant).await.expect(200);
    remove(&admin, &tenant, owner_persona(&tenant).await)
        .await
        .expect(403);
    grant(&admin, &tenant, owner_persona(&tenant).await, "VIEWER")
        .await
        .expect(403);
    let owner = tenant.member(Role::Owner).await;
    grant(&owner, &tenant, someone, "OWNER").await.expect(200);
}

on_each_database!(invalid_field_of_a_grant_is_refused_by_name);
async fn invalid_field_of_a_grant_is_refused_by_name(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let someone = Person::register(&app.client()).await.login.persona_uuid;
    for (body, field) in [
        (json!({"role": "VIEWER"}), "personaUuid"),
        (json!({"personaUuid": "x", "role": "VIEWER"}), "personaUuid"),
        (json!({"personaUuid": someone}), "role"),
        (json!({"personaUuid": someone, "role": "viewer"}), "role"),
        (json!({"personaUuid": someone, "role": "KING"}), "role"),
        (json!({"personaUuid": someone, "role": 15}), "role"),
    ] {
        let reply = tenant
            .client
            .post(&members_path(&tenant))
            .json(&body)
            .call()
            .await
            .expect(400);
        assert_eq!(reply.problem().errors[0].field, field, "{body}");
    }
    grant(&tenant.client, &tenant, PersonaUuid::new(), "VIEWER")
        .await
        .expect(404);
    // A persona of another tenant is none that exists.
    let foreign = owner_persona(&other).await;
    grant(&tenant.client, &tenant, foreign, "VIEWER")
        .await
        .expect(404);
    remove(&tenant.client, &tenant, foreign).await.expect(404);
    let odd = tenant
        .owner
        .client
        .delete(&format!("{}/x", members_path(&tenant)))
        .call()
        .await
        .expect(400);
    assert_eq!(odd.problem().errors[0].field, "targetPersonaUuid");
    let odd = tenant
        .owner
        .client
        .get("/tenant/tenants/x/members")
        .call()
        .await
        .expect(400);
    assert_eq!(odd.problem().errors[0].field, "tenantUuid");
    tenant
        .owner
        .client
        .get(&format!("/tenant/tenants/{}/members", TenantUuid::new()))
        .call()
        .await
        .expect(404);
    let disagrees = tenant
        .owner
        .client
        .tenant(other.tenant_uuid)
        .get(&members_path(&tenant))
        .call()
        .await;
    assert_eq!(disagrees.expect(403).problem().code, "OTHER_TENANT");
    tenant
        .owner
        .client
        .get(&members_path(&other))
        .call()
        .await
        .expect(404);
}

on_each_database!(last_owner_cannot_be_removed);
async fn last_owner_cannot_be_removed(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let first = owner_persona(&tenant).await;
    let refused = remove(&tenant.client, &tenant, first).await.expect(409);
    assert_eq!(refused.problem().code, "LAST_OWNER");
    grant(&tenant.client, &tenant, first, "ADMIN")
        .await
        .expect(409);
    grant(&tenant.client, &tenant, first, "OWNER")
        .await
        .expect(200);
    // Two owners that go at once: one goes.
    for _ in 0..5 {
        let second = Person::register(&app.client()).await;
        let granted = grant(&tenant.client, &tenant, second.login.persona_uuid, "OWNER")
            .await
            .expect(200);
        let second_client = second.client.tenant(tenant.tenant_uuid);
        let second = persona(&granted);
        let (a, b) = tokio::join!(
            remove(&tenant.client, &tenant, first),
            remove(&second_client, &tenant, second)
        );
        let mut statuses = [a.status.as_u16(), b.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
        if a.status == 200 {
            // The first owner goes on with the test.
            let mut tx = app.app.db.begin().await.expect("a transaction");
            hub_base::db::sql("UPDATE personas SET role = $1 WHERE persona_uuid = $2")
                .bind(("OWNER", first))
                .execute(&mut tx)
                .await
                .expect("a role");
            tx.commit_unaudited("a test's own set-up")
                .await
                .expect("a commit");
            remove(&tenant.client, &tenant, second).await.expect(200);
        }
    }
}
