//! Belonging to a tenant: by whose doing, who sees whom, and how one leaves.

use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_protocol::{PersonaUuid, TenantUuid};
use hub_tests::{Backend, Call, Client, Options, Person, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::passwords::mail_settings;

async fn service(backend: Backend) -> TestApp {
    TestApp::with(
        backend,
        Options {
            settings: mail_settings(),
            ..Options::default()
        },
    )
    .await
}

fn member_path(tenant: &Tenant, persona_uuid: PersonaUuid) -> String {
    format!(
        "/tenant/tenants/{}/members/{persona_uuid}",
        tenant.tenant_uuid
    )
}

async fn tenants(client: &Client) -> Vec<Value> {
    client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200)
        .data()
}

on_each_database!(every_member_may_leave);
async fn every_member_may_leave(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = tenant.member_person(Role::Viewer).await;
    let others = tenant.let_in(&other, Role::Viewer).await;
    for role in [Role::Viewer, Role::Editor, Role::Operator, Role::Admin] {
        for by_persona in [true, false] {
            let person = Person::register(&app.client()).await;
            let persona = tenant.let_in(&person, role).await;
            let client = person.client.tenant(tenant.tenant_uuid);
            if role != Role::Admin {
                client
                    .delete(&member_path(&tenant, others))
                    .call()
                    .await
                    .expect(403);
                client
                    .delete(&format!("/tenant/personas/{others}"))
                    .call()
                    .await
                    .expect(403);
                client
                    .delete(&member_path(&tenant, PersonaUuid::new()))
                    .call()
                    .await
                    .expect(403);
            }
            let path = match by_persona {
                true => format!("/tenant/personas/{persona}"),
                false => member_path(&tenant, persona),
            };
            assert_eq!(client.delete(&path).call().await.expect(200).body, "");
            client.get("/tenant/hubs").call().await.expect(403);
            assert!(tenants(&person.client).await.is_empty());
        }
    }
    let log = tenant
        .client
        .get("/tenant/audit-logs?action=member.leave")
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(log["data"]["totalElements"], 8);
    // A key belongs to nobody who could leave.
    let key = tenant.api_key(json!({"scopes": ["*"]})).await;
    assert_eq!(
        key.client
            .delete(&member_path(&tenant, others))
            .call()
            .await
            .expect(403)
            .problem()
            .code,
        "PERSON_REQUIRED"
    );
}

