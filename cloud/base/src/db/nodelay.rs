//! Turns Nagle's algorithm off on connections to PostgreSQL. sqlx 0.9.0 leaves it on (its issue
//! 4335): a statement larger than a packet then waits 40 ms for the server's delayed
//! acknowledgement, which is most of the time of a bulk insert. sqlx does not expose its sockets,
//! so they are found among the open files of this process. To be removed when sqlx sets the option
//! itself.

use rustix::net::sockopt;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// Sets `TCP_NODELAY` on every TCP socket of this process; all of them benefit. A socket that
/// cannot be reached stays as it is and is slower, nothing worse.
pub fn set() {
    let Ok(this_process) = pidfd_open(getpid(), PidfdFlags::empty()) else {
        return;
    };
    let Ok(files) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    for file in files.flatten() {
        let is_socket = std::fs::read_link(file.path())
            .is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
        let Some(number) = file
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
            .filter(|_| is_socket)
        else {
            continue;
        };
        // A duplicate handle of the same socket, closed again at once.
        if let Ok(socket) = pidfd_getfd(&this_process, number, PidfdGetfdFlags::empty()) {
            let _ = sockopt::set_tcp_nodelay(&socket, true);
        }
    }
}
