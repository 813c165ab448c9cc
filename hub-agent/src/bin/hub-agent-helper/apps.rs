//! Apps on disk and as units. An app's `state.json` states what has to run; its unit, links and
//! releases on disk follow from it, and are checked at every start of the helper. So a change
//! replaces one file, and a kill at any moment leaves the old state or the new one.
//!
//! ```text
//! /var/lib/hub-apps/<app>/state.json
//!                        /versions/<release>/manifest.json
//!                        /versions/<release>/files/...
//!                        /current, /previous -> versions/<release>  (links for administrators)
//! ```

use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hub_agent::helper_api::{AppRelease, AppState, AppStates, Reason, Refusal, Staged};
use hub_protocol::release::{AppRun, ReleaseKind, ReleaseManifest};
use hub_protocol::{AppUuid, ReleaseUuid};
use serde::{Deserialize, Serialize};

use crate::refusal::{internal, refuse};
use crate::root::Root;
use crate::systemd::Systemd;
use crate::{counters, durable, log, release, unit, unpack};

const APPS: &str = "var/lib/hub-apps";
/// Releases that are being installed or removed. Empty between requests.
const STAGING: &str = "var/lib/hub-apps/.staging";
const UNITS: &str = "etc/systemd/system";
/// Units with a link here are started with the hub.
const STARTED_UNITS: &str = "etc/systemd/system/multi-user.target.wants";

/// The most apps that a hub can report.
const MAX_APPS: usize = 256;

/// Every decision about an app. Everything else can be restored from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct State {
    /// The app's name in all its releases. A uuid identifies one app, and its files belong to no
    /// other.
    name: String,
    /// The release that has to run.
    active: Option<ReleaseUuid>,
    /// The release that was committed.
    committed: Option<ReleaseUuid>,
    /// Whether systemd runs `active`, and not the previous release.
    started: bool,
    /// The app is being removed.
    removing: bool,
}

impl State {
    fn needs(&self, release: ReleaseUuid) -> bool {
        self.active == Some(release) || self.committed == Some(release)
    }
}

pub struct Apps<'a> {
    pub root: &'a Root,
    pub systemd: &'a Systemd,
    /// The bytes of the disk that stay free.
    pub headroom: u64,
}

