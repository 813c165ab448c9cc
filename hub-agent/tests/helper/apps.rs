//! An app from staging to removal, as far as it shows on disk.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use hub_agent::helper_api::Reason;
use hub_protocol::{AppUuid, ReleaseUuid};

use crate::archive::{app_with, file};
use crate::site::{Site, reason};

fn link(site: &Site, app: AppUuid, name: &str) -> Option<PathBuf> {
    std::fs::read_link(site.path(&format!("var/lib/hub-apps/{app}/{name}"))).ok()
}

fn to(release: ReleaseUuid) -> Option<PathBuf> {
    Some(format!("versions/{release}").into())
}

fn versions(site: &Site, app: AppUuid) -> usize {
    std::fs::read_dir(site.path(&format!("var/lib/hub-apps/{app}/versions")))
        .unwrap()
        .count()
}

#[test]
fn an_app_is_installed_updated_rolled_back_and_removed() {
    let site = Site::new();
    let (app, helper) = (AppUuid::new(), site.helper());
    let before = site.everything();
    let release = |version: &str, counter| {
        site.app(
            version,
            counter,
            &app_with([file("share/version", version)]),
            |_| {},
        )
    };
    let (one, two, three) = (
        release("1.0.0", 1),
        release("2.0.0", 2),
        release("3.0.0", 3),
    );

    site.stage(app, &one).unwrap();
    let state = site.state(app).unwrap();
    assert_eq!(
        (state.name.as_str(), &state.active, &state.committed),
        ("logger", &None, &None)
    );
    assert_eq!(
        (state.staged, state.unit, site.unit(app)),
        (vec![one.release_uuid], None, None)
    );

    for _ in 0..2 {
        helper.activate_app(app, one.release_uuid).unwrap();
        let state = site.state(app).unwrap();
        assert_eq!(
            state.active.as_ref().map(|active| active.version.as_str()),
            Some("1.0.0")
        );
        assert_eq!((state.committed, state.staged), (None, Vec::new()));
    }
    let unit = site.unit(app).unwrap();
    let program = format!(
        "/var/lib/hub-apps/{app}/versions/{}/files/bin/logger",
        one.release_uuid
    );
    assert!(
        unit.contains(&format!("ExecStart=\"{program}\"\n")),
        "{unit}"
    );
    let enabled = site.path(&format!(
        "etc/systemd/system/multi-user.target.wants/hub-app-{app}.service"
    ));
    let unit_file = format!("/etc/systemd/system/hub-app-{app}.service");
    assert_eq!(
        std::fs::read_link(&enabled).unwrap(),
        PathBuf::from(unit_file),
        "it is started with the hub"
    );
    for _ in 0..2 {
        helper.commit_app(app).unwrap();
    }
    assert_eq!(
        (link(&site, app, "current"), link(&site, app, "previous")),
        (to(one.release_uuid), None)
    );

    site.stage(app, &two).unwrap();
    assert!(
        site.unit(app).unwrap().contains(&program),
        "staging changes nothing that runs"
    );
    helper.activate_app(app, two.release_uuid).unwrap();
    assert_eq!(
        (link(&site, app, "current"), link(&site, app, "previous")),
        (to(two.release_uuid), to(one.release_uuid))
    );
    assert!(!site.unit(app).unwrap().contains(&program));
    for _ in 0..2 {
        helper.rollback_app(app).unwrap();
        let state = site.state(app).unwrap();
        assert_eq!(state.active, state.committed);
        assert_eq!(state.active.unwrap().release_uuid, one.release_uuid);
        assert_eq!(
            (link(&site, app, "current"), link(&site, app, "previous")),
            (to(one.release_uuid), None)
        );
        assert_eq!(
            versions(&site, app),
            1,
            "the uncommitted release is removed"
        );
    }
    assert_eq!(site.unit(app).unwrap(), unit);
    assert_eq!(
        reason(helper.activate_app(app, two.release_uuid)),
        Reason::NotStaged
    );

    site.stage(app, &two).unwrap();
    site.stage(app, &two).unwrap();
    site.stage(app, &three).unwrap();
    assert_eq!(
        versions(&site, app),
        2,
        "a staged release is replaced by the next"
    );
    helper.activate_app(app, three.release_uuid).unwrap();
    helper.commit_app(app).unwrap();
    assert_eq!(
        (versions(&site, app), link(&site, app, "previous")),
        (1, None)
    );
    assert_eq!(
        site.state(app).unwrap().committed.unwrap().release_uuid,
        three.release_uuid
    );

    // What systemd creates for StateDirectory= of a dynamic user, with the app's links in it.
    let (private, public) = (
        format!("var/lib/private/hub-app-{app}"),
        format!("var/lib/hub-app-{app}"),
    );
    site.write(&format!("{private}/deep/er/file"), b"kept");
    site.write("elsewhere/file", b"not the app's");
    symlink(
        site.path("elsewhere"),
        site.path(&format!("{private}/link")),
    )
    .unwrap();
    symlink(format!("private/hub-app-{app}"), site.path(&public)).unwrap();
    for _ in 0..2 {
        helper.remove_app(app).unwrap();
        assert!(site.state(app).is_none());
    }
    assert!(site.path("elsewhere/file").exists());
    let mut left = site.everything();
    left.retain(|path, _| !before.contains_key(path) && !path.starts_with("elsewhere"));
    let left: Vec<String> = left.into_keys().collect();
    assert_eq!(
        left,
        [
            "etc/systemd/system/multi-user.target.wants",
            "var/lib/hub-agent-helper/counters.json"
        ]
    );
}

