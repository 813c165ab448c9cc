//! The distribution of a machine, as os-release(5) names it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The files below the root of a system, of which the first that exists counts.
const FILES: [&str; 2] = ["etc/os-release", "usr/lib/os-release"];

/// The most bytes that are read: real files have a few hundred.
const MAX_BYTES: u64 = 64 << 10;

#[derive(Debug, PartialEq, Eq)]
pub struct OsRelease {
    /// `ID`, such as `debian`; `linux` where there is none.
    pub id: String,
    /// `VERSION_ID`, such as `12`.
    pub version_id: Option<String>,
}

impl OsRelease {
    /// Reads that of the system below `root`.
    pub fn read(root: &Path) -> Self {
        let mut bytes = Vec::new();
        if let Some(file) = paths(root).find_map(|path| File::open(path).ok()) {
            // What was read of a damaged file counts.
            let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
        }
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> Self {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
                .map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
                .filter(|value| !value.is_empty())
        };
        Self {
            id: field("ID").unwrap_or_else(|| "linux".to_owned()),
            version_id: field("VERSION_ID"),
        }
    }
}

/// Where the file of the system below `root` may be.
pub fn paths(root: &Path) -> impl Iterator<Item = PathBuf> {
    FILES.into_iter().map(|file| root.join(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(id: &str, version_id: Option<&str>) -> OsRelease {
        OsRelease {
            id: id.to_owned(),
            version_id: version_id.map(str::to_owned),
        }
    }

    #[test]
    fn values_are_plain_or_quoted_and_may_be_missing() {
        for (text, expected) in [
            (
                "PRETTY_NAME=\"Debian\"\nVERSION_ID=\"12\"\r\nID=debian\n",
                named("debian", Some("12")),
            ),
            ("ID='arch'", named("arch", None)),
            ("ID=\nVERSION_ID=\"\"\n", named("linux", None)),
            ("", named("linux", None)),
        ] {
            assert_eq!(OsRelease::parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_file_of_the_administrator_comes_first() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(OsRelease::read(root.path()), named("linux", None));
        for (folder, text) in [("usr/lib", "ID=vendor"), ("etc", "ID=own")] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
            std::fs::write(root.path().join(folder).join("os-release"), text).unwrap();
            let expected = text.trim_start_matches("ID=");
            assert_eq!(OsRelease::read(root.path()), named(expected, None));
        }
    }
}
