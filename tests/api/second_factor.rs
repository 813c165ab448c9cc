//! `/auth/second-factor`, `/auth/sessions/...` and `/auth/failed-logins`: how people protect their
//! account, see who uses it, and who tried to.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hub_core::config::{SecondFactorPolicy, Settings};
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::people::{Login, PASSWORD};
use hub_tests::{Backend, Call, Client, Options, Person, Reply, TestApp, on_each_database};
use reqwest::header::{HeaderName, USER_AGENT};
use serde_json::{Value, json};
use totp_rs::Totp;
use uuid::Uuid;

const NOON: i64 = 1_800_014_400_000_000;
const PATH: &str = "/auth/second-factor";
const FROM: HeaderName = HeaderName::from_static("x-forwarded-for");

struct World {
    app: TestApp,
    micros: Arc<AtomicI64>,
    person: Person,
}

impl World {
    async fn new(backend: Backend, policy: SecondFactorPolicy) -> Self {
        let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
        let settings = Settings {
            second_factor: Some(policy),
            ..Settings::default()
        };
        let options = Options {
            settings,
            clock: Some(clock),
        };
        let app = TestApp::with(backend, options).await;
        let person = Person::register(&app.client()).await;
        Self {
            app,
            micros,
            person,
        }
    }

    fn pass(&self, secs: i64) {
        self.micros.fetch_add(secs * 1_000_000, Ordering::SeqCst);
    }

    fn code(&self, totp: &Totp) -> String {
        let secs = self.app.app.clock.now().as_secs();
        totp.generate(secs.unsigned_abs()).to_string()
    }

    async fn log_in(&self, client: &Client, otp: Option<&str>) -> Reply {
        let body = json!({"email": self.person.email, "password": PASSWORD, "otp": otp});
        client.post("/auth/login").json(&body).call().await
    }

    async fn begin(&self, client: &Client) -> Totp {
        let begun: Value = client.post(PATH).call().await.expect(200).data();
        let url = begun["otpauthUrl"].as_str().expect("a URL");
        assert!(url.contains(begun["secret"].as_str().expect("a secret")));
        Totp::from_url(url).expect("a URL that apps read")
    }

    async fn confirm(&self, client: &Client, otp: &str) -> Reply {
        client
            .post(&format!("{PATH}/confirm"))
            .json(&json!({"otp": otp}))
            .call()
            .await
    }

    async fn remove(&self, client: &Client, otp: &str) -> Reply {
        client.delete(PATH).json(&json!({"otp": otp})).call().await
    }
}

fn client_of(world: &World, reply: &Reply) -> Client {
    let login: Login = reply.data();
    world.app.client().bearer(&login.access_token)
}

