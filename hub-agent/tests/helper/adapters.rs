//! The firmware of Bluetooth adapters.

use std::collections::BTreeMap;

use crate::site::Site;

#[test]
fn the_firmware_of_adapters_is_that_of_the_kernel() {
    let site = Site::new();
    let firmware = || site.helper().adapter_firmware().unwrap();
    assert_eq!(firmware(), BTreeMap::new(), "no debugfs");
    for (name, text) in [
        ("hci0/hci_version", "11\n"),
        ("hci0/hci_revision", "7558\n"),
        ("hci0/manufacturer", "10\n"),
        (
            "hci1/firmware_info",
            "Bootloader  revision 0.1\n build 23\x1b[2J week 12\n",
        ),
        ("hci1/hci_version", "255\n"),
        ("hci1/hci_revision", "65535\n"),
        ("hci1/manufacturer", "2\n"),
        ("hci2/firmware_info", &"x".repeat(100_000)),
        // Numbers that are missing, or none.
        ("hci3/hci_version", "11\n"),
        ("hci4/hci_version", "70000\n"),
        ("hci4/hci_revision", "\n"),
        ("6lowpan_enable", "0\n"),
    ] {
        site.write(
            &format!("sys/kernel/debug/bluetooth/{name}"),
            text.as_bytes(),
        );
    }
    let long = "x".repeat(150);
    let expected = [
        ("hci0", "HCI 11, revision 0x1d86, manufacturer 0x000a"),
        (
            "hci1",
            "Bootloader revision 0.1 build 23 [2J week 12, HCI 255, revision 0xffff, manufacturer 0x0002",
        ),
        ("hci2", long.as_str()),
    ];
    let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(firmware(), BTreeMap::from(expected));
}