impl Apps<'_> {
    /// Finishes or undoes what a killed helper left unfinished.
    pub fn clean_up(&self) -> Result<(), Refusal> {
        let cannot = || internal("cannot clean up");
        self.clear_staging()?;
        for directory in [UNITS, STARTED_UNITS] {
            durable::remove_unfinished(&self.root.join(directory)).map_err(cannot())?;
        }
        let mut rewritten = false;
        for app in self.list()? {
            match self.clean_up_app(app) {
                Ok(unit_changed) => rewritten |= unit_changed,
                // A damaged app must not block the others.
                Err(error) => log(format_args!("app {app} cannot be cleaned up: {error}")),
            }
        }
        // A new version of the helper may write different units.
        if rewritten && let Err(error) = self.systemd.reload() {
            log(format_args!(
                "units were written again and are not loaded: {error}"
            ));
        }
        Ok(())
    }

    /// Returns whether its unit was changed.
    fn clean_up_app(&self, app: AppUuid) -> Result<bool, Refusal> {
        durable::remove_unfinished(&self.dir(app)).map_err(internal("cannot clean up"))?;
        match self.state(app)? {
            Some(state) if state.removing => self.remove(app).map(|()| false),
            // Nothing of it was ever installed.
            Some(state) if state.active.is_none() && self.releases(app)?.is_empty() => {
                self.remove(app).map(|()| false)
            }
            Some(state) => self.apply(app, &state),
            None => self.remove(app).map(|()| false),
        }
    }

    pub fn stage(
        &self,
        app: AppUuid,
        release: ReleaseUuid,
        manifest_text: &str,
        signature: &str,
        file: &Path,
    ) -> Result<Staged, Refusal> {
        let manifest = release::check(self.root, ReleaseKind::App, manifest_text, signature)?;
        let run = run_of(&manifest)?;
        let staged = Staged {
            name: manifest.name.clone(),
            version: manifest.version.clone(),
            health_secs: run.health_secs,
        };
        let mut state = self.state(app)?;
        if state.as_ref().is_some_and(|state| state.removing) {
            self.remove(app)?;
            state = None;
        }
        match &state {
            Some(state) if state.name != manifest.name => {
                let message = format!(
                    "app {app} is {}, and the release is one of {}",
                    state.name, manifest.name
                );
                return Err(refuse(Reason::WrongName, message));
            }
            None if self.list()?.len() >= MAX_APPS => {
                return Err(refuse(
                    Reason::Conflict,
                    format!("this hub has {MAX_APPS} apps already"),
                ));
            }
            _ => {}
        }
        let version = self.version(app, release);
        if fs::read(version.join("manifest.json"))
            .is_ok_and(|found| found == manifest_text.as_bytes())
        {
            return Ok(staged);
        }
        if state.as_ref().is_some_and(|state| state.needs(release)) {
            return Err(refuse(
                Reason::Conflict,
                format!("release {release} is in use with another manifest"),
            ));
        }
        if let Some(state) = &state {
            self.prune(app, state)?;
        }
        self.clear_staging()?;
        let filled = self.fill(&manifest, run, manifest_text, file);
        let placed =
            filled.and_then(|tree| self.put_in_place(app, &manifest.name, &tree, &version));
        // Staging is emptied whether or not that succeeded.
        self.clear_staging()?;
        placed.map(|()| staged)
    }

    /// Fills a release's directory in staging, and syncs it.
    fn fill(
        &self,
        manifest: &ReleaseManifest,
        run: &AppRun,
        manifest_text: &str,
        file: &Path,
    ) -> Result<PathBuf, Refusal> {
        let cannot = || internal("cannot unpack the app");
        let archive = self.root.join(STAGING).join("archive");
        release::copy_file(self.root, self.headroom, file, manifest, &archive, 0o600)?;
        let tree = self.root.join(STAGING).join("tree");
        let files = tree.join("files");
        durable::create_dir(&files).map_err(cannot())?;
        unpack::unpack(
            File::open(&archive).map_err(cannot())?,
            &files,
            self.headroom,
        )?;
        let entry_point = fs::symlink_metadata(files.join(&run.entry_point));
        if !entry_point
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        {
            return Err(unpack::refused(format!(
                "{} is not an executable file in it",
                run.entry_point
            )));
        }
        fs::write(tree.join("manifest.json"), manifest_text).map_err(cannot())?;
        durable::sync_tree(&tree).map_err(cannot())?;
        Ok(tree)
    }

    fn put_in_place(
        &self,
        app: AppUuid,
        name: &str,
        tree: &Path,
        version: &Path,
    ) -> Result<(), Refusal> {
        let cannot = || internal("cannot put the app in put_in_place");
        durable::create_dir(&self.dir(app).join("versions")).map_err(cannot())?;
        if self.state(app)?.is_none() {
            let state = State {
                name: name.to_owned(),
                active: None,
                committed: None,
                started: false,
                removing: false,
            };
            self.write(app, &state)?;
        }
        durable::rename(tree, version).map_err(cannot())
    }

    pub fn activate(&self, app: AppUuid, release: ReleaseUuid) -> Result<(), Refusal> {
        let not_staged = || {
            refuse(
                Reason::NotStaged,
                format!("release {release} of app {app} is not staged"),
            )
        };
        let mut state = self
            .state(app)?
            .filter(|state| !state.removing)
            .ok_or_else(not_staged)?;
        if !self.releases(app)?.contains(&release) {
            return Err(not_staged());
        }
        if state.committed != Some(release) {
            // A release with a higher counter may have been committed since this one was staged.
            counters::check(self.root, &self.manifest(app, release)?)?;
        }
        if state.active != Some(release) {
            state.active = Some(release);
            state.started = false;
            self.write(app, &state)?;
        }
        self.run(app, state)
    }

    pub fn roll_back(&self, app: AppUuid) -> Result<(), Refusal> {
        let Some(mut state) = self.state(app)? else {
            return self.remove(app);
        };
        if state.removing || state.committed.is_none() {
            return self.remove(app);
        }
        if state.active != state.committed {
            state.active = state.committed;
            state.started = false;
            self.write(app, &state)?;
        }
        let result = match state.started {
            true => Ok(()),
            false => self.run(app, state.clone()),
        };
        self.prune(app, &state)?;
        result
    }

    pub fn commit(&self, app: AppUuid) -> Result<(), Refusal> {
        let nothing = || {
            refuse(
                Reason::NotStaged,
                format!("app {app} has no active release"),
            )
        };
        let mut state = self
            .state(app)?
            .filter(|state| !state.removing)
            .ok_or_else(nothing)?;
        let active = state.active.ok_or_else(nothing)?;
        let manifest = self.manifest(app, active)?;
        if state.committed != Some(active) {
            counters::check(self.root, &manifest)?;
        }
        counters::raise(self.root, &manifest)?;
        state.committed = Some(active);
        self.write(app, &state)?;
        if self.apply(app, &state)? {
            self.systemd.reload()?;
        }
        self.prune(app, &state)
    }

    /// Removes an app, or what an earlier removal left of it.
    pub fn remove(&self, app: AppUuid) -> Result<(), Refusal> {
        let cannot = || internal(format!("cannot remove app {app}"));
        match self.state(app) {
            Ok(Some(state)) => {
                // The app may be what fills the disk. If this is interrupted, the next request
                // finishes it.
                if let Err(error) = self.write(
                    app,
                    &State {
                        removing: true,
                        ..state
                    },
                ) {
                    log(format_args!(
                        "app {app} is removed although its state cannot be written: {error}"
                    ));
                }
            }
            Ok(None) => {}
            Err(damaged) => log(damaged),
        }
        let unit = unit::file_name(app);
        self.systemd.stop(&unit)?;
        for directory in [STARTED_UNITS, UNITS] {
            durable::remove(&self.root.join(directory).join(&unit)).map_err(cannot())?;
        }
        self.systemd.forget(&unit)?;
        // The first is systemd's link to the second, which exists while the unit runs as a dynamic
        // user.
        for directory in ["var/lib", "var/lib/private"] {
            durable::remove(&self.root.join(directory).join(unit::name(app))).map_err(cannot())?;
        }
        self.discard(&self.dir(app))
    }

    pub fn states(&self) -> Result<AppStates, Refusal> {
        let mut apps = Vec::new();
        for app in self.list()? {
            match self.read_app(app) {
                Ok(Some(found)) => apps.push(found),
                Ok(None) => {}
                Err(error) => log(format_args!("app {app} is omitted: {error}")),
            }
        }
        if self.systemd.runs() {
            let active = apps.iter().filter(|app| app.active.is_some());
            let units: Vec<String> = active.map(|app| unit::file_name(app.app_uuid)).collect();
            let mut states = self.systemd.states(&units)?;
            for app in &mut apps {
                app.unit = states.remove(&unit::file_name(app.app_uuid));
            }
        }
        Ok(AppStates { apps })
    }

    fn read_app(&self, app: AppUuid) -> Result<Option<AppState>, Refusal> {
        let Some(state) = self.state(app)? else {
            return Ok(None);
        };
        let shown = |release: Option<ReleaseUuid>| -> Result<Option<AppRelease>, Refusal> {
            let Some(release_uuid) = release else {
                return Ok(None);
            };
            let manifest = self.manifest(app, release_uuid)?;
            let health_secs = run_of(&manifest)?.health_secs;
            Ok(Some(AppRelease {
                release_uuid,
                version: manifest.version,
                health_secs,
            }))
        };
        let mut staged = self.releases(app)?;
        staged.retain(|release| !state.needs(*release));
        Ok(Some(AppState {
            app_uuid: app,
            active: shown(state.active)?,
            committed: shown(state.committed)?,
            name: state.name,
            staged,
            unit: None,
        }))
    }

    /// Has systemd run the active release. If it runs already, it is left alone.
    fn run(&self, app: AppUuid, mut state: State) -> Result<(), Refusal> {
        let rewritten = self.apply(app, &state)?;
        if rewritten || !state.started {
            self.systemd.reload()?;
        }
        let unit = unit::file_name(app);
        if state.started {
            return self.systemd.start(&unit);
        }
        self.systemd.restart(&unit)?;
        state.started = true;
        self.write(app, &state)
    }

    /// Writes the unit and the links that the state requires. Returns whether the unit was changed.
    fn apply(&self, app: AppUuid, state: &State) -> Result<bool, Refusal> {
        let cannot = || internal(format!("cannot write the unit of app {app}"));
        let (units, started_units) = (self.root.join(UNITS), self.root.join(STARTED_UNITS));
        let file_name = unit::file_name(app);
        let mut rewritten = false;
        if let Some(active) = state.active {
            let manifest = self.manifest(app, active)?;
            let files = Path::new("/")
                .join(APPS)
                .join(app.to_string())
                .join("versions")
                .join(active.to_string());
            let text = unit::text(
                app,
                &manifest.name,
                &manifest.version,
                run_of(&manifest)?,
                &files.join("files"),
            );
            durable::create_dir(&started_units).map_err(cannot())?;
            rewritten = durable::replace(&units.join(&file_name), text.as_bytes(), 0o644)
                .map_err(cannot())?;
            let target = Path::new("/").join(UNITS).join(&file_name);
            durable::link(&started_units.join(&file_name), &target).map_err(cannot())?;
        }
        let previous = state
            .committed
            .filter(|committed| Some(*committed) != state.active);
        for (name, release) in [("current", state.active), ("previous", previous)] {
            let link = self.dir(app).join(name);
            match release {
                Some(release) => {
                    durable::link(&link, &Path::new("versions").join(release.to_string()))
                }
                None => durable::remove(&link),
            }
            .map_err(cannot())?;
        }
        Ok(rewritten)
    }

    /// Removes the releases that are neither active nor committed.
    fn prune(&self, app: AppUuid, state: &State) -> Result<(), Refusal> {
        for release in self.releases(app)? {
            if !state.needs(release) {
                self.discard(&self.version(app, release))?;
            }
        }
        Ok(())
    }

    /// Moves a directory away first, then removes it: half a release would look like a whole one.
    fn discard(&self, path: &Path) -> Result<(), Refusal> {
        let cannot = || internal(format!("cannot remove {}", path.display()));
        if !path.exists() {
            return Ok(());
        }
        self.clear_staging()?;
        let staging = self.root.join(STAGING).join("discarded");
        durable::rename(path, &staging).map_err(cannot())?;
        self.clear_staging()
    }

    fn clear_staging(&self) -> Result<(), Refusal> {
        let cannot = || internal("cannot clear the staging directory");
        let staging = self.root.join(STAGING);
        durable::create_dir(&self.root.join(APPS)).map_err(cannot())?;
        durable::remove(&staging).map_err(cannot())?;
        DirBuilder::new()
            .mode(0o700)
            .create(&staging)
            .map_err(cannot())
    }

    fn list(&self) -> Result<Vec<AppUuid>, Refusal> {
        let names =
            durable::names(&self.root.join(APPS)).map_err(internal("cannot list the apps"))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    fn releases(&self, app: AppUuid) -> Result<Vec<ReleaseUuid>, Refusal> {
        let names = durable::names(&self.dir(app).join("versions"))
            .map_err(internal("cannot list the releases"))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    fn dir(&self, app: AppUuid) -> PathBuf {
        self.root.join(APPS).join(app.to_string())
    }

    fn version(&self, app: AppUuid, release: ReleaseUuid) -> PathBuf {
        self.dir(app).join("versions").join(release.to_string())
    }

    fn manifest(&self, app: AppUuid, release: ReleaseUuid) -> Result<ReleaseManifest, Refusal> {
        read_manifest(&self.version(app, release))
    }

    fn state(&self, app: AppUuid) -> Result<Option<State>, Refusal> {
        let path = self.dir(app).join("state.json");
        match fs::read(&path) {
            Ok(json) => serde_json::from_slice(&json).map(Some).map_err(|error| {
                refuse(
                    Reason::Internal,
                    format!("{} is damaged: {error}; remove the app", path.display()),
                )
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(internal(format!("cannot read {}", path.display()))(error)),
        }
    }

    fn write(&self, app: AppUuid, state: &State) -> Result<(), Refusal> {
        let json = serde_json::to_vec(state).map_err(|error| refuse(Reason::Internal, error))?;
        durable::replace(&self.dir(app).join("state.json"), &json, 0o644)
            .map(drop)
            .map_err(internal(format!("cannot write the state of app {app}")))
    }
}

/// The manifest of an installed release. It was verified before the installation.
pub fn read_manifest(version: &Path) -> Result<ReleaseManifest, Refusal> {
    let path = version.join("manifest.json");
    let text = fs::read(&path).map_err(internal(format!("cannot read {}", path.display())))?;
    hub_protocol::release::parse(&text).map_err(|error| {
        refuse(
            Reason::Internal,
            format!("{} is damaged: {error}", path.display()),
        )
    })
}

fn run_of(manifest: &ReleaseManifest) -> Result<&AppRun, Refusal> {
    manifest.app.as_ref().ok_or_else(|| {
        refuse(
            Reason::WrongKind,
            "the manifest has no instructions to run the app",
        )
    })
}
