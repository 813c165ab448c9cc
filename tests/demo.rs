//! `hub-cloud demo` as somebody starts it who has just built it: a process of its own, with the
//! real agent as its child.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use hub_tests::process::program;
use hub_tests::{Call, Client};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// The longest time a step of the demo may need, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

impl Demo {
    fn start(dir: &Path) -> Self {
        program("hub-agent");
        let mut command = Command::new(program("hub-cloud"));
        command
            .args([
                "demo",
                "--speed",
                "5",
                "--listen",
                "127.0.0.1:0",
                "--data-dir",
            ])
            .arg(dir);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("hub-cloud starts");
        let lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Reads on until there is such a line.
    async fn line(&mut self, what: &str, matches: impl Fn(&str) -> bool) -> String {
        if let Some(line) = self.seen.iter().find(|line| matches(line)) {
            return line.clone();
        }
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
            match line {
                Ok(Ok(Some(line))) => self.seen.push(line),
                other => panic!("no {what} came ({other:?}), but:\n{}", self.seen.join("\n")),
            }
            if let Some(line) = self.seen.last().filter(|line| matches(line)) {
                return line.clone();
            }
        }
    }

    /// The line of the head that begins so.
    async fn fact(&mut self, name: &str) -> String {
        self.line(name, |line| line.starts_with(name)).await
    }

    async fn event(&mut self) -> String {
        self.line("event", is_event).await
    }

    async fn signal(mut self, signal: &str) -> (ExitStatus, Vec<String>) {
        let pid = self.child.id().expect("it runs").to_string();
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{signal} {pid}")])
            .status()
            .await;
        assert!(sent.expect("sh").success());
        while let Ok(Ok(Some(line))) = tokio::time::timeout(PATIENCE, self.lines.next_line()).await
        {
            self.seen.push(line);
        }
        let ended = tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .expect("it ends");
        (ended.expect("a status"), self.seen)
    }
}

/// `10:59:58.123  AA:BB:CC:DD:EE:FF  ...`
fn is_event(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (time, address) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    time.len() == 12
        && address.len() == 17
        && address.bytes().filter(|byte| *byte == b':').count() == 5
}

/// The hub, and how many events are stored, of a line such as `-- hub UUID  ONLINE  last seen ...;
/// 12 stored, ...`.
fn hub_and_stored(line: &str) -> (String, u64) {
    let hub = line.split_whitespace().nth(2).expect("a uuid").to_owned();
    let numbers = line.split_once("; ").expect("numbers").1;
    (
        hub,
        numbers
            .split(' ')
            .next()
            .expect("a number")
            .parse()
            .expect("a number"),
    )
}

#[tokio::test]
async fn demo_shows_uploads_of_a_real_hub_and_resumes_after_a_restart() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("demo");

    let mut demo = Demo::start(&dir);
    let (account, tenant) = (demo.fact("account").await, demo.fact("tenant").await);
    demo.event().await;
    let is_numbers = |line: &str| line.starts_with("-- hub") && hub_and_stored(line).1 > 0;
    let (hub, _) = hub_and_stored(&demo.line("numbers", is_numbers).await);
    let (status, lines) = demo.signal("INT").await;
    assert!(status.success(), "{status}\n{}", lines.join("\n"));
    let events = lines.iter().filter(|line| is_event(line)).count() as u64;
    assert!(
        lines.iter().any(|line| line.starts_with("Stopped. ")),
        "{}",
        lines.join("\n")
    );

    let mut demo = Demo::start(&dir);
    assert_eq!(
        (demo.fact("account").await, demo.fact("tenant").await),
        (account.clone(), tenant)
    );
    demo.event().await;
    let (same_hub, stored) = hub_and_stored(&demo.line("numbers", is_numbers).await);
    assert_eq!(same_hub, hub);
    // What was shown was stored; the view itself may have missed what was uploaded at the very end.
    assert!(stored >= events, "{stored} of {events} are left");

    let mut service = Command::new(program("hub-cloud"));
    service
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&dir)
        .kill_on_drop(true);
    let refused = tokio::time::timeout(PATIENCE, service.output()).await;
    let refused = refused.expect("it ends").expect("it starts");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(1) && said.contains("another hub-cloud is running on"),
        "{said}"
    );

    // Not even SIGKILL leaves the agent behind: it holds this lock for as long as it lives.
    demo.signal("KILL").await;
    let lock = dir.join("hub/lock");
    let released =
        tokio::task::spawn_blocking(move || File::options().write(true).open(lock)?.lock());
    tokio::time::timeout(PATIENCE, released)
        .await
        .expect("the agent ends")
        .expect("a thread")
        .expect("a lock");

    for name in ["account.json", "env.sh", "claim-code", "master.key"] {
        let mode = std::fs::metadata(dir.join(name))
            .expect(name)
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name} is for its owner alone");
    }
    let password = account.rsplit(' ').next().expect("a password");
    for name in ["hub-cloud.log", "hub-agent.log"] {
        let log = std::fs::read_to_string(dir.join(name)).expect(name);
        assert!(
            !log.contains(password) && !log.contains("eyJ"),
            "{name} holds a secret:\n{log}"
        );
    }
}

