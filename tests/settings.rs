//! What the service says of settings that are wrong, and with which exit code, as a person or a
//! unit starts it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hub_tests::process::{Process, program};
use hub_tests::{Backend, postgres};
use tokio::process::Command;

/// Nothing here serves: it has to end by itself.
const PATIENCE: Duration = Duration::from_secs(30);

async fn serve(
    data_dir: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> (Option<i32>, String) {
    let mut command = Command::new(program("hub-cloud"));
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data_dir)
        .args(arguments);
    command
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output())
        .await
        .expect("it ends")
        .expect("it starts");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_setting_is_named_with_exit_code_3() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    // A certificate by its armour is enough to get as far as the key.
    let armoured = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    std::fs::write(path("armoured.pem"), armoured).expect("a file");
    std::fs::write(&cert, "no certificate").expect("a file");
    std::fs::write(&key, "no key").expect("a file");
    std::fs::write(path("config.toml"), "master-key = \"zz\"").expect("a file");
    for (arguments, part) in [
        (&["--hub-token-lifetime", "24€"][..], "hub-token-lifetime"),
        (&["--master-key", "00"], "master-key"),
        (&["--config", &path("config.toml")], "master-key"),
        (&["--database-url", "sqlite:"], "database-url"),
        (
            &["--database-url", "postgres://u:hunter2@host:port/d"],
            "database-url",
        ),
        (
            &["--tls-cert", &cert, "--tls-key", &key],
            &format!("tls-cert: {cert}"),
        ),
        (
            &["--tls-cert", &path("missing.pem"), "--tls-key", &key],
            &format!("tls-cert: {}", path("missing.pem")),
        ),
        (
            &["--allow-private-targets", "--outgoing-ca", &cert],
            "outgoing-ca",
        ),
        (&["--outgoing-ca", &path("missing.pem")], "outgoing-ca"),
        (
            &["--security-contact", "security@example.com"],
            "security-contact",
        ),
        (
            &["--security-contact", "mailto:a@example.com\nPolicy: x"],
            "security-contact",
        ),
        (
            &["--security-policy", "http://example.com/policy"],
            "security-policy",
        ),
        (
            &["--tls-cert", &path("armoured.pem"), "--tls-key", &key],
            &format!("tls-key: {key}"),
        ),
    ] {
        let (code, text) = serve(dir.path(), arguments, &[]).await;
        assert!(
            code == Some(3) && text.contains(part) && !text.contains("hunter2"),
            "{arguments:?}: {code:?} {text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn negative_number_is_refused_as_a_wrong_value() {
    let dir = tempfile::tempdir().expect("a directory");
    for (flag, value, expected) in [
        ("--upload-limit-per-minute", "-1", 2),
        ("--uploads-per-commit", "-1", 2),
        ("--streams-per-tenant", "-1", 2),
        ("--hub-token-lifetime", "-1h", 3),
        ("--hub-refresh-lifetime", "-30d", 3),
    ] {
        let (code, text) = serve(dir.path(), &[flag, value], &[]).await;
        assert!(
            code == Some(expected) && text.contains(&flag[2..]) && text.contains(value),
            "{flag}: {code:?} {text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn environment_variable_sets_a_setting_and_an_empty_one_does_not() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, part) in [
        (
            "HUB_CLOUD_UPLOAD_LIMIT_PER_MINUTE",
            "--upload-limit-per-minute",
        ),
        ("HUB_CLOUD_HUB_TOKEN_LIFETIME", "hub-token-lifetime"),
    ] {
        let (code, text) = serve(dir.path(), &[], &[(name, "abc")]).await;
        assert!(
            code == Some(3) && text.contains(part),
            "{name}: {code:?} {text}"
        );
    }
    let wrong = [("HUB_CLOUD_UPLOAD_LIMIT_PER_MINUTE", "abc")];
    let (code, text) = serve(dir.path(), &["--uploads-per-commit", "x"], &wrong).await;
    assert!(
        code == Some(2) && text.contains("--uploads-per-commit"),
        "wrong usage comes first: {code:?} {text}"
    );
    let data_dir = dir.path().display().to_string();
    let empty = [
        ("HUB_CLOUD_LISTEN", ""),
        ("HUB_CLOUD_UPLOADS_PER_COMMIT", ""),
        ("HUB_CLOUD_CONFIG", ""),
    ];
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &data_dir];
    let mut service = Process::start("hub-cloud", &arguments, &empty);
    service.url().await;
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelt_settings_are_said_before_one_is_missing() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = dir.path().join("config.toml").display().to_string();
    std::fs::write(
        &config,
        "mail-from = \"a@example.com\"\nsmtp-ulr = \"smtp://h\"\nlisen = 1",
    )
    .expect("a file");
    let (code, text) = serve(dir.path(), &["--config", &config], &[]).await;
    for part in ["did you mean `smtp-url`?", "did you mean `listen`?"] {
        assert!(code == Some(3) && text.contains(part), "{code:?} {text}");
    }
    let misspelt = [("HUB_CLOUD_SMTP_ULR", "smtp://u:hunter2@h")];
    let (code, text) = serve(dir.path(), &["--mail-from", "a@example.com"], &misspelt).await;
    assert!(
        code == Some(3)
            && text.contains("HUB_CLOUD_SMTP_ULR; did you mean HUB_CLOUD_SMTP_URL?")
            && !text.contains("hunter2"),
        "{code:?} {text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn master_key_of_another_database_is_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    let data_dir = dir.path().display().to_string();
    let mut service = Process::start(
        "hub-cloud",
        &["serve", "--listen", "127.0.0.1:0", "--data-dir", &data_dir],
        &[],
    );
    service.url().await;
    service.kill().await;
    let (code, text) = serve(dir.path(), &["--master-key", &"5a".repeat(32)], &[]).await;
    assert!(
        code == Some(3) && text.contains("restore the missing key"),
        "{code:?} {text}"
    );
    assert!(!text.contains("request id"), "{text}");
}

hub_tests::on_postgres!(a_database_that_refuses_is_named_first);
async fn a_database_that_refuses_is_named_first(_: Backend) {
    let dir = tempfile::tempdir().expect("a directory");
    let (server, _) = postgres::SERVER
        .rsplit_once('/')
        .expect("a URL with a database");
    let (code, text) = serve(
        dir.path(),
        &["--database-url", &format!("{server}/no-such-database")],
        &[],
    )
    .await;
    let cause = "hub-cloud: the database refuses the connection: database \"no-such-database\" does not exist";
    assert!(
        code == Some(1) && text.starts_with(cause) && text.contains("createdb"),
        "{code:?} {text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_failure_exits_with_75_and_permanent_failure_says_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let (code, text) = serve(
        dir.path(),
        &["--database-url", "postgres://u:hunter2@127.0.0.1:1/none"],
        &[],
    )
    .await;
    assert!(
        code == Some(75) && text.contains("does not respond: postgres://127.0.0.1:1/none"),
        "{code:?} {text}"
    );
    assert!(
        text.contains("Connection refused") && !text.contains("hunter2"),
        "{text}"
    );
    let (code, text) = serve(
        dir.path(),
        &["--database-url", "sqlite:/no/such/directory/hub.sqlite"],
        &[],
    )
    .await;
    assert!(
        code == Some(1)
            && text.contains("cannot open the database file /no/such/directory/hub.sqlite"),
        "{text}"
    );
    std::fs::write(dir.path().join("other"), "not a database").expect("a file");
    let other = format!("sqlite:{}", dir.path().join("other").display());
    let (code, text) = serve(dir.path(), &["--database-url", &other], &[]).await;
    assert!(
        code == Some(1) && text.contains("file is not a database"),
        "{code:?} {text}"
    );

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let mut command = Command::new(program("hub-cloud"));
    command
        .args(["serve", "--listen", &address, "--data-dir"])
        .arg(dir.path())
        .stdin(Stdio::null());
    let output = tokio::time::timeout(PATIENCE, command.output())
        .await
        .expect("it ends")
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && text.contains("set `listen` to another address"),
        "{text}"
    );

    let mut migrate = Command::new(program("hub-cloud"));
    migrate.arg("migrate").arg("--data-dir").arg(dir.path());
    assert!(migrate.status().await.expect("it starts").success());
    let database =
        rusqlite::Connection::open(dir.path().join("hub-cloud.sqlite")).expect("the database");
    let newer = "UPDATE _sqlx_migrations SET version = 9000 WHERE version = (SELECT MAX(version) \
         FROM _sqlx_migrations)";
    assert_eq!(database.execute(newer, []).expect("a later version"), 1);
    let (code, text) = serve(dir.path(), &[], &[]).await;
    assert!(
        code == Some(3) && text.contains("run that version, or restore"),
        "{code:?} {text}"
    );
    let unreleased = "UPDATE _sqlx_migrations SET checksum = X'00' WHERE version = 1";
    assert_eq!(database.execute(unreleased, []).expect("another text"), 1);
    let (code, text) = serve(dir.path(), &[], &[]).await;
    assert!(
        code == Some(3) && text.contains("from before the first release created this database"),
        "{code:?} {text}"
    );

    std::fs::write(dir.path().join("file"), "").expect("a file");
    let (code, text) = serve(&dir.path().join("file/data"), &[], &[]).await;
    assert!(
        code == Some(1) && text.contains("set data-dir to another one"),
        "{code:?} {text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn help_separates_command_options_from_settings() {
    let help = async |arguments: &[&str]| {
        let mut command = Command::new(program("hub-cloud"));
        let output = command
            .args(arguments)
            .arg("--help")
            .stdin(Stdio::null())
            .output()
            .await
            .expect("it starts");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let top = help(&[]).await;
    for part in [
        "Settings:\n",
        "--database-url",
        "Options override the environment",
        "75 try again later",
    ] {
        assert!(top.contains(part), "no {part} in {top}");
    }
    let demo = help(&["demo"]).await;
    let (own, settings) = demo.split_once("\nSettings:\n").expect("settings apart");
    assert!(
        own.contains("--bluez") && !own.contains("--listen") && settings.contains("--listen"),
        "{demo}"
    );
    for arguments in [
        &["release"][..],
        &["release", "sign"],
        &["release", "keygen"],
        &["openapi"],
    ] {
        let text = help(arguments).await;
        assert!(
            !text.contains("--database-url") && !text.contains("Settings"),
            "{arguments:?}: {text}"
        );
    }
    assert!(help(&["release", "sign"]).await.contains("--architecture"));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let data_dir = dir.path().display().to_string();
    let mut service = Process::start(
        "hub-cloud",
        &["serve", "--listen", "127.0.0.1:0", "--data-dir", &data_dir],
        &[],
    );
    service.url().await;
    for entry in std::fs::read_dir(dir.path())
        .expect("a directory")
        .flatten()
    {
        let mode = entry
            .metadata()
            .expect("a file's mode")
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", entry.path().display());
    }
    service.kill().await;
}
