//! The steps of a move to another service. Before the claim there is accepted, everything can be
//! undone, and the hub stays where it is. What the claim brought is on disk as one file before
//! anything depends on it; `moved` puts it into force when the agent has ended.
//!
//! | step        | what it does                                                              |
//! |-------------|---------------------------------------------------------------------------|
//! | `Preparing` | the other service answers; everything that was recorded is uploaded; then |
//! |             | nothing is recorded any more, and the hub claims there                    |
//! | `Switching` | reports the outcome to the service before, and ends the agent             |
//!
//! A kill before the file is written repeats the claim, which the other service answers again. One
//! after it repeats the report, which the service before stores once.

use std::time::Duration;

use hub_protocol::job::{HubJobEventKind, HubJobEventRequest, ServiceMove, is_near};
use reqwest::Url;
use secrecy::SecretString;
use serde_json::json;

use super::context::Context;
use super::job::{Failed, reason};
use super::ledger::{Current, JobsState, Step};
use super::prepare::{Prepared, Stopped};
use super::queue;
use super::window::{self, CHECK_EVERY};
use crate::backoff::Backoff;
use crate::clock::machine_now;
use crate::cloud::{self, ClaimError, IDEMPOTENCY_KEY, Request};
use crate::config;
use crate::identity::Credentials;
use crate::moved::{self, NextService};
use crate::spool::{Kind, Spool, SpoolStats};

/// A job's progress when the other service has answered, and when everything is uploaded.
const REACHED_PERCENT: i64 = 10;
const UPLOADED_PERCENT: i64 = 60;

/// Attempts to reach the other service, to claim there, and to report the outcome.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// How long the upload of what was recorded before the move may take, and of what is left when
/// nothing is recorded any more: the pauses between uploads of a large fleet are minutes.
const UPLOADED_WITHIN: Duration = Duration::from_secs(600);
const EMPTIED_WITHIN: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// So many records are uploaded at once.
const FEW_RECORDS: u64 = 100;

/// Advertisements that were received before the pause are in the spool by then.
const LAST_RECORDED: Duration = Duration::from_millis(500);

/// Brings the hub to the point at which the other service has accepted its claim.
pub async fn prepare(context: &mut Context, current: &Current) -> Result<Prepared, Stopped> {
    let prepared = try_prepare(context, current).await;
    if prepared.is_err() {
        resume_recording(context).await;
    }
    prepared
}

/// Records again, and counts what was not recorded as lost.
async fn resume_recording(context: &Context) {
    let skipped = context.jobs.recording.resume();
    if skipped > 0 {
        // A spool that has stopped ends the agent elsewhere.
        let _ = context.jobs.spool.lost(skipped).await;
    }
}

/// Drops a claim whose job the ledger does not know, as after damage. The service repeats the job,
/// and the other service answers the same claim again.
pub async fn drop_unknown(context: &Context) {
    let known = context.ledger.current().map(|it| it.job.hub_job_uuid);
    let is_known = context
        .jobs
        .state_dir
        .on_disk(move |folder| match moved::next(folder)? {
            Some(next) if Some(next.hub_job_uuid) == known => Ok(true),
            Some(_) => moved::drop_next(folder).map(|()| false),
            None => Ok(false),
        });
    match is_known.await {
        Ok(true) => {}
        Ok(false) => resume_recording(context).await,
        Err(error) => tracing::warn!(%error, "the state of a move cannot be read"),
    }
}

async fn try_prepare(context: &mut Context, current: &Current) -> Result<Prepared, Stopped> {
    if claimed(context, current).await?.is_some() {
        // The agent was killed before it could record the step.
        context.jobs.recording.pause();
        return Ok(Prepared::Change(Step::Switching));
    }
    let (to, code) = destination(context, current)?;
    interruptible(context, current, reached(context, &to)).await??;
    report_progress(context, REACHED_PERCENT, "the other service answers").await;
    let began = machine_now();
    let uploading = tokio::time::timeout(
        UPLOADED_WITHIN,
        until(&context.jobs.spool, |stats| {
            stats.oldest.is_none_or(|oldest| oldest >= began) || to_upload(stats) <= FEW_RECORDS
        }),
    );
    let uploaded = interruptible(context, current, uploading).await?;
    uploaded.map_err(|_| not_uploaded(context))?;
    report_progress(context, UPLOADED_PERCENT, "everything is uploaded").await;
    context.jobs.recording.pause();
    let emptying = tokio::time::timeout(EMPTIED_WITHIN, async {
        tokio::time::sleep(LAST_RECORDED).await;
        until(&context.jobs.spool, |stats| to_upload(stats) == 0).await;
    });
    let emptied = interruptible(context, current, emptying).await?;
    emptied.map_err(|_| not_uploaded(context))?;
    // It is not interrupted: its answer may be the only one that has the credentials.
    let credentials = claim(context, &to, &code).await?;
    store(context, current, &to, &credentials).await?;
    tracing::info!(
        service = %to, hub_uuid = %credentials.hub_uuid,
        "the other service has accepted this hub"
    );
    Ok(Prepared::Change(Step::Switching))
}

