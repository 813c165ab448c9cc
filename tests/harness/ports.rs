//! Ports of servers that are stopped and started again on the same address.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// The kernel gives ports above these (net.ipv4.ip_local_port_range) to whoever asks for any: to
/// connections too, and also while the server of such a port is stopped.
const FIRST: u16 = 20_000;
const LAST: u16 = 32_000;

/// A port that nobody listens on, and that nobody is given by the kernel.
pub fn lasting() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time begin at different ones.
    let begin = u16::try_from(std::process::id() % 12 * 1000).unwrap_or_default();
    for _ in FIRST..LAST {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + begin.wrapping_add(tried) % (LAST - FIRST);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST} to {LAST} is free")
}
