use super::*;

/// As dpkg writes it on a Debian 12 of two architectures.
const STATUS_OF_DEBIAN: &str = "\
Package: libc6
Status: install ok installed
Priority: optional
Section: libs
Installed-Size: 12989
Maintainer: GNU Libc Maintainers <debian-glibc@lists.debian.org>
Architecture: arm64
Multi-Arch: same
Source: glibc (2.36-9+deb12u4)
Version: 2.36-9+deb12u4
Replaces: libc6-arm64
Depends: libgcc-s1, libcrypt1 (>= 1:4.4.10-10~)
Conffiles:
 /etc/ld.so.conf.d/aarch64-linux-gnu.conf 593ad12389ab2b6f952e7ede67b8fbbf
Description: GNU C Library: Shared libraries
 Contains the standard libraries that are used by nearly all programs.
 Package: not-a-package
Homepage: https://www.gnu.org/software/libc/libc.html

Package: libc6
Status: install ok installed
Architecture: armhf
Multi-Arch: same
Source: glibc
Version: 2.36-9+deb12u4

Package: bluez
Status: hold ok installed
Architecture: arm64
Version: 5.66-1+deb12u1

Package: libsystemd0
Status: install ok installed
Architecture: arm64
Source: systemd (252.22-1~deb12u1)
Version: 252.22-1~deb12u1+rpt1

Package: half
Status: install reinstreq half-installed
Architecture: arm64
Version: 1.0

Package: gone
Status: deinstall ok config-files
Architecture: arm64
Version: 2.0

Package: unpacked
Status: install ok unpacked
Version: 3.0

Package: without-status
Version: 4.0

Package: openssl
Status: install ok installed
Architecture: arm64
Version: 3.0.11-1~deb12u2
";

fn read(text: impl AsRef<[u8]>) -> Installed {
    let mut installed = Installed::default();
    installed.read(text.as_ref(), true, MAX_BYTES).unwrap();
    installed
}

/// What is there of each package, in words.
fn lines(installed: &Installed) -> Vec<String> {
    let packages = installed.packages.iter();
    packages
        .map(|package| {
            let optional = [
                &package.architecture,
                &package.source,
                &package.source_version,
            ];
            let optional = optional.map(|field| field.as_deref().unwrap_or("-"));
            format!(
                "{} {} {}",
                package.name,
                package.version,
                optional.join(" ")
            )
        })
        .collect()
}

const LINES_OF_DEBIAN: [&str; 5] = [
    "bluez 5.66-1+deb12u1 arm64 - -",
    "libc6 2.36-9+deb12u4 arm64 glibc -",
    "libc6 2.36-9+deb12u4 armhf glibc -",
    "libsystemd0 252.22-1~deb12u1+rpt1 arm64 systemd 252.22-1~deb12u1",
    "openssl 3.0.11-1~deb12u2 arm64 - -",
];

#[test]
fn installed_packages_are_read_and_no_others() {
    let installed = read(STATUS_OF_DEBIAN);
    assert_eq!(lines(&installed), LINES_OF_DEBIAN);
    assert_eq!((installed.malformed, installed.excess), (0, 0));
}

#[test]
fn neither_line_ends_nor_a_missing_last_one_matter() {
    let with_returns = STATUS_OF_DEBIAN.replace('\n', "\r\n");
    let lower_case = STATUS_OF_DEBIAN.replace("Package: openssl", "package:openssl ");
    let spread = STATUS_OF_DEBIAN.replace("\n\n", "\n\n\n\n");
    for text in [
        with_returns.as_str(),
        STATUS_OF_DEBIAN.trim_end(),
        with_returns.trim_end(),
        &lower_case,
        &spread,
    ] {
        assert_eq!(lines(&read(text)), LINES_OF_DEBIAN);
    }
}

#[test]
fn a_source_is_given_where_it_differs() {
    for (source, expected) in [
        ("own (2:1.0)", "own 1.0 - - 2:1.0"),
        ("own", "own 1.0 - - -"),
        ("other(0.9", "own 1.0 - other 0.9"),
        ("other ()", "own 1.0 - other -"),
        ("", "own 1.0 - - -"),
    ] {
        let text =
            format!("Package: own\nStatus: install ok installed\nSource: {source}\nVersion: 1.0\n");
        assert_eq!(lines(&read(text)), [expected], "{source}");
    }
}

