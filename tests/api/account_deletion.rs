//! `DELETE /app/profile`: that nobody gets in any more, and that nothing is left of the person in
//! any table, whatever suppliers and the power supply do meanwhile.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hub_base::db::sql;
use hub_cloud::upkeep;
use hub_composed::retention;
use hub_core::tasks::Task;
use hub_identity::authz::permission::Role;
use hub_tests::devices::{make_device, make_model, put_readings, put_state};
use hub_tests::events;
use hub_tests::issuer::{OwnIssuer, SigningKey};
use hub_tests::people::PASSWORD;
use hub_tests::{
    Backend, Call, Cloud, Options, Person, SimulatedHub, SupplierAnswer, Tenant, TestApp, hub,
    on_each_database,
};
use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use uuid::Uuid;

use super::supplier_links::Linking;
use crate::contract::dump::Dumper;

const OWN_ADDRESS: &str = "C4:11:7D:DA:71:13";
const SHARED_ADDRESS: &str = "C4:11:7D:DA:71:14";
const MARK: &str = "the-log-of-their-hub";

async fn delete(client: &hub_tests::Client, body: Value) -> hub_tests::Reply {
    client.delete("/app/profile").json(&body).call().await
}

fn confirmed() -> Value {
    json!({"currentPassword": PASSWORD})
}

