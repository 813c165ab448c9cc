use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::*;

fn run() -> AppRun {
    AppRun {
        entry_point: "bin/logger".into(),
        arguments: Vec::new(),
        environment: BTreeMap::new(),
        memory_bytes: 64 << 20,
        cpu_percent: 50,
        network: false,
        keeps_files: false,
        ble: false,
        health_secs: 30,
    }
}

fn app() -> AppUuid {
    AppUuid(uuid::Uuid::nil())
}

fn has(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

/// Words with characters that systemd interprets unless they are escaped.
const NASTY: [&str; 12] = [
    "",
    " ",
    "a b",
    "100%",
    "%n",
    "$HOME",
    "${HOME}",
    "say \"hi\"",
    "back\\slash\\n",
    ";",
    "'single'",
    "ünï #x",
];

#[test]
fn text_of_a_manifest_is_always_one_quoted_word() {
    assert_eq!(quoted("a b"), r#""a b""#);
    assert_eq!(quoted(r#"50% of "\n""#), r#""50%% of \"\\n\"""#);
    let mut run = run();
    run.arguments = vec!["--price=$5 ${HOME}".into(), ";".into(), "%i".into()];
    run.environment = BTreeMap::from([("A".to_owned(), "x\" \"B=y%n$Z\\".to_owned())]);
    let text = text(app(), "logger", "1.4.2", &run, Path::new("/f"));
    assert!(
        has(
            &text,
            r#"ExecStart="/f/bin/logger" "--price=$$5 $${HOME}" ";" "%%i""#
        ),
        "{text}"
    );
    assert!(has(&text, r#"Environment="A=x\" \"B=y%%n$Z\\""#), "{text}");
}

#[test]
fn an_app_gets_only_the_permissions_of_its_manifest() {
    let uuid = "00000000-0000-0000-0000-000000000000";
    let state = format!("StateDirectory=hub-app-{uuid}");
    let ble = "BindReadOnlyPaths=/run/hub-agent/ble:/run/hub-ble";
    let bare = text(app(), "logger", "1.4.2", &run(), Path::new("/f"));
    for line in [
        "PrivateNetwork=yes",
        "IPAddressDeny=any",
        "RestrictAddressFamilies=AF_UNIX",
        "DynamicUser=yes",
    ] {
        assert!(has(&bare, line), "{line} is missing in\n{bare}");
    }
    for line in [
        "MemoryMax=67108864",
        "MemorySwapMax=0",
        "CPUQuota=50%",
        "TasksMax=64",
        "StartLimitIntervalSec=0",
    ] {
        assert!(has(&bare, line), "{line} is missing in\n{bare}");
    }
    assert!(
        !has(&bare, &state) && !has(&bare, ble) && !bare.contains("HUB_BLE_SOCKET"),
        "{bare}"
    );

    let full = AppRun {
        network: true,
        keeps_files: true,
        ble: true,
        ..run()
    };
    let full = text(app(), "logger", "1.4.2", &full, Path::new("/f"));
    assert!(
        has(&full, &state)
            && has(&full, ble)
            && has(&full, "Environment=HUB_BLE_SOCKET=/run/hub-ble/socket")
    );
    assert!(
        !full.contains("PrivateNetwork") && !full.contains("IPAddressDeny"),
        "{full}"
    );
}

/// Checked by the real systemd. Without systemd-analyze (package systemd) the test is skipped, or
/// fails if `HUB_TESTS_REQUIRE=1`.
#[test]
fn systemd_accepts_every_unit_and_rates_it_as_sandboxed() {
    if Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_err()
    {
        let required = std::env::var_os("HUB_TESTS_REQUIRE").is_some_and(|value| value == "1");
        assert!(
            !required,
            "HUB_TESTS_REQUIRE is set, and systemd-analyze is missing (apt-get install systemd)"
        );
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("bin/logger");
    std::fs::create_dir(dir.path().join("bin")).unwrap();
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = dir.path().join(file_name(app()));
    let analyze = |arguments: &[&str]| {
        let output = Command::new("systemd-analyze")
            .args(arguments)
            .arg(&file)
            .output()
            .unwrap();
        let output_text = [output.stdout, output.stderr]
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .concat();
        (output.status.success(), output_text)
    };
    for combination in 0..16 {
        let has = |bit: u32| combination & bit != 0;
        let mut run = AppRun {
            network: has(1),
            keeps_files: has(2),
            ble: has(4),
            ..run()
        };
        if has(8) {
            run.arguments = NASTY.map(str::to_owned).to_vec();
            run.environment = NASTY
                .iter()
                .enumerate()
                .map(|(at, word)| (format!("V{at}"), word.to_string()))
                .collect();
        }
        let text = text(app(), "logger", "1.4.2", &run, dir.path());
        std::fs::write(&file, &text).unwrap();
        assert_eq!(
            analyze(&["verify", "--man=no"]),
            (true, String::new()),
            "verify says nothing of\n{text}"
        );
        let (low, output_text) =
            analyze(&["security", "--offline=true", "--threshold=25", "--no-pager"]);
        assert!(low, "exposure is 2.5 or less\n{output_text}");
    }
    // The check can fail.
    std::fs::write(
        &file,
        std::fs::read_to_string(&file)
            .unwrap()
            .replace("TasksMax=", "TasksMost="),
    )
    .unwrap();
    assert_ne!(analyze(&["verify", "--man=no"]).1, "");
}
