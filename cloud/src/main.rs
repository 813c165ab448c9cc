//! The `hub-cloud` program: parses arguments, loads the configuration, starts logging and runs the
//! selected command.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use hub_cloud::admin;
use hub_cloud::app::{App, Base, StartError};
use hub_cloud::clock::Clock;
use hub_cloud::config::{self, AccessLog, Config, ConfigError, LogFormat, SETTINGS, Settings};
use hub_cloud::db::space;
use hub_cloud::demo;
use hub_cloud::domain::accounts::Locked;
use hub_cloud::error::Error;
use hub_cloud::http::access_log;
use hub_cloud::http::router;
use hub_cloud::http::serve::{Server, stop_signal};
use hub_cloud::login;
use hub_cloud::observe;
use hub_cloud::release;
use hub_cloud::upkeep;
use hub_protocol::check;
use tracing_subscriber::EnvFilter;

/// Exit codes. Values from `sysexits.h` are used where one fits.
const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
const CONFIG_REFUSED: u8 = 3;
/// `EX_TEMPFAIL`: the same command can succeed later.
const TRY_LATER: u8 = 75;

/// Management service for a fleet of BLE hubs
#[derive(Parser)]
#[command(
    version,
    after_help = HELP
)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Configuration file (TOML). Its keys are the names of the flags [default:
    /// /etc/hub-cloud/config.toml, if it exists]
    #[arg(long, global = true, env = "HUB_CLOUD_CONFIG", value_name = "FILE", help_heading = SETTINGS)]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: Settings,
}

const HELP: &str = "\
Examples:
  hub-cloud demo                                    run service, hub and client on this machine
  hub-cloud serve                                   serve on 127.0.0.1:8080, with keys and database
                                                    in ./hub-cloud-data
  hub-cloud check                                   find configuration faults before a start

Options win over the environment, the environment over the file.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 configuration refused, 75 try again later.";

#[derive(Subcommand)]
enum Command {
    /// Run the service until SIGTERM or Ctrl-C
    #[command(after_help = SERVE_HELP)]
    Serve,
    /// Apply pending migrations to the database and exit
    #[command(after_help = MIGRATE_HELP)]
    Migrate {
        /// Rewrite an SQLite database without its free space; the service must be stopped
        #[arg(long)]
        compact: bool,
    },
    /// Create, list and demote platform administrators; help people who cannot log in
    #[command(subcommand, after_help = ADMIN_HELP)]
    Admin(AdminCommand),
    /// List and replace the master keys and the token signing keys; the service may keep running
    #[command(subcommand, after_help = KEYS_HELP)]
    Keys(KeysCommand),
    /// List the authorities that issue hubs' client certificates, and replace the root
    #[command(subcommand, after_help = CA_HELP)]
    Ca(CaCommand),
    /// Log in at the external issuer and print access tokens for other commands
    #[command(after_help = login::HELP)]
    Login(login::Options),
    /// Create release keys; sign and verify releases of the agent and of apps
    #[command(subcommand, after_help = release::HELP)]
    Release(release::Command),
    /// Test the configuration and everything it refers to, and print a fix for each fault
    #[command(after_help = CHECK_HELP)]
    Check {
        /// Print one JSON object: {"ok": bool, "findings": [{"check", "state", "finding", "mend"}]}
        #[arg(long)]
        json: bool,
    },
    /// Print the API description (OpenAPI 3.1)
    #[command(after_help = "Example: hub-cloud openapi > openapi.json")]
    Openapi,
    /// Print the completions of a shell; the package installs those of bash, zsh and fish
    #[command(after_help = "Example: hub-cloud completions bash > /etc/bash_completion.d/hub-cloud")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Run the service, one hub and a live view of its data on this machine
    #[command(after_help = DEMO_HELP)]
    Demo(demo::Options),
}

const SERVE_HELP: &str = "\
The first start creates the keys and, on SQLite, the database. Every start applies pending
migrations. On SIGTERM or Ctrl-C the service completes the requests it has accepted, then exits.

Examples:
  hub-cloud serve
  hub-cloud serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem
  hub-cloud serve --database-url postgres://hub:PASSWORD@db.example.com/hub \\
      --bus nats://nats.example.com:4222";

const MIGRATE_HELP: &str = "\
`serve` does this at its start. Run it beforehand to separate a long migration from the start of the
service. Take a backup first: there is no migration back.

--compact gives the free space of an SQLite database back to the file system, and lets the service
do so from then on. It needs as much free space as the database has in use.

Example: runuser -u hub-cloud -- hub-cloud migrate";

