//! `hub-cloud admin`, as a person runs it.

use std::path::Path;
use std::process::{Output, Stdio};

use hub_tests::postgres::Database;
use hub_tests::process::{Process, program};
use hub_tests::{Backend, Call, Client, on_postgres};
use serde_json::json;
use sqlx::{Connection, Executor};
use sqlx_postgres::PgConnection;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

const EMAIL: &str = "root@example.com";
const PASSWORD: &str = "correct horse battery staple";

async fn create(data_dir: &Path, arguments: &[&str], input: &str) -> Output {
    admin(data_dir, &[&["create"][..], arguments].concat(), input).await
}

async fn admin(data_dir: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(program("hub-cloud"));
    command
        .arg("admin")
        .args(arguments)
        .arg("--data-dir")
        .arg(data_dir);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("its input");
    // It may have refused its arguments and be gone.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    child.wait_with_output().await.expect("it ends")
}

fn outcome(output: &Output) -> (Option<i32>, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains(PASSWORD), "{text}");
    (output.status.code(), text)
}

/// The roles in a token's claims.
fn roles(token: &str) -> serde_json::Value {
    use base64::Engine;
    let claims = token.split('.').nth(1).expect("claims");
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(claims)
        .expect("base64");
    serde_json::from_slice::<serde_json::Value>(&claims).expect("JSON")["roles"].clone()
}

/// Types lines at a terminal of its own, each when the program has asked and shows nothing of what
/// is typed. Prints what the terminal shows.
const TERMINAL: &str = r#"
import os, pty, sys, termios, time
lines, command = sys.argv[1].split("|"), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execv(command[0], command)
shown = b""
for number, line in enumerate(lines, 1):
    while shown.count(b": ") < number:
        shown += os.read(terminal, 1024)
    while termios.tcgetattr(terminal)[3] & termios.ECHO:
        time.sleep(0.01)
    os.write(terminal, line.encode() + b"\n")
try:
    while part := os.read(terminal, 1024):
        shown += part
except OSError:
    pass
