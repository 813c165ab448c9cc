//! The running agent: starts its parts, connects them, and stops them in order. Wiring only.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ble::{self, RadioConfig, Replay, Source};
use crate::clock::{self, Clock};
use crate::cloud::{self, CodeSource, Service};
use crate::config::{self, ReportKind, RunArgs};
use crate::control;
use crate::desired;
use crate::device_commands::{self, Commands};
use crate::error::Failure;
use crate::heartbeat::{Heartbeat, Heartbeats};
use crate::identity::StateDir;
use crate::jobs::{self, HelperClient, Jobs};
use crate::logs::Outbox;
use crate::moved;
use crate::packages;
use crate::pauses::{self, Pauses};
use crate::recording::Recording;
use crate::scan_config;
use crate::signals;
use crate::spool::{Spool, SpoolConfig, SpoolStopped};
use crate::standby;
use crate::status::Agent;
use crate::systemd;
use crate::telemetry;
use crate::update::Update;
use crate::uplink::Uplink;

/// Advertisements are collected for this long before they are processed: one wake-up for each would
/// cost more than all other work.
const GATHER_FOR: Duration = Duration::from_millis(100);

/// How long the radio may take to deliver its last advertisements.
const LAST_HEARD: Duration = Duration::from_millis(1_500);

/// How long the last upload may take.
const LAST_UPLOAD: Duration = Duration::from_millis(2_500);

/// Why the agent has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Stopped,
    /// It is to start again, at the service that a job has moved the hub to.
    Moved,
}

