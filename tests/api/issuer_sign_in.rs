//! Signing in at an issuer with a browser: what of its answers is believed, where browsers are
//! sent, and for how long the login lasts. `tests/system/issuer_sign_in.rs` does it at a certified
//! provider.

use std::sync::atomic::Ordering;

use hub_core::config::Settings;
use hub_tests::app::set_clock;
use hub_tests::issuer::{Conduct, OwnIssuer, SigningKey, browser_settings};
use hub_tests::{Backend, Call, Client, Options, Reply, TestApp, on_each_database};
use jsonwebtoken::Algorithm;
use reqwest::Url;
use reqwest::header::{ACCEPT, COOKIE, HeaderName, SET_COOKIE};
use serde_json::{Value, json};

const NOON: i64 = 1_800_014_400;

struct World {
    issuer: OwnIssuer,
    key: SigningKey,
    app: TestApp,
    options: Options,
    micros: std::sync::Arc<std::sync::atomic::AtomicI64>,
}

/// A sign-in that a browser has begun.
struct Begun {
    client: Client,
    page: Url,
}

impl Begun {
    fn parameter(&self, name: &str) -> String {
        self.page
            .query_pairs()
            .find(|(key, _)| key == name)
            .expect("a parameter")
            .1
            .into_owned()
    }

    async fn come_back(&self, query: &str) -> Reply {
        self.client
            .get(&format!("/auth/oidc/callback?{query}"))
            .call()
            .await
    }

    /// As the issuer sends the browser back.
    async fn come_back_with_code(&self) -> Reply {
        self.come_back(&format!("state={}&code=c", self.parameter("state")))
            .await
    }
}

/// What is set, without its attributes.
fn cookie(reply: &Reply, name: &str) -> String {
    let cookies = reply
        .headers
        .get_all(SET_COOKIE)
        .iter()
        .map(|cookie| cookie.to_str().expect("text"));
    let pairs = cookies.filter_map(|cookie| cookie.split(';').next()?.split_once('='));
    let mut values = pairs
        .filter(|(other, _)| *other == name)
        .map(|(_, value)| value.to_owned());
    values.next().unwrap_or_default()
}

impl World {
    async fn new(backend: Backend) -> Self {
        let key = SigningKey::new(Algorithm::ES256);
        let issuer = OwnIssuer::start(std::slice::from_ref(&key)).await;
        let (clock, micros) = set_clock(hub_protocol::Timestamp::from_micros(NOON * 1_000_000));
        let options = Options {
            clock: Some(clock),
            settings: browser_settings(&issuer.url),
        };
        let app = TestApp::with(backend, options.clone()).await;
        Self {
            issuer,
            key,
            app,
            options,
            micros,
        }
    }

    fn client(&self) -> Client {
        self.app.client().without_redirects()
    }

    async fn begin(&self, return_to: &str) -> Begun {
        let reply = self
            .client()
            .get(&format!("/auth/oidc/login?returnTo={return_to}"))
            .call()
            .await
            .expect(303);
        let page = Url::parse(reply.header("location")).expect("a URL");
        let set = reply.header("set-cookie");
        assert!(
            set.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"),
            "{set}"
        );
        let pending = cookie(&reply, "__Host-hub_sign_in");
        let client = self
            .client()
            .header(COOKIE, &format!("__Host-hub_sign_in={pending}"));
        Begun { client, page }
    }

    /// What the issuer gives for the code of this sign-in; changes go into the ID token, then into
    /// the access token.
    fn grant(&self, begun: &Begun, id_changes: Value, access_changes: Value) {
        let signed = |mut claims: Value, changes: Value| {
            for (name, value) in changes.as_object().expect("an object") {
                claims[name] = value.clone();
            }
            self.key.sign(&claims)
        };
        let mut id_claims = self.issuer.claims("ada", NOON);
        id_claims["aud"] = json!("hub-cloud");
        id_claims["nonce"] = json!(begun.parameter("nonce"));
        let access_claims = self.issuer.claims("ada", NOON);
        self.issuer.answer_codes_with(json!({
            "access_token": signed(access_claims, access_changes), "token_type": "Bearer",
            "id_token": signed(id_claims, id_changes),
        }));
    }

