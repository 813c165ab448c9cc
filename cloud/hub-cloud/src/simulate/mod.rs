//! `hub-cloud simulate`: the load of a fleet on a service, from a profile. What a service carries
//! is measured that way, on the machines that it will run on.

mod fleet;
mod load;
mod profile;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hub_logging::say;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::http::serve::stop_signal;
use load::Tally;
use profile::{Given, Profile};

/// An upload that is not answered for so long is given up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the fleet uploads to, and what it is.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// URL of the service, such as http://127.0.0.1:8080
    #[arg(long, value_name = "URL")]
    to: String,
    /// A claim code of a tenant, with as many uses as the tenant gets hubs; once for each tenant
    #[arg(long = "claim-code", value_name = "CODE", required = true)]
    claim_codes: Vec<String>,
    /// A file (TOML) with the options below, without their dashes
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    #[command(flatten)]
    given: Given,
    /// Print one JSON object: {"events", "eventsPerSec", "uploads", "refused", "sentBytes",
    /// "latencyMs": {"p50", "p90", "p99", "max"}}
    #[arg(long)]
    json: bool,
}

/// The reason why a simulation failed, with a message for the operator.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    WrongUsage(String),
    #[error("{0}")]
    Failed(String),
}

/// Claims the fleet and uploads until the time is over, or Ctrl-C. Returns a report, and whether
/// all uploads were stored.
pub async fn run(options: &Options) -> Result<(String, bool), Failure> {
    let url = options.to.trim_end_matches('/');
    let codes = &options.claim_codes;
    let tenants = u32::try_from(codes.len()).unwrap_or(u32::MAX);
    let profile = Profile::load(&options.given, options.profile.as_ref(), tenants)?;
    if reqwest::Url::parse(url).is_err() {
        return Err(Failure::WrongUsage(
            "to must be a URL, such as http://127.0.0.1:8080".to_owned(),
        ));
    }
    let http = Client::builder()
        .timeout(ANSWER_TIMEOUT)
        .build()
        .map_err(|error| Failure::Failed(error.to_string()))?;
    say(format_args!(
        "{} hubs of {tenants} tenants, {} devices: {:.0} events/s in {:.1} uploads/s, for {} s",
        profile.hubs,
        profile.devices,
        profile.events_per_sec(),
        profile.uploads_per_sec(),
        profile.seconds
    ));
    let hubs = fleet::claim(&http, url, codes, &profile).await?;
    let stop = CancellationToken::new();
    let on_signal = stop.clone();
    tokio::spawn(async move {
        stop_signal().await;
        on_signal.cancel();
    });
    let (tally, took) = load::run(http, url, hubs, &profile, &stop).await;
    let report = match options.json {
        true => json(&tally, took),
        false => text(&tally, took, &profile),
    };
    Ok((report, tally.refused.is_empty()))
}

fn retry_after(response: &Response) -> Option<Duration> {
    let secs = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    secs.parse().ok().map(Duration::from_secs)
}

fn text(tally: &Tally, took: Duration, profile: &Profile) -> String {
    let secs = took.as_secs_f64().max(0.001);
    let mut text = format!(
        "stored    {} events in {} uploads: {:.0} events/s of {:.0} offered\n\
         sent      {} bytes, {:.1} an event\n\
         latency   p50 {} ms, p90 {} ms, p99 {} ms, max {} ms, from when an upload was due\n\
         refused   {} uploads\n",
        tally.stored_events,
        tally.stored_uploads(),
        tally.stored_events as f64 / secs,
        profile.events_per_sec(),
        tally.sent_bytes,
        tally.sent_bytes as f64 / tally.stored_events.max(1) as f64,
        tally.latency_ms(50),
        tally.latency_ms(90),
        tally.latency_ms(99),
        tally.latency_ms(100),
        tally.refused_uploads(),
    );
    for (reason, uploads) in &tally.refused {
        let advice = match reason.as_str() {
            "429" => ": raise upload-limit-per-minute and the quotas of the tenant",
            "503" => ": the service was too busy, or its database was away",
            _ => "",
        };
        // Writing to a text does not fail.
        let _ = writeln!(text, "          {uploads} with {reason}{advice}");
    }
    text
}

fn json(tally: &Tally, took: Duration) -> String {
    let report = json!({
        "events": tally.stored_events,
        "eventsPerSec": tally.stored_events as f64 / took.as_secs_f64().max(0.001),
        "uploads": tally.stored_uploads(),
        "refused": tally.refused,
        "sentBytes": tally.sent_bytes,
        "latencyMs": {
            "p50": tally.latency_ms(50),
            "p90": tally.latency_ms(90),
            "p99": tally.latency_ms(99),
            "max": tally.latency_ms(100),
        },
    });
    format!("{report}\n")
}
