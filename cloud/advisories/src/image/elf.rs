//! What the compilers of Go and Rust write into programs.

use std::io::Read;

use flate2::read::ZlibDecoder;
use object::read::elf::{ElfFile32, ElfFile64};
use object::{Object, ObjectSection};
use serde::{Deserialize, Deserializer};

use super::{MAX_COMPONENTS, component};
use crate::components::Component;
use crate::json;
use crate::versions::Ecosystem;

/// What `cargo auditable` writes, unpacked.
const MAX_AUDITABLE_BYTES: u64 = 8 * 1024 * 1024;
/// The list of modules is between two marks of this length.
const GO_MARK_BYTES: usize = 16;

pub(super) fn read(bytes: &[u8]) -> Option<Vec<Component>> {
    // The byte after the magic is 2 for 64 bits.
    match bytes.get(4)? {
        2 => Some(sections(
            &ElfFile64::<object::Endianness>::parse(bytes).ok()?,
        )),
        _ => Some(sections(
            &ElfFile32::<object::Endianness>::parse(bytes).ok()?,
        )),
    }
}

fn sections<'a>(file: &impl Object<'a>) -> Vec<Component> {
    let data = |name: &str| file.section_by_name(name)?.data().ok();
    let go = data(".go.buildinfo").and_then(go);
    let rust = data(".dep-v0").and_then(rust);
    go.into_iter().chain(rust).flatten().collect()
}

/// Go since 1.18: two texts with their lengths after a head of 32 bytes. Before, there were
/// addresses of them.
fn go(section: &[u8]) -> Option<Vec<Component>> {
    let has_texts = section.get(15)? & 2 != 0;
    if !section.starts_with(b"\xff Go buildinf:") || !has_texts {
        return None;
    }
    let mut rest = section.get(32..)?;
    let compiler = take_text(&mut rest)?;
    let modules = take_text(&mut rest).unwrap_or_default();
    let ecosystem = Some(Ecosystem::Go);
    let mut found = Vec::new();
    // `go1.22.1 X:experiment`: the standard library.
    let version = std::str::from_utf8(compiler).ok()?.split(' ').next()?;
    if let Some(version) = version.strip_prefix("go") {
        found.push(component(ecosystem, "stdlib", version));
    }
    let end = modules.len().saturating_sub(GO_MARK_BYTES);
    let lines = modules.get(GO_MARK_BYTES..end).unwrap_or_default();
    for line in std::str::from_utf8(lines).ok()?.lines() {
        let mut fields = line.split('\t');
        let (kind, name, version) = (fields.next(), fields.next(), fields.next());
        let (Some(kind), Some(name), Some(version)) = (kind, name, version) else {
            continue;
        };
        match kind {
            "mod" | "dep" => found.push(component(ecosystem, name, version)),
            // What was built in place of the module before.
            "=>" => {
                found.pop();
                found.push(component(ecosystem, name, version));
            }
            _ => {}
        }
        if found.len() == MAX_COMPONENTS {
            break;
        }
    }
    // A module built from its folder has no version.
    found.retain(|component| component.version != "(devel)");
    Some(found)
}

/// A text after its length, which has 7 bits in each byte.
fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut length: usize = 0;
    for shift in [0, 7, 14, 21] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let (text, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            return Some(text);
        }
    }
    None
}

/// The list of `cargo auditable`: compressed JSON. Crates that only the build used are left out.
fn rust(section: &[u8]) -> Option<Vec<Component>> {
    #[derive(Deserialize)]
    struct Whole {
        #[serde(deserialize_with = "crates")]
        packages: Vec<Component>,
    }

    let mut unpacked = Vec::new();
    let mut decoder = ZlibDecoder::new(section).take(MAX_AUDITABLE_BYTES + 1);
    decoder.read_to_end(&mut unpacked).ok()?;
    if unpacked.len() as u64 > MAX_AUDITABLE_BYTES {
        return None;
    }
    let whole: Whole = json::read(&unpacked).ok()?;
    Some(whole.packages)
}

fn crates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Component>, D::Error> {
    #[derive(Deserialize)]
    struct Crate {
        name: String,
        version: String,
        source: Option<String>,
        kind: Option<String>,
    }

    let mut found = Vec::new();
    json::each(deserializer, MAX_COMPONENTS, |one: Crate| {
        if one.kind.as_deref() != Some("build") {
            // One of a folder or a repository may have the name of a published one.
            let is_published = one.source.as_deref() == Some("crates.io");
            let ecosystem = is_published.then_some(Ecosystem::CratesIo);
            found.push(component(ecosystem, &one.name, &one.version));
        }
        Ok(())
    })?;
    Ok(found)
}
