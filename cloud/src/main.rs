//! hub-cloud: arguments, configuration, logging, start.

use std::ffi::OsStr;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use hub_cloud::admin;
use hub_cloud::app::{App, StartError};
use hub_cloud::clock::Clock;
use hub_cloud::config::{Config, ConfigError, SETTINGS, Settings};
use hub_cloud::demo;
use hub_cloud::error::Error;
use hub_cloud::http::router;
use hub_cloud::http::serve::{Server, stop_signal};
use hub_cloud::login;
use hub_cloud::release;
use hub_cloud::tasks;
use hub_protocol::check;
use tracing_subscriber::EnvFilter;

/// Exit codes, as `sysexits.h` has them where it has one.
const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
const CONFIG_REFUSED: u8 = 3;
/// `EX_TEMPFAIL`: the same command may well succeed later.
const TRY_LATER: u8 = 75;

/// The service behind a fleet of BLE hubs.
#[derive(Parser)]
#[command(
    version,
    after_help = HELP
)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Configuration file (TOML); its keys are the flags' names
    #[arg(long, global = true, env = "HUB_CLOUD_CONFIG", value_name = "FILE", help_heading = SETTINGS)]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: Settings,
}

const HELP: &str = "\
Start with `hub-cloud demo` to see all of it work on this machine, or with `hub-cloud serve`: it makes its keys and database in ./hub-cloud-data/ \
and serves on 127.0.0.1:8080.

Options win over the environment, the environment over the file.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 configuration refused, 75 try again later.";

#[derive(Subcommand)]
enum Command {
    /// Serve until told to stop
    Serve,
    /// Bring the database's schema up to date, and exit
    Migrate,
    /// Make a platform administrator
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Look at the keys that seal secrets and sign tokens, and replace them, while the service serves
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Look at the authorities that issue hubs' certificates, and replace the root
    #[command(subcommand)]
    Ca(CaCommand),
    /// Log in at the external issuer, and print access tokens for other commands
    #[command(after_help = login::HELP)]
    Login(login::Options),
    /// Make keys, and sign and check releases of the agent and of apps
    #[command(subcommand, after_help = release::HELP)]
    Release(release::Command),
    /// Try the configuration, the keys, the database and all that the settings name, and say how to mend what is wrong; changes nothing
    #[command(
        after_help = "Exit code 1 when a check fails; a warning is no failure. It may run beside the service, as the service's user."
    )]
    Check {
        /// One JSON object: {"ok": bool, "findings": [{"check", "state", "finding", "mend"}]}
        #[arg(long)]
        json: bool,
    },
    /// Print the API's description (OpenAPI 3.1)
    Openapi,
    /// Show all of it on this machine: service, a hub that hears, and what arrives
    #[command(after_help = DEMO_HELP)]
    Demo(demo::Options),
}

const DEMO_HELP: &str = "\
The demo keeps all it makes in ./hub-cloud-data/demo (--data-dir names another): account, database, hub, logs. The next start goes on with it; remove the
directory to begin afresh. It serves on 127.0.0.1:8080, or on a free port when that is taken. Ctrl-C ends it.";

#[derive(Subcommand)]
enum AdminCommand {
    /// Make an account that may use /platform, or give that right to one there is, whose password this has to be
    #[command(after_help = "Example: hub-cloud admin create --email ada@example.com --password-stdin < password.txt")]
    Create {
        /// E-mail to log in with
        #[arg(long)]
        email: String,
        /// Read the password, 8 to 200 characters, from the first line of standard input
        #[arg(long, required = true)]
        password_stdin: bool,
    },
}

#[derive(Subcommand)]
enum KeysCommand {
    /// Show the master keys and how much is sealed with each, and the signing keys
    List,
    /// Make a new master key, seal every secret in the database with it, and make a new signing key
    #[command(after_help = ROTATE_HELP)]
    Rotate,
    /// Give up a master key that nothing is sealed with any more
    Forget {
        /// The key's id, as `hub-cloud keys list` shows it
        id: String,
    },
}

