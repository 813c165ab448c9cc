//! The table of `hub-agent scan`: its rows, their order, cut to the terminal's size. Text from
//! advertisements is never written to a terminal unchanged.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use hub_protocol::Timestamp;
use hub_protocol::ble::BleEvent;

use super::reading::{printable, reading_of};
use crate::ble::recognise::recognise;
use crate::ble::selection::Selection;

/// Devices that were silent for this long are removed.
const FORGET_SECS: i64 = 120;
const MAX_ROWS: usize = 2_000;
/// Rows are grouped in bands of signal strength, and stay in a band until they are clearly out of
/// it: a table whose rows jump cannot be read.
const BAND_DBM: f64 = 10.0;
const LEAVE_BAND_DBM: f64 = 8.0;
const ADDRESS_COLUMNS: usize = 17;
const WHAT_COLUMNS: usize = 27;

#[derive(Debug, Default)]
pub struct Table {
    rows: HashMap<String, Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    what: &'static str,
    /// The model's name and the last values that were read.
    values: String,
    rssi: Option<i16>,
    smooth_rssi: f64,
    band: i32,
    last_seen: Timestamp,
    count: u64,
}

impl Table {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn heard(&mut self, event: &BleEvent, selection: Option<&Selection>) {
        let advertisement = &event.payload;
        let level = f64::from(advertisement.rssi.unwrap_or(-127));
        if self.rows.len() >= MAX_ROWS && !self.rows.contains_key(&advertisement.address) {
            self.forget(event.observed_at);
        }
        let row = self
            .rows
            .entry(advertisement.address.clone())
            .or_insert_with(|| Row {
                name: String::new(),
                what: "",
                values: String::new(),
                rssi: None,
                smooth_rssi: level,
                band: band(level),
                last_seen: event.observed_at,
                count: 0,
            });
        if let Some(name) = &advertisement.name {
            row.name = printable(name);
        }
        // A beacon that alternates between several kinds of frame keeps the last known one.
        row.what = recognise(advertisement).unwrap_or(row.what);
        if let Some(described) = reading_of(advertisement, selection).described() {
            row.values = described;
        }
        row.rssi = advertisement.rssi;
        row.smooth_rssi += (level - row.smooth_rssi) / 8.0;
        let middle = (f64::from(row.band) + 0.5) * BAND_DBM;
        if (row.smooth_rssi - middle).abs() > LEAVE_BAND_DBM {
            row.band = band(row.smooth_rssi);
        }
        row.last_seen = event.observed_at;
        row.count += 1;
    }

    fn forget(&mut self, now: Timestamp) {
        self.rows
            .retain(|_, row| now.as_secs() - row.last_seen.as_secs() < FORGET_SECS);
        if self.rows.len() >= MAX_ROWS {
            let oldest = self
                .rows
                .iter()
                .min_by_key(|(_, row)| row.last_seen)
                .map(|(address, _)| address.clone());
            oldest.and_then(|address| self.rows.remove(&address));
        }
    }

    /// The lines of a screen, the strongest devices first, none wider than the screen.
    pub fn render(
        &mut self,
        (width, height): (usize, usize),
        status: &str,
        now: Timestamp,
    ) -> Vec<String> {
        self.rows
            .retain(|_, row| now.as_secs() - row.last_seen.as_secs() < FORGET_SECS);
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|(address, row)| (Reverse(row.band), *address));
        let mut lines = vec![cut(status, width), String::new()];
        let header = format!(
            "{:<ADDRESS_COLUMNS$} {:>4} {:>5} {:>7}  {:<WHAT_COLUMNS$} NAME AND VALUES",
            "ADDRESS", "RSSI", "AGE", "COUNT", "WHAT"
        );
        lines.push(cut(&header, width));
        // One line is left for the number of further devices, and one for the cursor.
        let room = height.saturating_sub(lines.len() + 2);
        for (address, row) in rows.iter().take(room) {
            let rssi = row.rssi.map_or("-".to_owned(), |rssi| rssi.to_string());
            let age = (now.as_secs() - row.last_seen.as_secs()).max(0);
            let line = format!(
                "{address:<ADDRESS_COLUMNS$} {rssi:>4} {:>5} {:>7}  {:<WHAT_COLUMNS$} {} {}",
                format!("{age} s"),
                row.count,
                row.what,
                row.name,
                row.values
            );
            lines.push(cut(&line, width));
        }
        if rows.len() > room {
            lines.push(cut(
                &format!("... and {} weaker ones", rows.len() - room),
                width,
            ));
        }
        // A terminal with very few lines has no space for the fixed ones.
        lines.truncate(height.saturating_sub(1).max(1));
        lines
    }
}

fn band(level: f64) -> i32 {
    (level / BAND_DBM).floor() as i32
}

/// Columns of a terminal: East Asian characters and emoji need two.
fn columns(char: char) -> usize {
    match char {
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}' => 2,
        '\u{300}'..='\u{36f}' => 0,
        _ => 1,
    }
}

