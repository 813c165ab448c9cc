//! What the programs of this crate share. Everything else belongs to one program: `main` is the
//! agent, `hub-agent-launcher` starts the version that is in force, and `hub-agent-helper` does
//! what needs root.
//!
//! A module imports only from earlier lines. A folder whose parts are not listed is one unit:
//!
//! ```layers
//! error size durable backoff helper_api hold os_release program recording
//! signals set_aside launch bluetoothd config/values
//! identity config/args
//! clock
//! heartbeat
//! systemd
//! config/file
//! config
//! moved
//! ble/events ble/selection ble/recognise ble/bluez/names ble/bluez/wire
//! ble/types
//! ble/health ble/queue ble/socket ble/windows ble/bluez/bus
//! ble/routes
//! ble/reports ble/bluez/control ble/bluez/gatt ble/bluez/monitor
//! ble/replay ble/bluez/objects
//! ble/bluez/shared
//! ble/bluez/scanner
//! ble/bluez
//! ble
//! spool/segment spool/quarantine spool/drops
//! spool/store
//! spool/types spool/boots spool/import
//! spool/worker
//! spool
//! cloud/reach cloud/tls
//! cloud/http cloud/certificate
//! cloud/service_time
//! cloud/service
//! cloud/claim cloud/enrolment
//! cloud/access
//! cloud
//! update
//! jobs/job jobs/view jobs/window
//! jobs/ledger jobs/helper jobs/release jobs/download
//! jobs/queue jobs/health jobs/apps
//! jobs/context
//! jobs/prepare jobs/upkeep
//! jobs/moving
//! jobs/engine
//! jobs
//! device_commands/ledger pauses
//! device_commands
//! desired uplink logs
//! scan_config packages status
//! telemetry control
//! commands/output commands/reading
//! commands/scan_table
//! commands/check/bluetooth commands/check/machine commands/check/releases commands/check/service
//! commands/check commands/claim commands/scan commands/status
//! commands
//! standby
//! run
//! lib main bin/hub-agent-helper bin/hub-agent-launcher
//! ```

pub mod durable;
pub mod helper_api;
pub mod launch;
pub mod size;