const ADMIN_HELP: &str = "\
These commands work on the database of the service, which may keep running, and never create one.
Without --config they use /etc/hub-cloud/config.toml, if it exists.

Examples:
  hub-cloud admin create --email ada@example.com --password-stdin < password.txt
  hub-cloud admin list
  hub-cloud admin revoke --email ada@example.com";

const KEYS_HELP: &str = "\
These commands work on the database of the service, which may keep running, and never create one.
Without --config they use /etc/hub-cloud/config.toml, if it exists.

Example: hub-cloud keys list";

const CA_HELP: &str = "\
These commands work on the database of the service, which may keep running, and never create one.
Without --config they use /etc/hub-cloud/config.toml, if it exists.

Example: hub-cloud ca list";

const CHECK_HELP: &str = "\
Checks settings, keys, database, file store, TLS certificate and every server that the settings name.
It changes nothing and may run while the service runs. Run it as the service's user. The exit code is
1 when a check fails; a warning is not a failure.

Examples:
  hub-cloud check
  runuser -u hub-cloud -- hub-cloud check --json";

const DEMO_HELP: &str = "\
Account, database, hub state and logs are stored in ./hub-cloud-data/demo (--data-dir selects another
directory). The next start continues with this data; remove the directory to start over. The demo
listens on 127.0.0.1:8080, or on a free port when that port is in use. Ctrl-C ends it.

Examples:
  hub-cloud demo
  hub-cloud demo --speed 10
  hub-cloud demo --bluez";

const UNLOCK_HELP: &str = "\
Examples:
  hub-cloud admin unlock --email ada@example.com
  hub-cloud admin unlock --address 192.0.2.7";

const RESET_HELP: &str = "\
Example: hub-cloud admin reset-password --email ada@example.com --password-stdin < password.txt";

#[derive(Subcommand)]
enum AdminCommand {
    /// Create a platform administrator, or promote the existing account that has this password
    #[command(after_help = "Example: hub-cloud admin create --email ada@example.com --password-stdin < password.txt")]
    Create {
        /// E-mail address to log in with
        #[arg(long)]
        email: String,
        /// Read the password, 8 to 200 characters, from the first line of standard input
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// List the platform administrators, with their logins
    #[command(after_help = "Example: hub-cloud admin list")]
    List {
        /// Print one JSON object: {"administrators": [{"userUuid", "email", "nickname",
        /// "createdAt", "logins", "lastLoginAt"}]}
        #[arg(long)]
        json: bool,
    },
    /// Take the role of platform administrator from an account and end all its logins, at once
    #[command(after_help = "Example: hub-cloud admin revoke --email ada@example.com")]
    Revoke {
        /// E-mail address of the account
        #[arg(long)]
        email: String,
        /// End the logins only; works for every account
        #[arg(long)]
        keep_role: bool,
    },
    /// Let somebody log in whose failed logins delay the next ones
    #[command(after_help = UNLOCK_HELP)]
    Unlock {
        #[command(flatten)]
        locked: LockedArgs,
    },
    /// Set the password of an account, end its logins and clear what delays them
    #[command(after_help = RESET_HELP)]
    ResetPassword {
        /// E-mail address of the account
        #[arg(long)]
        email: String,
        /// Read the password, 8 to 200 characters, from the first line of standard input
        #[arg(long, required = true)]
        password_stdin: bool,
    },
}

/// Who is to be unlocked: exactly one of them.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct LockedArgs {
    /// E-mail address of the account: clears what was counted against it, from any address
    #[arg(long)]
    email: Option<String>,
    /// IP address: clears the logins and registrations that were counted against it
    #[arg(long)]
    address: Option<IpAddr>,
}

#[derive(Subcommand)]
enum KeysCommand {
    /// List the master keys, with the number of secrets sealed with each, and the signing keys
    #[command(after_help = "Example: hub-cloud keys list")]
    List,
    /// Create a new master key, reseal every secret with it, and create a new signing key
    #[command(after_help = ROTATE_HELP)]
    Rotate,
    /// Remove a master key that no secret is sealed with
    #[command(after_help = "Example: hub-cloud keys forget 1f3a5c7e")]
    Forget {
        /// Id of the key, as shown by `hub-cloud keys list`
        id: String,
    },
}

#[derive(Subcommand)]
enum CaCommand {
    /// List the authorities, with the number of unexpired certificates of each
    #[command(after_help = "Example: hub-cloud ca list")]
    List,
    /// Create a new root and an issuing authority below it
    #[command(after_help = CA_ROTATE_HELP)]
    Rotate,
}

