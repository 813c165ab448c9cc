//! Registering, logging in, keeping a login alive and ending it; and how guessing is slowed down.

use std::sync::atomic::Ordering;

use hub_base::db::sql;
use hub_core::config::{Config, PasswordCost};
use hub_tests::app::set_clock;
use hub_tests::people::{Login, PASSWORD};
use hub_tests::{Backend, Call, Client, Options, Person, Reply, TestApp, on_each_database};
use serde_json::{Value, json};

const NOON: i64 = 1_800_014_400_000_000;

async fn login(client: &Client, email: &str, password: &str) -> Reply {
    client
        .post("/auth/login")
        .json(&json!({"email": email, "password": password}))
        .call()
        .await
}

async fn refresh(client: &Client, token: &str) -> Reply {
    client
        .post("/auth/refresh")
        .json(&json!({"refreshToken": token}))
        .call()
        .await
}

/// Every action in the audit log, oldest first.
async fn actions(app: &TestApp) -> Vec<String> {
    let mut conn = app.app.db.read().await.expect("a connection");
    let rows: Vec<(String,)> = sql(
        "SELECT action FROM audit_logs WHERE object_type <> 'signing_key' ORDER BY audit_log_id",
    )
    .all(&mut conn)
    .await
    .expect("rows");
    rows.into_iter().map(|(action,)| action).collect()
}

on_each_database!(account_is_created_once_and_email_is_case_insensitive);
async fn account_is_created_once_and_email_is_case_insensitive(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client();
    let body = json!({"email": "Ada@Example.com", "password": PASSWORD, "nickname": " Ada "});
    let reply = client
        .post("/auth/register")
        .json(&body)
        .call()
        .await
        .expect(201);
    assert_eq!(reply.header("cache-control"), "no-store");
    let registered: Login = reply.data();
    let body = json!({"email": " aDA@example.COM", "password": "another password"});
    let taken = client
        .post("/auth/register")
        .json(&body)
        .call()
        .await
        .expect(409);
    assert_eq!(taken.problem().code, "EMAIL_TAKEN");
    let again: Login = login(&client, "ADA@EXAMPLE.COM", PASSWORD)
        .await
        .expect(200)
        .data();
    assert_eq!(
        (again.user_uuid, again.persona_uuid),
        (registered.user_uuid, registered.persona_uuid)
    );
    assert_ne!(again.refresh_token, registered.refresh_token);
    for session in [registered, again] {
        client
            .bearer(&session.access_token)
            .get("/tenant/tenants")
            .call()
            .await
            .expect(200);
    }
    assert_eq!(actions(&app).await, ["user.register", "user.login"]);
}

on_each_database!(concurrent_registrations_of_an_email_create_one_account);
/// Of people who register one e-mail at once, one does.
async fn concurrent_registrations_of_an_email_create_one_account(backend: Backend) {
    let app = TestApp::new(backend).await;
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let client = app.client();
    let replies = futures_util::future::join_all(
        (0..8).map(|_| client.post("/auth/register").json(&body).call()),
    )
    .await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
    assert_eq!(actions(&app).await, ["user.register"]);
}