#[test]
fn packages_that_cannot_be_reported_cost_no_others() {
    let long = "x".repeat(MAX_FIELD + 1);
    let endless = "x".repeat(1 << 20);
    let longest = "ä".repeat(MAX_FIELD);
    let installed = "Status: install ok installed\n";
    let malformed = [
        format!("Package: {long}\n{installed}Version: 1\n"),
        format!("Package: {endless}\n{installed}Version: 1\n"),
        format!("Package: a\n{installed}Version: {long}\n"),
        format!("Package: a\n{installed}Version: 1\nSource: {long}\n"),
        format!("Package: a\n{installed}Version: 1\nSource: s ({long})\n"),
        format!("Package: a\n{installed}Version: 1\nArchitecture: {long}\n"),
        format!("Package: a\0b\n{installed}Version: 1\n"),
        format!("Package: a\tb\n{installed}Version: 1\n"),
        format!("Package: a\n{installed}"),
        format!("{installed}Version: 1\n"),
    ];
    let text = format!(
        "{}\n\nPackage: {longest}\n{installed}Description: {endless}\nVersion: 1\n\nPackage: last\n{installed}Version: 2",
        malformed.join("\n")
    );
    let found = read(&text);
    assert_eq!(
        lines(&found),
        ["last 2 - - -".to_owned(), format!("{longest} 1 - - -")]
    );
    assert_eq!(found.malformed, malformed.len());
}

#[test]
fn what_is_no_list_of_packages_has_none() {
    let binary: Vec<u8> = (0..1_000_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 3) as u8)
        .collect();
    for bytes in [&binary[..], &[0; 100_000], b"\n\n\n", b":::\n: :", b""] {
        assert_eq!(read(bytes).packages.len(), 0);
    }
    let mut other_text = b"Package: caf\xe9\nStatus: install ok installed\nVersion: 1\n".to_vec();
    assert_eq!(lines(&read(&other_text)), ["caf\u{fffd} 1 - - -"]);
    other_text.insert(0, 0);
    assert_eq!(
        read(&other_text).malformed,
        1,
        "the name's field is damaged"
    );
}

#[test]
fn of_too_many_packages_the_first_are_kept() {
    let many = 100_000;
    let text: String = (0..many)
        .rev()
        .map(|number| {
            format!("Package: p{number:06}\nStatus: install ok installed\nVersion: 1\n\n")
        })
        .collect();
    let installed = read(&text);
    assert_eq!(installed.packages.len(), MAX_PACKAGES);
    assert_eq!(installed.excess, many - MAX_PACKAGES);
    let last = installed.packages.last().unwrap();
    assert_eq!(last.name, format!("p{:06}", MAX_PACKAGES - 1));
}

#[test]
fn a_stanza_that_is_cut_is_not_believed() {
    let mut installed = Installed::default();
    let up_to = STATUS_OF_DEBIAN.find("3.0.11").unwrap() + 3;
    let left = installed
        .read(STATUS_OF_DEBIAN.as_bytes(), true, up_to as u64)
        .unwrap();
    assert_eq!((left, installed.is_cut), (0, true));
    assert_eq!(lines(&installed), LINES_OF_DEBIAN[..4]);
}

/// Writes files below a root.
fn root_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

fn installed_below(root: &Path) -> Installed {
    installed(&files(root).unwrap()).unwrap()
}

#[test]
fn an_image_without_dpkg_has_a_control_file_of_each_package() {
    let control = "Package: base-files\nVersion: 12.4\nArchitecture: amd64\n";
    let root = root_with(&[
        ("var/lib/dpkg/status.d/base-files", control),
        (
            "var/lib/dpkg/status.d/base-files.md5sums",
            "Package: digests\nVersion: 1\n",
        ),
        (
            "var/lib/dpkg/status.d/tzdata",
            "Package: tzdata\nStatus: install ok installed\nVersion: 2024a",
        ),
        (
            "var/lib/dpkg/status.d/removed",
            "Package: removed\nStatus: deinstall ok config-files\nVersion: 1\n",
        ),
    ]);
    // A named pipe without a writer: whoever opens it waits.
    let pipe = root.path().join("var/lib/dpkg/status.d/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(
        lines(&installed_below(root.path())),
        ["base-files 12.4 amd64 - -", "tzdata 2024a - - -"]
    );
}

#[test]
fn a_machine_without_dpkg_has_no_packages_and_a_broken_one_an_error() {
    let root = root_with(&[("etc/os-release", "ID=poky\n")]);
    assert_eq!(installed_below(root.path()), Installed::default());
    let root = root_with(&[("var/lib/dpkg/status.d/own", "Package: own\nVersion: 1\n")]);
    let itself = root.path().join("var/lib/dpkg/status");
    std::os::unix::fs::symlink("status", itself).unwrap();
    assert!(files(root.path()).is_err(), "a link that leads to itself");
}