const CA_ROTATE_HELP: &str = "\
Running services start to issue from the new authority after one minute. Certificates issued under
the old root stay valid until they expire, and the old root stays in the bundle until then.

Example: hub-cloud ca rotate";

const ROTATE_HELP: &str = "\
Running services that share the file master.key load the new key immediately. If the setting
master-key holds the keys, no master key is created. In that case set it to OLD,NEW on all replicas,
then to NEW,OLD, run this command, then set it to NEW. The command may be interrupted and run again.

Example: hub-cloud keys rotate";

/// A failed command: its exit code and the message for the operator.
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

/// Invalid input (400) is wrong usage; an unavailable dependency (503) and a full disk (507) are
/// worth a retry.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit_code = match error.status().as_u16() {
            400 => WRONG_USAGE,
            503 | 507 => TRY_LATER,
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

/// Parses arguments and environment. For a wrong argument clap prints the usage error and exits; a
/// wrong environment variable is a configuration error.
fn parse() -> Result<Cli, ConfigError> {
    // Units and container files set empty variables: they count as not set.
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let mut command = Cli::command().mut_args(|arg| match arg.get_env().is_some_and(is_empty) {
        true => arg.env(None::<&str>),
        false => arg,
    });
    // `build` copies the global settings to the subcommands. Commands that use none hide them.
    command.build();
    let command = ["release", "openapi", "completions"]
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, hide_settings));
    let error = match command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => return Ok(cli),
        // Help or version.
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => error,
    };
    // If the arguments parse without the environment, the environment is at fault.
    match Cli::command().mut_args(|arg| arg.env(None::<&str>)).try_get_matches() {
        Ok(_) => {
            let text = error.to_string();
            let reason = text.lines().next().unwrap_or_default();
            Err(ConfigError(format!("in the environment: {}", reason.trim_start_matches("error: "))))
        }
        Err(usage) => usage.exit(),
    }
}

/// Hides the settings in the help of the command and its subcommands.
fn hide_settings(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get_help_heading() {
        Some(SETTINGS) => arg.hide(true),
        _ => arg,
    });
    let names: Vec<String> = command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, hide_settings))
}

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            eprintln!("hub-cloud: {error}");
            return ExitCode::from(CONFIG_REFUSED);
        }
    };
    // Files of the service are private to its user, even in a directory that others may enter.
    // `release` is exempt: it writes public keys that everybody may read.
    if !matches!(cli.command, Command::Release(_)) {
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    }
    let file = config_file(&cli);
    let config = match &cli.command {
        Command::Demo(_) => demo::config(cli.settings, file.as_deref()),
        _ => Config::load(cli.settings, file.as_deref()),
    };
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            eprintln!("hub-cloud: {error}");
            return ExitCode::from(CONFIG_REFUSED);
        }
    };
    // The demo writes its logs to a file, and opens it later.
    let logging = match &cli.command {
        Command::Demo(_) => Ok(()),
        command => start_logging(matches!(command, Command::Serve), &config),
    };
    if logging.is_err() {
        eprintln!("hub-cloud: log must be error, warn, info, debug, or a filter such as hub_cloud=debug");
        return ExitCode::from(CONFIG_REFUSED);
    }
    // One TLS and crypto provider for the whole process.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("hub-cloud: cannot start worker threads: {error}; check the limits of this user (ulimit -u)");
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

/// The file of settings: the named one, else that of the installed package for the commands that
/// concern its service.
fn config_file(cli: &Cli) -> Option<PathBuf> {
    cli.config.clone().or_else(|| match cli.command {
        Command::Serve
        | Command::Migrate { .. }
        | Command::Admin(_)
        | Command::Keys(_)
        | Command::Ca(_)
        | Command::Check { .. } => config::installed(),
        // People run it as themselves, and most may not read the settings of the service.
        Command::Login(_) => config::installed().filter(|path| File::open(path).is_ok()),
        Command::Demo(_) | Command::Release(_) | Command::Openapi | Command::Completions { .. } => None,
    })
}

