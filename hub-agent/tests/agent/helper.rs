//! A helper to test the agent against: speaks the real one's protocol, checks digests as it does, and keeps what it was asked. It outlives the
//! agent's kills, and fails on demand.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hub_agent::helper_api::{
    Answer, AppRelease, AppState, AppStates, Done, Reason, Refusal, Request, Staged, StagedAgent, UnitState,
};
use hub_protocol::release::{self, ReleaseManifest};
use hub_protocol::{AppUuid, ReleaseUuid};
use serde::Serialize;

#[derive(Default)]
pub struct Helped {
    /// Changes it was asked for, by name, in order; repetitions too.
    pub asked: Vec<String>,
    pub apps: BTreeMap<AppUuid, AppState>,
    releases: BTreeMap<ReleaseUuid, ReleaseManifest>,
    /// Refuses to stage anything.
    pub refuse_to_stage: Option<Reason>,
    /// Versions of these names end right after they were started.
    pub sick: Vec<String>,
    pub confirmed_agent: Option<String>,
    /// The next requests to clean up versions of the agent get no answer.
    pub silent_cleans: usize,
}

#[derive(Clone)]
pub struct FakeHelper {
    pub socket: PathBuf,
    pub versions: PathBuf,
    state_dir: PathBuf,
    helped: Arc<Mutex<Helped>>,
}

impl FakeHelper {
    pub fn start(dir: &Path, state_dir: PathBuf) -> Self {
        let (socket, versions) = (dir.join("helper.sock"), dir.join("versions"));
        std::fs::create_dir(&versions).unwrap();
        let helper = Self { socket: socket.clone(), versions, state_dir, helped: Arc::default() };
        let listener = UnixListener::bind(socket).unwrap();
        let serving = helper.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serving.answer(stream.unwrap());
            }
        });
        helper
    }

    pub fn look<T>(&self, look: impl FnOnce(&mut Helped) -> T) -> T {
        look(&mut self.helped.lock().unwrap())
    }

    fn answer(&self, mut stream: UnixStream) {
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        let Ok(request) = serde_json::from_str::<Request>(&line) else { return };
        let mut helped = self.helped.lock().unwrap();
        let answer = match request {
            Request::AppStates {} => line_of(Ok(AppStates { apps: helped.apps.values().cloned().collect() })),
            Request::StageApp { app_uuid, release_uuid, manifest, file, .. } => {
                line_of(self.stage(&mut helped, &manifest, &file).map(|manifest| {
                    helped.asked.push(format!("stage {}", manifest.version));
                    let app = helped.apps.entry(app_uuid).or_insert_with(|| AppState {
                        app_uuid,
                        name: manifest.name.clone(),
                        active: None,
                        committed: None,
                        staged: Vec::new(),
                        unit: None,
                    });
                    app.staged = vec![release_uuid];
                    helped.releases.insert(release_uuid, manifest.clone());
                    Staged { name: manifest.name, version: manifest.version, health_secs: 1 }
                }))
            }
            Request::ActivateApp { app_uuid, release_uuid } => line_of(helped.activate(app_uuid, release_uuid)),
            Request::CommitApp { app_uuid } => {
                helped.asked.push("commit".into());
                if let Some(app) = helped.apps.get_mut(&app_uuid) {
                    app.committed = app.active.clone();
                }
                line_of(Ok(Done {}))
            }
            Request::RollbackApp { app_uuid } => {
                helped.asked.push("rollback".into());
                let committed = helped.apps.get(&app_uuid).and_then(|app| app.committed.clone());
                match committed {
                    None => drop(helped.apps.remove(&app_uuid)),
                    Some(committed) => drop(helped.activate(app_uuid, committed.release_uuid)),
                }
                line_of(Ok(Done {}))
            }
            Request::RemoveApp { app_uuid } => {
                helped.asked.push("remove".into());
                helped.apps.remove(&app_uuid);
                line_of(Ok(Done {}))
            }
            Request::StageAgent { manifest, file, .. } => {
                line_of(self.stage(&mut helped, &manifest, &file).map(|manifest| {
                    let dir = format!("{}-{}", manifest.version, &manifest.sha256[..12]);
                    std::fs::create_dir_all(self.versions.join(&dir)).unwrap();
                    let binary = self.versions.join(&dir).join("hub-agent");
                    if !binary.exists() {
                        std::fs::copy(self.state_dir.join(&file), &binary).unwrap();
                        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
                    }
                    helped.asked.push(format!("stage agent {}", manifest.version));
                    StagedAgent { dir, version: manifest.version }
                }))
            }
            Request::CleanAgent { .. } if helped.silent_cleans > 0 => {
                helped.silent_cleans -= 1;
                return;
            }
            Request::CleanAgent { confirmed, .. } => {
                helped.confirmed_agent = confirmed.or(helped.confirmed_agent.take());
                line_of(Ok(Done {}))
            }
        };
        // The agent may have been killed meanwhile.
        let _ = stream.write_all(&answer);
    }

    fn stage(&self, helped: &mut Helped, manifest: &str, file: &Path) -> Result<ReleaseManifest, Refusal> {
        if let Some(reason) = helped.refuse_to_stage {
            return Err(Refusal { reason, message: "as the test wants".into() });
        }
        assert!(file.is_relative(), "{}", file.display());
        let manifest = release::parse(manifest.as_bytes()).unwrap();
        let found = super::releases::sha256(&std::fs::read(self.state_dir.join(file)).unwrap_or_default());
        if found != manifest.sha256 {
            return Err(Refusal { reason: Reason::DigestMismatch, message: "another file".into() });
        }
        Ok(manifest)
    }
}

impl Helped {
    fn activate(&mut self, app_uuid: AppUuid, release_uuid: ReleaseUuid) -> Result<Done, Refusal> {
        let (Some(app), Some(manifest)) = (self.apps.get_mut(&app_uuid), self.releases.get(&release_uuid)) else {
            return Err(Refusal { reason: Reason::NotStaged, message: "it is not staged".into() });
        };
        self.asked.push(format!("activate {}", manifest.version));
        app.staged.clear();
        app.active = Some(AppRelease { release_uuid, version: manifest.version.clone(), health_secs: 1 });
        let restarts = u64::from(self.sick.contains(&manifest.version));
        app.unit = Some(UnitState {
            active_state: "active".into(),
            sub_state: "running".into(),
            result: if restarts > 0 { "exit-code".into() } else { "success".into() },
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
