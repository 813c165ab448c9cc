//! `hub-cloud demo`: the whole path on one machine. It runs the service in this process, the real
//! agent as a child process, and a view that reads the results as any client does. It uses the API
//! only and never accesses the database, but for the administrator of the platform, who is made as
//! `hub-cloud admin create` does.

mod agent;
mod client;
mod demo_dir;
mod pipeline;
mod preflight;
mod receiver;
mod sample;
mod screen;
mod sign_in;
mod view;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use clap::Args;
use hub_base::clock::Clock;
use hub_client::{Hub, Stream};
use hub_core::config::{Config, ConfigError, Settings};
use hub_people::accounts;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::app::App;
use crate::http::router;
use crate::http::serve::{Server, stop_signal};
use crate::lock;
use crate::start_error::StartError;
use crate::upkeep;
use agent::Agent;
use client::{Api, Event};
use demo_dir::{Account, DemoDir};
use receiver::Receiver;
use sample::{Made, Past, Sample};
use screen::Screen;
use sign_in::SignIn;
use view::{Facts, View};

const DEFAULT_DATA_DIR: &str = "hub-cloud-data/demo";
const DEFAULT_PORT: u16 = 8080;
/// High enough for one hub that replays a trace at high speed.
const UPLOADS_PER_MINUTE: u32 = 100_000;
/// Polling interval of the statistics.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time until the stream of events is opened after the service refused it.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const DRAW_INTERVAL: Duration = Duration::from_millis(200);

/// The source of the demo's advertisements.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Scan with the Bluetooth adapters of this machine instead of playing hubs and sensors
    #[arg(long, conflicts_with = "speed")]
    bluez: bool,

    /// How fast the demo hub hears its sensors: 10 is ten times as often
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed, allow_negative_numbers = true)]
    speed: f64,

    /// Send what the devices measure to this address, which begins with http://, https://, mqtt://,
    /// mqtts:// or nats:// [default: a receiver in the demo itself]
    #[arg(long, value_name = "URL", value_parser = receiver)]
    send_to: Option<String>,

    /// Whether another port than the documented one was chosen, which is in use.
    #[arg(skip)]
    is_moved: bool,
}

fn receiver(text: &str) -> Result<String, String> {
    pipeline::destination(text).map(|_| text.to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("must be a number above 0".into()),
    }
}

/// The reason why the demo failed, with a message for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self(error.to_string())
    }
}

/// An update of the view.
enum Update {
    Event(Event),
    Statistics { hub: Option<Hub>, stored: u64 },
    Error(String),
}

/// The configuration of the demo. It uses its own directory and database.
pub fn config(mut settings: Settings) -> Result<Config, ConfigError> {
    settings
        .data_dir
        .get_or_insert_with(|| PathBuf::from(DEFAULT_DATA_DIR));
    settings.listen.get_or_insert_with(default_or_free_address);
    settings.upload_limit_per_minute = Some(UPLOADS_PER_MINUTE);
    // The users of the demo are on this machine.
    settings.allow_private_targets = Some(true.into());
    Config::load(settings, None)
}

/// The documented port, or a free one if it is in use.
fn default_or_free_address() -> SocketAddr {
    let port = if is_default_port_in_use() {
        0
    } else {
        DEFAULT_PORT
    };
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn is_default_port_in_use() -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, DEFAULT_PORT)).is_err()
}

/// Runs until Ctrl-C or SIGTERM.
pub async fn run(config: Config, mut options: Options) -> Result<(), Failure> {
    let program = agent::find()?;
    let demo_dir = DemoDir::open(&config.data_dir)?;
    preflight::check(config.listen, &options, &program).await?;
    options.is_moved = config.listen.port() == 0 && is_default_port_in_use();
    log_to_file(&demo_dir, config.log.as_deref())?;
    // What the radio of this machine hears is nobody's until it is known, so nothing is sent.
    if options.send_to.is_none() && !options.bluez {
        let receiver = Receiver::bind(&demo_dir).await?;
        options.send_to = Some(receiver.url.clone());
        tokio::spawn(receiver.run());
    }
    let made = match options.bluez {
        true => None,
        false => Some(Made::load(&demo_dir)?),
    };
    let past = made.as_ref().map(Past::new);
    let clock = past.as_ref().map_or(Clock::System, Past::clock);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        stop_signal().await;
        stopping.cancel();
    });

    // `hub-cloud serve` can serve the same data.
    let _lock = lock::lock(&config).await?;
    let app = App::start(config, clock).await?;
    let account = demo_dir.account()?;
    if made.as_ref().is_some_and(|made| !made.is_complete) {
        let Account { email, password } = account.operator();
        let created = accounts::create_admin(&app.parts().accounts, &email, password).await;
        created.map_err(|error| Failure(error.to_string()))?;
    }
    let server = Server::bind(&app).await?;
    let url = server.url();
    let (sign_in, link) = SignIn::new(&url, account);
    let serving = tokio::spawn({
        let app = app.clone();
        let router = router::router(&app).merge(sign_in.routes());
        async move { server.run(&app, router).await }
    });
    let preparing = prepare(&demo_dir, made.zip(past), &url, &options);
    let shown = match stop.run_until_cancelled(preparing).await {
        Some(Ok(prepared)) => {
            // The work in the background knows the present only.
            app.workers.spawn(upkeep::run(app.clone()));
            show(prepared, &demo_dir, (&url, link), &program, &options, &stop).await
        }
        Some(Err(failure)) => Err(failure),
        None => Ok(0),
    };
    app.shutdown.cancel();
    let served = serving.await;
    app.stop().await;
    let received = shown?;
    if let Ok(Err(error)) = served {
        return Err(Failure(format!("the service failed: {error}")));
    }
    let dir = demo_dir.shell_path();
    screen::print_line(&format!(
        "\nStopped. {received} events were received and are stored in {dir}.\n\
         `hub-cloud demo` continues with this data; `hub-cloud serve --data-dir {dir}` serves it without the demo hub."
    ));
    Ok(())
}

