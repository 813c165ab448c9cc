//! `hub-cloud demo`: the whole path on one machine. The service in this process, the real agent beside it as a child, and a view that reads what
//! arrives as any client would. Everything goes through the service's own API; nothing here reaches into the database.

mod agent;
mod client;
mod place;
mod screen;
mod stream;
mod view;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use clap::Args;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::app::{App, StartError};
use crate::clock::Clock;
use crate::config::{Config, ConfigError, Settings};
use crate::http::router;
use crate::http::serve::{Server, stop_signal};
use crate::tasks;
use agent::Agent;
use client::{Api, Event, Hub};
use place::Place;
use screen::Screen;
use view::{Facts, View};

const DEFAULT_DATA_DIR: &str = "hub-cloud-data/demo";
const DEFAULT_PORT: u16 = 8080;
/// One hub that plays a trace fast uploads more often than a tenant in the field may.
const UPLOADS_PER_MINUTE: u32 = 100_000;
/// How often the service is asked for its numbers.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
const DRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Where the demo's hub hears from.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Listen with this machine's own Bluetooth adapters, through BlueZ, instead of playing the recorded trace
    #[arg(long, conflicts_with = "speed")]
    bluez: bool,

    /// Pace of the trace: 1 as recorded, 10 ten times as fast
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed, allow_negative_numbers = true)]
    speed: f64,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("it must be a number above 0".into()),
    }
}

/// Why the demo ended, in words for the person who started it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self(error.to_string())
    }
}

/// What the view is told.
enum Update {
    Events(Vec<Event>),
    Numbers { hub: Option<Hub>, stored: i64 },
    Trouble(String),
}

/// The demo keeps to a directory and a database of its own, whatever is set up for a real service on this machine.
pub fn config(mut settings: Settings, file: Option<&Path>) -> Result<Config, ConfigError> {
    let of_a_real_service = [
        ("config", file.is_some()),
        ("database-url", settings.database_url.is_some()),
        ("bus", settings.bus.is_some()),
        ("public-url", settings.public_url.is_some()),
        ("tls-cert", settings.tls_cert.is_some()),
        ("tls-key", settings.tls_key.is_some()),
        ("client-certificates", settings.client_certificates.is_some()),
        ("master-key", settings.master_key.is_some()),
        ("files", settings.files.is_some()),
        ("builtin-login", settings.builtin_login.is_some()),
        ("oidc-issuer", settings.oidc_issuer.is_some()),
        ("oidc-audience", settings.oidc_audience.is_some()),
        ("oidc-client-id", settings.oidc_client_id.is_some()),
        ("oidc-roles-claim", settings.oidc_roles_claim.is_some()),
        ("smtp-url", settings.smtp_url.is_some()),
        ("mail-from", settings.mail_from.is_some()),
        ("cors-origins", settings.cors_origins.is_some()),
        ("trusted-proxies", settings.trusted_proxies.is_some()),
        ("release-keys", settings.release_keys.is_some()),
    ];
    if let Some((key, _)) = of_a_real_service.iter().find(|(_, given)| *given) {
        let variable = format!("HUB_CLOUD_{}", key.replace('-', "_").to_uppercase());
        return Err(ConfigError(format!(
            "the demo takes no {key}: leave out --{key} and unset {variable}, or use `hub-cloud serve`"
        )));
    }
    settings.data_dir.get_or_insert_with(|| PathBuf::from(DEFAULT_DATA_DIR));
    settings.listen.get_or_insert_with(usual_or_free_address);
    settings.upload_limit_per_minute.get_or_insert(UPLOADS_PER_MINUTE);
    Config::load(settings, None)
}

/// The port that documentation speaks of, or any when something else has it.
fn usual_or_free_address() -> SocketAddr {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
    match TcpListener::bind(usual) {
        Ok(_) => usual,
        Err(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    }
}

/// Runs until Ctrl-C or SIGTERM.
pub async fn run(config: Config, options: Options) -> Result<(), Failure> {
    let program = agent::find()?;
    let place = Place::open(&config.data_dir)?;
    log_to_file(&place, &config.log)?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        stop_signal().await;
        stopping.cancel();
    });

    let app = App::start(config, Clock::System).await?;
    let server = Server::bind(&app).await?;
    let url = server.url();
    app.workers.spawn(tasks::work(app.clone()));
    let serving = tokio::spawn({
        let app = app.clone();
        async move { server.run(&app, router::router(app.clone())).await }
    });
    let shown = show(&place, &url, &program, &options, &stop).await;
    app.shutdown.cancel();
    let served = serving.await;
    app.stop().await;
    let seen = shown?;
    if let Ok(Err(error)) = served {
        return Err(Failure(format!("the service failed: {error}")));
    }
    let dir = place.shown();
    screen::say(&format!(
        "\nStopped. {seen} events arrived meanwhile and are kept in {dir}.\n\
         `hub-cloud demo` goes on with them; `hub-cloud serve --data-dir {dir}` serves them without the demo's hub."
    ));
    Ok(())
}

