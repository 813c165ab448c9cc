//! *auth*: what authentication and authorization cost a request. One handler behind the service's
//! extractors and the same handler without them are called in turn, in this process and without a
//! network. Time and CPU are means of a round; the figures are medians of the rounds.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::get;
use hub_core::Core;
use hub_identity::authz::permission::HubsRead;
use hub_identity::authz::{Authorized, PlatformAdmin, Public};
use hub_tests::{Backend, Client, Person, Tenant, TestApp};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tower::ServiceExt;

const ROUNDS: usize = 21;
const REQUESTS_A_ROUND: u32 = 2000;
/// Requests that come when what was read is forgotten: one now and then.
const LONE_REQUESTS: usize = 60;
const WANTED: Duration = Duration::from_micros(50);

async fn open(_: Public, State(core): State<Core>) -> String {
    core.clock.now().to_string()
}

async fn for_callers(_: Authorized<HubsRead>, State(core): State<Core>) -> String {
    core.clock.now().to_string()
}

async fn for_admins(_: PlatformAdmin, State(core): State<Core>) -> String {
    core.clock.now().to_string()
}

/// Who calls what.
struct Kind {
    name: &'static str,
    path: &'static str,
    client: Client,
}

#[derive(Clone, Copy)]
struct Cost {
    time: Duration,
    cpu: Duration,
}

pub async fn run(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let key = tenant
        .api_key(json!({"scopes": ["hubs:read"], "rateLimitPerMinute": 100_000}))
        .await;
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let router = Router::new()
        .route("/open", get(open))
        .route("/tenant/hubs", get(for_callers))
        .route("/platform/hubs", get(for_admins))
        .with_state(app.app.people());
    let kinds = [
        Kind {
            name: "nobody asked",
            path: "/open",
            client: tenant.client.clone(),
        },
        Kind {
            name: "user token in a tenant",
            path: "/tenant/hubs",
            client: tenant.client.clone(),
        },
        Kind {
            name: "API key",
            path: "/tenant/hubs",
            client: key.client,
        },
        Kind {
            name: "platform administrator",
            path: "/platform/hubs",
            client: admin,
        },
    ];
    let mut rounds: Vec<Vec<Cost>> = vec![Vec::new(); kinds.len()];
    for _ in 0..ROUNDS {
        for (kind, costs) in kinds.iter().zip(&mut rounds) {
            costs.push(round(&router, kind).await);
        }
    }
    let mut lone: Vec<Vec<Duration>> = vec![Vec::new(); kinds.len()];
    for _ in 0..LONE_REQUESTS {
        for (kind, times) in kinds.iter().zip(&mut lone) {
            tokio::time::sleep(hub_identity::authn::LEASE + Duration::from_millis(2)).await;
            let asked_at = Instant::now();
            call(&router, kind).await;
            times.push(asked_at.elapsed());
        }
    }
    let medians: Vec<Cost> = rounds
        .iter()
        .map(|costs| Cost {
            time: median(costs.iter().map(|cost| cost.time)),
            cpu: median(costs.iter().map(|cost| cost.cpu)),
        })
        .collect();
    let lone: Vec<Duration> = lone
        .into_iter()
        .map(|times| median(times.into_iter()))
        .collect();
    let base = medians[0];
    println!(
        "auth {backend:?}: without, {:.2?} a request ({:.2?} CPU)",
        base.time, base.cpu
    );
    for ((kind, cost), lone_time) in kinds.iter().zip(&medians).zip(&lone).skip(1) {
        println!(
            "auth {backend:?}: {} adds {:.2?} ({:.2?} CPU) a request (wanted: {WANTED:?}); to one that comes alone after {:?}, {:.0?}",
            kind.name,
            cost.time.saturating_sub(base.time),
            cost.cpu.saturating_sub(base.cpu),
            hub_identity::authn::LEASE,
            lone_time.saturating_sub(lone[0]),
        );
    }
}

async fn round(router: &Router, kind: &Kind) -> Cost {
    let (started_at, cpu) = (Instant::now(), cpu_time());
    for _ in 0..REQUESTS_A_ROUND {
        call(router, kind).await;
    }
    Cost {
        time: started_at.elapsed() / REQUESTS_A_ROUND,
        cpu: (cpu_time() - cpu) / REQUESTS_A_ROUND,
    }
}

async fn call(router: &Router, kind: &Kind) {
    let mut request = Request::get(kind.path)
        .body(Body::empty())
        .expect("a request");
    *request.headers_mut() = kind.client.headers.clone();
    let response = router.clone().oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), StatusCode::OK, "{}", kind.name);
}

/// Of all threads: the database's are the request's too.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime)
        .try_into()
        .expect("a time since the start")
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times[times.len() / 2]
}
