//! A fake helper: has the real one's protocol, checks digests, and records its requests. It
//! survives the agent's kills, and fails on demand.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hub_agent::helper_api::{
    AdapterFirmware, Answer, AppRelease, AppState, AppStates, Done, Reason, Refusal, Request,
    Staged, StagedAgent, UnitState,
};
use hub_protocol::release::{self, ReleaseManifest};
use hub_protocol::{AppUuid, ReleaseUuid};
use serde::Serialize;

#[derive(Default)]
pub struct HelperState {
    /// The requested changes, by name, in order, including repetitions.
    pub requests: Vec<String>,
    pub apps: BTreeMap<AppUuid, AppState>,
    releases: BTreeMap<ReleaseUuid, ReleaseManifest>,
    /// Refuses to stage anything.
    pub refuse_to_stage: Option<Reason>,
    /// Versions with these names end right after they are started.
    pub failing: Vec<String>,
    pub confirmed_agent: Option<String>,
    /// The next requests to clean up versions of the agent get no answer.
    pub silent_cleans: usize,
    /// The firmware of adapters by name; no answer if there is none.
    pub firmware: Option<BTreeMap<String, String>>,
}

#[derive(Clone)]
pub struct FakeHelper {
    pub socket: PathBuf,
    pub versions: PathBuf,
    state_dir: PathBuf,
    state: Arc<Mutex<HelperState>>,
}

impl FakeHelper {
    pub fn start(dir: &Path, state_dir: PathBuf) -> Self {
        let (socket, versions) = (dir.join("helper.sock"), dir.join("versions"));
        std::fs::create_dir(&versions).unwrap();
        let helper = Self {
            socket: socket.clone(),
            versions,
            state_dir,
            state: Arc::default(),
        };
        let listener = UnixListener::bind(socket).unwrap();
        let serving = helper.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serving.answer(stream.unwrap());
            }
        });
        helper
    }

    pub fn inspect<T>(&self, inspect: impl FnOnce(&mut HelperState) -> T) -> T {
        inspect(&mut self.state.lock().unwrap())
    }

    fn answer(&self, mut stream: UnixStream) {
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap())
            .read_line(&mut line)
            .unwrap();
        let Ok(request) = serde_json::from_str::<Request>(&line) else {
            return;
        };
        let mut state = self.state.lock().unwrap();
        let answer = match request {
            Request::AppStates {} => line_of(Ok(AppStates {
                apps: state.apps.values().cloned().collect(),
            })),
            Request::AdapterFirmware {} => match state.firmware.clone() {
                Some(adapters) => line_of(Ok(AdapterFirmware { adapters })),
                None => return,
            },
            Request::StageApp {
                app_uuid,
                release_uuid,
                manifest,
                file,
                ..
            } => line_of(self.stage(&mut state, &manifest, &file).map(|manifest| {
                state.requests.push(format!("stage {}", manifest.version));
                let app = state.apps.entry(app_uuid).or_insert_with(|| AppState {
                    app_uuid,
                    name: manifest.name.clone(),
                    active: None,
                    committed: None,
                    staged: Vec::new(),
                    unit: None,
                });
                app.staged = vec![release_uuid];
                state.releases.insert(release_uuid, manifest.clone());
                Staged {
                    name: manifest.name,
                    version: manifest.version,
                    health_secs: 1,
                }
            })),
            Request::ActivateApp {
                app_uuid,
                release_uuid,
            } => line_of(state.activate(app_uuid, release_uuid)),
            Request::CommitApp { app_uuid } => {
                state.requests.push("commit".into());
                if let Some(app) = state.apps.get_mut(&app_uuid) {
                    app.committed = app.active.clone();
                }
                line_of(Ok(Done {}))
            }
            Request::RollbackApp { app_uuid } => {
                state.requests.push("rollback".into());
                let committed = state
                    .apps
                    .get(&app_uuid)
                    .and_then(|app| app.committed.clone());
                match committed {
                    None => drop(state.apps.remove(&app_uuid)),
                    Some(committed) => drop(state.activate(app_uuid, committed.release_uuid)),
                }
                line_of(Ok(Done {}))
            }
            Request::RemoveApp { app_uuid } => {
                state.requests.push("remove".into());
                state.apps.remove(&app_uuid);
                line_of(Ok(Done {}))
            }
            Request::StageAgent { manifest, file, .. } => {
                line_of(self.stage(&mut state, &manifest, &file).map(|manifest| {
                    let dir = format!("{}-{}", manifest.version, &manifest.sha256[..12]);
                    std::fs::create_dir_all(self.versions.join(&dir)).unwrap();
                    let binary = self.versions.join(&dir).join("hub-agent");
                    if !binary.exists() {
                        std::fs::copy(self.state_dir.join(&file), &binary).unwrap();
                        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755))
                            .unwrap();
                    }
                    state
                        .requests
                        .push(format!("stage agent {}", manifest.version));
                    StagedAgent {
                        dir,
                        version: manifest.version,
                    }
                }))
            }
            Request::CleanAgent { .. } if state.silent_cleans > 0 => {
                state.silent_cleans -= 1;
                return;
            }
            Request::CleanAgent { confirmed, .. } => {
                state.confirmed_agent = confirmed.or(state.confirmed_agent.take());
                line_of(Ok(Done {}))
            }
        };
        // The agent may have been killed meanwhile.
        let _ = stream.write_all(&answer);
    }

    fn stage(
        &self,
        state: &mut HelperState,
        manifest: &str,
        file: &Path,
    ) -> Result<ReleaseManifest, Refusal> {
        if let Some(reason) = state.refuse_to_stage {
            return Err(Refusal {
                reason,
                message: "as the test requires".into(),
            });
        }
        assert!(file.is_relative(), "{}", file.display());
        let manifest = release::parse(manifest.as_bytes()).unwrap();
        let found =
            super::releases::sha256(&std::fs::read(self.state_dir.join(file)).unwrap_or_default());
        if found != manifest.sha256 {
            return Err(Refusal {
                reason: Reason::DigestMismatch,
                message: "another file".into(),
            });
        }
        Ok(manifest)
    }
}

impl HelperState {
    fn activate(&mut self, app_uuid: AppUuid, release_uuid: ReleaseUuid) -> Result<Done, Refusal> {
        let (Some(app), Some(manifest)) = (
            self.apps.get_mut(&app_uuid),
            self.releases.get(&release_uuid),
        ) else {
            return Err(Refusal {
                reason: Reason::NotStaged,
                message: "it is not staged".into(),
            });
        };
        self.requests.push(format!("activate {}", manifest.version));
        app.staged.clear();
        app.active = Some(AppRelease {
            release_uuid,
            version: manifest.version.clone(),
            health_secs: 1,
        });
        let restarts = u64::from(self.failing.contains(&manifest.version));
        app.unit = Some(UnitState {
            active_state: "active".into(),
            sub_state: "running".into(),
            result: if restarts > 0 {
                "exit-code".into()
            } else {
                "success".into()
            },
            exit: (restarts > 0).then(|| "exit status 1".into()),
            restarts,
            for_secs: 0,
        });
        Ok(Done {})
    }
}

fn line_of<T: Serialize>(answer: Result<T, Refusal>) -> Vec<u8> {
    let answer = answer.map_or_else(Answer::Refused, Answer::Ok);
    let mut line = serde_json::to_vec(&answer).unwrap();
    line.push(b'\n');
    line
}
