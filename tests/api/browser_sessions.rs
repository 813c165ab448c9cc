//! Browsers that are signed in: what their pages get to see, what keeps them signed in, and what
//! other sites can do about it.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use hub_base::db::sql;
use hub_core::config::Settings;
use hub_tests::app::set_clock;
use hub_tests::issuer::OwnIssuer;
use hub_tests::people::PASSWORD;
use hub_tests::{Backend, Call, Client, Options, Person, Reply, TestApp, on_each_database};
use reqwest::header::{COOKIE, HeaderName, ORIGIN, SET_COOKIE};
use serde_json::{Value, json};

const NOON: i64 = 1_800_014_400_000_000;
const DAY_SECS: i64 = 24 * 3600;
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A page of the service.
fn page(client: &Client) -> Client {
    client.header(SITE, "same-origin")
}

/// A page in a browser with this cookie.
fn browser(client: &Client, cookie: &str) -> Client {
    page(client).header(COOKIE, cookie)
}

async fn sign_in(client: &Client, email: &str, password: &str) -> Reply {
    page(client)
        .post("/auth/session")
        .json(&json!({"email": email, "password": password}))
        .call()
        .await
}

/// Name and value of the only cookie that is set.
fn cookie_of(reply: &Reply) -> String {
    let cookies: Vec<&str> = reply
        .headers
        .get_all(SET_COOKIE)
        .iter()
        .map(|cookie| cookie.to_str().expect("text"))
        .collect();
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    cookies[0].split(';').next().expect("a pair").to_owned()
}

/// The person's browser, signed in.
async fn signed_in(client: &Client, person: &Person) -> Client {
    let reply = sign_in(client, &person.email, PASSWORD).await.expect(200);
    browser(client, &cookie_of(&reply))
}

async fn refresh(browser: &Client) -> Reply {
    browser.post("/auth/session/refresh").call().await
}

fn token_of(reply: &Reply) -> String {
    reply.json()["data"]["accessToken"]
        .as_str()
        .expect("a token")
        .to_owned()
}

async fn ask(client: &Client, token: &str) -> Reply {
    client.bearer(token).get("/tenant/tenants").call().await
}

async fn last_action(app: &TestApp) -> (String, Option<Value>) {
    let mut conn = app.app.db.read().await.expect("a connection");
    let row = sql("SELECT action, detail FROM audit_logs ORDER BY audit_log_id DESC LIMIT 1")
        .one(&mut conn)
        .await;
    row.expect("an entry")
}

on_each_database!(a_browser_is_signed_in_until_it_signs_out);
async fn a_browser_is_signed_in_until_it_signs_out(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client();
    let person = Person::register(&client).await;
    let wrong = sign_in(&client, &person.email, "a wrong guess")
        .await
        .expect(401);
    assert_eq!(
        (
            wrong.problem().code.as_str(),
            wrong.headers.contains_key(SET_COOKIE)
        ),
        ("LOGIN_FAILED", false)
    );
    let reply = sign_in(&client, &person.email, PASSWORD).await.expect(200);
    assert_eq!(
        last_action(&app).await,
        ("user.login".to_owned(), Some(json!({"browser": true})))
    );
    let set = reply.header("set-cookie").to_owned();
    assert!(
        set.starts_with("hub_session=")
            && set.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict")
    );
    let cookie = cookie_of(&reply);
    let secret = cookie.split_once('=').expect("a value").1;
    assert!(
        secret.len() == 43 && !reply.body.contains(secret),
        "a script cannot read what continues the login"
    );
    let session: Value = reply.data();
    let members: Vec<&String> = session.as_object().expect("an object").keys().collect();
    assert_eq!(
        members,
        ["accessToken", "expiresAt", "personaUuid", "userUuid"]
    );
    ask(&client, &token_of(&reply)).await.expect(200);

    // The cookie opens nothing by itself, and is no refresh token.
    browser(&client, &cookie)
        .get("/tenant/tenants")
        .call()
        .await
        .expect(401);
    client
        .post("/auth/refresh")
        .json(&json!({"refreshToken": secret}))
        .call()
        .await
        .expect(401);

    let browser = browser(&client, &cookie);
    let again = refresh(&browser).await.expect(200);
    assert_ne!(cookie_of(&again), cookie);
    assert_ne!(token_of(&again), token_of(&reply));

    let out = browser.delete("/auth/session").call().await.expect(204);
    assert_eq!(
        out.header("set-cookie"),
        "hub_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
    );
    assert_eq!(last_action(&app).await.0, "user.logout");
    refresh(&browser).await.expect(204);
    for token in [token_of(&reply), token_of(&again)] {
        ask(&client, &token).await.expect(401);
    }
    browser.delete("/auth/session").call().await.expect(204);
    page(&client)
        .delete("/auth/session")
        .call()
        .await
        .expect(204);
    refresh(&page(&client)).await.expect(204);
}

