//! Where the view is shown: a terminal, redrawn in place and restored afterwards, or anything else, to which it is written line by line.

use std::io::{self, IsTerminal, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::view::{Line, Style, View};

/// Alternate screen, no line wrap, no cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?7l\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?7h\x1b[?1049l";
const CLEAR: &str = "\x1b[2J";
/// Columns and rows of a terminal that does not tell.
const USUAL_SIZE: (usize, usize) = (80, 24);

pub enum Screen {
    Terminal { size: (usize, usize), shown: Vec<Line>, before: Option<Termios> },
    Plain,
}

impl Screen {
    pub fn open() -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if is_dumb || !io::stdout().is_terminal() {
            return Self::Plain;
        }
        let _ = put(ENTER);
        Self::Terminal { size: (0, 0), shown: Vec::new(), before: without_echo() }
    }

    pub fn draw(&mut self, view: &mut View) -> io::Result<()> {
        match self {
            Self::Plain => match view.news() {
                news if news.is_empty() => Ok(()),
                news => put(&news),
            },
            Self::Terminal { size, shown, .. } => {
                let mut text = String::new();
                let now = terminal_size();
                if *size != now {
                    *size = now;
                    shown.clear();
                    text.push_str(CLEAR);
                }
                let lines = view.lines(now.0, now.1);
                for (row, line) in lines.iter().enumerate() {
                    // What stays is not written again: text that somebody has marked there stays marked.
                    if shown.get(row) != Some(line) {
                        let style = match line.style {
                            Style::Plain => "",
                            Style::Bold => "\x1b[1m",
                            Style::Dim => "\x1b[2m",
                        };
                        text.push_str(&format!("\x1b[{};1H{style}{}\x1b[0m\x1b[K", row + 1, line.text));
                    }
                }
                *shown = lines;
                if text.is_empty() { Ok(()) } else { put(&text) }
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Self::Terminal { before, .. } = self {
            let _ = put(LEAVE);
            if let Some(before) = before {
                let _ = tcsetattr(io::stdout(), OptionalActions::Now, before);
            }
        }
    }
}

/// Keys that are pressed would be written into the view. Gives the terminal's state to go back to.
fn without_echo() -> Option<Termios> {
    let before = tcgetattr(io::stdout()).ok()?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(io::stdout(), OptionalActions::Now, &silent).ok()?;
    Some(before)
}

/// Writes a line, if anybody still reads.
pub fn say(text: &str) {
    let _ = put(&format!("{text}\n"));
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn terminal_size() -> (usize, usize) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL_SIZE,
    }
}
