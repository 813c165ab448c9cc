//! `hub-cloud simulate`: the service has what the report says, and a wrong profile is refused.

use std::time::Duration;

use hub_tests::process::{Cloud, program};
use hub_tests::{Backend, Call, Client, Person, Tenant, on_each_database};
use serde_json::Value;
use tokio::process::Command;

async fn simulate(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(program("hub-cloud"));
    command.arg("simulate").args(arguments).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(120), command.output()).await;
    let output = output.expect("it ends").expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

async fn stored(tenant: &Tenant) -> u64 {
    let page = tenant.client.get("/tenant/ble/events?size=1");
    let total = page
        .call()
        .await
        .expect(200)
        .header("x-total-count")
        .to_owned();
    total.parse().expect("a number")
}

on_each_database!(a_fleet_uploads_what_its_profile_says);
async fn a_fleet_uploads_what_its_profile_says(backend: Backend) {
    let cloud = Cloud::start(backend, &["--upload-limit-per-minute", "100000"]).await;
    let client = Client::new(&cloud.url);
    let owner = Person::register(&client).await;
    let tenants = [
        Tenant::create_by(&owner).await,
        Tenant::create_by(&owner).await,
    ];
    let mut codes = Vec::new();
    for tenant in &tenants {
        codes.push(tenant.claim_code_for(5).await);
    }
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("fleet.toml");
    let text = "hubs = 9\ndevices = 100\nheard-by = 2\nevent-every = 0.5\nupload-every = 1\n";
    std::fs::write(&profile, text).expect("a file");
    let profile = profile.display().to_string();
    let arguments = [
        "--to",
        &cloud.url,
        "--claim-code",
        &codes[0],
        "--claim-code",
        &codes[1],
        "--profile",
        &profile,
        "--seconds",
        "3",
        "--json",
    ];
    let mut total = 0;
    for run in 1..=2 {
        let (code, report, said) = simulate(&arguments).await;
        assert_eq!(code, Some(0), "{report}{said}");
        let report: Value = serde_json::from_str(&report).expect("a report");
        // Three uploads of each hub, unless the machine was too slow to send them.
        let uploads = report["uploads"].as_u64().expect("a number");
        assert!((9..=27).contains(&uploads), "{report}");
        let events = report["events"].as_u64().expect("a number");
        if uploads == 27 {
            // The events of 100 devices at two hubs, twice a second.
            assert_eq!(events, 1200, "{report}");
        }
        total += events;
        let mut found = 0;
        for tenant in &tenants {
            found += stored(tenant).await;
        }
        assert_eq!(found, total, "run {run}");
    }
    // The second run used the same hubs.
    let mut hubs = 0;
    for tenant in &tenants {
        let listed = tenant.client.get("/tenant/hubs?size=100").call().await;
        hubs += listed.expect(200).json()["data"]
            .as_array()
            .expect("hubs")
            .len();
    }
    assert_eq!(hubs, 9);

    for (added, expected) in [
        (&["--hubs", "1"][..], "hubs must be 2"),
        (&["--heard-by", "5"], "heard-by must be 1 to 4"),
        (&["--event-every", "0"], "event-every"),
        (&["--profile", "/no/such/file"], "/no/such/file"),
    ] {
        let mut given: Vec<&str> = arguments[..6].to_vec();
        given.extend(["--hubs", "9"].iter().filter(|_| added[0] != "--hubs"));
        given.extend(added);
        let (code, _, said) = simulate(&given).await;
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    let (code, _, said) = simulate(&["--to", &cloud.url, "--claim-code", "ABCD-EFGH"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("refused to claim"), "{said}");
}

on_each_database!(what_is_not_stored_is_counted);
async fn what_is_not_stored_is_counted(backend: Backend) {
    let cloud = Cloud::start(backend, &["--upload-limit-per-minute", "5"]).await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let code = tenant.claim_code_for(2).await;
    let (code, report, said) = simulate(&[
        "--to",
        &cloud.url,
        "--claim-code",
        &code,
        "--hubs",
        "2",
        "--devices",
        "2",
        "--event-every",
        "0.1",
        "--upload-every",
        "0.1",
        "--seconds",
        "2",
    ])
    .await;
    assert_eq!(code, Some(1), "{report}{said}");
    assert!(
        report.contains("with 429: raise upload-limit-per-minute"),
        "{report}"
    );
    assert!(said.contains("not stored all uploads"), "{said}");
    let events = stored(&tenant).await;
    assert!(
        report.contains(&format!("stored    {events} events in")),
        "{report}"
    );
}
