//! What a report of a hub may say.

use hub_base::error::Result;
use hub_core::http::check::Check;
use hub_protocol::packages::{MAX_PACKAGES, Package, PackageList, SoftwareReport};

const MAX_CHARS: usize = 200;
const MAX_WORD_CHARS: usize = 64;
const MAX_ADAPTERS: usize = 64;
const SHA256_DIGITS: usize = 64;
/// Errors of packages that an answer names.
const MAX_ERRORS: usize = 20;

pub fn check(report: &SoftwareReport) -> Result<()> {
    let mut check = Check::new();
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    check.that(
        report.packages_sha256.len() == SHA256_DIGITS
            && report.packages_sha256.bytes().all(is_digit),
        "packagesSha256",
        "must be 64 lower-case hexadecimal digits",
    );
    check.line("kernel", report.kernel.as_deref(), MAX_CHARS);
    check.line("bluez", report.bluez.as_deref(), MAX_CHARS);
    check.required("agent", &report.agent, MAX_CHARS);
    check.that(
        report.adapter_firmware.len() <= MAX_ADAPTERS,
        "adapterFirmware",
        format!("may have at most {MAX_ADAPTERS} entries"),
    );
    for (address, firmware) in report.adapter_firmware.iter().take(MAX_ADAPTERS) {
        check.required("adapterFirmware", address, MAX_WORD_CHARS);
        check.line("adapterFirmware", Some(firmware), MAX_CHARS);
    }
    if let Some(list) = &report.package_list {
        check_list(&mut check, list);
    }
    check.done()
}

fn check_list(check: &mut Check, list: &PackageList) {
    check.required(
        "packageList.distribution",
        &list.distribution,
        MAX_WORD_CHARS,
    );
    check.line(
        "packageList.distributionVersion",
        Some(&list.distribution_version),
        MAX_WORD_CHARS,
    );
    let count = list.packages.len();
    check.that(
        count <= MAX_PACKAGES,
        "packageList.packages",
        format!("may have at most {MAX_PACKAGES} entries"),
    );
    for (index, package) in list.packages.iter().enumerate().take(MAX_PACKAGES) {
        if check.count() >= MAX_ERRORS {
            break;
        }
        if !is_plain(package) {
            check_package(check, index, package);
        }
    }
}

/// Whether nothing can be wrong with the package, as is usual. Names of fields are made only for
/// those that are looked at again.
fn is_plain(package: &Package) -> bool {
    let is_plain = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let may_be =
        |text: &Option<String>, most| text.as_deref().is_none_or(|text| is_plain(text, most));
    is_plain(&package.name, MAX_CHARS)
        && is_plain(&package.version, MAX_CHARS)
        && may_be(&package.architecture, MAX_WORD_CHARS)
        && may_be(&package.source, MAX_CHARS)
        && may_be(&package.source_version, MAX_CHARS)
}

fn check_package(check: &mut Check, index: usize, package: &Package) {
    let field = |name: &str| format!("packageList.packages[{index}].{name}");
    check.required(&field("name"), &package.name, MAX_CHARS);
    check.required(&field("version"), &package.version, MAX_CHARS);
    let architecture = package.architecture.as_deref();
    check.line(&field("architecture"), architecture, MAX_WORD_CHARS);
    check.line(&field("source"), package.source.as_deref(), MAX_CHARS);
    let source_version = package.source_version.as_deref();
    check.line(&field("sourceVersion"), source_version, MAX_CHARS);
}
