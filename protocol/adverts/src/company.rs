//! Names of companies by their identifiers in manufacturer data (Bluetooth SIG: Assigned Numbers,
//! 7.1, as of January 2026). Those that are seen most have shorter names.

use std::sync::LazyLock;

/// Identifiers in 4 hexadecimal digits and names, apart by a tab, in order.
const ASSIGNED: &str = include_str!("companies.tsv");

static COMPANIES: LazyLock<Vec<(u16, &str)>> = LazyLock::new(|| {
    let company = |line: &'static str| {
        let (id, name) = line.split_once('\t')?;
        Some((u16::from_str_radix(id, 16).ok()?, name))
    };
    ASSIGNED.lines().filter_map(company).collect()
});

/// The identifiers and names of all companies, in the order of the identifiers.
pub fn companies() -> impl Iterator<Item = (u16, &'static str)> {
    COMPANIES
        .iter()
        .map(|(id, name)| (*id, short_name(*id).unwrap_or(name)))
}

/// The name of a company, to display. Nothing may depend on it.
pub fn company_name(id: u16) -> Option<&'static str> {
    short_name(id).or_else(|| {
        let place = COMPANIES.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        COMPANIES.get(place).map(|(_, name)| *name)
    })
}

const fn short_name(id: u16) -> Option<&'static str> {
    Some(match id {
        0x0001 => "Nokia",
        0x0002 => "Intel",
        0x0003 => "IBM",
        0x0004 => "Toshiba",
        0x0006 => "Microsoft",
        0x000A | 0x001D => "Qualcomm",
        0x000D => "Texas Instruments",
        0x000F => "Broadcom",
        0x0010 => "Mitel",
        0x0015 => "RTX",
        0x0030 => "ST Microelectronics",
        0x0046 => "MediaTek",
        0x004C => "Apple",
        0x0056 | 0x012D => "Sony",
        0x0057 => "Harman",
        0x0059 => "Nordic Semiconductor",
        0x005D => "Realtek",
        0x0065 => "HP",
        0x006B => "Polar",
        0x0075 => "Samsung",
        0x0076 => "Creative",
        0x0078 => "Nike",
        0x0087 => "Garmin",
        0x009E => "Bose",
        0x00C4 => "LG",
        0x00C7 => "Quuppa",
        0x00CC => "Beats",
        0x00E0 => "Google",
        0x0100 => "TomTom",
        0x0118 => "Radius Networks",
        0x0131 => "Cypress",
        0x0157 => "Amazfit",
        0x015D => "Estimote",
        0x0171 => "Amazon",
        0x0180 => "Gigaset",
        0x01A9 => "Canon",
        0x01AB => "Meta",
        0x01DA => "Logitech",
        0x022B => "Tesla",
        0x027D => "Huawei",
        0x02E1 => "Victron Energy",
        0x02E5 => "Espressif",
        0x02FF => "Silicon Labs",
        0x038F => "Xiaomi",
        0x0397 => "LEGO",
        0x0399 => "Nikon",
        0x03DA => "EnOcean",
        0x0499 => "Ruuvi",
        0x0553 => "Nintendo",
        0x05A7 => "Sonos",
        0x0600 => "iRobot",
        0x0643 => "Makita",
        0x06D5 => "Sensirion",
        0x0757 => "ELA Innovation",
        0x07A2 => "Roku",
        0x0822 => "Adafruit",
        0x089C => "Embedded Devices",
        0x0969 => "SwitchBot",
        0x0BA9 => "Shelly",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_assigned_identifier_has_a_name() {
        assert_eq!(COMPANIES.len(), ASSIGNED.lines().count());
        assert!(COMPANIES.is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!(company_name(0x004C), Some("Apple"));
        assert_eq!(company_name(0x0077), Some("Laird Connectivity LLC"));
        assert_eq!(company_name(0x0757), Some("ELA Innovation"));
        assert_eq!(company_name(0xFFFF), None);
    }
}
