//! `/app/supplier-link...`: how accounts are linked at suppliers, tried against a server whose
//! every answer the test chooses. `system::supplier_links` does it with a certified provider.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_base::db::sql;
use hub_core::config::Settings;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::supplier::{access_token, completion, id_token};
use hub_tests::{
    Backend, Call, Client, Options, Person, Reply, Supplier, SupplierAnswer, Tenant, TestApp,
    on_each_database,
};
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const NOON: i64 = 1_800_014_400_000_000;
const PATH: &str = "/app/supplier-links";
const RETURN_URL: &str = "https://app.example.com/linked?from=hub";
pub const PUBLIC_URL: &str = "https://hubs.example.com";

/// A tenant whose accounts can be linked, and somebody who does.
pub struct Linking {
    pub app: TestApp,
    pub options: Options,
    pub micros: Arc<AtomicI64>,
    pub tenant: Tenant,
    pub person: Person,
    pub supplier: Supplier,
}

impl Linking {
    pub async fn new(backend: Backend) -> Self {
        let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
        let settings = Settings {
            allow_private_targets: Some(true.into()),
            public_url: Some(PUBLIC_URL.to_owned()),
            ..Settings::default()
        };
        let options = Options {
            clock: Some(clock),
            settings,
        };
        let app = TestApp::with(backend, options.clone()).await;
        let tenant = Tenant::create(&app.client()).await;
        let person = Person::register(&app.client()).await;
        let supplier = Supplier::start().await;
        let linking = Self {
            app,
            options,
            micros,
            tenant,
            person,
            supplier,
        };
        linking.configure(linking.supplier.config()).await;
        linking
    }

    pub async fn configure(&self, config: Value) {
        let owner = self
            .tenant
            .owner
            .as_platform_admin(&self.app)
            .tenant(self.tenant.tenant_uuid);
        owner
            .put("/tenant/supplier-oauth-config")
            .json(&config)
            .call()
            .await
            .expect(200);
    }

    /// The person, with a token that has not expired.
    pub fn user(&self) -> Client {
        self.person.as_platform_admin(&self.app)
    }

    pub fn pass(&self, secs: i64) {
        self.micros.fetch_add(secs * 1_000_000, Ordering::SeqCst);
    }

    pub async fn begin(&self, user: &Client, return_url: Option<&str>) -> HashMap<String, String> {
        let body = json!({"supplierUuid": self.tenant.tenant_uuid, "returnUrl": return_url});
        let begun: Value = user
            .post("/app/supplier-link/authorize")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        let url = Url::parse(begun["authorizeUrl"].as_str().expect("a URL")).expect("a URL");
        let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
        assert_eq!(query["state"], begun["state"].as_str().expect("a state"));
        query
    }

    /// The browser comes back.
    pub async fn come_back(&self, query: &[(&str, &str)]) -> Reply {
        let client = self.app.client().without_redirects();
        let mut url =
            Url::parse(&format!("{}/auth/supplier-link/callback", self.app.url)).expect("a URL");
        url.query_pairs_mut().extend_pairs(query);
        client
            .get(&format!(
                "{}?{}",
                url.path(),
                url.query().unwrap_or_default()
            ))
            .call()
            .await
    }

    /// The person completes what the browser came back with.
    pub async fn complete(&self, back: &Reply) -> Reply {
        complete(&self.user(), back).await
    }

    /// Links an account, without a page to return to.
    pub async fn try_link(&self) -> Reply {
        let begun = self.begin(&self.user(), None).await;
        let query = [
            ("code", "code 1"),
            ("state", begun["state"].as_str()),
            ("iss", self.supplier.url.as_str()),
        ];
        let back = self.come_back(&query).await.expect(303);
        self.complete(&back).await
    }

    /// Links an account; answers the id of the link.
    pub async fn link(&self) -> i64 {
        let link: Value = self.try_link().await.expect(200).data();
        link["id"].as_i64().expect("an id")
    }

