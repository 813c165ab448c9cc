//! Files as they are in images, and files that only look like them.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;

/// Name and version of what a file tells of, with its ecosystem.
fn read(path: &str, bytes: &[u8]) -> Vec<(Option<Ecosystem>, String, String)> {
    let found = read_entry(path, bytes).into_iter();
    found
        .map(|component| (component.ecosystem, component.name, component.version))
        .collect()
}

fn of(ecosystem: Ecosystem, name: &str, version: &str) -> (Option<Ecosystem>, String, String) {
    (Some(ecosystem), name.to_owned(), version.to_owned())
}

#[test]
fn installed_packages_of_debian_are_found() {
    let status = b"Package: libc6\nStatus: install ok installed\nArchitecture: arm64\r\n\
        Source: glibc (2.36-8)\nVersion: 2.36-9+deb12u4\nDescription: GNU C Library\n Version: 1\n\
        \nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n\
        \nPackage: bad\x01\nStatus: install ok installed\nVersion: 1\n\
        \nPackage: curl\nStatus: hold ok installed\nVersion: 7.88.1-10";
    let found = read_entry("var/lib/dpkg/status", status);
    let [libc, curl] = found.as_slice() else {
        panic!("two packages");
    };
    assert_eq!(libc.name, "libc6");
    assert_eq!(libc.version, "2.36-9+deb12u4");
    assert_eq!(
        libc.source,
        Some(("glibc".to_owned(), Some("2.36-8".to_owned())))
    );
    assert_eq!((curl.name.as_str(), &curl.source), ("curl", &None));
    let distroless = b"Package: base-files\nVersion: 12.4\n";
    assert_eq!(
        read("./var/lib/dpkg/status.d/base-files", distroless),
        [of(Ecosystem::Debian, "base-files", "12.4")]
    );
    for path in [
        "var/lib/dpkg/status.d/base-files.md5sums",
        "home/var/lib/dpkg/status",
        "status",
    ] {
        assert_eq!(read(path, distroless), []);
    }
}

#[test]
fn packages_of_other_managers_are_found() {
    let alpine = b"C:Q1\nP:musl\nV:1.2.4-r2\nA:x86_64\n\nP:busybox\nV:1.36.1-r15\n\n";
    let found = read("/lib/apk/db/installed", alpine);
    assert_eq!(found.len(), 2);
    assert_eq!(
        found.first(),
        Some(&(None, "musl".to_owned(), "1.2.4-r2".to_owned()))
    );

    let python =
        b"Metadata-Version: 2.1\nName: Flask_Login\nVersion: 0.6.3\n\nName: x\nVersion: 1\n";
    for path in [
        "usr/lib/python3/dist-packages/flask_login-0.6.3.dist-info/METADATA",
        "app/flask_login.egg-info/PKG-INFO",
    ] {
        assert_eq!(
            read(path, python),
            [of(Ecosystem::PyPi, "flask-login", "0.6.3")]
        );
    }
    assert_eq!(read("app/METADATA", python), []);

    let npm = br#"{"name":"@scope/core","version":"1.2.3","dependencies":{"x":"1"}}"#;
    for path in [
        "app/node_modules/@scope/core/package.json",
        "app/node_modules/a/node_modules/core/package.json",
    ] {
        assert_eq!(
            read(path, npm),
            [of(Ecosystem::Npm, "@scope/core", "1.2.3")]
        );
    }
    for path in [
        "app/package.json",
        "app/node_modules/package.json",
        "app/node_modules/a/test/package.json",
        "app/node_modules/a/@b/c/package.json",
    ] {
        assert_eq!(read(path, npm), [], "{path}");
    }
    assert_eq!(read("node_modules/a/package.json", b"{\"name\":\"a\"}"), []);
}

/// A program of 64 bits with one section of this name.
fn program(name: &str, content: &[u8]) -> Vec<u8> {
    let names = [b"\0", name.as_bytes(), b"\0.shstrtab\0"].concat();
    let content_at = 64;
    let names_at = content_at + content.len();
    let headers_at = names_at + names.len();
    let mut file = Vec::from(*b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    for half in [2u16, 0x3e] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1u32.to_le_bytes());
    for word in [0, 0, headers_at as u64] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    for half in [64u16, 0, 0, 64, 3, 2] {
        file.extend(half.to_le_bytes());
    }
    file.extend(content);
    file.extend(&names);
    let name_of_names = (name.len() + 2) as u32;
    for (name, kind, at, length) in [
        (0u32, 0u32, 0, 0),
        (1, 1, content_at, content.len()),
        (name_of_names, 3, names_at, names.len()),
    ] {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        for word in [0, 0, at as u64, length as u64, 0, 1, 0] {
            file.extend(u64::to_le_bytes(word));
        }
    }
    file
}

