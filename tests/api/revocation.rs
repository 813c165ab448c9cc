//! A right that was taken away is gone when the answer says so: on every replica, for the very next
//! request.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hub_identity::authz::permission::Role;
use hub_tests::{
    Backend, Call, Client, Options, Person, SimulatedHub, Tenant, TestApp, on_each_database,
};
use reqwest::header::HeaderName;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Two replicas on one database, or the one service that SQLite has.
struct Replicas {
    near: TestApp,
    #[expect(dead_code, reason = "serves until the test ends")]
    second: Option<TestApp>,
    far: String,
}

impl Replicas {
    async fn new(backend: Backend) -> Self {
        let near = TestApp::new(backend).await;
        let second = match backend {
            Backend::Postgres => Some(TestApp::replica_of(&near, Options::default()).await),
            Backend::Sqlite => None,
        };
        let far = second.as_ref().unwrap_or(&near).url.clone();
        Self { near, second, far }
    }

    /// Someone's requests in a tight loop at the far replica.
    fn hammer(&self, client: &Client, method: Method, path: &str, body: Option<Value>) -> Hammer {
        let client = client.at(&self.far);
        let request = move |path: &str| -> RequestBuilder {
            let request = client.request(method.clone(), path);
            match &body {
                Some(body) => request.json(body),
                None => request,
            }
        };
        Hammer::start(Arc::new(request), path)
    }
}

/// Requests one after another, by several at once. Each is kept with when it was sent and how it
/// was answered.
struct Hammer {
    stop: Arc<AtomicBool>,
    /// How many are answered.
    answered: Arc<AtomicUsize>,
    tasks: Vec<JoinHandle<Vec<(Instant, u16)>>>,
}

impl Hammer {
    fn start(request: Arc<dyn Fn(&str) -> RequestBuilder + Send + Sync>, path: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let task = || {
            let (stop, answered) = (stop.clone(), answered.clone());
            let (request, path) = (request.clone(), path.to_owned());
            tokio::spawn(async move {
                let mut answers = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let sent_at = Instant::now();
                    answers.push((sent_at, request(&path).call().await.status.as_u16()));
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                answers
            })
        };
        let tasks = (0..4).map(|_| task()).collect();
        Self {
            stop,
            answered,
            tasks,
        }
    }