async fn hub_of(app: &TestApp, tenant: &Tenant, person: &Person) -> SimulatedHub {
    let body = json!({"ownerUserUuid": person.login.user_uuid, "note": "for a good customer"});
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

/// Uploads one event of each device and notes which device it was.
async fn hear(
    app: &TestApp,
    tenant: &Tenant,
    hub: &SimulatedHub,
    model: Uuid,
    heard: &[(&str, i64)],
) {
    for (address, device) in heard {
        let last = events::last_id(&app.app.db, tenant.tenant_uuid).await;
        let event = json!({"observedAt": app.app.clock.now(), "address": address, "rssi": -60});
        let body = json!({"batchUuid": Uuid::new_v4(), "events": [event]});
        hub.client
            .post("/v1/ble/events")
            .json(&body)
            .call()
            .await
            .expect(201);
        put_readings(
            app,
            tenant,
            last,
            *device,
            model,
            &[json!({"temperature": 21.5})],
        )
        .await;
    }
}

async fn count(app: &TestApp, text: &'static str) -> i64 {
    sql(text)
        .scalar(&mut app.app.db.read().await.expect("a connection"))
        .await
        .expect("a number")
}

/// Carries out background work until the account is gone. The time of the service goes on.
async fn wait_until_gone(linking: &Linking) {
    let worker = tokio::spawn(upkeep::run(linking.app.app.clone()));
    for _ in 0..600 {
        if count(&linking.app, "SELECT COUNT(*) FROM account_deletions").await == 0 {
            worker.abort();
            return;
        }
        linking.micros.fetch_add(2_000_000, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the account is still there");
}

/// The texts that a row may have of a uuid: SQLite keeps it as bytes.
fn spellings(uuid: Uuid) -> Vec<String> {
    vec![uuid.to_string(), format!("{:?}", uuid.as_bytes())]
}

async fn found(app: &TestApp, traces: &[String]) -> Vec<String> {
    let dump = Dumper::of_everything(app).await.dump().await;
    let rows = dump
        .iter()
        .flat_map(|(table, rows)| rows.iter().map(move |row| (table, row)));
    let mut found = Vec::new();
    for (table, row) in rows {
        let texts = traces.iter().filter(|trace| row.contains(trace.as_str()));
        found.extend(texts.map(|trace| format!("{trace} in {table}: {row}")));
    }
    found
}

/// What a partner and the person themselves have brought: a place in a project, and a command.
async fn take_part(app: &TestApp, tenant: &Tenant, person: &Person, device_instance_id: i64) {
    let now = app.app.clock.now();
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql(
        "INSERT INTO partner_projects (project_id, name, created_at, updated_at) \
         VALUES ('p1', 'A house', $1, $1)",
    )
    .bind(now)
    .run(&mut tx)
    .await
    .expect("a project");
    sql(
        "INSERT INTO partner_project_members (project_id, persona_uuid, role) \
         VALUES ('p1', $1, 'MEMBER')",
    )
    .bind(person.login.persona_uuid)
    .run(&mut tx)
    .await
    .expect("a member");
    sql(
        "INSERT INTO device_commands (command_uuid, tenant_uuid, device_instance_id, author_uuid, \
         action_id, deadline_at, created_at) VALUES ($1, $2, $3, $4, 'on', $5, $5)",
    )
    .bind((
        Uuid::new_v4(),
        tenant.tenant_uuid,
        device_instance_id,
        person.login.user_uuid.0,
        now,
    ))
    .run(&mut tx)
    .await
    .expect("a command");
    tx.commit_unaudited("a test").await.expect("a commit");
}

on_each_database!(nothing_of_the_person_is_left_in_any_table);
async fn nothing_of_the_person_is_left_in_any_table(backend: Backend) {
    let linking = Linking::new(backend).await;
    let (app, tenant, person) = (&linking.app, &linking.tenant, &linking.person);
    let sub = format!("sub-{}", Uuid::new_v4().simple());
    linking
        .supplier
        .say("/me", SupplierAnswer::json(200, json!({"sub": sub})));
    linking.link().await;
    let profile = json!({"nickname": "Ada Byron", "phone": "+4930901820", "avatarUrl": "https://example.com/ada.png"});
    person
        .client
        .put("/app/profile")
        .json(&profile)
        .call()
        .await
        .expect(200);
    // Of the supplier: a member who made a key, consent with a retention, codes, hubs and devices.
    let persona = tenant.let_in(person, Role::Admin).await;
    let key = json!({"name": "ERP", "scopes": ["hubs:read"]});
    person
        .client
        .tenant(tenant.tenant_uuid)
        .post("/tenant/api-keys")
        .json(&key)
        .call()
        .await
        .expect(201);
    let asked = json!({"version": "1", "text": "We read your sensors.", "selfPairing": true, "enforce": false,
        "purposes": [{"key": "monitoring", "title": "Show you values", "required": true}]});
    tenant
        .client
        .post("/tenant/consent-settings")
        .json(&asked)
        .call()
        .await
        .expect(200);
    let grant =
        json!({"supplierUuid": tenant.tenant_uuid, "version": "1", "purposes": ["monitoring"]});
    let consent: Value = person
        .client
        .post("/app/consent")
        .json(&grant)
        .call()
        .await
        .expect(200)
        .data();
    let retention = format!("/app/consent/{}/retention", consent["consentId"]);
    person
        .client
        .put(&retention)
        .json(&json!({"retentionDays": 90}))
        .call()
        .await
        .expect(200);
    let pairing = json!({"supplierUuid": tenant.tenant_uuid});
    person
        .client
        .post("/app/hubs/pairing-codes")
        .json(&pairing)
        .call()
        .await
        .expect(200);
    let (own, other) = (
        hub_of(app, tenant, person).await,
        Person::register(&app.client()).await,
    );
    let neighbour = hub_of(app, tenant, &other).await;
    let lent = format!("/tenant/hubs/{}/setup-delegations", neighbour.hub_uuid);
    tenant
        .client
        .post(&lent)
        .json(&json!({"email": person.email}))
        .call()
        .await
        .expect(200);
    let model = make_model(tenant, "Thermometer").await;
    let device = async |address: &str, name: &str| -> i64 {
        let made = make_device(tenant, model, json!({"address": address, "name": name})).await;
        made["deviceInstanceId"].as_i64().expect("an id")
    };
    let alone = device(OWN_ADDRESS, "In Ada's bedroom").await;
    let shared = device(SHARED_ADDRESS, "On the stairs").await;
    hear(
        app,
        tenant,
        &own,
        model,
        &[(OWN_ADDRESS, alone), (SHARED_ADDRESS, shared)],
    )
    .await;
    hear(app, tenant, &neighbour, model, &[(SHARED_ADDRESS, shared)]).await;
    for id in [alone, shared] {
        put_state(
            app,
            tenant,
            id,
            own.hub_uuid,
            app.app.clock.now(),
            &json!({}),
        )
        .await;
    }
    take_part(app, tenant, person, shared).await;
    let uploads = [
        ("logs", json!([{"message": MARK}])),
        ("telemetry", json!({"where": MARK})),
    ];
    for (kind, body) in uploads {
        own.client
            .post(&format!("/v1/hubs/{}/{kind}", own.hub_uuid))
            .json(&body)
            .call()
            .await
            .expect(204);
    }

    let user_uuid = person.login.user_uuid.0;
    let names = [
        &person.email,
        "Ada Byron",
        "+4930901820",
        "ada.png",
        &sub,
        OWN_ADDRESS,
        "In Ada's bedroom",
        MARK,
    ];
    let mut traces: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let uuids = [user_uuid, person.login.persona_uuid.0, persona.0];
    traces.extend(uuids.into_iter().map(|uuid| uuid.to_string()));
    if backend == Backend::Sqlite {
        traces.extend(uuids.into_iter().flat_map(spellings));
    }
    let before = found(app, &traces).await;
    for trace in &traces {
        let is_found = before.iter().any(|found| found.starts_with(trace.as_str()));
        // The uuid of the default persona is kept in one form alone.
        assert!(
            is_found || trace.starts_with('[') || backend == Backend::Sqlite,
            "{trace} is nowhere to begin with"
        );
    }
    let others_before = found(app, &[other.email.clone(), SHARED_ADDRESS.to_owned()])
        .await
        .len();

    delete(&person.client, json!({})).await.expect(400);
    delete(&person.client, json!({"currentPassword": "a wrong guess"}))
        .await
        .expect(403);
    person.client.get("/app/profile").call().await.expect(200);
    delete(&person.client, confirmed()).await.expect(204);
    person.client.get("/app/profile").call().await.expect(401);
    delete(&person.client, confirmed()).await.expect(401);
    let login = json!({"email": person.email, "password": PASSWORD});
    app.client()
        .post("/auth/login")
        .json(&login)
        .call()
        .await
        .expect(401);
    let refresh = json!({"refreshToken": person.login.refresh_token});
    app.client()
        .post("/auth/refresh")
        .json(&refresh)
        .call()
        .await
        .expect(401);
    // The attempt to log in was counted; that is of whoever made it.
    wait_until_gone(&linking).await;

    let left = found(app, &traces).await;
    assert!(
        left.is_empty(),
        "{} traces are left:\n{}",
        left.len(),
        left.join("\n")
    );
    for kind in retention::KINDS {
        let task = Task {
            task_uuid: Uuid::new_v4(),
            kind: kind.to_owned(),
            payload: json!({}),
            attempts: 1,
        };
        let _ = upkeep::perform(app.app.clone(), task).await;
    }
    assert_eq!(found(app, &traces).await, Vec::<String>::new());
    // Nothing of anybody else went with it.
    let others = found(app, &[other.email.clone(), SHARED_ADDRESS.to_owned()])
        .await
        .len();
    assert!(
        others + 1 >= others_before && others > 2,
        "{others_before} before, {others} now"
    );
    other
        .client
        .get(&format!("/app/hubs/{}", neighbour.hub_uuid))
        .call()
        .await
        .expect(200);
    own.client
        .get(&format!("/v1/hubs/{}/desired-state", own.hub_uuid))
        .call()
        .await
        .expect(401);
    let revoked = linking.supplier.take("/revoke");
    assert!(
        !revoked.is_empty(),
        "the supplier was asked to revoke the tokens"
    );
    // The log says that somebody went and what the same somebody did, and not who it was.
    let gone = count(
        app,
        "SELECT COUNT(*) FROM audit_logs WHERE action = 'user.delete'",
    )
    .await;
    let theirs = count(
        app,
        "SELECT COUNT(*) FROM audit_logs a JOIN audit_logs d ON d.action = 'user.delete' \
         AND a.actor_key = 'USER:' || d.target",
    )
    .await;
    assert!(gone == 1 && theirs > 5, "{gone}, {theirs}");
    let mut tx = app.app.db.begin().await.expect("a transaction");
    let rewritten = sql("UPDATE audit_logs SET target = 'x' WHERE action = 'user.delete'")
        .execute(&mut tx)
        .await;
    assert!(rewritten.is_err(), "the log is closed again");
    // The address is free for another account.
    drop(tx);
    let body = json!({"email": person.email, "password": PASSWORD});
    app.client()
        .post("/auth/register")
        .json(&body)
        .call()
        .await
        .expect(201);
}

on_each_database!(a_supplier_that_hangs_does_not_keep_the_account);
async fn a_supplier_that_hangs_does_not_keep_the_account(backend: Backend) {
    let linking = Linking::new(backend).await;
    linking.link().await;
    linking.supplier.say("/revoke", SupplierAnswer::never());
    let began = std::time::Instant::now();
    delete(&linking.person.client, confirmed())
        .await
        .expect(204);
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "nobody waits for the supplier"
    );
    let at = linking.app.app.clock.now();
    wait_until_gone(&linking).await;
    assert!(
        linking.app.app.clock.now() >= at.plus_secs(600),
        "it was waited for"
    );
    let traces = spellings(linking.person.login.user_uuid.0);
    assert_eq!(found(&linking.app, &traces).await, Vec::<String>::new());
    assert_eq!(
        count(&linking.app, "SELECT COUNT(*) FROM supplier_links").await,
        0
    );
}

on_each_database!(who_is_needed_does_not_go);
async fn who_is_needed_does_not_go(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let refused = delete(&tenant.owner.client, confirmed())
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "LAST_OWNER");
    assert!(refused.message.contains("Tenant of"), "{}", refused.message);
    tenant
        .owner
        .client
        .get("/app/profile")
        .call()
        .await
        .expect(200);
    let admin = Person::register(&app.client()).await;
    let refused = delete(&admin.as_platform_admin(&app), confirmed())
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "PLATFORM_ADMIN");
    // With another owner, the first may go.
    let second = Person::register(&app.client()).await;
    tenant.let_in(&second, Role::Owner).await;
    delete(&tenant.owner.client, confirmed()).await.expect(204);
    let members: Value = second
        .client
        .tenant(tenant.tenant_uuid)
        .get("/tenant/personas")
        .call()
        .await
        .expect(200)
        .data();
    assert!(
        !members.to_string().contains(&tenant.owner.email),
        "{members}"
    );
    for body in [
        "",
        "[]",
        "{\"currentPassword\": 7}",
        "{\"userUuid\": \"x\"}",
    ] {
        let request = admin
            .client
            .delete("/app/profile")
            .header("content-type", "application/json")
            .body(body);
        request.call().await.expect(400);
    }
    // Guesses at the password are slowed.
    let guess = json!({"currentPassword": "a wrong guess"});
    let mut slowed = false;
    for _ in 0..8 {
        slowed |= delete(&admin.client, guess.clone()).await.status == 429;
    }
    assert!(slowed, "eight guesses in a row");
}