#[test]
fn a_first_installation_that_fails_leaves_no_app() {
    let site = Site::new();
    let (app, helper) = (AppUuid::new(), site.helper());
    for activated in [false, true] {
        let release = site.app("1.0.0", 1, &app_with([]), |_| {});
        site.stage(app, &release).unwrap();
        if activated {
            helper.activate_app(app, release.release_uuid).unwrap();
        }
        helper.rollback_app(app).unwrap();
        assert!(site.state(app).is_none() && site.unit(app).is_none());
        assert!(!site.path(&format!("var/lib/hub-apps/{app}")).exists());
    }
}

#[test]
fn requests_for_an_unknown_app_change_nothing() {
    let site = Site::new();
    let (app, helper) = (AppUuid::new(), site.helper());
    let before = site.everything();
    assert_eq!(
        reason(helper.activate_app(app, ReleaseUuid::new())),
        Reason::NotStaged
    );
    assert_eq!(reason(helper.commit_app(app)), Reason::NotStaged);
    helper.rollback_app(app).unwrap();
    helper.remove_app(app).unwrap();
    let release = site.app("1.0.0", 1, &app_with([]), |_| {});
    site.stage(app, &release).unwrap();
    assert_eq!(
        reason(helper.commit_app(app)),
        Reason::NotStaged,
        "a release that never ran cannot be committed"
    );
    helper.remove_app(app).unwrap();
    assert_eq!(site.everything(), before);
}

#[test]
fn a_uuid_identifies_one_app_and_a_release_uuid_one_release() {
    let site = Site::new();
    let app = AppUuid::new();
    let one = site.app("1.0.0", 1, &app_with([]), |_| {});
    site.install(app, &one);
    let before = site.everything();
    let another = site.app("2.0.0", 2, &app_with([]), |manifest| {
        manifest.name = "another".into()
    });
    assert_eq!(
        reason(site.stage(app, &another)),
        Reason::WrongName,
        "another app does not get this one's files"
    );
    let mut two = site.app("2.0.0", 2, &app_with([]), |_| {});
    two.release_uuid = one.release_uuid;
    assert_eq!(reason(site.stage(app, &two)), Reason::Conflict);
    assert_eq!(site.everything(), before);
}

