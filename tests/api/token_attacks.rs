//! Tokens that somebody made up, changed or took from elsewhere: none is let in, whoever issues the
//! good ones, and none breaks anything.

use std::sync::atomic::Ordering;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hub_base::db::sql;
use hub_base::sealing::stored::SIGNING_KEY;
use hub_identity::authn::user::AUDIENCE as OUR_USERS;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::issuer::{OwnIssuer, SigningKey};
use hub_tests::{
    Backend, Call, Client, Options, Person, SimulatedHub, Tenant, TestApp, on_each_database,
};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use serde_json::{Value, json};
use uuid::Uuid;

const NOON: i64 = 1_800_014_400;

/// An issuer whose tokens the service takes, with its own key: what an attacker would love to have,
/// and the test uses to be wrong in one thing only.
struct Target {
    name: &'static str,
    app: TestApp,
    key: SigningKey,
    /// Those of a good token.
    claims: Value,
    /// Kept running.
    _issuer: Option<OwnIssuer>,
}

impl Target {
    async fn built_in(backend: Backend) -> Self {
        let (clock, _) = set_clock(Timestamp::from_micros(NOON * 1_000_000));
        let app = TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                ..Options::default()
            },
        )
        .await;
        let person = Person::register(&app.client()).await;
        let claims = person.login.access_token.split('.').nth(1).expect("claims");
        let claims =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).expect("base64")).expect("JSON");
        let mut conn = app.app.db.read().await.expect("a connection");
        let rows: Vec<(String, Vec<u8>)> = sql("SELECT kid, sealed_private_key FROM signing_keys")
            .all(&mut conn)
            .await
            .expect("rows");
        drop(conn);
        let (kid, sealed) = rows.into_iter().next().expect("a signing key");
        let private = app
            .app
            .sealer
            .open(SIGNING_KEY, &kid, &sealed)
            .expect("the key");
        let key = SigningKey::of(kid, Algorithm::ES256, EncodingKey::from_ec_der(&private));
        Self {
            name: "built-in",
            app,
            key,
            claims,
            _issuer: None,
        }
    }

    async fn external(backend: Backend) -> Self {
        let key = SigningKey::new(Algorithm::ES256);
        let issuer = OwnIssuer::start(std::slice::from_ref(&key)).await;
        let (clock, _) = set_clock(Timestamp::from_micros(NOON * 1_000_000));
        let app = TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                settings: issuer.settings(),
            },
        )
        .await;
        let claims = issuer.claims("ada", NOON);
        Self {
            name: "external",
            app,
            key,
            claims,
            _issuer: Some(issuer),
        }
    }

    fn changed(&self, name: &str, value: Value) -> String {
        let mut claims = self.claims.clone();
        match value {
            Value::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
            value => claims[name] = value,
        }
        self.key.sign(&claims)
    }
}

fn encoded(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

/// The public key in the forms somebody may have it: DER, PEM, the raw point, the JWK.
fn public_forms(jwk: &Value) -> Vec<Vec<u8>> {
    let coordinate = |name: &str| {
        URL_SAFE_NO_PAD
            .decode(jwk[name].as_str().expect("a coordinate"))
            .expect("base64")
    };
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    // SubjectPublicKeyInfo of a P-256 key, up to the point.
    let prefix = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08,
        0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ];
    let der = [&prefix[..], &point].concat();
    let text = STANDARD.encode(&der);
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n{}\n-----END PUBLIC KEY-----\n",
        &text[..64],
        &text[64..]
    );
    vec![
        der,
        pem.clone().into_bytes(),
        pem.trim().as_bytes().to_vec(),
        point,
        jwk.to_string().into_bytes(),
        Vec::new(),
    ]
}