    pub async fn links(&self) -> Vec<Value> {
        self.user().get(PATH).call().await.expect(200).data()
    }

    pub async fn token(&self, id: i64) -> Reply {
        self.user()
            .get(&format!("{PATH}/{id}/access-token"))
            .call()
            .await
    }

    pub async fn scalar(&self, text: &'static str) -> i64 {
        sql(text)
            .scalar(&mut self.app.app.db.read().await.expect("a connection"))
            .await
            .expect("a number")
    }
}

pub async fn complete(user: &Client, back: &Reply) -> Reply {
    user.post("/app/supplier-link/complete")
        .json(&completion(back.header("location")))
        .call()
        .await
}

on_each_database!(an_account_is_linked_used_and_unlinked);
async fn an_account_is_linked_used_and_unlinked(backend: Backend) {
    let linking = Linking::new(backend).await;
    let user = linking.user();
    let config = format!("/app/supplier-oauth-configs/{}", linking.tenant.tenant_uuid);
    let consent: Value = user.get(&config).call().await.expect(200).data();
    let expected = json!({"consent_text": "We may see your lamps.", "scope": "openid devices",
        "userinfo_url": format!("{}/me", linking.supplier.url)});
    assert_eq!(consent, expected);
    let nobody = format!("/app/supplier-oauth-configs/{}", uuid::Uuid::new_v4());
    user.get(&nobody).call().await.expect(404);

    let begun = linking.begin(&user, Some(RETURN_URL)).await;
    let redirect_uri = format!("{PUBLIC_URL}/auth/supplier-link/callback");
    for (name, value) in [
        ("theme", "dark"),
        ("response_type", "code"),
        ("client_id", "hubs & more"),
        ("redirect_uri", redirect_uri.as_str()),
        ("scope", "openid devices"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(begun[name], value, "{name}");
    }
    let query = [
        ("code", "code 1"),
        ("state", begun["state"].as_str()),
        ("iss", linking.supplier.url.as_str()),
    ];
    let back = linking.come_back(&query).await.expect(303);
    let pending = format!(
        "{RETURN_URL}&state={}&status=pending&completion=",
        begun["state"]
    );
    assert!(
        back.header("location").starts_with(&pending),
        "{}",
        back.header("location")
    );
    assert!(linking.supplier.take("/token").is_empty() && linking.links().await.is_empty());
    let completed: Value = linking.complete(&back).await.expect(200).data();
    let asked = linking.supplier.take("/token").remove(0);
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(asked.form["code_verifier"].as_bytes()));
    assert_eq!(
        (&asked.form["grant_type"], &asked.form["code"]),
        (&"authorization_code".into(), &"code 1".into())
    );
    assert_eq!(
        (&asked.form["redirect_uri"], &challenge),
        (&redirect_uri, &begun["code_challenge"])
    );
    let basic = asked.headers["authorization"]
        .to_str()
        .expect("text")
        .trim_start_matches("Basic ")
        .to_owned();
    let basic = base64::engine::general_purpose::STANDARD
        .decode(basic)
        .expect("base64");
    assert_eq!(
        String::from_utf8_lossy(&basic),
        "hubs+%26+more:a+secret+of+the+client%3A+1"
    );
    assert_eq!(
        linking.supplier.take("/me")[0].headers["authorization"],
        format!("Bearer {}", access_token(1))
    );

    let links = linking.links().await;
    let link = &links[0];
    assert_eq!(*link, completed);
    assert_eq!(
        (links.len(), &link["userSub"], &link["status"]),
        (1, &json!("ada"), &json!("ACTIVE"))
    );
    assert_eq!(
        (&link["supplierUuid"], &link["scope"]),
        (&json!(linking.tenant.tenant_uuid), &json!("openid devices"))
    );
    assert_eq!(
        link["supplierName"],
        format!("Tenant of {}", linking.tenant.owner.email)
    );
    assert_eq!(
        link["expiresAt"],
        json!(Timestamp::from_micros(NOON + 3_600_000_000))
    );
    for (supplier, count) in [(linking.tenant.tenant_uuid.0, 1), (uuid::Uuid::new_v4(), 0)] {
        let found: Vec<Value> = user
            .get(&format!("{PATH}?supplierUuid={supplier}"))
            .call()
            .await
            .expect(200)
            .data();
        assert_eq!(found.len(), count);
    }
    let id = link["id"].as_i64().expect("an id");
    let reply = linking.token(id).await.expect(200);
    assert_eq!(reply.header("cache-control"), "no-store");
    let token: Value = reply.data();
    let expected = json!({"access_token": access_token(1), "token_type": "Bearer", "expires_at": link["expiresAt"]});
    assert_eq!(token, expected);

    // Somebody else's link does not exist.
    let other = Person::register(&linking.app.client()).await.client;
    other
        .get(&format!("{PATH}/{id}/access-token"))
        .call()
        .await
        .expect(404);
    other
        .delete(&format!("{PATH}/{id}"))
        .call()
        .await
        .expect(404);
    assert_eq!(
        other
            .get(PATH)
            .call()
            .await
            .expect(200)
            .data::<Vec<Value>>()
            .len(),
        0
    );

    let ended: Value = user
        .delete(&format!("{PATH}/{id}"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        ended,
        json!({"id": id, "status": "REVOKED", "revokedAtSupplier": true})
    );
    let revoked: Vec<String> = linking
        .supplier
        .take("/revoke")
        .iter()
        .map(|asked| asked.form["token"].clone())
        .collect();
    assert_eq!(
        revoked,
        ["the-refresh-token-0001".to_owned(), access_token(1)]
    );
    assert!(linking.links().await.is_empty());
    linking.token(id).await.expect(404);
    user.delete(&format!("{PATH}/{id}"))
        .call()
        .await
        .expect(404);
    let left = "SELECT COUNT(*) FROM supplier_links WHERE sealed_access_token IS NOT NULL \
                OR sealed_refresh_token IS NOT NULL";
    assert_eq!(
        linking.scalar(left).await,
        0,
        "tokens that are revoked are gone"
    );

    // Both sides can look it up.
    let path = "/tenant/audit-logs?size=100";
    let owner = linking
        .tenant
        .owner
        .as_platform_admin(&linking.app)
        .tenant(linking.tenant.tenant_uuid);
    let log = owner.get(path).call().await.expect(200).body;
    for action in ["authorize", "create", "read_token", "revoke"] {
        assert!(
            log.contains(&format!("supplier_link.{action}")),
            "{action}: {log}"
        );
    }
    let events: Vec<Value> = user
        .get("/platform/registration-events")
        .call()
        .await
        .expect(200)
        .data();
    let [revoked, created] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (&revoked["eventType"], &created["eventType"]),
        (
            &json!("supplier_link.revoked"),
            &json!("supplier_link.created")
        )
    );
    let payload = &created["payload"];
    assert_eq!(
        (&payload["userSub"], &payload["supplierLinkId"]),
        (&json!("ada"), &json!(id))
    );
    assert_eq!(payload["userUuid"], json!(linking.person.login.user_uuid));
}

