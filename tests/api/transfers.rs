//! A tenant changes hands.

use std::sync::atomic::Ordering;

use hub_base::clock::Clock;
use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_protocol::{PersonaUuid, TenantUuid};
use hub_tests::app::set_clock;
use hub_tests::{Backend, Call, Client, Options, Person, Reply, Tenant, TestApp, on_each_database};
use reqwest::header::HeaderName;
use serde_json::{Value, json};
use uuid::Uuid;

async fn offer(client: &Client, tenant: &Tenant, body: &Value) -> Reply {
    client
        .post(&format!("/tenant/tenants/{}/transfer", tenant.tenant_uuid))
        .json(body)
        .call()
        .await
}

async fn step(client: &Client, request_uuid: &str, step: &str) -> Reply {
    client
        .post(&format!("/tenant/transfer-requests/{request_uuid}/{step}"))
        .call()
        .await
}

async fn list(client: &Client, list: &str) -> Vec<Value> {
    client
        .get(&format!("/tenant/transfer-requests/{list}"))
        .call()
        .await
        .expect(200)
        .data()
}

fn to(person: &Person) -> Value {
    json!({"targetPersonaUuid": person.login.persona_uuid})
}

/// The caller's role in the tenant.
async fn role(client: &Client, tenant: &Tenant) -> Option<String> {
    let tenants: Vec<Value> = client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200)
        .data();
    let found = tenants
        .into_iter()
        .find(|other| other["tenantUuid"] == json!(tenant.tenant_uuid))?;
    found["role"].as_str().map(str::to_owned)
}

