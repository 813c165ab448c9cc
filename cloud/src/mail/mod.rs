//! Mail that goes out. A mail is committed with the change that causes it, sealed since it may hold a token, and background work hands it to the mail
//! server until that has taken it, refused it for good, or the mail is of no use any more. Nothing waits for a mail server but that work.

mod letter;
mod smtp;
mod store;

use hub_protocol::Timestamp;
use lettre::Address;
use lettre::message::Mailbox;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::config::MailConfig;
use crate::db::Tx;
use crate::error::{Error, Result};
use crate::sealing::stored::MAIL;
use crate::tasks::{self, Done, NewTask};
pub use letter::{Letter, Part};
use smtp::Failure;

/// The kind of work that sends one mail.
pub const SEND: &str = "mail.send";

/// As it waits, under seal.
#[derive(Serialize, Deserialize)]
struct Waiting {
    to: String,
    letter: Letter,
    /// It is dropped after this.
    useful_until: Timestamp,
}

/// Whether the mail server lets the service in; else why not. No mail is sent.
pub async fn try_out(config: &MailConfig) -> Result<(), String> {
    smtp::try_out(config).await.map_err(|failure| match failure {
        Failure::Refused(reason) | Failure::Later(reason) => reason,
    })
}

/// Refuses with 503 where no mail server is set.
pub fn require(app: &App) -> Result<&MailConfig> {
    app.config.mail.as_ref().ok_or_else(|| {
        let message =
            "this needs a mail server, and the service has none: its operator has to set smtp-url and mail-from";
        Error::unavailable("MAIL_NOT_CONFIGURED", message)
    })
}

/// Puts a mail into the transaction; it is sent once that has committed. Call [`tasks::wake`] then. Answers the mail's id, for [`withdraw`].
pub async fn queue(
    app: &App,
    tx: &mut Tx,
    to: &str,
    letter: Letter,
    useful_until: Timestamp,
    now: Timestamp,
) -> Result<Uuid> {
    let mail_uuid = Uuid::now_v7();
    let waiting = Waiting { to: to.to_owned(), letter, useful_until };
    let waiting = serde_json::to_vec(&waiting).map_err(Error::internal)?;
    let sealed = app.sealer.seal(MAIL, &mail_uuid.to_string(), &waiting);
    store::insert(tx, mail_uuid, &sealed, now).await?;
    let task = NewTask {
        kind: SEND,
        payload: json!({"mailUuid": mail_uuid}),
        due_at: now,
        dedup_key: Some(format!("{SEND}:{mail_uuid}")),
    };
    tasks::enqueue(tx, task, now).await?;
    Ok(mail_uuid)
}

/// Takes back a mail that was not sent yet. One that was, or that is on its way at this moment, cannot be.
pub async fn withdraw(tx: &mut Tx, mail_uuid: Uuid) -> Result<()> {
    store::delete(tx, mail_uuid).await
}

/// A moment as people write it.
pub fn spoken(at: Timestamp) -> String {
    at.to_datetime().format("%-d %B %Y, %H:%M UTC").to_string()
}

/// How to send a request by hand; with `token`, as whoever that stands for. Where the service knows no address of its own to give away, in words.
pub fn request(app: &App, path: &str, token: Option<&str>, body: &Value) -> Part {
    let header = token.map(|token| format!(" -H 'authorization: Bearer {token}'")).unwrap_or_default();
    Part::Code(match &app.config.public_url {
        Some(url) => format!("curl {url}{path}{header} -H 'content-type: application/json' -d '{body}'"),
        None => format!("POST {path}\n{body}"),
    })
}

/// Sends one mail. It may be sent twice, when the process dies between the server's answer and the end of this; then both copies have one Message-ID.
pub async fn send(app: &App, payload: &Value) -> Result<Done> {
    let mail_uuid = payload["mailUuid"].as_str().and_then(|uuid| uuid.parse().ok());
    let mail_uuid: Uuid = mail_uuid.ok_or_else(|| Error::internal("the work names no mail"))?;
    let sealed = store::find(&mut app.db.read().await?, mail_uuid).await?;
    // It was sent, or withdrawn.
    let Some(sealed) = sealed else { return Ok(Done::Finished) };
    let waiting = app.sealer.open(MAIL, &mail_uuid.to_string(), &sealed).map_err(Error::internal)?;
    let Waiting { to, letter, useful_until } = serde_json::from_slice(&waiting).map_err(Error::internal)?;
    let now = app.clock.now();
    if useful_until <= now {
        tracing::warn!(%mail_uuid, "a mail was not sent in time and is dropped");
        return drop_mail(app, mail_uuid).await;
    }
    let config = require(app)?;
    let Some(address) = address(&to) else {
        tracing::warn!(%mail_uuid, "a mail has an address that mail cannot be sent to, and is dropped");
        return drop_mail(app, mail_uuid).await;
    };
    let message = letter.message(config, Mailbox::new(None, address), mail_uuid, now)?;
    match smtp::deliver(config, &message).await {
        Ok(()) => drop_mail(app, mail_uuid).await,
        Err(Failure::Refused(error)) => {
            tracing::warn!(%mail_uuid, %error, "the mail server refused a mail for good; it is dropped");
            drop_mail(app, mail_uuid).await
        }
        Err(Failure::Later(reason)) => Err(Error::internal(format!("the mail server did not take a mail: {reason}"))),
    }
}

/// Domains beyond ASCII are written as name servers know them; most mail servers take no others.
fn address(email: &str) -> Option<Address> {
    let (local, domain) = email.rsplit_once('@')?;
    let url = reqwest::Url::parse(&format!("http://{domain}")).ok()?;
    Address::new(local, url.host_str()?).ok()
}

async fn drop_mail(app: &App, mail_uuid: Uuid) -> Result<Done> {
    let mut tx = app.db.begin().await?;
    store::delete(&mut tx, mail_uuid).await?;
    tx.commit_unaudited("the change that caused the mail has its entry").await?;
    Ok(Done::Finished)
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_are_as_mail_servers_know_them() {
        for (email, expected) in [
            ("ada@example.com", Some("ada@example.com")),
            ("o'hara+x@münchen.example", Some("o'hara+x@xn--mnchen-3ya.example")),
            ("jörg@example.com", Some("jörg@example.com")),
            ("ada@a b.example", None),
            ("ada", None),
        ] {
            let address = super::address(email).map(|address| address.to_string());
            assert_eq!(address.as_deref(), expected, "{email}");
        }
    }
}
