//! `/app/hubs/pairing-codes` and `/app/pair`: how a person makes a hub theirs. In a browser, the
//! page is tried by tests/browser/run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hub_cloud::upkeep;
use hub_core::config::Settings;
use hub_core::tasks::Task;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::{
    Backend, Call, Client, Options, Person, Reply, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};
use uuid::Uuid;

const NOON: i64 = 1_800_014_400_000_000;
const CODES: &str = "/app/hubs/pairing-codes";
const OFFER: &str = "/app/hubs/pairing-codes/offer";

struct World {
    app: TestApp,
    micros: Arc<AtomicI64>,
    tenant: Tenant,
    person: Person,
}

impl World {
    async fn new(backend: Backend) -> Self {
        let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
        let settings = Settings {
            public_url: Some("https://hubs.example.com".to_owned()),
            ..Settings::default()
        };
        let app = TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                settings,
            },
        )
        .await;
        let tenant = Tenant::create(&app.client()).await;
        let person = Person::register(&app.client()).await;
        Self {
            app,
            micros,
            tenant,
            person,
        }
    }

    async fn ask(&self, self_pairing: bool) {
        let body = json!({"version": "1", "text": "We read your sensors.", "selfPairing": self_pairing, "enforce": false,
            "purposes": [{"key": "monitoring", "title": "Show you values", "required": true}]});
        self.tenant
            .client
            .post("/tenant/consent-settings")
            .json(&body)
            .call()
            .await
            .expect(200);
    }

    async fn make(&self, client: &Client) -> Reply {
        client
            .post(CODES)
            .json(&json!({"supplierUuid": self.tenant.tenant_uuid}))
            .call()
            .await
    }

    fn pass(&self, secs: i64) {
        self.micros.fetch_add(secs * 1_000_000, Ordering::SeqCst);
    }
}

async fn offer(client: &Client, code: &str) -> Reply {
    client
        .post(OFFER)
        .json(&json!({"claimCode": code}))
        .call()
        .await
}

fn code_of(made: &Value) -> &str {
    made["claimCode"].as_str().expect("a code")
}

on_each_database!(a_person_pairs_a_hub);
async fn a_person_pairs_a_hub(backend: Backend) {
    let world = World::new(backend).await;
    let client = &world.person.client;
    // Nobody asked for consent yet; then the supplier makes out codes itself.
    assert_eq!(
        world.make(client).await.expect(403).problem().code,
        "SELF_PAIRING_OFF"
    );
    world.ask(false).await;
    assert_eq!(
        world.make(client).await.expect(403).problem().code,
        "SELF_PAIRING_OFF"
    );
    world.ask(true).await;
    client
        .post(CODES)
        .json(&json!({"supplierUuid": Uuid::new_v4()}))
        .call()
        .await
        .expect(404);
    client
        .post(CODES)
        .json(&json!({"supplierUuid": "x"}))
        .call()
        .await
        .expect(400);
    client.post(CODES).json(&json!({})).call().await.expect(400);

    let made: Value = world.make(client).await.expect(200).data();
    assert_eq!(made["ownerUserUuid"], json!(world.person.login.user_uuid));
    assert_eq!(
        (&made["maxUses"], &made["status"], &made["allowReclaim"]),
        (&json!(1), &json!("PENDING"), &json!(false))
    );
    assert_eq!(
        made["expiresAt"],
        json!(Timestamp::from_micros(NOON + 900 * 1_000_000))
    );
    let url = format!("https://hubs.example.com/app/pair#{}", code_of(&made));
    assert_eq!(made["pairingUrl"], json!(url));
    // The supplier sees it among its codes.
    let listed: Value = world
        .tenant
        .client
        .get("/tenant/hubs/claim-codes")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(listed[0]["id"], made["id"]);

    let offered: Value = offer(client, code_of(&made)).await.expect(200).data();
    assert_eq!(offered["supplierUuid"], json!(world.tenant.tenant_uuid));
    assert!(
        offered["supplierName"]
            .as_str()
            .is_some_and(|name| name.starts_with("Tenant of")),
        "{offered}"
    );
    assert_eq!(offered["hubUuid"], Value::Null);
    let hub = SimulatedHub::claim_with(&world.app.client(), code_of(&made), "a hub").await;
    let offered: Value = offer(client, &code_of(&made).to_lowercase().replace('-', ""))
        .await
        .expect(200)
        .data();
    assert_eq!(offered["hubUuid"], json!(hub.hub_uuid));
    let own: Value = client
        .get(&format!("/app/hubs/{}", hub.hub_uuid))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&own["online"], &own["delegated"]),
        (&json!(false), &json!(false))
    );
    let telemetry = format!("/v1/hubs/{}/telemetry", hub.hub_uuid);
    hub.client
        .post(&telemetry)
        .json(&json!({}))
        .call()
        .await
        .expect(204);
    let own: Value = client
        .get(&format!("/app/hubs/{}", hub.hub_uuid))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(own["online"], json!(true));
    // It was for one hub.
    let body = json!({"claimCode": code_of(&made), "deviceInstanceId": "another hub"});
    world
        .app
        .client()
        .post("/v1/hubs/claim")
        .json(&body)
        .call()
        .await
        .expect(400);
}

