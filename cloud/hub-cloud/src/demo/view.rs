//! The content of the demo's screen: account, hub, rates, latest events and next steps. It is plain
//! text that fits the terminal; text received over the radio is shown without characters that
//! control the terminal.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::{Duration, Instant};

use hub_adverts::advertisement::frame_of;
use hub_adverts::library::read;
use hub_client::Hub;
use hub_protocol::ble::Advertisement;
use hub_protocol::{TenantUuid, Timestamp};

use super::Update;
use super::client::Api;

/// More than fit on any screen.
const KEPT_EVENTS: usize = 500;
/// The rate is the average over this time.
const RATE_WINDOW: Duration = Duration::from_secs(10);
/// Interval of the statistics in line output.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(10);
/// After this time without any event, the view names the log to read.
const SILENCE: Duration = Duration::from_secs(10);
/// The service counts a list up to this number.
const COUNT_LIMIT: u64 = 100_000;
/// The next steps are hidden if fewer rows than this would remain for events.
const MIN_EVENT_ROWS: usize = 5;

const EVENT_HEAD: &str = "TIME (UTC)    ADDRESS            RSSI  CONTENT";

/// The constants of a run of the demo.
pub struct Facts {
    /// Signs a browser in, once.
    pub link: String,
    /// What differs from usual.
    pub note: Option<String>,
    pub url: String,
    pub email: String,
    pub password: String,
    /// The administrator of the platform, who has the same password.
    pub operator: Option<String>,
    pub tenant_uuid: TenantUuid,
    /// Quoted for a shell.
    pub dir: String,
    pub source: String,
    /// The URL to which a pipeline sends measurements.
    pub receiver: Option<String>,
}

pub struct View {
    facts: Facts,
    hub: Option<Hub>,
    stored: u64,
    error: Option<String>,
    received: u64,
    /// Values of `received` within the rate window.
    samples: VecDeque<(Instant, u64)>,
    started_at: Instant,
    latest: VecDeque<String>,
    /// Line output: text not printed yet, and when the statistics were printed last.
    pending: String,
    statistics_printed_at: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub style: Style,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Bold,
    Dim,
}

impl View {
    pub fn new(facts: Facts) -> Self {
        let mut lines = facts.lines();
        lines.extend(facts.next_steps());
        Self {
            pending: lines.join("\n") + "\n\n" + EVENT_HEAD + "\n",
            facts,
            hub: None,
            stored: 0,
            error: None,
            received: 0,
            samples: VecDeque::new(),
            started_at: Instant::now(),
            latest: VecDeque::new(),
            statistics_printed_at: None,
        }
    }

    /// Number of events received since the start.
    pub fn received(&self) -> u64 {
        self.received
    }

    pub fn update(&mut self, update: Update) {
        match update {
            Update::Statistics { hub, stored } => {
                self.error = None;
                self.hub = hub;
                self.stored = stored;
                self.samples.push_back((Instant::now(), self.received));
                while self
                    .samples
                    .front()
                    .is_some_and(|(at, _)| at.elapsed() > RATE_WINDOW)
                {
                    self.samples.pop_front();
                }
            }
            Update::Error(text) => {
                let text = printable(&text);
                if self.error.as_ref() != Some(&text) {
                    let _ = writeln!(self.pending, "-- {text}");
                }
                self.error = Some(text);
            }
            Update::Event(event) => {
                self.received += 1;
                let row = event_row(event.observed_at, &event.advertisement);
                let _ = writeln!(self.pending, "{row}");
                if self.latest.len() == KEPT_EVENTS {
                    self.latest.pop_front();
                }
                self.latest.push_back(row);
            }
        }
    }

    /// Line output: the lines that are new since the last call.
    pub fn take_new_lines(&mut self) -> String {
        let is_due = self
            .statistics_printed_at
            .is_none_or(|at| at.elapsed() >= STATISTICS_INTERVAL);
        if is_due && self.hub.is_some() {
            self.statistics_printed_at = Some(Instant::now());
            let (hub, statistics) = (self.hub_text(), self.statistics_text());
            let _ = writeln!(self.pending, "-- hub {hub}; {statistics}");
            if let Some(silence) = self.silence_text() {
                let _ = writeln!(self.pending, "-- {silence}");
            }
        }
        std::mem::take(&mut self.pending)
    }

