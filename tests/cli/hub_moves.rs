//! Hubs that are sent to another service: one, all of a file of claim codes, and a real agent.

use std::path::Path;

use hub_tests::{Backend, Client, Cloud, Process, SimulatedHub};
use serde_json::json;

use super::Terminal;

const OTHER: &str = "https://hubs.new.example";
const CODE: &str = "7K3M-9QXT-0V4B-HD2R";

#[tokio::test(flavor = "multi_thread")]
async fn hubs_move_one_by_one_or_by_a_file() {
    let cloud = Cloud::start(Backend::Sqlite, &[]).await;
    let terminal = Terminal::of_new_tenant(&cloud.url).await;
    let anyone = Client::new(&cloud.url);
    let mut hubs = Vec::new();
    for number in 1..=3 {
        let code = terminal.json(&["codes", "create"]).await["claimCode"].clone();
        let code = code.as_str().expect("a code");
        hubs.push(SimulatedHub::claim_with(&anyone, code, &format!("hw-{number}")).await);
    }

    // It asks first, and the code is not on the command line.
    let one = ["hubs", "move", "hw-1", "--to", OTHER];
    terminal.run_with(&one, CODE).await.expect(2).says("--yes");
    assert!(hubs[0].desired_jobs().await.is_empty());
    terminal
        .run_with(&[one.as_slice(), &["--yes"]].concat(), CODE)
        .await
        .expect(0);
    let jobs = hubs[0].desired_jobs().await;
    let to = jobs[0].move_to.as_ref().expect("a service");
    assert_eq!(
        (to.service_url.as_str(), to.claim_code.as_str()),
        (OTHER, CODE)
    );

    // As `hub import tenant --claim-codes` writes it.
    let file = terminal.home.path().join("warehouse.claim-codes.tsv");
    let lines = format!("{CODE}\thw-1\tA\nAAAA-BBBB-CCCC-DDDD\thw-2\tB\n");
    std::fs::write(&file, &lines).expect("a file");
    let file = file.display().to_string();
    let all = ["hubs", "move", "--codes", &file, "--to", OTHER, "--yes"];
    let moved = terminal
        .run(&[all.as_slice(), &["--json"]].concat())
        .await
        .expect(1);
    let moved = moved.json();
    let of = |hardware: &str| {
        let records = moved.as_array().expect("a list");
        let found = records
            .iter()
            .find(|record| record["deviceInstanceId"] == json!(hardware));
        found.expect("the hub").clone()
    };
    assert!(
        of("hw-1")["error"]
            .as_str()
            .is_some_and(|error| error.contains("already")),
        "{moved}"
    );
    assert!(of("hw-2")["hubJobUuid"].is_string(), "{moved}");
    let jobs = hubs[1].desired_jobs().await;
    assert_eq!(
        jobs[0].move_to.as_ref().expect("a service").claim_code,
        "AAAA-BBBB-CCCC-DDDD"
    );
    assert!(hubs[2].desired_jobs().await.is_empty(), "it is not in it");

    // A hub that is not here, and a file that is something else.
    std::fs::write(&file, format!("{CODE}\thw-9\tC\n")).expect("a file");
    terminal.run(&all).await.expect(1).says("hw-9");
    std::fs::write(&file, "a page\n").expect("a file");
    terminal.run(&all).await.expect(1).says("line 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_moves_from_one_service_to_another() {
    let old = Cloud::start(Backend::Sqlite, &[]).await;
    let new = Cloud::start(Backend::Sqlite, &[]).await;
    let leaving = Terminal::of_new_tenant(&old.url).await;
    let arriving = Terminal::of_new_tenant(&new.url).await;
    let code = async |terminal: &Terminal| {
        let made = terminal.json(&["codes", "create", "--label", "roof"]).await;
        made["claimCode"].as_str().expect("a code").to_owned()
    };
    let (first, second) = (code(&leaving).await, code(&arriving).await);
    let state = leaving.home.path().join("agent").display().to_string();
    let trace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data/ble/trace.jsonl.zst")
        .display()
        .to_string();
    let agent = [
        "run",
        "--service-url",
        &old.url,
        "--claim-code",
        &first,
        "--state-dir",
        &state,
        "--replay",
        &trace,
        "--replay-loop",
    ];
    let mut agent = Process::start("hub-agent", &agent, &[]);
    let id = agent.id();
    let mut watching = leaving.follow(&["hubs", "watch", "--every", "1", "--json"]);
    assert_eq!(watching.json().await["hubIdentifier"], "roof");
    assert_eq!(watching.interrupt().await, Some(0));

    let arguments = ["hubs", "move", "roof", "--to", &new.url, "--yes", "--wait"];
    leaving.run_with(&arguments, &second).await.expect(0);
    let mut tail = arriving.follow(&["events", "tail", "--json", "--hub", "roof"]);
    assert!(tail.json().await["address"].is_string());
    assert_eq!(tail.interrupt().await, Some(0));
    assert!(agent.is_running(), "{}", agent.last_lines());
    assert_eq!(agent.id(), id, "it is the same process");
    let here = arriving.json(&["hubs", "list"]).await;
    let there = leaving.json(&["hubs", "list"]).await;
    assert_eq!(here[0]["deviceInstanceId"], there[0]["deviceInstanceId"]);
    assert_ne!(here[0]["hubUuid"], there[0]["hubUuid"]);
}
