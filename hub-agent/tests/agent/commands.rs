//! The commands beside a running agent and without one, and their exit codes.

use std::path::Path;

use hub_protocol::HubUuid;

use super::service::{CODE, HUB, Service};
use super::{Site, kill, output, stop, text, until_status};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_shows_the_running_agent_or_that_none_runs() {
    let site = Site::new(50, 10);
    let service = Service::start().await;
    let none = output(site.command("status")).await;
    assert_eq!(none.status.code(), Some(1));
    assert!(
        text(&none.stderr).contains("no agent is running"),
        "{}",
        text(&none.stderr)
    );

    let mut agent = site.run(&service).spawn().unwrap();
    let waiting = until_status(&site, |status| {
        status["spool"]["events"].as_u64().unwrap() >= 50
    })
    .await;
    assert_eq!(waiting["access"], "UNCLAIMED");
    let person = output(site.command("status")).await;
    assert!(
        text(&person.stdout).contains("NOT CLAIMED"),
        "{}",
        text(&person.stdout)
    );

    let second = output(site.run(&service)).await;
    assert_eq!(second.status.code(), Some(1));
    assert!(
        text(&second.stderr).contains("another agent is running"),
        "{}",
        text(&second.stderr)
    );

    for (code, output_text) in [
        ("", "is empty"),
        (&"X".repeat(5_000), "is not a claim code"),
    ] {
        let mut claim = site.command("claim");
        claim.args(["--code", code]);
        let refused = output(claim).await;
        assert_eq!(refused.status.code(), Some(1));
        assert!(
            text(&refused.stderr).contains(output_text),
            "{}",
            text(&refused.stderr)
        );
    }
    std::fs::write(site.path("code"), format!("{CODE}\n")).unwrap();
    let mut claim = site.command("claim");
    claim.arg("--code-file").arg(site.path("code"));
    claim.args([
        "--service-url",
        "http://127.0.0.1:1",
        "--device-instance-id",
        "test-hub",
    ]);
    let claimed = output(claim).await;
    assert_eq!(claimed.status.code(), Some(0));
    let output_text = text(&claimed.stderr);
    assert!(
        output_text.contains("http://127.0.0.1:1/ is ignored")
            && !output_text.contains("device-instance-id"),
        "{output_text}"
    );
    service
        .until("all events", |stored| {
            (stored.event_count() == 50).then_some(())
        })
        .await;
    let claimed = until_status(&site, |status| {
        status["spool"]["events"] == 0 || status["deliveredRecords"].as_u64().unwrap() >= 50
    })
    .await;
    assert_eq!(
        (claimed["access"].as_str(), claimed["hubUuid"].as_str()),
        (Some("CLAIMED"), Some(HUB))
    );
    assert!(
        claimed["hubUuid"]
            .as_str()
            .unwrap()
            .parse::<HubUuid>()
            .is_ok()
    );
    assert!(
        !claimed.to_string().contains("access-1") && !claimed.to_string().contains("\"refresh\"")
    );
    kill(&agent, rustix::process::Signal::STOP);
    let stopped = output(site.command("status")).await;
    assert_eq!(stopped.status.code(), Some(1));
    assert!(
        text(&stopped.stderr).contains("does not answer within 5 s"),
        "{}",
        text(&stopped.stderr)
    );
    kill(&agent, rustix::process::Signal::CONT);
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_without_a_running_agent() {
    let site = Site::new(1, 1);
    let service = Service::start().await;
    let claim = |url: String, code: &str| {
        let mut command = site.command("claim");
        command.args(["--service-url", &url, "--code", code]);
        output(command)
    };
    let nobody = claim("http://127.0.0.1:1".into(), CODE).await;
    assert_eq!(nobody.status.code(), Some(75), "{}", text(&nobody.stderr));
    let wrong = claim(service.url(), "WRONG").await;
    assert_eq!(wrong.status.code(), Some(1), "{}", text(&wrong.stderr));
    let claimed = claim(service.url(), CODE).await;
    assert_eq!(claimed.status.code(), Some(0), "{}", text(&claimed.stderr));
    let mut agent = site.run(&service).spawn().unwrap();
    service
        .until("the event", |stored| {
            (stored.event_count() == 1).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    service.change(|stored| assert_eq!(stored.claims.len(), 1));
}

#[tokio::test]
async fn wrong_settings_and_wrong_usage_have_their_exit_codes() {
    let site = Site::new(1, 1);
    let file = |path: &Path, content: &str| {
        let mut command = site.command("run");
        std::fs::write(path, content).unwrap();
        command.env_remove("HUB_AGENT_SERVICE_URL");
        output(command)
    };
    let config = site.path("config.toml");
    let unknown = file(&config, "servise-url = \"http://x\"\n").await;
    assert_eq!(unknown.status.code(), Some(3));
    let output_text = text(&unknown.stderr);
    assert!(
        output_text.contains("line 1") && output_text.contains("did you mean `service-url`?"),
        "{output_text}"
    );
    let missing = file(&config, "").await;
    assert_eq!(missing.status.code(), Some(3));
    assert!(
        text(&missing.stderr).contains("service-url is not set"),
        "{}",
        text(&missing.stderr)
    );
    // One file is for all commands: each uses the settings it knows.
    let settings = "service-url = \"http://127.0.0.1:1\"\nclaim-code = \"ABCD-EFGH-JKMN-PQRS\"\nspool-max = \"1MiB\"\n";
    for (command, more, code) in [
        ("status", "--json", 1),
        ("check", "--json", 1),
        ("claim", "--code=X", 75),
    ] {
        let mut command = site.command(command);
        command.arg(more);
        std::fs::write(&config, settings).unwrap();
        let ended = output(command).await;
        let output_text = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{output_text}");
        assert!(!output_text.contains("ABCD"), "{output_text}");
    }
    let mut variable = site.command("run");
    variable.env("HUB_AGENT_SILENCE", "abc");
    let variable = output(variable).await;
    let output_text = text(&variable.stderr);
    assert!(
        variable.status.code() == Some(3) && output_text.contains("HUB_AGENT_SILENCE: write it as"),
        "{output_text}"
    );
    let mut empty = site.command("status");
    empty.envs(
        ["SILENCE", "LOG", "SERVICE_URL", "HUB_IDENTIFIER"]
            .map(|name| (format!("HUB_AGENT_{name}"), "")),
    );
    empty.env("HUB_AGENT_CONFIG", "");
    assert_eq!(output(empty).await.status.code(), Some(1));
    let mut empty = site.run(&Service::start().await);
    empty.envs(
        ["SILENCE", "ADAPTERS", "REPLAY_LOOP", "CA_FILE"]
            .map(|name| (format!("HUB_AGENT_{name}"), "")),
    );
    let mut empty = empty.spawn().unwrap();
    until_status(&site, |_| true).await;
    assert_eq!(stop(&mut empty).await, Some(0));
    let mut usage = site.command("run");
    usage.arg("--no-such-flag");
    assert_eq!(output(usage).await.status.code(), Some(2));
}
