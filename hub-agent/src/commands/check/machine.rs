//! Whether the machine lets the agent store its state and know the time: files and their
//! permissions, disk space, clock.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hub_protocol::check::Finding;

use crate::ble;
use crate::config::{CommonArgs, DEFAULT_CONFIG_FILE};
use crate::identity::{CREDENTIALS_FILE, parse_credentials};
use crate::program::output_of;

/// 2025-01-01: this program did not exist before.
const BUILT_AFTER_SECS: i64 = 1_735_689_600;
const LITTLE_SPACE_BYTES: u64 = 512 << 20;
const NO_SPACE_BYTES: u64 = 64 << 20;
const FEW_INODES: u64 = 1_000;

pub async fn check(args: &CommonArgs) -> Vec<Finding> {
    let mut findings = vec![clock().await];
    findings.extend(config_file(
        args.config
            .as_deref()
            .unwrap_or(Path::new(DEFAULT_CONFIG_FILE)),
    ));
    findings.extend(state_dir(&args.state_dir));
    findings
}

async fn clock() -> Finding {
    let now = ble::now();
    if now.as_secs() < BUILT_AFTER_SECS {
        let fix = "set it and keep it synchronised: timedatectl set-ntp true (this machine's clock may have no battery)";
        return Finding::fail("clock", format!("this machine's time is {now}"), fix);
    }
    match output_of(
        "timedatectl",
        &["show", "--property=NTPSynchronized", "--value"],
    )
    .await
    .as_deref()
    {
        Some("no") => Finding::warn(
            "clock",
            format!("{now}, not synchronised over the network"),
            "timedatectl set-ntp true",
        ),
        Some("yes") => Finding::ok("clock", format!("{now}, synchronised over the network")),
        _ => Finding::ok("clock", now),
    }
}

fn config_file(path: &Path) -> Option<Finding> {
    // The file was read before this command began: the check is only which other users can access
    // it.
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let shown = path.display();
    let holds_code = fs::read_to_string(path)
        .is_ok_and(|text| text.lines().any(|line| line.starts_with("claim-code =")));
    Some(if mode & 0o022 != 0 {
        Finding::fail(
            "config",
            format!("{shown} can be changed by others (mode {mode:03o})"),
            format!("chmod go-w {shown}"),
        )
    } else if holds_code && mode & 0o004 != 0 {
        let fix =
            format!("chmod o-r {shown}, or move the code to a file of its own (claim-code-file)");
        Finding::warn(
            "config",
            format!("{shown} contains a claim code and every user can read it"),
            fix,
        )
    } else {
        Finding::ok("config", shown)
    })
}

fn state_dir(path: &Path) -> Vec<Finding> {
    let shown = path.display();
    let mut findings = Vec::new();
    if path.is_dir() {
        let mode = fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode() & 0o777);
        findings.push(match tempfile_in(path) {
            Ok(()) if mode & 0o022 != 0 => Finding::fail(
                "state",
                format!("{shown} can be changed by others (mode {mode:03o})"),
                format!("chmod 700 {shown}; then claim the hub again, because its files may have been replaced"),
            ),
            Ok(()) if mode & 0o055 != 0 => Finding::warn(
                "state",
                format!("{shown} is accessible to others (mode {mode:03o})"),
                format!("chmod 700 {shown}"),
            ),
            Ok(()) => Finding::ok("state", format!("{shown} can be written")),
            Err(error) => Finding::fail(
                "state",
                format!("{shown} cannot be written: {error}"),
                "run this as the agent's user (sudo -u hub-agent hub-agent check), or give it the directory: chown -R hub-agent",
            ),
        });
        findings.push(credentials(&path.join(CREDENTIALS_FILE)));
    } else if path.exists() {
        let fix = "set --state-dir, or state-dir in the configuration, to a directory";
        findings.push(Finding::fail(
            "state",
            format!("{shown} is not a directory"),
            fix,
        ));
    } else {
        findings.push(Finding::warn(
            "state",
            format!("{shown} does not exist"),
            "nothing to do if the agent has not run yet: it or systemd creates it; --state-dir selects another",
        ));
    }
    findings.extend(space(path));
    findings
}

fn tempfile_in(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".check-{}", std::process::id()));
    fs::File::create_new(&path)?;
    fs::remove_file(path)
}

