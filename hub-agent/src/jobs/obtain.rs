//! How a release comes here: what the service offers is held against the hub's keys, then its file is fetched, over a bad line piece by piece.
//! Whoever cannot be reached is waited for; a store that answers and never gives the file ends the job.

use std::time::Duration;

use hub_protocol::job::DesiredJob;
use hub_protocol::release::{self, ReleaseManifest, ReleaseOffer};
use reqwest::Url;
use tokio::sync::watch;

use super::download::{Cut, PartFile};
use super::engine::Worker;
use super::{Failed, Trouble, reason};
use crate::backoff::Backoff;

/// Of a hundred: what has come of a job when its file is here.
const DOWNLOADED_PERCENT: i64 = 70;
/// Downloads are told of in steps this large: each is an upload of its own.
const DOWNLOAD_STEP_PERCENT: i64 = 10;

/// Files of the wrong content before the release is given up.
const MAX_WRONG_CONTENTS: u32 = 3;
/// Answers in a row that brought nothing more of the file, before it is given up.
const MAX_IN_VAIN: u32 = 10;

/// The digest a manifest names, trusted or not.
pub fn sha256_of(offer: &ReleaseOffer) -> Option<String> {
    release::parse(offer.manifest.as_bytes()).ok().map(|manifest| manifest.sha256)
}

/// How it went so far.
#[derive(Debug, Default)]
pub struct Attempts {
    /// The file has yet to come.
    pub under_way: bool,
    /// What was in the way last.
    pub last: Option<String>,
    in_vain: u32,
    wrong_contents: u32,
}

impl Attempts {
    /// Whether the job is to end after this one.
    fn ended(&mut self, cut: &Cut, came_further: bool) -> Option<Failed> {
        if came_further {
            self.in_vain = 0;
        }
        match cut {
            Cut::Fatal(failed) => Some(failed.clone()),
            // Outages end, if not before the deadline.
            Cut::Unreachable(_) => None,
            Cut::Again(message) | Cut::StaleUrl(message) => {
                self.in_vain += u32::from(!came_further);
                (self.in_vain >= MAX_IN_VAIN).then(|| Failed {
                    reason: reason::DOWNLOAD_FAILED,
                    message: format!("{MAX_IN_VAIN} times in a row nothing more of the file came: {message}"),
                })
            }
            Cut::WrongContent(message) => {
                self.wrong_contents += 1;
                (self.wrong_contents >= MAX_WRONG_CONTENTS).then(|| Failed {
                    reason: reason::DIGEST_MISMATCH,
                    message: format!("{MAX_WRONG_CONTENTS} times the file was not the one of the manifest: {message}"),
                })
            }
        }
    }
}

impl Worker {
    /// The job's release, trusted, as the service offered it: now, or before the agent started again.
    pub async fn offered(&mut self, job: &DesiredJob) -> Result<(ReleaseOffer, ReleaseManifest), Trouble> {
        self.attempts.under_way = true;
        let known = self.ledger.current().and_then(|current| current.offer.clone());
        let is_fresh = |offer: &ReleaseOffer| offer.download_url_expires_at > self.jobs.clock.now();
        let offer = match known.clone().filter(is_fresh) {
            Some(offer) => offer,
            None => super::release::ask(&self.jobs.service, job).await?,
        };
        let manifest = super::release::trust(&offer, job, &self.jobs.config.release_keys)?;
        if let Some(failed) = self.ledger.kept().failed_releases.get(&manifest.sha256)
            && !job.force
        {
            let message = format!(
                "version {} failed on this hub before ({}: {}), and the job does not say force",
                manifest.version, failed.reason, failed.message
            );
            return Err(Trouble::fatal(reason::FAILED_BEFORE, message));
        }
        if known.as_ref() != Some(&offer) {
            let trusted = Some(offer.clone());
            self.ledger
                .change(|kept| kept.current.iter_mut().for_each(|current| current.offer = trusted.clone()))
                .await;
        }
        Ok((offer, manifest))
    }

