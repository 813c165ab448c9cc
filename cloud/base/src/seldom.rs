//! What repeats for as long as its cause exists, and is said once an hour.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const REPEAT_AFTER: Duration = Duration::from_secs(3600);
/// The most keys that are remembered.
const MAX_KEYS: usize = 256;

#[derive(Debug, Default)]
pub struct Seldom(Mutex<HashMap<String, Instant>>);

impl Seldom {
    /// Whether to say it of this key now. With more keys than are remembered, it is not said of
    /// some.
    pub fn is_due(&self, key: &str) -> bool {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if keys.len() >= MAX_KEYS {
            keys.retain(|_, at| now.duration_since(*at) < REPEAT_AFTER);
        }
        let is_said = keys
            .get(key)
            .is_some_and(|at| now.duration_since(*at) < REPEAT_AFTER);
        if is_said || keys.len() >= MAX_KEYS {
            return false;
        }
        keys.insert(key.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_of_a_key_and_of_few_keys() {
        let seldom = Seldom::default();
        assert!(seldom.is_due("a"));
        assert!(!seldom.is_due("a"));
        let said = (0..1000)
            .filter(|number| seldom.is_due(&number.to_string()))
            .count();
        assert_eq!(said, MAX_KEYS - 1);
    }
}
