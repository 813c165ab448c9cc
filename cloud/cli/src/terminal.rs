//! Output to the terminal and input from it.

use std::io::{ErrorKind, IsTerminal, Write};

use hub_protocol::{Timestamp, check};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::failure::Failure;
use crate::text::{harmless_json, printable};

/// Writes to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::closed_pipe()),
        Err(error) => Err(Failure::failed(format!(
            "cannot write to standard output: {error}"
        ))),
        Ok(()) => Ok(()),
    }
}

/// Writes a line to standard error, beside the output.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes one JSON document.
pub fn print_json(value: &Value) -> Result<(), Failure> {
    print(&(harmless_json(&serde_json::to_string_pretty(value).unwrap_or_default()) + "\n"))
}

/// Writes one line of NDJSON.
pub fn print_json_line(value: &Value) -> Result<(), Failure> {
    print(&(harmless_json(&value.to_string()) + "\n"))
}

fn has_colours() -> bool {
    check::colours(std::io::stdout().is_terminal())
}

/// A status in green, yellow or red, if colours are enabled.
pub fn state(text: &str) -> String {
    let shown = printable(text);
    let colour = match text {
        "ONLINE" | "ACTIVE" | "RUNNING" | "SUCCEEDED" | "READY" | "DONE" | "online" => 32,
        "BLOCKED" | "FAILED" | "REVOKED" | "HALTED" | "SUSPENDED" | "OPEN_CIRCUIT" | "ABORTED" => {
            31
        }
        "OFFLINE" | "EXPIRED" | "DISABLED" | "offline" => 33,
        _ => return shown,
    };
    match has_colours() {
        true => format!("\x1b[{colour}m{shown}\x1b[0m"),
        false => shown,
    }
}

/// Rows in columns of equal width. Cells are made with `printable` or `state`.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(header: &[&str]) -> Self {
        Self {
            rows: vec![header.iter().map(|name| (*name).to_owned()).collect()],
        }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Writes the table, or a hint if it is empty.
    pub fn print(&self, when_empty: &str) -> Result<(), Failure> {
        if self.rows.len() == 1 {
            note(when_empty);
            return Ok(());
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| width(cell))
                .max()
        };
        let widths: Vec<usize> = (0..columns)
            .map(|column| widest(column).unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, wanted) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(wanted.saturating_sub(width(cell)) + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        print(&text)
    }
}

/// The width of a cell in columns, without the escape sequences of `state`.
fn width(cell: &str) -> usize {
    let mut rest = cell;
    let mut columns = 0;
    while let Some((before, after)) = rest.split_once('\x1b') {
        columns += before.width();
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    columns + rest.width()
}

/// The time since an event, for a column of a table.
pub fn ago(time: Option<Timestamp>, now: Timestamp) -> String {
    let Some(time) = time else {
        return "never".to_owned();
    };
    let seconds = (now.as_secs() - time.as_secs()).max(0);
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// A time in UTC, without fractions of a second.
pub fn short_time(time: Timestamp) -> String {
    let text = time.to_string();
    format!("{}Z", text.get(..19).unwrap_or(&text))
}

/// A measured value: a string without its quotes, anything else as JSON.
pub fn value(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        other => printable(&other.to_string()),
    }
}

/// Shows what will happen, and continues only if the user agrees.
pub fn confirm(what_will_happen: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let advice = "nothing was changed: confirming requires a terminal; add --yes";
        return Err(Failure::usage(format!("{what_will_happen}\nhub: {advice}")));
    }
    let _ = write!(std::io::stderr(), "{what_will_happen}\nContinue? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    match read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        true => Ok(()),
        false => Err(Failure::failed("nothing was changed")),
    }
}

/// A secret, typed at the terminal without echo, or the first line of standard input.
pub fn secret(prompt: &str, from_stdin: bool) -> Result<String, Failure> {
    let text = match !from_stdin && std::io::stdin().is_terminal() {
        true => rpassword::prompt_password(format!("{prompt}: ")),
        false => {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        }
    };
    let text = text.map_err(|error| {
        Failure::failed(format!(
            "cannot read the {}: {error}",
            prompt.to_lowercase()
        ))
    })?;
    let text = text.trim_end_matches(['\n', '\r']).to_owned();
    match text.is_empty() {
        true => Err(Failure::usage(format!(
            "the {} is empty; type it, or give it on standard input",
            prompt.to_lowercase()
        ))),
        false => Ok(text),
    }
}

/// Ctrl-C, for a command that runs until then.
pub struct Interrupt(tokio::task::JoinHandle<()>);

/// Time for the command to end. Its output may wait for a reader that has stopped reading.
const TIME_TO_END: std::time::Duration = std::time::Duration::from_secs(1);

impl Interrupt {
    /// From now on, Ctrl-C does not end the process at once.
    pub fn listen() -> Self {
        let pressed = async || {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::spawn(async move {
            pressed().await;
            tokio::time::sleep(TIME_TO_END).await;
            std::process::exit(0);
        });
        Self(tokio::spawn(async move { pressed().await }))
    }

    pub async fn pressed(&mut self) {
        let _ = (&mut self.0).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("日本"), 4);
        assert_eq!(width("\x1b[32mONLINE\x1b[0m"), 6);
    }
}
