//! Whether jobs can install releases: the public keys, and the helper that runs as root.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use hub_agent::helper_api::{Helper, HelperError};
use hub_protocol::check::Finding;

use crate::config::JobArgs;
use crate::jobs::release::keys_in;

/// The helper answers at once, unless it is installing a release.
const HELPER_PATIENCE: Duration = Duration::from_secs(10);

pub async fn check(args: &JobArgs) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, what) in [("agent", "updates of the agent"), ("app", "apps")] {
        findings.extend(keys(&args.release_keys.join(folder), what));
    }
    let helper = Helper::at(&args.helper_socket);
    let called = tokio::task::spawn_blocking(move || {
        helper
            .app_states_within(HELPER_PATIENCE)
            .map(|apps| apps.len())
    })
    .await;
    findings.push(match called {
        Ok(Ok(apps)) => Finding::ok(
            "helper",
            format!("hub-agent-helper answers; {apps} apps are installed"),
        ),
        Ok(Err(error)) => helper_unavailable(&args.helper_socket, &error),
        Err(error) => Finding::fail(
            "helper",
            format!("it could not be called: {error}"),
            "run this once more",
        ),
    });
    findings
}

fn helper_unavailable(socket: &Path, error: &HelperError) -> Finding {
    let is_forbidden = matches!(error, HelperError::NoAnswer(error) if error.kind() == ErrorKind::PermissionDenied);
    let is_absent =
        matches!(error, HelperError::NoAnswer(error) if error.kind() == ErrorKind::NotFound);
    match (is_absent, is_forbidden) {
        (true, _) => Finding::warn(
            "helper",
            format!(
                "{} does not exist: jobs that install something will fail",
                socket.display()
            ),
            "systemctl enable --now hub-agent-helper.socket (the Debian package has it); without systemd there are no jobs",
        ),
        (_, true) => Finding::warn(
            "helper",
            "this user may not call it",
            "run this as the agent's user: sudo -u hub-agent hub-agent check",
        ),
        _ => Finding::fail(
            "helper",
            error,
            "journalctl -u 'hub-agent-helper*' shows why",
        ),
    }
}

/// The number of keys, and the problems of those that cannot be used.
fn keys(folder: &Path, what: &str) -> Vec<Finding> {
    let shown = folder.display();
    let mut findings = Vec::new();
    let mut usable = 0;
    for (file, key) in keys_in(folder) {
        let is_open =
            fs::metadata(&file).is_ok_and(|metadata| metadata.permissions().mode() & 0o022 != 0);
        match key {
            Ok(_) if is_open => findings.push(Finding::fail(
                "release keys",
                format!("{} can be changed by other users, who could then install any release", file.display()),
                format!("compare it with the key you were given, then: chmod go-w {}", file.display()),
            )),
            Ok(_) => usable += 1,
            Err(error) => findings.push(Finding::fail(
                "release keys",
                format!("{} cannot be used: {error}", file.display()),
                "replace it by a minisign public key, as `hub-cloud release keygen` creates it, or remove the file",
            )),
        }
    }
    match usable {
        0 if findings.is_empty() => findings.push(Finding::warn(
            "release keys",
            format!("{shown} has none: this hub installs no {what}"),
            format!(
                "add the public key (*.pub) of the party you trust for {what}; it is used \
                 immediately"
            ),
        )),
        0 => {}
        1 => findings.push(Finding::ok("release keys", format!("1 key for {what}"))),
        _ => findings.push(Finding::ok(
            "release keys",
            format!("{usable} keys for {what}"),
        )),
    }
    findings
}

#[cfg(test)]
mod tests {
    use hub_protocol::check::State;

    use super::*;

    #[test]
    fn usable_keys_are_counted_and_others_reported() {
        let folder = tempfile::tempdir().unwrap();
        let states = || {
            keys(folder.path(), "apps")
                .into_iter()
                .map(|finding| finding.state)
                .collect::<Vec<_>>()
        };
        assert_eq!(states(), [State::Warn], "no key");
        let key = folder.path().join("a.pub");
        fs::write(
            &key,
            "RWTKvP6hJTGr6XmTNnLBqWQ9brYvzWTVYzS4oVM+eXYiwXlvqRjPDWlM\n",
        )
        .unwrap();
        for (mode, state) in [(0o644, State::Ok), (0o664, State::Fail)] {
            fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(states(), [state], "{mode:o}");
        }
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(folder.path().join("b.pub"), "no key").unwrap();
        fs::write(folder.path().join("notes.txt"), "no key").unwrap();
        assert_eq!(states(), [State::Fail, State::Ok]);
    }
}
