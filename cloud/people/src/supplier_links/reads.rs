//! The audit entries of tokens that were read. Thousands may be read at once, so the entries that
//! wait are written together, each with the request and the address it belongs to.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::HeaderValue;
use hub_base::error::{Error, Result};
use hub_base::request_id;
use hub_core::Core;
use hub_core::audit::{self, Audit};
use hub_core::http::client_address;
use tokio::sync::oneshot;

/// Entries of one transaction.
const TOGETHER: usize = 256;

struct Waiting {
    audit: Audit,
    request_id: String,
    address: Option<IpAddr>,
    written: oneshot::Sender<Outcome>,
}

#[derive(Clone, Copy)]
enum Outcome {
    Written,
    Unavailable,
    StorageFull,
    Failed,
}

impl Outcome {
    fn of(written: Result<()>) -> Self {
        match written {
            Ok(()) => Self::Written,
            Err(error) if error.is_storage_full() => Self::StorageFull,
            Err(error) if error.is_database_unavailable() => Self::Unavailable,
            Err(error) => {
                tracing::error!(%error, "audit entries could not be written");
                Self::Failed
            }
        }
    }

    fn into_result(self) -> Result<()> {
        match self {
            Self::Written => Ok(()),
            Self::Unavailable => {
                let message = "the database is not available; try again shortly";
                Err(Error::unavailable("DATABASE_UNAVAILABLE", message))
            }
            Self::StorageFull => Err(Error::storage_full()),
            Self::Failed => Err(Error::internal(
                "an audit entry was not written; the log has the cause",
            )),
        }
    }
}

/// The recorder of token reads. Cheap to clone.
#[derive(Clone)]
pub struct Reads {
    core: Core,
    waiting: Arc<Mutex<Vec<Waiting>>>,
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl Reads {
    pub fn new(core: Core) -> Self {
        Self {
            core,
            waiting: Arc::default(),
            writing: Arc::default(),
        }
    }

    /// Writes the entry of the request that this task serves; an error if it was not written.
    pub async fn note(&self, audit: Audit) -> Result<()> {
        let (written, mut outcome) = oneshot::channel();
        let (request_id, address) = (request_id::current(), client_address::current());
        self.lock().push(Waiting {
            audit,
            request_id,
            address,
            written,
        });
        // The holder of the place writes the entries of all that wait for it.
        let place = self.writing.clone().lock_owned().await;
        if let Ok(outcome) = outcome.try_recv() {
            return outcome.into_result();
        }
        // A caller that leaves does not stop it.
        let reads = self.clone();
        self.core.workers.spawn(async move {
            reads.write_all().await;
            drop(place);
        });
        outcome.await.unwrap_or(Outcome::Failed).into_result()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write_all(&self) {
        loop {
            let some: Vec<Waiting> = {
                let mut waiting = self.lock();
                let count = waiting.len().min(TOGETHER);
                waiting.drain(..count).collect()
            };
            if some.is_empty() {
                return;
            }
            let (senders, written) = self.write(some).await;
            let outcome = Outcome::of(written);
            for sender in senders {
                let _ = sender.send(outcome);
            }
        }
    }

    async fn write(&self, some: Vec<Waiting>) -> (Vec<oneshot::Sender<Outcome>>, Result<()>) {
        let mut senders = Vec::with_capacity(some.len());
        let mut entries = Vec::with_capacity(some.len());
        for Waiting {
            audit,
            request_id,
            address,
            written,
        } in some
        {
            senders.push(written);
            entries.push((audit, request_id, address));
        }
        let write = async {
            let mut tx = self.core.db.begin().await?;
            for (audit, request_id, address) in entries {
                let id = HeaderValue::try_from(request_id)
                    .unwrap_or(HeaderValue::from_static("unknown"));
                request_id::with(
                    id,
                    client_address::with(address, audit::insert(&mut tx, audit)),
                )
                .await?;
            }
            tx.commit_unaudited("the entries themselves").await
        };
        let written = write.await;
        (senders, written)
    }
}
