//! Keeps one adapter listening: powers it on, starts discovery, and watches that advertisements
//! arrive (not that `Discovering` is true). If none arrive, it escalates: restarts discovery,
//! power-cycles the adapter, then reports the hub blind and retries at growing intervals. Never
//! gives up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hub_protocol::Timestamp;
use hub_protocol::hub::AdapterRole;
use tokio::sync::watch;
use tokio::time::Instant;

use super::bus::{Bus, CallError};
use super::names::BLUEZ;
use super::objects::{ADAPTER, MONITOR_MANAGER, Seen};
use super::shared::Shared;
use super::wire::Value;
use super::{control, monitor};
use crate::ble::health::Health;
use crate::ble::types::{RadioConfig, now};
use crate::config::ScanMode;

/// BlueZ itself switches discovery off and on; a longer pause has another cause.
const GRACE: Duration = Duration::from_secs(2);
const MONITOR_TIMEOUT: Duration = Duration::from_secs(8);
const POWER_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);
const LONGEST_PATIENCE: Duration = Duration::from_secs(3600);

pub struct Scanner {
    bus: Bus,
    shared: Shared,
    config: Arc<RadioConfig>,
    health: Health,
    changes: watch::Receiver<u64>,
    roles: watch::Receiver<BTreeMap<String, AdapterRole>>,
    address: String,
    path: String,
    /// Scanning has ended, or not begun.
    down: bool,
    /// Advertisements counted so far.
    heard: u64,
    is_passive: bool,
    /// Passive scanning was tried and failed.
    passive_failed: bool,
    silent_since: Timestamp,
    /// The escalation was caused by silence.
    silence_noticed: bool,
    /// How long to leave the adapter alone after the escalation did not help. Doubles each time.
    patience: Duration,
}

/// How scanning is started: the steps of the escalation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Restart,
    PowerCycle,
}

/// The outcome of watching.
enum Watched {
    Heard,
    Silence,
    Stopped(&'static str),
    RoleChanged,
}

impl Scanner {
    pub fn new(
        bus: &Bus,
        shared: &Shared,
        config: &Arc<RadioConfig>,
        roles: &watch::Receiver<BTreeMap<String, AdapterRole>>,
        address: &str,
        path: &str,
    ) -> Self {
        Self {
            bus: bus.clone(),
            shared: shared.clone(),
            config: config.clone(),
            health: shared.objects().pipeline().health().clone(),
            changes: shared.changes.subscribe(),
            roles: roles.clone(),
            address: address.to_owned(),
            path: path.to_owned(),
            down: true,
            heard: 0,
            is_passive: false,
            passive_failed: false,
            silent_since: now(),
            silence_noticed: false,
            patience: config.silence * 2,
        }
    }

    /// Runs until aborted.
    pub async fn run(mut self) {
        let mut step = Step::Start;
        let mut failures = 0;
        loop {
            if !self.is_scanner() {
                self.rest().await;
                step = Step::Start;
            }
            if step != Step::Start {
                self.health.restarted(&self.address);
            }
            match self.start(step).await {
                Ok(()) => {
                    failures = 0;
                    step = self.watch(step).await;
                }
                Err(reason) => {
                    self.blind(now(), &reason);
                    failures += 1;
                    step = if failures > 1 {
                        Step::PowerCycle
                    } else {
                        Step::Restart
                    };
                    self.pause(backoff(FIRST_RETRY, failures - 1, LAST_RETRY))
                        .await;
                }
            }
        }
    }

    /// Releases an adapter that has another role until its role is to scan.
    async fn rest(&mut self) {
        self.shared.objects().set_reporting(&self.path, false);
        self.stop().await;
        self.health.disabled(&self.address, now());
        self.down = true;
        let address = self.address.clone();
        let _ = self
            .roles
            .wait_for(|roles| is_scanner(roles, &address))
            .await;
    }

    /// Starts scanning. The error is the reason why that failed.
    async fn start(&mut self, step: Step) -> Result<(), String> {
        if step == Step::PowerCycle && self.seen().is_some_and(|seen| seen.adapter.powered) {
            self.set_powered(false).await?;
        }
        if self.seen().is_some_and(|seen| !seen.adapter.powered) {
            self.set_powered(true).await?;
        }
        if step != Step::Start {
            self.stop().await;
        }
        // Reporting begins before the call: advertisements may arrive before its answer.
        self.shared.objects().set_reporting(&self.path, true);
        self.is_passive = match self.config.mode {
            ScanMode::Active => false,
            ScanMode::Passive => true,
            ScanMode::Auto => !self.passive_failed && self.seen().is_some_and(|seen| seen.passive),
        };
        if self.is_passive {
            match self.start_passive().await {
                Err(reason) if self.config.mode == ScanMode::Auto => {
                    self.abandon_passive(&reason);
                    self.stop().await;
                    self.is_passive = false;
                }
                outcome => outcome?,
            }
        }
        if !self.is_passive {
            self.start_active().await?;
        }
        if self.down {
            self.down = false;
            self.silent_since = now();
            self.health.listening(&self.address, now());
            tracing::info!(adapter = self.address, "scanning");
        }
        Ok(())
    }