on_each_database!(tabs_that_refresh_at_once_stay_signed_in);
async fn tabs_that_refresh_at_once_stay_signed_in(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = TestApp::replica_of(&app, Options::default()).await;
    let person = Person::register(&app.client()).await;
    let browser = signed_in(&app.client(), &person).await;
    let tabs = [browser.clone(), browser.at(&replica.url)];
    for reply in join_all((0..8).map(|number| refresh(&tabs[number % 2]))).await {
        ask(&app.client(), &token_of(&reply.expect(200)))
            .await
            .expect(200);
    }
    refresh(&browser).await.expect(200);
}

on_each_database!(cookies_are_replaced_and_a_copy_ends_the_login);
async fn cookies_are_replaced_and_a_copy_ends_the_login(backend: Backend) {
    let (clock, micros) = set_clock(hub_protocol::Timestamp::from_micros(NOON));
    let options = Options {
        clock: Some(clock),
        ..Options::default()
    };
    let app = TestApp::with(backend, options).await;
    let at = |secs: i64| micros.store(NOON + secs * 1_000_000, Ordering::SeqCst);
    let client = app.client();
    let person = Person::register(&client).await;
    let first = signed_in(&client, &person).await;
    let next = |reply: &Reply| browser(&client, &cookie_of(reply));
    at(900);
    let second = next(&refresh(&first).await.expect(200));
    // Another tab, whose request was on its way: it is signed in, and leaves the cookie alone.
    at(930);
    let late = refresh(&first).await.expect(200);
    assert!(!late.headers.contains_key(SET_COOKIE));
    // An answer that was lost: nobody has the second cookie.
    at(1800);
    let third = next(&refresh(&first).await.expect(200));
    refresh(&second).await.expect(204);
    // Within a minute the cookie stays the same.
    at(1830);
    let same = next(&refresh(&third).await.expect(200));
    at(2700);
    let fourth = next(&refresh(&same).await.expect(200));
    at(3600);
    let fifth = next(&refresh(&fourth).await.expect(200));
    refresh(&fifth).await.expect(200);
    // Somebody has a copy of the fourth. The fifth is in use, so both end.
    at(3601);
    refresh(&fourth).await.expect(200);
    refresh(&fifth).await.expect(200);
    at(3661);
    refresh(&fourth).await.expect(204);
    let (action, detail) = last_action(&app).await;
    assert_eq!(action, "login.revoke");
    assert!(
        detail.expect("a detail")["reason"]
            .as_str()
            .is_some_and(|why| why.contains("cookie"))
    );
    refresh(&fifth).await.expect(204);
}

on_each_database!(other_sites_cannot_use_the_cookie);
async fn other_sites_cannot_use_the_cookie(backend: Backend) {
    let public_url = Some("https://hubs.example.com".to_owned());
    let settings = Settings {
        public_url,
        cors_origins: Some("https://app.example.com".to_owned()),
        ..Settings::default()
    };
    let app = TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let client = app.client();
    let person = Person::register(&client).await;
    let reply = sign_in(&client, &person.email, PASSWORD).await.expect(200);
    let set = reply.header("set-cookie");
    assert!(
        set.starts_with("__Host-hub_session=")
            && set.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure")
    );
    let client = client.header(COOKIE, &cookie_of(&reply));
    let here = app.url.clone();
    let own = "https://hubs.example.com";
    for (site, origin, is_own) in [
        (None, None, false),
        (None, Some("https://evil.example"), false),
        (None, Some("https://app.example.com"), false),
        (None, Some("http://hubs.example.com"), false),
        (None, Some("null"), false),
        (Some("cross-site"), Some(own), false),
        (Some("same-site"), Some(own), false),
        (Some("none"), None, false),
        (None, Some(own), true),
        (None, Some(here.as_str()), true),
        (
            Some("same-origin"),
            Some("https://a-proxy-changed-this.example"),
            true,
        ),
    ] {
        let mut caller = client.clone();
        for (name, value) in [(SITE, site), (ORIGIN, origin)] {
            if let Some(value) = value {
                caller = caller.header(name, value);
            }
        }
        let body = json!({"email": person.email, "password": PASSWORD});
        let replies = [
            refresh(&caller).await,
            caller.post("/auth/session").json(&body).call().await,
        ];
        for reply in replies {
            match is_own {
                true => drop(reply.expect(200)),
                false => assert_eq!(
                    reply.expect(403).problem().code,
                    "OTHER_ORIGIN",
                    "{site:?} {origin:?}"
                ),
            }
        }
        if !is_own {
            caller.delete("/auth/session").call().await.expect(403);
        }
    }
    refresh(&page(&client)).await.expect(200);
    // A form of another site, and the cookie of a host beside this one.
    let form = page(&client)
        .post("/auth/session")
        .header("content-type", "text/plain");
    form.body("{\"email\": \"a@example.com\", \"password\": \"x\"}")
        .call()
        .await
        .expect(415);
    let tossed = client.header(COOKIE, &cookie_of(&reply).replace("__Host-", ""));
    refresh(&page(&tossed)).await.expect(204);
}