    /// Screen output: the whole view in the given columns and rows. If space is short, the next
    /// steps are omitted first, then events.
    pub fn lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        self.pending.clear();
        let plain = |text: String| (Style::Plain, text);
        let mut top = vec![(Style::Bold, "hub-cloud demo    (Ctrl-C to stop)".to_owned())];
        top.extend(self.facts.lines().into_iter().map(plain));
        top.push(plain(format!("hub       {}", self.hub_text())));
        top.push(plain(format!("events    {}", self.statistics_text())));
        let warning = self
            .error
            .clone()
            .or_else(|| self.silence_text())
            .unwrap_or_default();
        top.push((Style::Bold, warning));
        top.push((Style::Dim, EVENT_HEAD.to_owned()));
        let mut bottom: Vec<_> = self.facts.next_steps().into_iter().map(plain).collect();
        if height < top.len() + MIN_EVENT_ROWS + bottom.len() {
            bottom.clear();
        }
        let rows = height.saturating_sub(top.len() + bottom.len());
        let shown = self.latest.len().min(rows);
        let latest = self
            .latest
            .iter()
            .skip(self.latest.len() - shown)
            .cloned()
            .map(plain);
        let empty = std::iter::repeat_n(plain(String::new()), rows - shown);
        let lines = top
            .into_iter()
            .chain(latest)
            .chain(empty)
            .chain(bottom)
            .take(height);
        lines
            .map(|(style, text)| Line {
                style,
                text: text.chars().take(width).collect(),
            })
            .collect()
    }

    fn hub_text(&self) -> String {
        let Some(hub) = &self.hub else {
            return "not claimed yet".to_owned();
        };
        let seen = hub
            .last_seen_at
            .map_or("never".to_owned(), |at| time_of_day(at).to_owned());
        format!(
            "{}  {}  last seen {seen}",
            hub.hub_uuid,
            printable(&hub.status)
        )
    }

    fn statistics_text(&self) -> String {
        let stored = match self.stored {
            COUNT_LIMIT.. => format!("{COUNT_LIMIT} or more"),
            stored => stored.to_string(),
        };
        format!(
            "{stored} stored, {} since the start, {:.1} per second now",
            self.received,
            self.rate()
        )
    }

    fn rate(&self) -> f64 {
        match (self.samples.front(), self.samples.back()) {
            (Some((since, before)), Some((until, after))) if until > since => {
                (after - before) as f64 / until.duration_since(*since).as_secs_f64()
            }
            _ => 0.0,
        }
    }

    fn silence_text(&self) -> Option<String> {
        let is_silent = self.received == 0 && self.started_at.elapsed() >= SILENCE;
        is_silent.then(|| {
            format!(
                "no event received yet; see {}/hub-agent.log",
                self.facts.dir
            )
        })
    }
}

impl Facts {
    fn lines(&self) -> Vec<String> {
        let Self {
            link,
            note,
            url,
            email,
            password,
            operator,
            tenant_uuid,
            dir,
            source,
            receiver,
        } = self;
        let operator = operator.as_ref().map(|operator| {
            format!("operator  {operator}    the same password, for the side of the platform")
        });
        let mut lines = vec![
            format!("console   {link}  (once, for 10 minutes)"),
            format!("account   {email}    password {password}"),
            format!("service   {url}    console {url}/console    API {url}/docs"),
            format!("tenant    {tenant_uuid}"),
            format!("source    {source}"),
            format!("data      {dir}    (logs: hub-cloud.log, hub-agent.log)"),
        ];
        lines.extend(operator);
        lines.extend(note.as_ref().map(|note| format!("note      {note}")));
        lines.extend(
            receiver
                .as_ref()
                .map(|receiver| format!("sent to   {receiver}")),
        );
        lines
    }