#[test]
fn a_release_staged_before_a_newer_commit_is_refused() {
    let site = Site::new();
    let helper = site.helper();
    let [app, staged, active] = [(); 3].map(|()| AppUuid::new());
    let (one, two) = (
        site.app("1.0.0", 1, &app_with([]), |_| {}),
        site.app("2.0.0", 2, &app_with([]), |_| {}),
    );
    site.stage(staged, &one).unwrap();
    site.stage(active, &one).unwrap();
    helper.activate_app(active, one.release_uuid).unwrap();
    site.install(app, &two);
    assert_eq!(
        reason(helper.activate_app(staged, one.release_uuid)),
        Reason::CounterTooLow
    );
    assert!(site.unit(staged).is_none());
    assert_eq!(reason(helper.commit_app(active)), Reason::CounterTooLow);
    helper.rollback_app(active).unwrap();
    assert!(site.state(active).is_none());
    helper.activate_app(app, two.release_uuid).unwrap();

    let back = site.app("1.0.0", 1, &app_with([]), |manifest| {
        manifest.downgrade = true
    });
    site.install(app, &back);
    helper.activate_app(app, back.release_uuid).unwrap();
    helper.commit_app(app).unwrap();
}

#[test]
fn deeply_nested_directories_of_an_app_are_removed() {
    let site = Site::new();
    let app = AppUuid::new();
    site.install(app, &site.app("1.0.0", 1, &app_with([]), |_| {}));
    let kept = format!("var/lib/private/hub-app-{app}");
    site.write("elsewhere/file", b"not the app's");
    // From the deepest up: the system does not accept the whole path.
    let nest = |deep: &str| {
        std::fs::create_dir_all(site.path(deep)).unwrap();
        for level in 0..3_000 {
            let (next, file) = (site.path("next"), site.path(&format!("next/file{level}")));
            std::fs::create_dir(&next).unwrap();
            std::fs::rename(site.path(deep), next.join("1")).unwrap();
            std::fs::write(file, "").unwrap();
            std::fs::rename(next, site.path(deep)).unwrap();
        }
    };
    for deep in ["1", "deep"] {
        nest(&format!("{kept}/{deep}"));
    }
    site.write(&format!("{kept}/2"), b"a name that is used");
    symlink(site.path("elsewhere"), site.path(&format!("{kept}/1/link"))).unwrap();
    symlink(
        site.path("elsewhere"),
        site.path(&format!("{kept}/deep/1/1/link")),
    )
    .unwrap();
    site.helper().remove_app(app).unwrap();
    assert!(!site.path(&kept).exists() && site.path("elsewhere/file").exists());
}

#[test]
fn the_headroom_of_the_agents_settings_is_respected() {
    let mut site = Site::new();
    site.headroom = None;
    site.restart();
    let app = AppUuid::new();
    let release = site.app("1.0.0", 1, &app_with([]), |_| {});
    site.stage(app, &release).unwrap();
    site.helper().remove_app(app).unwrap();
    site.write(
        "etc/hub-agent/config.toml",
        b"disk-headroom = \"1000000GiB\"\n",
    );
    site.restart();
    assert_eq!(reason(site.stage(app, &release)), Reason::NoSpace);
}

#[test]
fn an_app_with_a_damaged_state_can_be_removed_and_blocks_no_other() {
    let mut site = Site::new();
    let (app, other) = (AppUuid::new(), AppUuid::new());
    site.install(app, &site.app("1.0.0", 1, &app_with([]), |_| {}));
    site.write(&format!("var/lib/hub-apps/{app}/state.json"), b"{");
    site.restart();
    site.install(other, &site.app("1.0.0", 1, &app_with([]), |_| {}));
    assert!(site.state(app).is_none() && site.state(other).is_some());
    assert_eq!(reason(site.helper().commit_app(app)), Reason::Internal);
    site.helper().remove_app(app).unwrap();
    assert!(site.unit(app).is_none() && !site.path(&format!("var/lib/hub-apps/{app}")).exists());
}
