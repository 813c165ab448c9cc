//! What was just read about callers, so that a busy one does not cost a query a request. Everything here is trusted for [`LEASE`] and no longer, counted
//! from before it was read; and whoever takes a right away answers only after [`Permissions::settle`], when no replica can remember otherwise. So a
//! removed member, a revoked login or a deactivated key is refused on the very next request, on every replica, without a message between them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hub_protocol::{TenantUuid, UserUuid};
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::authn::invalid_token;
use crate::authn::user::{Session, User};
use crate::db::Db;
use crate::domain::api_keys::{self, KeyFacts};
use crate::domain::tenants::{self, Member, Standing};
use crate::error::Result;

/// How long an answer of the database is trusted.
pub const LEASE: Duration = Duration::from_millis(100);
/// Callers remembered of each kind; some 100 bytes each.
const REMEMBERED: usize = 20_000;

/// See the module.
pub struct Permissions {
    people: Cache<(Caller, Option<TenantUuid>), Leased<Option<Member>>>,
    keys: Cache<String, Leased<KeyFacts>>,
    hits: AtomicU64,
    misses: AtomicU64,
    invalidations: AtomicU64,
}

/// What a person's standing hangs on.
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

/// Numbers of one replica's cache, since it started.
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    pub entries: u64,
    pub hits: u64,
    pub misses: u64,
    pub invalidations: u64,
}

impl Permissions {
    #[allow(clippy::new_without_default, reason = "made once, by the app")]
    pub fn new() -> Self {
        Self {
            people: Cache::new(REMEMBERED),
            keys: Cache::new(REMEMBERED),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            invalidations: AtomicU64::new(0),
        }
    }

    /// Refuses with 401 whose login has ended.
    pub async fn require_session(&self, db: &Db, user: &User) -> Result<()> {
        match user.session {
            Session::Login(_) => self.standing(db, user, None).await.map(drop),
            Session::External => Ok(()),
        }
    }

    /// The person's place in the tenant, none when they have none there; 401 when their login has ended.
    pub async fn member(&self, db: &Db, user: &User, tenant_uuid: TenantUuid) -> Result<Option<Member>> {
        self.standing(db, user, Some(tenant_uuid)).await
    }

    async fn standing(&self, db: &Db, user: &User, tenant_uuid: Option<TenantUuid>) -> Result<Option<Member>> {
        let caller = match user.session {
            Session::Login(login_uuid) => Caller::Login(login_uuid),
            Session::External => Caller::User(user.user_uuid),
        };
        if let Some(member) = self.remembered(self.people.get(&(caller, tenant_uuid))) {
            return Ok(member);
        }
        let read_at = Instant::now();
        let mut conn = db.read().await?;
        let standing = match user.session {
            Session::Login(login_uuid) => tenants::standing_of_login(&mut conn, login_uuid, tenant_uuid).await?,
            Session::External => tenants::standing_of_user(&mut conn, user.user_uuid, tenant_uuid).await?,
        };
        let Standing(member) = standing.ok_or_else(invalid_token)?;
        // That somebody is no member is not remembered: who is let in may come in at once.
        if member.is_some() || tenant_uuid.is_none() {
            self.people.insert((caller, tenant_uuid), Leased { read_at, value: member.clone() });
        }
        Ok(member)
    }

    /// The key with this id, if it is active.
    pub async fn api_key(&self, db: &Db, key_prefix: &str) -> Result<Option<KeyFacts>> {
        if let Some(facts) = self.remembered(self.keys.get(key_prefix)) {
            return Ok(Some(facts));
        }
        let read_at = Instant::now();
        let facts = api_keys::find(&mut db.read().await?, key_prefix).await?;
        if let Some(facts) = &facts {
            self.keys.insert(key_prefix.to_owned(), Leased { read_at, value: facts.clone() });
        }
        Ok(facts)
    }

    fn remembered<T>(&self, entry: Option<Leased<T>>) -> Option<T> {
        let valid = entry.filter(|entry| entry.read_at.elapsed() < LEASE);
        let counter = if valid.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        valid.map(|entry| entry.value)
    }

    /// Call this between the commit of a change that takes a right away, or changes one, and the answer to whoever made it: when it returns, no
    /// replica goes by what was before.
    pub async fn settle(&self) {
        self.forget();
        tokio::time::sleep(LEASE).await;
    }

    fn forget(&self) {
        self.invalidations.fetch_add(1, Ordering::Relaxed);
        self.people.clear();
        self.keys.clear();
    }

    pub fn statistics(&self) -> Statistics {
        Statistics {
            entries: (self.people.len() + self.keys.len()) as u64,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            invalidations: self.invalidations.load(Ordering::Relaxed),
        }
    }
}
