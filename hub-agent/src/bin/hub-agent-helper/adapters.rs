//! The firmware of Bluetooth adapters, which the kernel shows to root alone, in debugfs: a folder
//! for each adapter with the numbers of HCI's *Read Local Version Information*, and the text of
//! those drivers that load firmware. A kernel that is locked down, or has no debugfs, shows none.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use hub_agent::helper_api::AdapterFirmware;

use crate::root::Root;

const FOLDER: &str = "sys/kernel/debug/bluetooth";
/// More than any machine has.
const MAX_ADAPTERS: usize = 64;
/// The most bytes that are read of a file, and characters of a text.
const MAX_BYTES: u64 = 1024;
const MAX_CHARS: usize = 150;

/// The firmware of each adapter of which something is known.
pub fn firmware(root: &Root) -> AdapterFirmware {
    let mut adapters = BTreeMap::new();
    let folders = std::fs::read_dir(root.join(FOLDER)).into_iter().flatten();
    for folder in folders.flatten().take(MAX_ADAPTERS) {
        let name = folder.file_name().into_string().unwrap_or_default();
        if name.starts_with("hci")
            && let Some(text) = of_adapter(&folder.path())
        {
            adapters.insert(name, text);
        }
    }
    AdapterFirmware { adapters }
}

/// Such as `HCI 11, revision 0x1d86, manufacturer 0x000a`, after the text of the driver if it has
/// one.
fn of_adapter(folder: &Path) -> Option<String> {
    let number = |name: &str| read(&folder.join(name))?.parse::<u16>().ok();
    let numbers = || {
        Some(format!(
            "HCI {}, revision {:#06x}, manufacturer {:#06x}",
            number("hci_version")?,
            number("hci_revision")?,
            number("manufacturer")?
        ))
    };
    let parts = [read(&folder.join("firmware_info")), numbers()];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Some(text).filter(|text| !text.is_empty())
}

/// The words of a file, with single spaces.
fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let is_separator = |char: char| char.is_whitespace() || char.is_control();
    let words: Vec<&str> = text
        .split(is_separator)
        .filter(|word| !word.is_empty())
        .collect();
    let line: String = words.join(" ").chars().take(MAX_CHARS).collect();
    Some(line).filter(|line| !line.is_empty())
}