on_each_database!(a_state_is_good_once_and_for_ten_minutes);
async fn a_state_is_good_once_and_for_ten_minutes(backend: Backend) {
    let linking = Linking::new(backend).await;
    let iss = linking.supplier.url.clone();
    let refused = async |query: &[(&str, &str)], code: &str| {
        let reply = linking.come_back(query).await.expect(400);
        assert_eq!(reply.problem().code, code, "{query:?}");
    };
    let long = "x".repeat(300);
    for state in ["x", long.as_str(), "\u{0}"] {
        refused(&[("code", "code"), ("state", state)], "INVALID_STATE").await;
    }
    refused(&[("code", "code")], "INVALID_FIELD").await;
    let user = linking.user();
    let state = linking
        .begin(&user, None)
        .await
        .remove("state")
        .expect("a state");
    refused(
        &[("code", "code"), ("state", &state), ("state", &state)],
        "INVALID_FIELD",
    )
    .await;
    // Of many browsers that bring it, one is served.
    let query = [
        ("code", "code"),
        ("state", state.as_str()),
        ("iss", iss.as_str()),
    ];
    let replies = futures_util::future::join_all((0..8).map(|_| linking.come_back(&query))).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 400, 400, 400, 400, 400, 400, 400]);
    refused(&query, "INVALID_STATE").await;
    // Of many that complete it, one does.
    let back = replies
        .iter()
        .find(|reply| reply.status == 303)
        .expect("an answer");
    let replies = futures_util::future::join_all((0..8).map(|_| linking.complete(back))).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400, 400, 400, 400, 400, 400, 400]);
    assert_eq!(
        (
            linking.supplier.take("/token").len(),
            linking.links().await.len()
        ),
        (1, 1)
    );

    let state = linking
        .begin(&user, None)
        .await
        .remove("state")
        .expect("a state");
    linking.pass(601);
    refused(
        &[("code", "code"), ("state", &state), ("iss", &iss)],
        "INVALID_STATE",
    )
    .await;

    // Who begins again and again has the last ten.
    let user = linking.user();
    let mut states = Vec::new();
    for _ in 0..11 {
        states.push(
            linking
                .begin(&user, None)
                .await
                .remove("state")
                .expect("a state"),
        );
        linking.pass(1);
    }
    refused(
        &[("code", "code"), ("state", &states[0]), ("iss", &iss)],
        "INVALID_STATE",
    )
    .await;
    // The answer is good for two minutes.
    for (state, secs, status) in [(&states[1], 0, 200), (&states[2], 121, 400)] {
        let query = [("code", "code"), ("state", state), ("iss", &iss)];
        let back = linking.come_back(&query).await.expect(303);
        linking.pass(secs);
        linking.complete(&back).await.expect(status);
    }
    assert_eq!(
        linking
            .scalar("SELECT COUNT(*) FROM supplier_link_attempts")
            .await,
        8
    );
    linking.pass(601);
    let now = linking.app.app.clock.now();
    hub_people::supplier_links::upkeep(&linking.app.app.db, now, 100)
        .await
        .expect("upkeep");
    assert_eq!(
        linking
            .scalar("SELECT COUNT(*) FROM supplier_link_attempts")
            .await,
        0
    );
}