on_each_database!(all_logins_end_at_once_and_everywhere);
async fn all_logins_end_at_once_and_everywhere(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = TestApp::replica_of(&app, Options::default()).await;
    let client = app.client();
    let (person, other) = (
        Person::register(&client).await,
        Person::register(&client).await,
    );
    let browsers = [
        signed_in(&client, &person).await,
        signed_in(&client, &person).await,
    ];
    let theirs = signed_in(&client, &other).await;
    let token = token_of(&refresh(&browsers[0]).await.expect(200));
    ask(&client.at(&replica.url), &token).await.expect(200);
    client.delete("/auth/sessions").call().await.expect(401);
    browsers[0]
        .delete("/auth/sessions")
        .call()
        .await
        .expect(401);
    let out = client
        .bearer(&token)
        .delete("/auth/sessions")
        .call()
        .await
        .expect(204);
    assert!(out.header("set-cookie").starts_with("hub_session=; "));
    let expected = (
        "user.logout_everywhere".to_owned(),
        Some(json!({"endedLogins": 3})),
    );
    assert_eq!(last_action(&app).await, expected);
    for url in [&app.url, &replica.url] {
        for token in [&token, &person.login.access_token] {
            ask(&client.at(url), token).await.expect(401);
        }
        for browser in &browsers {
            refresh(&browser.at(url)).await.expect(204);
        }
    }
    refresh(&theirs).await.expect(200);

    // Another password ends all but the one that sets it.
    let browsers = [
        signed_in(&client, &person).await,
        signed_in(&client, &person).await,
    ];
    let token = token_of(&refresh(&browsers[0]).await.expect(200));
    let body = json!({"currentPassword": PASSWORD, "newPassword": "another good password"});
    client
        .bearer(&token)
        .post("/auth/password")
        .json(&body)
        .call()
        .await
        .expect(204);
    refresh(&browsers[0]).await.expect(200);
    refresh(&browsers[1]).await.expect(204);
}

on_each_database!(a_cookie_is_good_for_a_week_without_use_and_for_a_month);
async fn a_cookie_is_good_for_a_week_without_use_and_for_a_month(backend: Backend) {
    let (clock, micros) = set_clock(hub_protocol::Timestamp::from_micros(NOON));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let at = |secs: i64| micros.store(NOON + secs * 1_000_000, Ordering::SeqCst);
    let client = app.client();
    let person = Person::register(&client).await;
    let (used, unused) = (
        signed_in(&client, &person).await,
        signed_in(&client, &person).await,
    );
    at(6 * DAY_SECS);
    refresh(&unused).await.expect(200);
    for day in [6, 12, 18, 24] {
        at(day * DAY_SECS);
        refresh(&used).await.expect(200);
        // A week is over.
        if day > 12 {
            refresh(&unused).await.expect(204);
        }
    }
    at(13 * DAY_SECS);
    refresh(&unused).await.expect(204);
    at(13 * DAY_SECS - 1);
    refresh(&unused).await.expect(200);
    at(30 * DAY_SECS - 60);
    let last = refresh(&used).await.expect(200);
    assert!(
        last.header("set-cookie").contains("; Max-Age=60; "),
        "{}",
        last.header("set-cookie")
    );
    at(30 * DAY_SECS);
    refresh(&used).await.expect(204);
}

