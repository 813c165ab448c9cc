//! Hostile scripts, in the real processes: each is bounded in time and memory, names itself alone
//! in its answer, and leaves nothing behind.

use std::io::{Error, ErrorKind};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hub_adverts::library::OwnedFrame;
use hub_base::metrics::Metrics;
use hub_protocol::TenantUuid;
use hub_scripts::{BATCH_TIME, Decoded, Scripts, UPLOAD_TIME, confine};
use hub_tests::process::program;
use tempfile::TempDir;
use uuid::Uuid;

/// In the environment of a copy of this program that is to confine itself.
const CONFINED: &str = "HUB_TESTS_CONFINED";

fn scripts() -> Scripts {
    Scripts::new(program("hub-cloud"), 4, Metrics::new())
}

fn tenant() -> TenantUuid {
    TenantUuid(Uuid::new_v4())
}

/// Frames of these payloads.
fn frames(payloads: &[&[u8]]) -> Vec<OwnedFrame> {
    let frame = |payload: &&[u8]| OwnedFrame {
        manufacturer_data: vec![(0x0499, payload.to_vec())],
        ..OwnedFrame::default()
    };
    payloads.iter().map(frame).collect()
}

/// What the script says of one frame.
async fn one(scripts: &Scripts, source: &str) -> Decoded {
    let decoded = scripts
        .decode(tenant(), source, &frames(&[&[1]]), BATCH_TIME)
        .await;
    decoded.into_iter().next().expect("an answer")
}

/// Why a frame could not be read. On a busy machine the engine may be killed before it notices that
/// a call takes too long.
fn problem(decoded: &Decoded) -> &str {
    match decoded {
        Decoded::Failed(problem) if problem == "the script did not end in time, and was killed" => {
            "killed: longer than 50 ms"
        }
        Decoded::Failed(problem) | Decoded::NotRun(problem) => problem,
        other => panic!("{other:?}"),
    }
}

/// The values as text.
fn values(decoded: &Decoded) -> String {
    match decoded {
        Decoded::Values(all) => all
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
        other => panic!("{other:?}"),
    }
}

/// A body of `decode`, run for the second of three frames; the others must be read all the same. A
/// busy machine may need more than an upload's second to replace a killed process; a script that
/// is not killed leaves no time for the third frame, however long the batch may take.
async fn hostile(scripts: &Scripts, body: &str) -> Decoded {
    let source = format!(
        "function decode(frame) {{ const data = frame.manufacturerData[0].data; \
         if (data[0] === 2) {{ {body} }} return {{battery: data[0] * 10}}; }}"
    );
    let decoded = scripts
        .decode(tenant(), &source, &frames(&[&[1], &[2], &[3]]), BATCH_TIME)
        .await;
    assert_eq!(decoded.len(), 3);
    assert_eq!(
        (values(&decoded[0]), values(&decoded[2])),
        ("battery 10 %".into(), "battery 30 %".into()),
        "{body}"
    );
    decoded[1].clone()
}

