//! The files of package managers.

use serde::Deserialize;

use super::{MAX_COMPONENTS, component};
use crate::components::Component;
use crate::json;
use crate::versions::Ecosystem;

#[derive(Clone, Copy)]
enum Kind {
    Debian,
    Alpine,
    Python,
    Npm,
}

fn plain(path: &str) -> &str {
    path.trim_start_matches("./").trim_start_matches('/')
}

fn kind_of(path: &str) -> Option<Kind> {
    let path = plain(path);
    let is_of_distroless = |name: &str| !name.contains('/') && !name.ends_with(".md5sums");
    if path == "var/lib/dpkg/status"
        || path
            .strip_prefix("var/lib/dpkg/status.d/")
            .is_some_and(is_of_distroless)
    {
        Some(Kind::Debian)
    } else if path == "lib/apk/db/installed" || path == "usr/lib/apk/db/installed" {
        Some(Kind::Alpine)
    } else if path.ends_with(".dist-info/METADATA") || path.ends_with(".egg-info/PKG-INFO") {
        Some(Kind::Python)
    } else if is_of_npm(path) {
        Some(Kind::Npm)
    } else {
        None
    }
}

/// Whether a file is read for components, or for the release of the system.
pub(super) fn is_known(path: &str) -> bool {
    is_os_release(path) || kind_of(path).is_some()
}

pub(super) fn is_os_release(path: &str) -> bool {
    ["etc/os-release", "usr/lib/os-release"].contains(&plain(path))
}

/// `Debian:12`, of `ID=debian` and `VERSION_ID="12"`. Other systems have no order here.
pub(super) fn distribution(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let value = |name: &str| {
        let mut values = text.lines().filter_map(|line| {
            let (field, value) = line.trim().split_once('=')?;
            (field == name).then(|| value.trim_matches(['"', '\'']))
        });
        values.next()
    };
    let release = value("VERSION_ID")?.split('.').next()?;
    let is_number = !release.is_empty()
        && release.len() <= 4
        && release.bytes().all(|byte| byte.is_ascii_digit());
    (value("ID")? == "debian" && is_number).then(|| format!("Debian:{release}"))
}

pub(super) fn read(path: &str, bytes: &[u8]) -> Vec<Component> {
    match kind_of(path) {
        Some(Kind::Debian) => paragraphs(bytes, debian),
        Some(Kind::Alpine) => paragraphs(bytes, alpine),
        Some(Kind::Python) => {
            // A description follows the first paragraph.
            let first = paragraphs(bytes, python);
            first.into_iter().take(1).collect()
        }
        Some(Kind::Npm) => npm(bytes).into_iter().collect(),
        None => Vec::new(),
    }
}

/// Directly below `node_modules`: packages bring files of this name for their tests, too.
fn is_of_npm(path: &str) -> bool {
    let mut folders = path.rsplit('/');
    if folders.next() != Some("package.json") || folders.next().is_none() {
        return false;
    }
    match folders.next() {
        Some(scope) if scope.starts_with('@') => folders.next() == Some("node_modules"),
        folder => folder == Some("node_modules"),
    }
}

fn npm(bytes: &[u8]) -> Option<Component> {
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
    }

    let package: Package = json::read(bytes).ok()?;
    Some(component(
        Some(Ecosystem::Npm),
        &package.name,
        &package.version,
    ))
}

/// The fields of a paragraph, such as `Package: curl`.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn of(&self, name: &str) -> Option<&'a str> {
        let Self(fields) = self;
        let mut values = fields.iter().filter(|(field, _)| *field == name);
        values.next().map(|(_, value)| *value)
    }
}

/// Paragraphs of fields, divided by empty lines. What is no UTF-8 is no text here.
fn paragraphs(bytes: &[u8], read: fn(&Fields) -> Option<Component>) -> Vec<Component> {
    let mut found = Vec::new();
    let mut fields = Fields(Vec::new());
    let lines = bytes.split(|byte| *byte == b'\n').chain([&b""[..]]);
    for line in lines {
        let line = std::str::from_utf8(line.trim_ascii_end()).unwrap_or("?");
        if line.is_empty() {
            found.extend(read(&fields));
            fields.0.clear();
            if found.len() == MAX_COMPONENTS {
                break;
            }
        } else if let Some((name, value)) = line.split_once(':')
            && !line.starts_with([' ', '\t'])
            && fields.0.len() < 200
        {
            fields.0.push((name, value.trim()));
        }
    }
    found
}

/// Installed packages only. Distroless images have no status.
fn debian(fields: &Fields) -> Option<Component> {
    let status = fields.of("Status").unwrap_or("install ok installed");
    if !status.ends_with(" installed") {
        return None;
    }
    let ecosystem = Some(Ecosystem::Debian);
    let package = component(ecosystem, fields.of("Package")?, fields.of("Version")?);
    // `glibc (2.36-9)`: the version where it is another one.
    let source = fields
        .of("Source")
        .map(|source| match source.split_once(" (") {
            Some((name, version)) => (
                name.to_owned(),
                Some(version.trim_end_matches(')').to_owned()),
            ),
            None => (source.to_owned(), None),
        });
    Some(Component { source, ..package })
}

fn alpine(fields: &Fields) -> Option<Component> {
    Some(component(None, fields.of("P")?, fields.of("V")?))
}

fn python(fields: &Fields) -> Option<Component> {
    let ecosystem = Some(Ecosystem::PyPi);
    Some(component(
        ecosystem,
        fields.of("Name")?,
        fields.of("Version")?,
    ))
}
