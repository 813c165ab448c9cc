//! Sessions of replicas in PostgreSQL: those of a stopped one hold up nobody.

use std::time::Duration;

use hub_base::db::{Db, sessions, sql};
use hub_tests::postgres::Database;
use hub_tests::{Backend, on_postgres};
use sqlx::Executor;
use sqlx_postgres::PgPoolCopyExt;

const TAKE: &str = "UPDATE pipeline_replicas SET beats = beats + 1";
/// A statement that is not blocked takes less.
const SOON: Duration = Duration::from_secs(2);

on_postgres!(locks_of_a_stopped_replica_are_released);
async fn locks_of_a_stopped_replica_are_released(_: Backend) {
    let database = Database::create().await;
    let open = || Db::open(&database.url).expect("a database");
    let (stopped, alive) = (open(), open());
    assert_ne!(stopped.replica_uuid(), alive.replica_uuid());
    let Db::Postgres { pool, .. } = &stopped else {
        panic!("not PostgreSQL");
    };
    pool.execute(
        "INSERT INTO pipeline_replicas (replica_uuid, beats, beaten_at) \
         VALUES ('00000000-0000-0000-0000-000000000001', 1, now())",
    )
    .await
    .expect("a row");
    // One session holds a lock, one waits for it, one is amid rows of which the rest never comes.
    let mut holder = stopped.begin().await.expect("a transaction");
    sql(TAKE).run(&mut holder).await.expect("a lock");
    let mut waiting = stopped.begin().await.expect("a transaction");
    let waiter = tokio::spawn(async move {
        // The lock may come before the end of the session: the holder's ends first.
        let _ = sql(TAKE).run(&mut waiting).await;
        waiting
    });
    let mut copying = pool
        .copy_in_raw("COPY pipeline_replicas FROM STDIN")
        .await
        .expect("rows may come");
    copying
        .send("00000000-0000-0000-0000-000000000002\t1\t".as_bytes())
        .await
        .expect("a part of a row");
    let mut other = alive.begin().await.expect("a transaction");
    let mut conn = alive.read().await.expect("a connection");
    let before = tokio::time::timeout(SOON, sql(TAKE).run(&mut other)).await;
    assert!(before.is_err(), "the row is locked");

    // The statement that timed out still waits in its session, which is this replica's own.
    let ended = sessions::end_stuck(&mut conn, stopped.replica_uuid()).await;
    assert_eq!(ended.expect("an answer"), 3);
    let mut third = alive.begin().await.expect("a transaction");
    drop(other);
    tokio::time::timeout(SOON, sql(TAKE).run(&mut third))
        .await
        .expect("the row is free")
        .expect("a lock");
    let waiting = waiter.await.expect("no panic");
    assert!(waiting.commit_unaudited("a test").await.is_err());
    assert!(holder.commit_unaudited("a test").await.is_err());
    assert!(copying.finish().await.is_err());

    // A session outside of a transaction holds nothing, and is left alone.
    let mut idle = stopped.read().await.expect("a connection");
    let of_idle = sessions::end_stuck(&mut conn, stopped.replica_uuid()).await;
    assert_eq!(of_idle.expect("an answer"), 0);
    let one: i64 = sql("SELECT COUNT(*) FROM pipeline_replicas")
        .scalar(&mut idle)
        .await
        .expect("the session goes on");
    assert_eq!(one, 1);
}

on_postgres!(what_a_busy_server_ends_may_be_tried_again);
async fn what_a_busy_server_ends_may_be_tried_again(_: Backend) {
    let database = Database::create().await;
    let db = Db::open(&database.url).expect("a database");
    let mut holder = db.begin().await.expect("a transaction");
    sql("LOCK TABLE pipeline_replicas")
        .run(&mut holder)
        .await
        .expect("a lock");

    // A lock that is not given in time, and a statement that takes too long.
    for limit in [
        "SET LOCAL lock_timeout = '50ms'",
        "SET LOCAL statement_timeout = '50ms'",
    ] {
        let mut tx = db.begin().await.expect("a transaction");
        sql(limit).run(&mut tx).await.expect("a limit");
        let error = sql(TAKE).run(&mut tx).await.expect_err("the lock is held");
        assert!(error.is_database_unavailable(), "{limit}: {error}");
        assert_eq!(error.status(), 503, "{limit}");
    }

    // A transaction of a process that got no turn for too long.
    sql("SET LOCAL idle_in_transaction_session_timeout = '50ms'")
        .run(&mut holder)
        .await
        .expect("a limit");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let error = sql(TAKE).run(&mut holder).await.expect_err("it was ended");
    assert!(error.is_database_unavailable(), "{error}");
}