#[tokio::test]
async fn a_hostile_frame_fails_alone() {
    let scripts = scripts();
    for (body, wanted) in [
        ("for (;;);", "longer than 50 ms"),
        ("return 2n ** 2n ** 30n;", "BigInt"),
        ("let x = 3n; for (;;) x = x * x;", ""),
        (
            "const a = []; a.length = 2 ** 32 - 1; return a.join('x');",
            "killed",
        ),
        ("return Array(2 ** 32 - 1).lastIndexOf(1);", ""),
        ("return 'a'.repeat(2 ** 29);", "memory"),
        ("return 'a'.padEnd(2 ** 29, 'abc');", "memory"),
        ("let s = 'a'; for (;;) s += s;", ""),
        (
            "const all = []; for (;;) all.push(new Array(1000).fill(all.length));",
            "",
        ),
        ("return new Uint8Array(2 ** 30);", ""),
        ("const f = () => f(); return f();", "stack"),
        (
            "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return {battery: JSON.stringify(a).length};",
            "",
        ),
        (
            "return /^(a+)+$/.test('a'.repeat(40) + 'b');",
            "longer than 50 ms",
        ),
        ("throw {get message() { for (;;); }};", ""),
        ("throw null;", ""),
        (
            "return {get battery() { throw new Error('mine'); }};",
            "threw Error: mine",
        ),
        ("return {get battery() { for (;;); }};", "longer than 50 ms"),
        (
            "return Object.fromEntries([...Array(1000).keys()].map(n => ['q' + n, n]));",
            "more than 64 values",
        ),
        (
            "return Array(65).fill({quantity: 'battery', value: 1});",
            "more than 64 values",
        ),
        ("return {battery: NaN};", "battery is NaN"),
        ("return {battery: -Infinity};", "battery is -inf"),
        ("return {battery: 1n};", "must be a number"),
        ("return {battery: {}};", "must be a number"),
        ("return {battery: '90'};", "battery must be a number"),
        ("return {batery: 90};", "there is no quantity batery"),
        (
            "return {alarm: 'x'.repeat(201)};",
            "more than 200 characters",
        ),
        ("return {alarm: '\\ud800'};", ""),
        (
            "return [{quantity: 'battery', value: 1}, {quantity: 'battery', value: 2}];",
            "battery is there twice",
        ),
        (
            "return [{quantity: 'battery', value: 1, index: 1.5}];",
            "whole number",
        ),
        (
            "return [{quantity: 'battery', value: 1, unit: 'lx'}];",
            "not in lx",
        ),
        ("return [1];", "something else than objects"),
        ("return [{value: 1}];", "no quantity"),
        ("return 7;", "not int"),
        ("return 'x';", "not string"),
        ("return decode;", "a function"),
        ("return (async () => ({battery: 1}))();", "a promise"),
        ("return import('std');", "a promise"),
        ("return {battery: Date.now()};", "Date"),
        ("return {battery: Math.random()};", "not a function"),
        ("return {battery: performance.now()};", "performance"),
        ("return {battery: eval('1')};", "eval"),
        ("return {battery: new Function('return 1')()};", "Function"),
        (
            "return {battery: (() => {}).constructor('return 1')()};",
            "cannot make code of text",
        ),
        (
            "return {battery: (async () => {}).constructor('return 1')()};",
            "cannot make code of text",
        ),
        (
            "return {battery: std.loadFile('/etc/passwd').length};",
            "std",
        ),
        ("return {battery: os.getpid()};", "os"),
        ("return {battery: new Proxy({}, {}).x};", "Proxy"),
        ("Object.prototype.battery = 1;", "extensible"),
        ("Array.prototype.push = null;", "read-only"),
        ("globalThis.leak = 1;", "extensible"),
        ("leak = 1;", "leak"),
        ("Math.floor = null;", "read-only"),
    ] {
        let decoded = hostile(&scripts, body).await;
        assert!(problem(&decoded).contains(wanted), "{body}: {decoded:?}");
    }
}

#[tokio::test]
async fn what_a_script_returns_is_read() {
    let scripts = scripts();
    for (body, wanted) in [
        ("return null;", None),
        ("", None),
        ("return {};", Some("")),
        (
            "return {temperature: 21.345000000000002, alarm: 'on', battery: null, humidity: undefined};",
            Some("temperature 21.345 °C, alarm on"),
        ),
        (
            "return {temperature: 5000, battery: 7};",
            Some("battery 7 %"),
        ),
        (
            "return {'voltage[0]': 1, 'voltage[1]': 2};",
            Some("voltage[0] 1 V, voltage[1] 2 V"),
        ),
        (
            "return [{quantity: 'voltage', value: 2950, unit: 'mV', index: 1}, {quantity: 'alarm', value: true}];",
            Some("voltage[1] 2.95 V, alarm yes"),
        ),
        (
            "return {battery: frame.manufacturerData[0].companyId === 0x0499 ? frame.manufacturerData[0].data.length : 0};",
            Some("battery 1 %"),
        ),
        (
            "class T { get battery() { return 5; } } return {battery: new T().battery};",
            Some("battery 5 %"),
        ),
        (
            "const {manufacturerData: [{data}]} = frame; return {battery: data?.[9] ?? new DataView(data.buffer).getUint8(0)};",
            Some("battery 1 %"),
        ),
    ] {
        let decoded = one(&scripts, &format!("const decode = frame => {{ {body} }};")).await;
        match wanted {
            None => assert_eq!(decoded, Decoded::NotMine, "{body}"),
            Some(wanted) => assert_eq!(values(&decoded), wanted, "{body}"),
        }
    }
}

