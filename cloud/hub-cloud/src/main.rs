//! The `hub-cloud` program: parses arguments, loads the configuration, starts logging and runs the
//! selected command.

mod cli;

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory;
use hub_base::clock::Clock;
use hub_base::db::space;
use hub_base::error::Error;
use hub_cloud::admin;
use hub_cloud::admin::check::{PLAIN_TEXT, PLAIN_TEXT_FIX};
use hub_cloud::app::{App, Base};
use hub_cloud::backup::{self, SealKeys};
use hub_cloud::database;
use hub_cloud::demo;
use hub_cloud::http::access_log;
use hub_cloud::http::router;
use hub_cloud::http::serve::{Bound, stop_signal};
use hub_cloud::lock;
use hub_cloud::observe;
use hub_cloud::release;
use hub_cloud::simulate;
use hub_cloud::start_error::StartError;
use hub_cloud::upkeep;
use hub_core::config::{self, AccessLog, BackupPlace, Config, LogFormat};
use hub_exposure::feeds::ImportError;
use hub_logging::say;
use hub_people::accounts::Locked;
use hub_protocol::check;
use hub_scripts as scripts;
use tikv_jemallocator::Jemalloc;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use cli::{AdminCommand, CaCommand, Cli, Command, KeysCommand, LockedArgs, VulnerabilitiesCommand};

/// Jemalloc returns released memory within seconds, which the C library's allocator does not.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Exit codes. Values from `sysexits.h` are used where one fits.
const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
const CONFIG_REFUSED: u8 = 3;
/// `EX_TEMPFAIL`: the same command can succeed later.
const TRY_LATER: u8 = 75;

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
        Self {
            exit_code,
            message: error.to_string(),
        }
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
        Self {
            exit_code,
            message: error.to_string(),
        }
    }
}

impl From<admin::moves::Failure> for Failure {
    fn from(error: admin::moves::Failure) -> Self {
        use admin::moves;
        let message = error.to_string();
        let exit_code = match error {
            moves::Failure::Target => WRONG_USAGE,
            moves::Failure::Source(error) | moves::Failure::TargetRefused(error) => {
                Self::from(error).exit_code
            }
            moves::Failure::Move(error) if error.is_temporary() => TRY_LATER,
            moves::Failure::Move(_) => FAILED,
        };
        Self { exit_code, message }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Database(error) => error.into(),
            ImportError::Unreadable(message) => Self {
                exit_code: FAILED,
                message,
            },
        }
    }
}

impl From<demo::Failure> for Failure {
    fn from(error: demo::Failure) -> Self {
        Self {
            exit_code: FAILED,
            message: error.to_string(),
        }
    }
}

impl From<backup::Failure> for Failure {
    fn from(failure: backup::Failure) -> Self {
        let exit_code = match failure {
            backup::Failure::Start(error) => return error.into(),
            backup::Failure::WrongUsage(_) => WRONG_USAGE,
            backup::Failure::Failed(_) => FAILED,
        };
        Self {
            exit_code,
            message: failure.to_string(),
        }
    }
}

impl From<simulate::Failure> for Failure {
    fn from(error: simulate::Failure) -> Self {
        let exit_code = match error {
            simulate::Failure::WrongUsage(_) => WRONG_USAGE,
            simulate::Failure::Failed(_) => FAILED,
        };
        Self {
            exit_code,
            message: error.to_string(),
        }
    }
}

impl From<release::Failure> for Failure {
    fn from(error: release::Failure) -> Self {
        match error {
            release::Failure::WrongUsage(message) => Self {
                exit_code: WRONG_USAGE,
                message,
            },
            release::Failure::Failed(message) => Self {
                exit_code: FAILED,
                message,
            },
        }
    }
}

fn main() -> ExitCode {
    // Script processes have no settings, so this check is first.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == scripts::ARGUMENT)
    {
        return scripts::worker::main();
    }
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(error) => {
            say(format_args!("hub-cloud: {error}"));
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
        Command::Demo(_) => demo::config(cli.settings),
        _ => Config::load(cli.settings, file.as_deref()),
    };
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            say(format_args!("hub-cloud: {error}"));
            return ExitCode::from(CONFIG_REFUSED);
        }
    };
    // The demo writes its logs to a file, and opens it later.
    let logging = match &cli.command {
        Command::Demo(_) => Ok(()),
        command => start_logging(matches!(command, Command::Serve), &config),
    };
    if logging.is_err() {
        say("hub-cloud: log must be error, warn, info, debug, or a filter such as hub=debug");
        return ExitCode::from(CONFIG_REFUSED);
    }
    // The only TLS and crypto provider of the process.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            say(format_args!(
                "hub-cloud: cannot start worker threads: {error}; check the limits of this user (ulimit -u)"
            ));
            return ExitCode::from(FAILED);
        }
    };
    match runtime.block_on(run(cli.command, config)) {
        Ok(()) => {
            hub_logging::finish();
            ExitCode::SUCCESS
        }
        Err(Failure { exit_code, message }) => {
            say(format_args!("hub-cloud: {message}"));
            ExitCode::from(exit_code)
        }
    }
}