/// Logs to standard error. Without the setting, the service logs what matters to an operator, and
/// other commands log faults alone.
fn start_logging(is_service: bool, config: &Config) -> Result<(), tracing_subscriber::filter::ParseError> {
    let usual = if is_service { "warn,hub_cloud=info" } else { "warn" };
    let mut filter = EnvFilter::try_new(config.log.as_deref().unwrap_or(usual))?;
    if config.access_log != AccessLog::Off {
        filter = filter.add_directive(format!("{}=info", access_log::TARGET).parse()?);
    }
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let is_json = match config.log_format {
        LogFormat::Auto => !std::io::stderr().is_terminal(),
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    match is_json {
        true => logs.json().flatten_event(true).init(),
        false => logs.init(),
    }
    Ok(())
}

async fn run(command: Command, config: Config) -> Result<(), Failure> {
    match command {
        Command::Serve => serve(config).await?,
        Command::Admin(command) => administrate(command, config).await?,
        Command::Migrate { compact } => {
            let app = App::start(config, Clock::System).await?;
            let compacted = if compact { space::rewrite(&app.db).await } else { Ok(()) };
            app.stop().await;
            compacted?;
            eprintln!("the database schema is up to date");
        }
        Command::Keys(command) => {
            let base = Base::attach(config, Clock::System).await?;
            let report = match command {
                KeysCommand::List => admin::keys::list(&base).await,
                KeysCommand::Rotate => admin::keys::rotate(&base).await,
                KeysCommand::Forget { id } => admin::keys::forget(&base, &id).await,
            };
            base.stop().await;
            print(&report?)?;
        }
        Command::Ca(command) => {
            let base = Base::attach(config, Clock::System).await?;
            let report = match command {
                CaCommand::List => admin::certificates::list(&base).await,
                CaCommand::Rotate => admin::certificates::rotate(&base).await,
            };
            base.stop().await;
            print(&report?)?;
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
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "hub-cloud", &mut text);
            print(&String::from_utf8_lossy(&text))?;
        }
        Command::Release(command) => release::run(&command)?,
        Command::Login(options) => login::run(&config, &options, || Clock::System.now()).await?,
        Command::Demo(options) => demo::run(config, options).await?,
    }
    Ok(())
}

async fn administrate(command: AdminCommand, config: Config) -> Result<(), Failure> {
    // Checked before the database is opened: wrong usage is reported as such.
    let password = match &command {
        AdminCommand::Create { email, .. } | AdminCommand::ResetPassword { email, .. } => {
            let password = admin::read_password(std::io::stdin().lock())?;
            admin::accounts::check(email, &password)?;
            password
        }
        AdminCommand::List { .. } | AdminCommand::Revoke { .. } | AdminCommand::Unlock { .. } => String::new(),
    };
    let base = Base::attach(config, Clock::System).await?;
    let report = match command {
        AdminCommand::Create { email, password_stdin: _ } => admin::accounts::create(&base, &email, password).await,
        AdminCommand::List { json } => admin::accounts::list(&base, json).await,
        AdminCommand::Revoke { email, keep_role } => admin::accounts::revoke(&base, &email, keep_role).await,
        AdminCommand::Unlock { locked: LockedArgs { email, address } } => {
            let email = email.unwrap_or_default();
            admin::accounts::unlock(&base, address.map_or(Locked::Email(&email), Locked::Address)).await
        }
        AdminCommand::ResetPassword { email, password_stdin: _ } => {
            admin::accounts::reset_password(&base, &email, password).await
        }
    };
    base.stop().await;
    print(&report?)
}

/// Writes to standard output. A closed pipe is not an error: the reader has what it needs.
fn print(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure { exit_code: FAILED, message: format!("cannot write to standard output: {error}") })
        }
        _ => Ok(()),
    }
}

/// Raises the soft limit of open files to the hard limit. Each connection is an open file, so the
/// usual soft limit of 1,024 would cause an outage.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "open file limit not raised");
    }
}

async fn serve(config: Config) -> Result<(), StartError> {
    raise_file_limit();
    let app = App::start(config, Clock::System).await?;
    let server = Server::bind(&app).await?;
    if let Some(oidc) = &app.parts().authn.oidc {
        oidc.prepare();
    }
    let url = server.url();
    let shutdown = app.shutdown.clone();
    tokio::spawn(async move {
        stop_signal().await;
        tracing::info!("stopping: accepted requests are answered first");
        shutdown.cancel();
    });
    app.workers.spawn(upkeep::run(app.clone()));
    app.workers.spawn(observe::run(app.clone()));
    let database = if app.config.is_sqlite() { "SQLite" } else { "PostgreSQL" };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), url, database, "hub-cloud has started");
    match app.config.log_format {
        LogFormat::Json => tracing::info!("listening on {url}"),
        // Programs that start the service wait for this line.
        LogFormat::Auto | LogFormat::Text => eprintln!("listening on {url}"),
    }
    let served = server.run(&app, router::router(app.clone())).await;
    app.stop().await;
    tracing::info!("hub-cloud has stopped");
    served.map_err(|error| StartError::Listen(error.to_string()))
}