#[tokio::test]
async fn a_call_knows_nothing_of_others() {
    let scripts = scripts();
    let source = "let count = 0; const seen = {}; class Store {} \
        function decode(frame) { \
            count += 1; decode.count = (decode.count ?? 0) + 1; Store.count = (Store.count ?? 0) + 1; \
            seen.count = (seen.count ?? 0) + 1; \
            try { Object.prototype.count = 9; } catch {} \
            try { frame.constructor.count = 9; } catch {} \
            Promise: { (async () => { await 1; count = 99; })(); } \
            return {'voltage[0]': count, 'voltage[1]': decode.count, 'voltage[2]': Store.count, \
                    'voltage[3]': seen.count, 'voltage[4]': {}.count ?? 1}; }";
    // All 50 have to be run, however little of the machine is left for them.
    let decoded = scripts
        .decode(tenant(), source, &frames(&[&[1][..]; 50]), 2 * BATCH_TIME)
        .await;
    for decoded in decoded {
        assert_eq!(
            values(&decoded),
            "voltage[0] 1 V, voltage[1] 1 V, voltage[2] 1 V, voltage[3] 1 V, voltage[4] 1 V"
        );
    }
}

#[tokio::test]
async fn a_script_that_cannot_be_compiled_is_told_where() {
    let scripts = scripts();
    for (source, wanted) in [
        (
            "function decode(frame) {\n  return {battery: };\n}",
            "line 2, column",
        ),
        (
            "}); (function () { return () => ({battery: 1});",
            "line 1, column 1",
        ),
        ("import * as std from 'std'; function decode() {}", "std"),
        ("function decode() { /* ", "line 1"),
        ("function decod() {}", "no function decode"),
        ("decode = () => 1;", "decode"),
        ("const decode = 7;", "no function decode"),
        ("const x = y; function decode() {}", "y is not defined"),
        ("for (;;); function decode() {}", "longer than 50 ms"),
        ("await 1; function decode() {}", ""),
        ("", "no function decode"),
    ] {
        let decoded = one(&scripts, source).await;
        assert!(problem(&decoded).contains(wanted), "{source}: {decoded:?}");
        let trial = scripts.trial(tenant(), source, &[]).await;
        let is_refused = matches!(trial, Err(hub_scripts::Trial::Refused(_)));
        assert!(
            is_refused || source.starts_with("for"),
            "{source}: {trial:?}"
        );
    }
}

#[tokio::test]
async fn many_hostile_frames_take_no_longer_than_an_upload_waits() {
    let scripts = scripts();
    let begun = Instant::now();
    let source = "function decode() { const a = []; a.length = 2 ** 32 - 1; return a.join('x'); }";
    let decoded = scripts
        .decode(tenant(), source, &frames(&[&[1][..]; 500]), UPLOAD_TIME)
        .await;
    assert!(
        begun.elapsed() < UPLOAD_TIME + Duration::from_millis(800),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(decoded.len(), 500);
    assert!(
        problem(&decoded[499]).starts_with("script not run: "),
        "{:?}",
        decoded[499]
    );
    assert!(problem(&decoded[499]).ends_with("; the event is read again when there is time"));
    let looping = "function decode() { for (;;); }";
    let begun = Instant::now();
    let decoded = scripts
        .decode(tenant(), looping, &frames(&[&[1][..]; 500]), UPLOAD_TIME)
        .await;
    assert!(
        begun.elapsed() < UPLOAD_TIME + Duration::from_millis(800),
        "{:?}",
        begun.elapsed()
    );
    assert!(problem(&decoded[0]).contains("50 ms") && problem(&decoded[499]).contains("not run"));
}

/// The program under a name of its own, by which its processes are found.
fn named() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("hub-cloud");
    std::os::unix::fs::symlink(program("hub-cloud"), &path).expect("a link");
    (dir, path)
}

