//! Who may ask, and how.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hub_agent::helper_api::MAX_LINE_BYTES;
use serde_json::{Value, json};

use crate::site::Site;

fn answer(stream: &mut UnixStream) -> Value {
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

fn ask(socket: &Path, line: &[u8]) -> Value {
    let mut stream = UnixStream::connect(socket).unwrap();
    // The helper may have heard enough before the end.
    let _ = stream.write_all(line);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    answer(&mut stream)
}

#[test]
fn only_root_and_the_agent_may_ask() {
    let site = Site::new();
    let stranger = if rustix::process::getuid().is_root() {
        // A user that is nobody's, to whom the socket was left open by mistake.
        site.write(
            "etc/passwd",
            b"root:x:0:0::/:/bin/sh\nhub-agent:x:4711:1::/:/bin/false\nhub-agent2:x:65534:1::/:\n",
        );
        for path in [site.path(""), site.socket()] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let python = "import os,socket,sys; os.setgid(65534); os.setuid(65534); s=socket.socket(socket.AF_UNIX); \
                      s.connect(sys.argv[1]); print(s.makefile().readline())";
        let output = Command::new("python3").args(["-c", python]).arg(site.socket()).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    } else {
        site.write("etc/passwd", b"root:x:0:0::/:/bin/sh\nhub-agent:x:4711:1::/:/bin/false\n");
        ask(&site.socket(), b"{\"request\":\"appStates\"}\n")
    };
    assert_eq!(stranger["refused"]["reason"], "FORBIDDEN", "{stranger}");
}

#[test]
fn what_is_no_request_is_refused_and_the_next_one_answered() {
    let site = Site::new();
    let deep = "[".repeat(10_000);
    let long = vec![b'x'; MAX_LINE_BYTES as usize + 100_000];
    for line in [
        b"".as_slice(),
        b"\n",
        b"{\"request\":\"appStates\"}",
        b"{\"request\":\"appStates\",\"more\":1}\n",
        b"{\"request\":\"sh\"}\n",
        b"{\"request\":\"removeApp\",\"appUuid\":\"../../etc\"}\n",
        b"{\"request\":\"removeApp\"}\n",
        b"\xff\xfe\n",
        deep.as_bytes(),
        format!("{deep}\n").as_bytes(),
        &long,
    ] {
        let answer = ask(&site.socket(), line);
        assert_eq!(answer["refused"]["reason"], "BAD_REQUEST", "{answer}");
    }
    assert_eq!(ask(&site.socket(), b"{\"request\":\"appStates\"}\n"), json!({"ok": {"apps": []}}));
}

#[test]
fn who_asks_slowly_or_not_at_all_does_not_hold_up_others_for_long() {
    let site = Site::new();
    let started = Instant::now();
    let mut silent = UnixStream::connect(site.socket()).unwrap();
    let mut slow = UnixStream::connect(site.socket()).unwrap();
    let mut drip = slow.try_clone().unwrap();
    std::thread::spawn(move || {
        while drip.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    // One that went away before its answer.
    drop(UnixStream::connect(site.socket()).unwrap());
    site.helper().app_states().unwrap();
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    for stream in [&mut silent, &mut slow] {
        assert_eq!(answer(stream)["refused"]["reason"], "BAD_REQUEST");
    }
}
