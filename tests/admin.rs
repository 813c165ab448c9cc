//! `hub-cloud admin create`, as a person runs it.

use std::path::Path;
use std::process::{Output, Stdio};

use hub_tests::process::{Process, program};
use hub_tests::{Call, Client};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

const EMAIL: &str = "root@example.com";
const PASSWORD: &str = "correct horse battery staple";

async fn create(data_dir: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(program("hub-cloud"));
    command.args(["admin", "create", "--data-dir"]).arg(data_dir).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("its input");
    // It may have refused its arguments and be gone.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    child.wait_with_output().await.expect("it ends")
}

fn told(output: &Output) -> (Option<i32>, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains(PASSWORD), "{text}");
    (output.status.code(), text)
}

/// The roles in a token's claims.
fn roles(token: &str) -> serde_json::Value {
    use base64::Engine;
    let claims = token.split('.').nth(1).expect("claims");
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).expect("base64");
    serde_json::from_slice::<serde_json::Value>(&claims).expect("JSON")["roles"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_create_works_while_the_service_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let data_dir = dir.path().to_str().expect("a path");
    let mut service = Process::start("hub-cloud", &["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir], &[]);
    let client = Client::new(&service.url().await);
    let by_stdin = ["--email", "Root@Example.com", "--password-stdin"];
    let line = format!("{PASSWORD}\n");
    let (code, text) = told(&create(dir.path(), &by_stdin, &line).await);
    assert!(code == Some(0) && text.contains("is a new platform administrator"), "{code:?} {text}");
    let body = json!({"email": EMAIL, "password": PASSWORD});
    let login = client.post("/auth/login").json(&body).call().await.expect(200).json();
    assert_eq!(roles(login["data"]["accessToken"].as_str().expect("a token")), json!(["PLATFORM_ADMIN"]));
    let (code, text) = told(&create(dir.path(), &by_stdin, &line).await);
    assert!(code == Some(0) && text.contains("already; nothing was changed"), "{code:?} {text}");
    let (code, text) = told(&create(dir.path(), &by_stdin, "another password\n").await);
    assert!(code == Some(1) && text.contains("another password; nothing was changed"), "{code:?} {text}");

    // An account that was registered before must not become an administrator by mistake.
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let registered = client.post("/auth/register").json(&body).call().await.expect(201).json();
    assert_eq!(roles(registered["data"]["accessToken"].as_str().expect("a token")), json!([]));
    let for_ada = ["--email", "ada@example.com", "--password-stdin"];
    let (code, text) = told(&create(dir.path(), &for_ada, "another password\n").await);
    assert!(code == Some(1) && text.contains("another password; nothing was changed"), "{code:?} {text}");
    let (code, text) = told(&create(dir.path(), &for_ada, &line).await);
    assert!(code == Some(0) && text.contains("from its next login or refresh on"), "{code:?} {text}");
    let body = json!({"refreshToken": registered["data"]["refreshToken"]});
    let refreshed = client.post("/auth/refresh").json(&body).call().await.expect(200).json();
    assert_eq!(roles(refreshed["data"]["accessToken"].as_str().expect("a token")), json!(["PLATFORM_ADMIN"]));
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_create_names_what_is_wrong_with_its_input() {
    let dir = tempfile::tempdir().expect("a directory");
    for (arguments, input, part) in [
        (&["--email", EMAIL, "--password-stdin"][..], "short\n", "`password`"),
        (&["--email", EMAIL, "--password-stdin"], "", "`password`"),
        (&["--email", "root", "--password-stdin"], PASSWORD, "`email`"),
        (&["--email", EMAIL], PASSWORD, "--password-stdin"),
        (&["--password-stdin"], PASSWORD, "--email"),
    ] {
        let (code, text) = told(&create(dir.path(), arguments, input).await);
        assert!(code == Some(2) && text.contains(part), "{code:?} {text}");
    }
}
