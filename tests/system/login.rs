//! `hub login` at a certified OpenID Connect provider, by a user who fills in its forms, and what
//! the token of `hub token` opens.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use hub_tests::issuer::{AUDIENCE, Browser, CLIENT_ID, Provider, settings};
use hub_tests::process::program;
use hub_tests::{Backend, Call, Options, SimulatedHub, TestApp, on_each_database};
use reqwest::{StatusCode, Url};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

/// The longest time any step may need.
const PATIENCE: Duration = Duration::from_secs(60);

/// A person's home and browser.
struct Terminal {
    home: TempDir,
    issuer: String,
    http: reqwest::Client,
}

/// A login that waits for the browser.
struct Login {
    child: Child,
    page: Url,
}

impl Terminal {
    fn new(issuer: &str) -> Self {
        hub_tests::client::install_tls();
        let http = hub_tests::client::plain_builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE);
        // The provider is stopped and started, and closes a connection after five idle seconds.
        let http = http.pool_max_idle_per_host(0);
        let home = tempfile::tempdir().expect("a directory");
        Self {
            home,
            issuer: issuer.to_owned(),
            http: http.build().expect("a client"),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("hub"));
        for name in [
            "HUB_SERVICE_URL",
            "HUB_API_KEY",
            "HUB_TENANT",
            "HUB_PROFILE",
        ] {
            command.env_remove(name);
        }
        // No desktop, so no browser of its own.
        command
            .args(arguments)
            .env("PATH", "")
            .env("XDG_CONFIG_HOME", self.home.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// The arguments of a login at the issuer, without a service.
    fn login(&self) -> [&str; 7] {
        [
            "login",
            "--issuer",
            &self.issuer,
            "--audience",
            AUDIENCE,
            "--client-id",
            CLIENT_ID,
        ]
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let output = tokio::time::timeout(PATIENCE, self.command(arguments).output()).await;
        output.expect("it ends").expect("it starts")
    }

    async fn token(&self) -> Result<String, String> {
        let output = self.run(&["token"]).await;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)
                .expect("text")
                .trim_end()
                .to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn session(&self) -> std::path::PathBuf {
        self.home.path().join("hub/credentials.json")
    }

    async fn begin(&self) -> Login {
        let mut child = self.command(&self.login()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.as_mut().expect("its messages")).lines();
        let page = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Ok(url) = Url::parse(line.trim()) {
                    return url;
                }
            }
            panic!("no page to log in at")
        };
        let page = tokio::time::timeout(PATIENCE, page)
            .await
            .expect("a page to log in at");
        Login { child, page }
    }

    /// Follows the provider's pages as `name`, up to the address that leads back to the terminal.
    async fn browse(&self, page: &Url, name: &str) -> Url {
        Browser::default().visit(page, name, "/callback").await
    }

    async fn log_in(&self, name: &str) {
        let login = self.begin().await;
        let callback = self.browse(&login.page, name).await;
        let shown = self.http.get(callback).send().await.expect("a page");
        assert_eq!(shown.status(), StatusCode::OK);
        assert!(
            shown
                .text()
                .await
                .expect("a page")
                .contains("You are logged in")
        );
        let (code, text) = login.end().await;
        assert!(
            code == Some(0) && text.contains("You are logged in at"),
            "{code:?} {text}"
        );
    }
}

impl Login {
    /// Exit code and what it said after the page's address.
    async fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        let mut stderr = self.child.stderr.take().expect("its messages");
        let ended = async {
            stderr.read_to_string(&mut text).await.expect("text");
            self.child.wait().await.expect("it ends").code()
        };
        let code = tokio::time::timeout(PATIENCE, ended)
            .await
            .expect("it ends");
        (code, text)
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o777
}

/// Makes the kept token look as if it ended now.
fn age(path: &Path) {
    let mut stored: Value =
        serde_json::from_slice(&std::fs::read(path).expect("a session")).expect("JSON");
    let session = &mut stored["profiles"]["default"]["credential"]["issuer"];
    session["expiresAt"] = json!("2026-01-01T00:00:00.000000Z");
    std::fs::write(path, stored.to_string()).expect("a session");
}

