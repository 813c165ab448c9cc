//! Refused hosts that were logged: a pipeline tries for as long as it exists, and one line is
//! enough.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const REPEAT_AFTER: Duration = Duration::from_secs(3600);
const MAX_HOSTS: usize = 256;

#[derive(Default)]
pub struct ForbiddenLog(Mutex<HashMap<String, Instant>>);

impl ForbiddenLog {
    /// Whether to log this host now. With more hosts than are remembered, some are not logged.
    pub fn is_new(&self, host: &str) -> bool {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if hosts.len() >= MAX_HOSTS {
            hosts.retain(|_, at| now.duration_since(*at) < REPEAT_AFTER);
        }
        let is_logged = hosts
            .get(host)
            .is_some_and(|at| now.duration_since(*at) < REPEAT_AFTER);
        if is_logged || hosts.len() >= MAX_HOSTS {
            return false;
        }
        hosts.insert(host.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_logged_once_and_few_hosts_are() {
        let log = ForbiddenLog::default();
        assert!(log.is_new("a"));
        assert!(!log.is_new("a"));
        let logged = (0..1000)
            .filter(|number| log.is_new(&number.to_string()))
            .count();
        assert_eq!(logged, MAX_HOSTS - 1);
    }
}
