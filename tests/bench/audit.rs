//! *audit*: pages of an audit log of a million entries, most of them of one tenant, with every
//! combination of filters and with the count. The raw limit is the look-up of one entry by its
//! primary key.

use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_protocol::{TenantUuid, Timestamp};
use hub_tests::{Backend, Person, Tenant, TestApp};
use reqwest::header::AUTHORIZATION;
use uuid::Uuid;

use crate::wire::Connection;

const ENTRIES: usize = 1_000_000;
/// Of 100 entries this many belong to the large tenant; the others are spread over
/// [`SMALL_TENANTS`].
const GREAT_SHARE: usize = 70;
const SMALL_TENANTS: usize = 99;
const HUBS: usize = 5000;
const ROUNDS: usize = 30;
const WANTED: Duration = Duration::from_millis(20);

const COLUMNS: &str = "tenant_uuid, actor, actor_uuid, api_key_id, actor_name, actor_key, action, object_type, target, detail, before_state, \
    after_state, request_id, address, created_at";

struct Entry {
    tenant_uuid: Uuid,
    actor: &'static str,
    actor_uuid: Option<Uuid>,
    api_key_id: Option<i64>,
    actor_name: Option<&'static str>,
    actor_key: String,
    action: &'static str,
    target: String,
    created_at: Timestamp,
}

struct People {
    great: Uuid,
    small: Vec<Uuid>,
    /// Does a fifth of all that people do.
    busy_user: Uuid,
    users: Vec<Uuid>,
    hubs: Vec<Uuid>,
    first: Timestamp,
}

/// Does nearly all that keys do.
const BUSY_KEY: i64 = 1_000_000;

