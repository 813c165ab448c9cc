//! The evidence about a vulnerability: which hub had what of it when, the jobs that changed it, and
//! who stated what, or changed an advisory of the tenant. It is read page by page while it is sent,
//! as of the time at which it began. The last line is signed and has the SHA-256 of those before
//! it: what was cut off is no evidence.

mod history;
pub mod http;
mod lines;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::{BufMut, Bytes, BytesMut};
use hub_base::budget::Held;
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_identity::authn::{self, Authn, keys};
use hub_identity::authz::Scope;
use hub_people::audit_logs::{self, Change};
use hub_people::tenants;
use hub_protocol::{AppUuid, HubUuid, Timestamp};
use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub use history::Ran;
use history::{Exposure, Finding, History, Versions};
use lines::{Claims, Head, Line, Signature};

use super::matching::sources_of;
use super::own;
use super::store::evidence::{self as store, After, Job};
use super::store::{self as vulnerabilities, Listed, VulnerabilitySource};
use super::view::AffectedPackage;
use crate::software::{self, ListKey};
use crate::{feeds, feeds::Exploited};

/// The audience of the signature, so that it is not taken for a token.
const AUDIENCE: &str = "hub-cloud/vulnerability-evidence";
/// The form of the lines.
const FORMAT: &str = "hub-cloud/vulnerability-evidence/1";
/// Rows that are read at once.
const PAGE: i64 = 500;
/// Hubs whose jobs are read at once.
const HUBS: usize = 100;
/// Lists of packages whose versions are remembered.
const LISTS: usize = 1000;
/// Before all entries of the audit log.
const START: (Timestamp, i64) = (Timestamp::from_micros(0), 0);

/// The next part to send.
enum Section {
    Head,
    /// The changes of an advisory of the tenant.
    Changes {
        after: (Timestamp, i64),
    },
    Statements {
        after: (Timestamp, i64),
    },
    /// Hubs by what they report to run of the tenant's apps.
    Own,
    Hubs {
        after: After<Timestamp>,
    },
    /// Hubs by the components of releases that they had.
    Releases {
        after: After<(AppUuid, Timestamp)>,
    },
    Jobs {
        first: usize,
        after: After<i64>,
    },
    Signature,
}

/// Evidence that is being sent.
pub struct Evidence {
    core: Core,
    authn: Authn,
    scope: Scope,
    listed: Listed,
    exploited: Option<Exploited>,
    /// What of each list is affected.
    affected: HashMap<Vec<u8>, BTreeSet<AffectedPackage>>,
    /// Names of packages that are affected.
    names: BTreeSet<String>,
    as_of: Timestamp,
    section: Option<Section>,
    /// The hub whose reports are being read.
    history: Option<History>,
    /// The hubs that had something of it, and since when.
    exposed: BTreeMap<HubUuid, Timestamp>,
    /// Versions of affected packages that lists have.
    versions: HashMap<Vec<u8>, Versions>,
    sha256: Sha256,
    lines: u64,
    bytes: u64,
    /// The memory that limits the number of concurrent statements.
    _held: Held,
}

impl Evidence {
    /// Fails with 404 if the tenant does not have the vulnerability.
    pub async fn begin(
        core: Core,
        authn: Authn,
        scope: Scope,
        vulnerability_id: &str,
        held: Held,
    ) -> Result<Self> {
        let mut conn = core.db.read().await?;
        let listed = vulnerabilities::get(&mut conn, &scope, vulnerability_id).await?;
        let listed = listed.ok_or_else(|| Error::not_found("vulnerability"))?;
        let exploited = feeds::exploited_one(&mut conn, vulnerability_id).await?;
        let ids = [vulnerability_id.to_owned()];
        let mut affected: HashMap<Vec<u8>, BTreeSet<AffectedPackage>> = HashMap::new();
        let mut names = BTreeSet::new();
        for one in vulnerabilities::affected(&mut conn, &scope, &ids).await? {
            names.insert(one.exposure.package.clone());
            let of = affected.entry(one.list_sha256).or_default();
            of.insert((&one.exposure).into());
        }
        drop(conn);
        let as_of = core.clock.now();
        Ok(Self {
            core,
            authn,
            scope,
            listed,
            exploited,
            affected,
            names,
            as_of,
            section: Some(Section::Head),
            history: None,
            exposed: BTreeMap::new(),
            versions: HashMap::new(),
            sha256: Sha256::new(),
            lines: 0,
            bytes: 0,
            _held: held,
        })
    }

