//! Inviting people by e-mail, and letting in those whom one knows.

use std::sync::atomic::Ordering;

use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::mail::{token_for, waiting};
use hub_tests::{Backend, Call, Client, Options, Person, Reply, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

use super::passwords::mail_settings;

const NOON: i64 = 1_800_014_400_000_000;
const DAY: i64 = 24 * 3600 * 1_000_000;
const PERSONAS: &str = "/tenant/personas";

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

async fn invite(client: &Client, body: Value) -> Reply {
    client
        .post("/tenant/personas/invite")
        .json(&body)
        .call()
        .await
}

async fn invited(client: &Client, email: &str, role: &str) -> Value {
    let reply = invite(client, json!({"email": email, "role": role}))
        .await
        .expect(200);
    reply.json()["data"]["invitation"].clone()
}

fn path_of(invitation: &Value) -> String {
    format!(
        "/tenant/personas/invitations/{}",
        invitation["invitationId"].as_i64().expect("an id")
    )
}

async fn resend(client: &Client, invitation: &Value) -> Reply {
    client
        .post(&format!("{}/resend", path_of(invitation)))
        .call()
        .await
}

async fn revoke(client: &Client, invitation: &Value) -> Reply {
    client.delete(&path_of(invitation)).call().await
}

async fn accept(client: &Client, token: &str) -> Reply {
    client
        .post("/invitations/accept")
        .json(&json!({"token": token}))
        .call()
        .await
}

async fn show(app: &TestApp, token: &str) -> Reply {
    app.client()
        .get(&format!("/public/invitations/{token}"))
        .call()
        .await
}

async fn personas(client: &Client) -> (Vec<Value>, Vec<Value>) {
    let data: Value = client.get(PERSONAS).call().await.expect(200).data();
    let list = |name: &str| data[name].as_array().expect("a list").clone();
    (list("members"), list("invitations"))
}

async fn actions(app: &TestApp) -> Vec<String> {
    let mut conn = app.app.db.read().await.expect("a connection");
    let rows: Vec<(String,)> =
        sql("SELECT action FROM audit_logs WHERE action LIKE 'invitation.%' ORDER BY audit_log_id")
            .all(&mut conn)
            .await
            .expect("rows");
    rows.into_iter().map(|(action,)| action).collect()
}

on_each_database!(holder_of_the_mailed_token_joins_the_tenant);
async fn holder_of_the_mailed_token_joins_the_tenant(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let guest = Person::register(&app.client()).await;
    let invitation = invited(
        &tenant.client,
        &format!(" {} ", guest.email.to_uppercase()),
        "EDITOR",
    )
    .await;
    assert_eq!(
        (
            invitation["email"].as_str(),
            invitation["role"].as_str(),
            invitation["status"].as_str()
        ),
        (Some(guest.email.as_str()), Some("EDITOR"), Some("PENDING"))
    );
    let (members, invitations) = personas(&tenant.client).await;
    assert_eq!(
        (members.len(), &invitations),
        (1, &vec![invitation.clone()])
    );
    let token = token_for(&app, &guest.email).await;
    assert_eq!(token.len(), 43, "256 bits");
    let shown: Value = show(&app, &token).await.expect(200).data();
    let domain = guest.email.split_once('@').expect("an e-mail").1;
    let masked = format!("{}***@{domain}", &guest.email[..1]);
    assert_eq!(shown["email"], json!(masked));
    assert_eq!(
        (shown["role"].as_str(), shown["status"].as_str()),
        (Some("EDITOR"), Some("PENDING"))
    );
    assert!(!shown.to_string().contains(&guest.email));

    let stranger = Person::register(&app.client()).await;
    assert_eq!(
        accept(&stranger.client, &token)
            .await
            .expect(403)
            .problem()
            .code,
        "OTHER_EMAIL"
    );
    app.client()
        .post("/invitations/accept")
        .json(&json!({"token": token}))
        .call()
        .await
        .expect(401);
    for wrong in [
        "",
        "x",
        &token[1..],
        "' OR '1'='1",
        "ünïcode",
        &"x".repeat(5000),
    ] {
        accept(&guest.client, wrong).await.expect(404);
    }
    let joined: Value = accept(&guest.client, &token).await.expect(200).data();
    assert_eq!(joined["tenantUuid"], json!(tenant.tenant_uuid));
    assert_eq!(joined["role"], "EDITOR");
    guest
        .client
        .tenant(tenant.tenant_uuid)
        .get("/tenant/hubs")
        .call()
        .await
        .expect(200);
    let again: Value = accept(&guest.client, &token).await.expect(200).data();
    assert_eq!(again, joined);
    assert_eq!(
        show(&app, &token).await.expect(200).json()["data"]["status"],
        "ACCEPTED"
    );
    let (members, invitations) = personas(&tenant.client).await;
    assert_eq!((members.len(), invitations.len()), (2, 0));
    assert_eq!(
        actions(&app).await,
        ["invitation.create", "invitation.accept"]
    );

    // What is settled stays so.
    revoke(&tenant.client, &invitation).await.expect(409);
    resend(&tenant.client, &invitation).await.expect(409);
    assert_eq!(
        invite(&tenant.client, json!({"email": guest.email}))
            .await
            .expect(409)
            .problem()
            .code,
        "ALREADY_MEMBER"
    );
    // Who was removed does not come back by an invitation they used.
    let persona = joined["personaUuid"].as_str().expect("a persona");
    tenant
        .client
        .delete(&format!("{PERSONAS}/{persona}"))
        .call()
        .await
        .expect(200);
    accept(&guest.client, &token).await.expect(410);
    guest
        .client
        .tenant(tenant.tenant_uuid)
        .get("/tenant/hubs")
        .call()
        .await
        .expect(403);
}

on_each_database!(invalid_field_of_an_invitation_is_refused_by_name);
async fn invalid_field_of_an_invitation_is_refused_by_name(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let persona = Person::register(&app.client()).await.login.persona_uuid;
    for (body, field) in [
        (json!({}), "email"),
        (json!({"email": null}), "email"),
        (json!({"email": ""}), "email"),
        (json!({"email": "nobody"}), "email"),
        (json!({"email": 7}), "email"),
        (
            json!({"email": "a@example.com\r\nBcc: b@example.com"}),
            "email",
        ),
        (
            json!({"email": "a@example.com", "personaUuid": persona}),
            "personaUuid",
        ),
        (json!({"personaUuid": "x"}), "personaUuid"),
        (json!({"email": "a@example.com", "role": "KING"}), "role"),
        (json!({"email": "a@example.com", "role": 15}), "role"),
    ] {
        let problem = invite(&tenant.client, body.clone())
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    for (body, field) in [
        (json!({}), "token"),
        (json!({"token": 1}), "token"),
        (json!({"token": null}), "token"),
    ] {
        let reply = tenant
            .owner
            .client
            .post("/invitations/accept")
            .json(&body)
            .call()
            .await
            .expect(400);
        assert_eq!(reply.problem().errors[0].field, field, "{body}");
    }
    for id in ["x", "1.5", "99999999999999999999"] {
        let path = format!("/tenant/personas/invitations/{id}");
        let problem = tenant
            .client
            .delete(&path)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, "invitationId", "{id}");
    }
    for id in [-1, 0, 424_242] {
        tenant
            .client
            .delete(&format!("/tenant/personas/invitations/{id}"))
            .call()
            .await
            .expect(404);
    }
    assert!(waiting(&app).await.is_empty());
}

on_each_database!(new_invitation_token_ends_the_previous_one_and_revoking_ends_it);
async fn new_invitation_token_ends_the_previous_one_and_revoking_ends_it(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let guest = Person::register(&app.client()).await;
    let invitation = invited(&tenant.client, &guest.email, "VIEWER").await;
    let first = token_for(&app, &guest.email).await;
    let pending = invite(&tenant.client, json!({"email": guest.email}))
        .await
        .expect(409)
        .problem();
    assert!(
        pending.code == "ALREADY_INVITED" && pending.message.contains("resend"),
        "{pending:?}"
    );
    let resent: Value = resend(&tenant.client, &invitation).await.expect(200).data();
    assert_eq!(
        (&resent["invitationId"], &resent["createdAt"]),
        (&invitation["invitationId"], &invitation["createdAt"])
    );
    assert!(resent["expiresAt"].as_str() > invitation["expiresAt"].as_str());
    let second = token_for(&app, &guest.email).await;
    assert_ne!(first, second);
    assert_eq!(
        waiting(&app).await.len(),
        1,
        "the mail with the old token is not sent any more"
    );
    show(&app, &first).await.expect(404);
    accept(&guest.client, &first).await.expect(404);
    show(&app, &second).await.expect(200);

    assert_eq!(
        revoke(&tenant.client, &invitation).await.expect(200).body,
        ""
    );
    assert_eq!(
        revoke(&tenant.client, &invitation).await.expect(200).body,
        ""
    );
    assert!(
        waiting(&app).await.is_empty(),
        "nor the mail of one that is revoked"
    );
    assert_eq!(
        show(&app, &second).await.expect(410).problem().code,
        "INVITATION_GONE"
    );
    accept(&guest.client, &second).await.expect(410);
    assert_eq!(
        resend(&tenant.client, &invitation)
            .await
            .expect(409)
            .problem()
            .code,
        "INVITATION_SETTLED"
    );
    assert!(personas(&tenant.client).await.1.is_empty());
    assert_eq!(
        actions(&app).await,
        [
            "invitation.create",
            "invitation.resend",
            "invitation.revoke"
        ]
    );
    // Another tenant's is none that exists.
    let other = Tenant::create(&app.client()).await;
    let anew = invited(&tenant.client, &guest.email, "VIEWER").await;
    revoke(&other.client, &anew).await.expect(404);
    resend(&other.client, &anew).await.expect(404);
    accept(&guest.client, &token_for(&app, &guest.email).await)
        .await
        .expect(200);
}

on_each_database!(expired_invitation_can_be_renewed_or_replaced);
async fn expired_invitation_can_be_renewed_or_replaced(backend: Backend) {
    let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            settings: mail_settings(),
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let guest = Person::register(&app.client()).await;
    let first = invited(&tenant.client, "ada@example.com", "VIEWER").await;
    let second = invited(&tenant.client, &guest.email, "VIEWER").await;
    let token = token_for(&app, &guest.email).await;
    micros.fetch_add(7 * DAY - 1, Ordering::Relaxed);
    show(&app, &token).await.expect(200);
    micros.fetch_add(1, Ordering::Relaxed);
    // Access tokens ended days ago.
    let log_in = async |person: &Person| {
        let body = json!({"email": person.email, "password": hub_tests::people::PASSWORD});
        let login: Value = app
            .client()
            .post("/auth/login")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        app.client()
            .bearer(login["accessToken"].as_str().expect("a token"))
    };
    let owner = log_in(&tenant.owner).await.tenant(tenant.tenant_uuid);
    let guest_again = log_in(&guest).await;
    show(&app, &token).await.expect(410);
    accept(&guest_again, &token).await.expect(410);
    let (_, listed) = personas(&owner).await;
    let statuses: Vec<_> = listed
        .iter()
        .map(|invitation| &invitation["status"])
        .collect();
    assert_eq!(statuses, ["EXPIRED", "EXPIRED"]);
    let renewed: Value = resend(&owner, &first).await.expect(200).data();
    assert_eq!(
        (&renewed["status"], &renewed["invitationId"]),
        (&json!("PENDING"), &first["invitationId"])
    );
    let (_, listed) = personas(&owner).await;
    assert_eq!(
        (&listed[0], &listed[1]["invitationId"]),
        (&renewed, &second["invitationId"]),
        "the last sent first"
    );
    let replaced = invited(&owner, &guest.email, "OPERATOR").await;
    assert_ne!(replaced["invitationId"], second["invitationId"]);
    let (_, listed) = personas(&owner).await;
    assert_eq!(listed, [replaced, renewed]);
    accept(&guest_again, &token).await.expect(410);
    let joined: Value = accept(&guest_again, &token_for(&app, &guest.email).await)
        .await
        .expect(200)
        .data();
    assert_eq!(joined["role"], "OPERATOR");
}

on_each_database!(concurrent_accept_and_revoke_have_one_winner);
async fn concurrent_accept_and_revoke_have_one_winner(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    for _ in 0..6 {
        let guest = Person::register(&app.client()).await;
        let invitation = invited(&tenant.client, &guest.email, "VIEWER").await;
        let token = token_for(&app, &guest.email).await;
        let (accepted, revoked) = tokio::join!(
            accept(&guest.client, &token),
            revoke(&tenant.client, &invitation)
        );
        let is_member = guest
            .client
            .tenant(tenant.tenant_uuid)
            .get("/tenant/hubs")
            .call()
            .await
            .status
            == 200;
        match (accepted.status.as_u16(), revoked.status.as_u16()) {
            (200, 409) => assert!(is_member),
            (410, 200) => assert!(!is_member),
            other => panic!("{other:?}: {} {}", accepted.body, revoked.body),
        }
    }
    // Of several who accept at once all are the same person, and come in once.
    let guest = Person::register(&app.client()).await;
    invited(&tenant.client, &guest.email, "VIEWER").await;
    let token = token_for(&app, &guest.email).await;
    let accepted =
        futures_util::future::join_all((0..4).map(|_| accept(&guest.client, &token))).await;
    let first = accepted[0].body.clone();
    assert!(
        accepted
            .iter()
            .all(|reply| reply.status == 200 && reply.body == first)
    );
    let accepts = actions(&app)
        .await
        .iter()
        .filter(|action| *action == "invitation.accept")
        .count();
    let (members, _) = personas(&tenant.client).await;
    assert_eq!(accepts, members.len() - 1);
    // And of those who invite one e-mail at once one does.
    let invites = (0..4).map(|_| invite(&tenant.client, json!({"email": "ada@example.com"})));
    let mut statuses: Vec<u16> = futures_util::future::join_all(invites)
        .await
        .iter()
        .map(|reply| reply.status.as_u16())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409]);
}