    /// Brings the release's file here. Outages are waited for until the job is given up.
    pub async fn obtain(&mut self, job: &DesiredJob) -> Result<(ReleaseOffer, PartFile), Trouble> {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
        loop {
            let (offer, manifest) = self.offered(job).await?;
            let disk = |error: std::io::Error| Trouble::Later(format!("the download cannot be written: {error}"));
            let part = PartFile::new(self.jobs.state_dir.path(), &manifest).map_err(disk)?;
            part.remove_others().map_err(disk)?;
            part.check_room(self.jobs.config.headroom_bytes)?;
            let had_bytes = part.have_bytes();
            let fetched = self.fetch(&offer, &manifest, &part).await;
            let came_further = part.have_bytes() > had_bytes;
            if came_further {
                backoff.reset();
            }
            let cut = match fetched {
                Ok(()) if part.is_right().await.map_err(disk)? => {
                    self.ledger.trouble(None);
                    self.attempts.under_way = false;
                    return Ok((offer, part));
                }
                Ok(()) => Cut::WrongContent("its digest is not the manifest's".to_owned()),
                Err(cut) => cut,
            };
            if let Some(failed) = self.attempts.ended(&cut, came_further) {
                part.discard().map_err(disk)?;
                return Err(Trouble::Fatal(failed));
            }
            if matches!(cut, Cut::WrongContent(_)) {
                part.discard().map_err(disk)?;
            }
            if matches!(cut, Cut::StaleUrl(_) | Cut::WrongContent(_)) {
                self.forget_offer().await;
            }
            self.is_in_the_way(cut.into_message());
            tokio::time::sleep(backoff.next(None)).await;
        }
    }

    /// Notes why a job does not get on.
    pub fn is_in_the_way(&mut self, message: String) {
        tracing::debug!(why = message, "a job waits");
        self.ledger.trouble(Some(&message));
        self.attempts.last = Some(message);
    }

    /// One request for what is missing of the file, telling how far it is.
    async fn fetch(&mut self, offer: &ReleaseOffer, manifest: &ReleaseManifest, part: &PartFile) -> Result<(), Cut> {
        let service = self.jobs.service.clone();
        let url = place(service.url(), &offer.download_url).map_err(Cut::StaleUrl)?;
        let http = service.download_client(&url).map_err(|error| Cut::Again(error.to_string()))?;
        let (bytes, mut seen) = watch::channel(part.have_bytes());
        let fetching = part.fetch(&http, url, service.request_timeout, &bytes);
        tokio::pin!(fetching);
        loop {
            tokio::select! {
                ended = &mut fetching => return ended,
                _ = seen.changed() => {
                    let bytes = *seen.borrow_and_update();
                    let share = u128::from(bytes) * DOWNLOADED_PERCENT.unsigned_abs() as u128 / u128::from(manifest.size_bytes.max(1));
                    let percent = i64::try_from(share).unwrap_or(0);
                    let told = self.ledger.current().map_or(0, |current| current.progress);
                    if percent >= told + DOWNLOAD_STEP_PERCENT {
                        let message = format!("{bytes} of {} bytes downloaded", manifest.size_bytes);
                        self.ledger.change(|kept| kept.progress(percent, &message)).await;
                        self.tell().await;
                    }
                }
            }
        }
    }

    async fn forget_offer(&mut self) {
        self.ledger.change(|kept| kept.current.iter_mut().for_each(|current| current.offer = None)).await;
    }
}

/// Where a file is: a path of the service, or another store's URL.
fn place(service: &Url, download_url: &str) -> Result<Url, String> {
    let joined = match download_url.strip_prefix('/') {
        Some(path) => service.join(path),
        None => Url::parse(download_url),
    };
    let url = joined.map_err(|error| format!("the download's URL is none: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("the download's URL is neither https nor http".to_owned());
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_gives_nothing_ends_the_job_and_an_outage_does_not() {
        let mut attempts = Attempts::default();
        let (cut, stale) = (Cut::Again("cut".into()), Cut::StaleUrl("gone".into()));
        for _ in 0..MAX_IN_VAIN - 1 {
            assert_eq!(attempts.ended(&cut, false), None);
        }
        for _ in 0..1_000 {
            assert_eq!(attempts.ended(&Cut::Unreachable("nobody".into()), false), None);
        }
        assert_eq!(attempts.ended(&cut, true), None, "it came further");
        for _ in 0..MAX_IN_VAIN - 1 {
            assert_eq!(attempts.ended(&stale, false), None);
        }
        let failed = attempts.ended(&stale, false).unwrap();
        assert_eq!(failed.reason, reason::DOWNLOAD_FAILED);
        assert!(failed.message.contains("gone"), "{failed:?}");
    }
}
