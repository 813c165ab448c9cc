//! Setting another password: knowing the current one, or reading the account's mail.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_cloud::upkeep;
use hub_core::config::Settings;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::mail::{token_for, waiting};
use hub_tests::people::{Login, PASSWORD};
use hub_tests::{Backend, Call, Client, Options, Person, Reply, TestApp, on_each_database};
use serde_json::{Value, json};

const NOON: i64 = 1_800_014_400_000_000;
const NEW: &str = "another fine password";
const PATIENCE: Duration = Duration::from_secs(30);

/// Nobody listens there: mail waits, and shows what it holds.
pub fn mail_settings() -> Settings {
    Settings {
        smtp_url: Some("smtp://127.0.0.1:9".to_owned()),
        mail_from: Some("Hubs <hubs@example.com>".to_owned()),
        ..Settings::default()
    }
}

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

async fn login(client: &Client, email: &str, password: &str) -> Reply {
    client
        .post("/auth/login")
        .json(&json!({"email": email, "password": password}))
        .call()
        .await
}

async fn change(client: &Client, current: &str, new: &str) -> Reply {
    client
        .post("/auth/password")
        .json(&json!({"currentPassword": current, "newPassword": new}))
        .call()
        .await
}

async fn forgot(client: &Client, email: &str) -> Reply {
    client
        .post("/auth/password/forgot")
        .json(&json!({"email": email}))
        .call()
        .await
}

async fn reset(client: &Client, token: &str, password: &str) -> Reply {
    client
        .post("/auth/password/reset")
        .json(&json!({"token": token, "newPassword": password}))
        .call()
        .await
}