on_each_database!(only_who_began_completes_a_link);
async fn only_who_began_completes_a_link(backend: Backend) {
    let linking = Linking::new(backend).await;
    let iss = linking.supplier.url.clone();
    let victim = Person::register(&linking.app.client()).await;
    let victim = victim.as_platform_admin(&linking.app);
    // The attacker begins, and the victim agrees at the supplier: in their browser, or by a code
    // that somebody sends with the attacker's state.
    let answered = async || {
        let begun = linking.begin(&linking.user(), None).await;
        let query = [("code", "code"), ("state", &begun["state"]), ("iss", &iss)];
        let back = linking.come_back(&query).await.expect(303);
        assert!(
            back.header("location")
                .starts_with("/auth/supplier-link/pending?"),
            "{}",
            back.header("location")
        );
        back
    };
    let back = answered().await;
    let shown = linking
        .app
        .client()
        .get(back.header("location"))
        .call()
        .await;
    assert!(
        !shown.expect(200).body.contains("completion"),
        "nothing of it is on the page"
    );
    // Nobody signed in leaves it; a completion that is wrong does too.
    complete(&linking.app.client(), &back).await.expect(401);
    let mut wrong = completion(back.header("location"));
    wrong["completion"] = wrong["state"].clone();
    for client in [&victim, &linking.user()] {
        let reply = client
            .post("/app/supplier-link/complete")
            .json(&wrong)
            .call();
        assert_eq!(reply.await.expect(400).problem().code, "INVALID_STATE");
    }
    // Another person voids it, for the one who began too.
    let reply = complete(&victim, &back).await.expect(403);
    assert_eq!(reply.problem().code, "NOT_BEGUN_BY_YOU");
    linking.complete(&back).await.expect(400);
    assert!(linking.supplier.take("/token").is_empty(), "not redeemed");
    assert!(linking.links().await.is_empty());
    let links: Vec<Value> = victim.get(PATH).call().await.expect(200).data();
    assert!(links.is_empty(), "{links:?}");
    let refused = "SELECT COUNT(*) FROM audit_logs WHERE action = 'supplier_link.refuse'";
    assert_eq!(linking.scalar(refused).await, 1);

    let back = answered().await;
    linking.complete(&back).await.expect(200);
}

