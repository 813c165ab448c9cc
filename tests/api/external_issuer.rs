//! People of another issuer: who they become here, and what happens when the issuer changes its
//! keys, misbehaves or is away.

use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_protocol::{PersonaUuid, UserUuid};
use hub_tests::app::TestApp;
use hub_tests::issuer::{Conduct, OwnIssuer, SigningKey};
use hub_tests::{Backend, Call, Client, Options, Person, Reply, on_each_database};
use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use uuid::Uuid;

/// The service asks an issuer for its keys no more often.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

#[derive(sqlx::FromRow, Debug)]
struct Row {
    user_uuid: UserUuid,
    default_persona_uuid: PersonaUuid,
    email: String,
    nickname: Option<String>,
    password_hash: String,
    is_platform_admin: bool,
}

async fn accounts(app: &TestApp, subject: &str) -> Vec<Row> {
    let mut conn = app.app.db.read().await.expect("a connection");
    sql(
        "SELECT user_uuid, default_persona_uuid, email, nickname, password_hash, \
         is_platform_admin FROM users WHERE subject = $1",
    )
    .bind(subject)
    .all(&mut conn)
    .await
    .expect("rows")
}

async fn audited(app: &TestApp) -> Vec<(String, Option<Value>)> {
    let mut conn = app.app.db.read().await.expect("a connection");
    let rows = sql("SELECT action, after_state FROM audit_logs ORDER BY audit_log_id")
        .all(&mut conn)
        .await;
    rows.expect("rows")
}

fn now(app: &TestApp) -> i64 {
    app.app.clock.now().as_secs()
}

async fn ask(app: &TestApp, token: &str) -> Reply {
    app.client()
        .bearer(token)
        .get("/tenant/tenants")
        .call()
        .await
}

async fn start(backend: Backend, keys: &[SigningKey]) -> (OwnIssuer, TestApp) {
    let issuer = OwnIssuer::start(keys).await;
    let app = TestApp::with(
        backend,
        Options {
            settings: issuer.settings(),
            ..Options::default()
        },
    )
    .await;
    (issuer, app)
}

fn with(mut claims: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().expect("an object") {
        claims[name] = value.clone();
    }
    claims
}

on_each_database!(concurrent_first_requests_create_one_account);
async fn concurrent_first_requests_create_one_account(backend: Backend) {
    let key = SigningKey::new(Algorithm::RS256);
    let (issuer, app) = start(backend, std::slice::from_ref(&key)).await;
    let replica = TestApp::replica_of(
        &app,
        Options {
            settings: issuer.settings(),
            ..Options::default()
        },
    )
    .await;
    let named =
        json!({"email": "Ada@example.com", "email_verified": true, "name": "Ada\u{0} Lovelace"});
    let tokens: Vec<String> = (0..16)
        .map(|_| key.sign(&with(issuer.claims("ada", now(&app)), named.clone())))
        .collect();
    let replies = tokens
        .iter()
        .enumerate()
        .map(|(n, token)| ask(if n % 2 == 0 { &app } else { &replica }, token));
    for reply in futures_util::future::join_all(replies).await {
        reply.expect(200);
    }
    let rows = accounts(&app, "ada").await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!(
        (row.email.as_str(), row.nickname.as_deref()),
        ("ada@example.com", Some("Ada Lovelace"))
    );
    assert!(row.password_hash.is_empty() && !row.is_platform_admin);
    let actions = audited(&app).await.into_iter().map(|(action, _)| action);
    assert_eq!(
        actions
            .filter(|action| action.starts_with("user."))
            .collect::<Vec<_>>(),
        ["user.register"]
    );
    assert_eq!(issuer.fetches(), 2, "one for each replica");

    // The persona is one to be let in by.
    let tenant = hub_tests::Tenant::create(&app.client()).await;
    let path = format!("/tenant/tenants/{}/members", tenant.tenant_uuid);
    let body = json!({"personaUuid": row.default_persona_uuid, "role": "VIEWER"});
    tenant
        .client
        .post(&path)
        .json(&body)
        .call()
        .await
        .expect(200);
    let ada = app.client().bearer(&tokens[0]).tenant(tenant.tenant_uuid);
    ada.get("/tenant/hubs").call().await.expect(200);
    ada.post("/tenant/hubs/claim-codes")
        .json(&json!({}))
        .call()
        .await
        .expect(403);
    let founded = app
        .client()
        .bearer(&tokens[1])
        .post("/tenant/tenants")
        .json(&json!({"name": "Hers"}));
    founded.call().await.expect(200);
    let members = tenant.client.get(&path).call().await.expect(200).json();
    let users: Vec<&Value> = members["data"]
        .as_array()
        .expect("members")
        .iter()
        .map(|one| &one["userUuid"])
        .collect();
    assert!(users.contains(&&json!(row.user_uuid)), "{members}");
}

