//! The commands of `hub-cloud`, their options and their help.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use hub_cloud::{demo, release, simulate};
use hub_core::config::{ConfigError, SETTINGS, Settings, check_variables};

/// Management service for a fleet of BLE hubs
#[derive(Parser)]
#[command(
    version,
    after_help = HELP
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// Configuration file (TOML). Its keys are the names of the flags [default:
    /// /etc/hub-cloud/config.toml, if it exists]
    #[arg(long, global = true, env = "HUB_CLOUD_CONFIG", value_name = "FILE", help_heading = SETTINGS)]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub settings: Settings,
}

const HELP: &str = "\
Examples:
  hub-cloud demo                                    run service, hub and client on this machine
  hub-cloud serve                                   serve on 127.0.0.1:8080, with keys and database
                                                    in ./hub-cloud-data
  hub-cloud check                                   find configuration problems before a start

Options override the environment, and the environment overrides the file.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 configuration refused, 75 try again later.";

#[derive(Subcommand)]
pub enum Command {
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
    /// Move the database from SQLite to PostgreSQL, or back; the service must be stopped
    #[command(after_help = MOVE_HELP)]
    Move {
        /// An empty database to move to: postgres://USER:PASSWORD@HOST/DATABASE or sqlite:PATH
        #[arg(
            long,
            env = MOVE_TO,
            hide_env_values = true,
            value_name = "URL"
        )]
        to: String,
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
    /// Back up database, keys and release files into one file; the service may keep running
    #[command(after_help = BACKUP_HELP)]
    Backup {
        /// A file, a directory, or s3://BUCKET/PREFIX [default: backup-to]
        to: Option<String>,
        /// Leave the master keys out: they are kept elsewhere
        #[arg(long)]
        without_keys: bool,
    },
    /// Restore a backup into an empty data directory
    #[command(after_help = RESTORE_HELP)]
    Restore {
        /// A backup; or a directory or s3://BUCKET/PREFIX, for the newest one there [default:
        /// backup-to]
        from: Option<String>,
    },
    /// Restore a backup into a scratch directory, open it as the service would, and remove it
    #[command(after_help = DRILL_HELP)]
    Drill {
        /// A backup; or a directory or s3://BUCKET/PREFIX, for the newest one there [default:
        /// backup-to]
        from: Option<String>,
    },
    /// Bring in what is published about vulnerabilities, and say what is there
    #[command(subcommand, after_help = VULNERABILITIES_HELP)]
    Vulnerabilities(VulnerabilitiesCommand),
    /// Create release keys; sign and verify releases of the agent and of apps
    #[command(subcommand, after_help = release::HELP)]
    Release(release::Command),
    /// Test the configuration and everything it refers to, and suggest a fix for each problem
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
    #[command(
        after_help = "Example: hub-cloud completions bash > /etc/bash_completion.d/hub-cloud"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Run the service, one hub and a live view of its data on this machine
    #[command(after_help = DEMO_HELP)]
    Demo(demo::Options),
    /// Upload to a service as a fleet of hubs does, and measure what it carries
    #[command(after_help = SIMULATE_HELP)]
    Simulate(simulate::Options),
}

const DEMO: &str = "demo";
/// The settings that the demo uses, by their ids.
const DEMO_SETTINGS: [&str; 3] = ["listen", "data_dir", "log"];

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
service. Take a backup first: migrations cannot be reverted.

--compact gives the free space of an SQLite database back to the file system, and lets the service
do so from then on. It needs as much free space as the database has in use.

Example: runuser -u hub-cloud -- hub-cloud migrate";

/// The variable of `move --to`: no setting, but not misspelt either.
const MOVE_TO: &str = "HUB_CLOUD_MOVE_TO";

const MOVE_HELP: &str = "\
Copies every row of the configured database to an empty one, reads both again and compares them row
by row. Hubs keep their tokens, and pipelines go on where they were. The old database is unchanged.

1. Stop every hub-cloud that uses the database. Hubs keep what they receive meanwhile.
2. Run the command as the service's user. After a failure, a kill or a restart of the machine run the
   same command again: it continues. `serve` refuses a database whose move has not ended.
