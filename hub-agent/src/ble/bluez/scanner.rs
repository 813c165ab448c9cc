//! Keeps one adapter listening: switches it on, starts discovery, watches that advertisements arrive (not that `Discovering` is true), and
//! climbs a ladder when they do not: discovery anew, power off and on, then it says so and tries again ever less often. Never gives up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hub_protocol::Timestamp;
use hub_protocol::hub::AdapterRole;
use tokio::sync::watch;
use tokio::time::Instant;

use super::bus::{Bus, CallError};
use super::wire::Value;
use super::world::{ADAPTER, MONITOR_MANAGER, Seen};
use super::{BLUEZ, Shared, control, monitor};
use crate::ble::{Health, RadioConfig, ScanMode, now};

/// BlueZ switches discovery off and on by itself; longer than this it is not its own doing.
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
    /// Scanning had ended, or not begun.
    down: bool,
    /// Advertisements noticed so far.
    heard: u64,
    is_passive: bool,
    /// Listening passively was tried and came to nothing.
    passive_failed: bool,
    silent_since: Timestamp,
    /// The ladder is being climbed because of silence.
    silence_noticed: bool,
    /// How long to leave the adapter alone when the ladder did not help. Doubles each time.
    patience: Duration,
}

/// How scanning is begun; each is a rung of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rung {
    Start,
    Restart,
    PowerCycle,
}

/// What became of watching.
enum Watched {
    Heard,
    Silence,
    Stopped(&'static str),
    RoleTaken,
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
            health: shared.world().pipeline().health().clone(),
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
        let mut rung = Rung::Start;
        let mut failures = 0;
        loop {
            if !self.is_scanner() {
                self.rest().await;
                rung = Rung::Start;
            }
            if rung != Rung::Start {
                self.health.restarted(&self.address);
            }
            match self.begin(rung).await {
                Ok(()) => {
                    failures = 0;
                    rung = self.watch(rung).await;
                }
                Err(reason) => {
                    self.blind(now(), &reason);
                    failures += 1;
                    rung = if failures > 1 { Rung::PowerCycle } else { Rung::Restart };
                    self.pause(backoff(FIRST_RETRY, failures - 1, LAST_RETRY)).await;
                }
            }
        }
    }

    /// Another role was given: lets go of the adapter until it is a scanner again.
    async fn rest(&mut self) {
        self.shared.world().set_reporting(&self.path, false);
        self.end().await;
        self.health.disabled(&self.address, now());
        self.down = true;
        let address = self.address.clone();
        let _ = self.roles.wait_for(|roles| is_scanner(roles, &address)).await;
    }

    /// Makes the adapter listen, or says why it does not.
    async fn begin(&mut self, rung: Rung) -> Result<(), String> {
        if rung == Rung::PowerCycle && self.seen().is_some_and(|seen| seen.adapter.powered) {
            self.set_powered(false).await?;
        }
        if self.seen().is_some_and(|seen| !seen.adapter.powered) {
            self.set_powered(true).await?;
        }
        if rung != Rung::Start {
            self.end().await;
        }
        // Before the call: what is heard may arrive ahead of its answer.
        self.shared.world().set_reporting(&self.path, true);
        self.is_passive = match self.config.mode {
            ScanMode::Active => false,
            ScanMode::Passive => true,
            ScanMode::Auto => !self.passive_failed && self.seen().is_some_and(|seen| seen.passive),
        };
        if self.is_passive {
            match self.begin_passive().await {
                Err(reason) if self.config.mode == ScanMode::Auto => {
                    self.give_up_passive(&reason);
                    self.end().await;
                    self.is_passive = false;
                }
                outcome => outcome?,
            }
        }
        if !self.is_passive {
            self.begin_active().await?;
        }
        if self.down {
            self.down = false;
            self.silent_since = now();
            self.health.listening(&self.address, now());
            tracing::info!(adapter = self.address, "scanning");
        }
        Ok(())
    }

