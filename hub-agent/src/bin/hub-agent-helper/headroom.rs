//! How much of the disk installations leave free: the setting in the agent's configuration file,
//! which only root can change. The agent's environment variables and flags are not used: an
//! attacker who controls the agent could have set them.

use std::io::ErrorKind;

use hub_agent::size::Size;
use toml::{Table, Value};

use crate::log;
use crate::root::Root;

const DEFAULT: u64 = 64 << 20;
const KEY: &str = "disk-headroom";

pub fn configured(root: &Root) -> u64 {
    let path = root.join("etc/hub-agent/config.toml");
    let read = match std::fs::read_to_string(&path) {
        Ok(text) => read(&text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    };
    let bytes = read.unwrap_or_else(|error| {
        log(format_args!(
            "{}: {error}; {DEFAULT} bytes of the disk stay free",
            path.display()
        ));
        None
    });
    bytes.unwrap_or(DEFAULT)
}

/// The file's setting, if it has one. The error quotes nothing of the file, which may contain a
/// secret.
fn read(text: &str) -> Result<Option<u64>, String> {
    let table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    match table.get(KEY) {
        None => Ok(None),
        Some(Value::String(size)) => size.parse::<Size>().map(|size| Some(size.0)),
        Some(_) => Err("it is not a string".to_owned()),
    }
    .map_err(|error| format!("{KEY}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_of_the_agent_is_used() {
        assert_eq!(read("# disk-headroom = \"1GiB\"\nlog = \"info\""), Ok(None));
        assert_eq!(read("disk-headroom = \"1GiB\""), Ok(Some(1 << 30)));
        assert_eq!(read("disk-headroom = \"0B\""), Ok(Some(0)));
        for text in [
            "disk-headroom = \"much\"",
            "disk-headroom = true",
            "disk-headroom = ",
            "claim-code = secret",
        ] {
            let error = read(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