/// Reports the move to the service before, and ends the agent, which starts again at the next one.
pub async fn switch(context: &mut Context, current: &Current) {
    let next = match claimed(context, current).await {
        Ok(Some(next)) => next,
        Ok(None) => {
            // It is in force, or was dropped because the configuration was changed.
            return context.ledger.change(JobsState::drop_current).await;
        }
        Err(_) => return tokio::time::sleep(CHECK_EVERY).await,
    };
    context.jobs.recording.pause();
    report(context, &next).await;
    tracing::info!(
        service = next.service_url,
        "the agent starts again at the service that it moves to"
    );
    context.jobs.moved.cancel();
    std::future::pending().await
}

/// What this job has claimed, if it has.
async fn claimed(context: &Context, current: &Current) -> Result<Option<NextService>, Stopped> {
    let state_dir = &context.jobs.state_dir;
    let next = state_dir.on_disk(moved::next).await.map_err(|error| {
        tracing::warn!(%error, "the state of a move cannot be read");
        stopped(
            reason::NO_SPACE,
            format!("its state cannot be read: {error}"),
        )
    })?;
    Ok(next.filter(|next| next.hub_job_uuid == current.job.hub_job_uuid))
}

fn stopped(reason: &'static str, message: impl Into<String>) -> Stopped {
    Stopped::Failed(Failed::new(reason, message))
}

/// The service that the job names, and the claim code for it.
fn destination(context: &Context, current: &Current) -> Result<(Url, SecretString), Stopped> {
    let wrong = |message: String| stopped(reason::BAD_RELEASE, message);
    let Some(ServiceMove {
        service_url,
        claim_code,
    }) = &current.job.move_to
    else {
        return Err(wrong("the job names no service".into()));
    };
    let url = config::parse_service_url(service_url)
        .map_err(|error| wrong(format!("its service cannot be used: {error}")))?;
    let own = context.jobs.service.url();
    if url.scheme() == "http"
        && (own.scheme() == "https" || !is_near(url.host_str().unwrap_or_default()))
    {
        return Err(wrong("its service does not use https".into()));
    }
    if url == *own {
        return Err(wrong("this hub is at that service".into()));
    }
    Ok((url, SecretString::from(claim_code.clone())))
}

async fn reached(context: &Context, to: &Url) -> Result<(), Stopped> {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut attempt = 1;
    loop {
        match cloud::reach_elsewhere(&context.jobs.service, to).await {
            Ok(()) => return Ok(()),
            Err(error) if attempt >= ATTEMPTS => {
                let message = format!("{to} cannot be reached: {error}");
                return Err(stopped(reason::SERVICE_UNREACHABLE, message));
            }
            Err(error) => context.jobs.view.show_trouble(&error),
        }
        attempt += 1;
        tokio::time::sleep(backoff.next(None)).await;
    }
}