    async fn begin_active(&self) -> Result<(), String> {
        let filter = Value::Dict(vec![
            (Value::Str("Transport"), Value::string("le")),
            // Without it an unchanged beacon would be heard once.
            (Value::Str("DuplicateData"), Value::boolean(true)),
        ]);
        self.bus
            .call(BLUEZ, &self.path, ADAPTER, "SetDiscoveryFilter", "a{sv}", &[filter])
            .await
            .map_err(|error| self.refused("the discovery filter", &error))?;
        match self.adapter_call("StartDiscovery").await {
            // Ours from before.
            Err(error) if error.is("InProgress") && self.seen().is_some_and(|seen| seen.is_discovering()) => Ok(()),
            outcome => outcome.map_err(|error| self.refused("discovery", &error)),
        }
    }

    async fn begin_passive(&mut self) -> Result<(), String> {
        const HINT: &str = "bluetoothd listens passively only when started with --experimental";
        let root = monitor::root_of(&self.path);
        let body = [Value::Str(&root)];
        let registered = self.bus.call(BLUEZ, &self.path, MONITOR_MANAGER, "RegisterMonitor", "o", &body).await;
        match registered {
            Err(error) if error.is("UnknownMethod") => return Err(format!("bluetoothd has no monitors; {HINT}")),
            // Ours from before.
            Err(error) if error.is("AlreadyExists") => {}
            Err(error) => return Err(format!("{}; {HINT}", self.refused("advertisement monitors", &error))),
            Ok(_) => {}
        }
        let shared = self.shared.clone();
        let decided = self.changes.wait_for(|_| {
            let state = shared.world().monitors.state(&root);
            state.all_active() || state.released > 0
        });
        let decided = tokio::time::timeout(MONITOR_TIMEOUT, decided).await.is_ok();
        match self.shared.world().monitors.state(&root) {
            state if state.all_active() => Ok(()),
            _ if decided => Err("the controller does not take the advertisement monitors".to_owned()),
            _ => Err("bluetoothd does not activate the advertisement monitors".to_owned()),
        }
    }

    fn give_up_passive(&mut self, reason: &str) {
        tracing::info!(adapter = self.address, reason, "scanning actively instead of passively");
        self.passive_failed = true;
    }

    /// Lets go of whatever scanning there was. An error means that there was none.
    async fn end(&self) {
        let _ = self.adapter_call("StopDiscovery").await;
        let root = monitor::root_of(&self.path);
        // Not while they are being taken in: bluetoothd 5.66 does not survive that.
        if self.shared.world().monitors.state(&root).all_active() {
            let body = [Value::Str(&root)];
            let _ = self.bus.call(BLUEZ, &self.path, MONITOR_MANAGER, "UnregisterMonitor", "o", &body).await;
            self.shared.world().monitors.forget(&root);
        }
    }

