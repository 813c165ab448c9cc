//! The running agent: starts its parts, connects them, and stops them in order. Wiring only.

use std::future::Future;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ble;
use crate::clock::{self, Clock};
use crate::cloud::{CodeSource, Service};
use crate::config::RunArgs;
use crate::control;
use crate::desired;
use crate::error::Failure;
use crate::identity::StateDir;
use crate::jobs::{self, Helping, Jobs};
use crate::logs::Outbox;
use crate::pulse::{Beat, Pulses};
use crate::signals;
use crate::spool::{Spool, SpoolConfig, SpoolStopped};
use crate::status::Agent;
use crate::systemd;
use crate::telemetry;
use crate::update::Update;
use crate::uplink::Uplink;

/// What is heard is gathered for this long before it is looked at: waking once for each advertisement would cost more than all the rest.
const GATHER_FOR: Duration = Duration::from_millis(100);

/// How long the radio may take to hand over the last it heard.
const LAST_HEARD: Duration = Duration::from_millis(1_500);

/// How long the last upload may take before the end.
const LAST_UPLOAD: Duration = Duration::from_millis(2_500);

pub async fn run(args: RunArgs, outbox: Outbox) -> Result<(), Failure> {
    let started_micros = clock::since_boot_micros();
    let state_dir = Arc::new(StateDir::open(&args.common.state_dir)?);
    let clock = Arc::new(Clock::new());
    let service = Arc::new(Service::new(&args.service, state_dir.clone(), clock.clone())?);
    let pulses = Pulses::default();
    let spool_beat = pulses.register("spool", Duration::from_secs(90));
    let spool_config = SpoolConfig {
        dir: state_dir.path().to_owned(),
        max_bytes: args.spool.spool_max.0,
        disk_headroom_bytes: args.spool.disk_headroom.0,
        commit_every: args.spool.spool_commit.0,
    };
    let spool = Spool::start(spool_config, clock.clone(), move || spool_beat.beat())
        .map_err(|error| Failure::Failed(format!("the spool cannot be started: {error}")))?;

    let update = Arc::new(Update::load(&state_dir));
    let cancel = CancellationToken::new();
    let radio = ble::start(args.radio.source(), args.radio_config(), cancel.child_token())
        .map_err(|error| Failure::Config(error.to_string()))?;
    radio.roles.send_replace(desired::load_roles(&state_dir));
    let mut uplink = Uplink::new(service.clone(), spool.clone(), clock.clone(), args.spool.upload_interval.0);
    let agent = Arc::new(Agent {
        service: service.clone(),
        spool: spool.clone(),
        clock,
        health: radio.health,
        pulses: pulses.clone(),
        uploads: uplink.uploads(),
        spool_dir: state_dir.path().to_owned(),
        started_micros,
        jobs: jobs::View::default(),
        update: update.clone(),
    });
    let (wanting, wanted) = jobs::wanted();
    let helper = Helping::at(&args.jobs.helper_socket);
    let apps_changed = jobs::AppsBell::default();
    // Cancelled by a job that has brought another version of the agent.
    let restart = CancellationToken::new();

    let listeners = ble::socket::Listeners::default();
    let intake_beat = pulses.register("intake", Duration::from_secs(90));
    let mut intake = tokio::spawn(intake(radio.heard, listeners.clone(), spool.clone(), intake_beat, cancel.clone()));
    // Longer than the largest upload may take on the slowest line, its token renewed on the way.
    let uplink_beat = pulses.register("uplink", 4 * args.service.request_timeout.0 + Duration::from_secs(1_200));
    let uplinking = tokio::spawn({
        let cancel = cancel.clone();
        async move {
            // A spool that has stopped ends the intake too, which is what ends the agent.
            let _ = uplink.run(&uplink_beat, &cancel).await;
            uplink
        }
    });

    let mut tasks = JoinSet::new();
    let mut start = |name: &'static str, work: Pin<Box<dyn Future<Output = ()> + Send>>| {
        let cancel = cancel.clone();
        tasks.spawn(async move {
            cancel.run_until_cancelled_owned(work).await;
            name
        });
    };
    let codes = CodeSource::new(args.claim.claim_code, args.claim.claim_code_file);
    start("access", {
        let (service, spool) = (service.clone(), spool.clone());
        Box::pin(async move { service.keep_access(codes, &spool).await })
    });
    start("watchdog", Box::pin(async move { systemd::keep_alive(&pulses).await }));
    start("telemetry", {
        let (agent, every) = (agent.clone(), args.reports.telemetry_interval.0);
        Box::pin(async move { said(telemetry::report(agent, every).await) })
    });
    start("logs", {
        let (outbox, spool) = (outbox.clone(), spool.clone());
        Box::pin(async move { said(outbox.ship(&spool).await) })
    });
    start("adapters", Box::pin(desired::tell_adapters(service.clone(), radio.adapters)));
    start("desired state", {
        Box::pin(desired::follow(
            service.clone(),
            state_dir.clone(),
            radio.roles,
            wanting,
            args.service.request_timeout.0,
        ))
    });
    start("jobs", {
        let jobs = Jobs {
            service: service.clone(),
            spool: spool.clone(),
            clock: agent.clock.clone(),
            state_dir: state_dir.clone(),
            wanted,
            helper: helper.clone(),
            config: jobs::JobsConfig {
                release_keys: args.jobs.release_keys,
                headroom_bytes: args.spool.disk_headroom.0,
            },
            update: update.clone(),
            health: agent.health.clone(),
            view: agent.jobs.clone(),
            apps_changed: apps_changed.clone(),
            restart: restart.clone(),
        };
        Box::pin(async move { said(jobs.run().await) })
    });
    start("installed apps", {
        let (service, clock, view) = (service.clone(), agent.clock.clone(), agent.jobs.clone());
        Box::pin(jobs::report_installed(service, clock, helper, view, apps_changed))
    });
    start("update", {
        let (service, health) = (service.clone(), agent.health.clone());
        Box::pin(async move { update.confirm_when_sound(&service, &health).await })
    });
    start("certificate", {
        let service = service.clone();
        Box::pin(async move { service.keep_certificate().await })
    });
    start("control", {
        let (agent, state_dir) = (agent.clone(), state_dir.clone());
        Box::pin(async move {
            if let Err(error) = control::serve(state_dir.path(), agent).await {
                tracing::warn!(%error, "`hub-agent status` and `claim` cannot reach this agent");
                std::future::pending::<()>().await;
            }
        })
    });

    if let Some(path) = args.reports.ble_socket {
        start(
            "socket for apps",
            Box::pin(async move {
                if let Err(error) = listeners.serve(&path).await {
                    tracing::warn!(%error, path = %path.display(), "apps cannot hear what this hub hears");
                    std::future::pending::<()>().await;
                }
            }),
        );
    }

    systemd::ready();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"), service = %service.url(), state_dir = %state_dir.path().display(),
        "hub-agent runs"
    );
    let mut kept = None;
    let outcome = tokio::select! {
        stopped = asked_to_stop(args.stop_with_stdin) => stopped,
        () = restart.cancelled() => Ok(()),
        // Only an error ends it while the agent runs.
        ended = &mut intake => {
            kept = Some(ended);
            Ok(())
        }
        Some(ended) = tasks.join_next() => {
            Err(Failure::Failed(format!("a part of the agent ended unexpectedly: {}", ended.unwrap_or("panic"))))
        }
    };

    systemd::stopping();
    tracing::info!("stopping");
    cancel.cancel();
    while tasks.join_next().await.is_some() {}
    let kept = match kept {
        Some(ended) => ended,
        None => tokio::time::timeout(LAST_HEARD, intake).await.unwrap_or(Ok(Ok(()))),
    };
    let kept = kept.unwrap_or(Err(SpoolStopped)).and(outbox.deliver(&spool).await);
    if let Ok(mut uplink) = uplinking.await {
        // Whatever is not delivered now is in the spool.
        let _ = tokio::time::timeout(LAST_UPLOAD, uplink.drain()).await;
    }
    let closed = spool.close().await;
    outcome.and_then(|()| kept.and(closed).map_err(|error| Failure::Failed(error.to_string())))
}

