//! What in the database is sealed, and with which master keys: looked at before the service starts, and sealed anew when a key is replaced. Works
//! beside a service that serves.

use hub_protocol::Timestamp;
use uuid::Uuid;

use super::{OpenError, PREFIX_BYTES, Sealer};
use crate::db::{Arg, Conn, Db, sql};
use crate::error::{Error, Result};

/// A column of sealed secrets. A new one joins the list, or a replaced key could not be given up.
struct Column {
    table: &'static str,
    key: &'static str,
    key_type: KeyType,
    column: &'static str,
    purpose: &'static str,
}

#[derive(Clone, Copy)]
enum KeyType {
    Text,
    Bytes,
    Uuid,
}

pub const CLAIM_CODE: &str = "claim-code";
pub const SIGNING_KEY: &str = "signing-key";
pub const MAIL: &str = "mail";
pub const CERTIFICATE_AUTHORITY: &str = "certificate-authority";

const COLUMNS: [Column; 4] = [
    Column {
        table: "signing_keys",
        key: "kid",
        key_type: KeyType::Text,
        column: "sealed_private_key",
        purpose: SIGNING_KEY,
    },
    Column {
        table: "claim_codes",
        key: "code_hash",
        key_type: KeyType::Bytes,
        column: "sealed_code",
        purpose: CLAIM_CODE,
    },
    Column { table: "mails", key: "mail_uuid", key_type: KeyType::Uuid, column: "sealed_mail", purpose: MAIL },
    Column {
        table: "certificate_authorities",
        key: "authority_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_private_key",
        purpose: CERTIFICATE_AUTHORITY,
    },
];

/// `table.column` of all that is sealed.
pub fn columns() -> Vec<String> {
    COLUMNS.iter().map(|column| format!("{}.{}", column.table, column.column)).collect()
}

/// Rows looked at in one go.
const CHUNK: i64 = 200;

/// The ids of the keys this database was ever sealed with and not freed from.
pub async fn registered(conn: &mut Conn) -> Result<Vec<String>> {
    let ids: Vec<(String,)> = sql("SELECT key_id FROM sealing_keys ORDER BY created_at, key_id").all(conn).await?;
    Ok(ids.into_iter().map(|(id,)| id).collect())
}

/// Whether anything was sealed before keys were registered.
pub async fn holds_unregistered(conn: &mut Conn) -> Result<bool> {
    let found: Option<(String,)> = sql("SELECT kid FROM signing_keys LIMIT 1").optional(conn).await?;
    Ok(found.is_some() && registered(conn).await?.is_empty())
}

/// Notes that the database may hold secrets sealed with this key.
pub async fn register(db: &Db, key_id: &str, now: Timestamp) -> Result<()> {
    let mut tx = db.begin().await?;
    sql("INSERT INTO sealing_keys (key_id, created_at) VALUES ($1, $2) ON CONFLICT (key_id) DO NOTHING")
        .bind(key_id)
        .bind(now)
        .execute(&mut tx)
        .await?;
    tx.commit_unaudited("which key seals").await
}

/// Forgets a key nothing is sealed with.
pub async fn unregister(db: &Db, key_id: &str) -> Result<()> {
    let mut tx = db.begin().await?;
    sql("DELETE FROM sealing_keys WHERE key_id = $1").bind(key_id).execute(&mut tx).await?;
    tx.commit_unaudited("which keys seal").await
}

/// How many secrets are sealed with the key.
pub async fn count_sealed_with(conn: &mut Conn, key_id: &str) -> Result<i64> {
    let mut prefix = vec![super::FORMAT];
    prefix.extend(hex::decode(key_id).map_err(Error::internal)?);
    let mut total = 0;
    for Column { table, column, .. } in COLUMNS {
        let (count,): (i64,) =
            sql(&format!("SELECT COUNT(*) FROM {table} WHERE substr({column}, 1, {PREFIX_BYTES}) = $1"))
                .bind(prefix.clone())
                .one(conn)
                .await?;
        total += count;
    }
    Ok(total)
}

/// Seals everything anew that was not sealed with the key that seals now; answers how much that was. `progress` is told after each chunk.
/// What a service changes meanwhile is left as it is and found by the next round; one that is cut off goes on when it is run again.
pub async fn reseal(db: &Db, sealer: &Sealer, mut progress: impl FnMut(u64)) -> Result<u64> {
    let mut done = 0;
    for column in &COLUMNS {
        loop {
            let resealed = reseal_chunk(db, sealer, column).await?;
            if resealed == 0 {
                break;
            }
            done += resealed;
            progress(done);
        }
    }
    Ok(done)
}

async fn reseal_chunk(db: &Db, sealer: &Sealer, column: &Column) -> Result<u64> {
    let Column { table, key, column: name, purpose, .. } = column;
    let mut tx = db.begin().await?;
    let query =
        sql(&format!("SELECT {key}, {name} FROM {table} WHERE substr({name}, 1, {PREFIX_BYTES}) <> $1 LIMIT {CHUNK}"))
            .bind(sealer.prefix())
            .push(tx.dialect().for_update());
    let rows: Vec<(Arg, String, Vec<u8>)> = match column.key_type {
        KeyType::Text => {
            let rows: Vec<(String, Vec<u8>)> = query.all(&mut tx).await?;
            rows.into_iter().map(|(key, sealed)| (Arg::from(key.clone()), key, sealed)).collect()
        }
        KeyType::Bytes => {
            let rows: Vec<(Vec<u8>, Vec<u8>)> = query.all(&mut tx).await?;
            rows.into_iter().map(|(key, sealed)| (Arg::from(key.clone()), row_of_bytes(&key), sealed)).collect()
        }
        KeyType::Uuid => {
            let rows: Vec<(Uuid, Vec<u8>)> = query.all(&mut tx).await?;
            rows.into_iter().map(|(key, sealed)| (Arg::from(key), key.to_string(), sealed)).collect()
        }
    };
    let count = rows.len() as u64;
    for (key_value, row, sealed) in rows {
        let secret = sealer.open(purpose, &row, &sealed).map_err(|OpenError| {
            Error::internal(format!("{table}.{name}, row {row}: it was changed, or its key is missing"))
        })?;
        sql(&format!("UPDATE {table} SET {name} = $1 WHERE {key} = $2"))
            .bind(sealer.seal(purpose, &row, &secret))
            .bind(key_value)
            .execute(&mut tx)
            .await?;
    }
    tx.commit_unaudited("the same secrets under another key").await?;
    Ok(count)
}

/// How a row whose key is bytes is named when its secret is sealed.
pub fn row_of_bytes(key: &[u8]) -> String {
    hex::encode(key)
}
