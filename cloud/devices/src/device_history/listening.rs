//! Whether a hub was listening: it sent telemetry, and one of its adapters at least was not blind.
//! Telemetry is sampled, so that a long time costs no more than a short one.

use std::collections::BTreeMap;

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_fleet::telemetry;
use hub_protocol::telemetry::{BlindPeriod, ScanState};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde::Deserialize;

use super::spans::{Span, common, union, without};

/// Samples of a hub, about: more when there are many short times of interest.
const SAMPLES: i64 = 300;
const SECOND: i64 = 1_000_000;
/// Samples are no closer than the reports of an agent usually are.
const LEAST_SLOT: i64 = 60 * SECOND;
/// The time before and after a report that it covers: some reports may be late, or lost.
const LEAST_REACH: i64 = 360 * SECOND;

/// The members of a report of hub-agent that are used. Reports of other senders may have no
/// adapters.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    observed_at: Option<Timestamp>,
    adapters: Option<BTreeMap<String, Adapter>>,
}

#[derive(Deserialize)]
struct Adapter {
    state: ScanState,
    #[serde(default)]
    blind: Vec<BlindPeriod>,
}

/// The spans by the reports of a hub.
#[derive(Default)]
struct Reports {
    present: Vec<Span>,
    /// Spans without any adapter that scans.
    idle: Vec<Span>,
    /// The ends of blind periods by adapter and beginning: an end is only known once it was
    /// reported.
    blind: BTreeMap<String, BTreeMap<i64, End>>,
}

#[derive(Clone, Copy)]
enum End {
    Reported(i64),
    NotBefore(i64),
}

impl Reports {
    fn add(&mut self, received_at: Timestamp, body: &str, reach: i64) {
        let report: Option<Report> = serde_json::from_str(body).ok();
        let observed_at = report.as_ref().and_then(|report| report.observed_at);
        let at = observed_at
            .map_or(received_at, |at| at.min(received_at))
            .as_micros();
        self.present.push((at - reach, at + reach));
        let Some(adapters) = report.and_then(|report| report.adapters) else {
            return;
        };
        if adapters
            .values()
            .all(|adapter| adapter.state == ScanState::Disabled)
        {
            self.idle.push((at - reach, at + reach));
        }
        for (address, adapter) in adapters {
            if adapter.state == ScanState::Disabled {
                continue;
            }
            let known = self.blind.entry(address).or_default();
            for period in adapter.blind {
                let from = period.from.as_micros();
                let end = match (period.to, known.get(&from)) {
                    (Some(to), _) => End::Reported(to.as_micros()),
                    (None, Some(End::Reported(to))) => End::Reported(*to),
                    (None, Some(End::NotBefore(to))) => End::NotBefore((*to).max(at + reach)),
                    (None, None) => End::NotBefore(at + reach),
                };
                known.insert(from, end);
            }
        }
    }

    fn listening(self) -> Vec<Span> {
        let spans = |periods: BTreeMap<i64, End>| {
            let span = |(from, end)| match end {
                End::Reported(to) | End::NotBefore(to) => (from, to),
            };
            union(periods.into_iter().map(span).collect())
        };
        let blind = self
            .blind
            .into_values()
            .map(spans)
            .reduce(|one, two| common(&one, &two));
        let mut deaf = self.idle;
        deaf.extend(blind.unwrap_or_default());
        without(&union(self.present), &union(deaf))
    }
}

/// When the hub was listening, as far as these times are concerned. `last_seen_at` is its last
/// contact with the service.
pub async fn listening(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    times: &[Span],
    last_seen_at: Option<Timestamp>,
) -> Result<Vec<Span>> {
    let all: i64 = times.iter().map(|(from, to)| to - from).sum();
    let slot = (all / SAMPLES).max(LEAST_SLOT);
    let reach = slot.max(LEAST_REACH);
    let mut slots: Vec<i64> = Vec::new();
    for (from, to) in times {
        let first = from
            .div_euclid(slot)
            .max(slots.last().map_or(i64::MIN, |last| last + 1));
        slots.extend(first..=to.div_euclid(slot));
    }
    let ranges: Vec<(i64, i64)> = slots
        .into_iter()
        .map(|at| (at * slot, (at + 1) * slot))
        .collect();
    let mut reports = Reports::default();
    if let Some(at) = last_seen_at {
        reports
            .present
            .push((at.as_micros() - reach, at.as_micros() + reach));
    }
    telemetry::samples(conn, tenant_uuid, hub_uuid, &ranges, |at, body| {
        reports.add(at, body, reach)
    })
    .await?;
    Ok(reports.listening())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * SECOND)
    }

    fn reports(reports: &[(i64, serde_json::Value)]) -> Vec<Span> {
        let mut known = Reports::default();
        for (secs, adapters) in reports {
            let body = json!({"observedAt": at(*secs), "adapters": adapters}).to_string();
            known.add(at(*secs + 1), &body, 60 * SECOND);
        }
        known
            .listening()
            .into_iter()
            .map(|(from, to)| (from / SECOND, to / SECOND))
            .collect()
    }

    #[test]
    fn a_hub_listens_while_it_reports_and_an_adapter_is_not_blind() {
        let well = json!({"A": {"state": "LISTENING", "blind": []}});
        assert_eq!(
            reports(&[(1000, well.clone()), (1060, well.clone())]),
            [(940, 1120)]
        );
        let blind =
            json!({"A": {"state": "BLIND", "blind": [{"from": at(1030), "reason": "gone"}]}});
        assert_eq!(
            reports(&[(1000, well.clone()), (1060, blind.clone())]),
            [(940, 1030)]
        );
        let over = json!({"A": {"state": "SILENT", "blind": [{"from": at(1030), "to": at(1070), "reason": "gone"}]}});
        assert_eq!(
            reports(&[(1000, well.clone()), (1060, blind.clone()), (1120, over)]),
            [(940, 1030), (1070, 1180)]
        );
        let one_of_two = json!({"A": blind["A"], "B": {"state": "LISTENING", "blind": []}});
        assert_eq!(reports(&[(1060, one_of_two)]), [(1000, 1120)]);
        let none = json!({"A": {"state": "DISABLED", "blind": []}});
        assert!(reports(&[(1060, none)]).is_empty());
        assert!(reports(&[(1060, json!({}))]).is_empty());
        assert_eq!(
            reports(&[(1060, json!(null))]),
            [(1000, 1120)],
            "another kind of agent"
        );
    }
}
