//! Checks that the configured servers respond: bus, issuer, mail, billing. A server that
//! is not configured is not checked.

use std::time::Duration;

use hub_core::config::{BillingConfig, Config, MailConfig, OidcConfig};
use hub_core::mail;
use hub_identity::authn::oidc;
use hub_people::billing;
use hub_protocol::check::Finding;
use secrecy::{ExposeSecret, SecretString};

const BUS_TIMEOUT: Duration = Duration::from_secs(5);

pub async fn check(config: &Config) -> Vec<Finding> {
    let bus = async { Some(bus(config.bus.as_ref()?).await) };
    let issuer = async { Some(issuer(config.oidc.as_ref()?).await) };
    let mail = async { Some(mail_server(config.mail.as_ref()?).await) };
    let billing = async { Some(billing_service(config, config.billing.as_ref()?).await) };
    let (bus, issuer, mail, billing) = tokio::join!(bus, issuer, mail, billing);
    [bus, issuer, mail, billing].into_iter().flatten().collect()
}

async fn bus(url: &SecretString) -> Finding {
    let options = async_nats::ConnectOptions::new()
        .name("hub-cloud check")
        .connection_timeout(BUS_TIMEOUT);
    match options.connect(url.expose_secret()).await {
        Ok(_) => Finding::ok("bus", "NATS responds"),
        Err(error) => Finding::fail(
            "bus",
            format!("cannot connect to NATS: {error}"),
            "check `bus` and the server; meanwhile replicas see each other's changes seconds later",
        ),
    }
}

async fn issuer(config: &OidcConfig) -> Finding {
    match oidc::try_out(config).await {
        Ok(()) => Finding::ok("issuer", format!("{} publishes its keys", config.issuer)),
        Err(reason) => Finding::fail(
            "issuer",
            reason,
            "check `oidc-issuer` and the issuer; until then its users cannot log in",
        ),
    }
}

async fn mail_server(config: &MailConfig) -> Finding {
    let server = format!("{}:{}", config.host, config.port);
    match mail::try_out(config).await {
        Ok(()) => Finding::ok("mail", format!("{server} accepts the login of the service")),
        Err(reason) => Finding::fail(
            "mail",
            format!("{server}: {reason}"),
            "check `smtp-url` and the server; mail stays queued until it works",
        ),
    }
}

async fn billing_service(config: &Config, service: &BillingConfig) -> Finding {
    match billing::try_out(service, &config.outgoing).await {
        Ok(()) => Finding::ok("billing", format!("{} responds", service.url)),
        Err(reason) => Finding::fail(
            "billing",
            format!("{}: {reason}", service.url),
            "check `billing-url`, `billing-token` and the service; until then `/tenant/billing` answers 502 or 504",
        ),
    }
}
