//! Settings from all three sources, and how wrong ones are refused.

use std::time::Duration;

use hub_agent::size::Size;

use super::values::Span;
use super::*;

fn run_with(file: &str, arguments: &[&str]) -> Result<RunArgs, Refusal> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, file).unwrap();
    let path = path.to_str().unwrap().to_owned();
    let line = ["hub-agent", "run", "--config", &path]
        .into_iter()
        .chain(arguments.iter().copied())
        .map(OsString::from);
    match load(line)?.command {
        Cmd::Run(args) => Ok(*args),
        other => panic!("{other:?}"),
    }
}

fn refusal(file: &str) -> String {
    match run_with(file, &[]) {
        Err(Refusal::Config(failure)) => {
            assert!(matches!(failure, Failure::Config(_)));
            failure.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_kind_of_setting_can_be_in_the_file() {
    let args = run_with(
        "service-url = \"https://hubs.example.com\"\nadapters = [\"AA:BB:CC:DD:EE:01\", \"AA:BB:CC:DD:EE:02\"]\n\
         replay-loop = true\nreplay-speed = 2.5\nspool-max = \"1GiB\"\nsilence = \"5m\"\nscan-mode = \"passive\"\n\
         report = \"both\"\nreport-window = \"30s\"\n",
        &[],
    )
    .unwrap();
    assert_eq!(
        service_url(&args.service).unwrap().as_str(),
        "https://hubs.example.com/"
    );
    assert_eq!(args.radio.adapters.len(), 2);
    assert!(args.radio.replay_loop);
    assert_eq!(args.radio.replay_speed, 2.5);
    assert_eq!(args.spool.spool_max, Size(1 << 30));
    let radio = crate::run::radio_config(&args);
    assert_eq!(
        (radio.silence.as_secs(), radio.mode, radio.single_events),
        (300, ScanMode::Passive, true)
    );
    assert_eq!(radio.report_window, Some(Duration::from_secs(30)));
}

#[test]
fn a_flag_overrides_the_file() {
    let file = "service-url = \"https://file.example.com\"\nsilence = \"5m\"\n";
    let args = run_with(file, &["--service-url", "https://flag.example.com"]).unwrap();
    assert_eq!(
        args.service.service_url.as_deref(),
        Some("https://flag.example.com")
    );
    assert_eq!(args.radio.silence, Span(Duration::from_secs(300)));
}

#[test]
fn each_command_reads_only_its_own_settings_from_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let all = "service-url = \"https://hubs.example.com\"\nclaim-code = \"ABCD-EFGH-JKMN-PQRS\"\nreplay = \"x\"\n\
        adapters = [\"AA:BB:CC:DD:EE:01\", \"AA:BB:CC:DD:EE:02\"]\nstate-dir = \"/elsewhere\"\nlog = \"warn\"\n";
    std::fs::write(&path, all).unwrap();
    let load_line = |line: &[&str]| {
        let line = line
            .iter()
            .map(|argument| argument.replace("FILE", path.to_str().unwrap()).into());
        load(std::iter::once("hub-agent".into()).chain(line))
            .unwrap()
            .command
    };
    let elsewhere = PathBuf::from("/elsewhere");
    let Cmd::Status(args) = load_line(&["status", "--json", "--config", "FILE"]) else {
        panic!("status")
    };
    assert_eq!(
        (args.common.state_dir, args.json),
        (elsewhere.clone(), true)
    );
    let Cmd::Check(args) = load_line(&["check", "--config", "FILE"]) else {
        panic!("check")
    };
    assert_eq!(
        args.service.service_url.as_deref(),
        Some("https://hubs.example.com")
    );
    let Cmd::Claim(args) = load_line(&["claim", "--config", "FILE", "--code", "X"]) else {
        panic!("claim")
    };
    assert_eq!((args.common.state_dir, args.code_file), (elsewhere, None));
    let line = [
        "run",
        "--config=FILE",
        "--adapters",
        "AA:BB:CC:DD:EE:03",
        "--log",
        "debug",
        "--",
    ];
    let Cmd::Run(args) = load_line(&line) else {
        panic!("run")
    };
    assert_eq!(
        (args.radio.adapters, args.logs.log.as_str()),
        (vec!["AA:BB:CC:DD:EE:03".to_owned()], "debug")
    );
    assert!(args.claim.claim_code.is_some() && args.radio.replay.is_some());
    assert!(matches!(load_line(&["version"]), Cmd::Version));
    assert!(matches!(load_line(&["scan", "--json"]), Cmd::Scan(_)));
}

#[test]
fn a_wrong_value_on_the_command_line_is_wrong_usage() {
    for (line, part) in [
        ("--silence=abc", "write it as a whole number"),
        ("--request-timeout=0s", "it must be longer than 0"),
        ("--connect-timeout=0ms", "it must be longer than 0"),
        ("--spool-max=0B", "it must be more than 0"),
        ("--log-format=xml", "possible values: auto, text, json"),
    ] {
        let Err(Refusal::Usage(error)) = run_with("", &[line]) else {
            panic!("{line}")
        };
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(
        run_with(
            "",
            &[
                "--upload-interval=0s",
                "--dedup-window=0s",
                "--disk-headroom=0B"
            ]
        )
        .is_ok()
    );
    assert!(matches!(
        run_with("", &["--silence"]),
        Err(Refusal::Usage(_))
    ));
    assert!(matches!(
        run_with("", &["--silense=5s"]),
        Err(Refusal::Usage(_))
    ));
}

#[test]
fn an_error_in_the_file_is_reported_with_its_line() {
    let text = refusal("\n\nservice-ulr = \"https://x\"\n");
    assert!(
        text.contains("line 3") && text.contains("did you mean `service-url`?"),
        "{text}"
    );
    let text = refusal("silence = \"5m\"\nspool-max = \"lots\"\n");
    assert!(
        text.contains("line 2: spool-max: write it as a whole number"),
        "{text}"
    );
    let text = refusal("log-format = \"xml\"");
    assert!(text.contains("log-format"), "{text}");
    let text = refusal("log = \"warning\"");
    assert!(
        text.contains("line 1: log: `warning` is not a level. Did you mean warn?"),
        "{text}"
    );
    assert!(refusal("replay-loop = \"yes\"").contains("replay-loop must be true or false"));
    assert!(refusal("silence = { a = 1 }").contains("silence must be a string or a number"));
    assert!(refusal("service-url = ").contains("line 1"), "not TOML");
    assert!(refusal("config = \"other.toml\"").contains("there is no setting `config`"));
}

/// The journal, where an error of the start ends up, has more readers than the file.
#[test]
fn no_mistake_in_the_file_shows_what_it_contains() {
    for (text, part) in [
        ("\nclaim-code = \"hunter2", "line 2"),
        ("\nclaim-code = hunter2 x", "line 2"),
        ("claim-code hunter2", "line 1"),
        ("claim-code = 'a'\nclaim-code = 'hunter2'", "line 2"),
        ("claim-code = ['hunter2']", "claim-code must be a string"),
        (
            "claim-code = {code = 'hunter2'}",
            "claim-code must be a string",
        ),
        ("'https://u:hunter2@h' = 1", "unknown setting"),
        ("silence = 'hunter2'", "silence"),
        ("spool-max = 'hunter2'", "spool-max"),
        ("log = 'hunter2'", "log"),
        ("log = 'hub_agent=hunter2'", "log"),
        ("log-format = 'hunter2'", "log-format"),
        ("scan-mode = 'hunter2'", "scan-mode"),
        ("report = 'hunter2'", "report"),
        ("ship-logs = 'hunter2'", "ship-logs"),
        (
            "replay-loop = 'hunter2'",
            "replay-loop must be true or false",
        ),
        ("replay-speed = 'hunter2'", "replay-speed"),
    ] {
        let error = refusal(text);
        assert!(
            error.contains(part) && !error.contains("hunter2"),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_configured_file_must_exist() {
    let line = ["hub-agent", "run", "--config", "/nowhere/config.toml"].map(OsString::from);
    let Err(Refusal::Config(failure)) = load(line) else {
        panic!("the file is not there")
    };
    assert!(
        failure.to_string().contains("/nowhere/config.toml"),
        "{failure}"
    );
}

#[test]
fn an_unusable_service_url_is_refused() {
    for wrong in [
        "hubs.example.com",
        "ftp://x",
        "https://u:p@x",
        "https://x/?a=b",
        "http://",
    ] {
        let args = run_with("", &["--service-url", wrong]).unwrap();
        assert!(
            service_url(&args.service)
                .unwrap_err()
                .to_string()
                .starts_with("service-url: "),
            "{wrong}"
        );
    }
    let args = run_with("", &["--service-url", "https://x/prefix"]).unwrap();
    assert_eq!(
        service_url(&args.service)
            .unwrap()
            .join("v1/test")
            .unwrap()
            .as_str(),
        "https://x/prefix/v1/test"
    );
    assert!(
        service_url(&run_with("", &[]).unwrap().service)
            .unwrap_err()
            .to_string()
            .contains("service-url is not set")
    );
}

#[test]
fn times_and_sizes_need_a_unit() {
    assert_eq!("1500ms".parse(), Ok(Span(Duration::from_millis(1_500))));
    assert_eq!("2d".parse(), Ok(Span(Duration::from_secs(172_800))));
    assert_eq!("64 KiB".parse(), Ok(Size(65_536)));
    for wrong in ["", "5", "s", "-1s", "1.5s", "99999999999999999999s", "367d"] {
        assert!(wrong.parse::<Span>().is_err(), "{wrong:?}");
    }
    assert!("18446744073709551615GiB".parse::<Size>().is_err());
}

#[test]
fn debug_output_contains_no_claim_code() {
    let args = run_with("claim-code = \"ABCD-EFGH-JKMN-PQRS\"", &[]).unwrap();
    assert!(args.claim.claim_code.is_some());
    assert!(!format!("{args:?}").contains("ABCD"));
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn a_misspelt_variable_is_said_before_the_url_is_missing() {
    let missing = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        missing_service_url(names.into_iter())
    };
    for misspelt in [
        "HUB_AGENT_SERVICE_ULR",
        "HUB_AGENT_SERVISE_URL",
        "HUB_AGENT_SERVICEURL",
    ] {
        let text = missing(&["HOME", misspelt]);
        assert!(
            text.contains(misspelt) && text.contains("did you mean HUB_AGENT_SERVICE_URL?"),
            "{text}"
        );
    }
    let text = missing(&[
        "HUB_AGENT_SERVICE_URL",
        "HUB_AGENT_SILENCE",
        "HUB_AGENT_STATE_DIR",
    ]);
    assert!(text.contains("service-url is not set"), "{text}");
}
