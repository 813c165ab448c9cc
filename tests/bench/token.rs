//! *token*: a thousand readers at once of a link's token that is about to expire. One of them
//! refreshes it; the others wait for that. The raw limit is one read of a token that is fresh.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hub_core::config::Settings;
use hub_tests::app::set_clock;
use hub_tests::issuer::{Browser, Provider};
use hub_tests::supplier::completion;
use hub_tests::{Backend, Call, Client, Options, Person, Tenant, TestApp};
use reqwest::Url;
use serde_json::{Value, json};

const READERS: usize = 1000;
const ROUNDS: usize = 5;
const CALLBACK: &str = "/auth/supplier-link/callback";

pub async fn run(backend: Backend) {
    let Some(provider) = Provider::start().await else {
        return;
    };
    let (clock, micros) = set_clock(hub_base::clock::Clock::System.now());
    let settings = Settings {
        allow_private_targets: Some(true.into()),
        public_url: Some("https://hubs.example.com".to_owned()),
        ..Settings::default()
    };
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            settings,
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let config = provider.supplier_config();
    tenant
        .client
        .put("/tenant/supplier-oauth-config")
        .json(&config)
        .call()
        .await
        .expect(200);
    let person = Person::register(&app.client()).await;
    let user = person.as_platform_admin(&app);
    let body = json!({"supplierUuid": tenant.tenant_uuid});
    let begun: Value = user
        .post("/app/supplier-link/authorize")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    let page = Url::parse(begun["authorizeUrl"].as_str().expect("a URL")).expect("a URL");
    let back = Browser::default().visit(&page, "ada", CALLBACK).await;
    let query = back.query().expect("an answer");
    let back = app
        .client()
        .without_redirects()
        .get(&format!("{CALLBACK}?{query}"))
        .call()
        .await
        .expect(303);
    user.post("/app/supplier-link/complete")
        .json(&completion(back.header("location")))
        .call()
        .await
        .expect(200);
    let links: Vec<Value> = user
        .get("/app/supplier-links")
        .call()
        .await
        .expect(200)
        .data();
    let path = format!("/app/supplier-links/{}/access-token", links[0]["id"]);

    for round in 1..=ROUNDS {
        micros.fetch_add(3_400_000_000, std::sync::atomic::Ordering::SeqCst);
        // The person's own token has expired meanwhile.
        let user = person.as_platform_admin(&app);
        let before = provider.exchanges().await;
        let all = timed(&user, &path, READERS).await;
        let refreshes = provider.exchanges().await - before;
        let one = timed(&user, &path, 1).await;
        let fresh = timed(&user, &path, READERS).await;
        println!(
            "token {backend:?} {round}/{ROUNDS}: {READERS} readers of an expiring token in {all:.0?}, {refreshes} refresh (wanted: 1); \
             of a fresh one in {fresh:.0?}, one reader in {one:.1?}; ratio {:.2}",
            all.as_secs_f64() / fresh.as_secs_f64()
        );
    }
}

async fn timed(user: &Client, path: &str, readers: usize) -> Duration {
    let begun_at = Instant::now();
    join_all((0..readers).map(|_| async { user.get(path).call().await.expect(200) })).await;
    begun_at.elapsed()
}