#[derive(Subcommand)]
enum CaCommand {
    /// Show the authorities, and how many certificates each has issued
    List,
    /// Make a new root and an authority below it, which issue a minute later
    #[command(after_help = CA_ROTATE_HELP)]
    Rotate,
}

const CA_ROTATE_HELP: &str = "\
Services take it up by themselves. Hubs keep their certificates: those of the old root are valid until they expire, and it stays in the bundle until the last one has.";

const ROTATE_HELP: &str = "\
Services that use the same master.key take the new key up by themselves, at once. Where the setting master-key holds the key, nothing is made: give all replicas OLD,NEW first, then
NEW,OLD, then run this, then give them NEW. It may be cut off and run again at any time.";

/// Why a command failed, and with which exit code.
struct Failure {
    exit_code: u8,
    message: String,
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let exit_code = match error.is_wrong_setting() {
            true => CONFIG_REFUSED,
            false if error.is_temporary() => TRY_LATER,
            false => FAILED,
        };
        Self { exit_code, message: error.to_string() }
    }
}

/// What is wrong with the input is wrong usage.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit_code = match error.status().as_u16() {
            400 => WRONG_USAGE,
            503 => TRY_LATER,
            _ => FAILED,
        };
        Self { exit_code, message: error.to_string() }
    }
}

impl From<demo::Failure> for Failure {
    fn from(error: demo::Failure) -> Self {
        Self { exit_code: FAILED, message: error.to_string() }
    }
}

impl From<login::Failure> for Failure {
    fn from(error: login::Failure) -> Self {
        match error {
            login::Failure::WrongSetting(message) => Self { exit_code: CONFIG_REFUSED, message },
            login::Failure::Failed(message) => Self { exit_code: FAILED, message },
        }
    }
}

impl From<release::Failure> for Failure {
    fn from(error: release::Failure) -> Self {
        match error {
            release::Failure::WrongUsage(message) => Self { exit_code: WRONG_USAGE, message },
            release::Failure::Failed(message) => Self { exit_code: FAILED, message },
        }
    }
}

/// Arguments and environment. A wrong argument is wrong usage, which clap tells by itself; a wrong variable is a configuration to refuse.
fn parse() -> Result<Cli, ConfigError> {
    // A variable that is empty counts as not set: units and container files leave them so.
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let mut command = Cli::command().mut_args(|arg| match arg.get_env().is_some_and(is_empty) {
        true => arg.env(None::<&str>),
        false => arg,
    });
    // Hands the settings down to the commands. Those that use none do not list them.
    command.build();
    let command = ["release", "openapi"].into_iter().fold(command, |command, name| command.mut_subcommand(name, bare));
    let error = match command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => return Ok(cli),
        // Help or version.
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => error,
    };
    // Where the arguments alone would do, the environment is at fault.
    match Cli::command().mut_args(|arg| arg.env(None::<&str>)).try_get_matches() {
        Ok(_) => {
            let text = error.to_string();
            let reason = text.lines().next().unwrap_or_default();
            Err(ConfigError(format!("in the environment: {}", reason.trim_start_matches("error: "))))
        }
        Err(usage) => usage.exit(),
    }
}

/// The command, whose help and whose commands' help leave the settings out.
fn bare(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get_help_heading() {
        Some(SETTINGS) => arg.hide(true),
        _ => arg,
    });
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, bare))
}

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            eprintln!("hub-cloud: {error}");
            return ExitCode::from(CONFIG_REFUSED);
        }
    };
    // What the service keeps is its owner's alone, also in a directory that others may enter. Public keys of releases are for everybody.
    if !matches!(cli.command, Command::Release(_)) {
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    }
    let config = match &cli.command {
        Command::Demo(_) => demo::config(cli.settings, cli.config.as_deref()),
        _ => Config::load(cli.settings, cli.config.as_deref()),
    };
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            eprintln!("hub-cloud: {error}");
            return ExitCode::from(CONFIG_REFUSED);
        }
    };
    // The demo's logs go to a file of its own.
    let logging = match &cli.command {
        Command::Demo(_) => Ok(()),
        _ => start_logging(&config.log),
    };
    if let Err(error) = logging {
        eprintln!("hub-cloud: log: {error}");
        return ExitCode::from(CONFIG_REFUSED);
    }
    // One TLS and crypto provider for all of the process.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("hub-cloud: cannot start threads: {error}");
            return ExitCode::from(FAILED);
        }
    };
    match runtime.block_on(run(cli.command, config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { exit_code, message }) => {
            eprintln!("hub-cloud: {message}");
            ExitCode::from(exit_code)
        }
    }
}

