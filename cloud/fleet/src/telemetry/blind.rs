//! Whether a hub receives anything, as its own reports say.

use std::collections::BTreeMap;

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::telemetry::{BlindPeriod, ScanState};
use hub_protocol::{HubUuid, Timestamp};
use serde::Deserialize;

use super::store;

/// The state of a hub by its last report.
#[derive(Clone, Debug)]
pub struct Sight {
    pub hub_uuid: HubUuid,
    /// The time since which no adapter receives, and the reason; None if one does, or none is to.
    pub blind_since: Option<(Timestamp, String)>,
}

/// The hubs of the tenant that have reported since `from`. At most the newest `limit` reports are
/// read.
pub async fn sights(
    conn: &mut Conn,
    scope: &Scope,
    from: Timestamp,
    limit: i64,
) -> Result<Vec<Sight>> {
    let mut latest: BTreeMap<HubUuid, Sight> = BTreeMap::new();
    // Reports are newest first: the first of a hub decides.
    for report in store::reports_after(conn, scope, from, limit).await? {
        let hub_uuid = report.hub_uuid;
        latest.entry(hub_uuid).or_insert_with(|| {
            let received_at = Timestamp::from_micros(report.id);
            let blind_since = report
                .body
                .as_deref()
                .and_then(|body| blind_since(body, received_at));
            Sight {
                hub_uuid,
                blind_since,
            }
        });
    }
    Ok(latest.into_values().collect())
}

/// The members of a report of hub-agent that matter here.
#[derive(Deserialize)]
struct Report {
    adapters: Option<BTreeMap<String, Adapter>>,
}

#[derive(Deserialize)]
struct Adapter {
    state: ScanState,
    #[serde(default)]
    blind: Vec<BlindPeriod>,
}

fn blind_since(body: &str, received_at: Timestamp) -> Option<(Timestamp, String)> {
    let report: Report = serde_json::from_str(body).ok()?;
    let mut since: Option<(Timestamp, String)> = None;
    for adapter in report.adapters?.into_values() {
        match adapter.state {
            ScanState::Disabled => {}
            ScanState::Blind => {
                let period = adapter
                    .blind
                    .into_iter()
                    .rev()
                    .find(|period| period.to.is_none());
                let own = period.map_or((received_at, String::new()), |period| {
                    (period.from, period.reason)
                });
                // The hub is blind since its last adapter is.
                since = Some(match since {
                    Some(other) if other.0 >= own.0 => other,
                    _ => own,
                });
            }
            ScanState::Listening | ScanState::Silent => return None,
        }
    }
    since
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_blind_while_none_of_its_adapters_receives() {
        let now = Timestamp::from_micros(1_800_014_400_000_000);
        let from = now.plus_secs(-90);
        let blind = format!(r#"{{"state":"BLIND","blind":[{{"from":"{from}","reason":"gone"}}]}}"#);
        let body = |adapters: &str| format!(r#"{{"adapters":{{{adapters}}}}}"#);
        for (adapters, expected) in [
            (format!(r#""A":{blind}"#), Some((from, "gone".to_owned()))),
            (
                format!(r#""A":{blind},"B":{{"state":"DISABLED"}}"#),
                Some((from, "gone".to_owned())),
            ),
            (format!(r#""A":{blind},"B":{{"state":"SILENT"}}"#), None),
            (
                r#""A":{"state":"BLIND"}"#.to_owned(),
                Some((now, String::new())),
            ),
            (r#""A":{"state":"DISABLED"}"#.to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(blind_since(&body(&adapters), now), expected, "{adapters}");
        }
        assert_eq!(blind_since("[1, 2]", now), None);
    }
}
