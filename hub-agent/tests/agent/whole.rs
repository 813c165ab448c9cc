//! Agent, launcher and the real helper together, on a root directory of their own: a whole
//! installation and a whole update.

use std::process::Stdio;
use std::time::Duration;

use hub_agent::helper_api::Helper;
use serde_json::json;
use tokio::process::Command;

use super::jobs::{Hub, job, keep_running};
use super::releases::Fleet;
use super::stop;

/// An app's archive with one program in it.
fn archive(program: &str) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o755);
    header.set_size(program.len() as u64);
    let mut archive = tar::Builder::new(Vec::new());
    archive
        .append_data(&mut header, "bin/app", program.as_bytes())
        .unwrap();
    zstd::encode_all(archive.into_inner().unwrap().as_slice(), 1).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_and_an_update_are_installed_by_the_real_programs() {
    let mut hub = Hub::new().await;
    let root = hub.site.path("root");
    for dir in [
        "var/lib/hub-agent",
        "var/lib/private",
        "etc/hub-agent",
        "etc/systemd/system",
    ] {
        std::fs::create_dir_all(root.join(dir)).unwrap();
    }
    std::os::unix::fs::symlink(root.join("var/lib/hub-agent"), hub.site.state()).unwrap();
    std::os::unix::fs::symlink(
        hub.site.path("keys"),
        root.join("etc/hub-agent/release-keys"),
    )
    .unwrap();
    let user_id = rustix::process::getuid().as_raw();
    std::fs::write(
        root.join("etc/passwd"),
        format!("hub-agent:x:{user_id}:1::/:/bin/false\n"),
    )
    .unwrap();
    hub.helper.socket = hub.site.path("real.sock");
    hub.helper.versions = root.join("var/lib/hub-agent-versions");
    let mut helper = Command::new(env!("CARGO_BIN_EXE_hub-agent-helper"));
    helper
        .arg("--root")
        .arg(&root)
        .arg("--listen")
        .arg(&hub.helper.socket)
        .args(["--disk-headroom", "1000"]);
    let _helper = helper
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    while Helper::at(&hub.helper.socket).app_states().is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let app = |fleet: &mut Fleet, version: &str, counter: u64| {
        fleet.release(
            Some(hub.app),
            version,
            archive(&format!("#!/bin/sh\n# {version}\n")),
            |manifest| {
                manifest.counter = counter;
                manifest.app.as_mut().unwrap().entry_point = "bin/app".into();
            },
        )
    };
    let (first, second, older) = hub.fleet(|fleet| {
        (
            app(fleet, "1.0.0", 5),
            app(fleet, "2.0.0", 6),
            app(fleet, "3.0.0", 4),
        )
    });
    let mut agent = hub.run().spawn().unwrap();
    for release in [first, second] {
        assert_eq!(hub.outcome(hub.install(release)).await, "SUCCEEDED");
    }
    assert_eq!(
        hub.outcome(hub.install(older)).await,
        "FAILED COUNTER_TOO_LOW"
    );
    let apps = Helper::at(&hub.helper.socket).app_states().unwrap();
    let committed = apps[0].committed.as_ref().unwrap();
    assert_eq!(
        (apps.len(), committed.release_uuid, apps[0].staged.len()),
        (1, second, 0)
    );
    assert_eq!(
        hub.outcome(job("APP_REMOVE", Some(hub.app), None)).await,
        "SUCCEEDED"
    );
    hub.service
        .until("the report", |stored| {
            (stored.fleet.installed.last()? == &json!({"apps": []})).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));

    let (new, broken) = hub.fleet(|fleet| {
        let program = format!(
            "#!/bin/sh\nexec {} \"$@\"\n",
            env!("CARGO_BIN_EXE_hub-agent")
        );
        let new = fleet.release(None, "99.0.0", program.into_bytes(), |manifest| {
            manifest.counter = 2
        });
        (
            new,
            fleet.release(None, "99.1.0", b"no program".to_vec(), |manifest| {
                manifest.counter = 3
            }),
        )
    });
    for (release, end) in [(new, "SUCCEEDED"), (broken, "FAILED DID_NOT_START")] {
        let (id, update) = job("SELF_UPDATE", None, Some(release));
        hub.service
            .change(|stored| stored.desire_jobs(vec![update]));
        let (ended, mut agent) = keep_running(&hub, id).await;
        assert_eq!(ended, end);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(stop(&mut agent).await, Some(0));
    }
    let names = std::fs::read_dir(&hub.helper.versions)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let versions: Vec<String> = names
        .map(|name| name.into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    assert!(
        versions.len() == 1 && versions[0].starts_with("99.0.0-"),
        "versions that do not run are removed: {versions:?}"
    );
}
