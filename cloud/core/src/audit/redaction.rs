//! Takes a person out of the log whose account is being deleted. What was done and when stays, and
//! that one and the same did it: a pseudonym is put in their place. The database itself refuses any
//! other change of an entry.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{PersonaUuid, UserUuid};
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

use super::Actor;

/// The person whose identity is removed.
pub struct Redaction<'a> {
    pub user_uuid: UserUuid,
    pub personas: &'a [PersonaUuid],
    /// The e-mail, removed where it is a whole address: `ada@example.com` is no part of
    /// `nada@example.com`.
    pub email: Option<&'a str>,
    /// The person's ids at suppliers and at another issuer, which are removed from members
    /// `userSub` and `subject` only: they may be short.
    pub subs: &'a [String],
    /// The replacement of their uuids.
    pub pseudonym: Uuid,
}

#[derive(sqlx::FromRow)]
struct Entry {
    audit_log_id: i64,
    actor_key: String,
    target: String,
    detail: Json<Value>,
    before_state: Option<Json<Value>>,
    after_state: Option<Json<Value>>,
    address: Option<String>,
    actor_uuid: Option<Uuid>,
    persona_uuid: Option<Uuid>,
}

/// Members with what somebody is called elsewhere.
const SUBS: [&str; 2] = ["userSub", "subject"];
/// The replacement of a name.
const ERASED: &str = "(deleted)";
/// All texts of an entry as one, for the search.
const TEXT: &str = "(target || ' ' || CAST(detail AS TEXT) || ' ' || \
    COALESCE(CAST(before_state AS TEXT), '') || ' ' || COALESCE(CAST(after_state AS TEXT), ''))";

/// The id of the newest entry.
pub async fn last_id(conn: &mut Conn) -> Result<i64> {
    sql("SELECT COALESCE(MAX(audit_log_id), 0) FROM audit_logs")
        .scalar(conn)
        .await
}

impl Redaction<'_> {
    fn uuids(&self) -> Vec<String> {
        let personas = self.personas.iter().map(ToString::to_string);
        std::iter::once(self.user_uuid.to_string())
            .chain(personas)
            .collect()
    }

    /// Takes the person out of the entries with ids above `after`, up to `last`. Repeating it
    /// changes nothing.
    pub async fn apply(&self, tx: &mut Tx, after: i64, last: i64) -> Result<()> {
        let mut query = sql(
            "SELECT audit_log_id, actor_key, target, detail, before_state, \
             after_state, address, actor_uuid, persona_uuid FROM audit_logs \
             WHERE audit_log_id > $1 AND audit_log_id <= $2 AND (actor_uuid = $3",
        )
        .bind((after, last, self.user_uuid.0));
        for text in self
            .uuids()
            .iter()
            .map(String::as_str)
            .chain(self.email)
            .chain(self.subs.iter().map(String::as_str))
        {
            query = query
                .push(" OR ")
                .push(TEXT)
                .push(" LIKE ")
                .push_bind(pattern(text));
        }
        let entries: Vec<Entry> = query.push(")").all(tx).await?;
        for entry in entries {
            self.redact(tx, entry).await?;
        }
        Ok(())
    }

    async fn redact(&self, tx: &mut Tx, entry: Entry) -> Result<()> {
        let is_theirs = entry.actor_uuid == Some(self.user_uuid.0);
        let actor_uuid = if is_theirs {
            Some(self.pseudonym)
        } else {
            entry.actor_uuid
        };
        let pseudonym = Actor::User {
            user_uuid: UserUuid(self.pseudonym),
            persona_uuid: PersonaUuid(self.pseudonym),
        };
        let actor_key = if is_theirs {
            pseudonym.key()
        } else {
            entry.actor_key
        };
        let persona_uuid = if is_theirs {
            Some(self.pseudonym)
        } else {
            entry.persona_uuid
        };
        let redacted = |state: Option<Json<Value>>| state.map(|Json(state)| self.redacted(state));
        sql(
            "UPDATE audit_logs SET actor_uuid = $2, actor_key = $3, persona_uuid = $4, \
             target = $5, detail = $6, before_state = $7, after_state = $8, address = $9 \
             WHERE audit_log_id = $1",
        )
        .bind((
            entry.audit_log_id,
            actor_uuid,
            actor_key,
            persona_uuid,
            self.redacted_text(entry.target),
            self.redacted(entry.detail.0),
            redacted(entry.before_state),
            redacted(entry.after_state),
            entry.address.filter(|_| !is_theirs),
        ))
        .run(tx)
        .await
    }

    fn redacted(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.redacted_text(text)),
            Value::Array(items) => items.into_iter().map(|item| self.redacted(item)).collect(),
            Value::Object(members) => {
                let member = |(name, value): (String, Value)| match &value {
                    Value::String(sub)
                        if SUBS.contains(&name.as_str()) && self.subs.contains(sub) =>
                    {
                        (name, Value::Null)
                    }
                    _ => (name, self.redacted(value)),
                };
                Value::Object(members.into_iter().map(member).collect())
            }
            other => other,
        }
    }

    fn redacted_text(&self, mut text: String) -> String {
        for uuid in self.uuids() {
            text = text.replace(&uuid, &self.pseudonym.to_string());
        }
        match self.email {
            Some(email) => without_email(&text, email),
            None => text,
        }
    }
}

