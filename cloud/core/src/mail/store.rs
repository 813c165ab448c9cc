//! SQL of queued mail.

use hub_base::db::{Conn, sql};
use hub_base::error::Result;
use hub_protocol::Timestamp;
use uuid::Uuid;

pub async fn insert(conn: &mut Conn, mail_uuid: Uuid, sealed: &[u8], now: Timestamp) -> Result<()> {
    sql("INSERT INTO mails (mail_uuid, sealed_mail, created_at) VALUES ($1, $2, $3)")
        .bind((mail_uuid, sealed, now))
        .run(conn)
        .await
}

pub async fn find(conn: &mut Conn, mail_uuid: Uuid) -> Result<Option<Vec<u8>>> {
    sql("SELECT sealed_mail FROM mails WHERE mail_uuid = $1")
        .bind(mail_uuid)
        .optional_scalar(conn)
        .await
}

pub async fn delete(conn: &mut Conn, mail_uuid: Uuid) -> Result<()> {
    sql("DELETE FROM mails WHERE mail_uuid = $1")
        .bind(mail_uuid)
        .run(conn)
        .await
}
