//! The D-Bus names that more than one part uses.

pub const BLUEZ: &str = "org.bluez";
pub const BUS: &str = "org.freedesktop.DBus";
pub const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
pub const OBJECT_MANAGER: &str = "org.freedesktop.DBus.ObjectManager";
