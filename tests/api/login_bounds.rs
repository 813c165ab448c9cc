//! What strangers can do to the logins of others: nothing. And how much they can do at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hub_core::config::{RegistrationPolicy, Settings};
use hub_people::accounts::Purpose;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::mail::token_for;
use hub_tests::people::PASSWORD;
use hub_tests::{Backend, Call, Client, Options, Person, Reply, Tenant, TestApp, on_each_database};
use reqwest::header::HeaderName;
use serde_json::json;

use super::passwords::mail_settings;

const NOON: i64 = 1_800_014_400_000_000;
const WRONG: &str = "a wrong password";

async fn service(backend: Backend) -> (TestApp, Arc<AtomicI64>) {
    let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
    (
        TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                settings: mail_settings(),
            },
        )
        .await,
        micros,
    )
}

/// A caller at this address.
fn from(app: &TestApp, address: &str) -> Client {
    app.client()
        .header(HeaderName::from_static("x-forwarded-for"), address)
}

async fn login(client: &Client, email: &str, password: &str) -> Reply {
    client
        .post("/auth/login")
        .json(&json!({"email": email, "password": password}))
        .call()
        .await
}

async fn register(client: &Client, email: &str) -> Reply {
    client
        .post("/auth/register")
        .json(&json!({"email": email, "password": PASSWORD}))
        .call()
        .await
}

on_each_database!(strangers_cannot_lock_out_a_named_account);
/// As many as there are, from as many addresses as they have.
async fn strangers_cannot_lock_out_a_named_account(backend: Backend) {
    let (app, micros) = service(backend).await;
    let home = from(&app, "192.0.2.1");
    let person = Person::register(&home).await;
    for stranger in 1..=20 {
        let stranger = from(&app, &format!("198.51.100.{stranger}"));
        for _ in 0..5 {
            login(&stranger, &person.email, WRONG).await.expect(401);
        }
        // Each holds up only themselves.
        login(&stranger, &person.email, WRONG).await.expect(429);
    }
    // From where the person was before, and where they are for the first time.
    login(&home, &person.email, PASSWORD).await.expect(200);
    let abroad = from(&app, "203.0.113.1");
    let slowed = login(&abroad, &person.email, PASSWORD).await.expect(429);
    assert_eq!(slowed.header("retry-after"), "1");
    micros.fetch_add(1_000_000, Ordering::Relaxed);
    login(&abroad, &person.email, PASSWORD).await.expect(200);
    micros.fetch_add(1_000_000, Ordering::Relaxed);
    login(&from(&app, "203.0.113.2"), &person.email, WRONG)
        .await
        .expect(401);
    let slowed = login(&from(&app, "203.0.113.3"), &person.email, PASSWORD)
        .await
        .expect(429);
    assert_eq!(
        slowed.header("retry-after"),
        "2",
        "a good login has given back its own attempt alone"
    );
    login(&abroad, &person.email, PASSWORD).await.expect(200);
}

on_each_database!(right_password_from_a_known_address_gets_through);
/// Whatever came from that address before, and whatever account it was for. Wrong ones are slowed
/// as anybody's.
async fn right_password_from_a_known_address_gets_through(backend: Backend) {
    let (app, micros) = service(backend).await;
    let home = from(&app, "2001:db8:1:2::7");
    let person = Person::register(&home).await;
    for guess in 0..50 {
        login(&home, &format!("guess{guess}@example.com"), WRONG)
            .await
            .expect(401);
    }
    login(&home, "guess@example.com", WRONG).await.expect(429);
    for attempt in 0..20 {
        let refused = login(&home, &person.email, WRONG).await;
        refused.expect(if attempt < 5 { 401 } else { 429 });
    }
    // Of the same /64.
    login(&from(&app, "2001:db8:1:2:ffff::9"), &person.email, PASSWORD)
        .await
        .expect(200);
    login(&from(&app, "2001:db8:1:3::7"), &person.email, PASSWORD)
        .await
        .expect(200);
    // Even here guessing ends: a hundred, then one in ten seconds.
    for _ in 0..100 {
        login(&home, &person.email, WRONG).await;
    }
    let slowed = login(&home, &person.email, PASSWORD).await.expect(429);
    assert!(
        slowed
            .header("retry-after")
            .parse::<i64>()
            .expect("seconds")
            <= 10
    );
    micros.fetch_add(10_000_000, Ordering::Relaxed);
    login(&home, &person.email, PASSWORD).await.expect(200);
}

on_each_database!(address_is_known_until_the_password_changes);
/// Whoever knew the old password may have logged in with it.
async fn address_is_known_until_the_password_changes(backend: Backend) {
    let (app, micros) = service(backend).await;
    let home = from(&app, "192.0.2.1");
    let person = Person::register(&home).await;
    let thief = from(&app, "198.51.100.1");
    login(&thief, &person.email, PASSWORD).await.expect(200);
    let body = json!({"currentPassword": PASSWORD, "newPassword": "another fine password"});
    person
        .client
        .post("/auth/password")
        .json(&body)
        .call()
        .await
        .expect(204);
    for _ in 0..5 {
        login(&thief, &person.email, WRONG).await.expect(401);
        login(&home, &person.email, WRONG).await.expect(401);
    }
    login(&thief, &person.email, "another fine password")
        .await
        .expect(429);
    login(&home, &person.email, "another fine password")
        .await
        .expect(200);
    // Nor for ever.
    micros.fetch_add(181 * 86_400 * 1_000_000, Ordering::Relaxed);
    for _ in 0..5 {
        login(&home, &person.email, WRONG).await.expect(401);
    }
    login(&home, &person.email, "another fine password")
        .await
        .expect(429);
}