on_each_database!(answers_of_other_servers_link_nothing);
async fn answers_of_other_servers_link_nothing(backend: Backend) {
    let linking = Linking::new(backend).await;
    let (user, iss) = (linking.user(), linking.supplier.url.clone());
    // Without the issuer that this server promises, with another one, and with none that is one.
    for other in [None, Some("https://evil.example"), Some("")] {
        for return_url in [None, Some(RETURN_URL)] {
            let begun = linking.begin(&user, return_url).await;
            let mut query = vec![("code", "code"), ("state", begun["state"].as_str())];
            query.extend(other.map(|iss| ("iss", iss)));
            let reply = linking.come_back(&query).await;
            match return_url {
                None => assert_eq!(reply.expect(400).problem().code, "OTHER_ISSUER"),
                Some(url) => assert_eq!(
                    reply.expect(303).header("location"),
                    format!("{url}&state={}&status=failed", begun["state"])
                ),
            }
            // The state was shown to somebody it was not for.
            query.push(("iss", &iss));
            linking.come_back(&query[..2]).await.expect(400);
        }
    }
    // A refusal is no failure of anybody.
    let begun = linking.begin(&user, None).await;
    let query = [
        ("error", "access_denied"),
        ("state", begun["state"].as_str()),
        ("iss", iss.as_str()),
    ];
    let page = linking.come_back(&query).await.expect(200);
    assert!(
        page.body.contains("was not linked") && !page.body.contains("access_denied"),
        "{}",
        page.body
    );
    let begun = linking.begin(&user, None).await;
    let query = [("state", begun["state"].as_str()), ("iss", iss.as_str())];
    assert_eq!(
        linking.come_back(&query).await.expect(400).problem().errors[0].field,
        "code"
    );

    // A code goes to the server that the user was sent to, and the user to where they may go.
    let answered = linking.begin(&user, Some(RETURN_URL)).await;
    let query = [
        ("code", "code"),
        ("state", answered["state"].as_str()),
        ("iss", iss.as_str()),
    ];
    let answered = linking.come_back(&query).await.expect(303);
    let begun = linking.begin(&user, Some(RETURN_URL)).await;
    let mut config = linking.supplier.config();
    config["token_url"] = json!(format!("{}/elsewhere", linking.supplier.url));
    config["return_urls"] = json!([]);
    linking.configure(config).await;
    let query = [
        ("code", "code"),
        ("state", begun["state"].as_str()),
        ("iss", iss.as_str()),
    ];
    assert_eq!(
        linking.come_back(&query).await.expect(400).problem().code,
        "SUPPLIER_CHANGED"
    );
    assert_eq!(
        linking.complete(&answered).await.expect(400).problem().code,
        "SUPPLIER_CHANGED"
    );
    assert!(
        linking.supplier.take("/token").is_empty()
            && linking.supplier.take("/elsewhere").is_empty()
    );
    assert!(linking.links().await.is_empty());

    let body = json!({"supplierUuid": linking.tenant.tenant_uuid, "returnUrl": "https://app.example.com/linked"});
    let reply = user
        .post("/app/supplier-link/authorize")
        .json(&body)
        .call()
        .await
        .expect(400);
    assert_eq!(reply.problem().errors[0].field, "returnUrl");
    let body = json!({"supplierUuid": uuid::Uuid::new_v4()});
    user.post("/app/supplier-link/authorize")
        .json(&body)
        .call()
        .await
        .expect(404);
}