    async fn start_active(&self) -> Result<(), String> {
        let filter = Value::Dict(vec![
            (Value::Str("Transport"), Value::string("le")),
            // Without `DuplicateData` an unchanged beacon would be reported only once.
            (Value::Str("DuplicateData"), Value::boolean(true)),
        ]);
        self.bus
            .call(
                BLUEZ,
                &self.path,
                ADAPTER,
                "SetDiscoveryFilter",
                "a{sv}",
                &[filter],
            )
            .await
            .map_err(|error| self.refused("the discovery filter", &error))?;
        match self.adapter_call("StartDiscovery").await {
            // Our own, from before.
            Err(error)
                if error.is("InProgress")
                    && self.seen().is_some_and(|seen| seen.is_discovering()) =>
            {
                Ok(())
            }
            outcome => outcome.map_err(|error| self.refused("discovery", &error)),
        }
    }

    async fn start_passive(&mut self) -> Result<(), String> {
        const HINT: &str = "bluetoothd scans passively only when started with --experimental";
        let root = monitor::root_of(&self.path);
        let body = [Value::Str(&root)];
        let registered = self
            .bus
            .call(
                BLUEZ,
                &self.path,
                MONITOR_MANAGER,
                "RegisterMonitor",
                "o",
                &body,
            )
            .await;
        match registered {
            Err(error) if error.is("UnknownMethod") => {
                return Err(format!("bluetoothd has no monitors; {HINT}"));
            }
            // Our own, from before.
            Err(error) if error.is("AlreadyExists") => {}
            Err(error) => {
                return Err(format!(
                    "{}; {HINT}",
                    self.refused("advertisement monitors", &error)
                ));
            }
            Ok(_) => {}
        }
        let shared = self.shared.clone();
        let decided = self.changes.wait_for(|_| {
            let state = shared.objects().monitors.state(&root);
            state.all_active() || state.released > 0
        });
        let decided = tokio::time::timeout(MONITOR_TIMEOUT, decided).await.is_ok();
        match self.shared.objects().monitors.state(&root) {
            state if state.all_active() => Ok(()),
            _ if decided => {
                Err("the controller does not accept the advertisement monitors".to_owned())
            }
            _ => Err("bluetoothd does not activate the advertisement monitors".to_owned()),
        }
    }

    fn abandon_passive(&mut self, reason: &str) {
        tracing::info!(
            adapter = self.address,
            reason,
            "scanning actively instead of passively"
        );
        self.passive_failed = true;
    }

    /// Ends any scanning. An error means that there was none.
    async fn stop(&self) {
        let _ = self.adapter_call("StopDiscovery").await;
        let root = monitor::root_of(&self.path);
        // Monitors are not unregistered while they are being registered: bluetoothd 5.66 crashes.
        if self.shared.objects().monitors.state(&root).all_active() {
            let body = [Value::Str(&root)];
            let _ = self
                .bus
                .call(
                    BLUEZ,
                    &self.path,
                    MONITOR_MANAGER,
                    "UnregisterMonitor",
                    "o",
                    &body,
                )
                .await;
            self.shared.objects().monitors.forget(&root);
        }
    }

    async fn set_powered(&mut self, on: bool) -> Result<(), String> {
        let word = if on { "on" } else { "off" };
        let name = self.path.rsplit('/').next().unwrap_or_default();
        if let Err(error) = control::set_powered(name, on).await {
            return Err(self.refused(&format!("to switch the adapter {word}"), &error));
        }
        let (shared, path) = (self.shared.clone(), self.path.clone());
        let switched = self.changes.wait_for(|_| {
            shared
                .objects()
                .adapter(&path)
                .is_some_and(|seen| seen.adapter.powered == on)
        });
        match tokio::time::timeout(POWER_TIMEOUT, switched).await {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("the adapter does not switch {word}")),
        }
    }

    fn refused(&self, what: &str, error: &CallError) -> String {
        if error.is("UnknownObject") || error.is("UnknownMethod") {
            // The adapter was removed and the signal was missed.
            self.shared
                .objects()
                .removed(&self.path, &[Value::Str(ADAPTER)]);
            self.shared.note_change();
        }
        let hint = if error.is("AccessDenied") {
            "; this user may not use Bluetooth (hub-agent check shows how to fix it)"
        } else if error.is("Blocked") {
            "; try: rfkill unblock bluetooth"
        } else {
            ""
        };
        format!("bluetoothd refuses {what}: {error}{hint}")
    }

