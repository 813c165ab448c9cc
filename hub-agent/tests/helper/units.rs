//! The helper's calls of systemd, and how it interprets the results.

use hub_agent::helper_api::Reason;
use hub_protocol::AppUuid;

use crate::archive::app_with;
use crate::site::{Site, reason};

fn reloads(calls: &[String]) -> usize {
    calls
        .iter()
        .filter(|calls| *calls == "daemon-reload")
        .count()
}

#[test]
fn a_changed_unit_is_loaded() {
    let mut site = Site::new();
    site.with_systemd();
    let app = AppUuid::new();
    site.install(app, &site.app("1.0.0", 1, &app_with([]), |_| {}));
    let calls = site.systemctl_calls();
    let restart = format!("restart hub-app-{app}.service");
    let position = |word: &str| calls.iter().position(|calls| calls == word);
    assert!(
        position("daemon-reload").unwrap() < position(&restart).unwrap(),
        "{calls:?}"
    );
    site.restart();
    site.state(app).unwrap();
    assert_eq!(reloads(&site.systemctl_calls()), 0, "it is unchanged");

    let unit = site.unit(app).unwrap();
    site.write(
        &format!("etc/systemd/system/hub-app-{app}.service"),
        b"# of an older version of the helper\n",
    );
    site.restart();
    site.state(app).unwrap();
    let calls = site.systemctl_calls();
    assert_eq!(
        (site.unit(app), reloads(&calls)),
        (Some(unit), 1),
        "{calls:?}"
    );
    assert!(!calls.contains(&restart), "an app that runs is left alone");
}

#[test]
fn only_a_failed_unit_is_a_fault_of_the_release() {
    let mut site = Site::new();
    site.with_systemd();
    let (app, helper) = (AppUuid::new(), site.helper());
    let release = site.app("1.0.0", 1, &app_with([]), |_| {});
    site.stage(app, &release).unwrap();
    site.write("systemctl.fails", b"");
    for (load, active, result, expected) in [
        ("loaded", "failed", "exit-code", Reason::StartFailed),
        ("loaded", "activating", "exit-code", Reason::StartFailed),
        ("loaded", "inactive", "success", Reason::Internal),
        ("not-found", "inactive", "success", Reason::Internal),
    ] {
        site.units_are(load, active, result);
        assert_eq!(
            reason(helper.activate_app(app, release.release_uuid)),
            expected,
            "{load} {active} {result}"
        );
    }
    std::fs::remove_file(site.path("systemctl.fails")).unwrap();
    helper.activate_app(app, release.release_uuid).unwrap();
}

#[test]
fn an_app_is_removed_from_a_full_disk() {
    let mut site = Site::new();
    site.with_systemd();
    let app = AppUuid::new();
    site.install(app, &site.app("1.0.0", 1, &app_with([]), |_| {}));
    let kept = format!("var/lib/private/hub-app-{app}");
    site.write(&format!("{kept}/large"), b"as large as the disk");
    site.is_full = true;
    site.restart();
    site.systemctl_calls();
    site.helper().remove_app(app).unwrap();
    assert!(
        site.systemctl_calls()
            .contains(&format!("stop hub-app-{app}.service"))
    );
    assert!(site.unit(app).is_none() && !site.path(&kept).exists());
    assert!(!site.path(&format!("var/lib/hub-apps/{app}")).exists());
}