/// The processes of a program that run scripts.
fn processes(program: &Path) -> Vec<u32> {
    let is_mine = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command) == format!("{}\0script-worker\0", program.display())
    };
    let pids = std::fs::read_dir("/proc").expect("processes");
    pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(is_mine)
        .collect()
}

/// Processor time of a process in hundredths of a second, as `/proc/PID/stat` counts it; none of
/// one that is gone.
fn used_hundredths(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in brackets, and may contain anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(11)?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_costs_no_event() {
    const KILLS: u32 = 10;
    let (_dir, program) = named();
    let scripts = Scripts::new(program.clone(), 4, Metrics::new());
    let (all, tenant) = (frames(&[&[7][..]; 400]), tenant());
    let source = "function decode(f) { let n = 0; for (let i = 0; i < 3000; i++) n += i; return {battery: 7}; }";
    let killer = tokio::spawn(async move {
        let mut killed = 0;
        while killed < KILLS {
            tokio::time::sleep(Duration::from_millis(20)).await;
            for pid in processes(&program) {
                // Each has answered some calls: one call that is killed twice counts as failed.
                if used_hundredths(pid).is_some_and(|used| used > 15) {
                    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a process");
                    killed += u32::from(
                        rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok(),
                    );
                }
            }
        }
        killed
    });
    let mut runs = 0;
    while !killer.is_finished() {
        for decoded in scripts
            .decode(tenant, source, &all, Duration::from_secs(20))
            .await
        {
            assert_eq!(values(&decoded), "battery 7 %");
        }
        runs += 1;
    }
    let killed = killer.await.expect("the killer");
    assert!(killed >= KILLS && runs > 0, "{killed} killed, {runs} runs");
}

/// A kernel, or a container, without the filter: the process says that it has none.
#[tokio::test]
async fn scripts_do_not_run_without_the_filter_unless_a_setting_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("unfiltered");
    let hello = r#"{"is_filtered":false}"#;
    let real = program("hub-cloud");
    // The hello of the real process is dropped, and another is sent in its place.
    let text = format!(
        "#!/bin/sh\nprintf '\\{:03o}\\0\\0\\0{hello}'\n{} \"$@\" | (head -c {} >/dev/null; exec cat)\n",
        hello.len(),
        real.display(),
        4 + r#"{"is_filtered":true}"#.len()
    );
    std::fs::write(&path, text).expect("a program");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("a mode");
    let script = "function decode() { return {battery: 1}; }";
    let refused = Scripts::new(path.clone(), 2, Metrics::new());
    assert!(matches!(one(&refused, script).await, Decoded::NotRun(_)));
    let allowed = Scripts::with(path, 2, Metrics::new(), true);
    assert_eq!(values(&one(&allowed, script).await), "battery 1 %");
}

#[tokio::test]
async fn a_process_is_confined() {
    let (_dir, program) = named();
    let scripts = Scripts::new(program.clone(), 4, Metrics::new());
    assert_eq!(
        values(&one(&scripts, "function decode() { return {battery: 1}; }").await),
        "battery 1 %"
    );
    let pid = processes(&program).pop().expect("a process");
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).expect(name);
    let status = read("status");
    for wanted in ["Seccomp:\t2", "NoNewPrivs:\t1", "Threads:\t1"] {
        assert!(status.contains(wanted), "{wanted}: {status}");
    }
    let limits = read("limits");
    for wanted in [
        "Max core file size 0 0",
        "Max open files 3 3",
        "Max processes 0 0",
        "Max file size 0 0",
        "Max cpu time 3600 3600",
    ] {
        assert!(
            limits
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(wanted),
            "{wanted}: {limits}"
        );
    }
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("files")
        .count();
    assert_eq!(open, 3, "open files");
    let environment = read("environ");
    assert!(
        environment.starts_with("MALLOC_CONF=") && environment.matches('=').count() == 1,
        "{environment}"
    );
    let resident = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .expect("memory")
        .to_owned();
    println!("a process with one script: {resident}");
}

