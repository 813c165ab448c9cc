//! The permitted content of an app's archive.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use hub_agent::helper_api::Reason;
use hub_protocol::AppUuid;

use crate::archive::{Entry, app_with, attributes, file, long_name, of_kind, program, tar, zstd};
use crate::site::{Site, reason};

fn mode(site: &Site, path: &str) -> u32 {
    std::fs::symlink_metadata(site.path(path))
        .unwrap()
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn unpacked_files_are_readable_by_all_and_writable_by_root_alone() {
    let site = Site::new();
    let app = AppUuid::new();
    let deep = format!("{}/{}/data.bin", "d".repeat(120), "e".repeat(120));
    let umlaut = format!("share/{}ö.txt", "u".repeat(150));
    let release = site.app(
        "1.0.0",
        1,
        &app_with([
            of_kind(b'5', "./"),
            Entry {
                mode: 0o777,
                ..of_kind(b'5', "./share/")
            },
            Entry {
                mode: 0o666,
                ..file("./share/text", "hello")
            },
            Entry {
                mode: 0o700,
                ..file("bin/more", "x")
            },
            long_name(&deep),
            file("cut short", vec![7; 100_000]),
            attributes(b'g', &[("comment", "for all")]),
            attributes(b'x', &[("path", &umlaut), ("mtime", "1700000000.5")]),
            file("cut short", "pax"),
            of_kind(b'5', "share"),
        ]),
        |_| {},
    );
    let staged = site.stage(app, &release).unwrap();
    assert_eq!(
        (
            staged.name.as_str(),
            staged.version.as_str(),
            staged.health_secs
        ),
        ("logger", "1.0.0", 7)
    );
    let files = format!(
        "var/lib/hub-apps/{app}/versions/{}/files",
        release.release_uuid
    );
    assert_eq!(
        std::fs::read(site.path(&format!("{files}/share/text"))).unwrap(),
        b"hello"
    );
    assert_eq!(
        std::fs::read(site.path(&format!("{files}/{deep}"))).unwrap(),
        vec![7; 100_000]
    );
    assert_eq!(
        std::fs::read(site.path(&format!("{files}/{umlaut}"))).unwrap(),
        b"pax"
    );
    for (path, expected) in [
        ("share", 0o755),
        ("share/text", 0o644),
        ("bin", 0o755),
        ("bin/more", 0o755),
        ("bin/logger", 0o755),
    ] {
        assert_eq!(mode(&site, &format!("{files}/{path}")), expected, "{path}");
    }
    assert!(!site.path(&format!("{files}/cut short")).exists());
}

/// Each has the files of a working app, so that nothing else is wrong with it.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let link = |kind, name, link| Entry {
        link,
        ..of_kind(kind, name)
    };
    let huge = |kind, name: &str| Entry {
        size: Some(3 << 30),
        ..of_kind(kind, name)
    };
    let mut found = vec![
        (
            "symbolic link",
            app_with([link(b'2', "passwd", "/etc/passwd")]),
        ),
        (
            "symbolic link within",
            app_with([link(b'2', "more", "bin/logger")]),
        ),
        (
            "file by way of a link",
            app_with([link(b'2', "etc", "/etc"), file("etc/mine", "x")]),
        ),
        ("hard link", app_with([link(b'1', "more", "bin/logger")])),
        (
            "hard link out",
            app_with([link(b'1', "shadow", "/etc/shadow")]),
        ),
        (
            "long link",
            app_with([
                Entry {
                    kind: b'K',
                    ..file("././@LongLink", "/etc/passwd\0")
                },
                file("x", ""),
            ]),
        ),
        ("parent", app_with([file("../escaped", "x")])),
        (
            "parent within",
            app_with([file("share/../../escaped", "x")]),
        ),
        (
            "parent as directory",
            app_with([of_kind(b'5', "share/../..")]),
        ),
        (
            "parent by a long name",
            app_with([long_name("../escaped"), file("x", "x")]),
        ),
        (
            "parent by an attribute",
            app_with([attributes(b'x', &[("path", "../escaped")]), file("x", "x")]),
        ),
        ("absolute", app_with([file("/tmp/escaped", "x")])),
        (
            "absolute by an attribute",
            app_with([
                attributes(b'x', &[("path", "/tmp/escaped")]),
                file("x", "x"),
            ]),
        ),
        (
            "one path for all",
            app_with([attributes(b'g', &[("path", "share/x")]), file("x", "x")]),
        ),
        ("dot within", app_with([file("share/./x", "x")])),
        ("nothing within", app_with([file("share//x", "x")])),
        ("no name", app_with([file("", "x")])),
        (
            "file named like a directory",
            app_with([file("share/", "x")]),
        ),
        ("character device", app_with([of_kind(b'3', "null")])),
        ("block device", app_with([of_kind(b'4', "sda")])),
        ("named pipe", app_with([of_kind(b'6', "pipe")])),
        ("contiguous file", app_with([of_kind(b'7', "file")])),
        ("volume label", app_with([of_kind(b'V', "label")])),
        ("unknown kind", app_with([of_kind(b'Z', "what")])),
        (
            "setuid",
            app_with([Entry {
                mode: 0o4755,
                ..program("bin/su")
            }]),
        ),
        (
            "setgid",
            app_with([Entry {
                mode: 0o2755,
                ..program("bin/su")
            }]),
        ),
        (
            "setgid directory",
            app_with([Entry {
                mode: 0o2755,
                ..of_kind(b'5', "share")
            }]),
        ),
        ("sparse", app_with([of_kind(b'S', "hole")])),
        (
            "sparse by attributes",
            app_with([
                attributes(b'x', &[("GNU.sparse.major", "1")]),
                file("hole", "x"),
            ]),
        ),
        (
            "another size by an attribute",
            app_with([attributes(b'x', &[("size", "1")]), file("x", "xyz")]),
        ),
        (
            "a link by an attribute",
            app_with([attributes(b'x', &[("linkpath", "/etc")]), file("x", "")]),
        ),
        ("twice", app_with([file("bin/logger", "another")])),
        ("a file where a directory is", app_with([file("bin", "x")])),
        (
            "a directory where a file is",
            app_with([of_kind(b'5', "bin/logger")]),
        ),
        ("a file below a file", app_with([file("bin/logger/x", "x")])),
        ("a large file", app_with([huge(b'0', "large")])),
        ("a large directory", app_with([huge(b'5', "large")])),
        (
            "a large name",
            app_with([huge(b'L', "large"), file("x", "")]),
        ),
        (
            "large attributes",
            app_with([huge(b'x', "large"), file("x", "")]),
        ),
        (
            "a long name",
            app_with([long_name(&"n".repeat(300)), file("x", "")]),
        ),
        (
            "a long path",
            app_with([
                long_name(&"n/".repeat(100).replace('n', &"n".repeat(9))),
                file("x", ""),
            ]),
        ),
        ("a deep path", app_with([file("n/".repeat(16) + "n", "")])),
        ("a name that is no text", app_with([file([b'a', 0xff], "")])),
        ("a name with a line break", app_with([file("a\nb", "")])),
        (
            "many entries",
            app_with((0..20_001).map(|_| of_kind(b'5', "d"))),
        ),
        ("many directories", {
            let deep = "/x".repeat(14);
            app_with((0..1_600).map(|number| of_kind(b'5', &format!("{number}{deep}"))))
        }),
        ("no entry point", zstd(&tar(&[program("bin/other")]))),
        (
            "an entry point that is no program",
            zstd(&tar(&[file("bin/logger", "x")])),
        ),
        (
            "an entry point that is a directory",
            zstd(&tar(&[of_kind(b'5', "bin/logger")])),
        ),
        ("nothing", zstd(&[])),
        ("not an archive", zstd(&[b'x'; 2_000])),
        ("not compressed", tar(&[program("bin/logger")])),
        ("no file at all", b"x".to_vec()),
    ];
    let whole = tar(&[program("bin/logger"), file("data", vec![1; 4_000])]);
    found.push(("cut off within a file", zstd(&whole[..3_000])));
    let whole = zstd(&whole);
    found.push((
        "cut off within the compression",
        whole[..whole.len() - 10].to_vec(),
    ));
    let mut wrong = tar(&[program("bin/logger"), file("data", "x")]);
    wrong[1_024 + 5] ^= 1;
    found.push(("a wrong checksum", zstd(&wrong)));
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder
        .write_all(&tar(&[
            program("bin/logger"),
            file("data", vec![1; 20 << 20]),
        ]))
        .unwrap();
    found.push(("a window of 128 MiB", encoder.finish().unwrap()));
    found
}

