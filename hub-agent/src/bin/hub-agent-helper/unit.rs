//! The text of an app's unit, from its manifest. Pure: reads and writes nothing.
//!
//! A supplier can only choose among the fields of `AppRun`: each becomes a value in the unit, never
//! another setting.

use std::fmt::Write;
use std::path::Path;

use hub_protocol::AppUuid;
use hub_protocol::release::AppRun;

/// The directory of the agent's BLE socket. Only apps with permission see it.
const BLE_DIR: &str = "/run/hub-agent/ble";
const BLE_DIR_INSIDE: &str = "/run/hub-ble";

/// The name of the unit and of its state directory.
pub fn name(app: AppUuid) -> String {
    format!("hub-app-{app}")
}

pub fn file_name(app: AppUuid) -> String {
    format!("{}.service", name(app))
}

/// The sandbox of every app. A manifest cannot loosen any part of it.
const SANDBOX: &str = "\
DynamicUser=yes
UMask=0077
CapabilityBoundingSet=
AmbientCapabilities=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateUsers=yes
PrivateIPC=yes
ProtectHostname=yes
ProtectClock=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectProc=invisible
ProcSubset=pid
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
# No access to the system bus, nor to other apps.
InaccessiblePaths=-/run/dbus
TemporaryFileSystem=/var/lib/hub-apps:ro
";

/// The unit of an app whose files are in `files`.
pub fn text(app: AppUuid, app_name: &str, version: &str, run: &AppRun, files: &Path) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    let files = files.display().to_string();
    line("# Written by hub-agent-helper, which replaces it with every release of the app.".into());
    line("[Unit]".into());
    line(format!("Description=Hub app {app_name} {version}"));
    // The directory of the BLE socket exists from the start of the hub, the socket while the agent
    // runs.
    line("After=network.target hub-agent.service".into());
    // No operator restarts an app on a hub in the field, and its problem may be temporary: systemd
    // restarts it without limit. Half a minute between starts spares the disk.
    line("StartLimitIntervalSec=0".into());
    line(String::new());
    line("[Service]".into());
    line("Type=exec".into());
    let mut command = quoted(&format!("{files}/{}", run.entry_point));
    for argument in &run.arguments {
        // systemd expands variables after a single dollar sign.
        let _ = write!(command, " {}", quoted(&argument.replace('$', "$$")));
    }
    line(format!("ExecStart={command}"));
    line(format!("WorkingDirectory={files}"));
    for (variable, value) in &run.environment {
        line(format!(
            "Environment={}",
            quoted(&format!("{variable}={value}"))
        ));
    }
    line(format!("SyslogIdentifier=hub-app-{app_name}"));
    line("Restart=on-failure".into());
    line("RestartSec=30".into());
    line("TimeoutStartSec=30".into());
    line("TimeoutStopSec=10".into());
    line(format!("MemoryMax={}", run.memory_bytes));
    // The limit covers all memory, not only the part that is resident.
    line("MemorySwapMax=0".into());
    line(format!("CPUQuota={}%", run.cpu_percent));
    line("TasksMax=64".into());
    line("LimitCORE=0".into());
    line("LogRateLimitIntervalSec=30".into());
    line("LogRateLimitBurst=1000".into());
    line(String::new());
    text.push_str(SANDBOX);
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    line(format!("BindReadOnlyPaths=/var/lib/hub-apps/{app}"));
    if run.network {
        line("RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6".into());
    } else {
        line("RestrictAddressFamilies=AF_UNIX".into());
        line("PrivateNetwork=yes".into());
        line("IPAddressDeny=any".into());
    }
    if run.keeps_files {
        line(format!("StateDirectory={}", name(app)));
        line("StateDirectoryMode=0700".into());
    }
    if run.ble {
        line(format!("BindReadOnlyPaths={BLE_DIR}:{BLE_DIR_INSIDE}"));
        line(format!(
            "Environment=HUB_BLE_SOCKET={BLE_DIR_INSIDE}/socket"
        ));
    }
    line(String::new());
    line("[Install]".into());
    line("WantedBy=multi-user.target".into());
    text
}

/// A word, quoted as in systemd.syntax(7) and without specifiers. Control characters were refused
/// before.
fn quoted(word: &str) -> String {
    let mut quoted = String::with_capacity(word.len() + 2);
    quoted.push('"');
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '%' => quoted.push_str("%%"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
#[path = "unit_tests.rs"]
mod tests;
