//! `hub-cloud move`: a service goes on after it, from SQLite to PostgreSQL and back; every value
//! of every table arrives; whoever is killed on the way leaves a target that continues or is
//! refused; and what must not be moved is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use hub_tests::archive::add_events;
use hub_tests::postgres::Database;
use hub_tests::process::{Process, program};
use hub_tests::receiver::Received;
use hub_tests::{
    Answer, Backend, Call, Client, Cloud, Receiver, SimulatedHub, Tenant, on_postgres,
};
use rand::RngExt;
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::{Connection, Executor};
use sqlx_postgres::PgConnection;
use tempfile::TempDir;
use tokio::process::Command;

use super::{every_table, stored_events};

/// As many as `HUB_TESTS_KILLS` says, half of them in each direction.
const KILLS: usize = 20;
/// Events that make a move take a while.
const EVENTS: i64 = 60_000;
const SOON: Duration = Duration::from_secs(60);
const ENDS_WITHIN: Duration = Duration::from_secs(240);

async fn command(arguments: &[&str]) -> Output {
    ended(Command::new(program("hub-cloud")).args(arguments)).await
}

async fn ended(command: &mut Command) -> Output {
    let output = command.kill_on_drop(true).output();
    let output = tokio::time::timeout(ENDS_WITHIN, output).await;
    output
        .unwrap_or_else(|_| panic!("{command:?} does not end"))
        .expect("it runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A data directory, and the databases that its service moves between.
struct Place {
    dir: TempDir,
    postgres: Database,
}

impl Place {
    async fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a directory"),
            postgres: Database::empty().await,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn sqlite(&self, name: &str) -> String {
        format!("sqlite:{}", self.file(name).display())
    }

    /// Runs `command` with this data directory.
    async fn run(&self, command_and_options: &[&str], database_url: &str) -> Output {
        let data_dir = self.dir.path().display().to_string();
        let settings = ["--data-dir", &data_dir, "--database-url", database_url];
        command(&[command_and_options, &settings[..]].concat()).await
    }

    /// Names the target in the environment, as it is done where it has a password.
    async fn moved(&self, from: &str, to: &str) -> (Option<i32>, String) {
        let mut command = Command::new(program("hub-cloud"));
        command
            .args(["move", "--database-url", from, "--data-dir"])
            .arg(self.dir.path())
            .env("HUB_CLOUD_MOVE_TO", to);
        let output = ended(&mut command).await;
        (output.status.code(), text(&output))
    }

    /// An SQLite database with the schema, and nothing but keys in it.
    async fn create(&self, name: &str) -> String {
        let url = self.sqlite(name);
        let output = self.run(&["migrate"], &url).await;
        assert!(output.status.success(), "{}", text(&output));
        url
    }

    /// The same with a tenant, a hub and many events.
    async fn fill(&self, name: &str, events: i64) -> String {
        let url = self.sqlite(name);
        let data_dir = self.dir.path().display().to_string();
        let mut service = Process::start(
            "hub-cloud",
            &[
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--data-dir",
                &data_dir,
                "--database-url",
                &url,
            ],
            &[],
        );
        let tenant = Tenant::create(&Client::new(&service.url().await)).await;
        SimulatedHub::claim(&tenant).await.upload_events(1).await;
        service.signal(Signal::TERM);
        service.ended().await;
        add_events(&self.file(name), events, 1).await;
        url
    }
}

async fn postgres(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("the database")
}

/// Batches of events, and the sum of their ids.
async fn events_in(url: &str) -> (i64, i64) {
    let query = "SELECT COUNT(*), CAST(SUM(first_id % 1000003) AS BIGINT) FROM ble_batches";
    match url.strip_prefix("sqlite:") {
        Some(file) => rusqlite::Connection::open(file)
            .expect("the database")
            .query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("the sums"),
        None => sqlx::query_as(query)
            .fetch_one(&mut postgres(url).await)
            .await
            .expect("the sums"),
    }
}

on_postgres!(hubs_and_pipelines_go_on_after_a_move_and_a_move_back);
async fn hubs_and_pipelines_go_on_after_a_move_and_a_move_back(_: Backend) {
    let mut cloud = Cloud::start(Backend::Sqlite, &["--allow-private-targets"]).await;
    let place = Place::new().await;
    let data_dir = cloud.data_dir().display().to_string();
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let mut hub = SimulatedHub::claim(&tenant).await;
    let receiver = Receiver::start().await;
    let body = json!({"name": "a pipeline", "source": {}, "steps": [],
        "destination": {"kind": "HTTP", "url": format!("{}/in", receiver.url)}});
    let created = tenant.client.post("/tenant/data-pipelines").json(&body);
    created.call().await.expect(201);

    hub.upload_events(5).await;
    receiver.until(SOON, |all| ids(all).len() == 5).await;
    let mut accepted = ids(&receiver.take());
    // Events that wait for their receiver when the service is stopped.
    receiver.answer(|_| Answer::now(503));
    hub.upload_events(5).await;
    receiver.until(SOON, |all| !all.is_empty()).await;

    let mut database = format!("sqlite:{data_dir}/hub-cloud.sqlite");
    for (count, target) in [
        (15, place.postgres.url.clone()),
        (20, place.sqlite("back.sqlite")),
    ] {
        let before = received_events(&tenant.client).await;
        cloud.stop().await;
        receiver.take();
        receiver.answer(|_| Answer::now(204));
        let settings = ["--data-dir", &data_dir, "--database-url", &database];
        let output = command(&[&["move", "--to", &target], &settings[..]].concat()).await;
        assert!(output.status.success(), "{}", text(&output));
        cloud.start_with_database(&target).await;

        assert_eq!(received_events(&tenant.client).await, before);
        hub.refresh().await;
        hub.upload_events(5).await;
        let all = |new: &[Received]| accepted.len() + ids(new).len() >= count;
        receiver.until(SOON, all).await;
        accepted.extend(ids(&receiver.take()));
        // Rows of tables whose ids the database issues.
        SimulatedHub::claim(&tenant).await;
        database = target;
    }
    let stored = stored_events(&tenant.client).await;
    let stored: Vec<i64> = stored
        .iter()
        .filter_map(|event| event["bleEventId"].as_i64())
        .collect();
    assert_eq!(accepted, stored, "each event once, and in order");
}

/// The events without how far pipelines are with them.
async fn received_events(tenant: &Client) -> Vec<Value> {
    let mut events = stored_events(tenant).await;
    for event in events.iter_mut().filter_map(Value::as_object_mut) {
        event.remove("deliveryStatus");
    }
    events
}

fn ids(all: &[Received]) -> Vec<i64> {
    all.iter().flat_map(Received::event_ids).collect()
}

/// Ids that SQLite issued, by table.
fn issued(file: &Path) -> BTreeMap<String, i64> {
    let ids = pairs(file, "SELECT name, seq FROM sqlite_sequence");
    ids.into_iter().collect()
}

/// Names and definitions of everything in the schema.
fn schema(file: &Path) -> BTreeSet<(String, Option<String>)> {
    let definitions = pairs(file, "SELECT name, sql FROM sqlite_schema");
    definitions.into_iter().collect()
}

/// Names, and what the query has for each of them.
fn pairs<T: rusqlite::types::FromSql>(file: &Path, query: &str) -> Vec<(String, T)> {
    let db = rusqlite::Connection::open(file).expect("the database");
    let mut statement = db.prepare(query).expect("a query");
    statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("rows")
        .collect::<Result<_, _>>()
        .expect("names")
}

on_postgres!(every_value_of_every_table_arrives_and_comes_back);
async fn every_value_of_every_table_arrives_and_comes_back(_: Backend) {
    let place = Place::new().await;
    let template = Database::create().await;
    let tables = every_table::tables(&mut postgres(&template.url).await).await;
    let from = place.create("from.sqlite").await;
    let file = place.file("from.sqlite");
    every_table::fill(&file, &tables);
    // The id of a row that is gone is not given to another one.
    rusqlite::Connection::open(&file)
        .expect("the database")
        .execute(
            "DELETE FROM notices WHERE notice_id = (SELECT MAX(notice_id) FROM notices)",
            [],
        )
        .expect("a row less");

    let (code, text) = place.moved(&from, &place.postgres.url).await;
    assert_eq!(code, Some(0), "{text}");
    let back = place.sqlite("back.sqlite");
    let (code, text) = place.moved(&place.postgres.url, &back).await;
    assert_eq!(code, Some(0), "{text}");

    let returned = place.file("back.sqlite");
    for (table, columns) in &tables {
        assert_eq!(
            every_table::dump(&file, table, columns),
            every_table::dump(&returned, table, columns),
            "{table}"
        );
    }
    assert_eq!(schema(&file), schema(&returned));
    assert_eq!(issued(&file), issued(&returned));
    // So does what PostgreSQL has beside the rows.
    let indexes = "SELECT indexname::text, indexdef FROM pg_indexes \
         WHERE schemaname = 'public' AND tablename NOT LIKE '%\\_20__\\___' ORDER BY 1";
    let mut moved = postgres(&place.postgres.url).await;
    let mut created = postgres(&template.url).await;
    let of_moved: Vec<(String, String)> = sqlx::query_as(indexes)
        .fetch_all(&mut moved)
        .await
        .expect("indexes");
    let of_created: Vec<(String, String)> = sqlx::query_as(indexes)
        .fetch_all(&mut created)
        .await
        .expect("indexes");
    assert_eq!(of_moved, of_created);
}

/// Kills the command at some moment; returns whether it had ended before.
async fn kill_once(place: &Place, from: &str, to: &str, within: Duration) -> bool {
    let data_dir = place.dir.path().display().to_string();
    let arguments = [
        "move",
        "--data-dir",
        &data_dir,
        "--database-url",
        from,
        "--to",
        to,
    ];
    let mut process = Process::start("hub-cloud", &arguments, &[]);
    let ended = tokio::time::timeout(within, process.ended()).await;
    if let Ok(code) = ended {
        assert_eq!(code, Some(0), "{}", process.last_lines());
        return true;
    }
    process.kill().await;
    false
}

on_postgres!(a_move_that_is_killed_continues_and_is_refused_until_it_ends);
async fn a_move_that_is_killed_continues_and_is_refused_until_it_ends(_: Backend) {
    let kills = std::env::var("HUB_TESTS_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(KILLS);
    let place = Place::new().await;
    let mut source = place.fill("from.sqlite", EVENTS).await;
    let expected = events_in(&source).await;
    let mut databases = Vec::new();
    for is_there in [true, false] {
        // How long a move takes on this machine.
        let began = Instant::now();
        move_whole(
            &place,
            &source,
            &new_target(&place, &mut databases, is_there).await,
        )
        .await;
        let whole = began.elapsed();
        let mut target = new_target(&place, &mut databases, is_there).await;
        let (mut killed, mut refused, mut ended) = (0, 0, 0);
        let mut is_continued = false;
        while killed < kills / 2 {
            // The last kills come late, when there is little left to do.
            let within = whole.mul_f64(rand::rng().random_range(0.02..0.4));
            let is_ended = kill_once(&place, &source, &target, within).await;
            // A kill may come between the end of the move and that of the process.
            if is_ended || (begun(&target).await.is_none() && has_schema(&target).await) {
                assert_eq!(events_in(&target).await, expected);
                target = new_target(&place, &mut databases, is_there).await;
                is_continued = false;
                ended += 1;
                continue;
            }
            killed += 1;
            if let Some(has_source) = begun(&target).await {
                let output = place
                    .run(&["serve", "--listen", "127.0.0.1:0"], &target)
                    .await;
                assert_eq!(output.status.code(), Some(3), "{}", self::text(&output));
                let said = self::text(&output);
                assert!(
                    said.contains("target of a move that has not ended"),
                    "{said}"
                );
                refused += 1;
                is_continued = has_source;
            }
        }
        let text = move_whole(&place, &source, &target).await;
        assert_eq!(text.contains("continuing the move"), is_continued, "{text}");
        assert_eq!(events_in(&target).await, expected);
        let output = place.run(&["admin", "list"], &target).await;
        assert!(output.status.success(), "{}", self::text(&output));
        println!("{killed} kills: {refused} times refused; {ended} moves ended before a kill");
        assert!(refused > 0, "no kill came in time");
        source = target;
    }
}

async fn move_whole(place: &Place, from: &str, to: &str) -> String {
    let (code, text) = place.moved(from, to).await;
    assert_eq!(code, Some(0), "{text}");
    text
}

/// A database that nothing was moved to: of PostgreSQL on the way there, of SQLite on the way back.
async fn new_target(place: &Place, databases: &mut Vec<Database>, is_there: bool) -> String {
    if is_there {
        let database = Database::empty().await;
        let url = database.url.clone();
        databases.push(database);
        return url;
    }
    place.sqlite(&format!("{}.sqlite", uuid::Uuid::now_v7()))
}

/// Whether the target notes whose move it is of; None if it does not say that it is one.
async fn begun(url: &str) -> Option<bool> {
    let sources = "SELECT COUNT(*) FROM unfinished_move WHERE kind = 'source'";
    Some(count(url, sources).await? > 0)
}

/// Whether the target has the tables of the service, which come after the note of the move.
async fn has_schema(url: &str) -> bool {
    count(url, "SELECT COUNT(*) FROM tenants").await.is_some()
}

/// What the query counts; None if the database or its table is not there.
async fn count(url: &str, query: &'static str) -> Option<i64> {
    match url.strip_prefix("sqlite:") {
        Some(file) => {
            let is_there = Path::new(file).exists();
            let db = is_there.then(|| rusqlite::Connection::open(file).expect("the database"));
            db?.query_row(query, [], |row| row.get(0)).ok()
        }
        None => sqlx::query_scalar(query)
            .fetch_one(&mut postgres(url).await)
            .await
            .ok(),
    }
}

/// A target whose move was killed once events had arrived.
async fn unfinished(place: &Place, from: &str) {
    let data_dir = place.dir.path().display().to_string();
    let arguments = [
        "move",
        "--data-dir",
        &data_dir,
        "--database-url",
        from,
        "--to",
        &place.postgres.url,
    ];
    let mut process = Process::start("hub-cloud", &arguments, &[]);
    let began = Instant::now();
    let mut target = postgres(&place.postgres.url).await;
    loop {
        let found = sqlx::query("SELECT 1 FROM ble_batches LIMIT 1")
            .fetch_optional(&mut target)
            .await;
        if matches!(found, Ok(Some(_))) {
            break;
        }
        assert!(began.elapsed() < SOON, "{}", process.last_lines());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    process.kill().await;
    assert!(
        begun(&place.postgres.url).await.is_some(),
        "it had ended before"
    );
}

on_postgres!(a_row_that_differs_is_found);
async fn a_row_that_differs_is_found(_: Backend) {
    let place = Place::new().await;
    let from = place.fill("from.sqlite", EVENTS).await;
    unfinished(&place, &from).await;
    let mut target = postgres(&place.postgres.url).await;
    let id: (i64,) = sqlx::query_as(
        "UPDATE ble_batches SET bytes = bytes + 1 \
         WHERE first_id = (SELECT MIN(first_id) FROM ble_batches) RETURNING first_id",
    )
    .fetch_one(&mut target)
    .await
    .expect("an event");
    let (code, text) = place.moved(&from, &place.postgres.url).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("differ in ble_batches: bytes of the row with")
            && text.contains(&format!("first_id {}", id.0)),
        "{text}"
    );
    assert!(begun(&place.postgres.url).await.is_some());
}

on_postgres!(what_must_not_be_moved_is_refused);
async fn what_must_not_be_moved_is_refused(_: Backend) {
    let place = Place::new().await;
    let from = place.create("from.sqlite").await;
    let expect = async |from: &str, to: &str, code: i32, words: &str| {
        let (found, text) = place.moved(from, to).await;
        assert!(
            found == Some(code) && text.contains(words),
            "{found:?} {text}"
        );
    };

    // Targets that are in use, of a newer version, of the same kind or of none.
    let full = Database::create().await;
    expect(&from, &full.url, 1, "needs an empty one").await;
    let newer = Database::create().await;
    let mut conn = postgres(&newer.url).await;
    let version = "INSERT INTO _sqlx_migrations (version, description, success, checksum, \
         execution_time) VALUES (9999, 'later', TRUE, '\\x00', 0)";
    conn.execute(version).await.expect("a version");
    expect(&from, &newer.url, 1, "a newer version of hub-cloud").await;
    expect(
        &from,
        &place.sqlite("other.sqlite"),
        1,
        "both databases are SQLite",
    )
    .await;
    expect(&from, "mysql://127.0.0.1/hub", 2, "--to must be").await;

    // Sources that a service uses, or that are no database.
    let missing = place.sqlite("missing.sqlite");
    expect(
        &missing,
        &place.postgres.url,
        1,
        "there is no hub-cloud database",
    )
    .await;
    let served = Cloud::start(Backend::Sqlite, &[]).await;
    let file = served.data_dir().join("hub-cloud.sqlite");
    let url = format!("sqlite:{}", file.display());
    expect(
        &url,
        &place.postgres.url,
        1,
        "another hub-cloud is running on",
    )
    .await;
    drop(served);
    // A command that is not a service, and holds no lock.
    let reader = rusqlite::Connection::open(place.file("from.sqlite")).expect("the database");
    reader
        .pragma_query(None, "user_version", |_| Ok(()))
        .expect("it is open");
    expect(
        &from,
        &place.postgres.url,
        75,
        "is in use by another process",
    )
    .await;
    drop(reader);
    let used = Database::create().await;
    let settings = ["--database-url", &used.url];
    let served = Cloud::start(Backend::Sqlite, &settings).await;
    expect(&used.url, &missing, 75, "is in use by hub-cloud ").await;
    drop(served);

    // A move of another source, and one whose source was used since.
    let filled = place.fill("filled.sqlite", EVENTS).await;
    unfinished(&place, &filled).await;
    expect(
        &from,
        &place.postgres.url,
        1,
        "unfinished move of another database",
    )
    .await;
    place.fill("filled.sqlite", 1).await;
    expect(
        &filled,
        &place.postgres.url,
        1,
        "has been used since that move began",
    )
    .await;
}

on_postgres!(nobody_starts_on_a_source_while_it_is_moved);
async fn nobody_starts_on_a_source_while_it_is_moved(_: Backend) {
    let place = Place::new().await;
    let from = place.fill("from.sqlite", EVENTS).await;
    let data_dir = place.dir.path().display().to_string();
    let arguments = [
        "move",
        "--data-dir",
        &data_dir,
        "--database-url",
        &from,
        "--to",
        &place.postgres.url,
    ];
    let mut process = Process::start("hub-cloud", &arguments, &[]);
    let began = Instant::now();
    while begun(&place.postgres.url).await.is_none() {
        assert!(began.elapsed() < SOON, "{}", process.last_lines());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // It is still at it when the service gives up.
    process.signal(Signal::STOP);
    let output = place
        .run(&["serve", "--listen", "127.0.0.1:0"], &from)
        .await;
    let said = text(&output);
    assert!(
        !output.status.success() && said.contains("another hub-cloud is running on"),
        "{:?} {said}",
        output.status
    );
    process.kill().await;
}
