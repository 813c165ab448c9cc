//! Checks that PostgreSQL accepts the connections that replicas open.

use hub_base::db::{BACKGROUND_CONNECTIONS, Conn, sql};
use hub_base::error::Error;
use hub_core::config::Config;
use hub_protocol::check::Finding;

/// The connections that the server accepts, of all its clients together.
pub async fn accepted(conn: &mut Conn) -> Result<i64, Error> {
    sql("SELECT current_setting('max_connections')::bigint \
         - current_setting('superuser_reserved_connections')::bigint")
    .scalar(conn)
    .await
}

/// Whether that is enough for a replica and for another one, which a rolling restart may start
/// before the first has ended.
pub fn check(config: &Config, accepted: i64) -> Finding {
    let opened = i64::from(config.database_connections + BACKGROUND_CONNECTIONS);
    let replicas = accepted / opened;
    let finding = format!(
        "a replica opens up to {opened}, the server accepts {accepted} of all its clients: enough \
         for {replicas} at a time"
    );
    match replicas {
        0 | 1 => Finding::warn(
            "connections",
            finding,
            "set database-connections lower, or max_connections of PostgreSQL higher",
        ),
        _ => Finding::ok("connections", finding),
    }
}