/// A task that ends ends the agent: the reason is said here.
fn said(result: Result<(), SpoolStopped>) {
    if let Err(error) = result {
        tracing::error!(%error, "the agent cannot go on");
    }
}

async fn asked_to_stop(with_stdin: bool) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::Failed(format!("signals cannot be received: {error}"));
    tokio::select! {
        stopped = signals::asked_to_stop() => stopped.map_err(cannot),
        ended = stdin_end(), if with_stdin => ended,
    }
}

/// Waits until nobody holds the other end of standard input.
async fn stdin_end() -> Result<(), Failure> {
    let opened = std::io::stdin().as_fd().try_clone_to_owned().and_then(pipe::Receiver::from_owned_fd);
    let mut stdin =
        opened.map_err(|error| Failure::Config(format!("stop-with-stdin: standard input is no pipe: {error}")))?;
    let _ = tokio::io::copy(&mut stdin, &mut tokio::io::sink()).await;
    Ok(())
}

/// From the radio to apps that listen and to the spool, until the radio has ended.
async fn intake(
    mut heard: ble::HeardReceiver,
    listeners: ble::socket::Listeners,
    spool: Spool,
    beat: Beat,
    cancel: CancellationToken,
) -> Result<(), SpoolStopped> {
    let mut lost_before = 0;
    loop {
        beat.beat();
        let Ok(items) = tokio::time::timeout(Duration::from_secs(20), heard.next()).await else { continue };
        let Some(items) = items else { break };
        listeners.tell(&items);
        spool.append(items).await?;
        let lost = heard.dropped();
        if lost > lost_before {
            spool.lost(lost - lost_before).await?;
            lost_before = lost;
        }
        // Once cancelled there is no time to gather.
        cancel.run_until_cancelled(tokio::time::sleep(GATHER_FOR)).await;
    }
    if !cancel.is_cancelled() {
        tracing::info!("the recorded trace has ended; the agent goes on uploading");
    }
    // The watchdog is not to miss a loop that has nothing left to do.
    while !cancel.is_cancelled() {
        beat.beat();
        cancel.run_until_cancelled(tokio::time::sleep(Duration::from_secs(20))).await;
    }
    Ok(())
}