on_each_database!(only_owners_invite_or_change_owners);
async fn only_owners_invite_or_change_owners(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let admin = tenant.member(Role::Admin).await;
    let (members, _) = personas(&tenant.client).await;
    let owner = members[0]["personaUuid"]
        .as_str()
        .expect("a persona")
        .to_owned();
    let path = format!("{PERSONAS}/{owner}");
    let members_path = format!("/tenant/tenants/{}/members", tenant.tenant_uuid);
    for refused in [
        admin.patch(&path).json(&json!({"role": "VIEWER"})),
        admin.delete(&path),
        admin.delete(&format!("{members_path}/{owner}")),
        admin
            .post(&members_path)
            .json(&json!({"personaUuid": owner, "role": "VIEWER"})),
        admin
            .post("/tenant/personas/invite")
            .json(&json!({"email": "ada@example.com", "role": "OWNER"})),
    ] {
        assert_eq!(
            refused.call().await.expect(403).problem().code,
            "PERMISSION_DENIED"
        );
    }
    let someone = Person::register(&app.client()).await;
    let body = json!({"personaUuid": someone.login.persona_uuid, "role": "OWNER"});
    invite(&admin, body.clone()).await.expect(403);
    let member = invite(
        &admin,
        json!({"personaUuid": someone.login.persona_uuid, "role": "EDITOR"}),
    )
    .await
    .expect(200);
    let persona = member.json()["data"]["member"]["personaUuid"]
        .as_str()
        .expect("a persona")
        .to_owned();
    admin
        .patch(&format!("{PERSONAS}/{persona}"))
        .json(&json!({"role": "OWNER"}))
        .call()
        .await
        .expect(403);
    let changed = admin
        .patch(&format!("{PERSONAS}/{persona}"))
        .json(&json!({"role": "OPERATOR"}))
        .call()
        .await;
    assert_eq!(changed.expect(200).json()["data"]["role"], "OPERATOR");
    let same = admin
        .patch(&format!("{PERSONAS}/{persona}"))
        .json(&json!({}))
        .call()
        .await
        .expect(200);
    assert_eq!(same.json()["data"]["role"], "OPERATOR");
    // An invitation as OWNER is an OWNER's to send again, and a manager's to take back.
    let invitation = invited(&tenant.client, "eve@example.com", "OWNER").await;
    resend(&admin, &invitation).await.expect(403);
    revoke(&admin, &invitation).await.expect(200);
    // The last one stays, whoever asks.
    let last = tenant.client.delete(&path).call().await.expect(409);
    assert_eq!(last.problem().code, "LAST_OWNER");
    tenant
        .client
        .patch(&path)
        .json(&json!({"role": "ADMIN"}))
        .call()
        .await
        .expect(409);
    let path = format!("{PERSONAS}/{persona}");
    tenant
        .client
        .patch(&path)
        .json(&json!({"role": "OWNER"}))
        .call()
        .await
        .expect(200);
    tenant
        .client
        .delete(&format!("{PERSONAS}/{owner}"))
        .call()
        .await
        .expect(200);
    someone
        .client
        .tenant(tenant.tenant_uuid)
        .get(PERSONAS)
        .call()
        .await
        .expect(200);
    tenant.client.get(PERSONAS).call().await.expect(403);
}

