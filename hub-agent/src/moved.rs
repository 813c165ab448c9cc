//! Which service this hub belongs to: the configured one, or the one that a job moved it to. The
//! configuration is not the agent's to write, so the service that was moved to is in a file of the
//! state directory, which is in force as long as the configuration still names the service that the
//! hub was moved from.
//!
//! A move that was claimed is on disk as one file, with the credentials of the next service, before
//! anything else is changed: a kill at any moment leaves the hub at the service before, which gets
//! the outcome, or at the next one.

use std::io;
use std::path::Path;

use hub_agent::durable;
use hub_protocol::HubJobUuid;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config;
use crate::identity::{CREDENTIALS_FILE, Credentials, CredentialsFile};
use crate::set_aside;

pub const FILE: &str = "service.json";
const NEXT_FILE: &str = "next-service.json";

/// Files of the service before, which the next one has no use for.
const OF_SERVICE: [&str; 2] = ["client-certificate.json", "client-certificate.key"];

/// The file's content.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ServiceFile {
    /// What the configuration named then.
    configured: String,
    moved: String,
}

/// The service that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    pub url: Url,
    /// The configured one, if the hub was moved from it.
    pub moved_from: Option<Url>,
    /// The one that a job moved the hub to, if the configuration was changed since.
    pub overruled: Option<String>,
}

/// The service in force while the configuration names `configured`. A file that cannot be read
/// changes nothing: commands beside the agent may not be allowed to.
pub fn in_force(state_dir: &Path, configured: Url) -> InForce {
    let file = std::fs::read(state_dir.join(FILE)).ok();
    let file = file.and_then(|bytes| serde_json::from_slice::<ServiceFile>(&bytes).ok());
    let configured_alone = |overruled| InForce {
        url: configured.clone(),
        moved_from: None,
        overruled,
    };
    let Some(file) = file else {
        return configured_alone(None);
    };
    if file.configured != configured.as_str() {
        let is_other = file.moved != configured.as_str();
        return configured_alone(is_other.then_some(file.moved));
    }
    match config::parse_service_url(&file.moved) {
        Ok(url) if url != configured => InForce {
            url,
            moved_from: Some(configured),
            overruled: None,
        },
        _ => configured_alone(None),
    }
}

/// A move whose claim the next service has accepted.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NextService {
    pub hub_job_uuid: HubJobUuid,
    /// Identifies the report to the service before, however often it is sent.
    pub event_uuid: Uuid,
    configured: String,
    pub service_url: String,
    credentials: CredentialsFile,
}

impl NextService {
    pub fn new(
        hub_job_uuid: HubJobUuid,
        configured: &Url,
        service_url: &Url,
        credentials: &Credentials,
    ) -> Self {
        Self {
            hub_job_uuid,
            event_uuid: Uuid::now_v7(),
            configured: configured.to_string(),
            service_url: service_url.to_string(),
            credentials: CredentialsFile::from(credentials),
        }
    }

    /// The file's name and content.
    pub fn to_file(&self) -> io::Result<(&'static str, Vec<u8>)> {
        Ok((NEXT_FILE, serde_json::to_vec_pretty(self)?))
    }
}

/// The move that was claimed and is not in force yet.
pub fn next(state_dir: &Path) -> io::Result<Option<NextService>> {
    set_aside::read(state_dir, NEXT_FILE, |bytes| {
        // The parser's own message could quote a token.
        serde_json::from_slice(bytes).map_err(|error| format!("line {}", error.line()))
    })
}

/// Puts the move into force that was claimed. It can be repeated after a kill.
pub fn put_in_force(state_dir: &Path) -> io::Result<()> {
    let Some(next) = next(state_dir)? else {
        return Ok(());
    };
    let file = ServiceFile {
        configured: next.configured,
        moved: next.service_url,
    };
    durable::replace(state_dir, FILE, &serde_json::to_vec_pretty(&file)?)?;
    let credentials = serde_json::to_vec_pretty(&next.credentials)?;
    durable::replace(state_dir, CREDENTIALS_FILE, &credentials)?;
    for name in OF_SERVICE {
        durable::remove(&state_dir.join(name))?;
    }
    drop_next(state_dir)
}

/// Drops the move that was claimed: the hub stays where it is.
pub fn drop_next(state_dir: &Path) -> io::Result<()> {
    durable::remove(&state_dir.join(NEXT_FILE))
}

/// Finishes or drops what an earlier run has left. Called at the start, before any task runs.
/// Returns whether a move waits for its report to the service before.
pub fn resume(state_dir: &Path, configured: &Url) -> io::Result<bool> {
    let Some(next) = next(state_dir)? else {
        return Ok(false);
    };
    if next.configured != configured.as_str() {
        tracing::warn!(
            service = next.service_url,
            "the configuration names another service than before the hub was moved; the move is dropped"
        );
        drop_next(state_dir)?;
        return Ok(false);
    }
    let is_begun = in_force(state_dir, configured.clone()).url.as_str() == next.service_url;
    if is_begun {
        put_in_force(state_dir)?;
    }
    Ok(!is_begun)
}

