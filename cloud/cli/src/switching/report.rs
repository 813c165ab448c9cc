//! What an import creates, leaves, and needs a person for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::terminal::print;
use crate::text::printable;

/// The most lines of a kind that are printed.
const MAX_LINES: usize = 50;
/// The most names in a line.
const MAX_NAMES: usize = 10;

#[derive(Default)]
pub struct Report {
    created: BTreeMap<&'static str, u64>,
    there: BTreeMap<&'static str, u64>,
    /// Where what is created sends data to: whoever imports decides on it.
    pub sends: Vec<String>,
    /// What is there and differs.
    pub left: Vec<String>,
    /// What needs a person.
    pub todo: Vec<String>,
    pub failed: Vec<String>,
}

impl Report {
    pub fn created(&mut self, kind: &'static str) {
        *self.created.entry(kind).or_default() += 1;
    }

    pub fn there(&mut self, kind: &'static str) {
        *self.there.entry(kind).or_default() += 1;
    }

    pub fn number_created(&self) -> u64 {
        self.created.values().sum()
    }

    pub fn changes_nothing(&self) -> bool {
        self.created.is_empty()
    }

    pub fn json(&self, is_dry: bool) -> Value {
        json!({
            "applied": !is_dry, "created": self.created, "there": self.there, "sends": self.sends,
            "left": self.left, "todo": self.todo, "failed": self.failed,
        })
    }

    /// The counts: `will` for a plan, else what was done.
    pub fn print_counts(&self, will: bool) -> Result<(), Failure> {
        let sign = if will { "+ create" } else { "created" };
        for (kind, number) in &self.created {
            print(&format!("{sign} {kind}: {number}\n"))?;
        }
        for (kind, number) in &self.there {
            print(&format!("= there already, {kind}: {number}\n"))?;
        }
        if will {
            lines("> sends data:", &self.sends)?;
        }
        lines("left as it is", &self.left)
    }

    pub fn print_todo(&self) -> Result<(), Failure> {
        if !self.todo.is_empty() {
            print("\nFor you to do:\n")?;
        }
        lines("-", &self.todo)?;
        lines("failed:", &self.failed)
    }
}

fn lines(sign: &str, texts: &[String]) -> Result<(), Failure> {
    for text in texts.iter().take(MAX_LINES) {
        print(&format!("{sign} {}\n", printable(text)))?;
    }
    match texts.len().checked_sub(MAX_LINES) {
        None | Some(0) => Ok(()),
        Some(more) => print(&format!("{sign} ... and {more} more (--json has all)\n")),
    }
}

/// The first of many names.
pub fn some(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
    let shown = shown.join(", ");
    match names.len().checked_sub(MAX_NAMES) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_the_first_are_shown() {
        let names = |number: usize| (0..number).map(|at| at.to_string()).collect::<Vec<_>>();
        assert_eq!(some(&names(2)), "0, 1");
        assert_eq!(some(&names(10)), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9");
        assert!(some(&names(12)).ends_with(", 9 and 2 more"));
    }
}