pub async fn run(args: RunArgs, outbox: Outbox) -> Result<Ended, Failure> {
    let started_micros = clock::since_boot_micros();
    let state_dir = Arc::new(standby::open_state_dir(&args).await?);
    let recording = service_in_force(&args, &state_dir)?;
    let clock = Arc::new(Clock::load(state_dir.path()));
    let service = Arc::new(Service::new(
        &args.service,
        state_dir.clone(),
        clock.clone(),
    )?);
    if service.has_foreign_credentials() {
        tracing::warn!(
            service = %service.url(),
            "the credentials of this hub are of another service and are shown to no other; claim the hub again \
             (hub-agent claim)"
        );
    }
    if service.is_exposed_in_plain_text() {
        tracing::warn!(service = %service.url(), "tokens cross the network in plain text; use https://");
    }
    let heartbeats = Heartbeats::default();
    let spool_beat = heartbeats.register("spool", Duration::from_secs(90));
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
    let (known_config, selection) =
        scan_config::load(state_dir.path(), &service.access().borrow()).unzip();
    let (selection, selections) = watch::channel(selection);
    let radio_config = RadioConfig {
        selection: Some(selections.clone()),
        ..radio_config(&args)
    };
    let least_window_micros = radio_config.least_window_micros.clone();
    let radio = ble::start(radio_source(&args), radio_config, cancel.child_token())
        .map_err(|error| Failure::Config(error.to_string()))?;
    if let Some(notice) = &radio.notice {
        tracing::warn!("{notice}");
    }
    radio.roles.send_replace(desired::load_roles(&state_dir));
    let (withheld, is_withheld) = watch::channel(desired::load_withheld(&state_dir));
    let (pauses, known_pauses) = watch::channel(pauses::load(state_dir.path()));
    let interval = args.spool.upload_interval.0;
    let mut uplink = Uplink::new(
        service.clone(),
        spool.clone(),
        clock.clone(),
        known_pauses.clone(),
        interval,
    );
    let agent = Arc::new(Agent {
        service: service.clone(),
        spool: spool.clone(),
        clock,
        health: radio.health,
        heartbeats: heartbeats.clone(),
        uploads: uplink.uploads(),
        spool_dir: state_dir.path().to_owned(),
        started_micros,
        jobs: jobs::View::default(),
        update: update.clone(),
        selections: selections.clone(),
    });
    let (wanted_revision, wanted_revisions) = watch::channel(None);
    let (requests, requested) = watch::channel(None);
    let helper = HelperClient::at(&args.jobs.helper_socket);
    let firmware = packages::Firmware::new(helper.clone(), radio.adapters.clone());
    let apps_changed = jobs::AppsChanged::default();
    // Cancelled by a job that has staged another version of the agent.
    let restart = CancellationToken::new();
    // Cancelled by a job that moves the hub to another service.
    let moved_on = CancellationToken::new();

    let listeners = ble::socket::Listeners::new(Some(selections));
    let intake_beat = heartbeats.register("intake", Duration::from_secs(90));
    let mut intake = tokio::spawn(intake(
        radio.heard,
        listeners.clone(),
        spool.clone(),
        (is_withheld, recording.clone()),
        intake_beat,
        cancel.clone(),
    ));
    // The limit is longer than the largest upload on the slowest connection, with a renewal of the
    // token.
    let uplink_beat = heartbeats.register(
        "uplink",
        4 * args.service.request_timeout.0 + Duration::from_secs(1_200),
    );
    let uplinking = tokio::spawn({
        let cancel = cancel.clone();
        async move {
            // A spool that has stopped also ends the intake, which ends the agent.
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
    let software_root = software_root(&args);
    let codes = match service.moved_from() {
        // The configured code is of the service that the hub was moved from.
        Some(_) => CodeSource::new(None, None),
        None => CodeSource::new(args.claim.claim_code, args.claim.claim_code_file),
    };
    start("access", {
        let (service, spool) = (service.clone(), spool.clone());
        Box::pin(async move { cloud::keep_access(&service, codes, &spool).await })
    });
    start("clock", {
        let (clock, state_dir) = (agent.clock.clone(), state_dir.clone());
        Box::pin(async move { clock.keep_known(&state_dir).await })
    });
    start(
        "watchdog",
        Box::pin(async move { systemd::keep_alive(&heartbeats).await }),
    );
    start("telemetry", {
        let (agent, every) = (agent.clone(), args.reports.telemetry_interval.0);
        Box::pin(async move { log_end(telemetry::report(agent, every).await) })
    });
    start("logs", {
        let (outbox, spool) = (outbox.clone(), spool.clone());
        Box::pin(async move { log_end(outbox.ship(&spool).await) })
    });
    start("device commands", {
        let commands = Commands {
            spool: spool.clone(),
            clock: agent.clock.clone(),
            state_dir: state_dir.clone(),
            requested: requested.clone(),
            adapters: radio.adapters.clone(),
            roles: radio.roles.subscribe(),
            allowed: args
                .radio
                .adapters
                .iter()
                .map(|address| address.to_ascii_uppercase())
                .collect(),
        };
        Box::pin(async move { log_end(device_commands::run(commands).await) })
    });
    start(
        "adapters",
        Box::pin(desired::report_adapters(service.clone(), radio.adapters)),
    );
    start("desired state", {
        let parts = desired::Parts {
            roles: radio.roles,
            jobs: requests,
            pauses,
            scan_config_revision: wanted_revision,
            withheld,
        };
        Box::pin(desired::follow(
            service.clone(),
            state_dir.clone(),
            parts,
            args.service.request_timeout.0,
        ))
    });
    start("scan configuration", {
        let (service, state_dir) = (service.clone(), state_dir.clone());
        Box::pin(scan_config::follow(
            service,
            state_dir,
            wanted_revisions,
            known_config,
            selection,
        ))
    });
    start(
        "windows",
        Box::pin(lengthen_windows(known_pauses, least_window_micros)),
    );
    start("jobs", {
        let jobs = Jobs {
            service: service.clone(),
            spool: spool.clone(),
            clock: agent.clock.clone(),
            state_dir: state_dir.clone(),
            requested,
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
            moved: moved_on.clone(),
            recording,
        };
        Box::pin(async move { log_end(jobs::run(jobs).await) })
    });
    start("installed apps", {
        let (service, clock, view) = (service.clone(), agent.clock.clone(), agent.jobs.clone());
        Box::pin(jobs::report_installed(
            service,
            clock,
            helper,
            view,
            apps_changed,
        ))
    });
    start("update", {
        let (service, health) = (service.clone(), agent.health.clone());
        Box::pin(async move { update.confirm_when_working(&service, &health).await })
    });
    start("certificate", {
        let service = service.clone();
        Box::pin(async move { cloud::keep_certificate(&service).await })
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

    if let Some(root) = software_root {
        start(
            "software",
            Box::pin(packages::report(
                service.clone(),
                state_dir.clone(),
                root,
                firmware,
                args.software.software_every.0,
            )),
        );
    }
    if let Some(path) = args.reports.ble_socket {
        start(
            "socket for apps",
            Box::pin(async move {
                if let Err(error) = listeners.serve(&path).await {
                    tracing::warn!(%error, path = %path.display(), "the socket for apps cannot be served");
                    std::future::pending::<()>().await;
                }
            }),
        );
    }

    systemd::ready();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"), service = %service.url(), state_dir = %state_dir.path().display(),
        "hub-agent is running"
    );
    let mut kept = None;
    let outcome = tokio::select! {
        stopped = signals::until_stopped(args.stop_with_stdin) => stopped,
        () = restart.cancelled() => Ok(()),
        () = moved_on.cancelled() => Ok(()),
        // While the agent runs, only an error ends it.
        ended = &mut intake => {
            kept = Some(ended);
            Ok(())
        }
        Some(ended) = tasks.join_next() => {
            Err(Failure::Failed(format!("a part of the agent ended unexpectedly: {}", ended.unwrap_or("panic"))))
        }
    };

    let is_moved = outcome.is_ok() && moved_on.is_cancelled();
    if !is_moved {
        systemd::stopping();
    }
    tracing::info!("stopping");
    cancel.cancel();
    while tasks.join_next().await.is_some() {}
    let kept = match kept {
        Some(ended) => ended,
        None => tokio::time::timeout(LAST_HEARD, intake)
            .await
            .unwrap_or(Ok(Ok(()))),
    };
    let kept = kept
        .unwrap_or(Err(SpoolStopped))
        .and(outbox.deliver(&spool).await);
    if let Ok(mut uplink) = uplinking.await {
        // Records that are not delivered now stay in the spool.
        let _ = tokio::time::timeout(LAST_UPLOAD, uplink.drain()).await;
    }
    if is_moved {
        // They belong to the owner before, and must not reach the next one.
        let _ = spool.forget().await;
    }
    let closed = spool.close().await;
    outcome.and_then(|()| {
        kept.and(closed)
            .map_err(|error| Failure::Failed(error.to_string()))
    })?;
    if !is_moved {
        return Ok(Ended::Stopped);
    }
    let left = spool.stats().total().records;
    if left > 0 {
        return Err(Failure::Failed(format!(
            "this hub does not move yet: {left} records of its owner cannot be removed from the spool"
        )));
    }
    let in_force = state_dir.on_disk(moved::put_in_force).await;
    in_force.map_err(|error| {
        Failure::Failed(format!(
            "this hub does not move yet: {} cannot be written: {error}",
            state_dir.path().display()
        ))
    })?;
    Ok(Ended::Moved)
}

/// Settles which service is in force, and whether advertisements are recorded for it.
fn service_in_force(args: &RunArgs, state_dir: &StateDir) -> Result<Recording, Failure> {
    let configured = config::service_url(&args.service)?;
    let is_moving = moved::resume(state_dir.path(), &configured).map_err(|error| {
        Failure::Failed(format!(
            "the service of this hub cannot be read from {}: {error}",
            state_dir.path().display()
        ))
    })?;
    let recording = Recording::default();
    if is_moving {
        recording.pause();
    }
    let in_force = moved::in_force(state_dir.path(), configured);
    if let Some(from) = in_force.moved_from {
        tracing::info!(
            service = %in_force.url, configured = %from,
            "a job has moved this hub to another service than the configured one"
        );
    }
    if let Some(moved) = in_force.overruled {
        tracing::warn!(
            service = %in_force.url, moved,
            "a job had moved this hub to another service; the configuration was changed since and is in force"
        );
    }
    Ok(recording)
}

/// A task that ends also ends the agent; its error is logged here.
fn log_end(result: Result<(), SpoolStopped>) {
    if let Err(error) = result {
        tracing::error!(%error, "the agent cannot continue");
    }
}

fn radio_source(args: &RunArgs) -> Source {
    let radio = &args.radio;
    match &radio.replay {
        None => Source::BlueZ,
        Some(file) => Source::Replay(Replay {
            file: file.clone(),
            speed: radio.replay_speed,
            repeat: radio.replay_loop,
        }),
    }
}

/// The root of the system whose software is reported. A replay is a trial: the software of the
/// machine that it runs on is none of the service's business.
fn software_root(args: &RunArgs) -> Option<PathBuf> {
    let given = args.software.software_root.clone();
    given.or_else(|| args.radio.replay.is_none().then(|| PathBuf::from("/")))
}

pub fn radio_config(args: &RunArgs) -> RadioConfig {
    let (radio, reports) = (&args.radio, &args.reports);
    RadioConfig {
        adapters: radio.adapters.clone(),
        mode: radio.scan_mode,
        single_events: reports.report != ReportKind::Windows,
        dedup_window: reports.dedup_window.0,
        report_window: (reports.report != ReportKind::Events).then_some(reports.report_window.0),
        trace_ratio: reports.trace_ratio,
        least_window_micros: Arc::default(),
        silence: radio.silence.0,
        selection: None,
    }
}

/// Keeps the windows of advertisements as long as the pauses between their uploads, until it is
/// dropped.
async fn lengthen_windows(
    mut pauses: watch::Receiver<Pauses>,
    least_window_micros: Arc<AtomicI64>,
) {
    loop {
        let pause_ms = match *pauses.borrow_and_update() {
            Pauses::Given(given) => given.ble_events_pause_ms,
            Pauses::Unknown | Pauses::None => 0,
        };
        least_window_micros.store(pause_ms.saturating_mul(1_000), Ordering::Relaxed);
        if pauses.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Moves advertisements from the radio to the socket for apps and to the spool, until the radio
/// ends.
async fn intake(
    mut heard: ble::HeardReceiver,
    listeners: ble::socket::Listeners,
    spool: Spool,
    (is_withheld, recording): (watch::Receiver<bool>, Recording),
    beat: Heartbeat,
    cancel: CancellationToken,
) -> Result<(), SpoolStopped> {
    let mut lost_before = 0;
    loop {
        beat.beat();
        let Ok(items) = tokio::time::timeout(Duration::from_secs(20), heard.next()).await else {
            continue;
        };
        let Some(items) = items else { break };
        listeners.send(&items);
        let is_withheld = *is_withheld.borrow();
        if !is_withheld && !recording.skips(items.len()) {
            spool.append(items).await?;
        }
        let lost = heard.dropped();
        if lost > lost_before {
            spool.lost(lost - lost_before).await?;
            lost_before = lost;
        }
        // The wait is cut short when the agent ends.
        cancel
            .run_until_cancelled(tokio::time::sleep(GATHER_FOR))
            .await;
    }
    if !cancel.is_cancelled() {
        tracing::info!("the recorded trace has ended; uploading continues");
    }
    // The watchdog expects this loop to move even when it has nothing left to do.
    while !cancel.is_cancelled() {
        beat.beat();
        cancel
            .run_until_cancelled(tokio::time::sleep(Duration::from_secs(20)))
            .await;
    }
    Ok(())
}
