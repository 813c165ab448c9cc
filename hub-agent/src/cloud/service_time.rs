//! The service's time, for a hub whose clock is before the beginning of the service's certificate.
//!
//! No time server is asked: a hub's network often lets nothing but the service through. The service
//! proves who it is with its certificate, of which only the beginning is not checked, and the hub
//! believes nothing but the `Date` of two answers: they have to agree, and to be within the
//! certificate's validity. The connection carries no credentials and is not used for anything else.
//! Somebody with the key of an old certificate could show an old time, but none before the last one
//! that the hub knows.

use std::sync::Arc;

use hub_protocol::Timestamp;
use hub_trust::Validity;
use reqwest::Url;
use reqwest::header::DATE;
use reqwest::tls::TlsInfo;

use super::http::{build, client_builder, http_date};
use super::tls::ValidAt;
use crate::clock::{Clock, since_boot_micros};
use crate::config::ServiceArgs;
use crate::error::chain;

/// `Date` has whole seconds, and an answer may be slow.
const AGREE_WITHIN_SECS: i64 = 5;

/// Learns the service's time. The error says why not.
pub async fn learn(args: &ServiceArgs, base: &Url, clock: &Arc<Clock>) -> Result<(), String> {
    let builder = client_builder(args, base, None, clock, ValidAt::NowOrItsBeginning)
        .map_err(|error| error.to_string())?;
    // Each answer comes over a connection of its own.
    let client = build(builder.tls_info(true).pool_max_idle_per_host(0))
        .map_err(|error| error.to_string())?;
    let url = base.join("healthz").map_err(|error| error.to_string())?;
    let first = dated(args, &client, &url).await?;
    let second = dated(args, &client, &url).await?;
    if (first.at_boot() - second.at_boot()).abs() > AGREE_WITHIN_SECS * 1_000_000 {
        return Err("two answers show different times".to_owned());
    }
    if second.date < clock.known() {
        return Err("the time that it shows has long passed".to_owned());
    }
    clock.learn_service_time(second.date, second.asked_at, second.answered_at);
    Ok(())
}

/// The date of an answer, and when it was asked for and came, in microseconds since boot.
struct Dated {
    date: Timestamp,
    asked_at: i64,
    answered_at: i64,
}

impl Dated {
    /// The time at this machine's boot, by the service's clock, in microseconds since 1970.
    const fn at_boot(&self) -> i64 {
        self.date.as_micros() - self.answered_at
    }
}

async fn dated(args: &ServiceArgs, client: &reqwest::Client, url: &Url) -> Result<Dated, String> {
    let request = client.get(url.clone()).timeout(args.request_timeout.0);
    let asked_at = since_boot_micros();
    let response = request.send().await.map_err(|error| chain(&error))?;
    let answered_at = since_boot_micros();
    let date = response.headers().get(DATE).and_then(http_date);
    let date = date.ok_or("its answer has no date")?;
    let certificate = response.extensions().get::<TlsInfo>();
    let certificate = certificate
        .and_then(TlsInfo::peer_certificate)
        .ok_or("its certificate is not known")?;
    let Validity { begin, end } = Validity::of(certificate).map_err(|error| chain(&error))?;
    let date_secs = u64::try_from(date.as_secs()).unwrap_or(0);
    if !(begin.as_secs()..=end.as_secs()).contains(&date_secs) {
        return Err("the time that it shows is not within its certificate's validity".to_owned());
    }
    Ok(Dated {
        date,
        asked_at,
        answered_at,
    })
}
