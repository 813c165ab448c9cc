//! Benches of the whole product. Each prints its figure as a ratio to a raw limit that is measured
//! in the same run, because machines differ and the ratio does not. Run all with `tests/bench/run`.

mod app_user;
mod audit;
mod auth;
mod bytes;
mod decode;
mod decoding;
mod deliver;
mod desired;
mod expansion;
mod export;
mod feeds;
mod fleet;
mod group_commit;
mod history;
mod ingest;
mod memory;
mod moves;
mod pipelines;
mod raw;
mod receiver;
mod release;
mod reprocess;
mod retention;
mod scan_config;
mod script;
mod service;
mod steps;
mod stream;
mod token;
mod waiter;
mod wire;

use hub_tests::Backend;

const HELP: &str = "\
usage: bench [NAME...] [--backend sqlite|postgres] [--full]

  ingest        a fleet's uploads of 50 events, beside a row for each event written straight into the database
  decode        what an advertisement costs to read; `tests/bench/decode` compares it with decoders in Python
  recognise     the same among few and among many models and devices
  script        what an advertisement costs a script, in batches, beside a decoder of the same frame
  steps         what an event costs the steps of a pipeline, by kind of step
  decoding      uploads to tenants that know the devices, beside uploads to tenants that know none
  group-commit  uploads of one event, 200 in flight, beside one transaction for each
  stream        time from upload to subscriber under load, and memory of idle subscribers
  deliver       events to receivers on this machine, single and in batches, beside an HTTP client alone; the time from
                commit to receipt, also beside a dead receiver
  pipelines     uploads beside ten and a hundred pipelines, beside uploads without
  desired       hubs that wait for their desired state: memory, CPU, and the time until one has a job
  expansion     claims that bring a bundle of 20 apps, 50 device models and 10 pipelines, beside claims that bring nothing
  app-user      the devices of a person who has a thousand among a million, beside a look-up by primary key
  export        everything of a person whose devices have a million events, beside reading the rows
  feeds         an export of OSV of the size of Debian's: time and memory of its import, beside reading it, and a fleet's
                uploads meanwhile
  token         a thousand readers at once of a supplier's token that expires, beside readers of a fresh one
  scan-config   time until a waiting fleet has a changed catalog, and uploads meanwhile, beside uploads before and after
  auth          what knowing and allowing a caller adds to a request, beside the same request without
  audit         filtered pages of a million audit entries, beside a look-up by primary key
  history       values of a device, a day and a year of it, out of a million events, beside a look-up by primary key
  retention     a fleet's uploads while old events are deleted, beside the same without
  closing       a fleet's uploads while old events move to files, beside the same without
  reprocess     stored events read again a second, and a fleet's uploads meanwhile, beside the same without
  move          events from SQLite to PostgreSQL and back, each with the comparison of every row
  bytes         what an event takes in the database, by table and index, after a vacuum, beside its text
  memory        resident at rest, at 50,000 events/s, under hostile uploads and logins, and a minute after each
  release       a release of 500 MiB up and down: memory of the service, beside copying the file
  start         start of the service on an existing database
  agent         what an advertisement costs the agent, beside bleak on the same bus, and with a scan configuration
                beside without (by itself, or with no name given)

Without a name all of them run, on every database that is there. --full: retention, closing, history
and move begin with ten million events instead of one; bytes measures a million.
";

fn main() {
    let mut names = Vec::new();
    let mut is_full = false;
    let mut backends = vec![Backend::Sqlite];
    if hub_tests::postgres::is_reachable() {
        backends.push(Backend::Postgres);
    }
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "ingest" | "decode" | "recognise" | "decoding" | "deliver" | "pipelines"
            | "group-commit" | "retention" | "stream" | "desired" | "scan-config" | "script"
            | "steps" | "auth" | "audit" | "history" | "memory" | "reprocess" | "app-user"
            | "token" | "bytes" | "closing" | "expansion" | "export" | "release" | "start"
            | "move" | "feeds" => {
                names.push(argument);
            }
            "--full" => is_full = true,
            "--backend" => match arguments.next().as_deref() {
                Some("sqlite") => backends.retain(|backend| *backend == Backend::Sqlite),
                Some("postgres") => backends.retain(|backend| *backend == Backend::Postgres),
                _ => usage(),
            },
            "--help" | "-h" => {
                print!("{HELP}");
                return;
            }
            _ => usage(),
        }
    }
    service::raise_file_limit();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|given| given == name);
    if wanted("decode") {
        decode::decode();
    }
    if wanted("recognise") {
        decode::recognise();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        if wanted("script") {
            script::script().await;
        }
        if wanted("steps") {
            steps::steps().await;
        }
        if wanted("move") && backends.contains(&Backend::Postgres) {
            moves::run(is_full).await;
        }
        for backend in backends {
            if wanted("ingest") {
                ingest::run(backend).await;
            }
            if wanted("decoding") {
                decoding::run(backend).await;
            }
            if wanted("deliver") {
                deliver::run(backend).await;
            }
            if wanted("pipelines") {
                pipelines::run(backend).await;
            }
            if wanted("group-commit") {
                group_commit::run(backend).await;
            }
            if wanted("retention") {
                retention::run(backend, is_full, retention::RETENTION).await;
            }
            if wanted("closing") {
                retention::run(backend, is_full, retention::CLOSING).await;
            }
            if wanted("reprocess") {
                reprocess::run(backend).await;
            }
            if wanted("stream") {
                stream::run(backend).await;
            }
            if wanted("desired") {
                desired::run(backend).await;
            }
            if wanted("expansion") {
                expansion::run(backend).await;
            }
            if wanted("app-user") {
                app_user::run(backend).await;
            }
            if wanted("export") {
                export::run(backend).await;
            }
            if wanted("feeds") {
                feeds::run(backend).await;
            }
            if wanted("token") {
                token::run(backend).await;
            }
            if wanted("scan-config") {
                scan_config::run(backend).await;
            }
            if wanted("auth") {
                auth::run(backend).await;
            }
            if wanted("audit") {
                audit::run(backend).await;
            }
            if wanted("history") {
                history::run(backend, is_full).await;
            }
            if wanted("bytes") {
                bytes::run(backend, is_full).await;
            }
            if wanted("memory") {
                memory::run(backend).await;
            }
            if wanted("release") {
                release::run(backend).await;
            }
            if wanted("start") {
                service::measure_start(backend).await;
            }
        }
    });
}

fn usage() -> ! {
    eprint!("{HELP}");
    std::process::exit(2)
}