    fn next_steps(&self) -> Vec<String> {
        vec![
            String::new(),
            "Next steps, in another terminal (the token of the first line is valid for 15 minutes):".to_owned(),
            format!("  . {}/env.sh", self.dir),
            "  member -N $URL/tenant/stream/ble/events".to_owned(),
            "  member $URL/tenant/ble/events?size=3".to_owned(),
            "  member $URL/tenant/hubs".to_owned(),
        ]
    }
}

/// A file to source in a shell. It logs in and defines what the next steps use, so that no token is
/// typed or shown.
pub fn environment(url: &str, api: &Api) -> String {
    let tenant_uuid = api.tenant_uuid;
    let credentials =
        serde_json::json!({"email": api.account.email, "password": api.account.password});
    format!(
        "# Written by every start of `hub-cloud demo`. Source it in a shell: . FILE\n\
         URL={url}\n\
         TENANT={tenant_uuid}\n\
         TOKEN=$(curl -sS $URL/auth/login -H 'content-type: application/json' --data-binary @- <<'END' |\n\
         {credentials}\n\
         END\n\
         sed -n 's/.*\"accessToken\":\"\\([^\"]*\\)\".*/\\1/p')\n\
         member() {{ curl -sS -H \"Authorization: Bearer $TOKEN\" -H \"X-Tenant-UUID: $TENANT\" \"$@\"; }}\n"
    )
}

fn event_row(observed_at: Timestamp, advertisement: &Advertisement) -> String {
    let rssi = advertisement
        .rssi
        .map_or("?".to_owned(), |rssi| rssi.to_string());
    let address = printable(&advertisement.address);
    format!(
        "{}  {address:<17}  {rssi:>4}  {}",
        time_of_day(observed_at),
        content(advertisement)
    )
}

/// The advertiser's name, and what the library of device models reads; else its payloads, with the
/// names of widely used formats.
fn content(advertisement: &Advertisement) -> String {
    let mut parts = Vec::new();
    if let Some(name) = &advertisement.name {
        parts.push(format!("\"{}\"", printable(name)));
    }
    if let Some(reading) = frame_of(advertisement).with(read) {
        parts.push(printable(&reading.to_string()));
        return parts.join("  ");
    }
    for (id, payload) in &advertisement.manufacturer_data {
        parts.push(format!(
            "{}{}:{}",
            label(company(id)),
            printable(id),
            hex::encode(&payload.0)
        ));
    }
    for (uuid, payload) in &advertisement.service_data {
        parts.push(format!(
            "{}{}:{}",
            label(service(uuid)),
            printable(uuid),
            hex::encode(&payload.0)
        ));
    }
    if parts.is_empty() {
        parts.extend(
            advertisement
                .service_uuids
                .iter()
                .map(|uuid| printable(uuid)),
        );
    }
    parts.join("  ")
}

fn label(name: &str) -> String {
    if name.is_empty() {
        String::new()
    } else {
        format!("{name} ")
    }
}

/// Frequent company identifiers (Bluetooth assigned numbers).
fn company(company_id: &str) -> &'static str {
    match company_id {
        "0006" => "Microsoft",
        "004c" => "Apple",
        "0075" => "Samsung",
        "0499" => "Ruuvi",
        _ => "",
    }
}

fn service(uuid: &str) -> &'static str {
    match uuid {
        "fcd2" => "BTHome",
        "fd6f" => "Exposure",
        "fe95" => "MiBeacon",
        "feaa" => "Eddystone",
        _ => "",
    }
}

/// `10:59:58.123` of an RFC 3339 time.
fn time_of_day(time: Timestamp) -> String {
    time.to_string().chars().skip(11).take(12).collect()
}

