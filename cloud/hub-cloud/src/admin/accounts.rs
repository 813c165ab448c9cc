//! `hub-cloud admin`: platform administrators, and what an operator does for people who cannot log
//! in.

use hub_base::error::Result;
use hub_people::accounts::{self, AdminCreated, AdminRevoked, Administrator, Locked};
use hub_protocol::{Timestamp, UserUuid};
use serde::Serialize;
use serde_json::json;

use super::printed;
use crate::app::Base;

/// Reports every invalid field at once, as the commands that set a password would.
pub fn check(email: &str, password: &str) -> Result<()> {
    accounts::check_new_password(email, password)
}

/// Creates a platform administrator. Returns a message for the operator.
pub async fn create(base: &Base, email: &str, password: String) -> Result<String> {
    let email = email.trim();
    Ok(
        match accounts::create_admin(&base.accounts, email, password).await? {
            AdminCreated::New => {
                format!("{email} is a new platform administrator and can log in now\n")
            }
            AdminCreated::Promoted => {
                format!(
                    "{email} already had an account; it is a platform administrator from its next login or refresh on\n"
                )
            }
            AdminCreated::Already => {
                format!("{email} is a platform administrator already; nothing was changed\n")
            }
        },
    )
}

/// An administrator in the JSON form of the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    user_uuid: UserUuid,
    email: String,
    nickname: Option<String>,
    created_at: Timestamp,
    logins: i64,
    last_login_at: Option<Timestamp>,
}

impl From<Administrator> for Listed {
    fn from(administrator: Administrator) -> Self {
        let Administrator {
            user_uuid,
            email,
            nickname,
            created_at,
            logins,
            last_login_at,
        } = administrator;
        Self {
            user_uuid,
            email,
            nickname,
            created_at,
            logins,
            last_login_at,
        }
    }
}

/// Lists the platform administrators, one per line, or as one JSON object.
pub async fn list(base: &Base, as_json: bool) -> Result<String> {
    let administrators = accounts::list_admins(&base.accounts).await?;
    if as_json {
        let administrators: Vec<Listed> = administrators.into_iter().map(Listed::from).collect();
        return printed(&json!({"administrators": administrators}));
    }
    let widest = administrators
        .iter()
        .map(|one| one.email.chars().count())
        .max()
        .unwrap_or_default();
    let mut lines = String::new();
    for Administrator {
        email,
        user_uuid,
        logins,
        last_login_at,
        ..
    } in administrators
    {
        let last = last_login_at.map_or("no login is stored".to_owned(), |at| {
            format!("last login {at}")
        });
        lines.push_str(&format!(
            "{email:widest$}  {user_uuid}  {logins} valid logins, {last}\n"
        ));
    }
    if lines.is_empty() {
        lines.push_str(
            "there is no platform administrator yet; `hub-cloud admin create` creates one\n",
        );
    }
    if base.config.oidc.is_some() {
        lines.push_str("(people whom the external issuer gives the role are not listed: the issuer knows them)\n");
    }
    Ok(lines)
}

/// Ends all logins of an account, and takes the role from it unless `keeps_role`.
pub async fn revoke(base: &Base, email: &str, keeps_role: bool) -> Result<String> {
    let email = email.trim();
    let revoked = accounts::revoke_admin(&base.accounts, email, keeps_role).await?;
    let AdminRevoked {
        is_demoted,
        ended_logins,
        administrators,
    } = revoked;
    let role = match (is_demoted, keeps_role) {
        (true, _) => "is no longer a platform administrator",
        (false, true) => "keeps its role",
        (false, false) => "was not a platform administrator",
    };
    let mut report = format!("{email} {role}; {ended_logins} logins were ended\n");
    if is_demoted && administrators == 0 {
        report
            .push_str("no platform administrator is left; `hub-cloud admin create` creates one\n");
    }
    Ok(report)
}

/// Clears what throttles an e-mail or an address.
pub async fn unlock(base: &Base, locked: Locked<'_>) -> Result<String> {
    let name = match locked {
        Locked::Email(email) => email.trim().to_owned(),
        Locked::Address(address) => address.to_string(),
    };
    Ok(match accounts::unlock(&base.accounts, locked).await? {
        0 => format!("no failed logins were counted for {name}\n"),
        cleared => {
            format!("{cleared} counters of {name} were cleared; logins are no longer delayed\n")
        }
    })
}

/// Removes the second factor of a person who has lost it.
pub async fn remove_second_factor(base: &Base, email: &str) -> Result<String> {
    let email = email.trim();
    Ok(
        match accounts::remove_second_factor(&base.accounts, email).await? {
            None => format!("{email} has no second factor; nothing was changed\n"),
            Some(ended) => format!(
                "{email} has no second factor any more and logs in with the password alone; {ended} logins were ended\n"
            ),
        },
    )
}

/// Sets the password of an account.
pub async fn reset_password(base: &Base, email: &str, password: String) -> Result<String> {
    let email = email.trim();
    let ended = accounts::set_password(&base.accounts, email, password).await?;
    Ok(format!(
        "{email} has the new password; {ended} logins were ended\n"
    ))
}
