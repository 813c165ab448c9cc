//! Logins of `hub`: refreshed by themselves, over commands at the same time; ended; keys of
//! tenants; an issuer's.

use hub_tests::issuer::{AUDIENCE, Browser, CLIENT_ID, Provider, settings};
use hub_tests::{Backend, Call, Options, TestApp};
use serde_json::json;

use super::{PASSWORD, Terminal};

/// The stored access token is no longer valid, as if its time were over.
fn expire(terminal: &Terminal) -> String {
    let mut stored = terminal.stored();
    let session = &mut stored["profiles"]["default"]["credential"]["session"];
    session["expiresAt"] = json!("2026-01-01T00:00:00.000000Z");
    let refresh_token = session["refreshToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    std::fs::write(terminal.credentials(), stored.to_string()).expect("a file");
    refresh_token
}

#[tokio::test]
async fn an_expired_session_is_refreshed_once_for_all_commands() {
    let app = TestApp::new(Backend::Sqlite).await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let first = expire(&terminal);
    // A refresh token works once: a second use would end the login.
    let commands: Vec<_> = (0..6).map(|_| terminal.run(&["hubs", "list"])).collect();
    for output in futures_util::future::join_all(commands).await {
        output.expect(0);
    }
    let session = &terminal.stored()["profiles"]["default"]["credential"]["session"];
    assert_ne!(session["refreshToken"], first.as_str());

    // A token that the service does not accept is exchanged too.
    let mut stored = terminal.stored();
    stored["profiles"]["default"]["credential"]["session"]["accessToken"] = json!("e30.e30.e30");
    std::fs::write(terminal.credentials(), stored.to_string()).expect("a file");
    terminal.run(&["hubs", "list"]).await.expect(0);

    // A session that was ended elsewhere.
    let refresh_token = expire(&terminal);
    app.client()
        .post("/auth/logout")
        .json(&json!({"refreshToken": refresh_token}))
        .call()
        .await
        .expect(204);
    terminal
        .run(&["hubs", "list"])
        .await
        .expect(1)
        .says("hub login");
}

#[tokio::test]
async fn a_valid_token_is_printed_for_other_programs() {
    let app = TestApp::new(Backend::Sqlite).await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let first = terminal.run(&["token"]).await.expect(0).stdout;
    assert_eq!(first, terminal.run(&["token"]).await.expect(0).stdout);
    expire(&terminal);
    let printed = terminal.run(&["token"]).await.expect(0).stdout;
    assert_ne!(printed, first);
    app.client()
        .bearer(printed.trim_end())
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200);
    let json = terminal.json(&["token"]).await;
    assert_eq!(json["accessToken"], printed.trim_end());
    terminal.run(&["logout"]).await.expect(0);
    terminal.run(&["token"]).await.expect(1).says("hub login");
}

#[tokio::test]
async fn logging_out_ends_the_session_at_the_service() {
    let app = TestApp::new(Backend::Sqlite).await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let stored = terminal.stored();
    let token = stored["profiles"]["default"]["credential"]["session"]["accessToken"]
        .as_str()
        .expect("a token");
    terminal.run(&["logout"]).await.expect(0).says("logged out");
    app.client()
        .bearer(token)
        .get("/tenant/tenants")
        .call()
        .await
        .expect(401);
    assert!(
        !std::fs::read_to_string(terminal.credentials())
            .expect("a file")
            .contains("Token")
    );
    terminal
        .run(&["hubs", "list"])
        .await
        .expect(1)
        .says("hub login");
    terminal.run(&["logout"]).await.expect(0);
}

#[tokio::test]
async fn profiles_are_logins_of_their_own() {
    let (one, other) = (
        TestApp::new(Backend::Sqlite).await,
        TestApp::new(Backend::Sqlite).await,
    );
    let terminal = Terminal::of_new_tenant(&one.url).await;
    let registering = [
        "--profile",
        "plant",
        "register",
        "--service-url",
        &other.url,
        "--email",
        "b@example.com",
    ];
    terminal
        .run_with(
            &[registering.as_slice(), &["--password-stdin"]].concat(),
            PASSWORD,
        )
        .await
        .expect(0);
    terminal
        .run(&["--profile", "plant", "tenants", "create", "Plant"])
        .await
        .expect(0);
    assert_eq!(terminal.json(&["tenants"]).await[0]["name"], "Warehouse");
    assert_eq!(
        terminal.json(&["--profile", "plant", "tenants"]).await[0]["name"],
        "Plant"
    );
    let terminal = terminal.with("HUB_PROFILE", "plant");
    assert_eq!(terminal.json(&["tenants"]).await[0]["name"], "Plant");
}

