//! Whether the servers that the settings name answer: bus, issuer, mail. What is not set is not needed.

use std::time::Duration;

use hub_protocol::check::Finding;
use secrecy::{ExposeSecret, SecretString};

use crate::authn::oidc;
use crate::config::{Config, MailConfig, OidcConfig};
use crate::mail;

const BUS_PATIENCE: Duration = Duration::from_secs(5);

pub async fn check(config: &Config) -> Vec<Finding> {
    let bus = async { Some(bus(config.bus.as_ref()?).await) };
    let issuer = async { Some(issuer(config.oidc.as_ref()?).await) };
    let mail = async { Some(mail_server(config.mail.as_ref()?).await) };
    let (bus, issuer, mail) = tokio::join!(bus, issuer, mail);
    [bus, issuer, mail].into_iter().flatten().collect()
}

async fn bus(url: &SecretString) -> Finding {
    let options = async_nats::ConnectOptions::new().name("hub-cloud check").connection_timeout(BUS_PATIENCE);
    match options.connect(url.expose_secret()).await {
        Ok(_) => Finding::ok("bus", "NATS answers"),
        Err(error) => Finding::fail(
            "bus",
            format!("NATS cannot be used: {error}"),
            "the service runs without it, and replicas find each other's news seconds later; is `bus` right, and the server up?",
        ),
    }
}

async fn issuer(config: &OidcConfig) -> Finding {
    match oidc::try_out(config).await {
        Ok(()) => Finding::ok("issuer", format!("{} publishes its keys", config.issuer)),
        Err(reason) => {
            Finding::fail("issuer", reason, "nobody can log in with it now; is `oidc-issuer` right, and the issuer up?")
        }
    }
}

async fn mail_server(config: &MailConfig) -> Finding {
    let server = format!("{}:{}", config.host, config.port);
    match mail::try_out(config).await {
        Ok(()) => Finding::ok("mail", format!("{server} lets the service in")),
        Err(reason) => Finding::fail(
            "mail",
            format!("{server}: {reason}"),
            "mail waits until it works; `smtp-url` names the server",
        ),
    }
}
