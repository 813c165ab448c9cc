//! How far a lane is: a cursor, and the units after it. A unit is a range of the log whose events
//! are in one message, or in none. Units are settled in any order; the cursor moves over those
//! that are settled without a gap.

use std::collections::VecDeque;
use std::sync::Arc;

use hub_destinations::Message;

use super::done::DeadLetter;
use super::feed::LogEvent;

/// A message, and what it is made of.
pub struct Batch {
    pub message: Message,
    /// The ids of its events.
    pub ids: Vec<i64>,
    pub first: Arc<LogEvent>,
    /// About its size.
    pub bytes: usize,
}

/// A range of the log: from the end of the unit before it up to `to`.
pub struct Unit {
    pub to: i64,
    pub batch: Option<Arc<Batch>>,
    /// Events that steps could not make a message of.
    pub dead: Vec<DeadLetter>,
    pub attempts: i64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    InFlight,
    Settled,
}

impl Unit {
    /// Without a message there is nothing to wait for.
    pub fn new(to: i64, batch: Option<Arc<Batch>>, dead: Vec<DeadLetter>) -> Self {
        let state = if batch.is_some() {
            State::Waiting
        } else {
            State::Settled
        };
        Self {
            to,
            batch,
            dead,
            attempts: 0,
            state,
        }
    }
}

pub struct Progress {
    pub cursor: i64,
    units: VecDeque<Unit>,
    /// Ranges that were settled before this lane was taken over. The units do not cover them until
    /// the builder has read so far, and until then they are still stored.
    settled_before: Vec<(i64, i64)>,
}

impl Progress {
    pub fn new(cursor: i64, settled_before: Vec<(i64, i64)>) -> Self {
        Self {
            cursor,
            units: VecDeque::new(),
            settled_before,
        }
    }

    pub fn push(&mut self, unit: Unit) {
        self.units.push_back(unit);
    }

    pub fn len(&self) -> usize {
        self.units.len()
    }

    pub fn has_waiting(&self) -> bool {
        self.units.iter().any(|unit| unit.state == State::Waiting)
    }

    /// The first message that waits; it is under way now.
    pub fn start(&mut self) -> Option<(i64, Arc<Batch>, i64)> {
        let unit = self
            .units
            .iter_mut()
            .find(|unit| unit.state == State::Waiting)?;
        unit.state = State::InFlight;
        unit.attempts += 1;
        unit.batch
            .clone()
            .map(|batch| (unit.to, batch, unit.attempts))
    }

    /// The message of a unit has to be sent again.
    pub fn failed(&mut self, to: i64) {
        if let Some(unit) = self.units.iter_mut().find(|unit| unit.to == to) {
            unit.state = State::Waiting;
        }
    }

    pub fn settled(&mut self, to: i64) {
        if let Some(unit) = self.units.iter_mut().find(|unit| unit.to == to) {
            unit.state = State::Settled;
        }
    }

    /// Moves the cursor over what is settled; returns the dead letters in it.
    pub fn advance(&mut self) -> Vec<DeadLetter> {
        let mut dead = Vec::new();
        while self
            .units
            .front()
            .is_some_and(|unit| unit.state == State::Settled)
            && let Some(unit) = self.units.pop_front()
        {
            self.cursor = unit.to;
            dead.extend(unit.dead);
        }
        self.settled_before.retain(|(_, end)| *end > self.cursor);
        dead
    }

    /// The ranges after the cursor that are settled, as JSON; None if there are none. Units with
    /// dead letters are not among them: their letters are stored when the cursor reaches them.
    pub fn settled_ahead(&self) -> Option<String> {
        let mut settled: Vec<(i64, i64)> = self
            .settled_before
            .iter()
            .map(|(after, end)| ((*after).max(self.cursor), *end))
            .collect();
        let mut after = self.cursor;
        for unit in &self.units {
            if unit.state == State::Settled && unit.dead.is_empty() {
                settled.push((after, unit.to));
            }
            after = unit.to;
        }
        settled.sort_unstable();
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        for (after, to) in settled {
            match ranges.last_mut().filter(|(_, end)| *end >= after) {
                Some((_, end)) => *end = to.max(*end),
                None => ranges.push((after, to)),
            }
        }
        if ranges.is_empty() {
            None
        } else {
            serde_json::to_string(&ranges).ok()
        }
    }

    /// The ends of the messages that are not settled, and of those that the builder has still to
    /// make as they were before, as JSON; None if there are none.
    pub fn planned(&self, still_to_make: &VecDeque<i64>) -> Option<String> {
        let ends: Vec<i64> = self
            .units
            .iter()
            .filter(|unit| unit.batch.is_some() && unit.state != State::Settled)
            .map(|unit| unit.to)
            .chain(still_to_make.iter().copied())
            .collect();
        if ends.is_empty() {
            None
        } else {
            serde_json::to_string(&ends).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units that wait for something else than a message.
    fn progress(ends: &[i64]) -> Progress {
        let mut progress = Progress::new(10, Vec::new());
        for to in ends {
            let state = State::Waiting;
            progress.push(Unit {
                to: *to,
                batch: None,
                dead: Vec::new(),
                attempts: 0,
                state,
            });
        }
        progress
    }

    #[test]
    fn the_cursor_moves_over_what_is_settled_without_a_gap() {
        let mut progress = progress(&[20, 30, 40, 50]);
        progress.settled(30);
        progress.settled(40);
        assert!(progress.advance().is_empty());
        assert_eq!(progress.cursor, 10);
        assert_eq!(progress.settled_ahead().as_deref(), Some("[[20,40]]"));
        progress.settled(20);
        progress.advance();
        assert_eq!(
            (progress.cursor, progress.settled_ahead(), progress.len()),
            (40, None, 1)
        );
        progress.failed(50);
        assert!(progress.has_waiting());
    }

    #[test]
    fn what_was_settled_before_a_restart_stays_so_until_the_cursor_is_there() {
        let mut progress = Progress::new(10, vec![(20, 30), (40, 60)]);
        assert_eq!(
            progress.settled_ahead().as_deref(),
            Some("[[20,30],[40,60]]"),
            "before anything is read"
        );
        for to in [20, 35] {
            progress.push(Unit {
                to,
                batch: None,
                dead: Vec::new(),
                attempts: 0,
                state: State::Waiting,
            });
        }
        progress.settled(35);
        assert_eq!(
            progress.settled_ahead().as_deref(),
            Some("[[20,35],[40,60]]")
        );
        progress.settled(20);
        progress.advance();
        assert_eq!(progress.settled_ahead().as_deref(), Some("[[40,60]]"));
        progress.push(Unit::new(60, None, Vec::new()));
        progress.advance();
        assert_eq!((progress.cursor, progress.settled_ahead()), (60, None));
    }

    #[test]
    fn messages_that_are_still_to_be_made_as_before_stay_planned() {
        let progress = Progress::new(10, Vec::new());
        assert_eq!(progress.planned(&VecDeque::new()), None);
        assert_eq!(
            progress.planned(&VecDeque::from([20, 30])).as_deref(),
            Some("[20,30]")
        );
    }
}
