//! The kinds of record that hubs upload, and what the log of records knows about each.

use hub_protocol::text_enum;

/// A kind of record. Each has its own count and its own order of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    BleEvents,
    Logs,
    Telemetry,
    /// Stored by `fleet/jobs`, in the transaction that advances the job. The log has only their
    /// ids and their streams.
    JobEvents,
}

// As stored in `upload_clocks` and `upload_keys`.
text_enum!(Kind {
    BleEvents = "BLE_EVENTS",
    Logs = "LOGS",
    Telemetry = "TELEMETRY",
    JobEvents = "JOB_EVENTS",
});

/// How the log handles records of one kind.
pub struct Description {
    /// The head of the statement that inserts records as rows; `None` if another part stores them.
    pub insert: Option<&'static str>,
    /// Whether event streams carry records of this kind.
    pub is_streamed: bool,
    /// Whether an upload proves that the hub is online, and may report the agent's version.
    pub is_telemetry: bool,
}

impl Kind {
    pub const fn description(self) -> Description {
        match self {
            Self::BleEvents => Description {
                insert: None,
                is_streamed: true,
                is_telemetry: false,
            },
            Self::Logs => Description {
                insert: Some("INSERT INTO hub_logs (tenant_uuid, hub_uuid, hub_log_id, body)"),
                is_streamed: true,
                is_telemetry: false,
            },
            Self::Telemetry => Description {
                insert: Some(
                    "INSERT INTO hub_telemetry \
                     (tenant_uuid, hub_uuid, hub_telemetry_id, body)",
                ),
                is_streamed: false,
                is_telemetry: true,
            },
            Self::JobEvents => Description {
                insert: None,
                is_streamed: true,
                is_telemetry: false,
            },
        }
    }
}
