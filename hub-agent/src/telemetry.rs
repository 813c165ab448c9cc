//! The hub's regular report: the machine, the agent, the spool, and the health of each adapter.
//! Only reads; a figure that the machine does not have is zero or absent.

use std::sync::Arc;
use std::time::Duration;

use hub_protocol::telemetry::{AgentHealth, AgentTelemetry, MachineTelemetry};
use rustix::time::{ClockId, clock_gettime};

use crate::clock;
use crate::spool::{Kind, SpoolStopped};
use crate::status::Agent;
use crate::systemd;

/// The first report waits until the adapters are known.
const FIRST_AFTER: Duration = Duration::from_secs(3);

/// Reports until the spool has stopped.
pub async fn report(agent: Arc<Agent>, every: Duration) -> Result<(), SpoolStopped> {
    let mut since = clock::machine_now();
    let mut interval = tokio::time::interval_at(
        tokio::time::Instant::now() + FIRST_AFTER,
        every.max(Duration::from_secs(1)),
    );
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        // The machine's own time throughout: the spool corrects all times of a record by the same
        // offset.
        let now = clock::machine_now();
        let telemetry = AgentTelemetry {
            observed_at: now,
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id: agent.clock.boot().to_string(),
            machine: machine(agent.spool_dir.as_path()),
            agent: AgentHealth {
                uptime_secs: agent.uptime_secs(),
                resident_bytes: resident_bytes(),
                cpu_secs: cpu_secs(),
                path_holds_secs: agent.path_holds_secs(),
            },
            spool: agent.spool_health(),
            adapters: agent.health.report(since, now),
        };
        since = now;
        agent.spool.record(Kind::Telemetry, &telemetry).await?;
        systemd::status(&agent.status().summary());
    }
}

fn machine(disk: &std::path::Path) -> MachineTelemetry {
    let (disk_total_bytes, disk_available_bytes) =
        rustix::fs::statvfs(disk).map_or((0, 0), |disk| {
            (
                disk.f_blocks.saturating_mul(disk.f_frsize),
                disk.f_bavail.saturating_mul(disk.f_frsize),
            )
        });
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    MachineTelemetry {
        uptime_secs: u64::try_from(clock::since_boot_micros() / 1_000_000).unwrap_or(0),
        load_1m: first_number(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default()),
        memory_total_bytes: meminfo_bytes(&memory, "MemTotal"),
        memory_available_bytes: meminfo_bytes(&memory, "MemAvailable"),
        disk_total_bytes,
        disk_available_bytes,
        temperature_celsius: temperature_celsius(),
    }
}

fn first_number(text: &str) -> f64 {
    text.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0)
}

fn meminfo_bytes(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(':')?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse::<u64>()
                .ok()
        })
        .map_or(0, |kib| kib.saturating_mul(1_024))
}

/// The warmest of the machine's sensors.
fn temperature_celsius() -> Option<f64> {
    std::fs::read_dir("/sys/class/thermal")
        .ok()?
        .filter_map(|entry| {
            std::fs::read_to_string(entry.ok()?.path().join("temp"))
                .ok()?
                .trim()
                .parse::<f64>()
                .ok()
        })
        .map(|millidegrees| millidegrees / 1_000.0)
        // Missing sensors read as absolute zero, or far above any real temperature.
        .filter(|celsius| (-60.0..200.0).contains(celsius))
        .max_by(f64::total_cmp)
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

fn cpu_secs() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_proc_are_parsed() {
        assert_eq!(first_number("0.52 0.58 0.59 1/257 1234\n"), 0.52);
        let memory =
            "MemTotal:        1024 kB\nMemFree:           1 kB\nMemAvailable:     512 kB\n";
        assert_eq!(meminfo_bytes(memory, "MemTotal"), 1_048_576);
        assert_eq!(meminfo_bytes(memory, "MemAvailable"), 524_288);
        assert_eq!(meminfo_bytes("", "MemTotal"), 0);
    }

    #[test]
    fn the_figures_of_this_machine_are_read() {
        let machine = machine(std::path::Path::new("/"));
        assert!(
            machine.memory_total_bytes > 0
                && machine.disk_total_bytes > 0
                && machine.uptime_secs > 0
        );
        assert!(resident_bytes() > 0 && cpu_secs() > 0.0);
    }
}
