//! Delivers one mail to the mail server over a connection of its own. The steps are distinguished,
//! since a rejection means something different in each: a rejected recipient or message is
//! permanent, while the operator can fix a rejected login.

use std::time::Duration;

use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use lettre::{Address, Message};
use secrecy::ExposeSecret;
use tokio::time::Instant;

use crate::config::{Encryption, MailConfig};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The limit of a whole delivery; a task may not take much longer.
const TIMEOUT: Duration = Duration::from_secs(80);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why the server has not accepted the mail.
#[derive(Debug)]
pub enum Failure {
    /// The server rejected the mail permanently.
    Rejected(String),
    /// The server put this mail off; a retry may succeed.
    Temporary(String),
    /// No mail can be sent now: the server is unreachable, or refuses login or sender.
    Away(String),
}

/// A failure of a step that is independent of the mail.
fn away(error: Error) -> Failure {
    Failure::Away(error.to_string())
}

fn rejection(error: Error) -> Failure {
    match () {
        () if error.is_permanent() => Failure::Rejected(error.to_string()),
        () if error.is_transient() => Failure::Temporary(error.to_string()),
        () => away(error),
    }
}

pub async fn deliver(config: &MailConfig, message: &Message) -> Result<(), Failure> {
    let ends_at = Instant::now() + TIMEOUT;
    let mut connection = until(ends_at, connect(config)).await?;
    let result = until(ends_at, send_message(&mut connection, message)).await;
    // The mail is delivered or not, however the connection is closed.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection.abort()).await;
    result
}

/// Connects, logs in and disconnects.
pub async fn try_out(config: &MailConfig) -> Result<(), Failure> {
    let mut connection = until(Instant::now() + CONNECT_TIMEOUT, connect(config)).await?;
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection.abort()).await;
    Ok(())
}

async fn until<T>(
    ends_at: Instant,
    step: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let ended = tokio::time::timeout_at(ends_at, step).await;
    ended.unwrap_or_else(|_| Err(Failure::Away("it did not respond in time".to_owned())))
}

async fn connect(config: &MailConfig) -> Result<AsyncSmtpConnection, Failure> {
    let MailConfig {
        host,
        port,
        encryption,
        ..
    } = config;
    let hello = ClientId::default();
    let tls = || TlsParameters::new(host.clone()).map_err(away);
    let wrapper = match encryption {
        Encryption::Wrapped => Some(tls()?),
        Encryption::StartTls | Encryption::IfOffered | Encryption::None => None,
    };
    let server = (host.as_str(), *port);
    let connecting =
        AsyncSmtpConnection::connect_tokio1(server, Some(CONNECT_TIMEOUT), &hello, wrapper, None);
    let mut connection = connecting.await.map_err(away)?;
    let upgrades = match encryption {
        Encryption::StartTls => true,
        Encryption::IfOffered => connection.can_starttls(),
        Encryption::Wrapped | Encryption::None => false,
    };
    if upgrades {
        connection.starttls(tls()?, &hello).await.map_err(away)?;
    }
    if let Some((name, password)) = &config.credentials {
        let credentials = Credentials::new(name.clone(), password.expose_secret().to_owned());
        connection
            .auth(DEFAULT_MECHANISMS, &credentials)
            .await
            .map_err(away)?;
    }
    Ok(connection)
}

async fn send_message(
    connection: &mut AsyncSmtpConnection,
    message: &Message,
) -> Result<(), Failure> {
    let envelope = message.envelope();
    let bytes = message.formatted();
    let mut options = Vec::new();
    let is_ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
    if !envelope
        .from()
        .into_iter()
        .chain(envelope.to())
        .all(is_ascii)
    {
        if !connection
            .server_info()
            .supports_feature(Extension::SmtpUtfEight)
        {
            return Err(Failure::Rejected(
                "it does not support addresses with non-ASCII characters (SMTPUTF8)".to_owned(),
            ));
        }
        options.push(MailParameter::SmtpUtfEight);
    }
    if !bytes.is_ascii() {
        // Only a non-ASCII address leads here: bodies and other headers are encoded.
        options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    connection
        .command(Mail::new(envelope.from().cloned(), options))
        .await
        .map_err(away)?;
    for recipient in envelope.to() {
        connection
            .command(Rcpt::new(recipient.clone(), Vec::new()))
            .await
            .map_err(rejection)?;
    }
    connection.command(Data).await.map_err(rejection)?;
    connection.message(&bytes).await.map_err(rejection)?;
    Ok(())
}
