//! How far a lane is: a cursor, and the units after it. A unit is a range of the log whose events
//! are in one message, or in none. Units are settled in any order; the cursor moves over those
//! that are settled without a gap.

use std::collections::VecDeque;
use std::sync::Arc;

use super::feed::LogEvent;
use super::settle::DeadLetter;
use crate::destinations::Message;

/// A message, and what it is made of.
pub struct Parcel {
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
    pub parcel: Option<Arc<Parcel>>,
    /// Events that steps could not make a message of.
    pub dead: Vec<DeadLetter>,
    pub attempts: i64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    UnderWay,
    Settled,
}

impl Unit {
    /// Without a message there is nothing to wait for.
    pub fn new(to: i64, parcel: Option<Arc<Parcel>>, dead: Vec<DeadLetter>) -> Self {
        let state = if parcel.is_some() {
            State::Waiting
        } else {
            State::Settled
        };
        Self {
            to,
            parcel,
            dead,
            attempts: 0,
            state,
        }
    }
}

pub struct Progress {
    pub cursor: i64,
    units: VecDeque<Unit>,
}

impl Progress {
    pub fn new(cursor: i64) -> Self {
        Self {
            cursor,
            units: VecDeque::new(),
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
    pub fn start(&mut self) -> Option<(i64, Arc<Parcel>, i64)> {
        let unit = self
            .units
            .iter_mut()
            .find(|unit| unit.state == State::Waiting)?;
        unit.state = State::UnderWay;
        unit.attempts += 1;
        unit.parcel
            .clone()
            .map(|parcel| (unit.to, parcel, unit.attempts))
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
        dead
    }

    /// The ranges after the cursor that are settled, as JSON; None if there are none. Units with
    /// dead letters are not among them: their letters are stored when the cursor reaches them.
    pub fn settled_ahead(&self) -> Option<String> {
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        let mut after = self.cursor;
        for unit in &self.units {
            if unit.state == State::Settled && unit.dead.is_empty() {
                match ranges.last_mut().filter(|(_, end)| *end == after) {
                    Some((_, end)) => *end = unit.to,
                    None => ranges.push((after, unit.to)),
                }
            }
            after = unit.to;
        }
        if ranges.is_empty() {
            None
        } else {
            serde_json::to_string(&ranges).ok()
        }
    }

    /// The ends of the units that are not settled, as JSON; None if there are none.
    pub fn planned(&self) -> Option<String> {
        let ends: Vec<i64> = self
            .units
            .iter()
            .filter(|unit| unit.parcel.is_some())
            .map(|unit| unit.to)
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
        let mut progress = Progress::new(10);
        for to in ends {
            let state = State::Waiting;
            progress.push(Unit {
                to: *to,
                parcel: None,
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
}
