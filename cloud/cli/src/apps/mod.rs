//! `hub apps` and `hub install`: publishes signed releases of apps, and installs them on hubs.

pub mod args;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hub_client::{App, AppRelease, Client, ReleaseFile, now, operations};
use hub_protocol::release::{AppRun, Distrust, ReleaseKind, ReleaseManifest, parse};
use hub_protocol::{HubJobUuid, signing};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio_util::io::ReaderStream;

use crate::connect::in_tenant;
use crate::failure::Failure;
use crate::global::Global;
use crate::jobs;
use crate::lookup;
use crate::release_documents::{DocumentKind, Documents};
use crate::terminal::{Table, note, print, print_json, secret, state};
use crate::text::printable;
use args::{AppsCommand, InstallOptions, PublishOptions};

pub async fn run(global: &Global, command: AppsCommand) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    match command {
        AppsCommand::List => list(global, &client).await,
        AppsCommand::Publish(options) => publish(global, &client, &options).await,
    }
}

async fn releases(client: &Client, app: &App) -> Result<Vec<AppRelease>, Failure> {
    Ok(client
        .list(
            operations::APP_RELEASES
                .call()
                .path("appUuid", app.app_uuid),
        )
        .await?)
}

async fn list(global: &Global, client: &Client) -> Result<(), Failure> {
    let records: Vec<Value> = client.list(operations::APPS.call()).await?;
    if global.json {
        return print_json(&Value::Array(records));
    }
    let mut table = Table::new(&["NAME", "VERSION", "ARCHITECTURE", "STATUS", "APP"]);
    for record in records {
        let app: App = serde_json::from_value(record)?;
        let latest = releases(client, &app)
            .await?
            .into_iter()
            .max_by_key(|release| release.counter);
        let text = |text: Option<&str>| printable(text.unwrap_or("-"));
        table.row(vec![
            printable(&app.name),
            text(latest.as_ref().map(|release| release.version.as_str())),
            text(latest.as_ref().map(|release| release.architecture.as_str())),
            state(
                latest
                    .as_ref()
                    .map_or("-", |release| release.status.as_str()),
            ),
            app.app_uuid.to_string(),
        ]);
    }
    table.print("There are no apps yet: hub apps publish FILE --key app.key ...")
}

/// A manifest with its signature.
struct Signed {
    manifest: String,
    signature: String,
}

async fn publish(
    global: &Global,
    client: &Client,
    options: &PublishOptions,
) -> Result<(), Failure> {
    let apps: Vec<App> = client.list(operations::APPS.call()).await?;
    let documents = Documents::read(options)?;
    let signed = match &options.key {
        Some(key) => sign(client, &apps, options, key, &documents).await?,
        None => signed_before(&options.file)?,
    };
    let manifest = parse(signed.manifest.as_bytes()).map_err(|distrust| refused(&distrust))?;
    let size = check_file(&options.file, &manifest)?;
    documents.check(&manifest)?;
    let app = match apps.into_iter().find(|app| app.name == manifest.name) {
        Some(app) => app,
        None => {
            client
                .call(
                    operations::CREATE_APP
                        .call()
                        .body(json!({"name": manifest.name})),
                )
                .await?
        }
    };
    let body = json!({"manifest": signed.manifest, "signature": signed.signature});
    let call = operations::CREATE_APP_RELEASE
        .call()
        .path("appUuid", app.app_uuid)
        .body(body);
    let release: Value = client.call(call).await?;
    let created: AppRelease = serde_json::from_value(release.clone())?;
    // Without a URL the file was uploaded before, and the response was lost.
    if let Some(url) = &created.upload_url {
        upload(client, url, &options.file, size).await?;
    }
    documents
        .upload(client, app.app_uuid, created.release_uuid)
        .await?;
    match global.json {
        true => {
            let releases: Vec<Value> = client
                .list(
                    operations::APP_RELEASES
                        .call()
                        .path("appUuid", app.app_uuid),
                )
                .await?;
            let uuid = created.release_uuid.to_string();
            let now = releases
                .into_iter()
                .find(|release| release.get("releaseUuid") == Some(&Value::from(uuid.as_str())));
            print_json(&now.unwrap_or(release))
        }
        false => {
            let (name, version) = (printable(&manifest.name), printable(&manifest.version));
            note(&format!(
                "{name} {version} {} is published.",
                printable(&manifest.architecture)
            ));
            note(&format!("Install it: hub install {name} --hub HUB"));
            print(&format!("{}\n", created.release_uuid))
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn failed(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("{}: {what}", path.display()))
}

fn signed_before(file: &Path) -> Result<Signed, Failure> {
    let manifest = with_suffix(file, ".manifest.json");
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| {
            failed(
                path,
                format!("{error}; sign with `hub-cloud release sign`, or give --key, --name, --version and --run"),
            )
        })
    };
    Ok(Signed {
        signature: read(&with_suffix(&manifest, ".minisig"))?,
        manifest: read(&manifest)?,
    })
}