3. Set database-url to the new database. Keep data-dir: master.key and the release files stay there.
   Several replicas need the settings master-key, bus and files: see docs/operating.md.
4. Start the service.

A URL on the command line is visible to other users of the machine: put one that has a password in
HUB_CLOUD_MOVE_TO.

Examples:
  createdb hub && runuser -u hub-cloud -- hub-cloud move --to postgres://hub@db.example.com/hub
  hub-cloud move --database-url postgres://hub@db.example.com/hub \\
      --to sqlite:/var/lib/hub-cloud/hub-cloud.sqlite";

const ADMIN_HELP: &str = "\
These commands work on the database of the service, which may keep running, and never create one.
Without --config they use /etc/hub-cloud/config.toml, if it exists.

Examples:
  hub-cloud admin create --email ada@example.com
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

const BACKUP_HELP: &str = "\
The backup is one file that its owner alone can read. It appears under its name when it has been
restored into a scratch database and counted. The master keys are in it, sealed with a passphrase, or
--without-keys leaves them out; the output says which. The service makes backups by itself if
backup-to is set. A PostgreSQL database is not in it: docs/operating.md has its way.

Examples:
  hub-cloud backup /backup/hub-cloud.tar.zst \\
      --backup-passphrase-file /etc/hub-cloud/backup-passphrase
  hub-cloud backup /backup/ --without-keys      a file named after the time, in that directory
  hub-cloud backup s3://backups/hub-cloud \\
      --backup-passphrase-file /etc/hub-cloud/backup-passphrase";

const RESTORE_HELP: &str = "\
Everything is unpacked and verified first, then moved into place. A restore that was killed leaves
nothing that the service would start on: run it again. Run it as the user of the service, or as root.

Examples:
  hub-cloud restore /backup/hub-cloud.tar.zst --data-dir /var/lib/hub-cloud \\
      --backup-passphrase-file /etc/hub-cloud/backup-passphrase
  hub-cloud restore s3://backups/hub-cloud \\
      --backup-passphrase-file /etc/hub-cloud/backup-passphrase";

const DRILL_HELP: &str = "\
Nothing of the service is touched. Rows are counted, every page is checked, and the secrets in the
database are opened with the master keys. The exit code is not 0 if the backup is of no use.

Examples:
  hub-cloud drill
  hub-cloud drill /backup/hub-cloud.tar.zst \\
      --backup-passphrase-file /etc/hub-cloud/backup-passphrase";

const VULNERABILITIES_HELP: &str = "\
These commands work on the database of the service, which may keep running, and never create one.
Hubs are matched with what is new within a minute. A record that is older than what is there is left
out, so that an older feed, or one that breaks off, takes nothing away.

Examples:
  hub-cloud vulnerabilities import Debian/all.zip known_exploited_vulnerabilities.json
  hub-cloud vulnerabilities update --vulnerability-mirror https://mirror.example.com/osv
  hub-cloud vulnerabilities status";

const CHECK_HELP: &str = "\
Checks settings, keys, database, file store, TLS certificate and every server that the settings name.
It changes nothing and may run while the service runs. Run it as the service's user. The exit code is
1 when a check fails; a warning is not a failure.

Examples:
  hub-cloud check
  runuser -u hub-cloud -- hub-cloud check --json";

const DEMO_HELP: &str = "\
The first line is a link that opens the console, signed in. There are three hubs, nine sensors, a
day of history, a pipeline, a consent and a rollout. Everything is in the data directory: the next
start continues with it; remove it to start over. Ctrl-C ends the demo.

Examples:
  hub-cloud demo
  hub-cloud demo --speed 10
  hub-cloud demo --bluez
  hub-cloud demo --send-to mqtt://127.0.0.1:1883      then: mosquitto_sub -v -t 'hub-demo/#'";

const SIMULATE_HELP: &str = "\
Hubs are claimed with the codes, and the same ones again by the next run. Each uploads at its time
what its devices (RuuviTags) have sent, whether the service keeps up or not. Tenants in which nothing
else is should be used: the events stay there. The service needs an upload-limit-per-minute that
admits the hubs of a tenant. The exit code is 1 if an upload was not stored.