fn credentials(path: &Path) -> Finding {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(metadata) => match metadata.permissions().mode() & 0o777 {
            mode if mode & 0o077 != 0 => Finding::fail(
                "identity",
                format!("{shown} is open to others (mode {mode:03o})"),
                format!(
                    "chmod 600 {shown}; then claim the hub again, because its tokens may have been read"
                ),
            ),
            _ => match fs::read(path).map(|bytes| parse_credentials(&bytes)) {
                Ok(Ok(_)) => Finding::ok(
                    "identity",
                    "claimed, and only its owner can read the tokens",
                ),
                Ok(Err(line)) => Finding::fail(
                    "identity",
                    format!("{shown} is damaged in line {line} and is not used"),
                    "claim this hub again: hub-agent claim --code CODE",
                ),
                Err(error) => unreadable(path, &error),
            },
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Finding::warn(
            "identity",
            "this hub is not claimed",
            "hub-agent claim --code CODE, with a code from your supplier",
        ),
        Err(error) => unreadable(path, &error),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Finding {
    Finding::fail(
        "identity",
        format!("{}: {error}", path.display()),
        "run this as the agent's user, or as root",
    )
}

/// The space of the disk on which the directory is, or would be.
fn space(path: &Path) -> Option<Finding> {
    let mut place = PathBuf::from(path);
    let stat = loop {
        match rustix::fs::statvfs(&place) {
            Ok(stat) => break stat,
            Err(_) if place.pop() => {
                if place.as_os_str().is_empty() {
                    place.push(".");
                }
            }
            Err(_) => return None,
        }
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let mib = free >> 20;
    let shown = place.display();
    Some(if free < NO_SPACE_BYTES {
        let fix = "free some space (journalctl --vacuum-size=50M); the spool stops growing here";
        Finding::fail("disk", format!("{mib} MiB free at {shown}"), fix)
    } else if free < LITTLE_SPACE_BYTES {
        Finding::warn(
            "disk",
            format!("{mib} MiB free at {shown}"),
            "free some space, or lower spool-max: the records of a long outage would not fit",
        )
    } else if stat.f_files > 0 && stat.f_favail < FEW_INODES {
        Finding::warn(
            "disk",
            format!("room for {} more files at {shown}", stat.f_favail),
            "remove files that are not needed",
        )
    } else {
        Finding::ok("disk", format!("{mib} MiB free at {shown}"))
    })
}

#[cfg(test)]
mod tests {
    use hub_protocol::check::State;

    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn files_that_others_can_access_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        assert!(
            config_file(&config).is_none(),
            "a missing file is not a problem"
        );
        fs::write(&config, "claim-code = \"x\"\n").unwrap();
        for (mode, state) in [
            (0o640, State::Ok),
            (0o644, State::Warn),
            (0o664, State::Fail),
        ] {
            chmod(&config, mode);
            assert_eq!(config_file(&config).unwrap().state, state, "{mode:o}");
        }
        let tokens = folder.path().join(CREDENTIALS_FILE);
        assert_eq!(credentials(&tokens).state, State::Warn);
        let uuid = "0190a000-0000-7000-8000-000000000001";
        let whole = format!(
            r#"{{"hub-uuid": "{uuid}", "tenant-uuid": "{uuid}", "access-token": "a", "refresh-token": "r", "expires-at": "2026-11-21T10:00:00Z"}}"#
        );
        fs::write(&tokens, &whole).unwrap();
        for (mode, state) in [(0o600, State::Ok), (0o640, State::Fail)] {
            chmod(&tokens, mode);
            assert_eq!(credentials(&tokens).state, state, "{mode:o}");
        }
        chmod(&tokens, 0o600);
        fs::write(&tokens, whole.split_at(40).0).unwrap();
        assert_eq!(credentials(&tokens).state, State::Fail, "cut off");
        let of_state = |path: &Path| {
            state_dir(path)
                .into_iter()
                .find(|finding| finding.check == "state")
                .unwrap()
        };
        for (mode, state) in [
            (0o700, State::Ok),
            (0o755, State::Warn),
            (0o777, State::Fail),
        ] {
            chmod(folder.path(), mode);
            assert_eq!(of_state(folder.path()).state, state, "{mode:o}");
        }
        assert_eq!(of_state(&config).state, State::Fail, "a file");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "nothing is left behind"
        );
    }

    #[test]
    fn space_is_that_of_the_nearest_existing_directory() {
        assert!(
            space(Path::new("/nonexistent/far/away"))
                .is_some_and(|finding| finding.finding.ends_with("at /"))
        );
        assert!(
            space(Path::new("nonexistent"))
                .is_some_and(|finding| finding.finding.ends_with("at ."))
        );
    }
}