impl People {
    /// Hubs refresh, keys update hubs, people do a bit of everything; what is rare is rare.
    fn entry(&self, n: usize) -> Entry {
        // The same each time, and nothing to do with one another (SplitMix64).
        let at_random = |salt: usize, of: usize| {
            let mut bits = (n as u64 * 16 + salt as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            usize::try_from((bits ^ (bits >> 31)) % of as u64).expect("less than `of`")
        };
        let tenant_uuid = match at_random(1, 100) < GREAT_SHARE {
            true => self.great,
            false => self.small[at_random(2, SMALL_TENANTS)],
        };
        let hub_uuid = self.hubs[at_random(3, HUBS)];
        let created_at = self
            .first
            .plus_secs(i64::try_from(n).expect("a small number"));
        let entry = Entry {
            tenant_uuid,
            actor: "HUB",
            actor_uuid: Some(hub_uuid),
            api_key_id: None,
            actor_name: None,
            actor_key: format!("HUB:{hub_uuid}"),
            action: if at_random(4, 50) == 0 {
                "hub.claim"
            } else {
                "hub.refresh"
            },
            target: hub_uuid.to_string(),
            created_at,
        };
        match at_random(5, 100) {
            0..45 => entry,
            45..80 => {
                let user_uuid = if at_random(6, 5) == 0 {
                    self.busy_user
                } else {
                    self.users[at_random(7, self.users.len())]
                };
                let (action, target) = match at_random(8, 1000) {
                    0 => ("tenant.create", tenant_uuid.to_string()),
                    1..10 => ("api_key.create", at_random(9, 500).to_string()),
                    10..100 => ("member.grant", user_uuid.to_string()),
                    100..300 => (
                        "claim_code.create",
                        format!("{:04X}-****-****-****", at_random(10, 65536)),
                    ),
                    300..600 => ("hub.update", hub_uuid.to_string()),
                    _ => ("user.login", user_uuid.to_string()),
                };
                let actor_key = format!("USER:{user_uuid}");
                Entry {
                    actor: "USER",
                    actor_uuid: Some(user_uuid),
                    actor_key,
                    action,
                    target,
                    ..entry
                }
            }
            80..95 => {
                let api_key_id = if at_random(11, 20) == 0 { 1 } else { BUSY_KEY };
                let action = if at_random(12, 20_000) == 0 {
                    "claim_code.delete"
                } else {
                    "hub.update"
                };
                let actor_key = format!("API_KEY:{api_key_id}");
                Entry {
                    actor: "API_KEY",
                    actor_uuid: None,
                    api_key_id: Some(api_key_id),
                    actor_key,
                    action,
                    ..entry
                }
            }
            _ => {
                let name = "SIGNING_KEYS";
                let actor_key = format!("SYSTEM:{name}");
                Entry {
                    actor: "SYSTEM",
                    actor_uuid: None,
                    actor_name: Some(name),
                    actor_key,
                    action: "signing_key.create",
                    ..entry
                }
            }
        }
    }
}

const DETAIL: &str = r#"{"claimCode":"0000-****-****-****","again":false}"#;
const STATE: &str = r#"{"hubIdentifier":"hall 3","description":"the north wing, above the door"}"#;

pub async fn run(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let uuids = |count: usize| (0..count).map(|_| Uuid::new_v4()).collect::<Vec<_>>();
    let first = app
        .app
        .clock
        .now()
        .plus_secs(-i64::try_from(ENTRIES).expect("a small number"));
    let people = People {
        great: tenant.tenant_uuid.0,
        small: uuids(SMALL_TENANTS),
        busy_user: Uuid::new_v4(),
        users: uuids(200),
        hubs: uuids(HUBS),
        first,
    };
    let filled_in = Instant::now();
    match backend {
        Backend::Sqlite => tokio::task::block_in_place(|| fill_sqlite(&app, &people)),
        Backend::Postgres => fill_postgres(&app, &people).await,
    }
    println!(
        "audit {backend:?}: {ENTRIES} entries in {:.0} s",
        filled_in.elapsed().as_secs_f64()
    );

    let token = |client: &hub_tests::Client| {
        client.headers[AUTHORIZATION]
            .to_str()
            .expect("a token")
            .to_owned()
    };
    let (owner, admin) = (token(&tenant.client), token(&admin));
    let mut worst = Duration::ZERO;
    for (path, authorization, extra) in [
        ("/tenant/audit-logs", &owner, String::new()),
        ("/platform/audit-logs", &admin, String::new()),
        (
            "/platform/audit-logs",
            &admin,
            format!("&tenantUuid={}", people.small[0]),
        ),
    ] {
        println!(
            "  {path}{}",
            if extra.is_empty() {
                ""
            } else {
                ", one small tenant's"
            }
        );
        for filters in combinations(&people) {
            for paging in ["", "&size=100&page=49"] {
                let target = format!("{path}?{filters}{paging}{extra}");
                let request = request(&target, authorization, tenant.tenant_uuid);
                let (p50, p90) = measure(&app.url, &request).await;
                worst = worst.max(p90);
                // What is quick is not worth a line.
                if p90 * 4 > WANTED || paging.is_empty() && extra.is_empty() {
                    let mark = if p90 > WANTED { "  TOO SLOW" } else { "" };
                    println!("    {p50:>9.2?} {p90:>9.2?}  {filters}{paging}{mark}");
                }
            }
        }
    }
    let (p50, p90) = look_up(&app).await;
    println!(
        "audit {backend:?}: worst p90 {worst:.2?} (wanted: {WANTED:?}); a look-up by primary key p50 {p50:.2?}, p90 {p90:.2?}"
    );
}

/// Each filter alone and together with each other filter, contradictory and rare combinations
/// included.
fn combinations(people: &People) -> Vec<String> {
    let at = |part: i64| {
        people
            .first
            .plus_secs(part * i64::try_from(ENTRIES).expect("a small number") / 100)
    };
    let actors = [
        String::new(),
        "actorType=HUB".to_owned(),
        "actorType=SYSTEM".to_owned(),
        format!("actorUuid={}", people.hubs[7]),
        format!("actorUuid={}", people.busy_user),
        format!("actorUuid={}&actorType=HUB", people.busy_user),
        format!("apiKeyId={BUSY_KEY}"),
    ];
    let whats = [
        "",
        "action=hub.refresh",
        "action=hub.update",
        "action=claim_code.delete",
        "action=nothing.at_all",
        "objectType=hub",
        "objectType=tenant",
    ];
    let objects = [String::new(), format!("objectId={}", people.hubs[7])];
    let times = [String::new(), format!("from={}&to={}", at(40), at(60))];
    let mut all = Vec::new();
    for actor in &actors {
        for what in whats {
            for object in &objects {
                for time in &times {
                    let parts = [actor, what, object, time];
                    all.push(
                        parts
                            .into_iter()
                            .filter(|part| !part.is_empty())
                            .collect::<Vec<&str>>()
                            .join("&"),
                    );
                }
            }
        }
    }
    all
}

fn request(target: &str, authorization: &str, tenant_uuid: TenantUuid) -> Vec<u8> {
    format!(
        "GET {target} HTTP/1.1\r\nhost: bench\r\nauthorization: {authorization}\r\nx-tenant-uuid: {tenant_uuid}\r\n\r\n"
    )
    .into_bytes()
}

pub async fn measure(url: &str, request: &[u8]) -> (Duration, Duration) {
    let mut connection = Connection::open(url).await.expect("a connection");
    let mut times = Vec::new();
    for round in 0..ROUNDS + 3 {
        let sent_at = Instant::now();
        assert_eq!(
            connection.send(request).await.expect("an answer"),
            200,
            "{}",
            String::from_utf8_lossy(request)
        );
        // The first few find nothing in memory.
        if round >= 3 {
            times.push(sent_at.elapsed());
        }
    }
    percentiles(times)
}

async fn look_up(app: &TestApp) -> (Duration, Duration) {
    let mut times = Vec::new();
    for round in 0..1000_i64 {
        let asked_at = Instant::now();
        let mut conn = app.app.db.read().await.expect("a connection");
        let query =
            sql("SELECT action FROM audit_logs WHERE audit_log_id = $1").bind(round * 997 + 1);
        query
            .optional::<(String,)>(&mut conn)
            .await
            .expect("an answer");
        times.push(asked_at.elapsed());
    }
    percentiles(times)
}

pub fn percentiles(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    (times[times.len() / 2], times[times.len() * 9 / 10])
}

fn fill_sqlite(app: &TestApp, people: &People) {
    let mut db = rusqlite::Connection::open(app.sqlite_file().expect("a file"))
        .expect("the service's database");
    db.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    db.pragma_update(None, "cache_size", -500_000)
        .expect("room for the indexes");
    let tx = db.transaction().expect("a transaction");
    // Filled in order, an index of random keys is slow to grow; made at the end, it is the same.
    let indexes: Vec<(String, String)> = {
        let query = "SELECT name, sql FROM sqlite_master \
             WHERE type = 'index' AND tbl_name = 'audit_logs' AND sql IS NOT NULL";
        let mut indexes = tx.prepare(query).expect("a statement");
        let rows = indexes
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("the indexes");
        rows.collect::<Result<_, _>>().expect("the indexes")
    };
    for (name, _) in &indexes {
        tx.execute(&format!("DROP INDEX {name}"), [])
            .expect("it is dropped");
    }
    {
        let values =
            "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, 'a request', '192.0.2.1', ?12";
        let mut insert = tx
            .prepare(&format!(
                "INSERT INTO audit_logs ({COLUMNS}) VALUES ({values})"
            ))
            .expect("a statement");
        for entry in (0..ENTRIES).map(|n| people.entry(n)) {
            let object_type = entry.action.split('.').next();
            insert
                .execute(rusqlite::params![
                    entry.tenant_uuid.as_bytes(),
                    entry.actor,
                    entry.actor_uuid.map(|uuid| *uuid.as_bytes()),
                    entry.api_key_id,
                    entry.actor_name,
                    entry.actor_key,
                    entry.action,
                    object_type,
                    entry.target,
                    DETAIL,
                    STATE,
                    entry.created_at.to_string(),
                ])
                .expect("an entry");
        }
    }
    for (_, definition) in &indexes {
        tx.execute(definition, []).expect("it is made");
    }
    tx.commit().expect("a commit");
}

async fn fill_postgres(app: &TestApp, people: &People) {
    use secrecy::ExposeSecret;
    use sqlx::Connection;
    let url = app.app.config.database_url.expose_secret();
    let mut db = sqlx_postgres::PgConnection::connect(url)
        .await
        .expect("a connection");
    let indexes: Vec<(String, String)> = sqlx::query_as(
        "SELECT CAST(indexname AS TEXT), indexdef FROM pg_indexes \
         WHERE tablename = 'audit_logs' AND indexname <> 'audit_logs_pkey'",
    )
    .fetch_all(&mut db)
    .await
    .expect("the indexes");
    for (name, _) in &indexes {
        let drop = sqlx::AssertSqlSafe(format!("DROP INDEX {name}"));
        sqlx::query(drop)
            .execute(&mut db)
            .await
            .expect("it is dropped");
    }
    let entries: Vec<Entry> = (0..ENTRIES).map(|n| people.entry(n)).collect();
    for chunk in entries.chunks(10_000) {
        let statement = format!(
            "INSERT INTO audit_logs ({COLUMNS}) \
             SELECT t, a, u, k, n, y, c, split_part(c, '.', 1), o, \
             $9::text::jsonb, $10::text::jsonb, $10::text::jsonb, 'a request', '192.0.2.1', w \
             FROM UNNEST($1::uuid[], $2::text[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], \
             $7::text[], $8::text[], \
             $11::timestamptz[]) AS rows (t, a, u, k, n, y, c, o, w)"
        );
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(
                chunk
                    .iter()
                    .map(|entry| entry.tenant_uuid)
                    .collect::<Vec<_>>(),
            )
            .bind(chunk.iter().map(|entry| entry.actor).collect::<Vec<_>>())
            .bind(
                chunk
                    .iter()
                    .map(|entry| entry.actor_uuid)
                    .collect::<Vec<_>>(),
            )
            .bind(
                chunk
                    .iter()
                    .map(|entry| entry.api_key_id)
                    .collect::<Vec<_>>(),
            )
            .bind(
                chunk
                    .iter()
                    .map(|entry| entry.actor_name)
                    .collect::<Vec<_>>(),
            )
            .bind(
                chunk
                    .iter()
                    .map(|entry| entry.actor_key.as_str())
                    .collect::<Vec<_>>(),
            )
            .bind(chunk.iter().map(|entry| entry.action).collect::<Vec<_>>())
            .bind(
                chunk
                    .iter()
                    .map(|entry| entry.target.as_str())
                    .collect::<Vec<_>>(),
            )
            .bind(DETAIL)
            .bind(STATE)
            .bind(
                chunk
                    .iter()
                    .map(|entry| entry.created_at.to_datetime())
                    .collect::<Vec<_>>(),
            )
            .execute(&mut db)
            .await
            .expect("entries");
    }
    for (_, definition) in indexes {
        sqlx::query(sqlx::AssertSqlSafe(definition))
            .execute(&mut db)
            .await
            .expect("it is made");
    }
    // As the server itself does some time after so many inserts.
    sqlx::query("VACUUM ANALYZE audit_logs")
        .execute(&mut db)
        .await
        .expect("statistics");
}
