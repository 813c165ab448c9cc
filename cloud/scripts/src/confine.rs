//! What a script process gives up before it reads any input: it can neither open files nor reach
//! the network, start programs, regain privileges or use up the machine, and it ends with the
//! service. The interpreter is assumed to have faults: this has to hold when a script controls it.

use std::collections::BTreeMap;
use std::io;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter_all_threads,
};

/// Memory that the process may have beyond what it starts with.
const ADDRESS_SPACE_BYTES: u64 = 192 * 1024 * 1024;
/// Processor time of the process in all. It is replaced long before.
const CPU_SECONDS: u64 = 3600;

/// Drops the rights that a script must not have. Returns whether the kernel filters system calls;
/// the rest is not optional.
pub fn confine() -> io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    close_inherited()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    limit(
        Resource::As,
        address_space()?.saturating_add(ADDRESS_SPACE_BYTES),
    )?;
    limit(Resource::Cpu, CPU_SECONDS)?;
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, 3),
        (Resource::Nproc, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
    ] {
        limit(resource, most)?;
    }
    // Sets `no_new_privs` first.
    let filter = filter().map_err(io::Error::other)?;
    Ok(apply_filter_all_threads(&filter).is_ok())
}

/// Closes everything but standard input, output and error.
fn close_inherited() -> io::Result<()> {
    let numbers: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in numbers {
        // The one that read the directory is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

/// The size of the process's mappings.
fn address_space() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: Option<u64> = text.split(' ').next().and_then(|pages| pages.parse().ok());
    let page_bytes = u64::try_from(rustix::param::page_size()).map_err(io::Error::other)?;
    Ok(pages
        .ok_or_else(|| io::Error::other("/proc/self/statm is malformed"))?
        .saturating_mul(page_bytes))
}

/// Sets both limits, or keeps lower ones.
fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let most = getrlimit(resource)
        .maximum
        .map_or(most, |known| known.min(most));
    Ok(setrlimit(
        resource,
        Rlimit {
            current: Some(most),
            maximum: Some(most),
        },
    )?)
}

/// Allows the system calls of computing and answering; all others fail as not permitted.
fn filter() -> Result<BpfProgram, seccompiler::Error> {
    let plain = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        // Rust seeds its hash maps with it. Scripts have no maps of Rust.
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_sched_yield,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        plain.into_iter().map(|call| (call, Vec::new())).collect();
    // Memory, but none that can be executed.
    let executable = u64::from(libc::PROT_EXEC.unsigned_abs());
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let data = SeccompCondition::new(
            2,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(executable),
            0,
        )?;
        rules.insert(call, vec![SeccompRule::new(vec![data])?]);
    }
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, refused, SeccompAction::Allow, machine)?.try_into()?)
}
