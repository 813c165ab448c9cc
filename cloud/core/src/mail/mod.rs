//! Outgoing mail. A mail is committed with the change that causes it, and sealed, since it may
//! contain a token. Background work delivers it to the mail server and retries until the server
//! accepts it, rejects it permanently, or the mail is out of date. Nothing but that work waits for
//! a mail server.

mod content;
mod smtp;
mod store;

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_base::sealing::stored::MAIL;
use hub_protocol::Timestamp;
use lettre::Address;
use lettre::message::Mailbox;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Core;
use crate::config::MailConfig;
use crate::tasks::{self, Done, NewTask};
pub use content::{MailContent, Part};
use smtp::Failure;

/// The lane of mail. A mail server that does not respond delays nothing but mail.
pub const LANE: &str = "mail";
/// The kind of task that sends one mail.
pub const SEND: &str = "mail.send";

/// A queued mail, as it is sealed.
#[derive(Serialize, Deserialize)]
struct QueuedMail {
    to: String,
    /// Mail that an earlier version queued has this name for it.
    #[serde(rename = "letter")]
    content: MailContent,
    /// The time after which the mail is dropped.
    useful_until: Timestamp,
}

/// Connects to the mail server and logs in, and returns the reason if that fails. Sends no mail.
pub async fn try_out(config: &MailConfig) -> Result<(), String> {
    smtp::try_out(config)
        .await
        .map_err(|failure| match failure {
            Failure::Rejected(reason) | Failure::Temporary(reason) | Failure::Away(reason) => {
                reason
            }
        })
}

/// Returns 503 if no mail server is configured.
pub fn require(core: &Core) -> Result<&MailConfig> {
    core.config.mail.as_ref().ok_or_else(|| {
        let message =
            "this requires a mail server, and none is configured; the operator of the service has to set smtp-url and mail-from";
        Error::unavailable("MAIL_NOT_CONFIGURED", message)
    })
}

/// Queues a mail within the transaction; it is sent after the commit. Returns the mail's id, for
/// [`withdraw`].
pub async fn queue(
    core: &Core,
    tx: &mut Tx,
    to: &str,
    content: MailContent,
    useful_until: Timestamp,
    now: Timestamp,
) -> Result<Uuid> {
    let mail_uuid = Uuid::now_v7();
    let queued = QueuedMail {
        to: to.to_owned(),
        content,
        useful_until,
    };
    let queued = serde_json::to_vec(&queued).map_err(Error::internal)?;
    let sealed = core.sealer.seal(MAIL, &mail_uuid.to_string(), &queued);
    store::insert(tx, mail_uuid, &sealed, now).await?;
    let task = NewTask {
        lane: LANE,
        kind: SEND,
        payload: json!({"mailUuid": mail_uuid}),
        due_at: now,
        dedup_key: Some(format!("{SEND}:{mail_uuid}")),
    };
    tasks::enqueue(core, tx, task, now).await?;
    Ok(mail_uuid)
}

/// Withdraws a mail that was not sent yet. A send in progress is not stopped.
pub async fn withdraw(tx: &mut Tx, mail_uuid: Uuid) -> Result<()> {
    store::delete(tx, mail_uuid).await
}

/// A time in the form used in mails.
pub fn format_time(at: Timestamp) -> String {
    at.to_datetime().format("%-d %B %Y, %H:%M UTC").to_string()
}

/// A command that sends a request, authenticated by `token` if it has one. Without a public URL of
/// the service, the mail describes the request in words.
pub fn request(core: &Core, path: &str, token: Option<&str>, body: &Value) -> Part {
    let header = token
        .map(|token| format!(" -H 'authorization: Bearer {token}'"))
        .unwrap_or_default();
    Part::Code(match &core.config.public_url {
        Some(url) => {
            format!("curl {url}{path}{header} -H 'content-type: application/json' -d '{body}'")
        }
        None => format!("POST {path}\n{body}"),
    })
}

