//! Options that several commands have.

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Common options")]
pub struct Global {
    /// URL of the service [default: that of the profile]
    #[arg(long, global = true, value_name = "URL", env = "HUB_SERVICE_URL")]
    pub service_url: Option<String>,

    /// Tenant to use: its uuid or its name
    #[arg(long, global = true, value_name = "TENANT", env = "HUB_TENANT")]
    pub tenant: Option<String>,

    /// Stored login to use
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "HUB_PROFILE",
        default_value = "default"
    )]
    pub profile: String,

    /// Print JSON: one document, or a line for each record of a stream
    #[arg(long, global = true)]
    pub json: bool,

    /// Send credentials over plain http to another machine, where others can read them
    #[arg(long, global = true)]
    pub insecure_http: bool,

    /// API key of the environment: arguments are visible to all users of a machine.
    #[arg(skip)]
    pub api_key: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Consent {
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
}

/// A time span in seconds: a number and its unit.
pub fn duration(text: &str) -> Result<u64, String> {
    let unit = |suffix: char| match suffix {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        _ => None,
    };
    let parsed = text.char_indices().next_back().and_then(|(at, suffix)| {
        text.get(..at)?
            .parse::<u64>()
            .ok()?
            .checked_mul(unit(suffix)?)
            .filter(|seconds| *seconds > 0)
    });
    parsed.ok_or_else(|| "must be a number with its unit, such as 90m, 12h or 30d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spans_have_units() {
        assert_eq!(duration("30d"), Ok(30 * 86_400));
        for text in [
            "",
            "7",
            "d",
            "-1d",
            "0h",
            "99999999999999999999d",
            "18446744073709551615d",
            "é",
            "1é",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
