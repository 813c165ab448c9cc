//! Accounts of people who log in at an external issuer. An account is created when the first token
//! of a subject is seen, and follows what the issuer vouches for.
//!
//! Such an account is never merged with a local account that has the same e-mail address. Local
//! registration does not verify the mailbox: a stranger could register somebody's address and wait
//! for that person's first token, or the person would get access to the stranger's account.

use hub_base::db::{Conn, Db, Tx, sql};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use serde_json::json;

use crate::authn::bearer::invalid_token;
use crate::authn::fields;
use crate::authn::principal::{Session, User};
use crate::authn::store::insert_default_persona;

/// What the issuer vouches for, besides the subject.
#[derive(Clone, Debug)]
pub struct Vouched {
    /// Verified by the issuer.
    pub email: Option<String>,
    pub nickname: Option<String>,
}

/// The account that belongs to an issuer's token.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Known {
    pub user_uuid: UserUuid,
    #[sqlx(rename = "default_persona_uuid")]
    pub persona_uuid: PersonaUuid,
    /// Empty if the issuer vouches for none.
    pub email: String,
}

impl Known {
    fn user(&self) -> User {
        User {
            user_uuid: self.user_uuid,
            persona_uuid: self.persona_uuid,
            is_platform_admin: false,
            session: Session::External,
        }
    }
}

/// The e-mail address in the form of accounts; `None` if it is not a valid address.
pub fn vouched_email(text: &str) -> Option<String> {
    fields::email(text).ok()
}

/// The name, cut to the length of a nickname.
pub fn vouched_nickname(text: &str) -> Option<String> {
    let name: String = text.chars().filter(|c| !c.is_control()).collect();
    let name: String = name
        .trim()
        .chars()
        .take(fields::NICKNAME_MAX_CHARS)
        .collect();
    fields::nickname(Some(&name)).ok().flatten()
}

/// Whom a token is about.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub issuer: &'a str,
    pub subject: &'a str,
    /// When the token was issued, if it says so.
    pub issued_at: Option<i64>,
}

/// How long it is remembered that the account of a subject was deleted. Tokens live for less.
const REMEMBERED_SECS: i64 = 24 * 3600;

impl Subject<'_> {
    fn hash(&self) -> Vec<u8> {
        hub_base::sealing::hash(&format!("{} {}", self.issuer, self.subject))
    }
}

/// The account of the issuer's `subject`, created if there is none. Concurrent first requests all
/// get the same account. A token from before the account was deleted creates none.
pub async fn of_issuer(
    core: &Core,
    token: Subject<'_>,
    vouched: &Vouched,
    now: Timestamp,
) -> Result<Known> {
    let Subject {
        issuer,
        subject,
        issued_at,
    } = token;
    let find = async || known(&mut core.db.read().await?, issuer, subject).await;
    let known = match find().await? {
        Some(known) => known,
        None if was_deleted(&mut core.db.read().await?, &token.hash(), issued_at).await? => {
            return Err(invalid_token());
        }
        None => match create(core, issuer, subject, vouched, now).await? {
            Some(created) => return Ok(created),
            // A concurrent request created it.
            None => find()
                .await?
                .ok_or_else(|| Error::internal("an existing account was not found"))?,
        },
    };
    match &vouched.email {
        Some(email) if *email != known.email => change_email(core, known, email, now).await,
        _ => Ok(known),
    }
}

/// Creates an account; `None` if there is one by now.
async fn create(
    core: &Core,
    issuer: &str,
    subject: &str,
    vouched: &Vouched,
    now: Timestamp,
) -> Result<Option<Known>> {
    let email = vouched.email.clone().unwrap_or_default();
    let known = Known {
        user_uuid: UserUuid::new(),
        persona_uuid: PersonaUuid::new(),
        email,
    };
    let mut tx = core.db.begin().await?;
    if !insert_known(
        &mut tx,
        &known,
        issuer,
        subject,
        vouched.nickname.as_deref(),
        now,
    )
    .await?
    {
        return Ok(None);
    }
    let audit = Audit::new(&known.user(), "user.register", known.user_uuid, now);
    tx.commit(audit.with(json!({"issuer": issuer}))).await?;
    Ok(Some(known))
}

