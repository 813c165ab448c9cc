//! The sealed secrets in the database and the master keys they are sealed with. They are checked
//! before the service starts and sealed again when a key is replaced, also while the service runs.

use hub_protocol::Timestamp;
use uuid::Uuid;

use super::{OpenError, Sealer};
use crate::db::{Arg, Conn, Db, Tx, sql};
use crate::error::{Error, Result};

/// A column of sealed secrets. Every such column must be listed, or a replaced key would still be
/// needed.
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
    Int,
}

pub const CLAIM_CODE: &str = "claim-code";
pub const SIGNING_KEY: &str = "signing-key";
pub const MAIL: &str = "mail";
pub const CERTIFICATE_AUTHORITY: &str = "certificate-authority";
pub const DEVICE_BIND_KEY: &str = "device-bind-key";
pub const DEVICE_IDENTITY_RESOLVING_KEY: &str = "device-identity-resolving-key";
pub const PIPELINE_SIGNING_SECRET: &str = "pipeline-signing-secret";
pub const PIPELINE_PREVIOUS_SECRET: &str = "pipeline-previous-secret";
pub const MANDATE_SIGNING_SECRET: &str = "mandate-signing-secret";
pub const PIPELINE_AUTH: &str = "pipeline-auth";
pub const EXTERNAL_ENDPOINT_AUTH: &str = "external-endpoint-auth";
pub const SUPPLIER_CLIENT_SECRET: &str = "supplier-client-secret";
pub const SUPPLIER_REGISTRATION_SECRET: &str = "supplier-registration-secret";
pub const SUPPLIER_LINK_VERIFIER: &str = "supplier-link-verifier";
pub const SECOND_FACTOR_SECRET: &str = "second-factor-secret";
pub const SUPPLIER_LINK_CODE: &str = "supplier-link-code";
pub const SUPPLIER_ACCESS_TOKEN: &str = "supplier-access-token";
pub const SUPPLIER_REFRESH_TOKEN: &str = "supplier-refresh-token";
pub const DEPENDENCY_TRACK_API_KEY: &str = "dependency-track-api-key";
pub const MOVE_CLAIM_CODE: &str = "move-claim-code";

const COLUMNS: [Column; 22] = [
    Column {
        table: "external_endpoints",
        key: "external_endpoint_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_auth",
        purpose: EXTERNAL_ENDPOINT_AUTH,
    },
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
    Column {
        table: "mails",
        key: "mail_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_mail",
        purpose: MAIL,
    },
    Column {
        table: "certificate_authorities",
        key: "authority_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_private_key",
        purpose: CERTIFICATE_AUTHORITY,
    },
    Column {
        table: "device_instances",
        key: "device_instance_id",
        key_type: KeyType::Int,
        column: "sealed_bind_key",
        purpose: DEVICE_BIND_KEY,
    },
    Column {
        table: "device_instances",
        key: "device_instance_id",
        key_type: KeyType::Int,
        column: "sealed_identity_resolving_key",
        purpose: DEVICE_IDENTITY_RESOLVING_KEY,
    },
    Column {
        table: "pipelines",
        key: "pipeline_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_signing_secret",
        purpose: PIPELINE_SIGNING_SECRET,
    },
    Column {
        table: "pipelines",
        key: "pipeline_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_previous_secret",
        purpose: PIPELINE_PREVIOUS_SECRET,
    },
    Column {
        table: "mandates",
        key: "mandate_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_signing_secret",
        purpose: MANDATE_SIGNING_SECRET,
    },
    Column {
        table: "pipeline_revisions",
        key: "revision_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_auth",
        purpose: PIPELINE_AUTH,
    },
    Column {
        table: "supplier_oauth_configs",
        key: "tenant_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_client_secret",
        purpose: SUPPLIER_CLIENT_SECRET,
    },
    Column {
        table: "supplier_oauth_configs",
        key: "tenant_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_registration_secret",
        purpose: SUPPLIER_REGISTRATION_SECRET,
    },
    Column {
        table: "supplier_oauth_changes",
        key: "change_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_client_secret",
        purpose: SUPPLIER_CLIENT_SECRET,
    },
    Column {
        table: "supplier_oauth_changes",
        key: "change_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_registration_secret",
        purpose: SUPPLIER_REGISTRATION_SECRET,
    },
    Column {
        table: "second_factors",
        key: "user_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_secret",
        purpose: SECOND_FACTOR_SECRET,
    },
    Column {
        table: "supplier_link_attempts",
        key: "attempt_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_verifier",
        purpose: SUPPLIER_LINK_VERIFIER,
    },
    Column {
        table: "supplier_link_attempts",
        key: "attempt_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_code",
        purpose: SUPPLIER_LINK_CODE,
    },
    Column {
        table: "supplier_links",
        key: "link_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_access_token",
        purpose: SUPPLIER_ACCESS_TOKEN,
    },
    Column {
        table: "supplier_links",
        key: "link_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_refresh_token",
        purpose: SUPPLIER_REFRESH_TOKEN,
    },
    Column {
        table: "dependency_track_servers",
        key: "tenant_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_api_key",
        purpose: DEPENDENCY_TRACK_API_KEY,
    },
    Column {
        table: "hub_jobs",
        key: "hub_job_uuid",
        key_type: KeyType::Uuid,
        column: "sealed_claim_code",
        purpose: MOVE_CLAIM_CODE,
    },
];