#[test]
fn a_hostile_archive_is_refused_and_leaves_nothing() {
    let site = Site::new();
    let app = AppUuid::new();
    site.install(
        app,
        &site.app("1.0.0", 1, &app_with([file("share/text", "hello")]), |_| {}),
    );
    let before = site.everything();
    for (number, (name, archive)) in hostile().into_iter().enumerate() {
        let release = site.app("2.0.0", 2, &archive, |_| {});
        // Alternates between an installed app and a new one.
        let app = if number % 2 == 0 { app } else { AppUuid::new() };
        assert_eq!(
            reason(site.stage(app, &release)),
            Reason::ArchiveRefused,
            "{name}"
        );
        assert_eq!(site.everything(), before, "{name} leaves nothing");
    }
    assert!(!site.path("escaped").exists() && !std::path::Path::new("/tmp/escaped").exists());
}

#[test]
fn the_headroom_of_the_disk_is_respected() {
    let site = Site::with_headroom(1 << 60);
    let before = site.everything();
    let release = site.app("1.0.0", 1, &app_with([]), |_| {});
    assert_eq!(
        reason(site.stage(AppUuid::new(), &release)),
        Reason::NoSpace
    );
    assert_eq!(site.everything(), before);
}

/// The unpacked size is checked as well: a small file may become a large one. Space for the archive
/// and 1 GiB is not enough for nearly 2 GiB. The disk is everybody's, so an attempt during which
/// its free space changed much says nothing.
#[test]
fn an_archive_that_grows_too_large_for_the_disk_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let free = || {
        let found = rustix::fs::statvfs(dir.path()).unwrap();
        found.f_bavail * found.f_frsize
    };
    let large = app_with([Entry {
        size: Some((2 << 30) - (1 << 20)),
        ..file("zeros", "")
    }]);
    for _ in 0..20 {
        let free_before = free();
        let site = Site::with_headroom(free_before.saturating_sub(1 << 30));
        let before = site.everything();
        let release = site.app("1.0.0", 1, &large, |_| {});
        let staged = site.stage(AppUuid::new(), &release);
        if free().abs_diff(free_before) < 512 << 20 {
            assert_eq!(reason(staged), Reason::NoSpace);
            assert_eq!(site.everything(), before);
            return;
        }
    }
    panic!("the free space of the disk never stayed the same for the time of one attempt");
}