on_each_database!(verified_email_of_the_issuer_is_used_and_joins_no_existing_account);
async fn verified_email_of_the_issuer_is_used_and_joins_no_existing_account(backend: Backend) {
    let key = SigningKey::new(Algorithm::ES384);
    let (issuer, app) = start(backend, std::slice::from_ref(&key)).await;
    let squatter = Person::register(&app.client()).await;
    let token = |changes: Value| key.sign(&with(issuer.claims("ada", now(&app)), changes));
    let email = async |expected: &str| {
        let rows = accounts(&app, "ada").await;
        assert_eq!((rows.len(), rows[0].email.as_str()), (1, expected));
        rows[0].user_uuid
    };
    ask(&app, &token(json!({"email": squatter.email})))
        .await
        .expect(200);
    let user_uuid = email("").await;
    ask(
        &app,
        &token(json!({"email": squatter.email, "email_verified": true})),
    )
    .await
    .expect(200);
    assert_eq!(email(&squatter.email).await, user_uuid);
    assert_ne!(
        user_uuid, squatter.login.user_uuid,
        "registering here proves no mailbox"
    );
    squatter
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200);
    ask(
        &app,
        &token(json!({"email": "new@example.com", "email_verified": true})),
    )
    .await
    .expect(200);
    email("new@example.com").await;
    ask(
        &app,
        &token(json!({"email": "evil@example.com", "email_verified": false})),
    )
    .await
    .expect(200);
    ask(&app, &token(json!({"email_verified": true})))
        .await
        .expect(200);
    email("new@example.com").await;
    let last = audited(&app).await.pop().expect("an entry");
    assert_eq!(
        last,
        (
            "user.update".to_owned(),
            Some(json!({"email": "new@example.com"}))
        )
    );
    // It is no way in with a password either.
    for password in ["", "12345678"] {
        let body = json!({"email": "new@example.com", "password": password});
        app.client()
            .post("/auth/login")
            .json(&body)
            .call()
            .await
            .expect(401);
    }
}

on_each_database!(issuer_role_grants_platform_administration);
async fn issuer_role_grants_platform_administration(backend: Backend) {
    let key = SigningKey::new(Algorithm::ES256);
    let issuer = OwnIssuer::start(std::slice::from_ref(&key)).await;
    let mut settings = issuer.settings();
    settings.oidc_administrator_claim = None;
    let unset = TestApp::with(
        backend,
        Options {
            settings: settings.clone(),
            ..Options::default()
        },
    )
    .await;
    settings.oidc_administrator_claim = Some("realm_access.roles=PLATFORM_ADMIN".to_owned());
    let app = TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let block_at = async |app: &TestApp, changes: Value| {
        let token = key.sign(&with(issuer.claims("ada", now(app)), changes));
        let path = format!("/platform/hubs/{}/block", Uuid::new_v4());
        app.client()
            .bearer(&token)
            .post(&path)
            .json(&json!({"reason": "a test"}))
            .call()
            .await
            .status
            .as_u16()
    };
    let block = async |changes: Value| block_at(&app, changes).await;
    // Without the setting, no claim makes anybody an administrator.
    for claims in [
        json!({"roles": ["PLATFORM_ADMIN"]}),
        json!({"realm_access": {"roles": ["PLATFORM_ADMIN"]}}),
    ] {
        assert_eq!(block_at(&unset, claims).await, 403);
    }
    assert_eq!(block(json!({})).await, 403);
    assert_eq!(block(json!({"roles": ["PLATFORM_ADMIN"]})).await, 403);
    assert_eq!(
        block(json!({"realm_access": {"roles": ["USER", "PLATFORM_ADMIN"]}})).await,
        404
    );
    // With the next token it is gone.
    assert_eq!(
        block(json!({"realm_access": {"roles": ["USER"]}})).await,
        403
    );
}