Examples:
  hub-cloud serve --upload-limit-per-minute 1000000
  hub-cloud simulate --to http://127.0.0.1:8080 --claim-code CODE --hubs 200 --devices 10000
  hub-cloud simulate --to https://hubs.example.com --claim-code CODE --profile fleet.toml --json";

const UNLOCK_HELP: &str = "\
Examples:
  hub-cloud admin unlock --email ada@example.com
  hub-cloud admin unlock --address 192.0.2.7";

const ADMIN_CREATE_HELP: &str = "\
Examples:
  hub-cloud admin create --email ada@example.com
  hub-cloud admin create --email ada@example.com --password-stdin < password.txt";

const RESET_HELP: &str = "\
Examples:
  hub-cloud admin reset-password --email ada@example.com
  hub-cloud admin reset-password --email ada@example.com --password-stdin < password.txt";

#[derive(Subcommand)]
pub enum AdminCommand {
    /// Create a platform administrator, or promote the existing account that has this password
    #[command(
        after_help = ADMIN_CREATE_HELP
    )]
    Create {
        /// E-mail address to log in with
        #[arg(long)]
        email: String,
        /// Read the password, 8 to 200 characters, from the first line of standard input, instead
        /// of asking for it
        #[arg(long)]
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
    /// Remove the second factor of a person who has lost it, and end all logins
    #[command(
        after_help = "Verify who asks: afterwards the password alone is enough to log in.\n\n\
                      Example: hub-cloud admin remove-second-factor --email ada@example.com"
    )]
    RemoveSecondFactor {
        /// E-mail address of the account
        #[arg(long)]
        email: String,
    },
    /// Set the password of an account, end its logins and clear what delays them
    #[command(after_help = RESET_HELP)]
    ResetPassword {
        /// E-mail address of the account
        #[arg(long)]
        email: String,
        /// Read the password, 8 to 200 characters, from the first line of standard input, instead
        /// of asking for it
        #[arg(long)]
        password_stdin: bool,
    },
}

/// Who is to be unlocked: exactly one of them.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct LockedArgs {
    /// E-mail address of the account: clears what was counted against it, from any address
    #[arg(long)]
    pub email: Option<String>,
    /// IP address: clears the logins and registrations that were counted against it
    #[arg(long)]
    pub address: Option<IpAddr>,
}