/// Logs go to a file, because the screen belongs to the view.
fn log_to_file(demo_dir: &DemoDir, filter: Option<&str>) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter.unwrap_or("warn"))
        .map_err(|error| Failure(format!("log: {error}")))?;
    let file = Mutex::new(demo_dir.log(demo_dir::SERVICE_LOG)?);
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(file);
    logs.try_init()
        .map_err(|error| Failure(format!("cannot start logging: {error}")))
}

/// What the view and the hubs need.
struct Prepared {
    api: Api,
    stream: Stream,
    sample: Option<Sample>,
}

/// Prepares account, sample and hub.
async fn prepare(
    demo_dir: &DemoDir,
    made: Option<(Made, Past)>,
    url: &str,
    options: &Options,
) -> Result<Prepared, Failure> {
    let api = Api::connect(url, demo_dir.account()?).await?;
    let sample = match made {
        Some((made, past)) => Some(Sample::make(&api, (made, &past), (demo_dir, url)).await?),
        None => None,
    };
    if let Some(sample) = &sample {
        demo_dir.write(demo_dir::RECORDING, &sample.recording()?)?;
    }
    pipeline::set_up(&api.client, options.send_to.as_deref()).await?;
    demo_dir.write(demo_dir::CLAIM_CODE, api.claim_code().await?.as_bytes())?;
    demo_dir.write(
        demo_dir::ENVIRONMENT,
        view::environment(url, &api).as_bytes(),
    )?;
    // Opened before the hub can upload, so that its first event is received.
    let stream = api.open_stream().await?;
    Ok(Prepared {
        api,
        stream,
        sample,
    })
}

/// Shows events until `stop`. Returns the number of received events.
async fn show(
    prepared: Prepared,
    demo_dir: &DemoDir,
    (url, link): (&str, String),
    program: &Path,
    options: &Options,
    stop: &CancellationToken,
) -> Result<u64, Failure> {
    let Prepared {
        api,
        stream,
        sample,
    } = prepared;
    let facts = Facts {
        link,
        note: options
            .is_moved
            .then(|| format!("port {DEFAULT_PORT}, the usual one, is in use by another program")),
        url: url.to_owned(),
        email: api.account.email.clone(),
        password: api.account.password.clone(),
        operator: (!options.bluez).then(|| api.account.operator().email),
        tenant_uuid: api.tenant_uuid,
        dir: demo_dir.shell_path(),
        source: match options.bluez {
            true => "the Bluetooth adapters of this machine".to_owned(),
            false => format!(
                "three hubs and nine sensors that the demo plays, at speed {}",
                options.speed
            ),
        },
        receiver: options.send_to.clone(),
    };
    let mut agent = Agent::start(program, demo_dir, url, options)?;
    let (updates, received) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(stream, updates.clone()));
    if let Some(sample) = sample {
        sample.play(api.clone(), &mut tasks);
    }
    tasks.spawn(poll_statistics(api, updates));

    let mut view = View::new(facts);
    let ended = draw_until_end(&mut view, received, &mut agent, stop).await;
    agent.stop().await;
    ended.map(|()| view.received())
}

/// Draws the view until `stop`, until the agent exits, or until the output is closed.
async fn draw_until_end(
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
                // The reader closed the pipe, as `head` does.
                if screen.draw(view).is_err() {
                    return Ok(());
                }
            }
        }
    }
}

/// Forwards events until the receiver is closed.
async fn follow(mut stream: Stream, updates: mpsc::Sender<Update>) {
    loop {
        let update = match stream.next().await {
            Ok(hub_client::Event::Record(record)) => match serde_json::from_value(record) {
                Ok(event) => Update::Event(event),
                Err(error) => Update::Error(format!("the service sent an invalid event: {error}")),
            },
            Ok(hub_client::Event::Lost { reason }) => Update::Error(reason),
            Ok(hub_client::Event::Resumed { .. }) => continue,
            Err(error) => {
                let failed = updates.send(Update::Error(error.to_string())).await;
                if failed.is_err() {
                    return;
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
                continue;
            }
        };
        if updates.send(update).await.is_err() {
            return;
        }
    }
}

/// Polls the state of the hub and the number of stored events.
async fn poll_statistics(api: Api, updates: mpsc::Sender<Update>) {
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let update = match api.statistics().await {
            Ok((hub, stored)) => Update::Statistics { hub, stored },
            Err(error) => Update::Error(error.to_string()),
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
    fn default_port_in_use_is_replaced_and_an_explicit_port_is_kept() {
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
        assert_eq!(
            config(Settings::default())
                .expect("a configuration")
                .listen
                .port(),
            0
        );
        let settings = Settings {
            listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT))),
            ..Settings::default()
        };
        assert_eq!(
            config(settings).expect("a configuration").listen.port(),
            DEFAULT_PORT
        );
    }
}