/// Lets the background work go on until nothing but mail is left to do.
async fn work_until_looked_up(app: &TestApp) {
    let ends_at = Instant::now() + PATIENCE;
    loop {
        let mut conn = app.app.db.read().await.expect("a connection");
        let (left,): (i64,) = sql("SELECT COUNT(*) FROM tasks WHERE kind = 'password.forgot'")
            .one(&mut conn)
            .await
            .expect("a count");
        if left == 0 {
            return;
        }
        drop(conn);
        assert!(Instant::now() < ends_at, "the look-up takes too long");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn token_of_forgot(app: &TestApp, email: &str) -> String {
    forgot(&app.client(), email).await.expect(204);
    work_until_looked_up(app).await;
    token_for(app, email).await
}

on_each_database!(password_change_ends_all_other_logins);
async fn password_change_ends_all_other_logins(backend: Backend) {
    let app = TestApp::new(backend).await;
    let person = Person::register(&app.client()).await;
    let other: Login = login(&app.client(), &person.email, PASSWORD)
        .await
        .expect(200)
        .data();
    let elsewhere = app.client().bearer(&other.access_token);
    elsewhere.get("/tenant/tenants").call().await.expect(200);
    assert_eq!(
        change(&person.client, PASSWORD, NEW).await.expect(204).body,
        ""
    );
    elsewhere.get("/tenant/tenants").call().await.expect(401);
    let body = json!({"refreshToken": other.refresh_token});
    app.client()
        .post("/auth/refresh")
        .json(&body)
        .call()
        .await
        .expect(401);
    person
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200);
    let body = json!({"refreshToken": person.login.refresh_token});
    app.client()
        .post("/auth/refresh")
        .json(&body)
        .call()
        .await
        .expect(200);
    login(&app.client(), &person.email, PASSWORD)
        .await
        .expect(401);
    login(&app.client(), &person.email, NEW).await.expect(200);
}

on_each_database!(invalid_new_password_is_refused_by_name);
async fn invalid_new_password_is_refused_by_name(backend: Backend) {
    let app = service(backend).await;
    let person = Person::register(&app.client()).await;
    for (path, body, field) in [
        (
            "/auth/password",
            json!({"newPassword": NEW}),
            "currentPassword",
        ),
        (
            "/auth/password",
            json!({"currentPassword": PASSWORD}),
            "newPassword",
        ),
        (
            "/auth/password",
            json!({"currentPassword": 1, "newPassword": NEW}),
            "currentPassword",
        ),
        (
            "/auth/password",
            json!({"currentPassword": PASSWORD, "newPassword": "short"}),
            "newPassword",
        ),
        (
            "/auth/password",
            json!({"currentPassword": PASSWORD, "newPassword": "x".repeat(201)}),
            "newPassword",
        ),
        (
            "/auth/password",
            json!({"currentPassword": PASSWORD, "newPassword": PASSWORD}),
            "newPassword",
        ),
        ("/auth/password/forgot", json!({}), "email"),
        ("/auth/password/forgot", json!({"email": "nobody"}), "email"),
        (
            "/auth/password/forgot",
            json!({"email": "a@example.com\r\nBcc: b@example.com"}),
            "email",
        ),
        ("/auth/password/reset", json!({"newPassword": NEW}), "token"),
        (
            "/auth/password/reset",
            json!({"token": "x", "newPassword": "short"}),
            "newPassword",
        ),
        (
            "/auth/password/reset",
            json!({"token": null, "newPassword": NEW}),
            "token",
        ),
    ] {
        let problem = person
            .client
            .post(path)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{path} {body}");
    }
    app.client()
        .post("/auth/password")
        .json(&json!({}))
        .call()
        .await
        .expect(401);
}

on_each_database!(wrong_current_passwords_are_throttled);
/// A stolen access token is no way to try passwords: they are counted as failed logins are.
async fn wrong_current_passwords_are_throttled(backend: Backend) {
    let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let person = Person::register(&app.client()).await;
    for _ in 0..5 {
        assert_eq!(
            change(&person.client, "a wrong guess", NEW)
                .await
                .expect(403)
                .problem()
                .code,
            "WRONG_PASSWORD"
        );
    }
    let slowed = change(&person.client, PASSWORD, NEW).await.expect(429);
    assert_eq!(slowed.header("retry-after"), "1");
    // Logins are counted by themselves.
    login(&app.client(), &person.email, PASSWORD)
        .await
        .expect(200);
    micros.fetch_add(1_000_000, Ordering::Relaxed);
    change(&person.client, PASSWORD, NEW).await.expect(204);
    change(&person.client, "a wrong guess", NEW)
        .await
        .expect(403);
}

on_each_database!(one_of_two_concurrent_password_changes_succeeds);
/// Of two changes at once one is made, and the login of the other has ended.
async fn one_of_two_concurrent_password_changes_succeeds(backend: Backend) {
    let app = TestApp::new(backend).await;
    for _ in 0..3 {
        let person = Person::register(&app.client()).await;
        let other: Login = login(&app.client(), &person.email, PASSWORD)
            .await
            .expect(200)
            .data();
        let elsewhere = app.client().bearer(&other.access_token);
        let (here, there) = tokio::join!(
            change(&person.client, PASSWORD, "the password from here"),
            change(&elsewhere, PASSWORD, "the password from there")
        );
        let (winner, password, loser) = match here.status.as_u16() {
            204 => (&person.client, "the password from here", there),
            _ => (&elsewhere, "the password from there", here),
        };
        assert!(
            [401, 403].contains(&loser.status.as_u16()),
            "{}",
            loser.body
        );
        winner.get("/tenant/tenants").call().await.expect(200);
        login(&app.client(), &person.email, password)
            .await
            .expect(200);
        login(&app.client(), &person.email, PASSWORD)
            .await
            .expect(401);
    }
}

on_each_database!(password_reset_token_works_once);
async fn password_reset_token_works_once(backend: Backend) {
    let app = service(backend).await;
    let worker = tokio::spawn(upkeep::run(app.app.clone()));
    let person = Person::register(&app.client()).await;
    for _ in 0..5 {
        login(&app.client(), &person.email, "a wrong guess")
            .await
            .expect(401);
    }
    let first = token_of_forgot(&app, &person.email).await;
    let token = token_of_forgot(&app, &person.email).await;
    assert_ne!(first, token);
    for wrong in [
        "",
        "x",
        &token[1..],
        &format!("{token} "),
        "' OR 1=1 --",
        &"x".repeat(10_000),
    ] {
        let refused = reset(&app.client(), wrong, NEW).await.expect(400);
        assert_eq!(refused.problem().code, "INVALID_RESET_TOKEN");
    }
    person
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200);
    let client = app.client();
    let (a, b) = tokio::join!(reset(&client, &token, NEW), reset(&client, &token, NEW));
    let mut statuses = [a.status.as_u16(), b.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 400]);
    person
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(401);
    // Not even slowed: who reads the mail is who they say.
    login(&app.client(), &person.email, NEW).await.expect(200);
    login(&app.client(), &person.email, PASSWORD)
        .await
        .expect(401);
    for used in [first, token] {
        reset(&app.client(), &used, "a third password")
            .await
            .expect(400);
    }
    let mut conn = app.app.db.read().await.expect("a connection");
    let query = "SELECT action, actor FROM audit_logs WHERE action LIKE 'password.%' \
                 ORDER BY audit_log_id";
    let audit: Vec<(String, String)> = sql(query).all(&mut conn).await.expect("rows");
    let audit: Vec<(&str, &str)> = audit
        .iter()
        .map(|(action, actor)| (action.as_str(), actor.as_str()))
        .collect();
    let forgot = ("password.forgot", "SYSTEM");
    assert_eq!(audit, [forgot, forgot, ("password.reset", "USER")]);
    drop(conn);
    app.app.shutdown.cancel();
    worker.await.expect("the worker ends");
}

