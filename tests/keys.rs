//! The keys that seal secrets and sign tokens: lost, mixed up, replaced while the service serves.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hub_base::db::sql;
use hub_base::sealing::stored;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::process::{Process, program};
use hub_tests::{
    Backend, Call, Client, Options, Person, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};
use tokio::process::Command;

/// Exit code and everything said.
async fn run(data_dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(program("hub-cloud"));
    command
        .args(arguments)
        .arg("--data-dir")
        .arg(data_dir)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(30), command.output()).await;
    let output = output.expect("it ends").expect("it starts");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

async fn serve(data_dir: &Path) -> (Process, Client) {
    let data_dir = data_dir.to_str().expect("a path");
    let mut service = Process::start(
        "hub-cloud",
        &["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir],
        &[],
    );
    let client = Client::new(&service.url().await);
    (service, client)
}

async fn claim_codes(tenant: &Tenant) -> Vec<String> {
    let codes = tenant
        .client
        .get("/tenant/hubs/claim-codes")
        .call()
        .await
        .expect(200)
        .json();
    let codes = codes["data"].as_array().expect("a list").iter();
    codes
        .map(|code| code["claimCode"].as_str().expect("the code").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn master_key_is_replaced_while_the_service_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut service, client) = serve(dir.path()).await;
    let tenant = Tenant::create(&client).await;
    let mut codes: Vec<String> = vec![tenant.claim_code().await, tenant.claim_code().await];
    let (code, listed) = run(dir.path(), &["keys", "list"]).await;
    assert!(
        code == Some(0) && listed.contains("seals and opens, 3 secrets"),
        "{listed}"
    );
    let old = listed.split_whitespace().next().expect("an id").to_owned();
    let (_, listed) = run(dir.path(), &["keys", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(
        listed["masterKeys"],
        json!([{"id": old, "seals": true, "secrets": 3}])
    );
    assert!(listed["signingKeys"][0]["id"].is_string(), "{listed}");

    let (code, said) = run(dir.path(), &["keys", "rotate"]).await;
    assert!(
        code == Some(0) && said.contains("3 secrets resealed"),
        "{code:?} {said}"
    );
    assert!(
        said.contains(&format!("hub-cloud keys forget {old}")),
        "{said}"
    );
    let (_, listed) = run(dir.path(), &["keys", "list"]).await;
    // The generated signing key is sealed too.
    assert!(
        listed.contains("seals and opens, 4 secrets")
            && listed.contains(&format!("{old}  opens, 0 secrets")),
        "{listed}"
    );

    // The service opens resealed secrets, and seals with the new key.
    codes.push(tenant.claim_code().await);
    let mut found = claim_codes(&tenant).await;
    found.sort();
    codes.sort();
    assert_eq!(found, codes);
    let (_, listed) = run(dir.path(), &["keys", "list"]).await;
    assert!(listed.contains("seals and opens, 5 secrets"), "{listed}");

    let (code, said) = run(dir.path(), &["keys", "forget", "00000000"]).await;
    assert!(
        code == Some(2) && said.contains("there is no master key 00000000"),
        "{code:?} {said}"
    );
    let new = listed.split_whitespace().next().expect("an id").to_owned();
    let (code, said) = run(dir.path(), &["keys", "forget", &new]).await;
    assert!(
        code == Some(1) && said.contains("is the active master key"),
        "{code:?} {said}"
    );
    let (code, said) = run(dir.path(), &["keys", "forget", &old]).await;
    assert_eq!(code, Some(0), "{said}");
    service.kill().await;
    let (mut service, client) = serve(dir.path()).await;
    let tenant = Tenant {
        client: tenant.client.at(&client.url),
        ..tenant
    };
    assert_eq!(
        claim_codes(&tenant).await.len(),
        3,
        "one key is enough again"
    );
    service.kill().await;
}

/// A kill after the new key was written, and before anything was sealed with it.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_rotation_leaves_no_empty_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut service, client) = serve(dir.path()).await;
    let tenant = Tenant::create(&client).await;
    tenant.claim_code().await;
    service.kill().await;
    let path = dir.path().join("master.key");
    let old = std::fs::read_to_string(&path).expect("the keys");
    std::fs::write(&path, format!("{}\n{old}", "5a".repeat(32))).expect("the keys");
    let keys = async || -> Vec<Value> {
        let (_, listed) = run(dir.path(), &["keys", "list", "--json"]).await;
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        listed["masterKeys"].as_array().expect("a list").clone()
    };
    let secrets = |keys: &[Value]| -> Vec<i64> {
        keys.iter()
            .filter_map(|key| key["secrets"].as_i64())
            .collect()
    };
    assert_eq!(secrets(&keys().await), [0, 2]);
    let (code, said) = run(dir.path(), &["keys", "rotate"]).await;
    assert!(
        code == Some(0) && said.contains("was interrupted"),
        "{said}"
    );
    let before = keys().await;
    assert_eq!(secrets(&before), [3, 0], "no third key");
    // A further rotation is one.
    let (code, said) = run(dir.path(), &["keys", "rotate"]).await;
    assert!(
        code == Some(0) && !said.contains("was interrupted"),
        "{said}"
    );
    let after = keys().await;
    assert_eq!(after.len(), 3);
    assert_eq!(after[1]["id"], before[0]["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn service_refuses_to_start_with_a_missing_or_wrong_master_key() {
    let (dir, other) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    for dir in [&dir, &other] {
        let (code, said) = run(dir.path(), &["migrate"]).await;
        assert_eq!(code, Some(0), "{said}");
    }
    let (key, kept) = (dir.path().join("master.key"), dir.path().join("kept"));
    std::fs::rename(&key, &kept).expect("the key is moved");
    let (code, said) = run(dir.path(), &["serve", "--listen", "127.0.0.1:0"]).await;
    assert!(
        code == Some(3) && said.contains("master.key is missing"),
        "{code:?} {said}"
    );
    assert!(!key.exists(), "no new key is made in its place");

    std::fs::copy(other.path().join("master.key"), &key).expect("another key is put there");
    let (code, said) = run(dir.path(), &["serve", "--listen", "127.0.0.1:0"]).await;
    assert!(
        code == Some(3) && said.contains("restore the missing key"),
        "{code:?} {said}"
    );

    std::fs::write(&key, "rubbish").expect("a file");
    let (code, said) = run(dir.path(), &["serve", "--listen", "127.0.0.1:0"]).await;
    assert!(
        code == Some(3) && said.contains("64 hex digits") && !said.contains("rubbish"),
        "{code:?} {said}"
    );

    std::fs::rename(&kept, &key).expect("the key comes back");
    let (mut service, _) = serve(dir.path()).await;
    service.kill().await;
}

/// Whoever can write to the database cannot move a secret to where it does something else.
#[tokio::test(flavor = "multi_thread")]
async fn sealed_secret_does_not_open_in_another_row() {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut service, client) = serve(dir.path()).await;
    let tenant = Tenant::create(&client).await;
    tenant.claim_code().await;
    tenant.claim_code().await;
    let database =
        rusqlite::Connection::open(dir.path().join("hub-cloud.sqlite")).expect("the database");
    let move_secret = "UPDATE claim_codes SET sealed_code = (SELECT sealed_code FROM claim_codes \
         ORDER BY code_hash LIMIT 1)";
    assert_eq!(database.execute(move_secret, []).expect("it is moved"), 2);
    let reply = tenant
        .client
        .get("/tenant/hubs/claim-codes")
        .call()
        .await
        .expect(500);
    assert!(!reply.body.contains("seal"), "{}", reply.body);
    service.kill().await;
}

on_each_database!(signing_keys_are_published_before_use_and_kept_until_their_tokens_expire);
async fn signing_keys_are_published_before_use_and_kept_until_their_tokens_expire(
    backend: Backend,
) {
    let (clock, micros) = set_clock(Timestamp::from_micros(1_800_000_000_000_000));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let kids = async || -> Vec<String> {
        let set: Value = app
            .client()
            .get("/.well-known/jwks.json")
            .call()
            .await
            .expect(200)
            .json();
        set["keys"]
            .as_array()
            .expect("keys")
            .iter()
            .map(|key| key["kid"].as_str().expect("kid").to_owned())
            .collect()
    };
    let rotate = async |at_once| {
        let keys = &app.app.parts().authn.keys;
        keys.rotate(&app.app.db, app.app.clock.now(), at_once)
            .await
            .expect("it rotates")
    };
    let pass = |secs: i64| micros.fetch_add(secs * 1_000_000, Ordering::SeqCst);
    let first = kids().await;
    assert!(!rotate(false).await, "it is new");
    assert!(
        rotate(true).await && !rotate(true).await,
        "one waits to sign already"
    );
    assert_eq!(kids().await.len(), 2);
    let kid_of_new_token = async || -> String {
        let token = Person::register(&app.client()).await.login.access_token;
        let header = token.split('.').next().expect("a header");
        let header =
            base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, header);
        let header: Value = serde_json::from_slice(&header.expect("base64")).expect("JSON");
        header["kid"].as_str().expect("kid").to_owned()
    };
    assert_eq!(
        kid_of_new_token().await,
        first[0],
        "the new one is only published"
    );
    pass(16 * 60);
    assert_ne!(kid_of_new_token().await, first[0]);
    // A hub that was offline presents its expired token, signed with the old key, and is accepted.
    pass(29 * 24 * 3600);
    rotate(false).await;
    assert_eq!(kids().await.len(), 2);
    let body = serde_json::json!({"refreshToken": hub.credentials.refresh_token});
    hub.client
        .post("/v1/hubs/refresh")
        .json(&body)
        .call()
        .await
        .expect(200);
    pass(2 * 24 * 3600);
    rotate(false).await;
    let left = kids().await;
    assert!(
        left.len() == 1 && left != first,
        "the old one is gone: {left:?}"
    );
    pass(90 * 24 * 3600);
    assert!(rotate(false).await, "after 90 days it replaces itself");
    let kept = async || -> i64 {
        let mut conn = app.app.db.read().await.expect("a connection");
        let count = sql("SELECT COUNT(*) FROM signing_keys");
        count.scalar(&mut conn).await.expect("a count")
    };
    assert_eq!(kept().await, 3, "hubs may still name themselves with it");
    pass(6 * 365 * 24 * 3600);
    rotate(false).await;
    pass(3600);
    rotate(false).await;
    assert_eq!(kept().await, 2, "not for ever");
}

/// A column that is sealed and not on the list would lose its secrets with the next key.
#[tokio::test(flavor = "multi_thread")]
async fn reseal_covers_every_sealed_column() {
    let app = TestApp::new(Backend::Sqlite).await;
    let database =
        rusqlite::Connection::open(app.sqlite_file().expect("a file")).expect("the database");
    let mut query = database
        .prepare(
            "SELECT m.name || '.' || c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c \
             WHERE m.type = 'table' AND c.name LIKE 'sealed%' ORDER BY 1",
        )
        .expect("a query");
    let found: Vec<String> = query
        .query_map([], |row| row.get(0))
        .expect("rows")
        .map(|name| name.expect("a name"))
        .collect();
    let mut listed = stored::columns();
    listed.sort();
    assert_eq!(found, listed);
}