on_each_database!(bad_servers_leave_no_link_behind);
async fn bad_servers_leave_no_link_behind(backend: Backend) {
    let linking = Linking::new(backend).await;
    let supplier = &linking.supplier;
    let tokens = |change: Value| {
        let mut tokens =
            json!({"access_token": "an access token", "token_type": "Bearer", "expires_in": 3600});
        tokens
            .as_object_mut()
            .expect("an object")
            .extend(change.as_object().expect("an object").clone());
        SupplierAnswer::json(200, tokens)
    };
    let claiming = |claims: Value| tokens(json!({"id_token": id_token(&claims)}));
    let (iss, id) = (supplier.url.as_str(), "hubs & more");
    let long = "a".repeat(20_000);
    for (path, said, status) in [
        ("/token", SupplierAnswer::html(200), 502),
        ("/token", SupplierAnswer::html(500), 502),
        ("/token", SupplierAnswer::html(302), 502),
        ("/token", SupplierAnswer::html(401), 502),
        ("/token", SupplierAnswer::lost(), 502),
        ("/token", SupplierAnswer::never(), 504),
        (
            "/token",
            SupplierAnswer::json(400, json!({"error": "invalid_grant"})),
            400,
        ),
        (
            "/token",
            SupplierAnswer::json(400, json!({"error": "invalid_client"})),
            502,
        ),
        ("/token", SupplierAnswer::json(200, json!([])), 502),
        ("/token", tokens(json!({"access_token": ""})), 502),
        ("/token", tokens(json!({"access_token": long})), 502),
        ("/token", tokens(json!({"refresh_token": long})), 502),
        ("/token", tokens(json!({"token_type": "mac"})), 502),
        ("/token", tokens(json!({"expires_in": "soon"})), 502),
        ("/token", tokens(json!({"scope": long})), 502),
        ("/token", tokens(json!({"id_token": "x.y.z"})), 502),
        (
            "/token",
            claiming(json!({"iss": iss, "aud": id, "sub": "ben"})),
            502,
        ),
        (
            "/token",
            claiming(json!({"iss": iss, "aud": "another client", "sub": "ada"})),
            502,
        ),
        (
            "/token",
            claiming(json!({"iss": "https://evil.example", "aud": id, "sub": "ada"})),
            502,
        ),
        ("/me", SupplierAnswer::html(200), 502),
        ("/me", SupplierAnswer::json(401, json!({"sub": "ada"})), 502),
        ("/me", SupplierAnswer::json(200, json!({})), 502),
        ("/me", SupplierAnswer::json(200, json!({"sub": ""})), 502),
        (
            "/me",
            SupplierAnswer::json(200, json!({"sub": "a".repeat(256)})),
            502,
        ),
    ] {
        supplier.behave();
        supplier.say(path, said.clone());
        supplier.take("/revoke");
        let reply = linking.try_link().await;
        assert_eq!(
            reply.status.as_u16(),
            status,
            "{path}: {said:?}: {}",
            reply.body
        );
        assert!(
            !reply.body.contains("sorry"),
            "nothing of the answer is shown: {}",
            reply.body
        );
        assert!(linking.links().await.is_empty(), "{path}: {said:?}");
        if path == "/me" {
            assert_eq!(
                supplier.take("/revoke").len(),
                2,
                "tokens that nobody will use are revoked: {said:?}"
            );
        }
    }
    assert_eq!(
        linking.scalar("SELECT COUNT(*) FROM supplier_links").await,
        0
    );

    // What is unusual, and enough.
    for (said, sub, expires) in [
        (tokens(json!({"expires_in": null})), "ada", false),
        (tokens(json!({"expires_in": "60"})), "ben", true),
        (
            claiming(json!({"iss": iss, "aud": [id], "sub": "cy"})),
            "cy",
            true,
        ),
    ] {
        supplier.behave();
        supplier.say("/token", said);
        supplier.say("/me", SupplierAnswer::json(200, json!({"sub": sub})));
        linking.try_link().await.expect(200);
        let link = linking.links().await.remove(0);
        assert_eq!(
            (link["userSub"].as_str(), !link["expiresAt"].is_null()),
            (Some(sub), expires),
            "{link}"
        );
    }

    // The same account again is the same link.
    supplier.behave();
    let before = linking.links().await.len();
    linking.try_link().await.expect(200);
    let links = linking.links().await;
    assert_eq!(links.len(), before);
    let ada = links
        .iter()
        .find(|link| link["userSub"] == "ada")
        .expect("a link");
    assert!(!ada["expiresAt"].is_null(), "{ada}");
}

