//! Metrics of what is wrong now: 0 while all is well. Who notices a condition sets its gauge, and
//! logs it when the gauge changes: once when it begins, and once when it is over.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Default)]
pub struct ConditionMetrics {
    /// 1 while the database does not answer.
    pub database_away: Gauge,
    /// 1 while a bus is configured and not connected.
    pub bus_away: Gauge,
    /// 1 since the mail server could not be used, until it takes or refuses a mail.
    pub mail_away: Gauge,
    /// Hubs that went offline together and are not back.
    pub hubs_lost: Gauge,
}

impl ConditionMetrics {
    pub fn register(&self, registry: &mut Registry) {
        for (name, help, gauge) in [
            (
                "database_away",
                "1 while the database does not answer",
                &self.database_away,
            ),
            (
                "bus_away",
                "1 while the configured bus is not connected",
                &self.bus_away,
            ),
            (
                "mail_away",
                "1 while the mail server cannot be used",
                &self.mail_away,
            ),
            (
                "hubs_lost",
                "Hubs that went offline together with others of their tenant and are not back",
                &self.hubs_lost,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }
}
