//! Accounts linked at a certified OpenID Connect provider, which requires PKCE and rotates refresh
//! tokens: who uses one twice loses the link.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use hub_base::clock::Clock;
use hub_core::config::Settings;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::issuer::{Browser, Provider};
use hub_tests::supplier::completion;
use hub_tests::{Backend, Call, Client, Options, Person, Reply, Tenant, TestApp, on_each_database};
use reqwest::Url;
use serde_json::{Value, json};

const CALLBACK: &str = "/auth/supplier-link/callback";
const PATH: &str = "/app/supplier-links";

struct World {
    provider: Provider,
    app: TestApp,
    options: Options,
    micros: Arc<AtomicI64>,
    tenant: Tenant,
}

impl World {
    /// None where the provider is not installed.
    async fn new(backend: Backend) -> Option<Self> {
        let provider = Provider::start().await?;
        let now: Timestamp = Clock::System.now();
        let (clock, micros) = set_clock(now);
        let settings = Settings {
            allow_private_targets: Some(true.into()),
            public_url: Some("https://hubs.example.com".to_owned()),
            ..Settings::default()
        };
        let options = Options {
            clock: Some(clock),
            settings,
        };
        let app = TestApp::with(backend, options.clone()).await;
        let tenant = Tenant::create(&app.client()).await;
        let config = provider.supplier_config();
        tenant
            .client
            .put("/tenant/supplier-oauth-config")
            .json(&config)
            .call()
            .await
            .expect(200);
        Some(Self {
            provider,
            app,
            options,
            micros,
            tenant,
        })
    }

    /// The person, with a token that has not expired.
    fn user(&self, person: &Person) -> Client {
        person.as_platform_admin(&self.app)
    }

    fn pass(&self, secs: i64) {
        self.micros.fetch_add(secs * 1_000_000, Ordering::SeqCst);
    }

    /// Links the account `name`; answers the address that the browser was sent back to.
    async fn link(&self, user: &Client, name: &str) -> Url {
        let body = json!({"supplierUuid": self.tenant.tenant_uuid, "returnUrl": "https://app.example.com/linked"});
        let begun: Value = user
            .post("/app/supplier-link/authorize")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        let page = Url::parse(begun["authorizeUrl"].as_str().expect("a URL")).expect("a URL");
        let back = Browser::default().visit(&page, name, CALLBACK).await;
        let reply = self.come_back(&back).await.expect(303);
        complete(user, &reply).await.expect(200);
        back
    }

    async fn come_back(&self, back: &Url) -> Reply {
        let client = self.app.client().without_redirects();
        client
            .get(&format!("{CALLBACK}?{}", back.query().expect("an answer")))
            .call()
            .await
    }

    async fn only_link(&self, user: &Client) -> Value {
        let mut links: Vec<Value> = user.get(PATH).call().await.expect(200).data();
        assert_eq!(links.len(), 1, "{links:?}");
        links.remove(0)
    }
}

async fn complete(user: &Client, back: &Reply) -> Reply {
    user.post("/app/supplier-link/complete")
        .json(&completion(back.header("location")))
        .call()
        .await
}