    async fn set_powered(&mut self, on: bool) -> Result<(), String> {
        let word = if on { "on" } else { "off" };
        let name = self.path.rsplit('/').next().unwrap_or_default();
        if let Err(error) = control::set_powered(name, on).await {
            return Err(self.refused(&format!("to switch the adapter {word}"), &error));
        }
        let (shared, path) = (self.shared.clone(), self.path.clone());
        let switched =
            self.changes.wait_for(|_| shared.world().adapter(&path).is_some_and(|seen| seen.adapter.powered == on));
        match tokio::time::timeout(POWER_TIMEOUT, switched).await {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("the adapter does not switch {word}")),
        }
    }

    fn refused(&self, what: &str, error: &CallError) -> String {
        if error.is("UnknownObject") || error.is("UnknownMethod") {
            // It has gone and we missed its farewell.
            self.shared.world().removed(&self.path, &[Value::Str(ADAPTER)]);
            self.shared.note_change();
        }
        let hint = if error.is("AccessDenied") {
            "; this user may not use Bluetooth (hub-agent check says how to mend it)"
        } else if error.is("Blocked") {
            "; try: rfkill unblock bluetooth"
        } else {
            ""
        };
        format!("bluetoothd refuses {what}: {error}{hint}")
    }

    /// Watches a scan until something has to be done about it: gives the rung to go on with.
    async fn watch(&mut self, mut rung: Rung) -> Rung {
        let mut patience = if rung == Rung::Start { self.config.silence } else { self.config.silence / 2 };
        let mut ladder_done = false;
        loop {
            match self.watch_for(patience).await {
                Watched::Heard => {
                    if rung != Rung::Start && !ladder_done && self.silence_noticed {
                        let reason = "nothing arrived until scanning was started anew";
                        self.health.was_blind(&self.address, self.silent_since, now(), reason);
                        tracing::warn!(adapter = self.address, since = %self.silent_since, reason, "the hub was blind");
                    }
                    (rung, patience, ladder_done) = (Rung::Start, self.config.silence, false);
                    self.silent_since = now();
                    self.silence_noticed = false;
                    self.patience = self.config.silence * 2;
                }
                Watched::Silence if rung == Rung::PowerCycle && !ladder_done => {
                    self.nothing_helped();
                    ladder_done = true;
                    patience = self.patience;
                    self.patience = (self.patience * 2).min(LONGEST_PATIENCE.max(self.config.silence));
                }
                Watched::Silence => {
                    if self.is_passive && self.config.mode == ScanMode::Auto && self.heard == 0 {
                        self.give_up_passive("nothing was heard passively");
                    }
                    self.silence_noticed = true;
                    return if rung == Rung::Restart { Rung::PowerCycle } else { Rung::Restart };
                }
                Watched::Stopped(reason) => {
                    self.blind(now(), reason);
                    return Rung::Restart;
                }
                Watched::RoleTaken => return Rung::Start,
            }
        }
    }

    /// Waits until something is heard, or nothing was for too long, or scanning has ended.
    async fn watch_for(&mut self, patience: Duration) -> Watched {
        let began = Instant::now();
        let step = (self.config.silence / 10).clamp(Duration::from_millis(50), Duration::from_secs(1));
        let mut stopped_at = None;
        loop {
            tokio::select! {
                _ = self.changes.changed() => {}
                _ = self.roles.changed() => {}
                () = tokio::time::sleep(step) => {}
            }
            if !self.is_scanner() {
                return Watched::RoleTaken;
            }
            // An adapter that has gone has no scanner for long.
            let Some(seen) = self.seen() else { return std::future::pending().await };
            if seen.heard > self.heard {
                self.heard = seen.heard;
                return Watched::Heard;
            }
            let reason = if !seen.adapter.powered {
                "the adapter was switched off"
            } else if self.is_passive && self.monitors_released() {
                "bluetoothd has let go of the advertisement monitors"
            } else if !self.is_passive && !seen.is_discovering() {
                "discovery was ended from outside"
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

    /// The whole ladder was climbed, and every step of it went well.
    fn nothing_helped(&self) {
        let many = self.seen().is_some_and(|seen| seen.heard_many());
        self.shared.world().forget_advertisers(&self.path);
        if many {
            let reason = "all advertisers fell silent at once, and neither scanning anew nor switching the adapter off and on helped";
            if self.health.blind(&self.address, self.silent_since, reason) {
                tracing::warn!(adapter = self.address, reason, "the hub is blind");
            }
        } else {
            self.health.silent(&self.address, now());
            tracing::info!(adapter = self.address, "nothing is on the air");
        }
    }

    fn blind(&mut self, from: Timestamp, reason: &str) {
        self.down = true;
        if self.health.blind(&self.address, from, reason) {
            tracing::warn!(adapter = self.address, reason, "the hub is blind");
        }
    }

    async fn adapter_call(&self, method: &str) -> Result<(), CallError> {
        self.bus.call(BLUEZ, &self.path, ADAPTER, method, "", &[]).await.map(drop)
    }

    fn seen(&self) -> Option<Seen> {
        self.shared.world().adapter(&self.path).cloned()
    }

    fn monitors_released(&self) -> bool {
        self.shared.world().monitors.state(&monitor::root_of(&self.path)).released > 0
    }

    fn is_scanner(&self) -> bool {
        is_scanner(&self.roles.borrow(), &self.address)
    }

    /// Waits, but not for longer than the role stays.
    async fn pause(&mut self, time: Duration) {
        let address = self.address.clone();
        let taken = self.roles.wait_for(|roles| !is_scanner(roles, &address));
        let _ = tokio::time::timeout(time, taken).await;
    }
}

pub fn is_scanner(roles: &BTreeMap<String, AdapterRole>, address: &str) -> bool {
    let role = roles.iter().find(|(named, _)| named.eq_ignore_ascii_case(address));
    role.is_none_or(|(_, role)| *role == AdapterRole::Scanner)
}

fn backoff(first: Duration, failures: u32, last: Duration) -> Duration {
    first.saturating_mul(1 << failures.min(16)).min(last)
}
