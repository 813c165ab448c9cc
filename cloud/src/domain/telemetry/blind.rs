//! Whether a hub receives anything, as its own reports say.

use std::collections::BTreeMap;

use hub_protocol::telemetry::{BlindPeriod, ScanState};
use hub_protocol::{HubUuid, Timestamp};
use serde::Deserialize;

use super::store;
use crate::authz::Scope;
use crate::db::Conn;
use crate::error::Result;

/// A hub that has reported, and what it said last.
#[derive(Clone, Debug)]
pub struct Sight {
    pub hub_uuid: HubUuid,
    /// Since when no adapter receives anything, and why; None if one does, or none is to.
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
    // Newest first: the first of a hub is the one that counts.
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

/// A report of hub-agent, as far as it matters.
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
                // All are blind since the last of them is.
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
