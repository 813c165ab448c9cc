//! The build script of the programs.
//!
//! It packs their relocations. Unpacked they take 0.7 MB of the agent and several of the service,
//! which the dynamic linker reads into memory at each start. glibc understands the packed form from
//! 2.36 on (Debian 12); other C libraries are left alone.
//!
//! It gives them the time of their build: `SOURCE_DATE_EPOCH` where it is set, as for packages.

use std::time::SystemTime;

fn main() {
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let now = SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |elapsed| elapsed.as_secs());
    let built_at = std::env::var("SOURCE_DATE_EPOCH").unwrap_or(now.to_string());
    println!("cargo::rustc-env=BUILT_AT_SECS={built_at}");
    println!("cargo::rerun-if-env-changed=CARGO_CFG_TARGET_ENV");
    if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
