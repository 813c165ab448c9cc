//! What `hub` refuses, with which exit code, and what it says to do next.

use std::os::unix::fs::PermissionsExt;

use hub_tests::{Backend, TestApp};

use super::{PASSWORD, Terminal};

#[tokio::test]
async fn exit_codes_tell_what_went_wrong() {
    let app = TestApp::new(Backend::Sqlite).await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let nobody = Terminal::new();

    for (arguments, says) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["codes", "create", "--valid", "7"], "12h or 30d"),
        (&["codes", "create", "--uses", "0"], "1..="),
        (&["hubs", "block", "roof"], "roof"),
        (&["events", "tail", "--min-rssi", "loud"], "min-rssi"),
        (&["login", "--service-url", &app.url], "--email"),
        (
            &["login", "--api-key", "--service-url", &app.url],
            "--tenant",
        ),
        (
            &[
                "--tenant",
                "0198c5d1-0000-7000-8000-000000000000",
                "codes",
                "create",
                "--label",
                &"x".repeat(201),
            ],
            "",
        ),
    ] {
        let output = terminal.run(arguments).await;
        let expected = if says.is_empty() { 1 } else { 2 };
        output.expect(expected).says(says);
    }
    let label = "x".repeat(201);
    terminal
        .run(&["codes", "create", "--label", &label])
        .await
        .expect(2)
        .says("hubIdentifier");
    nobody
        .run(&["hubs", "list"])
        .await
        .expect(1)
        .says("hub login");
    nobody
        .run(&["register", "--email", "a@example.com", "--password-stdin"])
        .await
        .expect(2)
        .says("--service-url");
    let elsewhere = [
        "login",
        "--service-url",
        "http://hubs.example.com",
        "--email",
        "a@example.com",
        "--password-stdin",
    ];
    nobody
        .run_with(&elsewhere, PASSWORD)
        .await
        .expect(3)
        .says("--insecure-http");
    let away = [
        "login",
        "--service-url",
        "http://127.0.0.1:9",
        "--email",
        "a@example.com",
        "--password-stdin",
    ];
    nobody
        .run_with(&away, PASSWORD)
        .await
        .expect(75)
        .says("try again");
    let wrong = [
        "login",
        "--service-url",
        &app.url,
        "--email",
        "a@example.com",
        "--password-stdin",
    ];
    nobody
        .run_with(&wrong, "not the password")
        .await
        .expect(1)
        .says("hub register");
    nobody.run_with(&wrong, "").await.expect(2).says("empty");
    assert!(
        !nobody.credentials().exists(),
        "a login that failed is not stored"
    );
    terminal
        .run(&["--tenant", "No such", "hubs", "list"])
        .await
        .expect(1)
        .says("hub tenants");
    terminal
        .run(&["hubs", "show", "no such hub"])
        .await
        .expect(1)
        .says("hub hubs list");
    let unknown = "0198c5d1-0000-7000-8000-000000000000";
    terminal.run(&["hubs", "show", unknown]).await.expect(1);
    terminal
        .run(&["hubs", "block", unknown, "--yes"])
        .await
        .expect(1);
    terminal
        .run(&["rollout", "halt"])
        .await
        .expect(1)
        .says("hub rollout status");
}

#[tokio::test]
async fn what_cannot_be_undone_is_not_done_unasked() {
    let app = TestApp::new(Backend::Sqlite).await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let code = terminal.json(&["codes", "create", "--label", "roof"]).await["claimCode"]
        .as_str()
        .expect("it")
        .to_owned();
    hub_tests::SimulatedHub::claim_with(&app.client(), &code, "hardware").await;
    // "y" is no terminal's.
    terminal
        .run_with(&["hubs", "release", "roof"], "y\n")
        .await
        .expect(2)
        .says("anyone with a claim code");
    assert_eq!(
        terminal
            .json(&["hubs", "list"])
            .await
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    terminal
        .run(&["hubs", "release", "roof", "--yes"])
        .await
        .expect(0);
    assert_eq!(
        terminal
            .json(&["hubs", "list"])
            .await
            .as_array()
            .map(Vec::len),
        Some(0)
    );
    terminal
        .run(&["codes", "revoke", &code])
        .await
        .expect(2)
        .says("--yes");
    terminal
        .run(&["codes", "revoke", &code, "--yes"])
        .await
        .expect(0);
    assert_eq!(
        terminal.json(&["codes", "list"]).await[0]["status"],
        "REVOKED"
    );
}

#[tokio::test]
async fn credentials_are_private_and_go_to_their_own_service() {
    let app = TestApp::new(Backend::Sqlite).await;
    let other = hub_tests::Receiver::start().await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).expect("it").permissions().mode() & 0o777;
    assert_eq!(mode(&terminal.credentials()), 0o600);
    assert_eq!(
        mode(terminal.credentials().parent().expect("a folder")),
        0o700
    );

    terminal
        .run(&["--service-url", &other.url, "hubs", "list"])
        .await
        .expect(3)
        .says("hub login --profile");
    assert!(other.take().is_empty(), "nothing was sent");
    // A redirect takes nothing along.
    other.answer_in_turn([(302, vec![("location", format!("{}/elsewhere", other.url))])]);
    let tenant = "0198c5d1-0000-7000-8000-000000000000";
    let key = Terminal::new()
        .with("HUB_API_KEY", "hmk_00000000_key")
        .with("HUB_SERVICE_URL", &other.url);
    key.run(&["--tenant", tenant, "hubs", "list"])
        .await
        .expect(1)
        .says("service URL");
    assert_eq!(other.take().len(), 1);

    // What is stored is never shown.
    let stored = terminal.stored();
    let session = &stored["profiles"]["default"]["credential"]["session"];
    for arguments in [
        &["tenants"][..],
        &["tenants", "--json"],
        &["login", "--help"],
        &["hubs", "list"],
    ] {
        let output = terminal.run(arguments).await.expect(0);
        for secret in ["accessToken", "refreshToken"] {
            let secret = session[secret].as_str().expect("a token");
            assert!(
                !output.stdout.contains(secret) && !output.stderr.contains(secret),
                "{arguments:?}"
            );
        }
    }
    let key = terminal.with("HUB_API_KEY", "hmk_aaaaaaaa_secret");
    let help = key.run(&["--help"]).await.expect(0);
    assert!(
        !help.stdout.contains("hmk_aaaaaaaa") && help.stdout.contains("Exit codes"),
        "{}",
        help.stdout
    );
}

#[tokio::test]
async fn completions_are_those_of_the_shell() {
    let terminal = Terminal::new();
    for (shell, mark) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef hub"),
        ("fish", "complete -c hub"),
    ] {
        let script = terminal.run(&["completions", shell]).await.expect(0).stdout;
        assert!(
            script.contains(mark) && script.contains("rollout"),
            "{shell}"
        );
    }
    terminal.run(&["completions", "cmd"]).await.expect(2);
}
