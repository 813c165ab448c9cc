//! Notifies systemd: ready, alive, stopping, and one line of status. Does nothing if systemd did
//! not start the agent. The watchdog is fed only while every loop moves, so that a hung agent is
//! restarted.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::heartbeat::Heartbeats;

pub fn ready() {
    notify(&[NotifyState::Ready]);
}

pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// The line that `systemctl status` shows.
pub fn status(text: &str) {
    notify(&[NotifyState::Status(text)]);
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "systemd cannot be notified");
    }
}

/// Feeds the watchdog while all loops move, until it is dropped.
pub async fn keep_alive(heartbeats: &Heartbeats) {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return std::future::pending().await;
    };
    let mut interval = tokio::time::interval((limit / 3).max(Duration::from_millis(100)));
    let mut logged = None;
    loop {
        interval.tick().await;
        match heartbeats.stalled() {
            None => notify(&[NotifyState::Watchdog]),
            stalled if stalled != logged => {
                tracing::error!(
                    stalled,
                    "a part of the agent hangs; systemd will restart the agent"
                );
                logged = stalled;
            }
            _ => {}
        }
    }
}
