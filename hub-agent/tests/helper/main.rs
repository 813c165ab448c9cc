//! The real helper, as a process on a root directory of its own: what it does, what it refuses, and
//! that it can be killed at any moment. Units are written there and not started, or by a systemctl
//! that only records the calls: the rest needs a running systemd (tests/system/vm).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

mod adapters;
mod agents;
mod apps;
mod archive;
mod archives;
mod clients;
mod kills;
mod releases;
mod site;
mod units;