/// The token; asked for again where a busy machine cannot serve two hundred requests in time.
async fn token(user: &Client, link: &Value) -> String {
    let path = format!("{PATH}/{}/access-token", link["id"]);
    let mut reply = user.get(&path).call().await;
    for _ in 0..10 {
        if reply.status != 503 {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        reply = user.get(&path).call().await;
    }
    let token: Value = reply.expect(200).data();
    token["access_token"].as_str().expect("a token").to_owned()
}

on_each_database!(an_account_at_a_certified_provider_is_linked);
async fn an_account_at_a_certified_provider_is_linked(backend: Backend) {
    let Some(world) = World::new(backend).await else {
        return;
    };
    let person = Person::register(&world.app.client()).await;
    let back = world.link(&world.user(&person), "ada").await;
    assert_eq!(
        world.come_back(&back).await.expect(400).problem().code,
        "INVALID_STATE"
    );
    let link = world.only_link(&world.user(&person)).await;
    assert_eq!(
        (&link["userSub"], &link["scope"]),
        (&json!("ada"), &json!("openid offline_access"))
    );
    let first = token(&world.user(&person), &link).await;
    assert!(world.provider.is_active(&first).await);

    // Two replicas, many readers, and refresh tokens that are good once: time after time one
    // refresh.
    let replica = TestApp::replica_of(&world.app, world.options.clone()).await;
    let mut before = first.clone();
    for _ in 0..3 {
        world.pass(3400);
        let asked = world.provider.exchanges().await;
        let user = world.user(&person);
        let users = [user.clone(), user.at(&replica.url)];
        let tokens = join_all((0..200).map(|number| token(&users[number % 2], &link))).await;
        assert!(
            tokens.iter().all(|one| *one == tokens[0] && *one != before),
            "{tokens:?}"
        );
        assert_eq!(world.provider.exchanges().await - asked, 1, "one refresh");
        assert!(world.provider.is_active(&tokens[0]).await);
        before = tokens[0].clone();
    }

    // The same account of somebody else is theirs, and a second account is a second link.
    let other = Person::register(&world.app.client()).await;
    world.link(&world.user(&other), "ada").await;
    let theirs = world.only_link(&world.user(&other)).await;
    assert_ne!(theirs["id"], link["id"]);
    world.link(&world.user(&person), "ben").await;
    let links: Vec<Value> = world
        .user(&person)
        .get(PATH)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!((links.len(), &links[0]["userSub"]), (2, &json!("ben")));

    let path = format!("{PATH}/{}", link["id"]);
    let ended: Value = world
        .user(&person)
        .delete(&path)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(ended["revokedAtSupplier"], true);
    assert!(
        !world.provider.is_active(&before).await,
        "the provider has ended it too"
    );
    assert!(
        world
            .provider
            .is_active(&token(&world.user(&other), &theirs).await)
            .await
    );
}

on_each_database!(a_provider_that_is_away_costs_no_link);
async fn a_provider_that_is_away_costs_no_link(backend: Backend) {
    let Some(mut world) = World::new(backend).await else {
        return;
    };
    let person = Person::register(&world.app.client()).await;
    world.link(&world.user(&person), "ada").await;
    let link = world.only_link(&world.user(&person)).await;
    let first = token(&world.user(&person), &link).await;
    // A code that was meant for another state is refused by PKCE.
    let body = json!({"supplierUuid": world.tenant.tenant_uuid});
    let mut pages = Vec::new();
    for name in ["ada", "ben"] {
        let user = world.user(&person);
        let begun: Value = user
            .post("/app/supplier-link/authorize")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        let page = Url::parse(begun["authorizeUrl"].as_str().expect("a URL")).expect("a URL");
        pages.push(Browser::default().visit(&page, name, CALLBACK).await);
    }
    let of = |page: &Url, name: &str| {
        page.query_pairs()
            .find(|(key, _)| key == name)
            .expect("a member")
            .1
            .into_owned()
    };
    let mut mixed = pages[0].clone();
    mixed
        .query_pairs_mut()
        .clear()
        .append_pair("code", &of(&pages[1], "code"));
    mixed
        .query_pairs_mut()
        .append_pair("state", &of(&pages[0], "state"))
        .append_pair("iss", &world.provider.url);
    let back = world.come_back(&mixed).await.expect(303);
    let reply = complete(&world.user(&person), &back).await.expect(400);
    assert_eq!(reply.problem().code, "INVALID_CODE");
    assert_eq!(world.only_link(&world.user(&person)).await, link);

    world.provider.kill().await;
    world.pass(3400);
    assert_eq!(
        token(&world.user(&person), &link).await,
        first,
        "it is still good"
    );
    world.pass(300);
    let path = format!("{PATH}/{}/access-token", link["id"]);
    world.user(&person).get(&path).call().await.expect(502);
    let ended: Value = world
        .user(&person)
        .delete(&format!("{PATH}/{}", link["id"]))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(ended["revokedAtSupplier"], false);
    let left: Vec<Value> = world
        .user(&person)
        .get(PATH)
        .call()
        .await
        .expect(200)
        .data();
    assert!(left.is_empty());
}
