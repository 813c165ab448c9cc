//! The findings that `hub-cloud check` and `hub-agent check` print, each with its remedy, as text
//! or as JSON.

use std::fmt::{Display, Write};

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    Warn,
    Fail,
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The subject of the check.
    pub check: &'static str,
    pub state: State,
    pub finding: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

impl Finding {
    pub fn ok(check: &'static str, finding: impl Display) -> Self {
        Self {
            check,
            state: State::Ok,
            finding: finding.to_string(),
            mend: None,
        }
    }

    pub fn warn(check: &'static str, finding: impl Display, mend: impl Display) -> Self {
        Self {
            check,
            state: State::Warn,
            finding: finding.to_string(),
            mend: Some(mend.to_string()),
        }
    }

    pub fn fail(check: &'static str, finding: impl Display, mend: impl Display) -> Self {
        Self {
            check,
            state: State::Fail,
            finding: finding.to_string(),
            mend: Some(mend.to_string()),
        }
    }
}

/// `1 check failed`, for example; `None` if no check failed.
pub fn failure(findings: &[Finding]) -> Option<String> {
    match findings
        .iter()
        .filter(|finding| finding.state == State::Fail)
        .count()
    {
        0 => None,
        1 => Some("1 check failed".to_owned()),
        failed => Some(format!("{failed} checks failed")),
    }
}

/// `{"ok": bool, "findings": [{"check", "state", "finding", "mend"}]}` and a line break.
pub fn json(findings: &[Finding]) -> serde_json::Result<String> {
    let ok = failure(findings).is_none();
    serde_json::to_string_pretty(&serde_json::json!({"ok": ok, "findings": findings}))
        .map(|text| text + "\n")
}

/// Whether output is coloured: in a terminal, unless `NO_COLOR` has a value (no-color.org).
pub fn colours(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The findings, one line each, followed by its remedy.
pub fn text(findings: &[Finding], colours: bool) -> String {
    let mut text = String::new();
    for finding in findings {
        let (word, colour) = match finding.state {
            State::Ok => ("ok  ", "\x1b[32m"),
            State::Warn => ("warn", "\x1b[33m"),
            State::Fail => ("FAIL", "\x1b[31m"),
        };
        let (colour, plain) = if colours {
            (colour, "\x1b[0m")
        } else {
            ("", "")
        };
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "{colour}{word}{plain}  {:<12} {}",
            finding.check, finding.finding
        );
        if let Some(mend) = &finding.mend {
            let _ = writeln!(text, "{:19}-> {mend}", "");
        }
    }
    text
}