on_each_database!(invalid_auth_field_is_refused_by_name);
async fn invalid_auth_field_is_refused_by_name(backend: Backend) {
    let long = |count: usize| "x".repeat(count);
    let cases: Vec<(&str, Value, &[&str])> = vec![
        ("/auth/register", json!({}), &["email", "password"]),
        (
            "/auth/register",
            json!({"email": 1, "password": null, "nickname": []}),
            &["email", "password", "nickname"],
        ),
        (
            "/auth/register",
            json!({"email": "ada", "password": true}),
            &["email", "password"],
        ),
        ("/auth/register", json!({"password": PASSWORD}), &["email"]),
        (
            "/auth/register",
            json!({"email": null, "password": PASSWORD}),
            &["email"],
        ),
        (
            "/auth/register",
            json!({"email": ["a@example.com"], "password": PASSWORD}),
            &["email"],
        ),
        (
            "/auth/register",
            json!({"email": "ada", "password": PASSWORD}),
            &["email"],
        ),
        (
            "/auth/register",
            json!({"email": "a\u{0}@example.com", "password": PASSWORD}),
            &["email"],
        ),
        (
            "/auth/register",
            json!({"email": format!("{}@example.com", long(500)), "password": PASSWORD}),
            &["email"],
        ),
        (
            "/auth/register",
            json!({"email": "a@example.com"}),
            &["password"],
        ),
        (
            "/auth/register",
            json!({"email": "a@example.com", "password": 12_345_678}),
            &["password"],
        ),
        (
            "/auth/register",
            json!({"email": "a@example.com", "password": "1234567"}),
            &["password"],
        ),
        (
            "/auth/register",
            json!({"email": "a@example.com", "password": long(201)}),
            &["password"],
        ),
        (
            "/auth/register",
            json!({"email": "a@example.com", "password": PASSWORD, "nickname": 1}),
            &["nickname"],
        ),
        (
            "/auth/register",
            json!({"email": "a@example.com", "password": PASSWORD, "nickname": " "}),
            &["nickname"],
        ),
        (
            "/auth/register",
            json!({"email": "a@example.com", "password": PASSWORD, "nickname": "\u{0}"}),
            &["nickname"],
        ),
        (
            "/auth/register",
            json!({"email": "a@example.com", "password": PASSWORD, "nickname": long(81)}),
            &["nickname"],
        ),
        (
            "/auth/register",
            json!({"email": "", "password": "", "nickname": ""}),
            &["email", "password", "nickname"],
        ),
        ("/auth/register", json!([]), &["body"]),
        ("/auth/register", json!("text"), &["body"]),
        ("/auth/login", json!({"password": PASSWORD}), &["email"]),
        (
            "/auth/login",
            json!({"email": "ada", "password": PASSWORD}),
            &["email"],
        ),
        (
            "/auth/login",
            json!({"email": "a@example.com"}),
            &["password"],
        ),
        (
            "/auth/login",
            json!({"email": "a@example.com", "password": {}}),
            &["password"],
        ),
        ("/auth/refresh", json!({}), &["refreshToken"]),
        (
            "/auth/refresh",
            json!({"refreshToken": 7}),
            &["refreshToken"],
        ),
        ("/auth/logout", json!({}), &["refreshToken"]),
        (
            "/auth/logout",
            json!({"refreshToken": false}),
            &["refreshToken"],
        ),
    ];
    let app = TestApp::new(backend).await;
    let client = app.client();
    for (path, body, fields) in &cases {
        let problem = client
            .post(path)
            .json(body)
            .call()
            .await
            .expect(400)
            .problem();
        let named: Vec<&str> = problem
            .errors
            .iter()
            .map(|error| error.field.as_str())
            .collect();
        assert_eq!(&named, fields, "{path} {body}");
    }
    for path in [
        "/auth/register",
        "/auth/login",
        "/auth/refresh",
        "/auth/logout",
    ] {
        let malformed = client
            .post(path)
            .header("content-type", "application/json")
            .body("{\"email\":");
        assert_eq!(
            malformed.call().await.expect(400).problem().code,
            "MALFORMED_JSON"
        );
        client.post(path).body("{}").call().await.expect(415);
    }
    assert!(actions(&app).await.is_empty());
}

on_each_database!(reused_refresh_token_ends_the_login);
async fn reused_refresh_token_ends_the_login(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client();
    let person = Person::register(&client).await;
    let other: Login = login(&client, &person.email, PASSWORD)
        .await
        .expect(200)
        .data();
    let second: Login = refresh(&client, &person.login.refresh_token)
        .await
        .expect(200)
        .data();
    assert_eq!(second.user_uuid, person.login.user_uuid);
    client
        .bearer(&second.access_token)
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200);
    let third: Login = refresh(&client, &second.refresh_token)
        .await
        .expect(200)
        .data();
    let reused = refresh(&client, &person.login.refresh_token)
        .await
        .expect(401);
    assert_eq!(reused.problem().code, "INVALID_REFRESH_TOKEN");
    refresh(&client, &third.refresh_token).await.expect(401);
    // Another login of the same person is another matter.
    refresh(&client, &other.refresh_token).await.expect(200);
    assert_eq!(
        actions(&app).await,
        ["user.register", "user.login", "login.revoke"]
    );
}

on_each_database!(refresh_token_used_twice_concurrently_ends_the_login);
/// Two who hold one token cannot both go on, however close they come.
async fn refresh_token_used_twice_concurrently_ends_the_login(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = TestApp::replica_of(&app, Options::default()).await;
    for _ in 0..5 {
        let person = Person::register(&app.client()).await;
        let (here, there) = (app.client(), replica.client());
        let token = &person.login.refresh_token;
        let replies = futures_util::future::join_all([
            refresh(&here, token),
            refresh(&there, token),
            refresh(&here, token),
            refresh(&there, token),
        ])
        .await;
        let mut won: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 200).collect();
        let won = won.pop().filter(|_| won.is_empty()).expect("one won");
        assert!(replies.iter().filter(|reply| reply.status == 401).count() == 3);
        refresh(&here, &won.data::<Login>().refresh_token)
            .await
            .expect(401);
    }
}