/// The screen belongs to the view.
fn log_to_file(place: &Place, filter: &str) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter).map_err(|error| Failure(format!("log: {error}")))?;
    let file = Mutex::new(place.log(place::SERVICE_LOG)?);
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(file);
    logs.try_init().map_err(|error| Failure(format!("logs cannot be written: {error}")))
}

/// Prepares account and hub, then shows what arrives until told to stop; gives how many events that were.
async fn show(
    place: &Place,
    url: &str,
    program: &Path,
    options: &Options,
    stop: &CancellationToken,
) -> Result<u64, Failure> {
    let preparing = async {
        let api = Api::enter(url, place.account()?).await?;
        place.write(place::CLAIM_CODE, api.claim_code().await?.as_bytes())?;
        place.write(place::ENVIRONMENT, view::environment(url, &api).as_bytes())?;
        place.write(place::TRACE, include_bytes!("../../../tests/data/ble/trace.jsonl.zst"))?;
        // Before the hub can upload, so that its very first event is seen.
        let stream = api.open_stream(None).await?;
        Ok::<_, Failure>((api, stream))
    };
    let Some(prepared) = stop.run_until_cancelled(preparing).await else { return Ok(0) };
    let (api, stream) = prepared?;

    let facts = Facts {
        url: url.to_owned(),
        email: api.account.email.clone(),
        password: api.account.password.clone(),
        tenant_uuid: api.tenant_uuid,
        dir: place.shown(),
        source: match options.bluez {
            true => "this machine's Bluetooth adapters".to_owned(),
            false => format!("a recorded trace, played at speed {}, again and again", options.speed),
        },
    };
    let mut agent = Agent::start(program, place, url, options)?;
    let (updates, received) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    tasks.spawn(stream::follow(api.clone(), stream, updates.clone()));
    tasks.spawn(ask(api, updates));

    let mut view = View::new(facts);
    let watched = watch(&mut view, received, &mut agent, stop).await;
    agent.stop().await;
    watched.map(|()| view.arrived())
}

/// Draws, until told to stop, the agent has ended, or nobody looks any more.
async fn watch(
    view: &mut View,
    mut updates: mpsc::Receiver<Update>,
    agent: &mut Agent,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let mut screen = Screen::open();
    let mut frames = tokio::time::interval(DRAW_INTERVAL);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            ended = agent.ended() => return Err(ended),
            Some(update) = updates.recv() => view.update(update),
            _ = frames.tick() => {
                // A reader that went away, as `head` does, has seen enough.
                if screen.draw(view).is_err() {
                    return Ok(());
                }
            }
        }
    }
}

/// Asks the service again and again how the hub is and how much is stored.
async fn ask(api: Api, updates: mpsc::Sender<Update>) {
    let mut turns = tokio::time::interval(ASK_INTERVAL);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        let update = match api.numbers().await {
            Ok((hub, stored)) => Update::Numbers { hub, stored },
            Err(error) => Update::Trouble(error.to_string()),
        };
        if updates.send(update).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_real_service_are_refused_by_name() {
        let settings = Settings { database_url: Some("postgres://u:hunter2@h/d".into()), ..Settings::default() };
        let error = config(settings, None).expect_err("a refusal").to_string();
        assert!(error.contains("--database-url") && error.contains("HUB_CLOUD_DATABASE_URL"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        assert!(config(Settings::default(), Some(Path::new("a.toml"))).is_err());
        // What would be of no use here, or keep the demo out of its own service.
        for (key, settings) in [
            ("builtin-login", Settings { builtin_login: Some(false), ..Settings::default() }),
            ("oidc-issuer", Settings { oidc_issuer: Some("https://login.example.com".into()), ..Settings::default() }),
            ("smtp-url", Settings { smtp_url: Some("smtp://mail.example.com".into()), ..Settings::default() }),
            ("trusted-proxies", Settings { trusted_proxies: Some("10.0.0.0/8".into()), ..Settings::default() }),
            ("release-keys", Settings { release_keys: Some("keys".into()), ..Settings::default() }),
        ] {
            let error = config(settings, None).expect_err(key).to_string();
            assert!(error.contains(&format!("--{key} ")), "{error}");
        }
    }

    #[test]
    fn a_taken_port_is_replaced_by_a_free_one_unless_it_was_asked_for() {
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
        assert_eq!(config(Settings::default(), None).expect("a configuration").listen.port(), 0);
        let settings =
            Settings { listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT))), ..Settings::default() };
        assert_eq!(config(settings, None).expect("a configuration").listen.port(), DEFAULT_PORT);
    }
}