on_each_database!(login_at_the_provider_opens_the_service);
async fn login_at_the_provider_opens_the_service(backend: Backend) {
    let Some(provider) = Provider::start().await else {
        return;
    };
    let terminal = Terminal::new(&provider.url);
    let nobody = terminal.token().await.expect_err("no session");
    assert!(nobody.contains("run `hub login`"), "{nobody}");
    terminal.log_in("ada").await;
    assert_eq!(
        (
            mode(&terminal.session()),
            mode(&terminal.home.path().join("hub"))
        ),
        (0o600, 0o700)
    );
    let token = terminal.token().await.expect("a token");
    assert_eq!(
        terminal.token().await.expect("a token"),
        token,
        "it is fresh"
    );

    // About to end, it is exchanged, once, however many ask.
    age(&terminal.session());
    let tokens = futures_util::future::join_all((0..4).map(|_| terminal.token())).await;
    let tokens: Vec<String> = tokens
        .into_iter()
        .map(|token| token.expect("a token"))
        .collect();
    assert!(
        tokens.iter().all(|one| *one == tokens[0] && *one != token),
        "{tokens:?}"
    );
    assert_eq!(mode(&terminal.session()), 0o600);

    let administrator = Terminal::new(&provider.url);
    administrator.log_in("admin").await;
    let admin_token = administrator.token().await.expect("a token");
    let settings = settings(&provider.url);
    let app = TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let ada = app.client().bearer(&tokens[0]);
    // Whoever comes first, at once.
    let first = (0..8).map(|_| ada.get("/tenant/tenants").call());
    for reply in futures_util::future::join_all(first).await {
        reply.expect(200);
    }
    app.client()
        .bearer(&token)
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200);
    let founded = ada
        .post("/tenant/tenants")
        .json(&json!({"name": "Warehouse"}))
        .call()
        .await
        .expect(200)
        .json();
    let tenant_uuid = founded["data"]["tenantUuid"]
        .as_str()
        .expect("a tenant")
        .parse()
        .expect("a uuid");
    let tenants = ada.get("/tenant/tenants").call().await.expect(200).json();
    assert_eq!(
        tenants["data"].as_array().map(Vec::len),
        Some(1),
        "{tenants}"
    );
    let ada = ada.tenant(tenant_uuid);
    let path = format!("/tenant/tenants/{tenant_uuid}/members");
    let members = ada.get(&path).call().await.expect(200).json();
    assert_eq!(members["data"][0]["email"], "ada@example.com", "{members}");
    assert_eq!(members["data"][0]["nickname"], "The ada", "{members}");
    let code = ada
        .post("/tenant/hubs/claim-codes")
        .json(&json!({}))
        .call()
        .await
        .expect(200)
        .json();
    let hub = SimulatedHub::claim_with(
        &app.client(),
        code["data"]["claimCode"].as_str().expect("a code"),
        "hw",
    )
    .await;
    let hubs = ada.get("/tenant/hubs").call().await.expect(200).body;
    assert!(hubs.contains(&hub.hub_uuid.to_string()), "{hubs}");
    let block = format!("/platform/hubs/{}/block", hub.hub_uuid);
    ada.post(&block)
        .json(&json!({"reason": "a test"}))
        .call()
        .await
        .expect(403);
    let admin = app.client().bearer(&admin_token);
    admin
        .post(&block)
        .json(&json!({"reason": "a test"}))
        .call()
        .await
        .expect(200);
}