on_each_database!(login_ends_on_logout_and_on_expiry);
async fn login_ends_on_logout_and_on_expiry(backend: Backend) {
    let (clock, micros) = set_clock(hub_protocol::Timestamp::from_micros(NOON));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let client = app.client();
    let person = Person::register(&client).await;
    let logout = |token: &str| {
        client
            .post("/auth/logout")
            .json(&json!({"refreshToken": token}))
            .call()
    };
    // The access token lives for 15 minutes.
    assert_eq!(
        person.login.expires_at.as_micros(),
        NOON + 15 * 60 * 1_000_000
    );
    micros.fetch_add((15 * 60 - 1) * 1_000_000, Ordering::Relaxed);
    person
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200);
    micros.fetch_add(1_000_000, Ordering::Relaxed);
    person
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(401);
    let second: Login = refresh(&client, &person.login.refresh_token)
        .await
        .expect(200)
        .data();
    assert_eq!(logout(&second.refresh_token).await.expect(204).body, "");
    refresh(&client, &second.refresh_token).await.expect(401);
    logout(&second.refresh_token).await.expect(204);
    logout("nobody's").await.expect(204);
    let third: Login = login(&client, &person.email, PASSWORD)
        .await
        .expect(200)
        .data();
    micros.fetch_add((30 * 86_400 - 1) * 1_000_000, Ordering::Relaxed);
    let fourth: Login = refresh(&client, &third.refresh_token)
        .await
        .expect(200)
        .data();
    micros.fetch_add(1_000_000, Ordering::Relaxed);
    refresh(&client, &fourth.refresh_token).await.expect(401);
    assert_eq!(
        actions(&app).await,
        ["user.register", "user.logout", "user.login"]
    );
}

on_each_database!(failed_logins_are_throttled_per_account);
/// The delay grows, counts on every replica, says how long it is, and ends with a good login or an
/// hour of peace.
async fn failed_logins_are_throttled_per_account(backend: Backend) {
    let (clock, micros) = set_clock(hub_protocol::Timestamp::from_micros(NOON));
    let options = Options {
        clock: Some(clock),
        ..Options::default()
    };
    let app = TestApp::with(backend, options.clone()).await;
    let replica = TestApp::replica_of(&app, options).await;
    let clients = [app.client(), replica.client()];
    // People register from elsewhere: the guesses are a stranger's.
    let person = Person::register(&clients[0]).await;
    // The same for an account as for none.
    for email in [person.email.as_str(), "nobody@example.com"] {
        for attempt in 0..5 {
            let failed = login(&clients[attempt % 2], email, "wrong password")
                .await
                .expect(401)
                .problem();
            assert_eq!(failed.code, "LOGIN_FAILED");
            assert_eq!(failed.message, "the e-mail or the password is wrong");
        }
        for delay_secs in [1, 2, 4, 8] {
            for (client, password) in [(&clients[0], "wrong password"), (&clients[1], PASSWORD)] {
                let slowed = login(client, email, password).await.expect(429);
                assert_eq!(slowed.problem().code, "RATE_LIMITED");
                assert_eq!(slowed.header("retry-after"), delay_secs.to_string());
            }
            micros.fetch_add(delay_secs * 1_000_000, Ordering::Relaxed);
            login(&clients[0], email, "wrong password")
                .await
                .expect(401);
        }
    }
    micros.fetch_add(16_000_000, Ordering::Relaxed);
    login(&clients[1], &person.email, PASSWORD)
        .await
        .expect(200);
    for _ in 0..5 {
        login(&clients[0], &person.email, "wrong password")
            .await
            .expect(401);
    }
    // The address is known from the good login: only wrong passwords are refused.
    login(&clients[0], &person.email, "wrong password")
        .await
        .expect(429);
    login(&clients[0], &person.email, PASSWORD)
        .await
        .expect(200);
    login(&clients[0], "nobody@example.com", "wrong password")
        .await
        .expect(401);
    login(&clients[0], "nobody@example.com", "wrong password")
        .await
        .expect(429);
    micros.fetch_add(3601 * 1_000_000, Ordering::Relaxed);
    for email in [person.email.as_str(), "nobody@example.com"] {
        for _ in 0..5 {
            login(&clients[0], email, "wrong password")
                .await
                .expect(401);
        }
    }
}