on_each_database!(tokens_of_another_issuer_open_no_account_that_was_deleted);
async fn tokens_of_another_issuer_open_no_account_that_was_deleted(backend: Backend) {
    let key = SigningKey::new(Algorithm::RS256);
    let issuer = OwnIssuer::start(std::slice::from_ref(&key)).await;
    let options = Options {
        settings: issuer.settings(),
        ..Options::default()
    };
    let app = TestApp::with(backend, options.clone()).await;
    let now = app.app.clock.now().as_secs();
    let old = app.client().bearer(&key.sign(&issuer.claims("ada", now)));
    let profile: Value = old.get("/app/profile").call().await.expect(200).data();
    delete(&old, json!({})).await.expect(400);
    delete(&old, json!({"userUuid": Uuid::new_v4()}))
        .await
        .expect(400);
    delete(&old, json!({"userUuid": profile["userUuid"]}))
        .await
        .expect(204);
    // On another replica too, which has never seen the token.
    let replica = TestApp::replica_of(&app, options).await;
    for client in [&old, &old.at(&replica.url)] {
        client.get("/app/profile").call().await.expect(401);
    }
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let later = app.app.clock.now().as_secs();
    let mut claims = issuer.claims("ada", later);
    claims["iat"] = json!(later);
    let again: Value = app
        .client()
        .bearer(&key.sign(&claims))
        .get("/app/profile")
        .call()
        .await
        .expect(200)
        .data();
    assert_ne!(
        again["userUuid"], profile["userUuid"],
        "whoever comes back is somebody new"
    );
}