sys.stdout.write(shown.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn admin_create_asks_for_the_password_at_a_terminal_without_echo() {
    let dir = tempfile::tempdir().expect("a directory");
    let data_dir = dir.path().display().to_string();
    let mut service = Process::start(
        "hub-cloud",
        &["serve", "--listen", "127.0.0.1:0", "--data-dir", &data_dir],
        &[],
    );
    let client = Client::new(&service.url().await);
    let at_terminal = async |typed: &str| {
        let mut command = Command::new("python3");
        command
            .args(["-c", TERMINAL, typed])
            .arg(program("hub-cloud"));
        command.args(["admin", "create", "--email", EMAIL, "--data-dir", &data_dir]);
        outcome(&command.output().await.expect("python3"))
    };
    let (code, text) = at_terminal(&format!("{PASSWORD}|another password")).await;
    assert!(
        code == Some(2) && text.contains("do not match"),
        "{code:?} {text}"
    );
    let (code, text) = at_terminal(&format!("{PASSWORD}|{PASSWORD}")).await;
    assert_eq!(code, Some(0), "{text}");
    let body = json!({"email": EMAIL, "password": PASSWORD});
    let login = client.post("/auth/login").json(&body).call().await;
    login.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_create_works_while_the_service_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let data_dir = dir.path().to_str().expect("a path");
    let mut service = Process::start(
        "hub-cloud",
        &["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir],
        &[],
    );
    let client = Client::new(&service.url().await);
    let by_stdin = ["--email", "Root@Example.com", "--password-stdin"];
    let line = format!("{PASSWORD}\n");
    let (code, text) = outcome(&create(dir.path(), &by_stdin, &line).await);
    assert!(
        code == Some(0) && text.contains("is a new platform administrator"),
        "{code:?} {text}"
    );
    let body = json!({"email": EMAIL, "password": PASSWORD});
    let login = client
        .post("/auth/login")
        .json(&body)
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        roles(login["data"]["accessToken"].as_str().expect("a token")),
        json!(["PLATFORM_ADMIN"])
    );
    let (code, text) = outcome(&create(dir.path(), &by_stdin, &line).await);
    assert!(
        code == Some(0) && text.contains("already; nothing was changed"),
        "{code:?} {text}"
    );
    let (code, text) = outcome(&create(dir.path(), &by_stdin, "another password\n").await);
    assert!(
        code == Some(1) && text.contains("another password; nothing was changed"),
        "{code:?} {text}"
    );

    // An account that was registered before must not become an administrator by mistake.
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let registered = client
        .post("/auth/register")
        .json(&body)
        .call()
        .await
        .expect(201)
        .json();
    assert_eq!(
        roles(registered["data"]["accessToken"].as_str().expect("a token")),
        json!([])
    );
    let for_ada = ["--email", "ada@example.com", "--password-stdin"];
    let (code, text) = outcome(&create(dir.path(), &for_ada, "another password\n").await);
    assert!(
        code == Some(1) && text.contains("another password; nothing was changed"),
        "{code:?} {text}"
    );
    let (code, text) = outcome(&create(dir.path(), &for_ada, &line).await);
    assert!(
        code == Some(0) && text.contains("from its next login or refresh on"),
        "{code:?} {text}"
    );
    let body = json!({"refreshToken": registered["data"]["refreshToken"]});
    let refreshed = client
        .post("/auth/refresh")
        .json(&body)
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        roles(refreshed["data"]["accessToken"].as_str().expect("a token")),
        json!(["PLATFORM_ADMIN"])
    );
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_create_names_what_is_wrong_with_its_input() {
    let dir = tempfile::tempdir().expect("a directory");
    for (arguments, input, part) in [
        (
            &["--email", EMAIL, "--password-stdin"][..],
            "short\n",
            "`password`",
        ),
        (&["--email", EMAIL, "--password-stdin"], "", "`password`"),
        (
            &["--email", "root", "--password-stdin"],
            PASSWORD,
            "`email`",
        ),
        (&["--email", EMAIL], PASSWORD, "--password-stdin"),
        (&["--password-stdin"], PASSWORD, "--email"),
    ] {
        let (code, text) = outcome(&create(dir.path(), arguments, input).await);
        assert!(code == Some(2) && text.contains(part), "{code:?} {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_are_listed_demoted_and_helped_while_the_service_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let data_dir = dir.path().to_str().expect("a path");
    let mut service = Process::start(
        "hub-cloud",
        &["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir],
        &[],
    );
    let client = Client::new(&service.url().await);
    let run =
        async |arguments: &[&str], input: &str| outcome(&admin(dir.path(), arguments, input).await);
    let (code, text) = run(&["list"], "").await;
    assert!(
        code == Some(0) && text.contains("`hub-cloud admin create`"),
        "{code:?} {text}"
    );
    run(&["create", "--email", EMAIL, "--password-stdin"], PASSWORD).await;
    let credentials = json!({"email": EMAIL, "password": PASSWORD});
    let login = async || client.post("/auth/login").json(&credentials).call().await;
    let first = login().await.expect(200).json();
    let platform = client.bearer(first["data"]["accessToken"].as_str().expect("a token"));
    platform
        .get("/platform/audit-logs")
        .call()
        .await
        .expect(200);
    login().await.expect(200);
    let (code, text) = run(&["list"], "").await;
    assert!(
        code == Some(0) && text.contains(EMAIL) && text.contains("2 valid logins, last login 2"),
        "{code:?} {text}"
    );
    let (_, text) = run(&["list", "--json"], "").await;
    let listed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let listed = &listed["administrators"][0];
    assert_eq!(
        (&listed["email"], &listed["logins"], &listed["nickname"]),
        (&json!(EMAIL), &json!(2), &json!(null))
    );
    assert_eq!(listed["userUuid"], first["data"]["userUuid"]);

    // Logins end at once; the role is another matter.
    let (code, text) = run(
        &["revoke", "--keep-role", "--email", "Root@Example.com"],
        "",
    )
    .await;
    assert!(
        code == Some(0) && text.contains("keeps its role; 2 logins were ended"),
        "{code:?} {text}"
    );
    platform
        .get("/platform/audit-logs")
        .call()
        .await
        .expect(401);
    let second = login().await.expect(200).json();
    let token = second["data"]["accessToken"].as_str().expect("a token");
    assert_eq!(roles(token), json!(["PLATFORM_ADMIN"]));
    let (code, text) = run(&["revoke", "--email", EMAIL], "").await;
    assert!(
        code == Some(0)
            && text.contains("is no longer a platform administrator; 1 logins were ended"),
        "{text}"
    );
    assert!(text.contains("no platform administrator is left"), "{text}");
    client
        .bearer(token)
        .get("/platform/audit-logs")
        .call()
        .await
        .expect(401);
    let refresh = json!({"refreshToken": second["data"]["refreshToken"]});
    client
        .post("/auth/refresh")
        .json(&refresh)
        .call()
        .await
        .expect(401);
    let third = login().await.expect(200).json();
    assert_eq!(
        roles(third["data"]["accessToken"].as_str().expect("a token")),
        json!([])
    );
    let (code, text) = run(&["revoke", "--email", EMAIL], "").await;
    assert!(
        code == Some(0) && text.contains("was not a platform administrator; 1 logins"),
        "{code:?} {text}"
    );
    for arguments in [
        &["revoke", "--email", "nobody@example.com"][..],
        &["unlock", "--email", "nobody@example.com"],
    ] {
        let (code, text) = run(arguments, "").await;
        assert!(
            code == Some(1) && text.contains("there is no such account"),
            "{code:?} {text}"
        );
    }

    // Somebody who is locked out by their own mistakes, and one who forgot the password.
    let person = json!({"email": "ada@example.com", "password": "wrong password"});
    for _ in 0..60 {
        client.post("/auth/login").json(&person).call().await;
    }
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let registers = async || client.post("/auth/register").json(&body).call().await;
    for number in 0..50 {
        let guess =
            json!({"email": format!("guess{number}@example.com"), "password": "wrong password"});
        client.post("/auth/login").json(&guess).call().await;
    }
    registers().await.expect(429);
    let (code, text) = run(&["unlock", "--address", "127.0.0.1"], "").await;
    assert!(
        code == Some(0) && text.contains("counters of 127.0.0.1 were cleared"),
        "{code:?} {text}"
    );
    registers().await.expect(201);
    let (code, text) = run(&["unlock", "--email", "ada@example.com"], "").await;
    assert!(
        code == Some(0) && text.contains("ada@example.com"),
        "{code:?} {text}"
    );
    let (code, text) = run(&["unlock"], "").await;
    assert!(
        code == Some(2) && text.contains("--email") && text.contains("--address"),
        "{code:?} {text}"
    );
    let new = "a new password\n";
    let (code, text) = run(
        &[
            "reset-password",
            "--email",
            "ada@example.com",
            "--password-stdin",
        ],
        new,
    )
    .await;
    assert!(
        code == Some(0) && text.contains("has the new password; 1 logins were ended"),
        "{code:?} {text}"
    );
    client
        .post("/auth/login")
        .json(&body)
        .call()
        .await
        .expect(401);
    let body = json!({"email": "ada@example.com", "password": "a new password"});
    client
        .post("/auth/login")
        .json(&body)
        .call()
        .await
        .expect(200);
    let (code, text) = run(
        &[
            "reset-password",
            "--email",
            "ada@example.com",
            "--password-stdin",
        ],
        "short\n",
    )
    .await;
    assert!(
        code == Some(2) && text.contains("`password`"),
        "{code:?} {text}"
    );
    service.kill().await;
}

/// Only what serves creates a database. Everything else says where it looked, and what to do.
#[tokio::test(flavor = "multi_thread")]
async fn commands_do_not_create_a_database() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let run = async |arguments: &[&str]| {
        let mut command = Command::new(program("hub-cloud"));
        command
            .args(arguments)
            .current_dir(dir.path())
            .stdin(Stdio::null());
        outcome(&command.output().await.expect("it starts"))
    };
    let file = data.join("hub-cloud.sqlite").display().to_string();
    let commands: [&[&str]; 10] = [
        &["admin", "list"],
        &["admin", "revoke", "--email", EMAIL],
        &["admin", "unlock", "--email", EMAIL],
        &["admin", "unlock", "--address", "::1"],
        &["keys", "list"],
        &["keys", "rotate"],
        &["keys", "forget", "00000000"],
        &["ca", "list"],
        &["ca", "rotate"],
        &["backup", "hub.tar.zst", "--without-keys"],
    ];
    for command in commands {
        let (code, text) =
            run(&[command, &["--data-dir", data.to_str().expect("a path")][..]].concat()).await;
        assert!(
            code == Some(1) && text.contains(&file),
            "{command:?}: {code:?} {text}"
        );
        assert!(
            text.contains("start the service first") && text.contains("--config"),
            "{text}"
        );
        let (code, text) = run(command).await;
        assert!(
            code == Some(1) && text.contains("/hub-cloud-data/hub-cloud.sqlite"),
            "{command:?}: {code:?} {text}"
        );
    }
    let credentials = ["--email", EMAIL, "--password-stdin"];
    for command in ["create", "reset-password"] {
        let (code, text) = outcome(
            &admin(
                &data,
                &[&[command][..], &credentials[..]].concat(),
                PASSWORD,
            )
            .await,
        );
        assert!(
            code == Some(1) && text.contains(&file),
            "{command}: {code:?} {text}"
        );
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).expect("a directory").count(),
        0,
        "not even a directory"
    );
    // An empty file is no database either, and stays empty.
    std::fs::create_dir(&data).expect("a directory");
    std::fs::write(&file, "").expect("a file");
    let (code, text) = outcome(&create(&data, &credentials, PASSWORD).await);
    assert!(code == Some(1) && text.contains(&file), "{code:?} {text}");
    assert_eq!(std::fs::read(&file).expect("a file").len(), 0);
    std::fs::remove_file(&file).expect("it is gone");
    let (code, text) = run(&["migrate", "--data-dir", data.to_str().expect("a path")]).await;
    assert!(code == Some(0), "{text}");
    let (code, text) = outcome(&create(&data, &credentials, PASSWORD).await);
    assert!(
        code == Some(0) && text.contains("is a new platform administrator"),
        "{code:?} {text}"
    );
    // Nor do they migrate one.
    let database = rusqlite::Connection::open(&file).expect("the database");
    let older = "DELETE FROM _sqlx_migrations WHERE version = (SELECT MAX(version) \
         FROM _sqlx_migrations)";
    assert_eq!(database.execute(older, []).expect("an older one"), 1);
    let (code, text) = outcome(&create(&data, &credentials, PASSWORD).await);
    assert!(
        code == Some(1)
            && text.contains("lacks 1 migrations")
            && text.contains("hub-cloud migrate"),
        "{text}"
    );
    let unreleased = "UPDATE _sqlx_migrations SET checksum = X'00' WHERE version = 1";
    assert_eq!(database.execute(unreleased, []).expect("another text"), 1);
    let (code, text) = outcome(&create(&data, &credentials, PASSWORD).await);
    assert!(
        code == Some(3) && text.contains("from before the first release"),
        "{code:?} {text}"
    );
}

on_postgres!(commands_leave_an_empty_postgresql_database_alone);
/// It is named without its password.
async fn commands_leave_an_empty_postgresql_database_alone(_: Backend) {
    let database = Database::create().await;
    let mut conn = PgConnection::connect(&database.url)
        .await
        .expect("a connection");
    conn.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        .await
        .expect("an empty database");
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = [
        "--email",
        EMAIL,
        "--password-stdin",
        "--database-url",
        &database.url,
    ];
    let (code, text) = outcome(&create(dir.path(), &arguments, PASSWORD).await);
    assert!(
        code == Some(1) && text.contains("/hub_tests_") && text.contains("start the service first"),
        "{code:?} {text}"
    );
    assert!(!text.contains('@'), "neither user nor password: {text}");
    assert!(
        std::fs::read_dir(dir.path())
            .expect("a directory")
            .next()
            .is_none()
    );
    let query = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'";
    let (tables,): (i64,) = sqlx::query_as(query)
        .fetch_one(&mut conn)
        .await
        .expect("a count");
    assert_eq!(tables, 0);
}
