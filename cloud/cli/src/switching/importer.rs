//! An import, or the plan of one: what it creates, and under which ids.

use std::collections::BTreeMap;
use std::path::Path;

use hub_client::{Call, Client, Error};
use hub_protocol::TenantUuid;
use serde_json::Value;

use super::journal::Journal;
use super::report::Report;
use crate::failure::Failure;
use crate::terminal::note;

/// Objects after which the progress is shown.
const PROGRESS: u64 = 100;

pub struct Import<'a> {
    pub client: Client,
    pub directory: &'a Path,
    /// The tenant that is imported into.
    pub tenant_uuid: TenantUuid,
    /// A plan creates nothing.
    pub is_plan: bool,
    pub makes_claim_codes: bool,
    pub journal: Journal,
    pub report: Report,
    /// Hubs and devices here, by their ids in the export. In a plan, a device that will be created
    /// has its old id.
    pub hubs: BTreeMap<String, String>,
    pub devices: BTreeMap<i64, i64>,
    /// Releases here, as the above. In a plan, one that will be published has its old id.
    pub releases: BTreeMap<String, String>,
}

impl Import<'_> {
    /// Creates an object, and returns it. In a plan it is only counted.
    pub async fn create(
        &mut self,
        kind: &'static str,
        title: &str,
        key: &str,
        call: Call,
    ) -> Result<Option<Value>, Failure> {
        if self.is_plan {
            self.report.created(kind);
            return Ok(None);
        }
        self.journal.begin(key)?;
        let made = self.send(kind, title, call).await?;
        if made.is_some() {
            self.created(kind);
        }
        Ok(made)
    }

    /// Counts an object, and shows the progress.
    pub fn created(&mut self, kind: &'static str) {
        self.report.created(kind);
        let number = self.report.number_created();
        if number.is_multiple_of(PROGRESS) {
            note(&format!("{number} objects are created ..."));
        }
    }

    /// Sends a call that changes something. A refusal is reported, and the import goes on.
    pub async fn send(
        &mut self,
        kind: &str,
        title: &str,
        call: Call,
    ) -> Result<Option<Value>, Failure> {
        match self.client.call::<Value>(call).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => self.refused(kind, title, error).map(|()| None),
        }
    }

    /// Reports a refusal. What may succeed later ends the import.
    pub fn refused(&mut self, kind: &str, title: &str, error: Error) -> Result<(), Failure> {
        let ends = error.is_temporary()
            || matches!(error, Error::NoSession(_))
            || error.status() == Some(401);
        let failure = Failure::from(error);
        let message = format!("{kind}: {title}: {}", failure.message);
        match ends {
            true => Err(Failure { message, ..failure }),
            false => {
                self.report.failed.push(message);
                Ok(())
            }
        }
    }
}
