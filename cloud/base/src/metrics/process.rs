//! Metrics of the process, under the names that Prometheus' client libraries use. Read from
//! `/proc` when they are asked for.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

#[derive(Debug)]
pub struct Process {
    /// Seconds since 1970.
    started_at: f64,
}

impl Process {
    pub fn new() -> Self {
        let started_at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .as_ref()
            .map_or(0.0, Duration::as_secs_f64);
        Self { started_at }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut gauge = |name: &str, help: &str, unit: Option<&Unit>, value: f64| {
            let metric = ConstGauge::new(value);
            metric.encode(encoder.encode_descriptor(name, help, unit, metric.metric_type())?)
        };
        gauge(
            "process_start_time",
            "When the process started, since 1970",
            Some(&Unit::Seconds),
            self.started_at,
        )?;
        if let Some(bytes) = resident_bytes() {
            gauge(
                "process_resident_memory",
                "Resident memory",
                Some(&Unit::Bytes),
                bytes,
            )?;
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            gauge(
                "process_open_fds",
                "Open file descriptors",
                None,
                open.count() as f64,
            )?;
        }
        if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
            gauge(
                "process_max_fds",
                "Limit of open file descriptors",
                None,
                limit as f64,
            )?;
        }
        if let Some(seconds) = cpu_seconds() {
            let metric = ConstCounter::new(seconds);
            let unit = Some(&Unit::Seconds);
            let help = "CPU time, user and system";
            metric.encode(encoder.encode_descriptor(
                "process_cpu",
                help,
                unit,
                metric.metric_type(),
            )?)?;
        }
        Ok(())
    }
}

fn resident_bytes() -> Option<f64> {
    let pages: u64 = fs::read_to_string("/proc/self/statm")
        .ok()?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()?;
    Some(pages as f64 * rustix::param::page_size() as f64)
}

/// Fields 14 and 15 of `/proc/self/stat` (proc_pid_stat(5)), which follow the program's name in
/// parentheses.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_and_processor_time_are_read() {
        assert!(super::resident_bytes().is_some_and(|bytes| bytes > 1_000_000.0));
        assert!(super::cpu_seconds().is_some());
    }
}