    /// A page of somebody who has signed in.
    async fn sign_in(&self, access_changes: Value) -> Client {
        let begun = self.begin("/console").await;
        self.grant(&begun, json!({}), access_changes);
        let reply = begun.come_back_with_code().await.expect(303);
        assert_eq!(reply.header("location"), "/console");
        let session = cookie(&reply, "__Host-hub_session");
        let page = self
            .client()
            .header(HeaderName::from_static("sec-fetch-site"), "same-origin");
        page.header(COOKIE, &format!("__Host-hub_session={session}"))
    }
}

async fn token(page: &Client) -> String {
    let session: Value = page
        .post("/auth/session/refresh")
        .call()
        .await
        .expect(200)
        .data();
    session["accessToken"].as_str().expect("a token").to_owned()
}

on_each_database!(the_issuers_word_opens_a_login_of_our_own);
async fn the_issuers_word_opens_a_login_of_our_own(backend: Backend) {
    let world = World::new(backend).await;
    let begun = world.begin("/app/pair?x=1").await;
    assert_eq!(begun.page.path(), "/login");
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "hub-cloud"),
        (
            "redirect_uri",
            "https://hubs.example.com/auth/oidc/callback",
        ),
        ("scope", "openid profile email"),
        ("code_challenge_method", "S256"),
        ("resource", "https://hubs.example.com"),
    ] {
        assert_eq!(begun.parameter(name), value, "{name}");
    }
    world.grant(
        &begun,
        json!({}),
        json!({"email": "ada@example.com", "email_verified": true}),
    );
    let reply = begun.come_back_with_code().await.expect(303);
    assert_eq!(reply.header("location"), "/app/pair?x=1");
    let set: Vec<&str> = reply
        .headers
        .get_all(SET_COOKIE)
        .iter()
        .map(|value| value.to_str().expect("text"))
        .collect();
    assert_eq!(
        set[0],
        "__Host-hub_sign_in=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"
    );
    assert!(
        set[1].ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure"),
        "{set:?}"
    );
    let exchange = world.issuer.exchanges().remove(0);
    assert!(
        exchange.contains("code_verifier=") && !exchange.contains("client_secret"),
        "{exchange}"
    );

    // The same person as with a token of the issuer.
    let page = world.sign_in(json!({})).await;
    let ours = token(&page).await;
    let foreign = world.key.sign(&world.issuer.claims("ada", NOON));
    let whoami = async |token: &str| {
        world
            .app
            .client()
            .bearer(token)
            .get("/app/profile")
            .call()
            .await
            .expect(200)
            .data::<Value>()["userUuid"]
            .clone()
    };
    assert_eq!(whoami(&ours).await, whoami(&foreign).await);

    // An account here is not administrator because of the issuer's word about somebody else's.
    let admin = world.sign_in(json!({"roles": ["PLATFORM_ADMIN"]})).await;
    let platform = async |token: &str| {
        world
            .app
            .client()
            .bearer(token)
            .get("/platform/tenants")
            .call()
            .await
    };
    platform(&token(&admin).await).await.expect(200);
    platform(&ours).await.expect(403);
    platform(&token(&page).await).await.expect(403);

    // Twelve hours, however often it is used.
    for hour in [3, 6, 9] {
        world
            .micros
            .store((NOON + hour * 3600) * 1_000_000, Ordering::SeqCst);
        token(&page).await;
    }
    world
        .micros
        .store((NOON + 12 * 3600) * 1_000_000, Ordering::SeqCst);
    page.post("/auth/session/refresh").call().await.expect(204);
}

