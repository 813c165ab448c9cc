//! The installed bluetoothd, the daemon of BlueZ.

use std::path::Path;

use crate::program::output_of;

/// The paths of bluetoothd on the distributions.
const DAEMONS: [&str; 4] = [
    "/usr/libexec/bluetooth/bluetoothd",
    "/usr/lib/bluetooth/bluetoothd",
    "/usr/sbin/bluetoothd",
    "/usr/local/libexec/bluetooth/bluetoothd",
];

/// Its version, as it prints it.
pub async fn version() -> Option<String> {
    let daemon = DAEMONS.into_iter().find(|path| Path::new(path).exists())?;
    output_of(daemon, &["--version"]).await
}