on_each_database!(what_a_server_says_of_itself_is_judged);
async fn what_a_server_says_of_itself_is_judged(backend: Backend) {
    const PLACE: &str = "/.well-known/oauth-authorization-server";
    const OTHER_PLACE: &str = "/.well-known/openid-configuration";
    let linking = Linking::new(backend).await;
    let (user, supplier) = (linking.user(), &linking.supplier);
    let body = json!({"supplierUuid": linking.tenant.tenant_uuid});
    let begin = async || {
        user.post("/app/supplier-link/authorize")
            .json(&body)
            .call()
            .await
    };
    for (said, status) in [
        (SupplierAnswer::html(200), 502),
        (SupplierAnswer::html(500), 502),
        (SupplierAnswer::never(), 504),
        (
            SupplierAnswer::json(200, json!({"issuer": "https://evil.example"})),
            502,
        ),
        (
            SupplierAnswer::json(
                200,
                json!({"issuer": supplier.url, "code_challenge_methods_supported": ["plain"]}),
            ),
            502,
        ),
    ] {
        supplier.say(PLACE, said.clone());
        begin().await.expect(status);
    }
    assert_eq!(
        linking
            .scalar("SELECT COUNT(*) FROM supplier_link_attempts")
            .await,
        0
    );
    // OpenID Connect has another place for it. What is known of the client decides how it says who
    // it is, and where tokens end.
    supplier.say(PLACE, SupplierAnswer::html(404));
    supplier.say("/ended", SupplierAnswer::json(200, json!({})));
    supplier.take(OTHER_PLACE);
    let known = json!({"issuer": supplier.url, "token_endpoint_auth_methods_supported": ["client_secret_post"],
        "revocation_endpoint": format!("{}/ended", supplier.url)});
    supplier.say(OTHER_PLACE, SupplierAnswer::json(200, known));
    let mut config = supplier.config();
    config
        .as_object_mut()
        .expect("an object")
        .remove("revoke_url");
    linking.configure(config).await;
    let id = linking.link().await;
    let asked = supplier.take("/token").remove(0);
    assert!(!asked.headers.contains_key("authorization"));
    assert_eq!(
        (
            asked.form["client_id"].as_str(),
            asked.form["client_secret"].as_str()
        ),
        ("hubs & more", "a secret of the client: 1")
    );
    user.delete(&format!("{PATH}/{id}"))
        .call()
        .await
        .expect(200);
    assert_eq!(supplier.take("/ended").len(), 2);
    assert_eq!(
        supplier.take(OTHER_PLACE).len(),
        1,
        "what was read is not asked for again"
    );
}