/// Replaces control characters and characters that reorder or hide text: they could change what the
/// terminal shows.
fn printable(text: &str) -> String {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars()
        .map(|c| if is_harmful(c) { '·' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use hub_protocol::ble::Payload;

    use super::super::client::Event;
    use super::*;

    fn view() -> View {
        View::new(Facts {
            link: "http://127.0.0.1:8080/demo/code".into(),
            note: None,
            url: "http://127.0.0.1:8080".into(),
            email: "demo@example.com".into(),
            password: "secret".into(),
            operator: None,
            tenant_uuid: TenantUuid::default(),
            dir: "./hub-cloud-data/demo".into(),
            source: "a recorded trace".into(),
            receiver: None,
        })
    }

    fn event(number: i64, name: &str) -> Update {
        let advertisement = Advertisement {
            address: "AA:BB:CC:DD:EE:FF".into(),
            rssi: Some(-67),
            name: Some(name.into()),
            manufacturer_data: [("0499".to_owned(), Payload(vec![5; 24]))].into(),
            ..Advertisement::default()
        };
        Update::Event(Event {
            observed_at: Timestamp::from_micros(number * 1_000),
            advertisement,
        })
    }

    #[test]
    fn view_fits_terminals_of_any_size() {
        let mut view = view();
        for number in 0..700 {
            view.update(event(number, &"é".repeat(300)));
        }
        view.update(Update::Error("x".repeat(1_000)));
        for (width, height) in [
            (1, 1),
            (20, 3),
            (80, 9),
            (80, 24),
            (80, 25),
            (200, 60),
            (500, 600),
        ] {
            let lines = view.lines(width, height);
            assert_eq!(lines.len(), height, "rows of {width}x{height}");
            assert!(
                lines.iter().all(|line| line.text.chars().count() <= width),
                "columns of {width}x{height}"
            );
        }
    }

    #[test]
    fn latest_event_is_last_and_small_terminals_omit_the_next_steps() {
        let mut view = view();
        for number in 0..100 {
            view.update(event(number, "x"));
        }
        let text = |lines: Vec<Line>| lines.into_iter().map(|line| line.text).collect::<Vec<_>>();
        let large = text(view.lines(120, 30));
        assert!(
            large.iter().any(|line| line.contains("env.sh")),
            "{large:?}"
        );
        let events: Vec<_> = large.iter().filter(|line| line.contains("AA:BB")).collect();
        assert!(
            events.last().is_some_and(|line| {
                line.starts_with("00:00:00.099  AA:BB:CC:DD:EE:FF   -67  \"x\"  RuuviTag: ")
                    && line.contains("temperature 6.425 °C")
            }),
            "{events:?}"
        );
        let small = text(view.lines(120, 16));
        assert!(
            !small.iter().any(|line| line.contains("env.sh")),
            "{small:?}"
        );
        assert!(
            small.iter().filter(|line| line.contains("AA:BB")).count() >= MIN_EVENT_ROWS,
            "{small:?}"
        );
    }

    #[test]
    fn line_output_prints_each_line_once() {
        let mut view = view();
        let first = view.take_new_lines();
        assert!(
            first.starts_with("console   http://127.0.0.1:8080/demo/code ")
                && first.contains("http://127.0.0.1:8080/console")
                && first.contains("http://127.0.0.1:8080/docs")
                && first.contains("env.sh"),
            "{first}"
        );
        view.update(event(1, "a"));
        view.update(event(2, "b"));
        view.update(Update::Error("away".into()));
        view.update(Update::Error("away".into()));
        let lines = view.take_new_lines();
        assert_eq!(lines.lines().count(), 3, "{lines}");
        assert_eq!(view.take_new_lines(), "");
        assert_eq!(view.received(), 2);
    }

    #[test]
    fn control_characters_of_advertisements_do_not_reach_the_terminal() {
        let mut view = view();
        view.take_new_lines();
        view.update(event(1, "\x1b[2J\r\n\u{9b}31m\u{202e}evil\u{200b}"));
        let lines = view.take_new_lines();
        assert!(
            lines
                .trim_end_matches('\n')
                .chars()
                .all(|c| !c.is_control() && c != '\u{202e}'),
            "{lines:?}"
        );
        assert!(lines.contains("evil"), "{lines:?}");
    }
}