/// Events of the hub that is being left.
const BATCHES: usize = 20;

on_each_database!(a_deletion_goes_on_after_any_number_of_kills);
async fn a_deletion_goes_on_after_any_number_of_kills(backend: Backend) {
    let mut cloud = Cloud::start(backend, &["--trusted-proxies", "127.0.0.1/32"]).await;
    let client = hub_tests::Client::new(&cloud.url);
    let tenant = Tenant::create(&client).await;
    let person = Person::register(&client).await;
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
    let own = SimulatedHub::claim_with(&client, code, &Uuid::new_v4().to_string()).await;
    let stays = SimulatedHub::claim(&tenant).await;
    for _ in 0..BATCHES {
        own.upload(&hub::events(1000)).await.expect(201);
    }
    stays.upload_events(100).await;
    delete(&person.client, confirmed()).await.expect(204);
    for millis in [1, 150, 400] {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        cloud.crash().await;
    }
    let events = |hub: &SimulatedHub| format!("/tenant/ble/events?size=1&hubUuid={}", hub.hub_uuid);
    let total = async |path: String| -> i64 {
        let reply = tenant.client.get(&path).call().await.expect(200);
        reply.header("x-total-count").parse().expect("a number")
    };
    for _ in 0..6000 {
        let audited: Value = tenant
            .client
            .get("/tenant/audit-logs?size=100")
            .call()
            .await
            .expect(200)
            .data();
        let is_named = audited
            .to_string()
            .contains(&person.login.user_uuid.to_string());
        if total(events(&own)).await == 0 && !is_named {
            assert_eq!(total(events(&stays)).await, 100, "what others have stays");
            let login = json!({"email": person.email, "password": PASSWORD});
            client
                .post("/auth/login")
                .json(&login)
                .call()
                .await
                .expect(401);
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!(
        "{} events are left; {}",
        total(events(&own)).await,
        cloud.last_lines()
    );
}
