//! Clients of the helper: who may connect, and which requests are accepted.

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

fn send(socket: &Path, line: &[u8]) -> Value {
    let mut stream = UnixStream::connect(socket).unwrap();
    // The helper may answer before the end of the request.
    let _ = stream.write_all(line);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    answer(&mut stream)
}

#[test]
fn only_root_and_the_agent_are_served() {
    let site = Site::new();
    let stranger = if rustix::process::getuid().is_root() {
        // Another user, to whom the socket was left open by mistake.
        site.write(
            "etc/passwd",
            b"root:x:0:0::/:/bin/sh\nhub-agent:x:4711:1::/:/bin/false\nhub-agent2:x:65534:1::/:\n",
        );
        for path in [site.path(""), site.socket()] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let python = "import os,socket,sys; os.setgid(65534); os.setuid(65534); s=socket.socket(socket.AF_UNIX); \
                      s.connect(sys.argv[1]); print(s.makefile().readline())";
        let output = Command::new("python3")
            .args(["-c", python])
            .arg(site.socket())
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    } else {
        site.write(
            "etc/passwd",
            b"root:x:0:0::/:/bin/sh\nhub-agent:x:4711:1::/:/bin/false\n",
        );
        send(&site.socket(), b"{\"request\":\"appStates\"}\n")
    };
    assert_eq!(stranger["refused"]["reason"], "FORBIDDEN", "{stranger}");
}

#[test]
fn a_malformed_request_is_refused_and_the_next_one_answered() {
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
        let answer = send(&site.socket(), line);
        assert_eq!(answer["refused"]["reason"], "BAD_REQUEST", "{answer}");
    }
    assert_eq!(
        send(&site.socket(), b"{\"request\":\"appStates\"}\n"),
        json!({"ok": {"apps": []}})
    );
}

#[test]
fn a_slow_or_silent_client_does_not_block_others_for_long() {
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
    // A client that disconnects before its answer.
    drop(UnixStream::connect(site.socket()).unwrap());
    site.helper().app_states().unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
    for stream in [&mut silent, &mut slow] {
        assert_eq!(answer(stream)["refused"]["reason"], "BAD_REQUEST");
    }
}