on_each_database!(a_login_at_the_issuer_ends_as_others_do);
async fn a_login_at_the_issuer_ends_as_others_do(backend: Backend) {
    let world = World::new(backend).await;
    let (first, second) = (
        world.sign_in(json!({})).await,
        world.sign_in(json!({})).await,
    );
    let (one, two) = (token(&first).await, token(&second).await);
    let settings = Settings {
        builtin_login: Some(false),
        ..world.options.settings.clone()
    };
    let replica = TestApp::replica_of(
        &world.app,
        Options {
            settings,
            ..world.options.clone()
        },
    )
    .await;
    let ask = async |token: &str, expected: u16| {
        for url in [&world.app.url, &replica.url] {
            let client = world.app.client().at(url);
            client
                .bearer(token)
                .get("/tenant/tenants")
                .call()
                .await
                .expect(expected);
        }
    };
    ask(&one, 200).await;
    first.delete("/auth/session").call().await.expect(204);
    ask(&one, 401).await;
    ask(&two, 200).await;
    token(&second.at(&replica.url)).await;
    world
        .app
        .client()
        .bearer(&two)
        .delete("/auth/sessions")
        .call()
        .await
        .expect(204);
    ask(&two, 401).await;
    second
        .post("/auth/session/refresh")
        .call()
        .await
        .expect(204);

    // Where the issuer is another one, or none, its logins are over.
    let third = world.sign_in(json!({})).await;
    let three = token(&third).await;
    let without = TestApp::replica_of(
        &world.app,
        Options {
            settings: Settings::default(),
            ..world.options.clone()
        },
    )
    .await;
    world
        .app
        .client()
        .at(&without.url)
        .bearer(&three)
        .get("/tenant/tenants")
        .call()
        .await
        .expect(401);
    ask(&three, 200).await;

    // A deleted account signs nobody in with what the issuer said before.
    let profile: Value = world
        .app
        .client()
        .bearer(&three)
        .get("/app/profile")
        .call()
        .await
        .expect(200)
        .data();
    let body = json!({"userUuid": profile["userUuid"]});
    world
        .app
        .client()
        .bearer(&three)
        .delete("/app/profile")
        .json(&body)
        .call()
        .await
        .expect(204);
    third.post("/auth/session/refresh").call().await.expect(204);
    let begun = world.begin("/console").await;
    world.grant(&begun, json!({}), json!({}));
    let reply = begun.come_back_with_code().await.expect(303);
    assert_eq!(
        reply.header("location"),
        "/console?signInError=INVALID_TOKEN"
    );
}

on_each_database!(what_the_issuer_did_not_say_signs_nobody_in);
async fn what_the_issuer_did_not_say_signs_nobody_in(backend: Backend) {
    let world = World::new(backend).await;
    let bob = json!({"sub": "bob"});
    for (id_changes, access_changes) in [
        (json!({"nonce": "another"}), json!({})),
        (json!({"nonce": null}), json!({})),
        (json!({"aud": "another-client"}), json!({})),
        (json!({"azp": "another-client"}), json!({})),
        (json!({"iss": "https://evil.example"}), json!({})),
        (json!({"exp": NOON - 61}), json!({})),
        (json!({"iat": NOON + 61}), json!({})),
        (bob.clone(), json!({})),
        (json!({}), bob),
        (json!({}), json!({"aud": "https://other.example"})),
        (json!({}), json!({"exp": NOON})),
    ] {
        let begun = world.begin("/console/hubs?a=b").await;
        world.grant(&begun, id_changes.clone(), access_changes.clone());
        let reply = begun.come_back_with_code().await.expect(303);
        let what = format!("{id_changes} {access_changes}");
        assert_eq!(
            reply.header("location"),
            "/console/hubs?a=b&signInError=SIGN_IN_FAILED",
            "{what}"
        );
        assert_eq!(cookie(&reply, "__Host-hub_session"), "", "{what}");
    }
    for tokens in [
        Value::Null,
        json!({"access_token": "opaque", "token_type": "Bearer"}),
        json!({"access_token": "opaque", "token_type": "Bearer", "id_token": "e30.e30."}),
        json!({"token_type": "Bearer"}),
        json!([]),
    ] {
        let begun = world.begin("/console").await;
        world.issuer.answer_codes_with(tokens.clone());
        let reply = begun.come_back_with_code().await.expect(303);
        assert_eq!(
            reply.header("location"),
            "/console?signInError=SIGN_IN_FAILED",
            "{tokens}"
        );
    }

    let before = world.issuer.exchanges().len();
    let begun = world.begin("/console").await;
    world.grant(&begun, json!({}), json!({}));
    let state = begun.parameter("state");
    for (query, code) in [
        (
            format!("state={state}&error=access_denied&error_description=no"),
            "SIGN_IN_REFUSED",
        ),
        (
            format!("state={state}&code=c&iss=https%3A%2F%2Fevil.example"),
            "OTHER_ISSUER",
        ),
        (format!("state={state}"), "SIGN_IN_FAILED"),
    ] {
        let reply = begun.come_back(&query).await.expect(303);
        assert_eq!(
            reply.header("location"),
            format!("/console?signInError={code}"),
            "{query}"
        );
    }
    assert_eq!(
        world.issuer.exchanges().len(),
        before,
        "none of these is a code to exchange"
    );
}