/// Whether credentials of the service at `stored` may be shown to the one at `url`: the same host
/// and path, and not without TLS if it was with TLS.
pub fn is_same_service(stored: &str, url: &Url) -> bool {
    let Ok(stored) = config::parse_service_url(stored) else {
        return false;
    };
    let place = |url: &Url| {
        let host = url.host_str().unwrap_or_default().to_owned();
        (host, url.port(), url.path().to_owned())
    };
    place(&stored) == place(url) && (stored.scheme() == url.scheme() || url.scheme() == "https")
}

#[cfg(test)]
mod tests {
    use hub_protocol::claim::HubCredentials;
    use hub_protocol::{HubUuid, TenantUuid, Timestamp};
    use secrecy::ExposeSecret;

    use super::*;
    use crate::identity::StateDir;

    fn url(text: &str) -> Url {
        config::parse_service_url(text).unwrap()
    }

    /// A state directory with a move from `old` that was claimed.
    fn claimed(dir: &Path, old: &Url, new: &Url) {
        let credentials = Credentials::issued(
            HubCredentials {
                hub_uuid: HubUuid::new(),
                tenant_uuid: TenantUuid::new(),
                access_token: "access".into(),
                refresh_token: "refresh".into(),
                expires_at: Timestamp::from_micros(1),
            },
            new,
        );
        let next = NextService::new(HubJobUuid::new(), old, new, &credentials);
        let (name, content) = next.to_file().unwrap();
        durable::replace(dir, name, &content).unwrap();
    }

    #[test]
    fn a_move_is_in_force_until_the_configuration_is_changed() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (url("https://old.example"), url("https://new.example"));
        assert_eq!(in_force(dir.path(), old.clone()).url, old);
        claimed(dir.path(), &old, &new);
        assert!(resume(dir.path(), &old).unwrap(), "it is to be reported");
        assert_eq!(in_force(dir.path(), old.clone()).url, old);
        put_in_force(dir.path()).unwrap();
        let found = in_force(dir.path(), old.clone());
        assert_eq!((found.url, found.moved_from), (new.clone(), Some(old)));
        let other = url("https://other.example");
        let found = in_force(dir.path(), other.clone());
        assert_eq!(
            (found.url, found.overruled),
            (other, Some(new.to_string())),
            "the configuration wins"
        );
        let found = in_force(dir.path(), new.clone());
        assert_eq!((found.url, found.overruled), (new.clone(), None));
        let state = StateDir::open(dir.path()).unwrap();
        let credentials = state.load_credentials().unwrap().unwrap();
        assert_eq!(credentials.refresh_token.expose_secret(), "refresh");
        assert_eq!(credentials.service_url.as_deref(), Some(new.as_str()));
    }

    #[test]
    fn a_move_that_was_interrupted_while_it_came_into_force_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (url("https://old.example"), url("https://new.example"));
        claimed(dir.path(), &old, &new);
        let kept = std::fs::read(dir.path().join(NEXT_FILE)).unwrap();
        put_in_force(dir.path()).unwrap();
        std::fs::write(dir.path().join(NEXT_FILE), kept).unwrap();
        std::fs::remove_file(dir.path().join(CREDENTIALS_FILE)).unwrap();
        assert!(!resume(dir.path(), &old).unwrap());
        assert!(dir.path().join(CREDENTIALS_FILE).exists());
        assert!(!dir.path().join(NEXT_FILE).exists());
    }

    #[test]
    fn a_changed_configuration_drops_a_move_that_is_not_in_force() {
        let dir = tempfile::tempdir().unwrap();
        claimed(
            dir.path(),
            &url("https://old.example"),
            &url("https://new.example"),
        );
        assert!(!resume(dir.path(), &url("https://other.example")).unwrap());
        assert!(!dir.path().join(NEXT_FILE).exists());
    }

    #[test]
    fn credentials_are_shown_to_their_own_service_alone() {
        let stored = "http://hubs.example.com/";
        assert!(is_same_service(stored, &url("http://hubs.example.com")));
        assert!(is_same_service(stored, &url("https://hubs.example.com")));
        assert!(!is_same_service(
            "https://hubs.example.com/",
            &url("http://hubs.example.com")
        ));
        for other in [
            "https://hubs.example.org",
            "https://hubs.example.com:8443",
            "https://hubs.example.com/eu",
        ] {
            assert!(!is_same_service(stored, &url(other)), "{other}");
        }
    }
}
