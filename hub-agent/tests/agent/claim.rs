//! `hub-agent claim` by root, with a state directory of the agent's user.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use super::service::{CODE, HUB, Service};
use super::{Site, output, stop, text, until_status};

/// A user id that does not exist on this machine.
const USER: u32 = 54_321;

fn all_in(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                [vec![path.clone()], all_in(&path)].concat()
            } else {
                vec![path]
            }
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_claim_by_root_belong_to_the_agents_user() {
    // Only root can become another user.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (site, service) = (Site::new(1, 1), Service::start().await);
    std::fs::set_permissions(site.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::create_dir(site.state()).unwrap();
    std::fs::set_permissions(site.state(), PermissionsExt::from_mode(0o700)).unwrap();
    chown(site.state(), Some(USER), Some(USER)).unwrap();
    // Only root can read the code's file, and the agent's user must not make root write elsewhere.
    std::fs::write(site.path("code"), format!("{CODE}\n")).unwrap();
    std::fs::set_permissions(site.path("code"), PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(site.path("elsewhere"), "root's").unwrap();
    std::fs::set_permissions(site.path("elsewhere"), PermissionsExt::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink(site.path("elsewhere"), site.state().join("spool.db")).unwrap();
    let mut claim = site.command("claim");
    claim
        .args(["--service-url", &service.url()])
        .arg("--code-file")
        .arg(site.path("code"));
    let claimed = output(claim).await;
    assert_eq!(claimed.status.code(), Some(0), "{}", text(&claimed.stderr));
    assert!(
        text(&claimed.stdout).contains(HUB),
        "{}",
        text(&claimed.stdout)
    );
    let created = all_in(&site.state());
    assert!(
        created.contains(&site.state().join("credentials.json")),
        "{created:?}"
    );
    for path in created {
        let found = std::fs::symlink_metadata(&path).unwrap();
        assert!(
            found.is_symlink() || (found.uid(), found.gid()) == (USER, USER),
            "{} is root's",
            path.display()
        );
    }
    assert_eq!(
        std::fs::read_to_string(site.path("elsewhere")).unwrap(),
        "root's"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_shows_that_it_comes_from_the_hub_that_was_claimed_before() {
    let (site, reinstalled, service) = (Site::new(1, 1), Site::new(1, 1), Service::start().await);
    let claim = async |site: &Site, code: &str| {
        service.change(|stored| stored.unblock_with(code));
        let mut claim = site.command("claim");
        claim.args(["--service-url", &service.url(), "--code", code]);
        let claimed = output(claim).await;
        assert_eq!(claimed.status.code(), Some(0), "{}", text(&claimed.stderr));
    };
    claim(&site, "1111-1111-1111-1111").await;
    claim(&site, "2222-2222-2222-2222").await;
    // Another installation, with the state of the first.
    std::fs::rename(site.state(), reinstalled.state()).unwrap();
    claim(&reinstalled, "3333-3333-3333-3333").await;
    service.change(|stored| {
        let tokens: Vec<_> = stored
            .claims
            .iter()
            .map(|claim| claim.get("refreshToken"))
            .collect();
        assert_eq!(
            tokens,
            [None, Some(&"refresh".into()), Some(&"refresh".into())]
        );
        assert!(stored.claim_keys[0].len() >= 32, "{:?}", stored.claim_keys);
        assert!(
            stored
                .claim_keys
                .iter()
                .all(|key| *key == stored.claim_keys[0]),
            "{:?}",
            stored.claim_keys
        );
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_service_gets_no_token_of_the_first() {
    let site = Site::new(20, 1);
    let (first, second) = (Service::start().await, Service::start().await);
    let mut agent = site.claimed(&first).spawn().unwrap();
    first
        .until("the events", |stored| {
            (stored.event_count() == 20).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));

    // The configuration was changed: the hub has no access until it is claimed there.
    let mut agent = site.run(&second).spawn().unwrap();
    let status = until_status(&site, |status| status["advertisements"] == 20).await;
    assert_eq!(status["access"], "UNCLAIMED", "{status}");
    second.change(|stored| {
        assert_eq!((stored.event_count(), stored.telemetry.len()), (0, 0));
    });
    let mut claim = site.command("claim");
    claim.args(["--code", CODE]);
    let claimed = output(claim).await;
    assert_eq!(claimed.status.code(), Some(0), "{}", text(&claimed.stderr));
    until_status(&site, |status| status["access"] == "CLAIMED").await;
    assert_eq!(stop(&mut agent).await, Some(0));
    second.change(|stored| {
        assert_eq!(stored.claims.len(), 1);
        assert_eq!(stored.claims[0].get("refreshToken"), None);
        assert_eq!(stored.refreshes, 0);
    });
}