#[derive(Subcommand)]
pub enum KeysCommand {
    /// List the master keys, with the number of secrets sealed with each, and the signing keys
    #[command(after_help = "Example: hub-cloud keys list")]
    List {
        /// Print one JSON object: {"masterKeys": [{"id", "seals", "secrets"}], "signingKeys":
        /// [{"id"}]}
        #[arg(long)]
        json: bool,
    },
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
pub enum VulnerabilitiesCommand {
    /// Bring in archives and records of OSV (all.zip, a directory, one record), and KEV's catalog
    #[command(after_help = "Example: hub-cloud vulnerabilities import Debian/all.zip")]
    Import {
        /// What each is, its content says
        #[arg(required = true, value_name = "FILE")]
        feeds: Vec<PathBuf>,
    },
    /// Fetch the feeds from vulnerability-mirror, and bring them in
    #[command(after_help = "Example: hub-cloud vulnerabilities update Debian")]
    Update {
        /// The ecosystems of OSV to fetch, besides KEV's catalog [default: Debian crates.io PyPI
        /// npm Go]
        #[arg(value_name = "ECOSYSTEM")]
        ecosystems: Vec<String>,
    },
    /// Say which feeds are there, and how new they are
    #[command(after_help = "Example: hub-cloud vulnerabilities status --json")]
    Status {
        /// Print one JSON object: {"feeds": [{"feed", "records", "newestAt", "importedAt",
        /// "unfinished"}]}
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub enum CaCommand {
    /// List the authorities, with the number of unexpired certificates of each
    #[command(after_help = "Example: hub-cloud ca list")]
    List {
        /// Print one JSON object: {"authorities": [{"id", "isRoot", "isSigning", "signsFrom",
        /// "notAfter", "certificates"}]}
        #[arg(long)]
        json: bool,
    },
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

/// Parses arguments and environment. For a wrong argument clap prints the usage error and exits; a
/// wrong environment variable is a configuration error.
pub fn parse() -> Result<Cli, ConfigError> {
    // Units and container files set empty variables: they count as not set.
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let mut command = Cli::command().mut_args(|arg| match arg.get_env().is_some_and(is_empty) {
        true => arg.env(None::<&str>),
        false => arg,
    });
    // `build` copies the global settings to the subcommands. Commands hide those they do not use.
    command.build();
    let command = [
        ("release", &[][..]),
        ("openapi", &[]),
        ("completions", &[]),
        ("simulate", &[]),
        (DEMO, &DEMO_SETTINGS),
    ]
    .into_iter()
    .fold(command, |command, (name, used)| {
        command.mut_subcommand(name, |command| hide_settings(command, used))
    })
    .mut_subcommand(DEMO, |demo| demo.mut_args(with_help_of_demo));
    let parsed = command
        .try_get_matches()
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let error = match parsed {
        Ok((cli, matches)) => {
            check_environment()?;
            return match matches.subcommand_matches(DEMO) {
                Some(demo) => refuse_others(demo, &DEMO_SETTINGS).map(|()| cli),
                None => Ok(cli),
            };
        }
        // Help or version.
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => error,
    };
    // If the arguments parse without the environment, the environment is at fault.
    match Cli::command()
        .mut_args(|arg| arg.env(None::<&str>))
        .try_get_matches()
    {
        Ok(_) => {
            check_environment()?;
            let text = error.to_string();
            let reason = text.lines().next().unwrap_or_default();
            Err(ConfigError(format!(
                "in the environment: {}",
                reason.trim_start_matches("error: ")
            )))
        }
        Err(usage) => with_hint(usage).exit(),
    }
}

/// Refuses variables that look like settings and are none.
fn check_environment() -> Result<(), ConfigError> {
    check_variables(std::env::vars_os().filter_map(|(name, value)| {
        Some((
            name.into_string().ok()?,
            value.to_string_lossy().into_owned(),
        ))
    }))
}

/// Names the program that logs in: people look for that command here.
fn with_hint(mut usage: clap::Error) -> clap::Error {
    let login = ContextValue::String("login".to_owned());
    if usage.get(ContextKind::InvalidSubcommand) == Some(&login) {
        let hint = StyledStr::from("`hub login` logs in, and `hub token` prints an access token");
        usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint]));
    }
    usage
}

/// What the settings of the demo mean there.
fn with_help_of_demo(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "listen" => arg.help(
            "Address to listen on [default: 127.0.0.1:8080, or a free port if it is in use]",
        ),
        "data_dir" => {
            arg.help("Directory of all that the demo stores [default: hub-cloud-data/demo]")
        }
        "log" => arg.help(
            "Level of the service's log in that directory: error, warn, info or debug [default: warn]",
        ),
        _ => arg,
    }
}

/// Hides the settings that are not used in the help of the command and its subcommands.
fn hide_settings(command: clap::Command, used: &[&str]) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get_help_heading() {
        Some(SETTINGS) if !used.contains(&arg.get_id().as_str()) => arg.hide(true),
        _ => arg,
    });
    let names: Vec<String> = command
        .get_subcommands()
        .map(|subcommand| subcommand.get_name().to_owned())
        .collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |command| hide_settings(command, used))
    })
}

/// Refuses settings that the demo does not use: those of a real service.
fn refuse_others(given: &ArgMatches, used: &[&str]) -> Result<(), ConfigError> {
    let is_given = |id: &str| {
        let source = given.value_source(id);
        matches!(
            source,
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        )
    };
    let command = Cli::command();
    let refused = command.get_arguments().find(|arg| {
        let id = arg.get_id().as_str();
        arg.get_help_heading() == Some(SETTINGS) && !used.contains(&id) && is_given(id)
    });
    let Some(refused) = refused else {
        return Ok(());
    };
    let key = refused.get_long().unwrap_or_default();
    let variable = format!("HUB_CLOUD_{}", key.replace('-', "_").to_uppercase());
    Err(ConfigError(format!(
        "the demo does not support {key}: remove --{key} and unset {variable}, or run `hub-cloud serve`"
    )))
}
