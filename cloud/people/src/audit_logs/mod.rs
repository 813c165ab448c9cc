//! Reads the audit log: lists for a tenant and for the platform. `hub_core::audit` writes the
//! entries.

pub mod http;
mod store;

use hub_base::db::{Conn, Slice};
use hub_base::error::Result;
use hub_core::audit::{ActorType, object_type_of};
use hub_identity::authz::Scope;
use hub_protocol::{Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

pub use store::Change;

/// A failed login at an account.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedLogin {
    /// When it failed.
    failed_at: Timestamp,
    /// The address that it came from; null if it is not known.
    address: Option<String>,
    /// The program, in its own words; null if it did not say.
    user_agent: Option<String>,
    /// What was wrong: `PASSWORD` or `OTP`.
    cause: Option<String>,
}

/// The latest entries of a failed login at the account of a user, latest first.
pub async fn failed_logins(
    conn: &mut Conn,
    user_uuid: UserUuid,
    action: &str,
    limit: i64,
) -> Result<Vec<FailedLogin>> {
    let entries = store::latest_of_target(conn, &user_uuid.to_string(), action, limit).await?;
    let shown = entries.into_iter().map(|(failed_at, address, detail)| {
        let text = |name: &str| detail.0.get(name)?.as_str().map(str::to_owned);
        FailedLogin {
            failed_at,
            address,
            user_agent: text("userAgent"),
            cause: text("cause"),
        }
    });
    Ok(shown.collect())
}

/// The next changes of an object by some kinds of actions, the oldest first, after a time and an
/// id. The actions must not be none.
pub async fn changes_of(
    conn: &mut Conn,
    scope: &Scope,
    actions: &[&str],
    object_id: &str,
    after: (Timestamp, i64),
    limit: i64,
) -> Result<Vec<Change>> {
    store::changes_of(conn, scope, actions, object_id, after, limit).await
}

/// One page of the same, the last first, and how many there are.
pub async fn history_of(
    conn: &mut Conn,
    scope: &Scope,
    actions: &[&str],
    object_id: &str,
    slice: Slice,
) -> Result<(Vec<Change>, i64)> {
    store::history_of(conn, scope, actions, object_id, slice).await
}

/// The filters of a list, in terms of the indexes.
#[derive(Debug)]
struct Narrowed {
    /// Kinds of actors, or single actors (see [`Actor::key`]). Entries of other actors are not
    /// listed.
    actors: Vec<String>,
    /// Whether `actors` holds single actors instead of kinds.
    names_actors: bool,
    action: Option<String>,
    /// The type of the object; None if `action` implies it.
    object_type: Option<String>,
    object_id: Option<String>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

/// The filters of a request.
#[derive(Debug, Default)]
struct Filters {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    actor_type: Option<ActorType>,
    actor_uuid: Option<Uuid>,
    api_key_id: Option<i64>,
    action: Option<String>,
    object_type: Option<String>,
    object_id: Option<String>,
}

impl Filters {
    /// The combined filters; None if they contradict each other, so that no entry can match.
    fn narrowed(self) -> Option<Narrowed> {
        if let (Some(action), Some(object_type)) = (&self.action, &self.object_type)
            && object_type_of(action) != object_type
        {
            return None;
        }
        let kinds: Vec<ActorType> = ActorType::ALL
            .into_iter()
            .filter(|kind| self.actor_type.is_none_or(|selected| selected == *kind))
            .collect();
        let keys = |of: &[ActorType], id: &dyn ToString| -> Vec<String> {
            let kinds = kinds.iter().filter(|kind| of.contains(kind));
            kinds
                .map(|kind| format!("{}:{}", kind.name(), id.to_string()))
                .collect()
        };
        let (actors, names_actors) = match (self.actor_uuid, self.api_key_id) {
            (None, None) => (
                kinds.iter().map(|kind| kind.name().to_owned()).collect(),
                false,
            ),
            (Some(uuid), None) => (keys(&[ActorType::User, ActorType::Hub], &uuid), true),
            (None, Some(api_key_id)) => (keys(&[ActorType::ApiKey], &api_key_id), true),
            (Some(_), Some(_)) => return None,
        };
        if actors.is_empty() {
            return None;
        }
        let object_type = self.object_type.filter(|_| self.action.is_none());
        let Self {
            from,
            to,
            action,
            object_id,
            ..
        } = self;
        Some(Narrowed {
            actors,
            names_actors,
            action,
            object_type,
            object_id,
            from,
            to,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actors(filters: Filters) -> Option<Vec<String>> {
        filters.narrowed().map(|narrowed| narrowed.actors)
    }

    #[test]
    fn filters_name_kinds_or_actors() {
        let uuid = Uuid::nil();
        let all = ["USER", "API_KEY", "HUB", "SYSTEM"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(actors(Filters::default()), Some(all));
        let hubs = || Filters {
            actor_type: Some(ActorType::Hub),
            ..Filters::default()
        };
        assert_eq!(actors(hubs()), Some(vec!["HUB".to_owned()]));
        assert_eq!(
            actors(Filters {
                actor_uuid: Some(uuid),
                ..hubs()
            }),
            Some(vec![format!("HUB:{uuid}")])
        );
        let either = vec![format!("USER:{uuid}"), format!("HUB:{uuid}")];
        assert_eq!(
            actors(Filters {
                actor_uuid: Some(uuid),
                ..Filters::default()
            }),
            Some(either)
        );
        assert_eq!(
            actors(Filters {
                api_key_id: Some(7),
                ..Filters::default()
            }),
            Some(vec!["API_KEY:7".to_owned()])
        );
    }

    #[test]
    fn contradictory_filters_match_nothing() {
        let hubs = || Filters {
            actor_type: Some(ActorType::Hub),
            ..Filters::default()
        };
        assert_eq!(
            actors(Filters {
                api_key_id: Some(7),
                ..hubs()
            }),
            None
        );
        assert_eq!(
            actors(Filters {
                api_key_id: Some(7),
                actor_uuid: Some(Uuid::nil()),
                ..Filters::default()
            }),
            None
        );
        let action = || Filters {
            action: Some("hub.claim".to_owned()),
            ..Filters::default()
        };
        assert!(
            actors(Filters {
                object_type: Some("hub".to_owned()),
                ..action()
            })
            .is_some()
        );
        assert_eq!(
            actors(Filters {
                object_type: Some("user".to_owned()),
                ..action()
            }),
            None
        );
    }
}
