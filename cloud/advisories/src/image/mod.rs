//! What is certain to be in the image of an app: what package managers and compilers wrote into its
//! files. Reads one file at a time, and opens none.

mod elf;
mod texts;

use crate::components::Component;
use crate::text;
use crate::versions::Ecosystem;

/// Of one file.
const MAX_COMPONENTS: usize = 100_000;
const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;
const MAX_NAME_CHARS: usize = 500;

/// The bytes that [`is_wanted`] looks at.
pub const START_BYTES: usize = 4;
/// The largest file that is worth reading.
pub const MAX_ENTRY_BYTES: u64 = 128 * 1024 * 1024;

/// Whether a file of the image may tell of components, by its path and its first bytes.
pub fn is_wanted(path: &str, start: &[u8]) -> bool {
    start.starts_with(b"\x7fELF") || texts::is_known(path)
}

/// The release of Debian that the image is of, by its `os-release`, such as `Debian:12`.
pub fn distribution(path: &str, bytes: &[u8]) -> Option<String> {
    match texts::is_os_release(path) {
        true => texts::distribution(bytes),
        false => None,
    }
}

/// The components that a file of the image tells of: none, if it is of no kind that is known, or
/// not as that kind is.
pub fn read_entry(path: &str, bytes: &[u8]) -> Vec<Component> {
    let mut found = if bytes.starts_with(b"\x7fELF") {
        elf::read(bytes).unwrap_or_default()
    } else if bytes.len() <= MAX_TEXT_BYTES {
        texts::read(path, bytes)
    } else {
        Vec::new()
    };
    let is_kept = |text: &str| !text.is_empty() && text::fault(text, MAX_NAME_CHARS).is_none();
    found.retain(|component| {
        let source = component.source.as_ref();
        let has_source = source
            .is_none_or(|(name, version)| is_kept(name) && version.as_deref().is_none_or(is_kept));
        is_kept(&component.name) && is_kept(&component.version) && has_source
    });
    found.truncate(MAX_COMPONENTS);
    found
}

/// A component that a file tells only name and version of.
fn component(ecosystem: Option<Ecosystem>, name: &str, version: &str) -> Component {
    Component {
        ecosystem,
        distribution: None,
        name: match ecosystem {
            Some(ecosystem) => ecosystem.package_name(name),
            None => name.to_owned(),
        },
        version: version.to_owned(),
        source: None,
        purl: None,
        id: None,
    }
}

#[cfg(test)]
mod tests;
