//! What the demo shows: who and where, the hub, the rates, the latest events, and how to go on. Made of plain text that fits the terminal;
//! what came over the air is shown with nothing in it that a terminal would obey.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::{Duration, Instant};

use hub_protocol::ble::Advertisement;
use hub_protocol::{TenantUuid, Timestamp};

use super::Update;
use super::client::{Api, Hub};

/// More than fit on any screen.
const KEPT_EVENTS: usize = 500;
/// The time the rate is taken over.
const RATE_WINDOW: Duration = Duration::from_secs(10);
/// How often the numbers are said where lines follow each other.
const SAY_NUMBERS_EVERY: Duration = Duration::from_secs(10);
/// Without any event for so long, the view says where to look.
const SILENCE: Duration = Duration::from_secs(10);
/// The service counts a list no further.
const COUNT_LIMIT: i64 = 100_000;
/// Rows of events that go before telling how to go on.
const FEWEST_EVENTS: usize = 5;

const EVENT_HEAD: &str = "TIME (UTC)    ADDRESS            RSSI  WHAT";

/// What does not change while the demo runs.
pub struct Facts {
    pub url: String,
    pub email: String,
    pub password: String,
    pub tenant_uuid: TenantUuid,
    /// As it can be pasted into a shell.
    pub dir: String,
    pub source: String,
}

pub struct View {
    facts: Facts,
    hub: Option<Hub>,
    stored: i64,
    trouble: Option<String>,
    arrived: u64,
    /// How many had arrived, at times not longer ago than the window.
    samples: VecDeque<(Instant, u64)>,
    started_at: Instant,
    latest: VecDeque<String>,
    /// Where lines follow each other: what is still to be said, and when the numbers were.
    unsaid: String,
    numbers_said_at: Option<Instant>,
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
        lines.extend(facts.how_to_go_on());
        Self {
            unsaid: lines.join("\n") + "\n\n" + EVENT_HEAD + "\n",
            facts,
            hub: None,
            stored: 0,
            trouble: None,
            arrived: 0,
            samples: VecDeque::new(),
            started_at: Instant::now(),
            latest: VecDeque::new(),
            numbers_said_at: None,
        }
    }

    /// Events that arrived since the start.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    pub fn update(&mut self, update: Update) {
        match update {
            Update::Numbers { hub, stored } => {
                self.trouble = None;
                self.hub = hub;
                self.stored = stored;
                self.samples.push_back((Instant::now(), self.arrived));
                while self.samples.front().is_some_and(|(at, _)| at.elapsed() > RATE_WINDOW) {
                    self.samples.pop_front();
                }
            }
            Update::Trouble(text) => {
                let text = printable(&text);
                if self.trouble.as_ref() != Some(&text) {
                    let _ = writeln!(self.unsaid, "-- {text}");
                }
                self.trouble = Some(text);
            }
            Update::Events(events) => {
                self.arrived += events.len() as u64;
                for event in &events {
                    let row = event_row(event.observed_at, &event.advertisement);
                    let _ = writeln!(self.unsaid, "{row}");
                    self.latest.push_back(row);
                }
                let surplus = self.latest.len().saturating_sub(KEPT_EVENTS);
                self.latest.drain(..surplus);
            }
        }
    }

    /// What is new since the last call, as lines that follow each other.
    pub fn news(&mut self) -> String {
        let is_due = self.numbers_said_at.is_none_or(|at| at.elapsed() >= SAY_NUMBERS_EVERY);
        if is_due && self.hub.is_some() {
            self.numbers_said_at = Some(Instant::now());
            let (hub, numbers) = (self.hub_text(), self.numbers_text());
            let _ = writeln!(self.unsaid, "-- hub {hub}; {numbers}");
            if let Some(silence) = self.silence_text() {
                let _ = writeln!(self.unsaid, "-- {silence}");
            }
        }
        std::mem::take(&mut self.unsaid)
    }

    /// The whole view in so many columns and rows: what matters least is left out first.
    pub fn lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        self.unsaid.clear();
        let plain = |text: String| (Style::Plain, text);
        let mut top = vec![(Style::Bold, "hub-cloud demo    (Ctrl-C ends it)".to_owned())];
        top.extend(self.facts.lines().into_iter().map(plain));
        top.push(plain(format!("hub       {}", self.hub_text())));
        top.push(plain(format!("events    {}", self.numbers_text())));
        let trouble = self.trouble.clone().or_else(|| self.silence_text()).unwrap_or_default();
        top.push((Style::Bold, trouble));
        top.push((Style::Dim, EVENT_HEAD.to_owned()));
        let mut bottom: Vec<_> = self.facts.how_to_go_on().into_iter().map(plain).collect();
        if height < top.len() + FEWEST_EVENTS + bottom.len() {
            bottom.clear();
        }
        let rows = height.saturating_sub(top.len() + bottom.len());
        let shown = self.latest.len().min(rows);
        let latest = self.latest.iter().skip(self.latest.len() - shown).cloned().map(plain);
        let empty = std::iter::repeat_n(plain(String::new()), rows - shown);
        let lines = top.into_iter().chain(latest).chain(empty).chain(bottom).take(height);
        lines.map(|(style, text)| Line { style, text: text.chars().take(width).collect() }).collect()
    }

    fn hub_text(&self) -> String {
        let Some(hub) = &self.hub else { return "is being claimed".to_owned() };
        let seen = hub.last_seen_at.map_or("never".to_owned(), |at| time_of_day(at).to_owned());
        format!("{}  {}  last seen {seen}", hub.hub_uuid, printable(&hub.status))
    }

    fn numbers_text(&self) -> String {
        let stored = match self.stored {
            COUNT_LIMIT.. => format!("{COUNT_LIMIT} or more"),
            stored => stored.to_string(),
        };
        format!("{stored} stored, {} since the start, {:.1} a second now", self.arrived, self.rate())
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
        let is_silent = self.arrived == 0 && self.started_at.elapsed() >= SILENCE;
        is_silent.then(|| format!("nothing has been heard yet; see {}/hub-agent.log", self.facts.dir))
    }
}

