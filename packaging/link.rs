//! The build script of the programs: packs their relocations. Unpacked they take 0.7 MB of the
//! agent and several of the service, which the dynamic linker reads into memory at each start.
//! glibc understands the packed form from 2.36 on (Debian 12); other C libraries are left alone.

fn main() {
    println!("cargo::rerun-if-env-changed=CARGO_CFG_TARGET_ENV");
    if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