/// The section that Go writes.
fn go_section(compiler: &str, modules: &str) -> Vec<u8> {
    let text = |text: &[u8]| {
        let length = text.len();
        let mut bytes = vec![(length & 0x7f) as u8 | 0x80, (length >> 7) as u8];
        bytes.extend(text);
        bytes
    };
    let mark = "0123456789abcdef";
    let mut section = Vec::from(*b"\xff Go buildinf:\x08\x02");
    section.resize(32, 0);
    section.extend(text(compiler.as_bytes()));
    section.extend(text(format!("{mark}{modules}{mark}").as_bytes()));
    section
}

#[test]
fn modules_of_a_program_of_go_are_found() {
    let modules = "path\texample.com/app\nmod\texample.com/app\t(devel)\t\n\
        dep\tgithub.com/Masterminds/goutils\tv1.1.0\th1:x=\n\
        dep\tgolang.org/x/net\tv0.1.0\th1:x=\n\
        =>\texample.com/net\tv0.2.0\th1:x=\n\
        build\t-compiler=gc\n";
    let file = program(
        ".go.buildinfo",
        &go_section("go1.21.5 X:nocoverageredesign", modules),
    );
    let expected = [
        of(Ecosystem::Go, "stdlib", "1.21.5"),
        of(Ecosystem::Go, "github.com/masterminds/goutils", "v1.1.0"),
        of(Ecosystem::Go, "example.com/net", "v0.2.0"),
    ];
    assert_eq!(read("usr/bin/app", &file), expected);
    assert_eq!(
        read("a", &program(".go.buildinfo", b"\xff Go buildinf:\x08\x00")),
        []
    );
}

#[test]
fn crates_of_a_program_of_rust_are_found() {
    let packed = |json: &[u8]| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(json).expect("compressed");
        encoder.finish().expect("compressed")
    };
    let list = br#"{"packages":[
        {"name":"app","version":"0.1.0","source":"local","dependencies":[1,2],"root":true},
        {"name":"cc","version":"1.0.0","source":"crates.io","kind":"build"},
        {"name":"serde","version":"1.0.200","source":"crates.io"}]}"#;
    let file = program(".dep-v0", &packed(list));
    let expected = [
        (None, "app".to_owned(), "0.1.0".to_owned()),
        of(Ecosystem::CratesIo, "serde", "1.0.200"),
    ];
    assert_eq!(read("usr/bin/app", &file), expected);
    // Unpacked, it would be too large.
    let bomb = program(".dep-v0", &packed(&vec![b' '; 64 * 1024 * 1024]));
    assert_eq!(read("a", &bomb), []);
    assert_eq!(read("a", &program(".dep-v0", b"nonsense")), []);
}

#[test]
fn any_cut_and_any_changed_byte_of_a_program_is_read_or_passed_over() {
    let file = program(".go.buildinfo", &go_section("go1.21.5", "dep\ta\tv1.0.0\n"));
    for end in 0..file.len() {
        assert_eq!(read("a", &file[..end]), []);
    }
    for at in 4..file.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[at] = byte;
            let _ = read("a", &changed);
        }
    }
}

#[test]
fn release_of_the_system_is_that_of_os_release() {
    for (path, text, expected) in [
        (
            "./etc/os-release",
            "ID=debian\nVERSION_ID=\"12\"\n",
            Some("Debian:12"),
        ),
        (
            "usr/lib/os-release",
            "VERSION_ID=\"12.5\"\nID=debian",
            Some("Debian:12"),
        ),
        ("etc/os-release", "ID=ubuntu\nVERSION_ID=\"22.04\"\n", None),
        ("etc/os-release", "ID=debian\n", None),
        ("etc/os-release", "ID=debian\nVERSION_ID=sid\n", None),
        ("opt/etc/os-release", "ID=debian\nVERSION_ID=12\n", None),
    ] {
        let found = super::distribution(path, text.as_bytes());
        assert_eq!(found.as_deref(), expected, "{path}: {text}");
    }
    for (path, start, wanted) in [
        ("bin/app", &b"\x7fELF"[..], true),
        ("bin/app", b"#!/b", false),
        ("./var/lib/dpkg/status", b"Pack", true),
        ("usr/lib/os-release", b"ID=d", true),
        ("node_modules/a/package.json", b"{", true),
        ("package.json", b"{", false),
    ] {
        assert_eq!(super::is_wanted(path, start), wanted, "{path}");
    }
}