impl Facts {
    fn lines(&self) -> Vec<String> {
        let Self { url, email, password, tenant_uuid, dir, source } = self;
        vec![
            format!("service   {url}    API {url}/docs"),
            format!("account   {email}    password {password}"),
            format!("tenant    {tenant_uuid}"),
            format!("hears     {source}"),
            format!("kept in   {dir}    (logs: hub-cloud.log, hub-agent.log)"),
        ]
    }

    fn how_to_go_on(&self) -> Vec<String> {
        vec![
            String::new(),
            "To go on from another terminal (the first line again when 15 minutes have passed):".to_owned(),
            format!("  . {}/env.sh", self.dir),
            "  curl -N $URL/tenant/stream/ble/events -H \"$TOKEN\" -H \"$TENANT\"".to_owned(),
            "  curl $URL/tenant/ble/events?size=3 -H \"$TOKEN\" -H \"$TENANT\"".to_owned(),
            "  curl $URL/tenant/hubs -H \"$TOKEN\" -H \"$TENANT\"".to_owned(),
        ]
    }
}

/// A file for a shell to read: it logs in and sets what the lines above use, so that no token is typed or shown.
pub fn environment(url: &str, api: &Api) -> String {
    let tenant_uuid = api.tenant_uuid;
    let credentials = serde_json::json!({"email": api.account.email, "password": api.account.password});
    format!(
        "# Made anew by every start of `hub-cloud demo`. To be read by a shell, with a dot in front.\n\
         URL={url}\n\
         TENANT='X-Tenant-UUID: {tenant_uuid}'\n\
         TOKEN=\"Authorization: Bearer $(curl -sS $URL/auth/login -H 'content-type: application/json' --data-binary @- <<'END' |\n\
         {credentials}\n\
         END\n\
         sed -n 's/.*\"accessToken\":\"\\([^\"]*\\)\".*/\\1/p')\"\n"
    )
}

fn event_row(observed_at: Timestamp, advertisement: &Advertisement) -> String {
    let rssi = advertisement.rssi.map_or("?".to_owned(), |rssi| rssi.to_string());
    let address = printable(&advertisement.address);
    format!("{}  {address:<17}  {rssi:>4}  {}", time_of_day(observed_at), what(advertisement))
}

