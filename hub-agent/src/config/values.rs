//! Values of settings: how they are written, and why one is refused.

use std::str::FromStr;
use std::time::Duration;

use hub_agent::size::{Size, number_and_unit};
use secrecy::{ExposeSecret, SecretString};
use tracing_subscriber::filter::{LevelFilter, Targets};

/// A duration, written as a whole number and `ms`, `s`, `m`, `h` or `d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, u64); 5] = [
            ("ms", 1),
            ("s", 1_000),
            ("m", 60_000),
            ("h", 3_600_000),
            ("d", 86_400_000),
        ];
        let millis = number_and_unit(text, &UNITS)
            .ok_or("write it as a whole number and ms, s, m, h or d, such as 30s")?;
        // A year: more is a mistake, and would overflow sums of times.
        if millis > 366 * 86_400_000 {
            return Err("the longest is 366d".into());
        }
        Ok(Self(Duration::from_millis(millis)))
    }
}

/// The address of an HTTP proxy. It may contain a password, so it is never printed.
#[derive(Clone, Debug)]
pub struct ProxyUrl(SecretString);

impl FromStr for ProxyUrl {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |reason: &str| {
            format!(
                "{reason}; write it as http://proxy.example.com:3128, with USER:PASSWORD@ before the host where the proxy needs it"
            )
        };
        let url = reqwest::Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(wrong(
                "it must begin with http:// or https:// and name a host",
            ));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it must end with the port"));
        }
        Ok(Self(text.to_owned().into()))
    }
}

impl ProxyUrl {
    /// Host and port, to display and to connect to.
    pub fn host_and_port(&self) -> Option<(String, u16)> {
        let url = reqwest::Url::parse(self.0.expose_secret()).ok()?;
        Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
    }

    /// The proxy of all connections but those to the hosts of `NO_PROXY`.
    pub fn as_proxy(&self) -> Result<reqwest::Proxy, String> {
        let proxy = reqwest::Proxy::all(self.0.expose_secret());
        // The error could quote the password.
        let proxy = proxy.map_err(|_| "proxy-url: it is not the URL of a proxy".to_owned())?;
        Ok(proxy.no_proxy(reqwest::NoProxy::from_env()))
    }
}

pub fn positive_time(text: &str) -> Result<Span, String> {
    text.parse().and_then(|span: Span| {
        if span.0.is_zero() {
            Err("it must be longer than 0".into())
        } else {
            Ok(span)
        }
    })
}

pub fn positive_size(text: &str) -> Result<Size, String> {
    text.parse().and_then(|size: Size| {
        if size.0 == 0 {
            Err("it must be more than 0".into())
        } else {
            Ok(size)
        }
    })
}

pub fn identity_text(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > 200 || text.chars().any(char::is_control) {
        return Err("it must have 1 to 200 printable characters".into());
    }
    Ok(text.to_owned())
}

pub fn replay_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed >= 0.0 => Ok(speed),
        _ => Err("it must be a number, 0 or more".into()),
    }
}

pub fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("it must be a number from 0 to 1".into()),
    }
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A log filter, as it was written. A word that is not a level would be read as the name of a
/// module and turn all other logs off.
pub fn log_filter(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    if parts.is_empty() {
        return Err(format!("it is empty; the levels are {}", LEVELS.join(", ")));
    }
    for part in parts.iter().filter(|part| !part.contains('=')) {
        if part.parse::<LevelFilter>().is_err() {
            // A word that resembles no level is not repeated: it may be a secret that was pasted
            // here.
            let nearest = LEVELS
                .iter()
                .find(|level| strsim::jaro_winkler(part, level) > 0.85);
            let wrong = match nearest {
                Some(level) => format!("`{part}` is not a level. Did you mean {level}?"),
                None => "it contains a word that is not a level.".to_owned(),
            };
            return Err(format!("{wrong} The levels are {}", LEVELS.join(", ")));
        }
    }
    let text = parts.join(",");
    match text.parse::<Targets>() {
        Ok(_) => Ok(text),
        Err(_) => {
            Err("it is not a filter; write it as info, or info,hub_agent::ble=debug".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_a_level_is_refused() {
        for good in [
            "info",
            "WARN",
            "off",
            "info,hub_agent::ble=debug",
            "hub_agent=trace",
            "info, hub_agent=debug",
        ] {
            assert!(log_filter(good).is_ok(), "{good}");
        }
        for wrong in [
            "",
            " ",
            ",",
            "warning",
            "verbose",
            "inf",
            "none",
            "info,hub_agent",
            "hub_agent=verbose",
        ] {
            assert!(log_filter(wrong).is_err(), "{wrong:?}");
        }
        assert!(
            log_filter("warning")
                .unwrap_err()
                .contains("Did you mean warn?")
        );
        assert!(
            log_filter("verbose")
                .unwrap_err()
                .contains("The levels are off, error, warn, info, debug, trace")
        );
    }
}