    /// The next lines; None at the end. They may be empty.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(section) = self.section.take() else {
            return Ok(None);
        };
        let mut text = BytesMut::new();
        self.section = match section {
            Section::Head => {
                self.head(&mut text).await?;
                Some(match self.listed.source {
                    VulnerabilitySource::Own => Section::Changes { after: START },
                    VulnerabilitySource::Feed => Section::Statements { after: START },
                })
            }
            Section::Changes { after } => Some(self.changes(&mut text, after).await?),
            Section::Statements { after } => Some(self.statements(&mut text, after).await?),
            Section::Own => Some(self.own(&mut text).await?),
            Section::Hubs { after } => Some(self.hubs(&mut text, after).await?),
            Section::Releases { after } => Some(self.releases(&mut text, after).await?),
            Section::Jobs { first, after } => Some(self.jobs(&mut text, first, after).await?),
            Section::Signature => {
                let jws = self.sign().await?;
                self.line(&mut text, "signature", &Signature { jws })?;
                None
            }
        };
        self.sha256.update(&text);
        self.bytes += text.len() as u64;
        Ok(Some(text.freeze()))
    }

    async fn head(&mut self, text: &mut BytesMut) -> Result<()> {
        let mut conn = self.core.db.read().await?;
        let tenant = tenants::name(&mut conn, self.scope.tenant_uuid()).await?;
        drop(conn);
        let listed = self.listed.clone();
        let exploited_since = self.exploited.as_ref().map(|known| known.added_on.clone());
        let head = Head {
            format: FORMAT,
            vulnerability_id: &listed.vulnerability_id,
            title: &listed.title,
            severity: listed.severity(),
            exploited_since: exploited_since.as_deref(),
            first_seen_at: listed.first_seen_at,
            tenant_uuid: self.scope.tenant_uuid().to_string(),
            tenant: tenant.unwrap_or_default(),
            as_of: self.as_of,
        };
        self.line(text, "head", &head)
    }

    /// Changes of the vulnerability by these actions, which the audit log has.
    async fn logged(&self, actions: &[&str], after: (Timestamp, i64)) -> Result<Vec<Change>> {
        let mut conn = self.core.db.read().await?;
        let id = &self.listed.vulnerability_id;
        audit_logs::changes_of(&mut conn, &self.scope, actions, id, after, PAGE).await
    }

    async fn changes(&mut self, text: &mut BytesMut, after: (Timestamp, i64)) -> Result<Section> {
        let changes = self.logged(&own::CHANGES, after).await?;
        for change in &changes {
            self.line(text, "advisory", change)?;
        }
        Ok(match changes.last() {
            Some(last) if is_full(&changes) => Section::Changes {
                after: (last.created_at, last.audit_log_id),
            },
            _ => Section::Statements { after: START },
        })
    }

    async fn statements(
        &mut self,
        text: &mut BytesMut,
        after: (Timestamp, i64),
    ) -> Result<Section> {
        let changes = self.logged(&[super::statements::SET], after).await?;
        for change in &changes {
            self.line(text, "statement", change)?;
        }
        Ok(match changes.last() {
            Some(last) if is_full(&changes) => Section::Statements {
                after: (last.created_at, last.audit_log_id),
            },
            _ if self.listed.source == VulnerabilitySource::Own => Section::Own,
            _ => Section::Hubs {
                after: After {
                    hub_uuid: HubUuid(Uuid::nil()),
                    row: Timestamp::from_micros(0),
                },
            },
        })
    }

    /// An advisory of the tenant affects releases of its apps, of which hubs report what they run
    /// now. What they ran before is in their jobs.
    async fn own(&mut self, text: &mut BytesMut) -> Result<Section> {
        let mut conn = self.core.db.read().await?;
        let id = self.listed.vulnerability_id.clone();
        let advisory = own::get(&mut conn, &self.scope, &id).await?;
        let running = own::Running::read(&mut conn, &self.scope, &[&advisory]).await?;
        drop(conn);
        for (hub_uuid, hub) in running.exposed(&advisory)? {
            for package in &hub.packages {
                let exposure = Exposure::new(hub_uuid, package, hub.since, None);
                self.line(text, "exposure", &exposure)?;
            }
        }
        for installed in running.hubs() {
            self.exposed.insert(installed, advisory.created_at);
        }
        Ok(jobs_from(0))
    }

    async fn hubs(&mut self, text: &mut BytesMut, after: After<Timestamp>) -> Result<Section> {
        let mut conn = self.core.db.read().await?;
        let page = store::ran(&mut conn, &self.scope, after, self.as_of, PAGE).await?;
        for ran in &page {
            if self.history.as_ref().map(History::hub_uuid) != Some(ran.hub_uuid) {
                let before = self.history.replace(History::new(ran.hub_uuid));
                let findings = before.map(History::finish).unwrap_or_default();
                self.findings(text, &findings)?;
            }
            let findings = self.report(&mut conn, ran).await?;
            self.findings(text, &findings)?;
        }
        drop(conn);
        Ok(match page.last() {
            Some(last) if is_full(&page) => Section::Hubs {
                after: After {
                    hub_uuid: last.hub_uuid,
                    row: last.began_at,
                },
            },
            _ => {
                let findings = self.history.take().map(History::finish);
                self.findings(text, &findings.unwrap_or_default())?;
                Section::Releases {
                    after: After {
                        hub_uuid: HubUuid(Uuid::nil()),
                        row: (AppUuid(Uuid::nil()), Timestamp::from_micros(0)),
                    },
                }
            }
        })
    }

    async fn releases(
        &mut self,
        text: &mut BytesMut,
        after: After<(AppUuid, Timestamp)>,
    ) -> Result<Section> {
        let mut conn = self.core.db.read().await?;
        let page = store::releases(&mut conn, &self.scope, after, self.as_of, PAGE).await?;
        drop(conn);
        for had in &page {
            let Some(packages) = self.affected.get(&had.list_sha256).cloned() else {
                continue;
            };
            let since = self.exposed.entry(had.hub_uuid).or_insert(had.began_at);
            *since = had.began_at.min(*since);
            let until = had.ended_at.filter(|ended_at| *ended_at <= self.as_of);
            for package in &packages {
                let exposure = Exposure::new(had.hub_uuid, package, had.began_at, until);
                self.line(text, "exposure", &exposure)?;
            }
        }
        Ok(match page.last() {
            Some(last) if is_full(&page) => Section::Releases {
                after: After {
                    hub_uuid: last.hub_uuid,
                    row: (last.app_uuid, last.began_at),
                },
            },
            _ => jobs_from(0),
        })
    }

    /// What follows from the next report of the hub.
    async fn report(&mut self, conn: &mut Conn, ran: &Ran) -> Result<Vec<Finding>> {
        let none = BTreeSet::new();
        let Some(mut history) = self.history.take() else {
            return Ok(Vec::new());
        };
        // What ended after the time of the statement had not ended at it.
        let ran = Ran {
            ended_at: ran.ended_at.filter(|ended_at| *ended_at <= self.as_of),
            ..ran.clone()
        };
        let affected = self.affected.get(&ran.list_sha256).unwrap_or(&none);
        if !affected.is_empty() {
            self.exposed.entry(ran.hub_uuid).or_insert(ran.began_at);
        }
        let versions = match history.ends(affected) {
            true => versions_of(
                conn,
                &self.scope,
                &self.names,
                &mut self.versions,
                &ran.list_sha256,
            )
            .await?
            .clone(),
            false => Versions::new(),
        };
        let findings = history.add(&ran, affected, &versions);
        self.history = Some(history);
        Ok(findings)
    }

    fn findings(&mut self, text: &mut BytesMut, findings: &[Finding]) -> Result<()> {
        for finding in findings {
            match finding {
                Finding::Exposure(exposure) => self.line(text, "exposure", exposure)?,
                Finding::Fixed(fixed) => self.line(text, "fixed", fixed)?,
            }
        }
        Ok(())
    }

    async fn jobs(
        &mut self,
        text: &mut BytesMut,
        first: usize,
        after: After<i64>,
    ) -> Result<Section> {
        let hubs: Vec<HubUuid> = self
            .exposed
            .keys()
            .skip(first)
            .take(HUBS)
            .copied()
            .collect();
        if hubs.is_empty() {
            return Ok(Section::Signature);
        }
        let mut conn = self.core.db.read().await?;
        let page = store::jobs(&mut conn, &self.scope, &hubs, after, self.as_of, PAGE).await?;
        drop(conn);
        for job in &page {
            // A job that was over before the hub was exposed has changed nothing of it.
            if self
                .exposed
                .get(&job.hub_uuid)
                .is_some_and(|since| is_since(job, *since))
            {
                self.line(text, "job", job)?;
            }
        }
        Ok(match page.last() {
            Some(last) if is_full(&page) => Section::Jobs {
                first,
                after: After {
                    hub_uuid: last.hub_uuid,
                    row: last.revision,
                },
            },
            _ => jobs_from(first + HUBS),
        })
    }

    async fn sign(&self) -> Result<String> {
        let now = self.core.clock.now();
        let claims = Claims {
            iss: authn::ISSUER,
            aud: AUDIENCE,
            sub: self.scope.tenant_uuid().to_string(),
            iat: now.as_secs(),
            vulnerability_id: &self.listed.vulnerability_id,
            as_of: self.as_of,
            lines: self.lines,
            bytes: self.bytes,
            sha256: hex::encode(self.sha256.clone().finalize()),
        };
        let jws = self.authn.keys.sign(&claims, now)?;
        let mut tx = self.core.db.begin().await?;
        keys::keep_for_receipts(&mut tx, &jws).await?;
        tx.commit_unaudited("keeps the key of what was signed")
            .await?;
        Ok(jws)
    }

    fn line<T: Serialize>(
        &mut self,
        text: &mut BytesMut,
        kind: &'static str,
        data: &T,
    ) -> Result<()> {
        serde_json::to_writer((&mut *text).writer(), &Line { kind, data })
            .map_err(Error::internal)?;
        text.put_u8(b'\n');
        self.lines += 1;
        Ok(())
    }
}