on_each_database!(only_the_browser_that_began_comes_back);
async fn only_the_browser_that_began_comes_back(backend: Backend) {
    let world = World::new(backend).await;
    let (mine, theirs) = (world.begin("/console").await, world.begin("/console").await);
    world.grant(&mine, json!({}), json!({}));
    let refused = async |reply: Reply| {
        assert_eq!(reply.header("set-cookie"), "", "nothing is forgotten");
        assert_eq!(reply.expect(400).problem().code, "INVALID_STATE");
    };
    let state = mine.parameter("state");
    refused(theirs.come_back(&format!("state={state}&code=c")).await).await;
    refused(mine.come_back("code=c").await).await;
    refused(mine.come_back("state=&code=c").await).await;
    refused(
        world
            .client()
            .get(&format!("/auth/oidc/callback?state={state}&code=c"))
            .call()
            .await,
    )
    .await;
    let other_cookie = mine.client.header(COOKIE, "__Host-hub_sign_in=AAAA");
    refused(
        other_cookie
            .get(&format!("/auth/oidc/callback?state={state}&code=c"))
            .call()
            .await,
    )
    .await;
    mine.come_back(&format!("state={state}&state={state}"))
        .await
        .expect(400);
    assert!(world.issuer.exchanges().is_empty());

    // A person reads it in words.
    let path = format!("/auth/oidc/callback?state={state}&code=c");
    let page = theirs
        .client
        .header(ACCEPT, "text/html,application/xhtml+xml")
        .get(&path)
        .call()
        .await
        .expect(200);
    assert!(
        page.body.contains("<h1>Not signed in</h1>"),
        "{}",
        page.body
    );
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; style-src 'unsafe-inline'"),
        "{policy}"
    );

    // Another replica completes it, until ten minutes are over.
    let replica = TestApp::replica_of(&world.app, world.options.clone()).await;
    let there = Begun {
        client: mine.client.at(&replica.url),
        page: mine.page.clone(),
    };
    assert_eq!(
        there
            .come_back_with_code()
            .await
            .expect(303)
            .header("location"),
        "/console"
    );
    world
        .micros
        .store((NOON + 600) * 1_000_000, Ordering::SeqCst);
    refused(theirs.come_back_with_code().await).await;
}

on_each_database!(browsers_are_sent_nowhere_else);
async fn browsers_are_sent_nowhere_else(backend: Backend) {
    let world = World::new(backend).await;
    for path in [
        "",
        "/",
        "//evil.example/console",
        "https://evil.example/console",
        "/console%23code",
        "/console/..//x",
    ] {
        let reply = world
            .client()
            .get(&format!("/auth/oidc/login?returnTo={path}"))
            .call()
            .await
            .expect(400);
        assert_eq!(reply.problem().errors[0].field, "returnTo", "{path}");
    }
    world
        .client()
        .get("/auth/oidc/login")
        .call()
        .await
        .expect(400);
}

on_each_database!(codes_are_counted_with_wrong_passwords);
async fn codes_are_counted_with_wrong_passwords(backend: Backend) {
    let world = World::new(backend).await;
    let begun = world.begin("/console").await;
    for _ in 0..50 {
        let reply = begun.come_back_with_code().await.expect(303);
        assert_eq!(
            reply.header("location"),
            "/console?signInError=SIGN_IN_FAILED"
        );
    }
    let reply = begun.come_back_with_code().await.expect(303);
    assert_eq!(
        reply.header("location"),
        "/console?signInError=RATE_LIMITED"
    );
    assert_eq!(world.issuer.exchanges().len(), 50);
    let body = json!({"email": "ada@example.com", "password": "a password"});
    world
        .client()
        .post("/auth/login")
        .json(&body)
        .call()
        .await
        .expect(429);
}

on_each_database!(an_issuer_that_is_away_is_reported);
async fn an_issuer_that_is_away_is_reported(backend: Backend) {
    let key = SigningKey::new(Algorithm::ES256);
    let issuer = OwnIssuer::start(&[key]).await;
    issuer.conduct(Conduct::Broken);
    let settings = browser_settings(&issuer.url);
    let app = TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let reply = app
        .client()
        .get("/auth/oidc/login?returnTo=/console")
        .call()
        .await
        .expect(503);
    assert_eq!(reply.problem().code, "ISSUER_UNAVAILABLE");
    // It is not asked again for every browser.
    for _ in 0..5 {
        app.client()
            .get("/auth/oidc/login?returnTo=/console")
            .call()
            .await
            .expect(503);
    }
    assert_eq!(issuer.discoveries(), 1);
}
