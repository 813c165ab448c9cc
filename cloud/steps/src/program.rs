//! A compiled list of steps.

use serde_json::Value;

use super::definition::{Compiled, Step};
use super::state::{SlotKind, State};
use super::{Problem, Template};

/// A compiled list of steps. Nothing in it changes.
#[derive(Debug)]
pub struct Program {
    pub(super) steps: Vec<(&'static str, Step)>,
    slots: Vec<SlotKind>,
    names: super::expression::Names,
}

impl Program {
    /// Unknown members in a definition are errors, so that a misspelt one is not ignored.
    pub fn compile(steps: &Value) -> Result<Self, Problem> {
        let Compiled {
            steps,
            slots,
            names,
        } = Compiled::of(steps)?;
        Ok(Self {
            steps,
            slots,
            names,
        })
    }

    /// A template over what events have after all steps. Only what is known may be named in it.
    pub fn template(&self, text: &str) -> Result<Template, Problem> {
        let template = Template::with_names(text, &self.names);
        template.map_err(|message| Problem {
            pointer: String::new(),
            message,
        })
    }

    pub fn has_state(&self) -> bool {
        !self.slots.is_empty()
    }

    pub fn has_script(&self) -> bool {
        self.steps
            .iter()
            .any(|(_, step)| matches!(step, Step::Script(_)))
    }

    /// The sources of its scripts, with their steps.
    pub fn scripts(&self) -> impl Iterator<Item = (usize, &str)> {
        self.steps
            .iter()
            .enumerate()
            .filter_map(|(at, (_, step))| match step {
                Step::Script(source) => Some((at, source.as_str())),
                _ => None,
            })
    }

    pub fn new_state(&self) -> State {
        State::new(&self.slots)
    }
}

impl State {
    /// Restores the result of `to_bytes`, also into another program: the state of a step of the
    /// same kind is kept. Damaged parts are left out.
    pub fn from_bytes(program: &Program, bytes: &[u8]) -> Self {
        Self::read(&program.slots, bytes)
    }
}