on_each_database!(granting_membership_revokes_the_open_invitation);
async fn granting_membership_revokes_the_open_invitation(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let guest = Person::register(&app.client()).await;
    invited(&tenant.client, &guest.email, "ADMIN").await;
    let token = token_for(&app, &guest.email).await;
    let persona = tenant.let_in(&guest, Role::Viewer).await;
    assert!(personas(&tenant.client).await.1.is_empty() && waiting(&app).await.is_empty());
    tenant
        .client
        .delete(&format!("{PERSONAS}/{persona}"))
        .call()
        .await
        .expect(200);
    accept(&guest.client, &token).await.expect(410);
}

on_each_database!(invitation_candidates_are_known_people);
async fn invitation_candidates_are_known_people(backend: Backend) {
    let app = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let elsewhere = Tenant::create_by(&tenant.owner).await;
    let unrelated = Tenant::create(&app.client()).await;
    let candidates = async |client: &Client| {
        let reply = client
            .get("/tenant/personas/invite-candidates")
            .call()
            .await
            .expect(200);
        reply.data::<Vec<Value>>()
    };
    assert!(candidates(&tenant.client).await.is_empty());
    let mut known = Vec::new();
    for _ in 0..3 {
        let person = Person::register(&app.client()).await;
        elsewhere.let_in(&person, Role::Viewer).await;
        known.push(person);
    }
    unrelated.member(Role::Viewer).await;
    known.sort_by(|a, b| a.email.cmp(&b.email));
    let found = candidates(&tenant.client).await;
    let expected: Vec<Value> = known
        .iter()
        .map(|person| {
            let Person { email, login, .. } = person;
            json!({"personaUuid": login.persona_uuid, "userUuid": login.user_uuid, "email": email, "nickname": null})
        })
        .collect();
    assert_eq!(found, expected);
    // By their persona they come in at once, and are candidates no more.
    invite(
        &tenant.client,
        json!({"personaUuid": known[0].login.persona_uuid, "role": "ADMIN"}),
    )
    .await
    .expect(200);
    let again = invite(
        &tenant.client,
        json!({"personaUuid": known[0].login.persona_uuid}),
    )
    .await
    .expect(409);
    assert_eq!(again.problem().code, "ALREADY_MEMBER");
    assert_eq!(candidates(&tenant.client).await, expected[1..]);
    // One's own acquaintances, not the tenant's; and of tenants that one administrates, no others.
    let admin = known[0].client.tenant(tenant.tenant_uuid);
    assert!(candidates(&admin).await.is_empty());
    let viewer = tenant.member(Role::Viewer).await;
    viewer
        .get("/tenant/personas/invite-candidates")
        .call()
        .await
        .expect(403);
    viewer.get(PERSONAS).call().await.expect(200);
}

on_each_database!(resending_an_invitation_is_throttled);
/// The service is nobody's means to fill a mailbox.
async fn resending_an_invitation_is_throttled(backend: Backend) {
    let (clock, _) = set_clock(Timestamp::from_micros(NOON));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            settings: mail_settings(),
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let invitation = invited(&tenant.client, "ada@example.com", "VIEWER").await;
    for _ in 0..8 {
        resend(&tenant.client, &invitation).await.expect(200);
    }
    invited(&other.client, "ada@example.com", "VIEWER").await;
    resend(&tenant.client, &invitation).await.expect(429);
    invite(
        &Tenant::create(&app.client()).await.client,
        json!({"email": "ada@example.com"}),
    )
    .await
    .expect(429);
    invited(&tenant.client, "ben@example.com", "VIEWER").await;
}
