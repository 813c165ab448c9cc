//! Whether the radio can be used: D-Bus, bluetoothd, adapters, and the switches that turn them off.

use std::fs;
use std::path::Path;

use hub_protocol::check::Finding;

use crate::ble::{Survey, survey};
use crate::bluetoothd;

/// Older versions lack functions that the agent needs.
const OLDEST_BLUEZ: (u32, u32) = (5, 50);

pub async fn check() -> Vec<Finding> {
    let mut findings = Vec::new();
    let (survey, version) = tokio::join!(survey(), bluetoothd::version());
    let is_installed = version.is_some();
    findings.extend(version.map(|version| version_finding(&version)));
    let blocked = rfkill(Path::new("/sys/class/rfkill"));
    let in_kernel = kernel_adapters(Path::new("/sys/class/bluetooth"));
    match survey {
        Survey::NoBus { address, reason } => findings.push(Finding::fail(
            "D-Bus",
            reason,
            format!("is the system bus running at {address}? Debian: apt-get install dbus; systemctl start dbus"),
        )),
        Survey::NoDaemon => {
            findings.push(Finding::ok("D-Bus", "reachable"));
            let fix = if is_installed {
                "systemctl enable --now bluetooth; if it does not stay up: journalctl -u bluetooth"
            } else {
                "install BlueZ, such as: apt-get install bluez; then: systemctl enable --now bluetooth"
            };
            findings.push(Finding::fail("bluetoothd", "not running", fix));
        }
        Survey::Refused { denied, reason } => {
            findings.push(Finding::ok("D-Bus", "reachable"));
            let fix = if denied {
                "allow this user to use Bluetooth: usermod -aG bluetooth USER, then log in again (hub-agent's own user is in it)"
            } else {
                "systemctl restart bluetooth; journalctl -u bluetooth shows what happened"
            };
            findings.push(Finding::fail("bluetoothd", format!("does not answer this user: {reason}"), fix));
        }
        Survey::Adapters(adapters) => {
            findings.push(Finding::ok("D-Bus", "reachable"));
            findings.push(Finding::ok("bluetoothd", "running, and answers this user"));
            if adapters.is_empty() {
                findings.push(no_adapter(&in_kernel, !blocked.is_empty()));
            }
            for adapter in &adapters {
                let what = format!("{} ({})", adapter.address, adapter.name);
                findings.push(if adapter.powered {
                    Finding::ok("adapter", format!("{what}: powered"))
                } else if blocked.is_empty() {
                    Finding::warn("adapter", format!("{what}: off"), "nothing to do: the agent powers it on")
                } else {
                    Finding::fail("adapter", format!("{what}: off, and blocked"), "see rfkill, below")
                });
            }
        }
    }
    findings.extend(blocked);
    findings
}

fn no_adapter(in_kernel: &[String], is_blocked: bool) -> Finding {
    if in_kernel.is_empty() {
        Finding::fail(
            "adapter",
            "there is none",
            "plug one in; dmesg | grep -i bluetooth shows whether its driver or firmware is missing",
        )
    } else {
        let fix = if is_blocked {
            "see rfkill, below"
        } else {
            "systemctl restart bluetooth; dmesg | grep -i bluetooth"
        };
        Finding::fail(
            "adapter",
            format!(
                "the kernel has {}, but bluetoothd shows none",
                in_kernel.join(", ")
            ),
            fix,
        )
    }
}

fn version_finding(version: &str) -> Finding {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST_BLUEZ => Finding::warn(
            "BlueZ",
            format!("version {version} is old"),
            format!("upgrade to {}.{} or later", OLDEST_BLUEZ.0, OLDEST_BLUEZ.1),
        ),
        _ => Finding::ok("BlueZ", format!("version {version}")),
    }
}

/// One finding for each switch that keeps Bluetooth off.
fn rfkill(folder: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let read = |name: &str| {
            fs::read_to_string(entry.path().join(name))
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        if read("type") != "bluetooth" {
            continue;
        }
        let name = read("name");
        if read("hard") == "1" {
            let fix =
                "turn it on with the machine's radio switch or key, or in its firmware settings";
            findings.push(Finding::fail(
                "rfkill",
                format!("{name} is switched off by hardware"),
                fix,
            ));
        } else if read("soft") == "1" {
            let fix = "rfkill unblock bluetooth";
            findings.push(Finding::fail(
                "rfkill",
                format!("{name} is blocked by software"),
                fix,
            ));
        }
    }
    findings
}

fn kernel_adapters(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    // Names such as `hci0:64` are connections.
    names.retain(|name| name.starts_with("hci") && !name.contains(':'));
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use hub_protocol::check::State;

    use super::*;

    #[test]
    fn switches_that_keep_bluetooth_off_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        for (entry, kind, soft, hard) in [
            ("rfkill0", "wlan", "1", "1"),
            ("rfkill1", "bluetooth", "1", "0"),
            ("rfkill2", "bluetooth", "0", "1"),
            ("rfkill3", "bluetooth", "0", "0"),
        ] {
            let path = folder.path().join(entry);
            fs::create_dir(&path).unwrap();
            for (file, value) in [
                ("type", kind),
                ("name", entry),
                ("soft", soft),
                ("hard", hard),
            ] {
                fs::write(path.join(file), format!("{value}\n")).unwrap();
            }
        }
        let mut findings: Vec<_> = rfkill(folder.path())
            .into_iter()
            .map(|finding| finding.finding)
            .collect();
        findings.sort();
        assert_eq!(
            findings,
            [
                "rfkill1 is blocked by software",
                "rfkill2 is switched off by hardware"
            ]
        );
        assert!(rfkill(Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, state) in [
            ("5.66", State::Ok),
            ("5.9", State::Warn),
            ("4.101", State::Warn),
            ("6.0", State::Ok),
            ("?", State::Ok),
        ] {
            assert_eq!(version_finding(version).state, state, "{version}");
        }
    }
}
