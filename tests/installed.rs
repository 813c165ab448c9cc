//! The programs beside an installed package: what is in `/etc/hub-cloud` is what commands use. Each
//! test has an `/etc` of its own, in a mount namespace.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use hub_tests::process::program;

const PASSWORD: &str = "correct horse battery staple";

/// A namespace that this user may make; none where the kernel allows it to nobody.
fn unshare() -> Option<&'static [&'static str]> {
    const WAYS: [&[&str]; 2] = [&["--mount"], &["--mount", "--map-root-user"]];
    let works = |way: &&[&str]| {
        let made = Command::new("unshare")
            .args(*way)
            .args(["mount", "-t", "tmpfs", "none", "/etc"])
            .output();
        made.is_ok_and(|output| output.status.success())
    };
    let way = WAYS.into_iter().find(works);
    if way.is_none() {
        hub_tests::skip(
            "tests of the installed settings",
            "unshare (util-linux) and the right to mount",
        );
    }
    way
}

/// Runs the program where `/etc/hub-cloud/config.toml` has this content.
fn beside(
    way: &[&str],
    config: &Path,
    directory: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Output {
    const SCRIPT: &str = "mount -t tmpfs none /etc && mkdir /etc/hub-cloud && cp \"$1\" /etc/hub-cloud/config.toml && \
                          shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(way)
        .args(["sh", "-c", SCRIPT, "sh"])
        .arg(config)
        .arg(program("hub-cloud"))
        .args(arguments);
    command
        .current_dir(directory)
        .envs(environment.iter().copied());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("unshare starts");
    if let Some(mut stdin) = child.stdin.take() {
        // It may not read it.
        let _ = std::io::Write::write_all(&mut stdin, PASSWORD.as_bytes());
    }
    child.wait_with_output().expect("it ends")
}

fn outcome(output: &Output) -> (Option<i32>, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

#[test]
fn commands_use_the_installed_settings() {
    let Some(way) = unshare() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let (data, home) = (dir.path().join("data"), dir.path().join("home"));
    std::fs::create_dir(&home).expect("a directory");
    let config = dir.path().join("config.toml");
    std::fs::write(
        &config,
        format!("data-dir = '{}'\nlisten = '127.0.0.1:0'\n", data.display()),
    )
    .expect("a file");
    let run = |arguments: &[&str], environment: &[(&str, &str)]| {
        outcome(&beside(way, &config, &home, arguments, environment))
    };
    let create = [
        "admin",
        "create",
        "--email",
        "ada@example.com",
        "--password-stdin",
    ];
    let (code, text) = run(&create, &[]);
    let database = data.join("hub-cloud.sqlite").display().to_string();
    assert!(
        code == Some(1) && text.contains(&database),
        "the service has not run yet: {code:?} {text}"
    );
    // An empty variable counts as not set.
    let (code, text) = run(&["migrate"], &[("HUB_CLOUD_CONFIG", "")]);
    assert!(code == Some(0), "{text}");
    // As the package's service has it, which its user owns; root leaves it so.
    let is_root = std::fs::metadata(&data).expect("a directory").uid() == 0 && way.len() == 1;
    if is_root {
        for path in std::fs::read_dir(&data)
            .expect("a directory")
            .flatten()
            .map(|entry| entry.path())
        {
            chown(&path, Some(12345), Some(12345)).expect("another owner");
        }
        chown(&data, Some(12345), Some(12345)).expect("another owner");
    }
    let (code, text) = run(&create, &[]);
    assert!(
        code == Some(0) && text.contains("can log in now"),
        "{code:?} {text}"
    );
    for command in [
        &["admin", "list"][..],
        &["keys", "list"],
        &["ca", "list"],
        &["keys", "rotate"],
    ] {
        let (code, text) = run(command, &[]);
        assert!(code == Some(0), "{command:?}: {text}");
    }
    let (_, text) = run(&["admin", "list"], &[]);
    assert!(text.contains("ada@example.com"), "{text}");
    let (_, text) = run(&["check"], &[]);
    assert!(text.contains(&data.display().to_string()), "{text}");
    if is_root {
        for entry in std::fs::read_dir(&data).expect("a directory").flatten() {
            let metadata = entry.metadata().expect("a file");
            let owned = metadata.is_dir() || metadata.uid() == 12345;
            assert!(
                owned,
                "the service could not use {}",
                entry.path().display()
            );
        }
    }
    // Other settings are used instead, and what needs none looks at none.
    let other = home.join("other.toml");
    std::fs::write(&other, "data-dir = 'elsewhere'\n").expect("a file");
    let (code, text) = run(&[&create[..], &["--config", "other.toml"]].concat(), &[]);
    assert!(
        code == Some(1) && text.contains("elsewhere/hub-cloud.sqlite"),
        "{code:?} {text}"
    );
    let (code, text) = run(&create, &[("HUB_CLOUD_CONFIG", "other.toml")]);
    assert!(
        code == Some(1) && text.contains("elsewhere/hub-cloud.sqlite"),
        "{code:?} {text}"
    );
    std::fs::remove_file(&other).expect("it is gone");
    std::fs::write(&config, "no-such-setting = 1\n").expect("a file");
    let (code, text) = run(&create, &[]);
    assert!(
        code == Some(3) && text.contains("/etc/hub-cloud/config.toml"),
        "{code:?} {text}"
    );
    let (code, _) = run(&["openapi"], &[]);
    assert_eq!(code, Some(0));
    let (code, text) = run(&["release", "keygen", "--no-password", "--out", "key"], &[]);
    assert!(code == Some(0), "{text}");
    let left: Vec<_> = std::fs::read_dir(&home)
        .expect("a directory")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| name.to_string_lossy().starts_with("key.")),
        "{left:?}"
    );
}
