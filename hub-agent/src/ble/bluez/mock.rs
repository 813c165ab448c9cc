//! Controls the mocked bluetoothd of `tests/system/dbusmock`. Where that cannot run, a test that
//! needs it is reported as skipped, or fails if `HUB_TESTS_REQUIRE=1`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/system/dbusmock/mock-bluez"
);
/// The script's exit code when the machine lacks something.
const MISSING: i32 = 75;
/// The folder of the bus; a temporary one unless this is set.
pub const BUS_FOLDER: &str = "HUB_TESTS_BUS_FOLDER";

pub struct Mock {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    pub address: String,
}

impl Mock {
    pub fn start() -> Option<Self> {
        let mut process = Command::new(SCRIPT)
            .args(std::env::var_os(BUS_FOLDER))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tests/system/dbusmock/mock-bluez starts");
        let orders = process.stdin.take();
        let mut answers = BufReader::new(process.stdout.take().expect("it was piped"));
        let mut ready = String::new();
        answers.read_line(&mut ready).expect("its output is text");
        let Ok(ready) = serde_json::from_str::<Value>(&ready) else {
            let output = process.wait_with_output().expect("it has ended");
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(
                output.status.code(),
                Some(MISSING),
                "the mock does not start: {why}"
            );
            assert!(
                std::env::var_os("HUB_TESTS_REQUIRE").is_none(),
                "HUB_TESTS_REQUIRE is set: {why}"
            );
            // A macro's output would be captured by the test runner.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: needs the mocked bluetoothd: {}",
                why.trim()
            );
            return None;
        };
        let address = ready["address"].as_str().expect("an address").to_owned();
        Some(Self {
            process,
            orders,
            answers,
            address,
        })
    }

    /// Sends an order and waits for the answer, which must be a success.
    pub fn order(&mut self, order: Value) -> Value {
        writeln!(self.orders.as_mut().expect("it runs"), "{order}").expect("it accepts orders");
        let answer = self.answer();
        assert_eq!(answer["ok"], json!(true), "{order} gave {answer}");
        answer
    }

    pub fn answer(&mut self) -> Value {
        let mut answer = String::new();
        self.answers
            .read_line(&mut answer)
            .expect("its output is text");
        serde_json::from_str(&answer).expect("an answer in JSON")
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // The mock ends when its input is closed.
        self.orders = None;
        let _ = self.process.wait();
    }
}
