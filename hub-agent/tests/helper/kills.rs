//! The helper is killed at any moment: a request is then done or not, and nothing in between is
//! left after the next start.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use hub_agent::helper_api::{HelperError, Reason};
use hub_protocol::AppUuid;

use crate::archive::{app_with, file};
use crate::site::{Release, Site};

fn random(below: Duration) -> Duration {
    let number = RandomState::new().hash_one(0) % below.as_micros().max(1) as u64;
    Duration::from_micros(number)
}

/// What must hold whenever no request is being executed.
fn check(site: &Site, app: AppUuid, releases: &[&Release]) {
    // The first request after a start cleans up.
    let state = site.state(app);
    let everything = site.everything();
    for path in everything.keys() {
        assert!(
            !path.contains(".staging/") && !path.contains("-new"),
            "{path} is left"
        );
    }
    let of_app = |path: &&String| path.contains(&app.to_string());
    let Some(state) = state else {
        assert_eq!(
            everything.keys().find(of_app),
            None,
            "nothing is left of a removed app"
        );
        return;
    };
    let mut present = state.staged.clone();
    present.extend(
        state
            .active
            .iter()
            .chain(&state.committed)
            .map(|release| release.release_uuid),
    );
    present.sort();
    present.dedup();
    let versions =
        std::fs::read_dir(site.path(&format!("var/lib/hub-apps/{app}/versions"))).unwrap();
    assert_eq!(
        versions.count(),
        present.len(),
        "only the reported releases exist"
    );
    for release in present {
        let version = format!("var/lib/hub-apps/{app}/versions/{release}");
        let expected = releases
            .iter()
            .find(|expected| expected.release_uuid == release)
            .unwrap();
        assert_eq!(
            std::fs::read_to_string(site.path(&format!("{version}/manifest.json"))).unwrap(),
            expected.manifest
        );
        let files = everything
            .keys()
            .filter(|path| path.starts_with(&format!("{version}/files/data/")))
            .count();
        assert_eq!(files, 60, "{release} is whole");
    }
    let unit = site.unit(app);
    match state.active {
        None => assert_eq!(unit, None),
        Some(active) => {
            assert!(
                unit.unwrap().contains(&active.release_uuid.to_string()),
                "the unit runs what is active"
            )
        }
    }
}

/// Repeats a request and kills the helper meanwhile each time, until an answer came before the
/// kill. Then repeats it once more.
fn through_kills(
    site: &mut Site,
    app: AppUuid,
    releases: &[&Release],
    send: impl Fn(&Site) -> Result<(), HelperError> + Sync,
) {
    let mut kill_within = Duration::from_millis(10);
    let mut is_done = false;
    while !is_done {
        let answered = std::thread::scope(|scope| {
            let sending = scope.spawn(|| send(site));
            std::thread::sleep(random(kill_within));
            site.kill();
            sending.join().unwrap()
        });
        site.restart();
        check(site, app, releases);
        is_done = match answered {
            Ok(()) => true,
            Err(HelperError::NoAnswer(_)) => false,
            Err(HelperError::Refused(refusal)) => panic!("{refusal}"),
        };
        // Later each time, so that the request is done in the end.
        kill_within = kill_within.mul_f64(1.2);
        assert!(kill_within < Duration::from_secs(60), "it is never done");
    }
    send(site).unwrap();
    check(site, app, releases);
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_state() {
    let mut site = Site::new();
    let app = AppUuid::new();
    let archive = |version: &str| {
        let content = version.repeat(4_000);
        app_with((0..60).map(|number| file(format!("data/{number}"), &content)))
    };
    for _ in 0..3 {
        let one = site.app("1.0.0", 1, &archive("1.0.0"), |manifest| {
            manifest.downgrade = true
        });
        let two = site.app("2.0.0", 2, &archive("2.0.0"), |_| {});
        let releases = [&one, &two];
        let mut through = |send: &(dyn Fn(&Site) -> Result<(), HelperError> + Sync)| {
            through_kills(&mut site, app, &releases, send);
            site.state(app)
                .and_then(|state| state.active)
                .map(|active| active.release_uuid)
        };
        through(&|site| site.stage(app, &one).map(drop));
        through(&|site| site.helper().activate_app(app, one.release_uuid));
        through(&|site| site.helper().commit_app(app));
        through(&|site| site.stage(app, &two).map(drop));
        through(&|site| site.helper().activate_app(app, two.release_uuid));
        assert_eq!(
            through(&|site| site.helper().rollback_app(app)),
            Some(one.release_uuid)
        );
        through(&|site| site.stage(app, &two).map(drop));
        through(&|site| site.helper().activate_app(app, two.release_uuid));
        assert_eq!(
            through(&|site| site.helper().commit_app(app)),
            Some(two.release_uuid)
        );
        assert_eq!(through(&|site| site.helper().remove_app(app)), None);
    }
}

#[test]
fn a_version_of_the_agent_is_stored_completely_or_not_at_all() {
    let mut site = Site::new();
    let program = vec![7; 3 << 20];
    for number in 1..=10_u8 {
        let release = site.agent(
            &format!("1.{number}.0"),
            number.into(),
            &[program.as_slice(), &[number]].concat(),
        );
        let stage = |site: &Site| {
            site.helper()
                .stage_agent(&release.manifest, &release.signature, &release.file, &[])
        };
        let wait = random(Duration::from_millis(30));
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| stage(&site));
            std::thread::sleep(wait);
            site.kill();
            match sending.join().unwrap() {
                Ok(_) | Err(HelperError::NoAnswer(_)) => {}
                Err(HelperError::Refused(refusal)) => {
                    assert_eq!(refusal.reason, Reason::Internal, "{refusal}")
                }
            }
        });
        site.restart();
        site.helper().app_states().unwrap();
        for (path, _) in site.everything() {
            assert!(!path.contains(".staging/"), "{path} is left");
        }
        let dir = stage(&site).unwrap().dir;
        let versions = std::fs::read_dir(site.path("var/lib/hub-agent-versions"))
            .unwrap()
            .count()
            - 1;
        assert!(versions <= 3, "{versions}");
        let length =
            std::fs::metadata(site.path(&format!("var/lib/hub-agent-versions/{dir}/hub-agent")))
                .unwrap()
                .len();
        assert_eq!(length, program.len() as u64 + 1);
    }
}