/// Tokens to refuse, by what is wrong with them.
fn attacks(target: &Target) -> Vec<(String, String)> {
    let Target { key, claims, .. } = target;
    let good = key.sign(claims);
    let parts: Vec<&str> = good.split('.').collect();
    let (header, payload, signature) = (parts[0], parts[1], parts[2]);
    let mut attacks: Vec<(String, String)> = Vec::new();
    let mut add = |what: &str, token: String| attacks.push((what.to_owned(), token));

    for alg in ["none", "None", "NONE", "nOnE", ""] {
        let header = encoded(&json!({"alg": alg, "typ": "JWT", "kid": key.kid}));
        add("alg none", format!("{header}.{payload}."));
        add(
            "alg none, signed",
            format!("{header}.{payload}.{signature}"),
        );
    }
    let without_alg = encoded(&json!({"typ": "JWT", "kid": key.kid}));
    add("no alg", format!("{without_alg}.{payload}.{signature}"));
    for alg in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
        for secret in public_forms(&key.jwk) {
            let header = Header {
                kid: Some(key.kid.clone()),
                ..Header::new(alg)
            };
            let token = jsonwebtoken::encode(&header, claims, &EncodingKey::from_secret(&secret))
                .expect("a token");
            add(&format!("{alg:?} with the public key as its secret"), token);
        }
    }
    // Signed well, by somebody else.
    for alg in [Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA] {
        let other = SigningKey::new(alg);
        let named = Header {
            kid: Some(key.kid.clone()),
            ..Header::new(alg)
        };
        add(
            &format!("another {alg:?} key under the same kid"),
            other.sign_with(&named, claims),
        );
        add("an unknown kid", other.sign(claims));
        let bare = Header::new(alg);
        add("no kid", other.sign_with(&bare, claims));
        let brought = Header {
            jwk: serde_json::from_value(other.jwk.clone()).ok(),
            ..named.clone()
        };
        assert!(brought.jwk.is_some());
        add("its own key in jwk", other.sign_with(&brought, claims));
        let brought = Header {
            jku: Some("http://127.0.0.1:1/jwks".to_owned()),
            ..named.clone()
        };
        add("its own keys at jku", other.sign_with(&brought, claims));
        let brought = Header {
            x5u: Some("http://127.0.0.1:1/chain.pem".to_owned()),
            ..named
        };
        add("its own chain at x5u", other.sign_with(&brought, claims));
    }
    let bare = Header::new(key.alg);
    add(
        "no kid, though the key is right",
        key.sign_with(&bare, claims),
    );
    for kid in ["", "../../../dev/null", "' OR 1=1 --", "\u{0}"] {
        add(
            "a kid that is nobody's",
            key.sign_with(
                &Header {
                    kid: Some(kid.to_owned()),
                    ..Header::new(key.alg)
                },
                claims,
            ),
        );
    }
    let relabelled = |alg: &str| encoded(&json!({"alg": alg, "typ": "JWT", "kid": key.kid}));
    for alg in [
        "ES384", "RS256", "PS256", "EdDSA", "HS256", "ES512", "ES256K",
    ] {
        add(
            "another alg over the same signature",
            format!("{}.{payload}.{signature}", relabelled(alg)),
        );
    }

    for (name, value) in [
        ("iss", json!("https://evil.example")),
        ("iss", json!("")),
        ("iss", json!([claims["iss"]])),
        ("iss", Value::Null),
        ("aud", json!("another")),
        ("aud", json!([])),
        ("aud", json!(7)),
        ("aud", Value::Null),
        ("exp", json!(NOON)),
        ("exp", json!(NOON - 3600)),
        ("exp", json!(-1)),
        ("exp", json!("tomorrow")),
        ("exp", json!({})),
        ("exp", Value::Null),
        ("sub", json!(7)),
        ("sub", json!(["ada"])),
        ("sub", Value::Null),
    ] {
        add(&format!("{name}: {value}"), target.changed(name, value));
    }
    let mut elevated = claims.clone();
    elevated["roles"] = json!(["PLATFORM_ADMIN"]);
    elevated["sub"] = json!("somebody else");
    add(
        "other claims under the same signature",
        format!("{header}.{}.{signature}", encoded(&elevated)),
    );
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).expect("base64");
    bytes[0] ^= 1;
    add(
        "a signature with one bit changed",
        format!("{header}.{payload}.{}", URL_SAFE_NO_PAD.encode(&bytes)),
    );
    add(
        "a signature of zeroes",
        format!("{header}.{payload}.{}", URL_SAFE_NO_PAD.encode([0; 64])),
    );
    add("no signature", format!("{header}.{payload}."));
    add("two parts", format!("{header}.{payload}"));
    add("four parts", format!("{good}.{signature}"));
    add("truncated", good[..good.len() - 5].to_owned());
    add("truncated to half", good[..good.len() / 2].to_owned());
    for text in [
        ".",
        "..",
        "...",
        "a.b.c",
        "null.null.null",
        "é",
        "%00",
        "Bearer",
        "{}",
    ] {
        add("rubbish", text.to_owned());
    }
    add(
        "claims that are no object",
        format!("{header}.{}.{signature}", encoded(&json!([]))),
    );
    add(
        "claims nested deep",
        format!(
            "{header}.{}.{signature}",
            URL_SAFE_NO_PAD.encode("[".repeat(5000))
        ),
    );
    add(
        "large, though signed well",
        target.changed("pad", json!("x".repeat(30 * 1024))),
    );
    add(
        "oversized, though signed well",
        target.changed("pad", json!("x".repeat(100 * 1024))),
    );
    add("oversized rubbish", "x".repeat(100 * 1024));
    attacks
}