/// The API of a demo, as its account.
async fn signed_in(demo: &mut Demo) -> Client {
    let word = |line: &str, at: usize| line.split_whitespace().nth(at).expect("a word").to_owned();
    let url = word(&demo.fact("service").await, 1);
    let account = demo.fact("account").await;
    let tenant = word(&demo.fact("tenant").await, 1);
    let credentials = json!({"email": word(&account, 1), "password": word(&account, 3)});
    let client = Client::new(&url);
    let session: Value = client
        .post("/auth/login")
        .json(&credentials)
        .call()
        .await
        .expect(200)
        .data();
    client
        .bearer(session["accessToken"].as_str().expect("a token"))
        .tenant(tenant.parse().expect("a uuid"))
}

async fn read(client: &Client, path: &str) -> Value {
    client.get(path).call().await.expect(200).data()
}

/// A newcomer sees named sensors with plausible values, a day of history, and three hubs on a plan.
#[tokio::test]
async fn the_demo_has_a_plausible_day() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("demo");
    let mut demo = Demo::start(&dir);
    let client = signed_in(&mut demo).await;
    demo.event().await;

    let devices = read(&client, "/tenant/devices?size=100").await;
    let devices = devices.as_array().expect("devices");
    assert_eq!(devices.len(), 9);
    let of = |name: &str| {
        let found = devices.iter().find(|device| device["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} among {devices:?}"))
    };
    for (name, quantity, least, most) in [
        ("Office", "temperature", 18.0, 25.0),
        ("Office", "humidity", 30.0, 60.0),
        ("Office", "pressure", 100_000.0, 103_000.0),
        ("Cold store", "temperature", 2.0, 8.0),
        ("Freezer", "temperature", -21.0, -16.0),
        ("Hall", "temperature", 14.0, 22.0),
        ("Loading dock", "battery", 5.0, 12.0),
    ] {
        let value = of(name)["state"][quantity]["value"].as_f64();
        let value = value.unwrap_or_else(|| panic!("{name} has no {quantity}"));
        assert!((least..=most).contains(&value), "{name} {quantity} {value}");
    }
    assert_eq!(of("Archive")["online"], false, "silent for hours");
    let office = format!("/tenant/devices/{}", of("Office")["deviceInstanceId"]);
    let heard = async {
        while read(&client, &office).await["online"] != true {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(PATIENCE, heard)
        .await
        .expect("a live value");

    // The history, of which the cold store's warm hour is a part.
    let id = &of("Cold store")["deviceInstanceId"];
    let from = hub_base::clock::Clock::System.now().plus_secs(-24 * 3600);
    let path =
        format!("/tenant/devices/{id}/sensor-data?every=30m&quantity=temperature&from={from}");
    let buckets = read(&client, &path).await;
    let buckets = buckets.as_array().expect("buckets");
    assert!(buckets.len() >= 46, "{} half hours", buckets.len());
    let warm = buckets.iter().filter(|one| one["max"].as_f64() > Some(9.0));
    assert!((1..=4).contains(&warm.count()), "{buckets:?}");

    // It was received when it was heard, so that the summary spreads it over the day.
    let summary = "/tenant/dashboard/summary?windowMinutes=1440";
    let spread = async {
        loop {
            let ble = read(&client, summary).await["ble"].clone();
            let series = ble["series"].as_array().expect("a series");
            let counts = series.iter().filter_map(|point| point["events"].as_i64());
            let counts: Vec<i64> = counts.collect();
            if counts.iter().filter(|count| **count > 0).count() >= 58 {
                return counts;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let counts = tokio::time::timeout(PATIENCE, spread)
        .await
        .expect("a day of events");
    let (most, all) = (counts.iter().max(), counts.iter().sum::<i64>());
    assert!(most.is_some_and(|most| most * 2 < all), "{counts:?}");

    // The overview shows chosen devices, each with what its tile names.
    let dashboards = read(&client, "/tenant/dashboards").await;
    assert_eq!(dashboards[0]["onOverview"], true, "{dashboards}");
    let tiles = dashboards[0]["tiles"].as_array().expect("tiles");
    assert_eq!(tiles.len(), 8, "{tiles:?}");
    for tile in tiles {
        let is_it = |device: &&Value| device["deviceInstanceId"] == tile["deviceInstanceId"];
        let device = devices.iter().find(is_it).expect("a device");
        if let Some(quantity) = tile["quantity"].as_str() {
            assert!(device["state"][quantity].is_object(), "{tile}: {device}");
        }
    }

    // The real hub is placed once it is claimed.
    let placed = async {
        loop {
            let plans = read(&client, "/tenant/floor-plans").await;
            if plans[0]["hubs"].as_array().map(Vec::len) == Some(3) {
                return plans;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let plans = tokio::time::timeout(PATIENCE, placed)
        .await
        .expect("three hubs");
    assert_eq!(plans[0]["image"]["mediaType"], "image/png");

    // The pipeline delivers to the demo's own receiver.
    let pipelines = "/tenant/data-pipelines";
    let delivering = async {
        loop {
            let all = read(&client, pipelines).await;
            let uuid = all[0]["pipelineUuid"].as_str().expect("a pipeline");
            let uuid = uuid.to_owned();
            let path = format!("{pipelines}/{uuid}/deliveries?status=DELIVERED");
            let deliveries = read(&client, &path).await;
            if deliveries.as_array().is_some_and(|all| !all.is_empty()) {
                return (all, uuid);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let (all, pipeline) = tokio::time::timeout(PATIENCE, delivering)
        .await
        .expect("a delivery");
    assert_eq!(all.as_array().map(Vec::len), Some(1));
    assert_eq!(all[0]["status"], "RUNNING", "{all}");

    // The owner of the hubs has consented, and the tenant rolls a release out.
    let asked = read(&client, "/tenant/consent-settings").await;
    assert_eq!(asked["enforce"], true, "{asked}");
    let granted = read(&client, "/tenant/consent-records").await;
    assert_eq!(granted[0]["status"], "GRANTED", "{granted}");
    assert_eq!(granted[0]["version"], asked["version"]);
    let releases = read(&client, "/tenant/agent-releases").await;
    assert_eq!(releases[0]["status"], "READY", "{releases}");
    let policies = "/tenant/agent-update-policies";
    let rolling = async {
        loop {
            let rollout = read(&client, policies).await[0]["rollouts"][0].clone();
            if rollout.is_object() {
                return rollout;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let rollout = tokio::time::timeout(PATIENCE, rolling).await;
    let rollout = rollout.expect("a rollout");
    assert_eq!(rollout["state"], "RUNNING", "{rollout}");
    assert_eq!(rollout["version"], releases[0]["version"]);

    // The next start continues: nothing is made twice.
    let count = async |client: &Client| {
        let id = &of("Archive")["deviceInstanceId"];
        let path = format!("/tenant/ble/events?deviceInstanceId={id}&size=1");
        let reply = client.get(&path).call().await.expect(200);
        reply.header("x-total-count").to_owned()
    };
    let before = count(&client).await;
    demo.signal("KILL").await;
    let mut demo = Demo::start(&dir);
    let client = signed_in(&mut demo).await;
    demo.event().await;
    assert_eq!(count(&client).await, before);
    let devices = read(&client, "/tenant/devices?size=100").await;
    assert_eq!(devices.as_array().map(Vec::len), Some(9));
    let hubs = read(&client, "/tenant/hubs").await;
    assert_eq!(hubs.as_array().map(Vec::len), Some(3));
    let pipelines = read(&client, pipelines).await;
    assert_eq!(pipelines.as_array().map(Vec::len), Some(1));
    assert_eq!(pipelines[0]["pipelineUuid"], pipeline.as_str());
}

/// The first line is a link that opens the console, signed in, and works once.
#[tokio::test]
async fn the_first_line_signs_a_browser_in_once() {
    // If this fails, another program has the usual port already.
    let _usual = TcpListener::bind("127.0.0.1:8080");
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("demo");
    let mut demo = Demo::start(&dir);
    let first = demo.line("line", |_| true).await;
    let link = first.strip_prefix("console   ").expect("the console");
    let link = link.split(' ').next().expect("a link");
    let (service, code) = link.split_once("/demo/").expect("a link");
    let browser = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .expect("a client");
    let open = async |link: &str| {
        let reply = browser.get(link).send().await.expect("an answer");
        let header = |name: &str| {
            let value = reply.headers().get(name)?;
            Some(value.to_str().expect("text").to_owned())
        };
        assert_eq!(header("cache-control").as_deref(), Some("no-store"));
        (
            reply.status().as_u16(),
            header("location"),
            header("set-cookie"),
        )
    };
    let used = "/console?signInError=SIGN_IN_LINK_USED".to_owned();

    // Neither another code nor a look at the link uses it up.
    let other = open(&format!("{service}/demo/{}", "A".repeat(16))).await;
    assert_eq!(other, (303, Some(used.clone()), None));
    for request in [
        browser.head(link),
        browser.get(link).header("sec-purpose", "prefetch"),
    ] {
        let reply = request.send().await.expect("an answer");
        assert_eq!(reply.status(), 204);
    }

    let (status, location, cookie) = open(link).await;
    assert_eq!(
        (status, location.as_deref()),
        (303, Some("/console?signedIn=yes"))
    );
    let cookie = cookie.expect("a session");
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let session = browser
        .post(format!("{service}/auth/session/refresh"))
        .header("sec-fetch-site", "same-origin")
        .header("cookie", cookie.split(';').next().expect("a cookie"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(session.status(), 200);
    let session: Value = session.json().await.expect("JSON");
    assert!(session["data"]["accessToken"].is_string(), "{session}");

    assert_eq!(open(link).await, (303, Some(used), None));
    let note = demo.fact("note").await;
    assert!(
        note.contains("port 8080") && note.contains("in use"),
        "{note}"
    );
    demo.event().await;
    demo.signal("INT").await;
    for entry in std::fs::read_dir(&dir).expect("a directory").flatten() {
        if let Ok(content) = std::fs::read(entry.path()) {
            let holds = content
                .windows(code.len())
                .any(|part| part == code.as_bytes());
            assert!(!holds, "{} holds the code", entry.path().display());
        }
    }
}

/// What a demo prints that does not start: its exit code, standard output and standard error.
async fn refused(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    program("hub-agent");
    let parent = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(program("hub-cloud"));
    command
        .args(["demo", "--data-dir"])
        .arg(parent.path().join("demo"))
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.expect("it ends").expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[tokio::test]
async fn what_keeps_the_demo_from_working_is_said_in_one_sentence() {
    // Nobody listens on this port any more once the statement ends.
    let unused = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let dead_broker = format!("mqtt://{}", unused.expect("an address"));
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let held = holder.local_addr().expect("an address").to_string();
    let unknown = "mqtt://broker.invalid";
    let free = ["--listen", "127.0.0.1:0"];
    let no_bus = [("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus")];
    for (arguments, variables, parts) in [
        (
            vec!["--listen", &held],
            &[][..],
            [held.as_str(), "another program", "--listen 127.0.0.1:0"],
        ),
        (
            [&free[..], &["--send-to", &dead_broker]].concat(),
            &[],
            ["nothing answers", "--send-to", "start the receiver"],
        ),
        (
            [&free[..], &["--send-to", unknown]].concat(),
            &[],
            ["broker.invalid", "--send-to", "correct the URL"],
        ),
        (
            [&free[..], &["--bluez"]].concat(),
            &no_bus,
            ["--bluez", "D-Bus", "apt-get install"],
        ),
    ] {
        let (code, printed, said) = refused(&arguments, variables).await;
        assert_eq!((code, printed.as_str()), (Some(1), ""), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for part in parts {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
        for part in ["os error", "caused by", "panicked"] {
            assert!(!said.to_lowercase().contains(part), "{said}");
        }
    }
}

#[tokio::test]
async fn help_of_the_demo_has_its_own_settings_and_others_are_refused() {
    let help = Command::new(program("hub-cloud"))
        .args(["demo", "--help"])
        .output()
        .await
        .expect("it starts");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let flag = |line: &str| {
        let word = line.split_whitespace().find(|word| word.starts_with("--"));
        let is_flag = line.trim_start().starts_with('-');
        word.filter(|_| is_flag).map(str::to_owned)
    };
    let flags: Vec<String> = help.lines().filter_map(flag).collect();
    let expected = [
        "--bluez",
        "--speed",
        "--send-to",
        "--help",
        "--listen",
        "--data-dir",
        "--log",
    ];
    assert_eq!(flags, expected, "{help}");

    let secret = "postgres://u:hunter2@h/d";
    for (arguments, variables, key) in [
        (vec!["--database-url", secret], &[][..], "database-url"),
        (
            vec![],
            &[("HUB_CLOUD_DATABASE_URL", secret)],
            "database-url",
        ),
        (vec!["--config", "a.toml"], &[], "config"),
        (vec!["--builtin-login", "false"], &[], "builtin-login"),
        (
            vec!["--oidc-issuer", "https://login.example.com"],
            &[],
            "oidc-issuer",
        ),
        (
            vec!["--smtp-url", "smtp://mail.example.com"],
            &[],
            "smtp-url",
        ),
        (
            vec!["--trusted-proxies", "10.0.0.0/8"],
            &[],
            "trusted-proxies",
        ),
        (vec!["--release-keys", "keys"], &[], "release-keys"),
        (vec!["--metrics-token", "secret"], &[], "metrics-token"),
    ] {
        let (code, printed, said) = refused(&arguments, variables).await;
        assert_eq!((code, printed.as_str()), (Some(3), ""), "{said}");
        let variable = format!("HUB_CLOUD_{}", key.replace('-', "_").to_uppercase());
        assert!(
            said.contains(&format!("--{key} ")) && said.contains(&variable),
            "{said}"
        );
        assert!(!said.contains("hunter2"), "{said}");
    }
}
