//! When to ask the database for what other replicas have changed. What counts is whether a bus is
//! connected, not whether one is configured.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The interval while nothing announces changes.
const INTERVAL_WITHOUT_BUS: Duration = Duration::from_secs(1);

/// Moments to poll at.
#[derive(Debug)]
pub struct Polls {
    /// None without a bus.
    connected: Option<watch::Receiver<bool>>,
    interval_with_bus: Duration,
    interval_without_bus: Duration,
    last_at: Instant,
    /// Whether the next poll comes soon although a bus is connected: it may have been lost for a
    /// while, and what was announced then is only in the database.
    is_soon: bool,
}

impl Polls {
    pub(super) fn new(
        connected: Option<watch::Receiver<bool>>,
        interval_with_bus: Duration,
    ) -> Self {
        Self {
            connected,
            interval_with_bus,
            interval_without_bus: INTERVAL_WITHOUT_BUS,
            last_at: Instant::now(),
            is_soon: true,
        }
    }

    /// Waits for the next moment. May be dropped and called again.
    pub async fn next(&mut self) {
        loop {
            let is_connected = self
                .connected
                .as_mut()
                .is_some_and(|connected| *connected.borrow_and_update());
            let interval = match is_connected && !self.is_soon {
                true => self.interval_with_bus,
                false => self.interval_without_bus,
            };
            tokio::select! {
                () = tokio::time::sleep_until(self.last_at + interval) => {
                    self.last_at = Instant::now();
                    self.is_soon = false;
                    return;
                }
                () = changed(&mut self.connected) => self.is_soon = true,
            }
        }
    }
}

/// Waits until the bus is connected or lost. One that is closed for good is none.
async fn changed(connected: &mut Option<watch::Receiver<bool>>) {
    let Some(receiver) = connected else {
        return std::future::pending().await;
    };
    if receiver.changed().await.is_err() {
        *connected = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SELDOM: Duration = Duration::from_secs(2);
    const OFTEN: Duration = Duration::from_millis(20);

    fn polls(connected: Option<watch::Receiver<bool>>) -> Polls {
        Polls {
            interval_without_bus: OFTEN,
            ..Polls::new(connected, SELDOM)
        }
    }

    async fn is_often(polls: &mut Polls) -> bool {
        let began_at = Instant::now();
        polls.next().await;
        polls.next().await;
        began_at.elapsed() < SELDOM
    }

    #[tokio::test]
    async fn polls_are_seldom_only_while_a_bus_is_connected() {
        let (sender, connected) = watch::channel(false);
        let (mut without, mut polls) = (polls(None), polls(Some(connected)));
        assert!(is_often(&mut without).await);
        assert!(is_often(&mut polls).await, "it is away");
        sender.send_replace(true);
        assert!(!is_often(&mut polls).await, "it announces changes");
        let began_at = Instant::now();
        let waiting = tokio::spawn(async move {
            polls.next().await;
            polls
        });
        tokio::time::sleep(OFTEN).await;
        sender.send_replace(false);
        let mut polls = waiting.await.expect("the next moment");
        assert!(began_at.elapsed() < SELDOM, "it was lost");
        assert!(is_often(&mut polls).await);
        sender.send_replace(true);
        drop(sender);
        assert!(is_often(&mut polls).await, "it is closed");
    }
}