on_each_database!(provider_key_changes_and_outages_are_survived);
async fn provider_key_changes_and_outages_are_survived(backend: Backend) {
    let Some(mut provider) = Provider::start().await else {
        return;
    };
    let terminal = Terminal::new(&provider.url);
    terminal.log_in("ada").await;
    let first = terminal.token().await.expect("a token");
    let settings = settings(&provider.url);
    let app = TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let ask = async |token: &str, expected: u16| {
        app.client()
            .bearer(token)
            .get("/tenant/tenants")
            .call()
            .await
            .expect(expected);
    };
    let before = provider.fetches().await;
    ask(&first, 200).await;
    ask(&first, 200).await;
    assert_eq!(
        provider.fetches().await - before,
        1,
        "the keys are fetched once"
    );
    for alg in ["ES256", "PS256", "EdDSA"] {
        provider.rotate(alg).await;
        tokio::time::sleep(Duration::from_millis(5500)).await;
        terminal.log_in("ada").await;
        ask(&terminal.token().await.expect("a token"), 200).await;
        // Signed with a key that is gone.
        ask(&first, 401).await;
    }
    let (known, other) = (
        terminal.token().await.expect("a token"),
        Terminal::new(&provider.url),
    );
    other.log_in("ben").await;
    let unseen = other.token().await.expect("a token");
    provider.kill().await;
    ask(&known, 200).await;
    ask(&unseen, 200).await;
    tokio::time::sleep(Duration::from_millis(5500)).await;
    let began = Instant::now();
    ask(&first, 503).await;
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    ask(&known, 200).await;
    age(&terminal.session());
    let away = terminal.token().await.expect_err("no issuer");
    assert!(
        away.contains("no response from") && away.contains("try again"),
        "{away}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn login_accepts_only_its_own_browsers_answer() {
    let Some(provider) = Provider::start().await else {
        return;
    };
    let terminal = Terminal::new(&provider.url);
    let login = terminal.begin().await;
    let callback = terminal.browse(&login.page, "ada").await;
    // Somebody else's answers change nothing.
    let with = |name: &str, value: Option<&str>| {
        let mut url = callback.clone();
        let pairs: Vec<(String, String)> = callback
            .query_pairs()
            .into_owned()
            .filter(|(key, _)| key != name)
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
        if let Some(value) = value {
            url.query_pairs_mut().append_pair(name, value);
        }
        url
    };
    let mut twice = callback.clone();
    twice.query_pairs_mut().append_pair("code", "another");
    for url in [
        with("state", None),
        with("state", Some("")),
        with("state", Some("x")),
        twice,
    ] {
        let shown = terminal.http.get(url.clone()).send().await.expect("a page");
        assert_eq!(shown.status(), StatusCode::BAD_REQUEST, "{url}");
    }
    let port = format!(
        "http://127.0.0.1:{}/other",
        callback.port().expect("a port")
    );
    assert_eq!(
        terminal
            .http
            .get(port)
            .send()
            .await
            .expect("a page")
            .status(),
        StatusCode::NOT_FOUND
    );
    // Another issuer's answer, though it knew the state, ends it.
    let shown = terminal
        .http
        .get(with("iss", Some("https://evil.example")))
        .send()
        .await
        .expect("a page");
    assert_eq!(shown.status(), StatusCode::BAD_REQUEST);
    let (code, text) = login.end().await;
    assert!(
        code == Some(1) && text.contains("another issuer"),
        "{code:?} {text}"
    );
    assert!(!terminal.session().exists());

    // A refusal at the provider is shown in the browser.
    let login = terminal.begin().await;
    let state = login
        .page
        .query_pairs()
        .find(|(name, _)| name == "state")
        .expect("a state")
        .1
        .into_owned();
    let redirect = login
        .page
        .query_pairs()
        .find(|(name, _)| name == "redirect_uri")
        .expect("a redirect")
        .1
        .into_owned();
    let mut back = Url::parse(&redirect).expect("a URL");
    let refusal = [
        ("error", "access_denied"),
        ("error_description", "\u{1b}[31mno"),
        ("state", state.as_str()),
    ];
    back.query_pairs_mut()
        .extend_pairs(refusal)
        .append_pair("iss", &provider.url);
    terminal.http.get(back).send().await.expect("a page");
    let (code, text) = login.end().await;
    assert!(
        code == Some(1) && text.contains("access_denied") && !text.contains('\u{1b}'),
        "{code:?} {text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn login_names_missing_arguments() {
    let terminal = Terminal::new("http://127.0.0.1:1");
    let output = terminal.run(&terminal.login()).await;
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && text.contains("127.0.0.1:1"),
        "{text}"
    );
    assert!(!terminal.session().exists());
    let [login, issuer, url, audience, of_service, client_id, id] = terminal.login();
    for (arguments, missing) in [
        (vec![login, issuer, url], client_id),
        (vec![login, issuer, url, client_id, id], audience),
        (vec![login, issuer, url, audience, of_service], client_id),
        (
            vec![login, audience, of_service, client_id, id],
            "--service-url",
        ),
    ] {
        let output = terminal.run(&arguments).await;
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && text.contains(missing),
            "{missing}: {text}"
        );
    }
    let help = terminal.run(&["login", "--help"]).await;
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(
        help.status.success() && text.contains("hub token") && text.contains("redirect URI"),
        "{text}"
    );
    std::fs::create_dir_all(terminal.home.path().join("hub")).expect("a folder");
    std::fs::write(terminal.session(), "{").expect("a file");
    let broken = terminal.token().await.expect_err("no session");
    assert!(broken.contains("is damaged"), "{broken}");
    // A token of another service is not passed off as this one's.
    let other = json!({"profiles": {"default": {"serviceUrl": "https://other.example", "tenantUuid": null,
        "credential": {"issuer": {"issuer": "https://login.example", "clientId": CLIENT_ID, "audience": AUDIENCE,
        "tokenEndpoint": "https://login.example/token", "accessToken": "secret",
        "expiresAt": "2100-01-01T00:00:00.000000Z", "refreshToken": null}}}}});
    std::fs::write(terminal.session(), other.to_string()).expect("a file");
    assert_eq!(terminal.token().await, Ok("secret".to_owned()));
    let output = terminal.run(&["token", "--service-url", AUDIENCE]).await;
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(3)
            && text.contains("https://other.example")
            && !text.contains("secret")
            && output.stdout.is_empty(),
        "{text}"
    );
}

#[tokio::test]
async fn hub_cloud_refers_to_hub_for_a_login() {
    let output = Command::new(program("hub-cloud"))
        .args(["login", "--print-token"])
        .output()
        .await
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && text.contains("hub login") && text.contains("hub token"),
        "{text}"
    );
}
