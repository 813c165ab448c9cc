//! Moves to another service: what each of both services gets, and what a hub does when it cannot
//! move, or is killed.

use std::time::Duration;

use hub_protocol::{HubJobUuid, TenantUuid};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::jobs::{Hub, job, with};
use super::service::{CODE, Service};
use super::{assert_once, kill, stop, until_status};

/// The service of another tenant.
async fn other() -> Service {
    let service = Service::start().await;
    service.change(|stored| {
        stored.tenant = Some(TenantUuid::new());
        // A repeated claim is answered again.
        stored.endless_codes = true;
    });
    service
}

fn move_to(url: &str, code: &str) -> (HubJobUuid, Value) {
    let to = json!({"serviceUrl": url, "claimCode": code});
    with(job("MOVE", None, None), "moveTo", to)
}

/// The URL as the agent shows it.
fn shown(service: &Service) -> Value {
    json!(format!("{}/", service.url()))
}

async fn until_at(hub: &Hub, service: &Service) -> Value {
    let url = shown(service);
    until_status(&hub.site, |status| {
        status["serviceUrl"] == url && status["access"] == "CLAIMED"
    })
    .await
}

/// The hub has delivered its five events to the service.
async fn until_delivered(service: &Service) {
    service
        .until("the events", |stored| {
            (stored.event_count() == 5).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_moves_and_each_service_gets_its_own() {
    let (hub, second) = (Hub::new().await, other().await);
    let mut agent = hub.run().spawn().unwrap();
    until_delivered(&hub.service).await;
    let (id, wanted) = move_to(&second.url(), CODE);
    assert_eq!(hub.outcome((id, wanted)).await, "SUCCEEDED");
    let status = until_at(&hub, &second).await;
    assert_eq!(status["movedFrom"], shown(&hub.service));
    // The recording is played again after the start.
    until_delivered(&second).await;
    second.change(|stored| {
        assert_eq!(stored.claims.len(), 1);
        assert_eq!(stored.claims[0].get("refreshToken"), None);
        assert_eq!(stored.refreshes, 0);
        assert_once(stored);
    });
    hub.service.change(|stored| {
        assert_eq!(stored.event_count(), 5, "nothing that was heard later");
        assert_once(stored);
        let end = stored.fleet.events.last().unwrap();
        let detail = &end.body["detail"];
        assert_eq!((&end.job, &detail["serviceUrl"]), (&id, &shown(&second)));
        assert!(detail["notUploaded"].is_u64() && detail["notRecorded"].is_u64());
        let text = format!("{:?} {:?}", stored.fleet.events, stored.logs);
        assert!(!text.contains(CODE), "{text}");
    });
    assert_eq!(stop(&mut agent).await, Some(0));

    // It stays there, and a claim is one there.
    second.change(|stored| stored.unblock_with("3333-3333-3333-3333"));
    let mut agent = hub.run().spawn().unwrap();
    until_at(&hub, &second).await;
    let mut claim = hub.site.command("claim");
    claim.args(["--code", "3333-3333-3333-3333"]);
    let claimed = super::output(claim).await;
    assert_eq!(claimed.status.code(), Some(0));
    second.change(|stored| {
        assert_eq!(stored.claims.len(), 2);
        assert_eq!(stored.claims[1]["refreshToken"], "refresh");
    });
    hub.service
        .change(|stored| assert_eq!(stored.claims.len(), 1));
    assert_eq!(stop(&mut agent).await, Some(0));

    // A changed configuration wins, and its service gets no token of the others.
    let third = other().await;
    let mut agent = hub.run_at(&third.url()).spawn().unwrap();
    let status = until_at(&hub, &third).await;
    assert_eq!(status.get("movedFrom"), None);
    third.change(|stored| {
        assert_eq!(stored.claims[0].get("refreshToken"), None);
        assert_eq!(stored.refreshes, 0);
    });
    assert!(!hub.site.state().join("service.json").exists());
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_killed_between_claim_and_report_moves_after_its_next_start() {
    let (hub, second) = (Hub::new().await, other().await);
    let mut agent = hub.run().spawn().unwrap();
    until_delivered(&hub.service).await;
    // What comes before the outcome is stored: accepted, reached, uploaded.
    hub.fleet(|fleet| {
        fleet.event_fates = [204; 3].into_iter().chain([503; 3]).collect();
    });
    let (id, wanted) = move_to(&second.url(), CODE);
    hub.desire(&[wanted]);
    second
        .until("the claim", |stored| {
            (!stored.claims.is_empty()).then_some(())
        })
        .await;
    let claimed = hub.site.state().join("next-service.json");
    while !claimed.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    kill(&agent, Signal::KILL);
    agent.wait().await.unwrap();
    assert!(!hub.site.state().join("service.json").exists());

    let mut agent = hub.run().spawn().unwrap();
    assert_eq!(hub.end(id).await, "SUCCEEDED");
    until_at(&hub, &second).await;
    until_delivered(&second).await;
    second.change(|stored| assert_eq!(stored.claims.len(), 1, "it is not claimed again"));
    hub.service.change(|stored| {
        assert_eq!(stored.event_count(), 5, "nothing that was heard later");
        assert_once(stored);
    });
    assert!(!claimed.exists());
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_cannot_move_stays_and_says_why() {
    let (hub, second) = (Hub::new().await, other().await);
    let mut agent = hub.run().spawn().unwrap();
    until_delivered(&hub.service).await;
    for (url, code, reason) in [
        ("http://127.0.0.1:9", CODE, "FAILED SERVICE_UNREACHABLE"),
        (
            second.url().as_str(),
            "9999-9999-9999-9999",
            "FAILED CLAIM_REFUSED",
        ),
        ("http://192.0.2.1", CODE, "FAILED BAD_RELEASE"),
        ("ftp://hubs.example.com", CODE, "FAILED BAD_RELEASE"),
        (hub.service.url().as_str(), CODE, "FAILED BAD_RELEASE"),
    ] {
        assert_eq!(hub.outcome(move_to(url, code)).await, reason, "{url}");
    }
    let status = until_at(&hub, &hub.service).await;
    assert_eq!(status.get("movedFrom"), None);
    for file in ["service.json", "next-service.json"] {
        assert!(!hub.site.state().join(file).exists(), "{file}");
    }
    second.change(|stored| assert!(stored.claims.is_empty()));
    // Its telemetry goes on.
    let before = hub
        .service
        .until("telemetry", |stored| Some(stored.telemetry.len()))
        .await;
    hub.service
        .until("further telemetry", |stored| {
            (stored.telemetry.len() > before).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
}