    /// Watches a scan until something has to be done. Returns the next step.
    async fn watch(&mut self, mut step: Step) -> Step {
        let mut patience = if step == Step::Start {
            self.config.silence
        } else {
            self.config.silence / 2
        };
        let mut is_escalated = false;
        loop {
            match self.watch_for(patience).await {
                Watched::Heard => {
                    if step != Step::Start && !is_escalated && self.silence_noticed {
                        let reason = "no advertisement arrived until scanning was restarted";
                        self.health
                            .was_blind(&self.address, self.silent_since, now(), reason);
                        tracing::warn!(adapter = self.address, since = %self.silent_since, reason, "the hub was blind");
                    }
                    (step, patience, is_escalated) = (Step::Start, self.config.silence, false);
                    self.silent_since = now();
                    self.silence_noticed = false;
                    self.patience = self.config.silence * 2;
                }
                Watched::Silence if step == Step::PowerCycle && !is_escalated => {
                    self.note_no_effect();
                    is_escalated = true;
                    patience = self.patience;
                    self.patience =
                        (self.patience * 2).min(LONGEST_PATIENCE.max(self.config.silence));
                }
                Watched::Silence => {
                    if self.is_passive && self.config.mode == ScanMode::Auto && self.heard == 0 {
                        self.abandon_passive("nothing was received passively");
                    }
                    self.silence_noticed = true;
                    return if step == Step::Restart {
                        Step::PowerCycle
                    } else {
                        Step::Restart
                    };
                }
                Watched::Stopped(reason) => {
                    self.blind(now(), reason);
                    return Step::Restart;
                }
                Watched::RoleChanged => return Step::Start,
            }
        }
    }

    /// Waits until an advertisement arrives, none has for too long, or scanning has ended.
    async fn watch_for(&mut self, patience: Duration) -> Watched {
        let began = Instant::now();
        let step =
            (self.config.silence / 10).clamp(Duration::from_millis(50), Duration::from_secs(1));
        let mut stopped_at = None;
        loop {
            tokio::select! {
                _ = self.changes.changed() => {}
                _ = self.roles.changed() => {}
                () = tokio::time::sleep(step) => {}
            }
            if !self.is_scanner() {
                return Watched::RoleChanged;
            }
            // The scanner of a removed adapter is aborted soon.
            let Some(seen) = self.seen() else {
                return std::future::pending().await;
            };
            if seen.heard > self.heard {
                self.heard = seen.heard;
                return Watched::Heard;
            }
            let reason = if !seen.adapter.powered {
                "the adapter was switched off"
            } else if self.is_passive && self.monitors_released() {
                "bluetoothd has released the advertisement monitors"
            } else if !self.is_passive && !seen.is_discovering() {
                "discovery was ended by another program"
            } else {
                stopped_at = None;
                if began.elapsed() >= patience {
                    return Watched::Silence;
                }
                continue;
            };
            if stopped_at.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                return Watched::Stopped(reason);
            }
        }
    }

    /// Every step of the escalation succeeded and nothing was received.
    fn note_no_effect(&self) {
        let heard_several = self.seen().is_some_and(|seen| seen.heard_several());
        self.shared.objects().forget_advertisers(&self.path);
        if heard_several {
            let reason = "all advertisers fell silent at once, and neither a restarted scan nor a power cycle of the adapter helped";
            if self.health.blind(&self.address, self.silent_since, reason) {
                tracing::warn!(adapter = self.address, reason, "the hub is blind");
            }
        } else {
            self.health.silent(&self.address, now());
            tracing::info!(adapter = self.address, "no device advertises nearby");
        }
    }

    fn blind(&mut self, from: Timestamp, reason: &str) {
        self.down = true;
        if self.health.blind(&self.address, from, reason) {
            tracing::warn!(adapter = self.address, reason, "the hub is blind");
        }
    }

    async fn adapter_call(&self, method: &str) -> Result<(), CallError> {
        self.bus
            .call(BLUEZ, &self.path, ADAPTER, method, "", &[])
            .await
            .map(drop)
    }

    fn seen(&self) -> Option<Seen> {
        self.shared.objects().adapter(&self.path).cloned()
    }

    fn monitors_released(&self) -> bool {
        self.shared
            .objects()
            .monitors
            .state(&monitor::root_of(&self.path))
            .released
            > 0
    }

    fn is_scanner(&self) -> bool {
        is_scanner(&self.roles.borrow(), &self.address)
    }

    /// Waits, but not longer than the role stays.
    async fn pause(&mut self, time: Duration) {
        let address = self.address.clone();
        let changed = self.roles.wait_for(|roles| !is_scanner(roles, &address));
        let _ = tokio::time::timeout(time, changed).await;
    }
}

pub fn is_scanner(roles: &BTreeMap<String, AdapterRole>, address: &str) -> bool {
    let role = roles
        .iter()
        .find(|(named, _)| named.eq_ignore_ascii_case(address));
    role.is_none_or(|(_, role)| *role == AdapterRole::Scanner)
}

fn backoff(first: Duration, failures: u32, last: Duration) -> Duration {
    first.saturating_mul(1 << failures.min(16)).min(last)
}