/// The settings file: the named one, else that of the installed package for the commands that
/// concern its service.
fn config_file(cli: &Cli) -> Option<PathBuf> {
    cli.config.clone().or_else(|| match cli.command {
        Command::Serve
        | Command::Migrate { .. }
        | Command::Move { .. }
        | Command::Admin(_)
        | Command::Keys(_)
        | Command::Ca(_)
        | Command::Vulnerabilities(_)
        | Command::Backup { .. }
        | Command::Restore { .. }
        | Command::Drill { .. }
        | Command::Check { .. } => config::installed(),
        Command::Demo(_)
        | Command::Simulate(_)
        | Command::Release(_)
        | Command::Openapi
        | Command::Completions { .. } => None,
    })
}

/// Logs to standard error. The default level is that of operators for the service, and faults alone
/// for other commands.
fn start_logging(
    is_service: bool,
    config: &Config,
) -> Result<(), tracing_subscriber::filter::ParseError> {
    let usual = match is_service {
        // That the database is away is one line, and not one of each connection.
        true => "warn,sqlx::pool=error,sqlx_core::pool=error,sqlx::postgres::notice=error,hub=info",
        // Statements of commands may take long.
        false => "warn,sqlx::query=error",
    };
    let mut filter = EnvFilter::try_new(config.log.as_deref().unwrap_or(usual))?;
    if config.access_log != AccessLog::Off {
        filter = filter.add_directive(format!("{}=info", access_log::TARGET).parse()?);
    }
    let is_terminal = std::io::stderr().is_terminal();
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(hub_logging::lines)
        .with_ansi(check::colours(is_terminal));
    let is_json = match config.log_format {
        LogFormat::Auto => !is_terminal,
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
            let _lock = match compact {
                true => lock::lock(&config).await?,
                false => None,
            };
            let app = App::start(config, Clock::System).await?;
            let compacted = if compact {
                space::rewrite(&app.db).await
            } else {
                Ok(())
            };
            app.stop().await;
            compacted?;
            say("the database schema is up to date");
        }
        Command::Move { to } => {
            let report = admin::moves::run(&config, &to, Clock::System.now()).await;
            print(&report?)?;
        }
        Command::Keys(command) => {
            let base = Base::attach(config, Clock::System).await?;
            let report = match command {
                KeysCommand::List { json } => admin::keys::list(&base, json).await,
                KeysCommand::Rotate => admin::keys::rotate(&base).await,
                KeysCommand::Forget { id } => admin::keys::forget(&base, &id).await,
            };
            base.stop().await;
            print(&report?)?;
        }
        Command::Ca(command) => {
            let base = Base::attach(config, Clock::System).await?;
            let report = match command {
                CaCommand::List { json } => admin::certificates::list(&base, json).await,
                CaCommand::Rotate => admin::certificates::rotate(&base).await,
            };
            base.stop().await;
            print(&report?)?;
        }
        Command::Vulnerabilities(command) => {
            let base = Base::attach(config, Clock::System).await?;
            let report = match command {
                VulnerabilitiesCommand::Import { feeds } => {
                    admin::vulnerabilities::import(&base, &feeds).await
                }
                VulnerabilitiesCommand::Update { ecosystems } => {
                    admin::vulnerabilities::update(&base, &ecosystems).await
                }
                VulnerabilitiesCommand::Status { json } => {
                    admin::vulnerabilities::status(&base, json).await
                }
            };
            base.stop().await;
            print(&report?)?;
        }
        Command::Backup { to, without_keys } => {
            let place = backup_place(to.as_deref(), &config)?;
            let seal = SealKeys::choose(&config, without_keys)?;
            let db = database::open_existing(&config).await?;
            let stop = CancellationToken::new();
            let now = Clock::System.now();
            let report = backup::backup(&db, &config, now, &place, &seal, &stop).await;
            db.close().await;
            print(&report?)?;
        }
        Command::Restore { from } => {
            let place = backup_place(from.as_deref(), &config)?;
            print(&backup::restore(&config, &place).await?)?;
        }
        Command::Drill { from } => {
            let place = backup_place(from.as_deref(), &config)?;
            print(&backup::drill(&config, &place).await?)?;
        }
        Command::Check { json } => {
            let findings = admin::check::check(&config, Clock::System.now()).await;
            let colours = check::colours(std::io::stdout().is_terminal());
            print(&match json {
                true => check::json(&findings).unwrap_or_default(),
                false => check::text(&findings, colours),
            })?;
            if let Some(message) = check::failure(&findings) {
                return Err(Failure {
                    exit_code: FAILED,
                    message,
                });
            }
        }
        Command::Openapi => {
            let document =
                serde_json::to_string_pretty(&router::describe(true)).unwrap_or_default();
            print(&(document + "\n"))?;
        }
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "hub-cloud", &mut text);
            print(&String::from_utf8_lossy(&text))?;
        }
        Command::Release(command) => release::run(&command)?,
        Command::Demo(options) => demo::run(config, options).await?,
        Command::Simulate(options) => {
            let (report, is_stored) = simulate::run(&options).await?;
            print(&report)?;
            if !is_stored {
                return Err(Failure {
                    exit_code: FAILED,
                    message: "the service has not stored all uploads".to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// The place that the command names, or else the settings.
fn backup_place(named: Option<&str>, config: &Config) -> Result<BackupPlace, Failure> {
    let wrong = |message: String| Failure {
        exit_code: WRONG_USAGE,
        message,
    };
    match (named, &config.backup.to) {
        (Some(named), _) => named
            .parse()
            .map_err(|error: config::ConfigError| wrong(error.to_string())),
        (None, Some(place)) => Ok(place.clone()),
        (None, None) => Err(wrong(
            "name a file, a directory or s3://BUCKET/PREFIX, or set backup-to".to_owned(),
        )),
    }
}

async fn administrate(command: AdminCommand, config: Config) -> Result<(), Failure> {
    // Checked before the database is opened: wrong usage is reported as such.
    let password = match &command {
        AdminCommand::Create {
            email,
            password_stdin,
        }
        | AdminCommand::ResetPassword {
            email,
            password_stdin,
        } => {
            let password = match password_stdin {
                true => admin::read_password(std::io::stdin().lock())?,
                false => admin::ask_password()?,
            };
            admin::accounts::check(email, &password)?;
            password
        }
        AdminCommand::List { .. }
        | AdminCommand::Revoke { .. }
        | AdminCommand::Unlock { .. }
        | AdminCommand::RemoveSecondFactor { .. } => String::new(),
    };
    let base = Base::attach(config, Clock::System).await?;
    let report = match command {
        AdminCommand::Create {
            email,
            password_stdin: _,
        } => admin::accounts::create(&base, &email, password).await,
        AdminCommand::List { json } => admin::accounts::list(&base, json).await,
        AdminCommand::Revoke { email, keep_role } => {
            admin::accounts::revoke(&base, &email, keep_role).await
        }
        AdminCommand::Unlock {
            locked: LockedArgs { email, address },
        } => {
            let email = email.unwrap_or_default();
            admin::accounts::unlock(
                &base,
                address.map_or(Locked::Email(&email), Locked::Address),
            )
            .await
        }
        AdminCommand::RemoveSecondFactor { email } => {
            admin::accounts::remove_second_factor(&base, &email).await
        }
        AdminCommand::ResetPassword {
            email,
            password_stdin: _,
        } => admin::accounts::reset_password(&base, &email, password).await,
    };
    base.stop().await;
    print(&report?)
}

/// Writes to standard output. A closed pipe is not an error: the reader has what it needs.
fn print(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure {
            exit_code: FAILED,
            message: format!("cannot write to standard output: {error}"),
        }),
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
    // What cannot be served creates nothing.
    let bound = Bound::bind(&config)?;
    let _lock = lock::lock(&config).await?;
    let app = App::start(config, Clock::System).await?;
    let server = bound.listen(&app).await?;
    if !app.config.serves_metrics() && app.config.metrics.listen.is_none() {
        tracing::warn!(
            "/metrics is not served: others reach {}; set metrics-listen or metrics-token",
            app.config.listen
        );
    }
    if app.config.is_exposed_in_plain_text() {
        tracing::warn!("{PLAIN_TEXT}; {PLAIN_TEXT_FIX}");
    }
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
    app.workers.spawn(backup::schedule::run(app.clone()));
    let database = if app.config.is_sqlite() {
        "SQLite"
    } else {
        "PostgreSQL"
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        url,
        database,
        "hub-cloud has started"
    );
    match app.config.log_format {
        LogFormat::Json => tracing::info!("listening on {url}"),
        // Programs that start the service wait for this line.
        LogFormat::Auto | LogFormat::Text => say(format_args!("listening on {url}")),
    }
    let served = server.run(&app, router::router(&app)).await;
    app.stop().await;
    tracing::info!("hub-cloud has stopped");
    served.map_err(|error| StartError::Listen(error.to_string()))
}