/// What a request's head may have.
const MAX_HEAD_BYTES: usize = 64 * 1024;

async fn withstands(target: &Target) {
    let anyone = target.app.client();
    let get = |token: &str| anyone.bearer(token).get("/tenant/tenants").call();
    get(&target.key.sign(&target.claims)).await.expect(200);
    for (what, token) in attacks(target) {
        let reply = get_raw(&anyone, token.as_bytes()).await;
        // A head beyond all bounds may be refused before anything looks at it.
        if token.len() > MAX_HEAD_BYTES && reply.status == 431 {
            continue;
        }
        assert_eq!(reply.status, 401, "{}: {what}: {}", target.name, reply.body);
        reply.problem();
    }
    // And nobody was made on the way.
    let mut conn = target.app.app.db.read().await.expect("a connection");
    let (users,): (i64,) = sql("SELECT COUNT(*) FROM users")
        .one(&mut conn)
        .await
        .expect("a count");
    assert_eq!(users, 1, "{}", target.name);
    drop(conn);
    get(&target.key.sign(&target.claims)).await.expect(200);
}

async fn get_raw(client: &Client, token: &[u8]) -> hub_tests::Reply {
    let value = [b"Bearer ", token].concat();
    let value = HeaderValue::from_bytes(&value).expect("a header value");
    client
        .get("/tenant/tenants")
        .header(AUTHORIZATION, value)
        .call()
        .await
}

on_each_database!(forged_tokens_of_the_service_are_refused);
async fn forged_tokens_of_the_service_are_refused(backend: Backend) {
    withstands(&Target::built_in(backend).await).await;
}

on_each_database!(forged_tokens_of_the_issuer_are_refused);
async fn forged_tokens_of_the_issuer_are_refused(backend: Backend) {
    let target = Target::external(backend).await;
    withstands(&target).await;
    for (name, value) in [
        ("nbf", json!(NOON + 61)),
        ("nbf", json!("soon")),
        ("iat", json!(NOON + 61)),
        ("sub", json!("")),
        ("sub", json!("a\u{0}b")),
        ("sub", json!("x".repeat(256))),
        ("sub", json!({"$ne": null})),
        ("nonce", json!("of an ID token")),
        ("at_hash", json!("of an ID token")),
        ("cnf", json!({"jkt": "bound to a key"})),
    ] {
        let token = target.changed(name, value.clone());
        let reply = target
            .app
            .client()
            .bearer(&token)
            .get("/tenant/tenants")
            .call()
            .await;
        assert_eq!(reply.status, 401, "{name}: {value}: {}", reply.body);
    }
    for typ in ["id_token+jwt", "logout+jwt", "secevent+jwt"] {
        let header = Header {
            typ: Some(typ.to_owned()),
            ..target.key.header()
        };
        let token = target.key.sign_with(&header, &target.claims);
        target
            .app
            .client()
            .bearer(&token)
            .get("/tenant/tenants")
            .call()
            .await
            .expect(401);
    }
    let critical = Header {
        crit: Some(vec!["exp".to_owned()]),
        ..target.key.header()
    };
    let token = target.key.sign_with(&critical, &target.claims);
    target
        .app
        .client()
        .bearer(&token)
        .get("/tenant/tenants")
        .call()
        .await
        .expect(401);
    // Our own issuer's name does not make our keys of theirs.
    let mut ours = target.claims.clone();
    ours["iss"] = json!("hub-cloud");
    ours["aud"] = json!(OUR_USERS);
    target
        .app
        .client()
        .bearer(&target.key.sign(&ours))
        .get("/tenant/tenants")
        .call()
        .await
        .expect(401);
}

on_each_database!(token_is_accepted_only_where_it_was_issued_for);
/// A good token is good for what it was made for.
async fn token_is_accepted_only_where_it_was_issued_for(backend: Backend) {
    let target = Target::external(backend).await;
    let app = &target.app;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let external = target.key.sign(&target.claims);
    hub.client.get("/v1/test").call().await.expect(200);
    for token in [&tenant.owner.login.access_token, &external] {
        let person = app.client().bearer(token);
        person.get("/tenant/tenants").call().await.expect(200);
        person.get("/v1/test").call().await.expect(401).problem();
        person
            .post("/v1/ble/events")
            .json(&json!({}))
            .call()
            .await
            .expect(401)
            .problem();
        person
            .post("/v1/hubs/refresh")
            .json(&json!({"refreshToken": "x"}))
            .call()
            .await
            .expect(401)
            .problem();
        let path = format!("/platform/hubs/{}/block", hub.hub_uuid);
        person
            .post(&path)
            .json(&json!({"reason": "?"}))
            .call()
            .await
            .expect(403)
            .problem();
    }
    hub.client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(401)
        .problem();
    hub.client
        .tenant(tenant.tenant_uuid)
        .get("/tenant/hubs")
        .call()
        .await
        .expect(401)
        .problem();
    let path = format!("/platform/hubs/{}/block", hub.hub_uuid);
    hub.client
        .post(&path)
        .json(&json!({"reason": "?"}))
        .call()
        .await
        .expect(401)
        .problem();
    // A refresh token is no access token.
    app.client()
        .bearer(&tenant.owner.login.refresh_token)
        .get("/tenant/tenants")
        .call()
        .await
        .expect(401);
}