/// Text for a person at a terminal, JSON for everything else.
fn start_logging(filter: &str) -> Result<(), tracing_subscriber::filter::ParseError> {
    let filter = EnvFilter::try_new(filter)?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match std::io::stderr().is_terminal() {
        true => logs.init(),
        false => logs.json().flatten_event(true).init(),
    }
    Ok(())
}

async fn run(command: Command, config: Config) -> Result<(), Failure> {
    match command {
        Command::Serve => serve(config).await?,
        Command::Admin(AdminCommand::Create { email, password_stdin: _ }) => {
            let password = admin::read_password(std::io::stdin().lock())?;
            let app = App::start(config, Clock::System).await?;
            let created = admin::create(&app, &email, password).await;
            app.stop().await;
            print(&format!("{}\n", created?))?;
        }
        Command::Migrate => {
            App::start(config, Clock::System).await?.stop().await;
            eprintln!("the database's schema is up to date");
        }
        Command::Keys(command) => {
            let app = App::start(config, Clock::System).await?;
            let done = match command {
                KeysCommand::List => admin::keys::list(&app).await,
                KeysCommand::Rotate => admin::keys::rotate(&app).await,
                KeysCommand::Forget { id } => admin::keys::forget(&app, &id).await,
            };
            app.stop().await;
            print(&done?)?;
        }
        Command::Ca(command) => {
            let app = App::start(config, Clock::System).await?;
            let done = match command {
                CaCommand::List => admin::certificates::list(&app).await,
                CaCommand::Rotate => admin::certificates::rotate(&app).await,
            };
            app.stop().await;
            print(&done?)?;
        }
        Command::Check { json } => {
            let findings = admin::check::check(&config, Clock::System.now()).await;
            let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            print(&match json {
                true => check::json(&findings).unwrap_or_default(),
                false => check::text(&findings, colours),
            })?;
            if let Some(message) = check::failure(&findings) {
                return Err(Failure { exit_code: FAILED, message });
            }
        }
        Command::Openapi => {
            let document = serde_json::to_string_pretty(&router::describe()).unwrap_or_default();
            print(&(document + "\n"))?;
        }
        Command::Release(command) => release::run(&command)?,
        Command::Login(options) => login::run(&config, &options, || Clock::System.now()).await?,
        Command::Demo(options) => demo::run(config, options).await?,
    }
    Ok(())
}

/// Writes to standard output. Whoever read it may have gone, which is an end like any other.
fn print(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure { exit_code: FAILED, message: format!("cannot write: {error}") })
        }
        _ => Ok(()),
    }
}

/// Every connection is an open file, and the usual soft limit of 1024 is no protection but an outage.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

async fn serve(config: Config) -> Result<(), StartError> {
    raise_file_limit();
    let app = App::start(config, Clock::System).await?;
    let server = Server::bind(&app).await?;
    if let Some(oidc) = &app.oidc {
        oidc.prepare();
    }
    let url = server.url();
    let shutdown = app.shutdown.clone();
    tokio::spawn(async move {
        stop_signal().await;
        shutdown.cancel();
    });
    app.workers.spawn(tasks::work(app.clone()));
    eprintln!("listening on {url}");
    let served = server.run(&app, router::router(app.clone())).await;
    app.stop().await;
    served.map_err(|error| StartError::Listen(error.to_string()))
}
