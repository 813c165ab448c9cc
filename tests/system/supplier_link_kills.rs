//! The service is killed while an account is linked, read and unlinked, at any moment: between two
//! steps, and while the provider is asked. The account is linked or not, never half.

use std::time::{Duration, Instant};

use hub_tests::issuer::{Browser, Provider};
use hub_tests::supplier::completion;
use hub_tests::{Backend, Call, Client, Cloud, Person, Tenant, on_each_database};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use reqwest::Url;
use serde_json::{Value, json};

const CALLBACK: &str = "/auth/supplier-link/callback";
const PATH: &str = "/app/supplier-links";
/// As many as `HUB_TESTS_KILLS` says, for each kind of step.
const KILLS: usize = 4;
/// How long the provider holds back each of its answers.
const HELD: Duration = Duration::from_millis(60);
/// A task of a killed service is begun again when its lease is over.
const REVOKED_WITHIN: Duration = Duration::from_secs(180);
/// A link needs the document, the tokens and the user's id, one after the other.
const ANSWERS: u32 = 4;

struct World {
    provider: Provider,
    cloud: Cloud,
    person: Person,
    supplier: Value,
    random: SmallRng,
}

impl World {
    fn user(&self) -> Client {
        self.person.client.at(&self.cloud.url)
    }

    /// Kills the service after a random time, while `call` is answered; what was answered.
    async fn kill_during(&mut self, call: reqwest::RequestBuilder) -> Option<u16> {
        let after = self.random.random_range(Duration::ZERO..HELD * ANSWERS);
        let answered = tokio::spawn(async move {
            call.try_call()
                .await
                .ok()
                .map(|reply| reply.status.as_u16())
        });
        tokio::time::sleep(after).await;
        self.cloud.crash().await;
        answered.await.expect("an end")
    }

    /// Where the provider sends the browser of somebody who has allowed the link.
    async fn allow(&mut self, name: &str) -> Url {
        let body =
            json!({"supplierUuid": self.supplier, "returnUrl": "https://app.example.com/linked"});
        let begun: Value = self
            .user()
            .post("/app/supplier-link/authorize")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        let page = Url::parse(begun["authorizeUrl"].as_str().expect("a URL")).expect("a URL");
        Browser::default().visit(&page, name, CALLBACK).await
    }

    /// The browser comes back; returns what completes the link.
    async fn back(&self, back: &Url) -> Value {
        let path = format!("{CALLBACK}?{}", back.query().expect("an answer"));
        let user = self.user().without_redirects();
        completion(user.get(&path).call().await.expect(303).header("location"))
    }

    fn complete(&self, completion: &Value) -> reqwest::RequestBuilder {
        self.user()
            .post("/app/supplier-link/complete")
            .json(completion)
    }

    async fn links(&self) -> Vec<Value> {
        self.user().get(PATH).call().await.expect(200).data()
    }

    /// What is linked works: its token is in force at the provider. Returns the token.
    async fn check(&self, link: &Value) -> String {
        assert_eq!(link["status"], "ACTIVE", "{link}");
        let path = format!("{PATH}/{}/access-token", link["id"]);
        let token: Value = self.user().get(&path).call().await.expect(200).data();
        let token = token["access_token"].as_str().expect("a token").to_owned();
        assert!(self.provider.is_active(&token).await, "{link}");
        token
    }
}

on_each_database!(kills_leave_no_half_link);
async fn kills_leave_no_half_link(backend: Backend) {
    let Some(provider) = Provider::start().await else {
        return;
    };
    let seed = std::env::var("HUB_TESTS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(rand::random);
    println!("on {backend}: HUB_TESTS_SEED={seed}");
    let kills = std::env::var("HUB_TESTS_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(KILLS);
    let settings = [
        "--allow-private-targets",
        "--public-url",
        "https://hubs.example.com",
    ];
    let cloud = Cloud::start(backend, &settings).await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let config = provider.supplier_config();
    tenant
        .client
        .put("/tenant/supplier-oauth-config")
        .json(&config)
        .call()
        .await
        .expect(200);
    let person = Person::register(&Client::new(&cloud.url)).await;
    let supplier = json!(tenant.tenant_uuid);
    let mut world = World {
        provider,
        cloud,
        person,
        supplier,
        random: SmallRng::seed_from_u64(seed),
    };
    let mut found = [0, 0];
    let mut tokens = Vec::new();
    for round in 0..kills {
        let name = format!("user{round}");
        // Between the steps of a link: nothing is lost.
        if round == 0 {
            let back = world.allow(&name).await;
            world.cloud.crash().await;
            let completion = world.back(&back).await;
            world.cloud.crash().await;
            world.complete(&completion).call().await.expect(200);
            let links = world.links().await;
            tokens.push(world.check(&links[0]).await);
            world
                .user()
                .delete(&format!("{PATH}/{}", links[0]["id"]))
                .call()
                .await
                .expect(200);
        }

        // While it is linked.
        world.provider.hold(HELD).await;
        let back = world.allow(&name).await;
        let completion = world.back(&back).await;
        let call = world.complete(&completion);
        let answer = world.kill_during(call).await;
        world.provider.hold(Duration::ZERO).await;
        let mut links = world.links().await;
        assert!(
            links.len() <= 1 && (answer.is_none() || links.len() == 1),
            "{answer:?}: {links:?}"
        );
        found[links.len()] += 1;
        if links.is_empty() {
            // Where the completion or the code is used, this person begins anew.
            let again = world.complete(&completion).call().await;
            if again.status != 200 {
                again.expect(400);
                let back = world.allow(&name).await;
                let completion = world.back(&back).await;
                world.complete(&completion).call().await.expect(200);
            }
            links = world.links().await;
        }
        assert_eq!(links.len(), 1, "{links:?}");
        tokens.push(world.check(&links[0]).await);

        // While it is unlinked.
        world.provider.hold(HELD).await;
        let path = format!("{PATH}/{}", links[0]["id"]);
        let call = world.user().delete(&path);
        let answer = world.kill_during(call).await;
        world.provider.hold(Duration::ZERO).await;
        let left = world.links().await;
        assert!(answer.is_none() || left.is_empty(), "{answer:?}: {left:?}");
        if let Some(link) = left.first() {
            world.check(link).await;
            world.user().delete(&path).call().await.expect(200);
        }
        assert!(world.links().await.is_empty());
        world
            .user()
            .get(&format!("{path}/access-token"))
            .call()
            .await
            .expect(404);
    }
    // What was unlinked ends at the provider too, sooner or later.
    let unlinked_at = Instant::now();
    for token in &tokens {
        while world.provider.is_active(token).await {
            assert!(
                unlinked_at.elapsed() < REVOKED_WITHIN,
                "a token of a link that was ended is in force"
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    println!("on {backend}: not linked {}, linked {}", found[0], found[1]);
}
