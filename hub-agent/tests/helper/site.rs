//! A root directory with a helper working on it, and correctly signed releases.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aws_lc_rs::digest;
use hub_agent::helper_api::{AppState, Helper, HelperError, Reason, Staged};
use hub_protocol::release::{AppRun, ReleaseKind, ReleaseManifest};
use hub_protocol::{AppUuid, ReleaseUuid};
use minisign::KeyPair;

pub struct Site {
    dir: tempfile::TempDir,
    pub keys: KeyPair,
    helper: Option<Child>,
    /// From the agent's configuration file if `None`.
    pub headroom: Option<u64>,
    /// No file can be written, as on a full disk.
    pub is_full: bool,
    systemctl: Option<PathBuf>,
}

pub struct Release {
    pub release_uuid: ReleaseUuid,
    pub manifest: String,
    pub signature: String,
    /// Relative to the agent's state directory.
    pub file: PathBuf,
}

impl Site {
    /// With a helper that has already cleaned up.
    pub fn new() -> Self {
        Self::with_headroom(1 << 20)
    }

    pub fn with_headroom(headroom: u64) -> Self {
        let keys = KeyPair::generate_unencrypted_keypair().unwrap();
        let mut site = Self {
            dir: tempfile::tempdir().unwrap(),
            keys,
            helper: None,
            headroom: Some(headroom),
            is_full: false,
            systemctl: None,
        };
        for dir in [
            "var/lib/hub-agent",
            "var/lib/private",
            "etc/hub-agent/release-keys/app",
            "etc/systemd/system",
        ] {
            std::fs::create_dir_all(site.path(dir)).unwrap();
        }
        std::fs::create_dir_all(site.path("etc/hub-agent/release-keys/agent")).unwrap();
        for kind in ["app", "agent"] {
            let public = site.keys.pk.to_box().unwrap().to_string();
            std::fs::write(
                site.path(&format!("etc/hub-agent/release-keys/{kind}/test.pub")),
                public,
            )
            .unwrap();
        }
        let user_id = rustix::process::getuid().as_raw();
        site.write(
            "etc/passwd",
            format!("root:x:0:0::/:/bin/sh\nhub-agent:x:{user_id}:1::/:/bin/false\n").as_bytes(),
        );
        site.start();
        site.helper().app_states().unwrap();
        site
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("helper.socket")
    }