on_each_database!(added_and_removed_issuer_keys_are_followed);
async fn added_and_removed_issuer_keys_are_followed(backend: Backend) {
    let algorithms = [
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
        Algorithm::ES256,
        Algorithm::ES384,
        Algorithm::EdDSA,
    ];
    let keys: Vec<SigningKey> = algorithms.into_iter().map(SigningKey::new).collect();
    let (issuer, app) = start(backend, &keys).await;
    let token = |key: &SigningKey| key.sign(&issuer.claims("ada", now(&app)));
    let (old, remembered) = (&keys[0], token(&keys[0]));
    ask(&app, &remembered).await.expect(200);
    let new = SigningKey::new(Algorithm::ES256);
    issuer.set_keys(std::slice::from_ref(&new));
    // Just asked: the new key is not looked for yet, and the old ones serve.
    ask(&app, &token(&new)).await.expect(401);
    for key in &keys {
        ask(&app, &token(key)).await.expect(200);
    }
    assert_eq!(issuer.fetches(), 1);
    tokio::time::sleep(RETRY_INTERVAL + Duration::from_millis(500)).await;
    let fresh: Vec<String> = (0..20).map(|_| token(&new)).collect();
    for reply in futures_util::future::join_all(fresh.iter().map(|token| ask(&app, token))).await {
        reply.expect(200);
    }
    assert_eq!(issuer.fetches(), 2, "twenty requests shared one fetch");
    ask(&app, &token(old)).await.expect(401);
    ask(&app, &remembered).await.expect(401);
    // Away, it is not missed.
    issuer.conduct(Conduct::Broken);
    ask(&app, &token(&new)).await.expect(200);
    tokio::time::sleep(RETRY_INTERVAL + Duration::from_millis(500)).await;
    let unknown = ask(&app, &token(old)).await.expect(503);
    assert_eq!(unknown.problem().code, "ISSUER_UNAVAILABLE");
    ask(&app, &token(&new)).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn misbehaving_issuer_affects_no_other_requests() {
    let key = SigningKey::new(Algorithm::ES256);
    let many: Vec<Value> = (0..101).map(|_| key.jwk.clone()).collect();
    let secret = json!({"keys": [{"kty": "oct", "kid": key.kid, "k": "c2VjcmV0", "alg": "HS256"}]});
    for conduct in [
        Conduct::Broken,
        Conduct::Silent,
        Conduct::OtherName,
        Conduct::Redirects,
        Conduct::KeySet(String::new()),
        Conduct::KeySet("{\"keys\": []}".to_owned()),
        Conduct::KeySet(secret.to_string()),
        Conduct::KeySet(json!({"keys": many}).to_string()),
        Conduct::KeySet(format!(
            "{{\"keys\": [{}], \"pad\": \"{}\"}}",
            key.jwk,
            "x".repeat(300 * 1024)
        )),
        Conduct::KeysAt("file:///etc/passwd".to_owned()),
        Conduct::KeysAt("http://192.0.2.1/jwks".to_owned()),
        Conduct::KeysAt("/jwks".to_owned()),
    ] {
        let issuer = OwnIssuer::start(std::slice::from_ref(&key)).await;
        issuer.conduct(conduct.clone());
        let settings = issuer.settings();
        let app = TestApp::with(
            Backend::Sqlite,
            Options {
                settings,
                ..Options::default()
            },
        )
        .await;
        let began = Instant::now();
        let token = key.sign(&issuer.claims("ada", now(&app)));
        let reply = ask(&app, &token).await;
        assert_eq!(reply.status, 503, "{conduct:?}: {}", reply.body);
        assert_eq!(reply.problem().code, "ISSUER_UNAVAILABLE");
        assert!(
            began.elapsed() < Duration::from_secs(8),
            "{conduct:?}: {:?}",
            began.elapsed()
        );
        // Those who log in here are not concerned.
        Person::register(&app.client())
            .await
            .client
            .get("/tenant/tenants")
            .call()
            .await
            .expect(200);
        if matches!(conduct, Conduct::Broken) {
            issuer.conduct(Conduct::Good);
            tokio::time::sleep(RETRY_INTERVAL + Duration::from_millis(500)).await;
            ask(&app, &token).await.expect(200);
        }
    }
}

on_each_database!(disabled_built_in_login_leaves_only_the_issuer);
async fn disabled_built_in_login_leaves_only_the_issuer(backend: Backend) {
    let key = SigningKey::new(Algorithm::ES256);
    let (issuer, app) = start(backend, std::slice::from_ref(&key)).await;
    let before = Person::register(&app.client()).await;
    let mut settings = issuer.settings();
    settings.builtin_login = Some(false);
    let closed = TestApp::replica_of(
        &app,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let there: Client = closed.client();
    let credentials = json!({"email": before.email, "password": hub_tests::people::PASSWORD});
    let refresh = json!({"refreshToken": before.login.refresh_token});
    for (path, body) in [
        ("/auth/register", &credentials),
        ("/auth/login", &credentials),
        ("/auth/refresh", &refresh),
    ] {
        let problem = there
            .post(path)
            .json(body)
            .call()
            .await
            .expect(403)
            .problem();
        assert_eq!(problem.code, "BUILTIN_LOGIN_OFF", "{path}");
        assert!(problem.message.contains(&issuer.url), "{}", problem.message);
    }
    before
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200);
    before
        .client
        .at(&closed.url)
        .get("/tenant/tenants")
        .call()
        .await
        .expect(401);
    ask(&closed, &key.sign(&issuer.claims("ada", now(&closed))))
        .await
        .expect(200);
    // Logging out stays possible.
    there
        .post("/auth/logout")
        .json(&refresh)
        .call()
        .await
        .expect(204);
}
