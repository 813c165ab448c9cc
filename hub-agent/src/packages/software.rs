//! The software of this machine as it is reported, and the state of the files that it is read from.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use bytes::Bytes;
use hub_protocol::packages::{MAX_PACKAGES, PackageList, SoftwareReport};

use super::dpkg::{self, MAX_FIELD, is_line};
use crate::os_release::{self, OsRelease};

/// The most characters of the name and of the version of a distribution.
const MAX_DISTRIBUTION: usize = 64;

const ZSTD_LEVEL: i32 = 3;

/// The name of BlueZ's package.
const BLUEZ: &str = "bluez";

/// The state of the files: another one is that of other packages.
#[derive(Debug, PartialEq, Eq)]
pub struct Stamp(Vec<(PathBuf, u64, i64, i64, u64)>);

impl Stamp {
    /// Looks at the files of the system below `root`.
    pub fn of(root: &Path) -> io::Result<Self> {
        let packages = dpkg::files(root)?.into_iter().map(|file| file.path);
        let stamps = os_release::paths(root).chain(packages).filter_map(|path| {
            let metadata = std::fs::metadata(&path).ok()?;
            Some((
                path,
                metadata.ino(),
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.len(),
            ))
        });
        Ok(Self(stamps.collect()))
    }
}

/// The packages of the system below `root`. What cannot be reported is logged.
pub fn packages(root: &Path) -> io::Result<PackageList> {
    let installed = dpkg::installed(&dpkg::files(root)?)?;
    if installed.is_cut {
        tracing::warn!(
            "the files of dpkg are longer than any; packages at their end are not reported"
        );
    }
    if installed.excess > 0 {
        tracing::warn!(
            not_reported = installed.excess,
            "more than {MAX_PACKAGES} packages are installed; the first in the order of their names are reported"
        );
    }
    if installed.malformed > 0 {
        tracing::warn!(
            not_reported = installed.malformed,
            "packages have fields that are missing, too long or not a line of text"
        );
    }
    let release = OsRelease::read(root);
    let fit = |text: String| Some(text).filter(|text| is_line(text, MAX_DISTRIBUTION));
    Ok(PackageList {
        distribution: fit(release.id).unwrap_or_else(|| "linux".to_owned()),
        distribution_version: release.version_id.and_then(fit).unwrap_or_default(),
        packages: installed.packages.into_iter().collect(),
    })
}

/// The version of BlueZ's package.
pub fn bluez_version(list: &PackageList) -> Option<String> {
    let package = list.packages.iter().find(|package| package.name == BLUEZ)?;
    Some(package.version.clone())
}

/// A report, ready to be sent with the list or without it.
#[derive(Debug)]
pub struct Software {
    /// The report without the list.
    pub report: SoftwareReport,
    /// The bodies of the requests, compressed: a list takes its time, and is small then.
    pub short: Bytes,
    pub whole: Bytes,
}

impl Software {
    /// The report of these packages. `bluez` is the version of bluetoothd, and `firmware` that of
    /// adapters by their addresses.
    pub fn new(
        list: PackageList,
        bluez: Option<String>,
        firmware: BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let fit = |text: String| Some(text).filter(|text| is_line(text, MAX_FIELD));
        let kernel = rustix::system::uname();
        let kernel = kernel.release().to_string_lossy().into_owned();
        let mut report = SoftwareReport {
            packages_sha256: hex::encode(digest::digest(&digest::SHA256, &list.canonical())),
            package_list: Some(list),
            kernel: fit(kernel),
            bluez: bluez.and_then(fit),
            agent: env!("CARGO_PKG_VERSION").to_owned(),
            adapter_firmware: firmware,
        };
        let whole = packed(&report)?;
        report.package_list = None;
        let short = packed(&report)?;
        Ok(Self {
            report,
            short,
            whole,
        })
    }
}

fn packed(report: &SoftwareReport) -> io::Result<Bytes> {
    let json = serde_json::to_vec(report).map_err(io::Error::other)?;
    Ok(zstd::bulk::compress(&json, ZSTD_LEVEL)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn the_stamp_is_another_one_after_every_change() {
        let root = tempfile::tempdir().unwrap();
        let mut stamps = vec![Stamp::of(root.path()).unwrap()];
        let status = "var/lib/dpkg/status";
        for (name, text) in [
            ("etc/os-release", "ID=debian"),
            (status, "Package: a"),
            (status, "Package: ab"),
            ("var/lib/dpkg/status.d/b", "Package: b"),
        ] {
            write(root.path(), name, text);
            let stamp = Stamp::of(root.path()).unwrap();
            assert!(!stamps.contains(&stamp), "{name}");
            assert_eq!(stamp, Stamp::of(root.path()).unwrap());
            stamps.push(stamp);
        }
        // dpkg replaces its file.
        write(root.path(), "new", "Package: cd");
        std::fs::rename(root.path().join("new"), root.path().join(status)).unwrap();
        assert!(!stamps.contains(&Stamp::of(root.path()).unwrap()));
    }

    #[test]
    fn what_cannot_be_reported_of_the_distribution_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let long = "x".repeat(MAX_DISTRIBUTION + 1);
        write(
            root.path(),
            "etc/os-release",
            &format!("ID=a\x01b\nVERSION_ID={long}"),
        );
        let list = packages(root.path()).unwrap();
        assert_eq!(
            (
                list.distribution.as_str(),
                list.distribution_version.as_str()
            ),
            ("linux", "")
        );
        assert_eq!(list.packages, []);
        let software = Software::new(list, Some("5.66\nx".to_owned()), BTreeMap::new()).unwrap();
        assert_eq!(software.report.bluez, None);
        assert!(software.report.kernel.is_some());
    }
}