on_each_database!(codes_of_others_look_like_codes_that_nobody_has);
async fn codes_of_others_look_like_codes_that_nobody_has(backend: Backend) {
    let world = World::new(backend).await;
    world.ask(true).await;
    let other = Person::register(&world.app.client()).await;
    let theirs: Value = world.make(&other.client).await.expect(200).data();
    let of_tenant = world.tenant.claim_code().await;
    let expired: Value = world.make(&world.person.client).await.expect(200).data();
    world.pass(890);
    let asker = world.person.as_platform_admin(&world.app);
    offer(&asker, code_of(&expired)).await.expect(200);
    world.pass(20);
    let asker = world.person.as_platform_admin(&world.app);
    let seen = |reply: Reply| (reply.problem().code, reply.problem().message);
    let unknown = seen(offer(&asker, "0000-0000-0000-0000").await.expect(404));
    for code in [code_of(&theirs), &of_tenant, code_of(&expired)] {
        assert_eq!(seen(offer(&asker, code).await.expect(404)), unknown);
    }
    for code in ["", "x", "7K3M-9QXT-0V4B-HD2U", &"7".repeat(65)] {
        offer(&asker, code).await.expect(400);
    }
    world
        .app
        .client()
        .post(OFFER)
        .json(&json!({"claimCode": of_tenant}))
        .call()
        .await
        .expect(401);
    // Whoever goes on guessing is slowed, and cannot look at their own codes meanwhile.
    let slowed = async || {
        for _ in 0..20 {
            if offer(&asker, "0000-0000-0000-0000").await.status == 429 {
                return true;
            }
        }
        false
    };
    assert!(slowed().await, "twenty guesses in a row");
    let refused = offer(&asker, &of_tenant).await.expect(429);
    assert!(
        refused
            .header("retry-after")
            .parse::<u64>()
            .is_ok_and(|secs| secs > 0)
    );
    offer(&other.as_platform_admin(&world.app), "0000-0000-0000-0000")
        .await
        .expect(404);
}

on_each_database!(what_one_person_makes_is_bounded);
async fn what_one_person_makes_is_bounded(backend: Backend) {
    let world = World::new(backend).await;
    world.ask(true).await;
    let (mut made, mut refused) = (0, 0);
    for _ in 0..9 {
        let asker = world.person.as_platform_admin(&world.app);
        let replies = futures_util::future::join_all((0..7).map(|_| world.make(&asker))).await;
        for reply in replies {
            match reply.status.as_u16() {
                200 => made += 1,
                409 => assert_eq!(reply.problem().code, "TOO_MANY_CLAIM_CODES"),
                429 => refused += 1,
                other => panic!("{other}: {}", reply.body),
            }
        }
        assert!(made % 5 == 0, "five at a time, not {made}");
        world.pass(901);
        if made == 20 {
            break;
        }
    }
    assert_eq!(made, 20);
    // Four rounds of a quarter of an hour are an hour: the first ones are counted no more.
    assert_eq!(refused, 0);
    let task = Task {
        task_uuid: Uuid::new_v4(),
        kind: "upkeep.pairing_codes".to_owned(),
        payload: json!({}),
        attempts: 1,
    };
    world.pass(4000);
    upkeep::perform(world.app.app.clone(), task)
        .await
        .expect("upkeep");
    let client = world
        .tenant
        .owner
        .as_platform_admin(&world.app)
        .tenant(world.tenant.tenant_uuid);
    let listed: Value = client
        .get("/tenant/hubs/claim-codes")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(listed, json!([]), "what nobody used is gone");
}

on_each_database!(who_uses_codes_up_gets_so_many_an_hour);
async fn who_uses_codes_up_gets_so_many_an_hour(backend: Backend) {
    let world = World::new(backend).await;
    world.ask(true).await;
    for number in 0..20 {
        let made: Value = world.make(&world.person.client).await.expect(200).data();
        SimulatedHub::claim_with(
            &world.app.client(),
            code_of(&made),
            &format!("hub {number}"),
        )
        .await;
    }
    let refused = world.make(&world.person.client).await.expect(429);
    assert!(
        refused.headers.contains_key("retry-after"),
        "says when to try again"
    );
    world.pass(3601);
    world
        .make(&world.person.as_platform_admin(&world.app))
        .await
        .expect(200);
}

on_each_database!(the_page_runs_nothing_but_its_own_files);
async fn the_page_runs_nothing_but_its_own_files(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client();
    let page = client.get("/app/pair").call().await.expect(200);
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(
            policy.split(';').any(|one| one.trim() == part),
            "{part} is not in {policy}"
        );
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    let mut bytes = page.body.len();
    for (path, kind) in [
        ("/app/pair.css", "text/css"),
        ("/app/pair.js", "text/javascript"),
    ] {
        assert!(
            page.body.contains(&format!("\"{path}\"")),
            "the page has {path}"
        );
        let file = client.get(path).call().await.expect(200);
        assert!(file.header("content-type").starts_with(kind));
        bytes += file.body.len();
        let known = client
            .get(path)
            .header("if-none-match", file.header("etag"))
            .call()
            .await
            .expect(304);
        assert_eq!(known.body, "");
        let packed = client
            .get(path)
            .header("accept-encoding", "gzip")
            .call()
            .await
            .expect(200);
        assert_eq!(packed.header("content-encoding"), "gzip");
    }
    assert!(bytes < 50 * 1024, "{bytes} bytes");
    for inline in [
        "<style",
        " style=",
        " onclick=",
        "javascript:",
        "http://",
        "https://",
    ] {
        assert!(!page.body.contains(inline), "the page contains {inline}");
    }
    assert_eq!(page.body.matches("<script").count(), 1);
}
