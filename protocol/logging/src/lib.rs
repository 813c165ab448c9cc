//! Standard error for logs. A thread of its own writes them: a reader that is slow or gone, or a
//! disk that is full, costs lines, which are counted, and never a request or a stop.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Lines that may wait to be written; further ones are lost.
const MAX_WAITING: usize = 1024;
/// How long the end of the program waits for them.
const LAST_WAIT: Duration = Duration::from_secs(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

static LINES: OnceLock<Lines> = OnceLock::new();

/// Accepts one line a write, and never waits; cheap to clone.
#[derive(Clone)]
pub struct Lines {
    /// None if there can be no further thread: lines are written at once then.
    sender: Option<SyncSender<Message>>,
    lost: Arc<AtomicU64>,
}

enum Message {
    Line(Vec<u8>),
    /// Reported when all before it is written.
    Written(SyncSender<()>),
}

/// Standard error of this program.
pub fn lines() -> Lines {
    LINES.get_or_init(|| Lines::to(io::stderr())).clone()
}

/// Waits a moment until what was logged is written. Call it before the program ends.
pub fn finish() {
    if let Some(lines) = LINES.get() {
        lines.finish(LAST_WAIT);
    }
}

/// Writes a line and waits a moment for it: what a program says before it ends. It is lost if
/// nobody reads it.
pub fn say(line: impl Display) {
    let _ = lines().write_all(format!("{line}\n").as_bytes());
    finish();
}

impl Lines {
    fn to(output: impl Write + Send + 'static) -> Self {
        let lost = Arc::new(AtomicU64::new(0));
        let (sender, messages) = sync_channel(MAX_WAITING);
        let counted = lost.clone();
        let writing = std::thread::Builder::new()
            .name("logs".to_owned())
            .spawn(move || write_all(output, &messages, &counted));
        Self {
            sender: writing.is_ok().then_some(sender),
            lost,
        }
    }

    fn finish(&self, wait: Duration) {
        let Some(sender) = &self.sender else { return };
        let ends_at = Instant::now() + wait;
        let (written, is_written) = sync_channel(1);
        // The queue may be full.
        while sender.try_send(Message::Written(written.clone())).is_err() {
            if Instant::now() >= ends_at {
                return;
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
        let _ = is_written.recv_timeout(ends_at.saturating_duration_since(Instant::now()));
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &self.sender {
            Some(sender) => {
                if sender.try_send(Message::Line(line.to_vec())).is_err() {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            None => {
                let _ = io::stderr().write_all(line);
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes what comes, until no sender is left. What cannot be written is lost.
fn write_all(mut output: impl Write, messages: &Receiver<Message>, lost: &AtomicU64) {
    for message in messages {
        match message {
            Message::Line(line) => {
                let is_json = line.starts_with(b"{");
                if output.write_all(&line).is_err() {
                    lost.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let count = lost.swap(0, Ordering::Relaxed);
                if count > 0 {
                    let _ = match is_json {
                        true => writeln!(
                            output,
                            r#"{{"level":"WARN","message":"log lines were lost: they were not read in time","count":{count}}}"#
                        ),
                        false => writeln!(
                            output,
                            "WARN {count} log lines were lost: they were not read in time"
                        ),
                    };
                }
            }
            Message::Written(sender) => {
                let _ = output.flush();
                let _ = sender.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// An output that writes only while nobody holds the lock.
    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Output {
        fn held(&self) -> MutexGuard<'_, Vec<u8>> {
            self.0.lock().expect("the output")
        }
    }

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.held().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_written_in_order_before_the_program_ends() {
        let output = Output::default();
        let mut lines = Lines::to(output.clone());
        for number in 0..100 {
            writeln!(lines, "{number}").expect("no failure");
        }
        lines.finish(LONG);
        let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(*output.held(), expected.into_bytes());
    }

    #[test]
    fn an_output_that_hangs_costs_lines_and_nobody_waits() {
        let output = Output::default();
        let mut lines = Lines::to(output.clone());
        let hangs = output.held();
        for _ in 0..3 * MAX_WAITING {
            lines.write_all(b"{}\n").expect("no failure");
        }
        lines.finish(Duration::from_millis(10));
        drop(hangs);
        lines.write_all(b"last\n").expect("no failure");
        lines.finish(LONG);
        let written = String::from_utf8(output.held().clone()).expect("text");
        let lost = written
            .lines()
            .filter_map(|line| line.split("\"count\":").nth(1)?.strip_suffix('}'))
            .map(|count| count.parse::<usize>().expect("a number"))
            .sum::<usize>();
        let kept = written.lines().filter(|line| *line == "{}").count();
        assert!(lost > 0, "{written}");
        assert!(kept + lost >= 3 * MAX_WAITING, "{kept} and {lost}");
    }

    #[test]
    fn an_output_that_is_closed_fails_nothing() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let mut lines = Lines::to(Closed);
        lines.write_all(b"a line\n").expect("no failure");
        lines.finish(LONG);
    }
}