/// The issuer verified another address. Invitations are matched by address, so the change is
/// audited.
async fn change_email(core: &Core, known: Known, email: &str, now: Timestamp) -> Result<Known> {
    let mut tx = core.db.begin().await?;
    if !update_email(&mut tx, known.user_uuid, &known.email, email).await? {
        // Another request changed it. Its address is kept until the next token.
        return Ok(known);
    }
    let audit = Audit::new(&known.user(), "user.update", known.user_uuid, now);
    tx.commit(audit.changed(
        Some(json!({"email": known.email})),
        Some(json!({"email": email})),
    ))
    .await?;
    Ok(Known {
        email: email.to_owned(),
        ..known
    })
}

async fn known(conn: &mut Conn, issuer: &str, subject: &str) -> Result<Option<Known>> {
    sql("SELECT user_uuid, default_persona_uuid, email FROM users \
         WHERE issuer = $1 AND subject = $2")
    .bind((issuer, subject))
    .optional(conn)
    .await
}

/// Inserts the account and its default persona, and returns false when the subject has an account.
/// Of two concurrent transactions the second waits for the first.
async fn insert_known(
    conn: &mut Conn,
    known: &Known,
    issuer: &str,
    subject: &str,
    nickname: Option<&str>,
    now: Timestamp,
) -> Result<bool> {
    let inserted = sql(
        "INSERT INTO users (user_uuid, email, password_hash, nickname, \
        is_platform_admin, default_persona_uuid, created_at, issuer, subject) \
        VALUES ($1, $2, '', $3, $4, $5, $6, $7, $8) ON CONFLICT (issuer, subject) DO NOTHING",
    )
    .bind((
        known.user_uuid,
        known.email.as_str(),
        nickname.map(str::to_owned),
        false,
        known.persona_uuid,
        now,
        issuer,
        subject,
    ))
    .execute(conn)
    .await?;
    if inserted == 1 {
        insert_default_persona(conn, known.user_uuid, known.persona_uuid, now).await?;
    }
    Ok(inserted == 1)
}

/// Returns false if the e-mail was no longer `before`.
async fn update_email(
    conn: &mut Conn,
    user_uuid: UserUuid,
    before: &str,
    after: &str,
) -> Result<bool> {
    let changed = sql("UPDATE users SET email = $3 WHERE user_uuid = $1 AND email = $2")
        .bind((user_uuid, before, after))
        .execute(conn)
        .await?;
    Ok(changed == 1)
}

/// Whether the account was deleted after the token was issued.
async fn was_deleted(conn: &mut Conn, subject_hash: &[u8], issued_at: Option<i64>) -> Result<bool> {
    let deleted = sql("SELECT deleted_at FROM deleted_subjects WHERE subject_hash = $1");
    let deleted_at: Option<Timestamp> = deleted.bind(subject_hash).optional_scalar(conn).await?;
    Ok(deleted_at.is_some_and(|deleted_at| {
        issued_at.is_none_or(|issued_at| issued_at <= deleted_at.as_secs())
    }))
}

/// From now on tokens of the subject that were issued until now create no account.
pub async fn remember_deleted(
    tx: &mut Tx,
    issuer: &str,
    subject: &str,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO deleted_subjects (subject_hash, deleted_at, forget_at) VALUES ($1, $2, $3) \
         ON CONFLICT (subject_hash) DO UPDATE SET deleted_at = excluded.deleted_at, \
         forget_at = excluded.forget_at",
    )
    .bind((
        Subject {
            issuer,
            subject,
            issued_at: None,
        }
        .hash(),
        now,
        now.plus_secs(REMEMBERED_SECS),
    ))
    .run(tx)
    .await
}

/// Deletes at most `limit` subjects whose tokens have all expired.
pub async fn forget_deleted(db: &Db, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = sql("DELETE FROM deleted_subjects WHERE subject_hash IN \
         (SELECT subject_hash FROM deleted_subjects WHERE forget_at <= $1 LIMIT $2)")
    .bind((now, limit))
    .execute(&mut tx)
    .await?;
    tx.commit_unaudited("tokens that have expired").await?;
    Ok(deleted)
}
