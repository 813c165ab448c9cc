//! The settings of the OpenTelemetry collector: `otlp-endpoint`, `otlp-headers`, `trace-ratio`.

use secrecy::SecretString;

use super::ConfigError;

const DEFAULT_RATIO: f64 = 0.01;

#[derive(Clone, Debug)]
pub struct CollectorConfig {
    pub endpoint: String,
    pub headers: SecretString,
    /// From 0 to 1.
    pub trace_ratio: f64,
}

pub fn collector(
    endpoint: Option<String>,
    headers: Option<String>,
    trace_ratio: Option<f64>,
) -> Result<Option<CollectorConfig>, ConfigError> {
    let Some(endpoint) = endpoint else {
        return match headers.is_some() || trace_ratio.is_some() {
            false => Ok(None),
            true => Err(ConfigError(
                "otlp-headers and trace-ratio need otlp-endpoint; set it, or none of them".into(),
            )),
        };
    };
    let trace_ratio = trace_ratio.unwrap_or(DEFAULT_RATIO);
    if !(0.0..=1.0).contains(&trace_ratio) {
        return Err(ConfigError("trace-ratio must be from 0 to 1".into()));
    }
    Ok(Some(CollectorConfig {
        endpoint,
        headers: headers.unwrap_or_default().into(),
        trace_ratio,
    }))
}