/// Waits until the spool fits.
async fn until(spool: &Spool, fits: impl Fn(&SpoolStats) -> bool) {
    while !fits(&spool.stats()) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Records that are uploaded before the hub moves. Telemetry and logs come all the time.
fn to_upload(stats: &SpoolStats) -> u64 {
    [Kind::BleEvents, Kind::BleWindows, Kind::JobEvents]
        .map(|kind| stats.usage.get(kind).records)
        .iter()
        .sum()
}

fn not_uploaded(context: &Context) -> Stopped {
    let records = to_upload(&context.jobs.spool.stats());
    stopped(
        reason::SPOOL_NOT_EMPTY,
        format!("{records} records could not be uploaded in time"),
    )
}

async fn claim(context: &Context, to: &Url, code: &SecretString) -> Result<Credentials, Stopped> {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut attempt = 1;
    loop {
        let retry_after = match cloud::claim_elsewhere(&context.jobs.service, to, code).await {
            Ok(credentials) => return Ok(credentials),
            Err(error @ (ClaimError::Code(_) | ClaimError::Hub(_))) => {
                return Err(stopped(reason::CLAIM_REFUSED, error.to_string()));
            }
            Err(error) if attempt >= ATTEMPTS => {
                return Err(stopped(reason::SERVICE_UNREACHABLE, error.to_string()));
            }
            Err(ClaimError::Later {
                reason,
                retry_after,
            }) => {
                context.jobs.view.show_trouble(&reason);
                retry_after.map(|wait| wait.min(LONGEST_PAUSE))
            }
        };
        attempt += 1;
        tokio::time::sleep(backoff.next(retry_after)).await;
    }
}

/// Writes what the claim brought to disk, as one file.
async fn store(
    context: &Context,
    current: &Current,
    to: &Url,
    credentials: &Credentials,
) -> Result<(), Stopped> {
    let service = &context.jobs.service;
    let configured = service.moved_from().unwrap_or(service.url());
    let next = NextService::new(current.job.hub_job_uuid, configured, to, credentials);
    let written = match next.to_file() {
        Ok((name, content)) => context.jobs.state_dir.replace(name, content).await,
        Err(error) => Err(error),
    };
    written.map_err(|error| {
        let message = format!("the credentials of the other service cannot be written: {error}");
        stopped(reason::NO_SPACE, message)
    })
}

/// Sends the outcome to the service before, which stores it once. If it cannot be sent, the hub
/// moves all the same: the next service has accepted it.
async fn report(context: &Context, next: &NextService) {
    let jobs = &context.jobs;
    let Ok(credentials) = jobs.service.granted() else {
        return;
    };
    let event = HubJobEventRequest {
        event_uuid: next.event_uuid,
        kind: HubJobEventKind::Succeeded,
        message: Some(format!("this hub moves to {}", next.service_url)),
        progress: Some(100),
        detail: Some(json!({
            "serviceUrl": next.service_url,
            "notUploaded": jobs.spool.stats().total().records,
            "notRecorded": jobs.recording.skipped(),
        })),
        occurred_at: jobs.clock.now(),
    };
    let Ok(body) = serde_json::to_vec(&event) else {
        return;
    };
    let path = format!(
        "/v1/hubs/{}/jobs/{}/events",
        credentials.hub_uuid, next.hub_job_uuid
    );
    let request =
        Request::post_json(path, body).header(IDEMPOTENCY_KEY, &next.event_uuid.to_string());
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    for _ in 0..ATTEMPTS {
        let retry_after = match jobs.service.call_as(&credentials, &request).await {
            Ok(answer) if answer.is_success() => return,
            // Such as a job that was cancelled meanwhile.
            Ok(answer)
                if matches!(answer.status, 400 | 403 | 404 | 409 | 410)
                    && answer.problem().is_some() =>
            {
                let reason = answer.reason();
                tracing::warn!(
                    reason,
                    "the service before does not accept the report of the move"
                );
                return;
            }
            Ok(answer) => answer.retry_after,
            Err(_) => None,
        };
        tokio::time::sleep(backoff.next(retry_after.map(|wait| wait.min(LONGEST_PAUSE)))).await;
    }
    tracing::warn!("the move could not be reported to the service before");
}

async fn report_progress(context: &mut Context, percent: i64, message: &str) {
    context.jobs.view.clear_trouble();
    context
        .ledger
        .change(|state| state.progress(percent, message))
        .await;
    context.spool_events_now().await;
}

/// Runs one part that can be undone. Ends early when the service withdraws the job, or shortly
/// before its deadline.
async fn interruptible<T>(
    context: &Context,
    current: &Current,
    part: impl Future<Output = T>,
) -> Result<T, Stopped> {
    let jobs = &context.jobs;
    tokio::select! {
        biased;
        () = queue::until_withdrawn(jobs.requested.clone(), current.job.hub_job_uuid) => {
            Err(Stopped::Withdrawn)
        }
        () = window::until(&jobs.clock, current.abandon_at()) => {
            Err(stopped(reason::EXPIRED, "its deadline passed before it was done"))
        }
        ended = part => Ok(ended),
    }
}