/// The name `table.column` of every sealed column.
pub fn columns() -> Vec<String> {
    COLUMNS
        .iter()
        .map(|column| format!("{}.{}", column.table, column.column))
        .collect()
}

/// The bytes of a sealed secret that name its key.
const PREFIX_BYTES: i64 = super::PREFIX_BYTES as i64;
/// Rows read in one transaction.
const CHUNK: i64 = 200;

/// The ids of the keys that secrets in this database may be sealed with.
pub async fn registered(conn: &mut Conn) -> Result<Vec<String>> {
    sql("SELECT key_id FROM sealing_keys ORDER BY created_at, key_id")
        .scalars(conn)
        .await
}

/// Whether anything was sealed before keys were registered.
pub async fn holds_unregistered(conn: &mut Conn) -> Result<bool> {
    Ok(sql("SELECT kid FROM signing_keys LIMIT 1")
        .exists(conn)
        .await?
        && registered(conn).await?.is_empty())
}

/// Registers that the database may hold secrets sealed with this key.
pub async fn register(db: &Db, key_id: &str, now: Timestamp) -> Result<()> {
    let mut tx = db.begin().await?;
    sql(
        "INSERT INTO sealing_keys (key_id, created_at) VALUES ($1, $2) \
         ON CONFLICT (key_id) DO NOTHING",
    )
    .bind((key_id, now))
    .execute(&mut tx)
    .await?;
    tx.commit_unaudited("registers a sealing key").await
}

/// Locks the creation of certificate authorities and signing keys until the transaction ends.
pub async fn lock(tx: &mut Tx) -> Result<()> {
    sql("SELECT key_id FROM sealing_keys ORDER BY key_id")
        .for_update(tx)
        .run(tx)
        .await
}

/// Removes a key that nothing is sealed with.
pub async fn unregister(db: &Db, key_id: &str) -> Result<()> {
    let mut tx = db.begin().await?;
    sql("DELETE FROM sealing_keys WHERE key_id = $1")
        .bind(key_id)
        .execute(&mut tx)
        .await?;
    tx.commit_unaudited("unregisters a sealing key").await
}

/// How many secrets are sealed with the key.
pub async fn count_sealed_with(conn: &mut Conn, key_id: &str) -> Result<i64> {
    let mut prefix = vec![super::FORMAT];
    prefix.extend(hex::decode(key_id).map_err(Error::internal)?);
    let mut total = 0;
    for Column { table, column, .. } in COLUMNS {
        let count: i64 = sql("SELECT COUNT(*) FROM ")
            .push(table)
            .push(" WHERE substr(")
            .push(column)
            .push(", 1, ")
            .push_number(PREFIX_BYTES)
            .push(") = $1")
            .bind(prefix.clone())
            .scalar(conn)
            .await?;
        total += count;
    }
    Ok(total)
}

/// Reseals every secret that another key sealed with the current key, and returns how many. Calls
/// `progress` after each chunk. Rows that the service changes meanwhile are found by the next
/// chunk. An interrupted run continues when it is started again.
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
    let Column {
        table,
        key,
        column: name,
        purpose,
        ..
    } = column;
    let mut tx = db.begin().await?;
    let query = sql("SELECT ")
        .push(key)
        .push(", ")
        .push(name)
        .push(" FROM ")
        .push(table)
        .push(" WHERE substr(")
        .push(name)
        .push(", 1, ")
        .push_number(PREFIX_BYTES)
        .push(") <> $1 LIMIT $2")
        .bind((sealer.prefix(), CHUNK))
        .for_update(&tx);
    let rows: Vec<(Arg, String, Vec<u8>)> = match column.key_type {
        KeyType::Text => {
            let rows: Vec<(String, Vec<u8>)> = query.all(&mut tx).await?;
            rows.into_iter()
                .map(|(key, sealed)| (Arg::from(key.clone()), key, sealed))
                .collect()
        }
        KeyType::Bytes => {
            let rows: Vec<(Vec<u8>, Vec<u8>)> = query.all(&mut tx).await?;
            rows.into_iter()
                .map(|(key, sealed)| (Arg::from(key.clone()), row_of_bytes(&key), sealed))
                .collect()
        }
        KeyType::Uuid => {
            let rows: Vec<(Uuid, Vec<u8>)> = query.all(&mut tx).await?;
            rows.into_iter()
                .map(|(key, sealed)| (Arg::from(key), key.to_string(), sealed))
                .collect()
        }
        KeyType::Int => {
            let rows: Vec<(i64, Vec<u8>)> = query.all(&mut tx).await?;
            rows.into_iter()
                .map(|(key, sealed)| (Arg::from(key), key.to_string(), sealed))
                .collect()
        }
    };
    let count = rows.len() as u64;
    for (key_value, row, sealed) in rows {
        let secret = sealer.open(purpose, &row, &sealed).map_err(|OpenError| {
            Error::internal(format!(
                "{table}.{name}, row {row}: it was changed, or its key is missing"
            ))
        })?;
        sql("UPDATE ")
            .push(table)
            .push(" SET ")
            .push(name)
            .push(" = $1 WHERE ")
            .push(key)
            .push(" = $2")
            .bind((sealer.seal(purpose, &row, &secret), key_value))
            .execute(&mut tx)
            .await?;
    }
    tx.commit_unaudited("the same secrets under another key")
        .await?;
    Ok(count)
}

/// The name of a row whose key is bytes, to which its secret is bound.
pub fn row_of_bytes(key: &[u8]) -> String {
    hex::encode(key)
}