/// The versions of the named packages that a list has. They are read once, as long as there is
/// room.
async fn versions_of<'a>(
    conn: &mut Conn,
    scope: &Scope,
    names: &BTreeSet<String>,
    known: &'a mut HashMap<Vec<u8>, Versions>,
    list_sha256: &[u8],
) -> Result<&'a Versions> {
    if !known.contains_key(list_sha256) {
        let key = ListKey {
            tenant_uuid: scope.tenant_uuid(),
            list_sha256: list_sha256.to_vec(),
        };
        let mut versions = Versions::new();
        if let Some(packed) = software::stored(conn, &key).await? {
            let sources = move || packed.packages().map(|list| sources_of(&list));
            let sources = tokio::task::spawn_blocking(sources);
            versions = sources.await.map_err(Error::internal)??;
            versions.retain(|name, _| names.contains(name));
        }
        if known.len() >= LISTS {
            known.clear();
        }
        known.insert(key.list_sha256, versions);
    }
    known
        .get(list_sha256)
        .ok_or_else(|| Error::internal("the versions of a list are missing"))
}

fn is_since(job: &Job, since: Timestamp) -> bool {
    job.finished_at
        .is_none_or(|finished_at| finished_at >= since)
}

const fn jobs_from(first: usize) -> Section {
    Section::Jobs {
        first,
        after: After {
            hub_uuid: HubUuid(Uuid::nil()),
            row: 0,
        },
    }
}

fn is_full<T>(page: &[T]) -> bool {
    i64::try_from(page.len()).unwrap_or(i64::MAX) >= PAGE
}
