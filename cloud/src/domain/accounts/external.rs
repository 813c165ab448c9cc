//! Accounts of people who log in at another issuer: made when its first token of somebody is seen, and kept in step with what it vouches for.
//!
//! They are never joined with an account that logs in here by having the same e-mail: whoever registers here proves no mailbox, so a stranger could register with somebody's address and wait
//! for the owner to arrive from the issuer, or find themselves in the account of one who did.

use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use serde_json::json;

use super::{fields, store};
use crate::app::App;
use crate::authn::user::{Session, User};
use crate::domain::audit::Audit;
use crate::error::{Error, Result};

/// What the issuer vouches for, beside who it is.
#[derive(Clone, Debug)]
pub struct Vouched {
    /// Verified by the issuer.
    pub email: Option<String>,
    pub nickname: Option<String>,
}

/// The account behind an issuer's token.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Known {
    pub user_uuid: UserUuid,
    #[sqlx(rename = "default_persona_uuid")]
    pub persona_uuid: PersonaUuid,
    /// Empty where the issuer vouched for none.
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

/// An e-mail as accounts have it; none where it is no address.
pub fn vouched_email(text: &str) -> Option<String> {
    fields::email(text).ok()
}

/// As much of a name as a nickname may have.
pub fn vouched_nickname(text: &str) -> Option<String> {
    let name: String = text.chars().filter(|c| !c.is_control()).collect();
    let name: String = name.trim().chars().take(fields::NICKNAME_MAX_CHARS).collect();
    fields::nickname(Some(&name)).ok().flatten()
}

/// The account of the issuer's `subject`, made now if this is the first of it. Of several first requests at once, all get the same.
pub async fn of_issuer(app: &App, issuer: &str, subject: &str, vouched: &Vouched, now: Timestamp) -> Result<Known> {
    let find = async || store::known(&mut app.db.read().await?, issuer, subject).await;
    let known = match find().await? {
        Some(known) => known,
        None => match create(app, issuer, subject, vouched, now).await? {
            Some(created) => return Ok(created),
            // Another request was faster.
            None => find().await?.ok_or_else(|| Error::internal("an account that is there was not found"))?,
        },
    };
    match &vouched.email {
        Some(email) if *email != known.email => change_email(app, known, email, now).await,
        _ => Ok(known),
    }
}

/// A new account; none when there is one by now.
async fn create(app: &App, issuer: &str, subject: &str, vouched: &Vouched, now: Timestamp) -> Result<Option<Known>> {
    let email = vouched.email.clone().unwrap_or_default();
    let known = Known { user_uuid: UserUuid::new(), persona_uuid: PersonaUuid::new(), email };
    let mut tx = app.db.begin().await?;
    if !store::insert_known(&mut tx, &known, issuer, subject, vouched.nickname.as_deref(), now).await? {
        return Ok(None);
    }
    let audit = Audit::by_user(&known.user(), "user.register", known.user_uuid, now);
    tx.commit(audit.with(json!({"issuer": issuer}))).await?;
    Ok(Some(known))
}

/// The issuer verified another address. Invitations go by it, so the change is on record.
async fn change_email(app: &App, known: Known, email: &str, now: Timestamp) -> Result<Known> {
    let mut tx = app.db.begin().await?;
    if !store::change_email(&mut tx, known.user_uuid, &known.email, email).await? {
        // Changed by another request: what that one brought stands until the next token.
        return Ok(known);
    }
    let audit = Audit::by_user(&known.user(), "user.update", known.user_uuid, now);
    tx.commit(audit.changed(Some(json!({"email": known.email})), Some(json!({"email": email})))).await?;
    Ok(Known { email: email.to_owned(), ..known })
}