#[tokio::test]
async fn an_api_key_acts_for_its_tenant() {
    let app = TestApp::new(Backend::Sqlite).await;
    let owner = hub_tests::Tenant::create(&app.client()).await;
    let key = owner
        .api_key(json!({"scopes": ["hubs:read", "hubs:write"]}))
        .await;
    let (uuid, terminal) = (owner.tenant_uuid.to_string(), Terminal::new());
    let login = [
        "login",
        "--api-key",
        "--service-url",
        &app.url,
        "--tenant",
        &uuid,
    ];
    terminal
        .run_with(&login, "hmk_00000000_wrong")
        .await
        .expect(1)
        .says("key");
    terminal.run_with(&login, &key.raw).await.expect(0);
    terminal.run(&["codes", "create"]).await.expect(0);
    terminal.run(&["pipelines", "list"]).await.expect(1);
    terminal.run(&["tenants"]).await.expect(1);
    let refused = terminal.run(&["token"]).await.expect(1);
    refused.says("X-API-Key");
    assert!(!refused.stderr.contains(&key.raw), "{}", refused.stderr);
    terminal
        .run(&["logout"])
        .await
        .expect(0)
        .says("stays valid");

    let terminal = Terminal::new()
        .with("HUB_API_KEY", &key.raw)
        .with("HUB_SERVICE_URL", &app.url);
    terminal
        .run(&["codes", "list"])
        .await
        .expect(2)
        .says("HUB_TENANT");
    let terminal = terminal.with("HUB_TENANT", &uuid);
    assert_eq!(
        terminal
            .json(&["codes", "list"])
            .await
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert!(!terminal.credentials().exists());
}

#[tokio::test]
async fn people_of_an_issuer_log_in_with_a_browser() {
    let Some(provider) = Provider::start().await else {
        return;
    };
    let settings = hub_core::config::Settings {
        builtin_login: Some(false),
        ..settings(&provider.url)
    };
    let app = TestApp::with(
        Backend::Sqlite,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let terminal = Terminal::new();
    let with_password = [
        "login",
        "--service-url",
        &app.url,
        "--email",
        "ada@example.com",
        "--password-stdin",
    ];
    terminal
        .run_with(&with_password, PASSWORD)
        .await
        .expect(1)
        .says("--client-id");
    // The service tells which issuer it is.
    terminal
        .run(&["login", "--service-url", &app.url])
        .await
        .expect(2)
        .says(&provider.url);
    let at_issuer = ["--client-id", CLIENT_ID, "--audience", AUDIENCE];
    let mut login =
        terminal.follow(&[&["login", "--service-url", &app.url], at_issuer.as_slice()].concat());
    let page = login.note("/auth?").await;
    let callback = Browser::default()
        .visit(&page.trim().parse().expect("a URL"), "ada", "/callback")
        .await;
    let browser = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client");
    // A page that knows the port and not the state gets nothing.
    let mut forged = callback.clone();
    forged.set_query(Some("code=forged&state=guessed"));
    let shown = browser
        .get(forged)
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("text");
    assert!(shown.contains("not the one"), "{shown}");
    let shown = browser
        .get(callback)
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("text");
    assert!(shown.contains("You are logged in"), "{shown}");
    login.note("You are logged in at").await;
    assert_eq!(login.child.wait().await.expect("it ends").code(), Some(0));
    terminal
        .run(&["tenants", "create", "Ada's"])
        .await
        .expect(0);

    // Its tokens are refreshed there.
    let mut stored = terminal.stored();
    let before = stored["profiles"]["default"]["credential"]["issuer"]["accessToken"].clone();
    stored["profiles"]["default"]["credential"]["issuer"]["expiresAt"] =
        json!("2026-01-01T00:00:00.000000Z");
    std::fs::write(terminal.credentials(), stored.to_string()).expect("a file");
    terminal.run(&["hubs", "list"]).await.expect(0);
    assert_ne!(
        terminal.stored()["profiles"]["default"]["credential"]["issuer"]["accessToken"],
        before
    );
}