/// The text, cut to this number of columns.
fn cut(text: &str, width: usize) -> String {
    let mut used = 0;
    text.chars()
        .take_while(|char| {
            used += columns(*char);
            used <= width
        })
        .collect()
}

/// The terminal's alternate screen, as long as this value lives.
#[derive(Debug)]
pub struct Screen(());

impl Screen {
    pub fn enter() -> io::Result<Self> {
        let screen = Self(());
        let mut output = io::stdout().lock();
        // The alternate screen, without cursor and line wrapping.
        output.write_all(b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J")?;
        output.flush()?;
        Ok(screen)
    }

    /// Columns and lines.
    pub fn size(&self) -> (usize, usize) {
        match rustix::termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => (80, 24),
        }
    }

    /// Draws in one write and over the previous content, so that nothing flickers.
    pub fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let (_, height) = self.size();
        let mut frame = String::from("\x1b[H");
        for line in lines.iter().take(height) {
            frame.push_str(line);
            frame.push_str("\x1b[K\r\n");
        }
        if lines.len() < height {
            frame.push_str("\x1b[J");
        } else {
            // A new line below the last one would scroll the screen.
            frame.truncate(frame.len() - "\r\n".len());
        }
        let mut output = io::stdout().lock();
        output.write_all(frame.as_bytes())?;
        output.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut output = io::stdout().lock();
        let _ = output
            .write_all(b"\x1b[?7h\x1b[?25h\x1b[?1049l")
            .and_then(|()| output.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hub_protocol::ble::Advertisement;

    fn event(address: &str, secs: i64, rssi: i16, name: &str) -> BleEvent {
        BleEvent {
            event_uuid: None,
            observed_at: Timestamp::from_micros(secs * 1_000_000),
            traceparent: None,
            payload: Advertisement {
                address: address.into(),
                rssi: Some(rssi),
                name: Some(name.into()),
                ..Advertisement::default()
            },
        }
    }

    fn render(table: &mut Table, width: usize, height: usize, secs: i64) -> Vec<String> {
        table.render(
            (width, height),
            "status",
            Timestamp::from_micros(secs * 1_000_000),
        )
    }

    fn addresses(lines: &[String]) -> Vec<&str> {
        lines
            .iter()
            .skip(3)
            .map(|line| line.split(' ').next().unwrap())
            .collect()
    }

    #[test]
    fn strong_devices_come_first_and_noise_does_not_reorder_them() {
        let mut table = Table::default();
        for (address, rssi) in [("C", -45), ("B", -85), ("A", -84), ("D", -65)] {
            table.heard(&event(address, 1, rssi, ""), None);
        }
        let before = addresses(&render(&mut table, 100, 24, 1)).join(" ");
        assert_eq!(before, "C D A B");
        for round in 0..50 {
            for (address, rssi) in [("C", -45), ("B", -85), ("A", -84), ("D", -65)] {
                table.heard(&event(address, 2, rssi + (round % 7) - 3, ""), None);
            }
            assert_eq!(addresses(&render(&mut table, 100, 24, 2)).join(" "), before);
        }
        for _ in 0..50 {
            table.heard(&event("B", 3, -40, ""), None);
        }
        assert_eq!(
            addresses(&render(&mut table, 100, 24, 3)).join(" "),
            "B C D A"
        );
    }

    #[test]
    fn the_table_fits_the_terminal() {
        let mut table = Table::default();
        for number in 0..100 {
            table.heard(
                &event(
                    &format!("AA:BB:CC:DD:EE:{number:02X}"),
                    1,
                    -50,
                    "温度計の長い名前がここにある",
                ),
                None,
            );
        }
        for (width, height) in [
            (80, 24),
            (40, 10),
            (10, 4),
            (80, 3),
            (80, 2),
            (1, 1),
            (200, 300),
        ] {
            let lines = render(&mut table, width, height, 1);
            assert!(
                lines.len() < height.max(2),
                "{} lines of {height}",
                lines.len()
            );
            for line in &lines {
                assert!(
                    line.chars().map(columns).sum::<usize>() <= width,
                    "{line:?} is wider than {width}"
                );
            }
        }
        let lines = render(&mut table, 80, 24, 1);
        assert_eq!(lines.last().unwrap(), "... and 81 weaker ones");
    }

    #[test]
    fn control_characters_in_a_name_are_replaced() {
        let mut table = Table::default();
        table.heard(&event("A", 1, -50, "\x1b[2Jevil\u{202e}\r\n\u{9b}x"), None);
        let screen = render(&mut table, 100, 24, 1).join("");
        assert!(
            !screen
                .chars()
                .any(|char| char.is_control() || char == '\u{202e}'),
            "{screen:?}"
        );
    }

    #[test]
    fn silent_devices_are_removed_and_rows_are_bounded() {
        let mut table = Table::default();
        for number in 0..MAX_ROWS + 10 {
            table.heard(&event(&number.to_string(), 1, -50, ""), None);
        }
        assert_eq!(table.len(), MAX_ROWS);
        render(&mut table, 80, 24, 1 + FORGET_SECS);
        assert_eq!(table.len(), 0);
    }
}