on_each_database!(failed_login_takes_the_same_time_for_unknown_accounts);
/// Whoever listens to the clock learns nothing either. The fastest of each kind count: other load
/// adds time to some logins and not to others, so on a busy machine it takes more of them.
async fn failed_login_takes_the_same_time_for_unknown_accounts(backend: Backend) {
    const ROUNDS: std::ops::Range<usize> = 20..300;
    let (clock, micros) = set_clock(hub_protocol::Timestamp::from_micros(NOON));
    let options = Options {
        clock: Some(clock),
        ..Options::default()
    };
    let at_real_cost = |config: &mut Config| config.password_cost = PasswordCost::default();
    let app = TestApp::configured(backend, options, at_real_cost).await;
    let client = app.client();
    let mut fastest = [std::time::Duration::MAX; 2];
    for round in 1..=ROUNDS.end {
        let person = Person::register(&client).await;
        let emails = [person.email, format!("nobody-{round}@example.com")];
        let mut asked: Vec<_> = fastest.iter_mut().zip(emails).collect();
        // What was asked before may make the second answer of a round slower.
        if round % 2 == 0 {
            asked.reverse();
        }
        for (fastest, email) in asked {
            let asked_at = std::time::Instant::now();
            login(&client, &email, "wrong password").await.expect(401);
            *fastest = asked_at.elapsed().min(*fastest);
        }
        let [known, unknown] = fastest.map(|fastest| fastest.as_secs_f64());
        if round >= ROUNDS.start && (0.67..1.5).contains(&(known / unknown)) {
            return;
        }
        // An address has fewer guesses than these an hour.
        micros.fetch_add(3601 * 1_000_000, Ordering::Relaxed);
    }
    panic!("{:?} with an account, {:?} without", fastest[0], fastest[1]);
}

on_each_database!(concurrent_failed_logins_are_throttled);
/// Guesses that are under way count: a burst gets no further than one after another.
async fn concurrent_failed_logins_are_throttled(backend: Backend) {
    let (clock, _) = set_clock(hub_protocol::Timestamp::from_micros(NOON));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let client = app.client();
    let person = Person::register(&client).await;
    let guesses = (0..30).map(|_| login(&client, &person.email, "wrong password"));
    let replies = futures_util::future::join_all(guesses).await;
    let count = |status: u16| {
        replies
            .iter()
            .filter(|reply| reply.status == status)
            .count()
    };
    assert_eq!((count(401), count(429)), (5, 25));
}

on_each_database!(failed_logins_are_throttled_per_address);
async fn failed_logins_are_throttled_per_address(backend: Backend) {
    let (clock, micros) = set_clock(hub_protocol::Timestamp::from_micros(NOON));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let client = app.client();
    let person = Person::register(&client).await;
    login(&client, &person.email, PASSWORD).await.expect(200);
    for guess in 0..50 {
        login(
            &client,
            &format!("guess{guess}@example.com"),
            "wrong password",
        )
        .await
        .expect(401);
    }
    let slowed = login(&client, "guess@example.com", PASSWORD)
        .await
        .expect(429);
    assert_eq!(slowed.header("retry-after"), "1");
    let body = json!({"email": person.email, "password": PASSWORD});
    client
        .post("/auth/register")
        .json(&body)
        .call()
        .await
        .expect(429);
    // Who logged in from here before is not held up, and does not excuse the address's guesses.
    login(&client, &person.email, PASSWORD).await.expect(200);
    login(&client, "guess@example.com", "wrong password")
        .await
        .expect(429);
    micros.fetch_add(1_000_000, Ordering::Relaxed);
    login(&client, "guess@example.com", "wrong password")
        .await
        .expect(401);
    login(&client, "guess@example.com", "wrong password")
        .await
        .expect(429);
}

on_each_database!(secrets_are_stored_as_hashes);
/// What is stored and what is recorded holds no password and no token.
async fn secrets_are_stored_as_hashes(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client();
    let person = Person::register(&client).await;
    let second: Login = refresh(&client, &person.login.refresh_token)
        .await
        .expect(200)
        .data();
    login(&client, PASSWORD, "x").await.expect(400);
    let mut conn = app.app.db.read().await.expect("a connection");
    let mut stored = String::new();
    for query in [
        "SELECT email || password_hash FROM users",
        "SELECT subject FROM login_failures",
        "SELECT action || target || CAST(detail AS TEXT) FROM audit_logs",
    ] {
        let rows: Vec<(String,)> = sql(query).all(&mut conn).await.expect("rows");
        stored.extend(rows.into_iter().map(|(text,)| text));
    }
    let tokens: Vec<(Vec<u8>,)> = sql("SELECT token_hash FROM refresh_tokens")
        .all(&mut conn)
        .await
        .expect("rows");
    assert_eq!(tokens.len(), 2);
    assert!(stored.contains("$argon2id$"));
    for secret in [
        PASSWORD,
        &person.login.refresh_token,
        &second.refresh_token,
        &second.access_token,
    ] {
        assert!(!stored.contains(secret), "{secret} is in {stored}");
        assert!(
            tokens
                .iter()
                .all(|(token,)| token.as_slice() != secret.as_bytes())
        );
    }
}
