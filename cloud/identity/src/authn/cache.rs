//! A cache of the database's facts about callers, so that a busy caller does not cost a query for
//! each request. An entry is valid for [`LEASE`], counted from before it was read. A request that
//! revokes a right is answered only after that time ([`Permissions::wait_out_lease_after`]). So a
//! removed member, a revoked login or a deactivated key is refused from the next request on, on
//! every replica, without messages between replicas.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hub_base::db::{Db, Tx};
use hub_base::error::{Error, Result};
use hub_core::config::SecondFactorPolicy;
use hub_protocol::{TenantUuid, UserUuid};
use quick_cache::sync::Cache;
use uuid::Uuid;

use super::bearer::invalid_token;
use super::lease::LEASE;
use super::principal::{Session, User};
use super::store::{self, Member, SignedIn, StoredKey};

/// The most entries of each kind, about 100 bytes each.
const MAX_ENTRIES: usize = 20_000;

/// See the module's comment. Cheap to clone.
#[derive(Clone)]
pub struct Permissions(Arc<Inner>);

struct Inner {
    /// Who needs a second factor to do anything but set one up.
    second_factor: SecondFactorPolicy,
    people: Cache<(Caller, Option<TenantUuid>), Leased<SignedIn>>,
    keys: Cache<String, Leased<StoredKey>>,
    hits: AtomicU64,
    misses: AtomicU64,
    invalidations: AtomicU64,
}

/// What a person's membership is looked up by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Caller {
    Login(Uuid),
    User(UserUuid),
}

#[derive(Clone)]
struct Leased<T> {
    read_at: Instant,
    value: T,
}

/// Counters of this replica's cache since the start.
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    pub entries: u64,
    pub hits: u64,
    pub misses: u64,
    pub invalidations: u64,
}

impl Permissions {
    pub fn new(second_factor: SecondFactorPolicy) -> Self {
        Self(Arc::new(Inner {
            second_factor,
            people: Cache::new(MAX_ENTRIES),
            keys: Cache::new(MAX_ENTRIES),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            invalidations: AtomicU64::new(0),
        }))
    }

    /// Returns 401 if the user's login has ended, or the account of another issuer's user was
    /// deleted.
    pub async fn require_session(&self, db: &Db, user: &User) -> Result<()> {
        let signed_in = self.signed_in(db, user, None).await?;
        self.require_second_factor(user, &signed_in)
    }

    /// As [`Self::require_session`], also for a user who has still to set up a second factor.
    pub async fn require_login(&self, db: &Db, user: &User) -> Result<()> {
        self.signed_in(db, user, None).await.map(drop)
    }

    fn require_second_factor(&self, user: &User, signed_in: &SignedIn) -> Result<()> {
        let is_required = match self.0.second_factor {
            SecondFactorPolicy::Optional => false,
            SecondFactorPolicy::Administrators => user.is_platform_admin,
            SecondFactorPolicy::Everyone => true,
        };
        if !is_required || signed_in.has_second_factor {
            return Ok(());
        }
        let message = "this service requires a second factor of you; set one up with POST /auth/second-factor";
        Err(Error::forbidden("SECOND_FACTOR_REQUIRED", message))
    }

    /// The person's membership in the tenant, or `None` if there is none; 401 if the login has
    /// ended.
    pub async fn member(
        &self,
        db: &Db,
        user: &User,
        tenant_uuid: TenantUuid,
    ) -> Result<Option<Member>> {
        let signed_in = self.signed_in(db, user, Some(tenant_uuid)).await?;
        self.require_second_factor(user, &signed_in)?;
        Ok(signed_in.member)
    }

    async fn signed_in(
        &self,
        db: &Db,
        user: &User,
        tenant_uuid: Option<TenantUuid>,
    ) -> Result<SignedIn> {
        let caller = match user.session {
            Session::Login(login_uuid) => Caller::Login(login_uuid),
            Session::External => Caller::User(user.user_uuid),
        };
        if let Some(signed_in) = self.cached(self.0.people.get(&(caller, tenant_uuid))) {
            return Ok(signed_in);
        }
        let read_at = Instant::now();
        let mut conn = db.read().await?;
        let signed_in = match user.session {
            Session::Login(login_uuid) => {
                store::signed_in_by_login(&mut conn, login_uuid, tenant_uuid).await?
            }
            Session::External => {
                store::signed_in_by_user(&mut conn, user.user_uuid, tenant_uuid).await?
            }
        };
        let signed_in = signed_in.ok_or_else(invalid_token)?;
        // A missing membership is not cached, so that a new member has access at once.
        if signed_in.member.is_some() || tenant_uuid.is_none() {
            self.0.people.insert(
                (caller, tenant_uuid),
                Leased {
                    read_at,
                    value: signed_in.clone(),
                },
            );
        }
        Ok(signed_in)
    }

    /// The key with this id, if it is active.
    pub async fn api_key(&self, db: &Db, key_prefix: &str) -> Result<Option<StoredKey>> {
        if let Some(facts) = self.cached(self.0.keys.get(key_prefix)) {
            return Ok(Some(facts));
        }
        let read_at = Instant::now();
        let facts = store::api_key(&mut db.read().await?, key_prefix).await?;
        if let Some(facts) = &facts {
            self.0.keys.insert(
                key_prefix.to_owned(),
                Leased {
                    read_at,
                    value: facts.clone(),
                },
            );
        }
        Ok(facts)
    }

    fn cached<T>(&self, entry: Option<Leased<T>>) -> Option<T> {
        let valid = entry.filter(|entry| entry.read_at.elapsed() < LEASE);
        let counter = if valid.is_some() {
            &self.0.hits
        } else {
            &self.0.misses
        };
        counter.fetch_add(1, Ordering::Relaxed);
        valid.map(|entry| entry.value)
    }

    /// Delays the response to a change that revokes or changes a right until no replica trusts what
    /// it read before the commit. Call it before the commit, also if another request already made
    /// the same change.
    pub fn wait_out_lease_after(&self, tx: &mut Tx) {
        let permissions = self.clone();
        tx.after_commit(async move { permissions.wait_out_lease().await });
    }

    /// Clears this cache, then waits until the entries of all other replicas have expired.
    pub async fn wait_out_lease(&self) {
        self.clear();
        tokio::time::sleep(LEASE).await;
    }

    fn clear(&self) {
        self.0.invalidations.fetch_add(1, Ordering::Relaxed);
        self.0.people.clear();
        self.0.keys.clear();
    }

    pub fn statistics(&self) -> Statistics {
        Statistics {
            entries: (self.0.people.len() + self.0.keys.len()) as u64,
            hits: self.0.hits.load(Ordering::Relaxed),
            misses: self.0.misses.load(Ordering::Relaxed),
            invalidations: self.0.invalidations.load(Ordering::Relaxed),
        }
    }
}
