//! Archives written by hand, including ones that no honest program would write.

use tar::{EntryType, Header};

/// An entry's header and data, as in an archive.
pub struct Entry {
    pub name: Vec<u8>,
    pub kind: u8,
    pub mode: u32,
    pub link: &'static str,
    pub data: Vec<u8>,
    /// The size in the header, if it differs from the data's.
    pub size: Option<u64>,
}

pub fn file(name: impl AsRef<[u8]>, data: impl AsRef<[u8]>) -> Entry {
    let (name, data) = (name.as_ref().to_vec(), data.as_ref().to_vec());
    Entry {
        name,
        kind: b'0',
        mode: 0o644,
        link: "",
        data,
        size: None,
    }
}

pub fn of_kind(kind: u8, name: &str) -> Entry {
    Entry {
        kind,
        ..file(name, "")
    }
}

pub fn program(name: &str) -> Entry {
    Entry {
        mode: 0o755,
        ..file(name, "#!/bin/sh\n")
    }
}

/// Extended attributes for the next entry, or with `g` for all.
pub fn attributes(kind: u8, attributes: &[(&str, &str)]) -> Entry {
    let mut data = String::new();
    for (key, value) in attributes {
        let rest = format!(" {key}={value}\n");
        let digits = (1..)
            .find(|digits| (rest.len() + digits).to_string().len() == *digits)
            .unwrap();
        data += &format!("{}{rest}", rest.len() + digits);
    }
    Entry {
        kind,
        ..file("attributes", data)
    }
}

pub fn long_name(name: &str) -> Entry {
    Entry {
        kind: b'L',
        ..file("././@LongLink", [name.as_bytes(), b"\0"].concat())
    }
}

pub fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut archive = Vec::new();
    for entry in entries {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..entry.name.len()].copy_from_slice(&entry.name);
        header.set_entry_type(EntryType::new(entry.kind));
        header.set_mode(entry.mode);
        header.as_old_mut().linkname[..entry.link.len()].copy_from_slice(entry.link.as_bytes());
        header.set_size(entry.size.unwrap_or(entry.data.len() as u64));
        header.set_uid(1_000);
        header.set_gid(1_000);
        header.set_cksum();
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(&entry.data);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.extend([0; 1_024]);
    archive
}

pub fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 1).unwrap()
}

/// A working app with further entries.
pub fn app_with(more: impl IntoIterator<Item = Entry>) -> Vec<u8> {
    let mut entries = vec![program("bin/logger")];
    entries.extend(more);
    zstd(&tar(&entries))
}