on_each_database!(accepted_transfer_changes_the_owner);
async fn accepted_transfer_changes_the_owner(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let heir = Person::register(&app.client()).await;
    let body = json!({"targetPersonaUuid": heir.login.persona_uuid, "message": " Take good care.\nIt is old. 🐝 "});
    let reply = offer(&tenant.owner.client, &tenant, &body)
        .await
        .expect(200)
        .json();
    let request = &reply["data"];
    assert_eq!(request["status"], "PENDING");
    assert_eq!(request["tenantUuid"], json!(tenant.tenant_uuid));
    assert_eq!(
        request["tenantName"],
        json!(format!("Tenant of {}", tenant.owner.email))
    );
    assert_eq!(request["requestedByEmail"], json!(tenant.owner.email));
    assert_eq!(request["message"], "Take good care.\nIt is old. 🐝");
    assert_eq!(
        (&request["targetTenantUuid"], &request["settledAt"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(list(&heir.client, "incoming").await, vec![request.clone()]);
    assert_eq!(
        list(&tenant.owner.client, "outgoing").await,
        vec![request.clone()]
    );
    assert_eq!(
        role(&heir.client, &tenant).await,
        None,
        "to be offered something is not to have it"
    );

    let request_uuid = request["requestUuid"].as_str().expect("a uuid");
    let accepted = step(&heir.client, request_uuid, "accept")
        .await
        .expect(200)
        .json();
    assert_eq!(accepted["data"]["status"], "ACCEPTED");
    assert!(accepted["data"]["settledAt"].is_string());
    assert_eq!(role(&heir.client, &tenant).await.as_deref(), Some("OWNER"));
    assert_eq!(
        role(&tenant.owner.client, &tenant).await.as_deref(),
        Some("ADMIN")
    );
    assert!(list(&heir.client, "incoming").await.is_empty());
    assert!(list(&tenant.owner.client, "outgoing").await.is_empty());
    // At once, and not the other way round any more.
    offer(&tenant.owner.client, &tenant, &to(&heir))
        .await
        .expect(403);
    let back = offer(&heir.client, &tenant, &to(&tenant.owner))
        .await
        .expect(200)
        .json();
    let back = back["data"]["requestUuid"].as_str().expect("a uuid");
    step(&tenant.owner.client, back, "reject").await.expect(200);
    assert_eq!(
        role(&tenant.owner.client, &tenant).await.as_deref(),
        Some("ADMIN")
    );
    for (client, move_, code) in [
        (&heir.client, "accept", "TRANSFER_ACCEPTED"),
        (&heir.client, "reject", "TRANSFER_ACCEPTED"),
        (&tenant.owner.client, "cancel", "TRANSFER_ACCEPTED"),
    ] {
        assert_eq!(
            step(client, request_uuid, move_)
                .await
                .expect(409)
                .problem()
                .code,
            code
        );
    }
    assert_eq!(
        step(&heir.client, back, "cancel")
            .await
            .expect(409)
            .problem()
            .code,
        "TRANSFER_REJECTED"
    );
}

on_each_database!(transfer_to_a_member_or_to_a_unit_can_be_accepted);
async fn transfer_to_a_member_or_to_a_unit_can_be_accepted(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    // By the persona a member has here, too.
    let viewer = Person::register(&app.client()).await;
    let in_tenant = tenant.let_in(&viewer, Role::Viewer).await;
    let request_uuid = tenant.offer(&json!({"targetPersonaUuid": in_tenant})).await;
    step(&viewer.client, &request_uuid, "accept")
        .await
        .expect(200);
    assert_eq!(
        role(&viewer.client, &tenant).await.as_deref(),
        Some("OWNER")
    );

    let unit = Tenant::create(&app.client()).await;
    let clerk = unit.member_person(Role::Viewer).await;
    let body = json!({"targetTenantUuid": unit.tenant_uuid});
    let request_uuid = offer(&viewer.client, &tenant, &body)
        .await
        .expect(200)
        .json()["data"]["requestUuid"]
        .clone();
    let request_uuid = request_uuid.as_str().expect("a uuid").to_owned();
    for member in [&clerk, &unit.owner] {
        let incoming = list(&member.client, "incoming").await;
        assert_eq!(
            (incoming.len(), &incoming[0]["requestUuid"]),
            (1, &json!(request_uuid))
        );
    }
    step(&clerk.client, &request_uuid, "accept")
        .await
        .expect(200);
    assert_eq!(role(&clerk.client, &tenant).await.as_deref(), Some("OWNER"));
    assert_eq!(
        role(&unit.owner.client, &tenant).await,
        None,
        "whoever accepts gets it, and nobody else"
    );
    assert_eq!(
        step(&unit.owner.client, &request_uuid, "reject")
            .await
            .expect(409)
            .problem()
            .code,
        "TRANSFER_ACCEPTED"
    );
}

on_each_database!(transfer_actions_are_limited_to_their_party);
async fn transfer_actions_are_limited_to_their_party(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let admin = tenant.member_person(Role::Admin).await;
    let second_owner = tenant.member_person(Role::Owner).await;
    let heir = Person::register(&app.client()).await;
    let stranger = Person::register(&app.client()).await;
    let request_uuid = tenant.offer(&to(&heir)).await;
    for nobody in [&stranger, &admin] {
        for move_ in ["accept", "reject", "cancel"] {
            step(&nobody.client, &request_uuid, move_).await.expect(404);
        }
    }
    for (person, move_) in [
        (&heir, "cancel"),
        (&tenant.owner, "accept"),
        (&tenant.owner, "reject"),
        (&second_owner, "accept"),
    ] {
        assert_eq!(
            step(&person.client, &request_uuid, move_)
                .await
                .expect(403)
                .problem()
                .code,
            "PERMISSION_DENIED"
        );
    }
    assert_eq!(list(&second_owner.client, "outgoing").await.len(), 1);
    assert!(
        list(&admin.client, "outgoing").await.is_empty()
            && list(&admin.client, "incoming").await.is_empty()
    );
    step(&second_owner.client, &request_uuid, "cancel")
        .await
        .expect(200);
    assert_eq!(
        step(&heir.client, &request_uuid, "accept")
            .await
            .expect(409)
            .problem()
            .code,
        "TRANSFER_CANCELLED"
    );
    // A member of the receiving unit who asked may not accept for it; the others may.
    let unit = Tenant::create(&app.client()).await;
    unit.let_in(&tenant.owner, Role::Admin).await;
    let request_uuid = tenant
        .offer(&json!({"targetTenantUuid": unit.tenant_uuid}))
        .await;
    step(&tenant.owner.client, &request_uuid, "accept")
        .await
        .expect(403);
    step(&unit.owner.client, &request_uuid, "accept")
        .await
        .expect(200);
    // Who left the unit has no part in it any more.
    let unit = Tenant::create(&app.client()).await;
    let clerk = unit.member_person(Role::Viewer).await;
    let persona_uuid = unit.let_in(&clerk, Role::Viewer).await;
    let tenant = Tenant::create(&app.client()).await;
    let request_uuid = tenant
        .offer(&json!({"targetTenantUuid": unit.tenant_uuid}))
        .await;
    let member = format!(
        "/tenant/tenants/{}/members/{persona_uuid}",
        unit.tenant_uuid
    );
    unit.client.delete(&member).call().await.expect(200);
    step(&clerk.client, &request_uuid, "accept")
        .await
        .expect(404);
    assert!(list(&clerk.client, "incoming").await.is_empty());
}

on_each_database!(invalid_transfer_is_refused_by_name);
async fn invalid_transfer_is_refused_by_name(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let own = Tenant::create_by(&tenant.owner).await;
    let someone = Person::register(&app.client()).await;
    let owner = &tenant.owner.client;
    for (body, field) in [
        (json!({}), "targetPersonaUuid"),
        (
            json!({"targetPersonaUuid": null, "targetTenantUuid": null}),
            "targetPersonaUuid",
        ),
        (json!({"targetPersonaUuid": "x"}), "targetPersonaUuid"),
        (json!({"targetTenantUuid": 7}), "targetTenantUuid"),
        (
            json!({"targetPersonaUuid": someone.login.persona_uuid, "targetTenantUuid": other.tenant_uuid}),
            "targetTenantUuid",
        ),
        (
            json!({"targetPersonaUuid": someone.login.persona_uuid, "message": 1}),
            "message",
        ),
        (
            json!({"targetPersonaUuid": someone.login.persona_uuid, "message": "a\u{0}"}),
            "message",
        ),
        (
            json!({"targetPersonaUuid": someone.login.persona_uuid, "message": "é".repeat(1001)}),
            "message",
        ),
    ] {
        let problem = offer(owner, &tenant, &body).await.expect(400).problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    // Somebody's persona in another tenant is none that exists.
    let foreign = other.let_in(&someone, Role::Viewer).await;
    for body in [
        json!({"targetPersonaUuid": PersonaUuid::new()}),
        json!({"targetPersonaUuid": foreign}),
        json!({"targetTenantUuid": TenantUuid::new()}),
    ] {
        offer(owner, &tenant, &body).await.expect(404);
    }
    let mine = tenant.let_in(&tenant.owner, Role::Owner).await;
    for body in [
        to(&tenant.owner),
        json!({"targetPersonaUuid": mine}),
        json!({"targetTenantUuid": tenant.tenant_uuid}),
        json!({"targetTenantUuid": own.tenant_uuid}),
    ] {
        assert_eq!(
            offer(owner, &tenant, &body)
                .await
                .expect(409)
                .problem()
                .code,
            "TRANSFER_TO_SELF",
            "{body}"
        );
    }
    let admin = tenant.member(Role::Admin).await;
    offer(&admin, &tenant, &to(&someone)).await.expect(403);
    offer(&other.owner.client, &tenant, &to(&someone))
        .await
        .expect(404);
    let request_uuid = tenant.offer(&to(&someone)).await;
    assert_eq!(
        offer(owner, &tenant, &to(&someone))
            .await
            .expect(409)
            .problem()
            .code,
        "TRANSFER_PENDING"
    );
    step(owner, &request_uuid, "cancel").await.expect(200);
    tenant.offer(&to(&someone)).await;

    let odd = owner
        .post("/tenant/transfer-requests/x/accept")
        .call()
        .await
        .expect(400);
    assert_eq!(odd.problem().errors[0].field, "requestUuid");
    step(owner, &Uuid::new_v4().to_string(), "accept")
        .await
        .expect(404);
    // A key is nobody.
    let key = tenant.stored_api_key(&app, "*").await;
    let key = app
        .client()
        .header(HeaderName::from_static("x-api-key"), &key)
        .tenant(tenant.tenant_uuid);
    for move_ in ["accept", "reject", "cancel"] {
        assert_eq!(
            step(&key, &request_uuid, move_)
                .await
                .expect(403)
                .problem()
                .code,
            "PERSON_REQUIRED"
        );
    }
    for list in ["incoming", "outgoing"] {
        key.get(&format!("/tenant/transfer-requests/{list}"))
            .call()
            .await
            .expect(403);
    }
    offer(&key, &tenant, &to(&someone)).await.expect(403);
    key.delete(&format!("/tenant/tenants/{}", tenant.tenant_uuid))
        .call()
        .await
        .expect(403);
    key.patch(&format!("/tenant/tenants/{}", tenant.tenant_uuid))
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(403);
}

on_each_database!(transfer_expires_after_seven_days);
async fn transfer_expires_after_seven_days(backend: Backend) {
    let (clock, micros) = set_clock(Clock::System.now());
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let mut heir = Person::register(&app.client()).await;
    let mut owner = tenant.owner.clone();
    let requests = [tenant.offer(&to(&heir)).await];
    for _ in 0..2 {
        micros.fetch_add(7 * 24 * 3600 * 1_000_000 / 2 - 1, Ordering::Relaxed);
        for person in [&mut heir, &mut owner] {
            let body = json!({"refreshToken": person.login.refresh_token});
            person.login = app
                .client()
                .post("/auth/refresh")
                .json(&body)
                .call()
                .await
                .expect(200)
                .data();
            person.client = app.client().bearer(&person.login.access_token);
        }
        assert_eq!(list(&heir.client, "incoming").await.len(), 1);
    }
    micros.fetch_add(2, Ordering::Relaxed);
    assert!(
        list(&heir.client, "incoming").await.is_empty()
            && list(&owner.client, "outgoing").await.is_empty()
    );
    for (client, move_) in [
        (&heir.client, "accept"),
        (&heir.client, "reject"),
        (&owner.client, "cancel"),
        (&heir.client, "accept"),
    ] {
        assert_eq!(
            step(client, &requests[0], move_)
                .await
                .expect(409)
                .problem()
                .code,
            "TRANSFER_EXPIRED"
        );
    }
    // An offer that ran out unseen is in nobody's way.
    let next = offer(&owner.client, &tenant, &to(&heir))
        .await
        .expect(200)
        .json();
    micros.fetch_add(7 * 24 * 3600 * 1_000_000, Ordering::Relaxed);
    for person in [&mut heir, &mut owner] {
        let body = json!({"refreshToken": person.login.refresh_token});
        person.login = app
            .client()
            .post("/auth/refresh")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        person.client = app.client().bearer(&person.login.access_token);
    }
    offer(&owner.client, &tenant, &to(&heir)).await.expect(200);
    let next = next["data"]["requestUuid"].as_str().expect("a uuid");
    assert_eq!(
        step(&heir.client, next, "accept")
            .await
            .expect(409)
            .problem()
            .code,
        "TRANSFER_EXPIRED"
    );
    let mut conn = app.app.db.read().await.expect("a connection");
    let entries = sql("SELECT COUNT(*) FROM audit_logs WHERE action = 'transfer.expire'");
    assert_eq!(
        entries.one::<(i64,)>(&mut conn).await.expect("a count"),
        (2,),
        "noted once each"
    );
}

on_each_database!(former_owner_cannot_transfer);
async fn former_owner_cannot_transfer(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let heir = Person::register(&app.client()).await;
    let second_owner = tenant.member_person(Role::Owner).await;
    let request_uuid = tenant.offer(&to(&heir)).await;
    let persona_uuid = tenant.let_in(&tenant.owner, Role::Owner).await;
    let members = format!("/tenant/tenants/{}/members", tenant.tenant_uuid);
    second_owner
        .client
        .delete(&format!("{members}/{persona_uuid}"))
        .call()
        .await
        .expect(200);
    let refused = step(&heir.client, &request_uuid, "accept")
        .await
        .expect(409);
    assert_eq!(refused.problem().code, "REQUESTER_NOT_OWNER");
    assert_eq!(role(&heir.client, &tenant).await, None);
    // It is still pending, and the owner who is left may make room for another.
    assert_eq!(
        offer(&second_owner.client, &tenant, &to(&heir))
            .await
            .expect(409)
            .problem()
            .code,
        "TRANSFER_PENDING"
    );
    step(&second_owner.client, &request_uuid, "cancel")
        .await
        .expect(200);
    let next = offer(&second_owner.client, &tenant, &to(&heir))
        .await
        .expect(200)
        .json();
    step(
        &heir.client,
        next["data"]["requestUuid"].as_str().expect("a uuid"),
        "accept",
    )
    .await
    .expect(200);
}

on_each_database!(transfer_is_resolved_once);
/// Of many who accept, reject and cancel at once, at two replicas where there can be two, one does.
async fn transfer_is_resolved_once(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = match backend {
        Backend::Postgres => Some(TestApp::replica_of(&app, Options::default()).await),
        Backend::Sqlite => None,
    };
    let far = replica.as_ref().unwrap_or(&app).url.clone();
    let owner = Person::register(&app.client()).await;
    let unit = Tenant::create(&app.client()).await;
    let clerks = [
        unit.member_person(Role::Viewer).await,
        unit.member_person(Role::Editor).await,
        unit.owner.clone(),
    ];
    let mut outcomes = std::collections::BTreeMap::<String, usize>::new();
    for round in 0..8 {
        let tenant = Tenant::create_by(&owner).await;
        let second_owner = Person::register(&app.client()).await;
        tenant.let_in(&second_owner, Role::Owner).await;
        let request_uuid = tenant
            .offer(&json!({"targetTenantUuid": unit.tenant_uuid}))
            .await;
        let mut moves = Vec::new();
        for (index, clerk) in clerks.iter().enumerate() {
            let (near, far) = (clerk.client.clone(), clerk.client.at(&far));
            moves.push((near.clone(), "accept"));
            moves.push((
                far.clone(),
                if index % 2 == 0 { "reject" } else { "accept" },
            ));
            moves.push((far, "accept"));
        }
        moves.push((owner.client.at(&far), "cancel"));
        moves.push((second_owner.client.clone(), "cancel"));
        // Each gets to be first.
        moves.rotate_left(round % 11);
        let moves = moves
            .iter()
            .map(|(client, move_)| step(client, &request_uuid, move_));
        let replies = futures_util::future::join_all(moves).await;
        let won: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 200).collect();
        assert_eq!(won.len(), 1, "{replies:#?}");
        let status = won[0].json()["data"]["status"]
            .as_str()
            .expect("a status")
            .to_owned();
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            assert_eq!(
                reply.clone().expect(409).problem().code,
                format!("TRANSFER_{status}")
            );
        }
        let mut new_owners = 0;
        for clerk in &clerks {
            new_owners +=
                usize::from(role(&clerk.client, &tenant).await.as_deref() == Some("OWNER"));
        }
        let accepted = status == "ACCEPTED";
        assert_eq!(new_owners, usize::from(accepted));
        assert_eq!(
            role(&owner.client, &tenant).await.as_deref(),
            Some(if accepted { "ADMIN" } else { "OWNER" })
        );
        *outcomes.entry(status).or_default() += 1;
    }
    println!("{outcomes:?}");
    // Of an offer that is accepted and a tenant that is deleted in the same moment, one comes
    // about.
    for _ in 0..5 {
        let tenant = Tenant::create_by(&owner).await;
        let request_uuid = tenant.offer(&to(&clerks[0])).await;
        let accepting = clerks[0].client.at(&far);
        let deleting = owner
            .client
            .delete(&format!("/tenant/tenants/{}", tenant.tenant_uuid));
        let (accepted, deleted) =
            tokio::join!(step(&accepting, &request_uuid, "accept"), deleting.call());
        let statuses = (accepted.status.as_u16(), deleted.status.as_u16());
        assert!(
            matches!(statuses, (200, 403) | (404, 200)),
            "{accepted:?} {deleted:?}"
        );
    }
    // Of offers made at once, one stands.
    let tenant = Tenant::create_by(&owner).await;
    let offers = (0..6).map(|index| {
        let client = if index % 2 == 0 {
            owner.client.clone()
        } else {
            owner.client.at(&far)
        };
        let (tenant, body) = (&tenant, to(&clerks[0]));
        async move { offer(&client, tenant, &body).await }
    });
    let replies = futures_util::future::join_all(offers).await;
    assert_eq!(
        replies.iter().filter(|reply| reply.status == 200).count(),
        1,
        "{replies:#?}"
    );
    assert!(
        replies
            .iter()
            .all(|reply| matches!(reply.status.as_u16(), 200 | 409)),
        "{replies:#?}"
    );
}
