//! What systemd is told: ready, alive, stopping, and one line on how it goes. Says nothing when systemd did not start the agent.
//! The watchdog is kept quiet only while every loop moves: a hung agent is to be restarted.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::pulse::Pulses;

pub fn ready() {
    tell(&[NotifyState::Ready]);
}

pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// The line `systemctl status` shows.
pub fn status(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "systemd cannot be told");
    }
}

/// Keeps the watchdog quiet while all loops move, until it is dropped.
pub async fn keep_alive(pulses: &Pulses) {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return std::future::pending().await;
    };
    let mut interval = tokio::time::interval((limit / 3).max(Duration::from_millis(100)));
    let mut said = None;
    loop {
        interval.tick().await;
        match pulses.stalled() {
            None => tell(&[NotifyState::Watchdog]),
            stalled if stalled != said => {
                tracing::error!(stalled, "a part of the agent hangs; systemd will restart it");
                said = stalled;
            }
            _ => {}
        }
    }
}