/// Sends one mail. If the process dies between the server's response and the end of this function,
/// the mail is sent twice; both copies have the same Message-ID.
pub async fn send(core: &Core, payload: &Value) -> Result<Done> {
    let mail_uuid = payload["mailUuid"]
        .as_str()
        .and_then(|uuid| uuid.parse().ok());
    let mail_uuid: Uuid =
        mail_uuid.ok_or_else(|| Error::internal("the task contains no mail id"))?;
    let sealed = store::find(&mut core.db.read().await?, mail_uuid).await?;
    // The mail was sent or withdrawn.
    let Some(sealed) = sealed else {
        return Ok(Done::Finished);
    };
    let queued = core
        .sealer
        .open(MAIL, &mail_uuid.to_string(), &sealed)
        .map_err(Error::internal)?;
    let QueuedMail {
        to,
        content,
        useful_until,
    } = serde_json::from_slice(&queued).map_err(Error::internal)?;
    let now = core.clock.now();
    if useful_until <= now {
        tracing::warn!(%mail_uuid, "a mail could not be sent in time and was dropped");
        return drop_mail(core, mail_uuid).await;
    }
    let config = require(core)?;
    let Some(address) = address(&to) else {
        tracing::warn!(%mail_uuid, "a mail has an invalid address and was dropped");
        return drop_mail(core, mail_uuid).await;
    };
    let message = content.message(config, Mailbox::new(None, address), mail_uuid, now)?;
    let delivered = smtp::deliver(config, &message).await;
    log_change(core, delivered.as_ref().err());
    match delivered {
        Ok(()) => drop_mail(core, mail_uuid).await,
        Err(Failure::Rejected(error)) => {
            tracing::warn!(%mail_uuid, %error, "the mail server rejected a mail permanently; it was dropped");
            drop_mail(core, mail_uuid).await
        }
        Err(Failure::Temporary(reason)) => Err(Error::internal(format!(
            "the mail server did not accept a mail: {reason}"
        ))),
        Err(Failure::Away(reason)) => Ok(Done::Retry(reason)),
    }
}

/// Logs once that no mail can be sent, and once that the server takes mail again. That it puts a
/// mail off says neither.
fn log_change(core: &Core, failure: Option<&Failure>) {
    let mail_away = &core.metrics.conditions.mail_away;
    match failure {
        Some(Failure::Away(reason)) => {
            if mail_away.set(1) == 0 {
                tracing::error!(
                    reason,
                    "mail cannot be sent and waits; check smtp-url and its server with hub-cloud check"
                );
            }
        }
        Some(Failure::Temporary(_)) => {}
        Some(Failure::Rejected(_)) | None => {
            if mail_away.set(0) == 1 {
                tracing::warn!("mail is sent again");
            }
        }
    }
}

/// Domains outside of ASCII are written in their ASCII form, since most mail servers accept no
/// other.
fn address(email: &str) -> Option<Address> {
    let (local, domain) = email.rsplit_once('@')?;
    let url = reqwest::Url::parse(&format!("http://{domain}")).ok()?;
    Address::new(local, url.host_str()?).ok()
}

async fn drop_mail(core: &Core, mail_uuid: Uuid) -> Result<Done> {
    let mut tx = core.db.begin().await?;
    store::delete(&mut tx, mail_uuid).await?;
    tx.commit_unaudited("the change that caused the mail is audited")
        .await?;
    Ok(Done::Finished)
}

#[cfg(test)]
mod tests {
    #[test]
    fn domains_are_converted_to_ascii() {
        for (email, expected) in [
            ("ada@example.com", Some("ada@example.com")),
            (
                "o'hara+x@münchen.example",
                Some("o'hara+x@xn--mnchen-3ya.example"),
            ),
            ("jörg@example.com", Some("jörg@example.com")),
            ("ada@a b.example", None),
            ("ada", None),
        ] {
            let address = super::address(email).map(|address| address.to_string());
            assert_eq!(address.as_deref(), expected, "{email}");
        }
    }
}