/// Runs in a copy of this program, whose other threads are confined as well.
#[test]
fn a_confined_program_reaches_nothing() {
    if std::env::var_os(CONFINED).is_none() {
        let name = "scripts::a_confined_program_reaches_nothing";
        let mut copy = Command::new(std::env::current_exe().expect("this program"));
        copy.args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(CONFINED, "1");
        // The end of a confined program may fail; what it found counts.
        let output = copy.output().expect("a copy of this program");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains("confined and unable"),
            "{text}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    let parent = rustix::process::getppid().expect("a parent");
    assert!(confine().expect("confined"), "system calls are filtered");
    let refused = |what: &str, result: Result<(), Error>| {
        let error = result.expect_err(what);
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{what}: {error}");
    };
    refused("reading a file", std::fs::read("/etc/passwd").map(drop));
    refused("writing a file", std::fs::write("/tmp/from-a-script", "x"));
    refused("listing a folder", std::fs::read_dir("/").map(drop));
    refused("connecting", TcpStream::connect("127.0.0.1:5432").map(drop));
    refused("a socket", UdpSocket::bind("127.0.0.1:0").map(drop));
    refused("a program", Command::new("/bin/true").status().map(drop));
    refused(
        "a thread",
        std::thread::Builder::new().spawn(|| ()).map(drop),
    );
    let killed = rustix::process::kill_process(parent, rustix::process::Signal::KILL);
    assert!(killed.is_err(), "killing");
    println!("confined and unable");
}

/// One account with several tenants, whose decoders never end, takes no neighbour's time.
#[tokio::test]
async fn a_person_with_many_tenants_starves_nobody() {
    let scripts = Scripts::new(program("hub-cloud"), 2, Metrics::new());
    let (greedy, person) = (tenants(4), uuid::Uuid::now_v7());
    let of_person = greedy.clone();
    scripts.set_owner_of(Box::new(move |tenant_uuid| {
        let owner = of_person.contains(&tenant_uuid).then_some(person);
        Box::pin(async move { owner })
    }));
    let uploads = scripts.of_uploads();
    let endless = "function decode() { for (;;) {} }";
    let burning: Vec<_> = greedy
        .iter()
        .flat_map(|tenant| [*tenant; 4])
        .map(|tenant| {
            let uploads = uploads.clone();
            tokio::spawn(async move {
                let all = frames(&[&[1][..]; 40]);
                loop {
                    uploads.decode(tenant, endless, &all, UPLOAD_TIME).await;
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let neighbour = tenant();
    let source = "function decode() { return {battery: 7}; }";
    let mut times = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        let all = frames(&[&[1][..]; 3]);
        let decoded = uploads.decode(neighbour, source, &all, UPLOAD_TIME).await;
        // A busy machine may not start an engine in time. A call that did not run took too long.
        let not_run = |one: &Decoded| matches!(one, Decoded::NotRun(_));
        times.push(match decoded.iter().any(not_run) {
            true => UPLOAD_TIME,
            false => began.elapsed(),
        });
        for decoded in decoded.iter().filter(|one| !not_run(one)) {
            assert_eq!(values(decoded), "battery 7 %");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // What is not for uploads has places of its own.
    for decoded in scripts
        .decode(neighbour, source, &frames(&[&[1]]), BATCH_TIME)
        .await
    {
        assert_eq!(values(&decoded), "battery 7 %");
    }
    times.sort_unstable();
    println!("a neighbour waits {:?}, at most {:?}", times[10], times[19]);
    assert!(times[10] < UPLOAD_TIME * 4 / 5, "{times:?}");
    for task in burning {
        task.abort();
    }
}

fn tenants(count: usize) -> Vec<TenantUuid> {
    (0..count).map(|_| tenant()).collect()
}
