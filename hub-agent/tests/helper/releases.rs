//! What the helper trusts: the keys of the hub's owner, and the files they sign.

use std::os::unix::fs::symlink;
use std::path::Path;

use hub_agent::helper_api::Reason;
use hub_protocol::AppUuid;
use hub_protocol::release::ReleaseKind;
use minisign::KeyPair;

use crate::archive::{app_with, file};
use crate::site::{Release, Site, reason};

#[test]
fn only_a_release_signed_with_a_key_of_this_hub_is_staged() {
    let site = Site::new();
    let app = AppUuid::new();
    let archive = app_with([]);
    let before = site.everything();
    let refused = |release: &Release| {
        let reason = reason(site.stage(app, release));
        assert_eq!(site.everything(), before, "nothing is left");
        reason
    };
    let good = site.app("1.0.0", 1, &archive, |_| {});

    let strangers = KeyPair::generate_unencrypted_keypair().unwrap();
    let signature = site.sign(&strangers, &good.manifest);
    assert_eq!(
        refused(&Release {
            signature,
            ..site.app("1.0.0", 1, &archive, |_| {})
        }),
        Reason::Untrusted
    );
    let manifest = good.manifest.replace("1.0.0", "1.0.1");
    let signature = good.signature.clone();
    assert_eq!(
        refused(&Release {
            manifest,
            signature,
            ..site.app("1.0.0", 1, &archive, |_| {})
        }),
        Reason::Untrusted
    );
    for signature in ["", "untrusted comment: x\nRUQ=\ntrusted comment: y\nx"] {
        let release = Release {
            signature: signature.into(),
            ..site.app("1.0.0", 1, &archive, |_| {})
        };
        assert_eq!(refused(&release), Reason::Untrusted);
    }
    for manifest in ["", "{}", "[1]"] {
        let (manifest, signature) = (manifest.to_owned(), site.sign(&site.keys, manifest));
        let release = Release {
            manifest,
            signature,
            ..site.app("1.0.0", 1, &archive, |_| {})
        };
        assert_eq!(refused(&release), Reason::Untrusted);
    }

    let agent = site.agent("1.0.0", 1, &archive);
    assert_eq!(refused(&agent), Reason::WrongKind);
    let helper = site.helper();
    let staged = helper.stage_agent(&good.manifest, &good.signature, &good.file, &[]);
    assert_eq!(reason(staged), Reason::WrongKind);
    let other = site.release(ReleaseKind::Agent, "other", "1.0.0", 1, &archive, |_| {});
    let staged = helper.stage_agent(&other.manifest, &other.signature, &other.file, &[]);
    assert_eq!(reason(staged), Reason::WrongKind);

    let elsewhere = site.app("1.0.0", 1, &archive, |manifest| {
        manifest.architecture = "mips".into()
    });
    assert_eq!(refused(&elsewhere), Reason::WrongArchitecture);
    let anywhere = site.app("1.0.0", 1, &archive, |manifest| {
        manifest.architecture = "any".into()
    });
    site.stage(app, &anywhere).unwrap();

    std::fs::remove_file(site.path("etc/hub-agent/release-keys/app/test.pub")).unwrap();
    assert_eq!(
        reason(site.stage(app, &good)),
        Reason::Untrusted,
        "a removed key is no longer trusted at once"
    );
}

#[test]
fn only_the_signed_file_below_the_agents_directory_is_staged() {
    let site = Site::new();
    let app = AppUuid::new();
    let archive = app_with([file("data", "0123456789")]);
    let good = site.app("1.0.0", 1, &archive, |_| {});
    let refused = |name: &str| {
        let release = Release {
            release_uuid: good.release_uuid,
            manifest: good.manifest.clone(),
            signature: good.signature.clone(),
            file: Path::new(name).to_owned(),
        };
        let before = site.everything();
        let reason = reason(site.stage(app, &release));
        assert_eq!(site.everything(), before, "{name:?}: nothing is left");
        reason
    };
    let state = "var/lib/hub-agent";
    let mut other = archive.clone();
    *other.last_mut().unwrap() ^= 1;
    site.write(&format!("{state}/other"), &other);
    site.write(&format!("{state}/shorter"), &archive[..archive.len() - 1]);
    site.write(
        &format!("{state}/longer"),
        &[archive.as_slice(), b"x"].concat(),
    );
    for name in ["other", "shorter", "longer"] {
        assert_eq!(refused(name), Reason::DigestMismatch, "{name}");
    }

    site.write("elsewhere/file", &archive);
    symlink(
        site.path("elsewhere/file"),
        site.path(&format!("{state}/link")),
    )
    .unwrap();
    symlink(site.path("elsewhere"), site.path(&format!("{state}/dir"))).unwrap();
    symlink("downloads", site.path(&format!("{state}/here"))).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        site.path(&format!("{state}/pipe")),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
        0,
    )
    .unwrap();
    let absolute = site
        .path(&format!("{state}/{}", good.file.display()))
        .display()
        .to_string();
    let linked = format!("here/{}", good.release_uuid);
    let missing = [
        "missing",
        "",
        "link",
        "dir/file",
        "pipe",
        "downloads",
        "../../elsewhere/file",
        "/etc/passwd",
    ];
    for name in missing
        .into_iter()
        .chain([absolute.as_str(), linked.as_str()])
    {
        assert_eq!(refused(name), Reason::FileUnreadable, "{name:?}");
    }
    site.stage(app, &good).unwrap();
}

#[test]
fn a_lower_counter_than_the_committed_one_is_refused() {
    let site = Site::new();
    let (app, helper) = (AppUuid::new(), site.helper());
    let release = |version: &str, counter| site.app(version, counter, &app_with([]), |_| {});
    let five = release("1.5.0", 5);
    // A release that was not committed does not raise the counter.
    site.stage(app, &five).unwrap();
    helper.activate_app(app, five.release_uuid).unwrap();
    helper.rollback_app(app).unwrap();
    site.install(app, &release("1.4.0", 4));
    site.install(app, &five);
    assert_eq!(
        reason(site.stage(app, &release("1.4.1", 4))),
        Reason::CounterTooLow
    );
    let other = AppUuid::new();
    assert_eq!(
        reason(site.stage(other, &release("1.4.1", 4))),
        Reason::CounterTooLow,
        "the counter belongs to the name"
    );

    let back = site.app("1.4.2", 3, &app_with([]), |manifest| {
        manifest.downgrade = true
    });
    site.install(app, &back);
    assert_eq!(site.state(app).unwrap().active.unwrap().version, "1.4.2");
    assert_eq!(
        reason(site.stage(app, &release("1.4.3", 4))),
        Reason::CounterTooLow,
        "a downgrade does not lower the counter"
    );
    site.install(app, &release("1.5.1", 5));
    helper.remove_app(app).unwrap();
    assert_eq!(
        reason(site.stage(app, &release("1.4.4", 4))),
        Reason::CounterTooLow,
        "a removal does not reset the counter"
    );
    site.install(
        app,
        &site.app("0.1.0", 1, &app_with([]), |manifest| {
            manifest.name = "another".into()
        }),
    );
}
