//! What the settings accept, and what they say when they do not.

use super::*;

fn load(text: &str) -> Result<Config, ConfigError> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("config.toml");
    std::fs::write(&path, text).expect("a file");
    Config::load(Settings::default(), Some(&path))
}

#[test]
fn flags_override_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("config.toml");
    std::fs::write(&path, "listen = '127.0.0.1:1'\nupload-limit-per-minute = 7").expect("a file");
    let flags = Settings {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 2))),
        ..Settings::default()
    };
    let config = Config::load(flags, Some(&path)).expect("a configuration");
    assert_eq!(
        (config.listen.port(), config.upload_limit_per_minute),
        (2, 7)
    );
}

#[test]
fn a_host_name_can_be_listened_on() {
    let config = load("listen = 'localhost:8081'").expect("a configuration");
    assert_eq!(config.listen, SocketAddr::from(([127, 0, 0, 1], 8081)));
    for text in ["localhost", ":8080", "localhost:port"] {
        load(&format!("listen = '{text}'")).expect_err(text);
    }
}

#[test]
fn error_of_an_invalid_value_names_its_key() {
    for (text, key) in [
        ("hub-token-lifetime = 'soon'", "hub-token-lifetime"),
        ("hub-token-lifetime = ''", "hub-token-lifetime"),
        ("hub-token-lifetime = 'é'", "hub-token-lifetime"),
        ("hub-token-lifetime = '24€'", "hub-token-lifetime"),
        ("hub-refresh-lifetime = '24'", "hub-refresh-lifetime"),
        ("hub-refresh-lifetime = '0d'", "hub-refresh-lifetime"),
        ("upload-limit-per-minute = 0", "upload-limit-per-minute"),
        ("uploads-per-commit = 0", "uploads-per-commit"),
        ("hubs-per-tenant = 0", "hubs-per-tenant"),
        ("body-memory-mib = 127", "body-memory-mib"),
        ("streams-per-tenant = 0", "streams-per-tenant"),
        ("access-log = 'some'", "access-log"),
        ("ble-retention = 'a month'", "ble-retention"),
        ("audit-retention = '23h'", "audit-retention"),
        ("stored-bytes-per-tenant = 0", "stored-bytes-per-tenant"),
        (
            "stored-bytes-per-tenant = 'many'",
            "stored-bytes-per-tenant",
        ),
        ("bytes-per-day-per-tenant = 0", "bytes-per-day-per-tenant"),
        ("database-url = 'mysql://x'", "database-url"),
        ("database-url = 'sqlite:'", "database-url"),
        ("database-connections = 3", "database-connections"),
        ("database-connections = 501", "database-connections"),
        ("database-url = 'sqlite://'", "database-url"),
        ("database-layout = 'citus'", "database-layout citus needs"),
        ("database-layout = 'many'", "database-layout"),
        ("master-key = 'zz'", "master-key"),
        ("master-key = '00'", "master-key"),
        ("listen = 'here'", "listen"),
        ("tls-cert = 'a.pem'", "tls-cert"),
        (
            "client-certificates = 'required'",
            "client-certificates needs tls-cert",
        ),
        ("client-certificates = 'always'", "client-certificates"),
        ("oidc-issuer = 'https://login.example.com'", "oidc-audience"),
        (
            "oidc-issuer = 'http://login.example.com'\noidc-audience = 'x'",
            "oidc-issuer",
        ),
        (
            "oidc-issuer = 'http://127.0.0.1.example.com'\noidc-audience = 'x'",
            "oidc-issuer",
        ),
        ("oidc-audience = 'x'", "oidc-issuer"),
        ("oidc-client-secret = 'x'", "oidc-issuer"),
        ("builtin-login = false", "builtin-login"),
        ("smtp-url = 'smtp://localhost'", "mail-from"),
        (
            "smtp-url = 'http://localhost'\nmail-from = 'a@example.com'",
            "smtp-url",
        ),
        ("mail-from = 'a@example.com'", "smtp-url"),
        (
            "smtp-url = 'smtp://localhost'\nmail-from = 'Hubs'",
            "mail-from",
        ),
        (
            "smtp-url = 'smtp://'\nmail-from = 'a@example.com'",
            "smtp-url",
        ),
        (
            "smtp-url = 'smtp://localhost:99999'\nmail-from = 'a@example.com'",
            "smtp-url",
        ),
        (
            "smtp-url = 'smtp://localhost/path'\nmail-from = 'a@example.com'",
            "smtp-url",
        ),
        (
            "smtp-url = 'smtp://localhost?tls=maybe'\nmail-from = 'a@example.com'",
            "smtp-url",
        ),
        (
            "smtp-url = 'smtp://user@localhost'\nmail-from = 'a@example.com'",
            "smtp-url",
        ),
        (
            "smtp-url = 'smtp://user:word@mail.example.com'\nmail-from = 'a@example.com'",
            "smtp-url",
        ),
        (
            "smtp-url = 'smtps://user:%ff@mail.example.com'\nmail-from = 'a@example.com'",
            "smtp-url",
        ),
        ("billing-url = 'billing.example.com'", "billing-url"),
        ("billing-url = 'ftp://billing.example.com'", "billing-url"),
        (
            "billing-url = 'https://u:word@billing.example.com'",
            "billing-url",
        ),
        (
            "billing-url = 'https://billing.example.com?a=b'",
            "billing-url",
        ),
        (
            "billing-url = 'http://billing.example.com'\nbilling-token = 'x'",
            "billing-url",
        ),
        (
            "billing-url = 'https://billing.example.com'\nbilling-token = ' '",
            "billing-token",
        ),
        ("billing-token = 'x'", "billing-url"),
        (
            "partner-projects-secret = 'short'",
            "partner-projects-secret",
        ),
        ("cors-origins = '*'", "cors-origins"),
        ("cors-origins = 'https://a.example/path'", "cors-origins"),
        ("trusted-proxies = '10.0.0.0/33'", "trusted-proxies"),
        ("files = '/srv/files'", "files"),
    ] {
        let error = load(text).expect_err("a refusal").to_string();
        assert!(error.contains(key), "{error}");
    }
}

#[test]
fn secrets_are_not_printed() {
    let key = "abcdef01".repeat(8);
    let text = format!(
        "database-url = 'postgres://u:hunter2@h/d'\nmaster-key = '{key}'\nbilling-url = 'https://h'\n\
         billing-token = 'hunter2'\npartner-projects-secret = 'hunter2 hunter2 hunter2'"
    );
    let shown = format!("{:?}", load(&text).expect("a configuration"));
    assert!(
        !shown.contains("hunter2") && !shown.contains(&key),
        "{shown}"
    );
    let error = load("master-key = 'abcdef'")
        .expect_err("a refusal")
        .to_string();
    assert!(!error.contains("abcdef"), "{error}");
}
