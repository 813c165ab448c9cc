//! Which other replicas of the service share the bus with this one. Each announces itself every few
//! seconds; the log says when one is first seen and when it has been silent for a while. Nothing
//! else depends on it.

use std::collections::HashMap;
use std::time::Duration;

use hub_base::bus::Subscription;
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use crate::Core;

const TOPIC: &str = "replica";
const INTERVAL: Duration = Duration::from_secs(10);
/// A replica that missed this many announcements in a row is considered ended.
const GONE_AFTER: Duration = INTERVAL.saturating_mul(4);
/// The most replicas in memory, far more than a deployment has.
const MAX_REPLICAS: usize = 256;

struct Replica {
    /// Version and host name, for the log.
    name: String,
    heard_at: Instant,
}

/// The subscription to the announcements, and what announces this replica and reads the others'
/// until the service ends.
pub fn follow(core: Core) -> (impl Future<Output = ()>, Subscription) {
    let (messages, announced) = mpsc::channel(64);
    (
        run(core, announced),
        Subscription {
            topic: TOPIC,
            messages,
        },
    )
}

async fn run(core: Core, mut announced: mpsc::Receiver<String>) {
    core.metrics.replicas.set(1);
    let Some(mut connected) = core.bus.connection() else {
        return;
    };
    let own = format!(
        "{} {} {}",
        Uuid::new_v4(),
        env!("CARGO_PKG_VERSION"),
        host_name()
    );
    let mut known = HashMap::new();
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        tokio::select! {
            () = core.shutdown.cancelled() => return,
            // What is announced while the bus is away is heard by nobody.
            Ok(()) = connected.changed() => {
                if *connected.borrow_and_update() {
                    ticks.reset_immediately();
                }
                continue;
            }
            _ = ticks.tick() => {
                core.bus.publish(TOPIC, &own).await;
                forget_silent(&mut known, Instant::now());
            }
            Some(message) = announced.recv() => {
                // The bus delivers a replica's own messages too.
                if message != own && hear(&mut known, &message, Instant::now()) {
                    core.bus.publish(TOPIC, &own).await;
                }
            }
        }
        core.metrics
            .replicas
            .set(i64::try_from(known.len() + 1).unwrap_or(i64::MAX));
    }
}

/// Returns whether the replica is new, so that it lacks an announcement of this one.
fn hear(known: &mut HashMap<String, Replica>, message: &str, now: Instant) -> bool {
    let Some((id, name)) = message.split_once(' ') else {
        return false;
    };
    if let Some(replica) = known.get_mut(id) {
        replica.heard_at = now;
        return false;
    }
    if known.len() >= MAX_REPLICAS {
        return false;
    }
    tracing::info!(replica = name, "another replica is seen");
    known.insert(
        id.to_owned(),
        Replica {
            name: name.to_owned(),
            heard_at: now,
        },
    );
    true
}

fn forget_silent(known: &mut HashMap<String, Replica>, now: Instant) {
    known.retain(|_, replica| {
        let is_there = now.duration_since(replica.heard_at) < GONE_AFTER;
        if !is_there {
            tracing::info!(
                replica = replica.name,
                "another replica is gone: it has stopped or lost the bus"
            );
        }
        is_there
    });
}

fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_known_until_it_is_silent() {
        let (mut known, now) = (HashMap::new(), Instant::now());
        assert!(hear(&mut known, "a 0.1.0 roof", now));
        assert!(!hear(&mut known, "a 0.1.0 roof", now + INTERVAL));
        assert!(!hear(&mut known, "no-name", now));
        assert_eq!(known.len(), 1);
        forget_silent(&mut known, now + GONE_AFTER);
        assert_eq!(known.len(), 1, "heard since");
        forget_silent(&mut known, now + INTERVAL + GONE_AFTER);
        assert!(known.is_empty());
    }

    #[test]
    fn replicas_beyond_the_bound_are_not_remembered() {
        let (mut known, now) = (HashMap::new(), Instant::now());
        for number in 0..=MAX_REPLICAS {
            hear(&mut known, &format!("{number} 0.1.0 roof"), now);
        }
        assert_eq!(known.len(), MAX_REPLICAS);
    }
}