/// The advertiser's name, and what it says, with the name of the format where that is widely known.
fn what(advertisement: &Advertisement) -> String {
    let mut parts = Vec::new();
    if let Some(name) = &advertisement.name {
        parts.push(format!("\"{}\"", printable(name)));
    }
    for (id, payload) in &advertisement.manufacturer_data {
        parts.push(format!("{}{}:{}", known(maker(id)), printable(id), hex::encode(&payload.0)));
    }
    for (uuid, payload) in &advertisement.service_data {
        parts.push(format!("{}{}:{}", known(service(uuid)), printable(uuid), hex::encode(&payload.0)));
    }
    if parts.is_empty() {
        parts.extend(advertisement.service_uuids.iter().map(|uuid| printable(uuid)));
    }
    parts.join("  ")
}

fn known(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("{name} ") }
}

/// Company identifiers (Bluetooth assigned numbers) that are heard everywhere.
fn maker(company_id: &str) -> &'static str {
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

/// Without control characters and those that reorder or hide text: they could rewrite what the terminal shows.
fn printable(text: &str) -> String {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().map(|c| if is_harmful(c) { '·' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use hub_protocol::ble::Payload;

    use super::super::client::Event;
    use super::*;

    fn view() -> View {
        View::new(Facts {
            url: "http://127.0.0.1:8080".into(),
            email: "demo@example.com".into(),
            password: "secret".into(),
            tenant_uuid: TenantUuid::default(),
            dir: "./hub-cloud-data/demo".into(),
            source: "a recorded trace".into(),
        })
    }

    fn event(number: i64, name: &str) -> Event {
        let advertisement = Advertisement {
            address: "AA:BB:CC:DD:EE:FF".into(),
            rssi: Some(-67),
            name: Some(name.into()),
            manufacturer_data: [("0499".to_owned(), Payload(vec![5; 24]))].into(),
            ..Advertisement::default()
        };
        Event { observed_at: Timestamp::from_micros(number * 1_000), advertisement }
    }

    #[test]
    fn the_view_fits_every_terminal() {
        let mut view = view();
        view.update(Update::Events((0..700).map(|number| event(number, &"é".repeat(300))).collect()));
        view.update(Update::Trouble("x".repeat(1_000)));
        for (width, height) in [(1, 1), (20, 3), (80, 9), (80, 24), (80, 25), (200, 60), (500, 600)] {
            let lines = view.lines(width, height);
            assert_eq!(lines.len(), height, "rows of {width}x{height}");
            assert!(lines.iter().all(|line| line.text.chars().count() <= width), "columns of {width}x{height}");
        }
    }

    #[test]
    fn the_latest_event_is_the_last_and_small_terminals_keep_events_rather_than_hints() {
        let mut view = view();
        view.update(Update::Events((0..100).map(|number| event(number, "x")).collect()));
        let text = |lines: Vec<Line>| lines.into_iter().map(|line| line.text).collect::<Vec<_>>();
        let large = text(view.lines(120, 30));
        assert!(large.iter().any(|line| line.contains("env.sh")), "{large:?}");
        let events: Vec<_> = large.iter().filter(|line| line.contains("AA:BB")).collect();
        assert!(
            events
                .last()
                .is_some_and(|line| line.starts_with("00:00:00.099  AA:BB:CC:DD:EE:FF   -67  \"x\"  Ruuvi 0499:0505")),
            "{events:?}"
        );
        let small = text(view.lines(120, 16));
        assert!(!small.iter().any(|line| line.contains("env.sh")), "{small:?}");
        assert!(small.iter().filter(|line| line.contains("AA:BB")).count() >= FEWEST_EVENTS, "{small:?}");
    }

    #[test]
    fn lines_that_follow_each_other_are_said_once() {
        let mut view = view();
        let first = view.news();
        assert!(first.contains("http://127.0.0.1:8080/docs") && first.contains("env.sh"), "{first}");
        view.update(Update::Events(vec![event(1, "a"), event(2, "b")]));
        view.update(Update::Trouble("away".into()));
        view.update(Update::Trouble("away".into()));
        let news = view.news();
        assert_eq!(news.lines().count(), 3, "{news}");
        assert_eq!(view.news(), "");
        assert_eq!(view.arrived(), 2);
    }

    #[test]
    fn nothing_from_the_air_reaches_the_terminal_as_a_command() {
        let mut view = view();
        view.news();
        view.update(Update::Events(vec![event(1, "\x1b[2J\r\n\u{9b}31m\u{202e}evil\u{200b}")]));
        let news = view.news();
        assert!(news.trim_end_matches('\n').chars().all(|c| !c.is_control() && c != '\u{202e}'), "{news:?}");
        assert!(news.contains("evil"), "{news:?}");
    }
}
