//! One mail, handed to the mail server over a connection of its own. Every step is told apart, since a refusal means something else at each: what
//! is said of the recipient or the message is for good, what is said of us can be mended by the operator.

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
/// For all of it; a piece of background work has not much longer.
const TIMEOUT: Duration = Duration::from_secs(80);
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the server has not got the mail.
#[derive(Debug)]
pub enum Failure {
    /// It does not want it, and never will.
    Refused(String),
    /// Trying again may help.
    Later(String),
}

/// A step that says nothing of the mail itself.
fn later(error: Error) -> Failure {
    Failure::Later(error.to_string())
}

fn judged(error: Error) -> Failure {
    match error.is_permanent() {
        true => Failure::Refused(error.to_string()),
        false => later(error),
    }
}

pub async fn deliver(config: &MailConfig, message: &Message) -> Result<(), Failure> {
    let ends_at = Instant::now() + TIMEOUT;
    let mut connection = until(ends_at, connect(config)).await?;
    let handed_over = until(ends_at, hand_over(&mut connection, message)).await;
    // How the goodbye goes says nothing of the mail.
    let _ = tokio::time::timeout(GOODBYE_TIMEOUT, connection.abort()).await;
    handed_over
}

/// Connects and logs in, and goes.
pub async fn try_out(config: &MailConfig) -> Result<(), Failure> {
    let mut connection = until(Instant::now() + CONNECT_TIMEOUT, connect(config)).await?;
    let _ = tokio::time::timeout(GOODBYE_TIMEOUT, connection.abort()).await;
    Ok(())
}

async fn until<T>(ends_at: Instant, step: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let ended = tokio::time::timeout_at(ends_at, step).await;
    ended.unwrap_or_else(|_| Err(Failure::Later("it was too slow".to_owned())))
}

async fn connect(config: &MailConfig) -> Result<AsyncSmtpConnection, Failure> {
    let MailConfig { host, port, encryption, .. } = config;
    let hello = ClientId::default();
    let tls = || TlsParameters::new(host.clone()).map_err(later);
    let wrapper = match encryption {
        Encryption::Wrapped => Some(tls()?),
        Encryption::StartTls | Encryption::IfOffered | Encryption::None => None,
    };
    let server = (host.as_str(), *port);
    let connecting = AsyncSmtpConnection::connect_tokio1(server, Some(CONNECT_TIMEOUT), &hello, wrapper, None);
    let mut connection = connecting.await.map_err(later)?;
    let upgrades = match encryption {
        Encryption::StartTls => true,
        Encryption::IfOffered => connection.can_starttls(),
        Encryption::Wrapped | Encryption::None => false,
    };
    if upgrades {
        connection.starttls(tls()?, &hello).await.map_err(later)?;
    }
    if let Some((name, password)) = &config.credentials {
        let credentials = Credentials::new(name.clone(), password.expose_secret().to_owned());
        connection.auth(DEFAULT_MECHANISMS, &credentials).await.map_err(later)?;
    }
    Ok(connection)
}

async fn hand_over(connection: &mut AsyncSmtpConnection, message: &Message) -> Result<(), Failure> {
    let envelope = message.envelope();
    let bytes = message.formatted();
    let mut options = Vec::new();
    let is_ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
    if !envelope.from().into_iter().chain(envelope.to()).all(is_ascii) {
        if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
            return Err(Failure::Refused("it takes no addresses beyond ASCII (SMTPUTF8)".to_owned()));
        }
        options.push(MailParameter::SmtpUtfEight);
    }
    if !bytes.is_ascii() {
        // Only such an address makes it so: bodies and other headers are encoded.
        options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    connection.command(Mail::new(envelope.from().cloned(), options)).await.map_err(later)?;
    for recipient in envelope.to() {
        connection.command(Rcpt::new(recipient.clone(), Vec::new())).await.map_err(judged)?;
    }
    connection.command(Data).await.map_err(judged)?;
    connection.message(&bytes).await.map_err(judged)?;
    Ok(())
}