on_each_database!(a_second_factor_is_needed_once_it_was_confirmed);
async fn a_second_factor_is_needed_once_it_was_confirmed(backend: Backend) {
    let world = World::new(backend, SecondFactorPolicy::Optional).await;
    let (owner, anybody) = (&world.person.client, world.app.client());
    let refused = async |otp: Option<&str>, code: &str| {
        let reply = world.log_in(&anybody, otp).await.expect(401);
        assert_eq!(reply.problem().code, code, "{otp:?}");
    };
    assert_eq!(
        world
            .confirm(owner, "123456")
            .await
            .expect(409)
            .problem()
            .code,
        "NO_ENROLMENT"
    );
    let first = world.begin(owner).await;
    let totp = world.begin(owner).await;
    assert_ne!(first.secret(), totp.secret());
    // What was not confirmed protects nothing and locks nobody out.
    world.log_in(&anybody, None).await.expect(200);
    let wrong = world.confirm(owner, &world.code(&first)).await.expect(403);
    assert_eq!(wrong.problem().code, "OTP_INVALID");
    let confirmed: Value = world
        .confirm(owner, &world.code(&totp))
        .await
        .expect(200)
        .data();
    let codes: Vec<String> =
        serde_json::from_value(confirmed["recoveryCodes"].clone()).expect("texts");
    assert_eq!(codes.len(), 10);
    owner.post(PATH).call().await.expect(409);

    refused(None, "OTP_REQUIRED").await;
    refused(Some(" "), "OTP_REQUIRED").await;
    refused(Some(&world.code(&totp)), "OTP_INVALID").await;
    world.pass(30);
    let code = world.code(&totp);
    let reply = world.log_in(&anybody, Some(&code)).await.expect(200);
    client_of(&world, &reply)
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200);
    refused(Some(&code), "OTP_INVALID").await;
    refused(Some(&world.code(&first)), "OTP_INVALID").await;
    // The phone's clock may be half a minute off, and not more.
    world.pass(60);
    let code = world.code(&totp);
    world.pass(90);
    refused(Some(&code), "OTP_INVALID").await;
    let code = world.code(&totp);
    world.pass(30);
    world.log_in(&anybody, Some(&code)).await.expect(200);
    // A browser needs it too.
    let page = anybody.header(HeaderName::from_static("sec-fetch-site"), "same-origin");
    let body = json!({"email": world.person.email, "password": PASSWORD});
    let reply = page
        .post("/auth/session")
        .json(&body)
        .call()
        .await
        .expect(401);
    assert_eq!(reply.problem().code, "OTP_REQUIRED");

    // Each recovery code is good once, as people type it.
    let typed = codes[0].to_uppercase().replace('-', " ");
    world.log_in(&anybody, Some(&typed)).await.expect(200);
    refused(Some(&codes[0]), "OTP_INVALID").await;
    assert_eq!(
        world
            .remove(owner, "nothing")
            .await
            .expect(403)
            .problem()
            .code,
        "OTP_INVALID"
    );
    owner.delete(PATH).json(&json!({})).call().await.expect(400);
    world.remove(owner, &codes[1]).await.expect(204);
    world.log_in(&anybody, None).await.expect(200);
    world.remove(owner, &codes[2]).await.expect(404);
    let secrets = "SELECT COUNT(*) FROM recovery_codes";
    let mut conn = world.app.app.db.read().await.expect("a connection");
    let left: i64 = hub_base::db::sql(secrets)
        .scalar(&mut conn)
        .await
        .expect("a count");
    assert_eq!(left, 0);
}

on_each_database!(codes_cannot_be_guessed);
async fn codes_cannot_be_guessed(backend: Backend) {
    let world = World::new(backend, SecondFactorPolicy::Optional).await;
    let owner = &world.person.client;
    let totp = world.begin(owner).await;
    world.confirm(owner, &world.code(&totp)).await.expect(200);
    let mut tried = 0;
    // Whoever has the password guesses from many addresses, and shows the password in between.
    for number in 0..40 {
        let from = world.app.client().header(FROM, &format!("10.1.0.{number}"));
        let reply = world.log_in(&from, Some("000000")).await;
        match reply.status.as_u16() {
            401 => tried += 1,
            429 => {}
            other => panic!("{other}"),
        }
        world.log_in(&from, None).await.expect(401);
    }
    assert!(tried <= 12, "{tried} guesses");
}

on_each_database!(who_must_have_a_second_factor_may_only_set_one_up);
async fn who_must_have_a_second_factor_may_only_set_one_up(backend: Backend) {
    let world = World::new(backend, SecondFactorPolicy::Everyone).await;
    let reply = world.log_in(&world.app.client(), None).await.expect(200);
    let user = client_of(&world, &reply);
    let tenant = json!({"name": "T"});
    for request in [
        user.get("/tenant/tenants"),
        user.post("/tenant/tenants").json(&tenant),
        user.get("/app/profile"),
        user.get("/auth/sessions"),
        user.delete(PATH).json(&json!({"otp": "123456"})),
    ] {
        let reply = request.call().await.expect(403);
        assert_eq!(reply.problem().code, "SECOND_FACTOR_REQUIRED");
    }
    let totp = world.begin(&user).await;
    world.confirm(&user, &world.code(&totp)).await.expect(200);
    user.post("/tenant/tenants")
        .json(&tenant)
        .call()
        .await
        .expect(200);
    user.get("/auth/sessions").call().await.expect(200);

    let world = World::new(backend, SecondFactorPolicy::Administrators).await;
    world
        .person
        .client
        .get("/app/profile")
        .call()
        .await
        .expect(200);
    let admin = world.person.as_platform_admin(&world.app);
    let reply = admin.get("/platform/tenants").call().await.expect(403);
    assert_eq!(reply.problem().code, "SECOND_FACTOR_REQUIRED");
}