on_each_database!(password_reset_token_ends_after_an_hour_or_a_password_change);
async fn password_reset_token_ends_after_an_hour_or_a_password_change(backend: Backend) {
    let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
    let options = Options {
        clock: Some(clock),
        settings: mail_settings(),
    };
    let app = TestApp::with(backend, options).await;
    let worker = tokio::spawn(upkeep::run(app.app.clone()));
    let person = Person::register(&app.client()).await;
    let token = token_of_forgot(&app, &person.email).await;
    change(&person.client, PASSWORD, NEW).await.expect(204);
    reset(&app.client(), &token, PASSWORD).await.expect(400);
    let token = token_of_forgot(&app, &person.email).await;
    micros.fetch_add(3600 * 1_000_000, Ordering::Relaxed);
    reset(&app.client(), &token, PASSWORD).await.expect(400);
    login(&app.client(), &person.email, NEW).await.expect(200);
    // The mail that never went out is of no use either.
    app.app.task_wake.notify_one();
    let ends_at = Instant::now() + PATIENCE;
    while !waiting(&app).await.is_empty() {
        assert!(Instant::now() < ends_at, "mail that is of no use stays");
        tokio::time::sleep(Duration::from_millis(50)).await;
        micros.fetch_add(60 * 1_000_000, Ordering::Relaxed);
        app.app.task_wake.notify_one();
    }
    app.app.shutdown.cancel();
    worker.await.expect("the worker ends");
}

on_each_database!(password_reset_does_not_reveal_accounts);
/// Nothing in the answer, nor in what is written before it, tells whether there is such an account.
async fn password_reset_does_not_reveal_accounts(backend: Backend) {
    let (clock, _) = set_clock(Timestamp::from_micros(NOON));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            settings: mail_settings(),
        },
    )
    .await;
    let worker = tokio::spawn(upkeep::run(app.app.clone()));
    let person = Person::register(&app.client()).await;
    let external = external_account(&app).await;
    let known = forgot(&app.client(), &person.email).await.expect(204);
    let unknown = forgot(&app.client(), "nobody@example.com")
        .await
        .expect(204);
    let without_password = forgot(&app.client(), &external).await.expect(204);
    let names = |reply: &Reply| {
        reply
            .headers
            .keys()
            .map(|name| name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names(&known), &known.body),
        (names(&unknown), &unknown.body)
    );
    assert_eq!(
        (names(&known), &known.body),
        (names(&without_password), &without_password.body)
    );
    work_until_looked_up(&app).await;
    let mails = waiting(&app).await;
    assert_eq!(
        mails
            .iter()
            .map(|mail| mail.to.as_str())
            .collect::<Vec<_>>(),
        [person.email.as_str()]
    );
    // Asking again and again fills nobody's mailbox, and is slowed for both alike.
    for email in [person.email.as_str(), "nobody@example.com"] {
        for _ in 0..9 {
            forgot(&app.client(), email).await.expect(204);
        }
        let slowed = forgot(&app.client(), email).await.expect(429);
        assert_eq!(
            (slowed.problem().code.as_str(), slowed.header("retry-after")),
            ("RATE_LIMITED", "1")
        );
    }
    work_until_looked_up(&app).await;
    assert_eq!(waiting(&app).await.len(), 3);
    app.app.shutdown.cancel();
    worker.await.expect("the worker ends");
}

/// The e-mail of an account that another issuer vouches for.
async fn external_account(app: &TestApp) -> String {
    let person = Person::register(&app.client()).await;
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql(
        "UPDATE users SET issuer = 'https://login.example.com', subject = 'ada', \
         password_hash = '' WHERE user_uuid = $1",
    )
    .bind(person.login.user_uuid)
    .execute(&mut tx)
    .await
    .expect("a change");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    let refused = change(&person.client, PASSWORD, NEW)
        .await
        .expect(409)
        .problem();
    assert!(
        refused.code == "NO_PASSWORD" && refused.message.contains("https://login.example.com"),
        "{refused:?}"
    );
    person.email
}

on_each_database!(password_reset_without_a_mail_server_is_refused);
async fn password_reset_without_a_mail_server_is_refused(backend: Backend) {
    let app = TestApp::new(backend).await;
    let person = Person::register(&app.client()).await;
    let refused = forgot(&app.client(), &person.email).await.expect(503);
    let problem = refused.problem();
    assert!(
        problem.code == "MAIL_NOT_CONFIGURED" && problem.message.contains("smtp-url"),
        "{problem:?}"
    );
    let tenant = hub_tests::Tenant::create_by(&person).await;
    let body = json!({"email": "ada@example.com"});
    let refused = tenant
        .client
        .post("/tenant/personas/invite")
        .json(&body)
        .call()
        .await
        .expect(503);
    assert!(
        refused.problem().message.contains("smtp-url"),
        "{}",
        refused.body
    );
    let other = Person::register(&app.client()).await;
    let body = json!({"personaUuid": other.login.persona_uuid});
    let let_in: Value = tenant
        .client
        .post("/tenant/personas/invite")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(let_in["member"]["role"], "VIEWER");
}