on_each_database!(sign_ins_and_refreshes_are_bounded);
async fn sign_ins_and_refreshes_are_bounded(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client();
    let person = Person::register(&client).await;
    let first = signed_in(&client, &person).await;
    let token = token_of(&refresh(&first).await.expect(200));
    let mut browsers = Vec::new();
    for _ in 0..19 {
        browsers.push(signed_in(&client, &person).await);
    }
    refresh(&first).await.expect(200);
    browsers.push(signed_in(&client, &person).await);
    assert_eq!(
        last_action(&app).await.1,
        Some(json!({"browser": true, "endedLogins": 1}))
    );
    refresh(&first).await.expect(204);
    ask(&client, &token).await.expect(401);
    for browser in &browsers {
        refresh(browser).await.expect(200);
    }
    // Other logins are not counted.
    person
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200);

    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql("UPDATE logins SET refresh_count = 600")
        .run(&mut tx)
        .await
        .expect("an update");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    let refused = refresh(&browsers[0]).await.expect(429);
    assert!(
        refused
            .header("retry-after")
            .parse::<u64>()
            .is_ok_and(|secs| (1..=3600).contains(&secs))
    );
}

on_each_database!(guesses_are_counted_with_those_of_other_logins);
async fn guesses_are_counted_with_those_of_other_logins(backend: Backend) {
    // The clock stands still: no delay passes meanwhile.
    let (clock, _) = set_clock(hub_protocol::Timestamp::from_micros(NOON));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let forwarded = HeaderName::from_static("x-forwarded-for");
    let client = app.client();
    let (ada, ben) = (
        Person::register(&client).await,
        Person::register(&client).await,
    );
    let client = client.header(forwarded, "10.9.8.7");
    let other = async |email: &str, password: &str| {
        client
            .post("/auth/login")
            .json(&json!({"email": email, "password": password}))
            .call()
            .await
    };
    for _ in 0..3 {
        sign_in(&client, &ada.email, "wrong").await.expect(401);
        other(&ben.email, "wrong").await.expect(401);
    }
    for _ in 0..2 {
        other(&ada.email, "wrong").await.expect(401);
        sign_in(&client, &ben.email, "wrong").await.expect(401);
    }
    sign_in(&client, &ada.email, PASSWORD).await.expect(429);
    other(&ben.email, PASSWORD).await.expect(429);
}

on_each_database!(a_page_gets_the_sign_in_methods);
async fn a_page_gets_the_sign_in_methods(backend: Backend) {
    let methods = async |app: &TestApp| {
        app.client()
            .get("/auth/methods")
            .call()
            .await
            .expect(200)
            .data::<Value>()
    };
    let app = TestApp::new(backend).await;
    let plain = json!({"password": true, "registration": "OPEN", "passwordReset": false, "mail": false, "oidc": null});
    assert_eq!(methods(&app).await, plain);
    let nowhere = app
        .client()
        .get("/auth/oidc/login?returnTo=/console")
        .call()
        .await
        .expect(503);
    assert_eq!(nowhere.problem().code, "OIDC_NOT_CONFIGURED");

    let issuer = OwnIssuer::start(&[]).await;
    let settings = Settings {
        builtin_login: Some(false),
        smtp_url: Some("smtp://127.0.0.1:9".to_owned()),
        mail_from: Some("hubs@example.com".to_owned()),
        public_url: Some("https://hubs.example.com".to_owned()),
        ..issuer.settings()
    };
    let app = TestApp::replica_of(
        &app,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let oidc = json!({"name": "127.0.0.1", "issuer": issuer.url});
    let expected = json!({"password": false, "registration": "CLOSED", "passwordReset": false, "mail": true, "oidc": oidc});
    assert_eq!(methods(&app).await, expected);
    let refused = sign_in(&app.client(), "ada@example.com", PASSWORD)
        .await
        .expect(403);
    assert_eq!(refused.problem().code, "BUILTIN_LOGIN_OFF");
}

on_each_database!(a_password_login_ends_where_passwords_are_switched_off);
async fn a_password_login_ends_where_passwords_are_switched_off(backend: Backend) {
    let app = TestApp::new(backend).await;
    let person = Person::register(&app.client()).await;
    let browser = signed_in(&app.client(), &person).await;
    let issuer = OwnIssuer::start(&[]).await;
    let settings = Settings {
        builtin_login: Some(false),
        ..issuer.settings()
    };
    let closed = TestApp::replica_of(
        &app,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let token = token_of(&refresh(&browser).await.expect(200));
    refresh(&browser.at(&closed.url)).await.expect(204);
    ask(&closed.client(), &token).await.expect(401);
    browser
        .at(&closed.url)
        .delete("/auth/session")
        .call()
        .await
        .expect(204);
    refresh(&browser).await.expect(204);
}