on_each_database!(people_see_their_sessions_and_end_them);
async fn people_see_their_sessions_and_end_them(backend: Backend) {
    let world = World::new(backend, SecondFactorPolicy::Optional).await;
    let other = Person::register(&world.app.client()).await;
    world.pass(60);
    let laptop = world
        .app
        .client()
        .header(FROM, "203.0.113.7")
        .header(USER_AGENT, "hub/1.0");
    let reply = world.log_in(&laptop, None).await.expect(200);
    let user = client_of(&world, &reply);
    let listed: Vec<Value> = user.get("/auth/sessions").call().await.expect(200).data();
    assert_eq!(listed.len(), 2, "{listed:?}");
    let expected = json!({"sessionUuid": listed[0]["sessionUuid"], "createdAt": world.app.app.clock.now(),
        "lastUsedAt": world.app.app.clock.now(), "address": "203.0.113.7", "userAgent": "hub/1.0", "current": true});
    assert_eq!(listed[0], expected);
    assert_eq!(listed[1]["current"], false);

    // A refresh is a use, from wherever it comes.
    world.pass(60);
    let login: Login = reply.data();
    let refreshed = world
        .app
        .client()
        .header(FROM, "203.0.113.8")
        .post("/auth/refresh")
        .json(&json!({"refreshToken": login.refresh_token}))
        .call()
        .await
        .expect(200);
    let listed: Vec<Value> = user.get("/auth/sessions").call().await.expect(200).data();
    assert_eq!(
        (&listed[0]["lastUsedAt"], &listed[0]["address"]),
        (&json!(world.app.app.clock.now()), &json!("203.0.113.8"))
    );
    let path = |session: &Value| {
        format!(
            "/auth/sessions/{}",
            session["sessionUuid"].as_str().expect("a uuid")
        )
    };
    other
        .client
        .delete(&path(&listed[0]))
        .call()
        .await
        .expect(404);
    user.delete(&format!("/auth/sessions/{}", Uuid::new_v4()))
        .call()
        .await
        .expect(404);
    user.delete(&path(&listed[1])).call().await.expect(204);
    user.delete(&path(&listed[1])).call().await.expect(404);
    world
        .person
        .client
        .get("/app/profile")
        .call()
        .await
        .expect(401);
    user.delete(&path(&listed[0])).call().await.expect(204);
    client_of(&world, &refreshed)
        .get("/app/profile")
        .call()
        .await
        .expect(401);
}

on_each_database!(failed_logins_are_shown_to_the_owner_and_the_platform);
async fn failed_logins_are_shown_to_the_owner_and_the_platform(backend: Backend) {
    let world = World::new(backend, SecondFactorPolicy::Optional).await;
    let other = Person::register(&world.app.client()).await;
    let admin = other.as_platform_admin(&world.app);
    let attacker = world
        .app
        .client()
        .header(FROM, "203.0.113.9")
        .header(USER_AGENT, "guess");
    let guess = async |email: &str| {
        let body = json!({"email": email, "password": "not the password"});
        attacker
            .post("/auth/login")
            .json(&body)
            .call()
            .await
            .expect(401);
    };
    for _ in 0..2 {
        guess(&world.person.email).await;
    }
    guess("typed-a-secret@example.com").await;
    let expected = json!({"failedAt": world.app.app.clock.now(), "address": "203.0.113.9", "userAgent": "guess", "cause": "PASSWORD"});
    let shown: Vec<Value> = world
        .person
        .client
        .get("/auth/failed-logins")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(shown, [expected.clone(), expected]);
    let theirs: Vec<Value> = other
        .client
        .get("/auth/failed-logins")
        .call()
        .await
        .expect(200)
        .data();
    assert!(theirs.is_empty());
    let log = admin
        .get("/platform/audit-logs?action=user.login_failed")
        .call()
        .await
        .expect(200);
    assert!(
        !log.body.contains("typed-a-secret"),
        "an e-mail without an account is not kept"
    );
    assert_eq!(log.json()["data"]["totalElements"], 3, "{}", log.body);
    // In numbers, with everything else that is refused.
    let metrics = world
        .app
        .client()
        .get("/metrics")
        .call()
        .await
        .expect(200)
        .body;
    assert!(
        metrics.contains("refused_credentials_total{code=\"LOGIN_FAILED\"} 3"),
        "{metrics}"
    );
    world
        .app
        .client()
        .bearer("nonsense")
        .get("/app/profile")
        .call()
        .await
        .expect(401);
    let metrics = world
        .app
        .client()
        .get("/metrics")
        .call()
        .await
        .expect(200)
        .body;
    assert!(
        metrics.contains("refused_credentials_total{code=\"INVALID_TOKEN\"} 1"),
        "{metrics}"
    );
}