    /// Lets the requests run for a while, and on a busy machine until some that were sent meanwhile
    /// are answered: a task has one at a time.
    async fn run_on(&self) {
        let enough = self.answered.load(Ordering::Relaxed) + 2 * self.tasks.len();
        tokio::time::sleep(Duration::from_millis(300)).await;
        for _ in 0..600 {
            if self.answered.load(Ordering::Relaxed) >= enough {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Lets the requests run, revokes, lets them run on; all sent after the answer have to be
    /// refused with this status.
    async fn around(self, what: &str, status: u16, revoke: impl Future<Output = ()>) {
        self.run_on().await;
        revoke.await;
        let answered_at = Instant::now();
        self.run_on().await;
        self.stop.store(true, Ordering::Relaxed);
        let (mut before, mut after) = (0, 0);
        for task in self.tasks {
            for (sent_at, answer) in task.await.expect("the requests") {
                if sent_at > answered_at {
                    assert_eq!(
                        answer,
                        status,
                        "{what}: {:?} after the answer",
                        sent_at - answered_at
                    );
                    after += 1;
                } else if answer == 200 {
                    before += 1;
                }
            }
        }
        assert!(
            before > 0 && after > 0,
            "{what}: {before} let in before, {after} refused after"
        );
        println!("{what}: {before} before, {after} after");
    }
}

on_each_database!(removed_or_demoted_member_is_refused_at_once);
async fn removed_or_demoted_member_is_refused_at_once(backend: Backend) {
    let replicas = Replicas::new(backend).await;
    let tenant = Tenant::create(&replicas.near.client()).await;
    let members = format!("/tenant/tenants/{}/members", tenant.tenant_uuid);
    let person = Person::register(&replicas.near.client()).await;
    let persona_uuid = tenant.let_in(&person, Role::Viewer).await;
    for (client, path, status) in [
        (
            person.client.tenant(tenant.tenant_uuid),
            "/tenant/hubs",
            403,
        ),
        (person.client.clone(), members.as_str(), 404),
    ] {
        tenant.let_in(&person, Role::Viewer).await;
        let hammer = replicas.hammer(&client, Method::GET, path, None);
        let removal = tenant.client.delete(&format!("{members}/{persona_uuid}"));
        hammer
            .around("removed", status, async {
                drop(removal.call().await.expect(200))
            })
            .await;
    }
    tenant.let_in(&person, Role::Editor).await;
    let client = person.client.tenant(tenant.tenant_uuid);
    let hammer = replicas.hammer(
        &client,
        Method::POST,
        "/tenant/hubs/claim-codes",
        Some(json!({})),
    );
    let demotion = async {
        tenant.let_in(&person, Role::Viewer).await;
    };
    hammer.around("demoted", 403, demotion).await;
}

on_each_database!(former_owner_is_refused_at_once);
/// Also those whose request was let in and then waited while the right to it went.
async fn former_owner_is_refused_at_once(backend: Backend) {
    let replicas = Replicas::new(backend).await;
    let tenant = Tenant::create(&replicas.near.client()).await;
    let other_owner = tenant.member_person(Role::Owner).await;
    let heir = Person::register(&replicas.near.client()).await;
    let request_uuid = tenant
        .offer(&json!({"targetPersonaUuid": heir.login.persona_uuid}))
        .await;
    let members = format!("/tenant/tenants/{}/members", tenant.tenant_uuid);
    let body = json!({"personaUuid": other_owner.login.persona_uuid, "role": "OWNER"});
    let hammer = replicas.hammer(&tenant.client, Method::POST, &members, Some(body));
    let accept = heir
        .client
        .post(&format!("/tenant/transfer-requests/{request_uuid}/accept"));
    hammer
        .around("gave away", 403, async {
            drop(accept.call().await.expect(200))
        })
        .await;
    // By now an ADMIN.
    let hammer = replicas.hammer(
        &tenant.client,
        Method::PATCH,
        &format!("/tenant/tenants/{}", tenant.tenant_uuid),
        Some(json!({})),
    );
    let persona_uuid = tenant_persona(&heir, &tenant).await;
    let removal = heir.client.delete(&format!("{members}/{persona_uuid}"));
    hammer
        .around("removed by the new owner", 403, async {
            drop(removal.call().await.expect(200))
        })
        .await;
}

/// The first owner's persona, as another member finds it.
async fn tenant_persona(by: &Person, tenant: &Tenant) -> String {
    let members: Vec<Value> = by
        .client
        .get(&format!("/tenant/tenants/{}/members", tenant.tenant_uuid))
        .call()
        .await
        .expect(200)
        .data();
    let found = members
        .iter()
        .find(|member| member["email"] == json!(tenant.owner.email))
        .expect("the first owner");
    found["personaUuid"].as_str().expect("a persona").to_owned()
}

on_each_database!(ended_login_is_refused_at_once);
async fn ended_login_is_refused_at_once(backend: Backend) {
    let replicas = Replicas::new(backend).await;
    let anyone = replicas.near.client();
    let tenant = Tenant::create(&anyone).await;
    let refresh_token = json!({"refreshToken": tenant.owner.login.refresh_token});
    let hammer = replicas.hammer(&tenant.client, Method::GET, "/tenant/hubs", None);
    let logout = anyone.post("/auth/logout").json(&refresh_token);
    hammer
        .around("logged out", 401, async {
            drop(logout.call().await.expect(204))
        })
        .await;

    let tenant = Tenant::create(&anyone).await;
    let refresh_token = json!({"refreshToken": tenant.owner.login.refresh_token});
    let refresh = || anyone.post("/auth/refresh").json(&refresh_token);
    let next: Value = refresh().call().await.expect(200).data();
    // The tokens from before and after are of one login, and die together.
    let newer = anyone.bearer(next["accessToken"].as_str().expect("a token"));
    let older = replicas.hammer(&tenant.client, Method::GET, "/tenant/hubs", None);
    let newer_hammer = replicas.hammer(&newer, Method::GET, "/tenant/tenants", None);
    let reuse = async { drop(refresh().call().await.expect(401)) };
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let both = older.around("reused, the older token", 401, async {
        reuse.await;
        let _ = sender.send(());
    });
    let newer_ends = newer_hammer.around("reused, the newer token", 401, async {
        drop(receiver.await)
    });
    tokio::join!(both, newer_ends);
    let body = json!({"refreshToken": next["refreshToken"]});
    anyone
        .at(&replicas.far)
        .post("/auth/refresh")
        .json(&body)
        .call()
        .await
        .expect(401);
}

on_each_database!(credentials_of_a_deleted_tenant_are_refused_at_once);
async fn credentials_of_a_deleted_tenant_are_refused_at_once(backend: Backend) {
    let replicas = Replicas::new(backend).await;
    let person = Person::register(&replicas.near.client()).await;
    let key_header = HeaderName::from_static("x-api-key");
    for what in ["the owner", "the owner by path", "a key", "a hub"] {
        let tenant = Tenant::create_by(&person).await;
        let members = format!("/tenant/tenants/{}/members", tenant.tenant_uuid);
        let key = tenant.stored_api_key(&replicas.near, "*").await;
        let hub = SimulatedHub::claim(&tenant).await;
        let (client, path, status) = match what {
            "the owner" => (tenant.client.clone(), "/tenant/hubs", 403),
            "the owner by path" => (person.client.clone(), members.as_str(), 404),
            "a key" => (
                replicas
                    .near
                    .client()
                    .tenant(tenant.tenant_uuid)
                    .header(key_header.clone(), &key),
                "/tenant/hubs",
                401,
            ),
            _ => (hub.client.clone(), "/v1/test", 401),
        };
        let hammer = replicas.hammer(&client, Method::GET, path, None);
        let deletion = person
            .client
            .delete(&format!("/tenant/tenants/{}", tenant.tenant_uuid));
        hammer
            .around(what, status, async {
                drop(deletion.call().await.expect(200))
            })
            .await;
    }
}