/// The text with the address erased wherever it is no part of another one.
fn without_email(text: &str, email: &str) -> String {
    let belongs = |next: Option<char>| {
        next.is_some_and(|next| next.is_alphanumeric() || "._%+-@".contains(next))
    };
    let mut erased = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(email) {
        // The preceding text may have been skipped as a part of another address.
        let is_part = belongs(
            before
                .chars()
                .next_back()
                .or_else(|| erased.chars().next_back()),
        ) || belongs_after(after.chars(), belongs);
        erased.push_str(before);
        erased.push_str(if is_part { email } else { ERASED });
        rest = after;
    }
    erased.push_str(rest);
    erased
}

/// Whether an address continues; a full stop may also end a sentence.
fn belongs_after(mut after: std::str::Chars<'_>, belongs: impl Fn(Option<char>) -> bool) -> bool {
    match after.next() {
        Some('.') => after.next().is_some_and(char::is_alphanumeric),
        next => belongs(next),
    }
}

/// A pattern of LIKE that also finds the text within JSON. It may find more.
fn pattern(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    format!("%{}%", quoted.trim_matches('"').replace('\\', "_"))
}

/// Deletes the details of a device from its entries.
pub async fn forget_device(tx: &mut Tx, device_instance_id: i64) -> Result<()> {
    sql(
        "UPDATE audit_logs SET detail = $2, before_state = NULL, after_state = NULL \
         WHERE target = $1 AND object_type = 'device'",
    )
    .bind((
        device_instance_id.to_string(),
        Value::Object(serde_json::Map::new()),
    ))
    .run(tx)
    .await
}

/// Deletes the addresses that a hub called from, of at most `limit` entries. Returns of how many.
pub async fn forget_addresses(tx: &mut Tx, actor: &Actor, limit: i64) -> Result<u64> {
    sql(
        "UPDATE audit_logs SET address = NULL WHERE audit_log_id IN \
         (SELECT audit_log_id FROM audit_logs \
         WHERE actor_key = $1 AND address IS NOT NULL LIMIT $2)",
    )
    .bind((actor.key(), limit))
    .execute(tx)
    .await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_of_others_stay() {
        for (text, erased) in [
            ("ada@example.com", "(deleted)"),
            (
                "to ada@example.com, ben@example.com.",
                "to (deleted), ben@example.com.",
            ),
            ("It was ada@example.com.", "It was (deleted)."),
            ("ada@example.com ada@example.com", "(deleted) (deleted)"),
            ("nada@example.com", "nada@example.com"),
            ("x.ada@example.com", "x.ada@example.com"),
            ("ada@example.com.au", "ada@example.com.au"),
            ("ada@example.community", "ada@example.community"),
            (
                "ada@example.comada@example.com",
                "ada@example.comada@example.com",
            ),
            ("nobody", "nobody"),
        ] {
            assert_eq!(without_email(text, "ada@example.com"), erased, "{text}");
        }
    }

    #[test]
    fn a_person_is_taken_out_of_every_depth_of_an_entry() {
        let user_uuid = UserUuid::new();
        let persona = PersonaUuid::new();
        let subs = ["7".to_owned()];
        let pseudonym = Uuid::from_u128(1);
        let redaction = Redaction {
            user_uuid,
            personas: &[persona],
            email: Some("ada@example.com"),
            subs: &subs,
            pseudonym,
        };
        let before = json!({
            "ownerUserUuid": user_uuid, "list": [{"of": persona}], "email": "ada@example.com",
            "userSub": "7", "count": "7", "note": "for ada@example.com",
        });
        let after = json!({
            "ownerUserUuid": pseudonym, "list": [{"of": pseudonym}], "email": ERASED,
            "userSub": null, "count": "7", "note": "for (deleted)",
        });
        assert_eq!(redaction.redacted(before), after);
    }
}