on_each_database!(registrations_are_counted_by_address);
async fn registrations_are_counted_by_address(backend: Backend) {
    let (app, micros) = service(backend).await;
    let here = from(&app, "192.0.2.1");
    for number in 0..50 {
        register(&here, &format!("person{number}@example.com"))
            .await
            .expect(201);
    }
    let slowed = register(&here, "late@example.com").await.expect(429);
    assert_eq!(
        (slowed.problem().code.as_str(), slowed.header("retry-after")),
        ("RATE_LIMITED", "1")
    );
    register(&from(&app, "192.0.2.2"), "elsewhere@example.com")
        .await
        .expect(201);
    // Those who have an account log in.
    login(&here, "person0@example.com", PASSWORD)
        .await
        .expect(200);
    micros.fetch_add(1_000_000, Ordering::Relaxed);
    register(&here, "late@example.com").await.expect(201);
    assert_eq!(
        register(&here, "later@example.com")
            .await
            .expect(429)
            .header("retry-after"),
        "2"
    );
    // What is not even a registration counts for nothing.
    let nobody = from(&app, "192.0.2.3");
    for _ in 0..60 {
        register(&nobody, "no address").await.expect(400);
    }
    register(&nobody, "somebody@example.com").await.expect(201);
}

on_each_database!(registration_can_be_limited_to_invited_people_or_closed);
async fn registration_can_be_limited_to_invited_people_or_closed(backend: Backend) {
    let open = TestApp::with(
        backend,
        Options {
            settings: mail_settings(),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&open.client()).await;
    let with = async |registration| {
        let settings = Settings {
            registration: Some(registration),
            ..mail_settings()
        };
        TestApp::replica_of(
            &open,
            Options {
                settings,
                ..Options::default()
            },
        )
        .await
    };
    let invited_only = with(RegistrationPolicy::Invited).await;
    let closed = with(RegistrationPolicy::Closed).await;
    let anyone = invited_only.client();
    let refused = register(&anyone, "ada@example.com").await.expect(403);
    assert_eq!(refused.problem().code, "INVITATION_REQUIRED");
    let body = json!({"email": "Ada@example.com"});
    let invited = tenant
        .client
        .post("/tenant/personas/invite")
        .json(&body)
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        register(&closed.client(), "ada@example.com")
            .await
            .expect(403)
            .problem()
            .code,
        "REGISTRATION_CLOSED"
    );
    let token = token_for(&open, "ada@example.com").await;
    let ada = register(&anyone, "ada@example.com")
        .await
        .expect(201)
        .json();
    let ada = anyone.bearer(ada["data"]["accessToken"].as_str().expect("a token"));
    ada.post("/invitations/accept")
        .json(&json!({"token": token}))
        .call()
        .await
        .expect(200);
    // An invitation that was revoked invites nobody; accounts that exist log in as before.
    let body = json!({"email": "ben@example.com"});
    let invited_ben = tenant
        .client
        .post("/tenant/personas/invite")
        .json(&body)
        .call()
        .await
        .expect(200)
        .json();
    assert_ne!(invited, invited_ben);
    let id = invited_ben["data"]["invitation"]["invitationId"].to_string();
    tenant
        .client
        .delete(&format!("/tenant/personas/invitations/{id}"))
        .call()
        .await
        .expect(200);
    register(&anyone, "ben@example.com").await.expect(403);
    for service in [&invited_only, &closed] {
        login(&service.client(), "ada@example.com", PASSWORD)
            .await
            .expect(200);
    }
}

on_each_database!(strangers_take_no_place_of_those_who_are_known);
/// All places for logins from unknown addresses are occupied, and those for registrations.
async fn strangers_take_no_place_of_those_who_are_known(backend: Backend) {
    let (app, _) = service(backend).await;
    let home = from(&app, "192.0.2.1");
    let person = Person::register(&home).await;
    let mut occupied = Vec::new();
    for purpose in [Purpose::Login, Purpose::Registration] {
        while let Ok(place) = app
            .app
            .parts()
            .accounts
            .passwords
            .place(purpose, "198.51.100.9")
        {
            occupied.push(place);
        }
    }
    for email in [person.email.as_str(), "nobody@example.com"] {
        let refused = login(&from(&app, "198.51.100.1"), email, PASSWORD)
            .await
            .expect(503);
        assert_eq!(
            (
                refused.problem().code.as_str(),
                refused.header("retry-after")
            ),
            ("BUSY", "1")
        );
    }
    assert_eq!(
        register(&home, "new@example.com")
            .await
            .expect(503)
            .header("retry-after"),
        "1"
    );
    login(&home, &person.email, PASSWORD).await.expect(200);
    let body = json!({"currentPassword": PASSWORD, "newPassword": "another fine password"});
    person
        .client
        .post("/auth/password")
        .json(&body)
        .call()
        .await
        .expect(204);
    drop(occupied);
    // What was refused for want of a place was not counted.
    for _ in 0..5 {
        login(&from(&app, "198.51.100.1"), &person.email, WRONG)
            .await
            .expect(401);
    }
    register(&home, "new@example.com").await.expect(201);
}
