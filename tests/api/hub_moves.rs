//! Jobs that send a hub to another service: who may create one, what is refused, and who sees the
//! claim code.

use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_protocol::HubJobUuid;
use hub_protocol::job::{HubJobType, ServiceMove};
use hub_tests::{
    Backend, Call, Client, Options, Reply, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};

const OWN: &str = "https://hubs.old.example";
const OTHER: &str = "https://hubs.new.example";
const CODE: &str = "7K3M-9QXT-0V4B-HD2R";

async fn started(backend: Backend) -> TestApp {
    TestApp::configured(backend, Options::default(), |config| {
        config.public_url = Some(OWN.to_owned());
    })
    .await
}

fn to_other() -> Value {
    json!({"serviceUrl": OTHER, "claimCode": CODE})
}

async fn send(client: &Client, hub: &SimulatedHub, body: &Value) -> Reply {
    client
        .post(&format!("/tenant/hubs/{}/jobs/move", hub.hub_uuid))
        .json(body)
        .call()
        .await
}

/// The number of claim codes of other services that are stored.
async fn kept_codes(app: &TestApp) -> i64 {
    let mut conn = app.app.db.read().await.expect("a connection");
    sql("SELECT COUNT(*) FROM hub_jobs WHERE sealed_claim_code IS NOT NULL")
        .scalar(&mut conn)
        .await
        .expect("a number")
}

on_each_database!(hub_alone_gets_the_claim_code_of_its_move);
async fn hub_alone_gets_the_claim_code_of_its_move(backend: Backend) {
    let app = started(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    // In any spelling.
    let body = json!({"serviceUrl": format!("{OTHER}/"), "claimCode": "7k3m9qxt0v4bhd2r"});
    let created = send(&tenant.client, &hub, &body).await.expect(201);
    let job: HubJobUuid = created.data();

    let desired = hub.desired_jobs().await;
    assert_eq!(desired.len(), 1);
    assert_eq!(
        (
            desired[0].hub_job_uuid,
            desired[0].job_type,
            &desired[0].move_to
        ),
        (
            job,
            HubJobType::Move,
            &Some(ServiceMove {
                service_url: OTHER.to_owned(),
                claim_code: CODE.to_owned(),
            })
        )
    );

    // Nobody else does, and it is sealed.
    let path = format!("/tenant/hubs/{}/jobs", hub.hub_uuid);
    let monitored = format!("/tenant/hub-monitoring/{}/jobs", hub.hub_uuid);
    for shown in [
        path.clone(),
        monitored.clone(),
        format!("{monitored}/{job}"),
        "/tenant/audit-logs?action=hub_job.create".to_owned(),
    ] {
        let shown = tenant.client.get(&shown).call().await.expect(200).body;
        assert!(shown.contains(OTHER), "{shown}");
        assert!(
            !shown.contains("7K3M") && !shown.contains("7k3m") && !shown.contains("moveTo"),
            "{shown}"
        );
    }
    let mut conn = app.app.db.read().await.expect("a connection");
    let sealed: Vec<u8> = sql("SELECT sealed_claim_code FROM hub_jobs WHERE hub_job_uuid = $1")
        .bind(job)
        .scalar(&mut conn)
        .await
        .expect("a sealed code");
    drop(conn);
    assert!(!String::from_utf8_lossy(&sealed).contains("7K3M"));

    // What the hub reports is the result, and the code is deleted.
    hub.tell(job, "ACCEPTED", json!({})).await.expect(204);
    let detail = json!({"serviceUrl": OTHER, "notUploaded": 3, "notRecorded": 7});
    hub.tell(job, "SUCCEEDED", json!({"detail": detail}))
        .await
        .expect(204);
    let ended = tenant.job(&hub, job).await;
    assert_eq!(
        (&ended["status"], &ended["result"], &ended["serviceUrl"]),
        (&json!("SUCCEEDED"), &detail, &json!(OTHER))
    );
    assert_eq!(kept_codes(&app).await, 0);
    assert!(hub.desired_jobs().await.is_empty());
}

on_each_database!(move_is_refused_with_the_reason);
async fn move_is_refused_with_the_reason(backend: Backend) {
    let app = started(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    for (field, value) in [
        ("serviceUrl", json!(OWN)),
        ("serviceUrl", json!("https://HUBS.old.example:443/")),
        ("serviceUrl", json!("http://hubs.new.example")),
        ("serviceUrl", json!("http://192.168.1.7")),
        ("serviceUrl", json!("ftp://hubs.new.example")),
        ("serviceUrl", json!("https://ben:secret@hubs.new.example")),
        ("serviceUrl", json!("https://hubs.new.example/?to=it")),
        ("serviceUrl", json!("https://hubs.new.example/#it")),
        ("serviceUrl", json!("")),
        ("serviceUrl", json!(format!("{OTHER}/{}", "x".repeat(500)))),
        ("claimCode", json!("9ZZZ")),
        ("validForSeconds", json!(0)),
    ] {
        let mut body = to_other();
        body[field] = value;
        let problem = send(&tenant.client, &hub, &body)
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
        assert!(!problem.message.contains("9ZZZ"), "{}", problem.message);
    }

    // A hub of another tenant is not there.
    let stranger = Tenant::create(&app.client()).await;
    send(&stranger.client, &hub, &to_other()).await.expect(404);

    // A stolen key sends no hub elsewhere, nor does a member who only operates hubs.
    for role in [Role::Editor, Role::Operator] {
        let member = tenant.member(role).await;
        send(&member, &hub, &to_other()).await.expect(403);
    }
    let key = tenant.api_key(json!({"scopes": ["*"]})).await;
    send(&key.client, &hub, &to_other()).await.expect(403);

    // One at a time.
    let job: HubJobUuid = send(&tenant.client, &hub, &to_other())
        .await
        .expect(201)
        .data();
    let problem = send(&tenant.client, &hub, &to_other())
        .await
        .expect(409)
        .problem();
    assert_eq!(problem.code, "MOVE_OPEN");
    assert_eq!(kept_codes(&app).await, 1);
    tenant.cancel(&hub, job).await.expect(200);
    assert_eq!(kept_codes(&app).await, 0);
    send(&tenant.client, &hub, &to_other()).await.expect(201);

    // The release of the hub ends it, too.
    tenant
        .client
        .delete(&format!("/tenant/hubs/{}", hub.hub_uuid))
        .call()
        .await
        .expect(204);
    assert_eq!(kept_codes(&app).await, 0);
    send(&tenant.client, &hub, &to_other()).await.expect(404);
}