on_each_database!(tenant_is_never_left_without_an_owner);
async fn tenant_is_never_left_without_an_owner(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let admin = tenant.member_person(Role::Admin).await;
    let admins = tenant.let_in(&admin, Role::Admin).await;
    let mine = tenants(&tenant.owner.client).await[0]["personaUuid"]
        .as_str()
        .expect("a persona")
        .to_owned();
    let mine: PersonaUuid = mine.parse().expect("a uuid");
    for path in [
        member_path(&tenant, mine),
        format!("/tenant/personas/{mine}"),
    ] {
        let refused = tenant
            .client
            .delete(&path)
            .call()
            .await
            .expect(409)
            .problem();
        assert!(
            refused.code == "LAST_OWNER" && refused.message.contains("delete the tenant"),
            "{refused:?}"
        );
    }
    // The last ADMIN may go: an OWNER is left. With a second OWNER the first one may.
    admin
        .client
        .tenant(tenant.tenant_uuid)
        .delete(&member_path(&tenant, admins))
        .call()
        .await
        .expect(200);
    let heir = tenant.member_person(Role::Owner).await;
    tenant
        .client
        .delete(&member_path(&tenant, mine))
        .call()
        .await
        .expect(200);
    heir.client
        .tenant(tenant.tenant_uuid)
        .get("/tenant/hubs")
        .call()
        .await
        .expect(200);
    // Both at once: one stays.
    let tenant = Tenant::create(&app.client()).await;
    let first: PersonaUuid = tenant.let_in(&tenant.owner, Role::Owner).await;
    let second = tenant.member_person(Role::Owner).await;
    let seconds = tenant.let_in(&second, Role::Owner).await;
    let (a, b) = tokio::join!(
        tenant.client.delete(&member_path(&tenant, first)).call(),
        second.client.delete(&member_path(&tenant, seconds)).call()
    );
    let mut statuses = [a.status.as_u16(), b.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}

on_each_database!(emails_of_members_are_for_administrators);
async fn emails_of_members_are_for_administrators(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let members = format!("/tenant/tenants/{}/members", tenant.tenant_uuid);
    let mut emails = vec![tenant.owner.email.clone()];
    let mut people = vec![(Role::Owner, tenant.owner.clone())];
    for role in [Role::Viewer, Role::Editor, Role::Operator, Role::Admin] {
        let person = tenant.member_person(role).await;
        emails.push(person.email.clone());
        people.push((role, person));
    }
    let invited = "guest@example.com";
    tenant
        .client
        .post("/tenant/personas/invite")
        .json(&json!({"email": invited}))
        .call()
        .await
        .expect(200);
    for (role, person) in &people {
        let client = person.client.tenant(tenant.tenant_uuid);
        let listed: Vec<Value> = client.get(&members).call().await.expect(200).data();
        let personas: Value = client
            .get("/tenant/personas")
            .call()
            .await
            .expect(200)
            .data();
        let shown = |list: &[Value]| {
            list.iter()
                .map(|one| one["email"].clone())
                .collect::<Vec<Value>>()
        };
        let in_personas = personas["members"].as_array().expect("a list");
        let invitations = personas["invitations"].as_array().expect("a list");
        if role.allows(hub_identity::authz::permission::MANAGE) {
            assert_eq!(
                shown(&listed),
                emails.iter().map(|email| json!(email)).collect::<Vec<_>>()
            );
            assert_eq!(
                (shown(in_personas), shown(invitations)),
                (shown(&listed), vec![json!(invited)])
            );
        } else {
            assert_eq!(shown(&listed), vec![Value::Null; emails.len()], "{role:?}");
            assert_eq!(
                (shown(in_personas), shown(invitations)),
                (shown(&listed), vec![Value::Null])
            );
        }
    }
    // Nor by way of a tenant of one's own: there one is the administrator of whom one knows.
    let (_, viewer) = &people[1];
    let own = Tenant::create_by(viewer).await;
    let candidates = own
        .client
        .get("/tenant/personas/invite-candidates")
        .call()
        .await
        .expect(200);
    assert_eq!(candidates.json()["data"], json!([]));
    // The audit log tells administrators, and no key.
    let path = "/tenant/audit-logs?action=invitation.create";
    let entry = tenant.client.get(path).call().await.expect(200).json();
    assert_eq!(entry["data"]["content"][0]["after"]["email"], invited);
    let key = tenant.api_key(json!({"scopes": ["audit:read"]})).await;
    let entry = key.client.get(path).call().await.expect(200).json();
    assert_eq!(
        entry["data"]["content"][0]["after"],
        json!({"email": null, "role": "VIEWER"})
    );
}

on_each_database!(requester_of_a_transfer_is_named_to_those_who_decide);
async fn requester_of_a_transfer_is_named_to_those_who_decide(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let second_owner = tenant.member_person(Role::Owner).await;
    let unit = Tenant::create(&app.client()).await;
    let clerk = unit.member_person(Role::Viewer).await;
    let uuid = tenant
        .offer(&json!({"targetTenantUuid": unit.tenant_uuid}))
        .await;
    let email = async |client: &Client, list: &str| {
        let listed: Vec<Value> = client
            .get(&format!("/tenant/transfer-requests/{list}"))
            .call()
            .await
            .expect(200)
            .data();
        assert_eq!(listed.len(), 1);
        listed[0]["requestedByEmail"].clone()
    };
    let requester = json!(tenant.owner.email);
    assert_eq!(email(&tenant.owner.client, "outgoing").await, requester);
    assert_eq!(email(&second_owner.client, "outgoing").await, requester);
    assert_eq!(email(&unit.owner.client, "incoming").await, requester);
    assert_eq!(email(&clerk.client, "incoming").await, Value::Null);
    let path = format!("/tenant/transfer-requests/{uuid}/reject");
    let rejected: Value = clerk.client.post(&path).call().await.expect(200).data();
    assert_eq!(rejected["requestedByEmail"], Value::Null);
    // Somebody who is asked in person knows who asks.
    tenant
        .offer(&json!({"targetPersonaUuid": clerk.login.persona_uuid}))
        .await;
    assert_eq!(email(&clerk.client, "incoming").await, requester);
}

on_each_database!(absent_email_is_null);
/// An issuer that vouches for none leaves the account without.
async fn absent_email_is_null(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let own = Tenant::create_by(&tenant.owner).await;
    let person = Person::register(&app.client()).await;
    tenant.let_in(&person, Role::Admin).await;
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql("UPDATE users SET email = '', issuer = 'https://login.example.com' WHERE user_uuid = $1")
        .bind(person.login.user_uuid)
        .execute(&mut tx)
        .await
        .expect("a change");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    let client = person.client.tenant(tenant.tenant_uuid);
    let me = client.get("/tenant/test").call().await.expect(200).json();
    assert_eq!(me["data"]["user"]["email"], Value::Null);
    let members = format!("/tenant/tenants/{}/members", tenant.tenant_uuid);
    let listed: Vec<Value> = client.get(&members).call().await.expect(200).data();
    assert_eq!(
        (&listed[0]["email"], &listed[1]["email"]),
        (&json!(tenant.owner.email), &Value::Null)
    );
    let candidates = own
        .client
        .get("/tenant/personas/invite-candidates")
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(candidates["data"][0]["email"], Value::Null);
    assert_eq!(
        candidates["data"][0]["userUuid"],
        json!(person.login.user_uuid)
    );
    // Their own tenant, offered to somebody.
    let own = Tenant::create_by(&person).await;
    let offered: Value = person
        .client
        .post(&format!("/tenant/tenants/{}/transfer", own.tenant_uuid))
        .json(&json!({"targetPersonaUuid": tenant.owner.login.persona_uuid}))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(offered["requestedByEmail"], Value::Null);
}

/// Makes the person a member of as many tenants; by somebody else, if one is named.
async fn join_many(app: &TestApp, person: &Person, count: usize, added_by: Option<&Person>) {
    let now = app.app.clock.now();
    let mut tx = app.app.db.begin().await.expect("a transaction");
    for _ in 0..count {
        let tenant_uuid = TenantUuid::new();
        sql("INSERT INTO tenants (tenant_uuid, name, created_at) VALUES ($1, 'x', $2)")
            .bind((tenant_uuid, now))
            .execute(&mut tx)
            .await
            .expect("a tenant");
        sql(
            "INSERT INTO personas (persona_uuid, user_uuid, tenant_uuid, role, created_at, \
             added_by_user_uuid) VALUES ($1, $2, $3, 'VIEWER', $4, $5)",
        )
        .bind((
            Uuid::new_v4(),
            person.login.user_uuid,
            tenant_uuid,
            now,
            added_by.map(|person| person.login.user_uuid),
        ))
        .execute(&mut tx)
        .await
        .expect("a persona");
    }
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
}

on_each_database!(memberships_that_others_give_count_against_nobody);
async fn memberships_that_others_give_count_against_nobody(backend: Backend) {
    let app = service(backend).await;
    let person = Person::register(&app.client()).await;
    let stranger = Person::register(&app.client()).await;
    let own = Tenant::create_by(&person).await;
    join_many(&app, &person, 1001, Some(&stranger)).await;
    // The own tenant is listed, however many came after it.
    let listed = tenants(&person.client).await;
    assert_eq!(listed.len(), 101);
    let mine = listed
        .iter()
        .find(|tenant| tenant["tenantUuid"] == json!(own.tenant_uuid))
        .expect("the own tenant");
    assert_eq!(mine["addedByUserUuid"], Value::Null);
    assert!(
        listed
            .iter()
            .filter(|tenant| tenant["addedByUserUuid"] == json!(stranger.login.user_uuid))
            .count()
            == 100
    );
    let second = Tenant::create_by(&person).await;
    // A thousand of one's own are enough; others may still add one to theirs.
    join_many(&app, &person, 998, None).await;
    let refused = person
        .client
        .post("/tenant/tenants")
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(409);
    assert_eq!(refused.problem().code, "TOO_MANY_TENANTS");
    let theirs = Tenant::create_by(&stranger).await;
    let persona = theirs.let_in(&person, Role::Viewer).await;
    let in_theirs = person.client.tenant(theirs.tenant_uuid);
    in_theirs.get("/tenant/hubs").call().await.expect(200);
    let accept = format!("/tenant/tenants/{}/accept", theirs.tenant_uuid);
    assert_eq!(
        in_theirs
            .post(&accept)
            .call()
            .await
            .expect(409)
            .problem()
            .code,
        "TOO_MANY_TENANTS"
    );
    // Leaving one makes room, and accepting uses it up.
    let heir = Person::register(&app.client()).await;
    second.let_in(&heir, Role::Owner).await;
    let mine = second.let_in(&person, Role::Owner).await;
    person
        .client
        .delete(&member_path(&second, mine))
        .call()
        .await
        .expect(200);
    let accepted: Value = in_theirs.post(&accept).call().await.expect(200).data();
    assert_eq!(
        (&accepted["addedByUserUuid"], &accepted["personaUuid"]),
        (&Value::Null, &json!(persona))
    );
    in_theirs.post(&accept).call().await.expect(200);
    let log = theirs
        .client
        .get("/tenant/audit-logs?action=member.accept")
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(log["data"]["totalElements"], 1, "once");
    person
        .client
        .post("/tenant/tenants")
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(409);
    // Another role changes nothing about who wanted it; coming back by others is theirs again.
    theirs.let_in(&person, Role::Editor).await;
    assert_eq!(
        in_theirs.post(&accept).call().await.expect(200).json()["data"]["addedByUserUuid"],
        Value::Null
    );
    in_theirs
        .delete(&member_path(&theirs, persona))
        .call()
        .await
        .expect(200);
    theirs.let_in(&person, Role::Viewer).await;
    person
        .client
        .post("/tenant/tenants")
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(200);
    app.client().post(&accept).call().await.expect(401);
    Person::register(&app.client())
        .await
        .client
        .post(&accept)
        .call()
        .await
        .expect(404);
}
