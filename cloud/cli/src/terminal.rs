//! What is written to the terminal and read from it. Text from elsewhere is shown so that it cannot
//! control the terminal.

use std::io::{ErrorKind, IsTerminal, Write};

use hub_protocol::{Timestamp, check};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::failure::Failure;

/// The text with all that a terminal would obey, or show in another place, written out.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_harmless(c) {
            true => shown.push(c),
            false => shown.extend(c.escape_unicode()),
        }
    }
    shown
}

/// Control characters drive the terminal; the others turn the direction of the text around them, or
/// are not seen at all.
fn is_harmless(c: char) -> bool {
    let is_hidden = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !c.is_control() && !is_hidden
}

/// Writes to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::unread()),
        Err(error) => Err(Failure::failed(format!(
            "cannot write to standard output: {error}"
        ))),
        Ok(()) => Ok(()),
    }
}

/// Writes a line for the person, beside the output.
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

/// The same JSON, with characters escaped that JSON allows and terminals obey. They occur in
/// strings only.
fn harmless_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_harmless(c) || c == '\n' {
            true => shown.push(c),
            false => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| shown.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    shown
}

fn has_colours() -> bool {
    check::colours(std::io::stdout().is_terminal())
}

/// The text in green, yellow or red, where that is wanted: good, waiting, bad.
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

    /// Writes the table, or what to do while there is nothing in it.
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

/// The columns that a cell takes, without the escape sequences of `state`.
fn width(cell: &str) -> usize {
    let mut rest = cell;
    let mut columns = 0;
    while let Some((before, after)) = rest.split_once('\x1b') {
        columns += before.width();
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    columns + rest.width()
}

/// How long ago a time was, for a column of a table.
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

/// A time within seconds, in UTC.
pub fn short_time(time: Timestamp) -> String {
    let text = time.to_string();
    format!("{}Z", text.get(..19).unwrap_or(&text))
}

/// A value of a device as people write it: 21.5 °C is 21.5 Cel in the units of the API.
pub fn value(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        other => printable(&other.to_string()),
    }
}

/// Says what will happen, and goes on only if the person agrees.
pub fn confirm(what_will_happen: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let advice = "nothing was changed, as nobody can be asked here; add --yes";
        return Err(Failure::usage(format!("{what_will_happen}\nhub: {advice}")));
    }
    let _ = write!(std::io::stderr(), "{what_will_happen}\nGo on? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    match read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        true => Ok(()),
        false => Err(Failure::failed("nothing was changed")),
    }
}

/// A secret that nobody sees: typed at the terminal, or the first line of standard input.
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

/// Ctrl-C, for a command that goes on until then.
pub struct Interrupt(tokio::task::JoinHandle<()>);

/// A command that does not end in time waits for a reader that reads no more.
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
    fn names_from_the_field_do_not_drive_the_terminal() {
        let hostile = "a\x1b]0;owned\x07\u{9b}31m\u{202e}b\r\n\u{7f}\u{e0041}é 日本";
        let shown = printable(hostile);
        assert!(
            !shown.chars().any(char::is_control) && !shown.contains('\u{202e}'),
            "{shown}"
        );
        assert!(shown.ends_with("é 日本"), "{shown}");
        let json = harmless_json(&Value::from(hostile).to_string());
        assert!(
            !json.chars().any(char::is_control) && !json.contains('\u{202e}'),
            "{json}"
        );
        assert_eq!(
            serde_json::from_str::<Value>(&json).expect("JSON"),
            Value::from(hostile)
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("日本"), 4);
        assert_eq!(width("\x1b[32mONLINE\x1b[0m"), 6);
    }
}