    pub fn write(&self, path: &str, content: &[u8]) {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), content).unwrap();
    }

    pub fn start(&mut self) {
        // Fewer descriptors than systemd allows: none is held for long.
        let full = if self.is_full {
            "trap '' XFSZ; ulimit -S -f 0;"
        } else {
            ""
        };
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -n 128; {full} exec \"$0\" \"$@\""));
        command
            .arg(env!("CARGO_BIN_EXE_hub-agent-helper"))
            .arg("--root")
            .arg(self.dir.path());
        command.arg("--listen").arg(self.socket());
        command.args(
            self.headroom
                .map(|bytes| format!("--disk-headroom={bytes}")),
        );
        command.args(
            self.systemctl
                .iter()
                .flat_map(|program| [Path::new("--systemctl"), program]),
        );
        let _ = std::fs::remove_file(self.socket());
        self.helper = Some(
            command
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        while UnixStream::connect(self.socket()).is_err() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Kills the helper at its current point.
    pub fn kill(&self) {
        let id = i32::try_from(self.helper.as_ref().unwrap().id()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    }

    pub fn restart(&mut self) {
        self.kill();
        self.helper.take().unwrap().wait().unwrap();
        self.start();
    }

    /// From now on there is a systemd, whose units have configured states.
    pub fn with_systemd(&mut self) {
        let [log, shown, fails] =
            ["systemctl.log", "systemctl.shown", "systemctl.fails"].map(|name| self.path(name));
        let (log, shown, fails) = (log.display(), shown.display(), fails.display());
        let script = format!(
            "#!/bin/sh\nulimit -S -f unlimited\necho \"$3 $4\" >>{log}\ncase $3 in\nshow) cat {shown} ;;\nstart|restart) ! cat {fails} 2>/dev/null ;;\nesac\n"
        );
        self.write("systemctl", script.as_bytes());
        std::fs::set_permissions(self.path("systemctl"), PermissionsExt::from_mode(0o755)).unwrap();
        self.units_are("loaded", "active", "success");
        self.systemctl = Some(self.path("systemctl"));
        self.restart();
    }

    pub fn units_are(&self, load: &str, active: &str, result: &str) {
        self.write(
            "systemctl.shown",
            format!("LoadState={load}\nActiveState={active}\nResult={result}\n").as_bytes(),
        );
    }

    /// The calls of systemctl since the last call of this function, a verb and a unit each.
    pub fn systemctl_calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.path("systemctl.log")).unwrap_or_default();
        let _ = std::fs::remove_file(self.path("systemctl.log"));
        calls.lines().map(|line| line.trim().to_owned()).collect()
    }

    pub fn helper(&self) -> Helper {
        Helper::at(&self.socket())
    }

    /// A correct release of an app, after `change` was applied.
    pub fn app(
        &self,
        version: &str,
        counter: u64,
        file: &[u8],
        change: impl FnOnce(&mut ReleaseManifest),
    ) -> Release {
        let app = AppRun {
            entry_point: "bin/logger".into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            memory_bytes: 64 << 20,
            cpu_percent: 50,
            network: false,
            keeps_files: true,
            ble: false,
            health_secs: 7,
        };
        self.release(
            ReleaseKind::App,
            "logger",
            version,
            counter,
            file,
            |manifest| {
                manifest.app = Some(app);
                change(manifest);
            },
        )
    }

    pub fn agent(&self, version: &str, counter: u64, file: &[u8]) -> Release {
        self.release(
            ReleaseKind::Agent,
            "hub-agent",
            version,
            counter,
            file,
            |_| {},
        )
    }

    pub fn release(
        &self,
        kind: ReleaseKind,
        name: &str,
        version: &str,
        counter: u64,
        file: &[u8],
        change: impl FnOnce(&mut ReleaseManifest),
    ) -> Release {
        let mut manifest = ReleaseManifest {
            name: name.into(),
            kind,
            architecture: std::env::consts::ARCH.into(),
            version: version.into(),
            size_bytes: file.len() as u64,
            sha256: hex::encode(digest::digest(&digest::SHA256, file)),
            counter,
            downgrade: false,
            app: None,
            sbom: None,
            vex: None,
        };
        change(&mut manifest);
        let manifest = serde_json::to_string(&manifest).unwrap();
        let release_uuid = ReleaseUuid::new();
        let name = format!("downloads/{release_uuid}");
        self.write(&format!("var/lib/hub-agent/{name}"), file);
        let signature = self.sign(&self.keys, &manifest);
        Release {
            release_uuid,
            manifest,
            signature,
            file: name.into(),
        }
    }

    pub fn sign(&self, keys: &KeyPair, manifest: &str) -> String {
        minisign::sign(None, &keys.sk, manifest.as_bytes(), None, None)
            .unwrap()
            .to_string()
    }

    pub fn stage(&self, app: AppUuid, release: &Release) -> Result<Staged, HelperError> {
        let Release {
            release_uuid,
            manifest,
            signature,
            file,
        } = release;
        self.helper()
            .stage_app(app, *release_uuid, manifest, signature, file)
    }

    /// Stages, activates and commits a release.
    pub fn install(&self, app: AppUuid, release: &Release) {
        self.stage(app, release).unwrap();
        self.helper()
            .activate_app(app, release.release_uuid)
            .unwrap();
        self.helper().commit_app(app).unwrap();
    }

    pub fn state(&self, app: AppUuid) -> Option<AppState> {
        self.helper()
            .app_states()
            .unwrap()
            .into_iter()
            .find(|state| state.app_uuid == app)
    }

    /// All files with kind, mode and content, except those of the agent and of the test itself.
    pub fn everything(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        collect(self.dir.path(), self.dir.path(), &mut found);
        found.retain(|path, _| !path.starts_with("var/lib/hub-agent/") && path != "helper.socket");
        found
    }

    pub fn unit(&self, app: AppUuid) -> Option<String> {
        std::fs::read_to_string(self.path(&format!("etc/systemd/system/hub-app-{app}.service")))
            .ok()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(helper) = &mut self.helper {
            let _ = helper.kill();
            let _ = helper.wait();
        }
    }
}

fn collect(root: &Path, dir: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let content = if metadata.is_symlink() {
            format!("-> {}", std::fs::read_link(&path).unwrap().display())
        } else if metadata.is_file() {
            let content = hex::encode(digest::digest(
                &digest::SHA256,
                &std::fs::read(&path).unwrap(),
            ));
            format!(
                "{:o} {} {content}",
                metadata.permissions().mode(),
                metadata.uid()
            )
        } else {
            format!("{:o} {}", metadata.permissions().mode(), metadata.uid())
        };
        found.insert(
            path.strip_prefix(root).unwrap().display().to_string(),
            content,
        );
        if metadata.is_dir() {
            collect(root, &path, found);
        }
    }
}

pub fn reason<T: std::fmt::Debug>(result: Result<T, HelperError>) -> Reason {
    match result {
        Err(HelperError::Refused(refusal)) => refusal.reason,
        other => panic!("not refused: {other:?}"),
    }
}