on_each_database!(one_credential_decides_when_several_are_sent);
async fn one_credential_decides_when_several_are_sent(backend: Backend) {
    let target = Target::external(backend).await;
    let app = &target.app;
    let client = app.client();
    let tenant = Tenant::create(&client).await;
    let good = tenant.owner.login.access_token.clone();
    let hubs = || client.tenant(tenant.tenant_uuid).get("/tenant/hubs");

    for value in [
        &b"Bearer \xff\xfe"[..],
        b"Bearer",
        b"Bearer ",
        b"Basic YTpi",
        b"",
        b"\xff",
        b"bearer\tx",
    ] {
        let value = HeaderValue::from_bytes(value).expect("a header value");
        hubs()
            .header(AUTHORIZATION, value)
            .call()
            .await
            .expect(401)
            .problem();
    }
    hubs().bearer_auth(&good).call().await.expect(200);
    hubs()
        .bearer_auth(&good)
        .bearer_auth(&good)
        .call()
        .await
        .expect(401)
        .problem();
    hubs()
        .bearer_auth(&good)
        .bearer_auth("x")
        .call()
        .await
        .expect(401)
        .problem();
    hubs()
        .bearer_auth("x")
        .bearer_auth(&good)
        .call()
        .await
        .expect(401)
        .problem();

    let key = api_key(app, &tenant).await;
    let bad = format!("{}A", &key[..key.len() - 1]);
    hubs().header("x-api-key", &key).call().await.expect(200);
    hubs()
        .header("x-api-key", &key)
        .bearer_auth("x")
        .call()
        .await
        .expect(200);
    for bad in [bad.as_str(), "hmk_", "x", ""] {
        let problem = hubs()
            .header("x-api-key", bad)
            .bearer_auth(&good)
            .call()
            .await
            .expect(401)
            .problem();
        assert_eq!(problem.code, "INVALID_API_KEY", "{bad}");
    }
    let value = HeaderValue::from_bytes(b"\xff").expect("a header value");
    hubs()
        .header("x-api-key", value)
        .bearer_auth(&good)
        .call()
        .await
        .expect(401)
        .problem();
    hubs()
        .header("x-api-key", &key)
        .header("x-api-key", &key)
        .call()
        .await
        .expect(401)
        .problem();
}

/// A key of the tenant, as it lies in the database.
async fn api_key(app: &TestApp, tenant: &Tenant) -> String {
    let (id, secret) = ("abcdefgh", "Z".repeat(32));
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql(
        "INSERT INTO api_keys (tenant_uuid, key_prefix, secret_hash, name, scopes, \
         rate_limit_per_minute, created_by_user_uuid, created_at) \
         VALUES ($1, $2, $3, 'key', 'hubs:read', 600, $4, $5)",
    )
    .bind((
        tenant.tenant_uuid,
        id,
        hub_base::sealing::hash(&secret),
        tenant.owner.login.user_uuid,
        app.app.clock.now(),
    ))
    .execute(&mut tx)
    .await
    .expect("a key");
    tx.commit_unaudited("a test's").await.expect("it is stored");
    format!("hmk_{id}_{secret}")
}

on_each_database!(cached_token_expires_on_time);
/// What was good is remembered, and not beyond its time.
async fn cached_token_expires_on_time(backend: Backend) {
    let key = SigningKey::new(Algorithm::EdDSA);
    let issuer = OwnIssuer::start(std::slice::from_ref(&key)).await;
    let (clock, micros) = set_clock(Timestamp::from_micros(NOON * 1_000_000));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            settings: issuer.settings(),
        },
    )
    .await;
    let mut claims = issuer.claims(&Uuid::new_v4().to_string(), NOON);
    claims["nbf"] = json!(NOON + 60);
    let client = app.client().bearer(&key.sign(&claims));
    client.get("/tenant/tenants").call().await.expect(200);
    micros.store((NOON + 599) * 1_000_000, Ordering::Relaxed);
    client.get("/tenant/tenants").call().await.expect(200);
    micros.store((NOON + 600) * 1_000_000, Ordering::Relaxed);
    client.get("/tenant/tenants").call().await.expect(401);
}
