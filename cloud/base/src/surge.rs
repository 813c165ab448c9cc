//! What the log says one by one while it is rare, and in numbers while it is not: failed logins,
//! claims, pipelines that begin to fail. So a thousand of them are a line at the beginning and a
//! line at the end, and nobody who causes them fills the log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many within a window are a surge.
const MANY: u64 = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// One kind of event. Each replica counts its own.
#[derive(Debug)]
pub struct Surge {
    /// The events, in the plural.
    what: &'static str,
    /// Where to look.
    advice: &'static str,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    window_began: Option<Instant>,
    in_window: u64,
    current: Option<Current>,
}

/// A surge that is not over.
#[derive(Debug)]
struct Current {
    began: Instant,
    last_many: Instant,
    count: u64,
}

/// What to say of an event.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Alone,
    BeginsSurge,
    Counted,
}

impl Surge {
    pub const fn new(what: &'static str, advice: &'static str) -> Self {
        Self {
            what,
            advice,
            state: Mutex::new(State {
                window_began: None,
                in_window: 0,
                current: None,
            }),
        }
    }

    /// Counts an event. Returns whether it is to be logged by itself.
    pub fn is_single(&self) -> bool {
        let said = self.state().count(Instant::now());
        if said == Said::BeginsSurge {
            let (what, advice) = (self.what, self.advice);
            tracing::warn!(
                count = MANY,
                "{what}: many within a minute, so from now on they are counted and not logged; {advice}"
            );
        }
        said == Said::Alone
    }

    /// Logs the end of a surge, once no minute has had many for a minute.
    pub fn log_end(&self) {
        let ended = self.state().end(Instant::now());
        if let Some((count, duration)) = ended {
            let what = self.what;
            tracing::warn!(count, secs = duration.as_secs(), "{what}: few again");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&mut self, now: Instant) -> Said {
        let began = *self.window_began.get_or_insert(now);
        if now.saturating_duration_since(began) >= WINDOW {
            (self.window_began, self.in_window) = (Some(now), 0);
        }
        self.in_window = self.in_window.saturating_add(1);
        let is_many = self.in_window >= MANY;
        match &mut self.current {
            Some(current) => {
                current.count = current.count.saturating_add(1);
                if is_many {
                    current.last_many = now;
                }
                Said::Counted
            }
            None if is_many => {
                self.current = Some(Current {
                    began,
                    last_many: now,
                    count: self.in_window,
                });
                Said::BeginsSurge
            }
            None => Said::Alone,
        }
    }

    fn end(&mut self, now: Instant) -> Option<(u64, Duration)> {
        let is_over =
            |current: &mut Current| now.saturating_duration_since(current.last_many) >= WINDOW;
        let ended = self.current.take_if(is_over)?;
        let duration = ended.last_many.saturating_duration_since(ended.began);
        Some((ended.count, duration))
    }
}

/// All that are counted.
#[derive(Debug)]
pub struct Surges {
    pub failed_logins: Surge,
    pub claims: Surge,
    pub refused_claims: Surge,
    pub failing_pipelines: Surge,
    pub recovered_pipelines: Surge,
    /// Tenants that lose hubs or are flooded by them, and those where that is over.
    pub hubs_of_tenants: Surge,
}

impl Surges {
    pub const fn new() -> Self {
        Self {
            failed_logins: Surge::new(
                "failed logins",
                "GET /platform/audit-logs?action=user.login_failed has who and from where",
            ),
            claims: Surge::new(
                "claims of hubs",
                "GET /platform/audit-logs?action=hub.claim has the hubs; if nobody sets up hubs, revoke the claim code",
            ),
            refused_claims: Surge::new(
                "refused claims",
                "GET /platform/audit-logs?action=hub.claim_refused has the reasons",
            ),
            failing_pipelines: Surge::new(
                "pipelines that begin to fail",
                "look for what their receivers share: the way out, DNS, proxy, certificates of this machine",
            ),
            recovered_pipelines: Surge::new(
                "pipelines that deliver again",
                "GET /platform/summary has how many still fail",
            ),
            hubs_of_tenants: Surge::new(
                "tenants whose hubs go offline, come back, or flood",
                "the metrics hubs_lost and hubs_flooding have the numbers; look for what tenants share: this service, its network",
            ),
        }
    }

    /// Logs the surges that have ended.
    pub fn log_ends(&self) {
        let Self {
            failed_logins,
            claims,
            refused_claims,
            failing_pipelines,
            recovered_pipelines,
            hubs_of_tenants,
        } = self;
        for surge in [
            failed_logins,
            claims,
            refused_claims,
            failing_pipelines,
            recovered_pipelines,
            hubs_of_tenants,
        ] {
            surge.log_end();
        }
    }
}

impl Default for Surges {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_events_are_nine_lines_a_beginning_and_an_end() {
        let (mut state, start) = (State::default(), Instant::now());
        let said: Vec<Said> = (0..1000)
            .map(|nth| state.count(start + Duration::from_millis(nth * 100)))
            .collect();
        let count = |which: Said| said.iter().filter(|said| **said == which).count();
        assert_eq!((count(Said::Alone), count(Said::BeginsSurge)), (9, 1));
        assert_eq!(state.end(start + Duration::from_secs(120)), None);
        let ended = state.end(start + Duration::from_secs(160));
        assert_eq!(ended.map(|(count, _)| count), Some(1000));
        assert_eq!(state.end(start + Duration::from_secs(200)), None, "once");
        assert_eq!(state.count(start + Duration::from_secs(300)), Said::Alone);
    }

    #[test]
    fn few_in_a_minute_are_each_said() {
        let (mut state, start) = (State::default(), Instant::now());
        for nth in 0..100 {
            let at = start + Duration::from_secs(nth * 8);
            assert_eq!(state.count(at), Said::Alone);
            assert_eq!(state.end(at), None);
        }
    }
}
