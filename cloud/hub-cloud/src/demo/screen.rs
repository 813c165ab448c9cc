//! Output of the view. A terminal is redrawn in place and restored afterwards; any other output
//! gets line after line.

use std::io::{self, IsTerminal, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::view::{Line, Style, View};

/// Alternate screen, no line wrap, no cursor; and the way back.
const ENTER: &str = "\x1b[?1049h\x1b[?7l\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?7h\x1b[?1049l";
const CLEAR: &str = "\x1b[2J";
/// Columns and rows if the terminal does not report its size.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

pub enum Screen {
    Terminal {
        size: (usize, usize),
        shown: Vec<Line>,
        saved_mode: Option<Termios>,
    },
    Plain,
}

impl Screen {
    pub fn open() -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if is_dumb || !io::stdout().is_terminal() {
            return Self::Plain;
        }
        let _ = put(ENTER);
        Self::Terminal {
            size: (0, 0),
            shown: Vec::new(),
            saved_mode: disable_echo(),
        }
    }

    pub fn draw(&mut self, view: &mut View) -> io::Result<()> {
        match self {
            Self::Plain => match view.take_new_lines() {
                lines if lines.is_empty() => Ok(()),
                lines => put(&lines),
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
                    // Unchanged rows are not rewritten, so that a text selection there survives.
                    if shown.get(row) != Some(line) {
                        let style = match line.style {
                            Style::Plain => "",
                            Style::Bold => "\x1b[1m",
                            Style::Dim => "\x1b[2m",
                        };
                        text.push_str(&format!(
                            "\x1b[{};1H{style}{}\x1b[0m\x1b[K",
                            row + 1,
                            line.text
                        ));
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
        if let Self::Terminal { saved_mode, .. } = self {
            let _ = put(LEAVE);
            if let Some(saved_mode) = saved_mode {
                let _ = tcsetattr(io::stdout(), OptionalActions::Now, saved_mode);
            }
        }
    }
}

/// Disables echo: typed keys would be written into the view. Returns the terminal mode to restore.
fn disable_echo() -> Option<Termios> {
    let saved_mode = tcgetattr(io::stdout()).ok()?;
    let mut silent = saved_mode.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(io::stdout(), OptionalActions::Now, &silent).ok()?;
    Some(saved_mode)
}

/// Prints a line. A closed pipe is not an error.
pub fn print_line(text: &str) {
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
        _ => DEFAULT_SIZE,
    }
}