async fn sign(
    client: &Client,
    apps: &[App],
    options: &PublishOptions,
    key: &Path,
    documents: &Documents,
) -> Result<Signed, Failure> {
    let (Some(name), Some(version), Some(run)) = (&options.name, &options.version, &options.run)
    else {
        return Err(Failure::usage("--key requires --name, --version and --run"));
    };
    let counter = match (options.counter, apps.iter().find(|app| app.name == *name)) {
        (Some(counter), _) => counter,
        (None, None) => 1,
        (None, Some(app)) => {
            let highest = releases(client, app)
                .await?
                .iter()
                .map(|release| release.counter)
                .max()
                .unwrap_or(0);
            u64::try_from(highest).unwrap_or(0) + 1
        }
    };
    let text = std::fs::read_to_string(run)
        .map_err(|error| failed(run, format!("cannot read: {error}")))?;
    let app: AppRun = toml::from_str(&text)
        .map_err(|error| Failure::usage(format!("{}: {error}", run.display())))?;
    let (size_bytes, sha256) = size_and_digest(&options.file)?;
    let manifest = ReleaseManifest {
        name: name.clone(),
        kind: ReleaseKind::App,
        architecture: options.architecture.clone(),
        version: version.clone(),
        size_bytes,
        sha256,
        counter,
        downgrade: false,
        app: Some(app),
        sbom: documents.signed(DocumentKind::Sbom),
        vex: documents.signed(DocumentKind::Vex),
    };
    let manifest = serde_json::to_string_pretty(&manifest)? + "\n";
    // A manifest that the service and the hubs would refuse is not signed.
    parse(manifest.as_bytes()).map_err(|distrust| refused(&distrust))?;
    let text = std::fs::read_to_string(key)
        .map_err(|error| failed(key, format!("cannot read: {error}")))?;
    let password = match options.no_password {
        true => None,
        false => Some(secret("Password of the key", options.password_stdin)?),
    };
    let opened = signing::secret_key(&text, password).map_err(|error| {
        failed(
            key,
            format!("cannot open the key: {error}; --no-password is for a key without one"),
        )
    })?;
    let name = with_suffix(&options.file, ".manifest.json");
    let name = name
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let signature = signing::sign(&opened, &manifest, &name, now().as_secs())
        .map_err(|error| failed(key, error))?;
    Ok(Signed {
        manifest,
        signature,
    })
}

fn refused(distrust: &Distrust) -> Failure {
    match distrust {
        Distrust::Field { field, problem } => {
            Failure::usage(format!("the release's {field} {problem}"))
        }
        other => Failure::usage(other.to_string()),
    }
}

/// The size of the file, if it is the one that was signed.
fn check_file(file: &Path, manifest: &ReleaseManifest) -> Result<u64, Failure> {
    if manifest.kind != ReleaseKind::App {
        return Err(Failure::usage(
            "the manifest is for the agent; publish it with hub-publish-release",
        ));
    }
    let (size, digest) = size_and_digest(file)?;
    match size == manifest.size_bytes && digest == manifest.sha256 {
        true => Ok(size),
        false => Err(failed(
            file,
            "this is not the file that was signed; sign it again",
        )),
    }
}

