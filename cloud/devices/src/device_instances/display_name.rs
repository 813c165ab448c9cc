//! The name of a device as people see it, the same everywhere.

/// What the name is made of.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    pub name: Option<&'a str>,
    /// The name of the model.
    pub model: &'a str,
    pub serial_number: Option<&'a str>,
    pub address: Option<&'a str>,
    pub device_instance_id: i64,
}

/// Characters at the end of a serial number that tell devices of one model apart.
const SERIAL_CHARS: usize = 12;
/// The digits of an address that are the device's own: those before name its maker.
const ADDRESS_DIGITS: usize = 6;

impl Named<'_> {
    /// Its own name; else its model with the end of its serial number or address, or with its id.
    pub fn display_name(self) -> String {
        if let Some(name) = self.name {
            return name.to_owned();
        }
        let own = match (self.serial_number, self.address) {
            (Some(serial_number), _) => end(serial_number, SERIAL_CHARS),
            (None, Some(address)) => end(&address.replace(':', ""), ADDRESS_DIGITS),
            (None, None) => self.device_instance_id.to_string(),
        };
        format!("{} {own}", self.model)
    }
}

/// The last characters of a text, from a letter or digit on.
fn end(text: &str, chars: usize) -> String {
    let skipped = text.chars().count().saturating_sub(chars);
    let end = text.chars().skip(skipped);
    end.skip_while(|character| !character.is_alphanumeric())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_a_name_has_that_of_its_model_and_what_is_its_own() {
        let unnamed = Named {
            name: None,
            model: "RuuviTag",
            serial_number: None,
            address: Some("C4:11:7D:DA:71:13"),
            device_instance_id: 42,
        };
        let serial_number = Some("2024-000-000-177");
        let cases = [
            (unnamed, "RuuviTag DA7113"),
            (
                Named {
                    serial_number,
                    ..unnamed
                },
                "RuuviTag 000-000-177",
            ),
            (
                Named {
                    address: None,
                    ..unnamed
                },
                "RuuviTag 42",
            ),
            (
                Named {
                    name: Some("Cold store"),
                    serial_number,
                    ..unnamed
                },
                "Cold store",
            ),
        ];
        for (named, expected) in cases {
            assert_eq!(named.display_name(), expected, "{named:?}");
        }
    }
}
