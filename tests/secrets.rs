//! What people and machines prove themselves with stands nowhere in the clear: not in the database,
//! not in the logs, however much is logged.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use hub_tests::postgres::Database;
use hub_tests::process::program;
use hub_tests::{Backend, Call, Client, Person, SimulatedHub, Tenant, on_each_database, secrets};
use serde_json::{Value, json};
use sqlx::{Connection, Row};
use sqlx_postgres::PgConnection;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The service as a process that logs all it can, into a file.
struct Talkative {
    child: Child,
    dir: TempDir,
    database: Option<Database>,
    client: Client,
}

impl Talkative {
    async fn start(backend: Backend) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let database = match backend {
            Backend::Sqlite => None,
            Backend::Postgres => Some(Database::create().await),
        };
        let log = File::create(dir.path().join("log")).expect("a file");
        let mut command = Command::new(program("hub-cloud"));
        command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--log",
                "debug",
                "--data-dir",
            ])
            .arg(dir.path().join("data"));
        if let Some(database) = &database {
            command.args(["--database-url", &database.url]);
        }
        let child = command
            .stdin(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let url = async {
            loop {
                let log = std::fs::read_to_string(dir.path().join("log")).unwrap_or_default();
                if let Some(url) = log
                    .lines()
                    .find_map(|line| line.strip_prefix("listening on "))
                {
                    return url.to_owned();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let url = tokio::time::timeout(Duration::from_secs(30), url)
            .await
            .expect("it listens");
        Self {
            child,
            dir,
            database,
            client: Client::new(&url),
        }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }
}

on_each_database!(database_and_logs_contain_no_secret);
async fn database_and_logs_contain_no_secret(backend: Backend) {
    let mut service = Talkative::start(backend).await;
    use_everything(&service.client).await;
    let secrets = secrets::seen(&service.client.url);
    assert!(
        secrets.len() > 15,
        "only {} secrets were used",
        secrets.len()
    );
    service.child.kill().await.expect("it ends");
    let log = std::fs::read(service.dir.path().join("log")).expect("the log");
    assert!(log.len() > 5_000, "it has logged only {} bytes", log.len());
    secrets::assert_none_in(&secrets, "the log", &log);
    match &service.database {
        None => secrets::search_sqlite(
            &service.client.url,
            &service.data().join("hub-cloud.sqlite"),
        ),
        Some(database) => secrets::assert_none_in(
            &secrets,
            "the database",
            dump(&database.url).await.as_bytes(),
        ),
    }
    // The master key is in its file and nowhere else.
    let key = std::fs::read_to_string(service.data().join("master.key")).expect("the key");
    let key = [key.trim().to_owned()].into();
    secrets::assert_none_in(&key, "the log", &log);
    if service.database.is_none() {
        let file = std::fs::read(service.data().join("hub-cloud.sqlite")).expect("the database");
        secrets::assert_none_in(&key, "the database", &file);
    }
}

/// Every way there is to prove who one is, right and wrong.
async fn use_everything(client: &Client) {
    let tenant = Tenant::create(client).await;
    let Person { email, login, .. } = &tenant.owner;
    let wrong = json!({"email": email, "password": "not the password of anybody"});
    client
        .post("/auth/login")
        .json(&wrong)
        .call()
        .await
        .expect(401);
    // A password in the wrong box.
    let swapped =
        json!({"email": "my secret password is this", "password": "and this is no password"});
    client
        .post("/auth/login")
        .json(&swapped)
        .call()
        .await
        .expect(400);
    let refreshed = client
        .post("/auth/refresh")
        .json(&json!({"refreshToken": login.refresh_token}))
        .call()
        .await;
    let refreshed: Value = refreshed.expect(200).json();
    client
        .post("/auth/refresh")
        .json(&json!({"refreshToken": login.refresh_token}))
        .call()
        .await
        .expect(401);
    client
        .post("/auth/logout")
        .json(&json!({"refreshToken": refreshed["data"]["refreshToken"]}))
        .call()
        .await
        .expect(204);
    // The login ended with the token that was used twice.
    tenant.client.get("/tenant/hubs").call().await.expect(401);

    let tenant = Tenant::create(client).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let refresh = json!({"refreshToken": hub.credentials.refresh_token});
    hub.client
        .post("/v1/hubs/refresh")
        .json(&refresh)
        .call()
        .await
        .expect(200);
    hub.client.get("/v1/test").call().await.expect(401);
    client
        .post("/v1/hubs/claim")
        .json(&json!({"claimCode": "0123-4567-89AB-CDEF", "deviceInstanceId": "x"}))
        .call()
        .await
        .expect(400);

    let new = json!({"name": "back-end", "scopes": ["*"]});
    let key = tenant
        .client
        .post("/tenant/api-keys")
        .json(&new)
        .call()
        .await
        .expect(201)
        .json();
    let header = reqwest::header::HeaderName::from_static("x-api-key");
    let by_key = Client::new(&client.url).tenant(tenant.tenant_uuid);
    let by_key = by_key.header(
        header.clone(),
        key["data"]["apiKey"].as_str().expect("the key"),
    );
    by_key.get("/tenant/hubs").call().await.expect(200);
    by_key
        .header(header, "hmk_abcdefgh_abcdefghijklmnopqrstuvwxyz012345")
        .get("/tenant/hubs")
        .call()
        .await
        .expect(401);

    // There is no such model, and the keys were sent all the same.
    let device = json!({
        "deviceUuid": "7b1c3f0e-52c4-4e0a-8a53-0d6c0f3f7f11", "bindKey": "3c5f8a1b90d2e47766a1b2c3d4e5f607",
        "identityResolvingKey": "91e0d7c2b3a45566778899aabbccdd01",
    });
    tenant
        .client
        .post("/tenant/devices")
        .json(&device)
        .call()
        .await
        .expect(404);

    let person = Person::register(client).await;
    let change = json!({"currentPassword": hub_tests::people::PASSWORD, "newPassword": "quite another battery staple"});
    person
        .client
        .post("/auth/password")
        .json(&change)
        .call()
        .await
        .expect(204);
    let reset = json!({"token": "no-such-token-but-a-long-one", "newPassword": "and one more battery staple"});
    let reply = client
        .post("/auth/password/reset")
        .json(&reset)
        .call()
        .await;
    assert!(reply.status.is_client_error(), "{}", reply.body);
    let accept = json!({"token": "no-such-invitation-but-a-long-token"});
    person
        .client
        .post("/invitations/accept")
        .json(&accept)
        .call()
        .await
        .expect(404);
    client
        .get("/public/invitations/no-such-invitation-but-a-long-token")
        .call()
        .await
        .expect(404);
}

/// Every row of every table, as text.
async fn dump(url: &str) -> String {
    let mut conn = PgConnection::connect(url).await.expect("a connection");
    let tables = sqlx::query(
        "SELECT table_name::text FROM information_schema.tables \
                              WHERE table_schema = 'public'",
    )
    .fetch_all(&mut conn)
    .await
    .expect("the tables");
    let mut dump = String::new();
    for table in tables {
        let table: String = table.get(0);
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT t::text FROM \"{table}\" t"
        )))
        .fetch_all(&mut conn);
        for row in rows.await.expect("the rows") {
            dump.push_str(row.get::<String, _>(0).as_str());
            dump.push('\n');
        }
    }
    dump
}