/// The size of a file and its SHA-256. Reads in parts, since the file may exceed the memory.
fn size_and_digest(path: &Path) -> Result<(u64, String), Failure> {
    let read = || {
        let mut file = std::fs::File::open(path)?;
        let (mut digest, mut size, mut chunk) = (Sha256::new(), 0_u64, vec![0; 64 << 10]);
        loop {
            let length = file.read(&mut chunk)?;
            let Some(bytes) = chunk.get(..length).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            digest.update(bytes);
            size += bytes.len() as u64;
        }
        Ok::<_, std::io::Error>((size, hex::encode(digest.finalize())))
    };
    read().map_err(|error| failed(path, format!("cannot read: {error}")))
}

/// Uploads the file, and shows the progress on a terminal.
pub async fn upload(client: &Client, url: &str, path: &Path, size: u64) -> Result<(), Failure> {
    use futures_util::StreamExt;
    use std::io::{IsTerminal, Write};

    let file = tokio::fs::File::open(path)
        .await
        .map_err(|error| failed(path, format!("cannot read: {error}")))?;
    let is_watched = std::io::stderr().is_terminal();
    let sent = Arc::new(AtomicU64::new(0));
    let parts = ReaderStream::with_capacity(file, 64 << 10).map(move |part| {
        let length = part.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let before = sent.fetch_add(length, Ordering::Relaxed);
        let percent = |bytes: u64| bytes * 100 / size.max(1);
        if is_watched && (percent(before) != percent(before + length) || before == 0) {
            let end = if before + length >= size { "\n" } else { "" };
            let _ = write!(
                std::io::stderr(),
                "\ruploading {:>3} % of {size} bytes{end}",
                percent(before + length)
            );
        }
        part
    });
    let uploaded: Result<ReleaseFile, _> = client
        .put_file(url, size, reqwest::Body::wrap_stream(parts))
        .await;
    let uploaded = uploaded.map_err(|error| {
        let failure = Failure::from(error);
        Failure {
            message: format!(
                "{}; run the same command again to continue",
                failure.message
            ),
            ..failure
        }
    })?;
    match uploaded.status.as_str() {
        "READY" => Ok(()),
        other => Err(Failure::failed(format!(
            "the release is {} and not READY",
            printable(other)
        ))),
    }
}

pub async fn install(global: &Global, options: &InstallOptions) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    let apps: Vec<App> = client.list(operations::APPS.call()).await?;
    let app = apps
        .into_iter()
        .find(|app| app.name == options.app)
        .ok_or_else(|| {
            Failure::failed(format!(
                "there is no app `{}`; run `hub apps list`",
                printable(&options.app)
            ))
        })?;
    let hub = lookup::hub(&client, &options.hub).await?;
    let is_wanted = |release: &AppRelease| {
        release.status == "READY"
            && options
                .version
                .as_ref()
                .is_none_or(|version| release.version == *version)
            && options
                .architecture
                .as_ref()
                .is_none_or(|architecture| release.architecture == *architecture)
    };
    let mut found: Vec<AppRelease> = releases(&client, &app)
        .await?
        .into_iter()
        .filter(is_wanted)
        .collect();
    found.sort_by_key(|release| release.counter);
    let release = found.last().ok_or_else(|| {
        Failure::failed(format!(
            "{} has no such release that is READY; publish it first",
            printable(&options.app)
        ))
    })?;
    let others = found
        .iter()
        .filter(|other| other.version == release.version)
        .count();
    if others > 1 {
        return Err(Failure::usage(
            "the version is built for several architectures; give --architecture",
        ));
    }
    let body = json!({"appReleaseUuid": release.release_uuid, "force": options.force});
    let job: HubJobUuid = client
        .call(
            operations::INSTALL_APP
                .call()
                .path("hubUuid", hub)
                .body(body),
        )
        .await?;
    let (name, version) = (printable(&options.app), printable(&release.version));
    if !options.wait {
        return match global.json {
            true => print_json(&json!({"hubJobUuid": job})),
            false => {
                note(&format!(
                    "{name} {version} will be installed on {hub}, by the job"
                ));
                print(&format!("{job}\n"))
            }
        };
    }
    jobs::wait_for(global, &client, hub, job).await
}
