//! The text of an app's unit, from what its supplier says about running it. Pure: reads and writes nothing.
//!
//! A supplier chooses among what `AppRun` offers and nothing else: whatever is said there becomes a value in the unit, never a setting.

use std::fmt::Write;
use std::path::Path;

use hub_protocol::AppUuid;
use hub_protocol::release::AppRun;

/// Where the agent serves what it hears. Only apps that may listen get to see it.
const BLE_DIR: &str = "/run/hub-agent/ble";
const BLE_DIR_INSIDE: &str = "/run/hub-ble";

/// The unit's name, and that of the folder it keeps its files in.
pub fn name(app: AppUuid) -> String {
    format!("hub-app-{app}")
}

pub fn file_name(app: AppUuid) -> String {
    format!("{}.service", name(app))
}

/// The same for every app. Nothing in it may be loosened by a manifest.
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
# Not the bus, and of the hub's apps only itself.
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
    line("# Written by hub-agent-helper, which writes it anew with every release of the app.".into());
    line("[Unit]".into());
    line(format!("Description=Hub app {app_name} {version}"));
    // The folder of the BLE socket is there from the start of the hub, the socket once the agent runs.
    line("After=network.target hub-agent.service".into());
    // A hub in the field has nobody to start it again: what is in an app's way may be over tomorrow. Half a minute between its starts
    // spares the disk.
    line("StartLimitIntervalSec=0".into());
    line(String::new());
    line("[Service]".into());
    line("Type=exec".into());
    let mut command = quoted(&format!("{files}/{}", run.entry_point));
    for argument in &run.arguments {
        // systemd puts variables in wherever a dollar sign stands alone.
        let _ = write!(command, " {}", quoted(&argument.replace('$', "$$")));
    }
    line(format!("ExecStart={command}"));
    line(format!("WorkingDirectory={files}"));
    for (variable, value) in &run.environment {
        line(format!("Environment={}", quoted(&format!("{variable}={value}"))));
    }
    line(format!("SyslogIdentifier=hub-app-{app_name}"));
    line("Restart=on-failure".into());
    line("RestartSec=30".into());
    line("TimeoutStartSec=30".into());
    line("TimeoutStopSec=10".into());
    line(format!("MemoryMax={}", run.memory_bytes));
    // What it may use is meant, not what of it is in memory.
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
        line(format!("Environment=HUB_BLE_SOCKET={BLE_DIR_INSIDE}/socket"));
    }
    line(String::new());
    line("[Install]".into());
    line("WantedBy=multi-user.target".into());
    text
}

/// A word as systemd.syntax(7) quotes it, with no specifier left in it. Control characters are refused before it comes here.
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
